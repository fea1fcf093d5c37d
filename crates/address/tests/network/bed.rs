//! The machines of a test, their helpers, and what is seen of them. Not here: what is expected.

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use weir_address::{HelperLink, Interface, LinkError, Place, Report, Request};
use weir_core::Mono;

/// The addresses that move. The machines have addresses of their own in the same networks.
pub(crate) const ADDRESSES: [&str; 2] = ["10.80.0.100", "fd80::100"];

/// The port that servers listen at.
pub(crate) const PORT: u16 = 2049;

/// Names of environment variables for the processes of the tests.
pub(crate) const HOOK: &str = "WEIR_TEST_HOOK";
pub(crate) const READY: &str = "WEIR_TEST_READY";
pub(crate) const END: &str = "WEIR_TEST_END";
/// Seconds for which the helper waits for the end of its server.
pub(crate) const ENDING: &str = "WEIR_TEST_ENDING";

/// The patience of the tests' hooks.
pub(crate) const HOOK_SECONDS: Duration = Duration::from_secs(3);

/// The longest wait for anything that is sure to come: only a fault or a machine that stands still
/// exceeds it.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Runs an ignored test of this program in namespaces of its own.
pub(crate) fn alone(test: &str) {
    assert!(rustix::process::geteuid().is_root(), "namespaces of networks need root");
    let script = "mount -t tmpfs -o mode=755 tmpfs /run && ip link set lo up && \
                  { \"$0\" --ignored --exact \"$1\" --nocapture & wait $!; }";
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private", "--pid", "--fork"]);
    command.args(["--kill-child", "--mount-proc", "--", "sh", "-eu", "-c", script]);
    command.arg(std::env::current_exe().unwrap()).arg(test);
    let output = command.output().expect("unshare, of util-linux, is needed");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complaint}");
}

/// Makes the machines `one`, `two` and `client` on a bridge.
pub(crate) fn machines() {
    ip("link add bridge type bridge");
    ip("link set bridge up");
    for (machine, host) in [("one", 1), ("two", 2), ("client", 9)] {
        ip(&format!("netns add {machine}"));
        ip(&format!("link add {machine} type veth peer name eth0 netns {machine}"));
        ip(&format!("link set {machine} master bridge up"));
        ip(&format!("-n {machine} link set lo up"));
        ip(&format!("-n {machine} link set eth0 up"));
        ip(&format!("-n {machine} addr add 10.80.0.{host}/24 dev eth0"));
        ip(&format!("-n {machine} addr add fd80::{host}/64 dev eth0 nodad"));
    }
}

pub(crate) fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("ip, of iproute2, is needed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn address_of(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn place(address: &str) -> Place {
    let address = address_of(address);
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    Place::new(address, prefix, Interface::parse("eth0").unwrap()).unwrap()
}

pub(crate) fn until_in(time: Duration) -> Mono {
    weir_address::now() + time
}

/// Does the machine have the address?
pub(crate) fn has(machine: &str, address: &str) -> bool {
    ip(&format!("-n {machine} -o addr show")).contains(&format!(" {address}/"))
}

pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = until_in(WAIT);
    while !is_so() {
        assert!(weir_address::now() < end, "waited too long: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Does something in the network of a machine. Sockets made there stay there.
pub(crate) fn within<T: Send>(machine: &str, act: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        let namespace = File::open(Path::new("/run/netns").join(machine)).unwrap();
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(namespace.as_fd(), network).unwrap();
        act()
    };
    std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
}

/// A server on a machine, at all its addresses.
pub(crate) fn listen(machine: &str) -> TcpListener {
    let listener = within(machine, || TcpListener::bind(("::", PORT)).unwrap());
    listener.set_nonblocking(true).unwrap();
    listener
}

/// The next connection of a server.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let mut accepted = None;
    wait_for("a connection", || match listener.accept() {
        Ok((stream, _)) => {
            accepted = Some(stream);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    });
    let accepted = accepted.unwrap();
    accepted.set_nonblocking(false).unwrap();
    accepted.set_read_timeout(Some(WAIT)).unwrap();
    accepted
}

/// Connects the client machine to an address.
pub(crate) fn connect(address: &str) -> TcpStream {
    let to = SocketAddr::new(address_of(address), PORT);
    let stream = within("client", || TcpStream::connect_timeout(&to, WAIT).unwrap());
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream
}

/// The hardware address of a machine.
pub(crate) fn hardware(machine: &str) -> String {
    let link = ip(&format!("-n {machine} -o link show eth0"));
    let after = link.split("link/ether ").nth(1).unwrap();
    after.split(' ').next().unwrap().to_owned()
}

/// Does the client take the address to be at this hardware address?
pub(crate) fn client_knows(address: &str, hardware: &str) -> bool {
    ip(&format!("-n client neigh show {address}")).contains(hardware)
}

/// A machine's helper, with the server's end of the link, which this process has.
pub(crate) struct Gateway {
    pub(crate) link: HelperLink,
    helper: Child,
    /// Reports that answered no request.
    told: Vec<Report>,
}

impl Gateway {
    /// Starts a helper, and waits until it answers.
    pub(crate) fn start(machine: &str) -> Self {
        let mut started = Self::spawn(machine, None);
        started.is_ready();
        started
    }

    /// As [`Self::start`], with a hook.
    pub(crate) fn start_with(machine: &str, hook: &Path) -> Self {
        let mut started = Self::spawn(machine, Some(hook));
        started.is_ready();
        started
    }

    fn is_ready(&mut self) {
        let absent = address_of("10.80.0.250");
        self.ask(Request::Release { address: absent }).unwrap();
    }

    /// Starts a helper.
    pub(crate) fn spawn(machine: &str, hook: Option<&Path>) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", machine]).arg(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "helper_process", "--nocapture"]);
        command.stdout(Stdio::null());
        if let Some(hook) = hook {
            command.env(HOOK, hook);
        }
        let (link, helper) = HelperLink::spawn(&mut command).unwrap();
        link.stream().set_read_timeout(Some(WAIT)).unwrap();
        Self { link, helper, told: Vec::new() }
    }

    /// Sends a request and waits for its report: the words of a refusal.
    pub(crate) fn ask(&mut self, request: Request) -> Result<(), String> {
        let number = self.link.send(request).unwrap();
        loop {
            match self.link.receive().unwrap() {
                Report::Done { number: of } if of == number => return Ok(()),
                Report::Refused { number: of, words } if of == number => return Err(words),
                other => self.told.push(other),
            }
        }
    }

    pub(crate) fn hold(&mut self, address: &str, until: Mono) {
        self.ask(Request::Hold { place: place(address), until }).unwrap();
    }

    /// The next report that answers no request.
    pub(crate) fn told(&mut self) -> Report {
        if self.told.is_empty() { self.link.receive().unwrap() } else { self.told.remove(0) }
    }

    /// Expects that the lease of `address` ends next. A helper that is stopped while it announces
    /// an address tells that this failed.
    pub(crate) fn tells_the_end_of(&mut self, address: &str) {
        let ended = Report::Ended { address: address_of(address) };
        loop {
            match self.told() {
                Report::Failed { words, .. } if words.starts_with("cannot be announced") => {}
                report => {
                    assert_eq!(report, ended);
                    return;
                }
            }
        }
    }

    /// Waits until the helper has closed its end.
    pub(crate) fn ends(&mut self) {
        loop {
            match self.link.receive() {
                Ok(report) => self.told.push(report),
                Err(LinkError::Io(error)) => {
                    let ended = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
                    assert!(ended.contains(&error.kind()), "{error}");
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.helper), signal).unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.helper.kill());
        drop(self.helper.wait());
    }
}
