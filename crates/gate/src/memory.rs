//! The memory of requests that wait at gates, and the connections that are not read because of it.
//! Not here: the bounds on it, which the gate compares.

use crate::conn_id::ConnId;
use crate::sync::{AtomicU64, Ordering};
use std::collections::HashMap;
use weir_qos::ClientKey;

/// Memory that waiting requests pin, by client.
#[derive(Default)]
pub(super) struct Pinned {
    of: HashMap<ClientKey, u64>,
    /// Some client's memory fell far enough for its connections to go on, since the flag was last
    /// cleared.
    pub(super) fell: bool,
}

impl Pinned {
    /// Adds a waiting request of the client.
    pub(super) fn add(&mut self, client: ClientKey, bytes: u64) {
        *self.of.entry(client).or_default() += bytes;
    }

    /// Removes a request of the client that waits no more; `max` bytes are shared.
    pub(super) fn remove(&mut self, client: ClientKey, bytes: u64, max: u64) {
        let before = self.of(client);
        let after = before.saturating_sub(bytes);
        if after == 0 {
            self.of.remove(&client);
        } else {
            self.of.insert(client, after);
        }
        // With one client fewer every part is larger.
        self.fell |=
            after == 0 || before > self.part(max) / 4 * 3 && after <= self.part(max) / 4 * 3;
    }

    /// The bytes of one client.
    pub(super) fn of(&self, client: ClientKey) -> u64 {
        self.of.get(&client).copied().unwrap_or(0)
    }

    /// The equal part that a client has of `max`.
    pub(super) fn part(&self, max: u64) -> u64 {
        max / (self.of.len() as u64).max(1)
    }
}

/// A connection that stopped reading because of a volume's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The connection.
    pub connection: ConnId,
    /// The client whose requests fill the memory.
    pub(super) client: ClientKey,
}

/// Memory pinned by waiting requests, all volumes together.
#[derive(Debug)]
pub struct ParkedTotal {
    bytes: AtomicU64,
    max: u64,
}

impl ParkedTotal {
    /// A total without parked memory, bounded by `max` bytes.
    pub fn new(max: u64) -> Self {
        Self { bytes: AtomicU64::new(0), max }
    }

    /// The memory at which connections are no longer read, three quarters of the bound, in bytes.
    pub(super) fn full(&self) -> u64 {
        self.max / 4 * 3
    }

    /// Adds `bytes`, unless that would pass the bound.
    pub(super) fn try_add(&self, bytes: u64) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.max;
        if !fits {
            self.remove(bytes);
        }
        fits
    }

    pub(super) fn remove(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes pinned now.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
