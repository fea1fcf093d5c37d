//! A client of one volume that holds a lock while the volume moves, and rivals that want it. Before
//! the move it also makes calls that must not be executed twice, and after it sends them once more
//! as if their replies had been lost. Nothing is reclaimed. Not here: what moves, and when.

use super::client::{AGAIN, LAST, RETRY, SILENCE, Target, enter, patiently, reconnect, refusal};
use crate::bed::CLIENTS;
use anyhow::{Context, Result, bail, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_load::Control;
use weir_load::engine::{Session, Waits};
use weir_load::error::BenchError;
use weir_nfs::client::{NlmLock, NlmUnlock, RemoteCall};
use weir_nfs::nlm::Status;
use weir_nfs::nlm::wire::{CallerName, Lock, LockArgs, NetObj, UnlockArgs};
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, RemoveArgs, Res, Sattr3,
};

/// Pause between two attempts of a rival.
const PACE: Duration = Duration::from_millis(20);
/// Numbers of the calls that are sent twice, out of the way of those that sessions count.
const FIRST_XID: u32 = 0x6000_0000;
/// The state number of all hosts' status monitors.
const STATE: u32 = 3;

/// The host that holds the lock.
const HOLDER: &str = "holder";
/// The host that wants it.
const RIVAL: &str = "rival";

/// The names of the files of one client.
#[derive(Clone, Debug)]
struct Files {
    /// The file with the lock.
    locked: String,
    /// A file without locks.
    free: String,
    /// A file that is made once and removed once.
    once: String,
}

/// A client at work, on a thread of its own.
pub(crate) struct Holding {
    moved: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<String>>>,
}

impl Holding {
    /// Starts a client whose files begin with `prefix`. It holds its lock when this returns, and a
    /// rival was refused.
    ///
    /// # Errors
    /// If the volume cannot be mounted, or there is no lock in time.
    pub(crate) fn start(target: &Target, prefix: &str, halt: &Control) -> Result<Self> {
        let moved = Arc::new(AtomicBool::new(false));
        let (told, ready) = std::sync::mpsc::channel();
        let (target, halt, own) = (target.clone(), halt.clone(), Arc::clone(&moved));
        let name = |what: &str| format!("{prefix}-{what}");
        let files = Files { locked: name("locked"), free: name("free"), once: name("once") };
        let thread = std::thread::Builder::new().name(format!("{}-locks", target.name));
        let thread = thread.spawn(move || {
            CLIENTS.enter()?;
            let mut client = Client::new(target, files, halt)?;
            let rival = client.refused_rival()?;
            // Whoever started it may have ended.
            let _ = told.send(());
            client.run(rival, &own)
        })?;
        match ready.recv() {
            Ok(()) => Ok(Self { moved, thread }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => bail!("the thread of a client ended abnormally"),
            },
        }
    }

    /// Tells it that the volume has moved, and waits until it has looked. Gives what is not as it
    /// has to be.
    ///
    /// # Errors
    /// If the client could not go on.
    pub(crate) fn look(self) -> Result<Vec<String>> {
        self.moved.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| bail!("the thread of a client ended abnormally"))
    }
}

struct Client {
    target: Target,
    halt: Control,
    top: Box<[u8]>,
    locked: Box<[u8]>,
    free: Box<[u8]>,
    /// The name of the file that is made once and removed once, and the replies to that.
    once: String,
    replies: Vec<Vec<u8>>,
    /// The connection of those calls. An orderly close would tell that the replies have come.
    lost: Option<Session>,
    misses: Vec<String>,
}

impl Client {
    /// Makes the files, takes the lock, and makes the calls whose replies are lost.
    fn new(target: Target, files: Files, halt: Control) -> Result<Self> {
        let made = patiently(&halt, || {
            let made = make(&target, &files, &halt);
            made.map_err(|error| (false, error))
        });
        let (top, locked, free) = made??;
        let mut client = Self {
            target,
            halt,
            top,
            locked,
            free,
            once: files.once,
            replies: Vec::new(),
            lost: None,
            misses: Vec::new(),
        };
        client.take_the_lock()?;
        let mut session = client.session()?;
        client.replies = client.call_once(&mut session)?;
        client.lost = Some(session);
        Ok(client)
    }

