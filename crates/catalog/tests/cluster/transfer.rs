//! Catalogues into a cluster and out of it, and backups of a cluster's own.

use crate::world::{Cluster, ceph, pool, volume};
use std::path::{Path, PathBuf};
use weir_catalog::{
    BytesPerSecond, Catalog, ClusterBackup, ClusterKey, ClusterPlace, ExportRule, Import, Mode,
    NewGateway, NewUser, Pool, Replace, Role, Snapshot, Token, Volume, back_up_cluster,
    cluster_exists, cluster_gateways, export_cluster, import_into_cluster, preview_import,
    restore_cluster,
};

/// A stand-alone catalogue with something of everything.
fn alone(directory: &Path) {
    let catalog = Catalog::open(directory).unwrap();
    let mut pool = pool("p");
    (pool.directory, pool.ceph) = (None, None);
    catalog.create_pool(&pool, Mode::Commit).unwrap();
    catalog.create_volume(&volume("gone", "p"), Mode::Commit).unwrap();
    catalog.delete_volume("gone", Mode::Commit).unwrap();
    catalog.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    let rule = ExportRule::open("10.0.0.0/8".parse().unwrap());
    catalog.add_export("v", &rule, Mode::Commit).unwrap();
    catalog.create_level("own", BytesPerSecond::from_mib(7), Mode::Commit).unwrap();
    fill(&catalog);
}

/// A group, a user with a password, and a token.
fn fill(catalog: &Catalog) {
    catalog.create_group("g", 7, Mode::Commit).unwrap();
    let groups = vec!["g".to_owned()];
    let user = NewUser { name: "u".into(), uid: 5, gid: None, groups, enabled: true };
    catalog.create_user(&user, Mode::Commit).unwrap();
    catalog.set_password("u", &[7; 16], Mode::Commit).unwrap();
    catalog.tokens().unwrap().create(token("t")).unwrap();
}

fn token(name: &str) -> Token {
    Token { name: name.into(), role: Role::Viewer, created: 1, expires: None }
}

fn token_names(catalog: &Catalog) -> Vec<String> {
    catalog.tokens().unwrap().list().into_iter().map(|token| token.name).collect()
}

/// The promises of a catalogue, without the places of files and of clients.
#[derive(Debug, PartialEq)]
struct Content {
    volumes: Vec<Volume>,
    pools: Vec<Pool>,
    levels: String,
    domain: [u32; 3],
    accounts: String,
}

fn content(snapshot: &Snapshot) -> Content {
    let volume = |one: &Volume| Volume { address: None, directory: PathBuf::new(), ..one.clone() };
    let pool = |one: &Pool| Pool { directory: PathBuf::new(), ceph: None, ..one.clone() };
    Content {
        volumes: snapshot.volumes().map(|one| volume(one)).collect(),
        pools: snapshot.pools().map(|one| pool(one)).collect(),
        levels: format!("{:?}", snapshot.levels().collect::<Vec<_>>()),
        domain: snapshot.domain(),
        accounts: format!("{:?} {:?}", snapshot.users(), snapshot.groups()),
    }
}

fn password_opens(catalog: &Catalog) {
    let snapshot = catalog.snapshot();
    let user = snapshot.user_named("u").unwrap();
    assert_eq!(catalog.sealer().open(user.rid, user.password.as_ref().unwrap()), Ok([7; 16]));
}

/// The import of a stand-alone catalogue into the CephFS of these clusters.
fn import_of(directory: &Path) -> Import {
    Import::of_directory(directory).unwrap().on_ceph(&ceph(), Path::new("/weir")).unwrap()
}

fn read(bytes: &[u8], place: &ClusterPlace) -> weir_catalog::Result<ClusterBackup> {
    ClusterBackup::read(Path::new("the-backup"), bytes, &place.key)
}

/// A cluster with two gateways, two addresses and something of everything; its content with the
/// secret that seals file handles.
fn filled(cluster: &Cluster) -> (Content, [u8; 16]) {
    let a = cluster.gateway("a");
    for host in 1..3 {
        let at = |port: u16| format!("10.0.1.{host}:{port}").parse().unwrap();
        let new = NewGateway { name: format!("g{host}"), links: at(7450), helper: at(7451) };
        a.add_gateway(&new, Mode::Commit).unwrap();
    }
    a.add_address("10.0.0.2/24".parse().unwrap(), Mode::Commit).unwrap();
    a.create_pool(&pool("p"), Mode::Commit).unwrap();
    a.create_volume(&volume("v", "p"), Mode::Commit).unwrap();
    fill(&a);
    (content(&a.snapshot()), *a.handle_secret())
}

/// Loses all that the store has of the cluster.
fn lose(cluster: &Cluster) {
    cluster.dump().keys().for_each(|key| cluster.store.delete(key));
}

