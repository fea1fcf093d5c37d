//! The end of a load before its time.

use crate::control::Control;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reason for which a load ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// Somebody stopped the run: only the clean-up follows.
    Stopped,
    /// A connection was lost, or a worker could not begin: what was written is still read back.
    Broken,
}

/// The end of the loads of a step, as their workers share it: a stop of the whole run, or a load
/// that a worker gave up, which does not stop the run. Clones share one state.
#[derive(Clone)]
pub(super) struct Halt {
    run: Control,
    broken: Arc<AtomicBool>,
}

impl Halt {
    /// Of a step of the run that `control` may stop.
    pub(super) fn of(control: &Control) -> Self {
        Self { run: control.clone(), broken: Arc::default() }
    }

    /// The load can't go on.
    pub(super) fn give_up(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// The reason to end the loads now, if there is one.
    #[inline]
    pub(super) fn halted(&self) -> Option<Halted> {
        if self.run.stopped() {
            return Some(Halted::Stopped);
        }
        self.broken.load(Ordering::Relaxed).then_some(Halted::Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_is_given_up_is_no_stop_of_the_run_and_a_stop_comes_first() {
        let control = Control::new();
        let halt = Halt::of(&control);
        assert_eq!(halt.halted(), None);
        halt.clone().give_up();
        assert_eq!(halt.halted(), Some(Halted::Broken));
        assert!(!control.stopped());
        assert_eq!(Halt::of(&control).halted(), None, "the next step begins anew");
        control.stop();
        assert_eq!(halt.halted(), Some(Halted::Stopped));
    }
}
