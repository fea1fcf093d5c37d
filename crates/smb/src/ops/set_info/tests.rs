use super::*;
use crate::fscc::{Disposition, NtTime, SetBasic, SetInfo, Target, TimeChange};
use crate::host::{RangeLock, Volume};
use crate::ops::close::{self, finish};
use crate::ops::testing::{Reply, Running, TestHost, TestServer, wire_path};
use crate::security::{Ace, AceFlags, AceKind, Dacl, Descriptor, Sid};
use crate::wire::{
    CloseFlags, CloseRequest, Command, CreateOptions, FileAttributes, FileId, Payload,
    SecurityInformation as Parts,
};
use core::cell::RefCell;
use proptest::prelude::*;
use std::rc::Rc;
use std::string::String;
use std::vec;
use weir_core::testing::{block_on, interrupt_after};
use weir_core::{Attr, Credentials, Details, DosAttributes, FsError, SetDetails, Store, Timestamp};
use weir_state::{Mode, OpenMode, Sharing, Span};

const SIZE: AccessMask = AccessMask::WRITE_DATA;
const TIMES: AccessMask = AccessMask::WRITE_ATTRIBUTES;
const DELETE: AccessMask = AccessMask::DELETE;

fn send(
    host: &TestHost,
    file: FileId,
    (info_type, class): (InfoType, u8),
    security: Parts,
    bytes: &[u8],
) -> Reply {
    let info = Payload { bytes, at: 0 };
    let request = SetInfoRequest { info_type, class, info, security, file };
    let encode = |out: &mut Vec<u8>| request.encode(out);
    host.call(Command::SetInfo, encode, async |cx, out| set_info(cx, out).await)
}

fn raw(host: &TestHost, file: FileId, class: u8, bytes: &[u8]) -> Status {
    send(host, file, (InfoType::FILE, class), Parts::empty(), bytes).status()
}

fn set(host: &TestHost, file: FileId, info: &SetInfo<'_>) -> Status {
    let mut bytes = Vec::new();
    info.encode(&mut bytes);
    raw(host, file, info.class(), &bytes)
}

fn rename(host: &TestHost, file: FileId, to: &str, replace: bool) -> Status {
    set(host, file, &SetInfo::Rename(Target { replace, posix: false, name: &wire_path(to) }))
}

fn link(host: &TestHost, file: FileId, to: &str, replace: bool) -> Status {
    set(host, file, &SetInfo::Link(Target { replace, posix: false, name: &wire_path(to) }))
}

fn dispose(host: &TestHost, file: FileId, flags: Disposition) -> Status {
    set(host, file, &SetInfo::Disposition(flags))
}

fn details(server: &TestServer, path: &str) -> (Attr, Details) {
    block_on(server.store.details(&server.object(path).0)).unwrap()
}

fn path_of(host: &TestHost, file: FileId) -> String {
    let open = host.opened(file);
    host.with(&open, |state| {
        let path = String::from_utf8(state.path().to_vec()).unwrap();
        let place = state.place.as_ref().unwrap();
        assert!(path.as_bytes().ends_with(&place.name));
        path
    })
}

/// Begins a CLOSE.
fn start_close(host: &TestHost, file: FileId) -> Running {
    let encode = |out: &mut Vec<u8>| CloseRequest { flags: CloseFlags::empty(), file }.encode(out);
    host.start(Command::Close, encode, async |cx, out| close::close(cx, out).await)
}

/// Ends an open as CLOSE does.
fn close(host: &TestHost, file: FileId) {
    let open = host.take(file).unwrap();
    block_on(finish(host, &open));
}

type Act = fn(&TestHost, FileId, &str, bool) -> Status;

/// `d` of user 7 with the file `d/f`, and `e`.
fn tree() -> (Rc<TestServer>, TestHost) {
    let server = TestServer::new();
    server.dir("d", 0o755, 7);
    server.dir("e", 0o755, 7);
    server.file("d/f", b"0123456789", 0o644, 7);
    let ann = server.session(7);
    (server, ann)
}

