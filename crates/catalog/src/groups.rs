//! Creating and deleting groups of users, and their members.

use crate::accounts::{self, check_id, check_unused, check_vacant};
use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{CatalogError, IdentityError, Result, Thing};
use crate::identity::{self, Group, User};
use crate::limits::{GROUPS_MAX, GROUPS_OF_USER_MAX};
use rusqlite::params;

impl Catalog {
    /// Creates a group without members.
    ///
    /// # Errors
    /// `BadAccountName`, `AccountExists`, `BadId`, `IdTaken`, `TooMany`.
    pub fn create_group(&self, name: &str, gid: u32, mode: Mode) -> Result<Outcome> {
        identity::check_name(name)?;
        check_id("gid", gid)?;
        self.mutate(mode, |tx, now| {
            check_vacant(now, name, None)?;
            if let Some(owner) = now.group_by_gid(gid) {
                let (thing, name) = (Thing::Group, owner.name.clone());
                return Err(IdentityError::IdTaken { what: "gid", id: gid, thing, name }.into());
            }
            if now.groups().len() >= GROUPS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Group, max: GROUPS_MAX });
            }
            tx.execute("INSERT INTO accounts (name, gid) VALUES (?1, ?2)", params![name, gid])?;
            accounts::new_rid(tx, Thing::Group)?;
            Ok(Touched::Identities)
        })
    }

    /// Deletes a group. Its users stay, as do files with the gid.
    ///
    /// # Errors
    /// `NoSuch`, `AccountInUse`.
    pub fn delete_group(&self, name: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let group = accounts::group(now, name)?;
            check_unused(now, Thing::Group, group.rid, &group.name)?;
            tx.execute("DELETE FROM accounts WHERE rid = ?1", [group.rid])?;
            Ok(Touched::Identities)
        })
    }

    /// Adds a user to a group.
    ///
    /// # Errors
    /// `NoSuch`, `MemberExists`, `TooManyGroups`.
    pub fn add_member(&self, group: &str, user: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let (group, user) = (accounts::group(now, group)?, accounts::user(now, user)?);
            if was_added(user, group) {
                let (user, group) = (user.name.clone(), group.name.clone());
                return Err(IdentityError::MemberExists { user, group }.into());
            }
            if user.groups.len() >= GROUPS_OF_USER_MAX {
                return Err(IdentityError::TooManyGroups.into());
            }
            tx.execute("INSERT INTO members VALUES (?1, ?2)", [user.rid, group.rid])?;
            Ok(Touched::Identities)
        })
    }

    /// Removes a user from a group. A primary group is changed at the user instead.
    ///
    /// # Errors
    /// `NoSuch`, `NoSuchMember`.
    pub fn remove_member(&self, group: &str, user: &str, mode: Mode) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let (group, user) = (accounts::group(now, group)?, accounts::user(now, user)?);
            if !was_added(user, group) {
                let (user, group) = (user.name.clone(), group.name.clone());
                return Err(IdentityError::NoSuchMember { user, group }.into());
            }
            let remove = "DELETE FROM members WHERE user_rid = ?1 AND group_rid = ?2";
            tx.execute(remove, [user.rid, group.rid])?;
            Ok(Touched::Identities)
        })
    }
}

fn was_added(user: &User, group: &Group) -> bool {
    user.groups.iter().any(|one| one.rid == group.rid)
}
