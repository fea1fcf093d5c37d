//! A server in this process and clients on sockets, for tests of the data plane.

use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_catalog::{Catalog, Mode, NewPool, NewVolume, VolumeChange};
use weir_control::ServerConfig;
use weir_core::Credentials;
use weir_nfs::client::{Caller, Mnt, Null, RemoteCall, Reply};
use weir_nfs::mount::wire::MntRes;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, GetattrArgs, Res, Sattr3, StableHow, WriteArgs,
};
use weir_server::Server;

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// A volume of this quota in a standard pool gets 16 bytes a second.
const TINY_QUOTA: u64 = MIB;

/// A server with two volumes: the contract of `/tiny` is spent by one small request, that of
/// `/open` never binds.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    _directory: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(settings: impl FnOnce(&mut ServerConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            shutdown_grace: Duration::from_secs(60),
            ..ServerConfig::default()
        };
        settings(&mut config);
        {
            let catalog = Catalog::open_with(directory.path(), config.minimums()).unwrap();
            let (name, level) = ("pool".to_owned(), "standard".to_owned());
            let pool = NewPool { name, level, size_bytes: 1000 * TIB, ..NewPool::default() };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            for (name, quota_bytes) in [("tiny", TINY_QUOTA), ("open", 900 * TIB)] {
                let (name, pool) = (name.to_owned(), "pool".to_owned());
                let volume = NewVolume { name, pool, quota_bytes, ..NewVolume::default() };
                catalog.create_volume(&volume, Mode::Commit).unwrap();
            }
        }
        Self { server: Server::start(&config).unwrap(), _directory: directory }
    }

    pub(crate) fn connect(&self) -> Peer {
        self.connect_from([127, 0, 0, 1])
    }

    /// A client at another address of this machine.
    pub(crate) fn connect_from(&self, source: [u8; 4]) -> Peer {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
        socket.connect(&self.server.addresses()[0].into()).unwrap();
        Peer::new(socket.into())
    }

    /// Gives the tiny volume a contract that lets everything through.
    pub(crate) fn lift(&self) {
        let change = VolumeChange { quota_bytes: Some(90 * TIB), ..VolumeChange::default() };
        let catalog = self.server.catalog();
        catalog.change_volume("tiny", &change, Some(0), Mode::Commit).unwrap();
        self.server.plane().apply(catalog.snapshot()).unwrap();
    }

    /// Waits until no memory is parked: the test hangs, and so fails, if that never comes.
    pub(crate) fn wait_until_nothing_is_parked(&self) {
        while self.server.plane().totals().parked_bytes > 0 {
            std::thread::yield_now();
        }
    }
}

/// A client with one connection.
pub(crate) struct Peer {
    pub(crate) socket: TcpStream,
    pub(crate) caller: Caller,
    pub(crate) xid: u32,
}

impl Peer {
    pub(crate) fn new(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { socket, caller: Caller::sys(&Credentials::ROOT, b"test"), xid: 0 }
    }

    pub(crate) fn send<A: RemoteCall>(&mut self, args: &A) -> u32 {
        self.xid += 1;
        self.send_as(self.xid, args);
        self.xid
    }

    pub(crate) fn send_as<A: RemoteCall>(&mut self, xid: u32, args: &A) {
        let mut bytes = Vec::new();
        self.caller.call(&mut bytes, xid, args);
        self.socket.write_all(&bytes).unwrap();
    }

    pub(crate) fn record(&mut self) -> Vec<u8> {
        let mut mark = [0; 4];
        self.socket.read_exact(&mut mark).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        self.socket.read_exact(&mut record).unwrap();
        record
    }

    pub(crate) fn next_xid(&mut self) -> u32 {
        self.next_xid_or_end().unwrap()
    }

    /// The next reply's number, or nothing where the server closed in an orderly way.
    pub(crate) fn next_xid_or_end(&mut self) -> Option<u32> {
        let mut byte = [0];
        (self.socket.peek(&mut byte).unwrap() > 0).then(|| {
            let record = self.record();
            Reply::parse(&record).unwrap().xid
        })
    }

    pub(crate) fn mount(&mut self, path: &str) -> Vec<u8> {
        self.send(&Mnt(path.as_bytes()));
        let record = self.record();
        match Reply::parse(&record).unwrap().results::<Mnt<'_>>().unwrap() {
            MntRes::Ok(granted) => granted.handle.0.to_vec(),
            MntRes::Fail(status) => panic!("{status:?}"),
        }
    }

    pub(crate) fn create(&mut self, dir: &[u8], name: &str) -> Vec<u8> {
        let location = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
        let how = CreateHow3::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        self.send(&CreateArgs { location, how });
        let record = self.record();
        match Reply::parse(&record).unwrap().results::<CreateArgs<'_>>().unwrap() {
            Res::Ok(made) => made.object.unwrap().0.to_vec(),
            Res::Fail(status, _) => panic!("{status:?}"),
        }
    }

    pub(crate) fn write(&mut self, file: &[u8], data: &[u8]) -> u32 {
        self.send(&write_args(file, data))
    }

    pub(crate) fn getattr(&mut self, file: &[u8]) -> u32 {
        self.send(&GetattrArgs { object: FileHandle3(file) })
    }
}

pub(crate) fn write_args<'a>(file: &'a [u8], data: &'a [u8]) -> WriteArgs<'a> {
    let count = u32::try_from(data.len()).unwrap();
    WriteArgs { file: FileHandle3(file), offset: 0, count, stable: StableHow::Unstable, data }
}

/// Is the connection served?
pub(crate) fn is_served(peer: &mut Peer) -> bool {
    peer.xid += 1;
    let mut call = Vec::new();
    peer.caller.call(&mut call, peer.xid, &Null);
    let sent = peer.socket.write_all(&call);
    let mut mark = [0; 4];
    sent.is_ok() && peer.socket.read_exact(&mut mark).is_ok() && {
        let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        peer.socket.read_exact(&mut record).unwrap();
        true
    }
}
