//! CREATE as clients see it, over a server in memory.

use super::create;
use crate::host::{Host, RangeLock, Share};
use crate::limits::CREATE_TRIES_MAX;
use crate::open::{Place, Renamed};
use crate::ops::close::close;
use crate::ops::testing::{Reply, TestHost, TestServer, wire_path};
use crate::security::Descriptor;
use crate::wire::{
    AccessMask, CloseFlags, CloseRequest, Command, CreateAction, CreateContexts, CreateDisposition,
    CreateOptions, CreateRequest, CreateResponse, CreateResponseFlags, FileAttributes, FileId,
    ImpersonationLevel, Lease, LeaseFlags, LeaseState, OplockLevel, RequestContext,
    ResponseContext, ShareAccess, Status, context_name,
};
use CreateDisposition::{Create, Open, OpenIf, Overwrite, OverwriteIf, Supersede};
use core::cell::Cell;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;
use weir_core::acl::{Entry, Who};
use weir_core::store::MakeKind;
use weir_core::testing::{block_on, interrupt_after};
use weir_core::{Access, Acl, AclKind, Credentials, DosAttributes, FsError, SetDetails, Store};
use weir_state::{Mode, Span};

const ALL: AccessMask = AccessMask::FILE_ALL_ACCESS;

/// A request with everything at rest, to be changed by a test.
struct Request<'a> {
    sent: CreateRequest<'a>,
    contexts: Vec<RequestContext<'a>>,
}

fn request(disposition: CreateDisposition) -> Request<'static> {
    let sent = CreateRequest {
        oplock: OplockLevel::NONE,
        impersonation: ImpersonationLevel::IMPERSONATION,
        desired_access: AccessMask::READ_DATA,
        attributes: FileAttributes::empty(),
        share_access: ShareAccess::all(),
        disposition,
        options: CreateOptions::empty(),
        name: &[],
        contexts: CreateContexts::default(),
    };
    Request { sent, contexts: Vec::new() }
}

impl<'a> Request<'a> {
    fn access(mut self, access: AccessMask) -> Self {
        self.sent.desired_access = access;
        self
    }

    fn share(mut self, share: ShareAccess) -> Self {
        self.sent.share_access = share;
        self
    }

    fn options(mut self, options: CreateOptions) -> Self {
        self.sent.options = options;
        self
    }

    fn attributes(mut self, attributes: FileAttributes) -> Self {
        self.sent.attributes = attributes;
        self
    }

    fn context(mut self, context: RequestContext<'a>) -> Self {
        self.contexts.push(context);
        self
    }

    #[track_caller]
    fn send(&self, host: &TestHost, path: &str) -> Reply {
        let (name, mut buffer) = (wire_path(path), Vec::new());
        let contexts = CreateContexts::build(&mut buffer, self.contexts.iter().copied());
        let sent = CreateRequest { name: &name, contexts, ..self.sent };
        let reply = host.call(Command::Create, |out| sent.encode(out), create);
        assert_eq!(host.server.io.get(), 0, "nothing is under way any more");
        reply
    }

    #[track_caller]
    fn status(&self, host: &TestHost, path: &str) -> Status {
        self.send(host, path).status()
    }

    #[track_caller]
    fn opens(&self, host: &TestHost, path: &str) -> CreateResponse {
        CreateResponse::decode(self.send(host, path).ok()).unwrap().0
    }
}

fn close_it(host: &TestHost, file: FileId) {
    let request = CloseRequest { flags: CloseFlags::empty(), file };
    host.call(Command::Close, |out| request.encode(out), close).ok();
}

const GENERIC_WRITE: AccessMask = AccessMask::GENERIC_WRITE;
const ATTRIBUTES: AccessMask = AccessMask::READ_ATTRIBUTES;
const DENIED: Status = Status::ACCESS_DENIED;

#[test]
fn the_disposition_decides_by_whether_the_file_exists() {
    let missing = Err(Status::OBJECT_NAME_NOT_FOUND);
    for (disposition, there, not_there) in [
        (Supersede, Ok(CreateAction::SUPERSEDED), Ok(CreateAction::CREATED)),
        (Open, Ok(CreateAction::OPENED), missing),
        (Create, Err(Status::OBJECT_NAME_COLLISION), Ok(CreateAction::CREATED)),
        (OpenIf, Ok(CreateAction::OPENED), Ok(CreateAction::CREATED)),
        (Overwrite, Ok(CreateAction::OVERWRITTEN), missing),
        (OverwriteIf, Ok(CreateAction::OVERWRITTEN), Ok(CreateAction::CREATED)),
    ] {
        let server = TestServer::new();
        server.file("File", b"data", 0o644, 7);
        let ann = server.session(7);
        for (path, expected) in [("fILE", there), ("new", not_there)] {
            let reply = request(disposition).send(&ann, path);
            match expected {
                Ok(action) => {
                    let (response, contexts) = CreateResponse::decode(reply.ok()).unwrap();
                    assert_eq!(response.action, action, "{disposition:?} {path}");
                    assert_eq!(response.oplock, OplockLevel::NONE);
                    assert!(contexts.is_empty());
                    assert_eq!(reply.outcome.unwrap().file, Some(response.file));
                    assert_eq!(ann.opened(response.file).granted, AccessMask::READ_DATA);
                }
                Err(status) => {
                    assert_eq!(reply.status(), status, "{disposition:?} {path}");
                    assert_eq!(server.find(path).map(|_| ()), None);
                }
            }
        }
        let emptied = there.is_ok_and(|action| action != CreateAction::OPENED);
        assert_eq!(server.content("File").is_empty(), emptied, "{disposition:?}");
        assert_eq!(server.opens(), [there, not_there].iter().filter(|end| end.is_ok()).count());
    }
}

