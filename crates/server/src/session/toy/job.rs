//! Carrying out requests of the protocol for tests.

use super::super::{Operation, Outcome, Start};
use super::command::Command;
use super::locks::ConnectionLocks;
use super::{Open, Opens};
use crate::engine::{Asked, ServedVolume};
use crate::sync::{Arc, lock};
use crate::worker::Permits;
use std::fmt::Write;
use weir_core::store::{CreateHow, Stability};
use weir_core::{Credentials, FsError, Mono, Name, ObjectKey, SetAttr, Shared, Store};

/// A command, and the file that it is about.
pub(super) struct Element {
    pub(super) command: Command,
    pub(super) volume: Arc<ServedVolume>,
    pub(super) file: Option<ObjectKey>,
}

/// A request: one command, or a chain of them.
pub(crate) struct ToyJob {
    pub(super) elements: Vec<Element>,
    pub(super) opens: Opens,
    pub(super) locks: ConnectionLocks,
}

/// Nothing is left of a request while it is carried out.
pub(crate) struct ToyUnanswered;

/// The reply of a command, and the bytes that it moved.
type Done = Result<(String, u64), FsError>;

impl ToyJob {
    /// The file of a request of one command.
    pub(in super::super) fn file(&self) -> Option<&ObjectKey> {
        match self.elements.as_slice() {
            [only] => only.file.as_ref(),
            _ => None,
        }
    }

    /// The most bytes of memory that the request holds while it is carried out.
    pub(in super::super) fn held_bytes(&self) -> usize {
        let bytes = |element: &Element| match &element.command {
            Command::Read { count, .. } => *count as usize,
            _ => 64,
        };
        self.elements.iter().map(bytes).sum()
    }

    pub(in super::super) fn start(self, start: &Start<'_>) -> Operation {
        let permits = (start.permits)();
        Operation::Toy(Box::pin(async move {
            let mut all = Reply { text: String::new(), moved: 0, ok: true };
            match self.elements.as_slice() {
                [only] => all.add(only.run(&self).await),
                chain => {
                    for element in chain {
                        let Some(done) = element.run_admitted(&self, &permits).await else {
                            break;
                        };
                        all.add(done);
                    }
                    // Each element has settled with its own contract.
                    all.moved = 0;
                }
            }
            all.text.push('\n');
            let broken = matches!(
                self.elements.as_slice(),
                [Element { command: Command::Break { .. }, .. }]
            );
            let reply = (!broken).then(|| all.text.into_bytes());
            Outcome { reply, moved: all.moved, ok: all.ok }
        }))
    }
}

/// The replies of a request's commands.
struct Reply {
    text: String,
    moved: u64,
    ok: bool,
}

impl Reply {
    fn add(&mut self, done: Done) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        match done {
            Ok((text, moved)) => {
                let _infallible = write!(self.text, "ok {text}");
                self.moved += moved;
            }
            Err(error) => {
                let _infallible = write!(self.text, "error {error:?}");
                self.ok = false;
            }
        }
    }
}

impl Element {
    /// Carries the command out under a permit of its own; `None` if the connection is gone.
    async fn run_admitted(&self, job: &ToyJob, permits: &Permits) -> Option<Done> {
        let (op, cost) = (self.command.op(), self.command.cost());
        let asked = Asked { op, class: op.class(), cost, arrived: self.now() };
        let permit = permits.ask(&self.volume, asked, self.file).await.ok()?;
        let done = self.run(job).await;
        permit.end(done.as_ref().map_or(0, |(_, moved)| *moved), done.is_ok());
        Some(done)
    }

    fn now(&self) -> Mono {
        weir_core::Clock::now(&self.volume.clock())
    }

    async fn run(&self, job: &ToyJob) -> Done {
        let store = &self.volume.store;
        let key = self.file.unwrap_or_else(|| store.key(&store.root()));
        let object = store.resolve(&key).await?;
        match &self.command {
            Command::Open { name, .. } => {
                let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
                let name = Name::new(name.as_bytes())?;
                let how = CreateHow::Unchecked(set);
                let made = store.create(&object, name, &how, &Credentials::ROOT).await?;
                let mut opens = lock(&job.opens);
                opens.push(Open { volume: self.volume.id, file: store.key(&made.object) });
                Ok(((opens.len() - 1).to_string(), 0))
            }
            Command::Read { offset, count, .. } => {
                let done = store.read(&object, *offset, *count, Vec::new()).await?;
                Ok((String::from_utf8_lossy(&done.out).into_owned(), done.count.into()))
            }
            Command::Write { offset, text, .. } => {
                let data = Shared::from(text.as_bytes().to_vec());
                let done = store.write(&object, *offset, data, Stability::Unstable).await?;
                Ok((done.count.to_string(), done.count.into()))
            }
            Command::Break { .. } => Ok((String::new(), 0)),
            Command::Lock { handle } => Ok((job.locks.lock(&self.volume, key, *handle), 0)),
            Command::Unlock { .. } => {
                job.locks.unlock(&self.volume, key);
                Ok(("unlocked".to_owned(), 0))
            }
        }
    }
}
