//! The workers as other threads see them: their inboxes, and the number of their connections.
//! Not here: their state, which each worker owns alone.

use crate::clock::SystemClock;
use crate::inbox::Inbox;
use crate::sync::{Arc, Mutex, lock};
use crate::worker::{Message, VolumeGate};
use weir_core::Origin;
use weir_core::origin::Counts;

/// All workers, in the order of their numbers.
pub(crate) struct Workers {
    each: Vec<Worker>,
    clock: SystemClock,
}

/// One worker.
struct Worker {
    inbox: Arc<Inbox<Message>>,
    /// Its connections, by their clients' addresses.
    connections: Mutex<Counts>,
}

impl Workers {
    /// The workers behind `inboxes`.
    pub(crate) fn new(inboxes: &[Arc<Inbox<Message>>], clock: SystemClock) -> Self {
        let worker =
            |inbox: &Arc<_>| Worker { inbox: Arc::clone(inbox), connections: Mutex::default() };
        Self { each: inboxes.iter().map(worker).collect(), clock }
    }

    /// The number of workers.
    pub(crate) fn count(&self) -> usize {
        self.each.len()
    }

    /// The clock of the server.
    pub(crate) fn clock(&self) -> SystemClock {
        self.clock
    }

    /// Sends `message` to a worker.
    pub(crate) fn post(&self, worker: usize, message: Message) {
        if let Some(worker) = self.each.get(worker) {
            worker.inbox.post(message);
        }
    }

    /// Sends each worker a message.
    pub(crate) fn post_all(&self, mut message: impl FnMut() -> Message) {
        for worker in &self.each {
            worker.inbox.post(message());
        }
    }

    /// Has the worker that polls `gate` poll it now.
    pub(crate) fn poll(&self, gate: &Arc<VolumeGate>) {
        self.post(gate.timer_worker(), Message::Poll(Arc::clone(gate)));
    }

    /// Counts a new connection from `origin`, and chooses its worker: the one with the fewest
    /// connections from there, so that each client's connections are on all workers; among equals
    /// the one with the fewest of all.
    pub(crate) fn place(&self, origin: Origin) -> Option<usize> {
        let (at, worker) = self.each.iter().enumerate().min_by_key(|(_, worker)| {
            let connections = lock(&worker.connections);
            (connections.of(origin), connections.total())
        })?;
        lock(&worker.connections).add(origin);
        Some(at)
    }

    /// A worker closed one of its connections, from `origin`.
    pub(crate) fn connection_gone(&self, worker: usize, origin: Origin) {
        if let Some(worker) = self.each.get(worker) {
            lock(&worker.connections).remove(origin);
        }
    }
}
