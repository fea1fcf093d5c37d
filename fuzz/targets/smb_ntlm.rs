//! NTLM without SPNEGO: no tokens let anybody in without the right proof, and none make server or
//! client panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::smb::login::Talk;
use weir_fuzz::smb::steps;

/// Tokens of one script. A login has two, and a third shows that it is over.
const TOKENS_MAX: usize = 4;

fuzz_target!(|input: &[u8]| {
    let mut talk = Talk::new(true);
    for (selector, token) in steps(input).take(TOKENS_MAX) {
        talk.step(selector, token);
    }
});
