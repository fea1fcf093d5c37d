//! Launching workers: on other machines over ssh, or as local child processes.

use super::greet::greet;
use super::link::{Halves, Patience, Slot};
use super::wire::Welcome;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;
use std::time::{Duration, Instant};
use weir_load::error::BenchError;

/// Bytes kept of what a child complains about.
const COMPLAINT: usize = 2000;
/// Longest time that a child may take to clear away and end once it was told to.
const CHILD_END: Duration = Duration::from_secs(10);
/// Longest wait for the last words of a child that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The machine that a worker runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerPlace {
    /// ssh starts it there: `[USER@]HOST`.
    Ssh(String),
    /// A child of this process.
    Local,
}

/// A worker to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The worker's name in results, and in loads that name hosts.
    pub name: String,
    /// The machine that it is to run on.
    pub place: WorkerPlace,
}

impl FromStr for Wanted {
    type Err = String;

    /// Parses `[NAME=]ssh:[USER@]HOST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is not a worker: use [NAME=]ssh:[USER@]HOST");
        let named = || text.split_once("=ssh:").map(|(name, host)| (Some(name), host));
        let place = text.strip_prefix("ssh:").map(|host| (None, host)).or_else(named);
        let Some((name, host)) = place else {
            return Err(format!("{}; workers cannot listen on a port any more", refused()));
        };
        if !is_destination(host) {
            return Err(format!(
                "{}; host and user may be all that ssh takes, without blanks and control \
                 characters, and with no hyphen in front",
                refused()
            ));
        }
        let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        if name.is_some_and(|name| name.is_empty() || !name.chars().all(plain)) {
            return Err(refused());
        }
        let name = name.unwrap_or(host).to_owned();
        Ok(Self { name, place: WorkerPlace::Ssh(host.to_owned()) })
    }
}

/// Is `text` a destination that ssh may read: `[USER@]HOST`, where the last `@` ends the user? It
/// is one argument of ssh, and no shell reads it, so that all characters of a user's own login are
/// permitted: `me@REALM@host`, `DOMAIN\me@host`. The user of the command line wrote it; a login
/// from a file has the rules of [`Host::is_system`](weir_scenario::scenario::Host::is_system).
fn is_destination(text: &str) -> bool {
    let is_word = |part: &str| !part.is_empty() && !part.starts_with('-');
    let (user, host) =
        text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    is_word(host)
        && user.is_none_or(is_word)
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The program that ssh starts on the other machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// One that is there, by its path or its name on the search path.
    There(String),
    /// A copy of the program that runs. Its file has no name there, so that nothing is left of it
    /// however the copying or the worker ends.
    Copied,
}

/// The line that tells that a copied program has arrived.
const COPIED: &str = "weir-worker-copied";
/// Bytes of a copied program that are sent at a time.
const COPY_CHUNK: usize = 64 << 10;
/// Most bytes that the other machine may print before [`COPIED`], such as a greeting at login.
const CHATTER: u64 = 64 << 10;

/// How to launch workers.
#[derive(Clone, Debug)]
pub struct Launch {
    /// ssh, or what stands for it, and its arguments.
    pub ssh: Vec<String>,
    /// The program that ssh starts.
    pub program: Program,
    /// The waiting times.
    pub patience: Patience,
}

/// A worker that was greeted.
pub struct Connected {
    /// The worker's name.
    pub name: String,
    /// The worker's own description.
    pub welcome: Welcome,
    /// The connection.
    pub halves: Halves,
    /// The process behind it.
    pub child: Option<Offspring>,
}

impl Launch {
    /// Launches all of `wanted`, at the same time.
    ///
    /// # Errors
    /// [`BenchError::Peer`] says which worker it was, and what to do.
    pub fn all(&self, wanted: &[Wanted]) -> Result<Vec<Connected>, BenchError> {
        distinct(wanted)?;
        let mut threads = Vec::with_capacity(wanted.len());
        for one in wanted {
            let (launch, one) = (self.clone(), one.clone());
            let thread = Builder::new()
                .name("bench-launch".to_owned())
                .spawn(move || launch.one(&one))
                .map_err(|source| BenchError::Local { what: "starting a thread", source })?;
            threads.push(thread);
        }
        let joined = threads.into_iter().map(std::thread::JoinHandle::join);
        joined.map(|outcome| outcome.map_err(|_| BenchError::Worker)?).collect()
    }

