//! Bytes on a link between gateways: no stream makes the receiver hold more than one frame, and
//! an introduction or a word that is read is written with the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_links::{Answer, FRAME_BYTES_MAX, Frames, Hello, Word};

fuzz_target!(|input: &[u8]| {
    // The first byte is how much is received at once.
    let Some((size, mut rest)) = input.split_first() else { return };
    let (size, mut frames) = (usize::from(*size).max(1), Frames::default());
    loop {
        match frames.take() {
            Err(_) => break,
            Ok(Some(message)) => read(&message),
            Ok(None) => {
                let wanted = frames.wanted().expect("the length of the frame was accepted");
                assert!((1..=4 + FRAME_BYTES_MAX).contains(&wanted));
                let (fed, later) = rest.split_at(wanted.min(size).min(rest.len()));
                if fed.is_empty() {
                    break;
                }
                frames.feed(fed);
                rest = later;
            }
        }
    }
});

fn read(message: &[u8]) {
    assert!(message.len() <= FRAME_BYTES_MAX);
    if let Ok(hello) = Hello::decode(message) {
        assert_eq!(hello.encode(), message);
    }
    if let Ok(word) = Word::decode(message) {
        assert_eq!(word.encode(), message);
    }
    match Answer::decode(message) {
        Ok(welcome @ Answer::Welcome { .. }) => assert_eq!(welcome.encode(), message),
        Ok(Answer::Refusal { reason }) => assert!(!reason.contains(char::is_control)),
        Err(_) => {}
    }
}
