//! A server in memory for tests of operations: one volume and one set of tables, with as many
//! sessions as a test needs. Requests are built by a client's encoders and carried out to the end,
//! or held while they wait for a lock.
//!
//! Not here: sessions as such, signatures, and contracts, which admit everything. Not part of any
//! product binary: it exists only under `cfg(test)` or the feature `testing`, for the fuzz targets.

use super::{Context, Failure, Outcome};
use crate::host::{Host, ObjectOf, Permit, RangeLock, Share, User, Volume};
use crate::le::patch;
use crate::open::{Closing, Deletes, Ending, Open, OpenState, Place, Renamed};
use crate::security::{Identities, Principal, Sid};
use crate::wire::{AccessMask, FileId, HEADER_BYTES, Header, HeaderFlags, Status, WireError};
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context as Poller, Poll, Waker};
use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;
use std::string::ToString;
use std::vec::Vec;
use weir_core::testing::{MemObject, MemStore};
use weir_core::{Credentials, Mono, ObjectKey, OpClass, Origin, Shared, VolumeId};
use weir_state::{
    Client, Closed, File, Grant, Io, Limits, Mode, OpenId, OpenLocked, OpenMode, Protocol, Range,
    Refused, Span, Tables,
};

#[cfg(test)]
mod helpers;
#[cfg(test)]
pub(crate) use crate::utf16::to_utf16 as utf16;
#[cfg(test)]
pub(crate) use helpers::{header, wire_path};

const VOLUME: VolumeId = VolumeId(1);

/// A request that waits for a lock: how the wait ended, once it has.
pub type Wait = Rc<Cell<Option<Result<(), Status>>>>;

/// The server that all sessions of a test share.
pub struct TestServer {
    /// The volume. Changes that other protocols make are made on it directly.
    pub store: MemStore,
    /// The state that all protocols share.
    pub tables: RefCell<Tables<Wait>>,
    deletes: RefCell<Deletes<MemObject>>,
    /// The opens of all sessions, until they are closed in the tables.
    kept: RefCell<BTreeMap<OpenId, TestOpen>>,
    /// The files whose names are locked.
    named: RefCell<BTreeSet<ObjectKey>>,
    renames: Cell<u64>,
    /// The longest path that a rename may give an open, in bytes.
    pub path_max: Cell<usize>,
    /// Data operations under way.
    pub io: Cell<usize>,
    /// The parts of requests that were admitted, and how they ended: `None` if they were dropped.
    pub parts: RefCell<Vec<Part>>,
    sessions: Cell<u8>,
}

/// A part of a request that was admitted, with the payload moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The kind of the part.
    pub class: OpClass,
    /// The most bytes that it may move.
    pub bytes: u32,
    /// The bytes moved, and whether it succeeded.
    pub ended: Option<(u64, bool)>,
}

impl TestServer {
    /// A server with an empty volume, whose top directory everybody may write.
    pub fn new() -> Rc<Self> {
        let mut tables = Tables::new(Limits::SERVER);
        tables.open(VOLUME);
        Rc::new(Self {
            store: MemStore::new(),
            tables: RefCell::new(tables),
            deletes: RefCell::default(),
            kept: RefCell::default(),
            named: RefCell::default(),
            renames: Cell::new(0),
            path_max: Cell::new(usize::MAX),
            io: Cell::new(0),
            parts: RefCell::default(),
            sessions: Cell::new(0),
        })
    }

    /// A session of the user `uid`, whose only group has the same number.
    pub fn session(self: &Rc<Self>, uid: u32) -> TestHost {
        self.session_on(uid, |_| {})
    }

    /// A session of the user `uid`, who sees the share as `change` makes it.
    pub fn session_on(self: &Rc<Self>, uid: u32, change: impl FnOnce(&mut Share)) -> TestHost {
        let number = self.sessions.get().saturating_add(1);
        self.sessions.set(number);
        let mut share = Share {
            volume: VOLUME,
            name: "vol".to_string(),
            maximal: AccessMask::FILE_ALL_ACCESS,
            access_based_enumeration: false,
        };
        change(&mut share);
        TestHost(Rc::new(Session {
            server: Rc::clone(self),
            client: Client::new(Protocol::Smb, Origin::default(), &[number]),
            number: u64::from(number),
            share,
            user: User { credentials: Credentials::new(uid, uid) },
            opens: RefCell::default(),
            opens_max: Cell::new(usize::MAX),
            made: Cell::new(0),
            response_max: Cell::new(1 << 21),
        }))
    }