#[test]
fn times_and_attributes_are_set_or_left() {
    let (server, ann) = tree();
    let file = ann.open("d/f", TIMES);
    let time = |secs: i64| NtTime::from(Timestamp { secs, nanos: 500 });
    let basic = SetBasic {
        created: TimeChange::To(time(1)),
        accessed: TimeChange::To(time(2)),
        written: TimeChange::To(time(3)),
        changed: TimeChange::To(time(4)),
        attributes: Some(FileAttributes::HIDDEN | FileAttributes::OFFLINE),
    };
    assert_eq!(set(&ann, file, &SetInfo::Basic(basic)), Status::SUCCESS);
    let now = details(&server, "d/f");
    let at = |secs| Timestamp { secs, nanos: 500 };
    assert_eq!((now.1.birth, now.0.atime, now.0.mtime), (at(1), at(2), at(3)));
    assert_ne!(now.0.ctime, at(4), "the store's own");
    assert_eq!(now.1.dos, DosAttributes::HIDDEN);
    let leave = SetBasic {
        created: TimeChange::Keep,
        accessed: TimeChange::Stop,
        written: TimeChange::Resume,
        changed: TimeChange::Keep,
        attributes: None,
    };
    assert_eq!(set(&ann, file, &SetInfo::Basic(leave)), Status::SUCCESS);
    let same = details(&server, "d/f");
    assert_eq!((same.0.atime, same.0.mtime, same.1.birth), (at(2), at(3), at(1)));
    let sparse = SetDetails { dos: Some(DosAttributes::SPARSE), ..SetDetails::default() };
    let object = server.object("d/f").0;
    block_on(server.store.set_details(&object, &sparse, &Credentials::ROOT)).unwrap();
    let normal = SetBasic { attributes: Some(FileAttributes::NORMAL), ..SetBasic::default() };
    assert_eq!(set(&ann, file, &SetInfo::Basic(normal)), Status::SUCCESS);
    assert_eq!(details(&server, "d/f").1.dos, DosAttributes::SPARSE, "it stays sparse");
}

#[test]
fn attributes_must_fit_the_object_and_the_open() {
    let (_server, ann) = tree();
    let attributes = |path: &str, attributes| {
        let file = ann.open(path, TIMES);
        let basic = SetBasic { attributes: Some(attributes), ..SetBasic::default() };
        set(&ann, file, &SetInfo::Basic(basic))
    };
    assert_eq!(attributes("d/f", FileAttributes::DIRECTORY), Status::INVALID_PARAMETER);
    assert_eq!(attributes("d/f", FileAttributes::TEMPORARY), Status::SUCCESS);
    assert_eq!(attributes("d", FileAttributes::TEMPORARY), Status::INVALID_PARAMETER);
    assert_eq!(
        attributes("d", FileAttributes::DIRECTORY | FileAttributes::HIDDEN),
        Status::SUCCESS
    );
    let other = ann.open("d/f", SIZE | DELETE);
    let basic = SetInfo::Basic(SetBasic::default());
    assert_eq!(set(&ann, other, &basic), Status::ACCESS_DENIED);
    let file = ann.open("d/f", TIMES);
    assert_eq!(raw(&ann, file, 4, &[0; 35]), Status::INFO_LENGTH_MISMATCH);
    assert_eq!(raw(&ann, file, 4, &[0xfd; 36]), Status::INVALID_PARAMETER);
}

#[test]
fn a_size_is_set_under_the_locks_of_the_bytes_that_change() {
    let (server, ann) = tree();
    let bob = server.session(7);
    let file = ann.open("d/f", SIZE);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(12)), Status::SUCCESS);
    assert_eq!(server.content("d/f"), b"0123456789\0\0");
    let other = bob.opened(bob.open("d/f", SIZE));
    let lock = |offset, length| RangeLock {
        span: Span::new(offset, length).unwrap(),
        mode: Mode::Exclusive,
    };
    block_on(bob.lock(&other, &[lock(0, 4), lock(20, 1)], false)).unwrap();
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(3)), Status::FILE_LOCK_CONFLICT);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(21)), Status::FILE_LOCK_CONFLICT);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(4)), Status::SUCCESS);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(4)), Status::SUCCESS);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(20)), Status::SUCCESS);
    assert_eq!((server.content("d/f").len(), server.io.get()), (20, 0));
}

#[test]
fn allocation_cuts_a_file_and_never_grows_it() {
    let (server, ann) = tree();
    let file = ann.open("d/f", SIZE);
    assert_eq!(set(&ann, file, &SetInfo::Allocation(1 << 30)), Status::SUCCESS);
    assert_eq!(server.content("d/f"), b"0123456789");
    assert_eq!(set(&ann, file, &SetInfo::Allocation(4)), Status::SUCCESS);
    assert_eq!(server.content("d/f"), b"0123");
}

#[test]
fn sizes_are_for_files_open_for_writing() {
    let (_server, ann) = tree();
    let (weak, dir) = (ann.open("d/f", AccessMask::APPEND_DATA), ann.open("d", SIZE));
    for info in [SetInfo::EndOfFile(1), SetInfo::Allocation(1), SetInfo::ValidDataLength(1)] {
        assert_eq!(set(&ann, weak, &info), Status::ACCESS_DENIED);
    }
    for info in [SetInfo::EndOfFile(1), SetInfo::Allocation(1)] {
        assert_eq!(set(&ann, dir, &info), Status::INVALID_PARAMETER);
    }
    let file = ann.open("d/f", SIZE);
    assert_eq!(set(&ann, file, &SetInfo::ValidDataLength(1)), Status::PRIVILEGE_NOT_HELD);
    assert_eq!(raw(&ann, file, 20, &[0xff; 8]), Status::INVALID_PARAMETER);
}

