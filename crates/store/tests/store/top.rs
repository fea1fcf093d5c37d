//! The top directory, as an operator changes its owner and permissions.

use crate::common::*;
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, AclKind, FsError, SetAttr, Store};
use weir_store::StoreControl;
use weir_store::testing::{Fault, Kind, Rule};

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

#[test]
fn a_change_of_the_top_directory_is_synced_and_seen_by_all() {
    everywhere(|bed| {
        let made = bed.store.root_attr().unwrap();
        assert_eq!((made.uid, made.gid, made.mode), (0, 0, 0o755));
        let given = SetAttr { uid: Some(5001), gid: Some(50), ..mode(0o2770) };
        let syncs = bed.store.syncs();
        block_on(bed.store.set_root_attr(&given)).unwrap();
        assert!(bed.store.syncs() > syncs, "although the volume's changes are not");
        let attr = bed.store.root_attr().unwrap();
        assert_eq!((attr.uid, attr.gid, attr.mode), (5001, 50, 0o2770));
        assert_eq!(bed.attr(&bed.root()), attr);
        let on_disk = std::fs::metadata(bed.path()).unwrap();
        assert_eq!((on_disk.uid(), on_disk.gid(), on_disk.mode() & 0o7777), (5001, 50, 0o2770));
        assert_eq!(bed.reopen().root_attr().unwrap().uid, 5001);
        // Clients see by the time of change that their attributes are out of date, once the
        // kernel's clock has moved.
        let moves = || {
            std::thread::sleep(Duration::from_millis(1));
            block_on(bed.store.set_root_attr(&mode(0o750))).unwrap();
            bed.store.root_attr().unwrap().ctime > attr.ctime
        };
        assert!((0..1000).any(|_| moves()));
        let attr = bed.store.root_attr().unwrap();
        assert_eq!((attr.uid, attr.gid, attr.mode), (5001, 50, 0o750), "the rest stays");
    });
}

#[test]
fn the_mode_of_a_top_directory_with_a_list_changes_the_mask() {
    everywhere(|bed| {
        let entry = |who, rights| Entry { who, rights };
        let list = Acl::new(vec![
            entry(Who::Owner, Access::all()),
            entry(Who::User(5001), Access::all()),
            entry(Who::OwningGroup, Access::empty()),
            entry(Who::Mask, Access::all()),
            entry(Who::Others, Access::empty()),
        ])
        .unwrap();
        block_on(bed.store.set_acl(&bed.root(), AclKind::Access, Some(&list), &ROOT)).unwrap();
        assert_eq!(bed.store.root_attr().unwrap().mode, 0o770);
        block_on(bed.store.set_root_attr(&mode(0o750))).unwrap();
        let (attr, found) = block_on(bed.store.acl(&bed.root(), AclKind::Access)).unwrap();
        assert_eq!((attr.mode, attr.has_acl), (0o750, true));
        assert_eq!(found, Some(list.with_mode(0o750)));
    });
}

#[test]
fn a_change_of_the_top_directory_that_does_not_reach_the_disk_fails() {
    let faulty = Faulty::new();
    let rule = Rule::new(&[Kind::Sync], faulty.directory.join("root"), Fault::Fail(Errno::IO));
    let rule = faulty.kernel.add(rule);
    let change = || faulty.run(|bed| block_on(bed.store.set_root_attr(&mode(0o770))));
    assert_eq!(change(), Err(FsError::Io));
    faulty.kernel.lift(rule);
    assert_eq!(change(), Ok(()));
}
