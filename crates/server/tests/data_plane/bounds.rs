//! Bounds of the data plane that one address drives to their edge, while strangers go on: they
//! connect, mount, read and write as if nothing were.

use crate::fixture::{Fixture, Peer, is_served, write_args};
use crate::{stop_meanwhile, unacknowledged};
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;
use weir_catalog::{Mode, VolumeChange};
use weir_nfs::client::Reply;
use weir_nfs::v3::wire::{FileHandle3, GetattrArgs, ReadArgs, Res, Status, WriteArgs};

const MIB: usize = 1 << 20;

/// READs of 1 MiB each from the start of `file`.
fn read_calls(peer: &Peer, file: &[u8], count: u32) -> Vec<u8> {
    let mut calls = Vec::new();
    for xid in 0..count {
        let args = ReadArgs { file: FileHandle3(file), offset: 0, count: 1 << 20 };
        let mut call = Vec::new();
        peer.caller.call(&mut call, 10_000 + xid, &args);
        calls.extend_from_slice(&call);
    }
    calls
}

/// Sends on a thread of its own, as far as the server takes it.
fn send_in_background(mut socket: TcpStream, bytes: Vec<u8>) {
    thread::spawn(move || drop(socket.write_all(&bytes)));
}

/// Ends connections, and the threads that send on them.
fn disconnect(peers: &[Peer]) {
    for peer in peers {
        // A connection that the server closed before is ended too.
        let _closed = peer.socket.shutdown(Shutdown::Both);
    }
}

/// A file of 1 MiB on a volume.
fn large_file(peer: &mut Peer, root: &[u8]) -> Vec<u8> {
    let file = peer.create(root, "large");
    let written = peer.write(&file, &vec![7; MIB]);
    assert_eq!(peer.next_xid(), written);
    file
}

/// A stranger at another address does all that a client does first.
fn stranger_is_served(fixture: &Fixture, last: u8, volume: &str, file: &[u8]) {
    let mut stranger = fixture.connect_from([127, 0, 1, last]);
    assert!(is_served(&mut stranger), "stranger {last} is not served");
    let root = stranger.mount(volume);
    let made = stranger.create(&root, &format!("of-{last}"));
    let written = stranger.write(&made, &[1; 4096]);
    assert_eq!(stranger.next_xid(), written);
    let read = stranger.send(&ReadArgs { file: FileHandle3(file), offset: 0, count: 1 << 20 });
    let record = stranger.record();
    let reply = Reply::parse(&record).unwrap();
    assert_eq!(reply.xid, read);
    match reply.results::<ReadArgs<'_>>().unwrap() {
        Res::Ok(read) => assert_eq!(read.data.len(), MIB),
        Res::Fail(status, _) => panic!("{status:?}"),
    }
}

/// Each of these connections may hold 4 MiB, and together they want more than a worker holds.
#[test]
fn replies_that_one_address_never_reads_keep_nobody_out() {
    let fixture = Fixture::with(|config| config.workers = 1);
    let mut first = fixture.connect();
    let root = first.mount("/open");
    let file = large_file(&mut first, &root);
    let greedy: Vec<Peer> = (0..100).map(|_| fixture.connect()).collect();
    for peer in &greedy {
        send_in_background(peer.socket.try_clone().unwrap(), read_calls(peer, &file, 40));
    }
    // The server is done with the greedy connections' requests when it serves others at once.
    for last in 1..=20 {
        stranger_is_served(&fixture, last, "/open", &file);
        thread::sleep(Duration::from_millis(100));
    }
    let own = first.send(&GetattrArgs { object: FileHandle3(&file) });
    assert_eq!(first.next_xid(), own, "one that reads is served at that address too");
    assert_eq!(fixture.server.plane().totals().connections_refused, 0);
    disconnect(&greedy);
    fixture.server.stop().unwrap();
}