#[test]
fn deletion_is_asked_for_and_taken_back() {
    let (server, ann) = tree();
    let file = ann.open("d/f", DELETE);
    let pending = || block_on(ann.is_delete_pending(&ann.opened(file).key));
    assert_eq!(dispose(&ann, file, Disposition::DELETE), Status::SUCCESS);
    assert!(pending());
    assert_eq!(rename(&ann, file, "d/g", false), Status::ACCESS_DENIED);
    assert_eq!(link(&ann, file, "d/g", false), Status::ACCESS_DENIED);
    assert_eq!(dispose(&ann, file, Disposition::empty()), Status::SUCCESS);
    assert!(!pending());
    let weak = ann.open("d/f", SIZE | TIMES);
    assert_eq!(dispose(&ann, weak, Disposition::DELETE), Status::ACCESS_DENIED);
    let posix = Disposition::DELETE | Disposition::POSIX_SEMANTICS;
    assert_eq!(dispose(&ann, file, posix), Status::NOT_SUPPORTED);
    let on_close = Disposition::DELETE | Disposition::ON_CLOSE;
    assert_eq!(dispose(&ann, file, on_close), Status::NOT_SUPPORTED);
    let options = CreateOptions::DELETE_ON_CLOSE;
    let own = ann.open_as("d/f", DELETE, Sharing::all(), options);
    assert_eq!(dispose(&ann, own, on_close), Status::SUCCESS);
    assert!(!pending(), "not before it is closed");
    let read_only = SetDetails { dos: Some(DosAttributes::READONLY), ..SetDetails::default() };
    let object = server.object("d/f").0;
    block_on(server.store.set_details(&object, &read_only, &Credentials::ROOT)).unwrap();
    assert_eq!(dispose(&ann, file, Disposition::DELETE), Status::CANNOT_DELETE);
    let ignore = Disposition::DELETE | Disposition::IGNORE_READONLY_ATTRIBUTE;
    assert_eq!(dispose(&ann, file, ignore), Status::SUCCESS);
}

#[test]
fn only_an_empty_directory_below_the_top_is_deleted() {
    let (_server, ann) = tree();
    let delete = |path: &str| dispose(&ann, ann.open(path, DELETE), Disposition::DELETE);
    assert_eq!(delete("d"), Status::DIRECTORY_NOT_EMPTY);
    assert_eq!(delete("e"), Status::SUCCESS);
    assert_eq!(delete(""), Status::CANNOT_DELETE);
}

