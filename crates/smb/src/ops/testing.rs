//! A server in memory for tests of operations: one volume and one set of tables, with as many
//! sessions as a test needs. Requests are built by a client's encoders and carried out to the end,
//! or held while they wait for a lock.
//!
//! Not here: sessions as such, signatures, and contracts, which admit everything.

use super::{Context, Failure, Outcome};
use crate::host::{Host, ObjectOf, Permit, RangeLock, Share, User, Volume};
use crate::open::{Deletes, Ending, Open, OpenState, Place};
use crate::security::{Identities, Principal, Sid};
use crate::wire::{
    AccessMask, Command, CreateOptions, FileId, HEADER_BYTES, Header, HeaderFlags, Status,
    TreeOrAsync,
};
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context as Poller, Poll, Waker};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::string::ToString;
use std::vec::Vec;
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::testing::{MemObject, MemStore, block_on};
use weir_core::{
    Attr, Credentials, Mono, Name, ObjectKey, OpClass, Origin, SetAttr, Shared, Store, Timestamp,
    VolumeId,
};
use weir_state::{
    Client, Closed, File, Grant, Io, Limits, Mode, OpenId, OpenLocked, OpenMode, Protocol, Range,
    Refused, Sharing, Span, Tables,
};

const VOLUME: VolumeId = VolumeId(1);

/// A request that waits for a lock: how the wait ended, once it has.
type Wait = Rc<Cell<Option<Result<(), Status>>>>;

/// The server that all sessions of a test share.
pub(crate) struct TestServer {
    /// The volume. Changes that other protocols make are made on it directly.
    pub(crate) store: MemStore,
    /// The state that all protocols share.
    pub(crate) tables: RefCell<Tables<Wait>>,
    deletes: RefCell<Deletes<MemObject>>,
    /// Data operations under way.
    pub(crate) io: Cell<usize>,
    /// The parts of requests that were admitted, and how they ended: `None` if they were dropped.
    pub(crate) parts: RefCell<Vec<Part>>,
    sessions: Cell<u8>,
}

/// A part of a request that was admitted, with the payload moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) class: OpClass,
    pub(crate) bytes: u32,
    pub(crate) ended: Option<(u64, bool)>,
}

impl TestServer {
    /// A server with an empty volume, whose top directory everybody may write.
    pub(crate) fn new() -> Rc<Self> {
        let mut tables = Tables::new(Limits::SERVER);
        tables.open(VOLUME);
        Rc::new(Self {
            store: MemStore::new(),
            tables: RefCell::new(tables),
            deletes: RefCell::default(),
            io: Cell::new(0),
            parts: RefCell::default(),
            sessions: Cell::new(0),
        })
    }

    /// A session of the user `uid`, whose only group has the same number.
    pub(crate) fn session(self: &Rc<Self>, uid: u32) -> TestHost {
        self.session_on(uid, |_| {})
    }

    /// A session of the user `uid`, who sees the share as `change` makes it.
    pub(crate) fn session_on(
        self: &Rc<Self>,
        uid: u32,
        change: impl FnOnce(&mut Share),
    ) -> TestHost {
        let number = self.sessions.get() + 1;
        self.sessions.set(number);
        let mut share = Share {
            volume: VOLUME,
            name: "vol".to_string(),
            maximal: AccessMask::from_bits_retain(0x001f_01ff),
            access_based_enumeration: false,
        };
        change(&mut share);
        TestHost(Rc::new(Session {
            server: Rc::clone(self),
            client: Client::new(Protocol::Smb, Origin::default(), &[number]),
            number: u64::from(number),
            share,
            user: User { credentials: Credentials::new(uid, uid), name: "ann".to_string() },
            opens: RefCell::default(),
            opens_max: Cell::new(usize::MAX),
            made: Cell::new(0),
            response_max: Cell::new(1 << 21),
        }))
    }

