//! The access decision, which is made once, when an object is opened (MS-FSA §2.1.5.1.2.1): what
//! the client asks for against what mode and access control list give the user, within the share's
//! bounds. Not here: the access that an operation needs, which it looks for in the granted mask.

use super::error::status;
use super::walk::At;
use crate::host::{Host, ObjectOf};
use crate::security::{Grounds, maximal_access};
use crate::wire::{AccessMask, Status};
use weir_core::access::{allows, asks_acl};
use weir_core::{Access, Acl, AclKind, Attr, Credentials, FileKind, FsResult, Store};
use weir_state::Sharing;

/// Rights that do not exist: asking for one is refused (MS-FSA §2.1.5.1).
const RESERVED: AccessMask = AccessMask::from_bits_retain(0x0ce0_fe00);

/// Changing the data of a file.
pub(super) const WRITES: AccessMask = AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA);

/// The sticky bit of a directory.
const STICKY: u32 = 0o1000;

/// The access that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Desired {
    /// Rights that it must have.
    pub(super) rights: AccessMask,
    /// Does it ask for all that it may have?
    pub(super) maximum: bool,
}

impl Desired {
    /// Reads the mask of a request.
    ///
    /// # Errors
    /// [`Status::ACCESS_DENIED`] for an empty mask or one with reserved rights,
    /// [`Status::PRIVILEGE_NOT_HELD`] for the right to audit, which nobody has.
    pub(super) fn of(mask: AccessMask) -> Result<Self, Status> {
        if mask.is_empty() || mask.intersects(RESERVED) {
            return Err(Status::ACCESS_DENIED);
        }
        if mask.contains(AccessMask::ACCESS_SYSTEM_SECURITY) {
            return Err(Status::PRIVILEGE_NOT_HELD);
        }
        let rights = mask.specific().difference(AccessMask::MAXIMUM_ALLOWED);
        Ok(Self { rights, maximum: mask.contains(AccessMask::MAXIMUM_ALLOWED) })
    }

