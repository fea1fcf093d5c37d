//! Equal random operations on three sides: the store in memory, the local store, and NFSv3 over TCP
//! to a server on a local store. Every answer is compared, and in the end all objects.
//!
//! A seed decides everything; one that fails is shrunk and says how to replay it:
//!
//! - `WEIR_MODEL_SEED` plays that seed alone;
//! - `WEIR_MODEL_SEEDS` and `WEIR_MODEL_OPERATIONS` set how many seeds, and operations of each;
//! - `WEIR_MODEL_FIRST` is the first of the seeds, so that a longer campaign takes others;
//! - `TMPDIR` decides on which file system.
#![cfg(test)]

mod answer;
mod cursor;
mod direct;
mod generate;
mod random;
mod rights;
mod run;
mod sides;
mod slots;
mod step;
mod usage;
mod wire;

use run::{Tally, run};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use step::Op;
use weir_nfs::v3::wire::Status;

const SEEDS: u64 = 100;
const OPERATIONS: u64 = 5000;

/// A number from the environment, decimal or hexadecimal.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

#[test]
fn random_operations_answer_alike_in_memory_on_disk_and_over_the_wire() {
    let seed = number("WEIR_MODEL_SEED");
    let first = seed.or_else(|| number("WEIR_MODEL_FIRST")).unwrap_or(0);
    let seeds = seed.map_or_else(|| number("WEIR_MODEL_SEEDS").unwrap_or(SEEDS), |_| 1);
    let operations = number("WEIR_MODEL_OPERATIONS").unwrap_or(OPERATIONS);
    let began = std::time::Instant::now();
    let (next, total) = (AtomicU64::new(first), Mutex::new(Tally::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        break;
                    }
                    add(&total, play(seed, operations));
                }
            });
        }
    });
    let tally = total.into_inner().unwrap();
    let steps: u64 = tally.values().sum();
    let seconds = began.elapsed().as_secs_f64();
    if (first, seeds, operations) == (0, SEEDS, OPERATIONS) {
        assert_reached(&tally);
    }
    eprintln!(
        "{seeds} seeds, {steps} operations each in memory, on the local store and over the wire, \
         all answered alike, in {seconds:.0} s"
    );
    for ((operation, status), count) in &tally {
        eprintln!("  {operation:<9} {:?} {count}", Status(*status));
    }
}

/// Each operation has succeeded, and every reason to refuse one that there is was met.
fn assert_reached(tally: &Tally) {
    let operations: BTreeSet<_> = tally.keys().map(|(operation, _)| *operation).collect();
    let succeeded = operations.iter().filter(|operation| tally.contains_key(&(**operation, 0)));
    assert_eq!((operations.len(), succeeded.count()), (Op::KINDS, Op::KINDS));
    for status in [
        Status::PERM,
        Status::NOENT,
        Status::ACCES,
        Status::EXIST,
        Status::NOTDIR,
        Status::ISDIR,
        Status::INVAL,
        Status::FBIG,
        Status::NAMETOOLONG,
        Status::NOTEMPTY,
        Status::DQUOT,
        Status::STALE,
        Status::NOT_SYNC,
        Status::NOTSUPP,
        Status::TOOSMALL,
    ] {
        assert!(tally.keys().any(|key| key.1 == status.0), "{status:?} was never met");
    }
}

fn play(seed: u64, operations: u64) -> Tally {
    let steps = usize::try_from(operations).unwrap();
    match catch_unwind(AssertUnwindSafe(|| run(seed, steps))) {
        Ok(Ok(tally)) => tally,
        Ok(Err(report)) => panic!("{report}"),
        Err(panic) => {
            eprintln!("seed {seed:#x}: WEIR_MODEL_SEED={seed:#x} replays it");
            resume_unwind(panic)
        }
    }
}

fn add(total: &Mutex<Tally>, tally: Tally) {
    let mut total = total.lock().unwrap();
    for (key, count) in tally {
        *total.entry(key).or_default() += count;
    }
}
