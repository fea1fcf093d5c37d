//! Gateways with one catalogue: following, conflicts, lost answers, damaged rows, lives that end.

use crate::faults::Fate;
use crate::world::{Cluster, GIB, pool, same, volume};
use std::net::IpAddr;
use std::sync::Arc;
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, ClusterKey, ClusterPlace, Guard, IdempotencyKey, Known,
    Minimums, Mode, MonitoredHost, NewUser, NewVolume, Role, Token, VolumeChange, cluster_exists,
    create_cluster,
};

fn level(catalog: &Catalog, name: &str, mode: Mode) -> Result<(), CatalogError> {
    catalog.create_level(name, BytesPerSecond::from_mib(1), mode).map(drop)
}

fn request(key: u8) -> IdempotencyKey {
    IdempotencyKey { key: [key; 32], request: [1; 32], at: 1000 }
}

#[test]
fn what_one_gateway_changes_the_others_follow() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    a.create_volume(&volume("one", "p"), Mode::Commit).unwrap();
    assert_eq!(b.snapshot().volumes().len(), 0, "not before it follows");
    assert!(b.follow().unwrap());
    assert!(!b.follow().unwrap(), "nothing new");
    assert_eq!(a.snapshot(), b.snapshot());
    // Ids go on, also where the last volume is gone.
    b.delete_volume("one", Mode::Commit).unwrap();
    let made = a.create_volume(&volume("two", "p"), Mode::Commit).unwrap();
    assert_eq!(made.snapshot.volume_named("two").unwrap().id.0, 2);
    assert_eq!(a.condemned().unwrap().len(), 1);
    let user = NewUser { name: "u".into(), uid: 5, gid: None, groups: vec![], enabled: true };
    a.create_group("g", 7, Mode::Commit).unwrap();
    b.create_user(&user, Mode::Commit).unwrap();
    a.add_member("g", "u", Mode::Commit).unwrap();
    b.set_password("u", &[7; 16], Mode::Commit).unwrap();
    same(&a, &b);
    let snapshot = a.snapshot();
    let user = snapshot.user_named("u").unwrap();
    assert_eq!(a.sealer().open(user.rid, user.password.as_ref().unwrap()), Ok([7; 16]));
    assert_eq!(a.handle_secret(), b.handle_secret());
    assert_eq!(a.report_secret().unwrap(), b.report_secret().unwrap());
    let c = cluster.gateway("c");
    assert_eq!(c.snapshot(), a.snapshot());
    // People can read the documents, and no document holds a password hash as it is.
    let rows = cluster.rows();
    let told = &rows["rows/volumes/2"];
    assert!(told.contains(r#""name":"two""#) && told.contains(r#""v":13"#), "{told}");
    assert!(!cluster.dump().values().any(|value| value.contains("07070707")));
}

#[test]
fn of_two_changes_at_once_one_is_made_on_top_of_the_other() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    let before = a.snapshot().generation;
    for number in 0..5 {
        level(&a, &format!("a{number}"), Mode::Commit).unwrap();
        level(&b, &format!("b{number}"), Mode::Commit).unwrap();
    }
    let refused = level(&a, "b4", Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "name_taken");
    same(&a, &b);
    assert_eq!(a.snapshot().generation, before + 10);
}

#[test]
fn a_change_that_was_overtaken_is_made_again_on_top_of_the_other() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), Arc::new(cluster.gateway("b")));
    let before = a.snapshot().generation;
    let overtake = |name: &'static str| {
        let b = Arc::clone(&b);
        cluster.store.between(0, move || level(&b, name, Mode::Commit).unwrap());
    };
    overtake("first");
    level(&a, "second", Mode::Commit).unwrap();
    assert_eq!(a.snapshot().generation, before + 2);
    overtake("taken");
    assert_eq!(level(&a, "taken", Mode::Commit).unwrap_err().code(), "name_taken");
    assert!(a.snapshot().level_named("first").is_some());
    same(&a, &b);
    assert_eq!(b.snapshot().generation, before + 3);
}

#[test]
fn a_refused_change_and_a_preview_leave_nothing() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let before = cluster.dump();
    assert_eq!(a.create_pool(&pool("p"), Mode::Commit).unwrap_err().code(), "name_taken");
    let huge = NewVolume { quota_bytes: 2048 * GIB, ..volume("v", "p") };
    assert_eq!(a.create_volume(&huge, Mode::Commit).unwrap_err().code(), "pool_capacity_exceeded");
    a.create_volume(&volume("v", "p"), Mode::Preview).unwrap();
    assert_eq!(cluster.dump(), before);
}

