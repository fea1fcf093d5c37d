//! A session: a user who has logged in on a connection, with keys, tree connects and opens
//! (MS-SMB2 §3.3.1.8 to §3.3.1.10).
//!
//! Every worker can reach every session and open. Not here: the login, and the operations.

use super::pipe_open::PipeOpen;
use super::sums::{Charge, SumAccount};
use super::tree::DiskTree;
use crate::engine::ServedVolume;
use crate::limits::{
    OPENS_SESSION_MAX, PATH_BYTES_UNCOUNTED, PIPES_SESSION_MAX, TREES_SESSION_MAX,
};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, Weak, lock};
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use weir_core::{Clock, Mono, VolumeId};
use weir_crypto::Provider;
use weir_qos::ClientKey;
use weir_smb::crypto::{Cipher, SealKeys, SigningAlgorithm, SigningKey};
use weir_smb::open::{Open, OpenState, Renamed};
use weir_smb::wire::FileId;
use weir_state::{Client, OpenId};
use weir_store::{VolumeObject, VolumeStore};

/// An open of a file or directory.
pub(crate) struct FileOpen {
    pub(super) open: Open<VolumeObject>,
    /// Its volume, unless that is gone with all opens on it.
    pub(super) volume: Weak<ServedVolume>,
    volume_id: VolumeId,
    /// Time at which it was opened.
    pub(super) since: Mono,
    changes: Mutex<Changes>,
}

/// The part of an open that changes.
struct Changes {
    state: OpenState<VolumeObject>,
    /// The charge for the path.
    path: Charge,
}

impl FileOpen {
    pub(super) fn new(
        open: Open<VolumeObject>,
        volume: &Arc<ServedVolume>,
        state: OpenState<VolumeObject>,
        paths: &Arc<SumAccount>,
    ) -> Self {
        let (volume_id, since) = (volume.id, volume.clock().now());
        let changes = Mutex::new(Changes { state, path: Charge::new(paths) });
        Self { open, volume: Arc::downgrade(volume), volume_id, since, changes }
    }

    /// Gives `act` the state.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut OpenState<VolumeObject>) -> R) -> R {
        act(&mut lock(&self.changes).state)
    }

    /// Charges for the path. False if there is no room for it.
    fn charge_path(&self) -> bool {
        let mut changes = lock(&self.changes);
        let bytes = counted(changes.state.path().len());
        changes.path.try_set(bytes)
    }

    /// Applies a rename of its file. Without room for the path, the open keeps the old one: no
    /// client's rename fails for it. `paths` is the account of the client that renames.
    pub(super) fn apply_rename(
        &self,
        store: &VolumeStore,
        renamed: &Renamed<'_, VolumeObject>,
        paths: &SumAccount,
    ) {
        let Changes { state, path } = &mut *lock(&self.changes);
        renamed.apply(store, state, |bytes| path.try_rename(counted(bytes), paths));
    }

    /// Is its object below the directory at this path?
    pub(super) fn is_below(&self, path: &[u8]) -> bool {
        lock(&self.changes).state.is_below(path)
    }

    /// The id by which clients know the open of this number: one number names an open everywhere.
    pub(super) const fn id_of(OpenId(number): OpenId) -> FileId {
        FileId { persistent: number, volatile: number }
    }
}

/// Bytes of a path of this length that count in sum.
const fn counted(path_bytes: usize) -> usize {
    path_bytes.saturating_sub(PATH_BYTES_UNCOUNTED)
}

/// A counted reference to an open, as operations see it.
#[derive(Clone)]
pub(crate) struct OpenRef(pub(super) Arc<FileOpen>);

impl Deref for OpenRef {
    type Target = Open<VolumeObject>;
    fn deref(&self) -> &Open<VolumeObject> {
        &self.0.open
    }
}

/// A share that a session is connected to.
pub(crate) enum Tree {
    /// A volume.
    Disk(DiskTree),
    /// `IPC$`.
    Pipes,
}

/// An open of a file that a session keeps.
struct Kept {
    open: Arc<FileOpen>,
    /// A request closes it: no other finds it, but renames reach it.
    closing: bool,
}

/// The tree connects and opens of a session.
#[derive(Default)]
struct Held {
    trees: HashMap<u32, Arc<Tree>>,
    /// The opens of files, until they are closed in the tables.
    files: HashMap<u64, Kept>,
    pipes: HashMap<u64, Arc<PipeOpen>>,
}

impl Kept {
    /// The open, if no other request took it.
    fn take(&mut self) -> Option<Arc<FileOpen>> {
        let taken = std::mem::replace(&mut self.closing, true);
        (!taken).then(|| Arc::clone(&self.open))
    }
}

