//! The history as the server holds it: open if it can be, done without if not. It blocks, and belongs on
//! threads that may.

use super::history::{History, HistoryError};
use super::volume::Period;
use crate::sync::{Mutex, lock};
use std::path::Path;
use weir_core::VolumeId;

/// Minutes of volumes that wait to be written, 200 bytes each. Beyond: the oldest are lost, with a log line.
const PENDING_MAX: usize = 100_000;

/// The history, if there is one.
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
}

struct Inner {
    history: Option<History>,
    /// Minutes that began before this are in the history, as far as this server wrote any.
    written_until: u64,
    /// The last attempt to write failed, and the log says so.
    failing: bool,
}

/// What the history has of a volume.
#[derive(Default)]
pub(crate) struct Kept {
    /// The periods, oldest first.
    pub(crate) periods: Vec<Period>,
    /// Minutes that began before this are in them.
    pub(crate) written_until: u64,
}

impl Recorder {
    /// The history in `directory`. Without one the server goes on, and the log says so.
    pub(crate) fn open(directory: &Path) -> Self {
        let history = History::open(directory).inspect_err(|error| {
            tracing::warn!(
                %error, directory = %directory.display(),
                "no history of contracts is kept: it can't be made"
            );
        });
        let inner = Inner { history: history.ok(), written_until: 0, failing: false };
        Self { inner: Mutex::new(inner) }
    }

    /// Writes what is `pending`; gives back what has to wait for another attempt.
    pub(crate) fn write(
        &self,
        pending: Vec<(VolumeId, Period)>,
        now: u64,
    ) -> Vec<(VolumeId, Period)> {
        let mut inner = lock(&self.inner);
        let inner = &mut *inner;
        let Some(history) = &mut inner.history else { return Vec::new() };
        match history.add(&pending, now) {
            Ok(()) => {
                if std::mem::take(&mut inner.failing) {
                    tracing::info!("the history of contracts is written again");
                }
                let ends = pending.iter().map(|(_, period)| period.start + super::MINUTE);
                inner.written_until = ends.fold(inner.written_until, u64::max);
                Vec::new()
            }
            Err(error) => inner.failed(&error, pending),
        }
    }

    /// What there is of a volume; nothing if it can't be read, and the log says why.
    pub(crate) fn periods(&self, volume: VolumeId, seconds: u64, since: u64, most: usize) -> Kept {
        let inner = lock(&self.inner);
        let Some(history) = &inner.history else { return Kept::default() };
        match history.periods(volume, seconds, since, most) {
            Ok(periods) => Kept { periods, written_until: inner.written_until },
            Err(error) => {
                tracing::warn!(%error, "the history of contracts can't be read");
                Kept::default()
            }
        }
    }
}

impl Inner {
    fn failed(
        &mut self,
        error: &HistoryError,
        mut pending: Vec<(VolumeId, Period)>,
    ) -> Vec<(VolumeId, Period)> {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(
                %error,
                "the history of contracts can't be written; serving goes on, and it is tried again each minute"
            );
        }
        let lost = pending.len().saturating_sub(PENDING_MAX);
        if lost > 0 {
            tracing::warn!(lost, "minutes of the history of contracts are lost");
            pending.drain(..lost);
        }
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_history_everything_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = Recorder::open(&dir.path().join("missing"));
        let rows = vec![(VolumeId(1), Period::default())];
        assert!(recorder.write(rows, 60).is_empty());
        assert!(recorder.periods(VolumeId(1), 60, 0, 10).periods.is_empty());
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_up_to_a_bound() {
        let mut inner = Inner { history: None, written_until: 0, failing: false };
        let minute = |start| (VolumeId(1), Period { start, ..Period::default() });
        let rows = (0..10 + PENDING_MAX as u64).map(minute).collect();
        let error = HistoryError::NewerFormat { found: 2, known: 1 };
        let kept = inner.failed(&error, rows);
        assert_eq!((kept.len(), kept[0].1.start, inner.failing), (PENDING_MAX, 10, true));
    }
}
