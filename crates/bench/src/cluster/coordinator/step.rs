//! One step over the workers, from one barrier to the next.

use super::Coordinator;
use super::gathered::gather;
use super::live::Live;
use super::seat::{Progress, Seat};
use crate::cluster::clock::{Reading, best, lead_ns};
use crate::cluster::link::Incoming;
use crate::cluster::wire::{Assigned, Order, Preparation, Report};
use crate::suite::{Applied, Context};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_load::error::BenchError;
use weir_load::target::{Target, Targets};
use weir_load::workload::Workload;

/// Readings of each clock before a step, and after it.
const PROBES: usize = 8;
/// Time between two looks for new progress and for a stop.
const LOOK: Duration = Duration::from_millis(20);
/// A machine name has at most 255 bytes, and clients add their numbers (RFC 5531 §8.2).
const MACHINE_CHARS_MAX: usize = 60;
/// Length of a window that is shown.
const WINDOW_NS: u64 = 100_000_000;

/// A step that goes on.
pub(super) struct Step<'a, 'c> {
    all: &'a mut Coordinator,
    context: &'a mut Context<'c>,
    number: u32,
    seats: Vec<Seat>,
    start_ns: Option<u64>,
    live: Live,
    shown_ns: u64,
    stopped_ns: Option<u64>,
}

impl<'a, 'c> Step<'a, 'c> {
    /// The step with what was `dealt` to each worker.
    pub(super) fn new(
        all: &'a mut Coordinator,
        dealt: Vec<Vec<Assigned>>,
        context: &'a mut Context<'c>,
    ) -> Self {
        let mut seats = Vec::with_capacity(dealt.len());
        for (worker, loads) in dealt.into_iter().enumerate() {
            if !loads.is_empty() {
                let name = all.workers.get(worker).map(|worker| worker.name.clone());
                let name = name.unwrap_or_default();
                seats.push(Seat { worker, name, loads, ..Seat::default() });
            }
        }
        let number = all.steps;
        let live = Live::default();
        Self { all, context, number, seats, start_ns: None, live, shown_ns: 0, stopped_ns: None }
    }

    /// From the first barrier to the last.
    pub(super) fn apply(
        mut self,
        targets: &Targets,
        loads: &[Workload],
        notes: Vec<String>,
    ) -> Result<Applied, BenchError> {
        let applied = |load: &Workload| Ok(load.applied_to(targets.of(load)?));
        let applied: Vec<Workload> =
            loads.iter().map(applied).collect::<Result<_, BenchError>>()?;
        if let Err(error) = self.make_ready(targets) {
            self.give_up();
            return Err(error);
        }
        let started_unix_s = self.start()?;
        self.wait(|seat| seat.is_awaited(Progress::Ended), false)?;
        let number = self.number;
        self.order(|seat| {
            (seat.progress == Progress::Ended).then_some(Order::Finish { step: number })
        })?;
        self.wait(
            |seat| seat.progress == Progress::Ended && seat.is_awaited(Progress::Finished),
            false,
        )?;
        self.probe(|seat| seat.progress == Progress::Finished)?;
        self.wait(
            |seat| seat.progress == Progress::Finished && seat.readings_after.len() < PROBES,
            false,
        )?;
        gather(self.seats, &applied, started_unix_s, self.context.control, notes)
    }

    fn make_ready(&mut self, targets: &Targets) -> Result<(), BenchError> {
        let step = self.number;
        self.probe(|_| true)?;
        self.wait(|seat| seat.is_awaited(Progress::Probed), true)?;
        self.order(|seat| {
            let (targets, loads) = (known_as(targets, &seat.name), seat.loads.clone());
            Some(Order::Prepare(Box::new(Preparation { step, targets, loads })))
        })?;
        self.wait(|seat| seat.is_awaited(Progress::Prepared), true)?;
        self.order(|_| Some(Order::Attach { step }))?;
        self.wait(|seat| seat.is_awaited(Progress::Attached), true)?;
        (self.context.ready)();
        if self.context.control.stopped() {
            return Err(BenchError::Workload("stopped before the load began".to_owned()));
        }
        Ok(())
    }

    /// Announces the start, which lies far enough ahead for everybody to hear of it; gives it in
    /// seconds since 1970.
    fn start(&mut self) -> Result<f64, BenchError> {
        let readings: Vec<Reading> =
            self.seats.iter().filter_map(|seat| best(&seat.readings)).collect();
        let lead_ns = lead_ns(&readings);
        let start_ns = self.all.clock.now_ns().saturating_add(lead_ns);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.start_ns = Some(start_ns);
        self.context.control.begin(self.all.clock.instant(start_ns));
        let step = self.number;
        for seat in &self.seats {
            self.all.expect_records(seat.worker, seat.loads.len());
        }
        self.order(|seat| {
            let at_ns = best(&seat.readings)?.theirs(start_ns);
            Some(Order::Start { step, at_ns })
        })?;
        Ok((unix + Duration::from_nanos(lead_ns)).as_secs_f64())
    }

    /// Sends each worker its order, if it has one.
    fn order(&self, order: impl Fn(&Seat) -> Option<Order>) -> Result<(), BenchError> {
        for seat in self.seats.iter().filter(|seat| seat.lost.is_none()) {
            if let Some(order) = order(seat) {
                self.all.send(seat.worker, &order)?;
            }
        }
        Ok(())
    }

    fn probe(&self, which: impl Fn(&Seat) -> bool) -> Result<(), BenchError> {
        self.order(|seat| which(seat).then(|| Order::Probe { sent_ns: self.all.clock.now_ns() }))
    }

