//! Stalls while a load runs: a processor that ran no thread, and a worker of the server that could
//! not go on.
//!
//! One watchdog thread on each processor sleeps for [`PERIOD`] at a time and notes how late it
//! woke. It is an ordinary thread, so a late watchdog alone does not say why: the host may have
//! paused the machine, the kernel may have kept the processor, or other threads had it. How busy
//! the processors were and the time taken by the host is reported beside it for that reason. One
//! more thread samples the server's workers in `/proc` (proc_pid_stat(5), `schedstat` of the
//! kernel's sched-stats documentation): a worker that used no processor time between two samples
//! and was not asleep was either ready without a processor, or blocked in the kernel.

use crate::process::threads_named;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time that a watchdog sleeps, and the time between two samples of a worker.
const PERIOD: Duration = Duration::from_millis(5);
/// The shortest stall that is noted, in seconds; a busy machine has shorter ones all the time.
const LEAST_S: f64 = 0.010;
/// Stalls that are kept of each watched thread. Beyond: later ones are not noted.
const KEPT_MAX: usize = 10_000;
/// Processors that are watched, and workers that are sampled. Beyond: the others are not.
const WATCHED_MAX: usize = 16;
/// The beginning of the names of the server's worker threads.
const WORKER: &str = "weir-worker-";
/// The most urgent nice value, which only a privileged user gets.
const URGENT: i32 = -20;

/// The thread that a stall stopped, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StallKind {
    /// The watchdogs of all watched processors at once.
    AllWatchdogs,
    /// The watchdog of one processor.
    Watchdog,
    /// A worker of the server that was ready to run and had no processor.
    Ready,
    /// A worker of the server that was blocked in the kernel.
    Blocked,
}

/// An interval, in seconds since the watch began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

impl Span {
    /// The interval's length (ms).
    pub(crate) fn ms(self) -> f64 {
        (self.to_s - self.from_s) * 1000.0
    }

    /// The interval that this one and `other` have in common, if any.
    pub(crate) fn common(self, other: Self) -> Option<Self> {
        let (from_s, to_s) = (self.from_s.max(other.from_s), self.to_s.min(other.to_s));
        (to_s > from_s).then_some(Self { from_s, to_s })
    }
}

/// One stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stall {
    pub(crate) kind: StallKind,
    pub(crate) span: Span,
}

/// The watching threads. Dropping this ends them.
pub(crate) struct Stalls {
    begun: Instant,
    stop: Arc<AtomicBool>,
    processors: Vec<Arc<Mutex<Vec<Span>>>>,
    workers: Arc<Mutex<Vec<Stall>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Stalls {
    /// Watches the processors from `begun` on, and the workers of the server with process `server`
    /// if there is one. A thread or processor that can't be watched is left out.
    pub(crate) fn watch(begun: Instant, server: Option<u32>) -> Self {
        let mut stalls = Self {
            begun,
            stop: Arc::default(),
            processors: Vec::new(),
            workers: Arc::default(),
            threads: Vec::new(),
        };
        for processor in processors() {
            let noted = Arc::<Mutex<Vec<Span>>>::default();
            stalls.processors.push(Arc::clone(&noted));
            let stop = Arc::clone(&stalls.stop);
            stalls.spawn(move || watch_processor(processor, begun, &stop, &noted));
        }
        let workers = server.map(|pid| threads_named(pid, WORKER)).unwrap_or_default();
        if !workers.is_empty() {
            let (stop, noted) = (Arc::clone(&stalls.stop), Arc::clone(&stalls.workers));
            stalls.spawn(move || watch_workers(&workers, begun, &stop, &noted));
        }
        stalls
    }

    fn spawn(&mut self, body: impl FnOnce() + Send + 'static) {
        // A demo without this thread shows less of the machine and measures the same.
        self.threads.extend(Builder::new().name("demo-watch".to_owned()).spawn(body));
    }

    /// Start of the watch.
    pub(crate) const fn begun(&self) -> Instant {
        self.begun
    }

    /// The stalls so far.
    pub(crate) fn so_far(&self) -> Vec<Stall> {
        let locked = |spans: &Arc<Mutex<Vec<Span>>>| {
            spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let of_processors: Vec<Vec<Span>> = self.processors.iter().map(locked).collect();
        let mut all = of_processors_alone_and_together(&of_processors);
        all.extend(self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter());
        all
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has noted no more stalls, which harms nothing.
            drop(thread.join());
        }
    }
}

/// The stalls of each watchdog, and those of all of them at once.
fn of_processors_alone_and_together(processors: &[Vec<Span>]) -> Vec<Stall> {
    let alone = processors.iter().flatten();
    let mut all: Vec<Stall> =
        alone.map(|&span| Stall { kind: StallKind::Watchdog, span }).collect();
    let Some((first, others)) = processors.split_first() else { return all };
    let mut together = first.clone();
    for other in others {
        let common = |span: &Span| {
            let span = *span;
            other.iter().filter_map(move |other| span.common(*other)).collect::<Vec<_>>()
        };
        together = together.iter().flat_map(common).collect();
    }
    let long = together.into_iter().filter(|span| span.to_s - span.from_s >= LEAST_S);
    all.extend(long.map(|span| Stall { kind: StallKind::AllWatchdogs, span }));
    all
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let Ok(usable) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&number| usable.is_set(number)).take(WATCHED_MAX).collect()
}

