//! The history of contracts: a SQLite file of its own in the data directory, `history.db`, written
//! once a minute and lost without harm.
//!
//! Minutes are kept for a day, quarters of an hour for 14 days, of volumes that anything came to;
//! and whatever the number of volumes, the file has at most [`BYTES_MAX`], beyond which the oldest
//! go first. A minute goes into its quarter as it is written, so that nothing has to be summed up
//! later.
//!
//! A file that is damaged, or has another format, is set aside under a name of its own ([`aside`]).
//! A full or failing disk says nothing about the file: the file stays as it is, and the caller
//! tries again later.
//!
//! Not here: the time of writing, and any judgement.

mod aside;

use super::volume::Period;
use aside::SETS_MAX;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, Row, TransactionBehavior, ffi, named_params, params,
};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use weir_core::VolumeId;
use weir_qos::Cost;
use weir_qos::verdict::{Course, Tally};

/// Seconds of the finer periods, and how long they are kept.
pub(crate) const MINUTE: u64 = 60;
const MINUTES_KEPT: u64 = 24 * 3600;
/// Seconds of the coarser ones.
pub(crate) const QUARTER: u64 = 900;
const QUARTERS_KEPT: u64 = 14 * 24 * 3600;

/// Largest the file becomes, without its log: the minutes of 1,000 busy volumes for a day and their
/// quarters for 14 take some 400 MiB. Beyond: the oldest eighth of each goes.
pub(crate) const BYTES_MAX: u64 = 512 << 20;

/// Seconds between two looks for what is too old.
const PRUNE_SECONDS: u64 = 3600;

/// Removals of the oldest eighth for one addition, at most.
const SHORTENINGS_MAX: usize = 8;

/// The name of the file.
const NAME: &str = "history.db";

/// Migration `n` leads from format `n` to `n + 1`; the format is SQLite's `user_version`. One that
/// has been released never changes.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE periods (
        volume INTEGER NOT NULL,
        seconds INTEGER NOT NULL,
        start INTEGER NOT NULL,
        nanos INTEGER NOT NULL,
        offered_bytes INTEGER NOT NULL,
        offered_ops INTEGER NOT NULL,
        delivered_bytes INTEGER NOT NULL,
        delivered_ops INTEGER NOT NULL,
        due_bytes INTEGER NOT NULL,
        due_ops INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        used_nanos INTEGER NOT NULL,
        asked_nanos INTEGER NOT NULL,
        busy_nanos INTEGER NOT NULL,
        wait_nanos INTEGER NOT NULL,
        store_nanos INTEGER NOT NULL,
        network_nanos INTEGER NOT NULL,
        processing_nanos INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        not_demanded INTEGER NOT NULL,
        broken_gate INTEGER NOT NULL,
        broken_store INTEGER NOT NULL,
        broken_network INTEGER NOT NULL,
        broken_processing INTEGER NOT NULL,
        demanded_nanos INTEGER NOT NULL,
        demanded_used_nanos INTEGER NOT NULL,
        PRIMARY KEY (volume, seconds, start)
    ) STRICT, WITHOUT ROWID;
"];