#[test]
fn a_rename_moves_the_name_and_the_opens_by_it() {
    let (server, ann) = tree();
    let (file, other) = (ann.open("d/f", DELETE), ann.open("d/f", SIZE));
    assert_eq!(rename(&ann, file, "E/New", false), Status::SUCCESS);
    assert!(server.find("d/f").is_none() && server.find("e/New").is_some());
    assert_eq!((path_of(&ann, file), path_of(&ann, other)), ("e/New".into(), "e/New".into()));
    assert_eq!(rename(&ann, file, "e/NEW", false), Status::SUCCESS, "in case alone");
    assert!(server.find("e/New").is_none() && server.find("e/NEW").is_some());
    assert_eq!(rename(&ann, file, "e/NEW", false), Status::SUCCESS, "to itself");
    assert_eq!(path_of(&ann, file), "e/NEW");
    server.rename("e/NEW", "e/gone");
    assert_eq!(rename(&ann, file, "e/again", false), Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(server.opens(), 2);
}

#[test]
fn a_rename_reaches_the_opens_of_all_sessions_by_that_name_alone() {
    let (server, ann) = tree();
    let bob = server.session(7);
    let link = weir_core::Name::new(b"l").unwrap();
    let (f, e) = (server.object("d/f").0, server.object("e").0);
    block_on(server.store.link(&f, &e, link, &Credentials::ROOT)).unwrap();
    let (file, other, linked) =
        (ann.open("d/f", DELETE), bob.open("d/f", DELETE), bob.open("e/l", SIZE));
    block_on(bob.set_delete_on_close(bob.opened(other).shared, true)).unwrap();
    let taken = bob.take(bob.open("d/f", SIZE)).unwrap();
    assert_eq!(rename(&ann, file, "e/new", false), Status::SUCCESS);
    assert_eq!((path_of(&bob, other), path_of(&bob, linked)), ("e/new".into(), "e/l".into()));
    // So has one that a CLOSE has taken out of its session.
    bob.with(&taken, |state| assert_eq!(state.path(), b"e/new"));
    assert_eq!(rename(&bob, other, "d/again", false), Status::SUCCESS);
    assert_eq!(path_of(&ann, file), "d/again");
    // A newer file of the old name stays; the one that is to be deleted goes, by its new name.
    server.file("d/f", b"newer", 0o644, 7);
    block_on(ann.close(taken.shared));
    close(&bob, linked);
    close(&ann, file);
    close(&bob, other);
    assert!(server.find("d/again").is_none());
    assert_eq!((server.content("d/f"), server.content("e/l").len()), (b"newer".to_vec(), 10));
    assert_eq!(server.opens(), 0);
}

#[test]
fn renames_by_another_protocol_leave_the_opens_their_old_names() {
    let (server, ann) = tree();
    let file = ann.open("d/f", DELETE);
    block_on(ann.set_delete_on_close(ann.opened(file).shared, true)).unwrap();
    server.rename("d/f", "e/f");
    assert_eq!(path_of(&ann, file), "d/f");
    server.file("d/f", b"newer", 0o644, 7);
    close(&ann, file);
    assert_eq!((server.content("d/f"), server.content("e/f").len()), (b"newer".to_vec(), 10));
}

/// Begins a rename.
fn start_rename(host: &TestHost, file: FileId, to: &str) -> Running {
    let name = wire_path(to);
    let mut bytes = Vec::new();
    let info = SetInfo::Rename(Target { replace: false, posix: false, name: &name });
    info.encode(&mut bytes);
    let (info_type, class, security) = (InfoType::FILE, info.class(), Parts::empty());
    let info = Payload { bytes: &bytes, at: 0 };
    let request = SetInfoRequest { info_type, class, info, security, file };
    let encode = |out: &mut Vec<u8>| request.encode(out);
    host.start(Command::SetInfo, encode, async |cx, out| set_info(cx, out).await)
}

/// Requests of other sessions that begin while a rename is under way.
type Others = Rc<RefCell<Vec<Running>>>;

/// Has `begin` begin requests before the store's operation after so many. They are carried out as
/// far as they go without waiting.
fn begin_meanwhile(operations: u32, begin: impl FnOnce() -> Vec<Running> + 'static) -> Others {
    let others = Others::default();
    let begun = Rc::clone(&others);
    interrupt_after(operations, move || {
        let mut requests = begin();
        requests.retain_mut(|request| request.poll().is_none());
        *begun.borrow_mut() = requests;
    });
    others
}

/// Carries out the rest of requests that waited.
fn carry_on(others: &Others) {
    interrupt_after(0, || ());
    let done = |request: &mut Running| request.poll().expect("the rename is done");
    others.borrow_mut().iter_mut().for_each(|request| drop(done(request)));
}

#[test]
fn a_file_is_deleted_by_its_last_close_also_while_it_is_renamed() {
    let (mut waited, mut renamed) = (0, 0);
    for (operations, closes) in (0..16).flat_map(|at| (0..3).map(move |closes| (at, closes))) {
        let (server, ann) = tree();
        let bob = server.session(7);
        let (file, other) = (ann.open("d/f", DELETE), bob.open("d/f", DELETE));
        block_on(ann.set_delete_on_close(ann.opened(file).shared, true)).unwrap();
        let mut rename = start_rename(&bob, other, "e/g");
        let (one, two) = (ann.clone(), bob.clone());
        let others = begin_meanwhile(operations, move || match closes {
            0 => vec![start_close(&one, file)],
            1 => vec![start_close(&one, file), start_close(&two, other)],
            _ => vec![start_close(&two, other), start_close(&one, file)],
        });
        let status = rename.poll().unwrap().status();
        waited += others.borrow().len();
        carry_on(&others);
        for (session, id) in [(&ann, file), (&bob, other)] {
            if session.find(id).is_some() {
                close(session, id);
            }
        }
        renamed += usize::from(status == Status::SUCCESS);
        assert!(server.find("d/f").is_none(), "{operations} {closes} {status:?}");
        assert!(server.find("e/g").is_none(), "{operations} {closes} {status:?}");
        assert_eq!((server.opens(), server.kept()), (0, 0));
    }
    assert!(waited > 0 && renamed > 0);
}

#[test]
fn renames_of_a_file_are_applied_in_their_order() {
    let mut waited = 0;
    for operations in 0..16 {
        let (server, ann) = tree();
        let bob = server.session(7);
        let file = ann.open("d/f", DELETE);
        let mut rename = start_rename(&ann, file, "d/g");
        let again = bob.clone();
        let others = begin_meanwhile(operations, move || {
            let path = if again.server.find("d/g").is_some() { "d/g" } else { "d/f" };
            vec![start_rename(&again, again.open(path, DELETE), "e/h")]
        });
        assert_eq!(rename.poll().unwrap().status(), Status::SUCCESS);
        waited += others.borrow().len();
        carry_on(&others);
        let expected = if bob.open_ids().is_empty() { "d/g" } else { "e/h" };
        assert!(server.find(expected).is_some(), "{operations}");
        for (session, id) in bob.open_ids().into_iter().map(|id| (&bob, id)).chain([(&ann, file)]) {
            assert_eq!(path_of(session, id), expected, "{operations}");
        }
    }
    assert!(waited > 0);
}

#[test]
fn an_open_without_room_for_the_new_path_keeps_the_old_one_and_has_the_new_name() {
    let (server, ann) = tree();
    let bob = server.session(7);
    let (file, other) = (ann.open("d/f", DELETE), bob.open("d/f", DELETE));
    block_on(bob.set_delete_on_close(bob.opened(other).shared, true)).unwrap();
    server.path_max.set(5);
    assert_eq!(rename(&ann, file, "e/longer", false), Status::SUCCESS);
    bob.with(&bob.opened(other), |state| assert_eq!(state.path(), b"d/f"));
    close(&ann, file);
    close(&bob, other);
    assert!(server.find("e/longer").is_none(), "it is deleted by its name");
}

#[test]
fn a_name_that_is_taken_is_replaced_if_the_client_says_so() {
    let (server, ann) = tree();
    server.file("d/G", b"old", 0o644, 7);
    let file = ann.open("d/f", DELETE);
    assert_eq!(rename(&ann, file, "d/g", false), Status::OBJECT_NAME_COLLISION);
    let held = ann.open("d/G", AccessMask::READ_DATA);
    assert_eq!(rename(&ann, file, "d/g", true), Status::ACCESS_DENIED, "it is open");
    let close = |id| {
        let open = ann.take(id).unwrap();
        block_on(ann.close(open.shared));
    };
    close(held);
    let dos = |path: &str, dos| {
        let set = SetDetails { dos: Some(dos), ..SetDetails::default() };
        let object = server.object(path).0;
        block_on(server.store.set_details(&object, &set, &Credentials::ROOT)).unwrap();
    };
    dos("d/G", DosAttributes::READONLY);
    assert_eq!(rename(&ann, file, "d/g", true), Status::ACCESS_DENIED, "it is read-only");
    dos("d/G", DosAttributes::empty());
    assert_eq!(rename(&ann, file, "d/g", true), Status::SUCCESS);
    assert_eq!(server.content("d/g"), b"0123456789");
    assert!(server.find("d/G").is_none() && server.find("d/f").is_none());
    assert_eq!(rename(&ann, file, "e", true), Status::ACCESS_DENIED, "a directory");
    let dir = ann.open("e", DELETE);
    assert_eq!(rename(&ann, dir, "d/g", true), Status::ACCESS_DENIED, "by a directory");
    assert_eq!(rename(&ann, dir, "d/g", false), Status::OBJECT_NAME_COLLISION);
}

#[test]
fn a_rename_in_the_manner_of_posix_may_replace_an_open_file() {
    let (server, ann) = tree();
    server.file("d/g", b"old", 0o644, 7);
    let file = ann.open("d/f", DELETE);
    let name = wire_path("d/g");
    let posix = SetInfo::Rename(Target { replace: true, posix: true, name: &name });
    let close = |id| block_on(ann.close(ann.take(id).unwrap().shared));
    let read = AccessMask::READ_DATA;
    let alone = ann.open_as("d/g", read, Sharing::READ, CreateOptions::empty());
    assert_eq!(set(&ann, file, &posix), Status::ACCESS_DENIED);
    close(alone);
    ann.open("d/g", read);
    assert_eq!(set(&ann, file, &posix), Status::SUCCESS);
    assert_eq!(server.content("d/g"), b"0123456789");
}

/// A name that differs in case takes two renames, of which the second may fail.
#[test]
fn opens_have_the_name_of_their_file_also_after_half_a_rename() {
    let mut half = 0;
    for operations in 0.. {
        let (server, ann) = tree();
        server.file("e/G", b"old", 0o644, 7);
        let bob = server.session(7);
        let (file, other) = (ann.open("d/f", DELETE), bob.open("d/f", DELETE));
        let key = ann.opened(file).key;
        server.store.fail_after(operations, FsError::Io);
        let status = rename(&ann, file, "e/g", true);
        server.store.fail_after(u32::MAX, FsError::Io);
        let path = path_of(&ann, file);
        assert_eq!(path_of(&bob, other), path, "{operations}");
        assert!(server.store.key(&server.object(&path).0) == key, "{operations}: {path}");
        if status == Status::SUCCESS {
            assert_eq!(path, "e/g");
            break;
        }
        assert_eq!(status, Status::UNEXPECTED_IO_ERROR, "{operations}");
        half += usize::from(path == "e/G");
    }
    assert!(half > 0, "the second rename was made to fail");
}

#[test]
fn a_file_that_somebody_opens_meanwhile_is_not_replaced() {
    for (operations, posix) in
        (0..12).flat_map(|operations| [(operations, false), (operations, true)])
    {
        let (server, ann) = tree();
        server.file("d/g", b"old", 0o644, 7);
        let (bob, file) = (server.session(7), ann.open("d/f", DELETE));
        let key = server.store.key(&server.object("d/g").0);
        let opened = Rc::new(core::cell::Cell::new(false));
        let (tell, at) = (Rc::clone(&opened), Rc::clone(&server));
        interrupt_after(operations, move || {
            let still_there = at.find("d/g").is_some_and(|(g, _)| at.store.key(&g) == key);
            let mode = OpenMode { access: Sharing::WRITE, share: Sharing::WRITE };
            tell.set(still_there && block_on(bob.reserve(&key, mode)).is_ok());
        });
        let name = wire_path("d/g");
        let target = SetInfo::Rename(Target { replace: true, posix, name: &name });
        let status = set(&ann, file, &target);
        let content = if opened.get() { b"old".to_vec() } else { b"0123456789".to_vec() };
        let wanted = if opened.get() { Status::ACCESS_DENIED } else { Status::SUCCESS };
        assert_eq!((server.content("d/g"), status), (content, wanted), "{operations} {posix}");
    }
}

#[test]
fn a_size_is_set_as_the_file_is_once_its_locks_were_looked_at() {
    let (server, ann) = tree();
    let (bob, at) = (server.session(7), Rc::clone(&server));
    let file = ann.open("d/f", SIZE);
    // Bob makes the file larger and locks the new bytes after Ann's request has seen its size.
    interrupt_after(1, move || {
        let id = bob.open("d/f", SIZE);
        let object = at.object("d/f").0;
        block_on(at.store.set_size(&object, 100)).unwrap();
        let lock = RangeLock { span: Span::new(50, 10).unwrap(), mode: Mode::Exclusive };
        block_on(bob.lock(&bob.opened(id), &[lock], false)).unwrap();
    });
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(5)), Status::FILE_LOCK_CONFLICT);
    assert_eq!(server.object("d/f").1.size, 100);
    // Space that is allocated never makes a file larger that somebody cuts meanwhile.
    let (server, ann) = tree();
    let (file, at) = (ann.open("d/f", SIZE), Rc::clone(&server));
    interrupt_after(2, move || {
        let object = at.object("d/f").0;
        block_on(at.store.set_size(&object, 2)).unwrap();
    });
    assert_eq!(set(&ann, file, &SetInfo::Allocation(5)), Status::SUCCESS);
    assert_eq!(server.object("d/f").1.size, 2);
}

