//! Comparing what the load reads, while it reads it.

use super::timers::SlotId;
use super::{Data, Work};
use crate::engine::job::Request;
use crate::stats::result::VerifyResult;
use crate::verify::{Checker, Ledger};
use std::collections::HashMap;

/// The comparison of one worker.
pub(super) struct Passing<'a> {
    ledger: &'a Ledger,
    checker: Checker<'a>,
    /// The front of blocks whose rest is still to be read. Each is shorter than a block, and there
    /// is one for a slot at most.
    fronts: HashMap<SlotId, Vec<u8>>,
}

impl<'a> Passing<'a> {
    /// Compares with `ledger`.
    pub(super) fn new(ledger: &'a Ledger, checker: Checker<'a>) -> Self {
        Self { ledger, checker, fronts: HashMap::new() }
    }

    /// Notes the state of a block whose read is about to be sent. That of a block in parts is the
    /// one before the first part.
    #[inline]
    pub(super) fn begin(&self, work: &mut Work) {
        if let Request::Read { file, offset, .. } = work.op.request
            && self.ledger.begins(offset)
        {
            work.seen = self.ledger.look(file, self.ledger.block(offset));
        }
    }

    /// Compares the block that `data` of the slot at `place` completes.
    pub(super) fn look(&mut self, place: SlotId, work: &Work, data: Data<'_>) {
        let Request::Read { file, offset, .. } = work.op.request else { return };
        let (block, begins) = (self.ledger.block(offset), self.ledger.begins(offset));
        match data {
            Data::Last(data) if begins => {
                self.checker.compare_in_passing(file, block, work.seen, data);
            }
            Data::Last(data) => {
                let mut whole = self.fronts.remove(&place).unwrap_or_default();
                whole.extend_from_slice(data);
                self.checker.compare_in_passing(file, block, work.seen, &whole);
            }
            Data::Part(data) => {
                let front = self.fronts.entry(place).or_default();
                if begins {
                    // A read whose rest failed has left its front.
                    front.clear();
                }
                front.extend_from_slice(data);
            }
        }
    }

    /// The tally.
    pub(super) fn finish(self) -> VerifyResult {
        self.checker.finish()
    }
}
