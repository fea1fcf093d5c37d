//! A server of the test's own: the built program on a free port, in a data directory that goes
//! away with it.

use crate::held::free_address;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, socket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Tenths of a second that a server may take to answer.
const START_TRIES: u32 = 300;

pub(crate) struct TestServer {
    data: TempDir,
    port: u16,
    /// Keeps the port from everybody else, restarts included.
    _held: OwnedFd,
    process: Child,
}

impl TestServer {
    /// A running server with a manual pool `pool`, so that small volumes can be quick.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with settings in the environment.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_logging(settings, Stdio::inherit())
    }

    /// Starts a server whose log goes to `log`.
    pub(crate) fn start_logging(settings: &[(&str, &str)], log: Stdio) -> Self {
        let data = TempDir::new().unwrap();
        let (address, held) = free_address();
        let port = address.port();
        let process = serve(&data, port, settings, log);
        let server = Self { data, port, _held: held, process };
        server.await_answer();
        let size = ["--level", "ultra", "--size", "64TiB", "--qos", "manual"];
        server.weir(&[&["pool", "create", "pool"][..], &size].concat());
        server
    }

    /// The server's address for NFS.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A connection to it on which a reply that never comes fails the test.
    pub(crate) fn connect(&self) -> TcpStream {
        prepared(TcpStream::connect(self.address()).unwrap())
    }

    /// Connects from another address of this machine.
    pub(crate) fn connect_from(&self, source: Ipv4Addr) -> TcpStream {
        connect_from(source, self.address())
    }

    /// The server's process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Makes a volume whose contract binds none of these tests.
    pub(crate) fn volume(&self, name: &str, quota: &str) {
        let contract = ["--pool", "pool", "--quota", quota, "--throughput", "1000MiB/s"];
        self.weir(&[&["volume", "create", name][..], &contract].concat());
    }

    /// Runs the command line against it; it must succeed.
    pub(crate) fn weir(&self, args: &[&str]) -> String {
        let done = self.try_weir(args);
        let complaint = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "weir {args:?}: {complaint}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Runs the command line against it.
    pub(crate) fn try_weir(&self, args: &[&str]) -> Output {
        Command::new(WEIR).arg("--data").arg(self.data.path()).args(args).output().unwrap()
    }

    /// Ends it with `signal` and starts it again on the same data and port, without settings.
    pub(crate) fn restart(&mut self, signal: &str) {
        self.stop(signal);
        self.serve_again();
    }

    /// Ends it with `signal`.
    pub(crate) fn stop(&mut self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let status = self.process.wait().unwrap();
        assert!(signal == "KILL" || status.success(), "ended with {status}");
    }

    /// Starts it again after a stop.
    pub(crate) fn serve_again(&mut self) {
        self.serve_again_logging(&[], Stdio::inherit());
    }

    /// Starts it again after a stop, with these settings and its log to `log`.
    pub(crate) fn serve_again_logging(&mut self, settings: &[(&str, &str)], log: Stdio) {
        self.process = serve(&self.data, self.port, settings, log);
        self.await_answer();
    }

    /// The server's data directory.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Memory it holds now, in KiB (`VmRSS`).
    pub(crate) fn resident_kib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn await_answer(&self) {
        for _ in 0..START_TRIES {
            let listens = TcpStream::connect(self.address()).is_ok();
            if listens && self.try_weir(&["pool", "list"]).status.success() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("the server does not answer");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _: io::Result<()> = self.process.kill();
        let _: io::Result<_> = self.process.wait();
    }
}

/// A connection on which a reply that never comes fails the test.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    prepared(TcpStream::connect(address).unwrap())
}

/// The same from another address of this machine.
pub(crate) fn connect_from(source: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    prepared(socket.into())
}

fn prepared(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn serve(data: &TempDir, port: u16, settings: &[(&str, &str)], log: Stdio) -> Child {
    let mut serve = Command::new(WEIR);
    serve.args(["serve", "--data"]).arg(data.path());
    serve.args(["--nfs", &format!("127.0.0.1:{port}")]).env("WEIR_API", "127.0.0.1:0");
    serve.env("WEIR_LOG_LEVEL", "error").envs(settings.iter().copied());
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}
