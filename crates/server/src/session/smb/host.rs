//! The surroundings of the operations of one request on a volume ([`Host`]): its store, the opens
//! of its session, the tables of opens and locks, and the contract.

use super::accounts::Accounts;
use super::names::NamesLock;
use super::pending::Pending;
use super::server::SmbServer;
use super::tree::OpenVolume;
use super::user_session::{FileOpen, OpenRef, UserSession};
use super::waiter::{Waited, wait};
use crate::engine::{Asked, Permit, ServedVolume};
use crate::op_name::OpName;
use crate::session::{Waiter, deliver};
use crate::sync::Arc;
use crate::worker::{Barrier, IoGenerations, IoGuard, NoPermit, Permits};
use std::future::Future;
use weir_core::{Clock, ObjectKey, OpClass};
use weir_locks::LockedTables;
use weir_qos::Cost;
use weir_smb::host::{Host, RangeLock, Share, User, Volume};
use weir_smb::open::{Ending, Open, OpenState, Place, Renamed};
use weir_smb::ops::refusal;
use weir_smb::security::Identities;
use weir_smb::wire::{FileId, Status};
use weir_state::{
    File, Grant, GrantId, Io, Mode, OpenId, OpenLocked, OpenMode, Range, Refused, Sharing, Span,
    Tables,
};
use weir_store::{VolumeObject, VolumeStore};

/// Locks of one request that a worker takes or gives up at once.
const NAMED_AT_ONCE: usize = 32;

/// The surroundings of one request.
pub(super) struct SmbHost {
    pub(super) smb: Arc<SmbServer>,
    pub(super) session: Arc<UserSession>,
    pub(super) tree: u32,
    pub(super) share: Arc<Share>,
    pub(super) user: Arc<User>,
    pub(super) volume: Arc<ServedVolume>,
    pub(super) accounts: Accounts,
    pub(super) io: IoGenerations,
    pub(super) permits: Permits,
    pub(super) pending: Arc<Pending>,
}

impl SmbHost {
    fn file(&self, object: &ObjectKey) -> File {
        File { volume: self.volume.id, object: *object }
    }

    fn ends(&self) -> OpenVolume<'_> {
        OpenVolume { smb: &self.smb, session: &self.session, volume: &self.volume }
    }

    async fn tables(&self) -> LockedTables<'_, Waiter> {
        self.volume.locks.tables_when_free().await
    }

    /// Has `act` change the locks of `open`, of which so many are named: on a thread of its own if
    /// that takes long. It tells those who get what is freed.
    async fn change<R: Send + 'static>(
        &self,
        open: OpenId,
        named: usize,
        act: impl FnOnce(&mut Tables<Waiter>, &mut Vec<Grant<Waiter>>) -> R + Send + 'static,
    ) -> Result<R, Status> {
        let mut grants = Vec::new();
        let mut tables = self.tables().await;
        if named <= NAMED_AT_ONCE && tables.is_quick_open(open) {
            let done = act(&mut tables, &mut grants);
            drop(tables);
            deliver(grants);
            return Ok(done);
        }
        drop(tables);
        let done = self.volume.locks.aside(move |door| {
            let mut grants = Vec::new();
            let done = act(&mut door.tables(), &mut grants);
            deliver(grants);
            done
        });
        done.await.ok_or(Status::INSUFFICIENT_RESOURCES)
    }

    /// Waits until all data operations that began before have ended.
    fn barrier(&self) -> Barrier {
        Barrier::new(&self.volume.workers)
    }

    /// Waits for a lock until it is held, the open is closed, the client or an operator cancels the
    /// request, or the server stops.
    async fn wait_for(
        &self,
        open: OpenId,
        number: GrantId,
        mut waited: impl Future<Output = Waited> + Unpin,
    ) -> Result<(), Status> {
        let ended = match self.pending.unless_ended(&mut waited).await {
            Some(ended) => ended,
            None => {
                let cancel = move |tables: &mut Tables<Waiter>, grants: &mut Vec<Grant<Waiter>>| {
                    tables.cancel_open(open, number, grants).is_some()
                };
                match self.change(open, 1, cancel).await? {
                    true => Waited::Cancelled,
                    // The wait ended just before: by a grant, an operator or a close.
                    false => waited.await,
                }
            }
        };
        match ended {
            Waited::Granted => Ok(()),
            Waited::Cancelled => Err(Status::CANCELLED),
            Waited::Over => Err(Status::RANGE_NOT_LOCKED),
        }
    }
}

