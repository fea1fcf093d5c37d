//! The top directory of a volume: its owner, its group and its permissions. The file system alone
//! has them, because NFS clients with root access change them too.

/// The owner, the group and the permissions of a top directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The user id of the owner.
    pub uid: u32,
    /// The group id.
    pub gid: u32,
    /// The low 12 bits of the mode.
    pub mode: u32,
}

/// A change of a top directory; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopChange {
    /// The user id of the owner.
    pub uid: Option<u32>,
    /// The group id.
    pub gid: Option<u32>,
    /// The low 12 bits of the mode.
    pub mode: Option<u32>,
}

impl Top {
    /// The directory after `change`.
    #[must_use]
    pub fn with(self, change: TopChange) -> Self {
        Self {
            uid: change.uid.unwrap_or(self.uid),
            gid: change.gid.unwrap_or(self.gid),
            mode: change.mode.unwrap_or(self.mode),
        }
    }
}

impl From<Top> for TopChange {
    /// The change that makes a directory as `top` is.
    fn from(Top { uid, gid, mode }: Top) -> Self {
        Self { uid: Some(uid), gid: Some(gid), mode: Some(mode) }
    }
}
