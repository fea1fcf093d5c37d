//! Peers that break every rule, against the built server: each gets an error or a closed
//! connection, memory stays bounded, and a well-behaved client beside them notices nothing.

use crate::peer::{self, AUTH_NONE, LAST, Peer, header, record};
use crate::test_server::TestServer;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use weir_core::Credentials;
use weir_nfs::client::{Caller, Null, Refused, RemoteCall, Reply};
use weir_nfs::limits::{FRAGMENTS_MAX, RECORD_BYTES_MAX};
use weir_nfs::rpc::{AcceptError, AuthStat, RejectReason};
use weir_nfs::v3::wire::{
    FileHandle3, GetattrArgs, GetattrRes, ReadArgs, StableHow, Status, WriteArgs,
};
use weir_nfs::xdr::{Encode, Writer};
use weir_nfs::{PROGRAM_MOUNT, PROGRAM_NFS};

const MIB: u64 = 1 << 20;

/// Does the server close this connection? What it says before doesn't matter.
fn is_closed(mut stream: TcpStream) -> bool {
    let mut dropped = [0; 4096];
    loop {
        match stream.read(&mut dropped) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn an_oversize_record_closes_its_connection_alone() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    for mark in [u32::MAX, 0x7fff_ffff, LAST | u32::try_from(RECORD_BYTES_MAX + 1).unwrap()] {
        let mut stream = server.connect();
        stream.write_all(&mark.to_be_bytes()).unwrap();
        assert!(is_closed(stream), "mark {mark:#x}");
    }
    good.works();
}

#[test]
fn fragments_of_one_byte_are_put_together_and_too_many_close_the_connection() {
    let server = TestServer::start();
    let mut peer = Peer::new(&server);
    let mut call = Vec::new();
    Caller::none().call(&mut call, 5, &Null);
    let body = &call[4..];
    for (at, byte) in body.iter().enumerate() {
        let last = if at + 1 == body.len() { LAST } else { 0 };
        peer.send(&[&(last | 1).to_be_bytes()[..], &[*byte]].concat());
    }
    assert_eq!(Reply::parse(&peer.receive()).unwrap().xid, 5);
    let many = [0, 0, 0, 1, b'x'].repeat(FRAGMENTS_MAX as usize + 2);
    peer.send(&many);
    assert!(is_closed(peer.stream));
}

#[test]
fn a_record_cut_short_leaves_no_trace() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let mut call = Vec::new();
    Caller::none().call(&mut call, 1, &Null);
    for cut in 0..call.len() {
        let mut stream = server.connect();
        stream.write_all(&call[..cut]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(is_closed(stream), "cut to {cut} bytes");
    }
    good.works();
}

#[test]
fn unknown_programs_versions_and_procedures_get_the_error_rpc_has_for_them() {
    let server = TestServer::start();
    let mut peer = Peer::new(&server);
    let mut refusal = |program, version, procedure| {
        peer.send(&record(&header(9, 2, program, version, procedure, AUTH_NONE)));
        let reply = peer.receive();
        match Reply::parse(&reply).unwrap().body {
            Err(refused) => refused,
            Ok(_) => panic!("it was carried out"),
        }
    };
    let mismatch = Refused::Failed(AcceptError::ProgramMismatch { low: 3, high: 3 });
    assert_eq!(refusal(400_122, 3, 0), Refused::Failed(AcceptError::ProgramUnavailable));
    assert_eq!(refusal(PROGRAM_NFS, 2, 0), mismatch);
    assert_eq!(refusal(PROGRAM_NFS, 4, 0), mismatch);
    assert_eq!(refusal(PROGRAM_MOUNT, 9, 0), mismatch);
    for program in [PROGRAM_NFS, PROGRAM_MOUNT] {
        let unavailable = Refused::Failed(AcceptError::ProcedureUnavailable);
        assert_eq!(refusal(program, 3, 99), unavailable);
    }
    peer.send(&record(&header(9, 3, PROGRAM_NFS, 3, 0, AUTH_NONE)));
    let reply = peer.receive();
    let denied = Refused::Denied(RejectReason::RpcMismatch);
    assert_eq!(Reply::parse(&reply).unwrap().body, Err(denied));
}

#[test]
fn credentials_that_are_malformed_or_not_spoken_are_denied() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let handle = good.root.clone();
    let mut args = Writer::default();
    GetattrArgs { object: FileHandle3(&handle) }.encode(&mut args);
    let args = args.into_vec();
    let mut peer = Peer::new(&server);
    let mut denied = |flavor, body: &[u8]| {
        let mut call = header(9, 2, PROGRAM_NFS, 3, GetattrArgs::PROCEDURE, (flavor, body));
        call.extend(&args);
        peer.send(&record(&call));
        let reply = peer.receive();
        Reply::parse(&reply).unwrap().body.unwrap_err()
    };
    let auth = |stat| Refused::Denied(RejectReason::AuthError(stat));
    assert_eq!(denied(6, &[0; 20]), auth(AuthStat::TOOWEAK));
    assert_eq!(denied(1, &[0xff; 20]), auth(AuthStat::BADCRED));
    let seventeen_groups = [&[0; 16][..], &17u32.to_be_bytes(), &[0; 68]].concat();
    assert_eq!(denied(1, &seventeen_groups), auth(AuthStat::BADCRED));
    good.works();
}

