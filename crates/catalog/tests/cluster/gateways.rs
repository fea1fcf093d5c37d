//! The parts that only a cluster has: pools on CephFS, addresses of volumes, gateways.

use crate::world::{Cluster, GIB, ceph, pool, same, volume};
use std::path::Path;
use weir_catalog::{
    Catalog, Ceph, ClusterBackup, GatewayId, GroupId, Import, Mode, NewGateway, NewPool, NewVolume,
    Qos, Replace, TermsChange, VolumeChange, create_cluster, export_cluster, import_into_cluster,
    restore_cluster,
};

fn add(catalog: &Catalog, address: &str) {
    catalog.add_address(address.parse().unwrap(), Mode::Commit).unwrap();
}

fn gateway(name: &str, host: u8) -> NewGateway {
    let at = |port: u16| format!("10.0.1.{host}:{port}").parse().unwrap();
    NewGateway { name: name.to_owned(), links: at(7450), helper: at(7451) }
}

fn group(catalog: &Catalog, volume: &str) -> Option<GroupId> {
    catalog.snapshot().volume_named(volume).unwrap().address
}

/// A volume of this rate in a manual pool.
fn of_rate(name: &str, mib: u64) -> NewVolume {
    let mut new = volume(name, "m");
    new.terms.throughput = Some(weir_catalog::BytesPerSecond::from_mib(mib));
    new
}

#[test]
fn a_pool_of_a_cluster_is_on_ceph_and_that_of_a_server_alone_is_not() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    let made = a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let found = made.snapshot.pool_named("p").unwrap();
    assert_eq!((found.directory.as_path(), &found.ceph), (Path::new("/weir/p"), &Some(ceph())));
    same(&a, &b);
    let refusal = |catalog: &Catalog, new: &NewPool| {
        catalog.create_pool(new, Mode::Commit).unwrap_err().code()
    };
    let at = |name: &str, path: &str| NewPool { directory: Some(path.into()), ..pool(name) };
    for path in ["/weir/p", "/weir/p/q", "/weir", "/", "weir/q", "/weir/../q", "/weir/q/"] {
        assert_eq!(refusal(&a, &at("q", path)), "bad_path", "{path}");
    }
    assert_eq!(refusal(&a, &NewPool { ceph: None, ..pool("q") }), "pool_not_on_ceph");
    assert_eq!(refusal(&a, &NewPool { directory: None, ..pool("q") }), "pool_not_on_ceph");
    let user = |user: &str| Some(Ceph { user: user.to_owned(), ..ceph() });
    assert_eq!(refusal(&a, &NewPool { ceph: user("client.weir"), ..pool("q") }), "bad_ceph_user");
    let bound = cluster.gateway("bound").on_ceph(ceph());
    assert_eq!(refusal(&bound, &NewPool { ceph: user("other"), ..pool("q") }), "other_ceph");
    bound.create_pool(&pool("q"), Mode::Preview).unwrap();
    // The same path in another CephFS is another place.
    let other = Some(Ceph { conf: "/etc/ceph/two.conf".into(), ..ceph() });
    let elsewhere = NewPool { ceph: other, ..at("r", "/weir/p") };
    a.create_pool(&elsewhere, Mode::Commit).unwrap();
    // A volume does not move there without a copy.
    a.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    let change = VolumeChange { pool: Some("r".to_owned()), ..VolumeChange::default() };
    let refused = a.change_volume("v", &change, Some(0), Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "other_file_system");
    a.create_pool(&pool("s"), Mode::Commit).unwrap();
    let change = VolumeChange { pool: Some("s".to_owned()), ..VolumeChange::default() };
    a.change_volume("v", &change, Some(0), Mode::Commit).unwrap();
    a.delete_volume("v", Mode::Commit).unwrap();
    let condemned = a.condemned().unwrap();
    assert_eq!((condemned.len(), &condemned[0].ceph), (1, &Some(ceph())));
    // It may be in its former pool still, but not in another CephFS.
    let (id, directory) = (condemned[0].volume, &condemned[0].directory);
    let former: Vec<_> = a.snapshot().former_places(&ceph(), id, directory).collect();
    assert_eq!(
        (directory.as_path(), former),
        (Path::new("/weir/s/volumes/1"), vec!["/weir/p/volumes/1".into()],)
    );
    assert_eq!(condemned[0].address, Some(GroupId(1)));
    assert!(!a.may_remove(&condemned[0]), "nothing on this machine");
    a.delete_pool("p", Mode::Commit).unwrap();
    same(&a, &b);
    let alone = Catalog::open(&cluster.base.path().join("alone")).unwrap();
    assert_eq!(refusal(&alone, &pool("p")), "not_a_gateway");
}

