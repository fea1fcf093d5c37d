//! Scenarios: faults of gateways, links and etcd, and their outcomes.

use crate::bed::{Bed, GATEWAYS};
use crate::etcd::Signal;
use std::time::Duration;
use weir_cluster::{GatewayId, Version};
use weir_gateway::now;

/// Runs a scenario as often as the environment says, each time on a bed of its own.
fn times(scenario: impl Fn(&mut Bed)) {
    let times = std::env::var("WEIR_GATEWAY_TIMES").ok().and_then(|times| times.parse().ok());
    for _ in 0..times.unwrap_or(1) {
        let mut bed = Bed::start();
        scenario(&mut bed);
        bed.check();
    }
}

#[test]
fn a_killed_gateway_is_replaced_and_comes_back() {
    times(|bed| {
        let life = bed.life(2);
        bed.kill(2);
        bed.until_all_are_served(&[1, 3]);
        bed.run(2);
        bed.until("the next life is a member", |bed| {
            bed.view().attached.get(&GatewayId(2)) == Some(&(life.1 + 1))
        });
        bed.tell(2, "move 1 2");
        bed.until("a group is served there", |bed| {
            bed.notes().last_reply(1).is_some_and(|(_, life)| life.0 == 2)
        });
    });
}

#[test]
fn a_stopped_gateway_replies_no_more_when_it_goes_on() {
    times(|bed| {
        let life = bed.life(2);
        bed.signal(2, "-STOP");
        bed.until_all_are_served(&[1, 3]);
        bed.let_pass(Duration::from_secs(4));
        let taken = now().0;
        bed.signal(2, "-CONT");
        bed.wait_for_end(2);
        let notes = bed.notes();
        let end = notes.end(life).unwrap();
        assert!(end.contains("taken for dead") || end.contains("Ceph refuses"), "{end}");
        let replied = |group| notes.last_reply(group).unwrap().1 == life;
        assert!(!(1..=crate::bed::GROUPS).any(replied), "after {taken}");
        bed.run(2);
        bed.until_all_are_served(&GATEWAYS);
    });
}

#[test]
fn all_serve_on_without_etcd() {
    times(|bed| {
        let lives = GATEWAYS.map(|gateway| bed.life(gateway));
        let from = now().0;
        bed.etcd.signal_all(Signal::Stop);
        bed.let_pass(Duration::from_secs(20));
        bed.until_all_are_served(&GATEWAYS);
        bed.etcd.signal_all(Signal::Continue);
        bed.etcd.wait_until_healthy();
        bed.let_pass(Duration::from_secs(8));
        bed.until_all_are_served(&GATEWAYS);
        assert_eq!(GATEWAYS.map(|gateway| bed.life(gateway)), lives);
        assert!(!bed.notes().has_lapsed(&GATEWAYS, from), "a gateway had no right for a while");
    });
}

#[test]
fn a_gateway_killed_without_etcd_is_replaced_when_etcd_is_back() {
    times(|bed| {
        bed.etcd.signal_all(Signal::Stop);
        bed.let_pass(Duration::from_secs(5));
        let from = now().0;
        bed.kill(2);
        bed.let_pass(Duration::from_secs(6));
        let notes = bed.notes();
        assert!(!notes.has_lapsed(&[1, 3], from), "the word of its helper is enough");
        let died = now().0;
        bed.etcd.signal_all(Signal::Continue);
        bed.until_all_are_served(&[1, 3]);
        let takers = bed.notes();
        let adopted = |life| {
            let notes = takers.of(life).iter();
            notes.clone().any(|note| {
                matches!(note.what, crate::process::What::Adopted(_, Some((2, _))))
                    && note.at < died
            })
        };
        assert!(!takers.lives().any(adopted), "nothing is taken over without etcd");
    });
}

#[test]
fn cut_links_alone_change_nothing() {
    times(|bed| {
        let lives = GATEWAYS.map(|gateway| bed.life(gateway));
        let from = now().0;
        bed.cut(2, true);
        bed.let_pass(Duration::from_secs(6));
        bed.cut(2, false);
        bed.until_all_are_served(&GATEWAYS);
        assert_eq!(GATEWAYS.map(|gateway| bed.life(gateway)), lives);
        assert!(!bed.notes().has_lapsed(&GATEWAYS, from), "a gateway had no right for a while");
    });
}

