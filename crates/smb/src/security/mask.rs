//! The rights of POSIX as access masks (MS-SMB2 §2.2.13.1).

use crate::wire::AccessMask;
use weir_core::Access;

/// Rights that no user is denied: attributes and descriptor may be read.
pub(super) const BASE: AccessMask =
    AccessMask::READ_ATTRIBUTES.union(AccessMask::READ_CONTROL).union(AccessMask::SYNCHRONIZE);

/// The rights that an owner has whatever the mode: to change mode, list and attributes.
pub(super) const OWNER: AccessMask =
    BASE.union(AccessMask::WRITE_DAC).union(AccessMask::WRITE_ATTRIBUTES);

/// The mask of these rights of POSIX to a directory or to something else. In a directory, to write
/// is also to delete.
pub(super) const fn of_rights(rights: Access, directory: bool) -> AccessMask {
    let mut mask = BASE;
    if rights.contains(Access::READ) {
        mask = mask.union(AccessMask::FILE_GENERIC_READ);
    }
    if rights.contains(Access::WRITE) {
        mask = mask.union(AccessMask::FILE_GENERIC_WRITE);
        if directory {
            mask = mask.union(AccessMask::DELETE_CHILD);
        }
    }
    if rights.contains(Access::EXECUTE) {
        mask = mask.union(AccessMask::FILE_GENERIC_EXECUTE);
    }
    mask
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
pub fn maximal_access(grounds: &Grounds) -> AccessMask {
    let mut mask = of_rights(grounds.rights, grounds.directory);
    if grounds.owner || grounds.superuser {
        mask |= OWNER;
    }
    if grounds.superuser {
        mask |= AccessMask::WRITE_OWNER;
    }
    if grounds.deletable {
        mask |= AccessMask::DELETE;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximal_access_follows_from_the_grounds() {
        let maximal = |grounds: &Grounds| maximal_access(grounds).bits();
        let none = Grounds {
            rights: Access::empty(),
            owner: false,
            superuser: false,
            directory: false,
            deletable: false,
        };
        assert_eq!(maximal(&none), 0x0012_0080);
        assert_eq!(maximal(&Grounds { rights: Access::READ, ..none }), 0x0012_0089);
        assert_eq!(maximal(&Grounds { owner: true, ..none }), 0x0016_0180);
        assert_eq!(maximal(&Grounds { deletable: true, ..none }), 0x0013_0080);
        let write = Grounds { rights: Access::WRITE, directory: true, ..none };
        assert_eq!(maximal(&write), 0x0012_01D6);
        let root = Grounds {
            rights: Access::all(),
            owner: false,
            superuser: true,
            directory: true,
            deletable: true,
        };
        assert_eq!(maximal(&root), 0x001F_01FF);
    }
}
