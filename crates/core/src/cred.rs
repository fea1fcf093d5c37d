//! The caller: numeric POSIX credentials, as the store and the access decision use them.

use crate::limits::{GROUPS_AS_GIVEN_MAX, GROUPS_MAX};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// A caller's numeric identity, already squashed by the export rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    groups: Groups,
}

/// Supplementary groups. A few are kept in place and cost nothing to make or clone; more are
/// shared.
#[derive(Clone, Debug)]
pub struct Groups(Held);

/// Groups that are kept in place. More would make every request larger.
const IN_PLACE: usize = 3;

#[derive(Clone, Debug)]
enum Held {
    /// The groups in the order given.
    Few { list: [u32; IN_PLACE], count: u8 },
    /// More than [`IN_PLACE`], in the order given, or more than [`GROUPS_AS_GIVEN_MAX`], in
    /// ascending order.
    Many(Arc<[u32]>),
}

impl Groups {
    /// No groups.
    pub const NONE: Self = Self(Held::Few { list: [0; IN_PLACE], count: 0 });

    /// These groups; beyond [`GROUPS_MAX`] different ones the rest is dropped.
    #[must_use]
    pub fn new(groups: &[u32]) -> Self {
        if groups.len() > GROUPS_AS_GIVEN_MAX {
            return Self::many(groups);
        }
        if groups.len() > IN_PLACE {
            return Self(Held::Many(groups.into()));
        }
        let mut list = [0; IN_PLACE];
        for (slot, group) in list.iter_mut().zip(groups) {
            *slot = *group;
        }
        Self(Held::Few { list, count: u8::try_from(groups.len()).unwrap_or(0) })
    }

    #[cold]
    fn many(groups: &[u32]) -> Self {
        let mut sorted = Vec::from(groups);
        sorted.sort_unstable();
        sorted.dedup();
        sorted.truncate(GROUPS_MAX);
        if sorted.len() <= GROUPS_AS_GIVEN_MAX {
            return Self::new(&sorted);
        }
        Self(Held::Many(sorted.into()))
    }

    /// All of them.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        match &self.0 {
            Held::Few { list, count } => list.get(..usize::from(*count)).unwrap_or(&[]),
            Held::Many(groups) => groups,
        }
    }

    /// Is `gid` one of them?
    #[inline]
    #[must_use]
    pub fn contains(&self, gid: u32) -> bool {
        let groups = self.as_slice();
        if groups.len() <= GROUPS_AS_GIVEN_MAX {
            groups.contains(&gid)
        } else {
            groups.binary_search(&gid).is_ok()
        }
    }
}

impl PartialEq for Groups {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Held::Many(ours), Held::Many(theirs)) if Arc::ptr_eq(ours, theirs) => true,
            _ => self.as_slice() == other.as_slice(),
        }
    }
}

impl Eq for Groups {}

impl Hash for Groups {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

/// The rights of a caller on one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The caller, with the identity that the export rule gives it.
    pub cred: Credentials,
    /// Whether the caller may change nothing.
    pub read_only: bool,
}

impl Credentials {
    /// The superuser.
    pub const ROOT: Self = Self::new(0, 0);

    /// A user with one group.
    #[inline]
    #[must_use]
    pub const fn new(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: Groups::NONE }
    }

    /// The user with these supplementary groups.
    #[must_use]
    pub fn with_groups(self, groups: &[u32]) -> Self {
        self.with(Groups::new(groups))
    }

    /// The user with supplementary groups that were made before.
    #[inline]
    #[must_use]
    pub fn with(self, groups: Groups) -> Self {
        Self { groups, ..self }
    }

    /// The supplementary groups.
    #[must_use]
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Is `gid` the caller's group or one of the supplementary ones?
    #[inline]
    #[must_use]
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(gid)
    }

    /// Is this the superuser?
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn few_groups_are_kept_in_place_and_many_are_shared() {
        let few: Vec<u32> = (0..16).rev().collect();
        assert_eq!(Groups::new(&few).as_slice(), few, "in their order");
        assert!(matches!(Groups::new(&few[..IN_PLACE]).0, Held::Few { .. }));
        assert!(Groups::new(&few).contains(15) && !Groups::new(&few).contains(16));
        let many: Vec<u32> = (0..1000).rev().chain(0..1000).collect();
        let groups = Groups::new(&many);
        assert_eq!(groups.as_slice(), (0..1000).collect::<Vec<u32>>());
        assert_eq!(groups, groups.clone());
        let cred = Credentials::new(1, 5000).with(groups);
        assert!(cred.in_group(0) && cred.in_group(999) && cred.in_group(5000));
        assert!(!cred.in_group(1000));
        assert!(matches!(Groups::new(&[7; 40]).0, Held::Few { count: 1, .. }));
        let most: Vec<u32> = (0..u32::try_from(GROUPS_MAX).unwrap() + 5).collect();
        assert_eq!(Groups::new(&most).as_slice().len(), GROUPS_MAX);
        assert_eq!(size_of::<Credentials>(), 32, "it travels with every request");
    }
}
