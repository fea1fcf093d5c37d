//! Workers, and coordinators, that go away.

use crate::crew::{apply, connected, counted, crew, data, endless, halves, patience, worker};
use crate::responder::{Responder, Verdict};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_bench::cluster::{
    Assigned, Clock, Farewell, Identity, Kind, Order, Patience, Preparation, Report, receive, send,
    this_machine, welcome,
};
use weir_bench::suite::Workers;
use weir_load::{Control, Workload};

const ANY: [Kind; 3] = [Kind::Control, Kind::Prepare, Kind::Record];

#[test]
fn one_that_dies_in_mid_run_leaves_the_others_and_a_marked_result() {
    let server = Responder::start();
    let (mut workers, hands) = crew(server.target(), 8);
    let control = Control::new();
    let (hand, mut windows) = (control.clone(), 0);
    let applied = apply(&mut workers, &[endless(8)], &control, |_| {
        windows += 1;
        match windows {
            10 => hands[3].kill(),
            20 => hand.stop(),
            _ => {}
        }
    })
    .unwrap();
    let lost: Vec<_> = applied.workers.iter().filter(|worker| worker.lost.is_some()).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].name, "w3");
    let why = lost[0].lost.as_deref().unwrap();
    assert!(why.contains("s after the start: the connection"), "{why}");
    assert!(lost[0].operations > 0, "what it did until then was seen");
    let others = applied.workers.iter().filter(|worker| worker.lost.is_none());
    let sum: u64 = others.map(|worker| worker.operations).sum();
    assert_eq!(applied.record.measured().0, sum);
    assert!(applied.notes[0].contains("12.5 % of the load"), "{:?}", applied.notes);
    let (total, _) = applied.record.results("x").unwrap();
    assert!(total.interrupted && total.error_count() == 1, "{:?}", total.errors);

    // The next step goes to those that are left.
    let applied = apply(&mut workers, &[counted(8, 80)], &Control::new(), |_| {}).unwrap();
    assert_eq!(applied.workers.len(), 7);
    assert!(applied.notes[0].contains("1 were lost before this step"), "{:?}", applied.notes);
    assert!(!applied.record.results("x").unwrap().0.interrupted);
}

#[test]
fn one_that_is_told_to_end_gives_what_it_has() {
    let server = Responder::start();
    let (mut workers, hands) = crew(server.target(), 2);
    let control = Control::new();
    let (hand, mut windows) = (control.clone(), 0);
    let applied = apply(&mut workers, &[endless(2)], &control, |_| {
        windows += 1;
        match windows {
            5 => hands[0].end.stop(),
            15 => hand.stop(),
            _ => {}
        }
    })
    .unwrap();
    let sum: u64 = applied.workers.iter().map(|worker| worker.operations).sum();
    assert_eq!(applied.record.measured().0, sum);
    assert!(applied.workers[0].lost.as_deref().unwrap().contains("asked to stop"));
    assert!(applied.record.results("x").unwrap().0.interrupted);
    let farewells = hands.into_iter().map(|hand| hand.thread);
    drop(workers);
    let farewells: Vec<_> = farewells.map(|thread| thread.join().unwrap()).collect();
    assert_eq!(farewells, [Farewell::Told, Farewell::Bye]);
}

#[test]
fn when_all_are_lost_there_is_no_result() {
    let server = Responder::start();
    let (mut workers, hands) = crew(server.target(), 2);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {
        hands.iter().for_each(super::crew::Hand::kill);
    });
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("all workers were lost: worker w0"), "{error}");
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    assert!(outcome.err().unwrap().to_string().contains("lost before this step"));
}

/// A worker that answers every order with what `answer` says, and goes when it says nothing.
fn false_worker(answer: impl Fn(&Order) -> Option<Report> + Send + 'static) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let identity = Identity { name: "false".to_owned(), machine: this_machine() };
        let mut halves = halves(&theirs);
        welcome(&mut halves, &identity).unwrap();
        while let Ok(order) = receive::<Order>(&mut halves.read, &ANY) {
            match answer(&order) {
                Some(report) => send(&mut halves.write, &report).unwrap(),
                None => return (halves.close)(),
            }
        }
    });
    ours
}

/// The answer of a worker whose clock stands still, which is odd but possible.
fn pong(order: &Order) -> Option<Report> {
    match *order {
        Order::Probe { sent_ns } => Some(Report::Pong { sent_ns, received_ns: 5, answered_ns: 5 }),
        Order::Alive => Some(Report::Alive),
        _ => None,
    }
}

fn with_false_worker(
    server: &Responder,
    patience: Patience,
    answer: impl Fn(&Order) -> Option<Report> + Send + 'static,
) -> (Workers, super::crew::Hand) {
    let (good, hand) = worker(0);
    let bad = connected("bad", &false_worker(answer));
    (Workers::new(server.target(), vec![good, bad], patience).unwrap(), hand)
}

#[test]
fn a_loss_in_preparation_ends_the_step_and_names_who_it_was() {
    let server = Responder::start();
    let (mut workers, _hand) = with_false_worker(&server, patience(), pong);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("worker bad could not begin: the connection"), "{error}");
    assert_eq!(server.names(), Vec::<String>::new());
    let applied = apply(&mut workers, &[counted(2, 20)], &Control::new(), |_| {}).unwrap();
    assert_eq!(applied.workers.len(), 1);
}

#[test]
fn silence_is_a_loss_too() {
    let server = Responder::start();
    let brief = Patience { silence: Duration::from_secs(3), ..patience() };
    let (mut workers, _hand) = with_false_worker(&server, brief, |order| match order {
        Order::Probe { .. } => pong(order),
        _ => {
            std::thread::sleep(Duration::from_secs(3600));
            None
        }
    });
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("worker bad") && error.contains("nothing was heard"), "{error}");
}

