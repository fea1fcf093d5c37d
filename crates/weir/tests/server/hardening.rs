//! The powers of the running server if it were taken over, and its leaks: privileges of every
//! thread, the filter, secrets in the log.

use crate::peer::Peer;
use crate::test_server::TestServer;
use rustix::process::geteuid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const NOBODY: u32 = 65_534;

/// CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, SETGID, SETUID and MKNOD.
const NEEDED: u64 = 0b1101_1111 | 1 << 27;
const CHOWN: u64 = 1;
const MKNOD: u64 = 1 << 27;
const SYS_RESOURCE: u64 = 1 << 24;

/// A server started by a command of the test's own, whose log the test reads.
struct Logged {
    process: Child,
    /// The server's lines until it served.
    start: Vec<String>,
    rest: std::thread::JoinHandle<Vec<String>>,
}

impl Logged {
    fn start(command: &mut Command, data: &Path, more: &[&str]) -> Self {
        command.args(["serve", "--data"]).arg(data).args(["--nfs", "127.0.0.1:0"]);
        command.args(["--api", "127.0.0.1:0", "--log-format", "json"]).args(more);
        command.env_remove("WEIR_LOG_LEVEL").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut start = Vec::new();
        while !start.last().is_some_and(|line: &String| line.contains("serving the API")) {
            match lines.next() {
                Some(line) => start.push(line.unwrap()),
                None => panic!("it ended: {start:#?}"),
            }
        }
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect());
        Self { process, start, rest }
    }

    /// The address in the line of the start that has these words.
    fn address(&self, words: &str) -> String {
        let line = self.start.iter().find(|line| line.contains(words)).unwrap();
        let (_, after) = line.split_once("\"address\":\"").unwrap();
        after.split('"').next().unwrap().to_owned()
    }

    fn has_said(&self, words: &str) -> bool {
        self.start.iter().any(|line| line.contains(words))
    }

    /// Stops it and gives all that it ever said.
    fn stop(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
        let mut all = self.start;
        all.extend(self.rest.join().unwrap());
        all.join("\n")
    }
}

/// A field of `/proc/PID/status`, of the process or of one of its threads.
fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
}

fn set(status: &str, name: &str) -> u64 {
    u64::from_str_radix(&field(status, name), 16).unwrap()
}

/// The status of every thread.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    // One may end meanwhile.
    tasks
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).ok())
        .collect()
}

#[test]
fn every_thread_has_the_privileges_it_needs_and_no_others() {
    let server = TestServer::start();
    let mut peer = Peer::mount(&server);
    peer.create(b"file");
    peer.works();
    let permitted = if geteuid().is_root() { NEEDED } else { 0 };
    let all = threads(server.id());
    // Workers, the acceptor, disk threads and the main one.
    assert!(all.len() > 16, "{} threads", all.len());
    for status in all {
        assert_eq!(set(&status, "CapPrm"), permitted, "{status}");
        assert_eq!(set(&status, "CapEff") & !permitted, 0, "{status}");
        assert_eq!((set(&status, "CapInh"), set(&status, "CapAmb")), (0, 0), "{status}");
        assert!(set(&status, "CapBnd") == 0 || permitted == 0, "{status}");
        assert_eq!((&*field(&status, "NoNewPrivs"), &*field(&status, "Seccomp")), ("1", "2"));
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().filter(|word| *word == "0").count(), 2, "{core}");
}

#[test]
fn what_a_container_withholds_is_named_with_what_will_not_work() {
    let data = TempDir::new().unwrap();
    let mut command = Command::new("prlimit");
    let withheld = "-chown,-mknod,-setpcap,-sys_resource";
    command.args(["--nofile=4096:4096", "setpriv", "--bounding-set", withheld]);
    command.args(["--inh-caps", "-all", WEIR]);
    let server = Logged::start(&mut command, data.path(), &["--log-level", "info"]);
    for (capability, consequence) in [
        ("CAP_CHOWN", "root on a client cannot change the owner of files"),
        ("CAP_MKNOD", "root on a client cannot create device nodes"),
    ] {
        let named = |line: &&String| line.contains("WARN") && line.contains(capability);
        let line = server.start.iter().find(named).unwrap();
        assert!(line.contains(consequence), "{line}");
    }
    assert!(server.has_said("the limit of open files is low"), "{:#?}", server.start);
    for status in threads(server.process.id()) {
        assert_eq!(set(&status, "CapPrm"), NEEDED & !(CHOWN | MKNOD));
        assert_eq!(field(&status, "NoNewPrivs"), "1");
    }
    server.stop();
}

