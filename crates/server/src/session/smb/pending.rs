//! The requests of one connection that wait for something: for their contract, a lock or the disk.
//!
//! One that waits for a second is told so by an interim response (MS-SMB2 §3.3.4.2), after which
//! its final response has the asynchronous form; and a client may cancel it. Not here: the wait.

use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;
use weir_core::Mono;
use weir_smb::wire::Header;

use super::user_session::UserSession;

/// Time after which a request that waits gets its interim response.
const INTERIM_AFTER: Duration = Duration::from_secs(1);

/// An interim response is sent, and the final one has the asynchronous form.
const INTERIM: u64 = 1;
/// The client has cancelled the request.
const CANCELLED: u64 = 2;
/// The request is answered.
const ANSWERED: u64 = 4;

/// A request that may come to wait.
pub(crate) struct Pending {
    state: AtomicU64,
    async_id: u64,
    waker: Mutex<Option<Waker>>,
}

impl Pending {
    /// A request whose interim response, if it gets one, carries `async_id`.
    pub(super) fn new(async_id: u64) -> Arc<Self> {
        Arc::new(Self { state: AtomicU64::new(0), async_id, waker: Mutex::default() })
    }

    /// The id of the final response, if it is to have the asynchronous form.
    pub(super) fn answer(&self) -> Option<u64> {
        let before = self.state.fetch_or(ANSWERED, Ordering::AcqRel);
        (before & INTERIM != 0).then_some(self.async_id)
    }

    /// Has the client cancelled it?
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) & CANCELLED != 0
    }

    /// Is ready once the client cancels the request.
    pub(super) async fn cancelled(&self) {
        poll_fn(|cx| {
            *lock(&self.waker) = Some(cx.waker().clone());
            if self.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn cancel(&self) {
        self.state.fetch_or(CANCELLED, Ordering::AcqRel);
        if let Some(waker) = lock(&self.waker).take() {
            waker.wake();
        }
    }

    fn is_answered(&self) -> bool {
        self.state.load(Ordering::Acquire) & ANSWERED != 0
    }
}

/// A request in the list of its connection.
struct Entry {
    since: Mono,
    header: Header,
    /// The session whose keys seal its responses, if its request was sealed.
    sealed: Option<Arc<UserSession>>,
    pending: Arc<Pending>,
    /// It waits at the gate of its volume, as data.
    parked: bool,
}

/// An interim response to send.
pub(super) struct Interim {
    pub(super) header: Header,
    pub(super) async_id: u64,
    pub(super) sealed: Option<Arc<UserSession>>,
}

/// The requests of one connection that wait, in the order in which they began to.
#[derive(Default)]
pub(super) struct PendingList {
    entries: Vec<Entry>,
    /// The server stops: no request waits for other clients any more.
    draining: bool,
}

impl PendingList {
    /// A request waits since `now`; `parked` at the gate of its volume, or within its operation.
    pub(super) fn add(
        &mut self,
        header: Header,
        sealed: Option<Arc<UserSession>>,
        pending: &Arc<Pending>,
        parked: bool,
        now: Mono,
    ) {
        if self.draining && !parked {
            pending.cancel();
        }
        self.entries.retain(|entry| !entry.pending.is_answered());
        match self.entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.pending, pending)) {
            // It waited at its gate, and now waits for something else.
            Some(entry) => entry.parked = parked,
            None => {
                let pending = Arc::clone(pending);
                self.entries.push(Entry { since: now, header, sealed, pending, parked });
            }
        }
    }

    /// Cancels the waits within operations, now and from now on.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        let within = self.entries.iter().filter(|entry| !entry.parked);
        within.for_each(|entry| entry.pending.cancel());
    }

    /// Time of the next interim response.
    pub(super) fn next(&self) -> Option<Mono> {
        let quiet = |entry: &&Entry| entry.pending.state.load(Ordering::Acquire) == 0;
        self.entries.iter().find(quiet).map(|entry| entry.since + INTERIM_AFTER)
    }

    /// The interim responses that are due.
    pub(super) fn due(&mut self, now: Mono) -> Vec<Interim> {
        self.entries.retain(|entry| !entry.pending.is_answered());
        let mut due = Vec::new();
        for entry in self.entries.iter_mut().take_while(|entry| entry.since + INTERIM_AFTER <= now)
        {
            if entry.pending.state.fetch_or(INTERIM, Ordering::AcqRel) == 0 {
                let (header, sealed) = (entry.header, entry.sealed.clone());
                due.push(Interim { header, async_id: entry.pending.async_id, sealed });
            }
        }
        due
    }

    /// Cancels the request with the id `async_id`, or the message id `message_id` without one
    /// (MS-SMB2 §3.3.5.16). Gives the header of one that waits at the gate of its volume, with the
    /// id of its response: the caller answers it, and the request is dropped when it is released.
    pub(super) fn cancel(&mut self, async_id: Option<u64>, message_id: u64) -> Option<Cancelled> {
        let meant = |entry: &&mut Entry| match async_id {
            Some(id) => entry.pending.async_id == id,
            None => entry.header.message_id == message_id,
        };
        let entry = self.entries.iter_mut().find(meant)?;
        if entry.pending.is_answered() {
            return None;
        }
        entry.pending.cancel();
        if !entry.parked {
            return None;
        }
        let async_id = entry.pending.answer();
        Some(Cancelled { header: entry.header, async_id, sealed: entry.sealed.clone() })
    }
}

/// A request that is cancelled at the gate of its volume, to be answered at once.
pub(super) struct Cancelled {
    pub(super) header: Header,
    pub(super) async_id: Option<u64>,
    pub(super) sealed: Option<Arc<UserSession>>,
}
