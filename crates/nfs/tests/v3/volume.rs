//! NULL, FSSTAT, FSINFO and PATHCONF.

use crate::world::{ALICE, World, failed, ok};
use weir_core::FsError;
use weir_core::testing::MemStore;
use weir_nfs::client::Null;
use weir_nfs::v3::wire::{
    FileHandle3, FsInfoArgs, FsProperties, FsStatArgs, NfsTime3, PathconfArgs, Status,
};

#[test]
fn null_succeeds() {
    World::new().client(ALICE).call(&Null).results();
}

#[test]
fn fsstat_shows_the_quota_and_its_use() {
    let world = World::of(1, MemStore::with_quota(1 << 20));
    let alice = world.client(ALICE);
    let root = world.root();
    let file = alice.create(&root, "f", 0o644);
    ok(alice.write(&file, 0, &[1; 4097]));
    let args = FsStatArgs { root: FileHandle3(&root) };
    let stat = ok(alice.call(&args).results());
    assert_eq!(stat.attributes, Some(alice.attr(&root)));
    let free = (1 << 20) - 8192;
    assert_eq!((stat.total_bytes, stat.free_bytes), (1 << 20, free));
    assert_eq!(stat.available_bytes, free);
    assert_eq!(stat.total_files - stat.free_files, 2);
    assert_eq!((stat.available_files, stat.invarsec), (stat.free_files, 0));
    alice.fail_after(2, FsError::Io);
    assert_eq!(failed(alice.call(&args).results()), (Status::IO, Some(alice.attr(&root))));
}

#[test]
fn fsinfo_tells_the_sizes_taken() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let info = ok(alice.call(&FsInfoArgs { root: FileHandle3(&root) }).results());
    assert_eq!(info.attributes, Some(alice.attr(&root)));
    for largest in [info.rtmax, info.rtpref, info.wtmax, info.wtpref] {
        assert_eq!(largest, 1 << 20);
    }
    assert_eq!((info.rtmult, info.wtmult, info.dtpref), (4096, 4096, 64 << 10));
    assert_eq!(info.maxfilesize, i64::MAX as u64);
    assert_eq!(info.time_delta, NfsTime3 { seconds: 0, nseconds: 1 });
    assert_eq!(info.properties, FsProperties::all());
}

#[test]
fn pathconf_tells_the_limits_of_names() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let conf = ok(alice.call(&PathconfArgs { object: FileHandle3(&root) }).results());
    assert_eq!(conf.attributes, Some(alice.attr(&root)));
    assert_eq!((conf.name_max, conf.linkmax), (255, 65_000));
    assert!(conf.no_trunc && conf.chown_restricted && conf.case_preserving);
    assert!(!conf.case_insensitive);
}
