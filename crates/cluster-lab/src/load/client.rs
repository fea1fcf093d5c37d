//! A client of one volume: it writes blocks as stable, several at a time, as fast as the volume
//! takes them. When its connection breaks, or there is no answer for a while, it connects to the
//! same address again and sends what was not answered once more, under the same numbers, as the
//! clients of operating systems do. Not here: what is expected of the volume.

use super::course::{Break, Course};
use super::ledger::{Found, Ledger};
use crate::bed::CLIENTS;
use anyhow::{Context, Result, bail, ensure};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_core::Credentials;
use weir_core::rng::{Rng, mix};
use weir_load::engine::{Session, Waits, mount, status_name};
use weir_load::error::BenchError;
use weir_load::payload::Payload;
use weir_load::{Control, NfsTarget};
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, LookupArgs, ReadArgs, Res, Sattr3, StableHow,
    Status, WriteArgs,
};

/// Time without any answer after which a connection counts as broken.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// Longest time for one attempt to connect.
const CONNECT: Duration = Duration::from_millis(250);
/// Pause before the next attempt.
pub(super) const RETRY: Duration = Duration::from_millis(5);
/// Pause before a refused write is sent again.
pub(super) const AGAIN: Duration = Duration::from_millis(20);
/// Longest time for the answers to the last writes.
pub(super) const LAST: Duration = Duration::from_secs(30);
/// Numbers of calls begin here, out of the way of those that sessions count by themselves.
const FIRST_XID: u32 = 0x4000_0000;

/// The work of a client.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Name of its file in the top directory.
    pub(crate) file: String,
    /// Bytes of each write.
    pub(crate) block_bytes: u32,
    /// Blocks of the file.
    pub(crate) blocks: u32,
    /// Writes under way.
    pub(crate) depth: usize,
    /// Number by which its content is told from that of earlier work on the same file.
    pub(crate) run: u32,
}

/// A volume under load.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Number of the volume, from 1.
    pub(crate) number: u32,
    /// Name of the volume, and of its export.
    pub(crate) name: String,
    /// The address at which its clients reach it.
    pub(crate) address: SocketAddr,
}

/// The state that a client shares with its owner while it works.
#[derive(Debug, Default)]
struct Shared {
    /// Writes that were answered.
    answered: AtomicU64,
    /// Answers that refused a write.
    refused: AtomicU64,
    /// No new writes.
    finish: AtomicBool,
}

/// The result of a client.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The course of its load.
    pub(crate) course: Course,
    /// The result of reading everything back.
    pub(crate) found: Found,
    /// Writes without an answer at the end.
    pub(crate) unanswered: u64,
    /// The file as it has to be from then on.
    pub(crate) file: File,
}

/// A file that was written, and is to be read back.
#[derive(Clone, Debug)]
pub(crate) struct File {
    target: Target,
    name: String,
    ledger: Ledger,
}

/// A client at work, on a thread of its own.
pub(crate) struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Outcome>>,
}

impl Running {
    /// Starts a client; its times count from `begun`, and `halt` ends it without an outcome. Its
    /// file is there when this returns.
    ///
    /// # Errors
    /// If the volume cannot be mounted, or refuses the file.
    pub(crate) fn start(
        target: &Target,
        work: Work,
        begun: Instant,
        halt: &Control,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (told, ready) = std::sync::mpsc::channel();
        let (target, halt, own) = (target.clone(), halt.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name(target.name.clone()).spawn(move || {
            CLIENTS.enter()?;
            let client = patiently(&halt, || {
                let (target, work, own) = (target.clone(), work.clone(), Arc::clone(&own));
                let client = Client::new((target, work), (begun, halt.clone()), own);
                client.map_err(|error| (false, error))
            })??;
            // Whoever started it may have ended.
            let _ = told.send(());
            client.run()
        })?;
        match ready.recv() {
            Ok(()) => Ok(Self { shared, thread }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => bail!("the thread of a client ended abnormally"),
            },
        }
    }

    /// Writes that were answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Answers so far that refused a write.
    pub(crate) fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Has it ended?
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Has it end its load: it reads everything back then.
    pub(crate) fn finish(&self) {
        self.shared.finish.store(true, Ordering::Relaxed);
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// If the client could not go on.
    pub(crate) fn wait(self) -> Result<Outcome> {
        self.thread.join().unwrap_or_else(|_| bail!("the thread of a client ended abnormally"))
    }
}

/// A write without an answer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    xid: u32,
    block: u32,
    write: u32,
}

/// The answer to a write.
enum Answer {
    Done,
    Refused(String),
}

struct Client {
    target: Target,
    work: Work,
    begun: Instant,
    halt: Control,
    shared: Arc<Shared>,
    payload: Payload,
    file: Box<[u8]>,
    session: Option<Session>,
    pending: Vec<Pending>,
    ledger: Ledger,
    course: Course,
    rng: Rng,
    xid: u32,
    /// Blocks that were written for the first time.
    filled: u32,
    finishing: Option<Instant>,
}

impl Client {
    /// Mounts the volume and makes the file.
    fn new(
        (target, work): (Target, Work),
        (begun, halt): (Instant, Control),
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let (mut session, top) = enter(&target, &Waits::checking(&halt).at_most(SILENCE))?;
        let location = DirOpArgs3 { dir: FileHandle3(&top), name: work.file.as_bytes() };
        let how = CreateHow3::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        let made = session.call(&CreateArgs { location, how }, |result| match result {
            Res::Ok(made) => Ok(made.object.map(|handle| Box::from(handle.0))),
            Res::Fail(status, _) => Err(status),
        })?;
        let made = made.map_err(|status| refusal("CREATE", status))?;
        let file = made.context("the server made a file and did not give its handle")?;
        let run = mix(u64::from(work.run) ^ u64::from(target.number) << 32);
        Ok(Self {
            ledger: Ledger::new((run, target.number), work.blocks, work.block_bytes),
            rng: Rng::new(run),
            target,
            work,
            begun,
            halt,
            shared,
            payload: Payload::new(),
            file,
            session: Some(session),
            pending: Vec::new(),
            course: Course::default(),
            xid: FIRST_XID,
            filled: 0,
            finishing: None,
        })
    }