    /// Takes the lock, after the rest of a grace period if there is one.
    fn take_the_lock(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let status = self.ask(&mut self.session()?, HOLDER, &self.locked)?;
            match status {
                Status::GRANTED => return Ok(()),
                _ if begun.elapsed() < LAST => std::thread::sleep(AGAIN),
                status => bail!("{}: no lock: {status:?}", self.target.name),
            }
        }
    }

    /// A connection of the rival, which was refused the lock.
    fn refused_rival(&mut self) -> Result<Session> {
        let mut rival = self.session()?;
        let status = self.ask(&mut rival, RIVAL, &self.locked)?;
        self.expect("a rival before the move", status, Status::DENIED);
        Ok(rival)
    }

    /// Has the rival want the lock until the volume has moved, and looks at everything then.
    fn run(mut self, rival: Session, moved: &AtomicBool) -> Result<Vec<String>> {
        let mut rival = Some(rival);
        while !moved.load(Ordering::Relaxed) {
            ensure!(!self.halt.stopped(), "interrupted");
            let Some(session) = &mut rival else {
                rival = reconnect(&self.target, &self.waits());
                std::thread::sleep(RETRY);
                continue;
            };
            match self.ask(session, RIVAL, &self.locked) {
                Ok(Status::DENIED) => {}
                Ok(status) => self.misses.push(format!("a rival got {status:?} meanwhile")),
                Err(error @ BenchError::Stopped { .. }) => return Err(error.into()),
                Err(_) => rival = None,
            }
            std::thread::sleep(PACE);
        }
        self.look()?;
        if let Some(lost) = self.lost.take() {
            lost.reset();
        }
        let name = &self.target.name;
        Ok(self.misses.iter().map(|miss| format!("lock of {name}: {miss}")).collect())
    }

    /// Looks at the lock and the replies at the next home.
    fn look(&mut self) -> Result<()> {
        let mut session = self.session()?;
        let (locked, free) = (self.locked.clone(), self.free.clone());
        let asks = [
            ("the rival", RIVAL, &locked, Status::DENIED),
            ("the holder, once more and without a reclaim,", HOLDER, &locked, Status::GRANTED),
            // In a grace period it would have to wait.
            ("the rival, on another file,", RIVAL, &free, Status::GRANTED),
        ];
        for (who, host, file, expected) in asks {
            let status = self.ask(&mut session, host, file)?;
            self.expect(who, status, expected);
        }
        if self.call_once(&mut session)? != self.replies {
            self.misses.push("a call that was sent again has another reply".to_owned());
        }
        let status = self.give_up(&mut session, HOLDER, &locked)?;
        self.expect("the holder, who unlocks,", status, Status::GRANTED);
        let status = self.ask(&mut session, RIVAL, &locked)?;
        self.expect("the rival after that", status, Status::GRANTED);
        for file in [&locked, &free] {
            self.give_up(&mut session, RIVAL, file)?;
        }
        Ok(())
    }

    fn expect(&mut self, who: &str, status: Status, expected: Status) {
        if status != expected {
            self.misses.push(format!("{who} got {status:?} and not {expected:?}"));
        }
    }

    /// Makes a file and removes it, under the same numbers each time. Gives the replies.
    fn call_once(&self, session: &mut Session) -> Result<Vec<Vec<u8>>> {
        let place = || DirOpArgs3 { dir: FileHandle3(&self.top), name: self.once.as_bytes() };
        let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        let made = send_as(session, FIRST_XID, &CreateArgs { location: place(), how })?;
        let removed = send_as(session, FIRST_XID + 1, &RemoveArgs { object: place() })?;
        Ok(vec![made, removed])
    }

    fn ask(&self, session: &mut Session, host: &str, file: &[u8]) -> Result<Status, BenchError> {
        let (cookie, lock) = (NetObj(b"weir"), about(host, file));
        let args =
            LockArgs { cookie, block: false, exclusive: true, lock, reclaim: false, state: STATE };
        session.call(&NlmLock(args), |result| result.status)
    }

    fn give_up(&self, session: &mut Session, host: &str, file: &[u8]) -> Result<Status> {
        let args = UnlockArgs { cookie: NetObj(b"weir"), lock: about(host, file) };
        Ok(session.call(&NlmUnlock(args), |result| result.status)?)
    }

    fn waits(&self) -> Waits {
        Waits::checking(&self.halt).at_most(SILENCE)
    }

    /// A connection, as soon as there is one.
    fn session(&self) -> Result<Session> {
        let connected = patiently(&self.halt, || {
            let session = reconnect(&self.target, &self.waits());
            session.context("no connection").map_err(|error| (false, error))
        });
        connected?
    }
}

/// The whole of a file, as the lock of a host.
fn about<'a>(host: &'a str, file: &'a [u8]) -> Lock<'a> {
    let (caller_name, oh) = (CallerName(host.as_bytes()), NetObj(b"owner"));
    Lock { caller_name, fh: NetObj(file), oh, svid: 1, offset: 0, length: 0 }
}

/// Sends a call under this number; gives the reply's body.
fn send_as<A: RemoteCall>(session: &mut Session, xid: u32, args: &A) -> Result<Vec<u8>> {
    session.queue_as(|caller, out| caller.call(out, xid, args));
    let answer = session.answer(|reply| Ok((reply.xid, reply.body.ok().map(<[u8]>::to_vec))))?;
    let (answered, body) = answer;
    ensure!(answered == xid, "a reply without a request");
    body.context("the call was refused")
}

/// The handles of the top directory and of two files.
type Handles = (Box<[u8]>, Box<[u8]>, Box<[u8]>);

fn make(target: &Target, files: &Files, halt: &Control) -> Result<Handles> {
    let (mut session, top) = enter(target, &Waits::checking(halt).at_most(SILENCE))?;
    let mut file = |name: &str| -> Result<Box<[u8]>> {
        let location = DirOpArgs3 { dir: FileHandle3(&top), name: name.as_bytes() };
        let how = CreateHow3::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        let made = session.call(&CreateArgs { location, how }, |result| match result {
            Res::Ok(made) => Ok(made.object.map(|handle| Box::from(handle.0))),
            Res::Fail(status, _) => Err(status),
        })?;
        let made = made.map_err(|status| refusal("CREATE", status))?;
        made.context("the server made a file and did not give its handle")
    };
    let (locked, free) = (file(&files.locked)?, file(&files.free)?);
    Ok((top, locked, free))
}