    /// The access that is granted to a user who may have `most`, if the operation itself needs the
    /// rights `needed` too.
    ///
    /// # Errors
    /// [`Status::ACCESS_DENIED`].
    pub(super) fn grant(self, most: AccessMask, needed: AccessMask) -> Result<AccessMask, Status> {
        // No user is denied SYNCHRONIZE, which grants nothing.
        let most = most | AccessMask::SYNCHRONIZE;
        if !most.contains(self.rights | needed) {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(if self.maximum { most } else { self.rights })
    }
}

/// The uses of a file that an access mask means to its other opens (MS-FSA §2.1.5.1.2.2).
pub(super) fn sharing(granted: AccessMask) -> Sharing {
    let mut sharing = Sharing::empty();
    sharing.set(Sharing::READ, granted.intersects(AccessMask::READ_DATA | AccessMask::EXECUTE));
    sharing.set(Sharing::WRITE, granted.intersects(WRITES));
    sharing.set(Sharing::DELETE, granted.contains(AccessMask::DELETE));
    sharing
}

/// The access to an object that the user may have at most, through this share.
pub(super) async fn maximal<H: Host>(
    host: &H,
    object: &ObjectOf<H>,
    attr: &Attr,
    at: Option<&At<ObjectOf<H>>>,
) -> Result<AccessMask, Status> {
    let (store, cred) = (host.store(), &host.user().credentials);
    let acl = list(store, object, attr, cred).await.map_err(status)?;
    let deletable = match at {
        Some(at) => deletable(store, at, attr, cred).await.map_err(status)?,
        // Clients that ask for all access ask for this too. The top directory is never deleted
        // (`CANNOT_DELETE`), whoever has the right.
        None => {
            let wanted = Access::WRITE | Access::EXECUTE;
            allowed(store, object, attr, cred, wanted).await.map_err(status)?
        }
    };
    let each = [Access::READ, Access::WRITE, Access::EXECUTE].into_iter();
    let grounds = Grounds {
        rights: each.filter(|right| allows(attr, acl.as_ref(), cred, *right)).collect(),
        owner: cred.uid == attr.uid,
        superuser: cred.is_root(),
        directory: attr.kind == FileKind::Directory,
        deletable,
    };
    let most = maximal_access(&grounds) | implied(&grounds);
    Ok(most & host.share().maximal)
}

/// Rights that follow from others because no harm can come of them, and that programs ask for in
/// the name of "full control". To run a file is to read it. An owner may always change the group to
/// one of his own. And no child of a file can be deleted.
fn implied(grounds: &Grounds) -> AccessMask {
    let mut implied = AccessMask::empty();
    let file = !grounds.directory;
    implied.set(AccessMask::EXECUTE, file && grounds.rights.contains(Access::READ));
    implied.set(AccessMask::DELETE_CHILD, file && grounds.rights.contains(Access::WRITE));
    implied.set(AccessMask::WRITE_OWNER, grounds.owner);
    implied
}

/// May the user take the name of an object with these attributes away? The directory must be
/// writable and, where it is sticky, the user the owner of either.
async fn deletable<S: Store>(
    store: &S,
    at: &At<S::Object>,
    attr: &Attr,
    cred: &Credentials,
) -> FsResult<bool> {
    let wanted = Access::WRITE | Access::EXECUTE;
    let free = at.attr.mode & STICKY == 0 || cred.is_root();
    let free = free || cred.uid == at.attr.uid || cred.uid == attr.uid;
    Ok(free && allowed(store, &at.dir, &at.attr, cred, wanted).await?)
}

/// May the user do all of `want` with the object?
pub(super) async fn allowed<S: Store>(
    store: &S,
    object: &S::Object,
    attr: &Attr,
    cred: &Credentials,
    want: Access,
) -> FsResult<bool> {
    let acl = list(store, object, attr, cred).await?;
    Ok(allows(attr, acl.as_ref(), cred, want))
}

/// The access list of an object, where it is needed to decide for this user.
async fn list<S: Store>(
    store: &S,
    object: &S::Object,
    attr: &Attr,
    cred: &Credentials,
) -> FsResult<Option<Acl>> {
    if asks_acl(attr, cred) { Ok(store.acl(object, AclKind::Access).await?.1) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Path;
    use crate::ops::testing::{TestHost, TestServer, wire_path};
    use crate::ops::walk::{Last, Walked, walk};
    use weir_core::acl::{Entry, Who};
    use weir_core::testing::block_on;

    fn most(host: &TestHost, path: &str) -> AccessMask {
        let path = Path::parse(&wire_path(path)).unwrap();
        let Ok(Walked::Found(found)) = block_on(walk(host, &path, Last::Follow)) else {
            panic!("{path:?}")
        };
        block_on(maximal(host, &found.object, &found.attr, found.at.as_ref())).unwrap()
    }

    const ALL: AccessMask = AccessMask::FILE_ALL_ACCESS;
    const R: AccessMask = AccessMask::from_bits_retain(0x0012_0089);
    const W: AccessMask = AccessMask::from_bits_retain(0x0012_0116);
    const BASE: AccessMask = AccessMask::from_bits_retain(0x0012_0080);

    #[test]
    fn a_mask_is_read_as_the_specification_says() {
        let of = |bits| Desired::of(AccessMask::from_bits_retain(bits));
        assert_eq!(of(0), Err(Status::ACCESS_DENIED));
        for reserved in (0..32).map(|bit| 1 << bit).filter(|bit| 0x0ce0_fe00 & bit != 0) {
            assert_eq!(of(reserved | 1), Err(Status::ACCESS_DENIED), "{reserved:#x}");
        }
        assert_eq!(of(0x0100_0001), Err(Status::PRIVILEGE_NOT_HELD));
        assert_eq!(of(0x8000_0000), Ok(Desired { rights: R, maximum: false }));
        assert_eq!(of(0x1000_0000), Ok(Desired { rights: ALL, maximum: false }));
        let both = Desired { rights: AccessMask::DELETE, maximum: true };
        assert_eq!(of(0x0201_0000), Ok(both));
    }

    #[test]
    fn what_is_granted_is_what_was_asked_for_or_the_most() {
        let ask = |rights, maximum| Desired { rights, maximum };
        let none = AccessMask::empty();
        assert_eq!(ask(BASE, false).grant(R, none), Ok(BASE));
        assert_eq!(ask(BASE, true).grant(R, none), Ok(R));
        assert_eq!(ask(W, false).grant(R, none), Err(Status::ACCESS_DENIED));
        assert_eq!(ask(W, true).grant(R, none), Err(Status::ACCESS_DENIED));
        assert_eq!(ask(BASE, false).grant(R, WRITES), Err(Status::ACCESS_DENIED));
        assert_eq!(ask(BASE, false).grant(R | W, WRITES), Ok(BASE), "needed is not granted");
        let wait = AccessMask::SYNCHRONIZE;
        assert_eq!(ask(wait, false).grant(none, none), Ok(wait));
    }

    #[test]
    fn the_owner_of_a_file_in_his_directory_has_full_control() {
        let server = TestServer::new();
        server.dir("d", 0o755, 7);
        server.file("d/f", b"", 0o644, 7);
        server.dir("d/sub", 0o755, 7);
        let (ann, bob) = (server.session(7), server.session(8));
        assert_eq!((most(&ann, "d/f"), most(&ann, "d/sub")), (ALL, ALL));
        assert_eq!(most(&bob, "d/f"), R | AccessMask::EXECUTE);
        assert_eq!(most(&ann, "d"), ALL, "everybody may write at the top");
        assert_eq!(most(&bob, ""), ALL.difference(AccessMask::WRITE_DAC | AccessMask::WRITE_OWNER));
    }

    #[test]
    fn deleting_is_up_to_the_directory_and_its_sticky_bit() {
        let server = TestServer::new();
        for (dir, mode) in [("free", 0o777), ("sticky", 0o1777), ("closed", 0o755)] {
            server.dir(dir, mode, 9);
            server.file(&std::format!("{dir}/f"), b"", 0o600, 7);
        }
        let may = |uid, path| most(&server.session(uid), path).contains(AccessMask::DELETE);
        assert!(may(7, "free/f") && may(8, "free/f"));
        assert!(may(7, "sticky/f") && !may(8, "sticky/f") && may(9, "sticky/f"));
        assert!(!may(7, "closed/f") && may(9, "closed/f"));
    }

    #[test]
    fn lists_and_the_share_s_bounds_count() {
        let server = TestServer::new();
        let file = server.file("f", b"", 0o600, 7);
        let entry = |who, rights| Entry { who, rights };
        let acl = Acl::new(vec![
            entry(Who::Owner, Access::all()),
            entry(Who::User(8), Access::READ),
            entry(Who::OwningGroup, Access::empty()),
            entry(Who::Mask, Access::READ),
            entry(Who::Others, Access::empty()),
        ]);
        let acl = acl.unwrap();
        let root = Credentials::ROOT;
        block_on(server.store.set_acl(&file, AclKind::Access, Some(&acl), &root)).unwrap();
        let read = |uid| most(&server.session(uid), "f").contains(AccessMask::READ_DATA);
        assert!(read(7) && read(8) && !read(9));
        let bounded = server.session_on(7, |share| share.maximal = R);
        assert_eq!(most(&bounded, "f"), R);
    }

    #[test]
    fn what_an_open_means_to_others_follows_from_its_access() {
        assert_eq!(sharing(BASE), Sharing::empty());
        assert_eq!(sharing(AccessMask::EXECUTE), Sharing::READ);
        assert_eq!(sharing(AccessMask::APPEND_DATA), Sharing::WRITE);
        assert_eq!(sharing(ALL), Sharing::all());
    }
}
