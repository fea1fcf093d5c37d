//! The way of log lines out of the process. It never holds up a caller for long and never takes
//! more than a bounded amount of memory and of disk:
//!
//! - Callers put lines into a bounded queue (`queue`); a thread of its own writes them. While
//!   nobody reads, lines are dropped and counted.
//! - Lines that repeat are written at a rate (`rates`), by the place in the code that writes them
//!   and, if they name a `peer`, by its origin. So a line that a client can cause is bounded
//!   wherever it is written, without the place knowing of it.
//!
//! Not here: the form of a line, and the choice of levels. These belong to the subscriber, which
//! `crates/weir` sets up.

mod queue;
mod rates;

use crate::clock::SystemClock;
use crate::limits::{LOG_FLUSH_WAIT, LOG_REPORT_EVERY};
use crate::sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering, lock};
use queue::Queue;
use rates::{LeftOut, Rates};
use std::fmt::{Debug, Write};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};
use weir_core::Clock;

/// The log of this process, once there is one.
static INSTALLED: OnceLock<Arc<Log>> = OnceLock::new();

/// Longest message that a report of lines left out repeats, in characters.
const LIKE_CHARS_MAX: usize = 100;

/// A log that is written to one file.
pub struct Log {
    queue: Queue,
    rates: Mutex<Rates>,
    left_out: AtomicU64,
    clock: SystemClock,
}

impl Log {
    /// A log that is written to `out`. Until the server starts its threads, lines are written by
    /// their callers.
    #[must_use]
    pub fn new(out: File) -> Arc<Self> {
        let (rates, left_out) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { queue: Queue::new(out), rates, left_out, clock: SystemClock::start() })
    }

    /// Makes it the log of this process, unless there is one.
    pub fn install(self: &Arc<Self>) {
        // The first stays.
        let _installed = INSTALLED.set(Arc::clone(self)).is_ok();
    }

    /// Takes whole lines, of one level. What does not fit the queue is dropped and counted.
    pub fn write(&self, level: Level, lines: Vec<u8>) {
        self.queue.push(level, lines);
    }

    /// Is `event` to be written? Lines of the levels debug and trace always are, because an
    /// operator asked for them; others until their rate is reached.
    pub fn admits(&self, event: &Event<'_>) -> bool {
        let meta = event.metadata();
        // This module's own lines have a rate of their own.
        if *meta.level() > Level::INFO || meta.target() == module_path!() {
            return true;
        }
        let mut peer = PeerField::default();
        event.record(&mut peer);
        let now = self.clock.now();
        let admitted = lock(&self.rates).admit(&meta.callsite(), peer.0, now, || message_of(event));
        if !admitted {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    }

    /// Lines that were dropped because the reader was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Lines that were left out because there were too many alike.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Writes lines as they come, and reports lines not written. Never ends.
    fn run(&self) {
        self.queue.adopt();
        let mut reported = Instant::now();
        loop {
            if self.queue.write_out(LOG_REPORT_EVERY.saturating_sub(reported.elapsed())) {
                self.report_dropped();
            }
            if reported.elapsed() >= LOG_REPORT_EVERY {
                reported = Instant::now();
                let left_out = lock(&self.rates).take_left_out();
                report_left_out(&left_out);
            }
        }
    }

    fn report_dropped(&self) {
        let lines = self.queue.take_dropped();
        if lines > 0 {
            tracing::warn!(
                lines,
                "log lines were dropped because standard error was not read fast enough"
            );
        }
    }
}

fn report_left_out(left_out: &[LeftOut]) {
    for LeftOut { like, peer, lines } in left_out {
        match peer {
            Some(peer) => {
                tracing::info!(lines, %peer, like, "log lines were suppressed: too many similar lines");
            }
            None => {
                tracing::info!(lines, like, "log lines were suppressed: too many similar lines");
            }
        }
    }
}

/// Starts the thread that writes the log of this process, if there is one. Threads keep the
/// privileges of the thread that starts them, so the thread must start after privileges are given
/// up.
///
/// # Errors
/// The kernel's error.
pub fn start() -> std::io::Result<()> {
    if let Some(log) = INSTALLED.get() {
        let log = Arc::clone(log);
        std::thread::Builder::new().name("weir-log".to_owned()).spawn(move || log.run())?;
    }
    Ok(())
}

/// Waits until all logged lines are written, or for 2 s if the log is not read. For the
/// end of the process.
pub fn flush() {
    if let Some(log) = INSTALLED.get() {
        log.queue.flush(LOG_FLUSH_WAIT);
    }
}

/// Writes lines that are not log lines, each with its end, where the log is written, and waits like
/// [`flush`]; `false` if this process has no log.
pub fn say(lines: &str) -> bool {
    let Some(log) = INSTALLED.get() else { return false };
    log.write(Level::ERROR, lines.as_bytes().to_vec());
    log.queue.flush(LOG_FLUSH_WAIT);
    true
}

/// The counters for the metrics: lines dropped, and lines left out.
pub fn counters() -> (u64, u64) {
    INSTALLED.get().map_or((0, 0), |log| (log.dropped(), log.left_out()))
}

/// The address in the field `peer` of a line.
#[derive(Default)]
struct PeerField(Option<IpAddr>);

impl Visit for PeerField {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "peer" {
            let text = format!("{value:?}");
            let with_port = || text.parse::<SocketAddr>().ok().map(|peer| peer.ip());
            self.0 = text.parse().ok().or_else(with_port);
        }
    }
}

/// The start of a line's message.
fn message_of(event: &Event<'_>) -> String {
    struct Message(String);
    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if field.name() == "message" {
                // Writing to a string can't fail.
                let _written = write!(self.0, "{value:?}").is_ok();
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0.chars().take(LIKE_CHARS_MAX).collect()
}
