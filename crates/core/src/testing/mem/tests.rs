//! The reference store against the rules it stands for.

use super::*;
use crate::acl::{Entry, Who};
use crate::attr::{FileKind, SetTime};
use crate::details::DosAttributes;
use crate::permission::Access;
use crate::store::Stability;
use crate::testing::block_on;

const ALICE: Credentials = Credentials::new(10, 100);
const BOB: Credentials = Credentials::new(11, 101);
const ROOT_USER: Credentials = Credentials::ROOT;

fn name(bytes: &str) -> Name<'_> {
    Name::new(bytes.as_bytes()).unwrap()
}

fn with_mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

fn create(store: &MemStore, dir: MemObject, at: &str, mode: u32, cred: &Credentials) -> MemObject {
    let how = CreateHow::Guarded(with_mode(mode));
    block_on(store.create(&dir, name(at), &how, cred)).unwrap().object
}

fn mkdir(store: &MemStore, dir: MemObject, at: &str, mode: u32, cred: &Credentials) -> MemObject {
    let kind = MakeKind::Directory;
    block_on(store.make(&dir, name(at), &kind, &with_mode(mode), cred)).unwrap().object
}

fn attr(store: &MemStore, object: MemObject) -> Attr {
    block_on(store.attr(&object)).unwrap()
}

fn set(store: &MemStore, object: MemObject, set: SetAttr, cred: &Credentials) -> FsResult<Change> {
    block_on(store.set_attr(&object, &set, None, cred))
}

fn rename(
    store: &MemStore,
    from: (MemObject, &str),
    to: (MemObject, &str),
    cred: &Credentials,
) -> FsResult<(Change, Change)> {
    block_on(store.rename(&from.0, name(from.1), &to.0, name(to.1), cred))
}

#[test]
fn only_the_owner_changes_mode_and_times_and_only_root_gives_away() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o666, &ALICE);
    assert_eq!(set(&store, file, with_mode(0o600), &BOB), Err(FsError::NotPermitted));
    let to = SetAttr { mtime: SetTime::To(Timestamp::default()), ..SetAttr::default() };
    assert_eq!(set(&store, file, to, &BOB), Err(FsError::NotPermitted));
    let touch = SetAttr { mtime: SetTime::ServerNow, ..SetAttr::default() };
    assert_eq!(set(&store, file, touch, &BOB), Err(FsError::NotPermitted), "one time alone");
    let now = SetAttr { atime: SetTime::ServerNow, ..touch };
    assert!(set(&store, file, now, &BOB).is_ok(), "a writer may set the present time");
    let give = SetAttr { uid: Some(11), ..SetAttr::default() };
    assert_eq!(set(&store, file, give, &ALICE), Err(FsError::NotPermitted));
    let group = SetAttr { gid: Some(7), ..SetAttr::default() };
    assert_eq!(set(&store, file, group, &ALICE), Err(FsError::NotPermitted));
    assert!(set(&store, file, group, &ALICE.with_groups(&[7])).is_ok());
    assert!(set(&store, file, give, &ROOT_USER).is_ok());
    assert_eq!((attr(&store, file).uid, attr(&store, file).gid), (11, 7));
    assert!(set(&store, file, with_mode(0o600), &BOB).is_ok());
    assert_eq!(set(&store, file, now, &ALICE), Err(FsError::AccessDenied));
}

#[test]
fn setuid_and_setgid_go_with_owner_and_data() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o6755, &ALICE);
    assert_eq!(attr(&store, file).mode, 0o6755);
    let chown = SetAttr { gid: Some(100), ..SetAttr::default() };
    set(&store, file, chown, &ALICE).unwrap();
    assert_eq!(attr(&store, file).mode, 0o755);
    for change in ["write", "truncate"] {
        set(&store, file, with_mode(0o6755), &ALICE).unwrap();
        if change == "write" {
            let data = Shared::from(b"x".to_vec());
            block_on(store.write(&file, 0, data, Stability::Unstable)).unwrap();
        } else {
            set(&store, file, SetAttr { size: Some(0), ..SetAttr::default() }, &ALICE).unwrap();
        }
        assert_eq!(attr(&store, file).mode, 0o755, "{change}");
    }
    let locking = create(&store, store.root(), "l", 0o2644, &ALICE);
    set(&store, locking, chown, &ALICE).unwrap();
    assert_eq!(attr(&store, locking).mode, 0o2644, "setgid without x is no privilege");
}

