//! Telling whether a block holds what was written last: the stamp at its front, the ledger of
//! what was written, and the comparison, in passing or afterwards.

mod block;
mod ledger;
mod wanted;

pub use block::{STAMP_BYTES, inspect, stamp};
pub use ledger::{BLOCKS_MAX, Base, BlockState, FileLedger, Ledger};
pub use wanted::Wanted;

use block::{Mismatch, inspect_alone, inspect_hole, inspect_racing};
use ledger::Expected;

/// Least block size with verification: the stamp and some body.
pub const STAMP_BYTES_MIN: u32 = 64;

use crate::payload::{BlockName, Payload};
use crate::stats::result::VerifyResult;
use crate::workload::VerifyScope;
use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};

/// Different mismatches described in words; what is beyond them is only counted.
pub const DETAILS_MAX: usize = 10_000;

/// Compares blocks with what the run wrote, and keeps the tally.
pub struct Checker<'a> {
    payload: &'a Payload,
    ledger: &'a Ledger,
    run: u64,
    result: VerifyResult,
    /// The mismatches told in words: file, block, kind. A block that is read again and again is
    /// told once.
    told: HashSet<(u32, u64, Kind)>,
}

/// A kind of mismatch, or `None` for a block that can't be read, and whether the load saw it.
type Kind = (Option<Discriminant<Mismatch>>, bool);

impl<'a> Checker<'a> {
    /// `chosen` blocks of `run` are to be read back; none is yet.
    pub fn new(payload: &'a Payload, ledger: &'a Ledger, run: u64, chosen: u64) -> Self {
        let result = VerifyResult { unread: chosen, ..VerifyResult::default() };
        Self { payload, ledger, run, result, told: HashSet::new() }
    }

    /// Bytes of a block.
    pub const fn block_bytes(&self) -> u32 {
        self.ledger.block_bytes()
    }

    /// The offset of `block` in its file, in bytes.
    pub fn offset(&self, block: u64) -> u64 {
        self.ledger.offset(block)
    }

    /// Compares `bytes`, read back from the place of `block` in `file`; fewer than a block if the
    /// file ends there.
    pub fn compare(&mut self, file: u32, block: u64, bytes: &[u8]) {
        self.result.unread = self.result.unread.saturating_sub(1);
        let generation = match self.ledger.expected(file, block) {
            Expected::Untouched(_) => return,
            Expected::Uncertain(newest) => {
                let oldest = self.ledger.oldest_exposed(file, block);
                let oldest = oldest.unwrap_or(newest.saturating_sub(1));
                return self.compare_uncertain(file, block, (oldest, newest), bytes);
            }
            Expected::Generation(generation) => generation,
        };
        if let Some(oldest) = self.ledger.oldest_exposed(file, block) {
            return self.compare_uncertain(file, block, (oldest, generation), bytes);
        }
        let wanted = self.name(file, block, generation);
        self.result.checked += 1;
        if let Err(mismatch) = inspect(bytes, self.length(), wanted, self.payload) {
            self.mismatch(file, block, mismatch, false);
        }
    }

    /// Compares a block whose writes after `oldest`, up to `newest`, may have been done or not.
    fn compare_uncertain(
        &mut self,
        file: u32,
        block: u64,
        (oldest, newest): (u32, u32),
        bytes: &[u8],
    ) {
        self.result.uncertain += 1;
        // The content before the first write may be anything.
        if oldest == 0 && self.ledger.base(file) == Base::Unknown {
            return;
        }
        let newest = self.name(file, block, newest);
        if let Err(mismatch) = inspect_racing(bytes, self.length(), newest, oldest, self.payload) {
            self.mismatch(file, block, mismatch, false);
        }
    }

    /// Compares `bytes`, which the load itself read at the place of `block` in `file` in a request
    /// that was sent at `seen`.
    pub fn compare_in_passing(&mut self, file: u32, block: u64, seen: BlockState, bytes: &[u8]) {
        let (oldest, newest) = seen.until(self.ledger.look(file, block));
        let oldest = self.ledger.oldest_exposed(file, block).unwrap_or(oldest);
        let (length, payload) = (self.length(), self.payload);
        let wanted = self.name(file, block, oldest);
        let verdict = match (oldest, self.ledger.base(file)) {
            // A first write may be seen or not, over something that nobody knows.
            (0, Base::Unknown) if newest > 0 => Ok(false),
            (0, Base::Unknown) => {
                inspect_alone(bytes, length, (wanted.file, wanted.offset), payload).map(|()| true)
            }
            (0, _) if newest == 0 => inspect_hole(bytes, length).map(|()| true),
            _ if newest > oldest => {
                let newest = self.name(file, block, newest);
                inspect_racing(bytes, length, newest, oldest, payload)
            }
            _ => inspect(bytes, length, wanted, payload).map(|()| true),
        };
        self.result.in_passing += 1;
        match verdict {
            Ok(true) => {}
            Ok(false) => self.result.uncertain += 1,
            Err(mismatch) => {
                self.result.in_passing_mismatches += 1;
                self.mismatch(file, block, mismatch, true);
            }
        }
    }

