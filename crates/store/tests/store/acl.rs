//! Access control lists: what is handed on, what follows what, and that the caches know. The tests
//! of CephFS (`tests/ceph`) run these too.

use crate::common::{Bed, Object, ROOT, block_on, everywhere, everywhere_with, options};
use weir_core::acl::{Entry, Who};
use weir_core::store::{CreateHow, MakeKind};
use weir_core::{
    Access, Acl, AclKind, Attr, Credentials, FsError, FsResult, Name, SetAttr, Store, access,
};
use weir_store::Options;

pub(crate) const OWNER: Credentials = Credentials::new(1001, 2001);
pub(crate) const FRIEND: Credentials = Credentials::new(1002, 2002);
pub(crate) const STRANGER: Credentials = Credentials::new(1003, 2003);

/// Owner all, group and others nothing, FRIEND `rights`, under `mask`.
pub(crate) fn for_friend(rights: Access, mask: Access) -> Acl {
    let entry = |who, rights| Entry { who, rights };
    let nothing = Access::empty();
    Acl::new(vec![
        entry(Who::Owner, Access::all()),
        entry(Who::User(FRIEND.uid), rights),
        entry(Who::OwningGroup, nothing),
        entry(Who::Mask, mask),
        entry(Who::Others, nothing),
    ])
    .unwrap()
}

pub(crate) fn set(bed: &Bed, object: &Object, kind: AclKind, acl: Option<&Acl>) -> FsResult<Attr> {
    block_on(bed.store.set_acl(object, kind, acl, &OWNER))
}

pub(crate) fn get(bed: &Bed, object: &Object) -> (Attr, Option<Acl>) {
    block_on(bed.store.acl(object, AclKind::Access)).unwrap()
}

fn may(bed: &Bed, object: &Object, cred: &Credentials, want: Access) -> bool {
    let (attr, acl) = get(bed, object);
    assert_eq!(attr, bed.attr(object));
    access::allows(&attr, acl.as_ref(), cred, want)
}

pub(crate) fn chmod(bed: &Bed, object: &Object, mode: u32) {
    bed.set(object, &SetAttr { mode: Some(mode), ..SetAttr::default() }, &OWNER).unwrap();
}

fn mkdir(bed: &Bed, dir: &Object, name: &str, mode: u32) -> Object {
    let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
    let name = Name::new(name.as_bytes()).unwrap();
    block_on(bed.store.make(dir, name, &MakeKind::Directory, &set, &OWNER)).unwrap().object
}

pub(crate) fn in_both_cache_modes(case: impl Fn(&Bed)) {
    for metadata_cache in [true, false] {
        everywhere_with(&Options { metadata_cache, ..options() }, |bed| {
            bed.open_to_all(&bed.root());
            case(bed);
        });
    }
}

#[test]
fn a_list_decides_and_follows_the_mode() {
    in_both_cache_modes(|bed| {
        let file = bed.create(&bed.root(), b"f", 0o640, &OWNER).unwrap();
        assert!(!bed.attr(&file).has_acl && get(bed, &file).1.is_none());
        let list = for_friend(Access::READ | Access::WRITE, Access::READ);
        let attr = set(bed, &file, AclKind::Access, Some(&list)).unwrap();
        assert_eq!((attr.mode, attr.has_acl), (0o740, true));
        assert!(may(bed, &file, &FRIEND, Access::READ) && !may(bed, &file, &FRIEND, Access::WRITE));
        assert!(!may(bed, &file, &STRANGER.with_groups(&[OWNER.gid]), Access::READ));
        chmod(bed, &file, 0o660);
        assert!(may(bed, &file, &FRIEND, Access::WRITE), "the mask is wider now");
        chmod(bed, &file, 0o600);
        assert!(!may(bed, &file, &FRIEND, Access::READ), "and now it lets nothing through");
        // The kernel and a fresh cache see the same list.
        let fresh = bed.reopen();
        let again = block_on(fresh.resolve(&bed.store.key(&file))).unwrap();
        let (attr, acl) = block_on(fresh.acl(&again, AclKind::Access)).unwrap();
        assert_eq!((attr.mode, acl), (0o600, Some(list.with_mode(0o600))));
        set(bed, &file, AclKind::Access, Some(&Acl::from_mode(0o604))).unwrap();
        assert_eq!((bed.attr(&file).mode, bed.attr(&file).has_acl), (0o604, false));
        assert!(may(bed, &file, &STRANGER, Access::READ));
        set(bed, &file, AclKind::Access, None).unwrap();
        assert_eq!(bed.attr(&file).mode, 0o604);
    });
}

