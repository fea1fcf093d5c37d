//! The log of calls: what a call that changes names is about to do and what came of it, so that the
//! next process can give the answer of a call that is sent again, instead of carrying it out again.
//!
//! No transaction covers a change of names and a record of it. So the *intent* is written before
//! the change, with the object that it concerns, and that it was made is written after. If the
//! process ends in between, the names themselves tell whether the change was made
//! (see [`recall`]): the locks of the directories were held, so nothing else has changed them.
//!
//! In memory that the kernel keeps (namespace durability *process*) nothing is synced: what a
//! process wrote is there for the next. That a change was made is written with the next intent,
//! which costs no system call of its own: whatever could hide it from a look at the names
//! would be written with that intent first.
//!
//! For a power cut (namespace durability *power*) an intent must be stable before its change, since
//! the file system may make the change stable at any time. So it is written and synced before the
//! directories are locked, together with those of other calls, by what the name leads to then.
//!
//! Entries are bounded for each client and in all, as `core`'s `Holdings` says; when a bound is
//! reached an old call is forgotten. Where the log can't be written, calls are carried out without
//! it.

mod entries;
mod file;
mod format;
mod recall;
mod state;

pub(super) use format::{NameChange, Place};

use super::commit::{Extent, SyncGroup};
use super::volume::{Step, Volume, Waiting};
use super::{Durability, LocalStore};
use crate::error::fs_error;
use crate::sync::{Arc, AtomicBool, Guard, Mutex, OnceLock, Relaxed, promise};
use rustix::fs::fdatasync;
use state::{Known, State};
use weir_core::{CallId, FsResult, ObjectKey, Remembered};

/// The log of a volume's calls.
#[derive(Debug)]
pub(super) struct Calls {
    /// Made when it is first needed: of ten thousand volumes, few are in use.
    state: OnceLock<Box<Mutex<State>>>,
    syncs: SyncGroup,
    /// Records are to survive a power cut.
    power: bool,
    /// Handles outlive the process. Where they don't, there is nothing to remember.
    on: bool,
    /// Something is to be written with the next intent.
    pending: AtomicBool,
}

impl Calls {
    pub(super) fn new(durability: Durability, on: bool) -> Self {
        Self {
            state: OnceLock::new(),
            syncs: SyncGroup::default(),
            power: durability == Durability::Power,
            on,
            pending: AtomicBool::new(false),
        }
    }

    /// The known calls.
    fn state(&self) -> Guard<'_, State> {
        self.state.get_or_init(Box::default).lock()
    }

    /// The known calls; `None` if none was ever recorded or found.
    fn state_if_made(&self) -> Option<Guard<'_, State>> {
        self.state.get().map(|state| state.lock())
    }

    /// Puts on record what the call is about to do, before its directories are locked. False if
    /// there is no log.
    fn foresee(&self, call: &CallId, change: &NameChange<'_>) -> bool {
        let mut state = self.state();
        let open = state.is_open();
        if open {
            state.intend(call, change, false, true);
        }
        open
    }

    /// Notes that the change was made; and what, if it made an object.
    pub(super) fn acted(&self, call: Option<&CallId>, made: Option<ObjectKey>) {
        let Some(call) = call.filter(|_| self.on) else { return };
        let Some(mut state) = self.state_if_made() else { return };
        if state.acted(call, made, self.power) {
            self.pending.store(true, Relaxed);
        }
        // Others may find what was made before a sync ends: then it must be on record.
        if self.power {
            self.flush(&mut state);
        }
    }

    /// Puts on record that the call has changed nothing: at once, since the names would not tell
    /// that from the change of another call.
    pub(super) fn void(&self, call: Option<&CallId>) {
        let Some(call) = call.filter(|_| self.on) else { return };
        let Some(mut state) = self.state_if_made() else { return };
        if state.void(call) {
            self.pending.store(false, Relaxed);
            state.flush();
        }
    }

    /// The calls that have made their change, oldest first for each client.
    pub(super) fn remembered(&self) -> Vec<Remembered> {
        self.state_if_made().map_or_else(Vec::new, |state| state.remembered())
    }

    /// Forgets `calls`.
    pub(super) fn forget(&self, calls: &[CallId]) {
        let Some(mut state) = self.state_if_made() else { return };
        let known = calls.iter().filter(|call| state.void(call)).count();
        if known > 0 {
            self.pending.store(false, Relaxed);
            state.flush();
        }
    }

    /// Writes the changes that were noted.
    pub(super) fn write_noted(&self) {
        if let Some(mut state) = self.state_if_made() {
            self.flush(&mut state);
        }
    }

    /// Writes the changes that were noted, and frees the log's memory and space if no call in it
    /// has to be remembered.
    pub(super) fn release_idle(&self) {
        if let Some(mut state) = self.state_if_made() {
            self.flush(&mut state);
            state.release_idle();
        }
    }

    /// Writes what was noted.
    fn flush(&self, state: &mut State) {
        if self.pending.swap(false, Relaxed) {
            state.flush();
        }
    }
}

