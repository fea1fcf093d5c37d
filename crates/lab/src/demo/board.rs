//! The demo's display while it runs: the present rate of each load.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_load::engine::{Phase, Window};
use weir_report::terminal::{self, Bars};

/// Interval of progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Windows of 100 ms that a shown rate is the mean of.
const SMOOTHED: usize = 20;

/// The progress of one phase.
pub(super) struct Board {
    rows: Vec<Arc<Row>>,
    _bars: Bars,
    terminal: bool,
    begun: Instant,
    printed: Instant,
}

struct Row {
    name: String,
    bar: terminal::Row,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    recent: Vec<(f64, f64)>,
    mibps: f64,
}

impl Board {
    /// A row for each load, with its name; `seconds` is how long the loads last.
    pub(super) fn new(names: impl Iterator<Item = String>, seconds: f64) -> Self {
        let bars = Bars::default();
        let rows = names.map(|name| {
            let bar = bars.add(&name, tenths(seconds));
            Arc::new(Row { name, bar, state: Mutex::default() })
        });
        let rows = rows.collect();
        let now = Instant::now();
        let terminal = terminal::shows_errors();
        Self { rows, _bars: bars, terminal, begun: now, printed: now }
    }

    /// Takes the windows of the load in this row.
    pub(super) fn observer(&self, number: usize) -> impl FnMut(&Window) + Send + 'static {
        let row = self.rows.get(number).map(Arc::clone);
        move |window| {
            if let Some(row) = &row {
                row.show(window);
            }
        }
    }

    /// Prints a line at intervals if bars can't be shown.
    pub(super) fn tick(&mut self) {
        if self.terminal || self.printed.elapsed() < LINE_EVERY {
            return;
        }
        self.printed = Instant::now();
        let rates: Vec<String> = self
            .rows
            .iter()
            .map(|row| {
                let state = row.state.lock().unwrap_or_else(PoisonError::into_inner);
                format!("{} {:.2}", row.name, state.mibps)
            })
            .collect();
        weir_report::errln!(
            "  {:3.0} s  MiB/s: {}",
            self.begun.elapsed().as_secs_f64(),
            rates.join(" | ")
        );
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        for row in &self.rows {
            row.bar.finish();
        }
    }
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "bytes of a tenth of a second")]
    fn show(&self, window: &Window) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.recent.len() >= SMOOTHED {
            state.recent.remove(0);
        }
        state.recent.push((window.seconds, window.bytes as f64));
        let (seconds, bytes) =
            state.recent.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        state.mibps = bytes / f64::max(seconds, 1e-9) / 1_048_576.0;
        let doing = match window.phase {
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Cooldown => "cooling down",
            Phase::Drain => "waiting for the last replies",
        };
        self.bar.show(tenths(window.at_s), format_args!("{:7.2} MiB/s  {doing}", state.mibps));
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a run lasts minutes")]
fn tenths(seconds: f64) -> u64 {
    (seconds.max(0.0) * 10.0) as u64
}