#[test]
fn the_owner_alone_sets_lists_and_only_directories_have_defaults() {
    everywhere(|bed| {
        bed.open_to_all(&bed.root());
        let file = bed.create(&bed.root(), b"f", 0o666, &OWNER).unwrap();
        let list = for_friend(Access::all(), Access::all());
        for other in [FRIEND, STRANGER] {
            let refused = bed.store.set_acl(&file, AclKind::Access, Some(&list), &other);
            assert_eq!(block_on(refused), Err(FsError::NotPermitted));
        }
        assert!(block_on(bed.store.set_acl(&file, AclKind::Access, Some(&list), &ROOT)).is_ok());
        let refused = set(bed, &file, AclKind::Default, Some(&list));
        assert_eq!(refused, Err(FsError::AccessDenied));
        let link = bed.make(&bed.root(), b"l", &MakeKind::Symlink(b"f".to_vec())).unwrap();
        let refused = block_on(bed.store.set_acl(&link, AclKind::Access, Some(&list), &ROOT));
        assert_eq!(refused, Err(FsError::NotSupported));
        let pipe = bed.make(&bed.root(), b"p", &MakeKind::Fifo).unwrap();
        let kind = AclKind::Access;
        assert!(block_on(bed.store.set_acl(&pipe, kind, Some(&list), &ROOT)).unwrap().has_acl);
        assert_eq!(get(bed, &pipe).1, Some(list));
    });
}

#[test]
fn what_is_made_begins_with_its_directory_s_default_list() {
    in_both_cache_modes(|bed| {
        let dir = mkdir(bed, &bed.root(), "d", 0o755);
        let list = for_friend(Access::all(), Access::all());
        set(bed, &dir, AclKind::Default, Some(&list)).unwrap();
        assert!(!bed.attr(&dir).has_acl, "a default list decides nothing itself");
        let file = bed.create(&dir, b"f", 0o664, &OWNER).unwrap();
        assert_eq!(get(bed, &file).1, Some(list.inherited(0o664)));
        assert_eq!(bed.attr(&file).mode, 0o660, "what was asked for and given, without a umask");
        // A set-id bit is set apart by the server; the mask must not get wider by it.
        let sub = mkdir(bed, &dir, "s", 0o2750);
        assert_eq!(bed.attr(&sub).mode, 0o2750);
        assert_eq!(get(bed, &sub).1, Some(list.inherited(0o750)));
        let (_, handed_on) = block_on(bed.store.acl(&sub, AclKind::Default)).unwrap();
        assert_eq!(handed_on.as_ref(), Some(&list));
        // An exclusive create has no mode: its SETATTR brings it, and the names stay.
        let how = CreateHow::Exclusive(*b"verifier");
        let name = Name::new(b"x").unwrap();
        let file = block_on(bed.store.create(&dir, name, &how, &OWNER)).unwrap().object;
        assert!(!may(bed, &file, &FRIEND, Access::READ));
        chmod(bed, &file, 0o640);
        assert_eq!(get(bed, &file).1, Some(list.inherited(0).with_mode(0o640)));
        assert!(may(bed, &file, &FRIEND, Access::READ));
    });
}

#[test]
fn lists_decide_over_names_too() {
    everywhere(|bed| {
        bed.open_to_all(&bed.root());
        let dir = mkdir(bed, &bed.root(), "d", 0o700);
        assert_eq!(bed.create(&dir, b"f", 0o600, &FRIEND).err(), Some(FsError::AccessDenied));
        let list = for_friend(Access::all(), Access::all());
        set(bed, &dir, AclKind::Access, Some(&list)).unwrap();
        assert!(bed.create(&dir, b"f", 0o600, &FRIEND).is_ok());
        assert_eq!(bed.create(&dir, b"g", 0o600, &STRANGER).err(), Some(FsError::AccessDenied));
        // A size is data, whose right the store checks itself.
        let file = bed.create(&bed.root(), b"size", 0o600, &OWNER).unwrap();
        let size = SetAttr { size: Some(5), ..SetAttr::default() };
        assert_eq!(bed.set(&file, &size, &FRIEND), Err(FsError::AccessDenied));
        set(bed, &file, AclKind::Access, Some(&list)).unwrap();
        assert_eq!(bed.set(&file, &size, &FRIEND), Ok(()));
    });
}