fn watch_processor(number: usize, begun: Instant, stop: &AtomicBool, noted: &Mutex<Vec<Span>>) {
    let mut only = CpuSet::new();
    only.set(number);
    if sched_setaffinity(None, &only).is_err() {
        return;
    }
    urgent();
    while !stop.load(Ordering::Relaxed) {
        let due = begun.elapsed() + PERIOD;
        std::thread::sleep(PERIOD);
        let span = Span { from_s: due.as_secs_f64(), to_s: begun.elapsed().as_secs_f64() };
        if span.to_s - span.from_s >= LEAST_S {
            note(noted, span);
        }
    }
}

/// Asks to be preferred to other threads; without the privilege the watchdogs show a little more.
fn urgent() {
    let _ = setpriority_process(None, URGENT);
}

fn note<T>(noted: &Mutex<Vec<T>>, what: T) {
    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.len() < KEPT_MAX {
        noted.push(what);
    }
}

fn watch_workers(
    workers: &[PathBuf],
    begun: Instant,
    stop: &AtomicBool,
    noted: &Mutex<Vec<Stall>>,
) {
    urgent();
    let mut followed: Vec<(&PathBuf, Follow)> =
        workers.iter().take(WATCHED_MAX).map(|path| (path, Follow::default())).collect();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PERIOD);
        for (path, follow) in &mut followed {
            let at_s = begun.elapsed().as_secs_f64();
            if let Some(stall) = Sample::take(path).and_then(|sample| follow.next(at_s, sample)) {
                note(noted, stall);
            }
        }
    }
}

/// A look at one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    /// The processor time it has used, in nanoseconds.
    ran: u64,
    /// Ready without a processor or blocked in the kernel; `None` if it runs or sleeps.
    hindered: Option<StallKind>,
}

impl Sample {
    fn take(thread: &Path) -> Option<Self> {
        let read = |name| std::fs::read_to_string(thread.join(name)).ok();
        Self::parse(&read("stat")?, &read("schedstat")?)
    }

    /// Parses the files of these names. The thread's name in the first may hold any character.
    fn parse(stat: &str, schedstat: &str) -> Option<Self> {
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        let ran = schedstat.split_ascii_whitespace().next()?.parse().ok()?;
        let hindered = match state {
            // A running thread is ready too, but it has used processor time by the next sample.
            'R' => Some(StallKind::Ready),
            'D' => Some(StallKind::Blocked),
            _ => None,
        };
        Some(Self { ran, hindered })
    }
}

/// Follows one thread from sample to sample.
#[derive(Debug, Default)]
struct Follow {
    last: Option<(f64, Sample)>,
    /// The stall under way: its kind, and its start (s).
    since: Option<(StallKind, f64)>,
}

