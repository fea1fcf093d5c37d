//! State that all workers share: the volumes being served, the clock, the keys and the counters.
//! The engine implements [`Plane`], the only door through which the control plane reaches the data
//! plane.

mod clients;
mod counters;
pub(crate) mod credits;
mod histograms;
mod homes;
#[cfg(test)]
mod hostile;
mod idle;
mod lock_ids;
mod mounts;
mod opening;
mod permit;
mod served;
mod stats;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod volume;
mod workers;

pub(crate) use counters::Counters;
pub(crate) use homes::Homes;
pub(crate) use idle::release_idle_volumes;
pub(crate) use mounts::Mounts;
pub(crate) use opening::at_once;
pub(crate) use permit::{Asked, Ended, Permit, Settled};
pub(crate) use served::{ServedSet, View};
pub(crate) use stats::is_judged;
pub(crate) use volume::{Served, ServedVolume};
pub(crate) use workers::Workers;

use crate::admission::{Admission, Eviction};
use crate::ceph::CephSessions;
use crate::clock::SystemClock;
use crate::inbox::Inbox;
use crate::right::ReplyRight;
use crate::session::rpc::nlm::Nlm;
use crate::session::smb::SmbServer;
use crate::session::{Locks, Protocol, Session};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, lock, mpsc};
use crate::worker::{GateEntry, Message, Silent};
use arc_swap::ArcSwap;
use credits::{AHEAD, CreditLock, CreditStore, Credits, Left};
use homes::Leaving;
use lock_ids::LockIds;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_catalog::{Condemned, Snapshot, Volume};
use weir_cluster::GroupId;
use weir_control::logins::Logins;
use weir_control::plane::{
    Plane, PlaneError, Step, Top, TopChange, Totals, VolumeConnection, VolumeHistograms,
    VolumeLive, VolumeReading, VolumeUses,
};
use weir_core::{Attr, Clock, FsResult, HandleKey, Origin, PoolId, SetAttr, VolumeId};
use weir_drc::Clients;
use weir_gate::{Connections, ParkedTotal, Peer, PoolGate, Use};
use weir_process::GroupDirectory;
use weir_qos::{Burst, BytesPerSecond, Limits};
use weir_rpcbind::Portmap;
use weir_store::{StoreControl, VolumeStore};

/// The settings with which volumes are opened, the same for all.
pub(crate) struct StoreSettings {
    pub(crate) pool: Arc<weir_store::Pool>,
    pub(crate) namespace_durability: weir_store::Durability,
    /// Of volumes that have no setting of their own.
    pub(crate) metadata_cache: bool,
    pub(crate) cached_objects_max: usize,
    /// The descriptors of all volumes together.
    pub(crate) descriptors: Arc<weir_store::Descriptors>,
    /// The names of those that have histograms.
    pub(crate) histograms: BTreeSet<String>,
}

impl StoreSettings {
    /// Are names and attributes of this volume cached?
    fn caches_metadata_of(&self, config: &Volume) -> bool {
        config.terms.metadata_cache.unwrap_or(self.metadata_cache)
    }
}

/// The configured bounds on resources that peers may make the server hold.
pub(crate) struct Bounds {
    pub(crate) parked_bytes_max: u64,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_client_max: usize,
    pub(crate) keepalive: Duration,
}

/// The services that the engine uses.
pub(crate) struct Environment {
    pub(crate) clock: SystemClock,
    /// The directory of callers' groups, if they are looked up.
    pub(crate) groups: Option<GroupDirectory>,
    pub(crate) portmap: Portmap,
    /// The locks of all volumes.
    pub(crate) locks: Arc<Locks>,
    /// The lock manager, where there is one.
    pub(crate) nlm: Option<Arc<Nlm>>,
    /// The state that SMB sessions share.
    pub(crate) smb: Arc<SmbServer>,
    /// Whether replies may leave.
    pub(crate) right: ReplyRight,
    /// Which of the catalogue's volumes are served.
    pub(crate) homes: Homes,
    /// The sessions with CephFS, if there are any.
    pub(crate) ceph: Option<CephSessions>,
    /// The credits of volumes that an earlier process saved, and their store.
    pub(crate) credits: Credits,
    pub(crate) credit_store: CreditStore,
}

/// The state by which a snapshot is applied.
struct Applied {
    /// The pools whose volumes share a budget.
    pools: BTreeMap<PoolId, Arc<PoolGate<GateEntry>>>,
}