    /// The directory of `path` (names with `/` between them), and the name in it.
    fn place<'p>(&self, path: &'p str) -> (MemObject, Name<'p>) {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.object(dir).0, Name::new(name.as_bytes()).unwrap())
    }

    /// The object at `path` and its attributes, without following links.
    pub(crate) fn object(&self, path: &str) -> (MemObject, Attr) {
        self.find(path).unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// The object at `path`, if it is there.
    pub(crate) fn find(&self, path: &str) -> Option<(MemObject, Attr)> {
        let mut object = self.store.root();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let name = Name::new(name.as_bytes()).unwrap();
            (object, _) = block_on(self.store.lookup(&object, name)).ok()?;
        }
        let attr = block_on(self.store.attr(&object)).ok()?;
        Some((object, attr))
    }

    /// Makes a file of `uid`, as NFS does it.
    pub(crate) fn file(&self, path: &str, data: &[u8], mode: u32, uid: u32) -> MemObject {
        let (dir, name) = self.place(path);
        let owner = (Some(uid), Some(uid));
        let set = SetAttr { mode: Some(mode), uid: owner.0, gid: owner.1, ..SetAttr::default() };
        let how = CreateHow::Guarded(set);
        let made = block_on(self.store.create(&dir, name, &how, &Credentials::ROOT)).unwrap();
        self.write(&made.object, data);
        made.object
    }

    /// Makes a directory of `uid`, as NFS does it.
    pub(crate) fn dir(&self, path: &str, mode: u32, uid: u32) -> MemObject {
        self.make(path, &MakeKind::Directory, mode, uid)
    }

    /// Makes a symbolic link, as NFS does it.
    pub(crate) fn symlink(&self, path: &str, target: &str) -> MemObject {
        self.make(path, &MakeKind::Symlink(target.as_bytes().to_vec()), 0o777, 0)
    }

    /// Makes an object of `uid`, as NFS does it.
    pub(crate) fn make(&self, path: &str, kind: &MakeKind, mode: u32, uid: u32) -> MemObject {
        let (dir, name) = self.place(path);
        let owner = (Some(uid), Some(uid));
        let set = SetAttr { mode: Some(mode), uid: owner.0, gid: owner.1, ..SetAttr::default() };
        block_on(self.store.make(&dir, name, kind, &set, &Credentials::ROOT)).unwrap().object
    }

    /// Removes a file, as NFS does it.
    pub(crate) fn remove(&self, path: &str) {
        let (dir, name) = self.place(path);
        block_on(self.store.remove(&dir, name, &Credentials::ROOT)).unwrap();
    }

    /// Renames, as NFS does it.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        let (from, to) = (self.place(from), self.place(to));
        let cred = Credentials::ROOT;
        block_on(self.store.rename(&from.0, from.1, &to.0, to.1, &cred)).unwrap();
    }

    /// Writes to the front of a file, as NFS does it.
    pub(crate) fn write(&self, file: &MemObject, data: &[u8]) {
        let data = Shared::from(data.to_vec());
        block_on(self.store.write(file, 0, data, Stability::Unstable)).unwrap();
    }

    /// The whole content of a file.
    pub(crate) fn content(&self, path: &str) -> Vec<u8> {
        let (file, _) = self.object(path);
        block_on(self.store.read(&file, 0, u32::MAX, Vec::new())).unwrap().out
    }

    /// The number of opens of the object at `path`.
    pub(crate) fn opens_on(&self, path: &str) -> usize {
        let object = self.store.key(&self.object(path).0);
        self.tables.borrow().opens_on(&File { volume: VOLUME, object })
    }

    /// The number of opens of all files.
    pub(crate) fn opens(&self) -> usize {
        self.tables.borrow().opens(OpenId(0)).count()
    }

    fn tell(grants: Vec<Grant<Wait>>) {
        for grant in grants {
            grant.waiter.set(Some(Ok(())));
        }
    }

    fn end_waits(closed: Option<Closed<Wait>>) {
        for waiter in closed.into_iter().flat_map(|closed| closed.waiters) {
            waiter.set(Some(Err(Status::RANGE_NOT_LOCKED)));
        }
    }
}

/// A session with one tree connect. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TestHost(Rc<Session>);

pub(crate) struct Session {
    pub(crate) server: Rc<TestServer>,
    client: Client,
    number: u64,
    share: Share,
    user: User,
    opens: RefCell<BTreeMap<u64, TestOpen>>,
    /// The most opens that the session may have.
    pub(crate) opens_max: Cell<usize>,
    made: Cell<u64>,
    /// The most bytes of the body of a response.
    pub(crate) response_max: Cell<usize>,
}

impl Deref for TestHost {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.0
    }
}

/// An open of a test's session.
#[derive(Clone)]
pub(crate) struct TestOpen(Rc<(Open<MemObject>, RefCell<OpenState<MemObject>>)>);

impl Deref for TestOpen {
    type Target = Open<MemObject>;
    fn deref(&self) -> &Open<MemObject> {
        &self.0.0
    }
}

/// Users 7 and 8, with the RIDs 1007 and 1008, and the group 7 with the RID 2007.
struct TestIdentities;

