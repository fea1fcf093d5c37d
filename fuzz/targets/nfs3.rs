//! NFSv3 over a volume in memory: any sequence of procedures with any arguments gets replies that
//! can be read and fit a record.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::{Server, by_procedure, script};
use weir_nfs::client::{CallError, RemoteCall, Reply};
use weir_nfs::limits::RECORD_BYTES_MAX;

/// Calls of one script; more teach the fuzzer nothing but waiting.
const CALLS_MAX: usize = 64;

fuzz_target!(|input: &[u8]| {
    let server = Server::default();
    for (procedure, args) in script(input).take(CALLS_MAX) {
        let reply = server.call(procedure, args);
        assert!(reply.len() <= 4 + RECORD_BYTES_MAX, "a reply of {} bytes", reply.len());
        let reply = Reply::parse(&reply[4..]).expect("our replies can be read");
        by_procedure!(procedure, decodes(&reply));
    }
});

fn decodes<A: RemoteCall>(reply: &Reply<'_>) {
    assert!(!matches!(reply.results::<A>(), Err(CallError::Malformed(_))));
}
