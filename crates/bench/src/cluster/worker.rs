//! A worker with one coordinator: does what it is ordered, step by step, and sends back what it
//! saw. When the coordinator goes away, or somebody ends the worker, the load stops and its files
//! are removed. How the connection came about is not its business.

use super::clock::Clock;
use super::greet::Identity;
use super::link::{Halves, Incoming, Link, Outbox, Patience, Sink, Slot};
use super::wire::{Order, Preparation, Report, WireError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use weir_load::control::Control;
use weir_load::engine::{PreparedStep, StepRecord, prepare_step};
use weir_load::error::BenchError;
use weir_load::target::{Password, Target};
use weir_load::workload::Workload;

/// Orders that wait to be carried out; the connection is read no further then.
const ORDERS: usize = 64;
/// Time between two looks for an order to end.
const LOOK: Duration = Duration::from_millis(50);
/// Time between two reports on the laying out.
const LAYOUT_EVERY: Duration = Duration::from_millis(200);

/// A worker of this process.
#[derive(Clone)]
pub struct Worker {
    /// The worker's identity.
    pub identity: Identity,
    /// The worker's clock.
    pub clock: Clock,
    /// The worker's waiting times.
    pub patience: Patience,
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// The coordinator was done.
    Bye,
    /// The session was lost, with the reason.
    Lost(String),
    /// This worker was told to end.
    Told,
}

impl Worker {
    /// Obeys the coordinator behind `halves`, which has been greeted, until one of both ends it
    /// (this worker by `end`). What was made at targets is removed then.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub fn serve(&self, halves: Halves, end: &Control) -> Result<Farewell, BenchError> {
        let (sender, orders) = sync_channel(ORDERS);
        let current = Arc::new(Slot::new(None));
        let sink = obey(Arc::clone(&current), sender, self.clock);
        let link = Link::open(halves, self.clock, self.patience, sink)?;
        let done = Arc::new(AtomicBool::new(false));
        let watching = watch(end.clone(), current, Arc::clone(&done))?;
        let mut session =
            Session { clock: self.clock, outbox: link.outbox().clone(), end, stage: Stage::Idle };
        let farewell = session.serve(&orders);
        session.clear();
        done.store(true, Ordering::Release);
        drop(watching.join());
        Ok(farewell)
    }
}

/// The hand on the step that is being made ready or applied, by its number.
type Current = Arc<Slot<Option<(u32, Control)>>>;

/// A task of the session.
enum Task {
    Order(Order),
    Prepare(Box<Preparation>, Control),
    Closed(String),
}

/// Obeys orders that can't wait for their turn as soon as they come: probes are answered, and a
/// step is stopped while it goes on.
fn obey(current: Current, tasks: SyncSender<Task>, clock: Clock) -> Sink<Report, Order> {
    Box::new(move |outbox, incoming| {
        let task = match incoming {
            Incoming::Message(_, Order::Alive) => return,
            Incoming::Message(at_ns, Order::Probe { sent_ns }) => {
                let answered_ns = clock.now_ns();
                let pong = Report::Pong { sent_ns, received_ns: at_ns, answered_ns };
                // A peer that has gone needs no answer.
                return drop(outbox.send(&pong));
            }
            Incoming::Message(_, Order::Stop { step }) => {
                return current.with(|current| stop(current.as_ref(), |number| number == step));
            }
            Incoming::Message(_, Order::Prepare(preparation)) => {
                let control = Control::new();
                let hand = (preparation.step, control.clone());
                current.with(|current| *current = Some(hand));
                Task::Prepare(preparation, control)
            }
            Incoming::Message(_, order) => Task::Order(order),
            Incoming::Closed(why) => {
                current.with(|current| stop(current.as_ref(), |_| true));
                Task::Closed(why)
            }
        };
        // The session has ended: nobody is left to do it.
        drop(tasks.send(task));
    })
}

fn stop(current: Option<&(u32, Control)>, which: impl Fn(u32) -> bool) {
    if let Some((step, control)) = current
        && which(*step)
    {
        control.stop();
    }
}

/// Stops the step when the worker is told to end.
fn watch(
    end: Control,
    current: Current,
    done: Arc<AtomicBool>,
) -> Result<std::thread::JoinHandle<()>, BenchError> {
    let body = move || {
        while !done.load(Ordering::Acquire) {
            if end.stopped() {
                current.with(|current| stop(current.as_ref(), |_| true));
            }
            std::thread::sleep(LOOK);
        }
    };
    std::thread::Builder::new()
        .name("bench-end".to_owned())
        .spawn(body)
        .map_err(|source| BenchError::Local { what: "starting a thread", source })
}

struct Session<'a> {
    clock: Clock,
    outbox: Outbox<Report>,
    end: &'a Control,
    stage: Stage,
}

/// The stage of the step.
enum Stage {
    Idle,
    Ready(Box<Ready>),
}

struct Ready {
    step: u32,
    /// Numbers of the loads, in the order of `prepared`.
    loads: Vec<u32>,
    prepared: PreparedStep,
    control: Control,
    /// The step's load is over.
    ended: bool,
}

