//! The content of the catalogue at one moment, which the rest of the server reads without locks.

use crate::calibration::Calibration;
use crate::cephfs::Ceph;
use crate::claims::Claims;
use crate::directory;
use crate::error::{CatalogError, ClusterError, Result};
use crate::filesystem::Filesystem;
use crate::identity::{Group, Identities, User, folded};
use crate::members::{Address, Gateway};
use crate::model::{Level, Pool, Volume};
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_core::{PoolId, VolumeId};

/// The content of the catalogue at one moment. Immutable: a change creates a new one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Increased by one with every change, also across restarts.
    pub generation: u64,
    /// The random name of the data directory, in the marks of its pools.
    instance: String,
    claims: Claims,
    levels: Vec<Arc<Level>>,
    pools: BTreeMap<PoolId, Arc<Pool>>,
    volumes: BTreeMap<VolumeId, Arc<Volume>>,
    pool_names: HashMap<String, PoolId>,
    /// The volumes by name.
    by_name: Vec<Arc<Volume>>,
    /// The volumes with SMB, by folded name.
    shares: BTreeMap<String, Arc<Volume>>,
    identities: Arc<Identities>,
    domain: [u32; 3],
    calibrations: Vec<Arc<Calibration>>,
    filesystems: Vec<Filesystem>,
    /// The addresses of the cluster, by group.
    addresses: Arc<[Address]>,
    /// The gateways of the cluster, by number.
    gateways: Arc<[Gateway]>,
}

impl Snapshot {
    /// A snapshot of these levels, pools and volumes, in the data directory named `instance`.
    pub(crate) fn new(
        generation: u64,
        instance: String,
        levels: Vec<Arc<Level>>,
        pools: Vec<Pool>,
        volumes: Vec<Volume>,
    ) -> Self {
        let mut by_name: Vec<_> = volumes.into_iter().map(Arc::new).collect();
        by_name.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        let shared = by_name.iter().filter(|volume| volume.protocols.smb());
        Self {
            generation,
            shares: shared.map(|volume| (folded(&volume.name), Arc::clone(volume))).collect(),
            identities: Arc::default(),
            domain: domain_of(&instance),
            instance,
            claims: Claims::default(),
            levels,
            pool_names: pools.iter().map(|pool| (pool.name.clone(), pool.id)).collect(),
            pools: pools.into_iter().map(|pool| (pool.id, Arc::new(pool))).collect(),
            volumes: by_name.iter().map(|volume| (volume.id, Arc::clone(volume))).collect(),
            by_name,
            calibrations: Vec::new(),
            filesystems: Vec::new(),
            addresses: Arc::default(),
            gateways: Arc::default(),
        }
    }

    /// The snapshot with `found` as the volume `id`, or without it.
    pub(crate) fn with_volume(&self, generation: u64, id: VolumeId, found: Option<Volume>) -> Self {
        let mut new = Self { generation, ..self.clone() };
        if let Some(old) = new.volumes.remove(&id)
            && let Ok(at) = new.place_of(&old.name)
        {
            new.by_name.remove(at);
            new.shares.retain(|_, volume| volume.id != id);
        }
        if let Some(volume) = found.map(Arc::new)
            && let Err(at) = new.place_of(&volume.name)
        {
            new.by_name.insert(at, Arc::clone(&volume));
            if volume.protocols.smb() {
                new.shares.insert(folded(&volume.name), Arc::clone(&volume));
            }
            new.volumes.insert(volume.id, volume);
        }
        new
    }

    /// The index of a volume by its name, or of the place for it.
    fn place_of(&self, name: &str) -> std::result::Result<usize, usize> {
        self.by_name.binary_search_by(|volume| volume.name.as_str().cmp(name))
    }

    /// The snapshot with these calibrations.
    pub(crate) fn calibrated(self, calibrations: Vec<Arc<Calibration>>) -> Self {
        Self { calibrations, ..self }
    }

    /// The snapshot with these addresses and gateways of its cluster.
    pub(crate) fn clustered(self, addresses: Vec<Address>, gateways: Vec<Gateway>) -> Self {
        Self { addresses: addresses.into(), gateways: gateways.into(), ..self }
    }

    /// The addresses of the cluster, by group.
    pub(crate) fn address_list(&self) -> &[Address] {
        &self.addresses
    }

