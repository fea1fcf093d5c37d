//! The way to the locks from any thread: an async door that is ready at once for nearly all calls.

use super::Proof;
use super::calls::{Calls, Line};
use super::state::LockState;
use crate::clock::SystemClock;
use crate::inbox::Inbox;
use crate::plane::LockTotals;
use crate::session::rpc::nlm::{Hosts, Life, LockCounters};
use crate::sync::{Arc, Mutex, lock, mpsc, oneshot, try_lock};
use std::future::poll_fn;
use std::net::IpAddr;
use std::task::Poll;
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError};
use weir_core::{Clock, VolumeId};
use weir_nfs::PROGRAM_NLM;
use weir_nfs::nlm::{Callback, Host, Peer, Request};
use weir_nfs::rpc::{AcceptError, Call, reply};
use weir_state::{File, Limits};
#[cfg(test)]
use {
    super::{Waiter, callbacks},
    weir_state::{Ask, Client, Grant, GrantId, Locked, Refused, Tables},
};

/// A call that the lock thread carries out.
pub(crate) struct Asked {
    pub(crate) call: Call,
    pub(crate) peer: Peer,
    pub(crate) proof: Proof,
    pub(crate) reply: oneshot::Sender<Vec<u8>>,
}

/// A message to the lock thread. There are at most [`LOCK_CALLS_MAX`](crate::limits) calls, a
/// callback for each request that waited, and a wake for each call that the thread awaits itself.
pub(crate) enum Message {
    /// Carry out this call.
    Call(Box<Asked>),
    /// Call these clients.
    CallBack(Vec<Callback>),
    /// The call in this slot can make progress.
    Wake(usize),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
}

/// The locks as threads see them.
pub(crate) struct LockDoor {
    pub(crate) clock: SystemClock,
    pub(crate) state: Mutex<LockState>,
    calls: Mutex<Calls>,
    pub(crate) counters: LockCounters,
    /// The lock thread's messages.
    pub(crate) inbox: Arc<Inbox<Message>>,
}

/// A call under way, which has its place among the others until this value is dropped.
pub(crate) struct LockCall {
    door: Arc<LockDoor>,
    address: IpAddr,
    line: Option<Line>,
    number: u64,
}

impl LockDoor {
    /// Begins a life of the lock manager, in which no volume is open yet.
    ///
    /// # Errors
    /// The catalogue's errors.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        clock: SystemClock,
        inbox: Arc<Inbox<Message>>,
    ) -> Result<(Arc<Self>, Life), CatalogError> {
        let life =
            Life { hosts: Hosts::load(Arc::clone(catalog))?, state: catalog.next_nsm_state()? };
        let door = Self {
            clock,
            state: Mutex::new(LockState::new(Limits::SERVER)),
            calls: Mutex::default(),
            counters: LockCounters::default(),
            inbox,
        };
        Ok((Arc::new(door), life))
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
        lock(&self.state).tables.begin_grace(until, volumes, clients);
        if !known.is_empty() {
            tracing::info!(
                hosts = known.len(),
                seconds = grace.as_secs(),
                "grace period started: locks held before the restart can be reclaimed; new locks are not granted"
            );
        }
    }

    /// Begins a call from `address`, about `file` if it is about one, after the calls from there
    /// about the same file that came before. `None` if too many calls are under way.
    pub(crate) fn begin(self: &Arc<Self>, address: IpAddr, file: Option<File>) -> Option<LockCall> {
        let line = file.map(|file| (address, file));
        let number = lock(&self.calls).begin(address, line)?;
        Some(LockCall { door: Arc::clone(self), address, line, number })
    }

    /// A volume is served from now on.
    pub(crate) fn volume_opened(&self, volume: VolumeId) {
        lock(&self.state).tables.open(volume);
    }

    /// A volume is gone, and all locks in it.
    pub(crate) fn volume_gone(&self, volume: VolumeId) {
        let mut state = lock(&self.state);
        state.tables.close(volume);
        state.settle();
    }

    /// Has the lock thread drop `absent`, as a sign of life.
    pub(crate) fn roll_call(&self, absent: mpsc::Sender<()>) {
        self.inbox.post(Message::RollCall(absent));
    }

    /// Gauges and counters for the metrics.
    pub(crate) fn totals(&self) -> LockTotals {
        let state = lock(&self.state);
        let used = state.tables.used();
        LockTotals {
            served: true,
            held: used.locks as u64,
            waiting: used.waiters as u64,
            hosts: state.monitored.len() as u64,
            grace: state.tables.grace_until(self.clock.now()).is_some(),
            ..self.counters.read()
        }
    }

    /// The reply to a call, if the state is free and the call is quick.
    fn try_now(&self, call: &Call, peer: &Peer, proof: Proof) -> Option<Vec<u8>> {
        if call.program != PROGRAM_NLM {
            return None;
        }
        let request = Request::parse(call).ok()?;
        let mut state = try_lock(&self.state)?;
        let now = self.clock.now();
        if !state.is_quick(now, peer, &request, proof) {
            return None;
        }
        let (reply, calls) = state.serve(now, peer, &request, proof, call.xid, &self.counters);
        drop(state);
        if !calls.is_empty() {
            self.inbox.post(Message::CallBack(calls));
        }
        Some(reply)
    }
}