    fn one(&self, wanted: &Wanted) -> Result<Connected, BenchError> {
        let failed = |why: &str| BenchError::Peer(format!("worker {}: {why}", wanted.name));
        let (command, copy) = match &wanted.place {
            WorkerPlace::Ssh(host) => self.over_ssh(host).map_err(|why| failed(&why))?,
            WorkerPlace::Local => (own_program(), None),
        };
        let started = Offspring::start(command);
        let (halves, child) = started.map_err(|error| failed(&error.to_string()))?;
        let greeted = within(self.patience.greeting, halves, copy);
        let (welcome, halves) = greeted.map_err(|why| {
            child.end(Duration::from_millis(500));
            let message = child.last_words(LAST_WORDS);
            let quoted = format!(" (its message: {message})");
            failed(&(why + if message.is_empty() { "" } else { &quoted }))
        })?;
        Ok(Connected { name: wanted.name.clone(), welcome, halves, child: Some(child) })
    }

    /// The command that starts a worker on `host`, and the program to send to it.
    fn over_ssh(&self, host: &str) -> Result<(Command, Option<ProgramCopy>), String> {
        let serve = "bench worker --stdio";
        Ok(match &self.program {
            Program::There(program) => {
                (self.ssh(host, &format!("{} {serve}", quoted(program))), None)
            }
            Program::Copied => {
                let copy = ProgramCopy::own()
                    .map_err(|error| format!("cannot read the program: {error}"))?;
                (self.ssh(host, &copy.command(serve)), Some(copy))
            }
        })
    }

    fn ssh(&self, host: &str, remote: &str) -> Command {
        let mut words = self.ssh.iter();
        let mut command = Command::new(words.next().map_or("ssh", String::as_str));
        // BatchMode makes ssh fail where it would ask for a password.
        command.args(words).args(["-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"]);
        command.args(["--", host]).arg(remote);
        command
    }
}

/// The program that runs, to be sent over the standard input of the command that starts it.
struct ProgramCopy {
    file: File,
    bytes: u64,
}

impl ProgramCopy {
    fn own() -> io::Result<Self> {
        // The program that runs is there even if its file was replaced meanwhile.
        Self::of(Path::new("/proc/self/exe"))
    }

    fn of(program: &Path) -> io::Result<Self> {
        let file = File::open(program)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }

    /// The command of a shell that takes the program from standard input, says [`COPIED`], and
    /// becomes the program with these `arguments`. The file loses its name before anything is
    /// written. A copy that ended early has another length and is not started.
    fn command(&self, arguments: &str) -> String {
        let Self { bytes, .. } = self;
        format!(
            "f=$(mktemp \"${{TMPDIR:-/tmp}}/weir-worker.XXXXXX\") && exec 8>\"$f\" 9<\"$f\" && \
             rm \"$f\" && head -c {bytes} >&8 && exec 8>&- && f=/proc/$$/fd/9 && \
             [ \"$(wc -c <$f)\" -eq {bytes} ] && chmod 700 $f && echo {COPIED} && \
             exec $f {arguments}"
        )
    }

    /// Sends the program and waits until it has arrived; calls `moved` for each part.
    fn send(self, halves: &mut Halves, moved: impl Fn()) -> io::Result<()> {
        let mut file = self.file.take(self.bytes);
        let mut chunk = vec![0; COPY_CHUNK];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                len => halves.write.write_all(chunk.get(..len).unwrap_or_default())?,
            }
            moved();
        }
        halves.write.flush()?;
        // Byte for byte: the worker's messages follow the line.
        let mut answer = (&mut halves.read).take(CHATTER);
        let (mut line, mut byte) = (Vec::new(), [0]);
        loop {
            answer.read_exact(&mut byte).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(error.kind(), "it did not arrive as a whole")
                }
                _ => error,
            })?;
            match byte {
                [b'\n'] if line == COPIED.as_bytes() => return Ok(()),
                [b'\n'] => line.clear(),
                [other] => line.push(other),
            }
        }
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn own_program() -> Command {
    // The program that runs is there even if its file was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command.args(["bench", "worker", "--stdio"]);
    command
}

