//! The access decision: who may do what to an object, from its cached attributes and its access
//! control list.
//!
//! Operations that change names or attributes are decided by the kernel, under the caller's
//! identity, in the store; this module decides about reading and writing data, looking up and
//! listing names. It knows the mode, the list and the superuser. Exceptions of one protocol, such
//! as those of NFS for the owner of an open file, belong to that protocol.

use crate::acl::Acl;
use crate::attr::{Attr, FileKind};
use crate::cred::Credentials;
use crate::permission::Access;

/// The mode's group bits, which are the mask of an access control list.
const MASK_BITS: u32 = 0o070;

/// Is the access control list needed to decide for `cred`? Not where there is none, and neither
/// for the owner nor for the superuser, for whom the mode says all.
///
/// Nor where its mask is empty: there Linux decides by the mode as well (`acl_permission_check` in
/// its `fs/namei.c`), so that whom the list names gets what others get. POSIX.1e would give
/// nothing; but as the kernel decides about names, data must not be decided otherwise.
#[inline]
#[must_use]
pub fn asks_acl(attr: &Attr, cred: &Credentials) -> bool {
    attr.has_acl && attr.mode & MASK_BITS != 0 && !cred.is_root() && cred.uid != attr.uid
}

/// May `cred` do all of `want` with an object of these attributes?
///
/// Without a list the first class of the mode that matches (owner, group, others) decides alone.
/// `acl` is the object's access list, if it has one; it may be left out where [`asks_acl`] says
/// that it isn't needed. The superuser may read and write everything, look up in every directory,
/// and run a file that somebody may run.
#[inline]
#[must_use]
pub fn allows(attr: &Attr, acl: Option<&Acl>, cred: &Credentials, want: Access) -> bool {
    match acl {
        Some(acl) if asks_acl(attr, cred) => acl.allows(attr.gid, cred, want),
        _ => by_mode(attr, cred).contains(want),
    }
}

fn by_mode(attr: &Attr, cred: &Credentials) -> Access {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::{Entry, Who};
    use crate::attr::DeviceNumber;
    use crate::time::Timestamp;

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
    fn the_first_matching_class_decides_alone() {
        let attr = file(0o047);
        let (owner, member, other) = (
            Credentials::new(10, 20),
            Credentials::new(11, 9).with_groups(&[20]),
            Credentials::new(12, 12),
        );
        assert_eq!(by_mode(&attr, &owner), Access::empty());
        assert_eq!(by_mode(&attr, &member), Access::READ);
        assert_eq!(by_mode(&attr, &other), Access::all());
    }

    #[test]
    fn root_runs_only_what_somebody_may_run() {
        assert_eq!(by_mode(&file(0o600), &Credentials::ROOT), Access::READ | Access::WRITE);
        assert_eq!(by_mode(&file(0o601), &Credentials::ROOT), Access::all());
        let dir = Attr { kind: FileKind::Directory, ..file(0) };
        assert_eq!(by_mode(&dir, &Credentials::ROOT), Access::all());
    }

    #[test]
    fn a_list_decides_for_all_but_owner_and_root() {
        let attr = Attr { has_acl: true, ..file(0o070) };
        let entry = |who, rights| Entry { who, rights };
        let acl = Acl::new(vec![
            entry(Who::Owner, Access::empty()),
            entry(Who::User(11), Access::READ),
            entry(Who::OwningGroup, Access::empty()),
            entry(Who::Mask, Access::all()),
            entry(Who::Others, Access::empty()),
        ]);
        let acl = acl.ok();
        assert!(acl.is_some());
        let may = |uid, want| allows(&attr, acl.as_ref(), &Credentials::new(uid, 20), want);
        assert!(may(11, Access::READ) && !may(11, Access::WRITE));
        assert!(!may(12, Access::READ), "the group bits are the mask");
        assert!(!may(10, Access::READ) && may(0, Access::READ));
        let owner = Credentials::new(10, 1);
        assert!(!asks_acl(&attr, &owner) && !asks_acl(&attr, &Credentials::ROOT));
        assert!(!asks_acl(&file(0o070), &Credentials::new(11, 20)));
        let masked = Attr { mode: 0o005, ..attr };
        assert!(allows(&masked, acl.as_ref(), &Credentials::new(11, 9), Access::READ));
        assert!(!allows(&masked, acl.as_ref(), &Credentials::new(12, 20), Access::READ));
    }
}
