//! Reading back finds what a server did wrong, and nothing where it did right.

use crate::responder::{Hook, Responder, Verdict, offset, offset_at, redirect};
use crate::{READ, WRITE, workload};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use weir_load::{Control, Layout, Pattern, VerifyResult, VerifyScope, Workload, prepare};

const BLOCK: u64 = 4096;
/// Damage befalls the block here.
const VICTIM: u64 = 5 * BLOCK;
const FAR: u64 = 1 << 30;

/// Writes each of 256 blocks about four times, then reads them back.
fn verify(hook: Hook) -> VerifyResult {
    let server = Responder::with_hook(hook);
    let workload = Workload {
        verify: Some(VerifyScope::All),
        layout: Layout::Sparse,
        ..workload(Pattern::Sequential, 0, 1024)
    };
    let prepared = prepare(&server.target(), &workload).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    let verify = result.verify.clone().unwrap();
    assert_eq!(verify.checked, 256);
    assert_eq!(result.is_clean(), verify.mismatches == 0);
    verify
}

/// One mismatch, at the victim, described with `words`.
fn assert_found(verify: &VerifyResult, words: &str) {
    assert_eq!(verify.mismatches, 1, "{:?}", verify.details);
    let detail = &verify.details[0];
    assert!(detail.starts_with(&format!("file.00000 at {VICTIM}: ")), "{detail}");
    assert!(detail.contains(words), "{detail}");
}

#[test]
fn clean_data_passes() {
    assert_eq!(verify(Arc::new(|_, _| Verdict::Serve)).mismatches, 0);
}

#[test]
fn a_flipped_bit_is_found() {
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            let data = offset_at(args) + 20;
            args[data + 1000] ^= 0x10;
        }
        Verdict::Serve
    };
    assert_found(&verify(Arc::new(hook)), "byte 1000 differs from the written data");
}

#[test]
fn a_write_that_was_never_done_is_found() {
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            redirect(args, FAR);
        }
        Verdict::Serve
    };
    assert_found(&verify(Arc::new(hook)), "lost write");
}

#[test]
fn stale_content_is_found() {
    let writes = Mutex::new(0);
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            let mut writes = writes.lock().unwrap();
            *writes += 1;
            if *writes == 4 {
                redirect(args, FAR);
            }
        }
        Verdict::Serve
    };
    assert_found(
        &verify(Arc::new(hook)),
        "stale: it contains write 3, but the last acknowledged write is write 4",
    );
}

#[test]
fn content_of_another_block_is_found() {
    let hook = |procedure, args: &mut Vec<u8>| {
        if procedure == READ && offset(args) == VICTIM {
            redirect(args, 9 * BLOCK);
        }
        Verdict::Serve
    };
    assert_found(
        &verify(Arc::new(hook)),
        &format!("misplaced: it contains the block of file.00000 at {}", 9 * BLOCK),
    );
}

#[test]
fn a_torn_write_is_found() {
    let earlier = Mutex::new(BTreeMap::new());
    let hook = move |procedure, args: &mut Vec<u8>| {
        if procedure == WRITE && offset(args) == VICTIM {
            let mut earlier = earlier.lock().unwrap();
            let data = offset_at(args) + 20;
            let whole = args[data..].to_vec();
            let writes = earlier.len();
            if let Some(last) = earlier.insert(writes, whole).or_else(|| earlier.get(&2).cloned())
                && writes == 3
            {
                args[data + 2048..].copy_from_slice(&last[2048..]);
            }
        }
        Verdict::Serve
    };
    assert_found(&verify(Arc::new(hook)), "on it contains write 3");
}

#[test]
fn a_sample_checks_as_many_blocks_as_asked_for() {
    let server = Responder::start();
    let workload = Workload {
        verify: Some(VerifyScope::Sample(50)),
        jobs: 4,
        files: 2,
        ..workload(Pattern::Random, 30, 3000)
    };
    let prepared = prepare(&server.target(), &workload).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    let verify = result.verify.unwrap();
    assert_eq!((verify.checked, verify.mismatches), (50, 0), "{:?}", verify.details);
}
