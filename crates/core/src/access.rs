//! The access decision: who may do what to an object, from its cached attributes alone.
//!
//! Operations that change names or attributes are decided by the kernel, under the caller's
//! identity, in the store; this module decides READ, WRITE, LOOKUP, READDIR and ACCESS.

use crate::attr::{Attr, FileKind};
use crate::cred::Credentials;

bitflags::bitflags! {
    /// What a caller may do with an object.
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

/// The rights `cred` has on an object with `attr`, by the POSIX rule: the first class that
/// matches (owner, group, others) decides alone. The superuser may read and write everything,
/// look up in every directory, and run a file that somebody may run.
#[must_use]
pub fn rights(attr: &Attr, cred: &Credentials) -> Access {
    if cred.is_root() {
        let runnable = attr.kind == FileKind::Directory || attr.mode & 0o111 != 0;
        return if runnable { Access::all() } else { Access::READ | Access::WRITE };
    }
    let shift = if cred.uid == attr.uid {
        6
    } else if cred.in_group(attr.gid) {
        3
    } else {
        0
    };
    Access::from_bits_truncate(((attr.mode >> shift) & 7) as u8)
}

/// May `cred` read the data of a file by an NFS READ?
///
/// The owner always may, because a POSIX client that holds the file open may after a `chmod`
/// (RFC 1813 §4.4); execute permission is enough, because paging in a program is a read.
#[must_use]
pub fn may_read(attr: &Attr, cred: &Credentials) -> bool {
    cred.uid == attr.uid || rights(attr, cred).intersects(Access::READ | Access::EXECUTE)
}

/// May `cred` change the data of a file by an NFS WRITE? The owner always may (RFC 1813 §4.4).
#[must_use]
pub fn may_write(attr: &Attr, cred: &Credentials) -> bool {
    cred.uid == attr.uid || rights(attr, cred).contains(Access::WRITE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::DeviceNumber;
    use crate::time::Timestamp;

    fn file(mode: u32) -> Attr {
        Attr {
            kind: FileKind::Regular,
            mode,
            nlink: 1,
            uid: 10,
            gid: 20,
            size: 0,
            used: 0,
            rdev: DeviceNumber::default(),
            fileid: 1,
            atime: Timestamp::default(),
            mtime: Timestamp::default(),
            ctime: Timestamp::default(),
        }
    }

    #[test]
    fn the_first_matching_class_decides_alone() {
        let attr = file(0o047);
        let (owner, member, other) = (
            Credentials::new(10, 20),
            Credentials::new(11, 9).with_groups(&[20]),
            Credentials::new(12, 12),
        );
        assert_eq!(rights(&attr, &owner), Access::empty());
        assert_eq!(rights(&attr, &member), Access::READ);
        assert_eq!(rights(&attr, &other), Access::all());
    }

    #[test]
    fn root_runs_only_what_somebody_may_run() {
        assert_eq!(rights(&file(0o600), &Credentials::ROOT), Access::READ | Access::WRITE);
        assert_eq!(rights(&file(0o601), &Credentials::ROOT), Access::all());
        let dir = Attr { kind: FileKind::Directory, ..file(0) };
        assert_eq!(rights(&dir, &Credentials::ROOT), Access::all());
    }

    #[test]
    fn the_owner_keeps_reading_and_writing_and_execute_allows_reading() {
        let owner = Credentials::new(10, 1);
        assert!(may_read(&file(0), &owner) && may_write(&file(0), &owner));
        let other = Credentials::new(11, 1);
        assert!(may_read(&file(0o001), &other));
        assert!(!may_read(&file(0o002), &other) && may_write(&file(0o002), &other));
    }
}
