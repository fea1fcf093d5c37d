//! The messages to the user when things go wrong.

use crate::responder::{Responder, Verdict, count, nobody};
use crate::{MKDIR, READ, REMOVE, SETATTR, Site, WRITE, workload};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use weir_load::{
    Control, Layout, NfsTarget, Pattern, Target, VerifyScope, Workload, prepare, prepare_with,
};
use weir_nfs::v3::wire::Status;

const FSINFO: u32 = 19;

fn refusal(target: &Target, workload: &Workload) -> String {
    prepare(target, workload).err().unwrap().to_string()
}

#[test]
fn a_wrong_export_is_answered_with_the_right_ones() {
    let server = Responder::start();
    let target = Target::Nfs(server.nfs_target("/vlo"));
    let message = refusal(&target, &Workload::default());
    assert!(message.contains("the export does not exist"), "{message}");
    assert!(message.contains("the server exports /vol"), "{message}");
}

#[test]
fn a_refused_connection_asks_whether_the_server_runs() {
    let (closed, _held) = nobody();
    let target = Target::Nfs(NfsTarget::new(closed, "/vol"));
    let message = refusal(&target, &Workload::default());
    assert!(message.contains("is the server running"), "{message}");
}

#[test]
fn a_stop_ends_the_wait_for_a_server_that_accepts_and_does_not_answer() {
    use std::io::Read as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Nfs(NfsTarget::new(listener.local_addr().unwrap(), "/vol"));
    let control = Control::new();
    let hand = control.clone();
    // The server has the call, and says nothing until the client has given up.
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        assert!(stream.read(&mut bytes).unwrap() > 0);
        hand.stop();
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
    });
    let prepared = prepare_with(&target, &Workload::default(), &control, &mut |_, _| {});
    let message = prepared.err().unwrap().to_string();
    assert!(message.starts_with("stopped while waiting for an answer of 127.0.0.1"), "{message}");
    assert!(message.ends_with("(MOUNT)"), "{message}");
    server.join().unwrap();
}

#[test]
fn a_further_address_that_is_not_served_is_told_before_anything_is_made() {
    let server = Responder::start();
    let (closed, _held) = nobody();
    let target = NfsTarget { more: vec![closed], ..server.nfs_target("/vol") };
    let message = refusal(&Target::Nfs(target), &workload(Pattern::Random, 100, 10));
    assert!(message.contains(&closed.to_string()), "{message}");
    assert_eq!(server.names(), Vec::<String>::new());
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
fn a_file_that_cannot_have_its_size_is_removed_again() {
    let server = Responder::with_hook(Arc::new(|procedure, _| match procedure {
        SETATTR => Verdict::Fail(Status::FBIG),
        _ => Verdict::Serve,
    }));
    let load = Workload { layout: Layout::Sparse, ..workload(Pattern::Random, 0, 10) };
    let message = refusal(&server.target(), &load);
    assert!(message.contains("NFS3ERR_FBIG"), "{message}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn a_run_by_count_that_is_stopped_says_so() {
    let load = workload(Pattern::Random, 100, 50_000_000);
    for site in Site::both() {
        let control = Control::new();
        let hand = control.clone();
        let prepared = prepare(&site.target(), &load).unwrap();
        let result = prepared.run(&control, |_| hand.stop()).unwrap();
        assert!(result.interrupted && result.total.operations < 50_000_000);
    }
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

#[test]
fn an_end_that_comes_with_the_last_reply_is_not_waited_for() {
    let reads = AtomicU32::new(0);
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        if procedure == READ && reads.fetch_add(1, Ordering::Relaxed) == 1 {
            return Verdict::Close;
        }
        Verdict::Serve
    }));
    let load = Workload { depth: 2, drain_s: 0.1, ..workload(Pattern::Random, 100, 2) };
    let prepared = prepare(&server.target(), &load).unwrap();
    let control = Control::new();
    let patience = control.clone();
    let result = prepared
        .run(&control, |window| {
            if window.at_s > 10.0 {
                patience.stop();
            }
        })
        .unwrap();
    assert_eq!((result.connections.lost, result.connections.unanswered), (1, 0));
    assert_eq!(result.total.operations, 1);
}

