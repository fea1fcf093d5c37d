//! The possible data of one file, block by block, given the answered and the unanswered writes.
//!
//! Every fact is kept twice: as it is while the machine runs (a killed server loses no page cache),
//! and as it is after a power cut at this moment. A write that was sent and not answered leaves
//! both the old and the new content right; an UNSTABLE one that was answered does so for the power
//! cut alone, until a COMMIT with the same verifier covers it.

use std::collections::BTreeMap;
use weir_load::payload::{BlockName, Payload};
use weir_load::verify::{STAMP_BYTES, inspect, stamp};

/// Bytes of a block: a page, so that what a killed write leaves behind is whole blocks.
pub(super) const BLOCK: u64 = 4096;
/// Blocks of the largest file: one READ gets them all.
pub(super) const BLOCKS_MAX: u32 = 16;

/// A write verifier.
pub(super) type Verifier = [u8; 8];

/// Contents of a block: numbers of writes, where 0 is a hole or no block at all.
type Contents = Vec<u32>;

/// The data of one file.
#[derive(Clone, Debug)]
pub(super) struct Content {
    blocks: Vec<Facts<Contents>>,
    /// Least and greatest size, in blocks.
    size: Facts<(u32, u32)>,
    /// Answered and not yet safe from a power cut: the write of each block and its verifier.
    uncommitted: BTreeMap<u32, (u32, Verifier)>,
    /// Writes so far.
    writes: u32,
    /// Was anything of it ever answered as stable?
    pub(super) anchored: bool,
}

/// The facts while the machine runs, and those after a power cut.
#[derive(Clone, Debug, Default)]
struct Facts<T> {
    now: T,
    cut: T,
}

impl Default for Content {
    fn default() -> Self {
        let blocks = (0..BLOCKS_MAX).map(|_| Facts { now: vec![0], cut: vec![0] }).collect();
        Self {
            blocks,
            size: Facts::default(),
            uncommitted: BTreeMap::new(),
            writes: 0,
            anchored: false,
        }
    }
}

impl Content {
    /// A number for the next write.
    pub(super) const fn next_write(&mut self) -> u32 {
        self.writes += 1;
        self.writes
    }

    /// The write `number` of `count` blocks from `first` on is sent: from now on both are right.
    pub(super) fn write_sent(&mut self, first: u32, count: u32, number: u32) {
        for facts in self.range(first, count) {
            add(&mut facts.now, number);
            add(&mut facts.cut, number);
        }
        let end = first + count;
        self.size.now.1 = self.size.now.1.max(end);
        self.size.cut.1 = self.size.cut.1.max(end);
    }

    /// Notes that the write was answered: as stable, or under this verifier.
    pub(super) fn write_done(
        &mut self,
        (first, count): (u32, u32),
        number: u32,
        unstable: Option<Verifier>,
    ) {
        let stable = unstable.is_none();
        for facts in self.range(first, count) {
            facts.now = vec![number];
            if stable {
                facts.cut = vec![number];
            }
        }
        let end = first + count;
        self.size.now.0 = self.size.now.0.max(end);
        if stable {
            self.size.cut.0 = self.size.cut.0.max(end);
            self.anchored = true;
        }
        for block in first..end {
            match unstable {
                Some(verifier) => self.uncommitted.insert(block, (number, verifier)),
                None => self.uncommitted.remove(&block),
            };
        }
    }

    /// A COMMIT was answered with `verifier`. Gives the blocks, each with its write, that must be
    /// sent again, because they were answered under another one.
    pub(super) fn committed(&mut self, verifier: Verifier) -> Vec<(u32, u32)> {
        let written = std::mem::take(&mut self.uncommitted);
        let (lost, safe): (BTreeMap<_, _>, BTreeMap<_, _>) =
            written.into_iter().partition(|(_, (_, under))| *under != verifier);
        for (&block, &(number, _)) in &safe {
            for facts in self.range(block, 1) {
                *facts = Facts { now: vec![number], cut: vec![number] };
            }
            self.size.cut.0 = self.size.cut.0.max(block + 1);
            self.anchored = true;
        }
        let again = lost.iter().map(|(block, (number, _))| (*block, *number)).collect();
        self.uncommitted = lost;
        again
    }

