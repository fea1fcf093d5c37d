//! Permission to carry out one operation on a volume: the gate's charge for it, and the
//! operation's place in the statistics of the volume.
//!
//! A permit that is [settled](Permit::settle) returns the unused part of its charge; one that is
//! dropped returns all of it. So no path, not even the end of a connection or of a task, keeps a
//! charge for an operation that was not carried out. A request holds one permit; a compound or a
//! chain holds one for each operation that it has begun. Not here: the wait for a permit, which is
//! the gate's and its worker's.

use super::stats::{Done, Stages, counts};
use super::{ServedVolume, is_judged};
use crate::op_name::OpName;
use crate::sync::Arc;
use weir_core::{Clock, Mono, ObjectKey, OpClass};
use weir_gate::{Charged, ConnId, FileCharge, FileMark};
use weir_qos::Cost;

/// The operation for which a permit is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) op: OpName,
    pub(crate) class: OpClass,
    /// The most that the operation can use.
    pub(crate) cost: Cost,
    /// Time at which the request for it arrived.
    pub(crate) arrived: Mono,
}

/// The end of an operation that was carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Payload that a READ or WRITE moved, in bytes; also that of a READ that fails after the store
    /// has read it.
    pub(crate) moved: u64,
    pub(crate) ok: bool,
    /// Has it a connection that its reply goes to?
    pub(crate) replied: bool,
    /// Time at which the store woke the worker, if the operation had to wait.
    pub(crate) woken: Option<Mono>,
}

/// A permit's end.
pub(crate) struct Settled {
    pub(crate) volume: Arc<ServedVolume>,
    /// The contract of the volume is judged by the operation.
    pub(crate) judged: bool,
    /// Requests wait that may go sooner now: poll the gate.
    pub(crate) poll: bool,
}

/// Permission to carry out an operation on a volume.
pub(crate) struct Permit {
    /// The volume; `None` once the permit is settled.
    volume: Option<Arc<ServedVolume>>,
    op: OpName,
    class: OpClass,
    cost: Cost,
    file: Option<Box<FileCharge>>,
    charged_at: Mono,
    arrived: Mono,
    /// The connection of the request. Its worker counts the operation.
    connection: ConnId,
    /// The file that a READ or WRITE is for.
    mark: Option<FileMark>,
    /// Time at which the operation began.
    begun: Option<Mono>,
    /// The operation waits, or may, for others than the store.
    aside: bool,
}

impl Permit {
    /// The permit of a request on `connection` for an operation on `volume`, which reads or writes
    /// `file` if it names one, and which the gate charged at `charged_at`.
    pub(crate) fn new(
        connection: ConnId,
        volume: Arc<ServedVolume>,
        asked: Asked,
        file: Option<&ObjectKey>,
        charged: Charged,
        charged_at: Mono,
    ) -> Self {
        let moves = matches!(asked.class, OpClass::Read | OpClass::Write);
        Self {
            volume: Some(volume),
            op: asked.op,
            class: asked.class,
            cost: charged.volume,
            file: charged.file.map(Box::new),
            charged_at,
            arrived: asked.arrived,
            connection,
            mark: file.filter(|_| moves).map(FileMark::of),
            begun: None,
            aside: false,
        }
    }

    /// The volume; `None` if the permit is settled.
    pub(crate) fn volume(&self) -> Option<&Arc<ServedVolume>> {
        self.volume.as_ref()
    }

    /// The charge to the volume.
    pub(crate) fn cost(&self) -> Cost {
        self.cost
    }

    /// Begins the operation, for which `asked` passed the gate at once.
    pub(crate) fn begin(&mut self, asked: Cost, now: Mono) {
        self.begun = Some(now);
        if let Some(volume) = self.volume.as_ref().filter(|_| self.is_judged()) {
            volume.stats.passed(self.connection.worker, asked, true, now.since(self.arrived), now);
        }
    }