    fn now_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Works until it is told to finish, and reads everything back.
    fn run(mut self) -> Result<Outcome> {
        loop {
            match self.turn() {
                Ok(false) => {}
                Ok(true) => break,
                Err(error @ BenchError::Stopped { .. }) => return Err(error.into()),
                Err(error) => self.broken(&error),
            }
            ensure!(!self.halt.stopped(), "interrupted");
        }
        self.session = None;
        let file = File { target: self.target, name: self.work.file, ledger: self.ledger };
        let found = file.read_back(&self.halt)?;
        let unanswered = self.pending.len() as u64;
        Ok(Outcome { course: self.course, found, unanswered, file })
    }

    /// Sends writes and takes an answer. `true`: the load is over.
    fn turn(&mut self) -> Result<bool, BenchError> {
        if self.finishing.is_none() && self.shared.finish.load(Ordering::Relaxed) {
            self.finishing = Some(Instant::now());
        }
        let is_late = self.finishing.is_some_and(|since| since.elapsed() > LAST);
        if is_late || (self.finishing.is_some() && self.pending.is_empty()) {
            return Ok(true);
        }
        if self.session.is_none() && !self.connect() {
            return Ok(false);
        }
        while self.finishing.is_none() && self.pending.len() < self.work.depth {
            let block = self.choose();
            self.xid += 1;
            let write = self.ledger.send(block);
            self.send(Pending { xid: self.xid, block, write });
        }
        self.take()?;
        Ok(false)
    }

    /// A block without a write under way: all in turn at first, then any.
    fn choose(&mut self) -> u32 {
        if self.filled < self.ledger.blocks() {
            self.filled += 1;
            return self.filled - 1;
        }
        loop {
            let any = self.rng.below(u64::from(self.ledger.blocks()));
            let block = u32::try_from(any).unwrap_or(0);
            if self.pending.iter().all(|pending| pending.block != block) {
                return block;
            }
        }
    }

    /// Queues a write, which is pending from now on.
    fn send(&mut self, pending: Pending) {
        self.pending.push(pending);
        self.queue(pending);
    }

    fn queue(&mut self, Pending { xid, block, write }: Pending) {
        let data = self.ledger.content(block, write, &self.payload);
        let (offset, file) = (self.ledger.offset(block), FileHandle3(&self.file));
        let (count, stable) = (self.work.block_bytes, StableHow::FileSync);
        if let Some(session) = &mut self.session {
            session.queue_as(|caller, out| {
                caller.call(out, xid, &WriteArgs { file, offset, count, stable, data: &data });
            });
        }
    }

    /// Takes the next answer.
    fn take(&mut self) -> Result<(), BenchError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let pending = &self.pending;
        let (address, whole) = (self.target.address, self.work.block_bytes);
        let protocol = |detail: String| BenchError::Protocol { address, detail };
        let (at, answer) = session.answer(|reply| {
            let at = pending.iter().position(|pending| pending.xid == reply.xid);
            let at = at.ok_or_else(|| protocol("a reply without a request".to_owned()))?;
            let results = reply.results::<WriteArgs<'_>>();
            let results = results.map_err(|error| protocol(error.to_string()))?;
            Ok((at, judge(results, whole)))
        })?;
        let now_s = self.now_s();
        let pending = self.pending.swap_remove(at);
        match answer {
            Answer::Done => {
                self.ledger.acknowledge(pending.block);
                self.course.completed(now_s, whole);
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
            }
            Answer::Refused(why) => {
                self.course.refusals.note(why, now_s);
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(AGAIN);
                self.xid += 1;
                self.send(Pending { xid: self.xid, ..pending });
            }
        }
        Ok(())
    }

    /// Gives up the connection.
    fn broken(&mut self, error: &BenchError) {
        let Some(session) = self.session.take() else { return };
        session.reset();
        let (at_s, why) = (self.now_s(), error.in_full());
        self.course.breaks.push(Break { at_s, why, ..Break::default() });
    }