#[test]
fn without_the_store_changes_are_refused_and_reads_go_on() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    level(&a, "x", Mode::Commit).unwrap();
    cluster.store.set_down(true);
    let refused = level(&a, "y", Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "cluster_unreachable");
    assert!(refused.to_string().contains("connection refused"), "{refused}");
    assert!(a.snapshot().level_named("x").is_some() && a.snapshot().level_named("y").is_none());
    assert_eq!(cluster.open("b").unwrap_err().code(), "cluster_unreachable");
    cluster.store.set_down(false);
    level(&a, "y", Mode::Commit).unwrap();
    assert!(cluster.gateway("b").snapshot().level_named("y").is_some());
}

#[test]
fn a_lost_answer_is_found() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    for (number, fate) in (0..).zip([Fate::Lost, Fate::Unanswered, Fate::Late]) {
        let generation = a.snapshot().generation;
        cluster.store.next(&[fate]);
        level(&a, &format!("l{number}"), Mode::Once(request(number))).unwrap();
        cluster.store.draw(None);
        same(&a, &b);
        assert_eq!(a.snapshot().generation, generation + 1, "{fate:?}: once");
    }
    // Nothing is answered any more, whatever is asked.
    cluster.store.next(&[Fate::Lost; 4]);
    let doubt = level(&a, "x", Mode::Once(request(9))).unwrap_err();
    assert_eq!(doubt.code(), "cluster_in_doubt");
    assert_eq!(b.recall(&request(9)).unwrap(), Known::Nothing);
    cluster.store.next(&[Fate::Unanswered, Fate::Lost]);
    level(&a, "x", Mode::Once(request(9))).unwrap();
    assert_eq!(b.recall(&request(9)).unwrap(), Known::Done(None));
    assert_eq!(level(&b, "x2", Mode::Once(request(9))).unwrap_err().code(), "request_repeated");
}

#[test]
fn damaged_and_foreign_rows_are_refused_by_name_and_nothing_is_lost() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    a.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    b.follow().unwrap();
    let (at, before) = (cluster.key("rows/volumes/1"), b.snapshot());
    let whole = cluster.dump()[&at].clone();
    let head = cluster.dump()[&cluster.key("head")].clone();
    let large = whole.replace("\"quota_bytes\":1073741824", "\"quota_bytes\":9999999999999");
    let host = MonitoredHost {
        address: IpAddr::from([10, 0, 0, 1]),
        name: b"h".to_vec(),
        local: IpAddr::from([10, 0, 0, 2]),
    };
    let cases = [
        (at.clone(), whole[1..].to_owned(), "cluster_row_damaged"),
        (at.clone(), whole.replace("\"v\":13", "\"v\":99"), "newer_format"),
        (at.clone(), whole.replace("\"pool\":1", "\"pool\":7"), "cluster_row_damaged"),
        (at.clone(), whole.replace("\"nfs\":1", "\"nfs\":0"), "cluster_row_damaged"),
        (at.clone(), large, "cluster_row_damaged"),
        (cluster.key("head"), head.replace("\"v\":1", "\"v\":2"), "newer_format"),
        (cluster.key("head"), head.replace("\"format\":13", "\"format\":14"), "newer_format"),
        (cluster.key("head"), head[1..].to_owned(), "cluster_row_damaged"),
        (cluster.key("rows/volumes/x"), whole.clone(), "cluster_row_damaged"),
        (cluster.key("rows/else/1"), "{}".to_owned(), "cluster_row_damaged"),
        (cluster.key("letter"), "dear".to_owned(), "cluster_row_damaged"),
        (
            cluster.key("rows/volumes/9"),
            whole.replace("\"id\":1", "\"id\":9"),
            "cluster_row_damaged",
        ),
    ];
    for (key, value, code) in cases {
        let kept = cluster.dump().remove(&key);
        assert_ne!(kept.as_ref(), Some(&value));
        cluster.store.put(&key, &value);
        for refused in [
            b.follow().map(drop).unwrap_err(),
            level(&b, "l", Mode::Commit).unwrap_err(),
            cluster.open("c").map(drop).unwrap_err(),
        ] {
            assert_eq!(refused.code(), code, "{key} = {value}: {refused}");
        }
        assert_eq!(b.snapshot(), before, "it serves what it knows");
        b.monitor_host(&host).unwrap();
        b.forget_hosts(std::slice::from_ref(&host)).unwrap();
        match kept {
            Some(kept) => drop(cluster.store.put(&key, &kept)),
            None => cluster.store.delete(&key),
        }
        b.follow().unwrap();
        assert_eq!(b.snapshot(), before);
    }
    level(&b, "l", Mode::Commit).unwrap();
    same(&a, &b);
}