/// The shared part of the data plane.
pub(crate) struct Engine {
    pub(crate) clock: SystemClock,
    pub(crate) keys: HandleKey,
    pub(crate) counters: Counters,
    /// The open connections.
    pub(crate) connections: Connections,
    pub(crate) mounts: Mounts,
    pub(crate) portmap: Portmap,
    pub(crate) clients: Clients,
    pub(crate) groups: Option<GroupDirectory>,
    /// The locks of all volumes.
    pub(crate) locks: Arc<Locks>,
    /// The lock manager, where there is one.
    pub(crate) nlm: Option<Arc<Nlm>>,
    /// The state that SMB sessions share.
    pub(crate) smb: Arc<SmbServer>,
    /// Whether replies may leave.
    pub(crate) right: ReplyRight,
    pub(crate) admission: Admission,
    pub(crate) credit_store: CreditStore,
    /// The sessions with CephFS, if there are any.
    pub(crate) ceph: Option<CephSessions>,
    /// Silence after which a peer is asked whether it is still there.
    pub(crate) keepalive: Duration,
    lock_ids: LockIds,
    verifier: [u8; 8],
    settings: StoreSettings,
    parked: Arc<ParkedTotal>,
    workers: Arc<Workers>,
    served: Arc<ArcSwap<ServedSet>>,
    /// Held while a snapshot is applied.
    applied: Mutex<Applied>,
    /// The volumes that are served. Changed while `applied` is held, and never held for long.
    homes: Mutex<Homes>,
    /// The volumes that were released and are not closed yet. The lock of a group is held while its
    /// volumes are closed.
    leaving: Mutex<BTreeMap<GroupId, Arc<Mutex<Leaving>>>>,
    /// The server has stopped: no volume is opened. Set while `applied` is held.
    closed: AtomicBool,
    serial: AtomicU64,
    unfinished: AtomicBool,
    /// The credits that an earlier server left to volumes that are not open yet.
    credits: Mutex<Credits>,
}

impl Engine {
    /// An engine that serves nothing yet, to workers behind `inboxes`.
    pub(crate) fn new(
        keys: HandleKey,
        verifier: [u8; 8],
        settings: StoreSettings,
        bounds: &Bounds,
        inboxes: &[Arc<Inbox<Message>>],
        Environment {
            clock,
            groups,
            portmap,
            locks,
            nlm,
            smb,
            right,
            homes,
            ceph,
            credits,
            credit_store,
        }: Environment,
    ) -> Self {
        // The seed is the same in the next process, which must recognize calls that are sent again.
        let seed = keys.derive("duplicate request cache");
        Self {
            lock_ids: LockIds::new(&keys, verifier),
            clock,
            keys,
            counters: Counters::default(),
            connections: Connections::default(),
            mounts: Mounts::default(),
            portmap,
            clients: Clients::new(seed),
            groups,
            locks,
            nlm,
            smb,
            right,
            admission: Admission::new(bounds.connections_max, bounds.connections_per_client_max),
            credit_store,
            ceph,
            keepalive: bounds.keepalive,
            verifier,
            settings,
            parked: Arc::new(ParkedTotal::new(bounds.parked_bytes_max)),
            workers: Arc::new(Workers::new(inboxes, clock)),
            served: Arc::default(),
            applied: Mutex::new(Applied { pools: BTreeMap::new() }),
            homes: Mutex::new(homes),
            leaving: Mutex::default(),
            closed: AtomicBool::new(false),
            serial: AtomicU64::new(0),
            unfinished: AtomicBool::new(false),
            credits: Mutex::new(credits),
        }
    }

    /// A worker's own cheap way to the volumes being served.
    pub(crate) fn view(&self) -> View {
        View::new(Arc::clone(&self.served))
    }

    /// Sends `message` to a worker.
    pub(crate) fn post(&self, worker: usize, message: Message) {
        self.workers.post(worker, message);
    }

