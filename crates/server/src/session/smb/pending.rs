//! The requests of one connection that wait for something: for their contract, a lock or the disk.
//! The only request of a frame and an element of a compound are treated alike.
//!
//! A request that waits for a second gets an interim response (MS-SMB2 §3.3.4.2), and its final
//! response has the asynchronous form. A client may cancel a request that waits. The asynchronous
//! id of a request is its message id, which is unique on its connection (MS-SMB2 §3.3.1.13).
//!
//! Not here: the wait.

use super::user_session::UserSession;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, lock};
use crate::worker::{AtGate, Cancellable};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{BTreeSet, HashMap};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;
use weir_core::Mono;
use weir_smb::wire::Header;

/// Time after which a request that waits gets its interim response.
const INTERIM_AFTER: Duration = Duration::from_secs(1);

/// An interim response is sent, and the final one has the asynchronous form.
const INTERIM: u64 = 1;
/// The client has cancelled the request.
const CANCELLED: u64 = 2;
/// The server stops: the request does not wait for other clients any more.
const STOPPED: u64 = 4;

/// A request that may come to wait.
pub(crate) struct Pending {
    state: AtomicU64,
    waker: Mutex<Option<Waker>>,
    /// The place at its gate of the only request of a frame, if it waited there.
    at_gate: Mutex<Option<AtGate>>,
}

impl Cancellable for Pending {
    fn parked(&self, at: AtGate) {
        *lock(&self.at_gate) = Some(at);
    }
}

impl Pending {
    /// A request that does not wait yet.
    pub(super) fn new() -> Arc<Self> {
        let (waker, at_gate) = (Mutex::default(), Mutex::default());
        Arc::new(Self { state: AtomicU64::new(0), waker, at_gate })
    }

    /// Is the final response to have the asynchronous form?
    pub(super) fn is_async(&self) -> bool {
        self.has(INTERIM)
    }

    /// Has the client cancelled it?
    pub(super) fn is_cancelled(&self) -> bool {
        self.has(CANCELLED)
    }

