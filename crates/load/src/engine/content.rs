//! The content of files, as they are laid out and as a load writes them: stamped blocks where
//! anything is verified, plain payload otherwise.

use super::Plan;
use super::share::FileSpec;
use crate::payload::{BlockName, Payload};
use crate::verify::{STAMP_BYTES, stamp};
use std::ops::Range;

/// The content that was laid out counts as the first write.
const GENERATION: u32 = 1;
/// Plain payload varies with the page.
const PAGE: u64 = 4096;

/// Fills `buffer` with what belongs at `offset` of the file `spec`, which is `spec.size` bytes
/// long. What is behind its last whole block is plain.
pub(super) fn fill(plan: &Plan, spec: &FileSpec, offset: u64, buffer: &mut [u8]) {
    let Some((file, block)) = spec.stamp else {
        buffer.copy_from_slice(plan.payload.plain(offset / PAGE, buffer.len()));
        return;
    };
    let length = usize::try_from(block).unwrap_or(usize::MAX);
    let stamped_end = spec.size - spec.size % u64::from(block);
    let mut at = offset;
    let mut rest = buffer;
    while !rest.is_empty() {
        let begin = at - at % u64::from(block);
        let skip = usize::try_from(at - begin).unwrap_or(0);
        let len = rest.len().min(length - skip);
        let (now, later) = rest.split_at_mut(len);
        if begin < stamped_end {
            let name = BlockName { run: plan.run, file, offset: begin, generation: GENERATION };
            piece(plan, name, length, skip, now);
        } else {
            now.copy_from_slice(plan.payload.plain(at / PAGE, now.len()));
        }
        at += len as u64;
        rest = later;
    }
}

/// Fills `buffer` with the bytes of the block `name` from byte `skip` on.
fn piece(plan: &Plan, name: BlockName, length: usize, skip: usize, buffer: &mut [u8]) {
    Stretch::of(name, length, (skip, buffer.len()), &plan.payload).copy_to(buffer, &plan.payload);
}

/// A stretch of a stamped block: bytes of the stamp, and behind them bytes of the payload buffer.
pub(super) struct Stretch {
    stamp: [u8; STAMP_BYTES],
    front: Range<usize>,
    /// The place of the bytes behind the stamp in the payload buffer.
    pub(super) start: usize,
    /// The number of these bytes.
    pub(super) len: usize,
}

impl Stretch {
    /// Of the block `name`, which is `length` bytes long: after the first `skip` bytes, so many.
    fn of(
        name: BlockName,
        length: usize,
        (skip, bytes): (usize, usize),
        payload: &Payload,
    ) -> Self {
        let front = skip.min(STAMP_BYTES)..skip.saturating_add(bytes).min(STAMP_BYTES);
        let body = skip.max(STAMP_BYTES) - STAMP_BYTES;
        Self {
            stamp: stamp(name, length, payload),
            start: Payload::body_start(name) + body,
            len: bytes - front.len(),
            front,
        }
    }

    /// The bytes of the stamp.
    pub(super) fn front(&self) -> &[u8] {
        self.stamp.get(self.front.clone()).unwrap_or(&[])
    }

    /// Copies it to `buffer`, which is as long.
    pub(super) fn copy_to(&self, buffer: &mut [u8], payload: &Payload) {
        let (stamped, rest) = buffer.split_at_mut(self.front().len());
        stamped.copy_from_slice(self.front());
        rest.copy_from_slice(payload.slice(self.start, self.len));
    }
}

impl Plan {
    /// The content of a WRITE of the load: write `generation` of the block at `offset` of a file,
    /// or of the rest of that block from there on.
    pub(super) fn stretch(&self, file: u32, offset: u64, bytes: u32, generation: u32) -> Stretch {
        let ledger = self.common.ledger.as_deref();
        let id = ledger.and_then(|ledger| ledger.file(file)).map_or(0, |file| file.id);
        let begin = ledger.map_or(offset, |ledger| ledger.offset(ledger.block(offset)));
        let name = BlockName { run: self.run, file: id, offset: begin, generation };
        let whole = |bytes: u32| usize::try_from(bytes).unwrap_or(0);
        let length = ledger.map_or(whole(bytes), |ledger| whole(ledger.block_bytes()));
        let skip = usize::try_from(offset - begin).unwrap_or(0);
        Stretch::of(name, length, (skip, whole(bytes)), &self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Common;
    use crate::engine::share::Role;
    use crate::payload::Payload;
    use crate::verify::inspect;
    use std::sync::Arc;

    #[test]
    fn a_file_is_the_same_however_it_is_cut_and_every_block_passes() {
        let plan = Plan {
            workload: Arc::default(),
            payload: Arc::new(Payload::new()),
            files: Arc::default(),
            keep_directory: false,
            common: Common::default(),
            run: 5,
        };
        let spec = FileSpec {
            name: "f".into(),
            size: 10_100,
            role: Role::Make,
            keep: false,
            stamp: Some((9, 1000)),
        };
        let cut = |step: usize| {
            let mut file = vec![0; 10_100];
            let mut at = 0;
            for chunk in file.chunks_mut(step) {
                fill(&plan, &spec, at, chunk);
                at += chunk.len() as u64;
            }
            file.truncate(10_000);
            file
        };
        let whole = cut(10_100);
        for step in [1, 7, 56, 57, 999, 1000, 1001, 4096] {
            assert!(cut(step) == whole, "in steps of {step}");
        }
        for (number, block) in whole.chunks(1000).enumerate() {
            let offset = number as u64 * 1000;
            let name = BlockName { run: 5, file: 9, offset, generation: 1 };
            assert_eq!(inspect(block, 1000, name, &plan.payload), Ok(()));
        }
    }
}
