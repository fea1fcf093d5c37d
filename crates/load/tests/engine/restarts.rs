//! Servers that lose writes: what they may lose by the protocol is named and is no fault of theirs,
//! everything else is found and nothing is invented.

use crate::responder::{Hook, Responder, Verdict, offset, offset_at, redirect};
use crate::{COMMIT, WRITE, workload};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use weir_load::{
    Control, Draw, Layout, Pattern, Region, RunResult, Stability, VerifyScope, Workload, prepare,
};

const BLOCK: u64 = 4096;
/// The offset to which lost writes go.
const FAR: u64 = 1 << 40;
/// Writes between two COMMITs.
const COMMIT_EVERY: u32 = 50;
/// The first lost write.
const LOST_FROM: u64 = 60;
/// The first write after the restart; those before it are lost.
const RESTART: u64 = 141;
/// The last write that a COMMIT before the restart covers.
const COMMITTED: u64 = 100;

/// The deeds of a server.
#[derive(Default)]
struct Deeds {
    writes: u64,
    restarted: bool,
    /// Offsets of lost writes that were committed.
    lost: BTreeSet<u64>,
}

/// One job that writes 200 blocks once each, one after the other, with a COMMIT after every 50.
fn load() -> Workload {
    Workload {
        depth: 1,
        draw: Draw::Permuted,
        layout: Layout::Sparse,
        commit_every: Some(COMMIT_EVERY),
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 0, 204)
    }
}

/// A server that loses the writes from [`LOST_FROM`] on when it restarts, at [`RESTART`]. It loses
/// its connections then if `closes`, and shows another write verifier if `shows`.
fn faulty(deeds: &Arc<Mutex<Deeds>>, (closes, shows): (bool, bool)) -> Hook {
    let deeds = Arc::clone(deeds);
    Arc::new(move |procedure, args: &mut Vec<u8>| {
        let mut deeds = deeds.lock().unwrap();
        if procedure == WRITE {
            deeds.writes += 1;
            let number = deeds.writes;
            if (LOST_FROM..RESTART).contains(&number) {
                if number <= COMMITTED {
                    deeds.lost.insert(offset(args));
                }
                redirect(args, FAR);
            }
            if number == RESTART {
                deeds.restarted = true;
                if closes {
                    return Verdict::Close;
                }
            }
        }
        if shows && deeds.restarted && (procedure == WRITE || procedure == COMMIT) {
            return Verdict::Alter(Box::new(|reply| {
                // The verifier is the end of both replies.
                let end = reply.len() - 8;
                reply[end..].fill(9);
            }));
        }
        Verdict::Serve
    })
}

fn run(load: &Workload, hook: Hook) -> RunResult {
    let server = Responder::with_hook(hook);
    prepare(&server.target(), load).unwrap().run(&Control::new(), |_| {}).unwrap()
}

/// The offsets of reported blocks, all of which have to be lost writes.
fn reported(result: &RunResult) -> BTreeSet<u64> {
    let details = &result.verify.as_ref().unwrap().details;
    let at = |detail: &String| {
        assert!(detail.contains("lost write"), "{detail}");
        let place = detail.split(": ").next().unwrap();
        place.rsplit(' ').next().unwrap().parse().unwrap()
    };
    details.iter().map(at).collect()
}

fn changes_of_verifier(result: &RunResult) -> u64 {
    let changes = result.errors.iter().filter(|(what, _)| what.contains("write verifier"));
    changes.map(|(_, count)| count).sum()
}

#[test]
fn a_restart_is_named_and_only_committed_writes_are_reported_as_lost() {
    let deeds = Arc::default();
    let result = run(&load(), faulty(&deeds, (false, true)));
    let deeds = deeds.lock().unwrap();
    assert_eq!(deeds.lost.len() as u64, COMMITTED - LOST_FROM + 1);
    assert_eq!(reported(&result), deeds.lost);
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.mismatches, verify.unread), (deeds.lost.len() as u64, 0));
    assert_eq!(verify.uncertain, RESTART - 1 - COMMITTED);
    assert!(!result.is_clean());
}

#[test]
fn a_restart_that_ends_connections_is_named_and_no_corruption() {
    let deeds = Arc::default();
    let result = run(&load(), faulty(&deeds, (true, true)));
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    assert_eq!(result.connections.lost, 1);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!(verify.mismatches, 0, "{:?}", verify.details);
    assert!(result.interrupted && verify.unread > 0);
}

