//! A server over a failing kernel, and a client of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weir_catalog::{Catalog, Mode, NewPool, NewVolume};
use weir_control::ServerConfig;
use weir_control::plane::VolumeLive;
use weir_core::Credentials;
use weir_nfs::client::{Caller, Mnt, RemoteCall, Reply};
use weir_nfs::mount::wire::MntRes;
use weir_nfs::v3::wire::{
    CommitArgs, CreateArgs, CreateHow3, DirOpArgs3, Fattr3, FileHandle3, FsStatArgs, GetattrArgs,
    LookupArgs, ReadArgs, RemoveArgs, Res, Sattr3, StableHow, Status, WriteArgs, WriteOk,
};
use weir_server::Server;
use weir_store::testing::{Kernel, PowerCut};

const TIB: u64 = 1 << 40;

/// A server with the volumes `one` and `other`, whose contracts never bind.
pub(crate) struct World {
    pub(crate) kernel: Kernel,
    pub(crate) server: Server,
    config: ServerConfig,
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn start() -> Self {
        Self::start_with(ServerConfig::default())
    }

    pub(crate) fn start_with(settings: ServerConfig) -> Self {
        Self::start_volumes(settings, &["one", "other"], tempfile::tempdir().unwrap())
    }

    /// On a file system in memory, where there is one: for tests of which the disk is no part.
    pub(crate) fn start_in_memory(settings: ServerConfig) -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::start_volumes(settings, &["one", "other"], directory.unwrap())
    }

    /// With a volume `small` too, whose contract is 16 bytes a second.
    pub(crate) fn start_small() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::start_volumes(ServerConfig::default(), &["one", "other", "small"], directory)
    }

    fn start_volumes(settings: ServerConfig, names: &[&str], directory: tempfile::TempDir) -> Self {
        let config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec!["127.0.0.1:0".parse().unwrap()],
            api: vec![],
            ..settings
        };
        let catalog = Catalog::open_with(directory.path(), config.minimums()).unwrap();
        let (name, level) = ("pool".to_owned(), "standard".to_owned());
        let pool = NewPool { name, level, size_bytes: 1000 * TIB, ..NewPool::default() };
        catalog.create_pool(&pool, Mode::Commit).unwrap();
        for name in names {
            let quota_bytes = if *name == "small" { 1 << 20 } else { 400 * TIB };
            let (name, pool) = ((*name).to_owned(), "pool".to_owned());
            let volume = NewVolume { name, pool, quota_bytes, ..NewVolume::default() };
            catalog.create_volume(&volume, Mode::Commit).unwrap();
        }
        drop(catalog);
        let (kernel, server) = Kernel::under(|| Server::start(&config).unwrap()).unwrap();
        Self { kernel, server, config, directory }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.server.addresses()[0])
    }

    /// The directory in which the store keeps a volume's objects for clients.
    pub(crate) fn root(&self, volume: &str) -> PathBuf {
        let snapshot = self.server.catalog().snapshot();
        snapshot.volume_named(volume).unwrap().directory.join("root")
    }

    pub(crate) fn live(&self, volume: &str) -> VolumeLive {
        let id = self.server.catalog().snapshot().volume_named(volume).unwrap().id;
        self.server.plane().volume_live(id).unwrap()
    }

    /// Stops the server, does something to what it leaves, and starts it again on another address,
    /// with a power that can be cut.
    pub(crate) fn restart(self, meanwhile: impl FnOnce() -> Arc<PowerCut>) -> Self {
        let Self { kernel, server, config, directory } = self;
        kernel.lift_all();
        server.stop().unwrap();
        let power = meanwhile();
        let start = || Server::start(&config).unwrap();
        let (kernel, server) = Kernel::with_power(&power, start).unwrap();
        Self { kernel, server, config, directory }
    }

    pub(crate) fn stop(self) {
        self.kernel.lift_all();
        self.server.stop().unwrap();
    }
}

/// A status, and the size of the object afterwards if the reply tells.
pub(crate) type Failure = (Status, Option<u64>);

fn size(after: Option<Fattr3>) -> Option<u64> {
    after.map(|attributes| attributes.size)
}

/// First xid of the next client.
static NEXT_XID: AtomicU32 = AtomicU32::new(0);

/// A client with one connection.
pub(crate) struct Client {
    socket: TcpStream,
    caller: Caller,
    xid: u32,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // An xid never comes again, as with real clients: a server that remembers calls over a
        // restart takes a call with an old number for the old call.
        let xid = NEXT_XID.fetch_add(1 << 16, Ordering::Relaxed);
        Self { socket, caller: Caller::sys(&Credentials::ROOT, b"test"), xid }
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

