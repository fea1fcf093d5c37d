//! The machines of a test, the processes on them, and the gateways that hear of them. Not here:
//! what is expected.

use crate::server::{COMMAND, SERVERS, SOCKET_PATH};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use weir_cluster::{GatewayId, HelperWord, Life, Version};
use weir_core::Mono;
use weir_links::{Identity, KeyFile, Mesh, Word};

/// The address that the server holds on its machine.
pub(crate) const ADDRESS: &str = "10.81.0.100";

/// Names of environment variables for the processes of the tests.
pub(crate) const KEY: &str = "WEIR_TEST_KEY";
pub(crate) const LISTEN: &str = "WEIR_TEST_LISTEN";
pub(crate) const HOOK: &str = "WEIR_TEST_HOOK";
pub(crate) const SOCKET: &str = "WEIR_TEST_SOCKET";

/// The longest wait for anything that is sure to come.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// The machine of the helper, and those of other gateways.
const MACHINES: [(&str, u16); 3] = [("one", 1), ("two", 2), ("three", 3)];

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

pub(crate) fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.expect("ip, of iproute2, is needed");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// Does the helper's machine have the address?
pub(crate) fn has_address() -> bool {
    ip("-n one -o addr show").contains(&format!(" {ADDRESS}/"))
}

pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT;
    while !is_so() {
        assert!(Instant::now() < end, "waited too long: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Moves this thread into the network of a machine. Sockets made there stay there.
fn enter(machine: &str) {
    let namespace = File::open(Path::new("/run/netns").join(machine)).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

/// Does something in the network of a machine.
pub(crate) fn within<T: Send>(machine: &str, act: impl FnOnce() -> T + Send) -> T {
    let there = || {
        enter(machine);
        act()
    };
    std::thread::scope(|scope| scope.spawn(there).join().unwrap())
}

/// The machines, and the cluster's key.
pub(crate) struct Bed {
    work: tempfile::TempDir,
}

impl Bed {
    /// Makes the machines on a bridge.
    pub(crate) fn new() -> Self {
        ip("link add bridge type bridge");
        ip("link set bridge up");
        for (machine, host) in MACHINES {
            ip(&format!("netns add {machine}"));
            ip(&format!("link add {machine} type veth peer name eth0 netns {machine}"));
            ip(&format!("link set {machine} master bridge up"));
            ip(&format!("-n {machine} link set lo up"));
            ip(&format!("-n {machine} link set eth0 up"));
            ip(&format!("-n {machine} addr add 10.81.0.{host}/24 dev eth0"));
        }
        let work = tempfile::tempdir().unwrap();
        KeyFile::create(&work.path().join("key")).unwrap();
        Self { work }
    }

    pub(crate) fn key(&self) -> KeyFile {
        KeyFile::read(&self.work.path().join("key")).unwrap()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.work.path().join("socket")
    }

    fn process(&self, test: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", "one"]).arg(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", test, "--nocapture"]);
        command.env(SOCKET, self.socket()).env(SOCKET_PATH, self.socket());
        command.env(KEY, self.work.path().join("key")).env(LISTEN, helper_address().to_string());
        command
    }

    /// Starts the helper, and waits until it listens.
    pub(crate) fn helper(&self) -> Process {
        self.started(self.process("helper_process"))
    }

    /// As [`Self::helper`], with a hook that takes a second to record the end of an address in the
    /// returned file.
    pub(crate) fn helper_with_slow_hook(&self) -> (Process, PathBuf) {
        let (hook, record) = (self.work.path().join("hook"), self.work.path().join("record"));
        let remove = format!("sleep 1; touch {}", record.display());
        std::fs::write(&hook, format!("#!/bin/sh\n[ $1 = add ] || {{ {remove}; }}\n")).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.process("helper_process");
        command.env(HOOK, hook);
        (self.started(command), record)
    }

    fn started(&self, mut command: Command) -> Process {
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let socket = self.socket();
        wait_for("the helper to listen", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        Process(child)
    }

    /// Starts a server that is a life of gateway 1, and knows these other gateways.
    pub(crate) fn server(&self, number: u32, command: &str, others: &[&Other]) -> Server {
        let mut process = self.process("server_process");
        let servers: Vec<String> =
            others.iter().map(|other| format!("{}={}", other.gateway, other.address)).collect();
        process.env(COMMAND, format!("{command} {number}")).env(SERVERS, servers.join(","));
        let mut child = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Server { process: Process(child), lines }
    }
}

/// The address for questions to the helper.
pub(crate) fn helper_address() -> SocketAddr {
    "10.81.0.1:7100".parse().unwrap()
}

/// A process, which ends with this.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A server, and the lines that it prints.
pub(crate) struct Server {
    pub(crate) process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// The next line that the server prints for the test.
    pub(crate) fn says(&mut self) -> String {
        loop {
            let line = self.lines.next().expect("the server has ended").unwrap();
            // The harness prints, too, and its line may stand before ours.
            if let Some((_, said)) = line.split_once("says: ") {
                return said.to_owned();
            }
        }
    }

    /// Sends the server a line, and returns its answer.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        use std::io::Write;
        let stdin = self.process.0.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        self.says()
    }
}

/// Another gateway, in this process, with its sockets on its machine.
pub(crate) struct Other {
    pub(crate) gateway: GatewayId,
    pub(crate) address: SocketAddr,
    questions: tokio::sync::mpsc::UnboundedSender<Word>,
    heard: mpsc::Receiver<HelperWord>,
    asked: u64,
}

impl Other {
    pub(crate) fn new(bed: &Bed, machine: &'static str) -> Self {
        let host = MACHINES.into_iter().find(|(name, _)| *name == machine).unwrap().1;
        let gateway = GatewayId(host);
        let address = SocketAddr::new([10, 81, 0, u8::try_from(host).unwrap()].into(), 7000);
        let identity = Identity::new(&bed.key(), Life { gateway, number: 1 }).unwrap();
        let (questions, mut to_ask) = tokio::sync::mpsc::unbounded_channel();
        let (told, heard) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        std::thread::spawn(move || {
            enter(machine);
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let (sender, mut words) = tokio::sync::mpsc::channel(64);
                let mut mesh = Mesh::new(identity, sender);
                mesh.listen(tokio::net::TcpListener::bind(address).await.unwrap());
                mesh.follow_helpers(&BTreeMap::from([(GatewayId(1), helper_address())]));
                ready.send(()).unwrap();
                loop {
                    tokio::select! {
                        question = to_ask.recv() => match question {
                            Some(question) => mesh.send(GatewayId(1), question),
                            None => return,
                        },
                        heard = words.recv() => {
                            let (from, word) = heard.unwrap();
                            let Word::Helper(word) = word else { panic!("{word:?}") };
                            assert_eq!(from, Life { gateway: GatewayId(1), number: 0 });
                            // The test may have ended.
                            let _ = told.send(word);
                        }
                    }
                }
            });
        });
        is_ready.recv().unwrap();
        Self { gateway, address, questions, heard, asked: 0 }
    }

    fn life(&self) -> Life {
        Life { gateway: self.gateway, number: 1 }
    }

    /// The next word that the helper says by itself.
    pub(crate) fn hears(&self) -> HelperWord {
        let end = Instant::now() + WAIT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let word = self.heard.recv_timeout(left).expect("no word of the helper");
            if word.answers.is_none() {
                return word;
            }
        }
    }

    /// Asks the helper until it answers, or for `patience`: questions may be lost. Returns the
    /// answer to one of these questions, and whether it says that the asker is noted.
    pub(crate) fn asks(&mut self, patience: Duration) -> Option<(HelperWord, bool)> {
        let (first, end) = (self.asked, Instant::now() + patience);
        while Instant::now() < end {
            self.asked += 1;
            let (version, by, at) = (Version::CURRENT, self.life(), Mono(self.asked));
            self.questions.send(Word::Question { version, by, at }).unwrap();
            let soon = Instant::now() + Duration::from_millis(500);
            loop {
                let left = soon.saturating_duration_since(Instant::now());
                let Ok(word) = self.heard.recv_timeout(left) else { break };
                let Some(asked) = word.answers else { continue };
                assert_eq!(asked.by, by);
                if asked.at.0 > first {
                    return Some((word, asked.noted));
                }
            }
        }
        None
    }
}