    /// Everything that was answered is safe from a power cut, and nothing is under way: FLUSH.
    pub(super) fn flushed(&mut self) {
        for facts in &mut self.blocks {
            facts.cut.clone_from(&facts.now);
        }
        self.size.cut = self.size.now;
        self.uncommitted.clear();
        self.anchored = true;
    }

    /// Nothing is under way, and `bytes` are what the file whose number is `file` has, as
    /// [`Content::compare`] found right: what was in doubt is not any more.
    pub(super) fn seen(&mut self, file: u32, bytes: &[u8], (run, payload): (u64, &Payload)) {
        let whole = usize::try_from(BLOCK).unwrap_or(usize::MAX);
        let mut parts = bytes.chunks(whole);
        for (number, facts) in (0u64..).zip(&mut self.blocks) {
            let part = parts.next().unwrap_or(&[]);
            facts.now.retain(|&write| {
                let (file, offset) = (u64::from(file), number * BLOCK);
                let name = BlockName { run, file, offset, generation: write };
                match write {
                    0 => part.iter().all(|byte| *byte == 0),
                    _ => inspect(part, whole, name, payload).is_ok(),
                }
            });
        }
        let blocks = u32::try_from(bytes.len() / whole).unwrap_or(u32::MAX);
        self.size.now = (blocks, blocks);
    }

    /// Nothing is under way, and `bytes` are what was found right on the disk after a power cut.
    pub(super) fn found(&mut self, file: u32, bytes: &[u8], from: (u64, &Payload)) {
        self.seen(file, bytes, from);
        self.flushed();
    }

    /// A new size, in blocks, is sent.
    pub(super) fn size_sent(&mut self, blocks: u32) {
        for facts in self.range(blocks, BLOCKS_MAX) {
            add(&mut facts.now, 0);
            add(&mut facts.cut, 0);
        }
        widen(&mut self.size.now, blocks);
        widen(&mut self.size.cut, blocks);
    }

    /// Notes that the size was answered, and survives a power cut if `durable`.
    pub(super) fn size_done(&mut self, blocks: u32, durable: bool) {
        for facts in self.range(blocks, BLOCKS_MAX) {
            facts.now = vec![0];
            if durable {
                facts.cut = vec![0];
            }
        }
        self.size.now = (blocks, blocks);
        if durable {
            self.size.cut = (blocks, blocks);
        }
        self.uncommitted.retain(|&block, _| block < blocks);
    }

    /// The machine lost its power.
    pub(super) fn power_cut(&mut self) {
        for facts in &mut self.blocks {
            facts.now.clone_from(&facts.cut);
        }
        self.size.now = self.size.cut;
    }

    /// Is anything answered and not committed?
    pub(super) fn is_uncommitted(&self) -> bool {
        !self.uncommitted.is_empty()
    }

    /// The most blocks it may have now.
    pub(super) const fn blocks_max(&self) -> u32 {
        self.size.now.1
    }

    /// Blocks with data: what it counts for in its volume's usage, if that is certain.
    pub(super) fn used_blocks(&self) -> Option<u64> {
        let mut used = 0;
        for facts in &self.blocks {
            match facts.now.as_slice() {
                [0] => {}
                [_] => used += 1,
                _ => return None,
            }
        }
        Some(used)
    }

