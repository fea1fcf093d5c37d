//! Frames of SMB: however the bytes of a stream arrive, the same frames come out; chains, seals,
//! signatures and message ids of them are checked, and the answer can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::smb::connection::Connection;
use weir_smb::wire::netbios::{FrameError, Step, next};

/// Frames of one stream.
const FRAMES_MAX: usize = 16;

fuzz_target!(|input: &[u8]| {
    let Some(([piece, choice, forged], stream)) = input.split_first_chunk() else { return };
    let whole = frames(stream, stream.len().max(1));
    let pieces = frames(stream, usize::from(*piece) + 1);
    assert_eq!(whole, pieces);
    let mut connection = Connection::new(*choice, *forged);
    for frame in whole.0.iter().take(FRAMES_MAX) {
        if connection.frame(frame).is_none() {
            break;
        }
    }
});

/// The frames of `stream`, received `piece` bytes at a time, and what ended it.
fn frames(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let (mut frames, mut received) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        received.extend_from_slice(piece);
        loop {
            match next(&received) {
                Ok(Step::NeedMore { total }) => {
                    assert!(total.is_none_or(|total| total > received.len()));
                    break;
                }
                Ok(Step::Frame { at }) => {
                    frames.push(received[at.clone()].to_vec());
                    received.drain(..at.end);
                }
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}
