//! The progress of laying files out: the part that is done, its rate, and the time that is left.

use std::time::Instant;
use weir_core::units::{span, three_digits};
use weir_load::stats::result::mibps;
use weir_load::workload::{Layout, Workload};

/// Seconds between two lines where there is no bar.
const LINE_S: f64 = 5.0;
/// Seconds after which a rate is meaningful.
const RATE_S: f64 = 1.0;

/// The unit in which a layout tells how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes that are written.
    Bytes,
    /// Anything else: files that are made, or bytes of holes, where nothing is written.
    Other,
}

impl Unit {
    /// The unit of the layout of `loads`.
    #[must_use]
    pub fn of<'a>(loads: impl IntoIterator<Item = &'a Workload>) -> Self {
        let is_written = |load: &Workload| {
            matches!(load.layout, Layout::Written { .. })
                && load.needs_files()
                && load.file_bytes > 0
        };
        if loads.into_iter().any(is_written) { Self::Bytes } else { Self::Other }
    }
}

/// One layout.
#[derive(Debug, Default)]
pub(super) struct Laying {
    began: Option<Instant>,
    /// `done` at the first report.
    from: u64,
    done: u64,
    total: u64,
    /// When the last line was printed, in seconds.
    told_s: f64,
}

impl Laying {
    /// Notes that `done` of `total` are done; returns the seconds since it was first told of this
    /// layout.
    pub(super) fn at(&mut self, done: u64, total: u64) -> f64 {
        if total != self.total || done < self.done {
            *self = Self { from: done, total, ..Self::default() };
        }
        self.done = done;
        self.began.get_or_insert_with(Instant::now).elapsed().as_secs_f64()
    }

    /// Is it time for another line, after so many seconds?
    pub(super) fn is_due(&mut self, seconds: f64) -> bool {
        let due = seconds - self.told_s >= LINE_S;
        if due {
            self.told_s = seconds;
        }
        due
    }

    /// The progress in words, after so many seconds.
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    pub(super) fn line(&self, unit: Unit, seconds: f64) -> String {
        let percent = self.done.saturating_mul(100).checked_div(self.total).unwrap_or(100);
        let mut line = format!("laying out the files: {percent} %");
        let moved = self.done.saturating_sub(self.from);
        if seconds < RATE_S || moved == 0 {
            return line;
        }
        if unit == Unit::Bytes {
            line.push_str(&format!(", {} MiB/s", three_digits(mibps(moved, seconds))));
        }
        let left = self.total.saturating_sub(self.done);
        if left > 0 {
            line.push_str(&format!(", {} left", span(left as f64 * seconds / moved as f64)));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_tells_its_rate_and_the_time_that_is_left() {
        let mut laying = Laying::default();
        let _since = laying.at(0, 1 << 30);
        assert_eq!(laying.line(Unit::Bytes, 0.0), "laying out the files: 0 %");
        let _since = laying.at(256 << 20, 1 << 30);
        let wanted = "laying out the files: 25 %, 32.0 MiB/s, 24 s left";
        assert_eq!(laying.line(Unit::Bytes, 8.0), wanted);
        assert_eq!(laying.line(Unit::Bytes, 0.5), "laying out the files: 25 %");
        let _since = laying.at(1 << 30, 1 << 30);
        assert_eq!(laying.line(Unit::Bytes, 8.0), "laying out the files: 100 %, 128 MiB/s");
        let _since = laying.at(500, 1000);
        assert_eq!(laying.line(Unit::Other, 2.0), "laying out the files: 50 %", "it began there");
        let _since = laying.at(600, 1000);
        let wanted = "laying out the files: 60 %, 8 s left";
        assert_eq!(laying.line(Unit::Other, 2.0), wanted);
    }

    #[test]
    fn lines_come_at_intervals() {
        let mut laying = Laying::default();
        let _since = laying.at(1, 10);
        let due = [0.0, 4.9, 5.0, 9.9, 10.0].map(|seconds| laying.is_due(seconds));
        assert_eq!(due, [false, false, true, false, true]);
        let _since = laying.at(1, 20);
        assert!(laying.is_due(5.0), "another layout begins anew");
    }

    #[test]
    fn the_unit_is_that_of_the_layout() {
        let load = Workload::default();
        let sparse = Workload { layout: Layout::Sparse, ..load.clone() };
        assert_eq!(Unit::of([&sparse, &load]), Unit::Bytes);
        assert_eq!(Unit::of([&sparse]), Unit::Other);
        assert_eq!(Unit::of([&Workload { file_bytes: 0, ..load }]), Unit::Other);
    }
}
