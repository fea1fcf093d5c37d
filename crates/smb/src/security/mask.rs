//! Access masks (MS-DTYP §2.4.3, MS-SMB2 §2.2.13.1) and the rights of POSIX as such.
//!
//! `wire` has the mask of requests; the bits are the same.

use weir_core::Access;

bitflags::bitflags! {
    /// Rights to a file or directory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Mask: u32 {
        /// FILE_READ_DATA, FILE_LIST_DIRECTORY.
        const READ_DATA = 0x0000_0001;
        /// FILE_WRITE_DATA, FILE_ADD_FILE.
        const WRITE_DATA = 0x0000_0002;
        /// FILE_APPEND_DATA, FILE_ADD_SUBDIRECTORY.
        const APPEND_DATA = 0x0000_0004;
        /// FILE_READ_EA.
        const READ_EA = 0x0000_0008;
        /// FILE_WRITE_EA.
        const WRITE_EA = 0x0000_0010;
        /// FILE_EXECUTE, FILE_TRAVERSE.
        const EXECUTE = 0x0000_0020;
        /// FILE_DELETE_CHILD.
        const DELETE_CHILD = 0x0000_0040;
        /// FILE_READ_ATTRIBUTES.
        const READ_ATTRIBUTES = 0x0000_0080;
        /// FILE_WRITE_ATTRIBUTES.
        const WRITE_ATTRIBUTES = 0x0000_0100;
        /// DELETE.
        const DELETE = 0x0001_0000;
        /// READ_CONTROL: read the descriptor.
        const READ_CONTROL = 0x0002_0000;
        /// WRITE_DAC: change the list.
        const WRITE_DAC = 0x0004_0000;
        /// WRITE_OWNER: change the owner.
        const WRITE_OWNER = 0x0008_0000;
        /// SYNCHRONIZE.
        const SYNCHRONIZE = 0x0010_0000;
        /// GENERIC_ALL.
        const GENERIC_ALL = 0x1000_0000;
        /// GENERIC_EXECUTE.
        const GENERIC_EXECUTE = 0x2000_0000;
        /// GENERIC_WRITE.
        const GENERIC_WRITE = 0x4000_0000;
        /// GENERIC_READ.
        const GENERIC_READ = 0x8000_0000;
    }
}

impl Mask {
    /// Rights that nobody is denied: attributes and descriptor may be read.
    pub const BASE: Self = Self::READ_ATTRIBUTES.union(Self::READ_CONTROL).union(Self::SYNCHRONIZE);
    /// FILE_GENERIC_READ.
    pub const READ: Self = Self::BASE.union(Self::READ_DATA).union(Self::READ_EA);
    /// FILE_GENERIC_WRITE.
    pub const WRITE: Self = Self::READ_CONTROL
        .union(Self::SYNCHRONIZE)
        .union(Self::WRITE_DATA)
        .union(Self::APPEND_DATA)
        .union(Self::WRITE_EA)
        .union(Self::WRITE_ATTRIBUTES);
    /// FILE_GENERIC_EXECUTE.
    pub const RUN: Self = Self::BASE.union(Self::EXECUTE);
    /// FILE_ALL_ACCESS.
    pub const ALL: Self = Self::from_bits_retain(0x001F_01FF);

    /// The mask with its generic rights as specific ones (MS-SMB2 §3.3.5.9).
    #[must_use]
    pub const fn specific(self) -> Self {
        let mut mask = self;
        let generic = [
            (Self::GENERIC_ALL, Self::ALL),
            (Self::GENERIC_EXECUTE, Self::RUN),
            (Self::GENERIC_WRITE, Self::WRITE),
            (Self::GENERIC_READ, Self::READ),
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

    /// The mask of these rights of POSIX to a directory or to something else. In a directory, to
    /// write is also to delete.
    #[must_use]
    pub const fn of_rights(rights: Access, directory: bool) -> Self {
        let mut mask = Self::BASE;
        if rights.contains(Access::READ) {
            mask = mask.union(Self::READ);
        }
        if rights.contains(Access::WRITE) {
            mask = mask.union(Self::WRITE);
            if directory {
                mask = mask.union(Self::DELETE_CHILD);
            }
        }
        if rights.contains(Access::EXECUTE) {
            mask = mask.union(Self::RUN);
        }
        mask
    }

    /// The rights that an owner has whatever the mode: to change mode, list and attributes.
    pub const OWNER: Self = Self::BASE.union(Self::WRITE_DAC).union(Self::WRITE_ATTRIBUTES);
}

/// The grounds for access to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grounds {
    /// The rights that mode and list give ([`weir_core::access::allows`]).
    pub rights: Access,
    /// Is the caller the owner?
    pub owner: bool,
    /// Is the caller the superuser, who may also give files away?
    pub superuser: bool,
    /// Is the object a directory?
    pub directory: bool,
    /// May the caller take the name away: is the directory that holds it writable and, where it is
    /// sticky, the caller the owner of either?
    pub deletable: bool,
}

/// The access mask that POSIX grants: the answer to MAXIMUM_ALLOWED and to the create context MxAc
/// (MS-SMB2 §2.2.14.2.5).
#[must_use]
pub fn maximal_access(grounds: &Grounds) -> u32 {
    let mut mask = Mask::of_rights(grounds.rights, grounds.directory);
    if grounds.owner || grounds.superuser {
        mask |= Mask::OWNER;
    }
    if grounds.superuser {
        mask |= Mask::WRITE_OWNER;
    }
    if grounds.deletable {
        mask |= Mask::DELETE;
    }
    mask.bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_the_specification() {
        assert_eq!(Mask::READ.bits(), 0x0012_0089);
        assert_eq!(Mask::WRITE.bits(), 0x0012_0116);
        assert_eq!(Mask::RUN.bits(), 0x0012_00A0);
        assert_eq!((Mask::GENERIC_READ | Mask::DELETE).specific().bits(), 0x0013_0089);
        assert_eq!(Mask::GENERIC_ALL.specific(), Mask::ALL);
        let both = Mask::GENERIC_WRITE | Mask::GENERIC_EXECUTE;
        assert_eq!(both.specific(), Mask::WRITE | Mask::RUN);
    }

    #[test]
    fn maximal_access_follows_from_the_grounds() {
        let none = Grounds {
            rights: Access::empty(),
            owner: false,
            superuser: false,
            directory: false,
            deletable: false,
        };
        assert_eq!(maximal_access(&none), 0x0012_0080);
        assert_eq!(maximal_access(&Grounds { rights: Access::READ, ..none }), 0x0012_0089);
        assert_eq!(maximal_access(&Grounds { owner: true, ..none }), 0x0016_0180);
        assert_eq!(maximal_access(&Grounds { deletable: true, ..none }), 0x0013_0080);
        let write = Grounds { rights: Access::WRITE, directory: true, ..none };
        assert_eq!(maximal_access(&write), 0x0012_01D6);
        let root = Grounds {
            rights: Access::all(),
            owner: false,
            superuser: true,
            directory: true,
            deletable: true,
        };
        assert_eq!(maximal_access(&root), Mask::ALL.bits());
    }
}
