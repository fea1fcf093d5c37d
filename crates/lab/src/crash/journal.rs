//! A client's view of the run: the servers and power cuts that it has lived through, what it did
//! last, and what it counts. Clients of every protocol keep one.

use super::audit::{Blind, Compared};
use super::world::World;
use std::collections::{BTreeMap, VecDeque};
use weir_load::engine::status_name;
use weir_load::error::BenchError;

/// Operations that are remembered for a finding.
const HISTORY: usize = 40;

/// The operations and findings of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: BTreeMap<&'static str, u64>,
    /// Calls that had no answer when the connection broke.
    pub(super) in_doubt: u64,
    /// Audits that found the changes of names in doubt already made.
    pub(super) were_done: u64,
    /// Changes of names that were answered, and sent again after a restart.
    pub(super) asked_again: u64,
    /// Blocks sent again because the write verifier had changed.
    pub(super) rewritten_blocks: u64,
    pub(super) audits: u64,
    pub(super) compared: Compared,
}

/// Why a client stopped its current operation.
pub(super) enum Halt {
    /// The connection is gone, or the machine is going.
    Lost,
    /// Something is wrong.
    Wrong(Vec<String>),
}

/// The view of one client.
pub(super) struct Journal<'w> {
    pub(super) world: &'w World,
    pub(super) number: u32,
    /// The server that it was connected to last.
    pub(super) life: u64,
    cuts: u64,
    /// Does an answered change of names survive a power cut?
    durable_names: bool,
    /// May names be gone since the power was cut?
    pub(super) names_lost: bool,
    history: VecDeque<String>,
    pub(super) tally: Tally,
}

impl<'w> Journal<'w> {
    /// The journal of the client `number`, which has seen nothing yet. `durable_names`: does an
    /// answered change of names survive a power cut?
    pub(super) fn new(world: &'w World, number: u32, durable_names: bool) -> Self {
        Self {
            world,
            number,
            life: 0,
            cuts: 0,
            durable_names,
            names_lost: false,
            history: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    /// Deals with the end of a turn. `true` if the connection is to be given up.
    pub(super) fn end_of_turn(&self, turn: Result<(), Halt>) -> bool {
        match turn {
            Ok(()) => false,
            Err(Halt::Lost) => true,
            // A machine that is going may show anything.
            Err(Halt::Wrong(_)) if self.is_cut() => true,
            Err(Halt::Wrong(what)) => {
                let by = format!("client {}", self.number);
                self.world.found(by, what, self.history.iter().cloned().collect());
                false
            }
        }
    }

    /// Takes it into account that the power may have been cut since the last connection: true if
    /// it was.
    pub(super) fn take_cut(&mut self) -> bool {
        let before = std::mem::replace(&mut self.cuts, self.world.cuts());
        let is_new = before != self.cuts;
        self.names_lost |= is_new && !self.durable_names;
        is_new
    }

    /// Has the power been cut that this connection depends on?
    pub(super) fn is_cut(&self) -> bool {
        self.world.cuts_begun() != self.cuts
    }

    /// A failure, which means nothing while the machine is going.
    pub(super) fn refused(&self, what: &str, status: &dyn std::fmt::Display) -> Halt {
        if self.is_cut() {
            return Halt::Lost;
        }
        wrong(format!("{what}: the server answered {status}"))
    }

    /// The result of an observation over NFS.
    pub(super) fn seen<T>(&self, observation: Result<T, Blind>) -> Result<T, Halt> {
        observation.map_err(|blind| match blind {
            Blind::Session(error) => broken(error),
            Blind::Refused(what, status) => self.refused(what, &status_name(status)),
        })
    }

    /// Counts a comparison.
    pub(super) const fn compared(&mut self, compared: Compared) {
        self.tally.audits += 1;
        self.tally.compared.add(compared);
    }

    /// Remembers a step for a finding.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(format!("life {}: {}", self.life, what()));
    }
}

/// The end of an operation by an error of its connection.
pub(super) fn broken(error: BenchError) -> Halt {
    match error {
        BenchError::Connect { .. } | BenchError::Connection { .. } => Halt::Lost,
        other => wrong(other.in_full()),
    }
}

/// Something is wrong.
pub(super) fn wrong(what: String) -> Halt {
    Halt::Wrong(vec![what])
}
