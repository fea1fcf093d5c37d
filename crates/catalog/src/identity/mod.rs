//! Users and groups of the catalogue: the identities of SMB sessions, and their lookups by name, id
//! and RID. Plain values; the changes are in `users` and `groups`, the sealing of password hashes
//! is in `sealer`.
//!
//! A user or a group has a relative identifier (RID) of its own, which is never reused, so that a
//! SID in a stored security descriptor never names somebody else later. Users and groups share one
//! space of names, as the accounts of a Windows domain do.

mod names;
mod rows;

pub(crate) use names::check as check_name;
pub use names::folded;
pub(crate) use rows::load;

use std::fmt;
use std::sync::Arc;
use weir_core::Credentials;

/// The first RID; those below belong to accounts that every Windows domain has.
pub const RID_FIRST: u32 = 1000;

/// A user, who may log in over SMB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Relative identifier; never reused after a delete.
    pub rid: u32,
    /// Unique among users and groups regardless of case.
    pub name: String,
    /// User id, unique among users and never 0.
    pub uid: u32,
    /// Id of the primary group, which need not be a group of the catalogue.
    pub gid: u32,
    /// The group of the catalogue that has this id, if there is one.
    pub primary: Option<Arc<Group>>,
    /// The groups that the user was added to, by RID.
    pub groups: Vec<Arc<Group>>,
    /// Whether the user may log in.
    pub enabled: bool,
    /// The sealed NT hash of the password; without one the user can't log in.
    pub password: Option<SealedHash>,
}

impl User {
    /// The user's numeric identity on files.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        let gids: Vec<u32> = self.groups.iter().map(|group| group.gid).collect();
        Credentials::new(self.uid, self.gid).with_groups(&gids)
    }

    /// Is the user in the group with this RID, as the primary group or another?
    #[must_use]
    pub fn is_in(&self, rid: u32) -> bool {
        self.primary.iter().chain(&self.groups).any(|group| group.rid == rid)
    }
}

/// A group of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Relative identifier; never reused after a delete.
    pub rid: u32,
    /// Unique among users and groups regardless of case.
    pub name: String,
    /// Group id, unique among groups.
    pub gid: u32,
}

/// An NT hash, sealed for one user by the key of one data directory (`Sealer`).
#[derive(Clone, PartialEq, Eq)]
pub struct SealedHash(pub(crate) Box<[u8]>);

/// Omits the content, so that no log contains it.
impl fmt::Debug for SealedHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedHash")
    }
}

/// All users and groups at one moment. Lookups are binary searches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identities {
    /// By RID.
    users: Vec<Arc<User>>,
    /// By RID.
    groups: Vec<Arc<Group>>,
    /// Places in `users`, by uid.
    by_uid: Vec<(u32, u32)>,
    /// Places in `groups`, by gid.
    by_gid: Vec<(u32, u32)>,
    /// Places in `users`, by folded name.
    user_names: Vec<(Box<str>, u32)>,
    /// Places in `groups`, by folded name.
    group_names: Vec<(Box<str>, u32)>,
}

impl Identities {
    /// The lookups of `users` and `groups`, both by RID.
    fn new(users: Vec<Arc<User>>, groups: Vec<Arc<Group>>) -> Self {
        let user_names = sorted(users.iter().map(|user| folded(&user.name).into()));
        let group_names = sorted(groups.iter().map(|group| folded(&group.name).into()));
        let by_uid = sorted(users.iter().map(|user| user.uid));
        let by_gid = sorted(groups.iter().map(|group| group.gid));
        Self { users, groups, by_uid, by_gid, user_names, group_names }
    }

    pub(crate) fn users(&self) -> &[Arc<User>] {
        &self.users
    }

    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    pub(crate) fn user_named(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(place(&self.user_names, folded(name).as_str(), |key| key)?)
    }

    pub(crate) fn group_named(&self, name: &str) -> Option<&Arc<Group>> {
        self.groups.get(place(&self.group_names, folded(name).as_str(), |key| key)?)
    }

    pub(crate) fn user_by_uid(&self, uid: u32) -> Option<&Arc<User>> {
        self.users.get(place(&self.by_uid, &uid, |key| key)?)
    }

    pub(crate) fn group_by_gid(&self, gid: u32) -> Option<&Arc<Group>> {
        self.groups.get(place(&self.by_gid, &gid, |key| key)?)
    }

    pub(crate) fn user_by_rid(&self, rid: u32) -> Option<&Arc<User>> {
        self.users.get(self.users.binary_search_by_key(&rid, |user| user.rid).ok()?)
    }

    pub(crate) fn group_by_rid(&self, rid: u32) -> Option<&Arc<Group>> {
        self.groups.get(self.groups.binary_search_by_key(&rid, |group| group.rid).ok()?)
    }
}

/// The keys with their places, in order.
fn sorted<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<(K, u32)> {
    let mut keys: Vec<_> = keys.zip(0..).collect();
    keys.sort_unstable();
    keys
}

/// The first place of `key`.
fn place<K, Q: Ord + ?Sized>(keys: &[(K, u32)], key: &Q, of: impl Fn(&K) -> &Q) -> Option<usize> {
    let at = keys.partition_point(|(found, _)| of(found) < key);
    let (found, place) = keys.get(at)?;
    (of(found) == key).then(|| usize::try_from(*place).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rid: u32, name: &str, uid: u32) -> Arc<User> {
        let (primary, groups, password) = (None, Vec::new(), None);
        let name = name.to_owned();
        Arc::new(User { rid, name, uid, gid: 100, primary, groups, enabled: true, password })
    }

    fn group(rid: u32, name: &str, gid: u32) -> Arc<Group> {
        Arc::new(Group { rid, name: name.to_owned(), gid })
    }

    #[test]
    fn everybody_is_found_by_name_uid_and_rid() {
        let users: Vec<_> =
            (0..5000).map(|n| user(2 * n + 1000, &format!("u{n}"), 9000 - n)).collect();
        let groups: Vec<_> =
            (0..500).map(|n| group(2 * n + 1001, &format!("g{n}"), 7000 - n)).collect();
        let all = Identities::new(users, groups);
        for user in all.users() {
            assert_eq!(all.user_named(&user.name.to_uppercase()), Some(user));
            assert_eq!(all.user_by_uid(user.uid), Some(user));
            assert_eq!(all.user_by_rid(user.rid), Some(user));
            assert_eq!(all.group_by_rid(user.rid), None);
        }
        for group in all.groups() {
            assert_eq!(all.group_named(&group.name), Some(group));
            assert_eq!(all.group_by_gid(group.gid), Some(group));
            assert_eq!(all.group_by_rid(group.rid), Some(group));
        }
        assert_eq!(all.user_named("u5000"), None);
        assert_eq!((all.user_by_uid(1), all.group_by_gid(9000)), (None, None));
        assert_eq!(Identities::default().user_named("u1"), None);
    }

    #[test]
    fn the_primary_group_counts_as_a_membership_but_not_twice_on_files() {
        let mut user = User::clone(&user(1000, "u", 5));
        user.primary = Some(group(1001, "p", 100));
        user.groups = vec![group(1002, "g", 7)];
        assert!(user.is_in(1001) && user.is_in(1002) && !user.is_in(1003));
        assert_eq!(user.credentials(), Credentials::new(5, 100).with_groups(&[7]));
    }
}