#[test]
fn a_history_that_was_compacted_is_read_anew() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    b.follow().unwrap();
    a.delete_pool("p", Mode::Commit).unwrap();
    a.create_pool(&pool("q"), Mode::Commit).unwrap();
    cluster.store.compact();
    same(&a, &b);
    assert_eq!(b.snapshot().pools().map(|pool| pool.name.as_str()).collect::<Vec<_>>(), ["q"]);
    b.create_volume(&volume("v", "q"), Mode::Commit).unwrap();
    same(&a, &b);
}

#[test]
fn a_gateway_whose_life_is_over_changes_nothing() {
    let cluster = Cluster::new();
    let member = &format!("/weir/{}/members/a", cluster.name);
    let revision = cluster.store.put(member, "life 1");
    let life = Guard::Since { key: member.clone(), revision }.into();
    let place = ClusterPlace { life, ..cluster.place("a") };
    let directory = cluster.base.path().join("a");
    let a = Catalog::open_in_cluster(&directory, Minimums::default(), place).unwrap();
    level(&a, "x", Mode::Commit).unwrap();
    // The key is kept alive by being written; only its end counts.
    cluster.store.put(member, "life 1");
    level(&a, "y", Mode::Commit).unwrap();
    cluster.store.delete(member);
    cluster.store.put(member, "life 2");
    let host = MonitoredHost {
        address: IpAddr::from([10, 0, 0, 1]),
        name: b"h".to_vec(),
        local: IpAddr::from([10, 0, 0, 2]),
    };
    assert_eq!(level(&a, "z", Mode::Commit).unwrap_err().code(), "not_a_member");
    assert_eq!(a.monitor_host(&host).unwrap_err().code(), "not_a_member");
    assert!(a.monitored_hosts().unwrap().is_empty());
    assert!(cluster.gateway("b").snapshot().level_named("z").is_none());
}

#[test]
fn hosts_credits_requests_and_the_state_number_are_where_a_survivor_finds_them() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let made = a.create_volume(&volume("v", "p"), Mode::Once(request(1))).unwrap();
    let id = made.snapshot.volume_named("v").unwrap().id;
    a.keep_response(&request(1), b"made").unwrap();
    a.keep_credits(&[(id, 77)].into()).unwrap();
    let host = |name: &[u8]| MonitoredHost {
        address: "fe80::1".parse().unwrap(),
        name: name.to_vec(),
        local: "10.0.0.1".parse().unwrap(),
    };
    a.monitor_hosts(&[host(b"one"), host(b"\xff"), host(b"")]).unwrap();
    a.forget_hosts(&[host(b"one")]).unwrap();
    let states = [&a, &b, &a].map(|catalog| catalog.next_nsm_state().unwrap());
    assert_eq!(states, [1, 3, 5]);
    drop(a);
    assert_eq!(b.recall(&request(1)).unwrap(), Known::Done(Some(b"made".to_vec())));
    b.follow().unwrap();
    assert_eq!(b.credits().unwrap(), [(id, 77)].into());
    let mut hosts = b.monitored_hosts().unwrap();
    hosts.sort();
    assert_eq!(hosts, [host(b""), host(b"\xff")]);
    b.delete_volume("v", Mode::Commit).unwrap();
    b.forget_condemned(id).unwrap();
    assert!(cluster.gateway("c").condemned().unwrap().is_empty());
    let keys: Vec<_> = cluster.rows().into_keys().collect();
    assert!(!keys.iter().any(|key| key.contains("/credits/") || key.contains("/volumes/")));
}

#[test]
fn a_gateway_keeps_the_credits_of_its_own_volumes_alone() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let ids = ["v", "w", "x"].map(|name| {
        let made = a.create_volume(&volume(name, "p"), Mode::Commit).unwrap();
        made.snapshot.volume_named(name).unwrap().id
    });
    let [v, w, x] = ids;
    b.follow().unwrap();
    a.keep_credits_of(&[v, w].into(), &[(v, 1), (w, 2), (x, 99)].into()).unwrap();
    b.keep_credits_of(&[x].into(), &[(x, 3)].into()).unwrap();
    a.follow().unwrap();
    assert_eq!(a.credits().unwrap(), [(v, 1), (w, 2), (x, 3)].into());
    // One has none any more, and one was deleted by another gateway meanwhile.
    b.delete_volume("v", Mode::Commit).unwrap();
    a.keep_credits_of(&[v, w].into(), &[(v, 1)].into()).unwrap();
    b.follow().unwrap();
    let only_x = [(x, 3)].into();
    assert_eq!((a.credits().unwrap(), b.credits().unwrap()), (only_x, [(x, 3)].into()));
    // A row that stays as it is makes no news.
    let before = cluster.dump();
    b.keep_credits_of(&[x].into(), &[(x, 3)].into()).unwrap();
    assert_eq!(cluster.dump(), before);
}

