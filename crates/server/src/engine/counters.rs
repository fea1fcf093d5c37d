//! Counters of the whole server; all only grow.

use crate::sync::{AtomicU64, Ordering};
use weir_control::plane::Totals;

/// Counters since the start, beside those of volumes.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    refused: AtomicU64,
    shed: AtomicU64,
    misbehaved: AtomicU64,
    reading_stopped: AtomicU64,
    requests_refused: AtomicU64,
    repetitions_dropped: AtomicU64,
    repetitions_answered: AtomicU64,
}

impl Counters {
    /// A connection was accepted.
    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was refused because a bound was reached.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// An idle connection was closed to make room for another.
    pub(crate) fn shed(&self) {
        self.shed.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was closed for what its peer sent.
    pub(crate) fn misbehaved(&self) {
        self.misbehaved.fetch_add(1, Ordering::Relaxed);
    }

    /// Reading from a connection stopped because a bound was reached.
    pub(crate) fn reading_stopped(&self) {
        self.reading_stopped.fetch_add(1, Ordering::Relaxed);
    }

    /// A request was refused because those that wait hold all the memory they may.
    pub(crate) fn request_refused(&self) {
        self.requests_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that is underway came again.
    pub(crate) fn repetition_dropped(&self) {
        self.repetitions_dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that was answered came again and got the same reply.
    pub(crate) fn repetition_answered(&self) {
        self.repetitions_answered.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters; the gauges are the caller's to fill.
    pub(crate) fn read(&self) -> Totals {
        Totals {
            connections_accepted: self.accepted.load(Ordering::Relaxed),
            connections_refused: self.refused.load(Ordering::Relaxed),
            connections_shed: self.shed.load(Ordering::Relaxed),
            connections_misbehaved: self.misbehaved.load(Ordering::Relaxed),
            reading_stopped: self.reading_stopped.load(Ordering::Relaxed),
            requests_refused: self.requests_refused.load(Ordering::Relaxed),
            repetitions_dropped: self.repetitions_dropped.load(Ordering::Relaxed),
            repetitions_answered: self.repetitions_answered.load(Ordering::Relaxed),
            ..Totals::default()
        }
    }
}
