//! The counts of operations by protocol and name.

use crate::fixture::{Fixture, Peer, is_served};
use std::io::{Read, Write};
use std::time::Instant;
use weir_nfs::acl::wire::{AclMask, GetaclArgs};
use weir_nfs::client::{RemoteCall, Reply};
use weir_nfs::v3::wire::{DirOpArgs3, FileHandle3, GetattrArgs, LookupArgs, ReadArgs};

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

/// The worker sleeps after the connection broke the protocol. The time asleep is no latency.
#[test]
fn latencies_of_operations_before_a_protocol_error_end_with_the_connection() {
    // More than a worker takes of one connection before the next has its turn.
    const CALLS: u64 = 100;
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let root = peer.mount("/tiny");
    let id = fixture.server.catalog().snapshot().volume_named("tiny").unwrap().id;
    let live = || fixture.server.plane().volume_live(id).unwrap();
    let before = live();
    let mut burst = Vec::new();
    for xid in 1..=u32::try_from(CALLS).unwrap() {
        peer.caller.call(&mut burst, xid, &GetattrArgs { object: FileHandle3(&root) });
    }
    // A mark of a last fragment that is longer than any record may be.
    burst.extend([0xff; 4]);
    let sent = Instant::now();
    peer.socket.write_all(&burst).unwrap();
    // The server may reset the connection.
    let _end = peer.socket.read_to_end(&mut Vec::new());
    let elapsed = u64::try_from(sent.elapsed().as_nanos()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    // Another connection wakes the workers.
    for _ in 0..8 {
        assert!(is_served(&mut fixture.connect()));
    }
    let after = live();
    let (operations, nanos) =
        (after.other_ops - before.other_ops, after.latency_nanos - before.latency_nanos);
    assert!((1..=CALLS).contains(&operations), "{operations}");
    assert!(nanos <= operations * elapsed, "{nanos} ns of {operations}, within {elapsed} ns");
    fixture.server.stop().unwrap();
}