#[test]
fn more_hosts_than_a_transaction_has_room_for_are_kept() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    let host = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let (address, local) = (IpAddr::from([10, 1, high, low]), IpAddr::from([10, 0, 0, 1]));
        MonitoredHost { address, name: b"host".to_vec(), local }
    };
    let hosts: Vec<_> = (0..300).map(host).collect();
    a.monitor_hosts(&hosts).unwrap();
    let mut found = cluster.gateway("b").monitored_hosts().unwrap();
    found.sort();
    assert_eq!(found, hosts);
}

#[test]
fn names_keys_and_what_is_not_there_are_refused() {
    let cluster = Cluster::new();
    assert_eq!(create_cluster(&cluster.place("b")).unwrap_err().code(), "cluster_exists");
    let here = cluster.place("a");
    let exists = |name: &str| cluster_exists(&*here.store, name);
    assert!(exists(&here.cluster).unwrap() && !exists("none").unwrap());
    assert_eq!(exists("a/b").unwrap_err().code(), "bad_name");
    let elsewhere = ClusterPlace { cluster: "none".to_owned(), ..cluster.place("a") };
    let open = |place| {
        Catalog::open_in_cluster(&cluster.base.path().join("x"), Minimums::default(), place)
    };
    assert_eq!(open(elsewhere).map(drop).unwrap_err().code(), "no_cluster");
    for bad in ["", "a/b", "ä", &"a".repeat(65)] {
        assert_eq!(open(cluster.place(bad)).map(drop).unwrap_err().code(), "bad_name");
    }
    let key = ClusterKey::new([2; 32]);
    let refused = open(ClusterPlace { key, ..cluster.place("a") }).map(drop).unwrap_err();
    assert_eq!(refused.code(), "wrong_cluster_key");
    assert_eq!(cluster.gateway("x").cluster_formats(), Some((13, 13)));
}

#[test]
fn volumes_move_between_pools_and_pools_go() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    a.create_pool(&pool("q"), Mode::Commit).unwrap();
    a.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    let to = VolumeChange { pool: Some("q".to_owned()), ..VolumeChange::default() };
    b.change_volume("v", &to, Some(0), Mode::Commit).unwrap();
    b.delete_pool("p", Mode::Commit).unwrap();
    // All of it at once.
    same(&a, &b);
    assert_eq!(a.snapshot().pools().count(), 1);
}

#[test]
fn tokens_are_those_of_all_gateways() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a").tokens().unwrap(), cluster.gateway("b").tokens().unwrap());
    let token = |name: &str| Token {
        name: name.to_owned(),
        role: Role::Operator,
        created: 1,
        expires: None,
    };
    let one = a.create(token("one")).unwrap();
    cluster.store.next(&[Fate::Unanswered]);
    let two = b.create(token("two")).unwrap();
    cluster.store.next(&[Fate::Lost]);
    let three = b.create(token("three")).unwrap();
    a.follow().unwrap();
    assert_eq!(a.list(), b.list());
    assert!([&one, &two, &three].iter().all(|secret| a.admit(secret.as_bytes(), 9).is_ok()));
    assert_eq!(a.create(token("two")).unwrap_err().code(), "name_taken");
    b.revoke("one").unwrap();
    assert!(a.admit(one.as_bytes(), 9).is_ok(), "until it follows");
    a.follow().unwrap();
    assert!(a.admit(one.as_bytes(), 9).is_err());
    cluster.store.set_down(true);
    assert_eq!(a.revoke("two").unwrap_err().code(), "cluster_unreachable");
    assert!(a.admit(two.as_bytes(), 9).is_ok());
    cluster.store.set_down(false);
    assert_eq!(cluster.gateway("c").tokens().unwrap().list(), a.list());
    let dump = cluster.dump();
    assert!(!dump.values().any(|value| value.contains("operator")), "they are sealed");
}
