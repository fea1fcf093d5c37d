//! The server's messages to the service manager, by the protocol of sd_notify(3).

use rustix::process::geteuid;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A service manager's socket.
struct Manager(UnixDatagram);

impl Manager {
    fn at(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(socket)
    }

    /// The next message.
    fn hears(&self) -> String {
        let mut state = [0; 4096];
        let length = self.0.recv(&mut state).unwrap();
        String::from_utf8(state[..length].to_vec()).unwrap()
    }
}

fn serve(data: &TempDir, socket: &str, watchdog: &str) -> Child {
    let mut command = Command::new(WEIR);
    command.args(["serve", "--nfs", "127.0.0.1:0", "--api", "none", "--log-level", "error"]);
    command.arg("--data").arg(data.path()).stdin(Stdio::null());
    command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", watchdog);
    command.spawn().unwrap()
}

fn stop(mut server: Child) {
    assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    assert!(server.wait().unwrap().success());
}

#[test]
fn the_service_manager_hears_when_it_serves_lives_and_stops() {
    let (data, place) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = place.path().join("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).unwrap());
    let server = serve(&data, path.to_str().unwrap(), "200000");
    let ready = manager.hears();
    assert!(ready.starts_with("READY=1\nSTATUS=serving 0 of 0 volumes on 127.0.0.1:"), "{ready}");
    // Not before it answers.
    let asked = Command::new(WEIR).arg("--data").arg(data.path()).arg("health").output().unwrap();
    assert!(asked.status.success());
    for _ in 0..5 {
        assert_eq!(manager.hears(), "WATCHDOG=1");
    }
    stop(server);
    let last = std::iter::repeat_with(|| manager.hears()).find(|state| state != "WATCHDOG=1");
    assert!(last.unwrap().starts_with("STOPPING=1\n"));
}

#[test]
fn a_socket_with_an_abstract_name_is_told_too_and_none_without_a_watchdog() {
    let data = TempDir::new().unwrap();
    let name = format!("weir-test-{}-{}", std::process::id(), geteuid().as_raw());
    let manager = Manager::at(&SocketAddr::from_abstract_name(&name).unwrap());
    let server = serve(&data, &format!("@{name}"), "");
    assert!(manager.hears().starts_with("READY=1\n"));
    stop(server);
    assert!(manager.hears().starts_with("STOPPING=1\n"));
}
