//! The open catalogue: one writer at a time, a transaction for each change, and the snapshot that
//! everyone else reads.

use crate::cephfs::Ceph;
use crate::claims::Claims;
use crate::cluster::{self, Link, Reach};
use crate::devices::{Devices, Seen};
use crate::directory::{self, Lock};
use crate::error::{CatalogError, ClusterError, Result};
use crate::idempotency::{self, IdempotencyKey};
use crate::limits::Minimums;
use crate::model::Volume;
use crate::overcommitment::Overcommitment;
use crate::sealer::Sealer;
use crate::snapshot::Snapshot;
use crate::tokens::Tokens;
use crate::{owner, placement, places, promises, rows, schema};
use arc_swap::ArcSwap;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use weir_core::VolumeId;
use weir_qos::admission::Admission;
use weir_qos::contract::Change;

/// The catalogue of one data directory, held against every other process until it is dropped.
pub struct Catalog {
    directory: PathBuf,
    instance: String,
    secret: [u8; 16],
    sealer: Arc<Sealer>,
    minimums: Minimums,
    admission: Admission,
    devices: Devices,
    claims: Claims,
    current: ArcSwap<Snapshot>,
    db: Mutex<Connection>,
    /// The gateways that it is shared with, if there are any.
    cluster: Option<Link>,
    /// The CephFS that this gateway serves, if it says so.
    ceph: Option<Ceph>,
    _lock: Lock,
}

/// How often a change is made again because another gateway was faster.
const ATTEMPTS: usize = 16;

/// The text omits the secret, so that no log contains it.
impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Whether a change is made or only checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Make the change.
    Commit,
    /// Make the change, and record that this request was carried out.
    Once(IdempotencyKey),
    /// Check the change and report its effect; nothing is stored.
    Preview,
}

impl Mode {
    /// Whether the change is made.
    #[must_use]
    pub const fn commits(self) -> bool {
        !matches!(self, Self::Preview)
    }
}

/// The options of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether it is made.
    pub mode: Mode,
    /// Whether it may commit more than the measured capacity of the hardware.
    pub overcommit: bool,
}

impl From<Mode> for Asked {
    fn from(mode: Mode) -> Self {
        Self { mode, overcommit: false }
    }
}

/// The part of a snapshot that a change makes obsolete. A debug build compares the new snapshot
/// with the whole database, so that a test finds a change that names too little.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touched {
    /// A pool, a level or a calibration, and so any volume.
    Everything,
    /// One volume with its export rules and share rules.
    Volume(VolumeId),
    /// Users, groups and memberships.
    Identities,
}

/// The outcome of a change that was made or checked.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The catalogue after the change.
    pub snapshot: Arc<Snapshot>,
    /// The volumes with a different limit, by id.
    pub changes: Vec<Change<VolumeId>>,
    /// The file systems that it commits beyond the allowed part of their capacity.
    pub overcommitted: Vec<Overcommitment>,
}

