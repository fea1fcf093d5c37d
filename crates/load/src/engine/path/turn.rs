//! A job that several threads work for, and how they wait for their turn.

use crate::engine::halt::Halt;
use crate::engine::job::{Answer, Job, Next, Op};
use crate::engine::schedule::Schedule;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest sleep without a look at whether the load is over.
const LOOK: Duration = Duration::from_millis(20);

/// A job, and the bell for threads that are held.
pub(super) struct Shared {
    job: Mutex<Job>,
    bell: Condvar,
}

impl Shared {
    /// Of `job`.
    pub(super) const fn new(job: Job) -> Self {
        Self { job: Mutex::new(job), bell: Condvar::new() }
    }

    /// The job, for a moment.
    pub(super) fn job(&self) -> MutexGuard<'_, Job> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next operation and the time from which its latency counts; waits until it is due.
    /// `None` when there is nothing more to do.
    pub(super) fn next(&self, schedule: &Schedule, halt: &Halt) -> Option<(Op, u64)> {
        let mut job = self.job();
        loop {
            let now_ns = schedule.now_ns();
            if is_over(now_ns, schedule, halt) {
                return None;
            }
            match job.next(now_ns) {
                Next::Op(op, None) => return Some((op, now_ns)),
                Next::Op(op, Some(due_ns)) => {
                    drop(job);
                    if sleep_until(due_ns, schedule, halt) {
                        return Some((op, due_ns));
                    }
                    self.job().dropped(&op);
                    return None;
                }
                Next::Wait(until_ns) => {
                    drop(job);
                    if !sleep_until(until_ns, schedule, halt) {
                        return None;
                    }
                    job = self.job();
                }
                Next::Held => {
                    let waited = self.bell.wait_timeout(job, LOOK);
                    job = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::Done => return None,
            }
        }
    }

    /// One operation and all that belongs to it is answered. Says why the job ends, if it does so
    /// before its time.
    pub(super) fn freed(&self, answer: &Answer) -> Option<String> {
        let mut job = self.job();
        if job.freed(answer) {
            self.bell.notify_all();
        }
        job.complaint()
    }
}

/// Is the load over?
pub(super) fn is_over(now_ns: u64, schedule: &Schedule, halt: &Halt) -> bool {
    now_ns >= schedule.stop_ns || halt.halted().is_some()
}

/// Sleeps until `at_ns`; `false` if the load is over before.
pub(super) fn sleep_until(at_ns: u64, schedule: &Schedule, halt: &Halt) -> bool {
    loop {
        let now_ns = schedule.now_ns();
        if is_over(now_ns, schedule, halt) {
            return false;
        }
        let left = Duration::from_nanos(at_ns.saturating_sub(now_ns));
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK));
    }
}
