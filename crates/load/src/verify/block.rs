//! The content of a verified block: a stamp that names it, with a digest of the rest, sealed by a
//! checksum, and a body that follows from the name.

use crate::payload::{BlockName, Payload, digest};
use weir_core::rng::mix;

/// Bytes of the stamp at the front of a block.
pub const STAMP_BYTES: usize = 56;
const MAGIC: u64 = u64::from_be_bytes(*b"weirblk2");
const SEALED_WORDS: usize = 6;
/// The number of earlier writes that are tried to explain a part of a block.
const RECENT: u32 = 16;
/// The least piece of a write that is told from bytes that agree by chance.
const PIECE_BYTES_MIN: usize = 8;

/// The difference of a block from the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// All zeros: the write is lost, or went elsewhere.
    #[error("lost write: the block is all zeros")]
    Lost,
    /// The file ends before the block does.
    #[error("lost write: the file ends after {0} bytes of the block")]
    Short(usize),
    /// No valid stamp: what was there before the run, or damage in the stamp itself.
    #[error(
        "no valid stamp: never written in verified blocks of this size, or damaged in its first \
         {STAMP_BYTES} bytes"
    )]
    Unstamped,
    /// The valid content of another place.
    #[error("misplaced: it contains the block of file {file} at {offset}")]
    Misplaced { file: u64, offset: u64 },
    /// An older content of this very place.
    #[error("stale: it contains write {found}, but the last acknowledged write is write {wanted}")]
    Stale { found: u32, wanted: u32 },
    /// From some byte on, an older content of this place.
    #[error("torn write: from byte {at} on it contains write {older}")]
    Torn { at: usize, older: u32 },
    /// The stamp is right, the body is not.
    #[error("corrupt: byte {at} differs from the written data")]
    Corrupt { at: usize },
    /// Something where nothing was written.
    #[error("stray data: byte {at} is not zero, and nothing was ever written there")]
    Stray { at: usize },
}

/// The stamp of the block `name`, which is `length` bytes long with it.
pub fn stamp(name: BlockName, length: usize, payload: &Payload) -> [u8; STAMP_BYTES] {
    seal(name, length, payload.body_digest(name, length.saturating_sub(STAMP_BYTES)))
}

fn seal(name: BlockName, length: usize, body: u64) -> [u8; STAMP_BYTES] {
    let size = (length as u64) << 32;
    let words: [u64; SEALED_WORDS] =
        [MAGIC, name.run, name.file, name.offset, size | u64::from(name.generation), body];
    let sum = words.iter().fold(0, |sum, word| mix(sum ^ word));
    let mut bytes = [0; STAMP_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words.into_iter().chain([sum])) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// A stamp that was read, and what it says of the body.
struct Stamp {
    name: BlockName,
    body: u64,
}

/// Reads a stamp back; `None` if it is damaged, or that of a block of another length.
fn read_stamp(block: &[u8], length: usize) -> Option<Stamp> {
    let found: &[u8; STAMP_BYTES] = block.first_chunk()?;
    let mut words = found
        .chunks_exact(8)
        .filter_map(|word| word.first_chunk::<8>().map(|word| u64::from_be_bytes(*word)));
    let _magic = words.next()?;
    let (run, file, offset) = (words.next()?, words.next()?, words.next()?);
    let generation = u32::try_from(words.next()? & u64::from(u32::MAX)).ok()?;
    let (name, body) = (BlockName { run, file, offset, generation }, words.next()?);
    (seal(name, length, body) == *found).then_some(Stamp { name, body })
}

/// Compares what was read at the place of `wanted` with what was written there last. `length` is
/// the block size; `block` may be shorter if the file is.
pub fn inspect(
    block: &[u8],
    length: usize,
    wanted: BlockName,
    payload: &Payload,
) -> Result<(), Mismatch> {
    let found = at_its_place(block, length, wanted, Some(wanted.run))?.name;
    if found.generation != wanted.generation {
        return Err(Mismatch::Stale { found: found.generation, wanted: wanted.generation });
    }
    let body = block.get(STAMP_BYTES..length).unwrap_or(&[]);
    let right = payload.body(wanted, body.len());
    if body == right {
        return Ok(());
    }
    let first = body.iter().zip(right).position(|(a, b)| a != b).unwrap_or(0);
    Err(torn(body, first, wanted, payload).unwrap_or(Mismatch::Corrupt { at: STAMP_BYTES + first }))
}

/// The content of a block after one write of it.
struct Content<'a> {
    stamp: [u8; STAMP_BYTES],
    body: &'a [u8],
}

