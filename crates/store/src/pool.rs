//! Threads that may block, shared by all volumes.
//!
//! Each volume has a *lane*: at most so many of its jobs run at once, so that one slow volume
//! can't take every thread, and at most so many wait. When a lane is full, the submitter's future
//! waits for room, first come first served; nothing is refused. Lanes with work take turns.
//! A job that was queued is carried out even if its future is dropped.

use crate::index_memory::{INDEX_BYTES_MAX, IndexMemory};
use crate::pace::Pace;
use crate::sync::{Arc, Guard, Mutex, Sleeper, Weak, promise, spawn};
use crate::writeback::Writeback;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use weir_core::{FsError, FsResult};

/// Work for one thread, which is called again, when other lanes have had their turn, for as long as
/// it returns true.
type Job = Box<dyn FnMut() -> bool + Send>;
/// Work that takes minutes, for a thread of its own.
type LongJob = Box<dyn FnOnce() + Send>;

/// Fewest threads of a pool: enough for two lanes that are full of blocked jobs.
const THREADS_MIN: usize = 16;
/// Most threads of a pool.
const THREADS_MAX: usize = 1024;
/// Most long jobs at once; more wait their turn.
const LONG_JOBS_MAX: usize = 4;

/// Blocking threads. They end once the last handle is dropped and the queues are empty.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    file_systems: Mutex<HashMap<u64, Weak<Pace>>>,
    long_jobs: Arc<Mutex<LongJobs>>,
    writeback: Writeback,
    index_memory: Arc<IndexMemory>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

/// Jobs that take minutes, on threads of their own.
#[derive(Default)]
struct LongJobs {
    running: usize,
    waiting: VecDeque<LongJob>,
}

impl std::fmt::Debug for LongJobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} running, {} waiting", self.running, self.waiting.len())
    }
}

#[derive(Debug, Default)]
struct State {
    /// Of those lanes alone that have something to do: there are thousands.
    lanes: HashMap<u64, LaneState>,
    next_lane: u64,
    /// Lanes that have a job which may start now, each at most once.
    ready: VecDeque<u64>,
    /// Threads that wait for work and have not been woken. The thread that slept last is woken
    /// first: its stack is still in the processor's caches.
    idle: Vec<Arc<Sleeper>>,
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

/// The running and queued work that one lane may have.
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
        let shared = Arc::new(Shared::default());
        for number in 0..threads.clamp(THREADS_MIN, THREADS_MAX) {
            let shared = Arc::clone(&shared);
            let started = spawn(format!("weir-disk-{number}"), move || shared.serve());
            match started {
                Err(error) if number == 0 => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, threads = number, "fewer disk threads than configured");
                    break;
                }
                Ok(()) => {}
            }
        }
        Ok(Arc::new(Self {
            shared,
            file_systems: Mutex::default(),
            long_jobs: Arc::default(),
            writeback: Writeback::new(),
            index_memory: IndexMemory::new(INDEX_BYTES_MAX),
        }))
    }

    /// A new lane.
    pub(crate) fn lane(self: &Arc<Self>, bounds: LaneBounds) -> Lane {
        let mut state = self.shared.state.lock();
        let id = state.next_lane;
        state.next_lane += 1;
        Lane { pool: Arc::clone(self), id, bounds }
    }

    /// Where files are listed that were written to.
    pub(crate) fn writeback(&self) -> Writeback {
        self.writeback.clone()
    }

    /// The memory for indexes of directories.
    pub(crate) fn index_memory(&self) -> Arc<IndexMemory> {
        Arc::clone(&self.index_memory)
    }

    /// The pace of the file system with device number `device`.
    pub(crate) fn pace_of(&self, device: u64) -> Arc<Pace> {
        let mut known = self.file_systems.lock();
        known.retain(|_, pace| pace.strong_count() > 0);
        if let Some(pace) = known.get(&device).and_then(Weak::upgrade) {
            return pace;
        }
        let pace = Arc::new(Pace::default());
        known.insert(device, Arc::downgrade(&pace));
        pace
    }
}