#[test]
fn chmod_outside_the_group_drops_setgid() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o755, &ALICE);
    let group = SetAttr { gid: Some(7), ..SetAttr::default() };
    set(&store, file, group, &ROOT_USER).unwrap();
    set(&store, file, with_mode(0o2755), &ALICE).unwrap();
    assert_eq!(attr(&store, file).mode, 0o755);
    set(&store, file, with_mode(0o2755), &ROOT_USER).unwrap();
    assert_eq!(attr(&store, file).mode, 0o2755);
}

#[test]
fn setgid_directories_hand_their_group_on() {
    let store = MemStore::new();
    let dir = mkdir(&store, store.root(), "d", 0o777, &ROOT_USER);
    let shared = SetAttr { mode: Some(0o2777), gid: Some(500), ..SetAttr::default() };
    set(&store, dir, shared, &ROOT_USER).unwrap();
    let file = create(&store, dir, "f", 0o2755, &ALICE);
    assert_eq!((attr(&store, file).gid, attr(&store, file).mode), (500, 0o755));
    let sub = mkdir(&store, dir, "s", 0o755, &ALICE);
    assert_eq!((attr(&store, sub).gid, attr(&store, sub).mode), (500, 0o2755));
    let plain = create(&store, store.root(), "p", 0o644, &ALICE);
    assert_eq!(attr(&store, plain).gid, 100);
}

#[test]
fn a_creation_that_asks_for_too_much_makes_nothing() {
    let store = MemStore::new();
    let how = CreateHow::Guarded(SetAttr { uid: Some(0), ..SetAttr::default() });
    let root = store.root();
    let before = attr(&store, root);
    let made = block_on(store.create(&root, name("f"), &how, &ALICE));
    assert_eq!(made.unwrap_err(), FsError::NotPermitted);
    assert_eq!(attr(&store, root), before);
    assert_eq!(block_on(store.lookup(&root, name("f"))).unwrap_err(), FsError::NotFound);
}

#[test]
fn sticky_directories_protect_names() {
    let store = MemStore::new();
    let tmp = mkdir(&store, store.root(), "tmp", 0o1777, &ROOT_USER);
    create(&store, tmp, "a", 0o666, &ALICE);
    create(&store, tmp, "b", 0o666, &BOB);
    assert_eq!(block_on(store.remove(&tmp, name("a"), &BOB)), Err(FsError::NotPermitted));
    assert_eq!(rename(&store, (tmp, "a"), (tmp, "c"), &BOB), Err(FsError::NotPermitted));
    assert_eq!(rename(&store, (tmp, "b"), (tmp, "a"), &BOB), Err(FsError::NotPermitted));
    assert!(rename(&store, (tmp, "b"), (tmp, "c"), &BOB).is_ok());
    assert!(block_on(store.remove(&tmp, name("a"), &ALICE)).is_ok());
}

#[test]
fn the_directory_mode_decides_over_names() {
    let store = MemStore::new();
    let dir = mkdir(&store, store.root(), "d", 0o755, &ALICE);
    create(&store, dir, "f", 0o666, &ALICE);
    let how = CreateHow::Guarded(SetAttr::default());
    let made = |at| block_on(store.create(&dir, name(at), &how, &BOB)).unwrap_err();
    assert_eq!((made("g"), made("f")), (FsError::AccessDenied, FsError::Exists));
    assert_eq!(block_on(store.remove(&dir, name("f"), &BOB)), Err(FsError::AccessDenied));
    assert_eq!(block_on(store.remove(&dir, name("g"), &BOB)), Err(FsError::NotFound));
    set(&store, dir, with_mode(0o700), &ALICE).unwrap();
    assert_eq!(block_on(store.remove(&dir, name("g"), &BOB)), Err(FsError::AccessDenied));
}

