//! The one who coordinates: has every worker prepare, lets them start at the same instant, shows
//! what they do together, and makes one result of theirs. It applies no load itself.
//!
//! A worker that is lost before the load begins ends the step; one that is lost during it leaves
//! the others going, and the result says what is missing.

mod gathered;
mod live;
mod seat;
mod split;
mod step;

use super::clock::Clock;
use super::launch::{Connected, Offspring};
use super::link::{Incoming, Link, Patience, Sink};
use super::wire::{Order, Report};
use crate::suite::{Applied, Context};
pub(crate) use split::{Hand, deal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use step::Step;
use weir_load::error::BenchError;
use weir_load::target::Targets;
use weir_load::workload::{Length, Workload};
use weir_results::Machine;

/// Reports that wait to be looked at; connections are read no further then.
const REPORTS: usize = 1024;
/// Longest wait for the last words of a worker that has gone.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// A load may last so many seconds: what comes of it has to fit into one message.
const LOAD_SECONDS_MAX: f64 = 86_400.0;

/// Several workers, connected.
pub struct Coordinator {
    workers: Vec<Remote>,
    reports: Receiver<(usize, Incoming<Report>)>,
    clock: Clock,
    patience: Patience,
    steps: u32,
    remarks: Vec<String>,
}

/// A worker, as long as it is there.
struct Remote {
    name: String,
    machine: Machine,
    // Dropped in this order: the connection ends, then the child is waited for.
    link: Link<Order>,
    child: Option<Offspring>,
    gone: Option<String>,
    /// Records that it may still send: they are large, and the queue of reports is long.
    expected: Arc<AtomicUsize>,
}

impl Coordinator {
    /// Speaks with these workers from now on.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub fn new(
        connected: Vec<Connected>,
        clock: Clock,
        patience: Patience,
    ) -> Result<Self, BenchError> {
        let (sender, reports) = sync_channel(REPORTS);
        let mut remarks = Vec::new();
        let mut workers = Vec::with_capacity(connected.len());
        for (number, Connected { name, welcome, halves, child }) in
            connected.into_iter().enumerate()
        {
            let own = env!("CARGO_PKG_VERSION");
            if welcome.program != own {
                let theirs = &welcome.program;
                remarks.push(format!("worker {name} runs weir {theirs}, the coordinator {own}"));
            }
            let sender = sender.clone();
            let expected = Arc::new(AtomicUsize::new(0));
            let allowed = Arc::clone(&expected);
            let sink: Sink<Order, Report> = Box::new(move |outbox, mut incoming| {
                if is_record(&incoming) && !take_one(&allowed) {
                    outbox.hang_up();
                    let why = "it reported a load without a request".to_owned();
                    incoming = Incoming::Closed(why);
                }
                if !matches!(incoming, Incoming::Message(_, Report::Alive)) {
                    // Nobody listens any more: the coordinator has ended.
                    drop(sender.send((number, incoming)));
                }
            });
            let link = Link::open(halves, clock, patience, sink)?;
            workers.push(Remote {
                name,
                machine: welcome.machine,
                link,
                child,
                gone: None,
                expected,
            });
        }
        Ok(Self { workers, reports, clock, patience, steps: 0, remarks })
    }

    /// The number of workers at the beginning.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.workers.len()
    }

    /// Were there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The machines of the workers, each once.
    #[must_use]
    pub fn machines(&self) -> Vec<Machine> {
        let mut machines: Vec<Machine> = Vec::new();
        for worker in &self.workers {
            if !machines.contains(&worker.machine) {
                machines.push(worker.machine.clone());
            }
        }
        machines
    }

    /// Has the workers apply `loads` to `targets` together.
    ///
    /// # Errors
    /// [`BenchError`] if the load could not begin, or nothing is known of it because all workers
    /// were lost.
    pub fn apply(
        &mut self,
        targets: &Targets,
        loads: &[Workload],
        context: &mut Context<'_>,
    ) -> Result<Applied, BenchError> {
        for load in loads {
            load.check()?;
        }
        check_lengths(loads)?;
        while let Ok((worker, incoming)) = self.reports.try_recv() {
            self.note(worker, &incoming);
        }
        let hands: Vec<Hand<'_>> = self
            .workers
            .iter()
            .map(|worker| Hand { name: &worker.name, there: worker.gone.is_none() })
            .collect();
        let (dealt, mut notes) = deal(loads, &hands)?;
        notes.append(&mut self.remarks);
        self.steps += 1;
        Step::new(self, dealt, context).apply(targets, loads, notes)
    }

    /// Notes that a worker has gone.
    fn note(&mut self, worker: usize, incoming: &Incoming<Report>) -> Option<String> {
        let (worker, Incoming::Closed(why)) = (self.workers.get_mut(worker)?, incoming) else {
            return None;
        };
        let said =
            worker.child.as_ref().map(|child| child.last_words(LAST_WORDS)).unwrap_or_default();
        let why =
            if said.is_empty() { why.clone() } else { format!("{why} (its message: {said})") };
        worker.gone = Some(why.clone());
        Some(why)
    }

    /// Lets a worker send so many records.
    fn expect_records(&self, worker: usize, count: usize) {
        if let Some(worker) = self.workers.get(worker) {
            worker.expected.store(count, Ordering::Release);
        }
    }

    /// Sends to one that is there; that it has gone is told by its connection.
    fn send(&self, worker: usize, order: &Order) -> Result<(), BenchError> {
        let Some(worker) = self.workers.get(worker).filter(|worker| worker.gone.is_none()) else {
            return Ok(());
        };
        match worker.link.outbox().send(order) {
            Ok(()) | Err(super::wire::WireError::Closed) => Ok(()),
            Err(error) => Err(BenchError::Peer(format!("worker {}: {error}", worker.name))),
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.link.outbox().offer(&Order::Bye);
        }
    }
}

const fn is_record(incoming: &Incoming<Report>) -> bool {
    matches!(incoming, Incoming::Message(_, Report::Record { .. }))
}

fn take_one(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).is_ok()
}

/// Checks that what comes of the loads fits into one message.
pub(crate) fn check_lengths(loads: &[Workload]) -> Result<(), BenchError> {
    for load in loads {
        let seconds = load.warmup_s + load.measured_time().map_or(0.0, |time| time.as_secs_f64());
        if matches!(load.length, Length::Seconds(_)) && seconds > LOAD_SECONDS_MAX {
            return Err(BenchError::Workload(format!(
                "the load {:?} takes {seconds:.0} s; with workers the maximum is one day",
                load.name
            )));
        }
    }
    Ok(())
}
