//! The link between server and helper for addresses: however the bytes of a stream arrive, the same
//! requests and reports come out, and each is the same after it was written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_address::{FrameError, Frames, Numbered, Report, Request};

fuzz_target!(|input: &[u8]| {
    let Some((piece, stream)) = input.split_first() else { return };
    let piece = usize::from(*piece) + 1;
    let whole = requests(stream, stream.len().max(1));
    assert_eq!(whole, requests(stream, piece));
    for request in whole.iter().flatten() {
        let again = requests(&request.frame(), 1);
        assert_eq!(again, [Ok(request.clone())]);
    }
    let whole = reports(stream, stream.len().max(1));
    assert_eq!(whole, reports(stream, piece));
    for report in whole.iter().flatten() {
        assert_eq!(reports(&report.frame(), 1), [Ok(report.clone())]);
    }
});

fn requests(stream: &[u8], piece: usize) -> Vec<Result<Numbered<Request>, FrameError>> {
    taken(stream, piece, Frames::request)
}

fn reports(stream: &[u8], piece: usize) -> Vec<Result<Report, FrameError>> {
    taken(stream, piece, Frames::report)
}

/// Everything that `take` takes out of `stream`, received `piece` bytes at a time.
fn taken<T>(
    stream: &[u8],
    piece: usize,
    take: impl Fn(&mut Frames) -> Result<Option<T>, FrameError>,
) -> Vec<Result<T, FrameError>> {
    let (mut frames, mut all) = (Frames::default(), Vec::new());
    for piece in stream.chunks(piece) {
        frames.push(piece);
        loop {
            match take(&mut frames) {
                Ok(None) => break,
                Ok(Some(one)) => all.push(Ok(one)),
                Err(error @ FrameError::Message { .. }) => all.push(Err(error)),
                Err(error) => {
                    all.push(Err(error));
                    return all;
                }
            }
        }
    }
    all
}