#[test]
fn link_counts_follow_names() {
    let store = MemStore::new();
    let root = store.root();
    let file = create(&store, root, "a", 0o644, &ALICE);
    let dir = mkdir(&store, root, "d", 0o755, &ALICE);
    assert_eq!((attr(&store, root).nlink, attr(&store, dir).nlink), (3, 2));
    let (linked, _) = block_on(store.link(&file, &dir, name("b"), &ALICE)).unwrap();
    assert_eq!(linked.nlink, 2);
    let again = block_on(store.link(&file, &dir, name("b"), &ALICE));
    assert_eq!(again.unwrap_err(), FsError::Exists);
    let directory = block_on(store.link(&dir, &root, name("e"), &ALICE));
    assert_eq!(directory.unwrap_err(), FsError::IsDirectory);
    assert_eq!(block_on(store.remove_dir(&root, name("d"), &ALICE)), Err(FsError::NotEmpty));
    block_on(store.remove(&root, name("a"), &ALICE)).unwrap();
    assert_eq!(attr(&store, file).nlink, 1);
    block_on(store.remove(&dir, name("b"), &ALICE)).unwrap();
    assert_eq!(block_on(store.attr(&file)), Err(FsError::Stale));
    assert_eq!(block_on(store.resolve(&store.key(&file))), Err(FsError::Stale));
    block_on(store.remove_dir(&root, name("d"), &ALICE)).unwrap();
    assert_eq!(attr(&store, root).nlink, 2);
}

#[test]
fn rename_keeps_the_tree_a_tree() {
    let store = MemStore::new();
    let root = store.root();
    let a = mkdir(&store, root, "a", 0o755, &ALICE);
    let b = mkdir(&store, a, "b", 0o755, &ALICE);
    create(&store, root, "f", 0o644, &ALICE);
    assert_eq!(rename(&store, (root, "a"), (b, "x"), &ALICE), Err(FsError::Invalid));
    assert_eq!(rename(&store, (root, "a"), (a, "x"), &ALICE), Err(FsError::Invalid));
    assert_eq!(rename(&store, (a, "b"), (root, "a"), &ALICE), Err(FsError::NotEmpty));
    assert_eq!(rename(&store, (root, "a"), (root, "f"), &ALICE), Err(FsError::NotDirectory));
    assert_eq!(rename(&store, (root, "f"), (root, "a"), &ALICE), Err(FsError::IsDirectory));
    assert_eq!(rename(&store, (root, "x"), (root, "y"), &ALICE), Err(FsError::NotFound));
    rename(&store, (a, "b"), (root, "b"), &ALICE).unwrap();
    assert_eq!((attr(&store, root).nlink, attr(&store, a).nlink), (4, 2));
    assert_eq!(block_on(store.lookup(&b, name(".."))).unwrap().0, root);
    rename(&store, (root, "b"), (root, "a"), &ALICE).unwrap();
    assert_eq!(block_on(store.attr(&a)), Err(FsError::Stale), "the empty directory is replaced");
    assert_eq!(attr(&store, root).nlink, 3);
}

#[test]
fn rename_of_a_directory_needs_the_right_to_change_its_parent_entry() {
    let store = MemStore::new();
    let root = store.root();
    let to = mkdir(&store, root, "to", 0o777, &ROOT_USER);
    mkdir(&store, root, "d", 0o755, &ALICE);
    assert_eq!(rename(&store, (root, "d"), (to, "d"), &BOB), Err(FsError::AccessDenied));
    assert!(rename(&store, (root, "d"), (root, "e"), &BOB).is_ok());
}

#[test]
fn rename_between_two_names_of_one_file_does_nothing() {
    let store = MemStore::new();
    let root = store.root();
    let file = create(&store, root, "a", 0o644, &ALICE);
    block_on(store.link(&file, &root, name("b"), &ALICE)).unwrap();
    rename(&store, (root, "a"), (root, "b"), &ALICE).unwrap();
    assert!(block_on(store.lookup(&root, name("a"))).is_ok());
    assert_eq!(attr(&store, file).nlink, 2);
}