    /// The block could not be read, which is as bad as a wrong one.
    pub fn unreadable(&mut self, file: u32, block: u64, why: &str) {
        self.result.unread = self.result.unread.saturating_sub(1);
        self.result.checked += 1;
        self.tell((file, block, (None, false)), || format!("unreadable: {why}"));
    }

    /// The tally.
    pub fn finish(self) -> VerifyResult {
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
            return format!("misplaced: it contains the block of {name} at {offset}");
        }
        mismatch.to_string()
    }

    fn mismatch(&mut self, file: u32, block: u64, mismatch: Mismatch, passing: bool) {
        let kind = (Some(discriminant(&mismatch)), passing);
        let words = self.words(mismatch);
        let seen = if passing { ", seen by the load" } else { "" };
        self.tell((file, block, kind), || format!("{words}{seen}"));
    }

    fn tell(&mut self, what: (u32, u64, Kind), words: impl FnOnce() -> String) {
        self.result.mismatches += 1;
        if self.result.details.len() < DETAILS_MAX && self.told.insert(what) {
            let (file, block, _) = what;
            let name = self.ledger.file(file).map_or("?", |file| file.name.as_str());
            let offset = self.offset(block);
            self.result.details.push(format!("{name} at {offset}: {}", words()));
        }
    }
}

/// The blocks of the `files` to read back, as file and block number.
pub fn choose(ledger: &Ledger, files: &[u32], scope: VerifyScope) -> Vec<(u32, u64)> {
    let all = || files.iter().flat_map(|file| ledger.written(*file).map(|block| (*file, block)));
    match scope {
        VerifyScope::All => all().collect(),
        VerifyScope::Sample(count) => {
            let written = all().count() as u128;
            let count = u128::from(count);
            // Of so many before and with each one, this part: the ones that make it a whole more.
            let is_due = |index: u128| (index + 1) * count / written > index * count / written;
            let chosen = (0..).zip(all()).filter(|(index, _)| count >= written || is_due(*index));
            chosen.map(|(_, place)| place).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_sample_has_its_number_and_is_spread_over_all() {
        let file = |name: &str| Arc::new(FileLedger::new(name.into(), 1, Base::Stamped, 128));
        let ledger = Ledger::new(vec![file("a"), file("b")], 4096);
        for count in [0, 1, 2, 100, 200, 255, 256, 1000] {
            let chosen = choose(&ledger, &[0, 1], VerifyScope::Sample(count));
            assert_eq!(chosen.len() as u64, count.min(256));
            let second = chosen.iter().filter(|(file, _)| *file == 1).count() as u64;
            assert!(second.abs_diff(count.min(256) / 2) <= 1, "{count}: {second} in the second");
        }
    }

    #[test]
    fn a_block_of_an_unanswered_write_holds_the_old_or_the_new_and_nothing_else() {
        let file = Arc::new(FileLedger::new("f".into(), 1, Base::Stamped, 1));
        let (ledger, payload) = (Ledger::new(vec![file], 4096), Payload::new());
        ledger.begin_this(0, 0);
        let mut checker = Checker::new(&payload, &ledger, 7, 4);
        let content = |generation| {
            let name = BlockName { run: 7, file: 1, offset: 0, generation };
            [&stamp(name, 4096, &payload)[..], payload.body(name, 4096 - STAMP_BYTES)].concat()
        };
        checker.compare(0, 0, &content(1));
        checker.compare(0, 0, &content(2));
        assert_eq!((checker.result.uncertain, checker.result.mismatches), (2, 0));
        let mut damaged = content(2);
        damaged[2000] ^= 1;
        checker.compare(0, 0, &damaged);
        checker.compare(0, 0, &[0; 4096]);
        let result = checker.finish();
        assert_eq!((result.uncertain, result.mismatches, result.unread), (4, 2, 0));
        assert!(result.details[0].contains("byte 2000"), "{:?}", result.details);
    }
}
