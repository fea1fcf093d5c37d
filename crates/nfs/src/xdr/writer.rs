//! Writing XDR to the end of a vector.

use super::padding;
use alloc::vec::Vec;

/// Appends XDR to a vector the caller hands in (and gets back), so that buffers can be pooled.
///
/// The vector may be taken out in the middle ([`Writer::into_vec`]), appended to by somebody
/// else, and put back ([`Writer::new`]).
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Continues at the end of `out`.
    #[inline]
    #[must_use]
    pub const fn new(out: Vec<u8>) -> Self {
        Self { out }
    }

    /// The vector with everything written so far.
    #[inline]
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        self.out
    }

    /// The bytes written so far, with what was in the vector before.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// Bytes in the vector: the position of what is written next.
    #[inline]
    #[must_use]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// Makes room for `additional` bytes at once.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        self.out.reserve(additional);
    }

    /// Forgets everything from `position` on.
    #[inline]
    pub fn truncate(&mut self, position: usize) {
        self.out.truncate(position);
    }

    /// Appends `bytes` as they are, without padding.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends an unsigned integer (RFC 4506 §4.2).
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends an unsigned hyper integer (RFC 4506 §4.5).
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }

    /// Appends a boolean (RFC 4506 §4.4).
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u32(u32::from(value));
    }

    /// Appends variable-length opaque data: length, bytes, padding (RFC 4506 §4.10). Data beyond
    /// `u32::MAX` bytes, which the length word can't express, is cut off.
    #[inline]
    pub fn opaque(&mut self, data: &[u8]) {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.u32(len);
        self.bytes(data.get(..len as usize).unwrap_or(data));
        self.pad(len as usize);
    }

    /// Appends the padding that belongs after `len` bytes of opaque data.
    #[inline]
    pub fn pad(&mut self, len: usize) {
        self.bytes([0; 3].get(..padding(len)).unwrap_or(&[]));
    }

    /// Overwrites the bytes at `position`, which must have been written before. A block that
    /// reaches beyond the end is a mistake of the caller: debug builds assert, others leave the
    /// vector as it is.
    #[inline]
    pub fn patch(&mut self, position: usize, block: &[u8]) {
        let target = self.out.get_mut(position..).and_then(|rest| rest.get_mut(..block.len()));
        debug_assert!(target.is_some(), "patch of bytes never written");
        if let Some(target) = target {
            target.copy_from_slice(block);
        }
    }
}