#[test]
fn a_stand_alone_catalogue_comes_into_a_cluster_and_back() {
    let cluster = Cluster::new();
    let (old, new) = (cluster.base.path().join("old"), cluster.base.path().join("new"));
    alone(&old);
    let (before, handles) = {
        let catalog = Catalog::open(&old).unwrap();
        (content(&catalog.snapshot()), *catalog.handle_secret())
    };
    let (place, import) = (cluster.place("a"), import_of(&old));
    let untouched = cluster.dump();
    let previewed = preview_import(&place, &import, Replace::Never).unwrap();
    assert_eq!((content(&previewed), cluster.dump()), (before, untouched));
    let before = content(&previewed);
    let imported = import_into_cluster(&place, &import, Replace::Never).unwrap();
    assert_eq!(imported, previewed);
    let again = import_into_cluster(&place, &import, Replace::Never);
    assert_eq!(again.unwrap_err().code(), "cluster_exists");
    {
        let a = cluster.gateway("a");
        assert_eq!(content(&a.snapshot()), before);
        assert_eq!(*a.handle_secret(), handles);
        assert!(a.condemned().unwrap().is_empty(), "those of the old machine are its own");
        assert_eq!(token_names(&a), ["t"]);
        password_opens(&a);
        let now = a.snapshot();
        let home = now.volume_named("v").unwrap();
        assert_eq!(home.directory, Path::new("/weir/p/volumes/2"));
        assert_eq!(now.volumes_at(home.address.unwrap()).count(), 1);
        // No id is given twice.
        let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
        assert_eq!(made.snapshot.volume_named("w").unwrap().id.0, 3);
        a.delete_volume("w", Mode::Commit).unwrap();
    }
    export_cluster(&place, &new, None).unwrap();
    for file in ["api.tokens", "smb.key"] {
        let read = |directory: &Path| std::fs::read(directory.join(file)).unwrap();
        assert_eq!(read(&new), read(&old), "{file}");
    }
    let refused = export_cluster(&place, &new, None).unwrap_err();
    assert_eq!(refused.code(), "catalog_exists");
    let back = Catalog::open(&new).unwrap();
    assert_eq!(content(&back.snapshot()), before);
    assert_eq!(*back.handle_secret(), handles);
    password_opens(&back);
    assert!(back.snapshot().generation > 0x100000, "as after a restore");
    // It is served as it is: the directories of its pools and volumes are there, and empty.
    let now = back.snapshot();
    let pool = now.pool_named("p").unwrap();
    assert_eq!(pool.directory, new.canonicalize().unwrap().join("pools/1"));
    now.claim_pool(pool.id).unwrap();
    now.check_place(now.volume_named("v").unwrap()).unwrap();
}

#[test]
fn an_import_is_not_served_from_the_trees_of_other_volumes() {
    let cluster = Cluster::new();
    let old = cluster.base.path().join("old");
    alone(&old);
    let place = cluster.place("a");
    import_into_cluster(&place, &import_of(&old), Replace::Never).unwrap();
    let id_of_new = |name: &str| {
        let a = cluster.gateway("a");
        let made = a.create_volume(&volume(name, "p"), Mode::Commit).unwrap();
        made.snapshot.volume_named(name).unwrap().id.0
    };
    assert_eq!(id_of_new("w"), 3);
    // The volumes of the first import are the same, and the number of the other is not given again.
    import_into_cluster(&place, &import_of(&old), Replace::Kept).unwrap();
    assert_eq!(id_of_new("x"), 4);
    let alone = Catalog::open(&old).unwrap();
    let made = alone.create_volume(&volume("later", "p"), Mode::Commit).unwrap();
    assert_eq!(made.snapshot.volume_named("later").unwrap().id.0, 3);
    drop(alone);
    let before = cluster.dump();
    let refused = import_into_cluster(&place, &import_of(&old), Replace::Kept).unwrap_err();
    assert_eq!(refused.code(), "volume_numbers_taken");
    assert!(refused.to_string().contains("later"), "{refused}");
    assert_eq!(cluster.dump(), before);
    let import = Import::of_directory(&old).unwrap();
    let elsewhere = import.on_ceph(&ceph(), Path::new("/elsewhere")).unwrap();
    import_into_cluster(&place, &elsewhere, Replace::Kept).unwrap();
}

