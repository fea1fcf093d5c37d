//! Threads that may block, shared by all volumes.
//!
//! Each volume has a *lane*: at most so many of its jobs run at once, so that one slow volume
//! can't take every thread, and at most so many wait. When a lane is full, the submitter's future
//! waits for room, first come first served; nothing is refused. Lanes with work take turns.
//! A job that was queued is carried out even if its future is dropped.

use crate::pace::Syncs;
use crate::sync::{Arc, Condvar, Mutex, Weak, promise, spawn, wait};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_core::{FsError, FsResult};

type Job = Box<dyn FnOnce() + Send>;

/// Fewest threads of a pool: enough for two lanes that are full of blocked jobs.
const THREADS_MIN: usize = 16;
/// Most threads of a pool.
const THREADS_MAX: usize = 1024;

/// Blocking threads. They end once the last handle is dropped and the queues are empty.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    file_systems: Mutex<HashMap<u64, Weak<Syncs>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lanes: HashMap<u64, LaneState>,
    next_lane: u64,
    /// Lanes that have a job which may start now, each at most once.
    ready: VecDeque<u64>,
    stopping: bool,
}

#[derive(Default)]
struct LaneState {
    bounds: LaneBounds,
    queue: VecDeque<Job>,
    running: usize,
    in_ready: bool,
    /// Room in the queue given to submitters that were woken and have not come yet.
    granted: usize,
    waiting: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

/// How much one lane may have running and queued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneBounds {
    pub(crate) running_max: usize,
    pub(crate) queued_max: usize,
}

impl Pool {
    /// Starts a pool of `threads` threads, at least 16 and at most 1,024.
    ///
    /// # Errors
    /// If the first thread can't be started; with fewer than asked for it works on.
    pub fn new(threads: usize) -> std::io::Result<Arc<Self>> {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new() });
        for number in 0..threads.clamp(THREADS_MIN, THREADS_MAX) {
            let shared = Arc::clone(&shared);
            let started = spawn(format!("weir-disk-{number}"), move || shared.serve());
            match started {
                Err(error) if number == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, threads = number, "fewer disk threads than asked for");
                    break;
                }
                Ok(()) => {}
            }
        }
        Ok(Arc::new(Self { shared, file_systems: Mutex::default() }))
    }

    /// A new lane.
    pub(crate) fn lane(self: &Arc<Self>, bounds: LaneBounds) -> Lane {
        let mut state = self.shared.state.lock();
        let id = state.next_lane;
        state.next_lane += 1;
        state.lanes.insert(id, LaneState { bounds, ..LaneState::default() });
        Lane { pool: Arc::clone(self), id }
    }

    /// The count of syncs on the file system with device number `device`.
    pub(crate) fn syncs_on(&self, device: u64) -> Arc<Syncs> {
        let mut known = self.file_systems.lock();
        known.retain(|_, syncs| syncs.strong_count() > 0);
        if let Some(syncs) = known.get(&device).and_then(Weak::upgrade) {
            return syncs;
        }
        let syncs = Arc::new(Syncs::default());
        known.insert(device, Arc::downgrade(&syncs));
        syncs
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            let Some(id) = state.ready.pop_front() else {
                if state.stopping {
                    return;
                }
                state = wait(&self.work, state);
                continue;
            };
            let Some((job, woken)) = state.start(id) else { continue };
            let more = !state.ready.is_empty();
            drop(state);
            if more {
                self.work.notify_one();
            }
            if let Some(waker) = woken {
                waker.wake();
            }
            // A panicking job breaks its promise, which its future reports as an error; the
            // thread goes on.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a disk job panicked");
            }
            state = self.state.lock();
            state.finish(id);
        }
    }
}