#[test]
fn the_response_tells_about_the_file() {
    let server = TestServer::new();
    server.dir("Dir", 0o755, 7);
    server.file("Dir/f", &[1; 5000], 0o644, 7);
    let ann = server.session(7);
    let response = request(Open).opens(&ann, "dir/F");
    assert_eq!((response.info.end_of_file, response.info.allocation_size), (5000, 8192));
    assert_eq!(response.info.attributes, FileAttributes::ARCHIVE);
    assert_eq!(response.flags, CreateResponseFlags::empty());
    let open = ann.opened(response.file);
    assert_eq!((open.tree, open.key), (1, server.store.key(&server.object("Dir/f").0)));
    ann.with(&open, |state| {
        assert_eq!(state.path(), b"Dir/f", "as the directories have it");
        let place = state.place.as_ref().unwrap();
        assert_eq!((place.dir, &*place.name), (server.object("Dir").0, &b"f"[..]));
        assert_eq!(state.position, 0);
    });
    assert_eq!(open.mode.get(), CreateOptions::empty());
    let options = CreateOptions::WRITE_THROUGH | CreateOptions::RANDOM_ACCESS;
    let top = request(Open).options(options).opens(&ann, "");
    assert_eq!(top.info.attributes, FileAttributes::DIRECTORY);
    let top = ann.opened(top.file);
    assert!(top.is_write_through() && top.is_directory());
    ann.with(&top, |state| {
        assert!(state.place.is_none() && state.path().is_empty());
    });
    assert_eq!(top.mode.get(), CreateOptions::WRITE_THROUGH);
}

/// The answers that smbtorture's `smb2.create.gentest` expects of Windows.
#[test]
fn options_and_attributes_that_are_none_are_refused() {
    let server = TestServer::new();
    server.file("f", b"", 0o644, 7);
    let ann = server.session(7);
    let all = |count: u32, status_of: &dyn Fn(u32) -> Status| {
        let bits = (0..count).map(|bit| 1 << bit);
        let mut masks = std::collections::BTreeMap::new();
        bits.for_each(|bit| *masks.entry(status_of(bit).0).or_insert(0_u32) |= bit);
        masks
    };
    let options = all(32, &|bit| {
        request(OpenIf).options(CreateOptions::from_bits_retain(bit)).status(&ann, "f")
    });
    assert_eq!(options[&Status::SUCCESS.0], 0x00ef_cf7e);
    assert_eq!(options[&Status::NOT_A_DIRECTORY.0], 0x0000_0001);
    assert_eq!(options[&Status::NOT_SUPPORTED.0], 0x0010_2080);
    // Without the right to delete, to delete on close is one of them.
    assert_eq!(options[&Status::INVALID_PARAMETER.0], 0xff00_1000);
    let attributes = all(32, &|bit| {
        request(OpenIf).attributes(FileAttributes::from_bits_retain(bit)).status(&ann, "f")
    });
    assert_eq!(attributes[&Status::INVALID_PARAMETER.0], 0xffff_8048);
    assert_eq!(attributes[&Status::SUCCESS.0], 0x0000_7fb7);
    let access =
        all(32, &|bit| request(OpenIf).access(AccessMask::from_bits_retain(bit)).status(&ann, "f"));
    assert_eq!(access[&DENIED.0] | access[&Status::PRIVILEGE_NOT_HELD.0], 0x0de0_fe00);
    assert_eq!(request(OpenIf).access(AccessMask::empty()).status(&ann, "f"), DENIED);
}

