//! Who asks: numeric POSIX credentials, as the store and the access decision use them.

use crate::limits::GROUPS_MAX;

/// A caller's numeric identity, already squashed by the export rule. Copied, never allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    groups: [u32; GROUPS_MAX],
    group_count: u8,
}

impl Credentials {
    /// The superuser.
    pub const ROOT: Self = Self::new(0, 0);

    /// A user with one group.
    #[must_use]
    pub const fn new(uid: u32, gid: u32) -> Self {
        Self { uid, gid, groups: [0; GROUPS_MAX], group_count: 0 }
    }

    /// The same user with supplementary groups; those beyond [`GROUPS_MAX`] are dropped.
    #[must_use]
    pub fn with_groups(mut self, groups: &[u32]) -> Self {
        let count = groups.len().min(GROUPS_MAX);
        self.groups = [0; GROUPS_MAX];
        for (slot, group) in self.groups.iter_mut().zip(groups) {
            *slot = *group;
        }
        self.group_count = u8::try_from(count).unwrap_or(0);
        self
    }

    /// The supplementary groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        self.groups.get(..usize::from(self.group_count)).unwrap_or(&[])
    }

    /// Is `gid` the caller's group or one of the supplementary ones?
    #[must_use]
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups().contains(&gid)
    }

    /// Is this the superuser?
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.uid == 0
    }
}