    /// Begins the operation, whose request has waited at the gate since `since`.
    pub(crate) fn begin_delayed(&mut self, since: Mono, now: Mono) {
        self.begun = Some(now);
        let Some(volume) = &self.volume else { return };
        volume.stats.delayed(self.connection.worker, now.since(since));
        if self.is_judged() {
            let queued = now.since(self.charged_at);
            volume.stats.passed(self.connection.worker, self.cost, false, queued, now);
        }
    }

    /// The operation may wait from now on for other clients, or for permits of its parts: no part
    /// of the server is to blame for its time.
    pub(crate) fn set_aside(&mut self, now: Mono) {
        let Some((volume, begun)) = self.volume.as_ref().zip(self.begun) else { return };
        if self.is_judged() && !self.aside {
            self.aside = true;
            volume.stats.set_aside(self.connection.worker, now.since(begun), now);
        }
    }

    /// Ends the operation at `now`: counts it, and returns the unused part of its charge.
    pub(crate) fn settle(mut self, ended: Ended, now: Mono) -> Option<Settled> {
        let begun = self.begun?;
        let volume = self.volume.take()?;
        let Ended { moved, ok, replied, woken } = ended;
        let bytes = self.cost.bytes.saturating_sub(moved);
        let counts = counts(moved, ok);
        let operations = if counts { 0 } else { self.cost.operations };
        let file = self.file.take().and_then(|charge| charge.unused(moved, !counts));
        let unused = Charged { volume: Cost { bytes, operations }, file };
        let poll = volume.gate.refund(unused, self.charged_at, now);
        let inside = !self.aside;
        let started = if inside { begun } else { now };
        let stages = Stages { arrived: self.arrived, started, woken };
        let (connection, file) = (self.connection, self.mark);
        let (op, class, cost) = (self.op, self.class, self.cost);
        let done = Done { connection, op, class, cost, moved, file, ok, replied, inside, stages };
        volume.stats.done(&done, now);
        Some(Settled { volume, judged: self.is_judged(), poll })
    }

    /// Does the operation cost nothing, and is no contract judged by it?
    pub(crate) fn is_free(&self) -> bool {
        self.cost == Cost::ZERO && self.file.is_none() && !self.is_judged()
    }

    /// Ends a [free](Self::is_free) operation: counts it, but for its latency and its connection.
    /// Its volume, its connection, and the time of its arrival.
    #[inline]
    pub(crate) fn settle_free(mut self, ok: bool) -> Option<(Arc<ServedVolume>, ConnId, Mono)> {
        let volume = self.volume.take()?;
        volume.stats.answered(self.connection.worker, self.op, ok);
        Some((volume, self.connection, self.arrived))
    }

    /// Ends an operation within a request now, and has the gate polled if requests wait that may go
    /// sooner. The reply of the request stands for it.
    pub(crate) fn end(self, moved: u64, ok: bool) {
        let Some(now) = self.volume().map(|volume| volume.clock().now()) else { return };
        let ended = Ended { moved, ok, replied: false, woken: None };
        if let Some(Settled { volume, poll: true, .. }) = self.settle(ended, now) {
            volume.workers.poll(&volume.gate);
        }
    }

    /// Returns all of the charge: the operation is not carried out. The volume, if its gate is to
    /// be polled because requests wait that may go sooner now.
    pub(crate) fn give_back(mut self, now: Mono) -> Option<Arc<ServedVolume>> {
        self.return_all(now)
    }

    fn return_all(&mut self, now: Mono) -> Option<Arc<ServedVolume>> {
        let volume = self.volume.take()?;
        if self.is_judged() {
            match self.begun {
                Some(_) if !self.aside => {
                    volume.stats.dropped(self.connection.worker, self.cost, now);
                }
                _ => volume.stats.returned(self.connection.worker, self.cost, now),
            }
        }
        let charged = Charged { volume: self.cost, file: self.file.take().map(|file| *file) };
        volume.gate.refund(charged, self.charged_at, now).then_some(volume)
    }

    fn is_judged(&self) -> bool {
        is_judged(self.class, self.cost)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(volume) = &self.volume else { return };
        let now = volume.clock().now();
        if let Some(volume) = self.return_all(now) {
            volume.workers.poll(&volume.gate);
        }
    }
}
