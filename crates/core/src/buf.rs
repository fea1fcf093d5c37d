//! Counted slices of receive buffers: payload that outlives the read it came in.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, Range};

/// A cheap, clonable handle to part of a shared byte buffer.
///
/// A holder keeps the whole buffer alive, so a request that is going to wait calls
/// [`Shared::detach`], which lets the buffer be used again.
#[derive(Clone)]
pub struct Shared {
    owner: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

impl Shared {
    /// The part `range` of `owner`, clamped to its length.
    #[must_use]
    pub fn new(owner: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        let end = range.end.min(owner.len());
        Self { start: range.start.min(end), end, owner }
    }

    /// The part `range` of this part, clamped to its length.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let end = self.start.saturating_add(range.end).min(self.end);
        let start = self.start.saturating_add(range.start).min(end);
        Self { owner: Arc::clone(&self.owner), start, end }
    }

    /// This part without its first `bytes` bytes.
    #[must_use]
    pub fn skip(mut self, bytes: usize) -> Self {
        self.start = self.start.saturating_add(bytes).min(self.end);
        self
    }

    /// Bytes of memory this handle keeps alive, at least its own length.
    #[must_use]
    pub fn pinned(&self) -> usize {
        self.owner.capacity()
    }

    /// The bytes in a buffer of their own; the value itself if it pins nothing else already.
    #[must_use]
    pub fn detach(self) -> Self {
        if self.pinned() == self.len() {
            return self;
        }
        Self::from(self.to_vec())
    }
}

impl From<Vec<u8>> for Shared {
    fn from(bytes: Vec<u8>) -> Self {
        Self { start: 0, end: bytes.len(), owner: Arc::new(bytes) }
    }
}

impl Deref for Shared {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.owner.get(self.start..self.end).unwrap_or(&[])
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_clamp_and_detach_frees_the_rest() {
        let whole = Shared::from((0..100u8).collect::<Vec<_>>());
        let part = whole.slice(10..20).slice(2..50);
        assert_eq!(&*part, (12..20).collect::<Vec<u8>>());
        assert!(part.pinned() >= 100);
        assert_eq!(&*part.clone().skip(3), &part[3..]);
        assert!(part.clone().skip(9).is_empty());
        let own = part.detach();
        assert!(own.pinned() < 100);
        assert_eq!(own.len(), 8);
    }
}
