//! The counts of operations by protocol and name.

use crate::fixture::{Fixture, Peer, is_served};
use weir_nfs::acl::wire::{AclMask, GetaclArgs};
use weir_nfs::client::{RemoteCall, Reply};
use weir_nfs::v3::wire::{DirOpArgs3, FileHandle3, LookupArgs, ReadArgs};

/// Sends a call and waits for its reply.
fn call<A: RemoteCall>(peer: &mut Peer, args: &A) {
    let xid = peer.send(args);
    assert_eq!(Reply::parse(&peer.record()).unwrap().xid, xid);
}

#[test]
fn operations_of_a_volume_are_counted_by_protocol_and_name() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let root = peer.mount("/open");
    let other = peer.mount("/tiny");
    let file = peer.create(&root, "file");
    peer.create(&root, "another");
    for _ in 0..3 {
        let xid = peer.getattr(&file);
        assert_eq!(peer.next_xid(), xid);
    }
    let xid = peer.getattr(&other);
    assert_eq!(peer.next_xid(), xid);
    for name in ["file", "nothing"] {
        let what = DirOpArgs3 { dir: FileHandle3(&root), name: name.as_bytes() };
        call(&mut peer, &LookupArgs { what });
    }
    let xid = peer.write(&file, &[7; 4096]);
    assert_eq!(peer.next_xid(), xid);
    for offset in [0, 4096] {
        call(&mut peer, &ReadArgs { file: FileHandle3(&file), offset, count: 4096 });
    }
    call(&mut peer, &GetaclArgs { object: FileHandle3(&root), mask: AclMask::all() });
    assert!(is_served(&mut peer), "a call that is for no volume");

    let of = |volume: &str| -> Vec<_> {
        let id = fixture.server.catalog().snapshot().volume_named(volume).unwrap().id;
        let live = fixture.server.plane().volume_live(id).unwrap();
        let operations = live.operations.iter();
        operations.map(|one| (one.protocol, one.operation, one.answered, one.failed)).collect()
    };
    let open = of("open");
    for expected in [
        ("nfs3", "GETATTR", 3, 0),
        ("nfs3", "LOOKUP", 2, 1),
        ("nfs3", "READ", 2, 0),
        ("nfs3", "WRITE", 1, 0),
        ("nfs3", "CREATE", 2, 0),
        ("nfsacl", "GETACL", 1, 0),
    ] {
        assert!(open.contains(&expected), "{expected:?} is not in {open:?}");
    }
    assert_eq!(open.len(), 6, "{open:?}");
    assert_eq!(of("tiny"), [("nfs3", "GETATTR", 1, 0)]);
    fixture.server.stop().unwrap();
}
