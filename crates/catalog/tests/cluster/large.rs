//! Changes that take several transactions, and gateways that end in the middle of them.

use crate::faults::Fate;
use crate::world::{Cluster, GIB, pool};
use std::sync::Arc;
use weir_catalog::{
    BytesPerSecond, Catalog, Import, Mode, NewPool, NewVolume, PoolChange, Qos, Replace,
    VolumeChange, check_import, import_into_cluster, preview_import,
};

/// More than a transaction has room for.
const LEVELS: usize = 200;

/// A stand-alone catalogue with many levels.
fn many(base: &std::path::Path) -> Import {
    let directory = base.join("alone");
    {
        let alone = Catalog::open(&directory).unwrap();
        for number in 0..LEVELS {
            let name = format!("level{number:03}");
            alone.create_level(&name, BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
        }
    }
    Import::of_directory(&directory).unwrap()
}

/// The keys of large changes that are under way.
fn traces(cluster: &Cluster) -> Vec<String> {
    let prefix = cluster.key("");
    let keys = cluster.dump().into_keys();
    keys.filter(|key| {
        let path = key.strip_prefix(&prefix).unwrap_or_default();
        path == "intent" || path.starts_with("staged/")
    })
    .collect()
}

fn own_levels(catalog: &Catalog) -> usize {
    catalog.snapshot().levels().filter(|level| !level.published).count()
}

#[test]
fn an_import_is_there_whole_or_not_at_all_wherever_its_gateway_ended() {
    let base = tempfile::tempdir().unwrap();
    let import = many(base.path());
    let (mut undone, mut completed) = (0, 0);
    for transactions in 0.. {
        let cluster = Cluster::new();
        cluster.store.down_after(transactions);
        let done = import_into_cluster(&cluster.place("a"), &import, Replace::Never);
        if !cluster.store.is_down() {
            done.unwrap();
            assert!(traces(&cluster).is_empty());
            break;
        }
        cluster.store.set_down(false);
        let b = cluster.gateway("b");
        let found = own_levels(&b);
        assert!(found == 0 || found == LEVELS, "{transactions}: {found}");
        assert_eq!(done.is_ok(), found == LEVELS, "{transactions}");
        let made = b.create_level("mine", BytesPerSecond::from_mib(1), Mode::Commit);
        if let Err(refused) = made {
            assert_eq!((refused.code(), found), ("cluster_busy", 0));
            assert!(refused.to_string().contains("\"a\""), "{refused}");
            assert!(!b.end_change_of("c").unwrap(), "it is none of c's");
            assert!(b.end_change_of("a").unwrap());
            assert!(!b.end_change_of("a").unwrap());
            b.create_level("mine", BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
            undone += 1;
        } else if found > 0 {
            completed += 1;
        }
        assert_eq!(own_levels(&b), found + 1);
        assert_eq!(traces(&cluster), [""; 0], "{transactions}");
        assert_eq!(cluster.gateway("d").snapshot(), b.snapshot());
    }
    assert!(undone > 1 && completed > 0, "{undone} {completed}");
}

#[test]
fn a_chunk_that_arrives_after_its_change_was_undone_leaves_no_trace() {
    let base = tempfile::tempdir().unwrap();
    let import = many(base.path());
    let cluster = Cluster::new();
    // The intent is there, the first chunk has no answer, and then nothing has.
    cluster.store.next(&[Fate::Answered, Fate::Late, Fate::Lost, Fate::Lost]);
    let failed = import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap_err();
    assert_eq!(failed.code(), "cluster_in_doubt");
    assert_eq!(traces(&cluster), [""; 0], "it undid what it began");
    cluster.store.draw(None);
    assert_eq!(traces(&cluster), [""; 0], "the chunk came too late");
    assert_eq!(own_levels(&cluster.gateway("b")), 0);
}

#[test]
fn an_intent_is_not_removed_by_the_end_of_an_earlier_change() {
    let base = tempfile::tempdir().unwrap();
    let import = many(base.path());
    let cluster = Cluster::new();
    cluster.store.down_after(2);
    import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap_err();
    cluster.store.set_down(false);
    let b = cluster.gateway("b");
    cluster.store.next(&[Fate::Late]);
    assert!(b.end_change_of("a").unwrap());
    // The request that removed the intent arrives once more, during another large change.
    let store = Arc::clone(&cluster.store);
    cluster.store.between(2, move || store.draw(None));
    import_into_cluster(&cluster.place("c"), &import, Replace::Never).unwrap();
    assert_eq!(own_levels(&cluster.gateway("d")), LEVELS);
    assert_eq!(traces(&cluster), [""; 0]);
}

#[test]
fn a_preview_leaves_the_change_of_another_gateway_alone_and_an_import_undoes_it() {
    let base = tempfile::tempdir().unwrap();
    let import = many(base.path());
    let cluster = Cluster::new();
    cluster.store.down_after(2);
    import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap_err();
    cluster.store.set_down(false);
    let begun = cluster.dump();
    let place = cluster.place("b");
    let refused = preview_import(&place, &import, Replace::Never).unwrap_err();
    assert_eq!((refused.code(), cluster.dump()), ("cluster_busy", begun));
    check_import(&place, &import, Replace::Never).unwrap();
    assert_eq!(traces(&cluster), [""; 0]);
    assert_eq!(own_levels(&cluster.gateway("c")), 0, "a check imports nothing");
    import_into_cluster(&place, &import, Replace::Never).unwrap();
    assert_eq!(own_levels(&cluster.gateway("d")), LEVELS);
}

#[test]
fn the_same_gateway_undoes_what_it_began_before() {
    let base = tempfile::tempdir().unwrap();
    let import = many(base.path());
    let cluster = Cluster::new();
    cluster.store.down_after(2);
    import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap_err();
    cluster.store.set_down(false);
    assert!(!traces(&cluster).is_empty());
    let a = cluster.gateway("a");
    a.create_level("mine", BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
    assert!(traces(&cluster).is_empty());
    assert_eq!(own_levels(&a), 1);
}

#[test]
fn a_change_of_many_volumes_is_one_change_for_all_who_follow() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.gateway("a"), cluster.gateway("b"));
    a.create_pool(&NewPool { qos: Qos::Manual, ..pool("p") }, Mode::Commit).unwrap();
    for number in 0..130 {
        let terms = weir_catalog::Terms {
            throughput: Some(BytesPerSecond(1000 + number)),
            ..Default::default()
        };
        let new = NewVolume {
            name: format!("v{number}"),
            pool: "p".to_owned(),
            quota_bytes: GIB,
            terms,
            ..NewVolume::default()
        };
        a.create_volume(&new, Mode::Commit).unwrap();
    }
    b.follow().unwrap();
    let before = b.snapshot();
    let auto = PoolChange { qos: Some(Qos::Auto), ..PoolChange::default() };
    let done = a.change_pool("p", &auto, Mode::Commit).unwrap();
    assert_eq!(done.snapshot.generation, before.generation + 1);
    b.follow().unwrap();
    assert_eq!(b.snapshot(), done.snapshot, "before the chunks are documents");
    assert!(!traces(&cluster).is_empty());
    // Whoever changes something next completes it. A part of that arrives once more, later.
    cluster.store.next(&[Fate::Late]);
    b.create_level("l", BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
    assert!(traces(&cluster).is_empty());
    let quota_bytes = Some(2 * GIB);
    let change = VolumeChange { quota_bytes, ..VolumeChange::default() };
    let changed = b.change_volume("v0", &change, Some(0), Mode::Commit).unwrap().snapshot;
    cluster.store.draw(None);
    assert_eq!(cluster.gateway("c").snapshot(), changed);
    a.follow().unwrap();
    assert_eq!(a.snapshot(), b.snapshot());
    // A change that changes nothing touches no row of a volume.
    let rows = cluster.rows();
    a.change_pool("p", &auto, Mode::Commit).unwrap();
    assert_eq!(cluster.rows(), rows);
}
