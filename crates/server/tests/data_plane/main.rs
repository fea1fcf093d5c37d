//! The data plane as a peer on a socket sees it: gates, parked memory, shared connections, stops.
//!
//! The contracts here are either never binding or so small that a request which waits would wait
//! for hours: what is observed is order and presence of replies, never how long they took.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bounds;
mod counted;
mod fixture;

use fixture::{Fixture, Peer, is_served, write_args};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use weir_catalog::{ExportRule, Mode, NewVolume, Protocols, SharingChange, VolumeChange};
use weir_core::Credentials;
use weir_nfs::acl::wire::{AclMask, GetaclArgs};
use weir_nfs::client::{AclNull, Caller, Dump, ExportList, Refused, Reply, Umnt, Umntall};
use weir_nfs::mount::wire::{ExportEntry, MountEntry};
use weir_nfs::rpc::AcceptError;
use weir_nfs::v3::wire::{
    DirOpArgs3, FileHandle3, ReadArgs, RemoveArgs, Res, Sattr3, SetattrArgs, Status,
};

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// A file on the tiny volume, whose contract is already spent by one write.
fn spent(peer: &mut Peer) -> Vec<u8> {
    let root = peer.mount("/tiny");
    let file = peer.create(&root, "file");
    let first = peer.write(&file, &[1; 4096]);
    assert_eq!(peer.next_xid(), first, "the first request goes on credit");
    file
}

#[test]
fn a_waiting_volume_does_not_hold_up_another_on_the_same_connection() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    let open = peer.mount("/open");
    let waiting: Vec<u32> = (0..64).map(|_| peer.write(&tiny, &[2; 8192])).collect();
    let passing = peer.getattr(&open);
    assert_eq!(peer.next_xid(), passing);
    let same_volume = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), same_volume, "metadata is not charged and does not wait");
    fixture.lift();
    // The gate lets the requests go in order; slow writes run on other threads and overtake each
    // other.
    let mut answered: Vec<u32> = waiting.iter().map(|_| peer.next_xid()).collect();
    answered.sort_unstable();
    assert_eq!(answered, waiting, "each is answered once");
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

#[test]
fn beyond_the_parked_bound_only_that_connection_stops() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    let mut other = fixture.connect();
    let open = other.mount("/open");
    let mut full = peer.socket.try_clone().unwrap();
    let (caller, data) = (Caller::sys(&Credentials::ROOT, b"test"), vec![3; 1 << 20]);
    let flood = std::thread::spawn(move || {
        for xid in 1000..1064 {
            let mut bytes = Vec::new();
            caller.call(&mut bytes, xid, &write_args(&tiny, &data));
            full.write_all(&bytes).unwrap();
        }
    });
    while fixture.server.plane().totals().reading_stopped == 0 {
        std::thread::yield_now();
    }
    let parked = fixture.server.plane().totals().parked_bytes;
    assert!((16 * MIB..20 * MIB).contains(&parked), "{parked}");
    let xid = other.getattr(&open);
    assert_eq!(other.next_xid(), xid, "others are served meanwhile");
    fixture.lift();
    let mut answered: Vec<u32> = (1000..1064).map(|_| peer.next_xid()).collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq(1000..1064), "each is answered once");
    flood.join().unwrap();
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

#[test]
fn a_retransmission_of_a_waiting_call_is_dropped() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    for _ in 0..3 {
        peer.send_as(500, &write_args(&tiny, &[4; 4096]));
    }
    let marker = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), marker);
    fixture.lift();
    assert_eq!(peer.next_xid(), 500);
    let last = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), last, "one reply for three transmissions");
    fixture.server.stop().unwrap();
}

/// REMOVE of `name` as a call of this number.
fn send_remove(peer: &mut Peer, xid: u32, dir: &[u8], name: &str) {
    let object = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
    peer.send_as(xid, &RemoveArgs { object });
}