#[test]
fn write_through_makes_names_stable() {
    let (server, ann) = tree();
    let through =
        |path| ann.open_as(path, DELETE | SIZE, Sharing::all(), CreateOptions::WRITE_THROUGH);
    let [d, e, f] = ["d", "e", "d/f"].map(|path| server.object(path).0);
    let file = through("d/f");
    assert_eq!(rename(&ann, file, "e/x", false), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [d, f, e]);
    assert_eq!(link(&ann, file, "d/l", false), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [d, f, e]);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(1)), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [f, e]);
    let other = ann.open("e/x", DELETE | SIZE);
    assert_eq!(rename(&ann, other, "e/y", false), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), []);
}

#[test]
fn another_name_of_the_same_file_makes_room_for_it() {
    let (server, ann) = tree();
    let file = ann.open("d/f", DELETE);
    assert_eq!(link(&ann, file, "e/l", false), Status::SUCCESS);
    assert_eq!(rename(&ann, file, "e/l", false), Status::OBJECT_NAME_COLLISION);
    assert_eq!(rename(&ann, file, "e/l", true), Status::SUCCESS);
    assert!(server.find("d/f").is_none());
    assert_eq!(server.object("e/l").1.nlink, 1);
}

#[test]
fn opens_of_the_directory_can_be_in_the_way_of_new_names() {
    let (_server, ann) = tree();
    let cases = [
        (DELETE | SIZE, Sharing::all(), Status::SHARING_VIOLATION),
        (SIZE, Sharing::READ, Status::SHARING_VIOLATION),
        (SIZE, Sharing::all(), Status::SUCCESS),
        (AccessMask::READ_ATTRIBUTES, Sharing::empty(), Status::SUCCESS),
    ];
    for (access, share, wanted) in cases {
        let file = ann.open("d/f", DELETE);
        let dir = ann.open_as("d", access, share, CreateOptions::empty());
        assert_eq!(rename(&ann, file, "d/other", false), wanted, "{access:?}");
        if wanted == Status::SUCCESS {
            assert_eq!(rename(&ann, file, "d/f", false), Status::SUCCESS);
        }
        for id in [file, dir] {
            block_on(ann.close(ann.take(id).unwrap().shared));
        }
    }
}