#[test]
fn without_another_verifier_every_lost_write_is_reported() {
    let deeds = Arc::default();
    let result = run(&load(), faulty(&deeds, (false, false)));
    assert_eq!(reported(&result).len() as u64, RESTART - LOST_FROM);
    assert_eq!(changes_of_verifier(&result), 0, "{:?}", result.errors);
}

#[test]
fn stable_writes_are_not_excused_by_a_restart() {
    let load = Workload { stability: Stability::FileSync, commit_every: None, ..load() };
    let deeds = Arc::default();
    let result = run(&load, faulty(&deeds, (false, true)));
    assert_eq!(reported(&result).len() as u64, RESTART - LOST_FROM);
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
}

#[test]
fn a_restart_that_loses_nothing_is_named_and_nothing_else() {
    let restarted = Mutex::new(0_u64);
    let hook = move |procedure, _: &mut Vec<u8>| {
        let mut calls = restarted.lock().unwrap();
        *calls += u64::from(procedure == WRITE);
        if *calls > 70 && (procedure == WRITE || procedure == COMMIT) {
            return Verdict::Alter(Box::new(|reply| {
                let end = reply.len() - 8;
                reply[end..].fill(9);
            }));
        }
        Verdict::Serve
    };
    let result = run(&load(), Arc::new(hook));
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.mismatches, verify.unread), (0, 0), "{:?}", verify.details);
    assert_eq!(result.error_count(), 1, "{:?}", result.errors);
}

#[test]
fn a_restart_while_files_are_laid_out_is_told_before_the_load() {
    let writes = Mutex::new(0_u64);
    let hook = move |procedure, _: &mut Vec<u8>| {
        let mut writes = writes.lock().unwrap();
        *writes += u64::from(procedure == WRITE);
        if *writes > 5 && (procedure == WRITE || procedure == COMMIT) {
            return Verdict::Alter(Box::new(|reply| {
                let end = reply.len() - 8;
                reply[end..].fill(9);
            }));
        }
        Verdict::Serve
    };
    let server = Responder::with_hook(Arc::new(hook));
    let load = Workload { layout: Layout::Written { block_bytes: 64 << 10 }, ..load() };
    let error = prepare(&server.target(), &load).err().unwrap().to_string();
    assert!(error.contains("while the files were laid out"), "{error}");
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn a_write_that_lands_in_another_file_is_found_in_both() {
    // Each file is visited in its first half; the victim lies in the second half of the other.
    let half = 128 * BLOCK;
    let load = Workload {
        jobs: 2,
        files: 2,
        file_bytes: 2 * half,
        region: Region { bytes: Some(half), ..Region::default() },
        layout: Layout::Written { block_bytes: 4096 },
        draw: Draw::Permuted,
        depth: 1,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 0, 256)
    };
    let laid_out = 2 * 256;
    let (seen, wrong) = (Mutex::new((0_u64, Vec::new())), Arc::new(Mutex::new(None)));
    let noted = Arc::clone(&wrong);
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure != WRITE {
            return Verdict::Serve;
        }
        let mut seen = seen.lock().unwrap();
        let handle = args[..offset_at(args)].to_vec();
        if !seen.1.contains(&handle) {
            seen.1.push(handle.clone());
        }
        seen.0 += 1;
        if seen.0 == laid_out + 100 {
            let file = seen.1.iter().position(|other| *other == handle).unwrap();
            *noted.lock().unwrap() = Some((file, offset(args)));
            let end = handle.len();
            args[..end].copy_from_slice(&seen.1[1 - file]);
            let at = offset(args);
            redirect(args, at + half);
        }
        Verdict::Serve
    };
    let result = run(&load, Arc::new(hook));
    let (file, at) = wrong.lock().unwrap().unwrap();
    let details = &result.verify.as_ref().unwrap().details;
    let lost = format!("file.{file:05} at {at}: stale");
    let other = 1 - file;
    let landed = format!(
        "file.{other:05} at {}: misplaced: it contains the block of file.{file:05} at {at}",
        at + half
    );
    assert_eq!(details.len(), 2, "{details:?}");
    for wanted in [lost, landed] {
        assert!(details.iter().any(|detail| detail.starts_with(&wanted)), "{wanted}: {details:?}");
    }
}
