//! Locks as clients on sockets see them: rights, callbacks, restarts, forged notices, and both
//! protocols at once.
//!
//! The server listens on port 111, so each test runs this program again in a network of its own,
//! where every address of 127.0.0.0/8 can be another client.

#![cfg(test)]

mod across;
mod bed;
mod smb;

use bed::{Bed, Host, SERVER, answer, connect, owned, run_alone};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weir_catalog::MonitoredHost;
use weir_core::Credentials;
use weir_nfs::client::{Caller, Getport, Mnt, NlmLock, NlmUnlock, RemoteCall, Reply};
use weir_nfs::nlm::wire::{CallerName, Lock, LockArgs, NetObj, Res, TestArgs, UnlockArgs};
use weir_nfs::nlm::{Procedure, Status};
use weir_nfs::nsm::wire::NotifyArgs;
use weir_nfs::rpc::{AcceptError, reply};
use weir_nfs::rpcbind::wire::Mapping;
use weir_nfs::v3::wire::{FileHandle3, GetattrArgs, ReadArgs, Res as Nfs, StableHow, WriteArgs};
use weir_nfs::xdr::decode;
use weir_nfs::{PROGRAM_NLM, PROGRAM_NSM};

#[test]
fn a_lock_needs_a_handle_an_export_rule_and_a_right() {
    run_alone("body_rights");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_rights() {
    let bed = Bed::start();
    let (mut one, mut two) = (Host::new("127.0.0.2", "one"), Host::new("127.0.0.3", "two"));
    let file = one.file("file");
    assert_eq!(one.lock(&file), Status::GRANTED);
    assert_eq!(two.lock(&file), Status::DENIED);
    let mut forged = file.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(two.lock(&forged), Status::STALE_FH);
    two.caller = Caller::sys(&Credentials::new(1000, 1000), b"two");
    assert_eq!(two.lock(&file), Status::FAILED, "the file is root's alone");
    let long = vec![0; 9000];
    let args = UnlockArgs { cookie: NetObj(b""), lock: two.about(&file) };
    let mut bytes = Vec::new();
    Caller::none().call(&mut bytes, 7, &NlmUnlock(args));
    let mut padded = bytes.split_off(4);
    padded.extend(long);
    let mark = u32::try_from(padded.len()).unwrap() | 1 << 31;
    two.tcp.write_all(&[&mark.to_be_bytes()[..], &padded].concat()).unwrap();
    let mut refusal = [0; 28];
    two.tcp.read_exact(&mut refusal).unwrap();
    assert_eq!(refusal, reply::error(Vec::new(), 7, AcceptError::GarbageArgs)[..]);
    assert_eq!(one.unlock(&file), Status::GRANTED);
    bed.wait_until_held(0);
}

#[test]
fn who_waits_is_called_back_where_its_portmapper_says() {
    run_alone("body_callback");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_callback() {
    let bed = Bed::start();
    let (mut one, mut two) = (Host::new("127.0.0.2", "one"), Host::new("127.0.0.3", "two"));
    let file = one.file("file");
    assert_eq!(one.lock(&file), Status::GRANTED);
    assert_eq!(two.ask(&file, true, false), Status::BLOCKED);
    assert_eq!(bed.listed(), [("127.0.0.2", "one", false), ("127.0.0.3", "two", true)].map(owned));
    assert_eq!(one.unlock(&file), Status::GRANTED);
    let (call, from) = two.called(PROGRAM_NLM);
    assert_eq!(call.procedure, Procedure::Granted as u32);
    let granted: TestArgs<'_> = decode(&call.args).unwrap();
    assert_eq!((granted.lock, granted.exclusive), (two.about(&file), true));
    let res = Res { cookie: granted.cookie, status: Status::GRANTED };
    answer(&two.program, &call, from, &res);
    assert_eq!(one.lock(&file), Status::DENIED);
    // And one that does not want it any more: the lock goes on to the next.
    assert_eq!(one.ask(&file, true, false), Status::BLOCKED);
    assert_eq!(two.unlock(&file), Status::GRANTED);
    let (call, from) = one.called(PROGRAM_NLM);
    let granted: TestArgs<'_> = decode(&call.args).unwrap();
    answer(&one.program, &call, from, &Res { cookie: granted.cookie, status: Status::DENIED });
    bed.wait_until_held(0);
}

#[test]
fn an_unlock_does_not_overtake_the_lock_before_it() {
    run_alone("body_order");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_order() {
    let bed = Bed::start();
    let mut one = Host::new("127.0.0.2", "one");
    let file = one.file("file");
    for number in 0..20 {
        // The first lock under a name waits for the disk.
        let name = format!("one-{number}");
        let about = Lock { caller_name: CallerName(name.as_bytes()), ..one.about(&file) };
        let cookie = NetObj(b"");
        let lock = LockArgs {
            cookie,
            block: false,
            exclusive: true,
            lock: about,
            reclaim: false,
            state: 3,
        };
        let mut both = Vec::new();
        one.caller.call(&mut both, 1, &NlmLock(lock));
        let mut second = Vec::new();
        one.caller.call(&mut second, 2, &NlmUnlock(UnlockArgs { cookie, lock: about }));
        both.extend(second);
        one.tcp.write_all(&both).unwrap();
        for xid in [1, 2] {
            let record = one.reply();
            let reply = Reply::parse(&record).unwrap();
            assert_eq!(reply.xid, xid);
            assert_eq!(reply.results::<NlmUnlock<'_>>().unwrap().status, Status::GRANTED);
        }
        assert_eq!(bed.held(), 0);
    }
}

#[test]
fn locks_exclude_each_other_on_all_workers() {
    run_alone("body_exclusion");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_exclusion() {
    let bed = Bed::start();
    let holder = Arc::new(AtomicUsize::new(0));
    let hosts = [("127.0.0.2", "one"), ("127.0.0.3", "two"), ("127.0.0.4", "three")];
    let threads: Vec<_> = (1..)
        .zip(hosts)
        .map(|(number, (address, name))| {
            let holder = Arc::clone(&holder);
            std::thread::spawn(move || {
                let mut host = Host::new(address, name);
                let file = host.file("file");
                let mut granted = 0;
                while granted < 200 {
                    match host.lock(&file) {
                        Status::GRANTED => {
                            granted += 1;
                            assert_eq!(holder.swap(number, Ordering::SeqCst), 0);
                            assert_eq!(holder.swap(0, Ordering::SeqCst), number);
                            assert_eq!(host.unlock(&file), Status::GRANTED);
                        }
                        status => assert_eq!(status, Status::DENIED),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(bed.held(), 0);
}

#[test]
fn a_notice_from_elsewhere_frees_nothing() {
    run_alone("body_notice");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_notice() {
    let bed = Bed::start();
    let (mut one, two) = (Host::new("127.0.0.2", "one"), Host::new("127.0.0.3", "two"));
    let file = one.file("file");
    assert_eq!(one.lock(&file), Status::GRANTED);
    two.notify("one", 5);
    one.notify("two", 5);
    one.notify("one", 3);
    bed.wait_until_held(1);
    one.notify("one", 5);
    bed.wait_until_held(0);
}

#[test]
fn holders_are_told_of_a_restart_and_reclaim_before_others_lock() {
    run_alone("body_restart");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_restart() {
    let mut bed = Bed::start();
    let (mut one, mut two) = (Host::new("127.0.0.2", "one"), Host::new("127.0.0.3", "two"));
    let (file, other) = (one.file("file"), one.file("other"));
    assert_eq!(one.lock(&file), Status::GRANTED);
    assert_eq!(two.lock(&other), Status::GRANTED);
    assert_eq!(two.unlock(&other), Status::GRANTED);
    bed.restart();
    let (call, from) = one.called(PROGRAM_NSM);
    let notice: NotifyArgs<'_> = decode(&call.args).unwrap();
    assert_eq!((notice.name.0, notice.state), (SERVER.as_bytes(), 3), "the second life");
    answer(&one.program, &call, from, &());
    one.again();
    two.again();
    assert_eq!(two.lock(&file), Status::DENIED_GRACE_PERIOD);
    assert_eq!(two.ask(&file, false, true), Status::DENIED_GRACE_PERIOD, "held nothing");
    assert_eq!(one.ask(&file, false, true), Status::GRANTED);
    bed.wait_until_held(1);
    // All whom the grace period is for are done, and nobody holds anything at this stop, so that
    // nobody is to be waited for afterwards.
    one.notify("one", 5);
    bed.wait_until_held(0);
    bed.restart();
    two.again();
    assert_eq!(two.lock(&file), Status::GRANTED);
}

#[test]
fn invented_hosts_of_one_address_keep_no_other_from_locks() {
    run_alone("body_invented");
}

/// Asks for a shared lock under an invented name.
fn lock_as(host: &mut Host, name: &str, fh: &[u8]) -> Status {
    let lock = Lock { caller_name: CallerName(name.as_bytes()), ..host.about(fh) };
    let cookie = NetObj(b"");
    let args = LockArgs { cookie, block: false, exclusive: false, lock, reclaim: false, state: 3 };
    let record = host.call(&NlmLock(args));
    Reply::parse(&record).unwrap().results::<NlmLock<'_>>().unwrap().status
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_invented() {
    let bed = Bed::start();
    let (mut one, mut two) = (Host::new("127.0.0.2", "one"), Host::new("127.0.0.3", "two"));
    let (file, other) = (one.file("file"), one.file("other"));
    assert_eq!(two.lock(&other), Status::GRANTED);
    let mut granted = 0;
    for number in 0..16_384 {
        match lock_as(&mut one, &format!("invented-{number}"), &file) {
            Status::GRANTED => granted += 1,
            status => assert_eq!(status, Status::DENIED_NOLOCKS),
        }
    }
    assert!(granted < 2000, "{granted} hosts of one address");
    let mut three = Host::new("127.0.0.4", "three");
    assert_eq!(lock_as(&mut three, "three", &file), Status::GRANTED, "a newcomer");
    assert_eq!(lock_as(&mut two, "two", &file), Status::GRANTED, "who had locks before");
    // A host that holds nothing any more makes room for another of the same address.
    let lock = Lock { caller_name: CallerName(b"invented-0"), ..one.about(&file) };
    let record = one.call(&NlmUnlock(UnlockArgs { cookie: NetObj(b""), lock }));
    let res = Reply::parse(&record).unwrap().results::<NlmUnlock<'_>>().unwrap();
    assert_eq!(res.status, Status::GRANTED);
    assert_eq!(lock_as(&mut one, "one more", &file), Status::GRANTED);
    assert_eq!(lock_as(&mut one, "and one more", &file), Status::DENIED_NOLOCKS);
    bed.wait_until_held(granted + 3);
}

#[test]
fn hosts_that_a_restart_left_keep_no_newcomer_from_locks() {
    run_alone("body_left_behind");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_left_behind() {
    let left: Vec<MonitoredHost> = (0..16_384)
        .map(|number: u32| MonitoredHost {
            address: "127.0.0.9".parse().unwrap(),
            name: number.to_string().into_bytes(),
            local: SERVER.parse().unwrap(),
        })
        .collect();
    let bed = Bed::start_after(Duration::from_secs(1), &left);
    let mut one = Host::new("127.0.0.2", "one");
    let file = one.file("file");
    // The grace period ends by itself, since nobody is at that address.
    let status = loop {
        match one.lock(&file) {
            Status::DENIED_GRACE_PERIOD => std::thread::yield_now(),
            status => break status,
        }
    };
    assert_eq!(status, Status::GRANTED);
    bed.wait_until_held(1);
}

#[test]
fn one_address_at_every_bound_keeps_no_stranger_out() {
    run_alone("body_every_bound");
}

const GREEDY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 66));
const MIB: u32 = 1 << 20;

/// `count` calls with `args`, in one piece.
fn calls<A: RemoteCall>(caller: &Caller, count: u32, args: &A) -> Vec<u8> {
    let mut all = Vec::new();
    for xid in 0..count {
        let mut call = Vec::new();
        caller.call(&mut call, xid, args);
        all.extend_from_slice(&call);
    }
    all
}

/// Connections of the greedy address, each of which sends `bytes` as far as the server takes them
/// and reads nothing.
fn flood(connections: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let bytes: Arc<[u8]> = bytes.into();
    let sending = |_| {
        let socket = connect(GREEDY);
        let (mut copy, bytes) = (socket.try_clone().unwrap(), Arc::clone(&bytes));
        std::thread::spawn(move || drop(copy.write_all(&bytes)));
        socket
    };
    (0..connections).map(sending).collect()
}

/// The floods of one address: for each, its name, and connections that go on.
fn floods(greedy: &mut Host) -> Vec<(&'static str, Vec<TcpStream>)> {
    let (file, slow) = (greedy.file("large"), greedy.file_of(b"/slow", "slow"));
    let data = vec![7; MIB as usize];
    let write = |file| WriteArgs {
        file: FileHandle3(file),
        offset: 0,
        count: MIB,
        stable: StableHow::Unstable,
        data: &data,
    };
    greedy.call(&write(&file));
    let caller = Caller::sys(&Credentials::ROOT, b"greedy");
    let read = ReadArgs { file: FileHandle3(&file), offset: 0, count: MIB };
    let lock = NlmLock(LockArgs {
        cookie: NetObj(b""),
        block: true,
        exclusive: true,
        lock: greedy.about(&file),
        reclaim: false,
        state: 3,
    });
    // A record of 1 MiB of which all but the end comes.
    let mut begun = calls(&caller, 1, &write(&file));
    begun.truncate(begun.len() - 100);
    vec![
        ("replies that it doesn't read", flood(64, &calls(&caller, 40, &read))),
        ("parts of records", flood(128, &begun)),
        ("requests that wait for a contract", flood(16, &calls(&caller, 16, &write(&slow)))),
        (
            "requests under way",
            flood(64, &calls(&caller, 20_000, &GetattrArgs { object: FileHandle3(&file) })),
        ),
        ("mounts", flood(16, &calls(&caller, 5_000, &Mnt(b"/work")))),
        ("calls to the lock manager", flood(16, &calls(&caller, 5_000, &lock))),
        ("connections", (0..1100).map(|_| connect(GREEDY)).collect()),
    ]
}

/// A stranger connects, mounts, makes a file, writes, reads and locks.
fn stranger_does_all(last: usize, beside: &str) {
    let mut stranger = Host::new(&format!("127.0.1.{last}"), "stranger");
    let file = stranger.file(&format!("of-{last}"));
    let data = [1; 4096];
    let args = WriteArgs {
        file: FileHandle3(&file),
        offset: 0,
        count: 4096,
        stable: StableHow::FileSync,
        data: &data,
    };
    let record = stranger.call(&args);
    let written = Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap();
    assert!(matches!(written, Nfs::Ok(_)), "WRITE beside {beside}");
    let args = ReadArgs { file: FileHandle3(&file), offset: 0, count: 4096 };
    let record = stranger.call(&args);
    match Reply::parse(&record).unwrap().results::<ReadArgs<'_>>().unwrap() {
        Nfs::Ok(read) => assert_eq!(read.data, data, "READ beside {beside}"),
        Nfs::Fail(status, _) => panic!("READ beside {beside}: {status:?}"),
    }
    assert_eq!(stranger.lock(&file), Status::GRANTED, "beside {beside}");
    assert_eq!(stranger.unlock(&file), Status::GRANTED, "beside {beside}");
    let (udp, mut reply) = (&stranger.program, [0; 512]);
    let mut call = Vec::new();
    let (program, protocol) = (PROGRAM_NLM, 17);
    Caller::none().call(&mut call, 5, &Getport(Mapping { program, version: 4, protocol, port: 0 }));
    udp.send_to(&call[4..], (SERVER, 111)).unwrap();
    let (len, _) = udp.recv_from(&mut reply).unwrap();
    assert!(Reply::parse(&reply[..len]).unwrap().body.is_ok(), "GETPORT beside {beside}");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_every_bound() {
    let bed = Bed::start();
    let mut greedy = Host::new("127.0.0.66", "greedy");
    // Each flood goes on while the next comes.
    let floods = floods(&mut greedy);
    for (last, (what, _)) in (1..).zip(&floods) {
        stranger_does_all(last, what);
    }
    for last in 100..120 {
        stranger_does_all(last, "all of them");
    }
    for socket in floods.iter().flat_map(|(_, sockets)| sockets) {
        // A connection that the server closed before is ended too.
        let _closed = socket.shutdown(std::net::Shutdown::Both);
    }
    drop(bed);
}
