//! Starting the workers of all loads of a step, showing what they do, and waiting for them.

use super::collect::Watcher;
use super::halt::{Halt, Halted};
use super::record::{Record, StepRecord};
use super::schedule::Schedule;
use super::usage::MachineMeter;
use super::{Prepared, Window, Worker, WorkerOutcome};
use crate::control::Control;
use crate::error::BenchError;
use crate::stats::{Recorder, WindowReport};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between two looks for a given-up start.
const LOOK: Duration = Duration::from_millis(10);

/// Applies `loads` from `start` on, until the last has ended. Also gives the reason if they were
/// ended before their time.
pub(super) fn drive(
    loads: &[Prepared],
    start: Instant,
    control: &Control,
    observe: &mut dyn FnMut(&Window),
) -> Result<(StepRecord, Option<Halted>), BenchError> {
    let halt = Halt::of(control);
    let mut ready = Vec::with_capacity(loads.len());
    for load in loads {
        ready.push(load.workers()?);
    }
    while let Some(left) = start.checked_duration_since(Instant::now())
        && !left.is_zero()
        && !control.stopped()
    {
        std::thread::sleep(left.min(LOOK));
    }
    let started_unix_s =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let schedules: Vec<Schedule> =
        loads.iter().map(|load| Schedule::starting_at(start, &load.plan.workload)).collect();
    control.begin(start);
    let (sender, reports) = channel::<WindowReport>();
    let mut threads = Vec::with_capacity(loads.len());
    let mut failure = None;
    for ((workers, load), schedule) in ready.into_iter().zip(loads).zip(&schedules) {
        let jobs = usize::try_from(load.plan.workload.jobs).unwrap_or(0);
        let mut of_load = Vec::with_capacity(workers.len());
        for worker in workers {
            match begin(worker, jobs, *schedule, &halt, &sender) {
                Ok(thread) => of_load.push(thread),
                Err(error) => {
                    halt.give_up();
                    failure.get_or_insert(error);
                }
            }
        }
        threads.push(of_load);
    }
    drop(sender);
    let mut machine = MachineMeter::default();
    if let Some(longest) = schedules.iter().max_by_key(|schedule| schedule.stop_ns) {
        Watcher::new(*longest).watch(&reports, &mut |window| {
            machine.window(window);
            observe(window);
        });
    }
    let (machine_busy_percent, machine_processors) = machine.finish();
    let mut records = Vec::with_capacity(loads.len());
    for ((of_load, load), schedule) in threads.into_iter().zip(loads).zip(&schedules) {
        let mut record = load.record(schedule, started_unix_s);
        for thread in of_load {
            record.add(thread.join().map_err(|_| BenchError::Worker)?);
        }
        record.generator.machine_busy_percent = machine_busy_percent;
        record.generator.machine_processors = machine_processors;
        records.push(record);
    }
    if let (Some(first), marks) = (records.first_mut(), control.take_marks()) {
        first.marks = marks;
    }
    failure.map_or(Ok((StepRecord { loads: records }, halt.halted())), Err)
}

fn begin(
    worker: Worker,
    jobs: usize,
    schedule: Schedule,
    halt: &Halt,
    sender: &Sender<WindowReport>,
) -> Result<JoinHandle<WorkerOutcome>, BenchError> {
    let recorder = Recorder::new(jobs, schedule.measure_ns, schedule.end_ns, sender.clone());
    let halt = halt.clone();
    Builder::new()
        .name("bench-worker".to_owned())
        .spawn(move || {
            punctual();
            await_start(&schedule, &halt);
            worker(schedule, halt, recorder)
        })
        .map_err(|source| BenchError::Local { what: "starting a worker thread", source })
}

/// Has the kernel wake this thread when it is due, not up to 50 µs later with others: a late
/// request counts from its due time.
fn punctual() {
    // A failure leaves the run as good as before.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Waits for the time at which the load begins in its step.
fn await_start(schedule: &Schedule, halt: &Halt) {
    loop {
        let left = Duration::from_nanos(schedule.begin_ns.saturating_sub(schedule.now_ns()));
        if left.is_zero() || halt.halted().is_some() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

impl Prepared {
    /// The record of this load before any worker has come home.
    fn record(&self, schedule: &Schedule, started_unix_s: f64) -> Record {
        let workload = &self.plan.workload;
        let addresses = self.backend.addresses(workload);
        Record {
            target: self.target.to_string(),
            workload: (**workload).clone(),
            clients: self.backend.client_names(workload),
            started_unix_s,
            measure_ns: schedule.measure_ns,
            planned_ns: schedule.end_ns,
            ended_ns: 0,
            notes: crate::stats::Notes::default(),
            connections: crate::stats::result::Connections {
                opened: addresses.values().sum(),
                ..Default::default()
            },
            addresses,
            generator: crate::stats::result::Generator::default(),
            faults: std::collections::BTreeMap::new(),
            broken: false,
            marks: Vec::new(),
            verify: None,
        }
    }
}