#[test]
fn exclusive_create_answers_its_own_retransmission_only() {
    let store = MemStore::new();
    let root = store.root();
    let how = CreateHow::Exclusive([7; 8]);
    let made = |how| block_on(store.create(&root, name("f"), how, &ALICE));
    let first = made(&how).unwrap().object;
    assert_eq!(made(&how).unwrap().object, first);
    assert_eq!(made(&CreateHow::Exclusive([8; 8])).unwrap_err(), FsError::Exists);
    let times = SetAttr { mtime: SetTime::ServerNow, ..SetAttr::default() };
    set(&store, first, times, &ALICE).unwrap();
    assert_eq!(made(&how).unwrap_err(), FsError::Exists);
}

#[test]
fn unchecked_create_opens_and_truncates_only_what_the_caller_may_write() {
    let store = MemStore::new();
    let root = store.root();
    let file = create(&store, root, "f", 0o644, &ALICE);
    block_on(store.write(&file, 0, Shared::from(vec![1; 10]), Stability::FileSync)).unwrap();
    let open = CreateHow::Unchecked(with_mode(0o600));
    let made = block_on(store.create(&root, name("f"), &open, &BOB)).unwrap();
    assert_eq!((made.object, made.attr.size, made.attr.mode), (file, 10, 0o644));
    let truncate = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    let denied = block_on(store.create(&root, name("f"), &truncate, &BOB));
    assert_eq!(denied.unwrap_err(), FsError::AccessDenied);
    let made = block_on(store.create(&root, name("f"), &truncate, &ALICE)).unwrap();
    assert_eq!(made.attr.size, 0);
    mkdir(&store, root, "d", 0o755, &ALICE);
    let directory = block_on(store.create(&root, name("d"), &open, &ALICE));
    assert_eq!(directory.unwrap_err(), FsError::IsDirectory);
}

#[test]
fn the_guard_compares_the_change_time() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o644, &ALICE);
    let seen = attr(&store, file).ctime;
    let guarded = |guard| block_on(store.set_attr(&file, &with_mode(0o600), guard, &ALICE));
    let change = guarded(Some(seen)).unwrap();
    assert_eq!(change.before.unwrap().mode, 0o644);
    assert_eq!(guarded(Some(seen)), Err(FsError::NotSync));
}

#[test]
fn cookies_stay_while_names_come_and_go() {
    let store = MemStore::new();
    let root = store.root();
    for i in 0..10 {
        create(&store, root, &format!("f{i}"), 0o644, &ALICE);
    }
    let page = |cookie, max| {
        block_on(store.read_dir(&root, cookie, max, 1 << 20, Want::Attributes)).unwrap()
    };
    let first = page(0, 5);
    let names: Vec<_> = first.entries.iter().map(|entry| entry.name.to_vec()).collect();
    assert_eq!(names, [&b"."[..], b"..", b"f0", b"f1", b"f2"]);
    assert!(!first.eof && first.entries[4].object.unwrap().1.kind == FileKind::Regular);
    block_on(store.remove(&root, name("f2"), &ALICE)).unwrap();
    block_on(store.remove(&root, name("f5"), &ALICE)).unwrap();
    create(&store, root, "new", 0o644, &ALICE);
    let rest = page(first.entries[4].cookie, 100);
    let names: Vec<_> = rest.entries.iter().map(|entry| entry.name.to_vec()).collect();
    assert_eq!(names, [&b"f3"[..], b"f4", b"f6", b"f7", b"f8", b"f9", b"new"]);
    assert!(rest.eof);
    let beyond = block_on(store.read_dir(&root, 1 << 40, 5, 100, Want::Names));
    assert_eq!(beyond.unwrap_err(), FsError::BadCookie);
    assert_eq!(block_on(store.read_dir(&root, 0, 100, 5, Want::Names)).unwrap().entries.len(), 3);
}

