//! Whether there is anything on a file that can stand in the way of reading and writing, and the
//! way to learn of it without asking the tables each time.

use crate::file::File;
use core::fmt::Debug;

bitflags::bitflags! {
    /// The kinds of things that there are on a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Presence: u8 {
        /// Opens.
        const OPENS = 1;
        /// Opens that do not let others read or do not let others write.
        const DENIALS = 2;
        /// Locks of opens, which stand in everybody's way.
        const OPEN_LOCKS = 4;
        /// Locks of other owners, which stand in the way of opens.
        const OWNER_LOCKS = 8;
    }
}

/// Somebody who is told when the first of a kind comes to a file, or the last one goes, and so can
/// keep a filter that is faster to ask than the tables.
pub trait Watch: Debug + Send {
    /// There is `after` on `file` instead of `before`. Called by every operation that makes such a
    /// change, before it returns, so under the mutex of the tables.
    fn changed(&mut self, file: &File, before: Presence, after: Presence);
}
