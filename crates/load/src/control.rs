//! The control of a run: stop it early, note events, and receive messages about long waits.

use crate::stats::result::Mark;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Stops a run early and records when something happened during it. Clones share one state.
#[derive(Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

/// A function that receives messages about waits.
type Listener = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    gave_up: AtomicBool,
    state: Mutex<State>,
    listener: Mutex<Option<Listener>>,
}

#[derive(Default)]
struct State {
    started: Option<Instant>,
    marks: Vec<Mark>,
}

impl Control {
    /// A hand on nothing yet; give it to [`Prepared::run`](crate::Prepared::run).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to finish now. It still reports what was measured so far.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Was [`Control::stop`] called?
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// A stopped run has waited for an answer as long as it may: no further answer of the target is
    /// worth such a wait.
    pub(crate) fn give_up(&self) {
        self.shared.gave_up.store(true, Ordering::Relaxed);
    }

    /// Was [`Control::give_up`] called?
    pub(crate) fn gave_up(&self) -> bool {
        self.shared.gave_up.load(Ordering::Relaxed)
    }

    /// Calls `listener` with a sentence whenever an answer of the target takes long outside the
    /// measured interval. A later listener replaces an earlier one.
    pub fn on_wait(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        *self.shared.listener.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::new(listener));
    }

    /// Passes `sentence` to the listener, if there is one.
    pub(crate) fn tell_wait(&self, sentence: &str) {
        let listener = self.shared.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(sentence);
        }
    }

    /// Notes that `label` happens now; the result carries it at its place in the run's time.
    /// Before the load starts there is no such time, and nothing is noted.
    pub fn mark(&self, label: impl Into<String>) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = state.started {
            let at_s = started.elapsed().as_secs_f64();
            state.marks.push(Mark { at_s, label: label.into() });
        }
    }

    /// Seconds since the load started; `None` before that.
    #[must_use]
    pub fn elapsed_s(&self) -> Option<f64> {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.started.map(|started| started.elapsed().as_secs_f64())
    }

    /// Starts the load's clock.
    pub fn begin(&self, at: Instant) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.started = Some(at);
        state.marks.clear();
    }

    /// The marks set since the last call.
    pub fn take_marks(&self) -> Vec<Mark> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_before_the_start_are_dropped_and_later_ones_kept_in_order() {
        let control = Control::new();
        control.mark("too early");
        assert_eq!(control.elapsed_s(), None);
        control.begin(Instant::now());
        control.clone().mark("first");
        control.mark("second");
        let marks = control.take_marks();
        let labels: Vec<_> = marks.iter().map(|mark| mark.label.as_str()).collect();
        assert_eq!(labels, ["first", "second"]);
        assert!(marks.iter().all(|mark| mark.at_s >= 0.0));
    }

    #[test]
    fn a_stop_reaches_every_clone() {
        let control = Control::new();
        let other = control.clone();
        control.stop();
        assert!(other.stopped());
    }
}
