//! Data compared while the load reads it: damage is found, and what is right is not called wrong.

use crate::responder::{Hook, Responder, Verdict, offset, offset_at, redirect};
use crate::{READ, Site, WRITE, workload};
use std::sync::{Arc, Mutex};
use weir_load::{Control, Layout, Pattern, VerifyResult, VerifyScope, Workload, prepare};

const BLOCK: u64 = 4096;
const VICTIM: u64 = 5 * BLOCK;

/// Reads each of 256 laid-out blocks once; layout and load go through the hook.
fn reads(hook: Hook) -> VerifyResult {
    let server = Responder::with_hook(hook);
    let load = Workload {
        verify_reads: true,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Sequential, 100, 256)
    };
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    let verify = result.verify.clone().unwrap();
    assert_eq!((verify.in_passing, verify.checked, verify.uncertain), (256, 0, 0));
    assert_eq!(verify.mismatches, verify.in_passing_mismatches);
    assert_eq!(result.is_clean(), verify.mismatches == 0);
    verify
}

fn assert_found(verify: &VerifyResult, words: &str) {
    assert_eq!(verify.mismatches, 1, "{:?}", verify.details);
    let detail = &verify.details[0];
    assert!(detail.starts_with(&format!("file.00000 at {VICTIM}: ")), "{detail}");
    assert!(detail.contains(words) && detail.contains("seen by the load"), "{detail}");
}

#[test]
fn what_was_laid_out_passes() {
    assert_eq!(reads(Arc::new(|_, _| Verdict::Serve)).mismatches, 0);
}

#[test]
fn a_flipped_bit_a_lost_write_and_a_swapped_block_are_found() {
    let flip = |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            let data = offset_at(args) + 20;
            args[data + 1000] ^= 0x10;
        }
        Verdict::Serve
    };
    assert_found(&reads(Arc::new(flip)), "byte 1000 differs from the written data");
    let lose = |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            redirect(args, 1 << 30);
        }
        Verdict::Serve
    };
    assert_found(&reads(Arc::new(lose)), "lost write");
    let swap = |procedure, args: &mut Vec<u8>| {
        if procedure == READ && offset(args) == VICTIM {
            redirect(args, 9 * BLOCK);
        }
        Verdict::Serve
    };
    let words = format!("misplaced: it contains the block of file.00000 at {}", 9 * BLOCK);
    assert_found(&reads(Arc::new(swap)), &words);
}

#[test]
fn a_stale_block_is_found_by_the_load_and_afterwards() {
    let writes = Mutex::new(0);
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            let mut writes = writes.lock().unwrap();
            *writes += 1;
            if *writes > 1 {
                redirect(args, 1 << 30);
            }
        }
        Verdict::Serve
    };
    let server = Responder::with_hook(Arc::new(hook));
    let load = Workload {
        verify: Some(VerifyScope::All),
        verify_reads: true,
        layout: Layout::Written { block_bytes: 4096 },
        depth: 4,
        ..workload(Pattern::Random, 50, 8000)
    };
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    let verify = result.verify.unwrap();
    assert_eq!(verify.checked, 256, "blocks that were only laid out included");
    assert!(verify.in_passing_mismatches > 0, "{verify:?}");
    assert_eq!(verify.mismatches, verify.in_passing_mismatches + 1);
    assert!(verify.details.iter().all(|line| line.contains(&VICTIM.to_string())), "{verify:?}");
    assert!(verify.details[0].contains("stale: it contains write 1"), "{verify:?}");
}

#[test]
fn many_readers_and_writers_of_the_same_blocks_see_nothing_wrong() {
    let load = Workload {
        verify: Some(VerifyScope::All),
        verify_reads: true,
        jobs: 4,
        depth: 4,
        threads: 2,
        connections: 4,
        file_bytes: 64 * BLOCK,
        ..workload(Pattern::Random, 50, 4000)
    };
    for site in Site::both() {
        let verify = site.run(&load).verify.unwrap();
        assert_eq!(verify.checked, 64);
        assert!(verify.in_passing > 1500, "{verify:?}");
    }
}

#[test]
fn large_blocks_arrive_whole() {
    let load = Workload {
        verify_reads: true,
        block_bytes: 1 << 20,
        file_bytes: 8 << 20,
        depth: 4,
        ..workload(Pattern::Sequential, 100, 32)
    };
    for site in Site::both() {
        assert_eq!(site.run(&load).verify.unwrap().in_passing, 32);
    }
}

#[test]
fn files_of_an_earlier_run_are_judged_by_what_they_say_themselves() {
    let first = Workload { verify_reads: true, keep: true, ..workload(Pattern::Random, 100, 10) };
    let again = Workload { layout: Layout::Existing, ..workload(Pattern::Sequential, 100, 256) };
    let again = Workload { verify_reads: true, ..again };
    let other = Workload { names: vec!["renamed".into()], ..again.clone() };
    for site in Site::both() {
        site.run(&first);
        assert_eq!(site.run(&again).verify.unwrap().in_passing, 256);
        if let Site::Directory(directory) = &site {
            let place = directory.path().join("weir-bench");
            std::fs::rename(place.join("file.00000"), place.join("renamed")).unwrap();
            let prepared = prepare(&site.target(), &other).unwrap();
            let verify = prepared.run(&Control::new(), |_| {}).unwrap().verify.unwrap();
            assert_eq!(verify.mismatches, 256);
            assert!(verify.details[0].contains("misplaced"), "{:?}", verify.details[0]);
        }
    }
}