impl Identities for TestIdentities {
    fn domain(&self) -> Sid {
        Sid::domain([1, 2, 3])
    }

    fn user_rid(&self, uid: u32) -> Option<u32> {
        matches!(uid, 7 | 8).then_some(uid + 1000)
    }

    fn group_rid(&self, gid: u32) -> Option<u32> {
        (gid == 7).then_some(2007)
    }

    fn by_rid(&self, rid: u32) -> Option<Principal> {
        match rid {
            1007 | 1008 => Some(Principal::User(rid - 1000)),
            2007 => Some(Principal::Group(7)),
            _ => None,
        }
    }
}

/// A data operation under way.
pub(crate) struct TestIo(Rc<TestServer>);

impl Drop for TestIo {
    fn drop(&mut self) {
        self.0.io.set(self.0.io.get() - 1);
    }
}

/// A part of a request that was admitted: its place in the list of them.
pub(crate) struct TestPermit(Rc<TestServer>, usize);

impl Permit for TestPermit {
    fn end(self, moved: u64, ok: bool) {
        self.0.parts.borrow_mut()[self.1].ended = Some((moved, ok));
    }
}

/// A request that is being carried out.
pub(crate) struct Running(Pin<Box<dyn Future<Output = Reply>>>);

impl Running {
    /// The reply, if the request does not wait.
    pub(crate) fn poll(&mut self) -> Option<Reply> {
        match self.0.as_mut().poll(&mut Poller::from_waker(Waker::noop())) {
            Poll::Ready(reply) => Some(reply),
            Poll::Pending => None,
        }
    }
}

/// The end of a request.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The result of the operation.
    pub(crate) outcome: Outcome,
    /// The response, with a header in which all but the status is blank. Of a failure only the
    /// header.
    pub(crate) message: Vec<u8>,
}

impl Reply {
    /// The status.
    pub(crate) fn status(&self) -> Status {
        match &self.outcome {
            Ok(done) => done.status,
            Err(Failure { status, .. }) => *status,
        }
    }

    /// The response, which must not be a failure.
    #[track_caller]
    pub(crate) fn ok(&self) -> &[u8] {
        assert!(self.outcome.is_ok(), "{:?}", self.outcome);
        &self.message
    }
}

/// A header with this command and status.
pub(crate) fn header(command: Command, status: Status) -> Header {
    Header {
        credit_charge: 1,
        status,
        command: Ok(command),
        credits: 1,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id: 1,
        tree: TreeOrAsync::Tree(1),
        session_id: 1,
        signature: [0; 16],
    }
}

/// Text in UTF-16, little-endian.
pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A path with `/` between its names as it is on the wire.
pub(crate) fn wire_path(path: &str) -> Vec<u8> {
    utf16(&path.replace('/', "\\"))
}