fn remove_status(record: &[u8]) -> Status {
    Reply::parse(record).unwrap().results::<RemoveArgs<'_>>().unwrap().status()
}

#[test]
fn a_call_whose_reply_was_lost_with_its_connection_gets_it_over_another() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let open = peer.mount("/open");
    for round in 0..20 {
        let name = format!("file{round}");
        peer.create(&open, &name);
        let mut lost = fixture.connect();
        send_remove(&mut lost, 7000 + round, &open, &name);
        drop(lost);
        let mut again = fixture.connect();
        send_remove(&mut again, 7000 + round, &open, &name);
        let record = again.record();
        assert_eq!(remove_status(&record), Status::OK, "round {round}");
        assert_eq!(Reply::parse(&record).unwrap().xid, 7000 + round);
        send_remove(&mut again, 9000 + round, &open, &name);
        assert_eq!(remove_status(&again.record()), Status::NOENT, "it is gone all the same");
    }
    fixture.server.stop().unwrap();
}

#[test]
fn the_same_call_twice_at_once_is_carried_out_once_and_answered_on_both_connections() {
    let fixture = Fixture::start();
    let (mut one, mut two) = (fixture.connect(), fixture.connect());
    let open = one.mount("/open");
    for round in 0..50 {
        let name = format!("file{round}");
        one.create(&open, &name);
        send_remove(&mut one, 5000 + round, &open, &name);
        send_remove(&mut two, 5000 + round, &open, &name);
        assert_eq!(remove_status(&one.record()), Status::OK, "round {round}");
        assert_eq!(remove_status(&two.record()), Status::OK, "round {round}");
    }
    fixture.server.stop().unwrap();
}

#[test]
fn a_client_that_counts_its_calls_anew_is_not_taken_for_one_that_repeats_itself() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let open = peer.mount("/open");
    peer.create(&open, "file");
    let one_run = |expected| {
        let mut client = fixture.connect();
        send_remove(&mut client, 1, &open, "file");
        assert_eq!(remove_status(&client.record()), expected);
        let connections = fixture.server.plane().totals().connections;
        drop(client);
        // The connection's number is used again only after the server saw its end.
        while fixture.server.plane().totals().connections == connections {
            std::thread::yield_now();
        }
    };
    one_run(Status::OK);
    one_run(Status::NOENT);
    fixture.server.stop().unwrap();
}

#[test]
fn a_waiting_call_sent_again_over_another_connection_is_carried_out_and_charged_once() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    let mut again = fixture.connect();
    for client in [&mut peer, &mut again] {
        client.send_as(500, &write_args(&tiny, &[4; 4096]));
        let marker = client.getattr(&tiny);
        assert_eq!(client.next_xid(), marker);
    }
    // One more connection, which is lost while it waits.
    let mut lost = fixture.connect();
    lost.send_as(500, &write_args(&tiny, &[4; 4096]));
    let marker = lost.getattr(&tiny);
    assert_eq!(lost.next_xid(), marker);
    drop(lost);
    fixture.lift();
    assert_eq!(again.next_xid(), 500);
    fixture.wait_until_nothing_is_parked();
    let last = again.getattr(&tiny);
    assert_eq!(again.next_xid(), last);
    let id = fixture.server.catalog().snapshot().volume_named("tiny").unwrap().id;
    let live = fixture.server.plane().volume_live(id).unwrap();
    assert_eq!((live.write_ops, live.write_bytes), (2, 8192), "the first, and this one once");
    fixture.server.stop().unwrap();
}

