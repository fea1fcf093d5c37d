//! A server that moves fewer bytes than it is asked for: the rest is requested in turn, and the
//! operation counts once.

use crate::responder::{Hook, Responder, Verdict, count, cut, offset, redirect};
use crate::{COMMIT, READ, WRITE, workload};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_load::{
    Control, Draw, Layout, MixOp, OpShare, Operation, Pattern, RunResult, Stability, VerifyScope,
    Workload, prepare,
};
use weir_nfs::v3::wire::Status;

/// The most that the server moves at once: a block takes five requests.
const MOST: u32 = 1000;
/// The offset to which lost writes go.
const FAR: u64 = 1 << 40;

fn run(load: &Workload, hook: Hook) -> RunResult {
    let server = Responder::with_hook(hook);
    prepare(&server.target(), load).unwrap().run(&Control::new(), |_| {}).unwrap()
}

/// Cuts every request of this procedure, and counts them.
fn cutting(procedure: u32) -> (Hook, Arc<AtomicU64>) {
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let hook = move |called, args: &mut Vec<u8>| {
        if called == procedure {
            counted.fetch_add(1, Ordering::Relaxed);
            cut(args, MOST);
        }
        Verdict::Serve
    };
    (Arc::new(hook), seen)
}

/// Writes of verified blocks, into a file that is one hole.
fn writes(operations: u64) -> Workload {
    Workload {
        jobs: 2,
        depth: 8,
        layout: Layout::Sparse,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 0, operations)
    }
}

#[test]
fn writes_are_continued_and_each_block_is_what_was_to_be_written() {
    let (hook, seen) = cutting(WRITE);
    let result = run(&writes(600), hook);
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    assert_eq!((result.total.operations, result.total.bytes), (600, 600 * 4096));
    assert_eq!(result.connections.continued, 600);
    assert_eq!(seen.load(Ordering::Relaxed), 600 * 5);
    assert!(result.verify.unwrap().checked > 200);
}