    /// The gateways of the cluster, by number.
    pub(crate) fn gateway_list(&self) -> &[Gateway] {
        &self.gateways
    }

    /// The snapshot with these users and groups.
    pub(crate) fn identified(self, generation: u64, identities: Identities) -> Self {
        Self { generation, identities: Arc::new(identities), ..self }
    }

    /// The snapshot with these file systems.
    pub(crate) fn with_filesystems(self, filesystems: Vec<Filesystem>) -> Self {
        Self { filesystems, ..self }
    }

    /// The measured capacities of file systems, by directory.
    pub fn calibrations(&self) -> impl Iterator<Item = &Arc<Calibration>> {
        self.calibrations.iter()
    }

    /// The calibration of this directory.
    #[must_use]
    pub fn calibration_of(&self, directory: &str) -> Option<&Arc<Calibration>> {
        self.calibrations().find(|one| one.directory.to_str() == Some(directory))
    }

    /// The file systems with pools on them, and those that were calibrated, by directory.
    #[must_use]
    pub fn filesystems(&self) -> &[Filesystem] {
        &self.filesystems
    }

    /// The file system that `pool` is on.
    #[must_use]
    pub fn filesystem_of(&self, pool: &Pool) -> Option<&Filesystem> {
        self.filesystems().iter().find(|there| there.pools.contains(&pool.id))
    }

    /// The snapshot of a catalogue that holds its pools with `claims`.
    pub(crate) fn held_with(self, claims: &Claims) -> Self {
        Self { claims: claims.clone(), ..self }
    }

    /// The level of this name.
    #[must_use]
    pub fn level_named(&self, name: &str) -> Option<&Arc<Level>> {
        self.levels().find(|level| level.name == name)
    }

    /// All levels: the published ones, slowest first, then the operator's own, by name.
    pub fn levels(&self) -> impl Iterator<Item = &Arc<Level>> {
        self.levels.iter()
    }

