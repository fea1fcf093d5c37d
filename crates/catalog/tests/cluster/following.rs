//! The thread that follows the catalogue, and the wait of commands for other gateways.

use crate::world::Cluster;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_catalog::{
    BytesPerSecond, Catalog, ClusterPlace, Followed, Follower, Guard, Minimums, Mode, Role, Token,
    Tokens,
};

/// Time for what must come about on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A gateway that follows, and the generations of the snapshots that it passes on.
struct Gateway {
    catalog: Arc<Catalog>,
    tokens: Arc<Tokens>,
    applied: Receiver<u64>,
    _follower: Follower,
}

impl Gateway {
    fn start(cluster: &Cluster, name: &str) -> Self {
        Self::of(cluster.gateway(name))
    }

    fn of(catalog: Catalog) -> Self {
        let tokens = Arc::new(catalog.tokens().unwrap());
        let catalog = Arc::new(catalog);
        let (tell, applied) = channel();
        let apply = move |catalog: &Catalog| {
            // The test may be over.
            let _heard = tell.send(catalog.snapshot().generation);
        };
        let follower = Follower::start(Arc::clone(&catalog), Arc::clone(&tokens), apply).unwrap();
        Self { catalog, tokens, applied, _follower: follower }
    }

    /// Waits until a snapshot of this generation is passed on.
    fn await_generation(&self, generation: u64) {
        while self.applied.recv_timeout(LONG).unwrap() < generation {}
    }

    fn level(&self, name: &str) -> Followed {
        self.catalog.create_level(name, BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
        self.catalog.followed(&self.tokens)
    }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_command_returns_when_all_live_gateways_follow_and_names_those_that_do_not() {
    let cluster = Cluster::new();
    let (a, b) = (Gateway::start(&cluster, "a"), Gateway::start(&cluster, "b"));
    // It is a member, and nobody follows for it.
    let c = cluster.gateway("c");
    let change = a.level("x");
    let lagging = |live: &[&str], within| a.catalog.lagging(&names(live), change, within).unwrap();
    assert_eq!(lagging(&["a", "b"], LONG), [""; 0]);
    assert!(b.catalog.snapshot().level_named("x").is_some());
    assert_eq!(lagging(&["a", "b", "c", "d"], Duration::ZERO), ["c", "d"]);
    assert!(c.snapshot().level_named("x").is_none());
    // An older row is not enough.
    let c = Gateway::of(c);
    assert_eq!(lagging(&["a", "b", "c"], LONG), [""; 0]);
    drop(c);
    let later = a.level("y");
    assert_eq!(a.catalog.lagging(&names(&["b"]), later, LONG).unwrap(), [""; 0]);
    let both = names(&["b", "c"]);
    assert_eq!(a.catalog.lagging(&both, later, Duration::ZERO).unwrap(), ["c"]);
}

#[test]
fn a_snapshot_is_passed_on_before_the_others_are_told_also_after_a_refused_change() {
    let cluster = Cluster::new();
    let (a, b) = (Gateway::start(&cluster, "a"), Gateway::start(&cluster, "b"));
    for number in 0..20 {
        let change = a.level(&format!("a{number}"));
        // The refused change applies that of a, which then has to be passed on all the same.
        let taken = b.catalog.create_level("a0", BytesPerSecond::from_mib(1), Mode::Commit);
        assert_eq!(taken.unwrap_err().code(), "name_taken");
        assert_eq!(a.catalog.lagging(&names(&["b"]), change, LONG).unwrap(), [""; 0]);
        let newest = b.applied.try_iter().max();
        assert!(newest.is_some_and(|newest| newest >= change.generation), "{newest:?} {change:?}");
    }
}

#[test]
fn revoked_tokens_are_followed_also_while_a_row_is_damaged() {
    let cluster = Cluster::new();
    let (a, b) = (Gateway::start(&cluster, "a"), Gateway::start(&cluster, "b"));
    let new = Token { name: "t".into(), role: Role::Viewer, created: 1, expires: None };
    let secret = a.tokens.create(new).unwrap();
    let made = a.catalog.followed(&a.tokens);
    assert_eq!(a.catalog.lagging(&names(&["b"]), made, LONG).unwrap(), [""; 0]);
    assert!(b.tokens.admit(secret.as_bytes(), 9).is_ok());
    cluster.store.put(&cluster.key("rows/pools/x"), "?");
    a.tokens.revoke("t").unwrap();
    let revoked = a.catalog.followed(&a.tokens);
    assert!(revoked.tokens > made.tokens);
    while b.tokens.revision() < revoked.tokens {
        std::thread::yield_now();
    }
    assert!(b.tokens.admit(secret.as_bytes(), 9).is_err());
    // It does not follow the catalogue, so it is named.
    assert_eq!(a.catalog.lagging(&names(&["b"]), revoked, Duration::ZERO).unwrap(), ["b"]);
    cluster.store.delete(&cluster.key("rows/pools/x"));
    assert_eq!(a.catalog.lagging(&names(&["b"]), revoked, LONG).unwrap(), [""; 0]);
}

#[test]
fn a_gateway_that_lost_the_store_follows_again_and_one_whose_life_is_over_tells_nothing() {
    let cluster = Cluster::new();
    let b = Gateway::start(&cluster, "b");
    let member = format!("/weir/{}/members/a", cluster.name);
    let revision = cluster.store.put(&member, "life 1");
    let life = Guard::Since { key: member.clone(), revision }.into();
    let place = ClusterPlace { life, ..cluster.place("a") };
    let directory = cluster.base.path().join("a");
    let a = Catalog::open_in_cluster(&directory, Minimums::default(), place).unwrap();
    let a = Gateway::of(a);
    let first = b.level("x");
    assert_eq!(b.catalog.lagging(&names(&["a"]), first, LONG).unwrap(), [""; 0]);
    cluster.store.set_down(true);
    assert_eq!(
        b.catalog.lagging(&names(&["a"]), first, LONG).unwrap_err().code(),
        "cluster_unreachable"
    );
    cluster.store.set_down(false);
    let second = b.level("y");
    assert_eq!(b.catalog.lagging(&names(&["a"]), second, LONG).unwrap(), [""; 0]);
    cluster.store.delete(&member);
    let third = b.level("z");
    a.await_generation(third.generation);
    assert_eq!(b.catalog.lagging(&names(&["a"]), third, Duration::ZERO).unwrap(), ["a"]);
}
