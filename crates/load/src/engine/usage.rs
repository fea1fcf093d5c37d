//! A worker's own use in the measured interval: processor time, and time spent waiting for the
//! target.

use super::collect::{Phase, Window};
use crate::stats::cpu::{self, MachineTime};
use std::time::Duration;

/// Measures one worker; it lives on that worker's thread.
pub(super) struct UsageMeter {
    measure_ns: u64,
    end_ns: u64,
    begun: Option<Begun>,
    /// The use until the interval's end, once that is past.
    ended: Option<Usage>,
}

struct Begun {
    at_ns: u64,
    cpu: Duration,
    waited_ns: u64,
}

/// The use of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Processor time of the thread.
    pub cpu: Duration,
    /// Time it waited for the target.
    pub waited_ns: u64,
    /// Length of the interval.
    pub span_ns: u64,
}

impl UsageMeter {
    /// Counts from `measure_ns` to `end_ns`.
    pub(super) const fn new(measure_ns: u64, end_ns: u64) -> Self {
        Self { measure_ns, end_ns, begun: None, ended: None }
    }

    /// Notes that it is `now_ns`. Called once per turn of the worker's loop.
    #[inline]
    pub(super) fn tick(&mut self, now_ns: u64) {
        if self.begun.is_none() && now_ns >= self.measure_ns {
            self.begun = Some(Begun { at_ns: now_ns, cpu: cpu::this_thread(), waited_ns: 0 });
        } else if now_ns >= self.end_ns && self.ended.is_none() {
            self.ended = Some(self.until(self.end_ns));
        }
    }

    /// Notes that the worker waited for the target this long.
    #[inline]
    pub(super) fn waited(&mut self, ns: u64) {
        if let Some(begun) = &mut self.begun {
            begun.waited_ns += ns;
        }
    }

    /// The use until now, or until the end of the interval if that is past.
    pub(super) fn finish(&self, now_ns: u64) -> Usage {
        self.ended.unwrap_or_else(|| self.until(now_ns.min(self.end_ns)))
    }

    fn until(&self, now_ns: u64) -> Usage {
        self.begun.as_ref().map_or_else(Usage::default, |begun| Usage {
            cpu: cpu::this_thread().saturating_sub(begun.cpu),
            waited_ns: begun.waited_ns,
            span_ns: now_ns.saturating_sub(begun.at_ns),
        })
    }
}

impl Usage {
    /// Share of the interval not spent waiting, 0 to 100.
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    pub(super) fn busy_percent(&self) -> f64 {
        if self.span_ns == 0 {
            return 0.0;
        }
        let busy = self.span_ns.saturating_sub(self.waited_ns);
        busy as f64 * 100.0 / self.span_ns as f64
    }
}

/// Measures how busy this machine is while a load is measured.
#[derive(Default)]
pub(super) struct MachineMeter {
    from: Option<MachineTime>,
    to: Option<MachineTime>,
}

impl MachineMeter {
    /// Notes that `window` has just ended.
    pub(super) fn window(&mut self, window: &Window) {
        if window.phase != Phase::Measure {
            return;
        }
        let now = cpu::machine().ok();
        if self.from.is_none() {
            self.from = now;
        }
        self.to = now;
    }

    /// Share of the time that the processors were busy, 0 to 100, and how many there are; zero if
    /// nothing was measured.
    pub(super) fn finish(&self) -> (f64, u32) {
        match (self.from, self.to) {
            (Some(from), Some(to)) => (to.busy_percent_since(from), to.processors()),
            _ => (0.0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_inside_the_interval_counts() {
        let mut meter = UsageMeter::new(100, 300);
        meter.tick(99);
        meter.waited(50);
        meter.tick(100);
        meter.waited(25);
        let usage = meter.finish(200);
        assert_eq!((usage.waited_ns, usage.span_ns), (25, 100));
        assert!((usage.busy_percent() - 75.0).abs() < 1e-9);
        meter.waited(25);
        meter.tick(300);
        meter.waited(1000);
        meter.tick(1300);
        let usage = meter.finish(1300);
        assert_eq!((usage.waited_ns, usage.span_ns), (50, 200), "the cool-down is no part of it");
    }

    #[test]
    fn a_run_that_never_reached_its_interval_used_nothing() {
        assert!(UsageMeter::new(100, 200).finish(50).busy_percent() < 1e-9);
    }
}
