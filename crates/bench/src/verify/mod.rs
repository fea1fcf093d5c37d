//! Telling whether a block holds what was written last: the stamp at its front, the ledger of
//! what was written, and the comparison, in passing or afterwards.

mod block;
mod ledger;

pub(crate) use block::{STAMP_BYTES, inspect, stamp};
pub(crate) use ledger::{BLOCKS_MAX, Base, FileLedger, Ledger, Seen};

use block::{Mismatch, inspect_alone, inspect_hole, inspect_racing};
use ledger::Expected;

/// Least block size with verification: the stamp and some body.
pub(crate) const STAMP_BYTES_MIN: u32 = 64;

use crate::payload::{BlockName, Payload};
use crate::stats::result::VerifyResult;
use crate::workload::VerifyScope;

/// Mismatches described in words; the others are only counted.
pub(crate) const DETAILS_MAX: usize = 20;

/// Compares blocks with what the run wrote, and keeps the tally.
pub(crate) struct Checker<'a> {
    payload: &'a Payload,
    ledger: &'a Ledger,
    run: u64,
    result: VerifyResult,
}

impl<'a> Checker<'a> {
    /// `chosen` blocks of `run` are to be read back; none is yet.
    pub(crate) fn new(payload: &'a Payload, ledger: &'a Ledger, run: u64, chosen: u64) -> Self {
        let result = VerifyResult { unread: chosen, ..VerifyResult::default() };
        Self { payload, ledger, run, result }
    }

    /// Bytes of a block.
    pub(crate) const fn block_bytes(&self) -> u32 {
        self.ledger.block_bytes()
    }

    /// Where `block` is in its file, in bytes.
    pub(crate) fn offset(&self, block: u64) -> u64 {
        self.ledger.offset(block)
    }

    /// Compares `bytes`, read back from the place of `block` in `file`; fewer than a block if the
    /// file ends there.
    pub(crate) fn compare(&mut self, file: u32, block: u64, bytes: &[u8]) {
        self.result.unread = self.result.unread.saturating_sub(1);
        let generation = match self.ledger.expected(file, block) {
            Expected::Untouched(_) => return,
            Expected::Uncertain => {
                self.result.uncertain += 1;
                return;
            }
            Expected::Generation(generation) => generation,
        };
        let wanted = self.name(file, block, generation);
        self.result.checked += 1;
        if let Err(mismatch) = inspect(bytes, self.length(), wanted, self.payload) {
            self.mismatch(file, block, &self.words(mismatch));
        }
    }

    /// Compares `bytes`, which the load itself read at the place of `block` in `file` in a request
    /// that was sent at `seen`.
    pub(crate) fn compare_in_passing(&mut self, file: u32, block: u64, seen: Seen, bytes: &[u8]) {
        let (oldest, newest) = seen.until(self.ledger.look(file, block));
        let (length, payload) = (self.length(), self.payload);
        let wanted = self.name(file, block, oldest);
        let verdict = match (oldest, self.ledger.base(file)) {
            // A first write may be seen or not, over something that nobody knows.
            (0, _) if newest > 0 => Ok(false),
            (0, Base::Unknown) => {
                inspect_alone(bytes, length, (wanted.file, wanted.offset), payload).map(|()| true)
            }
            (0, _) => inspect_hole(bytes).map(|()| true),
            _ if newest > oldest => inspect_racing(bytes, length, wanted, newest, payload),
            _ => inspect(bytes, length, wanted, payload).map(|()| true),
        };
        self.result.in_passing += 1;
        match verdict {
            Ok(true) => {}
            Ok(false) => self.result.uncertain += 1,
            Err(mismatch) => {
                self.result.in_passing_mismatches += 1;
                let words = format!("{}, seen by the load", self.words(mismatch));
                self.mismatch(file, block, &words);
            }
        }
    }

    /// The block could not be read, which is as bad as a wrong one.
    pub(crate) fn unreadable(&mut self, file: u32, block: u64, why: &str) {
        self.result.unread = self.result.unread.saturating_sub(1);
        self.result.checked += 1;
        self.mismatch(file, block, &format!("unreadable: {why}"));
    }

    /// The tally.
    pub(crate) fn finish(self) -> VerifyResult {
        self.result
    }

    fn name(&self, file: u32, block: u64, generation: u32) -> BlockName {
        let id = self.ledger.file(file).map_or(0, |file| file.id);
        BlockName { run: self.run, file: id, offset: self.offset(block), generation }
    }

    fn length(&self) -> usize {
        usize::try_from(self.ledger.block_bytes()).unwrap_or(usize::MAX)
    }

    fn words(&self, mismatch: Mismatch) -> String {
        if let Mismatch::Misplaced { file, offset } = mismatch
            && let Some(name) = self.ledger.name_of(file)
        {
            return format!("misplaced: it holds the block of {name} at {offset}");
        }
        mismatch.to_string()
    }

    fn mismatch(&mut self, file: u32, block: u64, what: &str) {
        self.result.mismatches += 1;
        if self.result.details.len() < DETAILS_MAX {
            let name = self.ledger.file(file).map_or("?", |file| file.name.as_str());
            let offset = self.offset(block);
            self.result.details.push(format!("{name} at {offset}: {what}"));
        }
    }
}

/// The blocks of the `files` to read back, as file and block number.
pub(crate) fn choose(ledger: &Ledger, files: &[u32], scope: VerifyScope) -> Vec<(u32, u64)> {
    let all = || files.iter().flat_map(|file| ledger.written(*file).map(|block| (*file, block)));
    match scope {
        VerifyScope::All => all().collect(),
        VerifyScope::Sample(count) => {
            let written = all().count() as u64;
            let step = written.checked_div(count).unwrap_or(written).max(1);
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            all().step_by(step).take(count).collect()
        }
    }
}