#[test]
fn a_server_that_is_gone_at_the_verification_leaves_a_result() {
    let server = Responder::with_hook(Arc::new(|procedure, _| match procedure {
        READ => Verdict::Close,
        _ => Verdict::Serve,
    }));
    let load = Workload {
        verify: Some(VerifyScope::Sample(50)),
        layout: Layout::Sparse,
        ..workload(Pattern::Sequential, 0, 256)
    };
    let prepared = prepare(&server.target(), &load).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(result.total.operations, 256);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.checked, verify.unread), (0, 50));
    assert!(result.interrupted && !result.is_clean());
    let why = "verification: lost the connection";
    assert!(result.errors.keys().any(|error| error.starts_with(why)), "{:?}", result.errors);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn a_server_that_is_gone_at_the_clean_up_leaves_a_result() {
    let server = Responder::with_hook(Arc::new(|procedure, _| match procedure {
        REMOVE => Verdict::Close,
        _ => Verdict::Serve,
    }));
    let prepared = prepare(&server.target(), &workload(Pattern::Random, 100, 100)).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(result.total.operations, 100);
    assert!(!result.is_clean());
    let why = "clean-up: lost the connection";
    assert!(result.errors.keys().any(|error| error.starts_with(why)), "{:?}", result.errors);
}

/// Procedures, with the bytes of a WRITE.
type Calls = Arc<Mutex<Vec<(u32, u32)>>>;

/// A server with other limits: puts `bytes` at so many bytes before the end of replies to FSINFO
/// (RFC 1813 §3.3.19). Gives the other calls too.
fn limited(bytes: Vec<u8>, before: usize) -> (Responder, Calls) {
    let calls = Calls::default();
    let noted = Arc::clone(&calls);
    let server = Responder::with_hook(Arc::new(move |procedure, args: &mut Vec<u8>| {
        if procedure != FSINFO {
            let bytes = if procedure == WRITE { count(args) } else { 0 };
            noted.lock().unwrap().push((procedure, bytes));
            return Verdict::Serve;
        }
        let bytes = bytes.clone();
        Verdict::Alter(Box::new(move |reply| {
            let at = reply.len() - before;
            reply[at..at + bytes.len()].copy_from_slice(&bytes);
        }))
    }));
    (server, calls)
}

/// Places of the limits in a reply to FSINFO, before its end.
const RTMAX: usize = 48;
const WTMAX: usize = 36;
const MAXFILESIZE: usize = 20;

#[test]
fn what_the_server_does_not_take_is_refused_before_anything_is_made() {
    let small = 2048_u32.to_be_bytes().to_vec();
    let cases = [
        (100, RTMAX, small.clone(), "reads of at most 2 KiB (rtmax)"),
        (0, WTMAX, small, "writes of at most 2 KiB (wtmax)"),
        (100, MAXFILESIZE, 4096_u64.to_be_bytes().to_vec(), "files of at most 4 KiB (maxfilesize)"),
    ];
    for (read_percent, place, bytes, words) in cases {
        let (server, calls) = limited(bytes, place);
        let load = workload(Pattern::Random, read_percent, 10);
        let message = refusal(&server.target(), &load);
        assert!(message.contains(words), "{message}");
        assert_eq!(*calls.lock().unwrap(), []);
        // The other limits are as they were.
        let other = workload(Pattern::Random, if read_percent == 0 { 100 } else { 0 }, 10);
        assert_eq!(prepare(&server.target(), &other).is_ok(), place != MAXFILESIZE);
    }
}

#[test]
fn files_are_laid_out_in_writes_that_the_server_takes() {
    let (server, calls) = limited((16_u32 << 10).to_be_bytes().to_vec(), WTMAX);
    let load = workload(Pattern::Random, 100, 10);
    prepare(&server.target(), &load).unwrap().discard().unwrap();
    let calls = calls.lock().unwrap();
    let writes: Vec<u32> =
        calls.iter().filter(|(call, _)| *call == WRITE).map(|(_, bytes)| *bytes).collect();
    assert_eq!(writes, [16 << 10; 64]);
}
