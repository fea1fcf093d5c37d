//! A server whose lock manager is on port 111, in a network of its own, and the machines of its
//! clients. Not here: clients of SMB (`smb.rs`).

use crate::smb::{PASSWORD, USER};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;
use weir_catalog::{
    Catalog, Mode, MonitoredHost, NewPool, NewUser, NewVolume, Protocols, SharingChange,
};
use weir_control::ServerConfig;
use weir_control::config::RpcbindMode;
use weir_control::plane::{Lock as Listed, LockOwner};
use weir_core::Credentials;
use weir_crypto::Provider;
use weir_nfs::PROGRAM_RPCBIND;
use weir_nfs::client::{Caller, Getport, Mnt, NlmLock, NlmUnlock, RemoteCall, Reply};
use weir_nfs::mount::wire::MntRes;
use weir_nfs::nlm::Status;
use weir_nfs::nlm::wire::{CallerName, Lock, LockArgs, NetObj, UnlockArgs};
use weir_nfs::nsm::wire::{HostName, NotifyArgs};
use weir_nfs::rpc::{Call, reply};
use weir_nfs::rpcbind::wire::Mapping;
use weir_nfs::v3::wire::{CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, Res as Nfs, Sattr3};
use weir_nfs::xdr::{Encode, decode};
use weir_qos::Qos;
use weir_server::Server;
use weir_smb::auth::nt_hash;

const TIB: u64 = 1 << 40;
pub(crate) const SERVER: &str = "127.0.0.1";
pub(crate) const WAIT: Option<Duration> = Some(Duration::from_secs(60));

/// Runs one ignored test of this program in a network namespace of its own.
pub(crate) fn run_alone(test: &str) {
    let program = std::env::current_exe().unwrap();
    let script = "ip link set lo up && exec \"$0\" --ignored --exact \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--net", "--", "sh", "-c", script]).arg(program).arg(test);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complaint}");
}

pub(crate) struct Bed {
    server: Option<Server>,
    config: ServerConfig,
    _directory: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn start() -> Self {
        Self::start_after(Duration::from_secs(3000), &[])
    }

    /// A server whose last life left these hosts to be told of the restart.
    pub(crate) fn start_after(grace_period: Duration, hosts: &[MonitoredHost]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig {
            data: directory.path().to_owned(),
            nfs: vec![SocketAddr::new(SERVER.parse().unwrap(), 2049)],
            smb: vec![SocketAddr::new(SERVER.parse().unwrap(), 445)],
            api: vec![],
            rpcbind: RpcbindMode::Serve,
            grace_period,
            ..ServerConfig::default()
        };
        {
            let catalog = Catalog::open_with(directory.path(), config.minimums()).unwrap();
            let (name, level) = ("pool".to_owned(), "standard".to_owned());
            let (size_bytes, qos) = (1000 * TIB, Qos::Auto);
            let pool = NewPool { name, level, size_bytes, qos, ..NewPool::default() };
            catalog.create_pool(&pool, Mode::Commit).unwrap();
            let (name, pool) = ("work".to_owned(), "pool".to_owned());
            let volume = NewVolume { name, pool, quota_bytes: 400 * TIB, ..NewVolume::default() };
            catalog.create_volume(&volume, Mode::Commit).unwrap();
            // 16 bytes a second: writes to this volume wait.
            let slow =
                NewVolume { name: "slow".to_owned(), quota_bytes: 1 << 20, ..volume.clone() };
            catalog.create_volume(&slow, Mode::Commit).unwrap();
            let sharing =
                SharingChange { protocols: Protocols::new(true, true), ..Default::default() };
            let both = NewVolume { name: "both".to_owned(), sharing, ..volume };
            catalog.create_volume(&both, Mode::Commit).unwrap();
            let (name, groups) = (USER.to_owned(), vec![]);
            let user = NewUser { name, uid: 1000, gid: None, groups, enabled: true };
            catalog.create_user(&user, Mode::Commit).unwrap();
            let hash = nt_hash(&Provider, PASSWORD);
            catalog.set_password(USER, &hash.0, Mode::Commit).unwrap();
            for host in hosts {
                catalog.monitor_host(host).unwrap();
            }
        }
        let server = Some(Server::start(&config).unwrap());
        Self { server, config, _directory: directory }
    }