    /// The output of `wait`, a wait for the contract; `None` once the client cancels the request.
    pub(super) async fn unless_cancelled<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        self.unless(CANCELLED, wait).await
    }

    /// The output of `wait`, a wait for other clients; `None` once the client cancels the request,
    /// or the server stops.
    pub(super) async fn unless_ended<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        self.unless(CANCELLED | STOPPED, wait).await
    }

    async fn unless<T>(&self, signals: u64, wait: impl Future<Output = T>) -> Option<T> {
        let mut wait = pin!(wait);
        poll_fn(|cx| {
            if let Poll::Ready(output) = wait.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            *lock(&self.waker) = Some(cx.waker().clone());
            if self.has(signals) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    fn has(&self, signals: u64) -> bool {
        self.state.load(Ordering::Acquire) & signals != 0
    }

    /// Gives the final response the asynchronous form; false if the request is cancelled.
    fn begin_async(&self) -> bool {
        let (before, after) = (Ordering::AcqRel, Ordering::Acquire);
        let begin = |state| (state & CANCELLED == 0).then_some(state | INTERIM);
        self.state.fetch_update(before, after, begin).is_ok()
    }

    fn signal(&self, signal: u64) {
        self.state.fetch_or(signal, Ordering::AcqRel);
        if let Some(waker) = lock(&self.waker).take() {
            waker.wake();
        }
    }
}

/// A request that begins to wait.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) header: &'a Header,
    /// The session whose keys seal its responses, if its request was sealed.
    pub(super) sealed: Option<&'a Arc<UserSession>>,
    pub(super) pending: &'a Arc<Pending>,
}

/// A request in the list of its connection.
struct Entry {
    since: Mono,
    header: Header,
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

/// A request that is cancelled at the gate of its volume, to be answered at once.
pub(super) struct Cancelled {
    pub(super) header: Header,
    /// Its response has the asynchronous form.
    pub(super) is_async: bool,
    pub(super) sealed: Option<Arc<UserSession>>,
    /// Its place at the gate.
    pub(super) at_gate: Option<AtGate>,
}

/// The requests of one connection that wait.
#[derive(Default)]
pub(super) struct PendingList(Mutex<State>);

#[derive(Default)]
struct State {
    /// The requests by their message ids.
    entries: HashMap<u64, Entry>,
    /// Requests without an interim response, in the order in which they began to wait.
    quiet: BTreeSet<(Mono, u64)>,
    /// The server stops: no request waits for other clients any more.
    draining: bool,
}

impl State {
    fn remove(&mut self, message_id: u64) {
        if self.entries.is_empty() {
            return;
        }
        if let Some(Entry { since, .. }) = self.entries.remove(&message_id) {
            self.quiet.remove(&(since, message_id));
        }
    }
}

impl PendingList {
    /// A request waits since `now` at the gate of its volume, as data.
    pub(super) fn add_parked(&self, waiting: Waiting<'_>, now: Mono) {
        self.add(waiting, true, now);
    }

    /// A request waits since `now` within its operation.
    pub(super) fn add_begun(&self, waiting: Waiting<'_>, now: Mono) {
        self.add(waiting, false, now);
    }

    fn add(&self, waiting: Waiting<'_>, parked: bool, now: Mono) {
        let Waiting { header, sealed, pending } = waiting;
        let State { entries, quiet, draining } = &mut *lock(&self.0);
        if *draining && !parked {
            pending.signal(STOPPED);
        }
        match entries.entry(header.message_id) {
            // It waited at its gate, and now waits for something else.
            Occupied(mut entry) => entry.get_mut().parked = parked,
            Vacant(place) => {
                let (header, pending) = (*header, Arc::clone(pending));
                let sealed = sealed.cloned();
                place.insert(Entry { since: now, header, sealed, pending, parked });
                quiet.insert((now, header.message_id));
            }
        }
    }

    /// The request with this message id is answered.
    pub(super) fn remove(&self, message_id: u64) {
        lock(&self.0).remove(message_id);
    }

    /// The output of `work`, which carries out an element of a frame. The element is in the list
    /// from its first wait on, at the time that `now` gives, until the work is done or dropped.
    pub(super) async fn during<T>(
        &self,
        element: Waiting<'_>,
        now: impl FnOnce() -> Mono,
        work: impl Future<Output = T>,
    ) -> T {
        let message_id = element.header.message_id;
        let (mut work, mut idle, mut listed) = (pin!(work), Some((element, now)), None);
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            if polled.is_pending()
                && let Some((element, now)) = idle.take()
            {
                self.add_begun(element, now());
                listed = Some(Listed { list: self, message_id });
            }
            polled
        })
        .await
    }

    /// Cancels the waits for other clients, now and from now on.
    pub(super) fn drain(&self) {
        let mut state = lock(&self.0);
        state.draining = true;
        let begun = state.entries.values().filter(|entry| !entry.parked);
        begun.for_each(|entry| entry.pending.signal(STOPPED));
    }

    /// Time of the next interim response.
    pub(super) fn next(&self) -> Option<Mono> {
        lock(&self.0).quiet.first().map(|(since, _)| *since + INTERIM_AFTER)
    }

    /// The interim responses that are due.
    pub(super) fn due(&self, now: Mono) -> Vec<Interim> {
        let State { entries, quiet, .. } = &mut *lock(&self.0);
        let mut due = Vec::new();
        while let Some((since, message_id)) = quiet.first().copied()
            && since + INTERIM_AFTER <= now
        {
            quiet.pop_first();
            let Some(entry) = entries.get(&message_id) else { continue };
            // One that is cancelled is answered soon.
            if entry.pending.begin_async() {
                due.push(Interim { header: entry.header, sealed: entry.sealed.clone() });
            }
        }
        due
    }

    /// Cancels the request with this message id (MS-SMB2 §3.3.5.16). Gives one that waits at the
    /// gate of its volume as data: the caller answers it, and takes it out of the gate. Any other
    /// request is answered by its operation, or by its frame.
    pub(super) fn cancel(&self, message_id: u64) -> Option<Cancelled> {
        let mut state = lock(&self.0);
        let entry = state.entries.get(&message_id)?;
        entry.pending.signal(CANCELLED);
        if !entry.parked {
            return None;
        }
        let (header, sealed) = (entry.header, entry.sealed.clone());
        let (is_async, at_gate) = (entry.pending.is_async(), lock(&entry.pending.at_gate).take());
        state.remove(message_id);
        Some(Cancelled { header, is_async, sealed, at_gate })
    }
}

