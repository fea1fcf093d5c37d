//! The content of a verified block: a stamp that names it, sealed by a checksum, and a body that
//! follows from the name.

use crate::payload::{BlockName, Payload};
use crate::rng::mix;

/// Bytes of the stamp at the front of a block.
pub(crate) const STAMP_BYTES: usize = 48;
const MAGIC: u64 = u64::from_be_bytes(*b"weirblk1");

/// How a block differs from what was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    /// All zeros: the write is lost, or went elsewhere.
    #[error("lost write: the block is all zeros")]
    Lost,
    /// The file ends before the block does.
    #[error("lost write: the file ends {0} bytes into the block")]
    Short(usize),
    /// No valid stamp: what was there before the run, or damage in the stamp itself.
    #[error("no valid stamp: never written by this run, or damaged in its first 48 bytes")]
    Unstamped,
    /// The valid content of another place.
    #[error("misplaced: it holds the block of file {file} at {offset}")]
    Misplaced { file: u32, offset: u64 },
    /// An older content of this very place.
    #[error("stale: it holds write {found}, the last one answered was write {wanted}")]
    Stale { found: u32, wanted: u32 },
    /// From some byte on, an older content of this place.
    #[error("torn write: from byte {at} on it holds write {older}")]
    Torn { at: usize, older: u32 },
    /// The stamp is right, the body is not.
    #[error("corrupt: byte {at} is not what was written")]
    Corrupt { at: usize },
}

/// The stamp of the block `name`.
pub(crate) fn stamp(name: BlockName) -> [u8; STAMP_BYTES] {
    let words = [
        MAGIC,
        name.run,
        u64::from(name.file),
        name.offset,
        u64::from(name.generation),
        checksum(name),
    ];
    let mut bytes = [0; STAMP_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn checksum(name: BlockName) -> u64 {
    let place = mix(name.run ^ mix(name.offset));
    mix(place ^ mix((u64::from(name.file) << 32) | u64::from(name.generation)))
}

/// Reads a stamp back; `None` if it is none of `run`.
fn read_stamp(block: &[u8], run: u64) -> Option<BlockName> {
    let stamp_bytes: &[u8; STAMP_BYTES] = block.first_chunk()?;
    let mut words = stamp_bytes
        .chunks_exact(8)
        .filter_map(|word| word.first_chunk::<8>().map(|word| u64::from_be_bytes(*word)));
    let _magic = words.next()?;
    let name = BlockName {
        run: words.next()?,
        file: u32::try_from(words.next()?).ok()?,
        offset: words.next()?,
        generation: u32::try_from(words.next()?).ok()?,
    };
    (name.run == run && stamp(name) == *stamp_bytes).then_some(name)
}

/// Compares what was read at the place of `wanted` with what was written there last. `length` is
/// the block size; `block` may be shorter if the file is.
pub(crate) fn inspect(
    block: &[u8],
    length: usize,
    wanted: BlockName,
    payload: &Payload,
) -> Result<(), Mismatch> {
    if block.len() < length {
        return Err(Mismatch::Short(block.len()));
    }
    let Some(found) = read_stamp(block, wanted.run) else {
        let zeros = block.iter().all(|byte| *byte == 0);
        return Err(if zeros { Mismatch::Lost } else { Mismatch::Unstamped });
    };
    if (found.file, found.offset) != (wanted.file, wanted.offset) {
        return Err(Mismatch::Misplaced { file: found.file, offset: found.offset });
    }
    let body = block.get(STAMP_BYTES..length).unwrap_or(&[]);
    if found.generation != wanted.generation {
        return Err(Mismatch::Stale { found: found.generation, wanted: wanted.generation });
    }
    let right = payload.body(wanted, body.len());
    if body == right {
        return Ok(());
    }
    let first = body.iter().zip(right).position(|(a, b)| a != b).unwrap_or(0);
    Err(torn(body, first, wanted, payload).unwrap_or(Mismatch::Corrupt { at: STAMP_BYTES + first }))
}

/// Is everything from byte `first` of the body on the content of a recent older write?
fn torn(body: &[u8], first: usize, wanted: BlockName, payload: &Payload) -> Option<Mismatch> {
    let tail = body.get(first..)?;
    let oldest = wanted.generation.saturating_sub(16).max(1);
    let is_tail = |generation: &u32| {
        let older = BlockName { generation: *generation, ..wanted };
        payload.body(older, body.len()).get(first..) == Some(tail)
    };
    let older = (oldest..wanted.generation).rev().find(is_tail)?;
    Some(Mismatch::Torn { at: STAMP_BYTES + first, older })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 4096;

    fn name(generation: u32) -> BlockName {
        BlockName { run: 77, file: 3, offset: 8192, generation }
    }

    fn content(payload: &Payload, name: BlockName) -> Vec<u8> {
        [&stamp(name)[..], payload.body(name, BLOCK - STAMP_BYTES)].concat()
    }

    fn check(block: &[u8], payload: &Payload) -> Result<(), Mismatch> {
        inspect(block, BLOCK, name(5), payload)
    }

    #[test]
    fn what_was_written_passes() {
        let payload = Payload::new();
        assert_eq!(check(&content(&payload, name(5)), &payload), Ok(()));
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_it_is() {
        let payload = Payload::new();
        for at in 0..BLOCK {
            let mut block = content(&payload, name(5));
            block[at] ^= 1 << (at % 8);
            let wanted =
                if at < STAMP_BYTES { Mismatch::Unstamped } else { Mismatch::Corrupt { at } };
            assert_eq!(check(&block, &payload), Err(wanted));
        }
    }

    #[test]
    fn stale_swapped_torn_and_lost_blocks_are_named_as_such() {
        let payload = Payload::new();
        let stale = content(&payload, name(4));
        assert_eq!(check(&stale, &payload), Err(Mismatch::Stale { found: 4, wanted: 5 }));

        let swapped = content(&payload, BlockName { offset: 4096, ..name(5) });
        assert_eq!(check(&swapped, &payload), Err(Mismatch::Misplaced { file: 3, offset: 4096 }));

        let mut torn = content(&payload, name(5));
        torn[512..].copy_from_slice(&stale[512..]);
        match check(&torn, &payload) {
            Err(Mismatch::Torn { at, older: 4 }) => assert!((512..520).contains(&at)),
            other => panic!("{other:?}"),
        }

        assert_eq!(check(&[0; BLOCK], &payload), Err(Mismatch::Lost));
        assert_eq!(check(&stale[..100], &payload), Err(Mismatch::Short(100)));
    }

    #[test]
    fn a_block_of_an_earlier_run_is_not_taken_for_ours() {
        let payload = Payload::new();
        let earlier = content(&payload, BlockName { run: 76, ..name(5) });
        assert_eq!(check(&earlier, &payload), Err(Mismatch::Unstamped));
    }
}
