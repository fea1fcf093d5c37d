//! Several gateways over one CephFS: what one does another sees, keys mean the same everywhere, and
//! a gateway that was fenced can change nothing more.

use crate::common::{Bed, Object, ROOT, block_on, conf, connect, everywhere, new_path, options};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use weir_core::store::{MakeKind, Stability, WriteHow};
use weir_core::{FsError, Name, ObjectKey, Shared, Store};
use weir_store::{
    Ceph, CephMonitors, CephOpenError, CephStore, Removal, StoreControl, claim_pool, move_volume,
    remove_volume,
};

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn read(store: &CephStore, file: &Object) -> Vec<u8> {
    block_on(store.read(file, 0, 100, Vec::new())).unwrap().out
}

#[test]
fn what_one_gateway_does_another_sees() {
    let Some(conf) = conf() else { return };
    let other = connect(conf.clone(), 2);
    let bed = Bed::open(Arc::new(connect(conf, 2)), new_path(), options());
    let root = bed.root();
    let dir = bed.make(&root, b"d", &MakeKind::Directory).unwrap();
    let file = bed.create(&dir, b"f", 0o644, &ROOT).unwrap();
    bed.write(&file, 0, b"from one").unwrap();
    let second = CephStore::open(&other, &bed.path, &options()).unwrap();
    // By its key, without having seen its name.
    let same = block_on(second.resolve(&bed.store.key(&file))).unwrap();
    assert_eq!(second.key(&same), bed.store.key(&file));
    assert_eq!(read(&second, &same), b"from one");
    assert_eq!(block_on(second.attr(&same)), Ok(bed.attr(&file)));
    let change = block_on(second.details(&same)).unwrap().1.change;
    let data = Shared::from(b"from two".to_vec());
    block_on(second.write(&same, 0, data, Stability::FileSync)).unwrap();
    assert_eq!(read(&bed.store, &file), b"from two");
    assert!(block_on(bed.store.details(&file)).unwrap().1.change > change);
    let second_dir = block_on(second.resolve(&bed.store.key(&dir))).unwrap();
    let above = block_on(second.lookup(&second_dir, name(".."))).unwrap().0;
    assert_eq!(second.key(&above), bed.store.key(&root));
    block_on(second.rename(&second_dir, name("f"), &above, name("g"), &ROOT)).unwrap();
    assert_eq!(bed.lookup(&dir, b"f").err(), Some(FsError::NotFound));
    assert_eq!(bed.lookup(&root, b"g").unwrap().key(), file.key());
    block_on(second.remove(&above, name("g"), &ROOT)).unwrap();
    assert_eq!(bed.attr(&file).nlink, 0, "who holds it open sees it end");
    let gone = block_on(bed.store.resolve(&bed.store.key(&file)));
    assert_eq!(gone.err(), Some(FsError::Stale));
    drop((second, same, second_dir, above));
    other.disconnect();
    drop((root, dir, file));
    bed.end();
}

