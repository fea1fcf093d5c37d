//! Servers that lose writes: what they may lose by the protocol is named and is no fault of theirs,
//! everything else is found and nothing is invented.

use crate::responder::{Door, Hook, Responder, Verdict, offset, offset_at, redirect};
use crate::{COMMIT, READ, WRITE, workload};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
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
fn a_restart_that_ends_connections_is_named_and_what_it_lost_is_found_afterwards() {
    let deeds = Arc::default();
    let result = run(&load(), faulty(&deeds, (true, true)));
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    assert_eq!(result.connections.lost, 1);
    assert!(result.interrupted && !result.is_clean());
    let deeds = deeds.lock().unwrap();
    assert_eq!(reported(&result), deeds.lost);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.mismatches, verify.unread), (deeds.lost.len() as u64, 0));
    // The write that the server did not answer included.
    assert_eq!(verify.uncertain, RESTART - COMMITTED);
}

/// The connections that come after the restart of [`faulty`], of which `opens` says for each number
/// from 0 whether it is served.
fn door(
    deeds: &Arc<Mutex<Deeds>>,
    opens: impl Fn(u64) -> bool + Send + Sync + 'static,
) -> Arc<Door> {
    let (deeds, later) = (Arc::clone(deeds), AtomicU64::new(0));
    Door::new(move || {
        !deeds.lock().unwrap().restarted || opens(later.fetch_add(1, Ordering::Relaxed))
    })
}

#[test]
fn a_server_that_takes_its_time_to_restart_is_waited_for() {
    let deeds = Arc::default();
    let (hook, door) = (faulty(&deeds, (true, true)), door(&deeds, |number| number >= 3));
    let server = Responder::with_door(hook, door);
    let prepared = prepare(&server.target(), &load()).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(reported(&result), deeds.lock().unwrap().lost);
    assert_eq!(result.verify.as_ref().unwrap().unread, 0);
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn whoever_stops_the_run_does_not_wait_for_a_server_that_is_gone() {
    let (deeds, control) = (Arc::default(), Control::new());
    let hand = control.clone();
    let door = door(&deeds, move |number| {
        if number == 3 {
            hand.stop();
        }
        false
    });
    let server = Responder::with_door(faulty(&deeds, (true, true)), door);
    let result = prepare(&server.target(), &load()).unwrap().run(&control, |_| {}).unwrap();
    let verify = result.verify.as_ref().unwrap();
    assert_eq!((verify.checked, verify.mismatches), (0, 0), "{:?}", verify.details);
    assert!(verify.unread > 0 && result.interrupted);
    let why = "clean-up: lost the connection";
    assert!(result.errors.keys().any(|error| error.starts_with(why)), "{:?}", result.errors);
}

#[test]
fn whoever_stops_the_run_has_nothing_read_back() {
    let reads = Arc::new(AtomicU64::new(0));
    let (counted, control) = (Arc::clone(&reads), Control::new());
    let (hand, writes) = (control.clone(), AtomicU64::new(0));
    let hook = move |procedure, _: &mut Vec<u8>| {
        counted.fetch_add(u64::from(procedure == READ), Ordering::Relaxed);
        if procedure == WRITE && writes.fetch_add(1, Ordering::Relaxed) == 100 {
            hand.stop();
        }
        Verdict::Serve
    };
    let server = Responder::with_hook(Arc::new(hook));
    let result = prepare(&server.target(), &load()).unwrap().run(&control, |_| {}).unwrap();
    assert_eq!((reads.load(Ordering::Relaxed), result.connections.lost), (0, 0));
    let verify = result.verify.as_ref().unwrap();
    assert!(result.interrupted && verify.unread >= 100, "{verify:?}");
}

#[test]
fn everything_at_once_is_found_and_nothing_is_invented() {
    // Four jobs on files and connections of their own. One write goes to another place, others are
    // lost after their COMMIT; then the server restarts, and with it loses what was not committed.
    let load = Workload {
        jobs: 4,
        files: 4,
        connections: 4,
        threads: 2,
        // A COMMIT covers what was answered when it was sent: here, all writes of its job.
        depth: 1,
        // The other half is only laid out.
        region: Region { bytes: Some(Loser::HALF), ..Region::default() },
        draw: Draw::Permuted,
        layout: Layout::Written { block_bytes: 4096 },
        commit_every: Some(10),
        stability: Stability::Unstable,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 0, 100_000)
    };
    let (door, world) = (Door::new(|| true), Arc::new(Mutex::new(Loser::default())));
    let (at_work, ends) = (Arc::clone(&world), Arc::clone(&door));
    let hook =
        move |procedure, args: &mut Vec<u8>| at_work.lock().unwrap().meddle(procedure, args, &ends);
    let server = Responder::with_door(Arc::new(hook), door);
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    let world = world.lock().unwrap();
    assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    assert!(result.connections.lost >= 1);
    let verify = result.verify.as_ref().unwrap();
    assert_eq!(verify.unread, 0);
    let block = |detail: &String| {
        let (place, what) = detail.split_once(": ").unwrap();
        let (name, at) = place.split_once(" at ").unwrap();
        let file: usize = name.strip_prefix("file.").unwrap().parse().unwrap();
        let what = what.split([':', ' ']).next().unwrap().to_owned();
        ((file, at.parse().unwrap()), what)
    };
    let found: BTreeMap<(usize, u64), String> = verify.details.iter().map(block).collect();
    let (surely, at_most) = (world.wanted(&world.committed), world.wanted(&world.committing));
    assert!(surely.len() > 1, "{surely:?}");
    let missed: Vec<_> = surely.iter().filter(|(block, _)| !found.contains_key(block)).collect();
    let invented: Vec<_> =
        found.iter().filter(|(block, what)| at_most.get(block) != Some(what)).collect();
    assert!(missed.is_empty() && invented.is_empty(), "{missed:?} {invented:?}");
}

