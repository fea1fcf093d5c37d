//! The protocol for tests, from sockets to the counters of volumes.

use super::super::Protocol;
use crate::Server;
use crate::limits::REPLY_BYTES_MAX;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;
use weir_catalog::{Catalog, Mode, NewPool, NewVolume, VolumeChange};
use weir_control::ServerConfig;
use weir_control::config::RpcbindMode;

const TIB: u64 = 1 << 40;

/// Bytes of the request that spends the contract of `tiny`, which admits 16 bytes a second: the
/// next request waits for more than a minute.
const SPENT_BYTES: usize = 1024;

/// A server with the volumes `tiny`, whose contract is spent by one request, and `open`, whose
/// contract never binds.
struct Fixture {
    server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        Self::with(|_| {})
    }

    fn with(settings: impl FnOnce(&mut ServerConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            ..ServerConfig::default()
        };
        settings(&mut config);
        {
            let catalog = Catalog::open_with(directory.path(), config.minimums()).unwrap();
            let (name, level) = ("pool".to_owned(), "standard".to_owned());
            let pool = NewPool { name, level, size_bytes: 1000 * TIB, ..NewPool::default() };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            for (name, quota_bytes) in [("tiny", 1 << 20), ("open", 900 * TIB)] {
                let (name, pool) = (name.to_owned(), "pool".to_owned());
                let volume = NewVolume { name, pool, quota_bytes, ..NewVolume::default() };
                catalog.create_volume(&volume, Mode::Commit).unwrap();
            }
        }
        Self { server: Server::start(&config).unwrap(), _directory: directory }
    }

    fn connect(&self) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (served, peer) = listener.accept().unwrap();
        served.set_nonblocking(true).unwrap();
        let engine = self.server.engine();
        engine.admission.enter(peer.ip());
        engine.adopt(served, peer, Protocol::Toy);
        Client { lines: BufReader::new(socket) }
    }

    /// Connects, opens a file on each of the two volumes, and spends the contract of `tiny`: no
    /// other request passes its gate before [`Fixture::lift`], however slowly the machine runs the
    /// test.
    fn connect_spent(&self) -> Client {
        let mut client = self.connect();
        assert_eq!(client.ask("open open here; open tiny there"), "ok 0; ok 1");
        let spent = "s".repeat(SPENT_BYTES);
        assert_eq!(client.ask(&format!("write 1 0 {spent}")), format!("ok {SPENT_BYTES}"));
        client
    }

    /// Waits until so many requests wait at the gate of `volume`.
    fn until_waiting(&self, volume: &str, requests: u64) {
        while self.live(volume).waiting != requests {
            std::thread::yield_now();
        }
    }

    fn live(&self, volume: &str) -> weir_control::plane::VolumeLive {
        let id = self.server.catalog().snapshot().volume_named(volume).unwrap().id;
        self.server.plane().volume_live(id).unwrap()
    }

    /// Gives the volume `tiny` a contract that lets everything through.
    fn lift(&self) {
        let change = VolumeChange { quota_bytes: Some(90 * TIB), ..VolumeChange::default() };
        let catalog = self.server.catalog();
        catalog.change_volume("tiny", &change, Some(0), Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }
}

struct Client {
    lines: BufReader<TcpStream>,
}

impl Client {
    fn send(&mut self, line: &str) {
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.receive()
    }
}

#[test]
fn a_second_protocol_reads_and_writes_and_is_counted() {
    let fixture = Fixture::start();
    let mut client = fixture.connect();
    assert_eq!(client.ask("open open file"), "ok 0");
    assert_eq!(client.ask("write 0 3 abc"), "ok 3");
    assert_eq!(client.ask("read 0 4 100"), "ok bc");
    assert_eq!(client.ask("read 7 0 1"), "error no such handle");
    let live = fixture.live("open");
    assert_eq!((live.write_ops, live.write_bytes), (1, 3));
    assert_eq!((live.read_ops, live.read_bytes, live.other_ops), (1, 2, 1));
    let names = live.operations.iter().map(|count| (count.protocol, count.operation));
    assert!(names.eq([("toy", "OPEN"), ("toy", "READ"), ("toy", "WRITE")]));
}