    /// A number for a new connection, unlike that of any other of the last four billion.
    pub(crate) fn connection_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed) & u64::from(u32::MAX)
    }

    /// Gives a new connection of `protocol`, which was admitted, to a worker.
    pub(crate) fn adopt(&self, socket: TcpStream, peer: SocketAddr, protocol: Protocol) {
        if let Some(worker) = self.workers.place(Origin::of(peer.ip())) {
            self.counters.accepted();
            let session = Session::new(protocol, self, peer);
            self.post(worker, Message::Connection(socket, peer, session));
        }
    }

    /// The number of workers.
    pub(crate) fn worker_count(&self) -> usize {
        self.workers.count()
    }

    /// Has one idle connection closed.
    pub(crate) fn evict(&self, eviction: &Arc<Eviction>) {
        self.workers.post_all(|| Message::Evict(Arc::clone(eviction)));
    }

    /// A worker closed one of its connections, from `peer`.
    pub(crate) fn connection_gone(&self, worker: usize, peer: IpAddr) {
        self.admission.leave(peer);
        self.workers.connection_gone(worker, Origin::of(peer));
    }

    /// Tells all workers to finish what is in flight, within `grace`, and leave.
    pub(crate) fn drain(&self, grace: Duration) {
        self.workers.post_all(|| Message::Drain(grace));
    }

    /// Makes these connections silent, and no others.
    pub(crate) fn silence(&self, silent: Silent) {
        let silent = Arc::new(silent);
        self.workers.post_all(|| Message::Silence(Arc::clone(&silent)));
    }

    /// Asks every worker, and the lock manager, for a sign of life: the channel ends when all have
    /// given theirs.
    pub(crate) fn roll_call(&self) -> mpsc::Receiver<()> {
        let (absent, all_there) = mpsc::channel(1);
        self.workers.post_all(|| Message::RollCall(absent.clone()));
        if let Some(nlm) = &self.nlm {
            nlm.roll_call(absent);
        }
        all_there
    }

    /// A worker leaves although operations are still under way.
    pub(crate) fn left_unfinished(&self) {
        self.unfinished.store(true, Ordering::Relaxed);
    }

    /// Syncs and closes every volume, as the last act, also those that leave. Where operations are
    /// still under way the volumes are only synced: their usage is not known, and is counted anew
    /// at the next start. No volume is opened from now on.
    pub(crate) fn close_volumes(&self) {
        let finished = !self.unfinished.load(Ordering::Relaxed);
        // Volumes that are being opened or released are among those below after that.
        let served = {
            let _applied = lock(&self.applied);
            self.closed.store(true, Ordering::Relaxed);
            self.served.load_full()
        };
        let volumes: Vec<&ServedVolume> = served.all().map(|served| &*served.volume).collect();
        self.close(&volumes, if finished { VolumeStore::close_all } else { VolumeStore::sync_all });
        self.close_leaving(finished);
    }

    /// The credits that the volumes have left, and would have left after `ahead` in which they
    /// spent them at full speed, by the limits in force and by those of the catalogue. Those of
    /// volumes that could not be opened are as they were.
    pub(crate) fn credits(&self, ahead: Duration) -> Credits {
        let now = self.clock.now();
        let mut left = lock(&self.credits).clone();
        for Served { volume, config, .. } in self.served.load().all() {
            let bursts = [volume.gate.limits(), config.limits]
                .map(|limits| limits.burst.map(|burst| (limits.iops.unwrap_or_default(), burst)));
            let Some(mut credits) = volume.gate.credits(now) else { continue };
            let mut faster = 0;
            for (iops, Burst { base, credits: most }) in bursts.into_iter().flatten() {
                faster = faster.max(iops.0.saturating_sub(base.0));
                credits = credits.min(most);
            }
            let spent = faster.saturating_mul(ahead.as_secs());
            left.insert(config.id, credits.saturating_sub(spent));
        }
        left
    }

    /// The credits to save, after `ahead`. None while another server may have the volumes.
    fn left(&self, ahead: Duration) -> Option<Left> {
        let mut credits = self.credits(ahead);
        match &self.right {
            ReplyRight::Always => Some(Left { credits, of: None }),
            ReplyRight::Until(_) => self.right.allows().then(|| {
                let of: BTreeSet<_> = self.served.load().all().map(|one| one.config.id).collect();
                credits.retain(|id, _| of.contains(id));
                Left { credits, of: Some(of) }
            }),
        }
    }

    /// If credits will be spent by other limits, keeps the credits left by those too. The limits
    /// may come into force until the returned value is dropped.
    fn save_before_change(&self, changed: &[&Served]) -> Option<CreditLock<'_>> {
        let now = self.clock.now();
        let other = |Served { volume, config, .. }: &&Served| {
            let old = volume.gate.limits();
            volume.gate.credits(now).is_some()
                && (old.iops, old.burst) != (config.limits.iops, config.limits.burst)
        };
        changed.iter().any(other).then(|| {
            let mut credits = self.credit_store.lock();
            if let Some(left) = self.left(AHEAD) {
                credits.save(left);
            }
            credits
        })
    }

    /// The volumes of `snapshot` that have their home here, of which those that are new since `old`
    /// are opened, and the first failure.
    fn follow(
        &self,
        homes: &Homes,
        snapshot: &Arc<Snapshot>,
        old: &ServedSet,
    ) -> (ServedSet, Option<PlaneError>) {
        let mut new = ServedSet::new(Arc::clone(snapshot), matches!(homes, Homes::Of(_)));
        let mut failed = None;
        let mut missing = Vec::new();
        for config in snapshot.volumes().filter(|config| homes.has(config)) {
            match old.by_id(config.id) {
                Some(served) => {
                    self.follow_place(snapshot, &served.config, config);
                    new.insert(Served { config: Arc::clone(config), ..served.clone() });
                }
                None => missing.push(config),
            }
        }
        for opened in self.open_all(snapshot, &missing) {
            match opened {
                Ok(served) => {
                    new.insert(served);
                }
                Err(error) => {
                    tracing::error!(%error, "a volume is not served");
                    failed.get_or_insert(error);
                }
            }
        }
        (new, failed)
    }

    /// Puts a volume's limits and quota in force, and lets its waiters go by them.
    fn change(&self, Served { volume, config, .. }: &Served) {
        volume.store.set_quota_bytes(config.quota_bytes);
        volume.store.set_metadata_cache(self.settings.caches_metadata_of(config));
        let (gate, file_ceiling) = (&volume.gate, config.limits_of_files());
        let changes = gate.limits() != config.limits || gate.file_ceiling() != file_ceiling;
        if gate.limits() != config.limits {
            gate.set_limits(config.limits, self.clock.now());
        }
        if gate.file_ceiling() != file_ceiling {
            gate.set_file_ceiling(file_ceiling, self.clock.now());
        }
        if changes {
            self.workers.poll(gate);
        }
    }

    /// Has the volumes of shared pools share what `snapshot` says, and no others.
    fn share(
        &self,
        snapshot: &Snapshot,
        changed: &[&Served],
        pools: &mut BTreeMap<PoolId, Arc<PoolGate<GateEntry>>>,
    ) {
        let now = self.clock.now();
        let shared = |id: PoolId| snapshot.pool(id).and_then(|pool| pool.shared_budget());
        pools.retain(|id, _| shared(*id).is_some());
        for pool in snapshot.pools() {
            let Some(budget) = pool.shared_budget() else { continue };
            match pools.get(&pool.id) {
                Some(gate) => gate.set_budget(budget, now),
                None => drop(pools.insert(pool.id, Arc::new(PoolGate::new(budget)))),
            }
        }
        for Served { volume, config, .. } in changed {
            let left = volume.gate.set_share(pools.get(&config.pool).zip(config.share), now);
            if left {
                self.workers.poll(&volume.gate);
            }
        }
    }

    /// Puts `snapshot` in force.
    fn apply_to(&self, applied: &mut Applied, snapshot: &Arc<Snapshot>) -> Result<(), PlaneError> {
        let old = self.served.load_full();
        let homes = lock(&self.homes).clone();
        let (new, failed) = self.follow(&homes, snapshot, &old);
        let new = Arc::new(new);
        // A pool that changes makes all its volumes anew, so a volume that is the same is in the
        // same pool.
        let changed: Vec<_> = new.changed_since(&old).collect();
        self.share(snapshot, &changed, &mut applied.pools);
        self.served.store(Arc::clone(&new));
        let credits = self.save_before_change(&changed);
        for served in &changed {
            self.change(served);
        }
        drop(credits);
        for gone in old.all().filter(|served| new.by_id(served.config.id).is_none()) {
            self.retire(&gone.volume);
        }
        for (worker, gate) in applied.pools.values().filter_map(|pool| pool.door()) {
            self.post(worker, Message::Poll(gate));
        }
        failed.map_or(Ok(()), Err)
    }

    /// Lets everything that still waits at the gate of a volume that is served no more run into its
    /// closed store.
    fn retire(&self, volume: &Arc<ServedVolume>) {
        self.locks.volume_gone(volume.id);
        if let Some(nlm) = &self.nlm {
            nlm.note_released();
        }
        volume.gate.set_share(None, self.clock.now());
        volume.gate.set_limits(Limits::of(BytesPerSecond(u64::MAX)), self.clock.now());
        volume.gate.set_file_ceiling(None, self.clock.now());
        self.workers.poll(&volume.gate);
    }
}