    /// The number of opens of all files.
    pub fn opens(&self) -> usize {
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
pub struct TestHost(Rc<Session>);

/// The state of a session.
pub struct Session {
    /// The server.
    pub server: Rc<TestServer>,
    client: Client,
    number: u64,
    share: Share,
    user: User,
    opens: RefCell<BTreeMap<u64, TestOpen>>,
    /// The most opens that the session may have.
    pub opens_max: Cell<usize>,
    made: Cell<u64>,
    /// The most bytes of the body of a response.
    pub response_max: Cell<usize>,
}

impl Deref for TestHost {
    type Target = Session;
    fn deref(&self) -> &Session {
        &self.0
    }
}

/// An open of a test's session.
#[derive(Clone)]
pub struct TestOpen(Rc<(Open<MemObject>, RefCell<OpenState<MemObject>>)>);

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
        matches!(uid, 7 | 8).then_some(uid.saturating_add(1000))
    }

    fn group_rid(&self, gid: u32) -> Option<u32> {
        (gid == 7).then_some(2007)
    }

    fn by_rid(&self, rid: u32) -> Option<Principal> {
        match rid {
            1007 | 1008 => Some(Principal::User(rid.saturating_sub(1000))),
            2007 => Some(Principal::Group(7)),
            _ => None,
        }
    }
}

/// A data operation under way.
pub struct TestIo(Rc<TestServer>);

impl Drop for TestIo {
    fn drop(&mut self) {
        // More ends than beginnings would be noticed by whoever expects none under way.
        self.0.io.set(self.0.io.get().wrapping_sub(1));
    }
}

/// The lock of the names of a file.
pub struct TestNames<'a>(&'a TestServer, ObjectKey);

impl Drop for TestNames<'_> {
    fn drop(&mut self) {
        self.0.named.borrow_mut().remove(&self.1);
    }
}

/// A part of a request that was admitted: its place in the list of them.
pub struct TestPermit(Rc<TestServer>, usize);

impl Permit for TestPermit {
    fn end(self, moved: u64, ok: bool) {
        if let Some(part) = self.0.parts.borrow_mut().get_mut(self.1) {
            part.ended = Some((moved, ok));
        }
    }
}

/// A request that is being carried out.
pub struct Running(Pin<Box<dyn Future<Output = Reply>>>);

impl Running {
    /// The reply, if the request does not wait.
    pub fn poll(&mut self) -> Option<Reply> {
        match self.0.as_mut().poll(&mut Poller::from_waker(Waker::noop())) {
            Poll::Ready(reply) => Some(reply),
            Poll::Pending => None,
        }
    }
}

/// The end of a request.
#[derive(Debug)]
pub struct Reply {
    /// The result of the operation.
    pub outcome: Outcome,
    /// The response, with a header in which all but the status is blank. Of a failure only the
    /// header.
    pub message: Vec<u8>,
}

impl Reply {
    /// The status.
    pub fn status(&self) -> Status {
        match &self.outcome {
            Ok(done) => done.status,
            Err(Failure { status, .. }) => *status,
        }
    }
}