#[test]
fn a_directory_is_renamed_unless_something_below_is_open() {
    let (server, ann) = tree();
    let (dir, bob) = (ann.open("d", DELETE), server.session(7));
    server.dir("dd", 0o755, 7);
    ann.open("dd", AccessMask::READ_DATA);
    bob.open("d", AccessMask::READ_DATA);
    for session in [&ann, &bob] {
        let file = session.open("d/f", AccessMask::READ_ATTRIBUTES);
        assert_eq!(rename(&ann, dir, "x", false), Status::ACCESS_DENIED);
        close(session, file);
    }
    assert_eq!(rename(&ann, dir, "e/x\\", false), Status::SUCCESS);
    assert!(server.find("e/x/f").is_some());
    assert_eq!(rename(&ann, dir, "e/x/y", false), Status::SHARING_VIOLATION, "into itself");
}

#[test]
fn new_names_need_rights_and_a_path() {
    let (server, ann) = tree();
    let weak = ann.open("d/f", SIZE | TIMES);
    assert_eq!(rename(&ann, weak, "d/g", false), Status::ACCESS_DENIED);
    let file = ann.open("d/f", DELETE);
    for act in [rename as Act, link] {
        assert_eq!(act(&ann, file, "none/g", false), Status::OBJECT_PATH_NOT_FOUND);
        assert_eq!(act(&ann, file, "d/f/g", false), Status::OBJECT_PATH_NOT_FOUND);
        assert_eq!(act(&ann, file, "/g", false), Status::INVALID_PARAMETER);
        assert_eq!(act(&ann, file, "g*", false), Status::OBJECT_NAME_INVALID);
        assert_eq!(act(&ann, file, "g:s", false), Status::OBJECT_NAME_INVALID);
        assert_eq!(act(&ann, file, "g/", false), Status::OBJECT_NAME_INVALID);
        server.dir("closed", 0o755, 9);
        assert_eq!(act(&ann, file, "closed/g", false), Status::ACCESS_DENIED);
        server.file("closed/there", b"", 0o600, 9);
        assert_eq!(act(&ann, file, "closed/there", false), Status::ACCESS_DENIED, "not told");
        server.remove("closed/there");
        block_on(server.store.remove_dir(
            &server.store.root(),
            weir_core::Name::new(b"closed").unwrap(),
            &Credentials::ROOT,
        ))
        .unwrap();
        let read_only = server.session_on(7, |share| share.maximal = AccessMask::DELETE);
        let bounded = read_only.open("d/f", DELETE);
        assert_eq!(act(&read_only, bounded, "d/g", false), Status::ACCESS_DENIED);
    }
    let top = ann.open("", DELETE);
    assert_eq!(rename(&ann, top, "x", false), Status::INVALID_PARAMETER);
    let relative = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'a', 0];
    assert_eq!(raw(&ann, file, 10, &relative), Status::INVALID_PARAMETER);
    assert_eq!(raw(&ann, file, 10, &[0; 19]), Status::INFO_LENGTH_MISMATCH);
}

