//! A client of one volume that makes names: it creates a file, renames it, and removes an older
//! one, one call at a time, and knows which names must be there and which must not. When its
//! connection breaks it makes the call again, and then takes for an answer that the call was
//! carried out before. Not here: the content of files.

use super::client::{AGAIN, LAST, RETRY, SILENCE, Target, enter, patiently, refusal};
use super::course::Course;
use crate::bed::CLIENTS;
use anyhow::{Result, bail, ensure};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_load::Control;
use weir_load::engine::{Session, Waits, status_name};
use weir_load::error::BenchError;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, LookupArgs, RemoveArgs, RenameArgs, Res,
    Sattr3, Status,
};

/// Names that stay; when there is one more, the oldest is removed.
const KEPT: usize = 6;
/// Removed names that are looked for.
const GONE: usize = 24;
/// Pause after each call.
const PACE: Duration = Duration::from_millis(80);

/// The names of one volume, as they have to be.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    target: Target,
    kept: VecDeque<String>,
    gone: VecDeque<String>,
}

/// The result of a client of names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The names as they have to be from then on.
    pub(crate) names: Names,
    /// The course of its calls.
    pub(crate) course: Course,
    /// Is a call without an answer left?
    pub(crate) unanswered: bool,
}

/// The state that a client shares with its owner while it works.
#[derive(Debug, Default)]
struct Shared {
    /// Changes that were carried out.
    answered: AtomicU64,
    /// No new changes.
    finish: AtomicBool,
}

/// A client at work, on a thread of its own.
pub(crate) struct Naming {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Named>>,
}

impl Naming {
    /// Starts a client whose names begin with `prefix`. Times count from `begun`, and `halt` ends
    /// it without an outcome.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(crate) fn start(
        target: &Target,
        prefix: String,
        begun: Instant,
        halt: &Control,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (target, halt, own) = (target.clone(), halt.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name(format!("{}-names", target.name));
        let thread = thread.spawn(move || {
            CLIENTS.enter()?;
            let waits = Waits::checking(&halt).at_most(SILENCE);
            let (session, top) =
                patiently(&halt, || enter(&target, &waits).map_err(|error| (false, error)))??;
            let client = Client {
                names: Names { target, kept: VecDeque::new(), gone: VecDeque::new() },
                prefix,
                top,
                begun,
                halt,
                shared: own,
                session: Some(session),
                course: Course::default(),
                finishing: None,
            };
            client.run()
        })?;
        Ok(Self { shared, thread })
    }

    /// Changes that were carried out so far.
    pub(crate) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Has it ended?
    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Has it end.
    pub(crate) fn finish(&self) {
        self.shared.finish.store(true, Ordering::Relaxed);
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// If the client could not go on.
    pub(crate) fn wait(self) -> Result<Named> {
        self.thread.join().unwrap_or_else(|_| bail!("the thread of a client ended abnormally"))
    }
}

/// A change of names.
enum Change {
    Create(String),
    Rename(String, String),
    Remove(String),
}

impl Change {
    /// Makes the call once.
    fn make(&self, session: &mut Session, top: &[u8]) -> Result<Result<(), Status>, BenchError> {
        match self {
            Self::Create(name) => {
                let how = CreateHow3::Unchecked(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
                session
                    .call(&CreateArgs { location: place(top, name), how }, |result| done(&result))
            }
            Self::Rename(from, to) => {
                let names = RenameArgs { from: place(top, from), to: place(top, to) };
                session.call(&names, |result| done(&result))
            }
            Self::Remove(name) => {
                session.call(&RemoveArgs { object: place(top, name) }, |result| done(&result))
            }
        }
    }

    /// The procedure of NFS.
    const fn procedure(&self) -> &'static str {
        match self {
            Self::Create(_) => "CREATE",
            Self::Rename(..) => "RENAME",
            Self::Remove(_) => "REMOVE",
        }
    }

    /// Does this answer say that the change was carried out? A call that was made again may find
    /// that it was, before.
    fn is_done(&self, answer: Result<(), Status>, again: bool) -> bool {
        match answer {
            Ok(()) => true,
            Err(Status::NOENT) => again && !matches!(self, Self::Create(_)),
            Err(_) => false,
        }
    }
}

fn place<'a>(top: &'a [u8], name: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(top), name: name.as_bytes() }
}

fn done<T, F>(result: &Res<T, F>) -> Result<(), Status> {
    match result {
        Res::Ok(_) => Ok(()),
        Res::Fail(status, _) => Err(*status),
    }
}

struct Client {
    names: Names,
    prefix: String,
    top: Box<[u8]>,
    begun: Instant,
    halt: Control,
    shared: Arc<Shared>,
    session: Option<Session>,
    course: Course,
    finishing: Option<Instant>,
}

impl Client {
    /// Works until it is told to finish.
    fn run(mut self) -> Result<Named> {
        let mut unanswered = false;
        let mut number = 0_u64;
        while !self.is_over() {
            number += 1;
            // Each has a temporary name of its own: a RENAME that was made again, and is carried
            // out late, would take the next file otherwise.
            let new = format!("{}-new-{number}", self.prefix);
            let name = format!("{}-{number}", self.prefix);
            let made = self.carry_out(&Change::Create(new.clone()))?
                && self.carry_out(&Change::Rename(new, name.clone()))?;
            if !made {
                unanswered = true;
                break;
            }
            self.names.kept.push_back(name);
            let oldest = self.names.kept.front().filter(|_| self.names.kept.len() > KEPT).cloned();
            let Some(oldest) = oldest else { continue };
            self.names.kept.pop_front();
            if !self.carry_out(&Change::Remove(oldest.clone()))? {
                // Whether it is there is not known.
                unanswered = true;
                break;
            }
            self.names.gone.push_back(oldest);
            if self.names.gone.len() > GONE {
                self.names.gone.pop_front();
            }
        }
        Ok(Named { names: self.names, course: self.course, unanswered })
    }

