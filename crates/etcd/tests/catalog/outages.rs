//! Members that are stopped and killed in the middle of changes, and rows that an operator damages.

use crate::members::{Etcd, Real};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, ClusterKey, ClusterPlace, Follower, IdempotencyKey,
    Known, LifeGuard, Minimums, Mode, create_cluster,
};

const CLUSTER: &str = "outages";
/// Time for what must come about on a busy machine.
const LONG: Duration = Duration::from_secs(120);

fn place(store: &Arc<Real>, gateway: &str) -> ClusterPlace {
    ClusterPlace {
        store: Arc::clone(store) as _,
        cluster: CLUSTER.to_owned(),
        gateway: gateway.to_owned(),
        life: LifeGuard::default(),
        key: ClusterKey::new([1; 32]),
    }
}

/// A gateway with a connection of its own.
fn open(etcd: &Etcd, base: &Path, gateway: &str) -> Catalog {
    let store = Arc::new(etcd.store(CLUSTER));
    Catalog::open_in_cluster(&base.join(gateway), Minimums::default(), place(&store, gateway))
        .unwrap()
}

fn request(gateway: u8, number: u64) -> IdempotencyKey {
    let mut key = [gateway; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    IdempotencyKey { key, request: [1; 32], at: 1000 }
}

fn level(catalog: &Catalog, name: &str, mode: Mode) -> Result<u64, CatalogError> {
    let made = catalog.create_level(name, BytesPerSecond::from_mib(1), mode)?;
    Ok(made.snapshot.generation)
}

/// Most changes of a gateway: of so many two gateways remember the requests.
const CHANGES_MAX: usize = 500;
/// Time between two changes, so that they last as long as the faults do.
const PAUSE: Duration = Duration::from_millis(50);

/// The outcome of a change, as its caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Made(u64),
    Doubtful,
    Refused,
}

/// Changes of one level by a gateway until it is told to stop: what the caller of each knows.
fn change(catalog: &Catalog, gateway: u8, stop: &AtomicBool) -> Vec<Told> {
    let mut told = Vec::new();
    while !stop.load(Ordering::Acquire) && told.len() < CHANGES_MAX {
        std::thread::sleep(PAUSE);
        let number = told.len() as u64;
        let (name, rate) = (format!("g{gateway}"), BytesPerSecond::from_mib(1 + number));
        told.push(match catalog.change_level(&name, rate, Mode::Once(request(gateway, number))) {
            Ok(made) => Told::Made(made.snapshot.generation),
            Err(error) if error.code() == "cluster_in_doubt" => Told::Doubtful,
            Err(error) => {
                let explained = ["cluster_unreachable", "cluster_overtaken"];
                assert!(explained.contains(&error.code()), "{error}");
                Told::Refused
            }
        });
    }
    told
}

/// The faults while gateways change the catalogue.
fn faults(etcd: &Etcd) {
    for round in 0..2 {
        let leader = etcd.leader();
        etcd.signal(leader, "STOP");
        // Another leads now.
        let next = (0..3).find(|member| *member != leader).unwrap();
        etcd.signal(leader, "CONT");
        let leader = etcd.leader();
        etcd.signal(leader, "KILL");
        etcd.leader();
        etcd.run(leader);
        etcd.leader();
        if round == 0 {
            // All of etcd is silent, and then gone.
            (0..3).for_each(|member| etcd.signal(member, "STOP"));
            (0..3).for_each(|member| etcd.signal(member, "CONT"));
            (0..3).for_each(|member| etcd.signal(member, "KILL"));
            (0..3).for_each(|member| etcd.run(member));
            etcd.leader();
        }
        etcd.signal(next, "STOP");
        etcd.leader();
        etcd.signal(next, "CONT");
    }
}

#[test]
fn no_change_is_lost_or_made_twice_while_members_stop_and_are_killed() {
    let (etcd, base) = (Etcd::start(), tempfile::tempdir().unwrap());
    create_cluster(&place(&Arc::new(etcd.store(CLUSTER)), "first")).unwrap();
    let gateways = [1, 2]
        .map(|number: u8| (number, Arc::new(open(&etcd, base.path(), &format!("g{number}")))));
    level(&gateways[0].1, "g1", Mode::Commit).unwrap();
    let first = level(&gateways[0].1, "g2", Mode::Commit).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let changing = gateways.clone().map(|(number, catalog)| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || (number, change(&catalog, number, &stop)))
    });
    faults(&etcd);
    stop.store(true, Ordering::Release);
    let told = changing.map(|thread| thread.join().unwrap());
    let fresh = open(&etcd, base.path(), "fresh");
    let mut generations = Vec::new();
    let mut made = 0;
    for (gateway, told) in told {
        for (number, told) in (0..).zip(told) {
            let is_there = fresh.recall(&request(gateway, number)).unwrap() != Known::Nothing;
            match told {
                Told::Made(generation) => {
                    assert!(is_there, "{number} of {gateway} was lost");
                    generations.push(generation);
                }
                Told::Refused => assert!(!is_there, "{number} of {gateway} was refused"),
                Told::Doubtful => {}
            }
            made += u64::from(is_there);
        }
    }
    assert!(generations.len() > 20, "{}", generations.len());
    let count = generations.len();
    generations.sort_unstable();
    generations.dedup();
    assert_eq!(generations.len(), count, "two changes with one generation");
    assert_eq!(fresh.snapshot().generation, first + made);
    for (_, catalog) in gateways {
        catalog.follow().unwrap();
        assert_eq!(catalog.snapshot(), fresh.snapshot());
    }
}

