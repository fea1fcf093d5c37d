//! Sequences of requests over a volume in memory, by two users, beside changes that another
//! protocol makes and a store that fails: whatever comes, nothing is left under way and no open is
//! lost.

use super::{header, message};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::testing::block_on;
use weir_core::{Credentials, FsError, Name, SetAttr, Shared, Store as _};
use weir_smb::crypto::TRANSFORM_BYTES;
use weir_smb::host::Host as _;
use weir_smb::ops::testing::{Reply, Running, TestHost, TestServer};
use weir_smb::ops::{self, Context, Failure, Outcome, pipe};
use weir_smb::pipe::{Host, Interface, Pipe, Share, ShareKind};
use weir_smb::route::Route;
use weir_smb::wire::{
    CloseFlags, CloseRequest, CloseResponse, Command, CreateResponse, Empty, FileId, HEADER_BYTES,
    IoctlResponse, ReadResponse, SetInfoResponse, Status, WriteResponse, output,
};
use weir_state::Use;

/// Bits of a selector beside the number of a command, or one of the steps below.
const STEP: u8 = 0x1f;
/// The second session does it.
pub const OTHER: u8 = 0x20;
/// The request is related to the one before it of the same session.
pub const RELATED: u8 = 0x40;
/// The request is on a pipe.
pub const PIPE: u8 = 0x80;

/// Another protocol changes the volume: what it does, and the places of two names.
pub const ELSEWHERE: u8 = 20;
/// An operation of the store will fail: how many before it do not, and how it does.
pub const FAILURE: u8 = 21;
/// The session ends, and another one of the same user begins.
pub const END: u8 = 22;

/// Names in the top directory.
pub const NAMES: [&str; 6] = ["f", "d", "l", "p", "x", "Größe"];

/// Opens that a session may have.
const OPENS_MAX: usize = 5;

/// Bytes of a response beside its payload that the server makes room for, with all that comes in
/// front of the body.
const RESPONSE_BYTES: usize = 512;
// The length of the frame, the transform header, and the header of the response.
const FRONT_BYTES: usize = 4 + TRANSFORM_BYTES + HEADER_BYTES;

/// The most bytes of the body of a response.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A volume with some files, and two users with a session each.
pub struct Servers {
    server: Rc<TestServer>,
    clients: [Client; 2],
    waiting: Vec<(Command, usize, Running)>,
}

/// A session on the volume, and one on the pipes.
struct Client {
    host: TestHost,
    pipes: Pipes,
    /// The open of the last request on the volume, and of the last on the pipes.
    last: [Option<FileId>; 2],
}

impl Default for Servers {
    fn default() -> Self {
        let server = TestServer::new();
        let mine =
            |mode| SetAttr { mode: Some(mode), uid: Some(7), gid: Some(7), ..SetAttr::default() };
        let (store, root) = (&server.store, server.store.root());
        let name = |name: &'static str| Name::new(name.as_bytes()).expect("a name");
        let cred = Credentials::ROOT;
        let make = |dir, at: &'static str, kind: &MakeKind, mode| {
            let made = block_on(store.make(dir, name(at), kind, &mine(mode), &cred));
            made.expect("the volume is empty").object
        };
        let directory = make(&root, "d", &MakeKind::Directory, 0o777);
        make(&root, "p", &MakeKind::Directory, 0o700);
        make(&root, "l", &MakeKind::Symlink(b"d/g".to_vec()), 0o777);
        for (dir, at) in [(&root, "f"), (&directory, "g")] {
            let made =
                block_on(store.create(dir, name(at), &CreateHow::Guarded(mine(0o644)), &cred));
            let file = made.expect("the volume is empty").object;
            let data = Shared::from(b"some data".to_vec());
            block_on(store.write(&file, 0, data, Stability::Unstable)).expect("there is room");
        }
        let clients = [Client::new(&server, 7), Client::new(&server, 8)];
        Self { server, clients, waiting: Vec::new() }
    }
}

impl Client {
    fn new(server: &Rc<TestServer>, uid: u32) -> Self {
        let host = server.session_on(uid, |share| share.access_based_enumeration = uid != 7);
        host.opens_max.set(OPENS_MAX);
        host.response_max.set(BODY_BYTES_MAX);
        Self { host, pipes: Pipes::default(), last: [None; 2] }
    }
}

