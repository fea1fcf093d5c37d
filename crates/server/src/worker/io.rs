//! Data operations under way on one worker, in generations: how a lock or a deny mode finds out
//! that every operation that began before it has ended.
//!
//! An operation that reads, writes or resizes a file checks locks and deny modes when it begins,
//! and holds an [`IoGuard`] while it waits for the disk. A [`Barrier`] ends the generation of each
//! worker and is passed once the guards of all generations before are dropped. So operations pay
//! one counted reference that no other thread touches, and only locks pay for the wait. Not here:
//! the decision what may be read or written, which is made from `weir_state`.

use super::Message;
use crate::engine::Workers;
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};
use std::cell::{OnceCell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// One generation of data operations on a worker. It lasts until its operations have ended and the
/// generation before it is gone.
#[derive(Default)]
pub(crate) struct Generation {
    end: OnceCell<End>,
}

/// The end of a generation, in which no operation begins any more.
struct End {
    /// The barrier that waits until the generation is gone.
    _token: Token,
    /// The generation after it, which lasts longer.
    next: Rc<Generation>,
}

/// A data operation under way, until this value is dropped.
#[derive(Clone)]
pub(crate) struct IoGuard {
    _generation: Rc<Generation>,
}

/// The present generation of a worker. Clones are of the same worker.
#[derive(Clone, Default)]
pub(crate) struct IoGenerations(Rc<RefCell<Rc<Generation>>>);

impl IoGenerations {
    /// Begins a data operation. It must check locks and deny modes after this.
    pub(crate) fn enter(&self) -> IoGuard {
        IoGuard { _generation: Rc::clone(&self.0.borrow()) }
    }

    /// Ends the present generation: `token` is dropped when the last operation has ended of it and
    /// of those before it.
    pub(super) fn end(&self, token: Token) {
        let next = Rc::<Generation>::default();
        let ended = self.0.replace(Rc::clone(&next));
        // The present generation has not ended before.
        let _once = ended.end.set(End { _token: token, next });
    }
}

impl Drop for Generation {
    /// Ends the generations that only this one kept: one after another, since there may be more of
    /// them than calls fit on the stack.
    fn drop(&mut self) {
        let mut end = self.end.take();
        while let Some(End { next, .. }) = end {
            end = Rc::into_inner(next).and_then(|mut last| last.end.take());
        }
    }
}

/// The share of one worker in a barrier, until this value is dropped.
pub(crate) struct Token(Arc<Shared>);

struct Shared {
    /// Tokens that are not dropped.
    left: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

/// The wait for all data operations, on all workers, that began before it.
pub(crate) struct Barrier(Arc<Shared>);

impl Barrier {
    /// Begins the wait. A lock or a deny mode must be in force before this is called.
    pub(crate) fn new(workers: &Workers) -> Self {
        let left = AtomicUsize::new(workers.count());
        let shared = Arc::new(Shared { left, waker: Mutex::default() });
        workers.post_all(|| Message::Barrier(Token(Arc::clone(&shared))));
        Self(shared)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(waker) = lock(&self.0.waker).take()
        {
            waker.wake();
        }
    }
}

impl Future for Barrier {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut waker = lock(&self.0.waker);
        if self.0.left.load(Ordering::Acquire) == 0 {
            return Poll::Ready(());
        }
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::inbox::Inbox;

    /// The tokens that a barrier sent to one worker.
    fn tokens(inbox: &Inbox<Message>) -> Vec<Token> {
        let mut messages = Vec::new();
        inbox.take(&mut messages);
        let token = |message| match message {
            Message::Barrier(token) => token,
            _ => panic!("not the message of a barrier"),
        };
        messages.into_iter().map(token).collect()
    }

    fn passed(barrier: &mut Barrier) -> bool {
        Pin::new(barrier).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_barrier_waits_for_operations_that_began_before_it_and_for_no_others() {
        let inboxes = [Inbox::new().unwrap(), Inbox::new().unwrap()];
        let workers = Workers::new(&inboxes, SystemClock::start());
        let of_workers = [IoGenerations::default(), IoGenerations::default()];
        let before = of_workers[0].enter();
        let mut barrier = Barrier::new(&workers);
        assert!(!passed(&mut barrier), "no worker has taken note of it");
        for (inbox, worker) in inboxes.iter().zip(&of_workers) {
            tokens(inbox).into_iter().for_each(|token| worker.end(token));
        }
        let after = of_workers.each_ref().map(IoGenerations::enter);
        assert!(!passed(&mut barrier), "an operation from before is under way");
        let again = before.clone();
        drop(before);
        assert!(!passed(&mut barrier), "a part of it goes on");
        drop(again);
        assert!(passed(&mut barrier));
        drop(after);
    }

    #[test]
    fn a_later_barrier_waits_for_the_operations_of_all_generations() {
        let inboxes = [Inbox::new().unwrap()];
        let workers = Workers::new(&inboxes, SystemClock::start());
        let worker = IoGenerations::default();
        let oldest = worker.enter();
        let mut first = Barrier::new(&workers);
        tokens(&inboxes[0]).into_iter().for_each(|token| worker.end(token));
        let mut second = Barrier::new(&workers);
        tokens(&inboxes[0]).into_iter().for_each(|token| worker.end(token));
        assert!(!passed(&mut first));
        assert!(!passed(&mut second), "the oldest operation is under way");
        drop(oldest);
        assert!(passed(&mut first) && passed(&mut second));
    }

    #[test]
    fn each_barrier_costs_one_token_however_many_wait_and_they_end_without_deep_calls() {
        const BARRIERS: usize = 200_000;
        let workers = Workers::new(&[Inbox::new().unwrap()], SystemClock::start());
        let worker = IoGenerations::default();
        let first = Barrier::new(&workers);
        let slow = worker.enter();
        for _ in 0..BARRIERS {
            worker.end(Token(Arc::clone(&first.0)));
            drop(worker.enter());
        }
        let mut tokens = 0;
        let mut generation = Rc::clone(&slow._generation);
        while let Some(End { next, .. }) = generation.end.get() {
            tokens += 1;
            generation = Rc::clone(next);
        }
        assert_eq!(tokens, BARRIERS);
        drop(generation);
        first.0.left.store(BARRIERS, Ordering::Release);
        drop(slow);
        assert_eq!(first.0.left.load(Ordering::Acquire), 0, "all tokens are gone");
    }
}
