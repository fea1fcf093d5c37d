//! Tests of the work around the load: many files at a time, with a server that wants time, says
//! little, or refuses.

use crate::responder::{Hook, Responder, Verdict};
use crate::{COMMIT, READ, REMOVE, WRITE, workload};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_load::{Control, Layout, Pattern, RunResult, Workload, prepare, prepare_with};
use weir_nfs::v3::wire::Status;

const LOOKUP: u32 = 3;
const CREATE: u32 = 8;
const FILES: u32 = 100;

fn load(layout: Layout) -> Workload {
    Workload {
        files: FILES,
        file_bytes: 3 * 4096,
        block_bytes: 4096,
        layout,
        ..workload(Pattern::Random, 100, 200)
    }
}

fn run(server: &Responder, load: &Workload) -> RunResult {
    prepare(&server.target(), load).unwrap().run(&Control::new(), |_| {}).unwrap()
}

/// Does what a call is about have this name?
fn is_about(args: &[u8], name: &str) -> bool {
    args.windows(name.len()).any(|part| part == name.as_bytes())
}

#[test]
fn a_server_that_wants_time_is_asked_again() {
    for layout in [Layout::Written { block_bytes: 4096 }, Layout::Sparse] {
        let (seen, told) = (Mutex::new(HashSet::new()), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&told);
        let hook: Hook = Arc::new(move |procedure, args| {
            // Each call has to be made twice, but for those of the load.
            if procedure == READ || !seen.lock().unwrap().insert((procedure, args.clone())) {
                return Verdict::Serve;
            }
            counted.fetch_add(1, Ordering::Relaxed);
            Verdict::Fail(Status::JUKEBOX)
        });
        let server = Responder::with_hook(hook);
        let result = run(&server, &load(layout));
        assert!(result.is_clean(), "{:?}", result.errors);
        assert_eq!(server.names(), Vec::<String>::new());
        // CREATE, SETATTR and REMOVE, or CREATE, three WRITE, COMMIT and REMOVE.
        let each = if layout == Layout::Sparse { 3 } else { 6 };
        assert!(told.load(Ordering::Relaxed) >= u64::from(FILES) * each);
    }
}

#[test]
fn whoever_stops_it_does_not_wait_for_a_server_that_wants_time() {
    let control = Control::new();
    let hand = control.clone();
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        if procedure != CREATE {
            return Verdict::Serve;
        }
        hand.stop();
        Verdict::Fail(Status::JUKEBOX)
    }));
    let prepared = prepare_with(&server.target(), &load(Layout::Sparse), &control, &mut |_, _| {});
    let error = prepared.err().unwrap().to_string();
    assert!(error.contains("stopped while laying out"), "{error}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn a_server_that_gives_no_handles_is_asked_for_them() {
    let lookups = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lookups);
    let server = Responder::with_hook(Arc::new(move |procedure, _| match procedure {
        CREATE => Verdict::Alter(Box::new(|reply: &mut Vec<u8>| {
            // After the record's mark, the header of the reply and the status: a handle follows,
            // its length, itself.
            let follows = 4 + 24 + 4;
            let number = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
            assert_eq!(number(follows), 1);
            let handle = 4 + number(follows + 4).next_multiple_of(4);
            let mark = number(0) - handle;
            reply[..4].copy_from_slice(&mark.to_be_bytes());
            reply[follows + 3] = 0;
            reply.drain(follows + 4..follows + 4 + usize::try_from(handle).unwrap());
        })),
        LOOKUP => {
            counted.fetch_add(1, Ordering::Relaxed);
            Verdict::Serve
        }
        _ => Verdict::Serve,
    }));
    let result = run(&server, &load(Layout::Sparse));
    assert!(result.is_clean() && result.total.operations == 200, "{:?}", result.errors);
    assert!(lookups.load(Ordering::Relaxed) >= u64::from(FILES));
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn one_file_that_is_refused_leaves_none_behind() {
    let server = Responder::with_hook(Arc::new(|procedure, args| {
        let refused = procedure == CREATE && is_about(args, "file.00050");
        if refused { Verdict::Fail(Status::ACCES) } else { Verdict::Serve }
    }));
    let error = prepare(&server.target(), &load(Layout::Sparse)).err().unwrap().to_string();
    assert!(error.contains("creating") && error.contains("NFS3ERR_ACCES"), "{error}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn one_file_that_stays_does_not_keep_the_others() {
    let server = Responder::with_hook(Arc::new(|procedure, args| {
        let refused = procedure == REMOVE && is_about(args, "file.00050");
        if refused { Verdict::Fail(Status::PERM) } else { Verdict::Serve }
    }));
    let load = load(Layout::Sparse);
    let result = run(&server, &load);
    assert!(!result.is_clean(), "{:?}", result.errors);
    assert_eq!(server.names_in(&[&load.directory]).len(), 1);
}

#[test]
fn a_file_that_was_there_and_is_refused_stays() {
    let refuses = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&refuses);
    let server = Responder::with_hook(Arc::new(move |procedure, args| {
        let refused = procedure == CREATE && is_about(args, "file.00050");
        let refused = refused && now.load(Ordering::Relaxed);
        if refused { Verdict::Fail(Status::ACCES) } else { Verdict::Serve }
    }));
    let load = load(Layout::Sparse);
    assert!(run(&server, &Workload { keep: true, ..load.clone() }).is_clean());
    refuses.store(true, Ordering::Relaxed);
    let error = prepare(&server.target(), &load).err().unwrap().to_string();
    assert!(error.contains("file.00050"), "{error}");
    let names = server.names_in(&[&load.directory]);
    assert!(names.contains(&"file.00050".to_owned()), "{names:?}");
}