    /// Makes one attempt to connect again, and sends what was not answered. `false`: there is no
    /// connection yet.
    fn connect(&mut self) -> bool {
        if let Some(last) = self.course.breaks.last_mut() {
            last.attempts += 1;
        }
        let waits = Waits::checking(&self.halt).at_most(SILENCE);
        self.session = reconnect(&self.target, &waits);
        if self.session.is_none() {
            std::thread::sleep(RETRY);
            return false;
        }
        let now_s = self.now_s();
        if let Some(last) = self.course.breaks.last_mut() {
            last.connected_s = Some(now_s);
        }
        for pending in self.pending.clone() {
            self.queue(pending);
        }
        true
    }
}

impl File {
    /// Compares every acknowledged block as a client that mounts the volume anew reads it. The
    /// calling thread is in the network of the clients.
    ///
    /// # Errors
    /// If it is halted. What cannot be read is told in the result.
    pub(crate) fn read_back(&self, halt: &Control) -> Result<Found> {
        let (mut found, mut next) = (Found::default(), 0);
        let read = patiently(halt, || {
            let before = next;
            self.compare(halt, &mut next, &mut found).map_err(|error| (next > before, error))
        });
        found.unread = read?.err().map(|error| format!("{error:#}"));
        Ok(found)
    }

    /// Compares the blocks from `next` on, which is moved on.
    fn compare(&self, halt: &Control, next: &mut u32, found: &mut Found) -> Result<()> {
        let (mut session, top) = enter(&self.target, &Waits::checking(halt).at_most(LAST))?;
        let what = DirOpArgs3 { dir: FileHandle3(&top), name: self.name.as_bytes() };
        let file = session.call(&LookupArgs { what }, |result| match result {
            Res::Ok(found) => Ok(Box::<[u8]>::from(found.object.0)),
            Res::Fail(status, _) => Err(status),
        })?;
        let file = file.map_err(|status| refusal("LOOKUP", status))?;
        let (ledger, payload) = (&self.ledger, Payload::new());
        for block in (*next..ledger.blocks()).filter(|block| ledger.is_acknowledged(*block)) {
            let (offset, count) = (ledger.offset(block), ledger.block_bytes());
            let read = ReadArgs { file: FileHandle3(&file), offset, count };
            session.call(&read, |result| match result {
                Res::Ok(ok) => ledger.compare(block, ok.data, &payload, found),
                Res::Fail(status, _) => ledger.lost(block, &status_name(status), found),
            })?;
            *next = block + 1;
        }
        Ok(())
    }
}

/// Does something again when it fails, as clients do whose connection breaks, until it has made no
/// progress for [`LAST`]. A failure says whether there was some.
///
/// # Errors
/// If it is halted.
pub(super) fn patiently<T>(
    halt: &Control,
    mut act: impl FnMut() -> Result<T, (bool, anyhow::Error)>,
) -> Result<Result<T>> {
    let mut since = Instant::now();
    loop {
        match act() {
            Ok(done) => return Ok(Ok(done)),
            Err((true, _)) => since = Instant::now(),
            Err((false, error)) if since.elapsed() > LAST => return Ok(Err(error)),
            Err(_) => {}
        }
        ensure!(!halt.stopped(), "interrupted");
        std::thread::sleep(AGAIN);
    }
}

/// The caller of all requests.
pub(super) fn caller() -> Caller {
    Caller::sys(&Credentials::ROOT, b"weir-cluster-lab")
}

/// A connection to NFS of the volume, if there is one within [`CONNECT`].
pub(super) fn reconnect(target: &Target, waits: &Waits) -> Option<Session> {
    let stream = TcpStream::connect_timeout(&target.address, CONNECT).ok()?;
    stream.set_nodelay(true).ok()?;
    Session::over(stream, target.address, caller(), waits).ok()
}

/// Mounts the volume: a connection, and the handle of the top directory.
///
/// # Errors
/// If the server is not reached, or refuses.
pub(super) fn enter(target: &Target, waits: &Waits) -> Result<(Session, Box<[u8]>)> {
    let (nfs, caller) = (NfsTarget::new(target.address, format!("/{}", target.name)), caller());
    let top = mount(&nfs, &caller, waits)?;
    Ok((Session::of(&nfs, caller, waits)?.patient(), top))
}

/// Was the whole block written, and is it stable?
fn judge(results: weir_nfs::v3::wire::WriteRes, whole: u32) -> Answer {
    match results {
        Res::Ok(ok) if ok.count != whole => {
            Answer::Refused(format!("{} of {whole} bytes were written", ok.count))
        }
        Res::Ok(ok) if ok.committed != StableHow::FileSync => {
            Answer::Refused(format!("the write is {:?} and not stable", ok.committed))
        }
        Res::Ok(_) => Answer::Done,
        Res::Fail(status, _) => Answer::Refused(format!("WRITE: {}", status_name(status))),
    }
}

pub(super) fn refusal(what: &str, status: Status) -> anyhow::Error {
    anyhow::anyhow!("{what}: the server answered {}", status_name(status))
}
