//! Catalogues into a cluster and out of it.

use crate::world::{Cluster, pool, volume};
use std::path::Path;
use weir_catalog::{
    Catalog, ExportRule, Import, Mode, NewUser, Replace, Role, Snapshot, Token, Volume,
    export_cluster, import_into_cluster,
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
    catalog.create_group("g", 7, Mode::Commit).unwrap();
    let groups = vec!["g".to_owned()];
    let user = NewUser { name: "u".into(), uid: 5, gid: None, groups, enabled: true };
    catalog.create_user(&user, Mode::Commit).unwrap();
    catalog.set_password("u", &[7; 16], Mode::Commit).unwrap();
    let token = Token { name: "t".into(), role: Role::Viewer, created: 1, expires: None };
    catalog.tokens().unwrap().create(token).unwrap();
}

fn content(snapshot: &Snapshot) -> (Vec<Volume>, Vec<String>, [u32; 3], String) {
    (
        snapshot
            .volumes()
            .map(|volume| Volume { address: None, ..Volume::clone(volume) })
            .collect(),
        snapshot.pools().map(|pool| format!("{pool:?}")).collect(),
        snapshot.domain(),
        format!("{:?} {:?}", snapshot.users(), snapshot.groups()),
    )
}

fn password_opens(catalog: &Catalog) {
    let snapshot = catalog.snapshot();
    let user = snapshot.user_named("u").unwrap();
    assert_eq!(catalog.sealer().open(user.rid, user.password.as_ref().unwrap()), Ok([7; 16]));
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
    let import = Import::of_directory(&old).unwrap();
    import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap();
    let again = import_into_cluster(&cluster.place("a"), &import, Replace::Never);
    assert_eq!(again.unwrap_err().code(), "cluster_exists");
    {
        let a = cluster.gateway("a");
        assert_eq!(content(&a.snapshot()), before);
        assert_eq!(*a.handle_secret(), handles);
        assert_eq!(a.condemned().unwrap().len(), 1);
        password_opens(&a);
        // No id is given twice.
        let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
        assert_eq!(made.snapshot.volume_named("w").unwrap().id.0, 3);
        a.delete_volume("w", Mode::Commit).unwrap();
    }
    export_cluster(&cluster.place("a"), &new).unwrap();
    for file in ["api.tokens", "smb.key"] {
        let read = |directory: &Path| std::fs::read(directory.join(file)).unwrap();
        assert_eq!(read(&new), read(&old), "{file}");
    }
    let refused = export_cluster(&cluster.place("a"), &new).unwrap_err();
    assert_eq!(refused.code(), "catalog_exists");
    let back = Catalog::open(&new).unwrap();
    assert_eq!(content(&back.snapshot()), before);
    assert_eq!(*back.handle_secret(), handles);
    password_opens(&back);
    assert!(back.snapshot().generation > 0x100000, "as after a restore");
}

#[test]
fn a_backup_of_the_cluster_is_restored_and_gateways_notice() {
    let cluster = Cluster::new();
    let old = cluster.base.path().join("old");
    alone(&old);
    let import = Import::of_directory(&old).unwrap();
    import_into_cluster(&cluster.place("a"), &import, Replace::Never).unwrap();
    let a = cluster.gateway("a");
    let (bytes, before) = (a.backup().unwrap(), content(&a.snapshot()));
    a.create_pool(&pool("later"), Mode::Commit).unwrap();
    a.delete_volume("v", Mode::Commit).unwrap();
    let backup = Import::of_backup(Path::new("b"), &bytes).unwrap();
    let refused = import_into_cluster(&cluster.place("b"), &backup, Replace::Never);
    assert_eq!(refused.unwrap_err().code(), "cluster_exists");
    import_into_cluster(&cluster.place("b"), &backup, Replace::Kept).unwrap();
    a.follow().unwrap();
    assert_eq!(content(&a.snapshot()), before);
    password_opens(&a);
    let made = a.create_volume(&volume("w", "p"), Mode::Commit).unwrap();
    assert!(made.snapshot.volume_named("w").unwrap().id.0 > 0x100000);
    // That of another cluster is another catalogue.
    let other = Cluster::new();
    let backup = Import::of_backup(Path::new("b"), &other.gateway("x").backup().unwrap()).unwrap();
    import_into_cluster(&cluster.place("b"), &backup, Replace::Kept).unwrap();
    assert_eq!(a.follow().map(drop).unwrap_err().code(), "cluster_replaced");
    assert_eq!(a.create_pool(&pool("z"), Mode::Commit).unwrap_err().code(), "cluster_replaced");
    drop(a);
    assert_eq!(cluster.gateway("a").snapshot().pools().count(), 0);
}