#[test]
fn an_ordinary_user_is_told_the_limits_and_its_memory_is_nobodys() {
    let place = TempDir::new().unwrap();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The user nobody may have no access to the build directory.
    let program = place.path().join("weir");
    std::fs::copy(WEIR, &program).unwrap();
    let mut command = Command::new(&program);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let server = Logged::start(&mut command, &place.path().join("data"), &[]);
    assert!(server.has_said("all files belong to this user"), "{:#?}", server.start);
    assert!(server.has_said("file handles are not persistent"));
    // A process that can't be dumped belongs to root, so that its own user can't trace it or read
    // its memory.
    let memory = format!("/proc/{}/mem", server.process.id());
    assert_eq!(Path::new(&memory).symlink_metadata().unwrap().uid(), 0);
    for status in threads(server.process.id()) {
        assert_eq!((set(&status, "CapPrm"), &*field(&status, "Seccomp")), (0, "2"));
    }
    let weir = |args: &str| {
        let mut command = Command::new(&program);
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let done = command.arg("--data").arg(place.path().join("data")).args(args.split(' '));
        let done = done.output().unwrap();
        String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
    };
    weir("pool create pool --level ultra --size 4TiB");
    let refused = weir("volume create good --pool pool --quota 1TiB --owner 5001");
    assert!(refused.contains("must run as root, with CAP_CHOWN"), "{refused}");
    assert!(weir("volume show good").contains("does not exist"), "it is taken back");
    let made = weir("volume create good --pool pool --quota 1TiB --mode 700");
    assert!(made.contains(", mode 0700"), "{made}");
    server.stop();
}

#[test]
fn the_filter_can_be_switched_off_and_the_rest_stays() {
    let data = TempDir::new().unwrap();
    for (mode, expected) in [("off", "0"), ("log", "2")] {
        let mut command = Command::new("prlimit");
        command.args(["--nofile=4096:4096", WEIR]);
        let server = Logged::start(&mut command, data.path(), &["--seccomp", mode]);
        // A process that may raise a limit that is too low does; others say so.
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        let may = set(&own, "CapEff") & SYS_RESOURCE != 0;
        assert_eq!(server.has_said("the limit of open files is low"), !may);
        for status in threads(server.process.id()) {
            assert_eq!(field(&status, "Seccomp"), expected);
            assert_eq!(field(&status, "NoNewPrivs"), "1");
        }
        server.stop();
    }
}

/// `bytes` in every way that a log might print them.
fn spellings(bytes: &[u8]) -> [String; 4] {
    let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [hex.to_uppercase(), hex, numbers.join(", "), numbers.join(",")]
}

#[test]
fn no_log_line_holds_a_token_a_key_or_the_seal_of_a_handle() {
    const WRONG_TOKEN: &str = "wrong-but-somebody-s-secret-all-the-same";
    let data = TempDir::new().unwrap();
    let server = Logged::start(&mut Command::new(WEIR), data.path(), &["--log-level", "trace"]);
    let token = std::fs::read_to_string(data.path().join("api.token")).unwrap();
    let key = std::fs::read(data.path().join("handle.key")).unwrap();
    let weir = |args: &str| {
        let mut command = Command::new(WEIR);
        command.arg("--data").arg(data.path()).args(args.split(' '));
        assert!(command.output().unwrap().status.success(), "{args}");
    };
    weir("pool create pool --level ultra --size 4TiB");
    weir("volume create good --pool pool --quota 1TiB");
    for given in [token.trim(), WRONG_TOKEN] {
        let mut api = TcpStream::connect(server.address("serving the API")).unwrap();
        let head = "GET /v1/pools HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n";
        write!(api, "{head}Authorization: Bearer {given}\r\n\r\n").unwrap();
        let mut answer = String::new();
        api.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.starts_with("HTTP/1.1 401"), given == WRONG_TOKEN, "{answer}");
    }
    let nfs = server.address("serving NFSv3").parse().unwrap();
    let mut peer = Peer::mount_at(nfs, b"/good");
    let handle = peer.create(b"file");
    let mut forged = handle.clone();
    *forged.last_mut().unwrap() ^= 1;
    for handle in [&handle, &forged] {
        peer.attributes(handle);
    }
    let log = server.stop();
    for said in ["API request", "connected", "mounted"] {
        assert!(log.contains(said), "{said}: not noted");
    }
    let seals = [&handle, &forged].map(|handle| &handle[handle.len() - 8..]);
    for secret in [&key[..], seals[0], seals[1]] {
        for spelling in spellings(secret) {
            assert!(!log.contains(&spelling), "the log has {spelling}");
        }
    }
    for text in [token.trim(), WRONG_TOKEN] {
        assert!(!log.contains(text), "the log has {text}");
    }
}
