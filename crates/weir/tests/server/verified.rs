//! Loads that verify their data, over the end of the server in the middle: the load ends and says
//! so, the server is waited for, everything is read back, and nothing is invented.

use crate::smb_share::Share;
use crate::test_server::TestServer;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use weir_load::{
    Control, Layout, Length, NfsTarget, Operation, Pattern, Prepared, RunResult, SmbSecurity,
    Target, VerifyScope, Workload, prepare,
};

/// Reads and writes of two clients, so many percent reads, more than the server lives for.
fn load(read_percent: u8) -> Workload {
    Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent },
        length: Length::Seconds(300.0),
        warmup_s: 0.0,
        jobs: 4,
        clients: 2,
        depth: 8,
        files: 4,
        threads: 2,
        file_bytes: 4 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        commit_every: Some(50),
        verify: Some(VerifyScope::All),
        verify_reads: read_percent > 0,
        ..Workload::default()
    }
}

/// Applies the load. Once it has done something the server is killed, and once the load has
/// learned that, started again.
fn run(prepared: Prepared, kill: impl FnMut() + Send, start: impl FnOnce() + Send) -> RunResult {
    let ((killed, was_killed), mut kill) = (channel(), Some(kill));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            was_killed.recv().unwrap();
            start();
        });
        let observe = |window: &weir_load::Window| {
            if window.operations > 0
                && let Some(mut kill) = kill.take()
            {
                kill();
                killed.send(()).unwrap();
            }
        };
        prepared.run(&Control::new(), observe).unwrap()
    })
}

fn assert_read_back(result: &RunResult) {
    assert!(result.connections.lost > 0 && result.interrupted, "{:?}", result.connections);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.mismatches, verify.unread), (0, 0), "{:?}", verify.details);
    assert!(verify.checked > 0, "{verify:?}");
    let after = |what: &&String| what.starts_with("verification") || what.starts_with("clean-up");
    assert_eq!(result.errors.keys().find(after), None);
}

#[test]
fn what_was_written_over_nfs_is_read_back_after_a_restart_which_is_named() {
    let server = TestServer::start();
    server.volume("good", "1TiB");
    let target = Target::Nfs(NfsTarget::new(server.address(), "/good"));
    // Writes alone: a server whose write verifier was never seen has no restart to be named.
    let prepared = prepare(&target, &load(0)).unwrap();
    let server = Mutex::new(server);
    let result = run(
        prepared,
        || server.lock().unwrap().stop("KILL"),
        || server.lock().unwrap().serve_again(),
    );
    assert_read_back(&result);
    let named = |what: &&String| what.starts_with("the write verifier of");
    assert_eq!(result.errors.keys().filter(named).count(), 1, "{:?}", result.errors);
}

#[test]
fn what_was_written_over_smb_is_read_back_after_a_restart() {
    let share = Share::new("offered");
    let target = Target::Smb(share.target(SmbSecurity::Sign));
    let prepared = prepare(&target, &load(40)).unwrap();
    let share = Mutex::new(share);
    let result = run(
        prepared,
        || share.lock().unwrap().server.stop("KILL"),
        || share.lock().unwrap().serve_again(),
    );
    assert_read_back(&result);
}
