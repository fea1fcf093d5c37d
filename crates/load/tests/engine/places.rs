//! Tests of the places and sizes of requests, as a server sees them, and on a path.

use crate::responder::{Responder, Verdict, count, offset};
use crate::{COMMIT, READ, Site, WRITE, workload};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use weir_load::workload::{FileOrder, Positions, Stability, Visit, Zone};
use weir_load::{
    Control, Draw, Layout, Length, Operation, Pattern, Region, SizeShare, Starts, Workload, prepare,
};

const BLOCK: u64 = 4096;

/// Offset and length of every READ and WRITE, in the order of arrival.
type Seen = Arc<Mutex<Vec<(u32, u64, u32)>>>;

fn observed() -> (Responder, Seen) {
    let seen = Seen::default();
    let notes = Arc::clone(&seen);
    let server = Responder::with_hook(Arc::new(move |procedure, args| {
        if procedure == READ || procedure == WRITE {
            notes.lock().unwrap().push((procedure, offset(args), count(args)));
        } else if procedure == COMMIT {
            notes.lock().unwrap().push((procedure, 0, 0));
        }
        Verdict::Serve
    }));
    (server, seen)
}

/// The requests of `load` as a server sees them.
fn seen(load: &Workload) -> Vec<(u32, u64, u32)> {
    let (server, seen) = observed();
    let result = prepare(&server.target(), load).unwrap().run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?}", result.errors);
    assert_eq!(server.names(), Vec::<String>::new());
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let data = seen.iter().filter(|(procedure, ..)| *procedure != COMMIT);
    assert_eq!(data.map(|(_, _, len)| u64::from(*len)).sum::<u64>(), result.total.bytes);
    seen
}

fn once() -> Length {
    Length::Bytes { per_job: 0, at_most_s: None }
}

fn load(pattern: Pattern, read_percent: u8) -> Workload {
    Workload { layout: Layout::Sparse, ..workload(pattern, read_percent, 1) }
}

#[test]
fn a_file_is_written_once_to_its_very_end() {
    let load = Workload {
        file_bytes: 10 * BLOCK + 100,
        length: once(),
        depth: 1,
        end_sync: true,
        ..load(Pattern::Sequential, 0)
    };
    let mut wanted: Vec<_> = (0..10).map(|block| (WRITE, block * BLOCK, 4096)).collect();
    wanted.push((WRITE, 10 * BLOCK, 100));
    wanted.push((COMMIT, 0, 0));
    assert_eq!(seen(&load), wanted);
    for site in Site::both() {
        let result = site.run(&load);
        assert_eq!((result.total.operations, result.total.bytes), (11, 10 * BLOCK + 100));
    }
}

#[test]
fn requests_stay_in_the_region_and_have_the_sizes_in_their_parts() {
    let sizes = [(2048, 50), (8192, 30), (16_384, 20)];
    let sizes: Vec<_> = sizes.map(|(bytes, percent)| SizeShare { bytes, percent }).to_vec();
    let load = Workload {
        region: Region { offset: 100_000, bytes: Some(200_000), job_increment: 0 },
        read_sizes: sizes.clone(),
        align_bytes: Some(512),
        length: Length::Operations(2000),
        ..load(Pattern::Random, 100)
    };
    let mut counts = BTreeMap::new();
    for (procedure, at, len) in seen(&load) {
        assert_eq!(procedure, READ);
        assert!(at >= 100_000 && at + u64::from(len) <= 300_000, "{at} {len}");
        assert_eq!((at - 100_000) % 512, 0);
        *counts.entry(len).or_insert(0_u32) += 1;
    }
    for share in sizes {
        let found = counts[&share.bytes];
        assert!(found.abs_diff(u32::from(share.percent) * 20) < 150, "{counts:?}");
    }
    for site in Site::both() {
        assert_eq!(site.run(&load).total.operations, 2000);
    }
}

#[test]
fn a_permuted_load_touches_every_block_once_in_a_pass() {
    let load = Workload { draw: Draw::Permuted, length: once(), ..load(Pattern::Random, 0) };
    let seen = seen(&load);
    let offsets: BTreeSet<_> = seen.iter().map(|(_, at, _)| *at).collect();
    assert_eq!((seen.len(), offsets.len()), (256, 256));
    assert!(seen.windows(2).any(|pair| pair[1].1 < pair[0].1), "not in order");
}

#[test]
fn a_skewed_load_wants_few_blocks_often() {
    let load = Workload {
        draw: Draw::Zipf { theta: 1.2 },
        length: Length::Operations(2000),
        ..load(Pattern::Random, 100)
    };
    let mut counts = BTreeMap::new();
    for (_, at, _) in seen(&load) {
        *counts.entry(at).or_insert(0) += 1;
    }
    let hottest = counts.values().max().copied().unwrap_or(0);
    assert!(hottest > 300, "{hottest} of 2000 on the block most wanted");
}

#[test]
fn bytes_are_left_out_in_both_directions() {
    // A file of 256 blocks.
    let load = |skip_bytes, operations| Workload {
        skip_bytes,
        depth: 1,
        length: Length::Operations(operations),
        ..load(Pattern::Sequential, 100)
    };
    let blocks =
        |load: &Workload| -> Vec<u64> { seen(load).iter().map(|(_, at, _)| at / BLOCK).collect() };
    assert_eq!(blocks(&load(8192, 88))[84..], [252, 255, 0, 3]);
    assert_eq!(blocks(&load(-8192, 4)), [254, 253, 252, 251]);
    for site in Site::both() {
        assert_eq!(site.run(&load(-8192, 300)).total.operations, 300);
    }
}