const ADD: &str = "
    INSERT INTO periods VALUES (
        :volume, :seconds, :start, :nanos, :offered_bytes, :offered_ops, :delivered_bytes,
        :delivered_ops, :due_bytes, :due_ops, :requests, :used_nanos, :asked_nanos, :busy_nanos,
        :wait_nanos, :store_nanos, :network_nanos, :processing_nanos, :kept, :not_demanded,
        :broken_gate, :broken_store, :broken_network, :broken_processing, :demanded_nanos,
        :demanded_used_nanos)
    ON CONFLICT DO UPDATE SET
        nanos = nanos + excluded.nanos,
        offered_bytes = offered_bytes + excluded.offered_bytes,
        offered_ops = offered_ops + excluded.offered_ops,
        delivered_bytes = delivered_bytes + excluded.delivered_bytes,
        delivered_ops = delivered_ops + excluded.delivered_ops,
        due_bytes = due_bytes + excluded.due_bytes,
        due_ops = due_ops + excluded.due_ops,
        requests = requests + excluded.requests,
        used_nanos = used_nanos + excluded.used_nanos,
        asked_nanos = asked_nanos + excluded.asked_nanos,
        busy_nanos = busy_nanos + excluded.busy_nanos,
        wait_nanos = wait_nanos + excluded.wait_nanos,
        store_nanos = store_nanos + excluded.store_nanos,
        network_nanos = network_nanos + excluded.network_nanos,
        processing_nanos = processing_nanos + excluded.processing_nanos,
        kept = kept + excluded.kept,
        not_demanded = not_demanded + excluded.not_demanded,
        broken_gate = broken_gate + excluded.broken_gate,
        broken_store = broken_store + excluded.broken_store,
        broken_network = broken_network + excluded.broken_network,
        broken_processing = broken_processing + excluded.broken_processing,
        demanded_nanos = demanded_nanos + excluded.demanded_nanos,
        demanded_used_nanos = demanded_used_nanos + excluded.demanded_used_nanos";

/// Why the history can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    #[error("it has format {found}, but this version supports formats up to {known}")]
    NewerFormat { found: usize, known: usize },
    #[error("its tables do not match its format: {0}")]
    WrongFormat(String),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{SETS_MAX} damaged histories already exist, {NAME}.broken and numbered ones")]
    TooManyAside,
    #[error("the data to add is larger than {0} bytes")]
    TooMuch(u64),
}

impl HistoryError {
    /// Does the error say that the file itself is not a history this version can use? Everything
    /// else, such as a full disk, a quota, a failing disk, a file system that is read-only, missing
    /// rights, no descriptors or another process's lock, says nothing about the content of the
    /// file.
    fn is_damage(&self) -> bool {
        match self {
            Self::Database(error) => {
                is(error, ErrorCode::DatabaseCorrupt) || is(error, ErrorCode::NotADatabase)
            }
            Self::NewerFormat { .. } | Self::WrongFormat(_) => true,
            Self::Io(_) | Self::TooManyAside | Self::TooMuch(_) => false,
        }
    }

    /// The operator's remedy.
    pub(crate) fn advice(&self) -> &'static str {
        let of_kind = |kind| match kind {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::MAKE_ROOM,
            io::ErrorKind::ReadOnlyFilesystem => Self::MAKE_WRITABLE,
            _ => Self::CHECK_RIGHTS,
        };
        match self {
            Self::TooManyAside => "inspect the damaged histories, and move or delete them",
            Self::Io(error) => of_kind(error.kind()),
            Self::Database(error) => match said(error).map(|(error, _)| error.code) {
                Some(ErrorCode::DiskFull) => Self::MAKE_ROOM,
                Some(ErrorCode::ReadOnly) => Self::MAKE_WRITABLE,
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    "stop the other process that has history.db open"
                }
                Some(ErrorCode::SystemIoFailure) => {
                    "check the kernel's log for disk errors, and whether a disk quota is exhausted"
                }
                _ => Self::CHECK_RIGHTS,
            },
            _ => Self::CHECK_RIGHTS,
        }
    }

    const MAKE_ROOM: &str = "free space on the file system of the data directory";
    const MAKE_WRITABLE: &str =
        "make the file system of the data directory, and history.db, writable";
    const CHECK_RIGHTS: &str = "check that the server can read and write history.db, and that its limit of open files is high enough";
}

/// The history of a data directory. The file is opened when it is first used, and again after an
/// error that says nothing about its content.
pub(crate) struct History {
    path: PathBuf,
    bytes_max: u64,
    db: Option<Connection>,
    pruned: u64,
}