#[test]
fn contradictions_are_refused() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    let ann = server.session(7);
    let invalid = |request: Request<'_>| {
        assert_eq!(request.status(&ann, "f"), Status::INVALID_PARAMETER);
    };
    let (directory, file) = (CreateOptions::DIRECTORY_FILE, CreateOptions::NON_DIRECTORY_FILE);
    invalid(request(Open).options(directory | file));
    for disposition in [Supersede, Overwrite, OverwriteIf] {
        invalid(request(disposition).options(directory));
    }
    let on_close = CreateOptions::DELETE_ON_CLOSE;
    invalid(request(Open).options(on_close).access(AccessMask::MAXIMUM_ALLOWED));
    invalid(request(Open).share(ShareAccess::from_bits_retain(8)));
    let mut levels = request(Open);
    levels.sent.impersonation = ImpersonationLevel(4);
    assert_eq!(levels.status(&ann, "f"), Status::BAD_IMPERSONATION_LEVEL);
    levels.sent.impersonation = ImpersonationLevel::ANONYMOUS;
    assert_eq!(levels.status(&ann, "f"), Status::SUCCESS);
    let reply = ann.call(Command::Create, |out| out.extend_from_slice(&[57, 0]), create);
    assert_eq!(reply.status(), Status::INVALID_PARAMETER);
    assert_eq!(server.content("f"), b"data");
}

#[test]
fn names_that_no_file_has_are_refused() {
    let ann = TestServer::new().session(7);
    for (name, status) in [
        ("/f", Status::INVALID_PARAMETER),
        ("a/../f", Status::OBJECT_PATH_SYNTAX_BAD),
        ("f:stream", Status::OBJECT_NAME_INVALID),
        ("f::$DATA", Status::OBJECT_NAME_INVALID),
        ("f*", Status::OBJECT_NAME_INVALID),
        ("<", Status::OBJECT_NAME_INVALID),
        ("a//f", Status::OBJECT_NAME_INVALID),
        ("f\0", Status::OBJECT_NAME_INVALID),
        ("none/f", Status::OBJECT_PATH_NOT_FOUND),
    ] {
        assert_eq!(request(OpenIf).status(&ann, name), status, "{name:?}");
    }
    let long = "n".repeat(256);
    assert_eq!(request(OpenIf).status(&ann, &long), Status::OBJECT_NAME_INVALID);
}

#[test]
fn files_and_directories_are_told_apart() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    server.dir("d", 0o755, 7);
    let ann = server.session(7);
    let (directory, file) = (CreateOptions::DIRECTORY_FILE, CreateOptions::NON_DIRECTORY_FILE);
    let status =
        |disposition, options, path| request(disposition).options(options).status(&ann, path);
    assert_eq!(status(Open, directory, "f"), Status::NOT_A_DIRECTORY);
    assert_eq!(status(Open, CreateOptions::empty(), "f/"), Status::NOT_A_DIRECTORY);
    assert_eq!(status(Open, file, "f/"), Status::OBJECT_NAME_INVALID);
    assert_eq!(status(Open, file, "d"), Status::FILE_IS_A_DIRECTORY);
    assert_eq!(status(Open, file, ""), Status::FILE_IS_A_DIRECTORY);
    assert_eq!(status(OverwriteIf, file, "d"), Status::FILE_IS_A_DIRECTORY);
    assert_eq!(status(Supersede, CreateOptions::empty(), "d"), Status::OBJECT_NAME_COLLISION);
    assert_eq!(status(Create, directory, "f"), Status::OBJECT_NAME_COLLISION);
    assert_eq!(status(Create, directory, "d"), Status::OBJECT_NAME_COLLISION);
    assert_eq!(status(Create, directory, ""), Status::OBJECT_NAME_COLLISION);
    for options in [directory, CreateOptions::empty()] {
        assert_eq!(status(OpenIf, options, "d"), Status::SUCCESS);
        assert_eq!(status(Open, options, "D/"), Status::SUCCESS);
    }
    assert_eq!(status(OpenIf, CreateOptions::empty(), "new/"), Status::OBJECT_NAME_INVALID);
    assert!(server.find("new").is_none());
    assert_eq!(status(OpenIf, directory, "new/"), Status::SUCCESS);
    assert_eq!(server.object("new").1.mode, 0o755);
}

#[test]
fn a_file_that_is_renamed_while_it_is_opened_is_open_by_its_own_name_or_not_at_all() {
    for (operations, disposition) in (0..10).flat_map(|at| [(at, Open), (at, OpenIf)]) {
        let server = TestServer::new();
        server.file("f", b"data", 0o644, 7);
        let (ann, bob) = (server.session(7), server.session(7));
        let id = bob.open("f", AccessMask::DELETE);
        interrupt_after(operations, move || {
            let open = bob.opened(id);
            let name = |name: &[u8]| Place { dir: bob.server.store.root(), name: name.into() };
            bob.server.rename("f", "g");
            let (from, to) = (name(b"f"), name(b"g"));
            block_on(bob.apply_rename(&open, Renamed { from: &from, to: &to, path: b"g" }));
        });
        let reply = request(disposition).send(&ann, "f");
        interrupt_after(0, || ());
        for id in ann.open_ids() {
            let open = ann.opened(id);
            let path = ann.with(&open, |state| String::from_utf8(state.path().to_vec()).unwrap());
            let found = server.store.key(&server.object(&path).0);
            assert!(found == open.key, "{path} {operations}");
        }
        let missing = reply.status() == Status::OBJECT_NAME_NOT_FOUND && disposition == Open;
        assert!(reply.status() == Status::SUCCESS || missing, "{:?}", reply.status());
        let opens = 1 + ann.open_ids().len();
        assert_eq!(server.opens(), opens);
    }
}

