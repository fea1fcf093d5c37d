//! Telling whether a block holds what was written last: the stamp at its front, the ledger of
//! what was written, and the comparison.

mod block;
mod ledger;

pub(crate) use block::{STAMP_BYTES, inspect, stamp};
pub(crate) use ledger::Ledger;

use ledger::Expected;

/// Least block size with verification: the stamp and some body.
pub(crate) const STAMP_BYTES_MIN: u32 = 64;

use crate::engine::{Plan, file_name};
use crate::payload::{BlockName, Payload};
use crate::stats::result::VerifyResult;
use crate::workload::VerifyScope;

/// Mismatches described in words; the others are only counted.
const DETAILS_MAX: usize = 20;

/// Compares blocks read back with what the run wrote, and keeps the tally.
pub(crate) struct Checker<'a> {
    payload: &'a Payload,
    ledger: &'a Ledger,
    run: u64,
    block_bytes: u32,
    result: VerifyResult,
}

impl<'a> Checker<'a> {
    /// `chosen` blocks of the run that `plan` describes are to be compared; none is yet.
    pub(crate) fn new(plan: &'a Plan, ledger: &'a Ledger, chosen: u64) -> Self {
        let block_bytes = plan.workload.block_bytes;
        let result = VerifyResult { unread: chosen, ..VerifyResult::default() };
        Self { payload: &plan.payload, ledger, run: plan.run, block_bytes, result }
    }

    /// Bytes of a block.
    pub(crate) const fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Where `block` is in its file, in bytes.
    pub(crate) fn offset(&self, block: u64) -> u64 {
        block * u64::from(self.block_bytes)
    }

    /// Compares `bytes`, read at the place of `block` in `file`; fewer than a block if the file
    /// ends there.
    pub(crate) fn compare(&mut self, file: u32, block: u64, bytes: &[u8]) {
        self.result.unread -= 1;
        let generation = match self.ledger.expected(file, block) {
            Expected::Untouched => return,
            Expected::Uncertain => {
                self.result.uncertain += 1;
                return;
            }
            Expected::Generation(generation) => generation,
        };
        let wanted = BlockName { run: self.run, file, offset: self.offset(block), generation };
        let length = usize::try_from(self.block_bytes).unwrap_or(usize::MAX);
        self.result.checked += 1;
        if let Err(mismatch) = inspect(bytes, length, wanted, self.payload) {
            self.mismatch(file, block, &mismatch.to_string());
        }
    }

    /// The block could not be read, which is as bad as a wrong one.
    pub(crate) fn unreadable(&mut self, file: u32, block: u64, why: &str) {
        self.result.unread -= 1;
        self.result.checked += 1;
        self.mismatch(file, block, &format!("unreadable: {why}"));
    }

    /// The tally.
    pub(crate) fn finish(self) -> VerifyResult {
        self.result
    }

    fn mismatch(&mut self, file: u32, block: u64, what: &str) {
        self.result.mismatches += 1;
        if self.result.details.len() < DETAILS_MAX {
            let (name, offset) = (file_name(file), self.offset(block));
            self.result.details.push(format!("{name} at {offset}: {what}"));
        }
    }
}

/// The blocks to read back, as file and block number.
pub(crate) fn choose(ledger: &Ledger, scope: VerifyScope) -> Vec<(u32, u64)> {
    match scope {
        VerifyScope::All => ledger.written().collect(),
        VerifyScope::Sample(count) => {
            let written = ledger.written().count() as u64;
            let step = written.checked_div(count).unwrap_or(written).max(1);
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            ledger.written().step_by(step).take(count).collect()
        }
    }
}
