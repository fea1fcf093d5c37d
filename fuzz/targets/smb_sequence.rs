//! Sequences of SMB requests over a volume in memory: every response can be read and fits the room
//! made for it, no open is lost, and nothing stays under way, waits or is held when all is closed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::smb::server::Servers;
use weir_fuzz::smb::steps;

/// Steps of one script; more teach the fuzzer nothing but waiting.
const STEPS_MAX: usize = 48;

fuzz_target!(|input: &[u8]| {
    let mut servers = Servers::default();
    for (selector, bytes) in steps(input).take(STEPS_MAX) {
        servers.step(selector, bytes);
    }
    servers.close();
});