#[test]
fn reads_are_continued_and_compared_whole() {
    let (hook, seen) = cutting(READ);
    let load = Workload {
        verify_reads: true,
        depth: 8,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let result = run(&load, hook);
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    assert_eq!((result.total.operations, result.total.bytes), (256, 256 * 4096));
    assert_eq!((result.connections.continued, seen.load(Ordering::Relaxed)), (256, 256 * 5));
    assert_eq!(result.verify.unwrap().in_passing, 256);
}

#[test]
fn a_wrong_byte_in_any_part_is_found_by_the_load_that_reads_it() {
    let hook = |procedure, args: &mut Vec<u8>| {
        let is_last = procedure == READ && offset(args) == 7 * 4096 + 4000;
        if procedure == READ {
            cut(args, MOST);
        }
        if !is_last {
            return Verdict::Serve;
        }
        Verdict::Alter(Box::new(|reply| {
            let end = reply.len();
            reply[end - 10] ^= 1;
        }))
    };
    let load = Workload {
        verify_reads: true,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let verify = run(&load, Arc::new(hook)).verify.unwrap();
    assert_eq!((verify.in_passing, verify.mismatches), (256, 1), "{:?}", verify.details);
    assert!(verify.details[0].contains("at 28672: corrupt: byte 4086"), "{:?}", verify.details);
}

#[test]
fn readers_and_writers_in_parts_of_the_same_blocks_see_nothing_wrong() {
    let load = Workload {
        verify_reads: true,
        jobs: 4,
        threads: 2,
        connections: 4,
        file_bytes: 64 * 4096,
        ..writes(4000)
    };
    let load = Workload { operation: workload(Pattern::Random, 50, 1).operation, depth: 4, ..load };
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == READ || procedure == WRITE {
            // Some borders lie within the stamp.
            cut(args, if offset(args).is_multiple_of(8192) { 41 } else { 2000 });
        }
        Verdict::Serve
    };
    let result = run(&load, Arc::new(hook));
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    assert!(result.verify.unwrap().in_passing > 1500);
}

#[test]
fn the_latency_of_a_continued_operation_begins_with_its_first_request() {
    let (hook, _) = cutting(WRITE);
    let load = Workload { depth: 1, jobs: 1, client_delays_us: vec![2000], ..writes(5) };
    let result = run(&load, hook);
    // Each of the five requests leaves 2 ms later.
    assert!(result.total.latency_ms.min >= 10.0, "{:?}", result.total.latency_ms);
}

#[test]
fn files_are_laid_out_by_a_server_that_writes_a_part_at_a_time() {
    let (hook, seen) = cutting(WRITE);
    let load = Workload {
        verify_reads: true,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let result = run(&load, hook);
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    assert_eq!(result.verify.unwrap().in_passing, 256);
    // 64 KiB are 65 whole requests and one of 536 bytes.
    assert_eq!((seen.load(Ordering::Relaxed), result.connections.continued), (16 * 66, 0));
}

#[test]
fn whole_files_and_files_that_are_filled_count_once() {
    let share = |op| OpShare { op, percent: 50 };
    let offsets = Arc::new(Mutex::new(BTreeMap::<u64, u64>::new()));
    for (mix, procedure, each) in [
        ([share(MixOp::ReadFile), share(MixOp::Stat)], READ, "read-file"),
        ([share(MixOp::WriteFile), share(MixOp::Stat)], WRITE, "write-file"),
        ([share(MixOp::Unlink2), share(MixOp::Stat)], WRITE, "remove"),
    ] {
        offsets.lock().unwrap().clear();
        let noted = Arc::clone(&offsets);
        let hook = Arc::new(move |called, args: &mut Vec<u8>| {
            if called == procedure {
                *noted.lock().unwrap().entry(offset(args)).or_default() += 1;
                cut(args, MOST);
            }
            Verdict::Serve
        });
        let load = Workload {
            operation: Operation::Mix,
            mix: mix.to_vec(),
            file_bytes: 10_000,
            layout: Layout::Sparse,
            ..workload(Pattern::Random, 100, 300)
        };
        let result = run(&load, hook);
        assert!(result.is_clean(), "{each}: {:?}", result.errors);
        let done = result.by_operation[each].operations;
        assert!(done > 50, "{each}: {done}");
        assert_eq!(result.connections.continued, done, "{each}");
        let offsets = offsets.lock().unwrap();
        for part in [0, 1000, 2000, 3000, 4000] {
            assert_eq!(offsets[&part], done, "{each}: {offsets:?}");
        }
    }
}

/// Answers every request of this procedure in the load with another number of bytes.
fn claiming(procedure: u32, claimed: u32) -> Hook {
    Arc::new(move |called, args: &mut Vec<u8>| {
        if called != procedure {
            return Verdict::Serve;
        }
        let wanted = count(args).to_be_bytes();
        Verdict::Alter(Box::new(move |reply| {
            // The count stands before the stability and the verifier of a WRITE.
            let at = reply.len() - 16;
            assert_eq!(reply[at..at + 4], wanted);
            reply[at..at + 4].copy_from_slice(&claimed.to_be_bytes());
        }))
    })
}

#[test]
fn a_write_that_moves_nothing_or_too_much_is_a_failure() {
    for claimed in [0, 4097] {
        let load = Workload { verify: None, ..writes(100) };
        let result = run(&load, claiming(WRITE, claimed));
        let why = format!("write of 4096 bytes that moved {claimed}");
        assert_eq!(result.errors[&why], 100, "{:?}", result.errors);
        assert_eq!((result.total.operations, result.connections.continued), (0, 0));
    }
}

#[test]
fn a_layout_that_makes_no_progress_is_given_up() {
    let load = Workload {
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Random, 100, 10)
    };
    let server = Responder::with_hook(claiming(WRITE, 0));
    let error = prepare(&server.target(), &load).err().unwrap().to_string();
    assert!(error.contains("0 of 4096 bytes written while laying out"), "{error}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn a_read_that_moves_nothing_before_the_end_of_the_file_is_a_failure() {
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == READ {
            cut(args, 0);
        }
        Verdict::Serve
    };
    let result = run(&workload(Pattern::Random, 100, 100), Arc::new(hook));
    let why = "read of 4096 bytes that moved 0";
    assert_eq!(result.errors[why], 100, "{:?}", result.errors);
}

#[test]
fn a_file_that_ends_within_a_continued_read_is_a_failure() {
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == READ && offset(args) == 5 * 4096 {
            cut(args, 96);
        } else if procedure == READ && offset(args) == 5 * 4096 + 96 {
            redirect(args, (1 << 20) - 1000);
        }
        Verdict::Serve
    };
    let load = Workload {
        verify_reads: true,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let result = run(&load, Arc::new(hook));
    let why = "short read: the file ends after 1000 of 4000 bytes";
    assert_eq!(result.errors[why], 1, "{:?}", result.errors);
    assert_eq!((result.total.operations, result.connections.continued), (255, 1));
    let details = result.verify.unwrap().details;
    assert_eq!(details.len(), 1, "{details:?}");
    assert!(details[0].contains("at 20480: lost write: the file ends after 1096"), "{details:?}");
}

#[test]
fn a_rest_that_fails_is_no_corruption() {
    let rests = AtomicU64::new(0);
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure != WRITE {
            return Verdict::Serve;
        }
        let is_rest = !offset(args).is_multiple_of(4096);
        if is_rest && rests.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            return Verdict::Fail(Status::IO);
        }
        // Some borders lie within the stamp.
        cut(args, if offset(args).is_multiple_of(8192) { 45 } else { 3000 });
        Verdict::Serve
    };
    let result = run(&Workload { depth: 4, ..writes(3000) }, Arc::new(hook));
    assert!(result.errors["NFS3ERR_IO"] > 500, "{:?}", result.errors);
    let verify = result.verify.unwrap();
    assert!(verify.uncertain > 20, "{verify:?}");
    assert_eq!((verify.mismatches, verify.unread), (0, 0), "{:?}", verify.details);
}

