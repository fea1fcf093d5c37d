//! Several gateways over one CephFS: what one does another sees, keys mean the same everywhere, and
//! a gateway that was fenced can change nothing more.

use crate::common::{Bed, Object, ROOT, block_on, conf, connect, everywhere, new_path, options};
use std::sync::Arc;
use std::time::Duration;
use weir_core::store::{MakeKind, Stability, WriteHow};
use weir_core::{FsError, Name, ObjectKey, Shared, Store};
use weir_store::{CephMonitors, CephOpenError, CephStore, StoreControl};

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn read(store: &CephStore, file: &Object) -> Vec<u8> {
    block_on(store.read(file, 0, 100, Vec::new())).unwrap().out
}

#[test]
fn what_one_gateway_does_another_sees() {
    let Some(conf) = conf() else { return };
    let other = connect(conf.clone(), 1);
    let bed = Bed::open(Arc::new(connect(conf, 1)), new_path(), options());
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
    let fenced = Arc::new(connect(conf.clone(), 1));
    let bed = Bed::open(Arc::clone(&fenced), new_path(), options());
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    let stable = WriteHow { stability: Stability::FileSync, gives_change: false };
    block_on(bed.store.write(&file, 0, Shared::from(b"stable".to_vec()), stable)).unwrap();
    bed.write(&file, 0, b"un").unwrap();
    assert_eq!((bed.store.lost_writes(), fenced.is_lost()), (0, false));
    let sessions = fenced.sessions().unwrap();
    assert!(sessions.len() == 1 && sessions[0].client > 0);
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
    let next = connect(conf, 1);
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