/// Requests that a connection has no room for stay at the gate, and cost the contract nothing.
#[test]
fn a_client_that_reads_nothing_uses_up_nothing_of_the_contract() {
    let fixture = Fixture::start();
    let mut first = fixture.connect();
    let root = first.mount("/tiny");
    // The contract pays for the file, and for a moment to see which requests wait.
    fixture.lift();
    let file = large_file(&mut first, &root);
    let change = VolumeChange { quota_bytes: Some(4 << 40), ..VolumeChange::default() };
    let catalog = fixture.server.catalog();
    catalog.change_volume("tiny", &change, Some(0), Mode::Commit).unwrap();
    fixture.server.plane().apply(catalog.snapshot()).unwrap();
    // 64 MiB/s from here on. These want 400 MiB.
    let greedy: Vec<Peer> = (0..4).map(|_| fixture.connect_from([127, 0, 0, 9])).collect();
    for peer in &greedy {
        send_in_background(peer.socket.try_clone().unwrap(), read_calls(peer, &file, 100));
    }
    // Another moves as much as it has room for beside them, and more than their sockets take.
    let mut other = fixture.connect_from([127, 0, 0, 2]);
    for _ in 0..100 {
        let args = ReadArgs { file: FileHandle3(&file), offset: 0, count: 1 << 20 };
        let xid = other.send(&args);
        assert_eq!(other.next_xid(), xid);
    }
    let id = catalog.snapshot().volume_named("tiny").unwrap().id;
    let live = fixture.server.plane().volume_live(id).unwrap();
    // The requests that don't wait: 4 MiB and the socket's content, for each connection.
    assert!(
        live.waiting >= 340,
        "{} of 400 wait, the others were charged for nothing",
        live.waiting
    );
    disconnect(&greedy);
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

/// Requests that wait at a gate hold memory. One address fills what its volume has for that.
#[test]
fn requests_of_one_client_that_fill_the_memory_of_a_gate_stop_nobody_else_there() {
    let fixture = Fixture::start();
    let mut first = fixture.connect();
    let root = first.mount("/tiny");
    let file = first.create(&root, "file");
    let written = first.write(&file, &[1; 4096]);
    assert_eq!(first.next_xid(), written, "the contract is spent with it");
    let greedy: Vec<Peer> = (0..4).map(|_| fixture.connect()).collect();
    for peer in &greedy {
        let mut calls = Vec::new();
        for xid in 0..32 {
            let mut call = Vec::new();
            peer.caller.call(&mut call, 20_000 + xid, &write_args(&file, &vec![2; MIB]));
            calls.extend_from_slice(&call);
        }
        send_in_background(peer.socket.try_clone().unwrap(), calls);
    }
    while fixture.server.plane().totals().reading_stopped < 4 {
        thread::yield_now();
    }
    // A stranger's request waits for the contract as it should, and its connection is read all the
    // same.
    let mut stranger = fixture.connect_from([127, 0, 0, 2]);
    stranger.write(&file, &[3; 4096]);
    for _ in 0..10 {
        let xid = stranger.send(&GetattrArgs { object: FileHandle3(&file) });
        assert_eq!(stranger.next_xid(), xid);
    }
    assert_eq!(fixture.server.plane().totals().reading_stopped, 4);
    disconnect(&greedy);
    fixture.lift();
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

/// Calls that cost nothing of any contract cost the worker's time. However many connections of one
/// address send them, those of others have their turns.
#[test]
fn a_flood_of_calls_from_one_address_leaves_others_their_turns() {
    const CONNECTIONS: usize = 64;
    const CALLS: u32 = 20_000;
    let fixture = Fixture::with(|config| config.workers = 1);
    let mut first = fixture.connect();
    let root = first.mount("/open");
    let catalog = fixture.server.catalog();
    let id = catalog.snapshot().volume_named("open").unwrap().id;
    let answered = || fixture.server.plane().volume_live(id).unwrap().other_ops;
    let mut calls = Vec::new();
    for xid in 0..CALLS {
        let mut call = Vec::new();
        first.caller.call(&mut call, 30_000 + xid, &GetattrArgs { object: FileHandle3(&root) });
        calls.extend_from_slice(&call);
    }
    let greedy: Vec<Peer> = (0..CONNECTIONS).map(|_| fixture.connect()).collect();
    let mut stranger = fixture.connect_from([127, 0, 1, 1]);
    for peer in &greedy {
        send_in_background(peer.socket.try_clone().unwrap(), calls.clone());
        let mut replies = peer.socket.try_clone().unwrap();
        thread::spawn(move || std::io::copy(&mut replies, &mut std::io::sink()));
    }
    while answered() < 10_000 {
        thread::yield_now();
    }
    // Once the flood is over, a stranger has the worker to itself.
    let half = CONNECTIONS as u64 * u64::from(CALLS) / 2;
    let mut beside = Vec::new();
    while beside.len() < 20 && (beside.is_empty() || answered() < half) {
        let before = answered();
        let xid = stranger.send(&GetattrArgs { object: FileHandle3(&root) });
        assert_eq!(stranger.next_xid(), xid);
        beside.push(answered() - before);
    }
    // This machine may stop the stranger for a while; the worker must not.
    let least = beside.iter().min().unwrap();
    assert!(*least < 5_000, "{beside:?} calls of the flood for one of a stranger");
    disconnect(&greedy);
    fixture.server.stop().unwrap();
}

/// All these records together are more than a worker receives at once from one address, so some
/// wait for the memory of others.
#[test]
fn large_records_that_arrive_slowly_on_many_connections_are_all_answered() {
    const CONNECTIONS: usize = 280;
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let root = peer.mount("/open");
    let file = large_file(&mut peer, &root);
    let data = vec![3; MIB];
    let mut call = Vec::new();
    peer.caller.call(&mut call, 7, &write_args(&file, &data));
    let peers: Vec<Peer> = (0..CONNECTIONS).map(|_| fixture.connect()).collect();
    thread::scope(|threads| {
        for mut writer in peers {
            let call = &call;
            threads.spawn(move || {
                for part in call.chunks(MIB / 16) {
                    writer.socket.write_all(part).unwrap();
                    thread::yield_now();
                }
                assert_eq!(writer.next_xid(), 7);
            });
        }
        stranger_is_served(&fixture, 7, "/open", &file);
    });
}

/// The status of a WRITE's reply, and the call that it is for.
fn write_status(record: &[u8]) -> (u32, Status) {
    let reply = Reply::parse(record).unwrap();
    match reply.results::<WriteArgs<'_>>().unwrap() {
        Res::Ok(_) => (reply.xid, Status::OK),
        Res::Fail(status, _) => (reply.xid, status),
    }
}

/// Beyond `parked_total_mib` a request is not parked, and its client is told to come again.
#[test]
fn requests_beyond_the_memory_of_all_gates_are_refused_and_others_are_served() {
    let fixture = Fixture::with(|config| config.parked_total_mib = 2);
    let refused = || fixture.server.plane().totals().requests_refused;
    let mut peer = fixture.connect();
    let root = peer.mount("/tiny");
    let file = peer.create(&root, "file");
    let written = peer.write(&file, &[1; 4096]);
    assert_eq!(peer.next_xid(), written, "the contract is spent with it");
    let large = vec![2; MIB];
    let waits = peer.write(&file, &large);
    for count in 1..=3 {
        let xid = peer.write(&file, &large);
        assert_eq!(write_status(&peer.record()), (xid, Status::JUKEBOX));
        assert_eq!(refused(), count);
    }
    // A small request has room, metadata cost nothing, and other volumes are served as ever.
    let small = peer.write(&file, &[3; 4096]);
    let attributes = peer.getattr(&file);
    assert_eq!(peer.next_xid(), attributes);
    let open = peer.mount("/open");
    large_file(&mut peer, &open);
    assert!(fixture.server.plane().totals().parked_bytes <= 2 * MIB as u64);
    fixture.lift();
    let mut answered = [write_status(&peer.record()), write_status(&peer.record())];
    answered.sort_unstable_by_key(|(xid, _)| *xid);
    assert_eq!(answered, [(waits, Status::OK), (small, Status::OK)]);
    fixture.wait_until_nothing_is_parked();
    let again = peer.write(&file, &large);
    assert_eq!(write_status(&peer.record()), (again, Status::OK));
    assert_eq!(refused(), 3);
    fixture.server.stop().unwrap();
}

/// Records that never end hold all the memory that their address may hold for received data. Calls
/// of other connections, which wait for that memory, are answered when the server stops: it has
/// received them.
#[test]
fn a_stop_answers_calls_that_wait_for_memory_to_be_received() {
    const HOLDERS: usize = 110;
    let fixture = Fixture::with(|config| config.workers = 1);
    let mut first = fixture.connect();
    let root = first.mount("/open");
    let file = large_file(&mut first, &root);
    let part = [&(0x8000_0000u32 | 1 << 20).to_be_bytes()[..], &[0; 40 << 10]].concat();
    // A worker has each of them: what waits to be accepted is not served by a stop.
    let connect = |_| {
        let mut peer = fixture.connect();
        assert!(is_served(&mut peer));
        peer
    };
    let mut callers: Vec<Peer> = (0..8).map(connect).collect();
    let mut holders: Vec<Peer> = (0..HOLDERS).map(connect).collect();
    for holder in &mut holders {
        holder.socket.write_all(&part).unwrap();
    }
    // Records without progress are given up after 5 s: a machine that is so slow proves less here.
    for (number, caller) in (1..).zip(&mut callers) {
        // Else they are taken for repetitions of one call of this address.
        caller.xid += 1000 * number;
        caller.write(&file, &[4; 48 << 10]);
        while unacknowledged(&caller.socket) > 0 {
            thread::yield_now();
        }
    }
    let stopping = stop_meanwhile(fixture);
    for caller in &mut callers {
        assert_eq!(write_status(&caller.record()), (caller.xid, Status::OK));
        assert_eq!(caller.next_xid_or_end(), None);
    }
    drop((first, callers, holders));
    stopping.join().unwrap();
}
