//! Little-endian numbers in borrowed bytes and in growing buffers. No rule of any one message.

use alloc::vec::Vec;

/// The input ends within a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input ends early: {needed} bytes needed, {left} left")]
pub struct Truncated {
    /// Bytes of the value.
    pub needed: usize,
    /// Bytes of the input that are not read yet.
    pub left: usize,
}

/// A cursor over input. Every method takes its bytes from the front or fails without allocating;
/// after a failure nothing has been taken.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the front of `input`.
    #[inline]
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// The bytes not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(self.truncated(N))?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(self.truncated(len))?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `len` bytes, for a length that came as 32 bits.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn bytes_u32(&mut self, len: u32) -> Result<&'a [u8], Truncated> {
        self.bytes(usize::try_from(len).unwrap_or(usize::MAX))
    }

    #[inline]
    const fn truncated(&self, needed: usize) -> Truncated {
        Truncated { needed, left: self.rest.len() }
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(u8::from_le_bytes)
    }

    /// Sixteen bits.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_le_bytes)
    }

    /// Thirty-two bits.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_le_bytes)
    }

    /// Sixty-four bits.
    ///
    /// # Errors
    /// [`Truncated`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Appends numbers, one after the other, to a `Vec<u8>`.
macro_rules! put {
    ($out:expr; $($value:expr),+ $(,)?) => {{
        $( $out.extend_from_slice(&$value.to_le_bytes()); )+
    }};
}
pub(crate) use put;

/// Replaces the bytes of `out` at `at`, all of which were appended before, by `bytes`.
pub fn patch(out: &mut [u8], at: usize, bytes: &[u8]) {
    let there = out.get_mut(at..).and_then(|tail| tail.get_mut(..bytes.len()));
    debug_assert!(there.is_some(), "a patch lies within what was written");
    if let Some(there) = there {
        there.copy_from_slice(bytes);
    }
}

/// Appends zeros until the number of bytes from `start` on is a multiple of `step`, which is not 0.
pub fn align(out: &mut Vec<u8>, start: usize, step: usize) {
    let written = out.len().saturating_sub(start);
    out.resize(start.saturating_add(written.next_multiple_of(step)), 0);
}

/// `len` as a field of type `T`. Every buffer of this crate has a bound far below the largest value
/// of its field; beyond, the largest value is encoded, which no decoder accepts.
#[must_use]
pub fn length<T: TryFrom<usize> + Bounded>(len: usize) -> T {
    debug_assert!(T::try_from(len).is_ok(), "a length within its field");
    T::try_from(len).unwrap_or(T::LARGEST)
}

/// A type of fields for lengths.
pub trait Bounded {
    /// The largest length.
    const LARGEST: Self;
}

impl Bounded for u16 {
    const LARGEST: Self = Self::MAX;
}

impl Bounded for u32 {
    const LARGEST: Self = Self::MAX;
}

/// The `N` bytes at `at`; `None` if the input ends before.
#[must_use]
pub fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Sixteen bits at `at`; `None` if the input ends before.
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// Thirty-two bits at `at`; `None` if the input ends before.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// Sixty-four bits at `at`; `None` if the input ends before.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_little_endian_and_nothing_is_taken_by_a_failure() {
        let mut input = Reader::new(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(input.u8(), Ok(1));
        assert_eq!(input.u16(), Ok(0x0302));
        assert_eq!(input.u64(), Err(Truncated { needed: 8, left: 4 }));
        assert_eq!(input.u32(), Ok(0x0706_0504));
        assert_eq!(input.bytes(1), Err(Truncated { needed: 1, left: 0 }));
        assert_eq!(input.bytes_u32(0), Ok(&[][..]));
    }

    #[test]
    fn numbers_are_read_at_an_offset_or_not_at_all() {
        let input = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!((u16_at(&input, 7), u16_at(&input, 8)), (Some(0x0908), None));
        assert_eq!((u32_at(&input, 5), u32_at(&input, 6)), (Some(0x0908_0706), None));
        assert_eq!((u64_at(&input, 1), u64_at(&input, 2)), (Some(0x0908_0706_0504_0302), None));
        assert_eq!(array_at::<1>(&input, usize::MAX), None);
    }

    #[test]
    fn numbers_are_appended_aligned_and_patched() {
        let mut out = vec![9];
        put!(out; 1u8, 2u16, 3u32);
        align(&mut out, 1, 8);
        assert_eq!(out, [9, 1, 2, 0, 3, 0, 0, 0, 0]);
        align(&mut out, 1, 8);
        assert_eq!(out.len(), 9);
        patch(&mut out, 7, &[4, 5]);
        assert_eq!(out, [9, 1, 2, 0, 3, 0, 0, 4, 5]);
    }
}
