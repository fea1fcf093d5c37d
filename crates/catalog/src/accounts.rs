//! Common rules of users and groups: names, ids, and references to them.

use crate::error::{CatalogError, IdentityError, Result, Thing};
use crate::identity::{Group, User};
use crate::names;
use crate::snapshot::Snapshot;
use rusqlite::Connection;
use std::sync::Arc;

/// The id that means "no id" in system calls.
const NO_ID: u32 = u32::MAX;

/// The user of this name.
pub(crate) fn user<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<User>> {
    now.user_named(name)
        .ok_or_else(|| CatalogError::NoSuch { thing: Thing::User, name: names::printable(name) })
}

/// The group of this name.
pub(crate) fn group<'a>(now: &'a Snapshot, name: &str) -> Result<&'a Arc<Group>> {
    now.group_named(name)
        .ok_or_else(|| CatalogError::NoSuch { thing: Thing::Group, name: names::printable(name) })
}

/// Refuses the id that means none.
pub(crate) fn check_id(what: &'static str, id: u32) -> Result<()> {
    if id == NO_ID { Err(IdentityError::BadId { what, id }.into()) } else { Ok(()) }
}

/// Refuses a name that another account has; `this` is the account itself, if it exists already.
pub(crate) fn check_vacant(now: &Snapshot, name: &str, this: Option<u32>) -> Result<()> {
    let user = now.user_named(name).map(|user| (Thing::User, user.rid, &user.name));
    let group = now.group_named(name).map(|group| (Thing::Group, group.rid, &group.name));
    match user.or(group).filter(|(_, rid, _)| Some(*rid) != this) {
        None => Ok(()),
        Some((thing, _, taken)) => {
            Err(IdentityError::AccountExists { thing, taken: taken.clone() }.into())
        }
    }
}

/// Refuses to delete an account that share rules name: without its rule, its users might get more.
pub(crate) fn check_unused(now: &Snapshot, thing: Thing, rid: u32, name: &str) -> Result<()> {
    match now.volumes().find(|volume| volume.smb.names_account(rid)) {
        None => Ok(()),
        Some(volume) => {
            let (name, volume) = (name.to_owned(), volume.name.clone());
            Err(IdentityError::AccountInUse { thing, name, volume }.into())
        }
    }
}

/// The RID of the account that was just made.
pub(crate) fn new_rid(tx: &Connection, thing: Thing) -> Result<u32> {
    let max = usize::MAX;
    u32::try_from(tx.last_insert_rowid()).map_err(|_| CatalogError::TooMany { thing, max })
}
