//! Results of a suite: its output is passed on line by line, and the results in it are counted.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

/// Numbers of tests by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Passes on what `command` prints, each line after `mark`, and counts results. A command that
/// fails without having reported a failed test counts as one.
pub(super) fn count_lines(
    command: &mut Command,
    mark: &str,
    count: fn(&str) -> Tally,
) -> Result<Tally> {
    let shown = format!("{command:?}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("running {shown}"))?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("reading the output of a suite")?;
            let line = String::from_utf8_lossy(&line);
            println!("{mark}{line}");
            tally += count(&line);
        }
    }
    if !child.wait()?.success() && tally.failed == 0 {
        println!("{mark}{shown} failed");
        tally.failed = 1;
    }
    Ok(tally)
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
pub(super) fn cargo_line(line: &str) -> Tally {
    let Some((_, counts)) =
        line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
    else {
        return Tally::default();
    };
    let count = |what: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
            .unwrap_or_default()
    };
    Tally { passed: count("passed"), failed: count("failed"), skipped: count("ignored") }
}

/// `ok - name` or `not ok - name`, as the Test Anything Protocol writes it; an `ok` that is marked
/// `# SKIP` shows nothing.
pub(super) fn tap_line(line: &str) -> Tally {
    let ok = line.starts_with("ok - ");
    let skipped = ok && line.contains(" # SKIP");
    Tally {
        passed: usize::from(ok && !skipped),
        failed: usize::from(line.starts_with("not ok - ")),
        skipped: usize::from(skipped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_from_both_kinds_of_lines() {
        let line =
            "test result: FAILED. 31 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(cargo_line(line), Tally { passed: 31, failed: 2, skipped: 1 });
        assert_eq!(cargo_line("test a ... ok"), Tally::default());
        assert_eq!(tap_line("ok - a"), Tally { passed: 1, ..Tally::default() });
        assert_eq!(tap_line("not ok - a"), Tally { failed: 1, ..Tally::default() });
        assert_eq!(tap_line("ok - a # SKIP why"), Tally { skipped: 1, ..Tally::default() });
        assert_eq!(tap_line("not ok - a # SKIP"), Tally { failed: 1, ..Tally::default() });
    }

    #[test]
    fn a_command_that_dies_silently_counts_as_a_failure() {
        let tally = count_lines(&mut Command::new("false"), "", tap_line).unwrap();
        assert_eq!(tally, Tally { failed: 1, ..Tally::default() });
    }
}