#[test]
fn many_clients_behind_one_address_that_count_alike_are_all_answered() {
    const CLIENTS: usize = 40;
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    let open = peer.mount("/open");
    peer.create(&open, "file");
    let mut alike: Vec<Peer> = (0..CLIENTS).map(|_| fixture.connect()).collect();
    for client in &mut alike {
        client.send_as(1, &write_args(&tiny, &[4; 4096]));
        send_remove(client, 2, &open, "file");
    }
    let removed = alike.iter_mut().map(|client| remove_status(&client.record()));
    assert!(removed.collect::<Vec<_>>().contains(&Status::OK));
    fixture.lift();
    for client in &mut alike {
        assert_eq!(client.next_xid(), 1);
    }
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

#[test]
fn what_a_vanished_client_left_waiting_is_forgotten() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    for _ in 0..100 {
        peer.write(&tiny, &[5; 8192]);
    }
    let marker = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), marker);
    assert!(fixture.server.plane().totals().parked_bytes > 100 * 8192);
    drop(peer);
    fixture.wait_until_nothing_is_parked();
    fixture.server.stop().unwrap();
}

#[test]
fn a_client_that_never_reads_neither_grows_the_server_nor_disturbs_others() {
    let fixture = Fixture::start();
    let mut greedy = fixture.connect();
    let open = greedy.mount("/open");
    let file = greedy.create(&open, "large");
    let data = vec![6; 1 << 20];
    let written = greedy.write(&file, &data);
    assert_eq!(greedy.next_xid(), written);
    let mut sender = greedy.socket.try_clone().unwrap();
    let (caller, handle) = (Caller::sys(&Credentials::ROOT, b"test"), file.clone());
    let asking = std::thread::spawn(move || {
        for xid in 0..200 {
            let mut bytes = Vec::new();
            let args = ReadArgs { file: FileHandle3(&handle), offset: 0, count: 1 << 20 };
            caller.call(&mut bytes, 2000 + xid, &args);
            sender.write_all(&bytes).unwrap();
        }
    });
    asking.join().unwrap();
    let mut other = fixture.connect();
    for _ in 0..100 {
        let xid = other.getattr(&open);
        assert_eq!(other.next_xid(), xid);
    }
    let live = |name: &str| {
        let id = fixture.server.catalog().snapshot().volume_named(name).unwrap().id;
        fixture.server.plane().volume_live(id).unwrap()
    };
    assert!(live("open").read_ops < 60, "replies nobody takes are not made: {:?}", live("open"));
    for xid in 2000..2200 {
        assert_eq!(greedy.next_xid(), xid);
    }
    assert_eq!(live("open").read_ops, 200);
    fixture.server.stop().unwrap();
}

/// Stops the server on a thread of its own, having seen that it accepts no more.
fn stop_meanwhile(fixture: Fixture) -> std::thread::JoinHandle<()> {
    let address = fixture.server.addresses()[0];
    let stopping = std::thread::spawn(move || fixture.server.stop().unwrap());
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    stopping
}

#[test]
fn a_stop_answers_all_that_was_received_before_it_closes() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let open = peer.mount("/open");
    let file = peer.create(&open, "large");
    let written = peer.write(&file, &vec![6; 1 << 20]);
    assert_eq!(peer.next_xid(), written);
    // Nobody takes these replies, so the server stops in the middle of what it received, and what
    // is sent after that stays in its socket.
    let args = ReadArgs { file: FileHandle3(&file), offset: 0, count: 1 << 20 };
    let mut asked: Vec<u32> = (0..32).map(|_| peer.send(&args)).collect();
    assert_eq!(peer.next_xid(), asked.remove(0));
    asked.extend((0..400).map(|_| peer.getattr(&open)));
    while unacknowledged(&peer.socket) > 0 {
        std::thread::yield_now();
    }
    let stopping = stop_meanwhile(fixture);
    for xid in asked {
        assert_eq!(peer.next_xid(), xid);
        // A late call is not answered, but resets nothing either.
        peer.getattr(&open);
    }
    // A few of those may have come before the workers knew. Then the end, and no reset.
    while peer.next_xid_or_end().is_some() {}
    drop(peer);
    stopping.join().unwrap();
}