    /// Has those that are there clear away.
    fn give_up(&self) {
        let step = self.number;
        for order in [Order::Stop { step }, Order::Discard { step }] {
            // The error that led here is the one to tell.
            drop(self.order(|_| Some(order.clone())));
        }
    }

    /// Goes on until no worker that is there is `awaited` any more. With `all`, a lost one is an
    /// error.
    fn wait(&mut self, awaited: impl Fn(&Seat) -> bool, all: bool) -> Result<(), BenchError> {
        loop {
            if let Some(seat) = self.seats.iter().find(|seat| seat.lost.is_some() && all) {
                let (name, story) = (&seat.name, seat.story());
                return Err(BenchError::Peer(format!("worker {name} could not begin: {story}")));
            }
            if !self.seats.iter().any(|seat| seat.lost.is_none() && awaited(seat)) {
                return Ok(());
            }
            self.pass_on_a_stop(&awaited)?;
            match self.all.reports.recv_timeout(LOOK) {
                Ok((worker, incoming)) => self.take(worker, incoming)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(BenchError::Worker),
            }
            self.show();
        }
    }

    fn pass_on_a_stop(&mut self, awaited: impl Fn(&Seat) -> bool) -> Result<(), BenchError> {
        let now_ns = self.all.clock.now_ns();
        let Some(stopped_ns) = self.stopped_ns else {
            if self.context.control.stopped() {
                self.stopped_ns = Some(now_ns);
                let step = self.number;
                return self.order(|_| Some(Order::Stop { step }));
            }
            return Ok(());
        };
        let drains = self.seats.iter().flat_map(|seat| &seat.loads);
        let drain_s = drains.map(|assigned| assigned.workload.drain_s).fold(0.0, f64::max);
        let patience = self.all.patience.ending + Duration::from_secs_f64(drain_s);
        if Duration::from_nanos(now_ns.saturating_sub(stopped_ns)) > patience {
            for seat in self.seats.iter().filter(|seat| seat.lost.is_none() && awaited(seat)) {
                if let Some(worker) = self.all.workers.get(seat.worker) {
                    worker.link.outbox().hang_up();
                }
            }
        }
        Ok(())
    }

    /// Takes in what came from a worker.
    fn take(&mut self, worker: usize, incoming: Incoming<Report>) -> Result<(), BenchError> {
        let at_s = self.seconds();
        let gone = self.all.note(worker, &incoming);
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.worker == worker) else {
            return Ok(());
        };
        let (at_ns, report) = match incoming {
            Incoming::Closed(why) => {
                seat.lose(gone.unwrap_or(why), at_s);
                return Ok(());
            }
            Incoming::Message(at_ns, report) => (at_ns, report),
        };
        if seat.lost.is_some() || step_of(&report).is_some_and(|step| step != self.number) {
            return Ok(());
        }
        let probed = matches!(report, Report::Pong { .. });
        match seat.take(at_ns, at_s, report) {
            Ok(Some(window)) => self.live.add(&window),
            Ok(None) => {}
            Err(why) => seat.lose(why, at_s),
        }
        let again = match seat.progress {
            Progress::Probing => seat.readings.len() < PROBES,
            Progress::Finished => seat.readings_after.len() < PROBES,
            _ => false,
        };
        if probed && again {
            let sent_ns = self.all.clock.now_ns();
            return self.all.send(worker, &Order::Probe { sent_ns });
        }
        if probed && seat.progress == Progress::Probing {
            seat.progress = Progress::Probed;
        }
        Ok(())
    }

    /// Seconds since the start; `None` before it.
    #[expect(clippy::cast_precision_loss, reason = "told to people")]
    fn seconds(&self) -> Option<f64> {
        let passed_ns = self.all.clock.now_ns().checked_sub(self.start_ns?)?;
        Some(passed_ns as f64 / 1e9)
    }

    /// Shows how far it is, every 100 ms.
    fn show(&mut self) {
        let now_ns = self.all.clock.now_ns();
        if now_ns.saturating_sub(self.shown_ns) < WINDOW_NS {
            return;
        }
        self.shown_ns = now_ns;
        let Some(start_ns) = self.start_ns else {
            let sum = |sum: (u64, u64), seat: &Seat| {
                (sum.0.saturating_add(seat.layout.0), sum.1.saturating_add(seat.layout.1))
            };
            let (done, total) = self.seats.iter().fold((0, 0), sum);
            if total > 0 {
                (self.context.layout)(done, total);
            }
            return;
        };
        if let Some(window) = self.live.take(now_ns.saturating_sub(start_ns)) {
            (self.context.observe)(&window);
        }
    }
}

/// The targets for a worker: its clients are known to servers by the worker's name.
fn known_as(targets: &Targets, worker: &str) -> Targets {
    let mut targets = targets.clone();
    for (_, target) in targets.iter_mut() {
        if let Target::Nfs(nfs) = target {
            nfs.machine = worker.chars().take(MACHINE_CHARS_MAX).collect();
        }
    }
    targets
}

/// The step that a report is about.
const fn step_of(report: &Report) -> Option<u32> {
    match report {
        Report::Layout { step, .. }
        | Report::Prepared { step }
        | Report::Attached { step }
        | Report::Failed { step, .. }
        | Report::Window { step, .. }
        | Report::Record { step, .. }
        | Report::Ended { step, .. }
        | Report::Finished { step, .. } => Some(*step),
        _ => None,
    }
}