#[test]
fn a_restart_between_the_parts_of_a_write_is_no_corruption_and_after_a_commit_it_is() {
    // Blocks are written once each, one after the other, in two requests, with a COMMIT after every
    // 50. The server loses a range of requests, and restarts behind it.
    let load = Workload {
        jobs: 1,
        depth: 1,
        draw: Draw::Permuted,
        commit_every: Some(50),
        stability: Stability::Unstable,
        ..writes(204)
    };
    // The request of number 239 is the front of block 120, which no COMMIT covers.
    for (lost, mismatches) in [(239..240_u64, 0), (201..240, 0), (199..240, 1)] {
        let writes = Mutex::new(0_u64);
        let restart = lost.end;
        let hook = move |procedure, args: &mut Vec<u8>| {
            let mut writes = writes.lock().unwrap();
            if procedure == WRITE {
                *writes += 1;
                cut(args, 3000);
                if lost.contains(&*writes) {
                    redirect(args, FAR);
                }
            }
            if *writes >= restart && (procedure == WRITE || procedure == COMMIT) {
                return Verdict::Alter(Box::new(|reply| {
                    let end = reply.len() - 8;
                    reply[end..].fill(9);
                }));
            }
            Verdict::Serve
        };
        let result = run(&load, Arc::new(hook));
        let verify = result.verify.unwrap();
        assert_eq!(verify.mismatches, mismatches, "{:?}", verify.details);
        assert_eq!((verify.unread, result.connections.continued), (0, 200));
        // Blocks that were written since the last COMMIT, and the one that was under way.
        assert_eq!(verify.uncertain, 20);
        let named = result.errors.keys().any(|what| what.contains("write verifier"));
        assert!(named, "{:?}", result.errors);
    }
}