    /// Makes a call and waits for its reply, which must be the next to come.
    pub(crate) fn ask<A: RemoteCall, T>(
        &mut self,
        args: &A,
        read: impl FnOnce(A::Results<'_>) -> T,
    ) -> T {
        let xid = self.send(args);
        let record = self.record();
        let reply = Reply::parse(&record).unwrap();
        assert_eq!(reply.xid, xid);
        read(reply.results::<A>().unwrap())
    }

    pub(crate) fn mount(&mut self, path: &str) -> Vec<u8> {
        self.ask(&Mnt(path.as_bytes()), |result| match result {
            MntRes::Ok(granted) => granted.handle.0.to_vec(),
            MntRes::Fail(status) => panic!("{status:?}"),
        })
    }

    pub(crate) fn create(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>, Failure> {
        self.ask(&create_args(dir, name), |result| match result {
            Res::Ok(made) => Ok(made.object.unwrap().0.to_vec()),
            Res::Fail(status, wcc) => Err((status, size(wcc.after))),
        })
    }

    pub(crate) fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>, Status> {
        self.ask(&LookupArgs { what: at(dir, name) }, |result| match result {
            Res::Ok(found) => Ok(found.object.0.to_vec()),
            Res::Fail(status, _) => Err(status),
        })
    }

    pub(crate) fn remove(&mut self, dir: &[u8], name: &str) -> Result<(), Failure> {
        self.ask(&RemoveArgs { object: at(dir, name) }, |result| match result {
            Res::Ok(_) => Ok(()),
            Res::Fail(status, wcc) => Err((status, size(wcc.after))),
        })
    }

    pub(crate) fn write(
        &mut self,
        file: &[u8],
        offset: u64,
        data: &[u8],
        stable: StableHow,
    ) -> Result<WriteOk, Failure> {
        self.ask(&write_args(file, offset, data, stable), |result| match result {
            Res::Ok(done) => Ok(done),
            Res::Fail(status, wcc) => Err((status, size(wcc.after))),
        })
    }

    /// The write verifier.
    pub(crate) fn commit(&mut self, file: &[u8]) -> Result<[u8; 8], Failure> {
        self.ask(&commit_args(file), |result| match result {
            Res::Ok(done) => Ok(done.verifier),
            Res::Fail(status, wcc) => Err((status, size(wcc.after))),
        })
    }

    /// The data, and whether it ends with the file.
    pub(crate) fn read(
        &mut self,
        file: &[u8],
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool), Failure> {
        let args = ReadArgs { file: FileHandle3(file), offset, count };
        self.ask(&args, |result| match result {
            Res::Ok(done) => {
                assert_eq!(done.count as usize, done.data.len());
                Ok((done.data.to_vec(), done.eof))
            }
            Res::Fail(status, after) => Err((status, size(after))),
        })
    }

    pub(crate) fn attributes(&mut self, object: &[u8]) -> Fattr3 {
        self.ask(&GetattrArgs { object: FileHandle3(object) }, |result| match result {
            Res::Ok(found) => found.attributes,
            Res::Fail(status, _) => panic!("{status:?}"),
        })
    }

    /// Waits for the reply to a GETATTR, which proves that the server has taken up everything that
    /// was sent before it. What was sent must be in no hurry to be answered.
    pub(crate) fn taken_up(&mut self, object: &[u8]) {
        self.attributes(object);
    }

    /// Bytes in use, as `df` shows them.
    pub(crate) fn used(&mut self, root: &[u8]) -> u64 {
        self.ask(&FsStatArgs { root: FileHandle3(root) }, |result| match result {
            Res::Ok(space) => space.total_bytes - space.free_bytes,
            Res::Fail(status, _) => panic!("{status:?}"),
        })
    }
}

pub(crate) fn at<'a>(dir: &'a [u8], name: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() }
}

pub(crate) fn create_args<'a>(dir: &'a [u8], name: &'a str) -> CreateArgs<'a> {
    let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
    CreateArgs { location: at(dir, name), how }
}

pub(crate) fn write_args<'a>(
    file: &'a [u8],
    offset: u64,
    data: &'a [u8],
    stable: StableHow,
) -> WriteArgs<'a> {
    let count = u32::try_from(data.len()).unwrap();
    WriteArgs { file: FileHandle3(file), offset, count, stable, data }
}

pub(crate) fn commit_args(file: &[u8]) -> CommitArgs<'_> {
    CommitArgs { file: FileHandle3(file), offset: 0, count: 0 }
}
