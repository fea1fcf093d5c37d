//! What the user is told when things go wrong.

use crate::responder::{Responder, Verdict};
use crate::{MKDIR, READ, WRITE, workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_bench::{Control, NfsTarget, Pattern, Target, Workload, prepare};
use weir_nfs::v3::wire::Status;

fn refusal(target: &Target, workload: &Workload) -> String {
    prepare(target, workload).err().unwrap().to_string()
}

#[test]
fn a_wrong_export_is_answered_with_the_right_ones() {
    let server = Responder::start();
    let target = Target::Nfs(server.nfs_target("/vlo"));
    let message = refusal(&target, &Workload::default());
    assert!(message.contains("no such export"), "{message}");
    assert!(message.contains("the server exports /vol"), "{message}");
}

#[test]
fn a_refused_connection_asks_whether_the_server_runs() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = Target::Nfs(NfsTarget::new(closed, "/vol"));
    let message = refusal(&target, &Workload::default());
    assert!(message.contains("is the server running"), "{message}");
}

#[test]
fn a_user_without_rights_is_told_which_option_helps() {
    let server = Responder::with_hook(Arc::new(|procedure, _| match procedure {
        MKDIR => Verdict::Fail(Status::ACCES),
        _ => Verdict::Serve,
    }));
    let message = refusal(&server.target(), &workload(Pattern::Random, 0, 10));
    assert!(message.contains("NFS3ERR_ACCES") && message.contains("--uid"), "{message}");
}

#[test]
fn a_full_server_is_named_and_what_was_made_is_removed() {
    let server = Responder::with_hook(Arc::new(|procedure, _| match procedure {
        WRITE => Verdict::Fail(Status::NOSPC),
        _ => Verdict::Serve,
    }));
    let message = refusal(&server.target(), &workload(Pattern::Random, 0, 10));
    assert!(message.contains("NFS3ERR_NOSPC") && message.contains("--size"), "{message}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn failed_operations_are_counted_by_status_and_not_as_completed() {
    let reads = AtomicU32::new(0);
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        if procedure == READ && reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(4) {
            return Verdict::Fail(Status::JUKEBOX);
        }
        Verdict::Serve
    }));
    let prepared = prepare(&server.target(), &workload(Pattern::Random, 100, 400)).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(result.errors["NFS3ERR_JUKEBOX"], 100);
    assert_eq!(result.total.operations, 300);
    assert!(!result.is_clean());
}

#[test]
fn a_lost_connection_ends_the_run_and_is_reported() {
    let reads = AtomicU32::new(0);
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        if procedure == READ && reads.fetch_add(1, Ordering::Relaxed) > 100 {
            return Verdict::Close;
        }
        Verdict::Serve
    }));
    let prepared = prepare(&server.target(), &workload(Pattern::Random, 100, 100_000)).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(result.connections.lost, 1);
    assert!(result.interrupted && !result.is_clean());
    assert!(result.errors.keys().any(|error| error.contains("lost the connection")));
    assert!(result.total.operations < 200, "{}", result.total.operations);
}
