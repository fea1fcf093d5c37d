//! Operations under way: a future is polled once in place, and only one that waits is kept.
//!
//! Each slot has its waker ready before a future needs it, so that an operation that ends on its
//! first poll (nearly all do) costs no waker of its own. A wake that comes for an earlier tenant
//! of a slot is only one poll too many.

use crate::clock::SystemClock;
use crate::inbox::Inbox;
use crate::sync::{Arc, AtomicU64, Ordering};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use weir_core::{Clock, Mono};

struct SlotWaker<M> {
    inbox: Arc<Inbox<M>>,
    slot: usize,
    message: fn(usize) -> M,
    clock: SystemClock,
    /// Time of the last wake.
    woken: AtomicU64,
}

impl<M: Send + 'static> Wake for SlotWaker<M> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(self.clock.now().0, Ordering::Relaxed);
        self.inbox.post((self.message)(self.slot));
    }
}

struct Slot<F, P, M> {
    waker: Waker,
    signal: Arc<SlotWaker<M>>,
    task: Option<(F, P)>,
}

/// Lets the other work of the thread have its turn.
pub(crate) async fn give_way() {
    let mut gave = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The operations of one thread that wait for something: futures `F`, each with its `P`. The
/// thread is told by messages of type `M`.
pub(crate) struct Tasks<F, P, M> {
    inbox: Arc<Inbox<M>>,
    clock: SystemClock,
    /// Message that tells which slot can make progress.
    message: fn(usize) -> M,
    slots: Vec<Slot<F, P, M>>,
    free: Vec<usize>,
}

impl<F: Future + Unpin, P, M: Send + 'static> Tasks<F, P, M> {
    /// An empty set; wakes go to `inbox` as `message`.
    pub(crate) fn new(inbox: Arc<Inbox<M>>, clock: SystemClock, message: fn(usize) -> M) -> Self {
        Self { inbox, clock, message, slots: Vec::new(), free: Vec::new() }
    }

    /// The number of waiting operations.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Polls `future` once. Its output with `meta` if it is done; otherwise both are kept, after
    /// `waits` had a look at `meta`.
    pub(crate) fn start(
        &mut self,
        mut future: F,
        mut meta: P,
        waits: impl FnOnce(&mut P),
    ) -> Option<(F::Output, P)> {
        let index = self.free_slot();
        let slot = self.slots.get_mut(index)?;
        match Pin::new(&mut future).poll(&mut Context::from_waker(&slot.waker)) {
            Poll::Ready(output) => {
                self.free.push(index);
                Some((output, meta))
            }
            Poll::Pending => {
                waits(&mut meta);
                slot.task = Some((future, meta));
                None
            }
        }
    }

    /// The `P` of the future that waits in `index`, if one does.
    pub(crate) fn meta(&self, index: usize) -> Option<&P> {
        let (_, meta) = self.slots.get(index)?.task.as_ref()?;
        Some(meta)
    }

    /// Time at which the future in `index` was last woken.
    pub(crate) fn woken(&self, index: usize) -> Option<Mono> {
        Some(Mono(self.slots.get(index)?.signal.woken.load(Ordering::Relaxed)))
    }

    /// Polls the future in `index` again, if one is there.
    pub(crate) fn wake(&mut self, index: usize) -> Option<(F::Output, P)> {
        let slot = self.slots.get_mut(index)?;
        let (future, _) = slot.task.as_mut()?;
        match Pin::new(future).poll(&mut Context::from_waker(&slot.waker)) {
            Poll::Ready(output) => {
                let (_, meta) = slot.task.take()?;
                self.free.push(index);
                Some((output, meta))
            }
            Poll::Pending => None,
        }
    }

    fn free_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.slots.len();
            let signal = Arc::new(SlotWaker {
                inbox: Arc::clone(&self.inbox),
                slot,
                message: self.message,
                clock: self.clock,
                woken: AtomicU64::new(0),
            });
            let waker = Waker::from(Arc::clone(&signal));
            self.slots.push(Slot { waker, signal, task: None });
            slot
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn keeps_what_waits_and_gives_it_back_when_woken() {
        let inbox = Inbox::new().unwrap();
        let mut tasks = Tasks::new(Arc::clone(&inbox), SystemClock::start(), |slot| slot);
        let open = Rc::new(Cell::new(false));
        let gate = Rc::clone(&open);
        let waits: Pin<Box<dyn Future<Output = u32>>> = Box::pin(poll_fn(move |cx| {
            if gate.get() {
                return Poll::Ready(7);
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        assert!(tasks.start(waits, "new", |meta| *meta = "meta").is_none());
        let at_once = Box::pin(std::future::ready(8));
        assert_eq!(tasks.start(at_once, "now", |_| panic!()), Some((8, "now")));
        assert_eq!(tasks.len(), 1);
        let mut messages = Vec::new();
        inbox.take(&mut messages);
        let Some(slot) = messages.pop() else { panic!("not woken") };
        assert_eq!(tasks.wake(slot), None);
        open.set(true);
        assert_eq!(tasks.wake(slot), Some((7, "meta")));
        assert_eq!(tasks.wake(slot), None);
        assert_eq!(tasks.len(), 0);
    }
}
