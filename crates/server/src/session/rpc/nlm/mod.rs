//! The lock manager beside NFSv3 (NLM) with its status monitor (NSM).
//!
//! A call is carried out by the thread that it came to, if the locks are free and the call takes
//! only a short time, and otherwise by the lock thread ([`thread`]), whose reply is awaited. That
//! thread also serves UDP, calls clients back, tells them of a restart, and waits for the
//! catalogue's disk before a host's first lock.
//!
//! The meaning of a call is decided in `weir_nfs::nlm`. Not here: the tables of locks and the order
//! of calls, which are all protocols' ([`weir_locks`]).

mod calls;
mod counters;
mod hosts;
mod listing;
mod monitored;
mod moved;
mod service;
mod state;
#[cfg(test)]
mod tests;
mod thread;

pub(crate) use calls::{LockReply, lock_call};
pub(crate) use listing::list_owner;
pub(crate) use moved::{HostsLeft, NotTaken};
pub(crate) use service::Life;
pub(crate) use thread::LockThread;

use crate::clock::SystemClock;
use crate::error::ServeError;
use crate::inbox::Inbox;
use crate::session::{Locks, Waiter, deliver};
use crate::sync::{Arc, Mutex, lock, mpsc, oneshot};
use counters::LockCounters;
use hosts::Hosts;
use moved::Moved;
use state::{Beside, State};
use std::time::Duration;
use weir_catalog::Catalog;
use weir_control::plane::LockTotals;
use weir_core::{Clock, Mono, VolumeId};
use weir_nfs::PROGRAM_NLM;
use weir_nfs::nlm::{Callback, Host, Peer, Request, Status, Waiting};
use weir_nfs::rpc::Call;
use weir_state::{Ask, File, GrantId};

/// The file that a call is about and its caller may lock, or why there is none.
type Proof = Result<File, Status>;

/// A call that the lock thread carries out.
struct Asked {
    call: Call,
    peer: Peer,
    proof: Proof,
    reply: oneshot::Sender<Vec<u8>>,
}

/// A message to the lock thread. There are at most [`LOCK_CALLS_MAX`](weir_locks::LOCK_CALLS_MAX)
/// calls, a callback for each request that waited and each call that is answered by one, and a wake
/// for each call that the thread awaits itself.
enum Message {
    /// Carry out this call.
    Call(Box<Asked>),
    /// Call this client.
    CallBack(Callback),
    /// The call in this slot can make progress.
    Wake(usize),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
    /// Groups of volumes come to this server, or go.
    Moved(Moved),
}

/// The lock manager as threads see it.
pub(crate) struct Nlm {
    clock: SystemClock,
    locks: Arc<Locks>,
    /// Locked only by a thread that has the tables, so nobody ever waits for it.
    beside: Mutex<Beside>,
    counters: LockCounters,
    /// The lock thread's messages.
    inbox: Arc<Inbox<Message>>,
}

