//! The windows of all workers added up, for live display.

use weir_load::engine::{Phase, Window};

/// Windows of several workers since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    shown_ns: u64,
    operations: u64,
    bytes: u64,
    errors: u64,
    p99_ms: f64,
    max_ms: f64,
    phase: Option<Phase>,
    left_s: Option<f64>,
}

impl Live {
    /// A window of one worker. What is the furthest from its end stands for all.
    pub(crate) fn add(&mut self, window: &Window) {
        self.operations = self.operations.saturating_add(window.operations);
        self.bytes = self.bytes.saturating_add(window.bytes);
        self.errors = self.errors.saturating_add(window.errors);
        self.p99_ms = self.p99_ms.max(window.p99_ms);
        self.max_ms = self.max_ms.max(window.max_ms);
        let rank = |phase: Phase| match phase {
            Phase::Measure => 3,
            Phase::Warmup => 2,
            Phase::Cooldown => 1,
            Phase::Drain => 0,
        };
        if self.phase.is_none_or(|phase| rank(window.phase) > rank(phase)) {
            self.phase = Some(window.phase);
        }
        self.left_s = match (self.left_s, window.left_s) {
            (Some(own), Some(other)) => Some(own.max(other)),
            (own, other) => own.or(other),
        };
    }

    /// The sum of what was added since the last time, `now_ns` after the start; `None` if nothing
    /// was.
    #[expect(clippy::cast_precision_loss, reason = "runs last far less than 2^52 ns")]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Window> {
        let phase = self.phase?;
        let window = Window {
            at_s: now_ns as f64 / 1e9,
            seconds: now_ns.saturating_sub(self.shown_ns) as f64 / 1e9,
            phase,
            operations: self.operations,
            bytes: self.bytes,
            errors: self.errors,
            p99_ms: self.p99_ms,
            max_ms: self.max_ms,
            left_s: self.left_s,
        };
        *self = Self { shown_ns: now_ns, ..Self::default() };
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_and_the_slowest_is_shown() {
        let window = Window {
            at_s: 1.0,
            seconds: 0.1,
            phase: Phase::Measure,
            operations: 10,
            bytes: 40,
            errors: 1,
            p99_ms: 2.0,
            max_ms: 2.5,
            left_s: Some(3.0),
        };
        let mut live = Live::default();
        assert_eq!(live.take(50), None);
        let slow = Window { p99_ms: 7.0, max_ms: 9.0, ..window };
        live.add(&Window { phase: Phase::Drain, left_s: None, ..slow });
        live.add(&window);
        let sum = live.take(200_000_000).unwrap();
        assert_eq!((sum.operations, sum.bytes, sum.errors), (20, 80, 2));
        assert_eq!((sum.phase, sum.left_s), (Phase::Measure, Some(3.0)));
        assert!((sum.p99_ms - 7.0).abs() < 1e-9 && (sum.seconds - 0.2).abs() < 1e-9);
        assert!((sum.max_ms - 9.0).abs() < 1e-9);
        assert_eq!(live.take(300_000_000), None);
        live.add(&window);
        assert!((live.take(400_000_000).unwrap().seconds - 0.2).abs() < 1e-9);
    }
}
