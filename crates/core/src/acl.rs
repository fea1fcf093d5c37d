//! Access control lists, in the terms of no protocol: who has which rights beyond the mode bits.
//!
//! Today a list is one of POSIX.1e (draft 17, as Linux and Solaris have it): it names users and
//! groups, a mask bounds what they get, and the mode bits are three of its entries. Entries are
//! private to this module and [`Acl::allows`] is the only question asked of a list, so a richer
//! kind (entries in order, denials, finer rights) changes nothing for those who pass lists on.
//!
//! Not here: the form of a list on disk or on the wire, and the rights of owner and superuser,
//! which [`crate::access`] knows.

use crate::cred::Credentials;
use crate::error::{FsError, FsResult};
use crate::limits::ACL_ENTRIES_MAX;
use crate::permission::Access;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The kind of one of an object's two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AclKind {
    /// Decides about access to the object.
    Access,
    /// The initial list of objects made in this directory; decides nothing itself.
    Default,
}

/// The users that an entry is for. The order is the one that entries are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// The object's owner (`ACL_USER_OBJ`).
    Owner,
    /// This user (`ACL_USER`).
    User(u32),
    /// The object's group (`ACL_GROUP_OBJ`).
    OwningGroup,
    /// This group (`ACL_GROUP`).
    Group(u32),
    /// No one: the most that named users, the object's group and named groups get (`ACL_MASK`).
    Mask,
    /// Everybody else (`ACL_OTHER`).
    Others,
}

impl Who {
    const fn is_named(self) -> bool {
        matches!(self, Self::User(_) | Self::Group(_))
    }
}

/// One line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The users that the entry is for.
    pub who: Who,
    /// The rights that they get.
    pub rights: Access,
}

/// A list that keeps the rules of POSIX.1e. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    entries: Arc<[Entry]>,
}

impl Acl {
    /// A list of these entries, in any order.
    ///
    /// # Errors
    /// `Invalid` unless owner, owning group and others have one entry each, nobody has two, a mask
    /// is there if anybody is named, named ids are ids (`u32::MAX` is none), and there are at most
    /// [`ACL_ENTRIES_MAX`] entries.
    pub fn new(mut entries: Vec<Entry>) -> FsResult<Self> {
        if entries.len() > ACL_ENTRIES_MAX {
            return Err(FsError::Invalid);
        }
        entries.sort_unstable_by_key(|entry| entry.who);
        let twice = entries.windows(2).any(|pair| matches!(pair, [a, b] if a.who == b.who));
        let has = |who: Who| entries.binary_search_by_key(&who, |entry| entry.who).is_ok();
        let no_id = has(Who::User(u32::MAX)) || has(Who::Group(u32::MAX));
        let required = [Who::Owner, Who::OwningGroup, Who::Others].into_iter().all(has);
        let named = entries.iter().any(|entry| entry.who.is_named());
        if twice || no_id || !required || (named && !has(Who::Mask)) {
            return Err(FsError::Invalid);
        }
        Ok(Self { entries: entries.into() })
    }

    /// The list that says what the permission bits of `mode` say.
    #[must_use]
    pub fn from_mode(mode: u32) -> Self {
        let entry = |who, shift| Entry { who, rights: bits(mode, shift) };
        let entries = [entry(Who::Owner, 6), entry(Who::OwningGroup, 3), entry(Who::Others, 0)];
        Self { entries: Arc::new(entries) }
    }

    /// The entries: owner, users by id, owning group, groups by id, mask, others.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Does the list say nothing that permission bits can't?
    #[must_use]
    pub fn is_mode(&self) -> bool {
        self.entries.len() == 3
    }

    /// The permission bits that go with the list: those of the group are the mask's, where there
    /// is one.
    #[must_use]
    pub fn mode_bits(&self) -> u32 {
        let masked = self.is_masked();
        self.entries.iter().fold(0, |mode, entry| match class(entry.who, masked) {
            Some(shift) => mode | u32::from(entry.rights.bits()) << shift,
            None => mode,
        })
    }

    /// The list after a `chmod` to `mode`.
    #[must_use]
    pub fn with_mode(&self, mode: u32) -> Self {
        self.map_classes(|_, asked| asked, mode)
    }

    /// The initial list of an object made with `mode`, where this is the directory's default list:
    /// the list, less the rights that were not asked for (POSIX.1e §23.3.2). The umask plays no
    /// part.
    #[must_use]
    pub fn inherited(&self, mode: u32) -> Self {
        self.map_classes(|given, asked| given & asked, mode)
    }

    /// May `cred`, who is neither the superuser nor the owner, have all of `want` on an object of
    /// group `gid` (POSIX.1e §23.1.5)? The entry that names the user decides alone; of the groups
    /// that match, one must have all of it; if none matches, others decide.
    #[must_use]
    pub fn allows(&self, gid: u32, cred: &Credentials, want: Access) -> bool {
        let find = |who: Who| {
            let at = self.entries.binary_search_by_key(&who, |entry| entry.who).ok()?;
            self.entries.get(at).map(|entry| entry.rights)
        };
        let mask = find(Who::Mask).unwrap_or(Access::all());
        if let Some(rights) = find(Who::User(cred.uid)) {
            return (rights & mask).contains(want);
        }
        let mut member = false;
        for entry in self.entries.iter() {
            let matches = match entry.who {
                Who::OwningGroup => cred.in_group(gid),
                Who::Group(id) => cred.in_group(id),
                _ => false,
            };
            if matches && (entry.rights & mask).contains(want) {
                return true;
            }
            member |= matches;
        }
        !member && find(Who::Others).is_some_and(|rights| rights.contains(want))
    }