impl Plane for Engine {
    fn apply(&self, snapshot: Arc<Snapshot>) -> Result<(), PlaneError> {
        let mut applied = lock(&self.applied);
        // Of several gateways, one that arrives at a group has applied a newer one already.
        let is_old = snapshot.generation < self.served.load().snapshot().generation;
        if is_old && matches!(*lock(&self.homes), Homes::Of(_)) {
            return Ok(());
        }
        self.apply_to(&mut applied, &snapshot)
    }

    fn is_home_of(&self, volume: &Volume) -> bool {
        lock(&self.homes).has(volume)
    }

    fn volume_live(&self, id: VolumeId) -> Option<VolumeLive> {
        let served = self.served.load();
        let volume = &served.by_id(id)?.volume;
        let (limits, usage) = (volume.gate.limits(), volume.store.usage());
        let offered_bytes = volume.read(self.clock.now()).map_or(0, |r| r.offered.bytes);
        Some(VolumeLive {
            offered_bytes,
            waiting: volume.gate.waiting() as u64,
            parked_bytes: volume.gate.parked(),
            limit_bytes_per_second: limits.rate.0,
            limit_iops: limits.iops.map(|iops| iops.0),
            credits: volume.gate.credits(self.clock.now()),
            used_bytes: usage.bytes,
            used_exact: usage.exact,
            counting: usage.counting,
            counted: usage.counted,
            ..volume.stats.sum()
        })
    }