impl Nlm {
    /// Begins a life of the lock manager over `locks`.
    ///
    /// # Errors
    /// [`ServeError`]: the catalogue fails, or the kernel gives no eventfd.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        clock: SystemClock,
        locks: Arc<Locks>,
    ) -> Result<(Arc<Self>, Life), ServeError> {
        let life =
            Life { hosts: Hosts::load(Arc::clone(catalog))?, state: catalog.next_nsm_state()? };
        Self::begin(life, clock, locks)
    }

    /// Begins a life that has the hosts of no volume yet: those come with their addresses
    /// ([`Self::inherit`]).
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_alone(
        catalog: &Arc<Catalog>,
        clock: SystemClock,
        locks: Arc<Locks>,
    ) -> Result<(Arc<Self>, Life), ServeError> {
        let hosts = Hosts::none(Arc::clone(catalog));
        Self::begin(Life { hosts, state: catalog.next_nsm_state()? }, clock, locks)
    }

    fn begin(
        life: Life,
        clock: SystemClock,
        locks: Arc<Locks>,
    ) -> Result<(Arc<Self>, Life), ServeError> {
        let (beside, counters) = (Mutex::default(), LockCounters::default());
        let nlm = Self { clock, locks, beside, counters, inbox: Inbox::new()? };
        Ok((Arc::new(nlm), life))
    }

    /// Gives the hosts that held locks in the last life the time `grace` to reclaim them on
    /// `volumes`. Before any call comes.
    pub(crate) fn begin_grace(
        &self,
        life: &Life,
        volumes: impl IntoIterator<Item = VolumeId>,
        grace: Duration,
    ) {
        let known = life.hosts.owed();
        let clients = known.iter().map(|host| Host::new(host.address, &host.name).client());
        let until = self.clock.now() + grace;
        self.locks.tables().begin_grace(until, volumes, clients);
        if !known.is_empty() {
            tracing::info!(
                hosts = known.len(),
                seconds = grace.as_secs(),
                "grace period started: locks held before the restart can be reclaimed; new locks are not granted"
            );
        }
    }

    /// Takes note of the hosts whose last lock was released without a call of theirs.
    pub(crate) fn note_released(&self) {
        self.state().settle();
    }

    /// Has the lock thread drop `absent`, as a sign of life.
    pub(crate) fn roll_call(&self, absent: mpsc::Sender<()>) {
        self.inbox.post(Message::RollCall(absent));
    }

    /// Gauges and counters for the metrics.
    pub(crate) fn totals(&self) -> LockTotals {
        let state = self.state();
        let used = state.tables.used();
        LockTotals {
            served: true,
            held: used.locks as u64,
            waiting: used.waiters as u64,
            hosts: state.beside.monitored.len() as u64,
            grace: state.tables.grace_until(self.clock.now()).is_some(),
            ..self.counters.read()
        }
    }

    /// The tables and what is beside them, after other threads. Not for workers.
    fn state(&self) -> State<'_> {
        let tables = self.locks.tables();
        State { tables, beside: lock(&self.beside) }
    }

    /// The tables and what is beside them, unless another thread has them.
    fn try_state(&self) -> Option<State<'_>> {
        let tables = self.locks.try_tables()?;
        Some(State { tables, beside: lock(&self.beside) })
    }

    /// The reply to a call, if the locks are free and the call is quick.
    fn try_now(&self, call: &Call, peer: &Peer, proof: Proof) -> Option<Vec<u8>> {
        if call.program != PROGRAM_NLM {
            return None;
        }
        let request = Request::parse(call).ok()?;
        let state = self.try_state()?;
        let now = self.clock.now();
        let quick = state.is_quick(now, peer, &request, proof);
        quick.then(|| self.serve(state, now, peer, &request, proof))
    }

    /// Carries out a call whose host is monitored, if it is to be, and has the calls made that it
    /// leads to. Gives the reply record.
    fn serve(
        &self,
        mut state: State<'_>,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        proof: Proof,
    ) -> Vec<u8> {
        let waiter = |waiting| NlmWaiter { waiting, inbox: Arc::clone(&self.inbox) };
        let waiter = request.waiting(peer).map(waiter).map(Waiter::Nlm);
        let served = state.serve(now, peer, request, proof, waiter);
        // Posted while nobody can grant the lock, so that a client hears first that it waits.
        if let Some(answer) = served.answer {
            self.inbox.post(Message::CallBack(answer));
        }
        drop(state);
        self.counters.served(request.procedure(), served.status);
        deliver(served.grants);
        served.reply
    }
}

/// A blocked lock of a client, and the way to the thread that calls the client back.
pub(crate) struct NlmWaiter {
    waiting: Waiting,
    inbox: Arc<Inbox<Message>>,
}

impl NlmWaiter {
    /// Has the client called: it has the lock of grant `id`.
    pub(crate) fn granted(self, id: GrantId, ask: &Ask) {
        if let Some(callback) = Callback::granted(id, ask, &self.waiting) {
            self.inbox.post(Message::CallBack(callback));
        }
    }
}