impl Held {
    /// The open of a file with this id, unless it is about to be closed.
    fn find(&self, id: FileId) -> Option<&Arc<FileOpen>> {
        let kept = self.files.get(&id.volatile).filter(|kept| !kept.closing);
        kept.map(|kept| &kept.open).filter(|open| open.open.id == id)
    }

    /// Takes the opens of files to which `which` applies.
    fn take_files(&mut self, which: impl Fn(&Open<VolumeObject>) -> bool) -> Vec<Arc<FileOpen>> {
        let of = self.files.values_mut().filter(|kept| which(&kept.open.open));
        of.filter_map(Kept::take).collect()
    }
}

/// A session.
pub(crate) struct UserSession {
    pub(super) id: u64,
    /// The user's relative identifier in the catalogue.
    pub(super) rid: u32,
    /// The user's name at the login, for messages.
    pub(super) name: String,
    /// The session as the shared tables of locks and opens know it.
    pub(super) client: Client,
    /// The identity among which gates share fairly.
    pub(super) key: ClientKey,
    pub(super) peer: IpAddr,
    pub(super) signing: SigningKey<Provider>,
    pub(super) sealing: Option<SealKeys<Provider>>,
    /// Requests must be signed, or sealed.
    pub(super) must_sign: bool,
    /// Bytes that the pipes of its client hold.
    pub(super) pipe_bytes: Arc<SumAccount>,
    /// Bytes of the paths of the opens of its client, without those that do not count.
    pub(super) path_bytes: Arc<SumAccount>,
    pub(super) origin: LoginOrigin,
    /// Time of the last request.
    used: AtomicU64,
    /// The last request was sealed.
    seals: AtomicBool,
    held: Mutex<Held>,
    next_tree: AtomicU64,
    ended: AtomicBool,
}

/// The circumstances of a login, for the list of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginOrigin {
    /// The number of the connection.
    pub(super) connection: u64,
    /// The algorithm of signatures.
    pub(super) signing: SigningAlgorithm,
    /// The cipher, if the client has one.
    pub(super) cipher: Option<Cipher>,
    /// Time of the login.
    pub(super) since: Mono,
}

/// The parts of a new session.
pub(super) struct NewSession {
    pub(super) id: u64,
    pub(super) rid: u32,
    /// The user's name at the login, for messages.
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) key: ClientKey,
    pub(super) peer: IpAddr,
    pub(super) signing: SigningKey<Provider>,
    pub(super) sealing: Option<SealKeys<Provider>>,
    pub(super) must_sign: bool,
    pub(super) pipe_bytes: Arc<SumAccount>,
    pub(super) path_bytes: Arc<SumAccount>,
    pub(super) origin: LoginOrigin,
}

impl UserSession {
    /// A session without tree connects and opens.
    pub(super) fn new(new: NewSession) -> Self {
        let NewSession { id, rid, name, client, key, peer, .. } = new;
        let NewSession { signing, sealing, must_sign, pipe_bytes, path_bytes, origin, .. } = new;
        Self {
            id,
            rid,
            name,
            client,
            key,
            peer,
            signing,
            sealing,
            must_sign,
            pipe_bytes,
            path_bytes,
            origin,
            used: AtomicU64::new(origin.since.0),
            seals: AtomicBool::new(false),
            held: Mutex::default(),
            next_tree: AtomicU64::new(1),
            ended: AtomicBool::new(false),
        }
    }

    /// Is it over?
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Notes a request, `sealed` or not.
    pub(super) fn used(&self, now: Mono, sealed: bool) {
        self.used.store(now.0, Ordering::Relaxed);
        self.seals.store(sealed, Ordering::Relaxed);
    }

    /// Time of the last request, and whether it was sealed.
    pub(super) fn last_use(&self) -> (Mono, bool) {
        (Mono(self.used.load(Ordering::Relaxed)), self.seals.load(Ordering::Relaxed))
    }

    /// Adds a tree connect; `None` if there are as many as may be.
    pub(super) fn connect(&self, tree: Tree) -> Option<u32> {
        let mut held = lock(&self.held);
        if held.trees.len() >= TREES_SESSION_MAX || self.has_ended() {
            return None;
        }
        // Ids are not used again: no session lives through four billion of them.
        let id = u32::try_from(self.next_tree.fetch_add(1, Ordering::Relaxed)).ok()?;
        held.trees.insert(id, Arc::new(tree));
        Some(id)
    }

    /// The tree connect with this id.
    pub(super) fn tree(&self, id: u32) -> Option<Arc<Tree>> {
        lock(&self.held).trees.get(&id).cloned()
    }

