//! Frames: messages in a stream of bytes, each behind its length.
//!
//! A frame is its length (32 bits, big-endian) and as many bytes. No frame is longer than
//! [`FRAME_BYTES_MAX`]; larger things travel in several.

use std::ops::Range;

/// Greatest length of a frame's message, in bytes.
pub const FRAME_BYTES_MAX: usize = 64 << 10;
/// Bytes of the length before a message.
const HEAD_BYTES: usize = 4;

/// A length above [`FRAME_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes; at most {FRAME_BYTES_MAX} are allowed")]
pub struct TooLong(pub usize);

/// A message as it is sent.
///
/// # Errors
/// The message is too long.
pub fn framed(message: &[u8]) -> Result<Vec<u8>, TooLong> {
    let too_long = TooLong(message.len());
    let length = u32::try_from(message.len()).map_err(|_| too_long)?;
    if message.len() > FRAME_BYTES_MAX {
        return Err(too_long);
    }
    Ok([&length.to_be_bytes(), message].concat())
}

/// The received bytes of a stream, from which messages are taken. It holds no more than one frame.
#[derive(Debug, Default)]
pub struct Frames {
    received: Vec<u8>,
}

impl Frames {
    /// The next message, if all of it has been received.
    ///
    /// # Errors
    /// The next frame says that it is too long; the stream is unusable from then on.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some(message) = self.message()? else { return Ok(None) };
        let Some(bytes) = self.received.get(message.clone()) else { return Ok(None) };
        let taken = bytes.to_vec();
        self.received.drain(..message.end);
        Ok(Some(taken))
    }

    /// The number of bytes that are still to be received for the next message, at least one.
    ///
    /// # Errors
    /// The next frame says that it is too long.
    pub fn wanted(&self) -> Result<usize, TooLong> {
        let whole = self.message()?.map_or(HEAD_BYTES, |message| message.end);
        Ok(whole.saturating_sub(self.received.len()).max(1))
    }

    /// Takes over received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Has a part of a frame been received?
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.received.is_empty()
    }

    /// The place of the next message, once its length was received.
    fn message(&self) -> Result<Option<Range<usize>>, TooLong> {
        let Some(head) = self.received.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(TooLong(length));
        }
        Ok(Some(HEAD_BYTES..HEAD_BYTES + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(
            messages in vec(vec(any::<u8>(), 0..300), 0..8),
            sizes in vec(1_usize..100, 1..8),
        ) {
            let stream: Vec<u8> =
                messages.iter().flat_map(|message| framed(message).unwrap()).collect();
            let (mut frames, mut taken, mut rest) = (Frames::default(), vec![], stream.as_slice());
            for size in sizes.iter().cycle() {
                while let Some(message) = frames.take().unwrap() {
                    taken.push(message);
                }
                let count = frames.wanted().unwrap().min(*size).min(rest.len());
                let (fed, later) = rest.split_at(count);
                frames.feed(fed);
                rest = later;
                if fed.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(taken, messages);
            prop_assert!(!frames.is_partial());
        }

        #[test]
        fn no_bytes_make_it_hold_more_than_a_frame(bytes in vec(any::<u8>(), 0..2000)) {
            let mut frames = Frames::default();
            let mut rest = bytes.as_slice();
            while let Ok(wanted) = frames.wanted() {
                prop_assert!((1..=HEAD_BYTES + FRAME_BYTES_MAX).contains(&wanted));
                let (fed, later) = rest.split_at(wanted.min(rest.len()));
                if fed.is_empty() {
                    break;
                }
                frames.feed(fed);
                rest = later;
                let _ = frames.take();
            }
            prop_assert!(frames.received.len() <= HEAD_BYTES + FRAME_BYTES_MAX);
        }
    }

    #[test]
    fn a_length_is_refused_before_memory_is_taken_for_it() {
        let longest = vec![7; FRAME_BYTES_MAX];
        let mut frames = Frames::default();
        frames.feed(&framed(&longest).unwrap());
        assert_eq!(frames.take(), Ok(Some(longest)));
        let too_long = FRAME_BYTES_MAX + 1;
        assert_eq!(framed(&vec![7; too_long]), Err(TooLong(too_long)));
        frames.feed(&u32::try_from(too_long).unwrap().to_be_bytes());
        assert_eq!(frames.wanted(), Err(TooLong(too_long)));
        assert_eq!(frames.take(), Err(TooLong(too_long)));
    }
}