    /// Is there no new work to begin?
    fn is_over(&mut self) -> bool {
        if self.finishing.is_none() && self.shared.finish.load(Ordering::Relaxed) {
            self.finishing = Some(Instant::now());
        }
        self.finishing.is_some()
    }

    /// Makes a call until it is answered and carried out. `false`: it was not, until some time
    /// after the end of the work.
    fn carry_out(&mut self, change: &Change) -> Result<bool> {
        let mut again = false;
        loop {
            ensure!(!self.halt.stopped(), "interrupted");
            if self.is_over() && self.finishing.is_some_and(|since| since.elapsed() > LAST) {
                return Ok(false);
            }
            let Some(session) = &mut self.session else {
                self.session = self.connect();
                continue;
            };
            match change.make(session, &self.top) {
                Ok(answer) if change.is_done(answer, again) => {
                    self.course.completed(self.begun.elapsed().as_secs_f64(), 0);
                    self.shared.answered.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(PACE);
                    return Ok(true);
                }
                Ok(Ok(())) => bail!("an answer is taken for one and for none"),
                Ok(Err(status)) => {
                    let why = refusal(change.procedure(), status).to_string();
                    self.course.refusals.note(why, self.begun.elapsed().as_secs_f64());
                    std::thread::sleep(AGAIN);
                }
                Err(error @ BenchError::Stopped { .. }) => return Err(error.into()),
                Err(_) => {
                    again = true;
                    self.session = None;
                }
            }
        }
    }

    /// Makes one attempt to connect.
    fn connect(&self) -> Option<Session> {
        let waits = Waits::checking(&self.halt).at_most(SILENCE);
        let session = super::client::reconnect(&self.names.target, &waits);
        if session.is_none() {
            std::thread::sleep(RETRY);
        }
        session
    }
}

impl Names {
    /// Name of the volume.
    pub(crate) fn volume(&self) -> &str {
        &self.target.name
    }

    /// Looks for all names as a client that mounts the volume anew. Returns how many were looked
    /// for, and in words which are not as they have to be. The calling thread is in the network of
    /// the clients.
    ///
    /// # Errors
    /// If the volume cannot be mounted or does not answer.
    pub(crate) fn look(&self, halt: &Control) -> Result<(u64, Vec<String>)> {
        patiently(halt, || self.look_once(halt).map_err(|error| (false, error)))?
    }

    fn look_once(&self, halt: &Control) -> Result<(u64, Vec<String>)> {
        let (mut session, top) = enter(&self.target, &Waits::checking(halt).at_most(LAST))?;
        let mut wrong = Vec::new();
        let kept = self.kept.iter().map(|name| (name, true));
        let all: Vec<_> = kept.chain(self.gone.iter().map(|name| (name, false))).collect();
        for (name, is_there) in &all {
            let what = place(&top, name);
            let found = session.call(&LookupArgs { what }, |result| done(&result))?;
            wrong.extend(amiss(name, *is_there, found));
        }
        Ok((all.len() as u64, wrong))
    }

    /// Forgets the names that were removed: those of other work may be the same.
    pub(crate) fn forget_removed(&mut self) {
        self.gone.clear();
    }
}

/// The fault of a name, if it has one.
fn amiss(name: &str, is_there: bool, found: Result<(), Status>) -> Option<String> {
    match (is_there, found) {
        (true, Ok(())) | (false, Err(Status::NOENT)) => None,
        (true, Err(status)) => Some(format!("{name} is lost: {}", status_name(status))),
        (false, Ok(())) => Some(format!("{name} was removed, and is there")),
        (false, Err(status)) => Some(format!("{name}: {}", status_name(status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_that_was_made_again_may_find_its_name_gone() {
        let name = || "a".to_owned();
        let all = [Change::Create(name()), Change::Rename(name(), name()), Change::Remove(name())];
        let done = |answer, again| all.each_ref().map(|change| change.is_done(answer, again));
        assert_eq!(done(Ok(()), false), [true; 3]);
        assert_eq!(done(Err(Status::NOENT), false), [false; 3]);
        assert_eq!(done(Err(Status::NOENT), true), [false, true, true]);
        assert_eq!(done(Err(Status::IO), true), [false; 3]);
        assert_eq!(all.map(|change| change.procedure()), ["CREATE", "RENAME", "REMOVE"]);
    }

    #[test]
    fn names_that_are_lost_or_came_back_are_told() {
        assert_eq!(amiss("n", true, Ok(())), None);
        assert_eq!(amiss("n", false, Err(Status::NOENT)), None);
        assert!(amiss("n", true, Err(Status::NOENT)).unwrap().contains("lost"));
        assert!(amiss("n", false, Ok(())).unwrap().contains("is there"));
        assert!(amiss("n", false, Err(Status::IO)).is_some());
    }
}