impl History {
    /// The history of `directory`, not opened yet.
    pub(crate) fn of(directory: &Path) -> Self {
        Self::within(directory, BYTES_MAX)
    }

    fn within(directory: &Path, bytes_max: u64) -> Self {
        Self { path: directory.join(NAME), bytes_max, db: None, pruned: 0 }
    }

    /// Opens the file if it is not open, or makes it if there is none. A damaged one is set aside,
    /// the log says so, and a new one is made.
    ///
    /// # Errors
    /// [`HistoryError`]; the file stays as it is then.
    pub(crate) fn open(&mut self) -> Result<(), HistoryError> {
        if self.db.is_some() {
            return Ok(());
        }
        self.db = match open(&self.path) {
            Err(error) if error.is_damage() => {
                aside::set(&self.path, &error)?;
                Some(open(&self.path)?)
            }
            opened => Some(opened?),
        };
        Ok(())
    }

    /// Does `work` on the open file. After an error the file is closed, so that the next use opens
    /// it anew: SQLite keeps a file that it could only open for reading so, however long that
    /// lasts.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, HistoryError>,
    ) -> Result<T, HistoryError> {
        self.open()?;
        let Some(mut db) = self.db.take() else {
            return Err(rusqlite::Error::InvalidQuery.into());
        };
        match work(&mut db) {
            Ok(done) => {
                self.db = Some(db);
                Ok(done)
            }
            Err(error) => {
                aside::close_as_it_is(db);
                if error.is_damage() {
                    aside::set(&self.path, &error)?;
                }
                Err(error)
            }
        }
    }

    /// Adds minutes, each to its quarter too, all or none; now and then removes what is too old at
    /// `now`.
    ///
    /// # Errors
    /// [`HistoryError`]: nothing was added.
    pub(crate) fn add(
        &mut self,
        rows: &[(VolumeId, Period)],
        now: u64,
    ) -> Result<(), HistoryError> {
        match self.try_add(rows, now) {
            // The damaged file is set aside now, and a new one takes the rows.
            Err(error) if error.is_damage() => self.try_add(rows, now),
            outcome => outcome,
        }
    }

    fn try_add(&mut self, rows: &[(VolumeId, Period)], now: u64) -> Result<(), HistoryError> {
        let (bytes_max, is_due) = (self.bytes_max, now >= self.pruned + PRUNE_SECONDS);
        self.with(|db| {
            if is_due {
                prune(db, now)?;
            }
            for _ in 0..SHORTENINGS_MAX {
                if add_within(db, rows, bytes_max)? {
                    return Ok(());
                }
                shorten(db, now, bytes_max)?;
            }
            Err(HistoryError::TooMuch(bytes_max))
        })?;
        if is_due {
            self.pruned = now;
        }
        Ok(())
    }

    /// The periods of `seconds` each, in which anything came to `volume` since `since`, oldest
    /// first; at most `most`, the newest.
    ///
    /// # Errors
    /// [`HistoryError`].
    pub(crate) fn periods(
        &mut self,
        volume: VolumeId,
        seconds: u64,
        since: u64,
        most: usize,
    ) -> Result<Vec<Period>, HistoryError> {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.with(|db| {
            let mut select = db.prepare_cached(
                "SELECT * FROM periods WHERE volume = ?1 AND seconds = ?2 AND start >= ?3
                 ORDER BY start DESC LIMIT ?4",
            )?;
            let rows = select.query_map(
                params![volume.0, whole(seconds), whole(since), whole(most as u64)],
                |row| read(row, seconds),
            )?;
            let mut periods = rows.collect::<Result<Vec<_>, _>>()?;
            periods.reverse();
            Ok(periods)
        })
    }
}

