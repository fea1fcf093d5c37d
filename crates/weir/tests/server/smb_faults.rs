//! The SMB engine of `weir bench` against servers that do less than they say, or less than they are
//! asked for: the server itself, behind a relay.

use crate::smb_relay::{FLUSH, READ, WRITE, cut, offset, redirect, relay};
use crate::smb_share::Share;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use weir_load::{
    Control, Draw, Layout, Length, MixOp, OpShare, Operation, Pattern, Region, RunResult,
    SmbSecurity, SmbTarget, Stability, Target, VerifyScope, Workload, prepare,
};

/// The most that is read or written at once: a block of 4 KiB takes five requests.
const MOST: u32 = 1000;

/// Applies `load`, which has to go well, to a server that reads and writes so much at a time; gives
/// the offsets of READs and WRITEs too.
fn in_parts(load: &Workload) -> (RunResult, Vec<u64>) {
    let share = Share::new("offered");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let hook = move |command, message: &mut [u8]| {
        if command == READ || command == WRITE {
            noted.lock().unwrap().push(offset(message));
            cut(message, MOST);
        }
        true
    };
    let address = relay(share.address, Arc::new(hook));
    let target = SmbTarget { address, ..share.target(SmbSecurity::None) };
    let prepared = prepare(&Target::Smb(target), load).unwrap();
    seen.lock().unwrap().clear();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (result, seen)
}

#[test]
fn reads_and_writes_of_a_load_are_continued_and_verified() {
    let load = Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
        length: Length::Operations(1000),
        jobs: 2,
        depth: 4,
        file_bytes: 64 * 4096,
        layout: Layout::Written { block_bytes: 64 << 10 },
        verify: Some(VerifyScope::All),
        verify_reads: true,
        ..Workload::default()
    };
    let (result, offsets) = in_parts(&load);
    assert_eq!((result.total.operations, result.total.bytes), (1000, 1000 * 4096));
    assert_eq!(result.connections.continued, 1000);
    // The reading back of 64 blocks included.
    assert_eq!(offsets.len(), 1064 * 5);
    let verify = result.verify.unwrap();
    assert_eq!(verify.checked, 64);
    assert_eq!(verify.in_passing, result.by_operation["read"].operations);
}

#[test]
fn a_file_that_is_filled_in_one_compound_is_filled_on_in_further_ones() {
    let share = |op| OpShare { op, percent: 50 };
    let load = Workload {
        operation: Operation::Mix,
        mix: vec![share(MixOp::Unlink2), share(MixOp::Stat)],
        length: Length::Operations(300),
        file_bytes: 4096,
        layout: Layout::Sparse,
        ..Workload::default()
    };
    let (result, offsets) = in_parts(&load);
    let filled = result.by_operation["remove"].operations;
    assert!(filled > 50, "{filled}");
    assert_eq!(result.connections.continued, filled);
    for part in [0, 1000, 2000, 3000, 4000] {
        let seen = offsets.iter().filter(|offset| **offset == part).count();
        assert_eq!(seen as u64, filled, "{part}");
    }
}

/// The first lost write, and the first that is not answered because the connection ends.
const LOST_FROM: u64 = 60;
const END: u64 = 141;

#[test]
fn writes_that_were_lost_before_a_connection_ended_are_found_where_a_flush_covered_them() {
    // Blocks of the first half are written once each, one after the other.
    let half = 1 << 20;
    let load = Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 0 },
        length: Length::Operations(204),
        depth: 1,
        draw: Draw::Permuted,
        file_bytes: 2 * half,
        region: Region { bytes: Some(half), ..Region::default() },
        layout: Layout::Sparse,
        stability: Stability::Unstable,
        commit_every: Some(50),
        verify: Some(VerifyScope::All),
        ..Workload::default()
    };
    let share = Share::new("offered");
    // Writes, offsets of lost ones, and how many of these a FLUSH covers.
    let deeds = Arc::new(Mutex::new((0_u64, Vec::new(), 0)));
    let at_work = Arc::clone(&deeds);
    let hook = move |command, message: &mut [u8]| {
        let mut deeds = at_work.lock().unwrap();
        let (writes, lost, flushed) = &mut *deeds;
        match command {
            FLUSH => *flushed = lost.len(),
            WRITE => {
                *writes += 1;
                if (LOST_FROM..END).contains(writes) {
                    lost.push(offset(message));
                    redirect(message, offset(message) + half);
                }
                return *writes != END;
            }
            _ => {}
        }
        true
    };
    let address = relay(share.address, Arc::new(hook));
    let target = SmbTarget { address, ..share.target(SmbSecurity::None) };
    let prepared = prepare(&Target::Smb(target), &load).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    let deeds = deeds.lock().unwrap();
    let flushed: BTreeSet<u64> = deeds.1[..deeds.2].iter().copied().collect();
    assert_eq!(flushed.len(), 41);
    let verify = result.verify.as_ref().unwrap();
    let found = |detail: &String| {
        let (place, what) = detail.split_once(": ").unwrap();
        assert!(what.starts_with("lost write"), "{detail}");
        place.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let found: BTreeSet<u64> = verify.details.iter().map(found).collect();
    assert_eq!(found, flushed);
    assert_eq!((result.connections.lost, verify.unread), (1, 0));
    assert_eq!(verify.uncertain, END - 100);
}
