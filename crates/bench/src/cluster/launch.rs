//! Coming by workers: those that listen, those that ssh starts, and children of this process.

use super::auth::Token;
use super::greet::greet;
use super::link::{Halves, Patience, Slot};
use super::wire::Welcome;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};
use weir_load::error::BenchError;

/// The default port of workers.
pub const PORT: u16 = 7420;
/// Bytes kept of what a child complains about.
const COMPLAINT: usize = 2000;
/// Longest time that a child may take to clear away and end once it was told to.
const CHILD_END: Duration = Duration::from_secs(10);
/// Longest wait for the last words of a child that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The place of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The worker listens there: `HOST:PORT`.
    Listening(String),
    /// ssh starts it there: `[USER@]HOST`.
    Ssh(String),
    /// A child of this process.
    Local,
}

/// A worker to come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The worker's name in results, and in loads that name hosts.
    pub name: String,
    /// The worker's place.
    pub place: Place,
}

impl FromStr for Wanted {
    type Err = String;

    /// Reads `[NAME=]HOST[:PORT]` or `[NAME=]ssh:[USER@]HOST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, place) = text.split_once('=').unwrap_or(("", text));
        let host = place.strip_prefix("ssh:").unwrap_or(place);
        // A host that looks like an option would be one, to ssh.
        let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        let odd = host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace);
        if odd || !name.chars().all(plain) || (name.is_empty() && text.contains('=')) {
            return Err(format!(
                "{text:?} is not a worker: use host:{PORT} or ssh:user@host, optionally with a \
                 prefix name="
            ));
        }
        let name = if name.is_empty() { host } else { name }.to_owned();
        let place = if place.starts_with("ssh:") {
            Place::Ssh(host.to_owned())
        } else {
            Place::Listening(with_port(host))
        };
        Ok(Self { name, place })
    }
}

fn with_port(host: &str) -> String {
    let bare_six = host.parse::<std::net::Ipv6Addr>().is_ok();
    match host.rsplit_once(':') {
        _ if bare_six => format!("[{host}]:{PORT}"),
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:{PORT}"),
    }
}

/// The way to get workers.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The secret that listening workers want proved.
    pub token: Option<Token>,
    /// ssh, or what stands for it, and its arguments.
    pub ssh: Vec<String>,
    /// The program that ssh starts.
    pub program: String,
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
    /// Comes by all of `wanted`, at the same time.
    ///
    /// # Errors
    /// [`BenchError::Peer`] says which worker it was, and what to do.
    pub fn all(&self, wanted: &[Wanted]) -> Result<Vec<Connected>, BenchError> {
        distinct(wanted)?;
        let mut threads = Vec::with_capacity(wanted.len());
        for one in wanted {
            let (launch, one) = (self.clone(), one.clone());
            let thread = Builder::new()
                .name("bench-connect".to_owned())
                .spawn(move || launch.one(&one))
                .map_err(|source| BenchError::Local { what: "starting a thread", source })?;
            threads.push(thread);
        }
        let joined = threads.into_iter().map(std::thread::JoinHandle::join);
        joined.map(|outcome| outcome.map_err(|_| BenchError::Worker)?).collect()
    }

    fn one(&self, wanted: &Wanted) -> Result<Connected, BenchError> {
        let (halves, child) = match &wanted.place {
            Place::Listening(address) => (self.connect(address), None),
            Place::Ssh(host) => started(self.over_ssh(host)),
            Place::Local => started(own_program()),
        };
        let told = |why: &str| {
            let said = child.as_ref().map(|child| child.last_words(LAST_WORDS)).unwrap_or_default();
            let said = if said.is_empty() { said } else { format!(" (its message: {said})") };
            BenchError::Peer(format!("worker {}: {why}{said}", wanted.name))
        };
        let halves = halves.map_err(|error| told(&error.to_string()))?;
        let token = matches!(wanted.place, Place::Listening(_)).then_some(self.token.as_ref());
        let greeted = within(self.patience.greeting, halves, token.flatten().cloned());
        let (welcome, halves) = greeted.map_err(|why| {
            if let Some(child) = &child {
                child.end(Duration::from_millis(500));
            }
            told(&why)
        })?;
        Ok(Connected { name: wanted.name.clone(), welcome, halves, child })
    }

    fn connect(&self, address: &str) -> io::Result<Halves> {
        let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.patience.greeting) {
                Ok(stream) => return Halves::of(stream, self.patience.silence),
                Err(error) => {
                    outcome = Err(io::Error::new(
                        error.kind(),
                        format!(
                            "cannot connect to {address}: {error}; check that `weir bench worker \
                             --listen` is running there"
                        ),
                    ));
                }
            }
        }
        outcome
    }

    fn over_ssh(&self, host: &str) -> Command {
        let mut words = self.ssh.iter();
        let mut command = Command::new(words.next().map_or("ssh", String::as_str));
        // Nobody is there to type a password: ssh sees to that with -o BatchMode.
        command.args(words).args(["-o", "BatchMode=yes", "-o", "ServerAliveInterval=5"]);
        command.args(["--", host]).arg(format!("{} bench worker --stdio", quoted(&self.program)));
        command
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
            "two workers are called {:?}: name them, as in --worker a=HOST:PORT --worker b=…",
            twice.name
        ))),
    }
}