#[test]
fn the_quota_counts_blocks_that_were_written() {
    let store = MemStore::with_quota(8192);
    let file = create(&store, store.root(), "f", 0o644, &ALICE);
    let write = |offset, len: usize| {
        let data = Shared::from(vec![1; len]);
        block_on(store.write(&file, offset, data, Stability::Unstable)).map(|done| done.count)
    };
    assert_eq!(write(1 << 30, 1), Ok(1));
    assert_eq!(write(0, 4096), Ok(4096));
    assert_eq!(write(4096, 1), Err(FsError::QuotaExceeded));
    assert_eq!(block_on(store.fs_stat()).unwrap().free_bytes, 0);
    set(&store, file, SetAttr { size: Some(0), ..SetAttr::default() }, &ALICE).unwrap();
    assert_eq!(block_on(store.fs_stat()).unwrap().free_bytes, 8192);
    assert_eq!(write(u64::MAX - 1, 4), Err(FsError::TooLarge));
    assert_eq!(write(i64::MAX as u64, 1), Err(FsError::TooLarge));
}

#[test]
fn links_and_devices_are_checked() {
    let store = MemStore::new();
    let root = store.root();
    let (alice, root_user) = (ALICE, ROOT_USER);
    let make =
        |at, kind, cred| block_on(store.make(&root, name(at), &kind, &with_mode(0o644), cred));
    let link = make("l", MakeKind::Symlink(b"to".to_vec()), &alice).unwrap().object;
    assert_eq!(block_on(store.read_link(&link)).unwrap(), b"to");
    assert_eq!(block_on(store.read_link(&root)), Err(FsError::WrongKind));
    let long = MakeKind::Symlink(vec![b'x'; 4096]);
    assert_eq!(make("m", long, &alice).unwrap_err(), FsError::NameTooLong);
    let number = crate::DeviceNumber { major: 1, minor: 3 };
    let device = MakeKind::CharDevice(number);
    assert_eq!(make("n", device.clone(), &alice).unwrap_err(), FsError::NotPermitted);
    assert_eq!(make("n", device, &root_user).unwrap().attr.rdev, number);
    let fifo = make("p", MakeKind::Fifo, &alice).unwrap().object;
    assert_eq!(block_on(store.read(&fifo, 0, 1, Vec::new())).unwrap_err(), FsError::WrongKind);
    assert_eq!(block_on(store.read(&root, 0, 1, Vec::new())).unwrap_err(), FsError::IsDirectory);
}

#[test]
fn an_ordered_failure_comes_once() {
    let store = MemStore::new();
    store.fail_after(1, FsError::Io);
    assert!(block_on(store.attr(&store.root())).is_ok());
    assert_eq!(block_on(store.attr(&store.root())), Err(FsError::Io));
    assert!(block_on(store.attr(&store.root())).is_ok());
}

#[test]
fn an_action_runs_before_the_operation_that_it_is_planned_for() {
    let store = std::rc::Rc::new(MemStore::new());
    let (other, root) = (std::rc::Rc::clone(&store), store.root());
    let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
    super::super::interrupt_after(1, move || {
        block_on(other.set_attr(&root, &set, None, &Credentials::ROOT)).unwrap();
    });
    let mode = || block_on(store.attr(&root)).unwrap().mode;
    assert_eq!([mode(), mode(), mode()], [0o777, 0o700, 0o700]);
}

fn acl(entries: &[(Who, Access)]) -> Acl {
    Acl::new(entries.iter().map(|&(who, rights)| Entry { who, rights }).collect()).unwrap()
}

/// Owner all, group and others nothing, this user what is given, under this mask.
fn for_user(uid: u32, rights: Access, mask: Access) -> Acl {
    acl(&[
        (Who::Owner, Access::all()),
        (Who::User(uid), rights),
        (Who::OwningGroup, Access::empty()),
        (Who::Mask, mask),
        (Who::Others, Access::empty()),
    ])
}

fn set_acl(
    store: &MemStore,
    object: MemObject,
    list: (AclKind, Option<&Acl>),
    cred: &Credentials,
) -> FsResult<Attr> {
    block_on(store.set_acl(&object, list.0, list.1, cred))
}

