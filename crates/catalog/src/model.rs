//! The catalogue's content, as immutable values: pools, volumes, export rules, and the snapshot of
//! them all that the data plane works from.

use crate::admission::{self, Filesystem};
use crate::calibrations::Calibration;
use crate::claims::Claims;
use crate::devices::Devices;
use crate::directory;
use crate::error::{CatalogError, Result};
use crate::network::IpNetwork;
use crate::terms::Terms;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use weir_core::{Credentials, Groups, PoolId, VolumeId};
use weir_qos::admission::Admission;
use weir_qos::contract::{self, Demand, Model};
use weir_qos::shares::Share;
use weir_qos::{Ceiling, Limits};

/// A service level: the rate for each provisioned TiB of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Unique among levels.
    pub name: String,
    /// The rate, for the arithmetic of contracts.
    pub contract: contract::Level,
    /// Whether the level is built in and cannot be changed.
    pub published: bool,
}

/// A capacity pool: a size and a contract model for a set of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Never reused after a delete.
    pub id: PoolId,
    /// Unique among pools.
    pub name: String,
    /// Service level: the rate per provisioned TiB.
    pub level: Arc<Level>,
    /// Provisioned size, bytes.
    pub size_bytes: u64,
    /// The model by which volumes get their limits, with the figures that it needs.
    pub model: Model,
    /// Absolute path of the directory that holds the pool's volumes.
    pub directory: PathBuf,
}

/// A volume and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Never reused after a delete.
    pub id: VolumeId,
    /// Unique among all volumes; the export path is `/NAME`.
    pub name: String,
    /// Its pool.
    pub pool: PoolId,
    /// Absolute path of the directory that holds `root`, `snap` and `meta`.
    pub directory: PathBuf,
    /// Provisioned size, bytes.
    pub quota_bytes: u64,
    /// Its settings beside quota and pool.
    pub terms: Terms,
    /// The share of the budget, in a shared pool.
    pub share: Option<Share>,
    /// The limits by its contract, reduced to its ceiling.
    pub limits: Limits,
    /// The rules for clients that may mount it, most specific network first: the first match
    /// decides.
    pub exports: Vec<ExportRule>,
}

impl Pool {
    /// The pool for the arithmetic of contracts.
    #[must_use]
    pub const fn contract(&self) -> contract::Pool {
        contract::Pool { size_bytes: self.size_bytes, model: self.model }
    }

    /// The part of the pool's budget that `volume` has, regardless of its ceiling; in a shared
    /// pool, its guaranteed minimum.
    #[must_use]
    pub fn gives(&self, volume: &Volume) -> Limits {
        self.contract().given(volume.demand())
    }

    /// The limits that the volumes of a shared pool share.
    #[must_use]
    pub fn shared_budget(&self) -> Option<Limits> {
        match self.model {
            Model::Shared(_) => self.contract().budget(),
            _ => None,
        }
    }
}

impl Volume {
    /// The volume for the arithmetic of contracts.
    #[must_use]
    pub const fn demand(&self) -> Demand {
        self.terms.demand(self.quota_bytes)
    }

    /// The ceiling of each file, if there is one.
    #[must_use]
    pub fn limits_of_files(&self) -> Option<Ceiling> {
        Some(self.terms.file_ceiling).filter(|ceiling| *ceiling != Ceiling::default())
    }

    /// The rule for a client at `addr`; no rule, no access.
    #[must_use]
    pub fn rule_for(&self, addr: IpAddr) -> Option<&ExportRule> {
        self.exports.iter().find(|rule| rule.network.contains(addr))
    }
}

/// The rights of clients of one network to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRule {
    /// The clients.
    pub network: IpNetwork,
    /// Whether they may write.
    pub access: Access,
    /// The callers whose identity is replaced by the anonymous one.
    pub squash: Squash,
    /// The anonymous user.
    pub anon_uid: u32,
    /// The anonymous group.
    pub anon_gid: u32,
}

/// The customary anonymous user and group (`nobody`, 16-bit −2).
pub const ANONYMOUS_ID: u32 = 65534;

impl ExportRule {
    /// Read and write for everyone in `network`, without squashing.
    #[must_use]
    pub const fn open(network: IpNetwork) -> Self {
        Self {
            network,
            access: Access::ReadWrite,
            squash: Squash::None,
            anon_uid: ANONYMOUS_ID,
            anon_gid: ANONYMOUS_ID,
        }
    }

    /// The rules of a new volume: this machine alone, unsquashed, so that it can be mounted at
    /// once on the server, and nowhere else.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        vec![Self::open(IpNetwork::loopback_v6()), Self::open(IpNetwork::loopback_v4())]
    }

    /// The identity for a client's `cred`. Root squash replaces user 0 and every group
    /// 0, as the Linux server does.
    #[must_use]
    pub fn identity(&self, cred: &Credentials) -> Credentials {
        let user = |uid| if uid == 0 { self.anon_uid } else { uid };
        let group = |gid| if gid == 0 { self.anon_gid } else { gid };
        match self.squash {
            Squash::None => cred.clone(),
            Squash::All => Credentials::new(self.anon_uid, self.anon_gid),
            Squash::Root => {
                let groups = cred.groups();
                let groups = if groups.contains(0) {
                    let squashed: Vec<u32> = groups.as_slice().iter().copied().map(group).collect();
                    Groups::new(&squashed)
                } else {
                    groups.clone()
                };
                Credentials::new(user(cred.uid), group(cred.gid)).with(groups)
            }
        }
    }

    /// The anonymous identity of this rule, for a caller who sent none (AUTH_NONE).
    #[must_use]
    pub fn anonymous(&self) -> Credentials {
        Credentials::new(self.anon_uid, self.anon_gid)
    }
}