impl TestHost {
    /// Begins a request: `encode` appends its body, `operation` carries it out.
    pub(crate) fn start(
        &self,
        command: Command,
        encode: impl FnOnce(&mut Vec<u8>),
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Running {
        let header = header(command, Status::SUCCESS);
        let mut message = Vec::new();
        header.encode(&mut message);
        encode(&mut message);
        self.send(message, None, operation)
    }

    /// Begins the request `message`, whose header is its own.
    pub(crate) fn send(
        &self,
        message: Vec<u8>,
        related: Option<FileId>,
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Running {
        let host = self.clone();
        let head = Header::decode(&message).unwrap();
        let message = Shared::from(message);
        Running(Box::pin(async move {
            let response_max = host.response_max.get();
            let cx = Context::new(&host, &head, &message, related, response_max);
            let mut out = vec![0; HEADER_BYTES];
            let outcome = operation(&cx, &mut out).await;
            let status = match &outcome {
                Ok(done) => done.status,
                Err(failure) => failure.status,
            };
            let head = Header { status, flags: HeaderFlags::RESPONSE, ..head };
            match &outcome {
                Ok(_) => out[..HEADER_BYTES].copy_from_slice(&head.to_bytes()),
                Err(_) => out = head.to_bytes().to_vec(),
            }
            Reply { outcome, message: out }
        }))
    }

    /// Carries a request out, which must not wait.
    #[track_caller]
    pub(crate) fn call(
        &self,
        command: Command,
        encode: impl FnOnce(&mut Vec<u8>),
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Reply {
        self.start(command, encode, operation).poll().expect("the request waits")
    }

    /// Opens the object at `path` with `granted` and everything shared, without CREATE.
    #[track_caller]
    pub(crate) fn open(&self, path: &str, granted: AccessMask) -> FileId {
        self.open_as(path, granted, Sharing::all(), CreateOptions::empty())
    }

    /// Opens the object at `path` without CREATE.
    #[track_caller]
    pub(crate) fn open_as(
        &self,
        path: &str,
        granted: AccessMask,
        share: Sharing,
        options: CreateOptions,
    ) -> FileId {
        let (object, attr) = self.server.object(path);
        let key = self.server.store.key(&object);
        let mut access = Sharing::empty();
        let read = AccessMask::READ_DATA | AccessMask::EXECUTE;
        let write = AccessMask::WRITE_DATA | AccessMask::APPEND_DATA;
        access.set(Sharing::READ, granted.intersects(read));
        access.set(Sharing::WRITE, granted.intersects(write));
        access.set(Sharing::DELETE, granted.contains(AccessMask::DELETE));
        let mode = OpenMode { access, share };
        let shared = block_on(self.reserve(&key, mode)).unwrap();
        let place = (!path.is_empty()).then(|| {
            let (dir, name) = self.server.place(path);
            Place { dir, name: name.as_bytes().into() }
        });
        let (id, kind, tree) = (FileId::default(), attr.kind, self.tree());
        let open = Open { id, tree, object, key, kind, granted, options, shared };
        let state =
            OpenState { place, path: path.as_bytes().into(), position: 0, mode: 0, listing: None };
        self.keep(open, state).unwrap().id
    }

    /// An open of the session.
    #[track_caller]
    pub(crate) fn opened(&self, id: FileId) -> TestOpen {
        self.find(id).expect("an open of the session")
    }

    fn file(&self, object: &ObjectKey) -> File {
        File { volume: VOLUME, object: *object }
    }
}

impl Volume for TestHost {
    type Store = MemStore;

    fn store(&self) -> &MemStore {
        &self.0.server.store
    }

    async fn begin_close(
        &self,
        open: OpenId,
        key: &ObjectKey,
        place: Option<&Place<MemObject>>,
    ) -> Option<Place<MemObject>> {
        let mut grants = Vec::new();
        let (file, tables) = (self.file(key), &mut *self.server.tables.borrow_mut());
        let mut deletes = self.server.deletes.borrow_mut();
        let ending = deletes.end(tables, open, (&file, place), &mut grants);
        drop(deletes);
        TestServer::tell(grants);
        match ending {
            Ending::Deletes(place) => Some(place),
            Ending::Closed(closed) => {
                TestServer::end_waits(closed);
                None
            }
        }
    }

    async fn close(&self, open: OpenId) {
        let mut grants = Vec::new();
        let closed = self.server.tables.borrow_mut().close_file(open, &mut grants);
        TestServer::tell(grants);
        TestServer::end_waits(closed);
    }
}

impl Host for TestHost {
    type Open = TestOpen;
    type Io = TestIo;
    type Permit = TestPermit;

    fn share(&self) -> &Share {
        &self.share
    }

    fn user(&self) -> &User {
        &self.user
    }

    fn now(&self) -> Timestamp {
        Timestamp { secs: 1_800_000_000, nanos: 0 }
    }

    fn identities(&self) -> &dyn Identities {
        &TestIdentities
    }

    fn any_open(
        &self,
        mut act: impl FnMut(&Open<MemObject>, &mut OpenState<MemObject>) -> bool,
    ) -> bool {
        let opens = self.opens.borrow();
        opens.values().any(|open| act(open, &mut open.0.1.borrow_mut()))
    }

    fn find(&self, id: FileId) -> Option<TestOpen> {
        let open = self.opens.borrow().get(&id.volatile).cloned();
        open.filter(|open| open.id == id)
    }

    fn find_source(&self, id: FileId) -> Option<TestOpen> {
        self.find(id)
    }

    fn tree(&self) -> u32 {
        1
    }

    fn keep(
        &self,
        mut open: Open<ObjectOf<Self>>,
        state: OpenState<ObjectOf<Self>>,
    ) -> Option<TestOpen> {
        if self.opens.borrow().len() >= self.opens_max.get() {
            return None;
        }
        self.made.set(self.made.get() + 1);
        open.id = FileId { persistent: self.number, volatile: self.made.get() };
        let open = TestOpen(Rc::new((open, RefCell::new(state))));
        self.opens.borrow_mut().insert(open.id.volatile, open.clone());
        Some(open)
    }

    fn take(&self, id: FileId) -> Option<TestOpen> {
        self.find(id)?;
        self.opens.borrow_mut().remove(&id.volatile)
    }

    fn with<R>(&self, open: &TestOpen, act: impl FnOnce(&mut OpenState<ObjectOf<Self>>) -> R) -> R {
        act(&mut open.0.1.borrow_mut())
    }

    async fn reserve(&self, file: &ObjectKey, mode: OpenMode) -> Result<OpenId, Refused> {
        let mut tables = self.server.tables.borrow_mut();
        tables.open_file(&self.file(file), &self.client, mode, false)
    }

    async fn set_delete_on_close(&self, open: OpenId, delete: bool) -> Result<(), Refused> {
        self.server.tables.borrow_mut().set_delete_on_close(open, delete)
    }

    async fn set_delete_pending(&self, open: OpenId, delete: bool) -> Result<(), Refused> {
        self.server.tables.borrow_mut().set_delete_pending(open, delete)
    }

    async fn is_delete_pending(&self, file: &ObjectKey) -> bool {
        self.server.tables.borrow().is_delete_pending(&self.file(file))
    }

    async fn opens_on(&self, file: &ObjectKey) -> usize {
        self.server.tables.borrow().opens_on(&self.file(file))
    }

    async fn lock(&self, open: &TestOpen, locks: &[RangeLock], wait: bool) -> Result<(), Status> {
        let waiter = Wait::default();
        let locked = {
            let mut tables = self.server.tables.borrow_mut();
            match locks {
                [RangeLock { span, mode }] if wait => {
                    let token = Some(Rc::clone(&waiter));
                    tables.lock_open(Mono::ZERO, open.shared, *span, *mode, token)
                }
                _ => {
                    let locks: Vec<_> = locks.iter().map(|lock| (lock.span, lock.mode)).collect();
                    let all = tables.lock_all(Mono::ZERO, open.shared, &locks);
                    all.map(|()| OpenLocked::Granted)
                }
            }
        };
        match locked {
            Ok(OpenLocked::Granted) => Ok(()),
            Ok(OpenLocked::Waits(_)) => {
                poll_fn(|_| waiter.get().map_or(Poll::Pending, Poll::Ready)).await
            }
            Err(refused) => Err(super::error::refusal(&refused)),
        }
    }

    async fn unlock(&self, open: &TestOpen, spans: &[Span]) -> Result<(), Status> {
        for span in spans {
            let mut grants = Vec::new();
            let mut tables = self.server.tables.borrow_mut();
            let unlocked = tables.unlock_open(open.shared, *span, &mut grants);
            TestServer::tell(grants);
            unlocked.map_err(|_| Status::RANGE_NOT_LOCKED)?;
        }
        Ok(())
    }

    async fn begin_io(
        &self,
        open: &TestOpen,
        range: Option<Range>,
        mode: Mode,
    ) -> Result<TestIo, Status> {
        if let Some(range) = range {
            let left = (u64::MAX - range.first()).saturating_add(1);
            let span = Span::new(range.first(), range.length().unwrap_or(left)).unwrap();
            let io = match mode {
                Mode::Shared => Io::Read,
                Mode::Exclusive => Io::Write,
            };
            let tables = self.server.tables.borrow();
            let may = tables.io(&self.file(&open.key), Some(open.shared), span, io);
            may.map_err(|_| Status::FILE_LOCK_CONFLICT)?;
        }
        self.server.io.set(self.server.io.get() + 1);
        Ok(TestIo(Rc::clone(&self.server)))
    }

    async fn admit(&self, _: &ObjectKey, class: OpClass, bytes: u32) -> Result<TestPermit, Status> {
        let mut parts = self.server.parts.borrow_mut();
        parts.push(Part { class, bytes, ended: None });
        Ok(TestPermit(Rc::clone(&self.server), parts.len() - 1))
    }
}

#[test]
fn sessions_share_files_and_tables_but_not_opens() {
    let server = TestServer::new();
    server.file("a", b"data", 0o644, 7);
    let (ann, bob) = (server.session(7), server.session(8));
    let id = ann.open("a", AccessMask::READ_DATA);
    assert!(ann.find(id).is_some() && bob.find(id).is_none());
    assert_eq!((server.opens_on("a"), server.content("a")), (1, b"data".to_vec()));
    let open = ann.take(id).unwrap();
    block_on(ann.close(open.shared));
    assert_eq!(server.opens(), 0);
}
