//! The state that the clients of a run share with the thread that kills their server.

use super::op::Source;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_load::payload::Payload;

/// Longest time that a client waits for a server that was not killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Polling interval of a waiting client.
pub(super) const TICK: Duration = Duration::from_millis(2);

/// A violation.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Finding {
    /// The client or check that found it.
    pub(super) by: String,
    /// After how many kills or cuts.
    pub(super) after: u64,
    pub(super) what: Vec<String>,
    /// The last operations, oldest first.
    pub(super) history: Vec<String>,
}

/// The state that clients share.
pub(super) struct World {
    pub(super) address: SocketAddr,
    pub(super) run: u64,
    /// Does an acknowledged change of names survive a power cut?
    pub(super) durable_names: bool,
    payload: Payload,
    /// Servers started so far.
    life: AtomicU64,
    /// Power cuts that have begun, and that are over.
    cuts_begun: AtomicU64,
    cuts: AtomicU64,
    pause: AtomicBool,
    stop: AtomicBool,
    parked: AtomicUsize,
    /// Blocks that each client's files used when it paused last.
    used: Mutex<BTreeMap<u32, Option<u64>>>,
    findings: Mutex<Vec<Finding>>,
}

impl World {
    pub(super) fn new(address: SocketAddr, run: u64, durable_names: bool) -> Self {
        Self {
            address,
            run,
            durable_names,
            payload: Payload::new(),
            life: AtomicU64::new(0),
            cuts_begun: AtomicU64::new(0),
            cuts: AtomicU64::new(0),
            pause: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            parked: AtomicUsize::new(0),
            used: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    /// The source of the data of the client `number`.
    pub(super) fn source(&self, number: u32) -> Source<'_> {
        Source { run: self.run, payload: &self.payload, file_base: number << 20 }
    }

    /// A server is about to be started.
    pub(super) fn begin_life(&self) {
        self.life.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Waits for a server later than `known`. `None`: the run ends.
    pub(super) fn life_after(&self, known: u64) -> Result<Option<u64>, String> {
        let begun = Instant::now();
        loop {
            let life = self.life();
            if life > known {
                return Ok(Some(life));
            }
            if self.stopped() {
                return Ok(None);
            }
            if begun.elapsed() > PATIENCE {
                return Err("the connection was lost, and nobody killed the server".to_owned());
            }
            std::thread::sleep(TICK);
        }
    }

    /// The power is about to be cut: failures are expected from now on.
    pub(super) fn begin_cut(&self) {
        self.cuts_begun.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn cuts_begun(&self) -> u64 {
        self.cuts_begun.load(Ordering::SeqCst)
    }

    /// The power is back, and no server runs yet.
    pub(super) fn end_cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Has the run ended, or is there a finding?
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Asks all clients to finish their calls and wait, or to continue.
    pub(super) fn pause(&self, pause: bool) {
        self.pause.store(pause, Ordering::SeqCst);
    }

    pub(super) fn paused(&self) -> bool {
        self.pause.load(Ordering::SeqCst) && !self.stopped()
    }

    /// Waits until the pause is over, as a client without outstanding calls.
    pub(super) fn park(&self) {
        self.parked.fetch_add(1, Ordering::SeqCst);
        while self.paused() {
            std::thread::sleep(TICK);
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn parked(&self) -> usize {
        self.parked.load(Ordering::SeqCst)
    }

    /// Notes how many blocks the files of a client use.
    pub(super) fn used(&self, client: u32, blocks: Option<u64>) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(client, blocks);
    }

    /// Blocks that the files of these clients use, if all of them know.
    pub(super) fn used_by(&self, clients: &[u32]) -> Option<u64> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().map(|client| used.get(client).copied().flatten()).sum()
    }

    /// Keeps a finding and ends the run.
    pub(super) fn found(&self, by: String, what: Vec<String>, history: Vec<String>) {
        let after = self.life().saturating_sub(1);
        let finding = Finding { by, after, what, history };
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
        self.stop();
    }

    pub(super) fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
