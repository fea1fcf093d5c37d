//! The end of a life: its addresses go, then others hear of it; and what a helper says meanwhile.

use crate::bed::{Bed, Other, Server, WAIT, alone, has_address, wait_for};
use crate::server::MACHINE;
use rustix::process::Signal;
use std::time::Duration;
use weir_cluster::{GatewayId, Life};

/// Long enough for an answer that would come.
const SILENCE: Duration = Duration::from_secs(3);

fn life(number: u32) -> Life {
    Life { gateway: GatewayId(1), number }
}

/// Starts a server that holds the address.
fn holding(bed: &Bed, number: u32, others: &[&Other]) -> Server {
    let mut server = bed.server(number, "announce", others);
    assert_eq!(server.says(), "announced");
    assert_eq!(server.ask("hold"), "done");
    assert!(has_address());
    server
}

#[test]
fn when_a_server_is_killed_its_addresses_go_and_others_hear_of_it() {
    alone("lives::killed");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn killed() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let (mut two, mut three) = (Other::new(&bed, "two"), Other::new(&bed, "three"));
    let mut server = holding(&bed, 1, &[&two, &three]);
    let (word, noted) = two.asks(WAIT).unwrap();
    assert_eq!((word.machine, word.life, word.runs, noted), (MACHINE, life(1), true, false));
    server.process.kill();
    for other in [&two, &three] {
        let word = other.hears();
        assert!(!has_address(), "it said so too early");
        assert_eq!((word.machine, word.life, word.runs), (MACHINE, life(1), false));
    }
    let (word, _) = three.asks(WAIT).unwrap();
    assert_eq!((word.life, word.runs), (life(1), false));
    // The next life.
    let mut next = holding(&bed, 2, &[&two, &three]);
    let (word, _) = two.asks(WAIT).unwrap();
    assert_eq!((word.life, word.runs), (life(2), true));
    assert_eq!(next.ask("release"), "done");
    assert!(!has_address());
    next.process.kill();
    let word = loop {
        // Words of the first life may be under way still.
        let word = three.hears();
        if word.life == life(2) {
            break word;
        }
    };
    assert!(!word.runs);
}

#[test]
fn nothing_is_said_before_the_hook_has_removed_the_address() {
    alone("lives::ordered");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn ordered() {
    let bed = Bed::new();
    let (_helper, removed) = bed.helper_with_slow_hook();
    let mut two = Other::new(&bed, "two");
    let mut server = holding(&bed, 1, &[&two]);
    assert!(two.asks(WAIT).unwrap().0.runs);
    server.process.kill();
    loop {
        // Questions are answered meanwhile.
        let (word, _) = two.asks(WAIT).unwrap();
        if !word.runs {
            break;
        }
    }
    assert!(removed.exists() && !has_address());
    assert!(!two.hears().runs);
}

#[test]
fn a_server_that_is_stopped_runs() {
    alone("lives::stopped");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn stopped() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let mut server = holding(&bed, 1, &[&two]);
    server.process.signal(Signal::STOP);
    for _ in 0..3 {
        let (word, _) = two.asks(WAIT).unwrap();
        assert_eq!((word.life, word.runs), (life(1), true));
    }
    // Another process waits for its end.
    let mut next = bed.server(2, "announce", &[&two]);
    let (word, _) = two.asks(WAIT).unwrap();
    assert_eq!((word.life, word.runs), (life(1), true));
    assert!(has_address());
    server.process.signal(Signal::CONT);
    assert_eq!(server.ask("renew"), "done");
    server.process.kill();
    assert_eq!(next.says(), "announced");
    assert!(!has_address());
    let (word, _) = two.asks(WAIT).unwrap();
    assert_eq!((word.life, word.runs), (life(2), true));
}

#[test]
fn a_helper_that_was_restarted_says_nothing_of_the_life_before() {
    alone("lives::restarted");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn restarted() {
    let bed = Bed::new();
    let mut helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let mut server = holding(&bed, 1, &[&two]);
    assert!(two.asks(WAIT).is_some());
    helper.kill();
    assert_eq!(server.ask("lost"), "lost");
    let _helper = bed.helper();
    assert_eq!(server.ask("attach"), "unknown");
    assert_eq!(server.ask("hold"), "done");
    assert!(has_address());
    let unknown = "the helper of this machine was started after this life of the gateway";
    assert_eq!(server.ask("note 4"), unknown);
    assert_eq!(two.asks(SILENCE), None);
    server.process.kill();
    wait_for("its removal", || !has_address());
    assert_eq!(two.asks(SILENCE), None);
    // It knows the next life.
    let _next = holding(&bed, 2, &[&two]);
    let (word, _) = two.asks(WAIT).unwrap();
    assert_eq!((word.life, word.runs), (life(2), true));
}

#[test]
fn a_helper_that_is_terminated_removes_the_addresses_and_says_nothing() {
    alone("lives::terminated");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn terminated() {
    let bed = Bed::new();
    let mut helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let mut server = holding(&bed, 1, &[&two]);
    helper.signal(Signal::TERM);
    assert!(helper.0.wait().unwrap().success());
    assert!(!has_address());
    assert!(!bed.socket().exists());
    assert_eq!(server.ask("lost"), "lost");
    assert_eq!(two.asks(SILENCE), None);
}

#[test]
fn a_note_is_told_with_each_answer_and_outlives_its_author() {
    alone("lives::noted");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn noted() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let mut two = Other::new(&bed, "two");
    let mut server = holding(&bed, 1, &[&two]);
    assert_eq!(server.ask("note 1"), "done");
    assert!(two.asks(WAIT).unwrap().1);
    // The link may break; the life is the same.
    assert_eq!(server.ask("attach"), "known");
    assert!(!has_address(), "it went with the link");
    assert_eq!(server.ask("hold"), "done");
    assert!(two.asks(WAIT).unwrap().1);
    server.process.kill();
    assert!(!two.hears().runs);
    let mut next = holding(&bed, 2, &[&two]);
    let (word, noted) = two.asks(WAIT).unwrap();
    assert!(word.life == life(2) && noted, "the change may happen after its author's end");
    assert_eq!(next.ask("unnote 1"), "done");
    assert!(!two.asks(WAIT).unwrap().1);
}

#[test]
fn lives_count_upwards() {
    alone("lives::counted");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn counted() {
    let bed = Bed::new();
    let _helper = bed.helper();
    let mut first = bed.server(5, "announce", &[]);
    assert_eq!(first.says(), "announced");
    first.process.kill();
    let mut second = bed.server(5, "announce", &[]);
    let words = second.says();
    assert!(words.contains("life 5 of the same local state was there before"), "{words}");
}
