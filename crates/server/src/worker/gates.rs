//! The gates that one worker polls, each at its time, and the requests that they released.
//! Not here: the decision which request goes, which is the gate's.

use super::{Released, VolumeGate};
use crate::sync::Arc;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use weir_core::Mono;
use weir_gate::Stopped;

/// A gate to poll at a time; ordered by that alone.
struct Timer {
    at: Mono,
    gate: Arc<VolumeGate>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// The gates that a worker polls.
#[derive(Default)]
pub(super) struct Gates {
    timers: BinaryHeap<Reverse<Timer>>,
    /// Requests that gates released and that are not handed out yet.
    pub(super) released: VecDeque<Released>,
    /// Connections that may be read again.
    pub(super) resumed: Vec<Stopped>,
}

impl Gates {
    /// Is everything handed out?
    pub(super) fn is_empty(&self) -> bool {
        self.released.is_empty() && self.resumed.is_empty()
    }

    /// Time at which the next gate is to be polled.
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.timers.peek().map(|Reverse(timer)| timer.at)
    }

    /// Do requests, of any worker, wait at a gate that this one polls?
    pub(super) fn are_waited_at(&self) -> bool {
        self.timers.iter().any(|Reverse(timer)| timer.gate.waiting() > 0)
    }

    /// Polls every gate whose time has come.
    pub(super) fn poll_due(&mut self, now: Mono) {
        while self.next_deadline().is_some_and(|at| at <= now) {
            if let Some(Reverse(Timer { at, gate })) = self.timers.pop() {
                gate.fired(at);
                self.poll(gate, now);
            }
        }
    }

    /// Has one gate release what may go now, and remembers when to poll it again.
    pub(super) fn poll(&mut self, gate: Arc<VolumeGate>, now: Mono) {
        let mut released = Vec::new();
        let next = gate.poll(now, &mut released, &mut self.resumed);
        self.released.extend(released);
        if let Some(at) = next {
            self.poll_at(gate, at);
        }
    }

    /// Has the gate polled at a time.
    pub(super) fn poll_at(&mut self, gate: Arc<VolumeGate>, at: Mono) {
        if gate.arm(at) {
            self.timers.push(Reverse(Timer { at, gate }));
        }
    }
}