#[test]
fn a_list_and_the_mode_follow_each_other() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o2640, &ALICE);
    let list = for_user(11, Access::all(), Access::READ);
    let own = (AclKind::Access, Some(&list));
    assert_eq!(set_acl(&store, file, own, &BOB), Err(FsError::NotPermitted));
    let changed = set_acl(&store, file, own, &ALICE).unwrap();
    assert_eq!((changed.mode, changed.has_acl), (0o2740, true));
    set(&store, file, with_mode(0o620), &ALICE).unwrap();
    let (attr, now) = block_on(store.acl(&file, AclKind::Access)).unwrap();
    assert_eq!(attr.mode, 0o620);
    assert_eq!(now, Some(list.with_mode(0o620)), "chmod changed the mask, not the named user");
    let minimal = Acl::from_mode(0o604);
    let changed = set_acl(&store, file, (AclKind::Access, Some(&minimal)), &ALICE).unwrap();
    assert_eq!((changed.mode, changed.has_acl), (0o604, false), "no more than a mode");
}

#[test]
fn default_lists_are_for_directories_and_handed_on() {
    let store = MemStore::new();
    let dir = mkdir(&store, store.root(), "d", 0o777, &ALICE);
    let list = for_user(11, Access::all(), Access::all());
    let default = (AclKind::Default, Some(&list));
    let before = set_acl(&store, dir, default, &ALICE).unwrap();
    assert_eq!((before.mode, before.has_acl), (0o777, false), "it decides nothing itself");
    let file = create(&store, dir, "f", 0o666, &ALICE);
    let (attr, inherited) = block_on(store.acl(&file, AclKind::Access)).unwrap();
    assert_eq!(attr.mode, 0o660);
    assert_eq!(inherited, Some(list.inherited(0o666)));
    let sub = mkdir(&store, dir, "s", 0o755, &BOB);
    let (attr, handed_on) = block_on(store.acl(&sub, AclKind::Default)).unwrap();
    assert_eq!((attr.mode, handed_on), (0o750, Some(list.clone())));
    assert_eq!(set_acl(&store, file, default, &ALICE), Err(FsError::AccessDenied));
    let kind = MakeKind::Symlink(b"t".to_vec());
    let link = block_on(store.make(&dir, name("l"), &kind, &SetAttr::default(), &ALICE)).unwrap();
    assert!(!link.attr.has_acl);
}

fn details(store: &MemStore, object: MemObject) -> Details {
    block_on(store.details(&object)).unwrap().1
}

#[test]
fn details_are_set_by_the_owner_and_whoever_may_write_and_counted_as_changes() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o640, &ALICE);
    let new = details(&store, file);
    assert_eq!(new.dos, DosAttributes::ARCHIVE);
    let set = |dos, birth, cred: &Credentials| {
        block_on(store.set_details(&file, &SetDetails { birth, dos }, cred)).map(|found| found.1)
    };
    let hidden = Some(DosAttributes::HIDDEN);
    assert_eq!(set(hidden, None, &BOB), Err(FsError::AccessDenied));
    let changed = set(hidden, None, &ALICE).unwrap();
    assert!(changed.change > new.change);
    assert_eq!((changed.dos, changed.birth), (DosAttributes::HIDDEN, new.birth));
    let born = Timestamp { secs: -5, nanos: 7 };
    let again = set(None, Some(born), &ROOT_USER).unwrap();
    assert_eq!((again.dos, again.birth), (DosAttributes::HIDDEN, born));
    assert_eq!(set(hidden, Some(born), &ALICE), Ok(again), "nothing changes");
    let before = details(&store, store.root()).change;
    let kind = MakeKind::Symlink(b"t".to_vec());
    let root = store.root();
    let link = block_on(store.make(&root, name("l"), &kind, &SetAttr::default(), &ALICE)).unwrap();
    assert!(details(&store, root).change > before, "a name is a change");
    let refused = block_on(store.set_details(&link.object, &SetDetails::default(), &ALICE));
    assert_eq!(refused, Err(FsError::NotSupported));
    let page = block_on(store.read_dir(&root, 0, 10, 1000, Want::Details)).unwrap();
    let listed = page.entries.iter().find(|entry| &*entry.name == b"f").unwrap();
    assert_eq!(listed.details, Some(again));
}

