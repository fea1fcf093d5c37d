//! The history of contracts: a SQLite file of its own in the data directory, `history.db`, written
//! once a minute and lost without harm.
//!
//! Minutes are kept for a day, quarters of an hour for 14 days, of volumes that anything came to; and
//! whatever the number of volumes, the file has at most [`BYTES_MAX`], beyond which the oldest go
//! first. A minute goes into its quarter as it is written, so that nothing has to be summed up later.
//!
//! What is *not* here: when anything is written, and any judgement.

use super::volume::Period;
use rusqlite::{Connection, ErrorCode, Row, TransactionBehavior, named_params, params};
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

/// The file, and where it is moved to if it can't be used.
const NAME: &str = "history.db";
const ASIDE: &str = "history.db.broken";

/// Migration `n` leads from format `n` to `n + 1`; the format is SQLite's `user_version`. One that has
/// been released never changes.
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
    #[error("it has format {found}, this version knows up to {known}")]
    NewerFormat { found: usize, known: usize },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The open history.
pub(crate) struct History {
    path: PathBuf,
    bytes_max: u64,
    db: Connection,
    pruned: u64,
}

impl History {
    /// Opens the history of `directory`, or makes one. One that can't be used is set aside, and says so.
    ///
    /// # Errors
    /// [`HistoryError`] if none can be made either.
    pub(crate) fn open(directory: &Path) -> Result<Self, HistoryError> {
        Self::open_within(directory, BYTES_MAX)
    }

    fn open_within(directory: &Path, bytes_max: u64) -> Result<Self, HistoryError> {
        let path = directory.join(NAME);
        let db = match open(&path, bytes_max) {
            Ok(db) => db,
            Err(HistoryError::Io(error)) => return Err(error.into()),
            Err(error) => anew(&path, bytes_max, &error)?,
        };
        Ok(Self { path, bytes_max, db, pruned: 0 })
    }

    /// Adds minutes, each to its quarter too, all or none; now and then removes what is too old at `now`.
    ///
    /// # Errors
    /// [`HistoryError`]: nothing was added.
    pub(crate) fn add(
        &mut self,
        rows: &[(VolumeId, Period)],
        now: u64,
    ) -> Result<(), HistoryError> {
        match self.try_add(rows, now) {
            Err(HistoryError::Database(error)) if is(&error, ErrorCode::DiskFull) => {
                // The bound, or the disk: either way there is room once the oldest are gone.
                self.shorten(now)?;
                self.try_add(rows, now)
            }
            Err(HistoryError::Database(error)) if is_damage(&error) => {
                self.db = anew(&self.path, self.bytes_max, &error.into())?;
                self.try_add(rows, now)
            }
            outcome => outcome,
        }
    }

    fn try_add(&mut self, rows: &[(VolumeId, Period)], now: u64) -> Result<(), HistoryError> {
        if now >= self.pruned + PRUNE_SECONDS {
            self.prune(now)?;
            self.pruned = now;
        }
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut add = tx.prepare_cached(ADD)?;
        for (volume, period) in rows {
            for seconds in [MINUTE, QUARTER] {
                insert(&mut add, *volume, seconds, period)?;
            }
        }
        drop(add);
        Ok(tx.commit()?)
    }

    /// The periods of `seconds` each, in which anything came to `volume` since `since`, oldest first; at
    /// most `most`, the newest.
    ///
    /// # Errors
    /// [`HistoryError::Database`].
    pub(crate) fn periods(
        &self,
        volume: VolumeId,
        seconds: u64,
        since: u64,
        most: usize,
    ) -> Result<Vec<Period>, HistoryError> {
        let mut select = self.db.prepare_cached(
            "SELECT * FROM periods WHERE volume = ?1 AND seconds = ?2 AND start >= ?3
             ORDER BY start DESC LIMIT ?4",
        )?;
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let rows = select.query_map(
            params![volume.0, whole(seconds), whole(since), whole(most as u64)],
            |row| read(row, seconds),
        )?;
        let mut periods = rows.collect::<Result<Vec<_>, _>>()?;
        periods.reverse();
        Ok(periods)
    }

    /// Removes what is too old.
    fn prune(&mut self, now: u64) -> Result<(), HistoryError> {
        self.cut(MINUTE, now.saturating_sub(MINUTES_KEPT))?;
        self.cut(QUARTER, now.saturating_sub(QUARTERS_KEPT))
    }

    /// Removes the oldest eighth of what is there.
    fn shorten(&mut self, now: u64) -> Result<(), HistoryError> {
        for seconds in [MINUTE, QUARTER] {
            let oldest = "SELECT min(start) FROM periods WHERE seconds = ?1";
            let oldest: Option<i64> = self.db.query_row(
                oldest,
                params![i64::try_from(seconds).unwrap_or(i64::MAX)],
                |r| r.get(0),
            )?;
            let oldest = oldest.and_then(|start| u64::try_from(start).ok()).unwrap_or(now);
            self.cut(seconds, oldest + now.saturating_sub(oldest) / 8 + seconds)?;
        }
        tracing::warn!(
            bytes_max = self.bytes_max,
            "the history of contracts has no more room: its oldest eighth was removed"
        );
        Ok(())
    }

