//! The properties of an object that SMB has beside the POSIX attributes. NFS never asks for them,
//! so a store keeps them apart from [`Attr`](crate::Attr), and only for objects where somebody has.

use crate::attr::FileKind;
use crate::time::Timestamp;

bitflags::bitflags! {
    /// The DOS attributes that a store keeps, with the values of MS-FSCC §2.6. They are the
    /// client's: a store enforces none. That an object is a directory is told by its kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct DosAttributes: u16 {
        /// `FILE_ATTRIBUTE_READONLY`.
        const READONLY = 0x0001;
        /// `FILE_ATTRIBUTE_HIDDEN`.
        const HIDDEN = 0x0002;
        /// `FILE_ATTRIBUTE_SYSTEM`.
        const SYSTEM = 0x0004;
        /// `FILE_ATTRIBUTE_ARCHIVE`: changed since a backup.
        const ARCHIVE = 0x0020;
        /// `FILE_ATTRIBUTE_SPARSE_FILE`: the client has declared the file to be sparse. Files of
        /// a store have holes with and without it.
        const SPARSE = 0x0200;
    }
}

impl DosAttributes {
    /// The attributes of an object of which no client has set any: `ARCHIVE` for a regular file,
    /// as Windows gives it to what is new, and none for anything else.
    #[must_use]
    pub const fn of_new(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Self::ARCHIVE,
            _ => Self::empty(),
        }
    }
}

/// The details of an object at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// The time at which the object was made, or the one that a client has set.
    pub birth: Timestamp,
    /// Its DOS attributes.
    pub dos: DosAttributes,
    /// Moves up with each change of the object's data, names or attributes, and never comes back
    /// to a value that stood for another state while the server runs. Over a restart it goes on
    /// from the time of the last change, in nanoseconds since 1970.
    ///
    /// A value that was read while a change was under way is none that the object has afterwards.
    pub change: u64,
}

/// Details to set; `None` leaves things as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetDetails {
    /// The time at which the object was made.
    pub birth: Option<Timestamp>,
    /// All DOS attributes.
    pub dos: Option<DosAttributes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_to_be_archived_and_nothing_else_is() {
        assert_eq!(DosAttributes::of_new(FileKind::Regular).bits(), 0x20);
        assert_eq!(DosAttributes::of_new(FileKind::Directory), DosAttributes::empty());
        assert_eq!(DosAttributes::of_new(FileKind::Symlink), DosAttributes::empty());
    }

    #[test]
    fn the_values_are_those_of_the_protocol() {
        assert_eq!(DosAttributes::all().bits(), 0x1 | 0x2 | 0x4 | 0x20 | 0x200);
    }
}
