//! The kernel as threads under test see it.

use super::call::{Memory, Seen};
use super::notify::{Notice, Verdict, answer, install, next};
use super::power::PowerCut;
use super::rules::{Fault, Rule, RuleId, Rules};
use crate::sync::{Arc, Condvar, Mutex, promise, spawn, wait};
use rustix::fd::OwnedFd;
use std::time::Duration;

/// A kernel that obeys rules. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    listener: OwnedFd,
    memory: Memory,
    rules: Mutex<Rules>,
    struck: Condvar,
    power: Option<Arc<PowerCut>>,
}

impl Kernel {
    /// Runs `what` on a thread of its own, so that it and all threads that it starts have this
    /// kernel, and gives its result. The kernel is there as long as any of those threads.
    ///
    /// # Errors
    /// The kernel doesn't allow it (seccomp's user notification, Linux 5.5).
    ///
    /// # Panics
    /// If `what` does.
    pub fn under<T: Send>(what: impl FnOnce() -> T + Send) -> std::io::Result<(Self, T)> {
        Self::watched(None, what)
    }

    /// Runs a test like [`Kernel::under`], with `power` to be cut.
    ///
    /// # Errors
    /// The errors of [`Kernel::under`].
    pub fn with_power<T: Send>(
        power: &Arc<PowerCut>,
        what: impl FnOnce() -> T + Send,
    ) -> std::io::Result<(Self, T)> {
        Self::watched(Some(Arc::clone(power)), what)
    }

    fn watched<T: Send>(
        power: Option<Arc<PowerCut>>,
        what: impl FnOnce() -> T + Send,
    ) -> std::io::Result<(Self, T)> {
        let memory = Memory::open()?;
        std::thread::scope(|scope| {
            let (installed, listener) = promise();
            let run = scope.spawn(move || {
                installed.give(install());
                what()
            });
            let listener = weir_core::testing::block_on(listener);
            let listener = listener.unwrap_or(Err(rustix::io::Errno::NOSYS))?;
            let (rules, struck) = (Mutex::default(), Condvar::new());
            let kernel = Self(Arc::new(Shared { listener, memory, rules, struck, power }));
            let serving = kernel.clone();
            spawn("weir-test-kernel".to_owned(), move || serving.serve())?;
            match run.join() {
                Ok(result) => Ok((kernel, result)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Puts a rule in force, after those that are.
    #[must_use]
    pub fn add(&self, rule: Rule) -> RuleId {
        self.0.rules.lock().add(rule)
    }

    /// Ends a rule; what it held goes on.
    pub fn lift(&self, id: RuleId) {
        let held = self.0.rules.lock().lift(id);
        self.go_on(held);
    }

    /// Ends all rules.
    pub fn lift_all(&self) {
        let held = self.0.rules.lock().lift_all();
        self.go_on(held);
    }

    /// The number of times that a rule in force has struck.
    #[must_use]
    pub fn hits(&self, id: RuleId) -> u64 {
        self.0.rules.lock().hits(id)
    }

    /// Waits until a rule in force has struck so often.
    pub fn wait_for(&self, id: RuleId, hits: u64) {
        let mut rules = self.0.rules.lock();
        while rules.hits(id) < hits {
            rules = wait(&self.0.struck, rules);
        }
    }

    fn go_on(&self, held: Vec<u64>) {
        for id in held {
            answer(&self.0.listener, id, Verdict::Continue);
        }
    }

    fn serve(&self) {
        while let Some(notice) = next(&self.0.listener) {
            if let Some(verdict) = self.decide(notice) {
                answer(&self.0.listener, notice.id, verdict);
            }
        }
    }

    /// The fate of a call now; nothing if that is decided later.
    fn decide(&self, notice: Notice) -> Option<Verdict> {
        let shared = &*self.0;
        let Some(seen) = Seen::of(notice, &shared.memory) else { return Some(Verdict::Continue) };
        let fault = shared.rules.lock().judge(&seen);
        shared.struck.notify_all();
        if let Some(power) = &shared.power {
            power.sees(&seen, fault);
        }
        match fault {
            None => Some(Verdict::Continue),
            Some(Fault::Fail(errno)) => Some(Verdict::Fail(errno)),
            Some(Fault::Short(most)) => {
                Some(seen.shortened(most, &shared.memory).map_or_else(Verdict::Fail, Verdict::Done))
            }
            Some(Fault::Slow(time)) => self.later(notice.id, time),
            Some(Fault::Hold) => None,
        }
    }

    fn later(&self, id: u64, time: Duration) -> Option<Verdict> {
        let kernel = self.clone();
        let started = spawn("weir-test-slow".to_owned(), move || {
            std::thread::sleep(time);
            answer(&kernel.0.listener, id, Verdict::Continue);
        });
        started.is_err().then_some(Verdict::Continue)
    }
}