#[test]
fn an_export_begins_in_a_clean_place_and_its_pools_are_where_they_are_asked_for() {
    let cluster = Cluster::new();
    filled(&cluster);
    let (place, base) = (cluster.place("a"), cluster.base.path());
    let (out, disks) = (base.join("out"), base.join("disks"));
    std::fs::create_dir_all(disks.join("p/volumes/9")).unwrap();
    let refused = export_cluster(&place, &out, Some(&disks)).unwrap_err();
    assert_eq!(refused.code(), "bad_path", "{refused}");
    std::fs::remove_dir_all(disks.join("p/volumes/9")).unwrap();
    std::fs::write(out.join("smb.key"), "that of another server").unwrap();
    let refused = export_cluster(&place, &out, Some(&disks)).unwrap_err();
    assert_eq!(refused.code(), "secret_exists", "{refused}");
    assert!(!out.join("weir.db").exists() && !out.join("api.tokens").exists());
    std::fs::remove_file(out.join("smb.key")).unwrap();
    // The directories that an interrupted attempt has left do no harm.
    export_cluster(&place, &out, Some(&disks)).unwrap();
    let back = Catalog::open(&out).unwrap();
    let now = back.snapshot();
    let pool = now.pool_named("p").unwrap();
    assert_eq!(pool.directory, disks.join("p"));
    now.claim_pool(pool.id).unwrap();
    now.check_place(now.volume_named("v").unwrap()).unwrap();
}

#[test]
fn what_a_cluster_cannot_take_over_is_refused_and_nothing_is_written() {
    let cluster = Cluster::new();
    let old = cluster.base.path().join("old");
    alone(&old);
    let place = cluster.place("a");
    let refused = |import: &Import, code: &str, told: &str| {
        let before = cluster.dump();
        let error = import_into_cluster(&place, import, Replace::Never).unwrap_err();
        assert_eq!((error.code(), error.to_string().contains(told)), (code, true), "{error}");
        assert_eq!(cluster.dump(), before);
    };
    refused(&Import::of_directory(&old).unwrap(), "pools_not_on_ceph", "pool p is");
    // A backup has no key of passwords.
    let bytes = Catalog::open(&old).unwrap().backup().unwrap();
    let backup = || {
        let backup = Import::of_backup(Path::new("b"), &bytes).unwrap();
        backup.on_ceph(&ceph(), Path::new("/weir")).unwrap()
    };
    refused(&backup(), "passwords_unreadable", "1 user(s)");
    let cut = backup().with_password_key(b"weir-smb-key 1\n".to_vec());
    refused(&cut, "bad_smb_key", "smb.key");
    let other = format!("weir-smb-key 1\n{}\n", "07".repeat(32));
    let other = backup().with_password_key(other.into_bytes());
    refused(&other, "passwords_unreadable", "smb.key");
    let no_address = {
        let first = cluster.gateway("first");
        first.remove_address("10.0.0.1".parse().unwrap(), Mode::Commit).unwrap();
        import_of(&old)
    };
    refused(&no_address, "no_address", "1 volume(s)");
    let bad = Import::of_directory(&old).unwrap().on_ceph(&ceph(), Path::new("weir"));
    assert_eq!(bad.unwrap_err().code(), "bad_path");
    let wrong = ClusterPlace { key: ClusterKey::new([2; 32]), ..cluster.place("a") };
    let error = import_into_cluster(&wrong, &import_of(&old), Replace::Kept).unwrap_err();
    assert_eq!(error.code(), "wrong_cluster_key");
    // With what is missing it is taken.
    let key = std::fs::read(old.join("smb.key")).unwrap();
    let addresses = ["10.0.0.7/24", "10.0.0.8/24"].map(|text| text.parse().unwrap());
    let whole = backup().with_password_key(key).at_addresses(&addresses).unwrap();
    let made = import_into_cluster(&place, &whole, Replace::Never).unwrap();
    assert_eq!(made.addresses().len(), 2);
    password_opens(&cluster.gateway("a"));
    let without = backup().without_passwords().unwrap();
    import_into_cluster(&place, &without, Replace::Kept).unwrap();
    let now = cluster.gateway("a").snapshot();
    assert!(now.user_named("u").unwrap().password.is_none());
    assert_eq!(now.addresses().len(), 2, "the cluster keeps its own");
}

