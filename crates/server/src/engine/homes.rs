//! The volumes that this server serves: all of the catalogue, or as a gateway of a cluster those of
//! the groups that have it as their home; and the volumes that leave, until they are closed.
//!
//! Not here: which groups those are (`weir-cluster`), their addresses and their clients' locks
//! ([`crate::groups`]).

use super::credits::Credits;
use super::{Engine, Served, ServedVolume};
use crate::session::Waiter;
use crate::sync::{Arc, lock};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};
use weir_catalog::{Snapshot, Volume};
use weir_cluster::GroupId;
use weir_control::plane::PlaneError;
use weir_core::{Clock as _, FsResult, VolumeId};
use weir_state::VolumeLocks;
use weir_store::{StoreControl as _, VolumeStore};

/// Time between two looks whether requests still hold a volume that leaves.
const LOOK: Duration = Duration::from_millis(2);

/// Which of the catalogue's volumes are served.
#[derive(Clone, Debug)]
pub(crate) enum Homes {
    /// Every volume.
    All,
    /// The volumes of these groups.
    Of(BTreeSet<GroupId>),
}

impl Homes {
    /// Is the volume served here?
    pub(super) fn has(&self, config: &Volume) -> bool {
        match self {
            Self::All => true,
            Self::Of(_) => config.address.is_some_and(|group| self.has_group(group)),
        }
    }

    /// Are the volumes of `group` served here?
    pub(super) fn has_group(&self, group: GroupId) -> bool {
        match self {
            Self::All => true,
            Self::Of(groups) => groups.contains(&group),
        }
    }
}

/// The volumes of a group that were released and are not closed yet.
#[derive(Default)]
pub(super) struct Leaving {
    /// Requests may hold these.
    held: Vec<Arc<ServedVolume>>,
    /// Nothing else holds these.
    free: Vec<ServedVolume>,
}

impl Leaving {
    fn count(&self) -> usize {
        self.held.len() + self.free.len()
    }

    /// Finds the volumes that nothing else holds any more.
    fn part(&mut self) {
        for volume in std::mem::take(&mut self.held) {
            match Arc::try_unwrap(volume) {
                Ok(volume) => self.free.push(volume),
                Err(volume) => self.held.push(volume),
            }
        }
    }
}

impl Engine {
    /// Serves the volumes of `group` too. A volume that cannot be opened is not served; the next
    /// call tries again.
    ///
    /// # Errors
    /// The first volume of the group that is not served.
    pub(crate) fn adopt_group(&self, group: GroupId) -> Result<(), PlaneError> {
        let mut applied = lock(&self.applied);
        if let Homes::Of(groups) = &mut *lock(&self.homes) {
            groups.insert(group);
        }
        let snapshot = Arc::clone(self.served.load().snapshot());
        // Errors of other groups' volumes are not this one's.
        let _others = self.apply_to(&mut applied, &snapshot);
        let served = self.served.load();
        let missing = |config: &&Arc<Volume>| served.by_id(config.id).is_none();
        match volumes_of(served.snapshot(), group).find(missing) {
            None => Ok(()),
            Some(config) => Err(PlaneError::Volume {
                name: config.name.clone(),
                reason: "it could not be opened; the log says why".to_owned(),
            }),
        }
    }

    /// Serves the volumes of `group` no more: requests that come for them are dropped without a
    /// reply. Those that were open leave: [`Self::close_released`] closes them. Gives their locks,
    /// which are nobody's here from now on.
    pub(crate) fn release_group(&self, group: GroupId) -> BTreeMap<VolumeId, VolumeLocks<Waiter>> {
        let mut applied = lock(&self.applied);
        let old = self.served.load_full();
        let homes = {
            let mut homes = lock(&self.homes);
            if let Homes::Of(groups) = &mut *homes {
                groups.remove(&group);
            }
            homes.clone()
        };
        let leaving = old.all().filter(|one| !homes.has(&one.config)).map(|one| one.config.id);
        let now = self.clock.now();
        let locks = leaving.map(|id| (id, self.locks.tables().hand_over(now, id))).collect();
        let _others = self.apply_to(&mut applied, old.snapshot());
        let served = self.served.load();
        let gone = |one: &&Served| served.by_id(one.config.id).is_none();
        let gone: Vec<_> = old.all().filter(gone).map(|one| Arc::clone(&one.volume)).collect();
        if !gone.is_empty() {
            let leaving = Arc::clone(lock(&self.leaving).entry(group).or_default());
            lock(&leaving).held.extend(gone);
        }
        locks
    }