#[test]
fn a_gateway_cut_from_all_others_replies_no_more_without_etcd() {
    times(|bed| {
        bed.cut(2, true);
        bed.etcd.signal_all(Signal::Stop);
        let from = now().0;
        bed.until("nobody has a right", |bed| {
            let notes = bed.notes();
            GATEWAYS.iter().all(|gateway| notes.has_lapsed(&[*gateway], from))
        });
        bed.etcd.signal_all(Signal::Continue);
        bed.let_pass(Duration::from_secs(2));
        bed.cut(2, false);
        for gateway in GATEWAYS {
            // A life that was condemned meanwhile has ended.
            if bed.has_ended(gateway) {
                bed.wait_for_end(gateway);
                bed.run(gateway);
            }
        }
        bed.until_all_are_served(&GATEWAYS);
    });
}

#[test]
fn a_drained_gateway_hands_its_groups_over_before_it_ends() {
    times(|bed| {
        let life = bed.life(2);
        let from = now().0;
        bed.tell(2, "drain");
        bed.wait_for_end(2);
        let notes = bed.notes();
        assert_eq!(notes.end(life), Some("drained: it was asked to end"));
        assert!(!notes.has_lapsed(&GATEWAYS, from));
        let taken = |life| {
            let adopted = notes.of(life).iter().map(|note| &note.what);
            adopted.clone().any(|what| matches!(what, crate::process::What::Adopted(_, Some(_))))
        };
        assert!(!notes.lives().any(taken), "all groups were handed over");
        bed.until_all_are_served(&[1, 3]);
    });
}

#[test]
fn a_gateway_that_ends_releases_its_lease() {
    times(|bed| {
        let life = bed.life(2);
        bed.tell(2, "end");
        bed.wait_for_end(2);
        assert_eq!(bed.notes().end(life), Some("it was asked to end"));
        assert!(!bed.view().attached.contains_key(&GatewayId(2)));
        bed.until_all_are_served(&[1, 3]);
    });
}

#[test]
fn the_leader_of_etcd_is_killed() {
    times(|bed| {
        let lives = GATEWAYS.map(|gateway| bed.life(gateway));
        let from = now().0;
        let leader = bed.etcd.leader();
        bed.etcd.kill(leader);
        bed.let_pass(Duration::from_secs(6));
        bed.etcd.run(leader);
        bed.etcd.wait_until_healthy();
        bed.until_all_are_served(&GATEWAYS);
        assert_eq!(GATEWAYS.map(|gateway| bed.life(gateway)), lives);
        assert!(!bed.notes().has_lapsed(&GATEWAYS, from), "a gateway had no right for a while");
    });
}

#[test]
fn the_leader_of_etcd_stops_and_goes_on() {
    times(|bed| {
        let lives = GATEWAYS.map(|gateway| bed.life(gateway));
        let from = now().0;
        let leader = bed.etcd.leader();
        bed.etcd.signal(leader, Signal::Stop);
        bed.let_pass(Duration::from_secs(8));
        bed.until_all_are_served(&GATEWAYS);
        assert!(!bed.notes().has_lapsed(&GATEWAYS, from), "a gateway had no right for a while");
        bed.etcd.signal(leader, Signal::Continue);
        bed.let_pass(Duration::from_secs(8));
        bed.until_all_are_served(&GATEWAYS);
        assert_eq!(GATEWAYS.map(|gateway| bed.life(gateway)), lives);
    });
}

/// Rows of the first version, as etcd had them.
const LANDED: &str = include_str!("../../../etcd/tests/fixtures/records-of-version-1.txt");

#[test]
fn a_row_of_a_newer_version_ends_the_life_with_words() {
    times(|bed| {
        let life = bed.life(2);
        let (row, value) = LANDED
            .lines()
            .filter_map(|line| line.strip_prefix("/weir/demo/cluster/")?.split_once(' '))
            .find(|(row, _)| row.starts_with("group/"))
            .unwrap();
        let newer = format!("\"version\":{},\"more\":1,", Version::CURRENT.0 + 1);
        let newer = value.replacen("\"version\":1,", &newer, 1);
        assert_ne!(newer, value);
        bed.etcd.control(&["put", &format!("/weir/test/cluster/{row}"), &newer]);
        GATEWAYS.into_iter().for_each(|gateway| bed.wait_for_end(gateway));
        let notes = bed.notes();
        let end = notes.end(life).unwrap();
        assert!(end.contains("install a newer version"), "{end}");
    });
}