impl Servers {
    /// Takes the next step of a script.
    pub fn step(&mut self, selector: u8, bytes: &[u8]) {
        let who = usize::from(selector & OTHER != 0);
        match selector & STEP {
            ELSEWHERE => self.elsewhere(bytes),
            FAILURE => self.failure(bytes),
            END => self.end(who),
            number => {
                let Ok(command) = Command::of(number.into()) else { return };
                self.request(who, command, selector, bytes);
            }
        }
        self.server.parts.borrow_mut().clear();
        self.go_on();
        self.check();
    }

    fn request(&mut self, who: usize, command: Command, selector: u8, body: &[u8]) {
        let header = header(command);
        let message = message(&header, |out| out.extend_from_slice(body));
        // A connection ends by such a request, and a server carries none out that has not paid.
        let Ok(route) = Route::of(command, &header, &message) else { return };
        if ops::ends_connection(&header, &message) {
            return;
        }
        let is_pipe = usize::from(selector & PIPE != 0);
        let client = &mut self.clients[who];
        let related = client.last[is_pipe].filter(|_| selector & RELATED != 0);
        let room = usize::try_from(route.response_bytes).expect("64 bits") + RESPONSE_BYTES;
        if is_pipe == 1 {
            let message = Shared::from(message);
            let (host, response_max) = (&client.pipes, BODY_BYTES_MAX);
            let cx = Context::new(host, &header, &message, related, response_max);
            let mut out = header.to_bytes().to_vec();
            let outcome = pipe::serve(&cx, &mut out);
            client.last[1] = file_after(&outcome);
            return check_reply(command, room, &Reply { outcome, message: out });
        }
        let operation =
            async move |cx: &Context<'_, _>, out: &mut Vec<u8>| ops::serve(cx, command, out).await;
        let mut running = client.host.send(message, related, operation).expect("it has a header");
        match running.poll() {
            Some(reply) => {
                client.last[0] = file_after(&reply.outcome);
                check_reply(command, room, &reply);
            }
            None => {
                assert_eq!(command, Command::Lock, "nothing else waits");
                self.waiting.push((command, room, running));
            }
        }
    }

    /// Goes on with the requests that waited.
    fn go_on(&mut self) {
        self.waiting.retain_mut(|(command, room, running)| {
            let reply = running.poll();
            if let Some(reply) = &reply {
                check_reply(*command, *room, reply);
            }
            reply.is_none()
        });
    }

    fn check(&self) {
        assert_eq!(self.server.io.get(), 0, "data operations are under way");
        let opens = self.clients.each_ref().map(|client| client.host.open_ids().len());
        assert!(opens.iter().all(|opens| *opens <= OPENS_MAX));
        assert_eq!(self.server.opens(), opens.iter().sum(), "an open is lost");
        let used = self.server.tables.borrow().used();
        assert_eq!(used.waiters, self.waiting.len());
    }

    /// Changes the volume as another protocol does.
    fn elsewhere(&self, bytes: &[u8]) {
        let [what, one, other, ..] = bytes else { return };
        let name = |at: u8| Name::new(NAMES[usize::from(at) % NAMES.len()].as_bytes());
        let (Ok(one), Ok(other)) = (name(*one), name(*other)) else { return };
        let (store, root) = (&self.server.store, self.server.store.root());
        let (cred, set) = (Credentials::ROOT, SetAttr { mode: Some(0o666), ..SetAttr::default() });
        // A change that the volume does not allow is left out.
        let _ = match what % 6 {
            0 => block_on(store.remove(&root, one, &cred)).map(|_| ()),
            1 => block_on(store.remove_dir(&root, one, &cred)).map(|_| ()),
            2 => block_on(store.rename(&root, one, &root, other, &cred)).map(|_| ()),
            3 => block_on(store.create(&root, one, &CreateHow::Unchecked(set), &cred)).map(|_| ()),
            4 => block_on(store.make(&root, one, &MakeKind::Directory, &set, &cred)).map(|_| ()),
            _ => {
                let link = MakeKind::Symlink(other.as_bytes().to_vec());
                block_on(store.make(&root, one, &link, &set, &cred)).map(|_| ())
            }
        };
    }

    fn failure(&self, bytes: &[u8]) {
        const ERRORS: [FsError; 6] = [
            FsError::Io,
            FsError::NoSpace,
            FsError::Stale,
            FsError::NotFound,
            FsError::Busy,
            FsError::Exists,
        ];
        let [after, error, ..] = bytes else { return };
        let error = ERRORS[usize::from(*error) % ERRORS.len()];
        self.server.store.fail_after(u32::from(*after % 8), error);
    }