    /// Ends a tree connect; takes out its opens of files, which are to be closed.
    pub(super) fn disconnect(&self, id: u32) -> Option<Vec<Arc<FileOpen>>> {
        let mut held = lock(&self.held);
        held.trees.remove(&id)?;
        held.pipes.retain(|_, pipe| pipe.tree != id);
        Some(held.take_files(|open| open.tree == id))
    }

    /// Ends the session; takes out its opens of files, which are to be closed.
    pub(super) fn end(&self) -> Vec<Arc<FileOpen>> {
        let mut held = lock(&self.held);
        self.ended.store(true, Ordering::Release);
        held.trees.clear();
        held.pipes.clear();
        held.take_files(|_| true)
    }

    /// Keeps an open of a file. `None` if the session is over, or has as many as it may, or there
    /// is no room for the path.
    pub(super) fn keep(&self, open: FileOpen) -> Option<Arc<FileOpen>> {
        let mut held = lock(&self.held);
        if held.files.len() >= OPENS_SESSION_MAX || self.has_ended() {
            return None;
        }
        if !held.trees.contains_key(&open.open.tree) || !open.charge_path() {
            return None;
        }
        let open = Arc::new(open);
        let kept = Kept { open: Arc::clone(&open), closing: false };
        held.files.insert(open.open.id.volatile, kept);
        Some(open)
    }

    /// The open of a file with this id through the tree connect `tree`.
    pub(super) fn file(&self, id: FileId, tree: u32) -> Option<Arc<FileOpen>> {
        lock(&self.held).find(id).filter(|open| open.open.tree == tree).cloned()
    }

    /// The open of a file with this id in `volume`, through whatever tree connect.
    pub(super) fn file_of(&self, id: FileId, volume: VolumeId) -> Option<Arc<FileOpen>> {
        lock(&self.held).find(id).filter(|open| open.volume_id == volume).cloned()
    }

    /// Takes out the open of a file, which is to be closed. No request finds it from then on.
    pub(super) fn take(&self, id: FileId) -> Option<Arc<FileOpen>> {
        let mut held = lock(&self.held);
        held.files.get_mut(&id.volatile).filter(|kept| kept.open.open.id == id)?.take()
    }

    /// Forgets an open of a file, which is closed in the tables. Renames do not reach it from then
    /// on.
    pub(super) fn forget(&self, open: OpenId) {
        let mut held = lock(&self.held);
        let _forgotten = held.files.remove(&FileOpen::id_of(open).volatile);
        if held.files.is_empty() && self.has_ended() {
            // The connection may keep the session for long.
            held.files = HashMap::new();
        }
    }

    /// Is it over, and are all its opens closed?
    pub(super) fn is_empty(&self) -> bool {
        self.has_ended() && lock(&self.held).files.is_empty()
    }

    /// Keeps an open of a pipe. `None` if the session has as many as it may, or is over.
    pub(super) fn keep_pipe(&self, pipe: PipeOpen) -> Option<Arc<PipeOpen>> {
        let mut held = lock(&self.held);
        if held.pipes.len() >= PIPES_SESSION_MAX || self.has_ended() {
            return None;
        }
        let pipe = Arc::new(pipe);
        held.pipes.insert(pipe.id.volatile, Arc::clone(&pipe));
        Some(pipe)
    }

    /// The open of a pipe with this id through the tree connect `tree`.
    pub(super) fn pipe(&self, id: FileId, tree: u32) -> Option<Arc<PipeOpen>> {
        let held = lock(&self.held);
        held.pipes.get(&id.volatile).filter(|pipe| pipe.id == id && pipe.tree == tree).cloned()
    }

    /// Takes out the open of a pipe.
    pub(super) fn take_pipe(&self, id: FileId) -> Option<Arc<PipeOpen>> {
        lock(&self.held).pipes.remove(&id.volatile)
    }

    /// Are there opens of files?
    pub(super) fn holds_opens(&self) -> bool {
        !lock(&self.held).files.is_empty()
    }

    /// The open of a file with this number in the tables that all protocols share, also if it is
    /// about to be closed.
    pub(super) fn numbered(&self, open: OpenId) -> Option<Arc<FileOpen>> {
        let held = lock(&self.held);
        held.files.get(&FileOpen::id_of(open).volatile).map(|kept| Arc::clone(&kept.open))
    }

    /// The tree connects, by volume (`None` for `IPC$`), and the number of opens of files.
    pub(super) fn holds(&self) -> (Vec<Option<VolumeId>>, usize) {
        let held = lock(&self.held);
        let volume = |tree: &Arc<Tree>| match &**tree {
            Tree::Disk(disk) => Some(disk.volume()),
            Tree::Pipes => None,
        };
        (held.trees.values().map(volume).collect(), held.files.len())
    }
}
