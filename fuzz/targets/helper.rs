//! Messages between a server and the helper of its machine: one that is read, by either end, is
//! written with the same bytes, and those about addresses are carried as they are.
#![no_main]

// The bytes are no interface of the crate.
#[path = "../../crates/helper/src/wire.rs"]
mod wire;

use libfuzzer_sys::fuzz_target;
use wire::{ToHelper, ToServer};

/// Fields of a message begin here.
const HEAD_BYTES: usize = 6;
/// Longer words are cut when they are written.
const WORDS_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    if let Ok(message) = ToHelper::decode(input) {
        assert_eq!(message.encode(), input);
    }
    match ToServer::decode(input) {
        Ok(ToServer::Refused { words, .. }) if words.len() > WORDS_BYTES_MAX => {}
        Ok(message) => assert_eq!(message.encode(), input),
        Err(_) => {}
    }
    if let (Ok(ToHelper::Address(bytes)), Ok(ToServer::Address(same))) =
        (ToHelper::decode(input), ToServer::decode(input))
    {
        assert_eq!((&bytes[..], &same[..]), (&input[HEAD_BYTES..], &input[HEAD_BYTES..]));
    }
});
