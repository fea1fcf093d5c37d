//! Ranges of bytes, and how they may be held.

/// Bytes `first` to `last`, both included, so that the end of the largest possible file can be
/// said. A range that ends at [`u64::MAX`] reaches to the end of the file, however far that moves.
///
/// An open can ask for no bytes at an offset ([`Span`](crate::Span)). As a range, that ends one
/// byte before it begins, and it overlaps those that have a byte on both sides of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// The whole file.
    pub const ALL: Self = Self { first: 0, last: u64::MAX };

    /// `length` bytes from `offset` on; `None` for no bytes, and for more than an offset can tell.
    #[must_use]
    pub fn new(offset: u64, length: u64) -> Option<Self> {
        let last = offset.checked_add(length.checked_sub(1)?)?;
        Some(Self { first: offset, last })
    }

    /// The range from `offset` to the end of the file.
    #[must_use]
    pub const fn to_eof(offset: u64) -> Self {
        Self { first: offset, last: u64::MAX }
    }

    /// Bytes `first` to `last`, which must not be before it.
    pub(crate) const fn between(first: u64, last: u64) -> Self {
        debug_assert!(first <= last);
        Self { first, last }
    }

    /// No bytes, between the byte at `offset` and the one before it. `None` at the offset 0, where
    /// there is nothing before it.
    pub(crate) const fn empty_at(offset: u64) -> Option<Self> {
        match offset.checked_sub(1) {
            Some(last) => Some(Self { first: offset, last }),
            None => None,
        }
    }

    /// The first byte.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The last byte, or [`u64::MAX`] for all to come.
    #[must_use]
    pub const fn last(self) -> u64 {
        self.last
    }

    /// The number of bytes; `None` if the range reaches to the end of the file.
    #[must_use]
    pub const fn length(self) -> Option<u64> {
        match self.last {
            u64::MAX => None,
            last => Some(last + 1 - self.first),
        }
    }

    /// Have both a byte in common? Or is one empty, with bytes of the other on both sides?
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Is every byte of `other` in this range?
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The bytes in both, if there are any.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }
}

/// The mode in which a range is held. The order is that of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Together with others that hold it shared.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// Can two owners not hold the same byte like this?
    #[must_use]
    pub const fn conflicts(self, other: Self) -> bool {
        !matches!((self, other), (Self::Shared, Self::Shared))
    }
}

/// A use of bytes that can conflict with locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Io {
    /// Reading them.
    Read,
    /// Writing them, or changing how many there are.
    Write,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_and_too_many_are_no_range() {
        assert_eq!(Range::new(5, 0), None);
        assert_eq!(Range::new(u64::MAX, 2), None);
        assert_eq!(Range::new(u64::MAX, 1), Some(Range::to_eof(u64::MAX)));
        assert_eq!(Range::new(1, u64::MAX), Some(Range::to_eof(1)));
    }

    #[test]
    fn lengths_read_back() {
        assert_eq!(Range::new(5, 3).and_then(Range::length), Some(3));
        assert_eq!(Range::to_eof(5).length(), None);
        assert_eq!(Range::ALL.length(), None);
    }

    #[test]
    fn neighbours_have_nothing_in_common() {
        let (low, high) = (Range::between(0, 4), Range::between(5, 9));
        assert!(!low.overlaps(high) && !high.overlaps(low));
        assert_eq!(low.common(high), None);
        assert_eq!(Range::between(0, 5).common(high), Some(Range::between(5, 5)));
    }
}