#[test]
fn a_name_is_found_in_another_case_if_there_is_none_in_this() {
    let store = MemStore::new();
    let root = store.root();
    let found = |wanted: &str| {
        let found = block_on(store.lookup_folded(&root, name(wanted)))?;
        Ok((String::from_utf8(found.name.into_vec()).unwrap(), found.object))
    };
    let lower = create(&store, root, "straße", 0o644, &ALICE);
    assert_eq!(found("STRAßE"), Ok(("straße".to_owned(), lower)));
    assert_eq!(found("STRASSE"), Err(FsError::NotFound));
    let upper = create(&store, root, "STRAßE", 0o644, &ALICE);
    assert_eq!(found("straße").unwrap().1, lower, "exactly");
    assert_eq!(found("Straße"), Ok(("STRAßE".to_owned(), upper)), "the first by its bytes");
    assert_eq!(found(".").unwrap().1, root);
}

#[test]
fn this_object_is_removed_and_renamed_and_no_other() {
    let store = MemStore::new();
    let root = store.root();
    let (a, b) = (create(&store, root, "a", 0o600, &ALICE), create(&store, root, "b", 0o600, &BOB));
    let rename = |object: MemObject, from, to, replace| {
        let (from, to) = ((&root, name(from)), (&root, name(to)));
        block_on(store.rename_this(&object, from, to, replace, &ROOT_USER)).map(drop)
    };
    assert_eq!(rename(b, "a", "c", Replace::No), Err(FsError::NotFound));
    assert_eq!(rename(a, "a", "b", Replace::No), Err(FsError::Exists));
    assert_eq!(rename(a, "a", "a", Replace::No), Ok(()));
    assert_eq!(rename(a, "a", "A", Replace::No), Ok(()));
    assert_eq!(rename(a, "A", "b", Replace::Yes), Ok(()));
    let remove = |object: MemObject, at| {
        block_on(store.remove_this(&root, name(at), &object, &ROOT_USER)).map(drop)
    };
    assert_eq!(remove(b, "b"), Err(FsError::NotFound), "it is gone");
    assert_eq!(remove(a, "b"), Ok(()));
    let dir = mkdir(&store, root, "d", 0o700, &ALICE);
    create(&store, dir, "f", 0o600, &ALICE);
    assert_eq!(remove(dir, "d"), Err(FsError::NotEmpty));
    assert_eq!(remove(root, "."), Err(FsError::Invalid));
}

#[test]
fn a_decided_change_of_data_counts_as_a_write() {
    let store = MemStore::new();
    let file = create(&store, store.root(), "f", 0o6755, &ALICE);
    let data = || Shared::from(vec![1; 20_000]);
    let setuid = || set(&store, file, with_mode(0o6755), &ALICE).unwrap();
    let mode = |change: Change| change.after.unwrap().mode;
    block_on(store.write(&file, 0, data(), Stability::Unstable)).unwrap();
    setuid();
    assert_eq!(mode(block_on(store.zero_range(&file, 4096, 12_288)).unwrap()), 0o755);
    setuid();
    assert_eq!(mode(block_on(store.set_size(&file, 20_001)).unwrap()), 0o755);
    let ranges = |from, to, max| block_on(store.allocated_ranges(&file, from, to, max)).unwrap();
    let all = Allocated { ranges: vec![0..4096, 12_288..20_001], more: false };
    assert_eq!(ranges(0, u64::MAX, 9), all);
    assert_eq!(ranges(1, 20_000, 1), Allocated { ranges: vec![1..4096; 1], more: true });
    setuid();
    let none = block_on(store.zero_range(&file, 30_000, 40_000)).unwrap();
    assert_eq!((mode(none), none.before), (0o6755, none.after), "behind the end");
    assert_eq!(block_on(store.zero_range(&store.root(), 0, 1)), Err(FsError::IsDirectory));
}