#[test]
fn without_a_quorum_changes_are_refused_and_a_gateway_goes_on_when_it_is_back() {
    let (etcd, base) = (Etcd::start(), tempfile::tempdir().unwrap());
    create_cluster(&place(&Arc::new(etcd.store(CLUSTER)), "first")).unwrap();
    let (a, b) = (open(&etcd, base.path(), "a"), open(&etcd, base.path(), "b"));
    level(&a, "before", Mode::Commit).unwrap();
    b.follow().unwrap();
    (0..2).for_each(|member| etcd.signal(member, "KILL"));
    assert_eq!(level(&a, "meanwhile", Mode::Commit).unwrap_err().code(), "cluster_unreachable");
    assert!(b.follow().is_err() && b.snapshot().level_named("before").is_some());
    (0..2).for_each(|member| etcd.run(member));
    etcd.leader();
    while let Err(error) = level(&a, "after", Mode::Commit) {
        assert_eq!(error.code(), "cluster_unreachable");
    }
    b.follow().unwrap();
    assert_eq!(a.snapshot(), b.snapshot());
    assert!(b.snapshot().level_named("meanwhile").is_none());
}

#[test]
fn gateways_follow_while_any_one_member_is_silent() {
    let (etcd, base) = (Etcd::start(), tempfile::tempdir().unwrap());
    create_cluster(&place(&Arc::new(etcd.store(CLUSTER)), "first")).unwrap();
    let follow = |name: &str| {
        let catalog = Arc::new(open(&etcd, base.path(), name));
        let tokens = Arc::new(catalog.tokens().unwrap());
        let follower = Follower::start(Arc::clone(&catalog), Arc::clone(&tokens), |_| {}).unwrap();
        (catalog, tokens, follower)
    };
    let (a, b) = (follow("a"), follow("b"));
    for member in [0, 1, 2, 0, 1, 2] {
        etcd.signal(member, "STOP");
        let others = ["a".to_owned(), "b".to_owned()];
        // Of two changes one may be made while another member is elected.
        for number in 0..2 {
            let name = format!("m{member}-{number}-{}", a.0.snapshot().generation);
            while let Err(error) = level(&a.0, &name, Mode::Commit) {
                let explained = ["cluster_unreachable", "cluster_in_doubt", "name_taken"];
                assert!(explained.contains(&error.code()), "{error}");
                if error.code() == "name_taken" {
                    break;
                }
            }
            let change = a.0.followed(&a.1);
            let lagging = loop {
                match a.0.lagging(&others, change, LONG) {
                    Err(error) => assert_eq!(error.code(), "cluster_unreachable"),
                    Ok(lagging) => break lagging,
                }
            };
            assert_eq!(lagging, [""; 0]);
            assert!(b.0.snapshot().level_named(&name).is_some());
        }
        etcd.signal(member, "CONT");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused_until_it_is_removed() {
    let (etcd, base) = (Etcd::start(), tempfile::tempdir().unwrap());
    let store = Arc::new(etcd.store(CLUSTER));
    create_cluster(&place(&store, "first")).unwrap();
    let a = open(&etcd, base.path(), "a");
    level(&a, "x", Mode::Commit).unwrap();
    let prefix = format!("/weir/{CLUSTER}/catalog/");
    for path in [b"\xff".as_slice(), b"rows/levels/\xff\xfe"] {
        let key = [prefix.as_bytes(), path].concat();
        let key = OsStr::from_bytes(&key);
        store.etcdctl(&[OsStr::new("put"), key, OsStr::new("{}")]);
        let directory = base.path().join("b");
        let minimums = Minimums::default();
        let refused = Catalog::open_in_cluster(&directory, minimums, place(&store, "b"));
        let refused = refused.map(drop).unwrap_err();
        assert_eq!(refused.code(), "cluster_row_damaged", "{refused}");
        assert_eq!(level(&a, "y", Mode::Commit).unwrap_err().code(), "cluster_row_damaged");
        store.etcdctl(&[OsStr::new("del"), key]);
        a.follow().unwrap();
    }
    level(&a, "y", Mode::Commit).unwrap();
}