    fn cut(&mut self, seconds: u64, before: u64) -> Result<(), HistoryError> {
        let whole = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.db.execute(
            "DELETE FROM periods WHERE seconds = ?1 AND start < ?2",
            params![whole(seconds), whole(before)],
        )?;
        Ok(())
    }
}

/// Opens the file at `path` in its newest format.
fn open(path: &Path, bytes_max: u64) -> Result<Connection, HistoryError> {
    // Its owner's alone: SQLite would go by the umask.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let mut db = Connection::open(path)?;
    // As for the catalogue: nothing is mapped that a failing disk could take away.
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A power cut may take the last minutes, and never the whole.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    let page: u64 =
        db.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.unsigned_abs();
    let pages = i64::try_from(bytes_max / page.max(1)).unwrap_or(i64::MAX);
    db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    migrate(&mut db)?;
    Ok(db)
}

fn migrate(db: &mut Connection) -> Result<(), HistoryError> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    let known = MIGRATIONS.len();
    let pending = MIGRATIONS.get(found..).ok_or(HistoryError::NewerFormat { found, known })?;
    for migration in pending {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "user_version", known)?;
    Ok(tx.commit()?)
}

/// Sets aside what is at `path`, in place of what was set aside before, and begins anew.
fn anew(path: &Path, bytes_max: u64, why: &HistoryError) -> Result<Connection, HistoryError> {
    let aside = path.with_file_name(ASIDE);
    tracing::warn!(
        error = %why, aside = %aside.display(),
        "the history of contracts can't be used: it is set aside, and a new one begun"
    );
    std::fs::rename(path, &aside)?;
    for log in ["history.db-wal", "history.db-shm"] {
        match std::fs::remove_file(path.with_file_name(log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    open(path, bytes_max)
}

fn is(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    is(error, ErrorCode::DatabaseCorrupt) || is(error, ErrorCode::NotADatabase)
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
        let_through_nanos: 0,
        returned_nanos: 0,
        reference_nanos: 0,
        largest_nanos: 0,
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
mod tests {
    use super::*;

    const START: u64 = 1_700_000_100;

    fn minute(start: u64, requests: u64) -> Period {
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

    fn add(history: &mut History, volume: u32, start: u64, requests: u64) {
        history.add(&[(VolumeId(volume), minute(start, requests))], start + 60).unwrap();
    }

    #[test]
    fn what_was_written_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(dir.path()).unwrap();
        add(&mut history, 1, START, 3);
        add(&mut history, 1, START + 60, 4);
        add(&mut history, 2, START, 5);
        drop(history);
        let history = History::open(dir.path()).unwrap();
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
        let mut history = History::open(dir.path()).unwrap();
        add(&mut history, 1, START, 3);
        add(&mut history, 1, START, 4);
        let minutes = history.periods(VolumeId(1), MINUTE, 0, 100).unwrap();
        assert_eq!((minutes.len(), minutes[0].course.requests), (1, 7));
    }

    #[test]
    fn the_old_goes() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(dir.path()).unwrap();
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
        let mut history = History::open_within(dir.path(), BOUND).unwrap();
        let at = |round: u64| START + 60 * round;
        for round in 0..40 {
            let rows: Vec<_> = (0..500).map(|id| (VolumeId(id), minute(at(round), 3))).collect();
            history.add(&rows, at(round) + 60).unwrap();
        }
        let kept = history.periods(VolumeId(7), MINUTE, 0, 100).unwrap();
        assert_eq!(kept.last().unwrap().start, at(39));
        assert!(kept.len() < 40, "{}", kept.len());
        drop(history);
        assert!(dir.path().join(NAME).metadata().unwrap().len() <= BOUND);
    }

    #[test]
    fn what_cant_be_used_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let garbage = vec![b'x'; 10_000];
        std::fs::write(&path, &garbage).unwrap();
        let mut history = History::open(dir.path()).unwrap();
        add(&mut history, 1, START, 3);
        assert_eq!(std::fs::read(dir.path().join(ASIDE)).unwrap(), garbage);
        drop(history);
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
        let history = History::open(dir.path()).unwrap();
        assert!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().is_empty());
        let aside = Connection::open(dir.path().join(ASIDE)).unwrap();
        let format: i64 = aside.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(format, 99, "a later version can have it back");
    }

    #[test]
    fn damage_that_shows_later_is_set_aside_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(dir.path()).unwrap();
        for round in 0..200 {
            add(&mut history, round, START, 3);
        }
        drop(history);
        let path = dir.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096..].fill(0xee);
        std::fs::write(&path, &bytes).unwrap();
        let mut history = History::open(dir.path()).unwrap();
        add(&mut history, 1, START + 60, 3);
        assert!(dir.path().join(ASIDE).exists());
        assert_eq!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().len(), 1);
    }

    #[test]
    fn a_history_that_cant_be_made_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(History::open(&dir.path().join("missing")).is_err());
    }
}
