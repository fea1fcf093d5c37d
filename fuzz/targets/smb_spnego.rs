//! SPNEGO around NTLM: no tokens let anybody in without the right proof and, where a foreign
//! mechanism was preferred, the right code over the list of mechanisms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::smb::login::Talk;
use weir_fuzz::smb::steps;

/// Tokens of one script. A login has up to three, and a fourth shows that it is over.
const TOKENS_MAX: usize = 5;

fuzz_target!(|input: &[u8]| {
    let mut talk = Talk::new(false);
    for (selector, token) in steps(input).take(TOKENS_MAX) {
        talk.step(selector, token);
    }
});