impl Volume for SmbHost {
    type Store = VolumeStore;

    fn store(&self) -> &VolumeStore {
        self.volume.unsynced()
    }

    type NamesLock<'a> = NamesLock<'a>;

    async fn lock_names(&self, key: &ObjectKey) -> NamesLock<'_> {
        self.volume.names.lock(key).await
    }

    async fn begin_close(
        &self,
        open: OpenId,
        key: &ObjectKey,
        place: impl Fn() -> Option<Place<VolumeObject>>,
        names_locked: bool,
    ) -> Ending<VolumeObject> {
        self.ends().begin_close(open, key, place, names_locked).await
    }

    async fn close(&self, open: OpenId) {
        self.ends().close(open).await;
    }
}

impl Host for SmbHost {
    type Open = OpenRef;
    type Io = IoGuard;
    type Permit = SmbPermit;

    fn share(&self) -> &Share {
        &self.share
    }

    fn user(&self) -> &User {
        &self.user
    }

    fn identities(&self) -> &dyn Identities {
        &self.accounts
    }

    fn find(&self, id: FileId) -> Option<OpenRef> {
        self.session.file(id, self.tree).map(OpenRef)
    }

    fn find_source(&self, id: FileId) -> Option<OpenRef> {
        self.session.file_of(id, self.volume.id).map(OpenRef)
    }

    fn tree(&self) -> u32 {
        self.tree
    }

    fn keep(&self, open: Open<VolumeObject>, state: OpenState<VolumeObject>) -> Option<OpenRef> {
        let id = FileOpen::id_of(open.shared);
        let (open, paths) = (Open { id, ..open }, &self.session.path_bytes);
        self.session.keep(FileOpen::new(open, &self.volume, state, paths)).map(OpenRef)
    }

    fn take(&self, id: FileId) -> Option<OpenRef> {
        self.session.take(id).map(OpenRef)
    }

    fn with<R>(&self, open: &OpenRef, act: impl FnOnce(&mut OpenState<VolumeObject>) -> R) -> R {
        open.0.with(act)
    }

    fn renames(&self) -> u64 {
        self.smb.renames()
    }

    async fn apply_rename(&self, open: &OpenRef, renamed: Renamed<'_, VolumeObject>) {
        let file = self.file(&open.key);
        let paths = &self.session.path_bytes;
        self.smb.apply_rename(&self.volume, &file, &renamed, paths).await;
        // It may be closed by now; the new name is still to be made stable.
        open.0.apply_rename(self.store(), &renamed, paths);
    }

    async fn any_open_below(&self, path: &[u8]) -> bool {
        self.smb.any_open_below(&self.volume, path).await
    }

    async fn reserve(&self, file: &ObjectKey, mode: OpenMode) -> Result<OpenId, Refused> {
        let (file, client) = (self.file(file), &self.session.client);
        let open = self.tables().await.open_file(&file, client, mode, false)?;
        let data = Sharing::READ | Sharing::WRITE;
        if !mode.access.is_empty() && !mode.share.contains(data) {
            self.barrier().await;
        }
        Ok(open)
    }

    async fn set_delete_on_close(&self, open: OpenId, delete: bool) -> Result<(), Refused> {
        self.tables().await.set_delete_on_close(open, delete)
    }

    async fn set_delete_pending(&self, open: OpenId, delete: bool) -> Result<(), Refused> {
        self.tables().await.set_delete_pending(open, delete)
    }

    async fn is_delete_pending(&self, file: &ObjectKey) -> bool {
        let file = self.file(file);
        self.tables().await.is_delete_pending(&file)
    }