/// Bytes sent that the other side's kernel does not have yet.
fn unacknowledged(socket: &TcpStream) -> u64 {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let local = port(socket.local_addr().unwrap());
    let remote = port(socket.peer_addr().unwrap());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let queued = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ours = fields[1].ends_with(&local) && fields[2].ends_with(&remote);
        let (sending, _received) = fields[4].split_once(':')?;
        ours.then(|| u64::from_str_radix(sending, 16).unwrap())
    };
    table.lines().skip(1).find_map(queued).unwrap()
}

#[test]
fn a_stop_in_the_middle_of_a_conversation_resets_nobody() {
    const CLIENTS: usize = 4;
    const DEPTH: u32 = 32;
    let fixture = Fixture::start();
    let open = fixture.connect().mount("/open");
    let conversing = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut sender = fixture.connect();
            let mut reader =
                Peer { socket: sender.socket.try_clone().unwrap(), ..fixture.connect() };
            let state = Arc::new((AtomicU32::new(0), AtomicBool::new(false)));
            let (open, conversing, reads) = (&open, &conversing, Arc::clone(&state));
            scope.spawn(move || {
                let (answered, ended) = &*reads;
                while let Some(xid) = reader.next_xid_or_end() {
                    assert_eq!(answered.fetch_add(1, Ordering::Relaxed) + 1, xid);
                    conversing.fetch_add(usize::from(xid == 100), Ordering::Relaxed);
                }
                ended.store(true, Ordering::Relaxed);
            });
            // The client goes on for a while after the server has said that it is leaving.
            scope.spawn(move || {
                let (answered, ended) = &*state;
                loop {
                    if sender.xid < answered.load(Ordering::Relaxed) + DEPTH {
                        sender.getattr(open);
                    } else if ended.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        while conversing.load(Ordering::Relaxed) < CLIENTS {
            std::thread::yield_now();
        }
        stop_meanwhile(fixture).join().unwrap();
    });
}

#[test]
fn a_stop_answers_what_waits_as_the_contract_lets_it() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    let waiting: Vec<u32> = (0..20).map(|_| peer.write(&tiny, &[7; 8192])).collect();
    let marker = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), marker);
    let (catalog, plane) = (fixture.server.catalog().clone(), fixture.server.plane());
    let stopping = stop_meanwhile(fixture);
    let change = VolumeChange { quota_bytes: Some(90 * TIB), ..VolumeChange::default() };
    catalog.change_volume("tiny", &change, Some(0), Mode::Commit).unwrap();
    plane.apply(catalog.snapshot()).unwrap();
    let mut answered: Vec<u32> = waiting.iter().map(|_| peer.next_xid()).collect();
    answered.sort_unstable();
    assert_eq!(answered, waiting);
    assert_eq!(peer.next_xid_or_end(), None);
    drop(peer);
    stopping.join().unwrap();
}

#[test]
fn a_stop_answers_what_waits_though_those_before_it_have_left() {
    let fixture = Fixture::with(|config| config.workers = 2);
    // The connections go to the workers in turns.
    let [mut other, mut peer] = [fixture.connect(), fixture.connect()];
    let tiny = spent(&mut other);
    let send = |peer: &mut Peer| {
        let waiting = peer.write(&tiny, &[7; 8192]);
        let marker = peer.getattr(&tiny);
        assert_eq!(peer.next_xid(), marker);
        waiting
    };
    send(&mut other);
    let waiting = send(&mut peer);
    let (catalog, plane) = (fixture.server.catalog().clone(), fixture.server.plane());
    let stopping = stop_meanwhile(fixture);
    drop(other);
    // Time enough for a worker to leave that thinks it has nothing to do.
    std::thread::sleep(Duration::from_millis(300));
    let change = VolumeChange { quota_bytes: Some(90 * TIB), ..VolumeChange::default() };
    catalog.change_volume("tiny", &change, Some(0), Mode::Commit).unwrap();
    plane.apply(catalog.snapshot()).unwrap();
    assert_eq!(peer.next_xid(), waiting);
    drop(peer);
    stopping.join().unwrap();
}