impl State {
    /// Takes a job of lane `id` out to run it, and the waker of whoever may queue in its place.
    fn start(&mut self, id: u64) -> Option<(Job, Option<Waker>)> {
        let lane = self.lanes.get_mut(&id)?;
        lane.in_ready = false;
        let job = lane.queue.pop_front()?;
        lane.running += 1;
        let woken = lane.grant();
        self.make_ready(id);
        Some((job, woken))
    }

    fn finish(&mut self, id: u64) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.running -= 1;
            self.make_ready(id);
        }
    }

    fn make_ready(&mut self, id: u64) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let startable = !lane.queue.is_empty() && lane.running < lane.bounds.running_max;
        if startable && !lane.in_ready {
            lane.in_ready = true;
            self.ready.push_back(id);
        }
    }
}

impl LaneState {
    fn has_room(&self) -> bool {
        self.queue.len() + self.granted < self.bounds.queued_max
    }

    /// Gives room, if there is any, to the submitter that has waited longest.
    fn grant(&mut self) -> Option<Waker> {
        if !self.has_room() {
            return None;
        }
        let (_, waker) = self.waiting.pop_front()?;
        self.granted += 1;
        Some(waker)
    }
}

impl std::fmt::Debug for LaneState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} running, {} queued", self.running, self.queue.len())
    }
}

/// One volume's share of a [`Pool`].
#[derive(Debug)]
pub(crate) struct Lane {
    pool: Arc<Pool>,
    id: u64,
}

impl Lane {
    /// Runs `work` on a thread of the pool once the lane has room.
    ///
    /// # Errors
    /// Those of `work`; `Io` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let (promise, answer) = promise();
        let job: Job = Box::new(move || promise.give(work()));
        Enqueue { lane: self, job: Some(job), ticket: None }.await;
        answer.await.unwrap_or(Err(FsError::Io))
    }

    /// Queues `work` whether there is room or not: for work that is bounded by other means.
    pub(crate) fn run_bounded_elsewhere(&self, work: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.shared.state.lock();
        if let Some(lane) = state.lanes.get_mut(&self.id) {
            lane.queue.push_back(Box::new(work));
        }
        state.make_ready(self.id);
        drop(state);
        self.pool.shared.work.notify_one();
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // Jobs hold the volume that owns the lane, so none can be queued or running here.
        self.pool.shared.state.lock().lanes.remove(&self.id);
    }
}

/// Waits for room in a lane and queues one job there.
struct Enqueue<'a> {
    lane: &'a Lane,
    job: Option<Job>,
    /// Held while waiting, and after having been woken until the room given is used.
    ticket: Option<u64>,
}

impl Future for Enqueue<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = &self.lane.pool.shared;
        let id = self.lane.id;
        let mut state = shared.state.lock();
        let Some(lane) = state.lanes.get_mut(&id) else { return Poll::Ready(()) };
        match self.ticket {
            None if lane.has_room() => {}
            None => {
                let ticket = lane.next_ticket;
                lane.next_ticket += 1;
                lane.waiting.push_back((ticket, cx.waker().clone()));
                drop(state);
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
            Some(ticket) => {
                if let Some((_, waker)) = lane.waiting.iter_mut().find(|(t, _)| *t == ticket) {
                    waker.clone_from(cx.waker());
                    return Poll::Pending;
                }
                lane.granted -= 1;
            }
        }
        let (lane_ref, job) = (self.lane, {
            self.ticket = None;
            self.job.take()
        });
        if let (Some(lane), Some(job)) = (state.lanes.get_mut(&id), job) {
            lane.queue.push_back(job);
        }
        state.make_ready(id);
        drop(state);
        lane_ref.pool.shared.work.notify_one();
        Poll::Ready(())
    }
}

impl Drop for Enqueue<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.lane.pool.shared.state.lock();
        let Some(lane) = state.lanes.get_mut(&self.lane.id) else { return };
        let before = lane.waiting.len();
        lane.waiting.retain(|(t, _)| *t != ticket);
        if lane.waiting.len() < before {
            return;
        }
        lane.granted -= 1;
        let next = lane.grant();
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
