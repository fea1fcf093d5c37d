//! The data of one regular file: only blocks that were written exist.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::ops::Range;
use std::vec::Vec;

/// The unit of allocation, in bytes.
pub(super) const BLOCK: u64 = BLOCK_LEN as u64;
const BLOCK_LEN: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Sparse {
    size: u64,
    blocks: BTreeMap<u64, Box<[u8; BLOCK_LEN]>>,
}

impl Sparse {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn used(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }

    /// Bytes that a write of `len` at `offset` would allocate.
    pub(super) fn would_allocate(&self, offset: u64, len: u64) -> u64 {
        if len == 0 {
            return 0;
        }
        let touched = offset / BLOCK..=(offset + len - 1) / BLOCK;
        touched.filter(|block| !self.blocks.contains_key(block)).count() as u64 * BLOCK
    }

    /// Appends what is at `offset` to `out`, at most `count` bytes, and says how many.
    pub(super) fn read(&self, offset: u64, count: u32, out: &mut Vec<u8>) -> u32 {
        let end = offset.saturating_add(u64::from(count)).min(self.size);
        let mut at = offset;
        while at < end {
            let (skip, len) = part(at, end);
            match self.blocks.get(&(at / BLOCK)) {
                Some(block) => out.extend_from_slice(&block[skip..skip + len]),
                None => out.resize(out.len() + len, 0),
            }
            at += len as u64;
        }
        u32::try_from(at - offset).unwrap_or(count)
    }

    /// Puts `data` at `offset`; the caller has checked that the end is a valid size.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        let (mut at, mut rest) = (offset, data);
        while at < end {
            let (skip, len) = part(at, end);
            let (now, later) = rest.split_at(len);
            let block = self.blocks.entry(at / BLOCK).or_insert_with(|| Box::new([0; BLOCK_LEN]));
            block[skip..skip + len].copy_from_slice(now);
            rest = later;
            at += len as u64;
        }
        if !data.is_empty() {
            self.size = self.size.max(end);
        }
    }

    /// Cuts the file, or grows it with a hole.
    pub(super) fn set_size(&mut self, size: u64) {
        self.blocks.retain(|block, _| block * BLOCK < size);
        if let Some(last) = self.blocks.get_mut(&(size / BLOCK)) {
            let (keep, _) = part(size, u64::MAX);
            last[keep..].fill(0);
        }
        self.size = size;
    }

    /// Makes `from..to` zeros, and whole blocks of it holes. At the end of the file the last block
    /// is whole. Looks at blocks that exist alone, as the range may be of exabytes.
    pub(super) fn zero(&mut self, from: u64, to: u64) {
        let to = if to >= self.size { self.size.next_multiple_of(BLOCK) } else { to };
        self.blocks.retain(|block, bytes| {
            let start = block * BLOCK;
            let (first, end) = (from.max(start), to.min(start + BLOCK));
            if first >= end {
                return true;
            }
            let (skip, len) = part(first, end);
            bytes[skip..skip + len].fill(0);
            len < BLOCK_LEN
        });
    }

    /// The first stretch of data in `from..to`.
    pub(super) fn data(&self, from: u64, to: u64) -> Option<Range<u64>> {
        let to = to.min(self.size);
        let mut blocks = self.blocks.range(from / BLOCK..).map(|(block, _)| *block);
        let first = blocks.next()?;
        let last = blocks.zip(first + 1..).take_while(|(block, next)| block == next).last();
        let end = last.map_or(first, |(block, _)| block) + 1;
        let found = (first * BLOCK).max(from)..(end * BLOCK).min(to);
        (!found.is_empty()).then_some(found)
    }
}

