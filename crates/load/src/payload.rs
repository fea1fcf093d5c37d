//! The bytes that are written: slices of one pseudo-random buffer, so that a write costs the
//! generator no filling and no copying, and the content of every verified block can be derived
//! again from what names it.

use weir_core::limits::IO_BYTES_MAX;
use weir_core::rng::{Rng, mix};

/// Distinct starts of a body, each 8 bytes from the next: 1 MiB in all.
const STARTS: u64 = 1 << 17;
/// Plain payload comes from the front only, so that it stays in the processor's cache.
const PLAIN_STARTS: u64 = 16;
const PLAIN_STRIDE: usize = 4096;
const IO_BYTES: usize = IO_BYTES_MAX as usize;

/// The name of a verified block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockName {
    /// The run that wrote it, so that blocks of earlier runs in the same file are told apart.
    pub run: u64,
    /// The file's number.
    pub file: u64,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// The number of times that this run had written the block, this time included.
    pub generation: u32,
}

/// The buffer; made once and shared by all workers.
pub struct Payload {
    bytes: Box<[u8]>,
    /// The digest of the first so many words, so that the one of any part takes no look at it.
    digests: Box<[u64]>,
}

/// The weight of a word in a digest against the one after it: odd, so that no change of a single
/// word is lost.
const WEIGHT: u64 = 0x9E37_79B9_7F4A_7C15;
const WORD: usize = 8;

/// The digest of `bytes`: their words as digits of a number to the base `WEIGHT`, modulo 2^64.
pub fn digest(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(WORD);
    let sum = words.by_ref().fold(0, step);
    seal(sum, words.remainder(), bytes.len())
}

fn step(sum: u64, bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    sum.wrapping_mul(WEIGHT).wrapping_add(u64::from_le_bytes(word))
}

fn seal(sum: u64, rest: &[u8], len: usize) -> u64 {
    let sum = if rest.is_empty() { sum } else { step(sum, rest) };
    mix(sum ^ len as u64)
}

impl Default for Payload {
    fn default() -> Self {
        Self::new()
    }
}

impl Payload {
    /// A payload with the same bytes every time.
    pub fn new() -> Self {
        let mut rng = Rng::new(0x5745_4952);
        let len = IO_BYTES + usize::try_from(STARTS).unwrap_or(0) * 8;
        let bytes: Box<[u8]> = (0..len / WORD).flat_map(|_| rng.next().to_le_bytes()).collect();
        let running = bytes.chunks_exact(WORD).scan(0, |sum, word| {
            *sum = step(*sum, word);
            Some(*sum)
        });
        let digests = std::iter::once(0).chain(running).collect();
        Self { bytes, digests }
    }

    /// The digest of the `len` bytes that follow the stamp of the block `name`, which costs the
    /// same whatever their number.
    pub fn body_digest(&self, name: BlockName, len: usize) -> u64 {
        let start = Self::body_start(name);
        let (first, words) = (start / WORD, len / WORD);
        let at = |index: usize| self.digests.get(index).copied().unwrap_or(0);
        let weight = WEIGHT.wrapping_pow(u32::try_from(words).unwrap_or(u32::MAX));
        let sum = at(first + words).wrapping_sub(at(first).wrapping_mul(weight));
        let rest = self.slice(start + words * WORD, len % WORD);
        seal(sum, rest, len)
    }

    /// The start of bytes that need not be told apart; `turn` varies it a little.
    pub fn plain_start(turn: u64) -> usize {
        usize::try_from(turn % PLAIN_STARTS).unwrap_or(0) * PLAIN_STRIDE
    }

    /// The start of the bytes that follow the stamp of the block `name`. Successive generations of
    /// a block never have the same body.
    pub fn body_start(name: BlockName) -> usize {
        let place = mix(name.run ^ mix(name.offset ^ mix(name.file)));
        // An odd stride visits all starts before one comes again.
        let start = place.wrapping_add(u64::from(name.generation).wrapping_mul(0x9E37_79B1));
        usize::try_from(start % STARTS).unwrap_or(0) * 8
    }

    /// The `len` bytes (at most 1 MiB) from one of these starts on.
    pub fn slice(&self, start: usize, len: usize) -> &[u8] {
        self.bytes.get(start..start + len).unwrap_or(&self.bytes)
    }

    /// `len` bytes that need not be told apart.
    pub fn plain(&self, turn: u64, len: usize) -> &[u8] {
        self.slice(Self::plain_start(turn), len)
    }

    /// The `len` bytes that follow the stamp of the block `name`.
    pub fn body(&self, name: BlockName, len: usize) -> &[u8] {
        self.slice(Self::body_start(name), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_block_fits_at_every_start() {
        let payload = Payload::new();
        for turn in 0..32 {
            assert_eq!(payload.plain(turn, IO_BYTES).len(), IO_BYTES);
        }
        for generation in 0..1000 {
            let name = BlockName { run: 1, file: 2, offset: 3 << 20, generation };
            assert_eq!(payload.body(name, IO_BYTES).len(), IO_BYTES);
        }
    }

    #[test]
    fn the_digest_of_a_body_is_that_of_its_bytes() {
        let payload = Payload::new();
        for (generation, len) in [(1, 0), (2, 7), (3, 8), (4, 4040), (5, 4041), (6, IO_BYTES - 56)]
        {
            let name = BlockName { run: 1, file: 2, offset: 4096, generation };
            let body = payload.body(name, len);
            assert_eq!(payload.body_digest(name, len), digest(body), "{len} bytes");
            if let Some(last) = body.len().checked_sub(1) {
                let mut changed = body.to_vec();
                changed[last] ^= 0x80;
                assert_ne!(digest(&changed), digest(body));
                changed[last] ^= 0x80;
                changed[0] ^= 1;
                assert_ne!(digest(&changed), digest(body));
            }
        }
    }

    #[test]
    fn successive_generations_differ_everywhere() {
        let payload = Payload::new();
        let name = BlockName { run: 9, file: 0, offset: 8192, generation: 1 };
        let next = BlockName { generation: 2, ..name };
        let same = payload.body(name, 4096).iter().zip(payload.body(next, 4096));
        assert!(same.filter(|(a, b)| a == b).count() < 100);
    }
}