#[test]
fn links_and_special_files_are_opened_only_as_what_they_are() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    server.symlink("link", "f");
    server.symlink("dangling", "made");
    server.symlink("out", "/f");
    server.make("fifo", &MakeKind::Fifo, 0o666, 7);
    let ann = server.session(7);
    let itself = CreateOptions::OPEN_REPARSE_POINT;
    let response = request(Open).opens(&ann, "link");
    assert_eq!((response.info.end_of_file, response.flags.bits()), (4, 0));
    let target = ann.opened(response.file);
    ann.with(&target, |state| assert_eq!(state.path(), b"f"));
    let response = request(Open).options(itself).opens(&ann, "link");
    assert_eq!(response.info.attributes, FileAttributes::REPARSE_POINT);
    assert_eq!(response.flags, CreateResponseFlags::REPARSE_POINT);
    let tag = Status::IO_REPARSE_TAG_NOT_HANDLED;
    assert_eq!(request(OverwriteIf).options(itself).status(&ann, "link"), tag);
    assert_eq!(request(Create).status(&ann, "link"), Status::OBJECT_NAME_COLLISION);
    assert_eq!(request(Create).status(&ann, "dangling"), Status::OBJECT_NAME_COLLISION);
    assert_eq!(request(Open).status(&ann, "dangling"), Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(request(OpenIf).opens(&ann, "dangling").action, CreateAction::CREATED);
    assert!(server.find("made").is_some());
    assert_eq!(request(OpenIf).status(&ann, "out"), Status::OBJECT_NAME_NOT_FOUND);
    assert_eq!(request(Open).status(&ann, "fifo"), tag);
    request(Open).options(itself).opens(&ann, "fifo");
}

