//! The report of a fuzzing run: what libFuzzer says about itself at the end, as a table.

use super::Options;
use crate::process;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The last words of libFuzzer (`-print_final_stats=1`), 0 where it said none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    executions: u64,
    per_second: u64,
    added: u64,
    slowest_seconds: u64,
    peak_mib: u64,
}

/// A target that was fuzzed.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) target: &'static str,
    /// Inputs of the committed corpus.
    pub(crate) seeds: usize,
    pub(crate) stats: Stats,
    /// Nothing was found.
    pub(crate) is_clean: bool,
}

impl Stats {
    /// Takes a value from a line of libFuzzer, if there is one in it.
    pub(crate) fn take(&mut self, line: &str) {
        let Some((name, value)) = line.strip_prefix("stat::").and_then(|line| line.split_once(':'))
        else {
            return;
        };
        let place = match name {
            "number_of_executed_units" => &mut self.executions,
            "average_exec_per_sec" => &mut self.per_second,
            "new_units_added" => &mut self.added,
            "slowest_unit_time_sec" => &mut self.slowest_seconds,
            "peak_rss_mb" => &mut self.peak_mib,
            _ => return,
        };
        *place = value.trim().parse().unwrap_or(0);
    }
}

/// Writes the report of `rows`, the targets of a run with these options.
pub(crate) fn write(out: &Path, options: &Options, rows: &[Row]) -> Result<()> {
    let machine = machine()?;
    let page = page((options.seconds, options.jobs), rows, &machine);
    fs::write(out, page).with_context(|| format!("writing {out:?}"))
}

fn page((seconds, jobs): (u32, usize), rows: &[Row], machine: &str) -> String {
    let executions: u64 = rows.iter().map(|row| row.stats.executions).sum();
    let findings = rows.iter().filter(|row| !row.is_clean).count();
    let verdict = if findings == 0 { "**Pass.** " } else { "**Fail.** " };
    let mut page = format!(
        "# Fuzzing\n\n{} targets for {seconds} s each, {jobs} at the same time, by `make fuzz`.\n\n\
         {verdict}{executions} executions, {findings} targets with a finding.\n\n\
         | target | seeds | executions | per second | inputs added | slowest, s | memory, MiB | findings |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
        rows.len(),
    );
    for Row { target, seeds, stats, is_clean } in rows {
        let Stats { executions, per_second, added, slowest_seconds, peak_mib } = stats;
        let finding = u8::from(!is_clean);
        // A string takes any text.
        let _ = writeln!(
            page,
            "| {target} | {seeds} | {executions} | {per_second} | {added} | {slowest_seconds} | \
             {peak_mib} | {finding} |"
        );
    }
    page + "\n\
        Seeds are the inputs of the committed corpus; inputs added reached code that no input \
        before them did. The slowest\ninput and the memory are those of the whole run.\n\n"
        + machine
        + "\n"
}

fn machine() -> Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let models = cpus.lines().filter_map(|line| line.strip_prefix("model name"));
    let models: Vec<&str> = models.map(|line| line.trim_start_matches([' ', '\t', ':'])).collect();
    let model = models.first().copied().unwrap_or("an unknown processor");
    let rustc = process::output("rustc", &["-V"])?;
    Ok(format!("{model}, {} processors, {}.", models.len(), rustc.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_libfuzzer_become_a_row() {
        let mut stats = Stats::default();
        for line in [
            "Done 5000 runs in 2 second(s)",
            "stat::number_of_executed_units: 5000",
            "stat::average_exec_per_sec:     2500",
            "stat::new_units_added:          17",
            "stat::slowest_unit_time_sec:    0",
            "stat::peak_rss_mb:              41",
            "stat::of_a_later_version:       9",
        ] {
            stats.take(line);
        }
        let expected = Stats {
            executions: 5000,
            per_second: 2500,
            added: 17,
            slowest_seconds: 0,
            peak_mib: 41,
        };
        assert_eq!(stats, expected);
        let row =
            |is_clean| Row { target: "wire", seeds: 3, stats: Stats { ..expected }, is_clean };
        let shown = page((2, 1), &[row(true)], "A machine.");
        assert!(shown.contains("**Pass.** 5000 executions, 0 targets with a finding."), "{shown}");
        assert!(shown.contains("| wire | 3 | 5000 | 2500 | 17 | 0 | 41 | 0 |"), "{shown}");
        let failed = page((2, 1), &[row(false)], "A machine.");
        assert!(failed.contains("**Fail.** 5000 executions, 1 targets with a finding."));
    }
}
