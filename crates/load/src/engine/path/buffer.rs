//! Memory for `O_DIRECT`, which wants its buffers aligned to the device's block.

/// Alignment that satisfies every block device in use, and a page.
const ALIGNMENT: usize = 4096;

/// A buffer that starts at a multiple of 4 KiB.
pub(super) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// `len` zero bytes.
    pub(super) fn new(len: usize) -> Self {
        let memory = vec![0; len + ALIGNMENT];
        // An offset that can't be computed leaves the buffer unaligned, which O_DIRECT refuses
        // and everything else accepts.
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, start, len }
    }

    /// The bytes.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.start + self.len;
        self.memory.get_mut(self.start..end).unwrap_or(&mut [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_is_aligned_and_of_the_wanted_length() {
        for len in [1, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::new(len);
            let bytes = buffer.bytes_mut();
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.as_ptr() as usize % ALIGNMENT, 0);
        }
    }
}
