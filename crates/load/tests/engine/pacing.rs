//! Rates, pauses, delays and distances. No upper bounds on times: what is asserted holds on any
//! machine, because a clock can't run backwards.

use crate::responder::{Responder, Verdict};
use crate::{READ, Site, workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weir_load::engine::prepare_step;
use weir_load::workload::{Flow, LatencyTarget, MinRate};
use weir_load::{Control, Layout, Length, Pacing, Pattern, Rate, Think, Workload, prepare};

fn load(operations: u64) -> Workload {
    Workload { layout: Layout::Sparse, ..workload(Pattern::Random, 100, operations) }
}

#[test]
fn no_operation_of_a_limited_rate_leaves_before_it_is_due() {
    for pacing in [Pacing::Even, Pacing::Poisson] {
        let load = Workload { rate: Rate::Operations(1000.0), pacing, jobs: 4, ..load(200) };
        for site in Site::both() {
            let result = site.run(&load);
            assert_eq!(result.total.operations, 200);
            if pacing == Pacing::Even {
                assert!(result.measured.to_s >= 0.199, "{}", result.measured.to_s);
            }
        }
    }
}

#[test]
fn a_rate_in_bytes_counts_bytes() {
    let rate = Rate::Bytes(4096.0 * 1000.0);
    let load = Workload { rate, block_bytes: 8192, ..load(50) };
    for site in Site::both() {
        assert!(site.run(&load).measured.to_s >= 0.098);
    }
}

#[test]
fn a_stall_counts_for_every_operation_that_it_kept_back() {
    let reads = AtomicU32::new(0);
    let server = Responder::with_hook(Arc::new(move |procedure, _| {
        if procedure == READ && reads.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        Verdict::Serve
    }));
    // All are due within 200 ms, and none is answered before 300 ms.
    let load = Workload { rate: Rate::Operations(1000.0), depth: 1, ..load(200) };
    let result = prepare(&server.target(), &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    assert_eq!(result.total.operations, 200);
    let least = result.total.latency_ms.min;
    assert!(least >= 100.0, "an operation seems to have taken {least} ms");
}

#[test]
fn pauses_come_after_so_many_operations_and_cost_none() {
    let load = Workload { think: Some(Think { us: 10_000, every: 5 }), depth: 3, ..load(23) };
    for site in Site::both() {
        let result = site.run(&load);
        assert_eq!(result.total.operations, 23);
        assert!(result.measured.to_s >= 0.04, "four pauses");
    }
}

#[test]
fn a_load_may_begin_later_than_its_step() {
    let load = Workload { start_delay_s: 0.05, ..load(10) };
    for site in Site::both() {
        let result = site.run(&load);
        assert!((result.measured.from_s - 0.05).abs() < 1e-9);
        let first = result.series_10ms.iter().position(|point| point.operations > 0);
        assert!(first >= Some(5), "{first:?}");
    }
}

#[test]
fn distance_is_part_of_every_latency() {
    let near = Workload { jobs: 2, depth: 4, ..load(40) };
    let far = Workload { client_delays_us: vec![20_000], ..near };
    for site in Site::both() {
        let result = site.run(&far);
        assert_eq!(result.total.operations, 40);
        assert!(result.total.latency_ms.min >= 20.0, "{}", result.total.latency_ms.min);
    }
}

#[test]
fn what_waits_for_its_time_does_not_keep_a_stop_waiting() {
    let load = Workload {
        rate: Rate::Operations(0.001),
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        ..load(0)
    };
    for site in Site::both() {
        let control = Control::new();
        let hand = control.clone();
        let prepared = prepare(&site.target(), &load).unwrap();
        let result = prepared.run(&control, |_| hand.stop()).unwrap();
        assert!(result.interrupted && result.is_clean(), "{:?}", result.errors);
        assert_eq!(site.names(), Vec::<String>::new());
    }
}

#[test]
fn a_load_that_finds_its_latency_before_its_time_is_not_interrupted() {
    let target = LatencyTarget { us: 60_000_000, window_us: 1000, percent: 100.0, goes_on: false };
    let load = Workload {
        latency_target: Some(target),
        depth: 2,
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        ..load(0)
    };
    for site in Site::both() {
        let result = site.run(&load);
        assert!(!result.interrupted && result.is_clean(), "{:?}", result.errors);
        assert!(result.measured.to_s < 3600.0);
        assert!(result.jobs.iter().all(|job| job.kept_depth == Some(2)), "{:?}", result.jobs);
    }
}

#[test]
fn an_open_share_of_another_step_is_refused() {
    let rate = Rate::Share { of: "max".into(), percent: 80.0 };
    let error = Workload { rate, ..load(10) }.check().unwrap_err().to_string();
    assert!(error.contains("\"max\" is still open"), "{error}");
}

#[test]
fn loads_of_one_flow_keep_their_proportion() {
    let load = |name: &str, weight| Workload {
        name: name.to_owned(),
        names: vec![name.to_owned()],
        flow: Some(Flow { group: 1, weight, sleep_us: 0 }),
        depth: 1,
        length: Length::Operations(u64::from(weight) * 100),
        ..load(1)
    };
    let loads = [load("one", 1), load("four", 4)];
    for site in Site::both() {
        let control = Control::new();
        let mut step =
            prepare_step(&site.target().into(), &loads, &control, &mut |_, _| {}).unwrap();
        let record = step.run(std::time::Instant::now(), &control, |_| {}).unwrap();
        step.finish().unwrap();
        let results = record.loads.into_iter().map(weir_load::Record::result);
        let done: Vec<_> = results.map(|result| result.total.operations).collect();
        assert_eq!(done, [100, 400], "neither waits for ever");
    }
}

#[test]
fn a_load_below_its_minimum_ends_with_a_failure() {
    let load = Workload {
        rate: Rate::Operations(20.0),
        min_rate: Some(MinRate::Operations(1000.0)),
        depth: 1,
        ..load(100_000)
    };
    for site in Site::both() {
        let prepared = prepare(&site.target(), &load).unwrap();
        let result = prepared.run(&Control::new(), |_| {}).unwrap();
        let errors: Vec<_> = result.errors.iter().collect();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].0.contains("minimum of 1000 operations/s"), "{errors:?}");
    }
}