#[test]
fn a_stop_drops_what_its_grace_does_not_reach() {
    let fixture = Fixture::with(|config| config.shutdown_grace = Duration::from_millis(300));
    let mut peer = fixture.connect();
    let tiny = spent(&mut peer);
    peer.write(&tiny, &[7; 8192]);
    let marker = peer.getattr(&tiny);
    assert_eq!(peer.next_xid(), marker);
    fixture.server.stop().unwrap();
    assert_eq!(peer.next_xid_or_end(), None);
}

#[test]
fn lists_are_served_on_the_port_of_nfs() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let root = peer.mount("/open");
    peer.send(&AclNull);
    let record = peer.record();
    assert_eq!(Reply::parse(&record).unwrap().results::<AclNull>(), Ok(()));
    let get = GetaclArgs { object: FileHandle3(&root), mask: AclMask::all() };
    peer.send(&get);
    let record = peer.record();
    match Reply::parse(&record).unwrap().results::<GetaclArgs<'_>>().unwrap() {
        Res::Ok(got) => assert_eq!((got.access.count(), got.default.count()), (4, 0)),
        Res::Fail(status, _) => panic!("{status:?}"),
    }
    let mut forged = root.clone();
    *forged.last_mut().unwrap() ^= 1;
    peer.send(&GetaclArgs { object: FileHandle3(&forged), ..get });
    let record = peer.record();
    let refused = Reply::parse(&record).unwrap().results::<GetaclArgs<'_>>().unwrap();
    assert_eq!(refused, Res::Fail(Status::BADHANDLE, None));
    // Version 2 goes with NFSv2, which is not spoken either.
    let mut bytes = Vec::new();
    peer.caller.call(&mut bytes, 99, &AclNull);
    let version = bytes.windows(8).position(|at| at == [0, 1, 0x87, 0x83, 0, 0, 0, 3]).unwrap();
    bytes[version + 7] = 2;
    peer.socket.write_all(&bytes).unwrap();
    let record = peer.record();
    let mismatch = AcceptError::ProgramMismatch { low: 3, high: 3 };
    assert_eq!(Reply::parse(&record).unwrap().body, Err(Refused::Failed(mismatch)));
    fixture.server.stop().unwrap();
}

#[test]
fn groups_are_the_server_s_and_not_the_client_s() {
    for manage_gids in [false, true] {
        let fixture = Fixture::with(|config| config.manage_gids = manage_gids);
        let mut peer = fixture.connect();
        let root = peer.mount("/open");
        let file = peer.create(&root, "file");
        let set = Sattr3 { mode: Some(0o640), gid: Some(4_000_000_000), ..Sattr3::NONE };
        let object = FileHandle3(&file);
        peer.send(&SetattrArgs { object, new_attributes: set, guard: None });
        let record = peer.record();
        let set = Reply::parse(&record).unwrap().results::<SetattrArgs<'_>>().unwrap();
        assert_eq!(set.status(), Status::OK);
        // A user whom this machine doesn't know, and who says to be of the file's group.
        let claims = Credentials::new(4_000_000_001, 1).with_groups(&[4_000_000_000]);
        peer.caller = Caller::sys(&claims, b"test");
        // The second time nothing has to be looked up.
        for _ in 0..2 {
            peer.send(&ReadArgs { file: object, offset: 0, count: 1 });
            let record = peer.record();
            let read = Reply::parse(&record).unwrap().results::<ReadArgs<'_>>().unwrap();
            let expected = if manage_gids { Status::ACCES } else { Status::OK };
            assert_eq!(read.status(), expected, "manage_gids = {manage_gids}");
        }
        fixture.server.stop().unwrap();
    }
}