#[test]
fn zones_visits_and_files_in_turn_reach_the_server() {
    let zone = |requests_percent, size_percent| Zone { requests_percent, size_percent };
    let zones = Workload {
        draw: Draw::Zoned { zones: vec![zone(90, 25.0), zone(10, 75.0)] },
        length: Length::Operations(1000),
        ..load(Pattern::Random, 100)
    };
    let first = seen(&zones).iter().filter(|(_, at, _)| *at < 64 * BLOCK).count();
    assert!((860..940).contains(&first), "{first}");
    let again = Workload {
        visit: Some(Visit { requests: 5, again: true }),
        length: Length::Operations(100),
        depth: 1,
        ..load(Pattern::Random, 0)
    };
    assert!(seen(&again).chunks(5).all(|five| five.iter().all(|one| *one == five[0])));
    let turn = Workload {
        file_order: FileOrder::InTurn,
        positions: Positions::ByDirection,
        files: 4,
        depth: 1,
        length: Length::Operations(400),
        ..load(Pattern::Sequential, 50)
    };
    let seen = seen(&turn);
    for direction in [READ, WRITE] {
        let offsets: Vec<_> =
            seen.iter().filter(|one| one.0 == direction).map(|one| one.1).collect();
        let wanted = (0..).map(|visit: u64| visit / 4 * BLOCK);
        assert!(offsets.iter().copied().eq(wanted.take(offsets.len())), "{offsets:?}");
    }
    for site in Site::both() {
        for load in [&zones, &again, &turn] {
            site.run(load);
        }
    }
}

#[test]
fn direct_writes_over_nfs_are_file_sync() {
    let stabilities = |load: &Workload| {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let notes = Arc::clone(&seen);
        let server = Responder::with_hook(Arc::new(move |procedure, args| {
            if procedure == WRITE {
                let at = crate::responder::offset_at(args) + 12;
                let stable = u32::from_be_bytes(args[at..at + 4].try_into().unwrap());
                notes.lock().unwrap().insert(stable);
            }
            Verdict::Serve
        }));
        let prepared = prepare(&server.target(), load).unwrap();
        let result = prepared.run(&Control::new(), |_| {}).unwrap();
        assert!(result.is_clean(), "{:?}", result.errors);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        (seen, result.workload.stability)
    };
    let length = Length::Operations(20);
    let cached = Workload { length, ..load(Pattern::Random, 0) };
    assert_eq!(stabilities(&cached), (BTreeSet::from([0]), Stability::Unstable));
    // FILE_SYNC is 2 (RFC 1813 3.3.7), and the results say what was asked for.
    let direct = Workload { direct: true, ..cached };
    assert_eq!(stabilities(&direct), (BTreeSet::from([2]), Stability::FileSync));
}

#[test]
fn interlocked_jobs_fill_a_file_together() {
    let load = Workload {
        jobs: 4,
        clients: 2,
        threads: 2,
        starts: Starts::Interlocked,
        length: once(),
        ..load(Pattern::Sequential, 0)
    };
    let seen = seen(&load);
    let offsets: BTreeSet<_> = seen.iter().map(|(_, at, _)| *at).collect();
    assert_eq!((seen.len(), offsets.len()), (256, 256));
    let alone = Workload { clients: 1, ..load };
    for site in Site::both() {
        assert_eq!(site.run(&alone).total.operations, 256);
    }
}

#[test]
fn a_fill_makes_a_file_that_a_later_load_finds_under_its_name() {
    let names = vec!["data.1".to_owned(), "data.2".to_owned()];
    let fill = Workload {
        files: 2,
        jobs: 2,
        names: names.clone(),
        length: once(),
        keep: true,
        ..load(Pattern::Sequential, 0)
    };
    let reads = Workload {
        layout: Layout::Existing,
        operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 100 },
        keep: false,
        ..fill.clone()
    };
    for site in Site::both() {
        assert_eq!(site.run(&fill).total.bytes, 2 << 20);
        assert_eq!(site.names_in(&["weir-bench"]), names);
        assert_eq!(site.run(&reads).total.bytes, 2 << 20);
        assert_eq!(site.names_in(&["weir-bench"]), names);
    }
}

#[test]
fn a_load_that_only_writes_makes_a_short_file_longer() {
    let short = Workload { keep: true, length: once(), ..load(Pattern::Sequential, 0) };
    let longer = Workload { file_bytes: 2 << 20, layout: Layout::Existing, ..short.clone() };
    let reads = Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 100 },
        length: Length::Operations(10),
        ..longer.clone()
    };
    for site in Site::both() {
        site.run(&short);
        let error = prepare(&site.target(), &reads).err().unwrap().to_string();
        assert!(error.contains("has 1048576 bytes, but 2097152 are required"), "{error}");
        site.run(&longer);
        site.run(&reads);
    }
}

#[test]
fn direct_requests_that_do_not_fit_a_sector_are_refused_with_a_reason() {
    let load = Workload { direct: true, block_bytes: 1000, ..load(Pattern::Random, 100) };
    let error = load.check().unwrap_err().to_string();
    assert!(error.contains("multiples of 512 bytes, and the block size is 1000"), "{error}");
}

#[test]
fn files_are_dropped_from_the_cache_and_read_all_the_same() {
    let load = Workload { invalidate: true, ..workload(Pattern::Sequential, 100, 500) };
    for site in Site::both() {
        assert_eq!(site.run(&load).total.operations, 500);
    }
}