    /// Ends the tables of locks of those of `volumes` that are not served, with their grace
    /// periods. Gives the locks.
    pub(crate) fn release_unserved(
        &self,
        volumes: &BTreeSet<VolumeId>,
    ) -> BTreeMap<VolumeId, VolumeLocks<Waiter>> {
        // No volume is opened meanwhile.
        let _applied = lock(&self.applied);
        let served = self.served.load();
        let unserved = volumes.iter().filter(|id| served.by_id(**id).is_none());
        let now = self.clock.now();
        let release = |id: &VolumeId| {
            let locks = self.locks.tables().hand_over(now, *id);
            self.locks.volume_gone(*id);
            (*id, locks)
        };
        unserved.map(release).collect()
    }

    /// The number of volumes of `group` that were released and are not closed yet. Waits for a
    /// close that is under way.
    pub(crate) fn leaving(&self, group: GroupId) -> usize {
        let leaving = lock(&self.leaving).get(&group).map(Arc::clone);
        leaving.map_or(0, |leaving| lock(&leaving).count())
    }

    /// Closes the volumes of `group` that were released, once no request holds any of them. After
    /// `patience` those are closed that are free, and the number of the others is given.
    pub(crate) fn close_released(&self, group: GroupId, patience: Duration) -> usize {
        let Some(leaving) = lock(&self.leaving).get(&group).map(Arc::clone) else { return 0 };
        let began = Instant::now();
        loop {
            // Views that nobody loads would keep the volumes.
            let mut all_there = self.roll_call();
            let _ended = all_there.blocking_recv();
            let mut volumes = lock(&leaving);
            volumes.part();
            if volumes.held.is_empty() || began.elapsed() >= patience {
                // The lock is held meanwhile, so that a server that stops waits for the end.
                self.close(&std::mem::take(&mut volumes.free), VolumeStore::close_all);
                if volumes.held.is_empty() {
                    lock(&self.leaving).remove(&group);
                }
                return volumes.held.len();
            }
            drop(volumes);
            sleep(LOOK);
        }
    }

    /// Closes the volumes of all groups that were released, as the last act of a server. Where
    /// operations are under way they are only synced, and go on leaving.
    pub(super) fn close_leaving(&self, finished: bool) {
        let groups: Vec<_> = lock(&self.leaving).values().map(Arc::clone).collect();
        for leaving in groups {
            let mut volumes = lock(&leaving);
            let all = volumes.free.iter().chain(volumes.held.iter().map(|volume| &**volume));
            let all: Vec<_> = all.collect();
            if finished {
                self.close(&all, VolumeStore::close_all);
                *volumes = Leaving::default();
            } else {
                self.close(&all, VolumeStore::sync_all);
            }
        }
    }

    /// Syncs or closes `volumes`. Clients learn of a failure from the write verifier after the next
    /// opening, and write again.
    pub(super) fn close<V: Borrow<ServedVolume>>(
        &self,
        volumes: &[V],
        close: impl Fn(&[&VolumeStore]) -> Vec<FsResult<()>>,
    ) {
        let stores: Vec<_> = volumes.iter().map(|volume| &volume.borrow().store).collect();
        let served = self.served.load();
        for (volume, closed) in volumes.iter().zip(close(&stores)) {
            if let Err(error) = closed {
                let id = volume.borrow().id;
                let config = served.snapshot().volume(id);
                let volume = config.map_or_else(|| id.to_string(), |config| config.name.clone());
                tracing::error!(%volume, %error, "the last sync of a volume failed");
            }
        }
    }

    /// Volumes that are opened from now on have the credits that `left` says, if it says any.
    pub(crate) fn take_credits(&self, mut left: Credits, volumes: &[Arc<Volume>]) {
        left.retain(|id, _| volumes.iter().any(|config| config.id == *id));
        lock(&self.credits).extend(left);
    }

    /// The group's volumes in the snapshot that is served.
    pub(crate) fn volumes_of(&self, group: GroupId) -> Vec<Arc<Volume>> {
        volumes_of(self.served.load().snapshot(), group).map(Arc::clone).collect()
    }
}

fn volumes_of(snapshot: &Snapshot, group: GroupId) -> impl Iterator<Item = &Arc<Volume>> {
    snapshot.volumes().filter(move |config| config.address == Some(group))
}

#[cfg(test)]
mod tests {
    use super::super::testing::store;
    use super::*;
    use crate::serve::Server;
    use weir_catalog::{Catalog, Mode, NewPool, NewVolume};
    use weir_control::ServerConfig;
    use weir_control::plane::Plane as _;
    use weir_core::store::{CreateHow, Stability};
    use weir_core::testing::block_on;
    use weir_core::{Credentials, Name, SetAttr, Shared, Store as _};
    use weir_store::Usage;