#[test]
fn mode_and_list_decide_and_nothing_is_made_in_others_directories() {
    let server = TestServer::new();
    server.file("f", b"data", 0o640, 7);
    server.dir("d", 0o755, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    request(Open).access(ALL).opens(&ann, "f");
    assert_eq!(request(Open).status(&bob, "f"), DENIED);
    request(Open).access(ATTRIBUTES).opens(&bob, "f");
    assert_eq!(request(OverwriteIf).access(ATTRIBUTES).status(&bob, "f"), DENIED);
    let most = request(Open).access(AccessMask::MAXIMUM_ALLOWED).opens(&bob, "f");
    // The directory is everybody's.
    assert_eq!(ann.server.content("f"), b"data");
    assert_eq!(bob.opened(most.file).granted.bits(), 0x0013_0080);
    for options in [CreateOptions::empty(), CreateOptions::DIRECTORY_FILE] {
        assert_eq!(request(Create).options(options).status(&bob, "d/new"), DENIED);
    }
    assert!(server.find("d/new").is_none());
    let made = request(Create).access(AccessMask::MAXIMUM_ALLOWED).opens(&ann, "d/new");
    assert_eq!(ann.opened(made.file).granted, ALL);
}

#[test]
fn the_share_bounds_what_anybody_may() {
    let read = |share: &mut Share| share.maximal = AccessMask::from_bits_retain(0x0012_00a9);
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let ann = server.session_on(7, read);
    request(Open).access(AccessMask::GENERIC_READ).opens(&ann, "f");
    assert_eq!(request(Open).access(GENERIC_WRITE).status(&ann, "f"), DENIED);
    assert_eq!(request(OverwriteIf).status(&ann, "f"), DENIED);
    for options in [CreateOptions::empty(), CreateOptions::DIRECTORY_FILE] {
        assert_eq!(request(Create).options(options).status(&ann, "new"), DENIED);
    }
    let most = request(Open).access(AccessMask::MAXIMUM_ALLOWED).opens(&ann, "f");
    assert_eq!(ann.opened(most.file).granted.bits(), 0x0012_00a9);
    assert!(server.find("new").is_none() && server.content("f") == b"data");
}

#[test]
fn new_objects_belong_to_the_user_and_keep_attributes() {
    let server = TestServer::new();
    let ann = server.session(7);
    let made = |path, options, attributes| {
        let request = request(Create).options(options).attributes(attributes);
        let shown = request.access(GENERIC_WRITE).opens(&ann, path).info.attributes;
        (shown, server.object(path).1)
    };
    let (file, directory) = (CreateOptions::empty(), CreateOptions::DIRECTORY_FILE);
    let (archive, dir) = (FileAttributes::ARCHIVE, FileAttributes::DIRECTORY);
    let (hidden, read_only) = (FileAttributes::HIDDEN, FileAttributes::READONLY);
    let (shown, attr) = made("a", file, FileAttributes::NORMAL);
    assert_eq!((shown, attr.mode, attr.uid, attr.gid), (archive, 0o644, 7, 7));
    let asked = hidden | read_only | FileAttributes::TEMPORARY | FileAttributes::SPARSE_FILE;
    assert_eq!(made("b", file, asked).0, archive | hidden | read_only);
    assert_eq!(made("c", file, FileAttributes::DIRECTORY).0, archive, "not by attribute");
    let (shown, attr) = made("d", directory, hidden);
    assert_eq!((shown, attr.mode, attr.uid), (dir | hidden, 0o755, 7));
    assert_eq!(made("e", directory, FileAttributes::empty()).0, dir);
    assert_eq!(request(Create).attributes(FileAttributes::ENCRYPTED).status(&ann, "x"), DENIED);
    assert!(server.find("x").is_none());
}

#[test]
fn a_default_list_takes_the_place_of_the_umask() {
    let server = TestServer::new();
    let dir = server.dir("team", 0o777, 7);
    let entry = |who, rights| Entry { who, rights };
    let (all, none) = (Access::all(), Access::empty());
    let acl = Acl::new(vec![
        entry(Who::Owner, all),
        entry(Who::OwningGroup, all),
        entry(Who::User(8), all),
        entry(Who::Mask, all),
        entry(Who::Others, none),
    ]);
    let (acl, root) = (acl.unwrap(), Credentials::ROOT);
    block_on(server.store.set_acl(&dir, AclKind::Default, Some(&acl), &root)).unwrap();
    let (ann, bob) = (server.session(7), server.session(8));
    request(Create).opens(&ann, "team/f");
    request(Create).options(CreateOptions::DIRECTORY_FILE).opens(&ann, "team/d");
    assert_eq!(server.object("team/f").1.mode, 0o660);
    assert_eq!(server.object("team/d").1.mode, 0o770);
    request(Open).access(GENERIC_WRITE).opens(&bob, "team/f");
}

fn set_dos(server: &TestServer, path: &str, dos: DosAttributes) {
    let set = SetDetails { dos: Some(dos), ..SetDetails::default() };
    block_on(server.store.set_details(&server.object(path).0, &set, &Credentials::ROOT)).unwrap();
}

#[test]
fn a_file_is_emptied_only_by_who_knows_that_it_is_hidden_or_the_system_s() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    set_dos(&server, "f", DosAttributes::HIDDEN | DosAttributes::SYSTEM | DosAttributes::SPARSE);
    let ann = server.session(7);
    let (hidden, system) = (FileAttributes::HIDDEN, FileAttributes::SYSTEM);
    for attributes in [FileAttributes::empty(), hidden, system] {
        for disposition in [Supersede, Overwrite, OverwriteIf] {
            let request = request(disposition).attributes(attributes);
            assert_eq!(request.status(&ann, "f"), DENIED);
        }
    }
    assert_eq!(server.content("f"), b"data");
    request(OpenIf).opens(&ann, "f");
    let (both, archive) = (hidden | system, FileAttributes::ARCHIVE);
    let sparse = FileAttributes::SPARSE_FILE;
    let response = request(Overwrite).attributes(both).opens(&ann, "f");
    assert_eq!(response.info.attributes, both | archive | sparse);
    assert_eq!((response.info.end_of_file, server.content("f").len()), (0, 0));
    let response = request(Supersede).attributes(both).opens(&ann, "f");
    assert_eq!(response.info.attributes, both | archive);
}

#[test]
fn a_read_only_file_is_not_written_and_not_deleted_on_close() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    set_dos(&server, "f", DosAttributes::READONLY);
    let ann = server.session(7);
    for access in [AccessMask::WRITE_DATA, AccessMask::APPEND_DATA, GENERIC_WRITE, ALL] {
        assert_eq!(request(Open).access(access).status(&ann, "f"), DENIED);
    }
    assert_eq!(request(Overwrite).status(&ann, "f"), DENIED);
    let most = request(Open).access(AccessMask::MAXIMUM_ALLOWED).opens(&ann, "f");
    let writes = AccessMask::WRITE_DATA | AccessMask::APPEND_DATA;
    assert_eq!(ann.opened(most.file).granted, ALL.difference(writes));
    // The answer that smbtorture's `smb2.create.delete` expects: DELETE alone is granted.
    request(Open).access(AccessMask::DELETE).opens(&ann, "f");
    let on_close = CreateOptions::DELETE_ON_CLOSE;
    let delete = |disposition| request(disposition).access(AccessMask::DELETE).options(on_close);
    assert_eq!(delete(Open).status(&ann, "f"), Status::CANNOT_DELETE);
    let read_only = delete(Create).attributes(FileAttributes::READONLY);
    assert_eq!(read_only.status(&ann, "new"), Status::CANNOT_DELETE);
    assert!(server.find("new").is_none());
    assert_eq!(delete(Open).status(&ann, ""), Status::CANNOT_DELETE, "the top stays");
    server.dir("d", 0o755, 7);
    set_dos(&server, "d", DosAttributes::READONLY);
    request(Open).access(ALL).opens(&ann, "d");
}