#[test]
fn a_lost_catalogue_comes_back_from_its_backup_with_secrets_gateways_and_addresses() {
    let cluster = Cluster::new();
    let (before, handles) = filled(&cluster);
    let place = cluster.place("a");
    let bytes = back_up_cluster(&place).unwrap();
    assert_eq!(cluster.gateway("a").backup().unwrap().len(), bytes.len(), "both ways are one");
    for secret in [&handles[..], &[7; 16]] {
        assert!(!bytes.windows(16).any(|found| found == secret), "secrets are sealed");
    }
    let members = |snapshot: &Snapshot| {
        let addresses: Vec<_> = snapshot.addresses().copied().collect();
        (addresses, snapshot.gateways().cloned().collect::<Vec<_>>())
    };
    let (had, home) = {
        let now = cluster.gateway("a").snapshot();
        (members(&now), now.volume_named("v").unwrap().address)
    };
    lose(&cluster);
    assert!(!cluster_exists(&*place.store, &place.cluster).unwrap());
    assert!(cluster_gateways(&place).unwrap().is_empty());
    let backup = read(&bytes, &place).unwrap();
    assert_eq!(backup.info().cluster.as_ref(), Some(&place.cluster));
    restore_cluster(&place, &backup, Replace::Never).unwrap();
    let a = cluster.gateway("a");
    assert_eq!((content(&a.snapshot()), *a.handle_secret()), (before, handles));
    assert_eq!(members(&a.snapshot()), had);
    assert_eq!(cluster_gateways(&place).unwrap(), had.1);
    assert_eq!(a.snapshot().volume_named("v").unwrap().address, home);
    assert_eq!(token_names(&a), ["t"]);
    password_opens(&a);
    let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
    let given = made.snapshot.volume_named("w").unwrap().id.0;
    assert!(given > 0x100000);
    // Restored once more, the cluster still knows which numbers it has given.
    restore_cluster(&place, &backup, Replace::Kept).unwrap();
    a.follow().unwrap();
    let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
    assert!(made.snapshot.volume_named("w").unwrap().id.0 > given);
}

#[test]
fn a_backup_replaces_a_catalogue_only_when_told_and_gateways_notice() {
    let cluster = Cluster::new();
    let (before, _) = filled(&cluster);
    let a = cluster.gateway("a");
    let bytes = a.backup().unwrap();
    a.create_pool(&pool("later"), Mode::Commit).unwrap();
    a.delete_volume("v", Mode::Commit).unwrap();
    a.remove_gateway("g2", Mode::Commit).unwrap();
    let tokens = a.tokens().unwrap();
    tokens.revoke("t").unwrap();
    tokens.create(token("new")).unwrap();
    let place = cluster.place("b");
    let backup = read(&bytes, &place).unwrap();
    let refused = restore_cluster(&place, &backup, Replace::Never);
    assert_eq!(refused.unwrap_err().code(), "cluster_exists");
    restore_cluster(&place, &backup, Replace::Kept).unwrap();
    a.follow().unwrap();
    assert_eq!(content(&a.snapshot()), before);
    password_opens(&a);
    assert_eq!(a.snapshot().gateways().len(), 1, "the cluster keeps its own");
    assert_eq!(token_names(&cluster.gateway("c")), ["new"], "a revoked one stays so");
    let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
    assert!(made.snapshot.volume_named("w").unwrap().id.0 > 0x100000);
    // That of another cluster is another catalogue, and its secrets are sealed anew.
    let other = Cluster::new();
    let handles = *other.gateway("x").handle_secret();
    let backup = read(&other.gateway("y").backup().unwrap(), &place).unwrap();
    restore_cluster(&place, &backup, Replace::Kept).unwrap();
    assert_eq!(a.follow().map(drop).unwrap_err().code(), "cluster_replaced");
    assert_eq!(a.create_pool(&pool("z"), Mode::Commit).unwrap_err().code(), "cluster_replaced");
    drop(a);
    let a = cluster.gateway("a");
    assert_eq!((a.snapshot().pools().count(), *a.handle_secret()), (0, handles));
}

#[test]
fn a_restore_that_was_interrupted_leaves_nothing_half_and_is_completed_by_another() {
    let source = Cluster::new();
    {
        let a = source.gateway("a");
        for number in 0..200 {
            let name = format!("level{number:03}");
            a.create_level(&name, BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
        }
    }
    let bytes = back_up_cluster(&source.place("a")).unwrap();
    let own = |snapshot: &Snapshot| snapshot.levels().filter(|one| !one.published).count();
    let mut interrupted = 0;
    for transactions in 0.. {
        let cluster = Cluster::new();
        lose(&cluster);
        let place = cluster.place("a");
        let backup = read(&bytes, &place).unwrap();
        cluster.store.down_after(transactions);
        let done = restore_cluster(&place, &backup, Replace::Never);
        if !cluster.store.is_down() {
            done.unwrap();
            break;
        }
        cluster.store.set_down(false);
        interrupted += 1;
        let found = match cluster_exists(&*place.store, &place.cluster).unwrap() {
            true => own(&cluster.gateway("b").snapshot()),
            false => 0,
        };
        assert!(found == 0 || found == 200, "{transactions}: {found}");
        // Another machine does it again.
        let again = restore_cluster(&cluster.place("c"), &backup, Replace::Never);
        match found {
            0 => assert_eq!(own(&again.unwrap()), 200, "{transactions}"),
            _ => assert_eq!(again.unwrap_err().code(), "cluster_exists", "{transactions}"),
        }
        let made = cluster.gateway("d");
        made.create_level("mine", BytesPerSecond::from_mib(1), Mode::Commit).unwrap();
        assert_eq!(own(&made.snapshot()), 201, "{transactions}");
    }
    assert!(interrupted > 5, "{interrupted}");
}