    const GROUP: GroupId = GroupId(1);
    const BYTES: usize = 1 << 16;

    /// A server whose volume leaves as one of a group does, and has data that is not stable.
    struct Departure {
        server: Server,
        engine: Arc<Engine>,
        volume: Arc<ServedVolume>,
        directory: tempfile::TempDir,
    }

    fn create_volume(catalog: &Catalog, name: &str) {
        let (name, pool) = (name.to_owned(), "pool".to_owned());
        let volume = NewVolume { name, pool, quota_bytes: 1 << 40, ..NewVolume::default() };
        catalog.create_volume(&volume, Mode::Commit).unwrap();
    }

    impl Departure {
        fn begin() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let config = ServerConfig {
                data: directory.path().to_owned(),
                nfs: vec!["127.0.0.1:0".parse().unwrap()],
                api: vec![],
                ..ServerConfig::default()
            };
            let server = Server::start(&config).unwrap();
            let (name, level) = ("pool".to_owned(), "ultra".to_owned());
            let pool = NewPool { name, level, size_bytes: 1000 << 40, ..NewPool::default() };
            server.catalog().create_pool(&pool, Mode::Commit).unwrap();
            create_volume(server.catalog(), "v");
            server.plane().apply(server.catalog().snapshot()).unwrap();
            let engine = Arc::clone(server.engine());
            let served = engine.served.load_full();
            let volume = Arc::clone(&served.by_name("v").unwrap().volume);
            let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
            block_on(async {
                let (store, name) = (&volume.store, Name::new(b"f").unwrap());
                let made = store.create(&store.root(), name, &how, &Credentials::ROOT).await;
                let (file, data) = (made.unwrap().object, Shared::from(vec![1; BYTES]));
                store.write(&file, 0, data, Stability::Unstable).await.unwrap();
            });
            // The volume has no address, so it leaves with any group.
            *lock(&engine.homes) = Homes::Of(BTreeSet::from([GROUP]));
            drop(served);
            engine.release_group(GROUP);
            assert_eq!(engine.close_released(GROUP, Duration::ZERO), 1, "a request holds it");
            Self { server, engine, volume, directory }
        }
    }

    /// Was the volume closed in order? Otherwise its usage is not known, or was counted anew.
    fn was_closed(engine: Arc<Engine>, volume: Arc<ServedVolume>) -> bool {
        let snapshot = Arc::clone(engine.served.load().snapshot());
        drop((engine, volume));
        let Usage { bytes, exact, counted, .. } =
            store(&snapshot.volume_named("v").unwrap().directory).usage();
        exact && counted.is_none() && bytes >= BYTES as u64
    }

    #[test]
    fn a_stop_closes_volumes_that_were_released_and_are_not_closed_yet() {
        let Departure { server, engine, volume, directory: _directory } = Departure::begin();
        let leaving = Arc::clone(&engine);
        let waiting = std::thread::spawn(move || leaving.close_released(GROUP, Duration::MAX));
        server.stop().unwrap();
        assert_eq!(engine.leaving(GROUP), 0);
        assert_eq!(waiting.join().unwrap(), 0, "the group may go to its next home");
        assert!(was_closed(engine, volume));
    }

    #[test]
    fn a_stop_that_leaves_operations_under_way_lets_no_group_go() {
        let Departure { server, engine, volume, directory: _directory } = Departure::begin();
        engine.left_unfinished();
        server.stop().unwrap();
        assert_eq!(engine.close_released(GROUP, Duration::ZERO), 1);
        assert!(!was_closed(engine, volume));
    }

    /// A group that arrives applies a newer catalogue than the follower has.
    #[test]
    fn one_of_several_servers_does_not_go_back_to_an_older_catalogue() {
        let Departure { server, engine, directory: _directory, .. } = Departure::begin();
        let old = server.catalog().snapshot();
        create_volume(server.catalog(), "w");
        let new = server.catalog().snapshot();
        assert!(old.generation < new.generation);
        for snapshot in [&new, &old] {
            engine.apply(Arc::clone(snapshot)).unwrap();
            assert_eq!(engine.served.load().snapshot().generation, new.generation);
        }
        server.stop().unwrap();
    }

    #[test]
    fn a_server_that_has_stopped_opens_no_volume() {
        let Departure { server, engine, volume, directory: _directory } = Departure::begin();
        *lock(&engine.homes) = Homes::All;
        let catalog = Arc::clone(server.catalog());
        server.stop().unwrap();
        assert!(engine.apply(catalog.snapshot()).is_err());
        assert!(engine.served.load().all().next().is_none());
        assert!(was_closed(engine, volume));
    }
}