#[test]
fn nonsense_from_a_worker_is_told_as_such() {
    let impossible = |order: &Order| match order {
        Order::Probe { .. } => {
            Some(Report::Pong { sent_ns: u64::MAX, received_ns: 5, answered_ns: 0 })
        }
        _ => Some(Report::Alive),
    };
    let early = |order: &Order| match *order {
        Order::Prepare(_) => Some(Report::Attached { step: 1 }),
        _ => pong(order),
    };
    let server = Responder::start();
    let (mut workers, _hand) = with_false_worker(&server, patience(), impossible);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    assert!(outcome.err().unwrap().to_string().contains("clock readings are implausible"));
    let (mut workers, _hand) = with_false_worker(&server, patience(), early);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("reported Attached while Probed"), "{error}");
}

#[test]
fn what_nobody_asked_for_is_a_loss() {
    let ended = |order: &Order| match *order {
        Order::Prepare(_) => Some(Report::Prepared { step: 1 }),
        Order::Attach { .. } => Some(Report::Failed { step: 1, why: "no\u{1b}[2J".to_owned() }),
        _ => pong(order),
    };
    let server = Responder::start();
    let (mut workers, _hand) = with_false_worker(&server, patience(), ended);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("no\u{fffd}[2J"), "{error:?}");

    // Records are large, so that each has to be one that was waited for.
    let record = serde_json::json!({"record": {"step": 1, "load": 0, "record": record()}});
    let flood = move |order: &Order| match *order {
        Order::Prepare(_) => serde_json::from_value(record.clone()).ok(),
        _ => pong(order),
    };
    let (mut workers, _hand) = with_false_worker(&server, patience(), flood);
    let outcome = apply(&mut workers, &[endless(2)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("reported a load without a request"), "{error}");
}

#[test]
fn a_clock_told_too_often_is_a_loss() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let identity = Identity { name: "false".to_owned(), machine: this_machine() };
        let mut halves = halves(&theirs);
        welcome(&mut halves, &identity).unwrap();
        while let Ok(order) = receive::<Order>(&mut halves.read, &ANY) {
            for _ in 0..100 {
                // The other side hangs up before all of it is told.
                if let Some(report) = pong(&order) {
                    drop(send(&mut halves.write, &report));
                }
            }
        }
    });
    let server = Responder::start();
    let connected = vec![connected("bad", &ours)];
    let mut workers = Workers::new(server.target(), connected, patience()).unwrap();
    let outcome = apply(&mut workers, &[endless(1)], &Control::new(), |_| {});
    let error = outcome.err().unwrap().to_string();
    assert!(error.contains("sent its time without a request"), "{error}");
}

/// An empty record of a load with one job.
fn record() -> serde_json::Value {
    serde_json::json!({
        "target": "t", "workload": Workload::default(), "clients": [], "started_unix_s": 0.0,
        "measure_ns": 0, "planned_ns": 1, "ended_ns": 1,
        "notes": {"kinds": vec![(); 14], "jobs": [], "errors": {}, "last_done_ns": 0,
                  "series": {"fine": [], "coarse": [], "overflowed": false}},
        "connections": {"opened": 0, "lost": 0, "unanswered": 0},
        "generator": {"cpu_s": 0.0, "cpu_us_per_op": 0.0, "busiest_thread_percent": 0.0,
                      "saturated": false},
        "faults": {}, "broken": false, "marks": [], "verify": null
    })
}

#[test]
fn a_worker_whose_coordinator_vanishes_stops_and_clears_away() {
    for in_mid_run in [false, true] {
        let calls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&calls);
        let server = Responder::with_hook(Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            Verdict::Serve
        }));
        let (connected, hand) = worker(0);
        let mut halves = connected.halves;
        let loads = vec![Assigned { load: 0, workload: data() }];
        let preparation = Preparation { step: 1, targets: server.target().into(), loads };
        send(&mut halves.write, &Order::Prepare(Box::new(preparation))).unwrap();
        let mut until = |wanted: fn(&Report) -> bool| {
            while !wanted(&receive::<Report>(&mut halves.read, &ANY).unwrap()) {}
        };
        until(|report| matches!(report, Report::Prepared { step: 1 }));
        assert_eq!(server.names(), ["weir-bench"]);
        if in_mid_run {
            send(&mut halves.write, &Order::Attach { step: 1 }).unwrap();
            until(|report| matches!(report, Report::Attached { step: 1 }));
            send(&mut halves.write, &Order::Start { step: 1, at_ns: 0 }).unwrap();
            until(
                |report| matches!(report, Report::Window { window, .. } if window.operations > 0),
            );
        }
        (halves.close)();
        let farewell = hand.thread.join().unwrap();
        assert!(matches!(farewell, Farewell::Lost(_)), "{farewell:?}");
        assert_eq!(server.names(), Vec::<String>::new(), "{in_mid_run}");
        let after = calls.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(calls.load(Ordering::Relaxed), after, "nothing goes on");
    }
}

#[test]
fn orders_out_of_turn_are_refused() {
    let (connected, hand) = worker(0);
    let mut halves = connected.halves;
    send(&mut halves.write, &Order::Start { step: 9, at_ns: Clock::new().now_ns() }).unwrap();
    loop {
        match receive::<Report>(&mut halves.read, &ANY).unwrap() {
            Report::Alive => {}
            Report::Failed { step, why } => {
                assert_eq!(step, 9);
                break assert!(why.contains("unexpected order"), "{why}");
            }
            _ => panic!("it did something"),
        }
    }
    send(&mut halves.write, &Order::Bye).unwrap();
    assert_eq!(hand.thread.join().unwrap(), Farewell::Bye);
}