    /// Ends a session as the server does, with all that it holds.
    fn end(&mut self, who: usize) {
        let client = &mut self.clients[who];
        for id in client.host.open_ids() {
            let open = client.host.take(id).expect("it was there");
            let place = || client.host.with(&open, |state| state.place.clone());
            block_on(ops::end(&client.host, open.shared, &open.object, place));
        }
        client.last = [None; 2];
        client.pipes = Pipes::default();
    }

    /// Closes everything by requests. Nothing is held or waits any more.
    pub fn close(mut self) {
        for who in [0, 1] {
            for file in self.clients[who].host.open_ids() {
                let request = CloseRequest { flags: CloseFlags::empty(), file };
                let message = message(&header(Command::Close), |out| request.encode(out));
                self.step(
                    Command::Close as u8 | if who == 1 { OTHER } else { 0 },
                    &message[HEADER_BYTES..],
                );
            }
            assert_eq!(self.clients[who].host.open_ids(), [], "CLOSE closes");
        }
        assert!(self.waiting.is_empty());
        assert_eq!(self.server.tables.borrow().used(), Use::default());
    }
}

fn file_after(outcome: &Outcome) -> Option<FileId> {
    outcome.as_ref().ok().and_then(|done| done.file)
}

/// Checks that a response can be read by a client, says the same as the outcome, and has no more
/// bytes than there is room made for.
fn check_reply(command: Command, room: usize, reply: &Reply) {
    let message = &reply.message;
    let done = match &reply.outcome {
        Ok(done) => done,
        Err(Failure { status, data, .. }) => {
            assert!(*status != Status::SUCCESS && data.len() <= 64, "{status:?} {data:?}");
            return;
        }
    };
    // A copy that ends half-way tells how far it came.
    assert!(!done.status.is_error() || command == Command::Ioctl, "{done:?}");
    assert!(message.len() - HEADER_BYTES + FRONT_BYTES <= room, "{} bytes", message.len());
    match command {
        Command::Create => {
            let (response, _) = CreateResponse::decode(message).expect("our responses can be read");
            assert_eq!(done.file, Some(response.file));
        }
        Command::Close => assert!(CloseResponse::decode(message).is_ok()),
        Command::Flush | Command::Lock => assert_eq!(Empty::decode(message), Ok(Empty)),
        Command::Read => {
            let response = ReadResponse::decode(message).expect("our responses can be read");
            let length = u64::try_from(response.data.len()).expect("64 bits");
            assert!(done.moved == length || done.moved == 0, "{done:?}");
        }
        Command::Write => assert!(WriteResponse::decode(message).is_ok()),
        Command::Ioctl => assert!(IoctlResponse::decode(message).is_ok()),
        Command::QueryInfo | Command::QueryDirectory => assert!(output(message).is_ok()),
        Command::SetInfo => assert_eq!(SetInfoResponse::decode(message), Ok(SetInfoResponse)),
        other => panic!("{other:?} is no request on a file"),
    }
}

/// The pipes of a session.
#[derive(Default)]
struct Pipes {
    open: RefCell<BTreeMap<u64, Pipe>>,
}

impl pipe::Pipes for Pipes {
    fn keep(&self, interface: Interface) -> Option<FileId> {
        let mut open = self.open.borrow_mut();
        let number = open.last_key_value().map_or(0, |(last, _)| *last) + 1;
        if open.len() >= OPENS_MAX {
            return None;
        }
        open.insert(number, Pipe::new(interface));
        Some(FileId { persistent: number, volatile: number })
    }

    fn take(&self, id: FileId) -> bool {
        self.open.borrow_mut().remove(&id.volatile).is_some()
    }

    fn with<R>(&self, id: FileId, act: impl FnOnce(&mut Pipe) -> R) -> Option<R> {
        self.open.borrow_mut().get_mut(&id.volatile).map(act)
    }

    fn has_room(&self) -> bool {
        true
    }

    fn describe<R>(&self, act: impl FnOnce(&Host<'_>) -> R) -> R {
        let shares = [Share { name: "vol", comment: "", kind: ShareKind::Disk }];
        let list = || shares.to_vec();
        act(&Host { name: "WEIR", group: "GROUP", comment: "a server", shares: &list })
    }
}