#[test]
fn an_address_has_so_many_connections_and_no_more() {
    let fixture = Fixture::with(|config| config.connections_per_client_max = 4);
    let mut own: Vec<Peer> = (0..4).map(|_| fixture.connect()).collect();
    assert!(own.iter_mut().all(is_served));
    assert!(!is_served(&mut fixture.connect()), "one too many");
    assert!(is_served(&mut fixture.connect_from([127, 0, 0, 2])), "others are not concerned");
    assert!(own.iter_mut().all(is_served));
    assert_eq!(fixture.server.plane().totals().connections_refused, 1);
    fixture.server.stop().unwrap();
}

#[test]
fn when_all_connections_are_taken_the_greediest_gives_up_an_idle_one() {
    let fixture = Fixture::with(|config| config.connections_max = 16);
    let mut greedy: Vec<Peer> = (0..15).map(|_| fixture.connect()).collect();
    assert!(greedy.iter_mut().all(is_served));
    let mut modest = fixture.connect_from([127, 0, 0, 2]);
    assert!(is_served(&mut modest));
    let mut late = fixture.connect_from([127, 0, 0, 3]);
    assert!(is_served(&mut late), "a stranger gets in");
    while fixture.server.plane().totals().connections_shed < 1 {
        std::thread::yield_now();
    }
    assert_eq!(greedy.iter_mut().map(is_served).filter(|served| !served).count(), 1);
    assert!(is_served(&mut modest) && is_served(&mut late));
    fixture.server.stop().unwrap();
}