impl<'a> Content<'a> {
    /// After the write that `name` names; the one before the first leaves a hole, of which `zeros`
    /// is the body.
    fn after(name: BlockName, length: usize, payload: &'a Payload, zeros: &'a [u8]) -> Self {
        if name.generation == 0 {
            return Self { stamp: [0; STAMP_BYTES], body: zeros };
        }
        let body = payload.body(name, length.saturating_sub(STAMP_BYTES));
        Self { stamp: stamp(name, length, payload), body }
    }

    /// The number of bytes of `block` from `at` on that are those of this content.
    fn agrees(&self, block: &[u8], at: usize) -> usize {
        let front = self.stamp.get(at..).unwrap_or(&[]);
        let stamped = agree(block.get(at..).unwrap_or(&[]), front);
        if stamped < front.len() {
            return stamped;
        }
        let behind = at.max(STAMP_BYTES);
        let body = self.body.get(behind - STAMP_BYTES..).unwrap_or(&[]);
        stamped + agree(block.get(behind..).unwrap_or(&[]), body)
    }
}

/// The number of bytes from the first on that are the same.
fn agree(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    // Most often all of them, and comparing slices is faster.
    if one.get(..most) == other.get(..most) {
        return most;
    }
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Compares a block that was read while it was written: any write from `oldest` up to the one that
/// `newest` names is right, and so are pieces of several, because a read may meet a write half
/// done. `Ok(false)` says that it is of pieces. The write before the first is a hole.
pub(super) fn inspect_racing(
    block: &[u8],
    length: usize,
    newest: BlockName,
    oldest: u32,
    payload: &Payload,
) -> Result<bool, Mismatch> {
    let front = block.get(..STAMP_BYTES).unwrap_or(block);
    let is_hole = oldest == 0 && front.iter().all(|byte| *byte == 0);
    let found = if is_hole && block.len() >= length {
        Ok(BlockName { generation: 0, ..newest })
    } else {
        at_its_place(block, length, newest, Some(newest.run)).map(|found| found.name)
    };
    let zeros = vec![0; if oldest == 0 { length.saturating_sub(STAMP_BYTES) } else { 0 }];
    let content =
        |generation| Content::after(BlockName { generation, ..newest }, length, payload, &zeros);
    let own = match found {
        Ok(found) if !(oldest..=newest.generation).contains(&found.generation) => {
            return Err(Mismatch::Stale { found: found.generation, wanted: oldest });
        }
        Ok(found) => Some(content(found.generation)),
        // The border of two pieces may lie within the stamp.
        Err(Mismatch::Unstamped) => None,
        Err(mismatch) => return Err(mismatch),
    };
    let agreed = own.as_ref().map_or(0, |own| own.agrees(block, 0));
    if agreed >= length {
        return Ok(true);
    }
    let recent = newest.generation.saturating_sub(RECENT).max(oldest);
    let candidates: Vec<Content<'_>> =
        (recent..=newest.generation).rev().map(content).chain(own).collect();
    let block = block.get(..length).unwrap_or(block);
    let Some(first) = first_of_none(block, &candidates) else { return Ok(false) };
    let found = found?;
    let (body, own) = (block.get(STAMP_BYTES..).unwrap_or(&[]), agreed.max(STAMP_BYTES));
    Err(torn(body, own - STAMP_BYTES, found, payload).unwrap_or(Mismatch::Corrupt { at: first }))
}

/// The first byte of `block` from which on it is a piece of none of `candidates`; `None` if it
/// consists of pieces of them. A piece has at least 8 bytes, if it is not the last: fewer agree by
/// chance.
fn first_of_none(block: &[u8], candidates: &[Content<'_>]) -> Option<usize> {
    let mut at = 0;
    while at < block.len() {
        let pieces = candidates.iter().map(|candidate| candidate.agrees(block, at));
        let piece = pieces.max().unwrap_or(0);
        if piece < PIECE_BYTES_MIN && piece < block.len() - at {
            return Some(at);
        }
        at += piece;
    }
    None
}

/// Judges a block that an earlier run wrote by what it says itself: its place is right, and the
/// body is the one that its stamp was made for.
pub(super) fn inspect_alone(
    block: &[u8],
    length: usize,
    (file, offset): (u64, u64),
    payload: &Payload,
) -> Result<(), Mismatch> {
    let place = BlockName { run: 0, file, offset, generation: 0 };
    let found = at_its_place(block, length, place, None)?;
    let body = block.get(STAMP_BYTES..length).unwrap_or(&[]);
    if digest(body) == found.body {
        return Ok(());
    }
    let right = payload.body(found.name, body.len());
    let first = body.iter().zip(right).position(|(a, b)| a != b).unwrap_or(0);
    Err(torn(body, first, found.name, payload)
        .unwrap_or(Mismatch::Corrupt { at: STAMP_BYTES + first }))
}

/// Is it a hole of `length` bytes still?
pub(super) fn inspect_hole(block: &[u8], length: usize) -> Result<(), Mismatch> {
    if block.len() < length {
        return Err(Mismatch::Short(block.len()));
    }
    let stray = block.iter().position(|byte| *byte != 0);
    stray.map_or(Ok(()), |at| Err(Mismatch::Stray { at }))
}

/// The stamp of a block that is whole and belongs to the place of `wanted`, of `run` if that is
/// known.
fn at_its_place(
    block: &[u8],
    length: usize,
    wanted: BlockName,
    run: Option<u64>,
) -> Result<Stamp, Mismatch> {
    if block.len() < length {
        return Err(Mismatch::Short(block.len()));
    }
    let found =
        read_stamp(block, length).filter(|stamp| run.is_none_or(|run| run == stamp.name.run));
    let Some(found) = found else {
        let zeros = block.iter().all(|byte| *byte == 0);
        return Err(if zeros { Mismatch::Lost } else { Mismatch::Unstamped });
    };
    if (found.name.file, found.name.offset) != (wanted.file, wanted.offset) {
        return Err(Mismatch::Misplaced { file: found.name.file, offset: found.name.offset });
    }
    Ok(found)
}

/// Is everything from byte `first` of the body on the content of a recent older write?
fn torn(body: &[u8], first: usize, wanted: BlockName, payload: &Payload) -> Option<Mismatch> {
    let tail = body.get(first..)?;
    if tail.len() < PIECE_BYTES_MIN {
        return None;
    }
    let oldest = wanted.generation.saturating_sub(RECENT).max(1);
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
        [&stamp(name, BLOCK, payload)[..], payload.body(name, BLOCK - STAMP_BYTES)].concat()
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

    #[test]
    fn a_block_can_be_judged_by_itself() {
        let payload = Payload::new();
        let place = (name(5).file, name(5).offset);
        let mut block = content(&payload, BlockName { run: 5, ..name(5) });
        assert_eq!(inspect_alone(&block, BLOCK, place, &payload), Ok(()));
        let elsewhere = inspect_alone(&block, BLOCK, (4, place.1), &payload);
        assert_eq!(elsewhere, Err(Mismatch::Misplaced { file: 3, offset: 8192 }));
        let shorter = inspect_alone(&block, BLOCK / 2, place, &payload);
        assert_eq!(shorter, Err(Mismatch::Unstamped));
        for at in STAMP_BYTES..BLOCK {
            block[at] ^= 1 << (at % 8);
            let found = inspect_alone(&block, BLOCK, place, &payload);
            assert_eq!(found, Err(Mismatch::Corrupt { at }));
            block[at] ^= 1 << (at % 8);
        }
    }

    #[test]
    fn a_read_that_met_a_write_may_show_either_and_nothing_older() {
        let payload = Payload::new();
        let judge = |block: &[u8]| inspect_racing(block, BLOCK, name(6), 5, &payload);
        let (old, new) = (content(&payload, name(5)), content(&payload, name(6)));
        assert_eq!(judge(&old), Ok(true));
        assert_eq!(judge(&new), Ok(true));
        let mut both = new.clone();
        both[1024..].copy_from_slice(&old[1024..]);
        assert_eq!(judge(&both), Ok(false));
        let stale = content(&payload, name(4));
        assert_eq!(judge(&stale), Err(Mismatch::Stale { found: 4, wanted: 5 }));
        assert_eq!(judge(&[0; BLOCK]), Err(Mismatch::Lost));
    }

    #[test]
    fn the_border_of_two_writes_may_lie_within_the_stamp() {
        let payload = Payload::new();
        let (old, new) = (content(&payload, name(5)), content(&payload, name(6)));
        let judge = |front: &[u8], rest: &[u8], at: usize, oldest| {
            let mut block = rest.to_vec();
            block[..at].copy_from_slice(&front[..at]);
            inspect_racing(&block, BLOCK, name(6), oldest, &payload)
        };
        for at in [8, 40, 44, 50, 55, 56, 57, 63, 64] {
            assert!(judge(&new, &old, at, 5).is_ok(), "{at}");
            assert!(judge(&new, &content(&payload, name(4)), at.max(40), 5).is_err(), "{at}");
        }
        // A write of long ago, whose rest is the newest.
        let newest = content(&payload, name(60));
        let mut both = newest.clone();
        both[..1000].copy_from_slice(&old[..1000]);
        assert_eq!(inspect_racing(&both, BLOCK, name(60), 5, &payload), Ok(false));
        let first = content(&payload, name(1));
        for at in [8, 40, 55, 100] {
            let mut block = vec![0; BLOCK];
            block[..at].copy_from_slice(&first[..at]);
            assert_eq!(inspect_racing(&block, BLOCK, name(1), 0, &payload), Ok(false), "{at}");
            block[BLOCK - 9] = 1;
            assert!(inspect_racing(&block, BLOCK, name(1), 0, &payload).is_err(), "{at}");
        }
    }

    #[test]
    fn damage_is_found_also_where_a_read_met_a_write() {
        let payload = Payload::new();
        let judge = |block: &[u8]| inspect_racing(block, BLOCK, name(6), 5, &payload);
        let (old, new) = (content(&payload, name(5)), content(&payload, name(6)));
        let mut both = new.clone();
        both[1024..3000].copy_from_slice(&old[1024..3000]);
        for block in [&new, &old, &both] {
            for at in (0..BLOCK - PIECE_BYTES_MIN).step_by(37) {
                let mut damaged = block.clone();
                damaged[at] ^= 1 << (at % 8);
                assert!(judge(&damaged).is_err(), "byte {at}");
            }
        }
        let mut torn = new.clone();
        torn[1000..].copy_from_slice(&content(&payload, name(3))[1000..]);
        assert!(matches!(judge(&torn), Err(Mismatch::Torn { older: 3, .. })));
    }

    #[test]
    fn a_first_write_may_be_seen_over_the_hole_and_nothing_else() {
        let payload = Payload::new();
        let judge = |block: &[u8]| inspect_racing(block, BLOCK, name(1), 0, &payload);
        let new = content(&payload, name(1));
        assert_eq!(judge(&new), Ok(true));
        assert_eq!(judge(&[0; BLOCK]), Ok(true));
        let mut both = new.clone();
        both[2048..].fill(0);
        assert_eq!(judge(&both), Ok(false));
        both[3000] = 1;
        assert_eq!(judge(&both), Err(Mismatch::Corrupt { at: 3000 }));
        assert_eq!(judge(&new[..100]), Err(Mismatch::Short(100)));
    }

    #[test]
    fn a_hole_is_empty() {
        assert_eq!(inspect_hole(&[0; 512], 512), Ok(()));
        assert_eq!(inspect_hole(&[0; 511], 512), Err(Mismatch::Short(511)));
        let mut block = [0; 512];
        block[511] = 1;
        assert_eq!(inspect_hole(&block, 512), Err(Mismatch::Stray { at: 511 }));
    }
}
