//! Loads on a server that behaves.

use crate::responder::Responder;
use crate::workload;
use std::time::{Duration, Instant};
use weir_load::{
    Control, Layout, Length, Operation, Pattern, Rate, RunResult, Stability, Think, VerifyScope,
    Workload, prepare,
};

fn run(server: &Responder, workload: &Workload) -> RunResult {
    let prepared = prepare(&server.target(), workload).unwrap();
    prepared.run(&Control::new(), |_| {}).unwrap()
}

#[test]
fn a_counted_run_does_exactly_so_many_operations_and_leaves_nothing() {
    let server = Responder::start();
    let workload = Workload {
        jobs: 5,
        clients: 5,
        files: 3,
        threads: 2,
        ..workload(Pattern::Random, 50, 5003)
    };
    let result = run(&server, &workload);
    assert_eq!(result.total.operations, 5003);
    assert_eq!(result.total.bytes, 5003 * 4096);
    let by = &result.by_operation;
    assert_eq!(by["read"].operations + by["write"].operations, 5003);
    assert!(result.is_clean() && !result.interrupted, "{:?}", result.errors);
    assert_eq!(result.jobs.len(), 5);
    assert!((result.jobs.iter().map(|job| job.share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert_eq!(result.series_10ms.iter().map(|point| point.operations).sum::<u64>(), 5003);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn each_client_comes_from_its_own_address() {
    let server = Responder::start();
    let workload =
        Workload { jobs: 6, clients: 3, connections: 2, ..workload(Pattern::Random, 100, 600) };
    let result = run(&server, &workload);
    for address in ["127.0.1.1", "127.0.1.2", "127.0.1.3"] {
        assert!(server.peers().contains(&address.parse().unwrap()), "{:?}", server.peers());
    }
    assert_eq!(result.connections.opened, 6);
    assert_eq!(result.jobs[4].client, "127.0.1.2");
}

#[test]
fn every_connection_is_used_by_jobs_that_are_fewer() {
    for (jobs, depth, connections, wanted) in [
        (1, 1, 4, vec![50, 50, 50, 50]),
        // The first job has three connections.
        (2, 1, 5, vec![33, 33, 34, 50, 50]),
        (1, 1, 1, vec![200]),
    ] {
        let server = Responder::start();
        let load = Workload { jobs, depth, connections, ..workload(Pattern::Random, 100, 200) };
        let result = run(&server, &load);
        assert!(result.is_clean(), "{:?}", result.errors);
        assert_eq!(server.reads(), wanted, "{jobs} × {depth} on {connections}");
    }
    let server = Responder::start();
    let load = Workload { depth: 3, connections: 4, ..workload(Pattern::Random, 100, 400) };
    assert_eq!(run(&server, &load).total.operations, 400);
    assert!(server.reads().iter().all(|reads| (97..=103).contains(reads)), "{:?}", server.reads());
}

#[test]
fn requests_that_go_round_keep_their_rate_their_pauses_and_what_belongs_together() {
    let base = Workload {
        depth: 2,
        connections: 5,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 0, 100)
    };
    for load in [
        Workload { rate: Rate::Operations(5000.0), ..base.clone() },
        Workload { think: Some(Think { us: 100, every: 3 }), ..base.clone() },
        Workload { client_delays_us: vec![100], ..base.clone() },
        Workload { operation: Operation::CreateRemove, verify: None, ..base },
    ] {
        let server = Responder::start();
        let result = run(&server, &load);
        assert!(result.is_clean() && !result.interrupted, "{:?}", result.errors);
        assert!((100..=102).contains(&result.total.operations), "{}", result.total.operations);
        assert_eq!(server.names(), Vec::<String>::new());
    }
}

#[test]
fn blocks_of_every_kind_of_size_go_both_ways() {
    for block_bytes in [1, 511, 4096, 65_536, 262_144, 1 << 20] {
        let server = Responder::start();
        let workload = Workload {
            block_bytes,
            stability: Stability::FileSync,
            commit_every: Some(10),
            depth: 8,
            ..workload(Pattern::Sequential, 50, 200)
        };
        let result = run(&server, &workload);
        assert!(result.is_clean(), "{block_bytes}: {:?}", result.errors);
        assert_eq!(result.total.operations, 200);
        let commits = result.by_operation["commit"].operations;
        assert_eq!(result.total.bytes, (200 - commits) * u64::from(block_bytes));
    }
}

#[test]
fn metadata_operations_are_counted_by_their_kind() {
    let cases = [
        (Operation::Null, "null"),
        (Operation::Getattr, "getattr"),
        (Operation::Access, "access"),
        (Operation::Lookup, "lookup"),
    ];
    for (operation, kind) in cases {
        let server = Responder::start();
        let workload = Workload { operation, files: 10, ..workload(Pattern::Random, 100, 500) };
        let result = run(&server, &workload);
        assert!(result.is_clean(), "{kind}: {:?}", result.errors);
        assert_eq!(result.by_operation[kind].operations, 500);
        assert_eq!(server.names(), Vec::<String>::new());
    }
}

#[test]
fn created_files_are_removed_again() {
    let server = Responder::start();
    let workload = Workload {
        operation: Operation::CreateRemove,
        jobs: 3,
        ..workload(Pattern::Random, 100, 301)
    };
    let result = run(&server, &workload);
    assert!(result.is_clean(), "{:?}", result.errors);
    let by = &result.by_operation;
    assert_eq!(by["create"].operations, by["remove"].operations);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn files_that_are_kept_can_be_used_again() {
    let server = Responder::start();
    let first = Workload { keep: true, ..workload(Pattern::Random, 0, 10) };
    run(&server, &first);
    assert_eq!(server.names(), ["weir-bench"]);
    let again = Workload { layout: Layout::Existing, ..workload(Pattern::Random, 100, 300) };
    assert!(run(&server, &again).is_clean());
    assert_eq!(server.names(), ["weir-bench"], "what a run did not make it does not remove");
    let larger = Workload { file_bytes: 2 << 20, ..again };
    let error = prepare(&server.target(), &larger).err().unwrap().to_string();
    assert!(error.contains("--keep"), "{error}");
}

#[test]
fn a_run_by_time_can_be_stopped_and_reports_what_it_has() {
    let server = Responder::start();
    let workload = Workload {
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        ..workload(Pattern::Random, 100, 0)
    };
    let control = Control::new();
    let hand = control.clone();
    let mut windows = 0;
    let prepared = prepare(&server.target(), &workload).unwrap();
    let result = prepared
        .run(&control, |window| {
            windows += 1;
            if window.operations > 0 {
                hand.mark("seen enough");
                hand.stop();
            }
        })
        .unwrap();
    assert!(windows > 0 && result.interrupted);
    assert!(result.total.operations > 0 && result.is_clean(), "{:?}", result.errors);
    assert_eq!(result.marks[0].label, "seen enough");
    assert!(result.marks[0].at_s <= result.measured.to_s + 1.0);
}

#[test]
fn several_loads_run_side_by_side() {
    let servers = [Responder::start(), Responder::start()];
    let handles: Vec<_> = servers
        .iter()
        .map(|server| {
            let prepared =
                prepare(&server.target(), &workload(Pattern::Random, 100, 2000)).unwrap();
            prepared.spawn(Control::new(), |_| {}).unwrap()
        })
        .collect();
    for handle in handles {
        assert_eq!(handle.wait().unwrap().total.operations, 2000);
    }
}

#[test]
fn loads_begin_no_sooner_than_the_start_that_they_share() {
    let servers = [Responder::start(), Responder::start()];
    let load = workload(Pattern::Random, 100, 10);
    let ready = servers.each_ref().map(|server| prepare(&server.target(), &load).unwrap());
    let start = Instant::now() + Duration::from_millis(500);
    let handles = ready.map(|ready| ready.spawn_from(start, Control::new(), |_| {}).unwrap());
    for handle in handles {
        let result = handle.wait().unwrap();
        assert!(Instant::now() >= start);
        assert_eq!(result.total.operations, 10);
    }
}

#[test]
fn a_result_survives_json() {
    let server = Responder::start();
    let result = run(&server, &workload(Pattern::Random, 50, 100));
    let json = serde_json::to_string(&result).unwrap();
    let back: RunResult = serde_json::from_str(&json).unwrap();
    assert_eq!((back.version, back.total.operations), (1, 100));
    assert_eq!(back.workload, result.workload);
}
