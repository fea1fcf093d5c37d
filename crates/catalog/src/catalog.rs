//! The open catalogue: one writer at a time, a transaction for each change, and the snapshot that
//! everyone else reads.

use crate::admission::Overcommitment;
use crate::claims::Claims;
use crate::devices::{Devices, Seen};
use crate::directory::{self, Lock};
use crate::error::Result;
use crate::limits::Minimums;
use crate::model::Snapshot;
use crate::requests::{self, Claim};
use crate::tokens::Tokens;
use crate::touched::{self, Touched};
use crate::{owner, places, restore, rows, schema};
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
    minimums: Minimums,
    admission: Admission,
    devices: Devices,
    claims: Claims,
    current: ArcSwap<Snapshot>,
    db: Mutex<Connection>,
    _lock: Lock,
}

/// The text leaves the secret out, so that no log can have it.
impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Is a change to be made, or only to be shown?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Make it.
    Commit,
    /// Make it, and remember that this request was carried out.
    Once(Claim),
    /// Check it and say what it would do; nothing is kept.
    Preview,
}

impl Mode {
    /// Is the change to be made?
    #[must_use]
    pub const fn commits(self) -> bool {
        !matches!(self, Self::Preview)
    }
}

/// The mode of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Is it to be made?
    pub mode: Mode,
    /// Is it to be made even where it commits the hardware to more than it holds?
    pub overcommit: bool,
}

impl From<Mode> for Asked {
    fn from(mode: Mode) -> Self {
        Self { mode, overcommit: false }
    }
}

/// The outcome of a change, made or only shown.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The catalogue after the change.
    pub snapshot: Arc<Snapshot>,
    /// The volumes whose limit it changes, by id.
    pub changes: Vec<Change<VolumeId>>,
    /// The file systems that it commits to more than they may be.
    pub overcommitted: Vec<Overcommitment>,
}

