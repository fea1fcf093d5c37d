//! Clocks that are told over slow links, clocks that run at another speed, and links that pass
//! nothing on any more.

use crate::crew::{apply, connected, counted, data, patience, serve, within};
use crate::relay::{Relay, Relayed};
use crate::responder::Responder;
use std::time::{Duration, Instant};
use weir_bench::cluster::{Clock, Coordinator, Farewell, Order, Patience, Report};
use weir_bench::suite::Workers;
use weir_load::target::Targets;
use weir_load::{Control, Workload};

const HOUR_NS: u64 = 3_600_000_000_000;

/// The first clock's time less the second's, in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "hours in nanoseconds are below 2^53")]
fn ahead_ms(first: Clock, second: Clock) -> f64 {
    let now = Instant::now();
    (i128::from(first.at_ns(now)) - i128::from(second.at_ns(now))) as f64 / 1e6
}

#[test]
fn over_slow_and_uneven_links_all_start_within_the_uncertainty_that_is_told() {
    let server = Responder::start();
    let own = Clock::ahead(7 * HOUR_NS);
    let ways_ms = [(60_u32, 2), (2, 60), (0, 0)];
    let links: Vec<Relayed> = ways_ms
        .iter()
        .map(|&(there, back)| {
            let (there, back) =
                (Duration::from_millis(there.into()), Duration::from_millis(back.into()));
            Relay { there, back, ..Relay::default() }.start()
        })
        .collect();
    let clocks = [0, 9, 2].map(|hours| Clock::ahead(hours * HOUR_NS));
    let (mut hands, mut workers) = (Vec::new(), Vec::new());
    for (number, (link, clock)) in links.iter().zip(clocks).enumerate() {
        hands.push(serve(&link.theirs, clock, patience()));
        workers.push(connected(&format!("w{number}"), &link.ours));
    }
    let mut coordinator = Coordinator::new(workers, own, patience()).unwrap();
    let targets = Targets::from(server.target());
    let loads = [counted(3, 30)];
    let applied =
        within(&Control::new(), |_| {}, |context| coordinator.apply(&targets, &loads, context))
            .unwrap();

    let mut starts = Vec::new();
    for (((link, clock), worker), (there, back)) in
        links.iter().zip(clocks).zip(&applied.workers).zip(ways_ms)
    {
        let error_ms = (worker.clock_offset_ms - ahead_ms(clock, own)).abs();
        let sure_ms = worker.clock_uncertainty_ms;
        assert!(error_ms <= sure_ms + 1e-3, "{}: off by {error_ms} ms", worker.name);
        let least_ms = f64::from(there + back) / 2.0;
        assert!(sure_ms >= least_ms, "{}: {sure_ms} ms of a round trip", worker.name);
        starts.push((clock.instant(link.start_ns()), sure_ms));
        let told = format!("the clock of worker {} is known to ", worker.name);
        let is_told = applied.notes.iter().any(|note| note.contains(&told));
        assert!(is_told || there + back == 0, "{:?}", applied.notes);
    }
    for (first, first_ms) in &starts {
        for (second, second_ms) in &starts {
            let apart_ms = first.saturating_duration_since(*second).as_secs_f64() * 1e3;
            assert!(apart_ms <= first_ms + second_ms + 1e-3, "{apart_ms} ms apart");
        }
    }
    let (total, _) = applied.record.results("x").unwrap();
    assert!(total.total.operations == 30 && total.is_clean(), "{:?}", total.errors);
}

#[test]
fn a_clock_that_runs_at_half_the_speed_is_told() {
    // Times between coordinator and worker are translated to those of a clock at half the speed.
    let half = Relay {
        order: |order| match order {
            Order::Start { step, at_ns } => Order::Start { step, at_ns: at_ns * 2 },
            other => other,
        },
        report: |report| match report {
            Report::Pong { sent_ns, received_ns, answered_ns } => {
                Report::Pong { sent_ns, received_ns: received_ns / 2, answered_ns: answered_ns / 2 }
            }
            other => other,
        },
        ..Relay::default()
    };
    let server = Responder::start();
    let (mut hands, mut workers) = (Vec::new(), Vec::new());
    for (name, relay) in [("right", Relay::default()), ("slow", half)] {
        let link = relay.start();
        hands.push(serve(&link.theirs, Clock::ahead(HOUR_NS), patience()));
        workers.push(connected(name, &link.ours));
    }
    let mut workers = Workers::new(server.target(), workers, patience()).unwrap();
    let applied = apply(&mut workers, &[counted(2, 20)], &Control::new(), |_| {}).unwrap();
    // Between the readings before and after the load lies the half second before the start.
    let moved = |name: &str| {
        let told = format!("the clock of worker {name} moved ");
        let ms = applied.notes.iter().find_map(|note| note.strip_prefix(&told)?.split(' ').next());
        ms.map(|ms| ms.parse::<u64>().unwrap())
    };
    assert!(moved("slow").unwrap() > 100, "{:?}", applied.notes);
    assert_eq!(moved("right"), None);
    let (total, _) = applied.record.results("x").unwrap();
    assert!(total.total.operations == 20 && !total.interrupted, "{:?}", total.errors);
}

#[test]
fn a_link_that_is_cut_in_mid_run_stops_the_worker_and_is_told_by_name() {
    let server = Responder::start();
    let brief = Patience { silence: Duration::from_secs(5), ..patience() };
    let links = [(); 2].map(|()| Relay::default().start());
    let (mut hands, mut workers) = (Vec::new(), Vec::new());
    for (name, link) in ["kept", "cut"].into_iter().zip(&links) {
        hands.push(serve(&link.theirs, Clock::new(), brief));
        workers.push(connected(name, &link.ours));
    }
    let mut workers = Workers::new(server.target(), workers, brief).unwrap();
    let control = Control::new();
    let (stop, mut windows) = (control.clone(), 0);
    let load = Workload { jobs: 2, clients: 2, files: 2, ..data() };
    let applied = apply(&mut workers, &[load], &control, |_| {
        windows += 1;
        match windows {
            10 => links[1].cut(),
            // The worker behind the cut does not hear of it.
            20 => stop.stop(),
            _ => {}
        }
    })
    .unwrap();
    let [kept, cut] = applied.workers.as_slice() else { panic!("{}", applied.workers.len()) };
    assert_eq!(kept.lost, None);
    let why = cut.lost.as_deref().unwrap();
    assert!(why.contains("s after the start: nothing was heard for"), "{why}");
    assert_eq!(applied.record.measured().0, kept.operations);
    assert!(applied.notes[0].contains("50.0 % of the load"), "{:?}", applied.notes);
    let (total, _) = applied.record.results("x").unwrap();
    assert!(total.interrupted && total.error_count() == 1, "{:?}", total.errors);
    drop(workers);
    let mut farewells = hands.into_iter().map(|hand| hand.thread.join().unwrap());
    assert_eq!(farewells.next(), Some(Farewell::Bye));
    assert!(matches!(farewells.next(), Some(Farewell::Lost(_))));
    // Each worker has removed its own files.
    assert_eq!(server.names(), Vec::<String>::new());
}
