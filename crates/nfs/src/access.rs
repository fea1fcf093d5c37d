//! The access decision of NFS for the data of a file: the neutral decision of
//! [`weir_core::access`], and the exceptions that NFS needs because it has no OPEN.
//!
//! Not here: names, attributes and lists, for which NFS has no exceptions.

use weir_core::access::allows;
use weir_core::{Access, Acl, Attr, Credentials};

/// May `cred` read the data of a file by an NFS READ?
///
/// The owner always may, because a POSIX client that holds the file open may after a `chmod`
/// (RFC 1813 §4.4); execute permission is enough, because paging in a program is a read.
#[inline]
pub(crate) fn may_read(attr: &Attr, acl: Option<&Acl>, cred: &Credentials) -> bool {
    cred.uid == attr.uid
        || allows(attr, acl, cred, Access::READ)
        || allows(attr, acl, cred, Access::EXECUTE)
}

/// May `cred` change the data of a file by an NFS WRITE? The owner always may (RFC 1813 §4.4).
#[inline]
pub(crate) fn may_write(attr: &Attr, acl: Option<&Acl>, cred: &Credentials) -> bool {
    cred.uid == attr.uid || allows(attr, acl, cred, Access::WRITE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::attr::DeviceNumber;
    use weir_core::{FileKind, Timestamp};

    fn file(mode: u32) -> Attr {
        Attr {
            kind: FileKind::Regular,
            mode,
            has_acl: false,
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
    fn the_owner_keeps_reading_and_writing_whatever_the_mode_says() {
        let owner = Credentials::new(10, 1);
        assert!(may_read(&file(0), None, &owner) && may_write(&file(0), None, &owner));
        assert!(!allows(&file(0), None, &owner, Access::READ));
        let member = Credentials::new(11, 20);
        assert!(!may_read(&file(0o707), None, &member) && !may_write(&file(0o707), None, &member));
    }

    #[test]
    fn execute_permission_allows_reading_but_not_writing() {
        let other = Credentials::new(11, 1);
        assert!(may_read(&file(0o001), None, &other) && !may_write(&file(0o001), None, &other));
        assert!(!may_read(&file(0o002), None, &other) && may_write(&file(0o002), None, &other));
    }
}