    async fn opens_on(&self, file: &ObjectKey) -> usize {
        let file = self.file(file);
        self.tables().await.opens_on(&file)
    }

    async fn lock(
        &self,
        open: &OpenRef,
        locks: &[RangeLock],
        can_wait: bool,
    ) -> Result<(), Status> {
        let (now, id) = (self.volume.clock().now(), open.shared);
        let waits = match locks {
            [lock] if can_wait => {
                let (waited, waiter) = wait();
                let waiter = Some(Waiter::Smb(waiter));
                let RangeLock { span, mode } = *lock;
                let act = move |tables: &mut Tables<Waiter>, _: &mut Vec<_>| {
                    tables.lock_open(now, id, span, mode, waiter)
                };
                match self.change(id, 1, act).await?.map_err(|refused| refusal(&refused))? {
                    OpenLocked::Granted => None,
                    OpenLocked::Waits(number) => Some((number, waited)),
                }
            }
            locks => {
                let locks: Vec<_> = locks.iter().map(|lock| (lock.span, lock.mode)).collect();
                let named = locks.len();
                let act = move |tables: &mut Tables<Waiter>, _: &mut Vec<_>| {
                    tables.lock_all(now, id, &locks)
                };
                self.change(id, named, act).await?.map_err(|refused| refusal(&refused))?;
                None
            }
        };
        if let Some((number, waited)) = waits {
            self.wait_for(id, number, waited).await?;
        }
        self.barrier().await;
        Ok(())
    }

    async fn unlock(&self, open: &OpenRef, spans: &[Span]) -> Result<(), Status> {
        // Others have their turn between two parts.
        for spans in spans.chunks(NAMED_AT_ONCE) {
            let (id, named, spans) = (open.shared, spans.len(), spans.to_vec());
            let act = move |tables: &mut Tables<Waiter>, grants: &mut Vec<_>| {
                spans.iter().try_for_each(|span| tables.unlock_open(id, *span, grants))
            };
            self.change(id, named, act).await?.map_err(|_| Status::RANGE_NOT_LOCKED)?;
        }
        Ok(())
    }

    async fn begin_io(
        &self,
        open: &OpenRef,
        range: Option<Range>,
        mode: Mode,
    ) -> Result<IoGuard, Status> {
        let guard = self.io.enter();
        if let Some(span) = range.and_then(span_of)
            && self.volume.filters.with_open.may_stand_on(&open.key)
        {
            let io = match mode {
                Mode::Shared => Io::Read,
                Mode::Exclusive => Io::Write,
            };
            let file = self.file(&open.key);
            let allowed = self.tables().await.io(&file, Some(open.shared), span, io);
            allowed.map_err(|_| Status::FILE_LOCK_CONFLICT)?;
        }
        Ok(guard)
    }

    async fn admit(
        &self,
        file: &ObjectKey,
        class: OpClass,
        bytes: u32,
    ) -> Result<SmbPermit, Status> {
        let op = match class {
            OpClass::Write => OpName::SMB_COPY_WRITE,
            _ => OpName::SMB_COPY_READ,
        };
        let (cost, arrived) = (Cost::of(bytes.into()), self.volume.clock().now());
        let asked = Asked { op, class, cost, arrived };
        let permit = self.permits.ask(&self.volume, asked, Some(*file));
        match self.pending.unless_cancelled(permit).await {
            Some(Ok(permit)) => Ok(SmbPermit(permit)),
            Some(Err(NoPermit::Busy)) => Err(Status::INSUFFICIENT_RESOURCES),
            Some(Err(NoPermit::Closed)) | None => Err(Status::CANCELLED),
        }
    }
}

/// The bytes of a range, as the tables of opens know them.
fn span_of(range: Range) -> Option<Span> {
    let length = (range.last() - range.first()).saturating_add(1);
    Span::new(range.first(), length)
}

/// The permit of a part of a request.
pub(super) struct SmbPermit(Permit);

impl weir_smb::host::Permit for SmbPermit {
    fn end(self, moved: u64, ok: bool) {
        self.0.end(moved, ok);
    }
}
