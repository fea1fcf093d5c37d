//! Which file a lock is on.

use weir_core::{ObjectKey, VolumeId};

/// A file, for all protocols the same: its volume and the store's key for it. A store never uses a
/// key again, so a file that reuses the inode of a removed one does not inherit its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct File {
    /// The volume it is in.
    pub volume: VolumeId,
    /// The store's name for it.
    pub object: ObjectKey,
}
