//! The kinds of opens and locks of a file that can conflict with reading and writing, and the way
//! to learn of them without asking the tables each time.

use crate::file::File;
use core::fmt::Debug;

bitflags::bitflags! {
    /// Kinds of opens and locks of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Presence: u8 {
        /// Opens.
        const OPENS = 1;
        /// Opens that do not let others read or do not let others write.
        const DENIALS = 2;
        /// Locks of opens, which conflict with every use.
        const OPEN_LOCKS = 4;
        /// Locks of other owners, which conflict with uses by opens.
        const OWNER_LOCKS = 8;
    }
}

/// A watcher of files, which is told when a file gets the first open or lock of a kind, or loses
/// the last one. It can keep a filter that is faster to ask than the tables.
pub trait Watch: Debug + Send {
    /// `file` has the kinds `after` instead of `before`. Called by every operation that makes such
    /// a change, before it returns, so under the mutex of the tables.
    fn changed(&mut self, file: &File, before: Presence, after: Presence);
}