#[test]
fn opens_agree_about_sharing_whoever_has_them() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let (read, write) = (AccessMask::READ_DATA, AccessMask::WRITE_DATA);
    let violation = Status::SHARING_VIOLATION;
    let first = request(Open).access(read).share(ShareAccess::READ).opens(&ann, "f");
    assert_eq!(request(Open).access(write).status(&bob, "f"), violation);
    assert_eq!(request(Open).access(write).status(&ann, "f"), violation, "the same session too");
    assert_eq!(request(Open).access(AccessMask::DELETE).status(&ann, "f"), violation);
    let alone = request(Open).access(read).share(ShareAccess::WRITE);
    assert_eq!(alone.status(&bob, "f"), violation, "the first one reads");
    request(Open).access(ATTRIBUTES).share(ShareAccess::empty()).opens(&bob, "f");
    request(Open).access(AccessMask::EXECUTE).share(ShareAccess::READ).opens(&bob, "f");
    for disposition in [Supersede, Overwrite, OverwriteIf] {
        assert_eq!(request(disposition).status(&bob, "f"), violation, "emptying is writing");
    }
    assert_eq!(server.content("f"), b"data");
    assert_eq!(server.opens_on("f"), 3);
    close_it(&ann, first.file);
    assert_eq!(request(Open).access(write).status(&ann, "f"), violation, "bob denies it too");
}

#[test]
fn emptying_counts_as_writing_while_the_open_lasts() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let ann = server.session(7);
    let emptied = request(Overwrite).access(AccessMask::READ_DATA).opens(&ann, "f");
    let no_writers = request(Open).share(ShareAccess::READ);
    assert_eq!(no_writers.status(&ann, "f"), Status::SHARING_VIOLATION);
    close_it(&ann, emptied.file);
    no_writers.opens(&ann, "f");
}

#[test]
fn locks_do_not_keep_a_file_from_being_emptied() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let id = ann.open("f", AccessMask::WRITE_DATA);
    let lock = RangeLock { span: Span::new(0, 1).unwrap(), mode: Mode::Exclusive };
    block_on(ann.lock(&ann.opened(id), &[lock], false)).unwrap();
    request(OverwriteIf).access(GENERIC_WRITE).opens(&bob, "f");
    assert!(server.content("f").is_empty());
}

#[test]
fn a_file_is_deleted_on_close_and_nobody_opens_it_meanwhile() {
    let server = TestServer::new();
    server.file("f", b"", 0o666, 8);
    server.dir("d", 0o777, 8);
    let (ann, bob) = (server.session(7), server.session(8));
    let delete = |disposition| {
        let access = AccessMask::DELETE | AccessMask::READ_DATA;
        request(disposition).access(access).options(CreateOptions::DELETE_ON_CLOSE)
    };
    for (path, disposition) in [("f", Open), ("d", Open), ("new", Create)] {
        let first = delete(disposition).opens(&ann, path);
        let second = request(Open).opens(&bob, path);
        close_it(&ann, first.file);
        for disposition in [Open, OpenIf, Create] {
            let status = request(disposition).status(&bob, path);
            assert_eq!(status, Status::DELETE_PENDING, "{path} {disposition:?}");
        }
        assert!(server.find(path).is_some());
        close_it(&bob, second.file);
        assert!(server.find(path).is_none(), "{path}");
    }
    assert_eq!(server.opens(), 0);
}

#[test]
fn a_create_that_fails_does_not_delete_the_file() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let other = request(Open).opens(&bob, "f");
    ann.opens_max.set(0);
    let access = AccessMask::DELETE | AccessMask::READ_DATA;
    let delete = request(Open).access(access).options(CreateOptions::DELETE_ON_CLOSE);
    assert_eq!(delete.status(&ann, "f"), Status::INSUFFICIENT_RESOURCES);
    request(Open).opens(&bob, "f");
    close_it(&bob, other.file);
    assert_eq!(server.content("f"), b"data");
}

#[test]
fn a_session_with_too_many_opens_changes_nothing() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let ann = server.session(7);
    ann.opens_max.set(0);
    let full = Status::INSUFFICIENT_RESOURCES;
    assert_eq!(request(Overwrite).status(&ann, "f"), full);
    assert_eq!(request(Create).status(&ann, "new"), full);
    let directory = CreateOptions::DIRECTORY_FILE;
    assert_eq!(request(Create).options(directory).status(&ann, "dir"), full);
    assert_eq!((server.content("f"), server.opens()), (b"data".to_vec(), 0));
    assert!(server.find("new").is_none() && server.find("dir").is_none());
}