impl Volume {
    /// Puts on record what a call is about to do, whose directories are locked. Without a call,
    /// sees to it that what others did before is on record.
    pub(super) fn intend(
        &self,
        call: Option<&CallId>,
        change: &NameChange<'_>,
        waiting: Waiting,
    ) -> Step<()> {
        let calls = &self.calls;
        let Some(call) = call.filter(|_| calls.on) else {
            if calls.pending.load(Relaxed) {
                calls.flush(&mut calls.state());
            }
            return Ok(());
        };
        let mut state = calls.state();
        if !state.is_open() {
            if !state.may_open() {
                return Ok(());
            }
            waiting.or_stop()?;
            state.open(&self.root.fd, calls.power, &self.descriptors);
        }
        match state.known(call, change) {
            Known::Begun => return Ok(()),
            Known::Foreseen => state.begun(call),
            Known::New => {
                if calls.power {
                    waiting.or_stop()?;
                }
                state.intend(call, change, true, calls.power);
                if calls.power
                    && let Some(file) = state.file()
                {
                    // Rare: what the name leads to has changed meanwhile, or nobody foresaw it.
                    drop(state);
                    if fdatasync(&file).is_err() {
                        calls.state().give_up();
                    }
                    return Ok(());
                }
            }
        }
        calls.pending.store(false, Relaxed);
        Ok(())
    }
}

impl LocalStore {
    /// Notes that everything is stable that calls have done, and has that survive a power cut.
    pub(super) fn close_calls(&self) {
        let calls = &self.0.calls;
        let Some(mut state) = calls.state_if_made() else { return };
        if state.settle_all()
            && let Some(file) = state.file()
            && let Err(errno) = fdatasync(&file)
        {
            tracing::warn!(volume = self.0.label, %errno, "cannot sync meta/calls");
        }
    }

    /// Where changes of names are to survive a power cut, puts on record and makes stable what the
    /// call is about to do, as far as can be seen before the directories are locked.
    pub(super) async fn foresee(&self, change: Option<NameChange<'_>>) -> FsResult<()> {
        let calls = &self.0.calls;
        let (Some(call), Some(change)) = (self.1, change) else { return Ok(()) };
        if !self.foresees() {
            return Ok(());
        }
        if !calls.state().is_open() {
            // It is made by whoever may wait.
            let open = |volume: &Volume| {
                let mut state = volume.calls.state();
                if !state.is_open() && state.may_open() {
                    state.open(&volume.root.fd, true, &volume.descriptors);
                }
                Ok(())
            };
            self.pooled(open).await?;
        }
        if !calls.foresee(&call, &change) {
            return Ok(());
        }
        let (waiter, answer) = promise();
        if calls.syncs.join(waiter, Extent::Data) {
            start(Arc::clone(&self.0));
        }
        if !matches!(answer.await, Some(Ok(()))) {
            calls.state().give_up();
        }
        Ok(())
    }

    /// Is a change of names put on record before its directories are locked?
    pub(super) fn foresees(&self) -> bool {
        self.1.is_some() && self.0.calls.power && self.0.calls.on
    }

    /// Has a call that failed forgotten, unless it has made its change all the same.
    pub(super) fn ended<T>(&self, result: FsResult<T>) -> FsResult<T> {
        let calls = &self.0.calls;
        if result.is_err()
            && let Some(call) = self.1.filter(|_| calls.on)
            && let Some(mut state) = calls.state_if_made()
            && state.failed_call(&call)
        {
            calls.pending.store(false, Relaxed);
            state.flush();
        }
        result
    }

    /// Notes that what the call did is stable.
    pub(super) fn settled(&self) {
        let calls = &self.0.calls;
        let Some(call) = self.1.filter(|_| calls.on) else { return };
        if calls.state_if_made().is_some_and(|mut state| state.settled(&call)) {
            calls.pending.store(true, Relaxed);
        }
    }
}

/// Queues syncs of the log for all calls that wait for one. At most one job for them is queued or
/// running.
fn start(volume: Arc<Volume>) {
    let lane = Arc::clone(&volume.lane);
    lane.run_rounds(move || {
        let sync = |_| {
            let file = volume.calls.state().file();
            file.map_or(Ok(()), |file| fdatasync(&file)).map_err(|errno| fs_error(errno).into())
        };
        volume.calls.syncs.round(sync)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allocated_before_a_call_is_recorded() {
        let calls = Calls::new(Durability::Power, true);
        let call = CallId { client: 1, xid: 2, procedure: 8, print: 3 };
        assert_eq!(calls.remembered(), []);
        calls.forget(&[call]);
        calls.write_noted();
        calls.release_idle();
        calls.acted(Some(&call), None);
        calls.void(Some(&call));
        assert!(calls.state.get().is_none());
    }
}