    /// The pools of one level, by id.
    pub fn pools_of(&self, level: &Level) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools().filter(|pool| pool.level.name == level.name)
    }

    /// The pool with this id.
    #[must_use]
    pub fn pool(&self, id: PoolId) -> Option<&Arc<Pool>> {
        self.pools.get(&id)
    }

    /// The pool of this name.
    #[must_use]
    pub fn pool_named(&self, name: &str) -> Option<&Arc<Pool>> {
        self.pool(*self.pool_names.get(name)?)
    }

    /// All pools, by id.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.values()
    }

    /// The volume with this id.
    #[must_use]
    pub fn volume(&self, id: VolumeId) -> Option<&Arc<Volume>> {
        self.volumes.get(&id)
    }

    /// The volume of this name.
    #[must_use]
    pub fn volume_named(&self, name: &str) -> Option<&Arc<Volume>> {
        self.by_name.get(self.place_of(name).ok()?)
    }

    /// All volumes, by id.
    pub fn volumes(&self) -> impl ExactSizeIterator<Item = &Arc<Volume>> {
        self.volumes.values()
    }

    /// The volumes of one pool, by id.
    pub fn volumes_of(&self, pool: PoolId) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes().filter(move |volume| volume.pool == pool)
    }

    /// The random name of the data directory, or of the cluster's catalogue: in the marks of its
    /// pools.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The directories in CephFS, other than `directory`, in which the tree of the volume `id` may
    /// be still if it moved from one pool to another. No other volume ever has this id.
    pub fn former_places(
        &self,
        ceph: &Ceph,
        id: VolumeId,
        directory: &Path,
    ) -> impl Iterator<Item = PathBuf> {
        let is_same = |pool: &&Arc<Pool>| pool.ceph.as_ref().is_some_and(|at| at.conf == ceph.conf);
        let places = self.pools().filter(is_same).map(move |pool| pool.place_of(id));
        places.filter(move |place| place != directory)
    }

    /// The volume whose share has this name, regardless of case; only volumes with SMB have one.
    #[must_use]
    pub fn share_named(&self, name: &str) -> Option<&Arc<Volume>> {
        self.shares.get(&folded(name))
    }

    /// The volumes with SMB, by name regardless of case.
    pub fn shares(&self) -> impl ExactSizeIterator<Item = &Arc<Volume>> {
        self.shares.values()
    }

    /// The three numbers of this catalogue's domain: its users and groups have the SIDs
    /// S-1-5-21-a-b-c-RID. They come from the random name of the data directory, and a restored
    /// backup has them too.
    #[must_use]
    pub const fn domain(&self) -> [u32; 3] {
        self.domain
    }

    /// All users, by RID.
    #[must_use]
    pub fn users(&self) -> &[Arc<User>] {
        self.identities.users()
    }

    /// The user of this name, regardless of case.
    #[must_use]
    pub fn user_named(&self, name: &str) -> Option<&Arc<User>> {
        self.identities.user_named(name)
    }

    /// The user with this uid.
    #[must_use]
    pub fn user_by_uid(&self, uid: u32) -> Option<&Arc<User>> {
        self.identities.user_by_uid(uid)
    }

    /// The user with this RID.
    #[must_use]
    pub fn user_by_rid(&self, rid: u32) -> Option<&Arc<User>> {
        self.identities.user_by_rid(rid)
    }

    /// All groups of users, by RID.
    #[must_use]
    pub fn groups(&self) -> &[Arc<Group>] {
        self.identities.groups()
    }

    /// The group of this name, regardless of case.
    #[must_use]
    pub fn group_named(&self, name: &str) -> Option<&Arc<Group>> {
        self.identities.group_named(name)
    }

    /// The group with this gid.
    #[must_use]
    pub fn group_by_gid(&self, gid: u32) -> Option<&Arc<Group>> {
        self.identities.group_by_gid(gid)
    }

    /// The group with this RID.
    #[must_use]
    pub fn group_by_rid(&self, rid: u32) -> Option<&Arc<Group>> {
        self.identities.group_by_rid(rid)
    }

    /// Checks that the directory of `pool` exists on this machine and has the mark of this pool.
    pub(crate) fn check_pool(&self, pool: &Pool) -> Result<()> {
        if pool.ceph.is_some() {
            return Err(ClusterError::PoolOnCeph { pool: pool.name.clone() }.into());
        }
        directory::check_claim(pool, &self.instance)
    }

    /// Checks that the directory of this pool, which is not on CephFS, exists, has the mark of this
    /// pool and is not used by another server. Call this before the pool's volumes are opened, and
    /// [`Snapshot::check_tree`] for each of them, so that no other files are served in their place.
    /// Locks the pool against other processes for as long as the catalogue is open.
    ///
    /// # Errors
    /// `PoolOnCeph`, `PoolBusy`, `PoolAway`, `PoolForeign`, `Io`.
    pub fn claim_pool(&self, id: PoolId) -> Result<()> {
        self.pool(id).map_or(Ok(()), |pool| self.check_pool(pool).and_then(|()| self.hold(pool)))
    }

    /// Locks `pool` against other processes for as long as the catalogue is open.
    pub(crate) fn hold(&self, pool: &Pool) -> Result<()> {
        self.claims.hold(&pool.directory)
    }

    /// Checks that `volume` is in the marked directory of its pool.
    ///
    /// # Errors
    /// `PoolOnCeph`, `PoolAway`, `PoolForeign`, `VolumeAway`, `Io`.
    pub fn check_place(&self, volume: &Volume) -> Result<()> {
        if let Some(pool) = self.pool(volume.pool) {
            self.check_pool(pool)?;
        }
        self.check_tree(volume)
    }

    /// Checks that the directory of `volume` exists, in a pool that was checked already.
    ///
    /// # Errors
    /// `VolumeAway`.
    pub fn check_tree(&self, volume: &Volume) -> Result<()> {
        if volume.directory.is_dir() {
            return Ok(());
        }
        let (volume, directory) = (volume.name.clone(), volume.directory.clone());
        Err(CatalogError::VolumeAway { volume, directory })
    }
}

/// The domain of the data directory called `instance`.
fn domain_of(instance: &str) -> [u32; 3] {
    let hash = digest(&SHA256, format!("weir domain {instance}").as_bytes());
    let mut domain = [0; 3];
    for (number, bytes) in domain.iter_mut().zip(hash.as_ref().as_chunks::<4>().0) {
        *number = u32::from_le_bytes(*bytes);
    }
    domain
}