impl TestHost {
    /// Begins the request `message`, whose header is its own.
    ///
    /// # Errors
    /// [`WireError`] if it has no header.
    pub fn send(
        &self,
        message: Vec<u8>,
        related: Option<FileId>,
        operation: impl AsyncFnOnce(&Context<'_, Self>, &mut Vec<u8>) -> Outcome + 'static,
    ) -> Result<Running, WireError> {
        let host = self.clone();
        let head = Header::decode(&message)?;
        let message = Shared::from(message);
        Ok(Running(Box::pin(async move {
            let response_max = host.response_max.get();
            let cx = Context::new(&host, &head, &message, related, response_max);
            let mut out = std::vec![0; HEADER_BYTES];
            let outcome = operation(&cx, &mut out).await;
            let status = match &outcome {
                Ok(done) => done.status,
                Err(failure) => failure.status,
            };
            let head = Header { status, flags: HeaderFlags::RESPONSE, ..head };
            if outcome.is_err() {
                out = std::vec![0; HEADER_BYTES];
            }
            patch(&mut out, 0, &head.to_bytes());
            Reply { outcome, message: out }
        })))
    }

    /// The ids of the session's opens, in order.
    pub fn open_ids(&self) -> Vec<FileId> {
        self.opens.borrow().values().map(|open| open.id).collect()
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

    type NamesLock<'a> = TestNames<'a>;

    async fn lock_names(&self, key: &ObjectKey) -> TestNames<'_> {
        let named = &self.server.named;
        poll_fn(|_| if named.borrow_mut().insert(*key) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        TestNames(&self.server, *key)
    }

    async fn begin_close(
        &self,
        open: OpenId,
        key: &ObjectKey,
        place: impl Fn() -> Option<Place<MemObject>>,
        names_locked: bool,
    ) -> Ending<MemObject> {
        let mut grants = Vec::new();
        let (file, tables) = (self.file(key), &mut *self.server.tables.borrow_mut());
        let mut deletes = self.server.deletes.borrow_mut();
        let closing = Closing { open, file: &file, place, names_locked };
        let (ending, closed) = deletes.end(tables, closing, &mut grants);
        drop(deletes);
        TestServer::tell(grants);
        TestServer::end_waits(closed);
        if matches!(ending, Ending::Closed) {
            self.server.kept.borrow_mut().remove(&open);
        }
        ending
    }

    async fn close(&self, open: OpenId) {
        let mut grants = Vec::new();
        let closed = self.server.tables.borrow_mut().close_file(open, &mut grants);
        self.server.kept.borrow_mut().remove(&open);
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

    fn identities(&self) -> &dyn Identities {
        &TestIdentities
    }

    fn renames(&self) -> u64 {
        self.server.renames.get()
    }

    async fn apply_rename(&self, open: &TestOpen, renamed: Renamed<'_, MemObject>) {
        let server = &self.server;
        server.renames.set(server.renames.get().saturating_add(1));
        let file = self.file(&open.key);
        let opens: Vec<_> =
            server.tables.borrow().opens_at(&file, OpenId(0)).map(|(id, _)| id).collect();
        let kept = server.kept.borrow();
        for open in opens.iter().filter_map(|id| kept.get(id)).chain([open]) {
            let has_room = |bytes| bytes <= server.path_max.get();
            renamed.apply(&server.store, &mut open.0.1.borrow_mut(), has_room);
        }
        server.deletes.borrow_mut().apply_rename(&server.store, &file, &renamed);
    }

    async fn any_open_below(&self, path: &[u8]) -> bool {
        self.server.kept.borrow().values().any(|open| open.0.1.borrow().is_below(path))
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
        self.made.set(self.made.get().saturating_add(1));
        open.id = FileId { persistent: self.number, volatile: self.made.get() };
        let open = TestOpen(Rc::new((open, RefCell::new(state))));
        self.opens.borrow_mut().insert(open.id.volatile, open.clone());
        self.server.kept.borrow_mut().insert(open.shared, open.clone());
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
            let left = u64::MAX.saturating_sub(range.first()).saturating_add(1);
            let span = Span::new(range.first(), range.length().unwrap_or(left));
            let span = span.ok_or(Status::INVALID_LOCK_RANGE)?;
            let io = match mode {
                Mode::Shared => Io::Read,
                Mode::Exclusive => Io::Write,
            };
            let tables = self.server.tables.borrow();
            let may = tables.io(&self.file(&open.key), Some(open.shared), span, io);
            may.map_err(|_| Status::FILE_LOCK_CONFLICT)?;
        }
        self.server.io.set(self.server.io.get().saturating_add(1));
        Ok(TestIo(Rc::clone(&self.server)))
    }

    async fn admit(&self, _: &ObjectKey, class: OpClass, bytes: u32) -> Result<TestPermit, Status> {
        let mut parts = self.server.parts.borrow_mut();
        parts.push(Part { class, bytes, ended: None });
        Ok(TestPermit(Rc::clone(&self.server), parts.len().saturating_sub(1)))
    }
}