#[test]
fn each_element_of_a_chain_waits_for_the_contract_of_its_own_volume() {
    let fixture = Fixture::start();
    let mut client = fixture.connect_spent();
    client.send("write 0 0 first; write 1 5 second; read 0 0 5");
    fixture.until_waiting("tiny", 1);
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    let spent = SPENT_BYTES as u64;
    assert_eq!((open.write_bytes, open.read_ops, tiny.write_bytes), (5, 0, spent));
    assert!(tiny.parked_bytes > 0);
    fixture.lift();
    assert_eq!(client.receive(), "ok 5; ok 6; ok first");
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    assert_eq!((open.write_bytes, open.read_bytes, tiny.write_bytes), (5, 5, spent + 6));
    assert_eq!((tiny.delayed_ops, tiny.parked_bytes, tiny.waiting), (1, 0, 0));
}

#[test]
fn a_chain_whose_connection_closes_leaves_the_gate() {
    let fixture = Fixture::start();
    let mut client = fixture.connect_spent();
    client.send("write 0 0 first; write 1 5 second; write 0 5 third");
    fixture.until_waiting("tiny", 1);
    drop(client);
    fixture.until_waiting("tiny", 0);
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    let spent = SPENT_BYTES as u64;
    assert_eq!((open.write_bytes, tiny.write_bytes, tiny.parked_bytes), (5, spent, 0));
    // The worker ends when no operation is under way.
    fixture.server.stop().unwrap();
}

#[test]
fn a_connection_whose_request_cannot_be_answered_is_closed() {
    let fixture = Fixture::start();
    let mut client = fixture.connect();
    assert_eq!(client.ask("open open file"), "ok 0");
    client.send("break 0");
    assert_eq!(client.receive(), "", "the connection is closed");
    assert_eq!(fixture.connect().ask("open open file"), "ok 0", "others go on");
}

/// A chain holds all the room of its connection for replies, so that a request before it is stalled
/// at the gate where the chain's second command waits.
#[test]
fn a_chain_goes_on_although_requests_of_its_connection_wait_for_the_room_it_holds() {
    let fixture = Fixture::start();
    let mut client = fixture.connect_spent();
    client.send("read 1 0 2");
    fixture.until_waiting("tiny", 1);
    client.send(&format!("read 0 0 {REPLY_BYTES_MAX}; write 1 5 second"));
    fixture.until_waiting("tiny", 2);
    fixture.lift();
    assert_eq!(client.receive(), "ok ; ok 6", "the chain is first");
    assert_eq!(client.receive(), "ok ss");
    let tiny = fixture.live("tiny");
    assert_eq!((tiny.parked_bytes, tiny.waiting, tiny.delayed_ops), (0, 0, 2));
}

/// Locks come with a port mapper, so this runs in a network of its own.
#[test]
fn a_lock_that_was_waited_for_is_told_by_a_call_of_the_server() {
    let program = std::env::current_exe().unwrap();
    let script = "ip link set lo up && exec \"$0\" --ignored --exact \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", script]).arg(program);
    let output = command.arg("session::toy::tests::a_lock_in_a_network_of_its_own").output();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn a_lock_in_a_network_of_its_own() {
    let fixture = Fixture::with(|config| {
        config.rpcbind = RpcbindMode::Serve;
        config.grace_period = Duration::ZERO;
    });
    let (mut one, mut other) = (fixture.connect(), fixture.connect());
    assert_eq!(one.ask("open open file"), "ok 0");
    assert_eq!(other.ask("open open file"), "ok 0");
    assert_eq!(one.ask("lock 0"), "ok granted");
    assert_eq!(other.ask("lock 0"), "ok waits");
    assert_eq!(other.ask("write 0 0 meanwhile"), "ok 9", "the connection goes on");
    assert_eq!(one.ask("unlock 0"), "ok unlocked");
    let call = other.receive();
    let number = call.strip_prefix("call ").and_then(|call| call.strip_suffix(" granted 0"));
    let number = number.unwrap_or_else(|| panic!("{call}"));
    // The answer to the server's call has no reply of its own.
    other.send(&format!("done {number}"));
    assert_eq!(other.ask("done 9999"), "error no such call");
    assert_eq!(one.ask("lock 0"), "ok waits");
    // A client that goes away leaves its locks to the others.
    drop(other);
    assert!(one.receive().starts_with("call "));
    let named = |name| {
        let operations = fixture.live("open").operations;
        let count = operations.iter().find(|one| one.protocol == "toy" && one.operation == name);
        count.map_or(0, |count| count.answered)
    };
    assert_eq!((named("LOCK"), named("UNLOCK"), named("WRITE")), (3, 1, 1));
}