fn distinct(wanted: &[Wanted]) -> Result<(), BenchError> {
    let mut names = std::collections::BTreeSet::new();
    match wanted.iter().find(|one| !names.insert(one.name.as_str())) {
        None => Ok(()),
        Some(twice) => Err(BenchError::Peer(format!(
            "two workers have the name {:?}: give them names, as in --worker a=ssh:HOST --worker b=…",
            twice.name
        ))),
    }
}

/// News of a worker that is being greeted.
enum News {
    /// A part of its program has been sent.
    Moved,
    /// It has answered, or can't.
    Greeted(Box<Result<(Welcome, Halves), String>>),
}

/// The longest pause in a greeting that has taken `spent` so far. The last parts of a
/// program are under way in ssh (up to 2 MiB) and the kernel when all has been written: over a slow
/// link they take longer than `time`, but less than the parts before them. Of a link that is dead
/// ssh itself tells.
fn pause_max(time: Duration, spent: Duration) -> Duration {
    time.max(spent)
}

/// Sends the program, if there is one, and greets; gives up, and ends the connection, when nothing
/// goes on for [`pause_max`].
fn within(
    time: Duration,
    halves: Halves,
    copy: Option<ProgramCopy>,
) -> Result<(Welcome, Halves), String> {
    let Halves { read, write, close } = halves;
    let close: Arc<dyn Fn() + Send + Sync> = Arc::from(close);
    let own = Arc::clone(&close);
    let mut halves = Halves { read, write, close: Box::new(move || own()) };
    let (sender, news) = sync_channel(1);
    let greeting = move || {
        // The caller may have given up, and closed the connection.
        let moved = || drop(sender.send(News::Moved));
        let sent = copy.map_or(Ok(()), |copy| copy.send(&mut halves, moved));
        let greeted = match sent {
            Err(error) => Err(format!("cannot copy the program there: {error}")),
            Ok(()) => greet(&mut halves).map_err(|error| error.to_string()),
        };
        drop(sender.send(News::Greeted(Box::new(greeted.map(|welcome| (welcome, halves))))));
    };
    let thread = Builder::new().name("bench-greet".to_owned()).spawn(greeting);
    thread.map_err(|error| error.to_string())?;
    let begun = Instant::now();
    loop {
        let most = pause_max(time, begun.elapsed());
        match news.recv_timeout(most) {
            Ok(News::Moved) => {}
            Ok(News::Greeted(outcome)) => return *outcome,
            Err(_) => {
                close();
                return Err(format!("it did not answer the greeting within {} s", most.as_secs()));
            }
        }
    }
}

/// A child that is a worker, or leads to one. It ends when it is dropped.
pub struct Offspring {
    child: Arc<Slot<Child>>,
    complaint: Arc<Slot<String>>,
    /// Keeps the complaint until standard error is closed.
    listener: std::thread::JoinHandle<()>,
}

