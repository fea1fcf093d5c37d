//! `SMB2_FILEID`.

use super::WireError;
use super::codec::{Cursor, Field};
use alloc::vec::Vec;

/// The name of an open (MS-SMB2 §2.2.14.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The part that outlives a connection where the open is durable.
    pub persistent: u64,
    /// The part that changes when a durable open is taken up again.
    pub volatile: u64,
}

impl FileId {
    /// The open of the message before in a compound of related messages (§3.3.5.2.7.2); in an
    /// IOCTL, no open.
    pub const PREVIOUS: Self = Self { persistent: u64::MAX, volatile: u64::MAX };
}

impl Field for FileId {
    #[inline]
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        Ok(Self { persistent: from.get()?, volatile: from.get()? })
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.persistent.put(out);
        self.volatile.put(out);
    }
}