impl Follow {
    /// Takes the next sample. A stall is returned when it has ended. Its length is the time that
    /// the samples prove: from the first to the last sample without progress.
    fn next(&mut self, at_s: f64, sample: Sample) -> Option<Stall> {
        let last = self.last.replace((at_s, sample));
        let (last_s, last) = last?;
        let stands = last.ran == sample.ran && last.hindered == sample.hindered;
        let kind = sample.hindered.filter(|_| stands);
        if let Some(kind) = kind {
            self.since.get_or_insert((kind, last_s));
            return None;
        }
        let (kind, from_s) = self.since.take()?;
        let span = Span { from_s, to_s: last_s };
        (span.to_s - span.from_s >= LEAST_S).then_some(Stall { kind, span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from_s: f64, to_s: f64) -> Span {
        Span { from_s, to_s }
    }

    #[test]
    fn all_watchdogs_are_late_only_while_each_of_them_is() {
        let found = of_processors_alone_and_together(&[
            vec![span(1.0, 1.03), span(5.0, 5.064), span(7.0, 7.02)],
            vec![span(4.99, 5.06), span(7.015, 7.05)],
        ]);
        let together: Vec<Span> = found
            .iter()
            .filter(|stall| stall.kind == StallKind::AllWatchdogs)
            .map(|stall| stall.span)
            .collect();
        assert_eq!(together, [span(5.0, 5.06)], "5 ms in common are too little");
        assert_eq!(found.iter().filter(|stall| stall.kind == StallKind::Watchdog).count(), 5);
        assert_eq!(of_processors_alone_and_together(&[]), []);
    }

    #[test]
    fn the_watchdog_of_an_only_processor_is_all_of_them() {
        let found = of_processors_alone_and_together(&[vec![span(1.0, 1.05)]]);
        let kinds: Vec<StallKind> = found.iter().map(|stall| stall.kind).collect();
        assert_eq!(kinds, [StallKind::Watchdog, StallKind::AllWatchdogs]);
    }

    fn followed(samples: &[(f64, u64, Option<StallKind>)]) -> Vec<Stall> {
        let mut follow = Follow::default();
        let next = |&(at_s, ran, hindered)| follow.next(at_s, Sample { ran, hindered });
        samples.iter().filter_map(next).collect()
    }

    #[test]
    fn a_worker_that_makes_no_progress_and_does_not_sleep_is_stalled() {
        let (ready, blocked) = (Some(StallKind::Ready), Some(StallKind::Blocked));
        let found = followed(&[
            (0.000, 1, None),
            (0.005, 2, ready),
            (0.010, 2, ready),
            (0.045, 2, ready),
            (0.050, 3, ready),
            (0.055, 4, blocked),
            (0.060, 4, blocked),
            (0.125, 4, blocked),
            (0.130, 5, None),
        ]);
        let stall = |kind, from_s, to_s| Stall { kind, span: span(from_s, to_s) };
        assert_eq!(
            found,
            [stall(StallKind::Ready, 0.005, 0.045), stall(StallKind::Blocked, 0.055, 0.125)]
        );
    }

    #[test]
    fn a_worker_that_runs_or_sleeps_is_not_stalled() {
        let ready = Some(StallKind::Ready);
        assert_eq!(followed(&[(0.0, 1, ready), (0.1, 2, ready), (0.2, 3, ready)]), []);
        assert_eq!(followed(&[(0.0, 1, None), (0.1, 1, None), (0.2, 1, ready)]), []);
        let short = [(0.0, 1, ready), (0.005, 1, ready), (0.01, 2, None)];
        assert_eq!(followed(&short), [], "shorter than what is noted");
    }

    #[test]
    fn a_thread_is_read_by_its_state_and_the_time_it_ran() {
        let stat = |state: &str| format!("7 (a) R (b) {state} 1 2 3");
        let read = |state: &str| Sample::parse(&stat(state), "1234 5 6\n");
        let sample = |hindered| Some(Sample { ran: 1234, hindered });
        assert_eq!(read("R"), sample(Some(StallKind::Ready)));
        assert_eq!(read("D"), sample(Some(StallKind::Blocked)));
        assert_eq!(read("S"), sample(None));
        assert_eq!(Sample::parse("", "1 2 3"), None);
        assert_eq!(Sample::parse(&stat("S"), "x"), None);
    }

    #[test]
    fn the_watch_sees_the_processors_and_ends() {
        assert!(!processors().is_empty() && processors().len() <= WATCHED_MAX);
        let stalls = Stalls::watch(Instant::now(), Some(std::process::id()));
        drop(stalls.so_far());
        drop(stalls);
    }
}