#[test]
fn garbage_arguments_are_answered_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    for procedure in 1..=21 {
        let mut call = header(9, 2, PROGRAM_NFS, 3, procedure, AUTH_NONE);
        call.extend([0xff; 40]);
        good.send(&record(&call));
        let reply = good.receive();
        let body = Reply::parse(&reply).unwrap().body;
        assert_eq!(body, Err(Refused::Failed(AcceptError::GarbageArgs)), "procedure {procedure}");
    }
    good.works();
}

#[test]
fn no_changed_bit_of_a_handle_opens_anything() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let handle = good.root.clone();
    for bit in 0..handle.len() * 8 {
        let mut forged = handle.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let status = getattr_status(&mut good, &forged);
        assert!(matches!(status, Status::BADHANDLE | Status::STALE), "bit {bit}: {status:?}");
    }
    for len in [0, 1, 8, 64] {
        assert_eq!(getattr_status(&mut good, &vec![0; len]), Status::BADHANDLE);
    }
    good.works();
}

fn getattr_status(peer: &mut Peer, handle: &[u8]) -> Status {
    let reply = peer.call(&GetattrArgs { object: FileHandle3(handle) });
    let results: GetattrRes = Reply::parse(&reply).unwrap().results::<GetattrArgs<'_>>().unwrap();
    results.status()
}

#[test]
fn readers_that_never_read_hold_bounded_memory_and_delay_nobody() {
    const READERS: usize = 20;
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let file = good.create(b"file");
    let data = vec![7; 1 << 20];
    let stable = StableHow::Unstable;
    let file = FileHandle3(&file);
    good.call(&WriteArgs { file, offset: 0, count: 1 << 20, stable, data: &data });
    let before = server.resident_kib();
    let mut calls = Vec::new();
    for xid in 0..2000 {
        let caller = Caller::sys(&Credentials::ROOT, b"greedy");
        caller.call(&mut calls, xid, &ReadArgs { file, offset: 0, count: 1 << 20 });
    }
    let readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut stream = server.connect();
            stream.set_nonblocking(true).unwrap();
            // The server stops reading at some point; what was taken until then is enough.
            let _taken = stream.write(&calls);
            stream
        })
        .collect();
    for _ in 0..100 {
        good.works();
    }
    let grown = server.resident_kib().saturating_sub(before) / 1024;
    assert!(grown < 400, "{READERS} readers asked for 40,000 MiB and hold {grown} MiB");
    drop(readers);
    good.works();
}

#[test]
fn announced_records_that_never_come_take_no_memory() {
    const PEERS: usize = 300;
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let before = server.resident_kib();
    let announce = (LAST | u32::try_from(MIB).unwrap()).to_be_bytes();
    let waiting: Vec<TcpStream> = (0..PEERS)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&[&announce[..], &[1; 3]].concat()).unwrap();
            stream
        })
        .collect();
    for _ in 0..50 {
        good.works();
    }
    let grown = server.resident_kib().saturating_sub(before) / 1024;
    assert!(grown < 64, "{PEERS} announcements of 1 MiB took {grown} MiB");
    drop(waiting);
    good.works();
}

