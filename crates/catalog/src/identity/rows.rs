//! Users, groups and memberships as rows. A row without a uid is a group.

use super::{Group, Identities, SealedHash, User};
use crate::error::{CatalogError, Result};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads all users and groups.
pub(crate) fn load(db: &Connection) -> Result<Identities> {
    let groups = groups(db)?;
    let by_gid: BTreeMap<u32, &Arc<Group>> =
        groups.values().map(|group| (group.gid, group)).collect();
    let mut memberships = memberships(db, &groups)?;
    let mut query = db.prepare_cached(
        "SELECT rid, name, uid, gid, enabled, nt_hash FROM accounts WHERE uid IS NOT NULL ORDER BY rid",
    )?;
    let mut rows = query.query([])?;
    let mut users = Vec::new();
    while let Some(row) = rows.next()? {
        let (rid, gid) = (row.get(0)?, row.get(3)?);
        users.push(Arc::new(User {
            rid,
            name: row.get(1)?,
            uid: row.get(2)?,
            gid,
            primary: by_gid.get(&gid).copied().cloned(),
            groups: memberships.remove(&rid).unwrap_or_default(),
            enabled: row.get(4)?,
            password: row.get::<_, Option<Vec<u8>>>(5)?.map(|bytes| SealedHash(bytes.into())),
        }));
    }
    drop(by_gid);
    Ok(Identities::new(users, groups.into_values().collect()))
}

/// The groups by RID.
fn groups(db: &Connection) -> Result<BTreeMap<u32, Arc<Group>>> {
    let mut query =
        db.prepare_cached("SELECT rid, name, gid FROM accounts WHERE uid IS NULL ORDER BY rid")?;
    let rows = query.query_map([], |row| {
        let rid = row.get(0)?;
        Ok((rid, Arc::new(Group { rid, name: row.get(1)?, gid: row.get(2)? })))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The groups of each user, by RID.
fn memberships(
    db: &Connection,
    groups: &BTreeMap<u32, Arc<Group>>,
) -> Result<BTreeMap<u32, Vec<Arc<Group>>>> {
    let mut query = db.prepare_cached("SELECT user_rid, group_rid FROM members ORDER BY 1, 2")?;
    let mut rows = query.query([])?;
    let mut memberships: BTreeMap<u32, Vec<Arc<Group>>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (user, group): (u32, u32) = (row.get(0)?, row.get(1)?);
        let no_group = || CatalogError::Damaged(format!("user {user} is in no group {group}"));
        let group = groups.get(&group).ok_or_else(no_group)?;
        memberships.entry(user).or_default().push(Arc::clone(group));
    }
    Ok(memberships)
}