#[test]
fn unfinished_records_that_do_not_grow_hold_bounded_memory_and_the_oldest_are_given_up() {
    const PEERS: usize = 240;
    let fixture = Fixture::with(|config| config.workers = 1);
    let mut good = fixture.connect();
    let open = good.mount("/open");
    let part = [&(0x8000_0000u32 | 1 << 20).to_be_bytes()[..], &vec![0; 300 << 10]].concat();
    let mut honest = fixture.connect();
    honest.socket.write_all(&part).unwrap();
    let mut slow: Vec<Peer> = (0..PEERS).map(|_| fixture.connect()).collect();
    for group in slow.chunks_mut(20) {
        group.iter_mut().for_each(|peer| peer.socket.write_all(&part).unwrap());
        honest.socket.write_all(&[0; 17 << 10]).unwrap();
    }
    for _ in 0..20 {
        honest.socket.write_all(&[0; 20 << 10]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        if fixture.server.plane().totals().connections_misbehaved > 0 {
            break;
        }
    }
    honest.socket.set_nonblocking(true).unwrap();
    let pending = honest.socket.read(&mut [0]).unwrap_err();
    assert_eq!(pending.kind(), std::io::ErrorKind::WouldBlock, "the oldest, but it grows");
    let xid = good.getattr(&open);
    assert_eq!(good.next_xid(), xid, "others are served meanwhile");
    let closed = fixture.server.plane().totals().connections_misbehaved;
    assert!((1..PEERS as u64 * 9 / 10).contains(&closed), "{closed} of {PEERS}");
    let first = slow[0].socket.read(&mut [0]).map_err(|error| error.kind());
    assert!(matches!(first, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{first:?}");
    let last = &mut slow[PEERS - 1];
    last.socket.set_nonblocking(true).unwrap();
    let pending = last.socket.read(&mut [0]).unwrap_err();
    assert_eq!(pending.kind(), std::io::ErrorKind::WouldBlock, "the youngest goes on");
    fixture.server.stop().unwrap();
}

#[test]
fn showmount_sees_what_is_exported_to_whom_and_who_mounted_it() {
    let fixture = Fixture::start();
    let mut peer = fixture.connect();
    let mut other = fixture.connect_from([127, 0, 0, 2]);
    let exports = |peer: &mut Peer| {
        peer.send(&ExportList);
        let record = peer.record();
        let list = Reply::parse(&record).unwrap().results::<ExportList>().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let export = |export: ExportEntry<'_>| {
            let groups: Vec<String> = export.groups.iter().map(|group| text(group.0)).collect();
            format!("{} {}", text(export.directory.0), groups.join(","))
        };
        list.exports.iter().map(export).collect::<Vec<_>>()
    };
    let catalog = fixture.server.catalog();
    let rules = catalog.snapshot().volume_named("open").unwrap().exports.clone();
    let here: Vec<String> = rules.iter().map(|rule| rule.network.to_string()).collect();
    let all = ["/open", "/tiny"].map(|path| format!("{path} {}", here.join(",")));
    assert_eq!(exports(&mut peer), all);
    let change = |name, networks: &[&str]| {
        let rule =
            |network: &&str| ExportRule { network: network.parse().unwrap(), ..rules[0].clone() };
        let rules: Vec<ExportRule> = networks.iter().map(rule).collect();
        catalog.set_exports(name, &rules, Mode::Commit).unwrap();
        fixture.server.plane().apply(catalog.snapshot()).unwrap();
    };
    change("open", &["127.0.0.0/8", "10.1.0.0/16"]);
    change("tiny", &[]);
    assert_eq!(exports(&mut peer), ["/open 10.1.0.0/16,127.0.0.0/8"], "nobody is not everybody");
    change("tiny", &["10.1.0.0/16"]);
    let sharing = SharingChange { protocols: Protocols::new(false, true), ..Default::default() };
    let smb_alone = VolumeChange { sharing, ..VolumeChange::default() };
    catalog.change_volume("tiny", &smb_alone, None, Mode::Commit).unwrap();
    fixture.server.plane().apply(catalog.snapshot()).unwrap();
    assert_eq!(exports(&mut peer).len(), 1, "a volume without NFS is not exported");
    let mounts = |peer: &mut Peer| {
        peer.send(&Dump);
        let record = peer.record();
        let list = Reply::parse(&record).unwrap().results::<Dump>().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mount =
            |mount: MountEntry<'_>| format!("{}:{}", text(mount.host.0), text(mount.directory.0));
        list.mounts.iter().map(mount).collect::<Vec<_>>()
    };
    peer.mount("/open");
    other.mount("/open/");
    assert_eq!(mounts(&mut peer), ["127.0.0.1:/open", "127.0.0.2:/open"]);
    other.send(&Umnt(b"/open"));
    other.record();
    assert_eq!(mounts(&mut peer), ["127.0.0.1:/open"], "each unmounts its own");
    peer.send(&Umntall);
    peer.record();
    assert_eq!(mounts(&mut peer), [""; 0]);
    fixture.server.stop().unwrap();
}

#[test]
fn a_volume_whose_directory_is_gone_is_not_served_as_an_empty_one() {
    let fixture = Fixture::start();
    let catalog = fixture.server.catalog();
    let (name, pool) = ("lost".to_owned(), "pool".to_owned());
    let new = NewVolume { name, pool, quota_bytes: TIB, ..NewVolume::default() };
    catalog.create_volume(&new, Mode::Commit).unwrap();
    let snapshot = catalog.snapshot();
    let lost = snapshot.volume_named("lost").unwrap();
    let aside = lost.directory.with_extension("aside");
    std::fs::rename(&lost.directory, &aside).unwrap();
    let refused = fixture.server.plane().apply(catalog.snapshot()).unwrap_err().to_string();
    assert!(refused.contains("missing: restore it"), "{refused}");
    assert!(fixture.server.plane().volume_live(lost.id).is_none());
    assert!(!lost.directory.exists(), "nothing is made in its place");
    let mut peer = fixture.connect();
    peer.mount("/open");

    std::fs::rename(&aside, &lost.directory).unwrap();
    fixture.server.plane().apply(catalog.snapshot()).unwrap();
    peer.mount("/lost");
    fixture.server.stop().unwrap();
}
