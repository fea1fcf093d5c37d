//! The ranges of SMB: an offset and a length, which can be 0. Not here: what is done with them.

use crate::range::Range;

/// `length` bytes from `offset` on, exactly as they were asked for. The order is by offset.
///
/// No bytes at an offset above 0 are a boundary: they conflict with a range that has a byte on both
/// sides of it (MS-FSA §2.1.4.10, where the last byte is `offset + length - 1` in any case). No
/// bytes at the offset 0 conflict with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    offset: u64,
    length: u64,
}

impl Span {
    /// The first of all in order.
    pub(crate) const LEAST: Self = Self { offset: 0, length: 0 };

    /// `length` bytes from `offset` on; `None` if they reach beyond the offset [`u64::MAX`], which
    /// is an invalid range (MS-FSA §2.1.5.8).
    #[must_use]
    pub const fn new(offset: u64, length: u64) -> Option<Self> {
        match offset.checked_add(length.saturating_sub(1)) {
            Some(_) => Some(Self { offset, length }),
            None => None,
        }
    }

    /// The first byte.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// The number of bytes.
    #[must_use]
    pub const fn length(self) -> u64 {
        self.length
    }

    /// The range that conflicts with the same ranges; `None` if no range does.
    pub(crate) fn range(self) -> Option<Range> {
        match self.length {
            0 => Range::empty_at(self.offset),
            length => Range::new(self.offset, length),
        }
    }

    /// The span of a range that one was made into.
    pub(crate) const fn of(range: Range) -> Self {
        let length = range.last().wrapping_sub(range.first()).wrapping_add(1);
        Self { offset: range.first(), length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, length: u64) -> Span {
        Span::new(offset, length).unwrap()
    }

    #[test]
    fn the_last_byte_must_have_an_offset() {
        assert_eq!(Span::new(u64::MAX, 2), None);
        assert_eq!(Span::new(2, u64::MAX), None);
        for (offset, length) in [(u64::MAX, 1), (u64::MAX, 0), (1, u64::MAX), (0, u64::MAX)] {
            let span = span(offset, length);
            assert_eq!((span.offset(), span.length()), (offset, length));
            assert_eq!(Span::of(span.range().unwrap()), span);
        }
    }

    /// The examples of smbtorture's `smb2.lock.zerobytelength`.
    #[test]
    fn no_bytes_are_a_boundary() {
        let meets = |one: Span, other: Span| match (one.range(), other.range()) {
            (Some(one), Some(other)) => {
                assert_eq!(one.overlaps(other), other.overlaps(one));
                one.overlaps(other)
            }
            _ => false,
        };
        let boundary = span(10, 0);
        for apart in [(10, 0), (9, 1), (10, 1), (11, 1), (10, 2), (0, 10), (0, 0)] {
            assert!(!meets(boundary, span(apart.0, apart.1)), "{apart:?}");
        }
        for across in [(9, 2), (9, 3), (0, 11), (0, u64::MAX)] {
            assert!(meets(boundary, span(across.0, across.1)), "{across:?}");
        }
        assert!(!meets(span(0, 0), span(0, u64::MAX)));
        assert!(meets(span(u64::MAX, 0), span(u64::MAX - 1, 2)));
    }
}