#[test]
fn what_fails_later_is_undone() {
    // Each operation of the store fails in turn, with an error that ends the request.
    for operations in 0.. {
        let server = TestServer::new();
        let ann = server.session(7);
        server.store.fail_after(operations, FsError::Io);
        let hidden = request(Create).attributes(FileAttributes::HIDDEN);
        let reply = hidden.context(RequestContext::MaximalAccess(None)).send(&ann, "new");
        if reply.outcome.is_ok() {
            assert!(operations > 4, "more than a few were made to fail");
            break;
        }
        assert_eq!(reply.status(), Status::UNEXPECTED_IO_ERROR, "{operations}");
        assert_eq!((server.find("new").map(|_| ()), server.opens()), (None, 0), "{operations}");
    }
    for operations in 0.. {
        let server = TestServer::new();
        server.file("f", b"data", 0o666, 7);
        let ann = server.session(7);
        server.store.fail_after(operations, FsError::Io);
        let reply = request(Overwrite).attributes(FileAttributes::HIDDEN).send(&ann, "f");
        if reply.outcome.is_ok() {
            assert_eq!(server.content("f"), b"");
            break;
        }
        assert_eq!((server.content("f"), server.opens()), (b"data".to_vec(), 0), "{operations}");
    }
}

#[test]
fn files_that_come_and_go_meanwhile_are_looked_for_again() {
    let server = TestServer::new();
    server.file("f", b"data", 0o666, 7);
    let ann = server.session(7);
    for operations in [2, 3] {
        // The name is looked up, and gone or removed when it is to be opened.
        server.store.fail_after(operations, FsError::Stale);
        request(Open).opens(&ann, "f");
    }
    // Nobody has the name, and somebody has it when it is to be made.
    server.store.fail_after(3, FsError::Exists);
    assert_eq!(request(Create).opens(&ann, "new").action, CreateAction::CREATED);
    assert_eq!(server.opens(), 3);
    const { assert!(CREATE_TRIES_MAX > 1) };
}

#[test]
fn contexts_are_answered_refused_or_passed_over() {
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let answers = |host, context| {
        let reply = request(Open).context(context).send(host, "f");
        CreateResponse::decode(reply.ok()).unwrap()
    };
    let (status, access) = (Status::SUCCESS, ALL);
    let most = vec![ResponseContext::MaximalAccess { status, access }];
    let (response, given) = answers(&ann, RequestContext::MaximalAccess(None));
    assert_eq!(given, most);
    let written = response.info.last_write_time;
    assert_eq!(answers(&ann, RequestContext::MaximalAccess(Some(written - 1))).1, most);
    let (status, access) = (Status::NONE_MAPPED, AccessMask::empty());
    let known = vec![ResponseContext::MaximalAccess { status, access }];
    assert_eq!(answers(&ann, RequestContext::MaximalAccess(Some(written))).1, known);
    let (status, access) = (Status::SUCCESS, AccessMask::from_bits_retain(0x0013_00a9));
    let less = vec![ResponseContext::MaximalAccess { status, access }];
    assert_eq!(answers(&bob, RequestContext::MaximalAccess(None)).1, less);
    let file = server.object("f").1.fileid;
    let id = vec![ResponseContext::DiskId { file, volume: 1 }];
    assert_eq!(answers(&ann, RequestContext::DiskId).1, id);
    let lease = Lease {
        key: [1; 16],
        state: LeaseState::all(),
        flags: LeaseFlags::empty(),
        version_2: None,
    };
    let data = &[0; 16][..];
    for passed_over in [
        RequestContext::Lease(lease),
        RequestContext::AllocationSize(1 << 30),
        RequestContext::Other { name: context_name::DURABLE_REQUEST, data },
        RequestContext::Other { name: context_name::DURABLE_REQUEST_V2, data },
        RequestContext::Other { name: context_name::APPLE, data },
        RequestContext::Other { name: b"FooO", data },
    ] {
        let (response, given) = answers(&ann, passed_over);
        assert_eq!((response.oplock, given), (OplockLevel::NONE, vec![]));
    }
    for (refused, status) in [
        (RequestContext::ExtendedAttributes(data), Status::EAS_NOT_SUPPORTED),
        (RequestContext::TimeWarp(10_000), Status::OBJECT_NAME_NOT_FOUND),
        (
            RequestContext::Other { name: context_name::DURABLE_RECONNECT, data },
            Status::OBJECT_NAME_NOT_FOUND,
        ),
        (RequestContext::SecurityDescriptor(data), Status::INVALID_SECURITY_DESCR),
    ] {
        assert_eq!(request(OpenIf).context(refused).status(&ann, "f"), status);
    }
    let both = request(Create)
        .context(RequestContext::MaximalAccess(None))
        .context(RequestContext::DiskId)
        .send(&ann, "new");
    let (_, given) = CreateResponse::decode(both.ok()).unwrap();
    assert_eq!((given.first(), given.len()), (most.first(), 2));
}

