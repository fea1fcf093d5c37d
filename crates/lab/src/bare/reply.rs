//! Replies of the right size: a batch buffer that templates are copied into.

use super::call::HANDLE;
use super::files::ATTR;

/// NFS3ERR_NOENT (RFC 1813 §2.6).
pub(crate) const NOENT: u32 = 2;
/// NFS3ERR_IO.
pub(crate) const IO: u32 = 5;
/// NFS3ERR_EXIST.
pub(crate) const EXIST: u32 = 17;
/// NFS3ERR_STALE.
pub(crate) const STALE: u32 = 70;

/// A batch is sent once it holds this much, so that large replies stay in the processor's cache.
pub(crate) const BATCH_BYTES: usize = 512 << 10;
/// Room behind that for one more reply of the largest size.
const SPARE_BYTES: usize = (1 << 20) + 4096;

/// Replies that leave in one send. The memory is made once and never cleared.
pub(crate) struct Batch {
    bytes: Vec<u8>,
    filled: usize,
    start: usize,
}

impl Batch {
    /// An empty batch.
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; BATCH_BYTES + SPARE_BYTES], filled: 0, start: 0 }
    }

    /// The replies so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Forgets the replies, which were sent.
    pub(crate) const fn clear(&mut self) {
        self.filled = 0;
    }

    /// Is it time to send?
    pub(crate) const fn is_full(&self) -> bool {
        self.filled >= BATCH_BYTES
    }

    /// Begins an accepted reply (RFC 5531 §9).
    pub(crate) fn begin(&mut self, xid: u32) {
        self.start = self.filled;
        for word in [0, xid, 1, 0, 0, 0, 0] {
            self.word(word);
        }
    }

    /// Ends the reply: writes its record mark.
    #[expect(clippy::cast_possible_truncation, reason = "a reply is at most 1 MiB and a header")]
    pub(crate) fn end(&mut self) {
        let length = (self.filled - self.start - 4) as u32;
        self.bytes[self.start..self.start + 4]
            .copy_from_slice(&(length | 0x8000_0000).to_be_bytes());
    }

    /// Appends a word.
    pub(crate) fn word(&mut self, word: u32) {
        self.bytes(&word.to_be_bytes());
    }

    /// Appends bytes whose length is a multiple of four.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Appends a status and that many FALSE words in place of optional attributes.
    pub(crate) fn failure(&mut self, status: u32, absent: usize) {
        self.word(status);
        for _ in 0..absent {
            self.word(0);
        }
    }

    /// Appends `post_op_attr` (RFC 1813 §2.6).
    pub(crate) fn attributes(&mut self, attr: &[u8; ATTR]) {
        self.word(1);
        self.bytes(attr);
    }

    /// Appends `wcc_data` with both halves; the earlier half is a piece of the same template.
    pub(crate) fn weak_cache(&mut self, attr: &[u8; ATTR]) {
        self.word(1);
        self.bytes(&attr[20..28]);
        self.bytes(&attr[68..84]);
        self.attributes(attr);
    }

    /// Appends a handle that names `file`.
    pub(crate) fn handle(&mut self, file: u32) {
        self.word(32);
        self.word(file);
        self.bytes(&[0; HANDLE - 4]);
    }

    /// Appends opaque data that `fill` provides: it is given `count` bytes to fill and answers how
    /// many it did. What it was given behind those becomes the padding.
    pub(crate) fn opaque<E>(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let done = fill(&mut self.bytes[self.filled..self.filled + count])?;
        self.filled += done.next_multiple_of(4);
        Ok(done)
    }

    /// The place of the next byte, for [`Batch::patch`] and [`Batch::rewind`].
    pub(crate) const fn position(&self) -> usize {
        self.filled
    }

    /// Overwrites the word at `at`.
    pub(crate) fn patch(&mut self, at: usize, word: u32) {
        self.bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    /// Takes back everything from `at` on.
    pub(crate) const fn rewind(&mut self, at: usize) {
        self.filled = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_carries_its_mark_and_transaction() {
        let mut batch = Batch::new();
        batch.begin(9);
        batch.word(0);
        batch.end();
        let words: Vec<u32> = batch
            .as_bytes()
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [0x8000_001c, 9, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn opaque_data_is_padded_and_the_batch_fills_up() {
        let mut batch = Batch::new();
        let done = batch.opaque(10, |room| {
            room[..5].copy_from_slice(b"hello");
            Ok::<_, ()>(5)
        });
        assert_eq!((done, batch.position()), (Ok(5), 8));
        assert!(!batch.is_full());
        for _ in 0..BATCH_BYTES / 4 {
            batch.word(1);
        }
        assert!(batch.is_full());
        batch.clear();
        assert!(batch.as_bytes().is_empty());
    }
}
