//! Waiting for a target that has ended connections of a load, as a server does that restarts.

use super::{Backend, Prepared, Waits};
use crate::control::Control;
use crate::error::BenchError;
use std::time::{Duration, Instant};

/// Longest time that the targets of a step are waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until the targets of those `loads` that have something to read back answer again, for a
/// minute in all, or until the run is stopped.
pub(super) fn await_targets(loads: &[Prepared], control: &Control) {
    let end = Instant::now() + PATIENCE;
    for load in loads.iter().filter(|load| load.plan.workload.verify.is_some()) {
        // Reading back reports the reason if the target does not answer.
        let waits = Waits::checking(control);
        let reach = || load.reach(&waits.at_most(end.saturating_duration_since(Instant::now())));
        drop(patiently(end, control, reach));
    }
}

impl Prepared {
    /// Does the target answer within `waits`?
    fn reach(&self, waits: &Waits) -> Result<(), BenchError> {
        match &self.backend {
            Backend::Nfs(files) => files.reach(waits),
            Backend::Smb(files) => files.reach(waits),
            // The kernel has its own way to reconnect.
            Backend::Path(_) => Ok(()),
        }
    }
}

/// Makes `attempt` until it succeeds, until `end`, or until the run is stopped; then the last
/// failure counts. It is made once in any case.
fn patiently<E>(
    end: Instant,
    control: &Control,
    mut attempt: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    loop {
        match attempt() {
            Err(_) if !control.stopped() && Instant::now() < end => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_made_until_one_succeeds_the_time_is_over_or_the_run_is_stopped() {
        let (control, mut made) = (Control::new(), 0);
        let later = Instant::now() + Duration::from_secs(3600);
        let outcome = patiently(later, &control, || {
            made += 1;
            if made < 4 { Err("refused") } else { Ok(()) }
        });
        assert_eq!((outcome, made), (Ok(()), 4));
        let mut refused = |end, control: &Control| {
            made += 1;
            patiently(end, control, || Err::<(), _>(made))
        };
        assert_eq!(refused(Instant::now(), &control), Err(5));
        control.stop();
        assert_eq!(refused(later, &control), Err(6));
    }
}
