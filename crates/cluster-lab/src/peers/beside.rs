//! The processor time that others took during the campaign: programs of this machine that are no
//! part of it. Figures that were measured beside them are rougher.

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;
use std::fs::read_to_string;
use std::time::Instant;
use weir_lab::comparison::Reading;

/// The first process of the campaign's namespace: all others descend from it.
const FIRST: u32 = 1;

/// A watch over the processors.
#[derive(Debug)]
pub(super) struct Beside {
    begun: Instant,
    busy_s: f64,
    own: Reading,
}

impl Beside {
    /// From now on.
    ///
    /// # Errors
    /// If the system does not tell.
    pub(super) fn watch() -> Result<Self> {
        Ok(Self { begun: Instant::now(), busy_s: busy_s()?, own: Reading::take(FIRST)? })
    }

    /// Processors that others have kept busy since, on average.
    ///
    /// # Errors
    /// If the system does not tell.
    pub(super) fn processors(&self) -> Result<f64> {
        let own_s = Reading::take(FIRST)?.since(&self.own).process_s;
        let busy_s = busy_s()? - self.busy_s;
        Ok(((busy_s - own_s) / self.begun.elapsed().as_secs_f64()).max(0.0))
    }
}

fn busy_s() -> Result<f64> {
    let text = read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&text, clock_ticks_per_second()).context("/proc/stat has another form")
}

/// The time that all processors ran processes since the machine started (proc_stat(5)), in seconds.
#[expect(clippy::cast_precision_loss, reason = "ticks stay far below 2^52")]
fn busy(text: &str, ticks_per_second: u64) -> Option<f64> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, ..] = ticks.as_slice() else { return None };
    Some((user + nice + system) as f64 / ticks_per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_count_and_interrupts_and_idleness_do_not() {
        let text = "cpu  100 20 30 5000 6 7 8 9\ncpu0 1 2 3\n";
        assert_eq!(busy(text, 100), Some(1.5));
        assert_eq!(busy("intr 1 2\n", 100), None);
        assert_eq!(busy("cpu  100 x\n", 100), None);
        assert!(busy_s().unwrap() > 0.0);
    }
}