/// Whether clients may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every change is answered with a read-only error.
    ReadOnly,
    /// Changes that modes allow are made.
    ReadWrite,
}

/// The callers whose identity is replaced by the anonymous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Nobody's.
    None,
    /// The superuser's.
    Root,
    /// Everybody's.
    All,
}

/// A word that is none of those a field knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a valid {field}: use {known}")]
pub struct UnknownWord {
    /// The field that the word is for.
    pub field: &'static str,
    /// The word.
    pub word: String,
    /// The words it knows.
    pub known: &'static str,
}

macro_rules! words {
    ($type:ident, $field:literal, $known:literal, $($word:literal => $variant:ident),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;
            fn from_str(word: &str) -> std::result::Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord {
                        field: $field,
                        word: word.chars().take(64).collect(),
                        known: $known,
                    }),
                }
            }
        }
    };
}

words!(Access, "access", "ro or rw", "ro" => ReadOnly, "rw" => ReadWrite);
words!(Squash, "squash", "none, root or all", "none" => None, "root" => Root, "all" => All);

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
    calibrations: Vec<Arc<Calibration>>,
    filesystems: Vec<Filesystem>,
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
        Self {
            generation,
            instance,
            claims: Claims::default(),
            levels,
            pool_names: pools.iter().map(|pool| (pool.name.clone(), pool.id)).collect(),
            pools: pools.into_iter().map(|pool| (pool.id, Arc::new(pool))).collect(),
            volumes: by_name.iter().map(|volume| (volume.id, Arc::clone(volume))).collect(),
            by_name,
            calibrations: Vec::new(),
            filesystems: Vec::new(),
        }
    }

    /// The snapshot with `found` as the volume `id`, or without it.
    pub(crate) fn with_volume(&self, generation: u64, id: VolumeId, found: Option<Volume>) -> Self {
        let mut new = Self { generation, ..self.clone() };
        if let Some(old) = new.volumes.remove(&id)
            && let Ok(at) = new.place_of(&old.name)
        {
            new.by_name.remove(at);
        }
        if let Some(volume) = found.map(Arc::new)
            && let Err(at) = new.place_of(&volume.name)
        {
            new.by_name.insert(at, Arc::clone(&volume));
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

    /// The snapshot with the file systems that its pools and calibrations are on, by `admission`.
    pub(crate) fn placed(mut self, devices: &Devices, admission: &Admission) -> Self {
        self.filesystems = admission::filesystems(&self, devices, admission);
        self
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

    /// Checks that the directory of `pool` exists and has the mark of this pool.
    pub(crate) fn check_pool(&self, pool: &Pool) -> Result<()> {
        directory::check_claim(pool, &self.instance)
    }

    /// Checks that the directory of this pool exists, has the mark of this pool and is not used by
    /// another server. Call this before the pool's volumes are opened, and [`Snapshot::check_tree`]
    /// for each of them, so that no other files are served in their place. Locks the pool against
    /// other processes for as long as the catalogue is open.
    ///
    /// # Errors
    /// `PoolBusy`, `PoolAway`, `PoolForeign`, `Io`.
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
    /// `PoolAway`, `PoolForeign`, `VolumeAway`, `Io`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(network: &str, squash: Squash) -> ExportRule {
        ExportRule { squash, ..ExportRule::open(network.parse().unwrap()) }
    }

    #[test]
    fn root_squash_replaces_the_superuser_and_its_group_everywhere() {
        let squashed = rule("::/0", Squash::Root).identity(&Credentials::ROOT.with_groups(&[0, 7]));
        let expected = Credentials::new(ANONYMOUS_ID, ANONYMOUS_ID).with_groups(&[ANONYMOUS_ID, 7]);
        assert_eq!(squashed, expected);
        let user = Credentials::new(5, 6).with_groups(&[7]);
        assert_eq!(rule("::/0", Squash::Root).identity(&user), user);
    }

    #[test]
    fn all_squash_replaces_everyone_and_none_nobody() {
        let user = Credentials::new(5, 6).with_groups(&[7]);
        let rule_all = rule("::/0", Squash::All);
        assert_eq!(rule_all.identity(&user), rule_all.anonymous());
        assert_eq!(rule("::/0", Squash::None).identity(&Credentials::ROOT), Credentials::ROOT);
    }

    #[test]
    fn words_read_back_what_they_print() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            assert_eq!(access.to_string().parse(), Ok(access));
        }
        for squash in [Squash::None, Squash::Root, Squash::All] {
            assert_eq!(squash.to_string().parse(), Ok(squash));
        }
        let error = "both".parse::<Squash>().unwrap_err();
        assert_eq!(error.to_string(), "\"both\" is not a valid squash: use none, root or all");
    }
}
