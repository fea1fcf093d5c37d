//! The protocol for tests, from sockets to the counters of volumes.

use super::super::Protocol;
use crate::{Server, ServerConfig};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use weir_catalog::{Catalog, Mode, NewPool, NewVolume, VolumeChange};

const TIB: u64 = 1 << 40;

/// A server with the volumes `tiny`, whose contract is spent by one request, and `open`, whose
/// contract never binds.
struct Fixture {
    server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            ..ServerConfig::default()
        };
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
        let (served, peer) = listener.accept().unwrap();
        served.set_nonblocking(true).unwrap();
        let engine = self.server.engine();
        engine.admission.enter(peer.ip());
        engine.adopt(served, peer, Protocol::Toy);
        Client { lines: BufReader::new(socket) }
    }

    /// Waits until so many requests wait at the gate of `volume`.
    fn until_waiting(&self, volume: &str, requests: u64) {
        while self.live(volume).waiting != requests {
            std::thread::yield_now();
        }
    }

    fn live(&self, volume: &str) -> crate::VolumeLive {
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
    let names = live.operations.iter().map(|count| (count.op.protocol(), count.op.name()));
    assert!(names.eq([("toy", "OPEN"), ("toy", "READ"), ("toy", "WRITE")]));
}

#[test]
fn each_element_of_a_chain_waits_for_the_contract_of_its_own_volume() {
    let fixture = Fixture::start();
    let mut client = fixture.connect();
    assert_eq!(client.ask("open open here; open tiny there"), "ok 0; ok 1");
    assert_eq!(client.ask("write 1 0 spent"), "ok 5");
    client.send("write 0 0 first; write 1 5 second; read 0 0 5");
    fixture.until_waiting("tiny", 1);
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    assert_eq!((open.write_bytes, open.read_ops, tiny.write_bytes), (5, 0, 5));
    assert!(tiny.parked_bytes > 0);
    fixture.lift();
    assert_eq!(client.receive(), "ok 5; ok 6; ok first");
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    assert_eq!((open.write_bytes, open.read_bytes, tiny.write_bytes), (5, 5, 11));
    assert_eq!((tiny.delayed_ops, tiny.parked_bytes, tiny.waiting), (1, 0, 0));
}

#[test]
fn a_chain_whose_connection_closes_leaves_the_gate() {
    let fixture = Fixture::start();
    let mut client = fixture.connect();
    assert_eq!(client.ask("open open here; open tiny there"), "ok 0; ok 1");
    assert_eq!(client.ask("write 1 0 spent"), "ok 5");
    client.send("write 0 0 first; write 1 5 second; write 0 5 third");
    fixture.until_waiting("tiny", 1);
    drop(client);
    fixture.until_waiting("tiny", 0);
    let (open, tiny) = (fixture.live("open"), fixture.live("tiny"));
    assert_eq!((open.write_bytes, tiny.write_bytes, tiny.parked_bytes), (5, 5, 0));
    // The worker ends when no operation is under way.
    fixture.server.stop().unwrap();
}
