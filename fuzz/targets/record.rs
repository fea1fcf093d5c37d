//! Record marking: however the bytes of a stream arrive, the same records come out, and memory
//! stays bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_nfs::limits::RECORD_BYTES_MAX;
use weir_nfs::rpc::{Deframer, FrameError, Step};

fuzz_target!(|input: &[u8]| {
    let Some((piece, stream)) = input.split_first() else { return };
    let whole = records(stream, stream.len().max(1));
    let pieces = records(stream, usize::from(*piece) + 1);
    assert_eq!(whole, pieces);
});

/// The records of `stream`, received `piece` bytes at a time, and what ended it.
fn records(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let mut deframer = Deframer::new();
    let (mut records, mut received) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        received.extend_from_slice(piece);
        loop {
            let consumed = match deframer.next(&received) {
                Ok(Step::NeedMore { total }) => {
                    assert!(total.is_none_or(|total| total > received.len()));
                    break;
                }
                Ok(Step::Record { at, consumed }) => {
                    records.push(received[at].to_vec());
                    consumed
                }
                Ok(Step::Fragment { consumed }) => consumed,
                Ok(Step::Assembled { record, consumed }) => {
                    records.push(record);
                    consumed
                }
                Err(error) => return (records, Some(error)),
            };
            assert!(consumed > 0 && deframer.held() <= 2 * RECORD_BYTES_MAX);
            received.drain(..consumed);
        }
    }
    (records, None)
}