/// Does long jobs until none waits.
fn serve_long(jobs: &Mutex<LongJobs>) {
    loop {
        let mut state = jobs.lock();
        let Some(job) = state.waiting.pop_front() else {
            state.running -= 1;
            return;
        };
        drop(state);
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a long disk job panicked");
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.stopping = true;
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        for sleeper in idle {
            sleeper.wake();
        }
    }
}

impl Shared {
    /// Unlocks, and wakes a thread if there is work and one that waits for it.
    fn release(&self, mut state: Guard<'_, State>) {
        let woken = if state.ready.is_empty() { None } else { state.idle.pop() };
        drop(state);
        if let Some(sleeper) = woken {
            sleeper.wake();
        }
    }

    fn serve(&self) {
        let sleeper = Sleeper::of_this_thread();
        let mut state = self.state.lock();
        loop {
            let Some(id) = state.ready.pop_front() else {
                if state.stopping {
                    return;
                }
                state.idle.push(Arc::clone(&sleeper));
                drop(state);
                sleeper.sleep();
                state = self.state.lock();
                continue;
            };
            let Some((mut job, woken)) = state.start(id) else { continue };
            self.release(state);
            if let Some(waker) = woken {
                waker.wake();
            }
            // A panicking job breaks its promise, which its future reports as an error; the
            // thread goes on.
            let more = catch_unwind(AssertUnwindSafe(&mut job)).unwrap_or_else(|_| {
                tracing::error!("a disk job panicked");
                false
            });
            // A job may hold the last reference to its lane, which takes the lock of the pool.
            let rest = if more {
                Some(job)
            } else {
                drop(job);
                None
            };
            state = self.state.lock();
            state.finish(id, rest);
        }
    }
}

impl State {
    fn lane(&mut self, Lane { id, bounds, .. }: &Lane) -> &mut LaneState {
        let new = || LaneState { bounds: *bounds, ..LaneState::default() };
        self.lanes.entry(*id).or_insert_with(new)
    }

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

