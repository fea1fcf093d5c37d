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

/// The result of [`Deframer::next`] for the front of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Not a whole fragment yet: receive more and ask again with the same bytes in front.
    NeedMore {
        /// The number of bytes needed from the front on, once the record mark is known.
        total: Option<usize>,
    },
    /// A whole record, in place.
    Record {
        /// The record's place in the bytes given.
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
    #[error("a record of at least {bytes} bytes exceeds the maximum of {RECORD_BYTES_MAX}")]
    TooLong {
        /// The record's length, as far as it is known.
        bytes: usize,
    },
    /// A record comes in more than [`FRAGMENTS_MAX`] fragments.
    #[error("a record has more than {FRAGMENTS_MAX} fragments")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn mark(len: usize, last: bool) -> [u8; 4] {
        let len = u32::try_from(len).unwrap();
        (len | if last { LAST_FRAGMENT } else { 0 }).to_be_bytes()
    }

    /// `record` in fragments of these sizes, the rest in the last one.
    fn framed(record: &[u8], sizes: &[usize]) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), record);
        for size in sizes {
            let (fragment, left) = rest.split_at((*size).min(rest.len()));
            out.extend(mark(fragment.len(), false));
            out.extend_from_slice(fragment);
            rest = left;
        }
        out.extend(mark(rest.len(), true));
        out.extend_from_slice(rest);
        out
    }

    /// Feeds `stream` cut into chunks of these sizes as a connection would, and gives the records.
    fn records(stream: &[u8], chunks: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
        let (mut deframer, mut buffer, mut records) = (Deframer::new(), Vec::new(), Vec::new());
        let mut rest = stream;
        for chunk in chunks.chain([usize::MAX]) {
            let (now, later) = rest.split_at(chunk.min(rest.len()));
            buffer.extend_from_slice(now);
            rest = later;
            loop {
                let consumed = match deframer.next(&buffer).unwrap() {
                    Step::NeedMore { total } => {
                        assert!(total.is_none_or(|total| total > buffer.len()));
                        break;
                    }
                    Step::Record { at, consumed } => {
                        records.push(buffer[at].to_vec());
                        consumed
                    }
                    Step::Fragment { consumed } => consumed,
                    Step::Assembled { record, consumed } => {
                        assert_eq!(deframer.held(), 0);
                        records.push(record);
                        consumed
                    }
                };
                buffer.drain(..consumed);
            }
        }
        assert!(buffer.is_empty());
        records
    }

    #[test]
    fn a_record_of_one_fragment_is_given_in_place() {
        let bytes = [framed(b"abcdefgh", &[]), vec![9; 3]].concat();
        let step = Deframer::new().next(&bytes);
        assert_eq!(step, Ok(Step::Record { at: 4..12, consumed: 12 }));
    }

    #[test]
    fn it_says_how_much_it_needs() {
        let bytes = framed(b"abcdefgh", &[]);
        for len in 0..bytes.len() {
            let total = (len >= 4).then_some(12);
            assert_eq!(Deframer::new().next(&bytes[..len]), Ok(Step::NeedMore { total }));
        }
    }

    #[test]
    fn fragmentation_and_arrival_at_every_boundary_give_the_same_records() {
        let record: Vec<u8> = (0..40).collect();
        for cut in 0..=record.len() {
            let stream = [framed(&record, &[cut]), framed(b"next", &[])].concat();
            for arrival in 0..=stream.len() {
                let got = records(&stream, [arrival].into_iter());
                assert_eq!(got, [record.clone(), b"next".to_vec()], "cut {cut} arrival {arrival}");
            }
        }
    }

    #[test]
    fn an_oversize_record_is_refused_on_sight_of_its_mark() {
        let too_long = RECORD_BYTES_MAX + 1;
        let refused = Err(FrameError::TooLong { bytes: too_long });
        assert_eq!(Deframer::new().next(&mark(too_long, true)), refused);
        assert_eq!(Deframer::new().next(&mark(too_long, false)), refused);
        let all = (LAST_FRAGMENT - 1) as usize;
        let refused = Err(FrameError::TooLong { bytes: all });
        assert_eq!(Deframer::new().next(&mark(all, false)), refused);
        let fits = Ok(Step::NeedMore { total: Some(RECORD_BYTES_MAX + 4) });
        assert_eq!(Deframer::new().next(&mark(RECORD_BYTES_MAX, true)), fits);
    }

    #[test]
    fn fragments_add_up_to_the_same_bound() {
        let mut deframer = Deframer::new();
        let first = framed(&vec![0; RECORD_BYTES_MAX], &[RECORD_BYTES_MAX]);
        let consumed = RECORD_BYTES_MAX + 4;
        assert_eq!(deframer.next(&first), Ok(Step::Fragment { consumed }));
        let refused = Err(FrameError::TooLong { bytes: RECORD_BYTES_MAX + 1 });
        assert_eq!(deframer.next(&mark(1, true)), refused);
    }

    #[test]
    fn endless_fragments_are_refused_and_hold_only_what_came() {
        let mut deframer = Deframer::new();
        for _ in 0..FRAGMENTS_MAX {
            assert_eq!(deframer.next(&mark(0, false)), Ok(Step::Fragment { consumed: 4 }));
        }
        assert_eq!(deframer.held(), 0);
        assert_eq!(deframer.next(&mark(0, false)), Err(FrameError::TooManyFragments));
        assert_eq!(deframer.next(&mark(0, true)), Err(FrameError::TooManyFragments));
    }

    proptest! {
        #[test]
        fn any_fragmentation_and_any_arrival_give_the_same_records(
            sent in vec((vec(any::<u8>(), 0..200), vec(0usize..60, 0..5)), 0..6),
            chunks in vec(1usize..100, 0..30),
        ) {
            let stream: Vec<u8> = sent.iter().flat_map(|(record, sizes)| framed(record, sizes)).collect();
            let expected: Vec<Vec<u8>> = sent.into_iter().map(|(record, _)| record).collect();
            prop_assert_eq!(records(&stream, chunks.into_iter()), expected);
        }

        #[test]
        fn never_panics_and_never_holds_more_than_came(bytes in vec(any::<u8>(), 0..300)) {
            let (mut deframer, mut rest) = (Deframer::new(), &bytes[..]);
            while let Ok(step) = deframer.next(rest) {
                let consumed = match step {
                    Step::NeedMore { .. } => break,
                    Step::Record { at, consumed } => {
                        prop_assert_eq!(at.end, consumed);
                        consumed
                    }
                    Step::Fragment { consumed } | Step::Assembled { consumed, .. } => consumed,
                };
                prop_assert!((4..=rest.len()).contains(&consumed));
                rest = &rest[consumed..];
            }
            prop_assert!(deframer.gathered.len() <= bytes.len());
        }
    }
}