    fn is_masked(&self) -> bool {
        self.entries.iter().any(|entry| entry.who == Who::Mask)
    }

    fn map_classes(&self, change: impl Fn(Access, Access) -> Access, mode: u32) -> Self {
        let masked = self.is_masked();
        let changed = self.entries.iter().map(|entry| match class(entry.who, masked) {
            Some(shift) => Entry { rights: change(entry.rights, bits(mode, shift)), ..*entry },
            None => *entry,
        });
        Self { entries: changed.collect() }
    }
}

/// The place among the permission bits that stands for `who`, in a list with or without a mask.
const fn class(who: Who, masked: bool) -> Option<u32> {
    match who {
        Who::Owner => Some(6),
        Who::Mask => Some(3),
        Who::OwningGroup if !masked => Some(3),
        Who::Others => Some(0),
        Who::OwningGroup | Who::User(_) | Who::Group(_) => None,
    }
}

/// Three permission bits as rights.
fn bits(mode: u32, shift: u32) -> Access {
    Access::from_bits_truncate((mode >> shift & 7) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const R: Access = Access::READ;
    const W: Access = Access::WRITE;

    fn list(entries: &[(Who, Access)]) -> FsResult<Acl> {
        Acl::new(entries.iter().map(|&(who, rights)| Entry { who, rights }).collect())
    }

    fn full(more: &[(Who, Access)]) -> Acl {
        let base =
            [(Who::Owner, Access::all()), (Who::OwningGroup, R), (Who::Others, Access::empty())];
        list(&[&base, more].concat()).unwrap()
    }

    #[test]
    fn a_list_that_breaks_a_rule_is_invalid() {
        let (owner, group, others) = ((Who::Owner, R), (Who::OwningGroup, R), (Who::Others, R));
        assert!(list(&[others, owner, group]).is_ok(), "in any order");
        for bad in [
            vec![],
            vec![owner, group],
            vec![owner, group, others, others],
            vec![owner, group, others, (Who::User(7), R)],
            vec![owner, group, others, (Who::Mask, R), (Who::User(7), R), (Who::User(7), W)],
            vec![owner, group, others, (Who::Mask, R), (Who::Group(u32::MAX), R)],
            vec![owner, group, others, (Who::Mask, R), (Who::Mask, R)],
        ] {
            assert_eq!(list(&bad), Err(FsError::Invalid), "{bad:?}");
        }
        let named = |count: u32| (0..count).map(|id| (Who::User(id), R));
        let of = |count| -> Vec<_> {
            [owner, group, others, (Who::Mask, R)].into_iter().chain(named(count)).collect()
        };
        let most = u32::try_from(ACL_ENTRIES_MAX).unwrap() - 4;
        assert!(list(&of(most)).is_ok());
        assert_eq!(list(&of(most + 1)), Err(FsError::Invalid));
    }

    #[test]
    fn a_named_user_gets_what_the_mask_lets_through_and_no_group_adds_to_it() {
        let acl = full(&[(Who::User(7), R | W), (Who::Group(9), W), (Who::Mask, R)]);
        let named = Credentials::new(7, 9);
        assert!(acl.allows(1, &named, R));
        assert!(!acl.allows(1, &named, W));
        let acl = full(&[(Who::User(7), Access::empty()), (Who::Mask, Access::all())]);
        assert!(!acl.allows(9, &named, R), "though a member of the owning group");
    }

    #[test]
    fn one_group_must_grant_everything_asked_for() {
        let acl = full(&[(Who::Group(8), W), (Who::Group(9), R), (Who::Mask, Access::all())]);
        let cred = Credentials::new(7, 8).with_groups(&[9]);
        assert!(acl.allows(1, &cred, R) && acl.allows(1, &cred, W));
        assert!(!acl.allows(1, &cred, R | W), "no single group has both");
        assert!(acl.allows(8, &cred, R), "the owning group too");
    }

    #[test]
    fn members_of_a_group_never_fall_through_to_others() {
        let acl = list(&[
            (Who::Owner, R),
            (Who::OwningGroup, Access::empty()),
            (Who::Group(9), Access::empty()),
            (Who::Mask, Access::all()),
            (Who::Others, R),
        ])
        .unwrap();
        assert!(!acl.allows(1, &Credentials::new(7, 1), R));
        assert!(!acl.allows(1, &Credentials::new(7, 9), R));
        assert!(acl.allows(1, &Credentials::new(7, 2), R));
    }

    #[test]
    fn the_mode_is_owner_mask_and_others() {
        assert_eq!(Acl::from_mode(0o6754).mode_bits(), 0o754);
        assert!(Acl::from_mode(0).is_mode());
        let acl = full(&[(Who::User(7), R | W), (Who::Mask, R | W)]);
        assert!(!acl.is_mode());
        assert_eq!(acl.mode_bits(), 0o760);
        let changed = acl.with_mode(0o1641);
        assert_eq!(changed.mode_bits(), 0o641);
        assert_eq!(changed.entries()[2], Entry { who: Who::OwningGroup, rights: R }, "untouched");
        assert_eq!(Acl::from_mode(0o777).with_mode(0o123), Acl::from_mode(0o123));
    }

    #[test]
    fn what_is_inherited_is_what_was_asked_for_and_given() {
        let default = full(&[(Who::User(7), Access::all()), (Who::Mask, R | W)]);
        assert_eq!(default.inherited(0o666).mode_bits(), 0o660);
        assert_eq!(default.inherited(0o777).mode_bits(), 0o760);
        assert_eq!(default.inherited(0o640).entries()[1].rights, Access::all(), "under the mask");
    }
}