impl Offspring {
    fn start(mut command: Command) -> io::Result<(Halves, Self)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is the coordinator's: a group of its own keeps the terminal's signal away.
        let spawned = command.process_group(0).spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
        });
        let mut child = spawned?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(write), Some(read), Some(error)) = pipes else {
            return Err(io::Error::other("a child without pipes"));
        };
        let child = Arc::new(Slot::new(child));
        let complaint = Arc::new(Slot::new(String::new()));
        let (kept, ended) = (Arc::clone(&complaint), Arc::clone(&child));
        let named = Builder::new().name("bench-stderr".to_owned());
        let listener = named.spawn(move || keep(error, &kept))?;
        let halves = Halves {
            read: Box::new(read),
            write: Box::new(write),
            // The child may have ended already.
            close: Box::new(move || drop(ended.with(Child::kill))),
        };
        Ok((halves, Self { child, complaint, listener }))
    }

    /// The last that it said on standard error, in one line, once it has ended: that may still be
    /// on its way then. Children of its own may keep standard error open, and are not waited for
    /// any longer than `time`.
    pub(super) fn last_words(&self, time: Duration) -> String {
        let begun = Instant::now();
        while !self.listener.is_finished() && begun.elapsed() < time {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.complaint.with(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.with(|child| child.id())
    }

    /// Waits for its end; ends it after `time`.
    fn end(&self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            if !matches!(self.child.with(Child::try_wait), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.with(|child| {
            // The child may have ended just now.
            drop(child.kill());
            drop(child.wait());
        });
    }
}

impl Drop for Offspring {
    fn drop(&mut self) {
        self.end(CHILD_END);
    }
}

/// Keeps the last of what a child says on standard error.
fn keep(mut error: ChildStderr, kept: &Slot<String>) {
    let mut chunk = [0; 512];
    while let Ok(len) = error.read(&mut chunk)
        && len > 0
    {
        let said = String::from_utf8_lossy(chunk.get(..len).unwrap_or_default()).into_owned();
        kept.with(|text| {
            text.push_str(&said.replace(|c: char| c.is_control() && c != '\n', " "));
            while text.len() > COMPLAINT {
                text.remove(0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn wanted(text: &str) -> (String, WorkerPlace) {
        let wanted: Wanted = text.parse().unwrap();
        (wanted.name, wanted.place)
    }

    #[test]
    fn places_are_parsed_with_and_without_names() {
        let ssh = |host: &str| WorkerPlace::Ssh(host.to_owned());
        assert_eq!(wanted("ssh:h1"), ("h1".to_owned(), ssh("h1")));
        assert_eq!(wanted("b=ssh:me@h2"), ("b".to_owned(), ssh("me@h2")));
        assert_eq!(wanted("c=ssh:PC$@[fe80::1%eth0]").1, ssh("PC$@[fe80::1%eth0]"));
        for wrong in ["", "a=", "=ssh:h1", "a b=ssh:h1", "ssh:", "ssh:-oProxyCommand=x", "ssh:a b"]
        {
            let error = wrong.parse::<Wanted>().unwrap_err();
            assert!(error.contains("ssh:[USER@]HOST"), "{error}");
        }
    }

    #[test]
    fn all_logins_that_ssh_takes_are_workers() {
        for login in [
            "me@REALM.EXAMPLE@host",
            r"DOMAIN\me@host",
            "me+x@host",
            "alias_of.ssh-config",
            "ssh://me@host:2222",
            "zürich",
            "a=b@host",
        ] {
            let ssh = WorkerPlace::Ssh(login.to_owned());
            assert_eq!(wanted(&format!("ssh:{login}")), (login.to_owned(), ssh.clone()));
            assert_eq!(wanted(&format!("w=ssh:{login}")), ("w".to_owned(), ssh));
        }
    }

    #[test]
    fn no_place_is_empty_or_an_option_or_several_words() {
        for host in ["", "@h", "u@", "@", "-l", "-l@h", "u@-h", "a b", "a\tb", "a\nb", "a\u{7}@h"] {
            let error = format!("w=ssh:{host}").parse::<Wanted>().unwrap_err();
            assert!(error.contains("ssh:[USER@]HOST; host and user may be"), "{error}");
            assert!(error.contains("no hyphen in front"), "{error}");
        }
    }

    #[test]
    fn the_error_for_a_listening_worker_says_what_to_use() {
        for old in ["h1", "h1:7420", "a=10.0.0.1:99", "::1"] {
            let error = old.parse::<Wanted>().unwrap_err();
            assert!(error.contains("ssh:[USER@]HOST") && error.contains("any more"), "{error}");
        }
    }

    #[test]
    fn two_workers_of_one_name_are_refused() {
        let one: Wanted = "ssh:h1".parse().unwrap();
        let two: Wanted = "x=ssh:h1".parse().unwrap();
        distinct(&[one.clone(), two]).unwrap();
        let error = distinct(&[one.clone(), one]).unwrap_err().to_string();
        assert!(error.contains("\"h1\"") && error.contains("--worker a="), "{error}");
    }

    #[test]
    fn what_ssh_is_told_is_one_word_each() {
        let launch = Launch {
            ssh: vec!["ssh".to_owned(), "-p".to_owned(), "22".to_owned()],
            program: Program::There("/opt/my weir/it's".to_owned()),
            patience: Patience::default(),
        };
        let (command, copy) = launch.over_ssh("me@host").unwrap();
        assert!(copy.is_none());
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(words[..2], ["-p", "22"]);
        assert_eq!(words[words.len() - 3..words.len() - 1], ["--", "me@host"]);
        assert_eq!(words[words.len() - 1], r"'/opt/my weir/it'\''s' bench worker --stdio");
        assert_eq!(quoted("weir"), "weir");
    }

    #[test]
    fn what_a_child_says_before_it_fails_is_told() {
        let launch = Launch {
            ssh: ["sh", "-c", "echo no such host >&2; exit 255", "sh"].map(str::to_owned).to_vec(),
            program: Program::There("weir".to_owned()),
            patience: Patience::default(),
        };
        let all = ["a=ssh:nowhere".parse().unwrap()];
        let error = launch.all(&all).err().unwrap().to_string();
        assert!(error.contains("worker a") && error.contains("no such host"), "{error}");
        let copies = Launch { program: Program::Copied, ..launch };
        let error = copies.all(&all).err().unwrap().to_string();
        assert!(error.contains("cannot copy the program"), "{error}");
        assert!(error.contains("no such host"), "{error}");
    }

    /// A program of 256 KiB: more than a pipe holds, and little enough to arrive at once.
    fn program(directory: &Path) -> PathBuf {
        let path = directory.join("program");
        let mut text = b"#!/bin/sh\necho \"$1\" >\"$2\"\nexit\n".to_vec();
        text.extend((0..=250).cycle().take(256 << 10));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Sends a copy of `program` to `shell`, which runs the command in `$1` with `$TMPDIR` as its
    /// directory for files; gives the outcome, once the shell has ended, and the number of files
    /// left there.
    fn copied(program: &Path, shell: &str, arguments: &str) -> (io::Result<()>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let copy = ProgramCopy::of(program).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", shell, "ssh", &copy.command(arguments)]);
        command.env("TMPDIR", directory.path());
        let (mut halves, child) = Offspring::start(command).unwrap();
        let sent = copy.send(&mut halves, || {});
        drop(halves);
        child.child.with(Child::wait).unwrap();
        (sent, std::fs::read_dir(directory.path()).unwrap().count())
    }

    #[test]
    fn the_program_is_copied_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (program, copy) = (program(directory.path()), directory.path().join("copy"));
        // In place of the worker, the copy is read.
        let shell = format!(
            "echo welcome; c=${{1%exec *}}; exec sh -c \"$c exec cat \\$f >{}\"",
            copy.display()
        );
        let (sent, left) = copied(&program, &shell, "");
        sent.unwrap();
        assert_eq!(left, 0);
        let (own, copied) = (std::fs::read(program).unwrap(), std::fs::read(&copy));
        assert!(own == copied.unwrap(), "the copy differs");
    }

    #[test]
    fn the_copy_is_the_program_that_runs() {
        use std::os::unix::fs::MetadataExt as _;
        let (copy, own) = (ProgramCopy::own().unwrap(), std::env::current_exe().unwrap());
        let (of_copy, own) = (copy.file.metadata().unwrap(), own.metadata().unwrap());
        assert_eq!((of_copy.dev(), of_copy.ino()), (own.dev(), own.ino()));
        assert_eq!(copy.bytes, own.len());
    }

    #[test]
    fn a_copy_is_started_if_all_of_it_arrives_and_leaves_nothing_in_any_case() {
        for (shell, starts) in [
            ("exec sh -c \"$1\"", true),
            // The disk is full.
            ("ulimit -f 64; exec sh -c \"$1\"", false),
            // The link is lost.
            ("head -c 100000 | exec sh -c \"$1\"", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let mark = directory.path().join("started");
            let arguments = format!("yes {}", mark.display());
            let (sent, left) = copied(&program(directory.path()), shell, &arguments);
            assert_eq!((sent.is_ok(), left, mark.exists()), (starts, 0, starts), "{shell}");
        }
    }

    #[test]
    fn the_end_of_a_slow_copy_is_waited_for_as_long_as_it_took() {
        let seconds = Duration::from_secs;
        assert_eq!(pause_max(seconds(20), seconds(3)), seconds(20));
        assert_eq!(pause_max(seconds(20), seconds(300)), seconds(300));
    }

    #[test]
    fn a_child_that_says_nothing_is_given_up() {
        let launch = Launch {
            ssh: ["sh", "-c", "exec sleep 1000", "sh"].map(str::to_owned).to_vec(),
            program: Program::There("weir".to_owned()),
            patience: Patience { greeting: Duration::from_millis(200), ..Patience::default() },
        };
        let error = launch.all(&["ssh:nowhere".parse().unwrap()]).err().unwrap().to_string();
        assert!(error.contains("did not answer"), "{error}");
    }
}
