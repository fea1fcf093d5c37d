//! The SMB engine of `weir bench` against a server that moves fewer bytes than it is asked for:
//! the server itself, behind a relay that shortens what READ and WRITE ask for.

use crate::smb_share::Share;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_load::{
    Control, Layout, Length, MixOp, OpShare, Operation, Pattern, RunResult, SmbSecurity, SmbTarget,
    Target, VerifyScope, Workload, prepare,
};
use weir_smb::wire::netbios::{self, Step};

/// The most that is read or written at once: a block of 4 KiB takes five requests.
const MOST: u32 = 1000;
/// Numbers of commands, and places in a message (MS-SMB2 §2.2.1.2, §2.2.19 and §2.2.21).
const READ: u16 = 8;
const WRITE: u16 = 9;
const COMMAND: usize = 12;
const NEXT_COMMAND: usize = 20;
const LENGTH: usize = 68;

/// Passes messages on to a server.
struct Relay {
    address: SocketAddr,
    /// READs and WRITEs that were passed on.
    seen: Arc<AtomicU64>,
}

impl Relay {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server).unwrap();
                server.set_nodelay(true).unwrap();
                client.set_nodelay(true).unwrap();
                let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    drop(std::io::copy(&mut from, &mut to));
                    drop(to.shutdown(std::net::Shutdown::Both));
                });
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || requests(client, server, &counted));
            }
        });
        Self { address, seen }
    }
}

/// Passes requests on until the client or the server has gone.
fn requests(mut client: TcpStream, mut server: TcpStream, seen: &AtomicU64) {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(len) = client.read(&mut chunk)
        && len > 0
    {
        bytes.extend_from_slice(&chunk[..len]);
        while let Step::Frame { at } = netbios::next(&bytes).unwrap() {
            let end = at.end;
            shorten(&mut bytes[at], seen);
            if server.write_all(&bytes[..end]).is_err() {
                return;
            }
            bytes.drain(..end);
        }
    }
    drop(server.shutdown(std::net::Shutdown::Write));
}

/// Shortens the reads and writes of a frame.
fn shorten(frame: &mut [u8], seen: &AtomicU64) {
    let mut rest = frame;
    loop {
        let number =
            |rest: &[u8], at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let command = u16::from_le_bytes(rest[COMMAND..COMMAND + 2].try_into().unwrap());
        if command == READ || command == WRITE {
            seen.fetch_add(1, Ordering::Relaxed);
            let length = number(rest, LENGTH).min(MOST);
            rest[LENGTH..LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        }
        let next = number(rest, NEXT_COMMAND) as usize;
        if next == 0 {
            return;
        }
        rest = &mut rest[next..];
    }
}

/// Applies `load`, which has to go well, over a relay; gives the READs and WRITEs too.
fn run(load: &Workload) -> (RunResult, u64) {
    let share = Share::new("offered");
    let relay = Relay::to(share.address);
    let target = SmbTarget { address: relay.address, ..share.target(SmbSecurity::None) };
    let prepared = prepare(&Target::Smb(target), load).unwrap();
    let before = relay.seen.load(Ordering::Relaxed);
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
    (result, relay.seen.load(Ordering::Relaxed) - before)
}

#[test]
fn reads_and_writes_of_a_load_are_continued_and_verified() {
    let load = Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
        length: Length::Operations(1000),
        jobs: 2,
        depth: 4,
        file_bytes: 64 * 4096,
        layout: Layout::Written { block_bytes: 64 << 10 },
        verify: Some(VerifyScope::All),
        verify_reads: true,
        ..Workload::default()
    };
    let (result, requests) = run(&load);
    assert_eq!((result.total.operations, result.total.bytes), (1000, 1000 * 4096));
    assert_eq!(result.connections.continued, 1000);
    // The reading back of 64 blocks included.
    assert_eq!(requests, 1064 * 5);
    let verify = result.verify.unwrap();
    assert_eq!(verify.checked, 64);
    assert_eq!(verify.in_passing, result.by_operation["read"].operations);
}

#[test]
fn a_file_that_is_filled_in_one_compound_is_filled_on_in_further_ones() {
    let share = |op| OpShare { op, percent: 50 };
    let load = Workload {
        operation: Operation::Mix,
        mix: vec![share(MixOp::Unlink2), share(MixOp::Stat)],
        length: Length::Operations(300),
        file_bytes: 4096,
        layout: Layout::Sparse,
        ..Workload::default()
    };
    let (result, requests) = run(&load);
    let filled = result.by_operation["remove"].operations;
    assert!(filled > 50, "{filled}");
    assert_eq!((result.connections.continued, requests), (filled, filled * 5));
}