    /// The mistakes in `bytes`, read from the front of the file whose number is `file`, if the file
    /// is `size` bytes long. Returns the number of blocks compared.
    pub(super) fn compare(
        &self,
        file: u32,
        size: u64,
        bytes: &[u8],
        (run, payload): (u64, &Payload),
    ) -> Result<u64, String> {
        let (least, most) = self.size.now;
        if !size.is_multiple_of(BLOCK)
            || size < u64::from(least) * BLOCK
            || size > u64::from(most) * BLOCK
        {
            return Err(format!("is {size} bytes long, not {least} to {most} blocks"));
        }
        if bytes.len() as u64 != size {
            return Err(format!("gave {} of its {size} bytes", bytes.len()));
        }
        let whole = usize::try_from(BLOCK).unwrap_or(usize::MAX);
        let mut parts = bytes.chunks(whole);
        for (number, facts) in (0u64..).zip(&self.blocks) {
            let part = parts.next().unwrap_or(&[]);
            let name = |generation| {
                let file = u64::from(file);
                BlockName { run, file, offset: number * BLOCK, generation }
            };
            let mut wrong = None;
            let fits = facts.now.iter().any(|&write| match write {
                0 => part.iter().all(|byte| *byte == 0),
                write => match inspect(part, whole, name(write), payload) {
                    Ok(()) => true,
                    Err(mismatch) => {
                        wrong = Some(mismatch.to_string());
                        false
                    }
                },
            });
            if !fits {
                let wrong = wrong.unwrap_or_else(|| "it holds data".to_owned());
                return Err(format!("block {number} should hold {:?}: {wrong}", facts.now));
            }
        }
        Ok(self.blocks.len() as u64)
    }

