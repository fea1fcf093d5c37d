//! The progress on standard error: a line that changes on a terminal, and one for each measurement.

use super::Output;
use weir_bench::calibrate::Step;
use weir_core::units::{Bytes, Rate};
use weir_load::Phase;
use weir_report::errln;
use weir_report::terminal::Status;

pub(super) struct Progress {
    shown: bool,
    status: Status,
    what: String,
}

impl Progress {
    pub(super) fn new(output: Output) -> Self {
        let shown = output == Output::Table;
        Self { shown, status: Status::new(shown), what: String::new() }
    }

    pub(super) fn told(&mut self, step: Step<'_>) {
        match step {
            Step::Layout(done, total) => {
                let percent = done.saturating_mul(100).checked_div(total).unwrap_or(100);
                self.status.show(format_args!("writing the files: {percent} %"));
            }
            Step::Begin(mix, block, number, count) => {
                let block = Bytes(block.into());
                self.what = format!("{}/{count}: {mix} % reads, blocks of {block}", number + 1);
                self.status.show(&self.what);
            }
            Step::Window(window) => {
                let phase = if window.phase == Phase::Warmup { "warm-up" } else { "measuring" };
                self.status.show(format_args!("{}, {phase} {:.0} s", self.what, window.at_s));
            }
            Step::Done(cell) => {
                self.end();
                if self.shown {
                    let rate = Rate(cell.bytes_per_second);
                    errln!("{}: {rate:.2}, {} IOPS", self.what, cell.iops);
                }
            }
        }
    }

    pub(super) fn end(&self) {
        self.status.clear();
    }
}