    pub(crate) fn restart(&mut self) {
        self.server.take().unwrap().stop().unwrap();
        self.server = Some(Server::start(&self.config).unwrap());
    }

    pub(crate) fn held(&self) -> u64 {
        self.server.as_ref().unwrap().plane().totals().locks.held
    }

    /// The owners of the locks as an operator lists them one by one, and whether they wait. All ask
    /// for the first ten bytes alone.
    pub(crate) fn listed(&self) -> Vec<(IpAddr, String, bool)> {
        let (plane, mut listed, mut after) = (self.server.as_ref().unwrap().plane(), vec![], None);
        while let Some((key, lock)) = plane.locks(after.as_deref(), 1).unwrap().pop() {
            assert_eq!((lock.offset, lock.length, lock.exclusive), (0, Some(10), true));
            let LockOwner::Nlm { address, host, process: Some(1) } = lock.owner else {
                panic!("{lock:?}")
            };
            listed.push((address, String::from_utf8(host).unwrap(), lock.waits));
            after = Some(key);
        }
        listed
    }

    /// The IDs of all locks, in the order of the list.
    pub(crate) fn lock_ids(&self) -> Vec<String> {
        let locks = self.server.as_ref().unwrap().plane().locks(None, 100).unwrap();
        locks.into_iter().map(|(_, lock)| lock.id).collect()
    }

    /// Closes a lock as an operator does.
    pub(crate) fn close_lock(&self, id: &str) -> Option<Listed> {
        self.server.as_ref().unwrap().plane().close_lock(id)
    }

    /// Waits for the number of locks: the test hangs, and so fails, if it never comes.
    pub(crate) fn wait_until_held(&self, locks: u64) {
        while self.held() != locks {
            std::thread::yield_now();
        }
    }
}

pub(crate) fn owned((address, host, waits): (&str, &str, bool)) -> (IpAddr, String, bool) {
    (address.parse().unwrap(), host.to_owned(), waits)
}

/// A machine: an address, its connection to the server, and its own lock manager and monitor.
pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) tcp: TcpStream,
    pub(crate) caller: Caller,
    xid: u32,
    portmapper: UdpSocket,
    pub(crate) program: UdpSocket,
    port: u16,
}

impl Host {
    pub(crate) fn new(address: &str, name: &'static str) -> Self {
        let ip: IpAddr = address.parse().unwrap();
        let udp = |port| {
            let socket = UdpSocket::bind((ip, port)).unwrap();
            socket.set_read_timeout(WAIT).unwrap();
            socket
        };
        let program = udp(0);
        let port = program.local_addr().unwrap().port();
        let caller = Caller::sys(&Credentials::ROOT, name.as_bytes());
        Self { name, tcp: connect(ip), caller, xid: 0, portmapper: udp(111), program, port }
    }

    pub(crate) fn again(&mut self) {
        self.tcp = connect(self.program.local_addr().unwrap().ip());
    }

