//! What was written to each block, shared by all workers.

use std::sync::atomic::{AtomicU32, Ordering};

/// Set while a write of the block has no answer yet.
const IN_FLIGHT: u32 = 1 << 31;
/// Most blocks that are kept track of: 1 GiB of memory.
const BLOCKS_MAX: u64 = 1 << 28;

/// What a block should hold after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// This run never wrote it.
    Untouched,
    /// The content of its last answered write.
    Generation(u32),
    /// A write of it was never answered, so old and new content are both right.
    Uncertain,
}

/// For each block of each file how often it was written, and whether a write is under way. There
/// is never more than one write of a block in flight, so that its last content is certain.
pub(crate) struct Ledger {
    blocks_per_file: u64,
    blocks: Box<[AtomicU32]>,
}

impl Ledger {
    /// No block is written yet.
    ///
    /// # Errors
    /// A sentence, if there are too many blocks to keep track of.
    pub(crate) fn new(files: u32, blocks_per_file: u64) -> Result<Self, String> {
        let total = u64::from(files).saturating_mul(blocks_per_file);
        if total > BLOCKS_MAX {
            return Err(format!(
                "verification keeps track of at most {BLOCKS_MAX} blocks, and these files hold \
                 {total}: use fewer or smaller files, or larger blocks"
            ));
        }
        let blocks = (0..total).map(|_| AtomicU32::new(0)).collect();
        Ok(Self { blocks_per_file, blocks })
    }

    /// Claims `block` of `file` for a write, or the next one after it that has none in flight.
    /// Returns the block and the generation to write. `None` only if a write of every block of
    /// the file is in flight.
    pub(crate) fn begin(&self, file: u32, block: u64) -> Option<(u64, u32)> {
        for step in 0..self.blocks_per_file {
            let candidate = (block + step) % self.blocks_per_file;
            let cell = self.cell(file, candidate)?;
            let claim = |state| (state & IN_FLIGHT == 0).then_some((state + 1) | IN_FLIGHT);
            if let Ok(before) = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim) {
                return Some((candidate, before + 1));
            }
        }
        None
    }

    /// The write of `block` was answered with success.
    pub(crate) fn done(&self, file: u32, block: u64) {
        if let Some(cell) = self.cell(file, block) {
            cell.fetch_and(!IN_FLIGHT, Ordering::Relaxed);
        }
    }

    /// What `block` of `file` should hold.
    pub(crate) fn expected(&self, file: u32, block: u64) -> Expected {
        match self.cell(file, block).map_or(0, |cell| cell.load(Ordering::Relaxed)) {
            0 => Expected::Untouched,
            state if state & IN_FLIGHT != 0 => Expected::Uncertain,
            generation => Expected::Generation(generation),
        }
    }

    /// Every written block, as file and block number, in order.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let place = |index: usize| {
            let index = index as u64;
            let file = u32::try_from(index / self.blocks_per_file).unwrap_or(u32::MAX);
            (file, index % self.blocks_per_file)
        };
        let touched = |(_, cell): &(usize, &AtomicU32)| cell.load(Ordering::Relaxed) != 0;
        self.blocks.iter().enumerate().filter(touched).map(move |(index, _)| place(index))
    }

    fn cell(&self, file: u32, block: u64) -> Option<&AtomicU32> {
        let index = u64::from(file) * self.blocks_per_file + block;
        self.blocks.get(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_in_flight_is_passed_over_and_generations_count_up() {
        let ledger = Ledger::new(2, 4).unwrap();
        assert_eq!(ledger.begin(1, 3), Some((3, 1)));
        assert_eq!(ledger.begin(1, 3), Some((0, 1)), "it wraps within the file");
        ledger.done(1, 3);
        assert_eq!(ledger.begin(1, 3), Some((3, 2)));
        assert_eq!(ledger.expected(1, 3), Expected::Uncertain);
        ledger.done(1, 3);
        assert_eq!(ledger.expected(1, 3), Expected::Generation(2));
        assert_eq!(ledger.expected(0, 3), Expected::Untouched);
        assert_eq!(ledger.written().collect::<Vec<_>>(), [(1, 0), (1, 3)]);
    }

    #[test]
    fn with_every_block_in_flight_there_is_none_to_claim() {
        let ledger = Ledger::new(1, 2).unwrap();
        assert!(ledger.begin(0, 0).is_some() && ledger.begin(0, 0).is_some());
        assert_eq!(ledger.begin(0, 0), None);
    }

    #[test]
    fn too_many_blocks_are_refused_before_memory_is_taken() {
        assert!(Ledger::new(u32::MAX, u64::MAX).is_err());
    }
}
