//! Frames on TCP (MS-SMB2 §2.1, Direct TCP): a zero byte, a length of 24 bits in network order,
//! and the messages. Not here: session requests and keep-alives of NetBIOS, which port 445 has not.

use crate::limits::FRAME_BYTES_MAX;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of the prefix.
pub const PREFIX_BYTES: usize = 4;

/// The front of the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Not a whole frame yet: receive more and ask again with the same bytes in front.
    NeedMore {
        /// The number of bytes needed from the front on, once the prefix is known.
        total: Option<usize>,
    },
    /// A whole frame, in place.
    Frame {
        /// The frame's place in the bytes given, without its prefix.
        at: Range<usize>,
    },
}

/// Why a connection can't be read from or written to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first byte is not zero.
    #[error("the transport prefix begins with {found:#04x} instead of zero")]
    Prefix {
        /// The byte as sent.
        found: u8,
    },
    /// A frame is longer than a peer may send, or than a prefix can say.
    #[error("a frame of {bytes} bytes exceeds the maximum")]
    TooLong {
        /// The frame's length.
        bytes: usize,
    },
}

/// Looks at the front of `bytes`, the received bytes not consumed yet. After a frame, everything up
/// to its end is dropped.
///
/// # Errors
/// [`FrameError`]; a length over [`FRAME_BYTES_MAX`] is refused on sight of its prefix.
#[inline]
pub fn next(bytes: &[u8]) -> Result<Step, FrameError> {
    match bytes.first() {
        Some(0) => {}
        Some(found) => return Err(FrameError::Prefix { found: *found }),
        None => return Ok(Step::NeedMore { total: None }),
    }
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(Step::NeedMore { total: None });
    };
    let len = u32::from_be_bytes(*prefix) as usize;
    if len > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong { bytes: len });
    }
    let end = PREFIX_BYTES.saturating_add(len);
    if bytes.len() < end {
        return Ok(Step::NeedMore { total: Some(end) });
    }
    Ok(Step::Frame { at: PREFIX_BYTES..end })
}

/// Makes room for the prefix of a frame and gives its place, for [`finish`].
#[inline]
#[must_use = "the prefix is blank until `finish`"]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    at
}

/// Fills in the prefix at `at` of the frame that is everything after it.
///
/// # Errors
/// [`FrameError::TooLong`] if the frame is longer than 24 bits can say.
#[inline]
pub fn finish(out: &mut [u8], at: usize) -> Result<(), FrameError> {
    let bytes = out.len().saturating_sub(at).saturating_sub(PREFIX_BYTES);
    match u32::try_from(bytes) {
        Ok(len) if len < 1 << 24 => {
            crate::le::patch(out, at, &len.to_be_bytes());
            Ok(())
        }
        _ => Err(FrameError::TooLong { bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_given_in_place() {
        let bytes = b"\0\0\0\x05helloXX";
        assert_eq!(next(bytes), Ok(Step::Frame { at: 4..9 }));
        assert_eq!(next(b"\0\0\0\0"), Ok(Step::Frame { at: 4..4 }));
        for len in 0..4 {
            assert_eq!(next(&bytes[..len]), Ok(Step::NeedMore { total: None }), "{len}");
        }
        for len in 4..9 {
            assert_eq!(next(&bytes[..len]), Ok(Step::NeedMore { total: Some(9) }), "{len}");
        }
    }

    #[test]
    fn bad_prefixes_are_refused_on_sight() {
        assert_eq!(next(&[0x85]), Err(FrameError::Prefix { found: 0x85 }));
        let prefix = |len: usize| u32::try_from(len).unwrap().to_be_bytes();
        let longest = FRAME_BYTES_MAX;
        assert!(matches!(next(&prefix(longest)), Ok(Step::NeedMore { .. })));
        let error = FrameError::TooLong { bytes: longest + 1 };
        assert_eq!(next(&prefix(longest + 1)), Err(error));
    }

    #[test]
    fn a_prefix_is_filled_in_when_the_frame_is_there() {
        let mut out = b"before".to_vec();
        let at = begin(&mut out);
        out.extend_from_slice(&[7; 258]);
        assert_eq!(finish(&mut out, at), Ok(()));
        assert_eq!(out[6..10], [0, 0, 1, 2]);
        assert_eq!(next(&out[6..]), Ok(Step::Frame { at: 4..262 }));
        let mut out = alloc::vec![0; PREFIX_BYTES + (1 << 24)];
        assert_eq!(finish(&mut out, 0), Err(FrameError::TooLong { bytes: 1 << 24 }));
        out.pop();
        assert_eq!(finish(&mut out, 0), Ok(()));
    }
}
