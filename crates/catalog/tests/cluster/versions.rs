//! Gateways of two versions of Weir over one catalogue: what the version before wrote, and formats
//! that rise once all gateways are new. Rows that are newer than the program are in `sharing`.

use crate::world::{Cluster, GIB, same};
use weir_catalog::{BytesPerSecond, Mode, VolumeChange, create_cluster};
use weir_cluster::Version;

/// The catalogue of a cluster of commit db8735a3 as etcd had it, a key and a value on each line.
const LANDED: &str = include_str!("../fixtures/cluster-of-format-13.txt");
/// The key that seals its secrets: its key file was made for this.
const LANDED_KEY: [u8; 32] = [
    49, 200, 113, 1, 215, 23, 66, 238, 22, 42, 109, 118, 87, 70, 175, 83, 211, 21, 133, 150, 28,
    170, 190, 34, 224, 241, 203, 140, 135, 97, 204, 39,
];

fn landed() -> impl Iterator<Item = (&'static str, &'static str)> {
    LANDED.lines().filter_map(|line| line.split_once(' '))
}

/// A cluster whose catalogue is in format 12, without gateways and addresses.
fn of_format_12() -> Cluster {
    let cluster = Cluster::without_catalogue("older".to_owned(), [1; 32]);
    create_cluster(&cluster.place("first")).unwrap();
    let key = cluster.key("head");
    let head = cluster.dump()[&key].clone();
    let newest = format!("\"format\":{}", 13 + u32::from(Version::AHEAD));
    let older = head.replace(&newest, "\"format\":12");
    let older = older.replace("\"counters\":[999,0,0,0,0]", "\"counters\":[999,0,0]");
    assert_eq!(older.len() + 4, head.len(), "{head}");
    cluster.store.put(&key, &older);
    cluster
}

#[test]
fn what_the_version_before_wrote_is_read_and_written_in_its_form() {
    let cluster = Cluster::without_catalogue("demo".to_owned(), LANDED_KEY);
    for (key, value) in landed() {
        cluster.store.put(key, value);
    }
    let gateway = cluster.gateway("gateway-1");
    let snapshot = gateway.snapshot();
    let volumes: Vec<_> =
        snapshot.volumes().map(|one| (one.name.clone(), one.quota_bytes)).collect();
    assert_eq!(volumes.len(), 6, "{volumes:?}");
    assert_eq!(snapshot.gateways().count(), 3);
    let formats = gateway.cluster_formats();
    assert_eq!(formats, Some((13, 13 + u32::from(Version::AHEAD))));
    for (name, quota_bytes) in &volumes {
        for quota_bytes in [quota_bytes + GIB, *quota_bytes] {
            let quota_bytes = Some(quota_bytes);
            let change = VolumeChange { quota_bytes, ..VolumeChange::default() };
            gateway.change_volume(name, &change, Some(0), Mode::Commit).unwrap();
        }
    }
    let after = cluster.dump();
    for (key, value) in landed().filter(|(key, _)| key.contains("/catalog/rows/")) {
        assert_eq!(after.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn a_format_rises_with_the_version_of_the_records_and_until_then_nothing_needs_it() {
    let cluster = of_format_12();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    let mib = BytesPerSecond::from_mib(1);
    a.create_level("early", mib, Mode::Commit).unwrap();
    let level = |name: &str| cluster.rows()[&format!("rows/levels/{name}")].clone();
    assert!(level("early").ends_with("\"v\":12}"), "{}", level("early"));
    let (rows, address) = (cluster.rows(), "10.0.0.1/24".parse().unwrap());
    let refused = b.add_address(address, Mode::Commit).unwrap_err();
    assert_eq!(refused.code(), "cluster_format", "{refused}");
    assert_eq!(cluster.rows(), rows);
    same(&a, &b);
    // No version is agreed on yet; then the first is.
    assert_eq!(a.raise_cluster_format(Version(0)).unwrap(), None);
    assert_eq!(a.raise_cluster_format(Version(1)).unwrap(), Some(13));
    assert_eq!(b.raise_cluster_format(Version(1)).unwrap(), None, "it was raised by the other");
    assert_eq!(b.cluster_formats().map(|(format, _)| format), Some(13));
    b.add_address(address, Mode::Commit).unwrap();
    a.create_level("late", mib, Mode::Commit).unwrap();
    assert!(level("late").ends_with("\"v\":13}") && level("early").ends_with("\"v\":12}"));
    let head = cluster.dump()[&cluster.key("head")].clone();
    assert!(head.contains("\"counters\":[999,0,0,1,0]"), "{head}");
    same(&a, &b);
    same(&a, &cluster.gateway("c"));
}

#[test]
fn a_head_has_the_counters_of_its_format() {
    let cluster = of_format_12();
    let key = cluster.key("head");
    let head = cluster.dump()[&key].clone();
    let longer = head.replace("[999,0,0]", "[999,0,0,0,0]");
    for wrong in [longer, head.replace("[999,0,0]", "[999,0]")] {
        cluster.store.put(&key, &wrong);
        assert_eq!(cluster.open("a").map(drop).unwrap_err().code(), "cluster_row_damaged");
    }
    cluster.store.put(&key, &head);
    cluster.open("a").unwrap();
}