#[test]
fn volumes_go_to_the_lightest_address_and_keep_it() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    add(&a, "fd00::2/64");
    a.create_pool(&NewPool { qos: Qos::Manual, ..pool("m") }, Mode::Commit).unwrap();
    a.create_volume(&of_rate("heavy", 5), Mode::Commit).unwrap();
    a.create_volume(&of_rate("light", 2), Mode::Commit).unwrap();
    b.follow().unwrap();
    b.create_volume(&of_rate("next", 1), Mode::Commit).unwrap();
    let chosen = NewVolume { address: Some("10.0.0.1".parse().unwrap()), ..of_rate("own", 1) };
    b.create_volume(&chosen, Mode::Commit).unwrap();
    same(&a, &b);
    let groups = ["heavy", "light", "next", "own"].map(|name| group(&a, name).unwrap().0);
    assert_eq!(groups, [1, 2, 2, 1]);
    let weights = a.snapshot().weights();
    assert_eq!(weights, [(GroupId(1), 6), (GroupId(2), 3)].into());
    let to =
        |ip: &str| VolumeChange { address: Some(ip.parse().unwrap()), ..VolumeChange::default() };
    let change = |ip| a.change_volume("heavy", &to(ip), None, Mode::Commit).map(drop);
    assert!(change("10.0.0.1").is_ok(), "it has it");
    assert_eq!(change("fd00::2").unwrap_err().code(), "address_kept");
    assert_eq!(change("10.0.0.7").unwrap_err().code(), "no_such_address");
    let unknown = NewVolume { address: Some("10.0.0.7".parse().unwrap()), ..of_rate("x", 1) };
    let refused = a.create_volume(&unknown, Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "no_such_address");
    let in_use = a.remove_address("fd00::2".parse().unwrap(), Mode::Commit).unwrap_err();
    assert_eq!(in_use.code(), "address_in_use");
    assert!(in_use.to_string().contains("2 volume(s)"), "{in_use}");
    a.delete_volume("light", Mode::Commit).unwrap();
    a.delete_volume("next", Mode::Commit).unwrap();
    a.remove_address("fd00::2".parse().unwrap(), Mode::Commit).unwrap();
    // Its number never comes again.
    b.follow().unwrap();
    add(&b, "fd00::2/64");
    same(&a, &b);
    let groups: Vec<_> = a.snapshot().addresses().map(|address| address.group.0).collect();
    assert_eq!(groups, [1, 3]);
    let twice = a.add_address("10.0.0.1/16".parse().unwrap(), Mode::Commit).unwrap_err();
    assert_eq!(twice.code(), "name_taken");
}

#[test]
fn a_weight_is_what_the_contract_gives() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    let weight = || a.snapshot().weights()[&GroupId(1)];
    let custom = NewPool { qos: Qos::Custom, ..pool("c") };
    a.create_pool(&custom, Mode::Commit).unwrap();
    let mut new = volume("c", "c");
    new.terms.throughput = Some(weir_catalog::BytesPerSecond::from_mib(3));
    new.terms.iops = Some(weir_catalog::Iops(100));
    a.create_volume(&new, Mode::Commit).unwrap();
    // 3 MiB/s, and 100 operations: 7 sixteenths.
    assert_eq!(weight(), 3 + 7);
    let iops = Some(Some(weir_catalog::Iops(16)));
    let terms = TermsChange { ceiling_iops: iops, ..TermsChange::default() };
    let change = VolumeChange { terms, ..VolumeChange::default() };
    a.change_volume("c", &change, None, Mode::Commit).unwrap();
    assert_eq!(weight(), 3 + 1);
    a.delete_volume("c", Mode::Commit).unwrap();
    assert_eq!(weight(), 0);
    // 1 TiB at 16 MiB/s, shared 1 : 3.
    a.create_pool(&NewPool { qos: Qos::Shared, ..pool("s") }, Mode::Commit).unwrap();
    for (name, shares) in [("one", 100), ("three", 300)] {
        let mut new = volume(name, "s");
        new.terms.weight = Some(shares);
        a.create_volume(&new, Mode::Commit).unwrap();
    }
    assert_eq!(weight(), 4 + 12);
}

