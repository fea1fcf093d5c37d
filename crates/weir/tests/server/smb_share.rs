//! A server with a share, and a user who may write there.

use crate::held::free_address;
use crate::test_server::TestServer;
use rustix::fd::OwnedFd;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use weir_load::engine::SmbSession;
use weir_load::{Password, SmbSecurity, SmbTarget};

pub(crate) const USER: &str = "ada";
pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const SHARE: &str = "vol";

pub(crate) struct Share {
    pub(crate) server: TestServer,
    /// The server's address for SMB.
    pub(crate) address: SocketAddr,
    signing: String,
    _held: OwnedFd,
}

impl Share {
    /// A server that offers or requires signatures.
    pub(crate) fn new(signing: &str) -> Self {
        let (address, held) = free_address();
        let listen = address.to_string();
        let settings = [("WEIR_SMB", listen.as_str()), ("WEIR_SMB_SIGNING", signing)];
        let server = TestServer::start_with(&settings);
        let share = Self { server, address, signing: signing.to_owned(), _held: held };
        share.make_user();
        let create = ["volume", "create", SHARE, "--pool", "pool", "--quota", "1GiB"];
        let terms = ["--throughput", "1000MiB/s", "--protocols", "nfs,smb", "--owner", USER];
        let told = share.server.weir(&[&create[..], &terms].concat());
        let command = format!("smbclient //127.0.0.1/vol -U USER -p {}", address.port());
        assert!(told.contains(&command), "{told}");
        share
    }

    /// Starts the server again after a stop.
    pub(crate) fn serve_again(&mut self) {
        let listen = self.address.to_string();
        let settings = [("WEIR_SMB", listen.as_str()), ("WEIR_SMB_SIGNING", &self.signing)];
        self.server.serve_again_logging(&settings, Stdio::inherit());
    }

    fn make_user(&self) {
        let mut create = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("--data")
            .arg(self.server.data())
            .args(["user", "create", USER, "--uid", "4000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        create.stdin.take().unwrap().write_all(PASSWORD.as_bytes()).unwrap();
        assert!(create.wait().unwrap().success());
    }

    pub(crate) fn target(&self, security: SmbSecurity) -> SmbTarget {
        let password = Password::new(PASSWORD.to_owned());
        SmbTarget { security, ..SmbTarget::new(self.address, SHARE, USER, password) }
    }

    /// Logs the user in from another address of this machine.
    pub(crate) fn log_in_from(&self, source: impl Into<IpAddr>) -> SmbSession {
        let source = Some(source.into());
        SmbSession::open(&self.target(SmbSecurity::Sign), (self.address, source)).unwrap()
    }
}