#[test]
fn a_thousand_connections_are_all_served() {
    const PEERS: usize = 1000;
    let limit = peer::raise_descriptor_limit();
    assert!(limit >= 2000, "needs 2,000 descriptors; the hard limit is {limit}");
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    for round in 1..=2 {
        // Each round from its own address: the last round's connections may not be counted off yet.
        let connect = |_| Peer::from(server.connect_from([127, 1, 0, round].into()));
        let mut peers: Vec<Peer> = (0..PEERS).map(connect).collect();
        for peer in &mut peers {
            let mut call = Vec::new();
            Caller::none().call(&mut call, 3, &Null);
            peer.send(&call);
        }
        for peer in &mut peers {
            assert!(Reply::parse(&peer.receive()).unwrap().body.is_ok());
        }
        good.works();
    }
    good.works();
}

#[test]
fn ten_thousand_idle_connections_take_little_memory() {
    const PEERS: usize = 10_000;
    let limit = peer::raise_descriptor_limit();
    assert!(limit >= 12_000, "needs 12,000 descriptors; the hard limit is {limit}");
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let before = server.resident_kib();
    let mut idle: Vec<Peer> = Vec::new();
    for at in 0..PEERS {
        // A thousand of each address: one alone may not have so many.
        let source = [127, 1, 0, u8::try_from(at / 1000).unwrap()];
        let mut peer = Peer::from(server.connect_from(source.into()));
        peer.call(&Null);
        idle.push(peer);
    }
    let grown = server.resident_kib().saturating_sub(before);
    println!("{PEERS} idle connections: {grown} KiB");
    assert!(grown < 4 * PEERS as u64, "{PEERS} idle connections hold {grown} KiB");
    good.works();
    for peer in &mut idle {
        peer.call(&Null);
    }
}

#[test]
fn a_thousand_busy_connections_hold_bounded_memory() {
    const PEERS: usize = 1000;
    let limit = peer::raise_descriptor_limit();
    assert!(limit >= 2000, "needs 2,000 descriptors; the hard limit is {limit}");
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let before = server.resident_kib();
    let file = good.create(b"file");
    let (file, data) = (FileHandle3(&file), vec![7; 64 << 10]);
    let write =
        WriteArgs { file, offset: 0, count: 64 << 10, stable: StableHow::Unstable, data: &data };
    let read = ReadArgs { file, offset: 0, count: 64 << 10 };
    let mut peers: Vec<Peer> = (0..PEERS).map(|_| Peer::new(&server)).collect();
    let (mut most, mut xid) = (0, 0);
    for _round in 0..3 {
        for peer in &mut peers {
            let mut calls = Vec::new();
            Caller::sys(&Credentials::ROOT, b"busy").call(&mut calls, xid + 1, &write);
            Caller::sys(&Credentials::ROOT, b"busy").call(&mut calls, xid + 2, &read);
            xid += 2;
            peer.send(&calls);
        }
        most = most.max(server.resident_kib().saturating_sub(before));
        for peer in &mut peers {
            for reply in [peer.receive(), peer.receive()] {
                assert!(Reply::parse(&reply).unwrap().body.is_ok());
            }
        }
    }
    println!("{PEERS} busy connections: {most} KiB");
    assert!(most < 400 << 10, "{PEERS} busy connections hold {most} KiB");
    good.works();
}

#[test]
fn noise_is_never_carried_out() {
    let server = TestServer::start();
    let mut good = Peer::mount(&server);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..50 {
        let mut noise = Vec::new();
        for _ in 0..512 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            noise.extend(state.to_be_bytes());
        }
        let mut stream = server.connect();
        // Half of it as one well-formed record, so that it gets past the framing.
        stream.write_all(&record(&noise[..2048])).unwrap();
        // The server may have closed the connection already.
        let _unsent = stream.write_all(&noise[2048..]);
        let _unsent = stream.shutdown(Shutdown::Write);
        assert!(is_closed(stream));
    }
    good.works();
}
