//! Access and sharing (MS-SMB2 §2.2.13.1, §2.2.13). Not here: how access is decided.

use super::codec::bits;

bits! {
    /// The rights to an object (MS-SMB2 §2.2.13.1, MS-DTYP §2.4.3). The lowest bits have one name
    /// for files and pipes and another for directories.
    #[derive(PartialOrd, Ord)]
    pub struct AccessMask: u32 {
        /// Read a file's data.
        const READ_DATA = 0x0000_0001;
        /// List a directory.
        const LIST_DIRECTORY = 0x0000_0001;
        /// Write a file's data.
        const WRITE_DATA = 0x0000_0002;
        /// Make files in a directory.
        const ADD_FILE = 0x0000_0002;
        /// Write at a file's end.
        const APPEND_DATA = 0x0000_0004;
        /// Make directories in a directory.
        const ADD_SUBDIRECTORY = 0x0000_0004;
        /// Read extended attributes.
        const READ_EA = 0x0000_0008;
        /// Write extended attributes.
        const WRITE_EA = 0x0000_0010;
        /// Run a file.
        const EXECUTE = 0x0000_0020;
        /// Go through a directory.
        const TRAVERSE = 0x0000_0020;
        /// Remove any object of a directory.
        const DELETE_CHILD = 0x0000_0040;
        /// Read attributes and times.
        const READ_ATTRIBUTES = 0x0000_0080;
        /// Write attributes and times.
        const WRITE_ATTRIBUTES = 0x0000_0100;
        /// Remove or rename the object.
        const DELETE = 0x0001_0000;
        /// Read the security descriptor without its SACL.
        const READ_CONTROL = 0x0002_0000;
        /// Write the DACL.
        const WRITE_DAC = 0x0004_0000;
        /// Write the owner.
        const WRITE_OWNER = 0x0008_0000;
        /// Use the open to synchronize; it grants nothing.
        const SYNCHRONIZE = 0x0010_0000;
        /// Read and write the SACL.
        const ACCESS_SYSTEM_SECURITY = 0x0100_0000;
        /// Every right that the caller has.
        const MAXIMUM_ALLOWED = 0x0200_0000;
        /// All rights.
        const GENERIC_ALL = 0x1000_0000;
        /// The rights to run.
        const GENERIC_EXECUTE = 0x2000_0000;
        /// The rights to write.
        const GENERIC_WRITE = 0x4000_0000;
        /// The rights to read.
        const GENERIC_READ = 0x8000_0000;
    }

    /// The access that other opens may have at the same time (MS-SMB2 §2.2.13).
    pub struct ShareAccess: u32 {
        /// To read.
        const READ = 1;
        /// To write.
        const WRITE = 2;
        /// To remove or rename.
        const DELETE = 4;
    }
}

impl AccessMask {
    /// FILE_GENERIC_READ: the rights that [`AccessMask::GENERIC_READ`] stands for.
    pub const FILE_GENERIC_READ: Self = Self::READ_DATA
        .union(Self::READ_EA)
        .union(Self::READ_ATTRIBUTES)
        .union(Self::READ_CONTROL)
        .union(Self::SYNCHRONIZE);
    /// FILE_GENERIC_WRITE: the rights that [`AccessMask::GENERIC_WRITE`] stands for.
    pub const FILE_GENERIC_WRITE: Self = Self::WRITE_DATA
        .union(Self::APPEND_DATA)
        .union(Self::WRITE_EA)
        .union(Self::WRITE_ATTRIBUTES)
        .union(Self::READ_CONTROL)
        .union(Self::SYNCHRONIZE);
    /// FILE_GENERIC_EXECUTE: the rights that [`AccessMask::GENERIC_EXECUTE`] stands for.
    pub const FILE_GENERIC_EXECUTE: Self = Self::EXECUTE
        .union(Self::READ_ATTRIBUTES)
        .union(Self::READ_CONTROL)
        .union(Self::SYNCHRONIZE);
    /// FILE_ALL_ACCESS: the rights that [`AccessMask::GENERIC_ALL`] stands for.
    pub const FILE_ALL_ACCESS: Self = Self::from_bits_retain(0x001f_01ff);

    /// The mask with its generic rights as specific ones (MS-SMB2 §3.3.5.9).
    #[must_use]
    pub const fn specific(self) -> Self {
        let mut mask = self;
        let generic = [
            (Self::GENERIC_ALL, Self::FILE_ALL_ACCESS),
            (Self::GENERIC_EXECUTE, Self::FILE_GENERIC_EXECUTE),
            (Self::GENERIC_WRITE, Self::FILE_GENERIC_WRITE),
            (Self::GENERIC_READ, Self::FILE_GENERIC_READ),
        ];
        let mut rest: &[(Self, Self)] = &generic;
        while let [(generic, specific), after @ ..] = rest {
            if mask.contains(*generic) {
                mask = mask.difference(*generic).union(*specific);
            }
            rest = after;
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_rights_stand_for_those_of_the_specification() {
        let specific = |mask: AccessMask| mask.specific().bits();
        assert_eq!(specific(AccessMask::GENERIC_READ), 0x0012_0089);
        assert_eq!(specific(AccessMask::GENERIC_WRITE), 0x0012_0116);
        assert_eq!(specific(AccessMask::GENERIC_EXECUTE), 0x0012_00A0);
        assert_eq!(specific(AccessMask::GENERIC_ALL), 0x001F_01FF);
        assert_eq!(specific(AccessMask::GENERIC_READ | AccessMask::DELETE), 0x0013_0089);
        assert_eq!(specific(AccessMask::GENERIC_WRITE | AccessMask::GENERIC_EXECUTE), 0x0012_01B6);
        assert_eq!(specific(AccessMask::MAXIMUM_ALLOWED), 0x0200_0000);
    }
}