#[test]
fn a_connection_that_breaks_while_files_are_made_leaves_none_behind() {
    let created = AtomicU64::new(0);
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        let breaks = procedure == CREATE && created.fetch_add(1, Ordering::Relaxed) == 40;
        if breaks { Verdict::Close } else { Verdict::Serve }
    }));
    assert!(prepare(&server.target(), &load(Layout::Sparse)).is_err());
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn many_calls_are_in_flight_and_answers_come_in_any_order() {
    let written = Mutex::new(HashMap::<Vec<u8>, u32>::new());
    let server = Responder::with_hook(Arc::new(move |procedure, args| {
        // Both begin with the handle.
        let len = usize::try_from(u32::from_be_bytes(args[..4].try_into().unwrap())).unwrap();
        let handle = args[4..4 + len].to_vec();
        match procedure {
            WRITE => *written.lock().unwrap().entry(handle).or_default() += 1,
            COMMIT => assert_eq!(written.lock().unwrap()[&handle], 3, "all of it is written"),
            _ => {}
        }
        Verdict::Serve
    }));
    server.answer_backwards();
    let load = Workload { verify_reads: true, ..load(Layout::Written { block_bytes: 4096 }) };
    let result = run(&server, &load);
    assert!(result.is_clean() && result.total.operations == 200, "{:?}", result.errors);
    assert!(server.most_at_once() > 16, "{}", server.most_at_once());
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn how_far_it_is_counts_bytes_or_files() {
    let server = Responder::start();
    let told = |layout, file_bytes| {
        let mut told = Vec::new();
        let load = Workload { file_bytes, ..load(layout) };
        let prepared =
            prepare_with(&server.target(), &load, &Control::new(), &mut |done, total| {
                told.push((done, total));
            });
        prepared.unwrap().discard().unwrap();
        assert!(told.is_sorted(), "{told:?}");
        (told[0], *told.last().unwrap())
    };
    let files = u64::from(FILES);
    let bytes = files * 3 * 4096;
    let written = Layout::Written { block_bytes: 4096 };
    assert_eq!(told(written, 3 * 4096), ((0, bytes), (bytes, bytes)));
    assert_eq!(told(Layout::Sparse, 3 * 4096), ((1, files), (files, files)));
}