fn started(command: Command) -> (io::Result<Halves>, Option<Offspring>) {
    match Offspring::start(command) {
        Ok((halves, child)) => (Ok(halves), Some(child)),
        Err(error) => (Err(error), None),
    }
}

/// Greets; gives up, and ends the connection, when it takes too long.
fn within(
    time: Duration,
    halves: Halves,
    token: Option<Token>,
) -> Result<(Welcome, Halves), String> {
    let Halves { read, write, close } = halves;
    let close: Arc<dyn Fn() + Send + Sync> = Arc::from(close);
    let own = Arc::clone(&close);
    let mut halves = Halves { read, write, close: Box::new(move || own()) };
    let (sender, outcome) = channel();
    let greeting = move || {
        let greeted = greet(&mut halves, token.as_ref());
        let greeted = greeted.map(|welcome| (welcome, halves)).map_err(|error| error.to_string());
        // The asker may have given up.
        drop(sender.send(greeted));
    };
    let thread = Builder::new().name("bench-greet".to_owned()).spawn(greeting);
    thread.map_err(|error| error.to_string())?;
    outcome.recv_timeout(time).unwrap_or_else(|_| {
        close();
        Err(format!("it did not answer the greeting within {} s", time.as_secs()))
    })
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

    fn wanted(text: &str) -> (String, Place) {
        let wanted: Wanted = text.parse().unwrap();
        (wanted.name, wanted.place)
    }

    #[test]
    fn places_are_read_with_and_without_names() {
        let listening = |text: &str| Place::Listening(text.to_owned());
        assert_eq!(wanted("h1"), ("h1".to_owned(), listening("h1:7420")));
        assert_eq!(wanted("a=10.0.0.1:99"), ("a".to_owned(), listening("10.0.0.1:99")));
        assert_eq!(wanted("::1"), ("::1".to_owned(), listening("[::1]:7420")));
        assert_eq!(wanted("[::1]:80"), ("[::1]:80".to_owned(), listening("[::1]:80")));
        let ssh = ("b".to_owned(), Place::Ssh("me@h2".to_owned()));
        assert_eq!(wanted("b=ssh:me@h2"), ssh);
        for wrong in ["", "a=", "=h1", "a b=h1", "ssh:", "ssh:-oProxyCommand=x", "two words"] {
            let error = wrong.parse::<Wanted>().unwrap_err();
            assert!(error.contains("ssh:user@host"), "{error}");
        }
    }

    #[test]
    fn names_are_told_apart() {
        let one: Wanted = "h1:1".parse().unwrap();
        let two: Wanted = "x=h1:1".parse().unwrap();
        distinct(&[one.clone(), two]).unwrap();
        let error = distinct(&[one.clone(), one]).unwrap_err().to_string();
        assert!(error.contains("\"h1:1\"") && error.contains("--worker a="), "{error}");
    }

    #[test]
    fn what_ssh_is_told_is_one_word_each() {
        let launch = Launch {
            token: None,
            ssh: vec!["ssh".to_owned(), "-p".to_owned(), "22".to_owned()],
            program: "/opt/my weir/it's".to_owned(),
            patience: Patience::default(),
        };
        let command = launch.over_ssh("me@host");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(words[..2], ["-p", "22"]);
        assert_eq!(words[words.len() - 3..words.len() - 1], ["--", "me@host"]);
        assert_eq!(words[words.len() - 1], r"'/opt/my weir/it'\''s' bench worker --stdio");
        assert_eq!(quoted("weir"), "weir");
    }

    #[test]
    fn what_a_child_says_before_it_fails_is_told() {
        let launch = Launch {
            token: None,
            ssh: ["sh", "-c", "echo no such host >&2; exit 255", "sh"].map(str::to_owned).to_vec(),
            program: "weir".to_owned(),
            patience: Patience::default(),
        };
        let error = launch.all(&["a=ssh:nowhere".parse().unwrap()]).err().unwrap().to_string();
        assert!(error.contains("worker a") && error.contains("no such host"), "{error}");
    }

    #[test]
    fn a_child_that_says_nothing_is_given_up() {
        let launch = Launch {
            token: None,
            ssh: ["sh", "-c", "exec sleep 1000", "sh"].map(str::to_owned).to_vec(),
            program: "weir".to_owned(),
            patience: Patience { greeting: Duration::from_millis(200), ..Patience::default() },
        };
        let error = launch.all(&["ssh:nowhere".parse().unwrap()]).err().unwrap().to_string();
        assert!(error.contains("did not answer"), "{error}");
    }
}