#[test]
fn a_file_gets_more_names() {
    let (server, ann) = tree();
    server.file("e/taken", b"old", 0o644, 7);
    let file = ann.open("d/f", AccessMask::READ_ATTRIBUTES);
    assert_eq!(link(&ann, file, "e/l", false), Status::SUCCESS);
    assert_eq!(server.object("e/l").1.nlink, 2);
    assert_eq!(link(&ann, file, "e/taken", false), Status::OBJECT_NAME_COLLISION);
    assert_eq!(link(&ann, file, "e/TAKEN", true), Status::SUCCESS);
    assert_eq!(server.content("e/TAKEN"), b"0123456789");
    assert_eq!(link(&ann, file, "e/L", true), Status::SUCCESS, "its own already");
    assert_eq!(server.object("d/f").1.nlink, 3);
    assert_eq!(path_of(&ann, file), "d/f");
    let dir = ann.open("d", DELETE);
    assert_eq!(link(&ann, dir, "e/dir", false), Status::FILE_IS_A_DIRECTORY);
}

#[test]
fn position_and_mode_are_the_open_s() {
    let (_server, ann) = tree();
    let file = ann.open("d/f", AccessMask::READ_DATA);
    let open = ann.opened(file);
    assert_eq!(set(&ann, file, &SetInfo::Position(9)), Status::SUCCESS);
    for mode in [1, 8, 0x10, 0x1000] {
        assert_eq!(set(&ann, file, &SetInfo::Mode(mode)), Status::INVALID_PARAMETER);
    }
    assert_eq!(set(&ann, file, &SetInfo::Mode(6)), Status::SUCCESS);
    let position = ann.with(&open, |state| state.position);
    assert_eq!((position, open.mode.get().bits()), (9, 6));
    let options = CreateOptions::NO_INTERMEDIATE_BUFFERING | CreateOptions::WRITE_THROUGH;
    let file = ann.open_as("d/f", AccessMask::READ_DATA, Sharing::all(), options);
    assert_eq!(set(&ann, file, &SetInfo::Mode(4)), Status::SUCCESS);
    assert_eq!(ann.opened(file).mode.get().bits(), 8 | 4, "what cannot be set stays");
}

#[test]
fn a_mode_of_write_through_holds_from_its_answer_to_the_next_change_of_it() {
    let (server, ann) = tree();
    let [d, e, f] = ["d", "e", "d/f"].map(|path| server.object(path).0);
    let file = ann.open("d/f", DELETE | SIZE);
    let resize = |size| assert_eq!(set(&ann, file, &SetInfo::EndOfFile(size)), Status::SUCCESS);
    let mode = |mode| set(&ann, file, &SetInfo::Mode(mode));
    resize(9);
    assert_eq!(server.store.take_stabilized(), []);
    server.store.fail_after(0, FsError::Io);
    assert_eq!(mode(2), Status::UNEXPECTED_IO_ERROR);
    assert!(!ann.opened(file).is_write_through(), "it is not acknowledged");
    assert_eq!(mode(2), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [f, d], "the name, for later writes");
    assert_eq!(mode(2 | 4), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [], "it is already");
    resize(8);
    assert_eq!(server.store.take_stabilized(), [f, d]);
    assert_eq!(rename(&ann, file, "e/x", false), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), [d, f, e]);
    assert_eq!(mode(4), Status::SUCCESS);
    resize(7);
    assert_eq!(rename(&ann, file, "e/y", false), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), []);
    // The same for opens that were made for write-through.
    let options = CreateOptions::WRITE_THROUGH;
    let file = ann.open_as("e/y", SIZE, Sharing::all(), options);
    assert_eq!(set(&ann, file, &SetInfo::Mode(0)), Status::SUCCESS);
    assert_eq!(set(&ann, file, &SetInfo::EndOfFile(6)), Status::SUCCESS);
    assert_eq!(server.store.take_stabilized(), []);
}