#[test]
fn a_cluster_without_addresses_takes_no_volumes() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    a.remove_address("10.0.0.1".parse().unwrap(), Mode::Commit).unwrap();
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    let refused = a.create_volume(&volume("v", "p"), Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "no_address");
    assert!(refused.to_string().contains("weir gateway address add"), "{refused}");
}

#[test]
fn gateways_have_names_and_numbers_of_their_own() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.add_gateway(&gateway("g1", 1), Mode::Commit).unwrap();
    b.add_gateway(&gateway("g2", 2), Mode::Commit).unwrap();
    same(&a, &b);
    let snapshot = a.snapshot();
    let second = snapshot.gateway_named("g2").unwrap();
    assert_eq!((second.id, second.links), (GatewayId(2), "10.0.1.2:7450".parse().unwrap()));
    let refusal = |new: &NewGateway| a.add_gateway(new, Mode::Commit).unwrap_err().code();
    assert_eq!(refusal(&gateway("g1", 3)), "name_taken");
    assert_eq!(refusal(&gateway("-", 3)), "bad_name");
    assert_eq!(refusal(&gateway("g3", 2)), "gateway_address_taken");
    let one = gateway("g3", 3).links;
    assert_eq!(refusal(&NewGateway { helper: one, ..gateway("g3", 3) }), "gateway_address_taken");
    for address in ["0.0.0.0:1", "10.0.1.3:0", "[ff02::1]:1"] {
        let links = address.parse().unwrap();
        assert_eq!(refusal(&NewGateway { links, ..gateway("g3", 3) }), "bad_address");
    }
    a.remove_gateway("g2", Mode::Commit).unwrap();
    assert_eq!(a.remove_gateway("g2", Mode::Commit).unwrap_err().code(), "no_such_gateway");
    b.follow().unwrap();
    let made = b.add_gateway(&gateway("g2", 2), Mode::Commit).unwrap();
    assert_eq!(made.snapshot.gateway_named("g2").unwrap().id, GatewayId(3));
}

#[test]
fn a_server_alone_has_nothing_of_a_cluster() {
    let base = tempfile::tempdir().unwrap();
    let alone = Catalog::open(&base.path().join("data")).unwrap();
    let plain = NewPool { directory: None, ceph: None, ..pool("p") };
    alone.create_pool(&plain, Mode::Commit).unwrap();
    alone.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    let ip = "10.0.0.1".parse().unwrap();
    let of_address = NewVolume { address: Some(ip), ..volume("w", "p") };
    let change = VolumeChange { address: Some(ip), ..VolumeChange::default() };
    let refused = [
        alone.add_address("10.0.0.1/24".parse().unwrap(), Mode::Commit),
        alone.remove_address(ip, Mode::Commit),
        alone.add_gateway(&gateway("g", 1), Mode::Commit),
        alone.remove_gateway("g", Mode::Commit),
        alone.create_volume(&of_address, Mode::Commit),
        alone.change_volume("v", &change, None, Mode::Commit),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), "not_a_gateway");
    }
    assert_eq!(group(&alone, "v"), None);
}