#[test]
fn a_file_that_its_volume_cannot_hold_is_neither_made_nor_emptied() {
    /// The quota of a `MemStore`.
    const VOLUME_BYTES: u64 = 1 << 40;
    let server = TestServer::new();
    server.file("f", b"data", 0o644, 7);
    let ann = server.session(7);
    let sized = |disposition, bytes| {
        let hidden = request(disposition).attributes(FileAttributes::HIDDEN);
        hidden.access(ALL).context(RequestContext::AllocationSize(bytes))
    };
    let before = block_on(server.store.details(&server.object("f").0)).unwrap();
    for bytes in [VOLUME_BYTES + 1, 1 << 60, u64::MAX] {
        for disposition in [Create, OpenIf, OverwriteIf, Supersede] {
            let status = sized(disposition, bytes).status(&ann, "new");
            assert_eq!(status, Status::DISK_FULL, "{disposition:?}");
            assert!(server.find("new").is_none());
        }
        for disposition in [Overwrite, OverwriteIf, Supersede] {
            let deleting = sized(disposition, bytes).options(CreateOptions::DELETE_ON_CLOSE);
            assert_eq!(deleting.status(&ann, "f"), Status::DISK_FULL, "{disposition:?}");
            assert_eq!(block_on(server.store.details(&server.object("f").0)), Ok(before));
        }
        assert_eq!(server.opens(), 0);
    }
    // A file that is only opened gets no storage, and neither does a directory.
    close_it(&ann, sized(Open, 1 << 60).opens(&ann, "f").file);
    let directory = sized(Create, 1 << 60).options(CreateOptions::DIRECTORY_FILE);
    close_it(&ann, directory.opens(&ann, "d").file);
    let made = sized(Create, VOLUME_BYTES).opens(&ann, "new");
    assert_eq!((made.info.end_of_file, made.info.allocation_size), (0, 0));
    let emptied = sized(Overwrite, VOLUME_BYTES).opens(&ann, "f");
    assert_eq!((emptied.action, emptied.info.end_of_file), (CreateAction::OVERWRITTEN, 0));
}

#[test]
fn a_descriptor_is_the_mode_of_a_new_file_if_it_can_be() {
    let server = TestServer::new();
    let ann = server.session(7);
    let encoded = |change: &dyn Fn(&mut Descriptor)| {
        let attr = server.object("").1;
        let owned = weir_core::Attr { uid: 7, gid: 7, mode: 0o640, ..attr };
        let owned = weir_core::Attr { kind: weir_core::FileKind::Regular, ..owned };
        let current = crate::security::Current { attr: &owned, acl: None, default: None };
        let mut descriptor = crate::security::view(&current, ann.identities());
        change(&mut descriptor);
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes).unwrap();
        bytes
    };
    let can_be = encoded(&|_| {});
    request(Create).context(RequestContext::SecurityDescriptor(&can_be)).opens(&ann, "f");
    assert_eq!(server.object("f").1.mode, 0o640);
    // Nobody else may open it before it has its list: access that is granted once stays.
    let private = encoded(&|descriptor| descriptor.dacl = crate::security::Dacl::List(Vec::new()));
    let mut refused = 0;
    for operations in 0..12 {
        let name = ["private", &"x".repeat(operations)].concat();
        let (bob, at, path) = (server.session(8), Rc::clone(&server), name.clone());
        let found = Rc::new(Cell::new(None));
        let tell = Rc::clone(&found);
        interrupt_after(u32::try_from(operations).unwrap(), move || {
            tell.set(at.find(&path).map(|_| request(Open).status(&bob, &path)));
        });
        let create = request(Create).context(RequestContext::SecurityDescriptor(&private));
        let made = create.opens(&ann, &name);
        assert!(found.get().is_none_or(|status| status == DENIED), "{operations}: {found:?}");
        refused += u32::from(found.get().is_some());
        close_it(&ann, made.file);
    }
    assert!(refused > 0);
    let bob = ann.identities().user_sid(8);
    let others = encoded(&|descriptor| descriptor.owner = Some(bob));
    let given_away = request(Create).context(RequestContext::SecurityDescriptor(&others));
    assert_eq!(given_away.status(&ann, "g"), DENIED);
    assert_eq!((server.find("g").map(|_| ()), server.opens()), (None, 1));
    let existing = request(OpenIf).context(RequestContext::SecurityDescriptor(&others));
    existing.opens(&ann, "f");
    assert_eq!(server.object("f").1.mode, 0o640, "it is only for what is new");
}