/// A server that does everything wrong, and keeps a record of it.
#[derive(Default)]
struct Loser {
    /// Handles of the files, by number.
    files: Vec<Vec<u8>>,
    writes: u64,
    /// By file and offset of a block: the number of its last write, and what became of it.
    last: BTreeMap<(usize, u64), (u64, Fate)>,
    /// By file: the writes answered until its last COMMIT, which may not have been answered.
    committing: BTreeMap<usize, u64>,
    /// By file: the writes answered until its last COMMIT that was.
    committed: BTreeMap<usize, u64>,
    restarted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Lost,
    /// Another block's content is here.
    Overwritten,
}

impl Loser {
    /// Half of a file of 1 MiB.
    const HALF: u64 = 128 * BLOCK;
    /// Writes of the layout: four files of 256 blocks.
    const LAID_OUT: u64 = 4 * 256;
    /// The load's write that goes elsewhere.
    const MISPLACED: u64 = Self::LAID_OUT + 100;
    /// Every so many writes of the load one is lost.
    const LOST_EVERY: u64 = 37;
    const RESTART: u64 = Self::LAID_OUT + 400;

    fn meddle(&mut self, procedure: u32, args: &mut [u8], door: &Door) -> Verdict {
        if procedure != WRITE && procedure != COMMIT {
            return Verdict::Serve;
        }
        let handle = args[..offset_at(args)].to_vec();
        let known = self.files.iter().position(|other| *other == handle);
        let file = known.unwrap_or_else(|| {
            self.files.push(handle);
            self.files.len() - 1
        });
        match (procedure, self.restarted) {
            // It came before the restart: nobody writes afterwards.
            (WRITE, true) => return Verdict::Close,
            (WRITE, false) => {
                self.writes += 1;
                if self.writes == Self::RESTART {
                    self.restarted = true;
                    door.restart();
                    return Verdict::Close;
                }
                self.write(file, args);
            }
            (_, false) => {
                self.committing.insert(file, self.writes);
            }
            (_, true) => {
                return Verdict::Alter(Box::new(|reply| {
                    // The verifier is the end of the reply.
                    let end = reply.len() - 8;
                    reply[end..].fill(9);
                }));
            }
        }
        Verdict::Serve
    }

    fn write(&mut self, file: usize, args: &mut [u8]) {
        let (number, at) = (self.writes, offset(args));
        // One request at a time: what came before it was answered.
        if let Some(writes) = self.committing.get(&file) {
            self.committed.insert(file, *writes);
        }
        let fate = match number {
            Self::MISPLACED => {
                // To another file, where nobody writes.
                let other = (file + 1) % self.files.len();
                args[..self.files[other].len()].copy_from_slice(&self.files[other]);
                redirect(args, at + Self::HALF);
                self.last.get_mut(&(other, at + Self::HALF)).unwrap().1 = Fate::Overwritten;
                Fate::Lost
            }
            _ if number > Self::LAID_OUT && number.is_multiple_of(Self::LOST_EVERY) => {
                redirect(args, FAR);
                Fate::Lost
            }
            _ => Fate::Done,
        };
        self.last.insert((file, at), (number, fate));
    }

    /// The blocks that are to be reported if these writes are `committed`, and the words.
    fn wanted(&self, committed: &BTreeMap<usize, u64>) -> BTreeMap<(usize, u64), String> {
        let committed = |file: &usize| committed.get(file).copied().unwrap_or(0);
        let is_due = |((file, _), (number, fate)): &(&(usize, u64), &(u64, Fate))| {
            *fate != Fate::Done && *number <= committed(file)
        };
        let words = |(place, (_, fate)): (&(usize, u64), &(u64, Fate))| {
            let word = if *fate == Fate::Lost { "stale" } else { "misplaced" };
            (*place, word.to_owned())
        };
        self.last.iter().filter(is_due).map(words).collect()
    }
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
    let load = Workload { commit_every: None, ..load() };
    let stable = Workload { stability: Stability::FileSync, ..load.clone() };
    // Over NFS its writes are stable (FILE_SYNC).
    let direct = Workload { direct: true, ..load };
    for load in [stable, direct] {
        let deeds = Arc::default();
        let result = run(&load, faulty(&deeds, (false, true)));
        assert_eq!(reported(&result).len() as u64, RESTART - LOST_FROM);
        assert_eq!(changes_of_verifier(&result), 1, "{:?}", result.errors);
    }
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