#[test]
fn a_descriptor_becomes_a_mode() {
    let (server, ann) = tree();
    let file = ann.open("d/f", AccessMask::WRITE_DAC);
    let domain = Sid::domain([1, 2, 3]);
    let allow = |sid, mask| Ace { kind: AceKind::Allow, flags: AceFlags::empty(), mask, sid };
    let owner = allow(domain.member(1007).unwrap(), AccessMask::FILE_ALL_ACCESS);
    let apply = |file, parts, descriptor: &Descriptor| {
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes).unwrap();
        send(&ann, file, (InfoType::SECURITY, 0), parts, &bytes).status()
    };
    let list = |entries| Descriptor { dacl: Dacl::List(entries), ..Descriptor::default() };
    let wanted = list(vec![owner, allow(Sid::EVERYONE, AccessMask::FILE_GENERIC_READ)]);
    assert_eq!(apply(file, Parts::DACL, &wanted), Status::SUCCESS);
    assert_eq!(server.object("d/f").1.mode & 0o777, 0o744);
    let closed = list(vec![owner]);
    assert_eq!(apply(file, Parts::DACL, &closed), Status::SUCCESS);
    assert_eq!(server.object("d/f").1.mode & 0o777, 0o700);
    let deny = Ace { kind: AceKind::Deny, ..allow(Sid::EVERYONE, AccessMask::WRITE_DATA) };
    assert_eq!(apply(file, Parts::DACL, &list(vec![deny, owner])), Status::ACCESS_DENIED);
    let parts = [Parts::OWNER, Parts::GROUP, Parts::SACL, Parts::BACKUP];
    for part in parts {
        assert_eq!(apply(file, part, &closed), Status::ACCESS_DENIED, "{part:?}");
    }
    let file = ann.open("d/f", AccessMask::WRITE_OWNER | AccessMask::WRITE_DAC);
    let give = Descriptor { owner: domain.member(1008), ..Descriptor::default() };
    assert_eq!(apply(file, Parts::OWNER, &give), Status::ACCESS_DENIED, "only root may");
    assert_eq!(apply(file, Parts::DACL, &give), Status::SUCCESS, "it has no such part");
    assert_eq!(server.object("d/f").1.uid, 7);
    let malformed = send(&ann, file, (InfoType::SECURITY, 0), Parts::OWNER, &[1; 30]);
    assert_eq!(malformed.status(), Status::INVALID_SECURITY_DESCR);
}

#[test]
fn what_cannot_be_set_is_refused() {
    let (_server, ann) = tree();
    let file = ann.open("d/f", AccessMask::WRITE_EA);
    assert_eq!(raw(&ann, file, 15, &[0; 64]), Status::EAS_NOT_SUPPORTED);
    let weak = ann.open("d/f", SIZE);
    assert_eq!(raw(&ann, weak, 15, &[0; 64]), Status::ACCESS_DENIED);
    for class in [5, 18, 40, 200] {
        assert_eq!(raw(&ann, file, class, &[0; 64]), Status::INVALID_INFO_CLASS);
    }
    let kind = |kind, class| send(&ann, file, (kind, class), Parts::empty(), &[0; 64]).status();
    assert_eq!(kind(InfoType::FILESYSTEM, 6), Status::NOT_SUPPORTED);
    assert_eq!(kind(InfoType::FILESYSTEM, 1), Status::INVALID_INFO_CLASS);
    assert_eq!(kind(InfoType::QUOTA, 32), Status::NOT_SUPPORTED);
    assert_eq!(kind(InfoType(7), 4), Status::INVALID_PARAMETER);
    let gone = FileId { persistent: 9, volatile: 9 };
    assert_eq!(raw(&ann, gone, 4, &[0; 64]), Status::FILE_CLOSED);
    let short =
        ann.call(Command::SetInfo, |out| out.push(33), async |cx, out| set_info(cx, out).await);
    assert_eq!(short.status(), Status::INVALID_PARAMETER);
}

proptest! {
    #[test]
    fn no_information_panics(
        class in prop_oneof![0_u8..80, any::<u8>()], kind in 0_u8..5, parts: u32,
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..120),
        dir: bool,
    ) {
        let (_server, ann) = tree();
        let file = ann.open(if dir { "d" } else { "d/f" }, AccessMask::all());
        let parts = Parts::from_bits_retain(parts);
        send(&ann, file, (InfoType(kind), class), parts, &bytes);
    }
}