    fn range(&mut self, first: u32, count: u32) -> impl Iterator<Item = &mut Facts<Contents>> {
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        self.blocks.iter_mut().skip(first).take(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

/// The bytes of the write `number` of `count` blocks from `first` on of the file `file`.
pub(super) fn bytes(
    (run, payload): (u64, &Payload),
    file: u32,
    (first, count): (u32, u32),
    number: u32,
) -> Vec<u8> {
    let whole = usize::try_from(BLOCK).unwrap_or(0);
    let mut out = Vec::with_capacity(whole * usize::try_from(count).unwrap_or(0));
    for block in first..first + count {
        let offset = u64::from(block) * BLOCK;
        let name = BlockName { run, file: u64::from(file), offset, generation: number };
        out.extend_from_slice(&stamp(name, whole, payload));
        out.extend_from_slice(payload.body(name, whole - STAMP_BYTES));
    }
    out
}

fn add(contents: &mut Contents, number: u32) {
    if !contents.contains(&number) {
        contents.push(number);
    }
}

fn widen(range: &mut (u32, u32), blocks: u32) {
    *range = (range.0.min(blocks), range.1.max(blocks));
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Verifier = [1; 8];
    const NEW: Verifier = [2; 8];

    struct Bench(Payload);

    impl Bench {
        fn new() -> Self {
            Self(Payload::new())
        }

        fn of(&self, numbers: &[u32]) -> Vec<u8> {
            let block = |(at, &number): (u32, &u32)| match number {
                0 => vec![0; 4096],
                number => bytes((7, &self.0), 3, (at, 1), number),
            };
            (0..).zip(numbers).flat_map(block).collect()
        }

        fn fits(&self, content: &Content, numbers: &[u32]) -> bool {
            let bytes = self.of(numbers);
            content.compare(3, bytes.len() as u64, &bytes, (7, &self.0)).is_ok()
        }
    }

    fn written(content: &mut Content, first: u32, count: u32, unstable: Option<Verifier>) -> u32 {
        let number = content.next_write();
        content.write_sent(first, count, number);
        content.write_done((first, count), number, unstable);
        number
    }

    #[test]
    fn an_answered_write_must_be_there_and_an_unanswered_one_may() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 2, Some(OLD));
        assert!(bench.fits(&content, &[1, 1]));
        assert!(!bench.fits(&content, &[1, 0]) && !bench.fits(&content, &[1]));
        let doubt = content.next_write();
        content.write_sent(1, 2, doubt);
        for right in [&[1, 1][..], &[1, 2], &[1, 1, 2], &[1, 2, 2], &[1, 1, 0]] {
            assert!(bench.fits(&content, right), "{right:?}");
        }
        assert!(!bench.fits(&content, &[2, 2]) && !bench.fits(&content, &[1, 0, 2]));
        content.write_done((1, 2), doubt, Some(OLD));
        assert!(bench.fits(&content, &[1, 2, 2]) && !bench.fits(&content, &[1, 1, 2]));
    }

    #[test]
    fn a_power_cut_takes_what_was_not_committed_and_nothing_else() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 1, None);
        written(&mut content, 0, 1, Some(OLD));
        written(&mut content, 1, 1, Some(OLD));
        let mut cut = content.clone();
        cut.power_cut();
        for right in [&[1][..], &[2], &[1, 3], &[2, 0]] {
            assert!(bench.fits(&cut, right), "{right:?}");
        }
        assert!(!bench.fits(&cut, &[0]) && !bench.fits(&cut, &[]));
        assert_eq!(content.committed(OLD), []);
        content.power_cut();
        assert!(bench.fits(&content, &[2, 3]));
        assert!(!bench.fits(&content, &[1, 3]) && !bench.fits(&content, &[2]));
    }

    #[test]
    fn under_another_verifier_a_commit_covers_only_what_was_written_since() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 2, Some(OLD));
        content.power_cut();
        written(&mut content, 1, 1, Some(NEW));
        assert_eq!(content.committed(NEW), [(0, 1)]);
        assert!(content.is_uncommitted() && content.anchored);
        content.power_cut();
        assert!(bench.fits(&content, &[0, 2]) && bench.fits(&content, &[1, 2]));
        assert!(!bench.fits(&content, &[1, 1]));
    }

    #[test]
    fn a_flush_covers_what_was_answered_before_it_whoever_wrote_it() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 2, Some(OLD));
        written(&mut content, 1, 1, Some(NEW));
        content.size_sent(3);
        content.size_done(3, false);
        let mut lost = content.clone();
        lost.power_cut();
        assert!(bench.fits(&lost, &[]) && bench.fits(&lost, &[0, 1]));
        content.flushed();
        written(&mut content, 0, 1, Some(NEW));
        content.power_cut();
        assert!(bench.fits(&content, &[1, 2, 0]) && bench.fits(&content, &[3, 2, 0]));
        assert!(!bench.fits(&content, &[1, 2]) && !bench.fits(&content, &[1, 1, 0]));
    }

    #[test]
    fn what_is_seen_is_in_doubt_no_more() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 1, Some(OLD));
        let doubt = content.next_write();
        content.write_sent(0, 2, doubt);
        assert_eq!(content.used_blocks(), None);
        let bytes = bench.of(&[2, 0]);
        content.seen(3, &bytes, (7, &bench.0));
        assert_eq!(content.used_blocks(), Some(1));
        assert!(bench.fits(&content, &[2, 0]) && !bench.fits(&content, &[1, 0]));
        assert!(!bench.fits(&content, &[2, 2]) && !bench.fits(&content, &[2]));
    }

    #[test]
    fn a_size_that_was_answered_holds_and_may_be_lost_only_where_names_may() {
        let (bench, mut content) = (Bench::new(), Content::default());
        written(&mut content, 0, 3, None);
        content.size_sent(1);
        assert!(bench.fits(&content, &[1]) && bench.fits(&content, &[1, 1, 1]));
        let mut loose = content.clone();
        content.size_done(1, true);
        loose.size_done(1, false);
        assert_eq!(content.used_blocks(), Some(1));
        content.power_cut();
        assert!(bench.fits(&content, &[1]) && !bench.fits(&content, &[1, 1, 1]));
        assert!(!bench.fits(&loose, &[1, 1, 1]));
        loose.power_cut();
        assert!(bench.fits(&loose, &[1]) && bench.fits(&loose, &[1, 1, 1]));
        assert_eq!(loose.used_blocks(), None);
    }
}