/// The place of an element in the list of its connection.
struct Listed<'a> {
    list: &'a PendingList,
    message_id: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.list.remove(self.message_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::task::Context;
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
        fn wait(&self, message_id: u64, parked: bool, seconds: u64) -> Arc<Pending> {
            let pending = Pending::new();
            self.wait_again(message_id, &pending, parked, seconds);
            pending
        }

        fn wait_again(&self, message_id: u64, pending: &Arc<Pending>, parked: bool, seconds: u64) {
            let waiting = Waiting { header: &header(message_id), sealed: None, pending };
            match parked {
                true => self.add_parked(waiting, Mono::from_secs(seconds)),
                false => self.add_begun(waiting, Mono::from_secs(seconds)),
            }
        }

        fn is_empty(&self) -> bool {
            let state = lock(&self.0);
            state.entries.is_empty() && state.quiet.is_empty()
        }

        fn ids_due(&self, seconds: u64) -> Vec<u64> {
            let due = self.due(Mono::from_secs(seconds));
            due.iter().map(|interim| interim.header.message_id).collect()
        }
    }

    #[test]
    fn each_request_that_waits_for_a_second_is_told_so_once() {
        let list = PendingList::default();
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
        assert!(list.is_empty() && list.next().is_none());
    }

    #[test]
    fn a_cancelled_request_is_answered_by_whoever_has_it() {
        let list = PendingList::default();
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
        let list = PendingList::default();
        let pending = list.wait(1, true, 1);
        list.wait_again(1, &pending, false, 5);
        assert_eq!((list.ids_due(2), list.ids_due(9)), (vec![1], vec![]));
        assert!(list.cancel(1).is_none(), "it waits at its gate no more");
    }

    /// Polls once a wait that does not end by itself; true if it ended.
    fn ends(wait: impl Future<Output = Option<()>>) -> bool {
        pin!(wait).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(None)
    }

    #[test]
    fn a_stop_ends_waits_for_other_clients_and_a_cancellation_ends_every_wait() {
        let list = PendingList::default();
        let [parked, begun] = [true, false].map(|parked| list.wait(parked.into(), parked, 1));
        let for_contract = |request: &Pending| ends(request.unless_cancelled(pending()));
        let for_others = |request: &Pending| ends(request.unless_ended(pending()));
        assert!(!for_contract(&begun) && !for_others(&begun));
        list.drain();
        let late = list.wait(3, false, 9);
        assert!(!for_others(&parked) && for_others(&begun) && for_others(&late));
        assert!(!for_contract(&begun) && !for_contract(&late), "the contract ends these waits");
        assert_eq!(list.ids_due(9), [0, 1], "they wait on");
        assert!(list.cancel(0).is_none() && list.cancel(3).is_none());
        assert!(for_contract(&begun) && for_contract(&late));
    }

    #[test]
    fn an_element_is_listed_from_its_first_wait_to_its_end() {
        let (list, request) = (PendingList::default(), Pending::new());
        let (header, mut cx) = (header(7), Context::from_waker(Waker::noop()));
        let element = || Waiting { header: &header, sealed: None, pending: &request };
        let now = || Mono::from_secs(1);
        let at_once = pin!(list.during(element(), || panic!("no wait"), ready(5)));
        assert_eq!(at_once.poll(&mut cx), Poll::Ready(5));
        {
            let mut given_up = pin!(list.during(element(), now, pending::<()>()));
            assert!(list.is_empty(), "it has not begun");
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
            assert_eq!(list.next(), Some(Mono::from_secs(2)));
        }
        assert!(list.is_empty());
        let mut done = pin!(list.during(element(), now, request.unless_cancelled(pending::<()>())));
        assert!(done.as_mut().poll(&mut cx).is_pending());
        assert_eq!(list.ids_due(2), [7]);
        assert!(list.cancel(7).is_none(), "its frame answers it");
        assert_eq!(done.as_mut().poll(&mut cx), Poll::Ready(None));
        assert!(list.is_empty() && request.is_async());
    }
}
