//! An etcd of several members on loopback, whose processes can be stopped, continued, killed and
//! started again. It needs Debian's packages etcd-server and etcd-client.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Attempts, 100 ms apart, to see what has to come about.
const ATTEMPTS: usize = 600;

/// The members of an etcd. All end when this is dropped.
pub(crate) struct Members {
    directory: TempDir,
    members: Vec<Member>,
}

struct Member {
    client_port: u16,
    peer_port: u16,
    process: Option<Child>,
}

/// A signal to the process of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Stop,
    Continue,
}

impl Members {
    /// Starts so many members and waits until all are healthy.
    pub(crate) fn start(count: usize) -> Self {
        // The disk of a machine that tests may be slow; these data need not survive it.
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
        let listeners: Vec<TcpListener> =
            (0..2 * count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
        let member =
            |ports: &[u16]| Member { client_port: ports[0], peer_port: ports[1], process: None };
        let members = ports.chunks(2).map(member).collect();
        let mut started = Self { directory, members };
        (0..count).for_each(|member| started.run(member));
        started.wait_until_healthy();
        started
    }

    /// Starts the process of a member, which has none.
    pub(crate) fn run(&mut self, index: usize) {
        let peer = |port: u16| format!("http://127.0.0.1:{port}");
        let initial: Vec<String> = (0..)
            .zip(&self.members)
            .map(|(index, member)| format!("m{index}={}", peer(member.peer_port)))
            .collect();
        let base = self.directory.path();
        let log = File::options()
            .create(true)
            .append(true)
            .open(base.join(format!("m{index}.log")))
            .unwrap();
        let member = &mut self.members[index];
        let (own, clients) = (peer(member.peer_port), peer(member.client_port));
        let mut etcd = Command::new("etcd");
        etcd.args(["--name", &format!("m{index}"), "--initial-cluster-state", "new"])
            .args(["--data-dir".as_ref(), base.join(format!("m{index}")).as_os_str()])
            .args(["--initial-cluster", &initial.join(",")])
            .args(["--initial-advertise-peer-urls", &own, "--listen-peer-urls", &own])
            .args(["--advertise-client-urls", &clients, "--listen-client-urls", &clients])
            .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
            .args(["--log-level", "warn", "--logger", "zap"]);
        let process = etcd.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        assert!(member.process.is_none());
        member.process = Some(process.spawn().unwrap());
    }

    /// The addresses for clients.
    pub(crate) fn endpoints(&self) -> Vec<String> {
        let address = |member: &Member| format!("http://127.0.0.1:{}", member.client_port);
        self.members.iter().map(address).collect()
    }

    /// The index of the leader.
    pub(crate) fn leader(&self) -> usize {
        let leads = |index: &usize| {
            let status = self.ask(&[*index], &["endpoint", "status", "-w", "fields"]);
            let field = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name));
                line.and_then(|line| line.rsplit_once(' ')).map(|(_, value)| value.to_owned())
            };
            let leader = field("\"Leader\"");
            leader.is_some() && leader == field("\"MemberID\"")
        };
        (0..ATTEMPTS)
            .find_map(|_| {
                sleep(Duration::from_millis(100));
                (0..self.members.len()).find(leads)
            })
            .unwrap()
    }

    /// Sends a signal to the process of a member.
    pub(crate) fn signal(&self, index: usize, signal: Signal) {
        let name = match signal {
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
        };
        let process = self.members[index].process.as_ref().unwrap();
        assert!(
            Command::new("kill")
                .args([name, &process.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Sends a signal to all members.
    pub(crate) fn signal_all(&self, signal: Signal) {
        (0..self.members.len()).for_each(|index| self.signal(index, signal));
    }

    /// Kills the process of a member.
    pub(crate) fn kill(&mut self, index: usize) {
        let mut process = self.members[index].process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Runs etcd's command line with all members that run.
    pub(crate) fn control(&self, command: &[&str]) -> String {
        let running = |index: &usize| self.members[*index].process.is_some();
        let running: Vec<usize> = (0..self.members.len()).filter(running).collect();
        self.ask(&running, command)
    }

    fn ask(&self, members: &[usize], command: &[&str]) -> String {
        let endpoints = self.endpoints();
        let asked: Vec<&str> = members.iter().map(|index| endpoints[*index].as_str()).collect();
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &asked.join(","), "--command-timeout", "2s"])
            .args(command)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until every member that runs has a leader.
    pub(crate) fn wait_until_healthy(&self) {
        let running = self.members.iter().filter(|member| member.process.is_some()).count();
        let healthy = || {
            let answer = self.control(&["endpoint", "health", "-w", "json"]);
            answer.matches("\"health\":true").count() == running
        };
        let is_healthy = (0..ATTEMPTS).any(|_| {
            sleep(Duration::from_millis(100));
            healthy()
        });
        assert!(is_healthy, "etcd is not healthy");
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                // The signal to kill ends a stopped process too.
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }
}