#[test]
fn a_gateway_that_was_fenced_loses_what_was_not_stable_and_says_so() {
    let Some(conf) = conf() else { return };
    let fenced = Arc::new(connect(conf.clone(), 2));
    let bed = Bed::open(Arc::clone(&fenced), new_path(), options());
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    let stable = WriteHow { stability: Stability::FileSync, gives_change: false };
    block_on(bed.store.write(&file, 0, Shared::from(b"stable".to_vec()), stable)).unwrap();
    bed.write(&file, 0, b"un").unwrap();
    assert_eq!((bed.store.lost_writes(), fenced.is_lost()), (0, false));
    let sessions = fenced.sessions().unwrap();
    assert!(sessions.len() == 2 && sessions.iter().all(|session| session.client > 0));
    let addresses: Vec<_> = sessions.into_iter().map(|session| session.addresses).collect();
    let monitors = CephMonitors::connect(&conf, "admin", 30).unwrap();
    monitors.blocklist(&addresses, Duration::from_secs(600)).unwrap();
    assert!(monitors.blocklist(&["nonsense".to_owned()], Duration::from_secs(1)).is_err());
    // The metadata server learns it a moment later, and ends the session.
    let make = |number: u32| bed.create(&bed.root(), format!("g{number}").as_bytes(), 0o644, &ROOT);
    let refused = (0..).find_map(|number| make(number).err());
    assert_eq!(refused, Some(FsError::Io));
    // A sync never succeeds from here on, however often it is tried.
    for _ in 0..3 {
        assert_eq!(block_on(bed.store.commit(&file)).err(), Some(FsError::Io));
    }
    assert!(bed.store.lost_writes() > 0 && fenced.is_lost());
    let next = connect(conf, 2);
    let store = CephStore::open(&next, &bed.path, &options()).unwrap();
    let found = block_on(store.resolve(&bed.store.key(&file))).unwrap();
    // The rest may have been on its way already.
    let data = read(&store, &found);
    assert!(data == b"stable" || data == b"unable", "{data:?}");
    drop((store, found, file));
    next.disconnect();
    drop(fenced);
    bed.end();
}

#[test]
fn volumes_are_dealt_to_mounts_and_what_is_no_volume_is_refused() {
    let Some(conf) = conf() else { return };
    let ceph = connect(conf, 2);
    assert_eq!(ceph.sessions().unwrap().len(), 2);
    let path = new_path();
    let open = |path: &str| CephStore::open(&ceph, path, &options());
    let stores = [0, 1, 2].map(|number| open(&format!("{path}/{number}")).unwrap());
    let keys = stores.each_ref().map(|store| store.key(&store.root()));
    assert!(keys[0] != keys[1] && keys[1] != keys[2]);
    assert!(stores.iter().all(StoreControl::handles_persist));
    assert!(matches!(open(&path), Err(CephOpenError::NoFormat { .. })), "it has volumes in it");
    assert!(matches!(open("/"), Err(CephOpenError::Path { .. })));
    assert!(matches!(open("/a/../b"), Err(CephOpenError::Path { .. })));
    drop(stores);
    ceph.disconnect();
}

#[test]
fn keys_that_name_nothing_are_refused() {
    everywhere(|bed| {
        let key = |bytes: &[u8]| ObjectKey::new(bytes).unwrap();
        let resolve = |key: &ObjectKey| block_on(bed.store.resolve(key)).err();
        assert_eq!(resolve(&key(b"short")), Some(FsError::BadHandle));
        // An inode number that nothing has, and some that are the metadata server's own.
        for ino in [0x1000_0fff_ffffu64, 0, 2, 0x100, 0x600] {
            let bytes = [&[0xce][..], &ino.to_be_bytes()].concat();
            assert_eq!(resolve(&key(&bytes)), Some(FsError::Stale), "{ino:x}");
        }
    });
}

