//! The requests of one connection that wait for something: for their contract, a lock or the disk.
//!
//! One that waits for a second is told so by an interim response (MS-SMB2 §3.3.4.2), after which
//! its final response has the asynchronous form; and a client may cancel it. The asynchronous id of
//! a request is its message id, which no other has on its connection (MS-SMB2 §3.3.1.13).
//!
//! Not here: the wait.

use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeSet, HashMap};
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

/// A request that may come to wait.
pub(crate) struct Pending {
    state: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl Pending {
    /// A request that does not wait yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: AtomicU64::new(0), waker: Mutex::default() })
    }

    /// Is the final response to have the asynchronous form?
    pub(super) fn is_async(&self) -> bool {
        self.state.load(Ordering::Acquire) & INTERIM != 0
    }

    /// Gives the final response the asynchronous form; false if the request is cancelled.
    fn begin_async(&self) -> bool {
        let (before, after) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(0, INTERIM, before, after).is_ok()
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
    pub(super) sealed: Option<Arc<UserSession>>,
}

/// The requests of one connection that wait, by their message ids.
#[derive(Default)]
pub(super) struct PendingList {
    entries: HashMap<u64, Entry>,
    /// Requests without an interim response, in the order in which they began to wait.
    quiet: BTreeSet<(Mono, u64)>,
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
        match self.entries.entry(header.message_id) {
            // It waited at its gate, and now waits for something else.
            Occupied(mut entry) => entry.get_mut().parked = parked,
            Vacant(place) => {
                let pending = Arc::clone(pending);
                place.insert(Entry { since: now, header, sealed, pending, parked });
                self.quiet.insert((now, header.message_id));
            }
        }
    }

    /// The request with this message id is answered.
    pub(super) fn remove(&mut self, message_id: u64) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(Entry { since, .. }) = self.entries.remove(&message_id) {
            self.quiet.remove(&(since, message_id));
        }
    }

    /// Cancels the waits within operations, now and from now on.
    pub(super) fn drain(&mut self) {
        self.draining = true;
        let within = self.entries.values().filter(|entry| !entry.parked);
        within.for_each(|entry| entry.pending.cancel());
    }

    /// Time of the next interim response.
    pub(super) fn next(&self) -> Option<Mono> {
        self.quiet.first().map(|(since, _)| *since + INTERIM_AFTER)
    }

    /// The interim responses that are due.
    pub(super) fn due(&mut self, now: Mono) -> Vec<Interim> {
        let mut due = Vec::new();
        while let Some((since, message_id)) = self.quiet.first().copied()
            && since + INTERIM_AFTER <= now
        {
            self.quiet.pop_first();
            let Some(entry) = self.entries.get(&message_id) else { continue };
            // One that is cancelled is answered soon.
            if entry.pending.begin_async() {
                due.push(Interim { header: entry.header, sealed: entry.sealed.clone() });
            }
        }
        due
    }

    /// Cancels the request with this message id (MS-SMB2 §3.3.5.16). Gives one that waits at the
    /// gate of its volume: the caller answers it, and the request is dropped when it is released.
    pub(super) fn cancel(&mut self, message_id: u64) -> Option<Cancelled> {
        let entry = self.entries.get(&message_id)?;
        entry.pending.cancel();
        if !entry.parked {
            return None;
        }
        let (header, sealed) = (entry.header, entry.sealed.clone());
        let is_async = entry.pending.is_async();
        self.remove(message_id);
        Some(Cancelled { header, is_async, sealed })
    }
}

/// A request that is cancelled at the gate of its volume, to be answered at once.
pub(super) struct Cancelled {
    pub(super) header: Header,
    /// Its response has the asynchronous form.
    pub(super) is_async: bool,
    pub(super) sealed: Option<Arc<UserSession>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_smb::wire::{Command, HeaderFlags, Status, TreeOrAsync};

    fn header(message_id: u64) -> Header {
        Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command: Ok(Command::Lock),
            credits: 1,
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id,
            tree: TreeOrAsync::Tree(1),
            session_id: 1,
            signature: [0; 16],
        }
    }

    impl PendingList {
        /// A request that waits since so many seconds after the beginning.
        fn wait(&mut self, message_id: u64, parked: bool, seconds: u64) -> Arc<Pending> {
            let pending = Pending::new();
            self.add(header(message_id), None, &pending, parked, Mono::from_secs(seconds));
            pending
        }

        fn ids_due(&mut self, seconds: u64) -> Vec<u64> {
            let due = self.due(Mono::from_secs(seconds));
            due.iter().map(|interim| interim.header.message_id).collect()
        }
    }

    #[test]
    fn each_request_that_waits_for_a_second_is_told_so_once() {
        let mut list = PendingList::default();
        let waiting = [(5, 1), (3, 1), (9, 2), (4, 3)].map(|(id, at)| list.wait(id, false, at));
        assert_eq!(list.next(), Some(Mono::from_secs(2)));
        list.remove(3);
        assert!(list.ids_due(1).is_empty());
        assert_eq!(list.ids_due(3), [5, 9]);
        assert_eq!(list.next(), Some(Mono::from_secs(4)));
        assert_eq!(waiting.each_ref().map(|one| one.is_async()), [true, false, true, false]);
        assert_eq!(list.ids_due(9), [4]);
        for id in [5, 9, 4, 77] {
            list.remove(id);
        }
        assert!(list.entries.is_empty() && list.quiet.is_empty() && list.next().is_none());
    }

    #[test]
    fn a_cancelled_request_is_answered_by_whoever_has_it() {
        let mut list = PendingList::default();
        let [at_gate, within] = [true, false].map(|parked| list.wait(parked.into(), parked, 1));
        assert!(list.cancel(9).is_none(), "no such request");
        let cancelled = list.cancel(1).unwrap();
        assert!(cancelled.header.message_id == 1 && !cancelled.is_async && at_gate.is_cancelled());
        assert!(list.cancel(1).is_none(), "it is answered");
        assert!(list.cancel(0).is_none() && within.is_cancelled());
        assert!(list.ids_due(9).is_empty(), "the operation answers");
        assert!(!within.is_async());
    }

    #[test]
    fn a_request_that_waits_again_keeps_its_place() {
        let mut list = PendingList::default();
        let pending = list.wait(1, true, 1);
        list.add(header(1), None, &pending, false, Mono::from_secs(5));
        assert_eq!((list.ids_due(2), list.ids_due(9)), (vec![1], vec![]));
        assert!(list.cancel(1).is_none(), "it waits at its gate no more");
        let other = list.wait(2, true, 9);
        list.drain();
        assert!(!other.is_cancelled(), "the contract lets it go");
        assert!(list.wait(3, false, 9).is_cancelled());
    }
}