    fn volume_histograms(&self, id: VolumeId) -> Option<Box<VolumeHistograms>> {
        self.served.load().by_id(id)?.volume.stats.histograms()
    }

    fn readings(&self, each: &mut dyn FnMut(VolumeReading)) {
        for Served { volume, .. } in self.served.load().all() {
            let Some(reading) = volume.read(self.clock.now()) else { continue };
            let (entitled, answered) = (volume.gate.entitled(), volume.stats.operations());
            each(VolumeReading { id: volume.id, entitled, reading, answered });
        }
    }

    fn volume_uses(&self, id: VolumeId) -> Option<VolumeUses> {
        let served = self.served.load();
        let stats = &served.by_id(id)?.volume.stats;
        let now = self.clock.now();
        let open = self.connections.open_of(stats.uses().map(|one| (one.token, one)));
        let connection = |(Peer { address, protocol }, Use { token, operations, bytes })| {
            VolumeConnection { connection: token, address, protocol, operations, bytes }
        };
        let connections = open.into_iter().map(connection).collect();
        let VolumeLive { operations, read_bytes, write_bytes, latency_nanos, .. } = stats.sum();
        let (bytes, file) = (read_bytes + write_bytes, stats.file(now));
        Some(VolumeUses { at: now, operations, bytes, latency_nanos, connections, file })
    }

    fn rescan(&self, id: VolumeId) -> Option<bool> {
        let served = self.served.load_full();
        Some(served.by_id(id)?.volume.store.rescan())
    }

    fn holds_volumes(&self, pool: &weir_catalog::Pool) -> io::Result<bool> {
        match self.ceph.as_ref().filter(|_| pool.ceph.is_some()) {
            Some(ceph) => ceph.holds_volumes(pool),
            None => Ok(false),
        }
    }

    fn remove_tree(&self, condemned: &Condemned, leaving: &dyn Fn() -> bool) -> io::Result<bool> {
        let Some(ceph) = &self.ceph else { return Ok(false) };
        let snapshot = Arc::clone(self.served.load().snapshot());
        // The home removes the tree, when it serves the volume no more. Without a home, anyone.
        if let Some(group) = condemned.address.filter(|group| snapshot.address(*group).is_some())
            && !lock(&self.homes).has_group(group)
        {
            return Ok(false);
        }
        ceph.remove(&snapshot, condemned, leaving)
    }

    fn top(&self, id: VolumeId) -> Option<Top> {
        let served = self.served.load();
        let attr = served.by_id(id)?.volume.store.root_attr();
        let failed = |error| tracing::error!(volume = %id, %error, "cannot read the attributes of the top directory");
        let Attr { uid, gid, mode, .. } = attr.map_err(failed).ok()?;
        Some(Top { uid, gid, mode })
    }

    fn change_top(&self, id: VolumeId, change: TopChange) -> Step<'_, Option<FsResult<()>>> {
        Box::pin(async move {
            let served = self.served.load_full();
            let TopChange { uid, gid, mode } = change;
            let set = SetAttr { uid, gid, mode, ..SetAttr::default() };
            Some(served.by_id(id)?.volume.store.set_root_attr(&set).await)
        })
    }

    fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.smb.logins)
    }

    fn totals(&self) -> Totals {
        let (log_lines_dropped, log_lines_left_out) = weir_control::log::counters();
        Totals {
            log_lines_dropped,
            log_lines_left_out,
            connections: self.admission.connections() as u64,
            parked_bytes: self.parked.bytes(),
            locks: self.nlm.as_ref().map(|nlm| nlm.totals()).unwrap_or_default(),
            ..self.counters.read()
        }
    }
}
