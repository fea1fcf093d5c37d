//! The rights that one may have to an object. Not here: who has them.

bitflags::bitflags! {
    /// The rights of a caller to an object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u8 {
        /// Read a file's data or list a directory (`r`).
        const READ = 4;
        /// Write a file's data or change a directory's entries (`w`).
        const WRITE = 2;
        /// Run a file or look a name up in a directory (`x`).
        const EXECUTE = 1;
    }
}
