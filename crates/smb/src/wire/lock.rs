//! LOCK (MS-SMB2 §2.2.26). The response is [`super::LockResponse`].

use super::codec::{Cursor, Field, bits};
use super::{FileId, WireError};
use crate::limits::LOCK_RANGES_MAX;
use alloc::vec::Vec;

bits! {
    /// The flags of a range (MS-SMB2 §2.2.26.1).
    pub struct LockFlags: u32 {
        /// Others may lock the range shared, and read it.
        const SHARED = 1;
        /// Nobody else may lock, read or write the range.
        const EXCLUSIVE = 2;
        /// The range is unlocked.
        const UNLOCK = 4;
        /// The lock fails rather than wait.
        const FAIL_IMMEDIATELY = 0x10;
    }
}

/// A range to lock or unlock (MS-SMB2 §2.2.26.1, `SMB2_LOCK_ELEMENT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRange {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes, which may be zero.
    pub length: u64,
    /// The flags.
    pub flags: LockFlags,
}

impl Field for LockRange {
    #[inline]
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        let range = Self { offset: from.get()?, length: from.get()?, flags: from.get()? };
        from.skip(4)?;
        Ok(range)
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.offset.put(out);
        self.length.put(out);
        self.flags.put(out);
        0u32.put(out);
    }
}

/// The ranges of one LOCK, still in their wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRanges<'a>(&'a [u8]);

impl<'a> LockRanges<'a> {
    /// Bytes of one range.
    const EACH: usize = 24;

    /// The number of ranges, at least one in a request that was decoded.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len() / Self::EACH
    }

    /// Are there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranges in their order.
    pub fn iter(&self) -> impl Iterator<Item = LockRange> + use<'a> {
        self.0.chunks_exact(Self::EACH).filter_map(|range| Cursor::new(range, 0).get().ok())
    }
}

/// LOCK request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest<'a> {
    /// Number (lowest 4 bits) and index of the sequence, by which a server recognizes repeated
    /// requests to durable opens.
    pub sequence: u32,
    /// The open.
    pub file: FileId,
    /// The ranges.
    pub ranges: LockRanges<'a>,
}

/// The structure size, which counts one range.
const REQUEST: u16 = 48;

impl<'a> LockRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message, or have no range or more than
    /// [`LOCK_RANGES_MAX`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let count: u16 = body.get()?;
        let len = usize::from(count);
        if len == 0 {
            return Err(WireError::BadValue { what: "lock count", value: 0 });
        }
        if len > LOCK_RANGES_MAX {
            return Err(WireError::TooLong { what: "lock ranges", len, max: LOCK_RANGES_MAX });
        }
        let sequence = body.get()?;
        let file = body.get()?;
        let ranges = LockRanges(body.bytes(len.saturating_mul(LockRanges::EACH))?);
        Ok(Self { sequence, file, ranges })
    }

    /// Appends the body of a request for `ranges`.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(sequence: u32, file: FileId, ranges: &[LockRange], out: &mut Vec<u8>) {
        REQUEST.put(out);
        crate::le::length::<u16>(ranges.len()).put(out);
        sequence.put(out);
        file.put(out);
        for range in ranges {
            range.put(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::le::Truncated;
    use crate::wire::samples::{self, hex};

    #[test]
    fn the_number_of_ranges_is_bounded_and_none_is_missing() {
        let one = hex(samples::LOCK_REQUEST);
        let decode = |count: usize, there: usize| {
            let mut message = one.clone();
            message[66..68].copy_from_slice(&u16::try_from(count).unwrap().to_le_bytes());
            message.resize(88 + 24 * there, 0);
            LockRequest::decode(&message).map(|request| request.ranges.iter().count())
        };
        assert_eq!(decode(0, 1), Err(WireError::BadValue { what: "lock count", value: 0 }));
        assert_eq!(decode(2, 2), Ok(2));
        assert_eq!(decode(1, 2), Ok(1), "more bytes are ignored");
        assert_eq!(decode(3, 2), Err(Truncated { needed: 72, left: 48 }.into()));
        assert_eq!(decode(LOCK_RANGES_MAX, LOCK_RANGES_MAX), Ok(LOCK_RANGES_MAX));
        let (what, len) = ("lock ranges", LOCK_RANGES_MAX + 1);
        let error = WireError::TooLong { what, len, max: LOCK_RANGES_MAX };
        assert_eq!(decode(len, len), Err(error));
    }
}