/// The epoch of the map of OSDs that a client knows, by its administrative socket.
fn epoch_of(socket: &std::path::Path) -> u64 {
    let mut socket = UnixStream::connect(socket).unwrap();
    socket.write_all(b"{\"prefix\":\"status\"}\0").unwrap();
    let mut answer = String::new();
    socket.read_exact(&mut [0; 4]).unwrap();
    socket.read_to_string(&mut answer).unwrap();
    let (_, rest) = answer.split_once("\"osd_epoch\":").unwrap();
    rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn a_gateway_that_waits_for_an_epoch_knows_it() {
    let Some(conf) = conf() else { return };
    let base = tempfile::tempdir().unwrap();
    let (own, socket) = (base.path().join("ceph.conf"), base.path().join("socket"));
    let text = std::fs::read_to_string(&conf).unwrap();
    let switched_off = "[client]\nlog_file =\nadmin_socket =\n";
    assert!(text.contains(switched_off), "{text}");
    let on = format!("[client]\nlog_file =\nadmin_socket = {}\n", socket.display());
    std::fs::write(&own, text.replace(switched_off, &on)).unwrap();
    let ceph = connect(own, 2);
    let monitors = CephMonitors::connect(&conf, "admin", 30).unwrap();
    let first = epoch_of(&socket);
    // A session that there is no more.
    let gone = ["127.0.0.1:0/1".to_owned()];
    let epochs = [1, 2].map(|_| monitors.blocklist(&gone, Duration::from_secs(60)).unwrap());
    assert!(first < epochs[0] && epochs[0] < epochs[1], "{first} {epochs:?}");
    ceph.wait_for_epoch(epochs[1]).unwrap();
    assert!(epoch_of(&socket) >= epochs[1]);
    // An epoch that is known already is not asked for.
    ceph.wait_for_epoch(epochs[0]).unwrap();
    ceph.disconnect();
}

#[test]
fn a_volume_moves_and_goes_with_all_its_files() {
    let Some(conf) = conf() else { return };
    let ceph = Arc::new(connect(conf.clone(), 2));
    let (one, two) = (format!("{}/one", new_path()), format!("{}/two", new_path()));
    let mark = "catalogue";
    for pool in [&one, &two] {
        claim_pool(&ceph, pool, mark).unwrap();
        claim_pool(&ceph, pool, mark).unwrap();
        let refused = claim_pool(&ceph, pool, "other");
        assert!(matches!(refused, Err(CephOpenError::ForeignPool { .. })), "{refused:?}");
    }
    let at = |pool: &str| format!("{pool}/volumes/7");
    assert!(!move_volume(&ceph, &at(&one), &at(&two)).unwrap(), "there is none");
    let bed = Bed::open(Arc::clone(&ceph), at(&one), options());
    let mut dir = bed.root();
    let client = ceph.sessions().unwrap()[0].client;
    for depth in 0..8u8 {
        for number in 0..3 {
            let name = format!("{number}{}", "n".repeat(200));
            let file = bed.create(&dir, name.as_bytes(), 0, &ROOT).unwrap();
            bed.write(&file, 0, &[depth; 100]).unwrap();
        }
        bed.make(&dir, b"empty", &MakeKind::Directory).unwrap();
        // The names under which directories move up may be there already.
        let taken = [1, 2].map(|number| format!(".weir-{client}-{number}"));
        bed.create(&dir, taken[0].as_bytes(), 0o600, &ROOT).unwrap();
        dir = bed.make(&dir, taken[1].as_bytes(), &MakeKind::Directory).unwrap();
    }
    assert!(move_volume(&ceph, &at(&one), &at(&two)).unwrap());
    assert!(!move_volume(&ceph, &at(&one), &at(&two)).unwrap(), "it was moved");
    bed.create(&bed.root(), b"after", 0o600, &ROOT).unwrap();
    drop(dir);
    bed.end();

    let remove = |ceph: &Ceph, mark: &str, leaving: &dyn Fn() -> bool| {
        remove_volume(ceph, (&two, mark), &at(&two), leaving)
    };
    assert!(matches!(remove(&ceph, "other", &|| false), Err(CephOpenError::ForeignPool { .. })));
    let steps = AtomicUsize::new(0);
    let after_some = || steps.fetch_add(1, Relaxed) == 5;
    assert_eq!(remove(&ceph, mark, &after_some).unwrap(), Removal::CutShort);
    // Two gateways at once.
    let other = connect(conf, 2);
    std::thread::scope(|threads| {
        let both = [&*ceph, &other]
            .map(|ceph| threads.spawn(move || remove(ceph, mark, &|| false).unwrap()));
        for removed in both {
            assert_eq!(removed.join().unwrap(), Removal::Done);
        }
    });
    assert_eq!(remove(&ceph, mark, &|| false).unwrap(), Removal::Done);
    assert!(!move_volume(&ceph, &at(&two), &at(&one)).unwrap(), "nothing is left");
    other.disconnect();
    Arc::into_inner(ceph).unwrap().disconnect();
}
