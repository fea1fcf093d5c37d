//! A block that is read back: in one answer, or in parts, for a server may give less than was asked
//! for (RFC 1813 §3.3.6).

use super::Checker;

/// A block to be read back, and its front as far as it is there.
pub struct Wanted {
    file: u32,
    block: u64,
    front: Vec<u8>,
}

impl Wanted {
    /// `block` of `file`, of which nothing is there yet.
    pub const fn new((file, block): (u32, u64)) -> Self {
        Self { file, block, front: Vec::new() }
    }

    /// The file, the offset and the length of what is still to be read.
    pub fn left(&self, block_bytes: u32) -> (u32, u64, u32) {
        let there = u32::try_from(self.front.len()).unwrap_or(u32::MAX).min(block_bytes);
        let offset = self.block * u64::from(block_bytes) + u64::from(there);
        (self.file, offset, block_bytes - there)
    }

    /// Takes the next `data`, after which the file ends if `is_end`. The block is compared when it
    /// is whole, or the file ends; before, it comes back to be read on.
    pub fn take(mut self, data: &[u8], is_end: bool, checker: &mut Checker<'_>) -> Option<Self> {
        let (file, block) = (self.file, self.block);
        let there = self.front.len() + data.len();
        let is_whole = there >= checker.length() || is_end || data.is_empty();
        if is_whole && self.front.is_empty() {
            checker.compare(file, block, data);
            return None;
        }
        self.front.extend_from_slice(data);
        if is_whole {
            checker.compare(file, block, &self.front);
            return None;
        }
        Some(self)
    }

    /// It can't be read.
    pub fn unreadable(&self, why: &str, checker: &mut Checker<'_>) {
        checker.unreadable(self.file, self.block, why);
    }
}
