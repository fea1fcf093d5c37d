//! Creating, changing and deleting users, and their passwords. Not the computing of a password's
//! hash, nor the decision about a login.

use crate::accounts::{self, check_id, check_unused, check_vacant, new_rid};
use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, IdentityError, Result, Thing};
use crate::identity;
use crate::limits::{GROUPS_OF_USER_MAX, USERS_MAX};
use crate::sealer::NT_HASH_BYTES;
use crate::snapshot::Snapshot;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// A user to create, without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    /// The user's name.
    pub name: String,
    /// The user's id on files.
    pub uid: u32,
    /// The id of the primary group; that of the user by default.
    pub gid: Option<u32>,
    /// The names of groups that the user is in.
    pub groups: Vec<String>,
    /// Whether the user may log in.
    pub enabled: bool,
}

/// The fields of a user to change; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// The name.
    pub name: Option<String>,
    /// The id of the primary group.
    pub gid: Option<u32>,
    /// The names of all groups that the user is in.
    pub groups: Option<Vec<String>>,
    /// Whether the user may log in.
    pub enabled: Option<bool>,
}

impl Catalog {
    /// Creates a user, who can't log in before a password is set.
    ///
    /// # Errors
    /// `BadAccountName`, `AccountExists`, `BadId`, `IdTaken`, `NoSuch` (group), `TooManyGroups`,
    /// `TooMany`.
    pub fn create_user(&self, new: &NewUser, mode: Mode) -> Result<Outcome> {
        identity::check_name(&new.name)?;
        if new.uid == 0 {
            return Err(IdentityError::BadId { what: "uid", id: 0 }.into());
        }
        check_id("uid", new.uid)?;
        let gid = new.gid.unwrap_or(new.uid);
        check_id("gid", gid)?;
        self.mutate(mode, |tx, now| {
            check_vacant(now, &new.name, None)?;
            if let Some(owner) = now.user_by_uid(new.uid) {
                let (thing, name) = (Thing::User, owner.name.clone());
                return Err(IdentityError::IdTaken { what: "uid", id: new.uid, thing, name }.into());
            }
            if now.users().len() >= USERS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::User, max: USERS_MAX });
            }
            let groups = resolve(now, &new.groups)?;
            tx.execute(
                "INSERT INTO accounts (name, uid, gid, enabled) VALUES (?1, ?2, ?3, ?4)",
                params![new.name, new.uid, gid, new.enabled],
            )?;
            let rid = new_rid(tx, Thing::User)?;
            store_groups(tx, rid, &groups)?;
            Ok(Touched::Identities)
        })
    }

    /// Changes a user. The uid stays, because it is the owner of files.
    ///
    /// # Errors
    /// `NoSuch`, `BadAccountName`, `AccountExists`, `BadId`, `TooManyGroups`.
    pub fn change_user(&self, name: &str, change: &UserChange, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let user = accounts::user(now, name)?;
            let name = change.name.as_ref().unwrap_or(&user.name);
            if *name != user.name {
                identity::check_name(name)?;
                check_vacant(now, name, Some(user.rid))?;
            }
            let gid = change.gid.unwrap_or(user.gid);
            check_id("gid", gid)?;
            tx.execute(
                "UPDATE accounts SET name = ?2, gid = ?3, enabled = ?4 WHERE rid = ?1",
                params![user.rid, name, gid, change.enabled.unwrap_or(user.enabled)],
            )?;
            if let Some(groups) = &change.groups {
                store_groups(tx, user.rid, &resolve(now, groups)?)?;
            }
            Ok(Touched::Identities)
        })
    }

    /// Sets the password of a user by its NT hash, which is stored sealed.
    ///
    /// # Errors
    /// `NoSuch`, `BadSmbKey`, `SmbKeyUnreadable`, `Io`.
    pub fn set_password(
        &self,
        name: &str,
        nt_hash: &[u8; NT_HASH_BYTES],
        mode: Mode,
    ) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let user = accounts::user(now, name)?;
            // A preview must not make the key.
            if mode.commits() {
                let sealed = self.sealer().seal(user.rid, nt_hash)?;
                tx.execute(
                    "UPDATE accounts SET nt_hash = ?2 WHERE rid = ?1",
                    params![user.rid, &*sealed.0],
                )?;
            }
            Ok(Touched::Identities)
        })
    }

    /// Deletes a user. Files stay with the uid.
    ///
    /// # Errors
    /// `NoSuch`, `AccountInUse`.
    pub fn delete_user(&self, name: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let user = accounts::user(now, name)?;
            check_unused(now, Thing::User, user.rid, &user.name)?;
            tx.execute("DELETE FROM accounts WHERE rid = ?1", [user.rid])?;
            Ok(Touched::Identities)
        })
    }
}

/// The RIDs of the groups of these names.
fn resolve(now: &Snapshot, groups: &[String]) -> Result<BTreeSet<u32>> {
    if groups.len() > GROUPS_OF_USER_MAX {
        return Err(IdentityError::TooManyGroups.into());
    }
    groups.iter().map(|name| Ok(accounts::group(now, name)?.rid)).collect()
}

/// Replaces the memberships of a user.
fn store_groups(tx: &Connection, rid: u32, groups: &BTreeSet<u32>) -> Result<()> {
    tx.execute("DELETE FROM members WHERE user_rid = ?1", [rid])?;
    let mut insert = tx.prepare_cached("INSERT INTO members VALUES (?1, ?2)")?;
    for group in groups {
        insert.execute([rid, *group])?;
    }
    Ok(())
}