/// Adds `rows`, unless the file would grow beyond `bytes_max`: then it adds nothing and says
/// `false`. The bound is checked here rather than by SQLite (`max_page_count`), whose error for it
/// is that of a full disk: room is made for the one by removing the oldest, and for the other only
/// by the operator.
fn add_within(
    db: &mut Connection,
    rows: &[(VolumeId, Period)],
    bytes_max: u64,
) -> Result<bool, HistoryError> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = bytes(&tx)?;
    let mut add = tx.prepare_cached(ADD)?;
    for (volume, period) in rows {
        for seconds in [MINUTE, QUARTER] {
            insert(&mut add, *volume, seconds, period)?;
        }
    }
    drop(add);
    let after = bytes(&tx)?;
    if after > bytes_max && after > before {
        tx.rollback()?;
        return Ok(false);
    }
    tx.commit()?;
    Ok(true)
}

/// The length of `db`'s file in bytes, with the transaction under way.
fn bytes(db: &Connection) -> Result<u64, HistoryError> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(number("page_count")?.unsigned_abs().saturating_mul(number("page_size")?.unsigned_abs()))
}

/// Removes periods that are too old.
fn prune(db: &Connection, now: u64) -> Result<(), HistoryError> {
    cut(db, MINUTE, now.saturating_sub(MINUTES_KEPT))?;
    cut(db, QUARTER, now.saturating_sub(QUARTERS_KEPT))
}

/// Removes the oldest eighth of the periods.
fn shorten(db: &Connection, now: u64, bytes_max: u64) -> Result<(), HistoryError> {
    for seconds in [MINUTE, QUARTER] {
        let oldest = "SELECT min(start) FROM periods WHERE seconds = ?1";
        let oldest: Option<i64> =
            db.query_row(oldest, params![i64::try_from(seconds).unwrap_or(i64::MAX)], |r| {
                r.get(0)
            })?;
        let oldest = oldest.and_then(|start| u64::try_from(start).ok()).unwrap_or(now);
        cut(db, seconds, oldest + now.saturating_sub(oldest) / 8 + seconds)?;
    }
    tracing::warn!(
        bytes_max,
        "the contract history has reached its maximum size: its oldest eighth was removed"
    );
    Ok(())
}

fn cut(db: &Connection, seconds: u64, before: u64) -> Result<(), HistoryError> {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    db.execute(
        "DELETE FROM periods WHERE seconds = ?1 AND start < ?2",
        params![whole(seconds), whole(before)],
    )?;
    Ok(())
}

/// Opens the file at `path` in its newest format. A file in that format is not written to, so that
/// it can be read on a full disk too.
fn open(path: &Path) -> Result<Connection, HistoryError> {
    // The file is readable by its owner alone: SQLite would go by the umask.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    // Without SQLITE_OPEN_CREATE, so that no other file is ever taken for it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    match prepare(&mut db) {
        Ok(()) => Ok(db),
        Err(error) => {
            aside::close_as_it_is(db);
            Err(error)
        }
    }
}

fn prepare(db: &mut Connection) -> Result<(), HistoryError> {
    // Like the catalogue, the history is not mapped: a failing disk could take a mapping away.
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A power cut may take the last minutes, and never the whole.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    migrate(db)?;
    db.prepare_cached(ADD).map(drop).map_err(of_tables)
}

fn migrate(db: &mut Connection) -> Result<(), HistoryError> {
    let found: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    let known = MIGRATIONS.len();
    let pending = MIGRATIONS.get(found..).ok_or(HistoryError::NewerFormat { found, known })?;
    if pending.is_empty() {
        return Ok(());
    }
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in pending {
        tx.execute_batch(migration).map_err(of_tables)?;
    }
    tx.pragma_update(None, "user_version", known)?;
    Ok(tx.commit()?)
}

/// An error of a statement of ours that SQLite could not make sense of: the tables are not those
/// that the format says. What happens to SQLite has codes of its own
/// (<https://sqlite.org/rescode.html>).
fn of_tables(error: rusqlite::Error) -> HistoryError {
    match said(&error) {
        Some((code, message)) if code.extended_code == ffi::SQLITE_ERROR => {
            HistoryError::WrongFormat(message)
        }
        _ => error.into(),
    }
}

fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    said(error).is_some_and(|(error, _)| error.code == code)
}

/// SQLite's error and message, without the statement.
fn said(error: &rusqlite::Error) -> Option<(ffi::Error, String)> {
    match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            Some((*error, message.clone().unwrap_or_else(|| error.to_string())))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => Some((*error, msg.clone())),
        _ => None,
    }
}

fn insert(
    add: &mut rusqlite::CachedStatement<'_>,
    volume: VolumeId,
    seconds: u64,
    period: &Period,
) -> rusqlite::Result<usize> {
    let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let Period { start, course, tally, .. } = period;
    let [gate, store, network, processing] = tally.broken;
    add.execute(named_params! {
        ":volume": volume.0,
        ":seconds": whole(seconds),
        ":start": whole(start / seconds * seconds),
        ":nanos": whole(course.nanos),
        ":offered_bytes": whole(course.offered.bytes),
        ":offered_ops": whole(course.offered.operations),
        ":delivered_bytes": whole(course.delivered.bytes),
        ":delivered_ops": whole(course.delivered.operations),
        ":due_bytes": whole(course.due.bytes),
        ":due_ops": whole(course.due.operations),
        ":requests": whole(course.requests),
        ":used_nanos": whole(course.used_nanos),
        ":asked_nanos": whole(course.asked_nanos),
        ":busy_nanos": whole(course.busy_nanos),
        ":wait_nanos": whole(course.wait_nanos),
        ":store_nanos": whole(course.store_nanos),
        ":network_nanos": whole(course.network_nanos),
        ":processing_nanos": whole(course.processing_nanos),
        ":kept": whole(tally.kept),
        ":not_demanded": whole(tally.not_demanded),
        ":broken_gate": whole(gate),
        ":broken_store": whole(store),
        ":broken_network": whole(network),
        ":broken_processing": whole(processing),
        ":demanded_nanos": whole(tally.demanded_nanos),
        ":demanded_used_nanos": whole(tally.used_nanos),
    })
}

fn read(row: &Row<'_>, seconds: u64) -> rusqlite::Result<Period> {
    let get = |column: &str| row.get(column).map(|value: i64| value.unsigned_abs());
    let cost = |name: &str| -> rusqlite::Result<Cost> {
        let (bytes, operations) = (get(&format!("{name}_bytes"))?, get(&format!("{name}_ops"))?);
        Ok(Cost { bytes, operations })
    };
    let course = Course {
        nanos: get("nanos")?,
        offered: cost("offered")?,
        delivered: cost("delivered")?,
        due: cost("due")?,
        requests: get("requests")?,
        used_nanos: get("used_nanos")?,
        asked_nanos: get("asked_nanos")?,
        busy_nanos: get("busy_nanos")?,
        wait_nanos: get("wait_nanos")?,
        store_nanos: get("store_nanos")?,
        network_nanos: get("network_nanos")?,
        processing_nanos: get("processing_nanos")?,
        // Only for judging, which is done.
        passed_nanos: 0,
        used_certain_nanos: 0,
        passed_certain_nanos: 0,
        let_through_nanos: 0,
        returned_nanos: 0,
        reference_nanos: 0,
        largest_nanos: 0,
        largest_certain_nanos: 0,
    };
    let tally = Tally {
        kept: get("kept")?,
        not_demanded: get("not_demanded")?,
        broken: [
            get("broken_gate")?,
            get("broken_store")?,
            get("broken_network")?,
            get("broken_processing")?,
        ],
        demanded_nanos: get("demanded_nanos")?,
        used_nanos: get("demanded_used_nanos")?,
    };
    Ok(Period { start: get("start")?, nanos: seconds * 1_000_000_000, course, tally })
}

