//! Live progress on standard error: a bar on a terminal, plain lines otherwise.

mod laying;

pub use laying::Unit;

use laying::Laying;
use weir_core::units::{latency, span, three_digits};
use weir_load::control::Control;
use weir_load::engine::{Phase, Window};
use weir_load::stats::result::mibps;
use weir_report::terminal::{self, Spinner};

/// Windows gathered for one line: a second of them.
const SECONDS: f64 = 1.0;

/// Shows what a run does, once a second.
pub struct Progress {
    bar: Option<Spinner>,
    quiet: bool,
    since_s: f64,
    operations: u64,
    bytes: u64,
    errors: u64,
    p99_ms: f64,
    max_ms: f64,
    /// The present work, before everything else on the line.
    place: String,
    /// Seconds of load that come after this one.
    after_s: Option<f64>,
    /// The files that are laid out.
    laying: Laying,
}

impl Progress {
    /// Shows nothing if `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && terminal::shows_errors()).then(Spinner::default);
        Self {
            bar,
            quiet,
            since_s: 0.0,
            operations: 0,
            bytes: 0,
            errors: 0,
            p99_ms: 0.0,
            max_ms: 0.0,
            place: String::new(),
            after_s: None,
            laying: Laying::default(),
        }
    }

    /// Another load begins: `place` says which of how many, `after_s` how many seconds of load
    /// come after it, where that is known.
    pub fn begin(&mut self, place: String, after_s: Option<f64>) {
        (self.since_s, self.operations, self.bytes, self.errors) = (0.0, 0, 0, 0);
        (self.p99_ms, self.max_ms) = (0.0, 0.0);
        self.laying = Laying::default();
        self.place = place;
        self.after_s = after_s;
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.say(line),
            None if !self.quiet => terminal::say(line),
            None => {}
        }
    }

    /// Shows messages about long waits of the run that `control` controls from now on.
    pub fn follow(&self, control: &Control) {
        if self.quiet {
            return;
        }
        let bar = self.bar.clone();
        control.on_wait(move |sentence| match &bar {
            Some(bar) => bar.say(sentence),
            None => terminal::say(sentence),
        });
    }

    /// Laying out: `done` of `total` bytes are written, or files made where nothing is.
    pub fn layout(&mut self, done: u64, total: u64, unit: Unit) {
        if self.quiet {
            return;
        }
        let seconds = self.laying.at(done, total);
        let line = format!("{}{}", self.prefix(), self.laying.line(unit, seconds));
        match &self.bar {
            Some(bar) => bar.show(line),
            None if self.laying.is_due(seconds) => terminal::say(line),
            None => {}
        }
    }

    /// The next window of the run.
    pub fn window(&mut self, window: &Window) {
        self.operations += window.operations;
        self.bytes += window.bytes;
        self.errors += window.errors;
        // A histogram without a value still has the bounds of a bin.
        if window.operations > 0 {
            self.p99_ms = self.p99_ms.max(window.p99_ms);
            self.max_ms = self.max_ms.max(window.max_ms);
        }
        if window.at_s - self.since_s >= SECONDS {
            self.show(window);
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }

    fn show(&mut self, window: &Window) {
        let seconds = window.at_s - self.since_s;
        let line = self.line(window, seconds);
        if let Some(bar) = &self.bar {
            bar.show(line);
        } else if !self.quiet {
            terminal::say(line);
        }
        (self.operations, self.bytes, self.errors) = (0, 0, 0);
        (self.p99_ms, self.max_ms) = (0.0, 0.0);
        self.since_s = window.at_s;
    }

    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    fn line(&self, window: &Window, seconds: f64) -> String {
        let phase = match window.phase {
            Phase::Warmup => "warm-up",
            Phase::Measure => "measuring",
            Phase::Cooldown => "cool-down",
            Phase::Drain => "draining",
        };
        let rate = three_digits(mibps(self.bytes, seconds));
        let operations = self.operations as f64 / seconds;
        let mut line = format!(
            "{}{phase:>9} {:6.1} s  {operations:>9.0} op/s  {rate:>6} MiB/s  p99 {:>8}  max {:>8}",
            self.prefix(),
            window.at_s,
            known(self.p99_ms),
            known(self.max_ms)
        );
        if self.errors > 0 {
            line.push_str(&format!("  {} errors", self.errors));
        }
        if let Some(left) = window.left_s
            && window.phase != Phase::Drain
        {
            line.push_str(&format!("  {left:.0} s left"));
            if let Some(after) = self.after_s.filter(|after| *after > 0.0) {
                line.push_str(&format!(", {} left in all", span(left + after)));
            }
        }
        line
    }

    fn prefix(&self) -> String {
        if self.place.is_empty() { String::new() } else { format!("{}: ", self.place) }
    }
}

/// A latency in words; a dash where no operation was completed.
fn known(ms: f64) -> String {
    if ms > 0.0 { latency(ms) } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_operations_has_no_latency() {
        let mut progress = Progress::new(true);
        let window = Window {
            at_s: 0.5,
            seconds: 0.5,
            phase: Phase::Measure,
            operations: 0,
            bytes: 0,
            errors: 0,
            p99_ms: 0.0,
            max_ms: 0.000_127,
            left_s: None,
        };
        progress.window(&window);
        let line = progress.line(&window, 0.5);
        assert!(line.contains("0 op/s") && line.ends_with("p99        –  max        –"), "{line}");
    }

    #[test]
    fn a_line_says_rate_latency_errors_and_time_left() {
        let mut progress = Progress::new(true);
        let window = Window {
            at_s: 0.5,
            seconds: 0.5,
            phase: Phase::Measure,
            operations: 1024,
            bytes: 8 << 20,
            errors: 2,
            p99_ms: 1.5,
            max_ms: 2500.0,
            left_s: Some(9.0),
        };
        progress.window(&window);
        let line = progress.line(&window, 0.5);
        for part in [
            "measuring",
            "2048 op/s",
            "16.0 MiB/s",
            "p99",
            "1.50 ms",
            "max",
            "2.50 s",
            "2 errors",
            "9 s left",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(!line.contains("in all"), "{line}");
        progress.begin("step 2/3 a".to_owned(), Some(111.0));
        let line = progress.line(&window, 0.5);
        assert!(line.starts_with("step 2/3 a: ") && line.ends_with("9 s left, 2 min left in all"));
    }
}