impl Catalog {
    /// Opens the catalogue of `directory` with the default minimums, making what is missing.
    ///
    /// # Errors
    /// The errors of [`Catalog::open_with`].
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_with(directory, Minimums::default())
    }

    /// Opens the catalogue of `directory`, making what is missing. Volumes smaller than
    /// `minimums` that are there already stay as they are.
    ///
    /// # Errors
    /// `Locked` if another server has it; `NotDataDirectory`, `ForeignOwner`, `RestoreInterrupted`,
    /// `NewerFormat`, `BadSecret`, `Damaged`, `Io`, `Database`.
    pub fn open_with(directory: &Path, minimums: Minimums) -> Result<Self> {
        let directory = directory::prepare(directory)?;
        let lock = Lock::take(&directory)?;
        restore::check_finished(&directory)?;
        owner::protect_files(&directory)?;
        let secret = directory::secret(&directory)?;
        let db = schema::open(&directory.join("weir.db"))?;
        touched::note(&db)?;
        let claims = Claims::default();
        let (devices, admission) = (Devices::new(&directory), Admission::default());
        let snapshot = rows::load(&db, &directory)?.held_with(&claims);
        devices.remember(devices.look(&snapshot));
        let snapshot = snapshot.placed(&devices, &admission);
        snapshot.pools().try_for_each(|pool| owner::protect_pool(pool))?;
        places::settle(&snapshot);
        Ok(Self {
            instance: rows::instance(&db)?,
            directory,
            secret,
            minimums,
            admission,
            devices,
            claims,
            current: ArcSwap::from_pointee(snapshot),
            db: Mutex::new(db),
            _lock: lock,
        })
    }

    /// The catalogue, promising by `admission`.
    #[must_use]
    pub fn admitting(mut self, admission: Admission) -> Self {
        let now = Snapshot::clone(&self.snapshot()).placed(&self.devices, &admission);
        self.current = ArcSwap::from_pointee(now);
        self.admission = admission;
        self
    }

    /// The part of the hardware that may be promised.
    #[must_use]
    pub const fn admission(&self) -> Admission {
        self.admission
    }

    /// The devices of directories.
    pub(crate) const fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The catalogue's present content. Takes no lock.
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
    /// `BadToken`, `DamagedTokens`, `Io`.
    pub fn tokens(&self) -> Result<Tokens> {
        Tokens::open(&self.directory)
    }

    /// The secret that signs reports, made the first time it is asked for.
    ///
    /// # Errors
    /// `BadReportKey`, `Io`.
    pub fn report_secret(&self) -> Result<[u8; 32]> {
        directory::report_secret(&self.directory)
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

    /// The pools that this process has for itself.
    pub(crate) const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The smallest sizes allowed.
    #[must_use]
    pub const fn minimums(&self) -> Minimums {
        self.minimums
    }

    /// Runs `change` in a transaction. Its snapshot is published when it is safe on disk, never
    /// before; with [`Mode::Preview`] the transaction is rolled back instead.
    pub(crate) fn mutate(
        &self,
        asked: impl Into<Asked>,
        change: impl FnOnce(&Transaction<'_>, &Snapshot) -> Result<()>,
    ) -> Result<Outcome> {
        self.mutate_and(asked, change, |(), _| Ok(()))
    }

    /// Makes a change with effects beside the database: `carry_out` gets the result of `change` and
    /// the snapshot before it. It is left out where the change is only shown, or not admitted.
    pub(crate) fn mutate_and<T>(
        &self,
        asked: impl Into<Asked>,
        change: impl FnOnce(&Transaction<'_>, &Snapshot) -> Result<T>,
        carry_out: impl FnOnce(T, &Snapshot) -> Result<()>,
    ) -> Result<Outcome> {
        let asked = asked.into();
        // Before the lock: a disk that hangs must not hold up other changes.
        let seen = self.devices.look(&self.snapshot());
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.before(seen);
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        touched::begin(&tx)?;
        let changed = change(&tx, &before)?;
        if let Mode::Once(claim) = asked.mode {
            requests::note(&tx, &claim)?;
        }
        tx.execute("UPDATE meta SET generation = generation + 1", [])?;
        let touched = touched::since(&tx)?;
        let placed = |snapshot: Snapshot| snapshot.placed(&self.devices, &self.admission);
        let after = Arc::new(placed(match &touched {
            Touched::Everything => rows::load(&tx, &self.directory)?.held_with(&self.claims),
            Touched::Volumes(volumes) => rows::load_volumes(&tx, &before, volumes)?,
        }));
        debug_assert_eq!(rows::load(&tx, &self.directory).map(placed).ok().as_ref(), Some(&*after));
        let changes = differences(&before, &after, &touched);
        let overcommitted = self.admit(&before, &after, asked)?;
        if asked.mode.commits() {
            carry_out(changed, &before)?;
        }
        match asked.mode {
            Mode::Preview => tx.rollback()?,
            Mode::Commit | Mode::Once(_) => {
                tx.commit()?;
                self.current.store(Arc::clone(&after));
            }
        }
        Ok(Outcome { snapshot: after, changes, overcommitted })
    }

    /// The catalogue before a change, with what came back since the last one in its place: that it
    /// counts there from now on is not what the change does.
    fn before(&self, seen: Seen) -> Arc<Snapshot> {
        if !seen.is_empty() {
            self.devices.remember(seen);
            let now = Snapshot::clone(&self.snapshot()).placed(&self.devices, &self.admission);
            self.current.store(Arc::new(now));
        }
        self.snapshot()
    }

    /// Runs `change`, of what is no part of the snapshot, in a transaction.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = change(&tx)?;
        tx.commit()?;
        Ok(done)
    }

    /// Runs `query` between changes.
    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        query(&self.db.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The volumes of both snapshots whose limits differ, by id.
fn differences(before: &Snapshot, after: &Snapshot, touched: &Touched) -> Vec<Change<VolumeId>> {
    let change = |old: &Arc<crate::Volume>| {
        let new = after.volume(old.id)?;
        let change = Change { volume: old.id, before: old.limits, after: new.limits };
        (change.before != change.after).then_some(change)
    };
    match touched {
        Touched::Everything => before.volumes().filter_map(change).collect(),
        Touched::Volumes(ids) => {
            ids.iter().filter_map(|id| before.volume(*id)).filter_map(change).collect()
        }
    }
}