#[cfg(test)]
mod faults;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const START: u64 = 1_700_000_100;

    pub(super) fn minute(start: u64, requests: u64) -> Period {
        let course = Course {
            nanos: 60_000_000_000,
            offered: Cost { bytes: 5, operations: 1 },
            delivered: Cost { bytes: 4096 * requests, operations: requests },
            due: Cost { bytes: 1 << 20, operations: 0 },
            requests,
            used_nanos: 7,
            asked_nanos: 8,
            busy_nanos: 9,
            wait_nanos: 10,
            store_nanos: 11,
            network_nanos: 12,
            processing_nanos: 13,
            ..Course::default()
        };
        let tally = Tally {
            kept: 1,
            not_demanded: 2,
            broken: [0, 1, 2, 0],
            demanded_nanos: 40,
            used_nanos: 20,
        };
        Period { start, nanos: 60_000_000_000, course, tally }
    }

    pub(super) fn opened(directory: &Path) -> History {
        let mut history = History::of(directory);
        history.open().unwrap();
        history
    }

    pub(super) fn add(history: &mut History, volume: u32, start: u64, requests: u64) {
        history.add(&[(VolumeId(volume), minute(start, requests))], start + 60).unwrap();
    }

    #[test]
    fn what_was_written_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = opened(dir.path());
        add(&mut history, 1, START, 3);
        add(&mut history, 1, START + 60, 4);
        add(&mut history, 2, START, 5);
        drop(history);
        let mut history = opened(dir.path());
        let minutes = history.periods(VolumeId(1), MINUTE, 0, 100).unwrap();
        assert_eq!(minutes, [minute(START, 3), minute(START + 60, 4)]);
        let quarters = history.periods(VolumeId(1), QUARTER, 0, 100).unwrap();
        let [quarter] = quarters.as_slice() else { panic!("{quarters:?}") };
        assert_eq!((quarter.start, quarter.course.requests), (START / 900 * 900, 7));
        assert_eq!((quarter.tally.kept, quarter.tally.broken), (2, [0, 2, 4, 0]));
        assert_eq!(history.periods(VolumeId(1), MINUTE, START + 1, 100).unwrap().len(), 1);
        assert_eq!(history.periods(VolumeId(1), MINUTE, 0, 1).unwrap(), [minute(START + 60, 4)]);
    }

    #[test]
    fn a_minute_that_a_restart_cut_in_two_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = opened(dir.path());
        add(&mut history, 1, START, 3);
        add(&mut history, 1, START, 4);
        let minutes = history.periods(VolumeId(1), MINUTE, 0, 100).unwrap();
        assert_eq!((minutes.len(), minutes[0].course.requests), (1, 7));
    }

    #[test]
    fn the_old_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = opened(dir.path());
        add(&mut history, 1, START, 3);
        add(&mut history, 1, START + MINUTES_KEPT + 600, 4);
        assert_eq!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().len(), 1);
        assert_eq!(history.periods(VolumeId(1), QUARTER, 0, 100).unwrap().len(), 2);
        add(&mut history, 1, START + QUARTERS_KEPT + 1000, 4);
        assert_eq!(history.periods(VolumeId(1), QUARTER, 0, 100).unwrap().len(), 2);
    }

    #[test]
    fn the_file_stays_within_its_bound_and_keeps_the_newest() {
        const BOUND: u64 = 1 << 20;
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::within(dir.path(), BOUND);
        let at = |round: u64| START + 60 * round;
        for round in 0..40 {
            let rows: Vec<_> = (0..500).map(|id| (VolumeId(id), minute(at(round), 3))).collect();
            history.add(&rows, at(round) + 60).unwrap();
        }
        let kept = history.periods(VolumeId(7), MINUTE, 0, 100).unwrap();
        assert_eq!(kept.last().unwrap().start, at(39));
        assert!((15..40).contains(&kept.len()), "{}", kept.len());
        drop(history);
        assert!(dir.path().join(NAME).metadata().unwrap().len() <= BOUND);
    }
}