impl Session<'_> {
    fn serve(&mut self, orders: &Receiver<Task>) -> Farewell {
        loop {
            if self.end.stopped() {
                return self.leave();
            }
            let outcome = match orders.recv_timeout(LOOK) {
                Ok(Task::Order(Order::Bye)) => return Farewell::Bye,
                Ok(Task::Closed(why)) => return Farewell::Lost(why),
                Err(RecvTimeoutError::Disconnected) => return Farewell::Lost(String::new()),
                Err(RecvTimeoutError::Timeout) => continue,
                Ok(Task::Prepare(preparation, control)) => self.prepare(*preparation, control),
                Ok(Task::Order(order)) => self.carry_out(&order),
            };
            if let Err(error) = outcome {
                return Farewell::Lost(error.to_string());
            }
        }
    }

    fn carry_out(&mut self, order: &Order) -> Result<(), WireError> {
        match *order {
            Order::Attach { step } => self.attach(step),
            Order::Start { step, at_ns } => self.start(step, at_ns),
            Order::Finish { step } => self.finish(step),
            Order::Discard { step } => {
                if self.is_at(step) {
                    self.clear();
                }
                Ok(())
            }
            _ => self.out_of_turn(0),
        }
    }

    fn is_at(&self, step: u32) -> bool {
        matches!(&self.stage, Stage::Ready(ready) if ready.step == step)
    }

    fn out_of_turn(&mut self, step: u32) -> Result<(), WireError> {
        self.clear();
        let why = "an unexpected order arrived; the step is aborted".to_owned();
        self.outbox.send(&Report::Failed { step, why })
    }

    /// Removes what the step made, if there is one.
    fn clear(&mut self) {
        if let Stage::Ready(ready) = std::mem::replace(&mut self.stage, Stage::Idle) {
            // Whoever could be told has gone, or has given the step up.
            drop(ready.prepared.discard());
        }
    }

    fn prepare(&mut self, preparation: Preparation, control: Control) -> Result<(), WireError> {
        self.clear();
        let Preparation { step, mut targets, loads } = preparation;
        for (_, target) in targets.iter_mut() {
            if let Target::Smb(smb) = target {
                // Passwords are not sent to workers: each has its own.
                smb.password = Password::from_environment();
            }
        }
        let (loads, workloads): (Vec<u32>, Vec<Workload>) =
            loads.into_iter().map(|assigned| (assigned.load, assigned.workload)).unzip();
        let mut told = Instant::now();
        let outbox = &self.outbox;
        let mut progress = |done, total| {
            if told.elapsed() >= LAYOUT_EVERY {
                told = Instant::now();
                outbox.offer(&Report::Layout { step, done, total });
            }
        };
        match prepare_step(&targets, &workloads, &control, &mut progress) {
            Ok(prepared) => {
                let ready = Ready { step, loads, prepared, control, ended: false };
                self.stage = Stage::Ready(Box::new(ready));
                self.outbox.send(&Report::Prepared { step })
            }
            Err(error) => self.fail(step, &error),
        }
    }

    fn fail(&self, step: u32, error: &BenchError) -> Result<(), WireError> {
        self.outbox.send(&Report::Failed { step, why: error.in_full() })
    }

    fn attach(&mut self, step: u32) -> Result<(), WireError> {
        match &mut self.stage {
            Stage::Ready(ready) if ready.step == step => match ready.prepared.attach() {
                Ok(()) => self.outbox.send(&Report::Attached { step }),
                Err(error) => self.fail(step, &error),
            },
            _ => self.out_of_turn(step),
        }
    }

    fn start(&mut self, step: u32, at_ns: u64) -> Result<(), WireError> {
        let Stage::Ready(ready) = &mut self.stage else {
            return self.out_of_turn(step);
        };
        if ready.step != step || ready.ended {
            return self.out_of_turn(step);
        }
        let late_ns = self.clock.now_ns().saturating_sub(at_ns);
        let outbox = &self.outbox;
        let observe = |window: &_| outbox.offer(&Report::Window { step, window: *window });
        let outcome = ready.prepared.run(self.clock.instant(at_ns), &ready.control, observe);
        ready.ended = outcome.is_ok();
        let loads = ready.loads.clone();
        match outcome {
            Ok(record) => self.report(step, &loads, record, late_ns),
            Err(error) => self.fail(step, &error),
        }
    }

    fn report(
        &mut self,
        step: u32,
        loads: &[u32],
        record: StepRecord,
        late_ns: u64,
    ) -> Result<(), WireError> {
        if self.end.stopped() {
            let why = "it was asked to stop".to_owned();
            self.outbox.send(&Report::Leaving { why })?;
        }
        for (load, record) in loads.iter().zip(record.loads) {
            let report = Report::Record { step, load: *load, record: Box::new(record) };
            match self.outbox.send(&report) {
                Err(error @ (WireError::TooLong { .. } | WireError::Malformed(_))) => {
                    let why = format!("cannot send the result: {error}");
                    return self.outbox.send(&Report::Failed { step, why });
                }
                sent => sent?,
            }
        }
        self.outbox.send(&Report::Ended { step, late_ms: late_ns / 1_000_000 })
    }

    /// Clears away, and tells what could not be.
    fn finish(&mut self, step: u32) -> Result<(), WireError> {
        if !matches!(&self.stage, Stage::Ready(ready) if ready.step == step && ready.ended) {
            return self.out_of_turn(step);
        }
        let Stage::Ready(ready) = std::mem::replace(&mut self.stage, Stage::Idle) else {
            return Ok(());
        };
        let failure = ready.prepared.finish().err();
        let first = ready.loads.first().copied().unwrap_or(0);
        let told = failure.map(|error| (first, format!("clean-up: {}", error.in_full())));
        self.outbox.send(&Report::Finished { step, failures: told.into_iter().collect() })
    }

    /// The worker was told to end by somebody else than its coordinator.
    fn leave(&mut self) -> Farewell {
        let why = "it was asked to stop".to_owned();
        // The connection is closed in any case.
        drop(self.outbox.send(&Report::Leaving { why }));
        match &self.stage {
            Stage::Ready(ready) if ready.ended => drop(self.finish(ready.step)),
            _ => self.clear(),
        }
        Farewell::Told
    }
}
