//! Birth, DOS attributes and the count of changes on CephFS.

use crate::acl::for_friend;
use crate::common::{Object, ROOT, block_on, everywhere};
use std::collections::HashMap;
use weir_core::attr::SetTime;
use weir_core::store::{MakeKind, Want};
use weir_core::{
    Access, AclKind, Credentials, Details, DosAttributes, FsError, Name, SetAttr, SetDetails,
    Store, Timestamp,
};

fn details(store: &impl Store<Object = Object>, object: &Object) -> Details {
    block_on(store.details(object)).unwrap().1
}

fn born(secs: i64) -> SetDetails {
    SetDetails { birth: Some(Timestamp { secs, nanos: 5 }), dos: None }
}

fn dos(dos: DosAttributes) -> SetDetails {
    SetDetails { dos: Some(dos), birth: None }
}

#[test]
fn details_are_kept_and_leave_the_key_as_it_is() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"f", 0o600, &ROOT).unwrap();
        let key = bed.store.key(&file);
        let natural = details(&bed.store, &file);
        assert_eq!(natural.dos, DosAttributes::ARCHIVE);
        block_on(bed.store.set_details(&file, &born(-7), &ROOT)).unwrap();
        let set = dos(DosAttributes::HIDDEN);
        let found = block_on(bed.store.set_details(&file, &set, &ROOT)).unwrap().1;
        assert_eq!((found.birth.secs, found.dos), (-7, DosAttributes::HIDDEN));
        let again = bed.reopen();
        let same = block_on(again.resolve(&key)).unwrap();
        assert_eq!(details(&again, &same), found);
        assert_eq!(format!("{:?}", again.key(&same)), format!("{key:?}"), "birth and all");
        let stranger = Credentials::new(9, 9);
        let refused = block_on(bed.store.set_details(&file, &born(1), &stranger));
        assert_eq!(refused.err(), Some(FsError::AccessDenied));
        let link = bed.make(&root, b"l", &MakeKind::Symlink(b"f".to_vec())).unwrap();
        let refused = block_on(bed.store.set_details(&link, &born(1), &ROOT));
        assert_eq!(refused.err(), Some(FsError::NotSupported));
        let page = block_on(bed.store.read_dir(&root, 0, 100, 10_000, Want::Details)).unwrap();
        for entry in page.entries {
            let name = Name::new(&entry.name).unwrap();
            let (object, attr) = block_on(bed.store.lookup(&root, name)).unwrap();
            assert_eq!(entry.object, Some((bed.store.key(&object), attr)), "{name:?}");
            assert_eq!(entry.details, Some(details(&bed.store, &object)), "{name:?}");
        }
    });
}

#[test]
fn every_change_is_counted_and_no_count_comes_again() {
    everywhere(|bed| {
        let root = bed.root();
        let file = bed.create(&root, b"file", 0o600, &ROOT).unwrap();
        let (mut seen, mut last) = (HashMap::new(), [0, 0]);
        for round in 0..60u64 {
            match round % 6 {
                0 => drop(bed.write(&file, round, b"data").unwrap()),
                1 => {
                    let time = SetTime::To(Timestamp { secs: 5, nanos: 0 });
                    let set = SetAttr { mtime: time, ..SetAttr::default() };
                    bed.set(&file, &set, &ROOT).unwrap();
                }
                2 => {
                    let size = SetAttr { size: Some(100 + round), ..SetAttr::default() };
                    bed.set(&file, &size, &ROOT).unwrap();
                }
                3 => {
                    let set = born(round.cast_signed());
                    let _set = block_on(bed.store.set_details(&file, &set, &ROOT)).unwrap();
                }
                4 => drop(block_on(bed.store.zero_range(&file, 0, 50)).unwrap()),
                _ => drop(block_on(bed.store.set_size(&file, 200 + round)).unwrap()),
            }
            if round % 3 == 0 {
                bed.create(&root, format!("other{round}").as_bytes(), 0o600, &ROOT).unwrap();
            }
            for (number, object) in [&file, &root].into_iter().enumerate() {
                let (attr, found) = block_on(bed.store.details(object)).unwrap();
                let moved = found.change > last[number];
                assert!(moved || (number == 1 && round % 3 != 0), "{number} in round {round}");
                last[number] = found.change;
                let state = (attr.size, attr.mtime, attr.ctime, attr.nlink, found.birth);
                let before = seen.insert((number, found.change), state);
                assert!(before.is_none_or(|before| before == state), "the same count again");
            }
        }
    });
}

/// Unstable writes are counted by this gateway alone at first, and changes of attributes by the
/// metadata server.
#[test]
fn changes_beside_unstable_writes_are_counted() {
    everywhere(|bed| {
        let file = bed.create(&bed.root(), b"file", 0o600, &ROOT).unwrap();
        let count = || details(&bed.store, &file).change;
        for round in 0..60u64 {
            for _ in 0..=round % 7 {
                let before = count();
                bed.write(&file, round, b"data").unwrap();
                assert!(count() > before, "a write in round {round}");
            }
            let before = count();
            match round % 3 {
                0 => {
                    let set = born(round.cast_signed());
                    let _set = block_on(bed.store.set_details(&file, &set, &ROOT)).unwrap();
                }
                1 => {
                    let set =
                        SetAttr { uid: Some(u32::from(round % 2 == 0)), ..SetAttr::default() };
                    bed.set(&file, &set, &ROOT).unwrap();
                }
                _ => {
                    let list = for_friend(Access::READ, Access::WRITE);
                    let list = Some(&list).filter(|_| round % 2 == 0);
                    let set = block_on(bed.store.set_acl(&file, AclKind::Access, list, &ROOT));
                    set.unwrap();
                }
            }
            assert!(count() > before, "round {round}");
        }
    });
}
