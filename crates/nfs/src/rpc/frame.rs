//! Record marking (RFC 5531 §11): records out of a byte stream.

use super::LAST_FRAGMENT;
use crate::limits::{FRAGMENTS_MAX, RECORD_BYTES_MAX};
use alloc::vec::Vec;
use core::ops::Range;

/// Cuts records out of the bytes of one connection.
///
/// The caller keeps the received bytes in one contiguous buffer and shows what it has not
/// consumed yet. A record of one fragment, which is what clients send, is given in place; others
/// are gathered here, never more than [`RECORD_BYTES_MAX`] bytes, and only bytes that really came.
#[derive(Debug, Default)]
pub struct Deframer {
    gathered: Vec<u8>,
    fragments: u32,
}

/// What [`Deframer::next`] found at the front of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Not a whole fragment yet: receive more and ask again with the same bytes in front.
    NeedMore {
        /// How many bytes must be there from the front on, once the record mark is known.
        total: Option<usize>,
    },
    /// A whole record, in place.
    Record {
        /// Where it is in the bytes given.
        at: Range<usize>,
        /// Bytes to drop from the front once it is dealt with.
        consumed: usize,
    },
    /// A fragment that was not the last was taken.
    Fragment {
        /// Bytes to drop from the front.
        consumed: usize,
    },
    /// The last of several fragments was taken.
    Assembled {
        /// The whole record.
        record: Vec<u8>,
        /// Bytes to drop from the front.
        consumed: usize,
    },
}

/// Why a connection can't be read from any more. Close it: the stream has no place to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A record is over [`RECORD_BYTES_MAX`].
    #[error("a record of at least {bytes} bytes, at most {RECORD_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length, as far as it is known.
        bytes: usize,
    },
    /// A record comes in more than [`FRAGMENTS_MAX`] fragments.
    #[error("a record of more than {FRAGMENTS_MAX} fragments")]
    TooManyFragments,
}

impl Deframer {
    /// A deframer at the start of a stream.
    #[must_use]
    pub const fn new() -> Self {
        Self { gathered: Vec::new(), fragments: 0 }
    }

    /// Memory held for a record of which some fragments came, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.gathered.capacity()
    }

    /// Looks at the front of `bytes`, the received bytes not consumed yet.
    ///
    /// # Errors
    /// [`FrameError`] if the record breaks a bound; the length is refused on sight of its mark.
    #[inline]
    pub fn next(&mut self, bytes: &[u8]) -> Result<Step, FrameError> {
        let Some((mark, rest)) = bytes.split_first_chunk::<MARK_BYTES>() else {
            return Ok(Step::NeedMore { total: None });
        };
        let mark = u32::from_be_bytes(*mark);
        let len = (mark & !LAST_FRAGMENT) as usize;
        let record_bytes = self.gathered.len().saturating_add(len);
        if record_bytes > RECORD_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: record_bytes });
        }
        let consumed = len.saturating_add(MARK_BYTES);
        let last = mark & LAST_FRAGMENT != 0;
        match rest.get(..len) {
            None => Ok(Step::NeedMore { total: Some(consumed) }),
            Some(_) if last && self.fragments == 0 => {
                Ok(Step::Record { at: MARK_BYTES..consumed, consumed })
            }
            Some(fragment) => self.gather(fragment, last, consumed),
        }
    }

    #[cold]
    fn gather(&mut self, fragment: &[u8], last: bool, consumed: usize) -> Result<Step, FrameError> {
        if self.fragments >= FRAGMENTS_MAX {
            return Err(FrameError::TooManyFragments);
        }
        self.gathered.extend_from_slice(fragment);
        if last {
            self.fragments = 0;
            let record = core::mem::take(&mut self.gathered);
            return Ok(Step::Assembled { record, consumed });
        }
        self.fragments = self.fragments.saturating_add(1);
        Ok(Step::Fragment { consumed })
    }
}

const MARK_BYTES: usize = 4;