#[test]
fn a_cluster_keeps_its_gateways_and_addresses_through_imports() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    a.add_gateway(&gateway("g1", 1), Mode::Commit).unwrap();
    add(&a, "10.0.0.2/24");
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    for (name, at) in [("one", "10.0.0.1"), ("two", "10.0.0.2")] {
        let new = NewVolume { address: Some(at.parse().unwrap()), ..volume(name, "p") };
        a.create_volume(&new, Mode::Commit).unwrap();
    }
    let bytes = a.backup().unwrap();
    a.delete_volume("two", Mode::Commit).unwrap();
    a.remove_address("10.0.0.2".parse().unwrap(), Mode::Commit).unwrap();
    add(&a, "10.0.0.3/24");
    a.add_gateway(&gateway("g2", 2), Mode::Commit).unwrap();
    let backup = ClusterBackup::read(Path::new("b"), &bytes, &cluster.place("a").key).unwrap();
    restore_cluster(&cluster.place("a"), &backup, Replace::Kept).unwrap();
    a.follow().unwrap();
    let snapshot = a.snapshot();
    let addresses: Vec<_> =
        snapshot.addresses().map(|one| (one.group.0, one.at.to_string())).collect();
    let expected = [(1, "10.0.0.1/24"), (3, "10.0.0.3/24"), (4, "10.0.0.2/24")];
    assert_eq!(addresses, expected.map(|(group, at)| (group, at.to_owned())));
    assert_eq!((group(&a, "one"), group(&a, "two")), (Some(GroupId(1)), Some(GroupId(4))));
    assert_eq!(snapshot.gateways().map(|one| one.id.0).collect::<Vec<_>>(), [1, 2]);
    add(&a, "10.0.0.9/24");
    assert_eq!(a.snapshot().addresses().last().unwrap().group, GroupId(5));
    // A server alone has none of it, and what comes from there is spread.
    let out = cluster.base.path().join("out");
    export_cluster(&cluster.place("a"), &out, None).unwrap();
    let import = {
        let alone = Catalog::open(&out).unwrap();
        let snapshot = alone.snapshot();
        assert_eq!((snapshot.addresses().len(), snapshot.gateways().len()), (0, 0));
        assert_eq!((group(&alone, "one"), group(&alone, "two")), (None, None));
        snapshot.claim_pool(snapshot.pool_named("p").unwrap().id).unwrap();
        drop((alone, snapshot));
        Import::of_directory(&out).unwrap().on_ceph(&ceph(), Path::new("/weir")).unwrap()
    };
    import_into_cluster(&cluster.place("a"), &import, Replace::Kept).unwrap();
    a.follow().unwrap();
    assert_eq!((group(&a, "one"), group(&a, "two")), (Some(GroupId(1)), Some(GroupId(3))));
    assert_eq!(a.snapshot().gateways().len(), 2);
}

#[test]
fn damaged_addresses_are_refused_by_name_and_what_is_served_stays() {
    let cluster = Cluster::new();
    let a = cluster.gateway("a");
    let key = cluster.key("rows/addresses/1");
    let whole = cluster.dump()[&key].clone();
    for (from, to) in [("10.0.0.1", "10.0.0.300"), ("10.0.0.1", "010.0.0.1"), ("24", "0")] {
        cluster.store.put(&key, &whole.replace(from, to));
        let refused = a.follow().unwrap_err();
        assert_eq!(refused.code(), "cluster_row_damaged", "{to}");
        assert_eq!(a.snapshot().addresses().len(), 1);
    }
    cluster.store.put(&key, &whole);
    a.follow().unwrap();
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    assert_eq!(a.snapshot().pool_named("p").unwrap().size_bytes, 1024 * GIB);
}

#[test]
fn a_new_cluster_begins_its_numbers_anew() {
    let (one, two) = (Cluster::new(), Cluster::new());
    let a = one.gateway("a");
    add(&a, "10.0.0.8/24");
    let bytes = a.backup().unwrap();
    let backup = ClusterBackup::read(Path::new("b"), &bytes, &two.place("x").key).unwrap();
    restore_cluster(&two.place("x"), &backup, Replace::Never).unwrap();
    let x = two.gateway("x");
    assert_eq!(x.snapshot().addresses().map(|one| one.group.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(create_cluster(&two.place("x")).unwrap_err().code(), "cluster_exists");
}