/// The locks for a protocol whose callers are proved by their open files.
#[cfg(test)]
impl LockDoor {
    /// Takes what is asked for, or waits for it.
    pub(crate) fn lock(&self, ask: &Ask, waiter: Waiter) -> Result<Locked, Refused> {
        self.change(|tables, grants| {
            tables.lock(self.clock.now(), ask, false, Some(waiter), grants)
        })
    }

    /// Gives up what is held of a range.
    pub(crate) fn unlock(&self, ask: &Ask) {
        let unlocked =
            self.change(|tables, grants| tables.unlock(&ask.file, &ask.owner, ask.range, grants));
        assert!(unlocked.is_ok());
    }

    /// The client has heard of a grant.
    pub(crate) fn taken(&self, grant: GrantId) {
        lock(&self.state).tables.taken(grant);
    }

    /// Ends everything that a client holds or waits for.
    pub(crate) fn release(&self, client: &Client) {
        self.change(|tables, grants| tables.release_client(client, grants));
    }

    fn change<R>(
        &self,
        change: impl FnOnce(&mut Tables<Waiter>, &mut Vec<Grant<Waiter>>) -> R,
    ) -> R {
        let mut grants = Vec::new();
        let done = change(&mut lock(&self.state).tables, &mut grants);
        let calls = callbacks(grants);
        if !calls.is_empty() {
            self.inbox.post(Message::CallBack(calls));
        }
        done
    }
}

impl LockCall {
    /// Carries out `call` when its turn comes, and gives the reply record.
    pub(crate) async fn carry_out(self, call: Call, peer: Peer, proof: Proof) -> Vec<u8> {
        self.turn().await;
        if let Some(reply) = self.door.try_now(&call, &peer, proof) {
            return reply;
        }
        let (xid, (sender, receiver)) = (call.xid, oneshot::channel());
        let asked = Asked { call, peer, proof, reply: sender };
        self.door.inbox.post(Message::Call(Box::new(asked)));
        let stopped = |_| reply::error(Vec::new(), xid, AcceptError::SystemError);
        receiver.await.unwrap_or_else(stopped)
    }

    /// Waits until all calls in front are done.
    async fn turn(&self) {
        let Some(line) = &self.line else { return };
        poll_fn(|cx| match lock(&self.door.calls).is_first(line, self.number, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl Drop for LockCall {
    fn drop(&mut self) {
        let next = lock(&self.door.calls).end(self.address, self.line.as_ref(), self.number);
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(test)]
mod tests;
