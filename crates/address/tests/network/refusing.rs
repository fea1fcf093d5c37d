//! Refusals in words, and a server that sends nonsense, which loses its addresses.

use crate::bed::{
    ADDRESSES, Gateway, address_of, alone, has, ip, machines, place, until_in, wait_for,
};
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;
use weir_address::{Interface, Place, Report, Request};

const LEASE: Duration = Duration::from_secs(50);

#[test]
fn requests_that_cannot_be_carried_out_are_refused_in_words() {
    alone("refusing::refused");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn refused() {
    machines();
    let mut gateway = Gateway::start("one");
    let until = until_in(LEASE);
    let mut refusal = |request| gateway.ask(request).unwrap_err();

    let words = refusal(Request::Hold { place: place("10.80.0.1"), until });
    assert_eq!(words, "10.80.0.1 is configured on this machine already");
    let absent = Interface::parse("eth7").unwrap();
    let elsewhere = Place::new(address_of("10.80.0.100"), 32, absent).unwrap();
    let words = refusal(Request::Hold { place: elsewhere, until });
    assert!(words.contains("eth7"), "{words}");
    let words =
        refusal(Request::Hold { place: place("10.80.0.100"), until: until_in(Duration::ZERO) });
    assert_eq!(words, "the lease has ended already");
    let words = refusal(Request::Renew { until: until_in(2 * LEASE) });
    assert_eq!(words, "a lease ends at most 60 s from now");
    let local = SocketAddr::new(address_of("10.80.0.100"), 2049);
    let words = refusal(Request::Tickle { local, clients: vec![] });
    assert_eq!(words, "10.80.0.100 is not held");
    assert!(has("one", "10.80.0.1") && !has("one", "10.80.0.100"));

    // A leftover with a lifetime, as of a helper that was killed, is taken over.
    ip("-n one addr add 10.80.0.100/24 dev eth0 valid_lft 40 preferred_lft 0");
    gateway.hold("10.80.0.100", until);
    assert!(ip("-n one -o addr show").contains(" 10.80.0.100/32"));
    assert!(!ip("-n one -o addr show").contains(" 10.80.0.100/24"));
}

#[test]
fn a_machine_has_one_helper() {
    alone("refusing::second");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn second() {
    machines();
    let mut first = Gateway::start("one");
    first.hold(ADDRESSES[0], until_in(LEASE));
    let mut second = Gateway::spawn("one", None);
    second.ends();
    first.ask(Request::Renew { until: until_in(LEASE) }).unwrap();
    assert!(has("one", ADDRESSES[0]));
    drop(first);
    let mut third = Gateway::start("one");
    third.hold(ADDRESSES[0], until_in(LEASE));
}

#[test]
fn a_link_that_carries_nonsense_ends_with_all_addresses() {
    alone("refusing::nonsense");
}

#[test]
#[ignore = "run in namespaces of its own by the test above"]
fn nonsense() {
    machines();
    for bytes in [&[0xff; 100][..], &[0, 0, 0, 6, 9, 1, 0, 0, 0, 1]] {
        let mut gateway = Gateway::start("one");
        gateway.hold(ADDRESSES[0], until_in(LEASE));
        // A message that is no request is refused, and the link goes on.
        let mut link = gateway.link.stream();
        link.write_all(&[0, 0, 0, 6, 1, 77, 0, 0, 0, 5]).unwrap();
        let Report::Refused { number: 5, words } = gateway.told() else { panic!() };
        assert_eq!(words, "there is no request of kind 77");
        assert!(has("one", ADDRESSES[0]));
        let mut link = gateway.link.stream();
        link.write_all(bytes).unwrap();
        let Report::Refused { number: 0, .. } = gateway.told() else { panic!() };
        gateway.ends();
        wait_for("its removal", || !has("one", ADDRESSES[0]));
    }
}
