//! The blocks of a file: which write of each was sent last, which was acknowledged last, and
//! whether what is read agrees with that.

use serde::Serialize;
use weir_load::payload::{BlockName, Payload};
use weir_load::verify::{STAMP_BYTES, inspect, stamp};

/// The result of reading a file back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Found {
    /// Blocks with an acknowledged write that were read.
    pub(crate) checked: u64,
    /// Blocks that hold neither it nor a later write.
    pub(crate) lost: u64,
    /// The first of them in words.
    pub(crate) first: Option<String>,
    /// Why not all could be read.
    pub(crate) unread: Option<String>,
}

/// The writes of one block, by their numbers from 1; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Writes {
    sent: u32,
    acknowledged: u32,
}

/// The writes of one file in blocks of one size.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    run: u64,
    file: u64,
    block_bytes: u32,
    blocks: Vec<Writes>,
}

impl Ledger {
    /// A file of `blocks` blocks in which nothing was written. `run` and `file` tell its content
    /// from that of others.
    pub(crate) fn new((run, file): (u64, u32), blocks: u32, block_bytes: u32) -> Self {
        let blocks = (0..blocks).map(|_| Writes::default()).collect();
        Self { run, file: file.into(), block_bytes, blocks }
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> u32 {
        u32::try_from(self.blocks.len()).unwrap_or(u32::MAX)
    }

    /// Bytes of each block.
    pub(crate) fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// The first byte of a block.
    pub(crate) fn offset(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.block_bytes)
    }

    /// A number for the next write of a block, which is sent now.
    pub(crate) fn send(&mut self, block: u32) -> u32 {
        let Some(writes) = self.writes(block) else { return 0 };
        writes.sent += 1;
        writes.sent
    }

    /// The last write of a block was acknowledged as stable.
    pub(crate) fn acknowledge(&mut self, block: u32) {
        if let Some(writes) = self.writes(block) {
            writes.acknowledged = writes.sent;
        }
    }

    /// The bytes of a write.
    pub(crate) fn content(&self, block: u32, write: u32, payload: &Payload) -> Vec<u8> {
        let (name, length) = (self.name(block, write), self.length());
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&stamp(name, length, payload));
        bytes.extend_from_slice(payload.body(name, length.saturating_sub(STAMP_BYTES)));
        bytes
    }

    /// Is there an acknowledged write of the block?
    pub(crate) fn is_acknowledged(&self, block: u32) -> bool {
        self.at(block).acknowledged > 0
    }

    /// Compares a block that was read with its acknowledged write. A write without an answer may
    /// have been made or not.
    pub(crate) fn compare(&self, block: u32, bytes: &[u8], payload: &Payload, found: &mut Found) {
        let Writes { sent, acknowledged } = self.at(block);
        let differs = |write| inspect(bytes, self.length(), self.name(block, write), payload).err();
        found.checked += 1;
        let Some(mismatch) = differs(acknowledged) else { return };
        if sent > acknowledged && differs(sent).is_none() {
            return;
        }
        self.lost(block, &mismatch.to_string(), found);
    }

    /// Counts a block that could not be read.
    pub(crate) fn lost(&self, block: u32, why: &str, found: &mut Found) {
        found.lost += 1;
        found.first.get_or_insert_with(|| format!("the block at {}: {why}", self.offset(block)));
    }

    fn at(&self, block: u32) -> Writes {
        let place = usize::try_from(block).unwrap_or(usize::MAX);
        self.blocks.get(place).copied().unwrap_or_default()
    }

    fn writes(&mut self, block: u32) -> Option<&mut Writes> {
        self.blocks.get_mut(usize::try_from(block).ok()?)
    }

    fn name(&self, block: u32, write: u32) -> BlockName {
        let offset = self.offset(block);
        BlockName { run: self.run, file: self.file, offset, generation: write }
    }

    fn length(&self) -> usize {
        usize::try_from(self.block_bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ledger: &Ledger, bytes: &[u8], payload: &Payload) -> Found {
        let mut found = Found::default();
        ledger.compare(1, bytes, payload, &mut found);
        found
    }

    #[test]
    fn a_block_holds_the_acknowledged_write_or_a_later_one() {
        let payload = Payload::new();
        let mut ledger = Ledger::new((7, 3), 4, 4096);
        assert!(!ledger.is_acknowledged(1));
        let first = ledger.send(1);
        ledger.acknowledge(1);
        let second = ledger.send(1);
        assert_eq!((first, second, ledger.offset(1)), (1, 2, 4096));
        let contents = [first, second].map(|write| ledger.content(1, write, &payload));
        for right in &contents {
            assert_eq!(found(&ledger, right, &payload).lost, 0);
        }
        ledger.acknowledge(1);
        assert_eq!(found(&ledger, &contents[1], &payload).lost, 0);
        let stale = found(&ledger, &contents[0], &payload);
        assert_eq!((stale.checked, stale.lost), (1, 1));
        assert!(stale.first.unwrap().contains("stale"));
    }

    #[test]
    fn zeros_another_block_and_a_short_file_are_lost_data() {
        let payload = Payload::new();
        let mut ledger = Ledger::new((7, 3), 4, 4096);
        let write = ledger.send(1);
        ledger.acknowledge(1);
        let elsewhere = ledger.content(2, write, &payload);
        let short = ledger.content(1, write, &payload)[..100].to_vec();
        for wrong in [vec![0; 4096], elsewhere, short, Vec::new()] {
            assert_eq!(found(&ledger, &wrong, &payload).lost, 1);
        }
        assert!(ledger.is_acknowledged(1) && !ledger.is_acknowledged(2));
        assert_eq!(ledger.blocks(), 4);
    }
}