    pub(crate) fn call<A: RemoteCall>(&mut self, args: &A) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.xid += 1;
        self.caller.call(&mut bytes, self.xid, args);
        self.tcp.write_all(&bytes).unwrap();
        self.reply()
    }

    /// The next record that the server sends.
    pub(crate) fn reply(&mut self) -> Vec<u8> {
        let mut mark = [0; 4];
        self.tcp.read_exact(&mut mark).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        self.tcp.read_exact(&mut record).unwrap();
        record
    }

    /// The handle of a file that is there afterwards.
    pub(crate) fn file(&mut self, name: &str) -> Vec<u8> {
        self.file_of(b"/work", name)
    }

    pub(crate) fn file_of(&mut self, volume: &[u8], name: &str) -> Vec<u8> {
        let root = self.mount(volume);
        let location = DirOpArgs3 { dir: FileHandle3(&root), name: name.as_bytes() };
        let how = CreateHow3::Unchecked(Sattr3 { mode: Some(0o600), ..Sattr3::NONE });
        let record = self.call(&CreateArgs { location, how });
        match Reply::parse(&record).unwrap().results::<CreateArgs<'_>>().unwrap() {
            Nfs::Ok(made) => made.object.unwrap().0.to_vec(),
            Nfs::Fail(status, _) => panic!("{status:?}"),
        }
    }

    /// The handle of a volume's root.
    pub(crate) fn mount(&mut self, volume: &[u8]) -> Vec<u8> {
        let record = self.call(&Mnt(volume));
        match Reply::parse(&record).unwrap().results::<Mnt<'_>>().unwrap() {
            MntRes::Ok(granted) => granted.handle.0.to_vec(),
            MntRes::Fail(status) => panic!("{status:?}"),
        }
    }

    pub(crate) fn about<'a>(&self, fh: &'a [u8]) -> Lock<'a> {
        let (caller_name, fh) = (CallerName(self.name.as_bytes()), NetObj(fh));
        Lock { caller_name, fh, oh: NetObj(b"oh"), svid: 1, offset: 0, length: 10 }
    }

    pub(crate) fn ask(&mut self, fh: &[u8], block: bool, reclaim: bool) -> Status {
        let (cookie, lock) = (NetObj(b"cookie"), self.about(fh));
        self.ask_with(LockArgs { cookie, block, exclusive: true, lock, reclaim, state: 3 })
    }

    pub(crate) fn ask_with(&mut self, args: LockArgs<'_>) -> Status {
        let record = self.call(&NlmLock(args));
        let res = Reply::parse(&record).unwrap().results::<NlmLock<'_>>().unwrap();
        assert_eq!(res.cookie, args.cookie);
        res.status
    }

    pub(crate) fn lock(&mut self, fh: &[u8]) -> Status {
        self.ask(fh, false, false)
    }

    pub(crate) fn unlock(&mut self, fh: &[u8]) -> Status {
        let args = UnlockArgs { cookie: NetObj(b""), lock: self.about(fh) };
        let record = self.call(&NlmUnlock(args));
        Reply::parse(&record).unwrap().results::<NlmUnlock<'_>>().unwrap().status
    }

    /// The next call of `program` that the server makes here, after it asked for the port.
    pub(crate) fn called(&self, program: u32) -> (Call, SocketAddr) {
        let (ask, from) = receive(&self.portmapper);
        assert_eq!((ask.program, ask.procedure), (PROGRAM_RPCBIND, Getport::PROCEDURE));
        assert_eq!(decode::<Mapping>(&ask.args).unwrap().program, program);
        answer(&self.portmapper, &ask, from, &u32::from(self.port));
        let (call, from) = receive(&self.program);
        assert_eq!(call.program, program);
        assert_eq!(from, SocketAddr::new(SERVER.parse().unwrap(), 2049), "not where it serves");
        (call, from)
    }

    /// Says that the host called `name` restarted.
    pub(crate) fn notify(&self, name: &str, state: u32) {
        let mut bytes = Vec::new();
        let name = HostName(name.as_bytes());
        Caller::none().call(&mut bytes, 9, &NotifyArgs { name, state });
        self.program.send_to(&bytes[4..], (SERVER, 2049)).unwrap();
        let mut record = [0; 512];
        let (len, _) = self.program.recv_from(&mut record).unwrap();
        assert_eq!(Reply::parse(&record[..len]).unwrap().body, Ok(&[][..]));
    }
}

pub(crate) fn connect(from: IpAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    let server = SocketAddr::new(SERVER.parse().unwrap(), 2049);
    socket.connect(&server.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(WAIT).unwrap();
    stream
}

pub(crate) fn receive(socket: &UdpSocket) -> (Call, SocketAddr) {
    let mut bytes = [0; 4096];
    let (len, from) = socket.recv_from(&mut bytes).unwrap();
    (Call::parse(bytes[..len].to_vec().into()).unwrap(), from)
}

pub(crate) fn answer(socket: &UdpSocket, call: &Call, to: SocketAddr, results: &impl Encode) {
    let mut out = reply::begin(Vec::new(), call.xid);
    results.encode(&mut out);
    socket.send_to(&reply::finish(out)[4..], to).unwrap();
}