    /// A job of lane `id` has ended a round; the `rest` of it is queued. No thread is woken for
    /// that, because the one that calls this has nothing else to do.
    fn finish(&mut self, id: u64, rest: Option<Job>) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.running -= 1;
            lane.queue.extend(rest);
            self.make_ready(id);
            self.forget_if_idle(id);
        }
    }

    fn forget_if_idle(&mut self, id: u64) {
        if self.lanes.get(&id).is_some_and(LaneState::is_idle) {
            self.lanes.remove(&id);
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
    /// Has it nothing to do, and nobody that waits or was given room?
    fn is_idle(&self) -> bool {
        self.running == 0 && self.granted == 0 && self.queue.is_empty() && self.waiting.is_empty()
    }

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
    bounds: LaneBounds,
}

impl Lane {
    /// Runs `work` on a thread of the pool once the lane has room.
    ///
    /// # Errors
    /// The errors of `work`; `Io` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> FsResult<T> + Send + 'static,
    ) -> FsResult<T> {
        let (promise, answer) = promise();
        let mut once = Some((promise, work));
        let job: Job = Box::new(move || {
            if let Some((promise, work)) = once.take() {
                promise.give(work());
            }
            false
        });
        Enqueue { lane: self, job: Some(job), ticket: None }.await;
        answer.await.unwrap_or(Err(FsError::Io))
    }

    /// Runs `work`, which may take minutes, on a thread that no other work waits for. At most one a
    /// volume, so the number of volumes bounds what waits.
    pub(crate) fn run_long(&self, work: impl FnOnce() + Send + 'static) {
        let jobs = Arc::clone(&self.pool.long_jobs);
        let mut state = jobs.lock();
        state.waiting.push_back(Box::new(work));
        if state.running >= LONG_JOBS_MAX {
            return;
        }
        state.running += 1;
        drop(state);
        let served = Arc::clone(&jobs);
        if let Err(error) = spawn("weir-count".to_owned(), move || serve_long(&served)) {
            jobs.lock().running -= 1;
            tracing::error!(%error, "cannot start a thread; the job waits for another thread");
        }
    }

    /// Queues `round` whether there is room or not, for work that is bounded by other means. It is
    /// called until it returns false; between two rounds, other jobs of the pool have their turn.
    pub(crate) fn run_rounds(&self, round: impl FnMut() -> bool + Send + 'static) {
        let mut state = self.pool.shared.state.lock();
        state.lane(self).queue.push_back(Box::new(round));
        state.make_ready(self.id);
        self.pool.shared.release(state);
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
        let lane = self.lane;
        let id = lane.id;
        let mut state = lane.pool.shared.state.lock();
        let queue = state.lane(lane);
        match self.ticket {
            None if queue.has_room() => {}
            None => {
                let ticket = queue.next_ticket;
                queue.next_ticket += 1;
                queue.waiting.push_back((ticket, cx.waker().clone()));
                drop(state);
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
            Some(ticket) => {
                if let Some((_, waker)) = queue.waiting.iter_mut().find(|(t, _)| *t == ticket) {
                    waker.clone_from(cx.waker());
                    return Poll::Pending;
                }
                queue.granted -= 1;
            }
        }
        self.ticket = None;
        if let Some(job) = self.job.take() {
            state.lane(lane).queue.push_back(job);
        }
        state.make_ready(id);
        lane.pool.shared.release(state);
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
        state.forget_if_idle(self.lane.id);
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU64, Relaxed};
    use std::pin::pin;
    use std::sync::mpsc::channel;
    use weir_core::testing::block_on;

    fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_lane_runs_no_more_at_once_than_its_bound_and_leaves_the_rest_to_others() {
        let pool = Pool::new(16).unwrap();
        let slow = pool.lane(LaneBounds { running_max: 2, queued_max: 100 });
        let other = pool.lane(LaneBounds { running_max: 2, queued_max: 100 });
        let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut jobs: Vec<_> = (0..20)
            .map(|_| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                let gate = Arc::clone(&gate);
                Box::pin(slow.run(move || {
                    most.fetch_max(running.fetch_add(1, Relaxed) + 1, Relaxed);
                    gate.lock().recv().map_err(|_| FsError::Io)?;
                    running.fetch_sub(1, Relaxed);
                    Ok(())
                }))
            })
            .collect();
        for job in &mut jobs {
            assert!(poll_once(job.as_mut()).is_pending());
        }
        assert_eq!(block_on(other.run(|| Ok(7))), Ok(7), "while the slow lane is stuck");
        for _ in 0..20 {
            open.send(()).unwrap();
        }
        for job in jobs {
            assert_eq!(block_on(job), Ok(()));
        }
        assert!(most.load(Relaxed) <= 2);
    }

    #[test]
    fn a_full_lane_makes_submitters_wait_in_turn_and_a_dropped_one_gives_its_turn_on() {
        let pool = Pool::new(16).unwrap();
        let lane = pool.lane(LaneBounds { running_max: 1, queued_max: 1 });
        let (open, gate) = channel::<()>();
        let (started, starting) = channel::<()>();
        let mut first = pin!(lane.run(move || {
            started.send(()).map_err(|_| FsError::Io)?;
            gate.recv().map_err(|_| FsError::Io)
        }));
        assert!(poll_once(first.as_mut()).is_pending());
        starting.recv().unwrap();
        let mut second = pin!(lane.run(|| Ok(2)));
        assert!(poll_once(second.as_mut()).is_pending());
        let mut third = Box::pin(lane.run(|| Ok(3)));
        let mut fourth = pin!(lane.run(|| Ok(4)));
        assert!(poll_once(third.as_mut()).is_pending());
        assert!(poll_once(fourth.as_mut()).is_pending());
        let waiting = || {
            let state = pool.shared.state.lock();
            state.lanes.get(&lane.id).map(|lane| (lane.queue.len(), lane.waiting.len()))
        };
        assert_eq!(waiting(), Some((1, 2)));
        open.send(()).unwrap();
        assert_eq!(block_on(first), Ok(()));
        assert_eq!(block_on(second), Ok(2));
        // The room that became free was given to the third, which goes away without using it.
        drop(third);
        assert_eq!(block_on(fourth), Ok(4));
        assert_eq!(waiting().unwrap_or_default(), (0, 0));
    }

    #[test]
    fn a_lane_without_work_takes_no_room() {
        let pool = Pool::new(16).unwrap();
        let lanes: Vec<_> =
            (0..10).map(|_| pool.lane(LaneBounds { running_max: 1, queued_max: 1 })).collect();
        let known = || pool.shared.state.lock().lanes.len();
        assert_eq!(known(), 0);
        let (open, gate) = channel::<()>();
        let mut stuck = pin!(lanes[0].run(move || gate.recv().map_err(|_| FsError::Io)));
        assert!(poll_once(stuck.as_mut()).is_pending());
        for lane in &lanes[1..] {
            assert_eq!(block_on(lane.run(|| Ok(1))), Ok(1));
        }
        open.send(()).unwrap();
        assert_eq!(block_on(stuck), Ok(()));
        // A job is answered before its thread puts the lane away.
        while known() > 0 {
            std::thread::yield_now();
        }
        assert_eq!(block_on(lanes[0].run(|| Ok(2))), Ok(2), "it is there when there is work");
    }

    #[test]
    fn a_job_whose_future_is_dropped_is_done_and_one_that_panics_is_an_error() {
        let pool = Pool::new(16).unwrap();
        let lane = pool.lane(LaneBounds { running_max: 1, queued_max: 10 });
        let (open, gate) = channel::<()>();
        let (done, wait) = channel();
        let mut job = Box::pin(lane.run(move || {
            gate.recv().map_err(|_| FsError::Io)?;
            done.send(1).map_err(|_| FsError::Io)
        }));
        assert!(poll_once(job.as_mut()).is_pending());
        drop(job);
        open.send(()).unwrap();
        assert_eq!(wait.recv(), Ok(1));
        let panics = lane.run(|| -> FsResult<()> { panic!("as this test wants") });
        assert_eq!(block_on(panics), Err(FsError::Io));
        assert_eq!(block_on(lane.run(|| Ok(2))), Ok(2), "the thread goes on");
    }

    #[test]
    fn rounds_go_on_until_they_say_so_and_others_have_their_turn_between_them() {
        let pool = Pool::new(16).unwrap();
        let lane = Arc::new(pool.lane(LaneBounds { running_max: 1, queued_max: 10 }));
        let (step, steps) = channel::<()>();
        let (done, rounds) = channel();
        let mut number = 0;
        let own = Arc::clone(&lane);
        lane.run_rounds(move || {
            let _own = &own;
            steps.recv().unwrap();
            number += 1;
            done.send(number).unwrap();
            number < 3
        });
        let mut other = Box::pin(lane.run(|| Ok(7)));
        assert!(poll_once(other.as_mut()).is_pending());
        step.send(()).unwrap();
        assert_eq!(block_on(other.as_mut()), Ok(7), "after one round of three");
        drop(other);
        // The job holds the last reference to the lane.
        drop(lane);
        step.send(()).unwrap();
        step.send(()).unwrap();
        assert_eq!(rounds.iter().collect::<Vec<_>>(), [1, 2, 3]);
        while !pool.shared.state.lock().lanes.is_empty() {
            std::thread::yield_now();
        }
    }
}