/// The offset of `at` in its block, and the length of `at..end` in that block.
#[expect(clippy::cast_possible_truncation, reason = "both numbers are at most one block")]
fn part(at: u64, end: u64) -> (usize, usize) {
    let skip = at % BLOCK;
    (skip as usize, (end - at).min(BLOCK - skip) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u16, Vec<u8>),
        SetSize(u16),
        Zero(u16, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u16..20_000, proptest::collection::vec(any::<u8>(), 0..9000))
                .prop_map(|(at, data)| Step::Write(at, data)),
            (0u16..30_000).prop_map(Step::SetSize),
            (0u16..30_000, 0u16..30_000).prop_map(|(from, to)| Step::Zero(from, to)),
        ]
    }

    #[test]
    fn holes_of_exabytes_are_made_at_once() {
        let mut file = Sparse::default();
        file.write(i64::MAX as u64 - 1, &[1]);
        file.write(5000, &[2; 2]);
        file.zero(5001, i64::MAX as u64);
        assert_eq!((file.data(0, u64::MAX), file.used()), (Some(4096..8192), BLOCK));
        let mut out = Vec::new();
        file.read(5000, 2, &mut out);
        assert_eq!((out, file.size()), (vec![2, 0], i64::MAX as u64));
    }

    proptest! {
        #[test]
        fn behaves_like_one_long_array(steps in proptest::collection::vec(step(), 1..20),
                                       offset in 0usize..32_000, count in 0u32..32_000) {
            let (mut file, mut model) = (Sparse::default(), Vec::new());
            for step in steps {
                match step {
                    Step::Write(at, data) => {
                        file.write(u64::from(at), &data);
                        if !data.is_empty() {
                            let end = usize::from(at) + data.len();
                            model.resize(model.len().max(end), 0);
                            model[usize::from(at)..end].copy_from_slice(&data);
                        }
                    }
                    Step::SetSize(size) => {
                        file.set_size(u64::from(size));
                        model.resize(usize::from(size), 0);
                    }
                    Step::Zero(from, to) => {
                        file.zero(from.into(), to.into());
                        let to = model.len().min(to.into());
                        if let Some(range) = model.get_mut(usize::from(from)..to) {
                            range.fill(0);
                        }
                    }
                }
            }
            let (mut at, mut holes) = (0, file.size().next_multiple_of(BLOCK));
            let zeros = |from: u64, to: u64| {
                let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap());
                model[from..to].iter().all(|byte| *byte == 0)
            };
            while let Some(data) = file.data(at, file.size()) {
                prop_assert!(zeros(at, data.start));
                holes -= data.end.next_multiple_of(BLOCK) - data.start;
                at = data.end;
            }
            prop_assert!(zeros(at, file.size()));
            prop_assert_eq!(file.used() + holes, file.size().next_multiple_of(BLOCK));
            prop_assert_eq!(file.size(), model.len() as u64);
            let from = offset.min(model.len());
            let to = (from + count as usize).min(model.len());
            let mut out = vec![0xee];
            let read = file.read(offset as u64, count, &mut out);
            prop_assert_eq!(&out[1..], &model[from..to]);
            prop_assert_eq!(read as usize, to - from);
        }
    }

    #[test]
    fn holes_take_no_space() {
        let mut file = Sparse::default();
        file.set_size(1 << 40);
        assert_eq!(file.used(), 0);
        assert_eq!(file.would_allocate(4095, 2), 2 * BLOCK);
        file.write(4095, b"ab");
        assert_eq!((file.used(), file.size()), (2 * BLOCK, 1 << 40));
        file.set_size(4096);
        assert_eq!(file.used(), BLOCK);
    }

    #[test]
    fn whole_blocks_that_are_zeroed_are_holes_and_parts_are_not() {
        let mut file = Sparse::default();
        file.write(0, &[1; 5 * BLOCK_LEN]);
        file.zero(1, 2 * BLOCK + 1);
        assert_eq!((file.data(0, 1 << 20), file.used()), (Some(0..BLOCK), 4 * BLOCK));
        assert_eq!(file.data(BLOCK, 1 << 20), Some(2 * BLOCK..5 * BLOCK));
        assert_eq!(file.data(BLOCK, 3 * BLOCK + 5), Some(2 * BLOCK..3 * BLOCK + 5));
        assert_eq!(file.data(BLOCK, 2 * BLOCK), None);
        file.set_size(4 * BLOCK + 10);
        file.zero(4 * BLOCK, 4 * BLOCK + 9);
        assert_eq!(file.used(), 4 * BLOCK, "not to its end");
        file.zero(4 * BLOCK, u64::MAX);
        assert_eq!((file.used(), file.size()), (3 * BLOCK, 4 * BLOCK + 10));
    }
}