impl Catalog {
    /// Opens the catalogue of `directory` with the default minimums, and creates missing files.
    ///
    /// # Errors
    /// The errors of [`Catalog::open_with`].
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_with(directory, Minimums::default())
    }

    /// Opens the catalogue of `directory`, and creates missing files. Existing volumes smaller than
    /// `minimums` are not changed.
    ///
    /// # Errors
    /// `Locked` if another server has it; `NotDataDirectory`, `ForeignOwner`, `RestoreInterrupted`,
    /// `NewerFormat`, `BadSecret`, `Damaged`, `Io`, `Database`.
    pub fn open_with(directory: &Path, minimums: Minimums) -> Result<Self> {
        let directory = directory::prepare(directory)?;
        let lock = Lock::take(&directory)?;
        directory::check_restored(&directory)?;
        owner::protect_files(&directory)?;
        let secret = directory::secret(&directory)?;
        let db = schema::open(&directory.join("weir.db"))?;
        let claims = Claims::default();
        let (devices, admission) = (Devices::new(&directory), Admission::default());
        let snapshot = rows::load(&db, &directory)?.held_with(&claims);
        devices.remember(devices.look(&snapshot));
        let snapshot = placement::placed(snapshot, &devices, &admission);
        snapshot.pools().try_for_each(|pool| owner::protect_pool(pool))?;
        places::settle(&snapshot);
        let instance = rows::instance(&db)?;
        let sealer = Sealer::open_in(&directory, &instance);
        warn_of_passwords(&sealer, &snapshot);
        Ok(Self {
            sealer: Arc::new(sealer),
            instance,
            directory,
            secret,
            minimums,
            admission,
            devices,
            claims,
            current: ArcSwap::from_pointee(snapshot),
            db: Mutex::new(db),
            cluster: None,
            ceph: None,
            _lock: lock,
        })
    }

    /// The catalogue that follows `cluster` in `db`, with its content and its secrets.
    pub(crate) fn following(
        (directory, lock): (PathBuf, Lock),
        minimums: Minimums,
        (db, cluster): (Connection, Link),
        (snapshot, secret, sealer): (Snapshot, [u8; 16], Sealer),
    ) -> Self {
        let (devices, admission) = (Devices::new(&directory), Admission::default());
        devices.remember(devices.look(&snapshot));
        let snapshot = placement::placed(snapshot, &devices, &admission);
        warn_of_passwords(&sealer, &snapshot);
        Self {
            sealer: Arc::new(sealer),
            instance: snapshot.instance().to_owned(),
            directory,
            secret,
            minimums,
            admission,
            devices,
            claims: Claims::default(),
            current: ArcSwap::from_pointee(snapshot),
            db: Mutex::new(db),
            cluster: Some(cluster),
            ceph: None,
            _lock: lock,
        }
    }

    /// The gateways that the catalogue is shared with, if there are any.
    pub(crate) const fn cluster(&self) -> Option<&Link> {
        self.cluster.as_ref()
    }

    /// Whether the trees of volumes are in directories of this machine, and follow the catalogue.
    /// The trees of a cluster are elsewhere.
    pub(crate) const fn has_trees(&self) -> bool {
        self.cluster.is_none()
    }

    /// The catalogue with another policy of admission.
    #[must_use]
    pub fn admitting(mut self, admission: Admission) -> Self {
        let now = placement::placed(Snapshot::clone(&self.snapshot()), &self.devices, &admission);
        self.current = ArcSwap::from_pointee(now);
        self.admission = admission;
        self
    }

    /// The catalogue of a gateway that has sessions with this CephFS alone: new pools have to be on
    /// it.
    #[must_use]
    pub fn on_ceph(self, ceph: Ceph) -> Self {
        Self { ceph: Some(ceph), ..self }
    }

    /// Checks that this gateway can serve a new pool on `ceph`.
    ///
    /// # Errors
    /// `OtherCeph`.
    pub(crate) fn check_ceph(&self, ceph: &Ceph) -> Result<()> {
        match &self.ceph {
            Some(ours) if ours != ceph => {
                let (ours, asked) = (ours.clone(), ceph.clone());
                Err(ClusterError::OtherCeph { ours, asked }.into())
            }
            _ => Ok(()),
        }
    }

    /// The policy by which contracts may commit the hardware.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// The devices of directories.
    pub(crate) const fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The current content. Takes no lock.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The secret that seals file handles.
    #[must_use]
    pub const fn handle_secret(&self) -> &[u8; 16] {
        &self.secret
    }

    /// The tokens of the API, for the one server that has the catalogue.
    ///
    /// # Errors
    /// `BadToken`, `DamagedTokens`, `Io`; those of the store of the cluster, which has them.
    pub fn tokens(&self) -> Result<Tokens> {
        match &self.cluster {
            None => Tokens::open(&self.directory),
            Some(cluster) => Tokens::open_in_cluster(&self.directory, cluster.vault()),
        }
    }

    /// The secret that signs reports, created on the first call.
    ///
    /// # Errors
    /// `BadReportKey`, `Io`.
    pub fn report_secret(&self) -> Result<[u8; 32]> {
        if let Some(cluster) = &self.cluster
            && let Some((secret, _)) = cluster.vault().read(cluster::Secret::Reports)?
        {
            let bad =
                |_| CatalogError::BadReportKey { path: cluster::Secret::Reports.path().into() };
            return secret.try_into().map_err(bad);
        }
        directory::report_secret(&self.directory)
    }

    /// The sealer of password hashes.
    #[must_use]
    pub const fn sealer(&self) -> &Arc<Sealer> {
        &self.sealer
    }

    /// The data directory, absolute.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The random name of this data directory, in the marks of its pools.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// The locks on pools that this process holds.
    pub(crate) const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The smallest sizes allowed.
    #[must_use]
    pub const fn minimums(&self) -> Minimums {
        self.minimums
    }

    /// Runs `change` in a transaction. The new snapshot is published only after the commit; with
    /// [`Mode::Preview`] the transaction is rolled back instead.
    pub(crate) fn mutate(
        &self,
        asked: impl Into<Asked>,
        mut change: impl FnMut(&Transaction<'_>, &Snapshot) -> Result<Touched>,
    ) -> Result<Outcome> {
        self.mutate_and(asked, |tx, now| Ok((change(tx, now)?, ())), |(), _| Ok(()))
    }

    /// Makes a change with effects outside the database: `carry_out` gets the result of `change`
    /// and the snapshot before it. It does not run for a preview, nor if the change is not
    /// admitted, nor in a cluster, whose trees are elsewhere. There `change` runs again where
    /// another gateway was faster.
    pub(crate) fn mutate_and<T>(
        &self,
        asked: impl Into<Asked>,
        mut change: impl FnMut(&Transaction<'_>, &Snapshot) -> Result<(Touched, T)>,
        mut carry_out: impl FnMut(T, &Snapshot) -> Result<()>,
    ) -> Result<Outcome> {
        let asked = asked.into();
        // Before the lock: a hanging disk must not block other changes.
        let seen = self.devices.look(&self.snapshot());
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cluster) = &self.cluster else {
            let before = self.before(seen);
            return self.attempt(&mut db, &before, asked, &mut change, &mut carry_out);
        };
        self.remember(seen);
        for _ in 0..ATTEMPTS {
            self.catch_up(cluster, &mut db)?;
            let before = self.snapshot();
            match self.attempt(&mut db, &before, asked, &mut change, &mut carry_out) {
                Err(CatalogError::Cluster(ClusterError::Overtaken)) => {}
                done => return done,
            }
        }
        Err(ClusterError::Overtaken.into())
    }

    /// Makes a change on top of `before`.
    fn attempt<T>(
        &self,
        db: &mut Connection,
        before: &Snapshot,
        asked: Asked,
        change: &mut impl FnMut(&Transaction<'_>, &Snapshot) -> Result<(Touched, T)>,
        carry_out: &mut impl FnMut(T, &Snapshot) -> Result<()>,
    ) -> Result<Outcome> {
        let tx = self.begin(db)?;
        if let (Mode::Once(key), true) = (asked.mode, self.cluster.is_some()) {
            idempotency::check_new(&tx, &key)?;
        }
        let (touched, changed) = change(&tx, before)?;
        if let Mode::Once(key) = asked.mode {
            idempotency::note(&tx, &key)?;
        }
        tx.execute("UPDATE meta SET generation = generation + 1", [])?;
        let placed =
            |snapshot: Snapshot| placement::placed(snapshot, &self.devices, &self.admission);
        let after = Arc::new(placed(self.read_touched(&tx, before, touched)?));
        debug_assert_eq!(rows::load(&tx, &self.directory).map(placed).ok().as_ref(), Some(&*after));
        let changes = differences(before, &after, touched);
        let overcommitted = self.admit(before, &after, asked)?;
        if asked.mode.commits() && self.has_trees() {
            carry_out(changed, before)?;
        }
        match asked.mode {
            Mode::Preview => tx.rollback()?,
            Mode::Commit | Mode::Once(_) => {
                self.commit(tx)?;
                self.current.store(Arc::clone(&after));
            }
        }
        Ok(Outcome { snapshot: after, changes, overcommitted })
    }

    /// The snapshot after a change of `before` that touched this.
    fn read_touched(
        &self,
        db: &Connection,
        before: &Snapshot,
        touched: Touched,
    ) -> Result<Snapshot> {
        match touched {
            Touched::Everything => Ok(rows::load(db, &self.directory)?.held_with(&self.claims)),
            Touched::Volume(id) => rows::load_volume(db, before, id),
            Touched::Identities => rows::load_identities(db, before),
        }
    }

    fn begin<'a>(&self, db: &'a mut Connection) -> Result<Transaction<'a>> {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if self.cluster.is_some() {
            cluster::clear(&tx)?;
        }
        Ok(tx)
    }

    /// Commits a change: to the store of the cluster first, if there is one, and then to the
    /// database.
    fn commit(&self, tx: Transaction<'_>) -> Result<()> {
        let Some(cluster) = &self.cluster else { return Ok(tx.commit()?) };
        let sent = cluster.publish(&tx)?;
        // If this fails, the database follows the store later.
        tx.commit()?;
        cluster.sent(sent);
        Ok(())
    }

    /// Follows the store of the cluster up to now, and ends a large change that is under way.
    /// Tells whether there was something new.
    pub(crate) fn catch_up(&self, cluster: &Link, db: &mut Connection) -> Result<bool> {
        let mut news = self.follow_once(cluster, db)?;
        while cluster.resolve()? {
            news |= self.follow_once(cluster, db)?;
        }
        Ok(news)
    }

    /// Applies what happened in the store of the cluster, and publishes it.
    pub(crate) fn follow_once(&self, cluster: &Link, db: &mut Connection) -> Result<bool> {
        let before = self.snapshot();
        let followed = cluster.follow(db, |tx, reach| {
            let touched = match reach {
                Reach::Everything => Touched::Everything,
                Reach::Volume(id) => Touched::Volume(VolumeId(id)),
                Reach::Accounts | Reach::Nothing => Touched::Identities,
            };
            let after = self.read_touched(tx, &before, touched)?;
            promises::check(&after, reach)?;
            Ok(placement::placed(after, &self.devices, &self.admission))
        })?;
        let news = followed.is_some();
        if let Some(after) = followed {
            debug_assert_eq!(
                rows::load(db, &self.directory)
                    .map(|all| placement::placed(all, &self.devices, &self.admission))
                    .ok()
                    .as_ref(),
                Some(&after)
            );
            self.current.store(Arc::new(after));
        }
        Ok(news)
    }

    /// Runs `query` between changes, up to date with the store of the cluster, if there is one.
    pub(crate) fn read_latest<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = &self.cluster {
            self.follow_once(cluster, &mut db)?;
        }
        query(&db)
    }

    /// The database of a catalogue that follows a cluster, under its lock.
    pub(crate) fn with_cluster<T>(
        &self,
        act: impl FnOnce(&Link, &mut Connection) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(cluster) = &self.cluster else { return Ok(None) };
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        act(cluster, &mut db).map(Some)
    }

    /// The snapshot before a change. File systems that were mounted again since the last change are
    /// placed first, so that their commitments are not counted as an effect of this change.
    fn before(&self, seen: Seen) -> Arc<Snapshot> {
        self.remember(seen);
        self.snapshot()
    }

    fn remember(&self, seen: Seen) {
        if !seen.is_empty() {
            self.devices.remember(seen);
            let now = placement::placed(
                Snapshot::clone(&self.snapshot()),
                &self.devices,
                &self.admission,
            );
            self.current.store(Arc::new(now));
        }
    }

    /// Runs a `change` of data outside the snapshot in a transaction.
    pub(crate) fn write<T>(
        &self,
        mut change: impl FnMut(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in 0..ATTEMPTS {
            if let Some(cluster) = &self.cluster {
                // Large changes and damaged rows are in the way of guarded rows only, and these are
                // overtaken at first.
                match self.follow_once(cluster, &mut db) {
                    Err(CatalogError::Cluster(
                        ClusterError::Row { .. } | ClusterError::Newer { .. },
                    )) if attempt == 0 => {}
                    _ if attempt > 0 => self.catch_up(cluster, &mut db).map(drop)?,
                    followed => followed.map(drop)?,
                }
            }
            let tx = self.begin(&mut db)?;
            let done = change(&tx)?;
            match self.commit(tx) {
                Err(CatalogError::Cluster(ClusterError::Overtaken)) => {}
                committed => return committed.map(|()| done),
            }
        }
        Err(ClusterError::Overtaken.into())
    }

    /// Runs `query` between changes.
    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        query(&self.db.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Warns if the key of passwords is of no use, or does not open the passwords of users.
fn warn_of_passwords(sealer: &Sealer, snapshot: &Snapshot) {
    let shut = sealer.shut(snapshot.users());
    let users = shut.map_or(0, |(users, _)| users);
    match (sealer.fault(), shut) {
        (Some(error), _) => tracing::warn!(users, %error, "users cannot log in over SMB"),
        (None, Some((_, error))) => tracing::warn!(users, %error, "users cannot log in over SMB"),
        (None, None) => {}
    }
}

/// The volumes of both snapshots whose limits differ, by id.
fn differences(before: &Snapshot, after: &Snapshot, touched: Touched) -> Vec<Change<VolumeId>> {
    let change = |old: &Arc<Volume>| {
        let new = after.volume(old.id)?;
        let change = Change { volume: old.id, before: old.limits, after: new.limits };
        (change.before != change.after).then_some(change)
    };
    match touched {
        Touched::Everything => before.volumes().filter_map(change).collect(),
        Touched::Volume(id) => before.volume(id).into_iter().filter_map(change).collect(),
        Touched::Identities => Vec::new(),
    }
}
