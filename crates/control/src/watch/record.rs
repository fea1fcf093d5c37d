//! The server's history: the server does without it while it can't be used, and tries again. Calls
//! block, and belong on threads that may.

use super::history::{History, HistoryError};
use super::volume::Period;
use crate::sync::{Mutex, lock};
use std::path::Path;
use weir_core::VolumeId;

/// Minutes of volumes that wait to be written, 200 bytes each. Beyond: the oldest are lost, with a
/// log line.
const PENDING_MAX: usize = 100_000;

/// The history of a data directory.
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
}

struct Inner {
    history: History,
    /// Minutes that began before this are in the history, as far as this server wrote any.
    written_until: u64,
    /// The last attempt to open or to write failed, and the log says so.
    failing: bool,
}

/// The periods of a volume in the history.
#[derive(Default)]
pub(crate) struct Kept {
    /// The periods, oldest first.
    pub(crate) periods: Vec<Period>,
    /// Minutes that began before this are in them.
    pub(crate) written_until: u64,
}

impl Recorder {
    /// The history in `directory`. If it cannot be opened, the server runs without, logs that, and
    /// each read or write tries again.
    pub(crate) fn open(directory: &Path) -> Self {
        let history = History::of(directory);
        let mut inner = Inner { history, written_until: 0, failing: false };
        if let Err(error) = inner.history.open() {
            inner.told(&error);
        }
        Self { inner: Mutex::new(inner) }
    }

    /// Writes what is `pending`; gives back what has to wait for another attempt.
    pub(crate) fn write(
        &self,
        pending: Vec<(VolumeId, Period)>,
        now: u64,
    ) -> Vec<(VolumeId, Period)> {
        let mut inner = lock(&self.inner);
        match inner.history.add(&pending, now) {
            Ok(()) => {
                if std::mem::take(&mut inner.failing) {
                    tracing::info!("the contract history is being written again");
                }
                // Of a minute under way the history has the volumes alone that have left.
                let ends = pending.iter().map(|(_, period)| period.start + super::MINUTE);
                let ended = ends.filter(|end| *end <= now);
                inner.written_until = ended.fold(inner.written_until, u64::max);
                Vec::new()
            }
            Err(error) => inner.failed(&error, pending),
        }
    }

    /// The periods of a volume; none if the history can't be read, and the log says why.
    pub(crate) fn periods(&self, volume: VolumeId, seconds: u64, since: u64, most: usize) -> Kept {
        let mut inner = lock(&self.inner);
        let written_until = inner.written_until;
        match inner.history.periods(volume, seconds, since, most) {
            Ok(periods) => Kept { periods, written_until },
            Err(error) => {
                inner.told(&error);
                Kept::default()
            }
        }
    }
}

impl Inner {
    /// Logs a warning, unless one was logged since the history could last be written.
    fn told(&mut self, error: &HistoryError) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(
                %error, advice = error.advice(),
                "cannot use the contract history: existing data is kept, serving continues, and access is retried every minute"
            );
        }
    }

    fn failed(
        &mut self,
        error: &HistoryError,
        mut pending: Vec<(VolumeId, Period)>,
    ) -> Vec<(VolumeId, Period)> {
        self.told(error);
        let lost = pending.len().saturating_sub(PENDING_MAX);
        if lost > 0 {
            tracing::warn!(lost, "minutes of the contract history are lost");
            pending.drain(..lost);
        }
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_history_everything_goes_on_and_it_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("missing");
        let recorder = Recorder::open(&data);
        let rows = recorder.write(vec![(VolumeId(1), Period::default())], 60);
        assert_eq!(rows.len(), 1);
        assert!(recorder.periods(VolumeId(1), 60, 0, 10).periods.is_empty());
        std::fs::create_dir(&data).unwrap();
        assert!(recorder.write(rows, 120).is_empty());
        assert_eq!(recorder.periods(VolumeId(1), 60, 0, 10).periods.len(), 1);
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_up_to_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let history = History::of(dir.path());
        let mut inner = Inner { history, written_until: 0, failing: false };
        let minute = |start| (VolumeId(1), Period { start, ..Period::default() });
        let rows = (0..10 + PENDING_MAX as u64).map(minute).collect();
        let error = HistoryError::TooMuch(1);
        let kept = inner.failed(&error, rows);
        assert_eq!((kept.len(), kept[0].1.start, inner.failing), (PENDING_MAX, 10, true));
    }
}
