//! The rules that campaigns judge, and whether they were kept. Nothing here measures.

use serde::Serialize;
use weir_load::stats::result::Interval;
use weir_report::{Cell, Column, Table};

/// One rule and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The rule in words.
    pub rule: String,
    /// The worst value met.
    pub worst: String,
    /// Was the rule kept?
    pub passed: bool,
    /// The interval in which the worst value was met, for a rule about intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Interval>,
    /// The machine's state in that interval, if the rule was not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<String>,
}

impl Check {
    /// The rule, the worst that was met, and whether that is within the rule.
    pub fn new(rule: impl Into<String>, worst: impl Into<String>, passed: bool) -> Self {
        let (rule, worst) = (rule.into(), worst.into());
        Self { rule, worst, passed, within: None, meanwhile: None }
    }

    /// The rule that `found` is at most `most`.
    pub fn at_most(what: &str, found: f64, most: f64, unit: &str) -> Self {
        let rule = format!("{what}, at most {most} {unit}");
        Self::new(rule, format!("{found:.0} {unit}"), found <= most)
    }

    /// This check, with its worst value met in the interval `from_s..to_s` (seconds of the load).
    pub fn within(self, from_s: f64, to_s: f64) -> Self {
        Self { within: Some(Interval { from_s, to_s }), ..self }
    }

    /// This check, with a name before its rule.
    pub fn of(self, who: &str) -> Self {
        Self { rule: format!("{who}: {}", self.rule), ..self }
    }

    /// Prints the check in the form of the Test Anything Protocol.
    pub fn print(&self) {
        let word = if self.passed { "ok" } else { "not ok" };
        weir_report::outln!("{word} - {}: {}", self.rule, self.worst);
    }
}

/// Was every rule kept? A campaign that judged nothing has shown nothing.
pub fn all_kept(checks: &[Check]) -> bool {
    !checks.is_empty() && checks.iter().all(|check| check.passed)
}

/// The rules and their worst values.
pub fn table(checks: &[Check]) -> Table {
    let columns = vec![Column::words("rule"), Column::figures("worst met"), Column::words("")];
    let rows = checks.iter().map(|check| {
        let word = if check.passed { "kept" } else { "missed" };
        vec![
            check.rule.as_str().into(),
            Cell::judged(check.worst.clone(), check.passed),
            Cell::judged(word, check.passed),
        ]
    });
    Table { columns, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_without_rules_is_not_kept() {
        let (kept, missed) = (Check::new("r", "w", true), Check::new("r", "w", false));
        assert!(!all_kept(&[]));
        assert!(all_kept(std::slice::from_ref(&kept)));
        assert!(!all_kept(&[kept, missed]));
    }

    #[test]
    fn a_figure_may_reach_its_bound_and_nan_may_not() {
        let passed = |found| Check::at_most("memory", found, 100.0, "MiB").passed;
        assert!(passed(100.0) && !passed(100.1) && !passed(f64::NAN));
    }

    #[test]
    fn the_table_says_which_rules_were_missed() {
        let checks = [Check::new("a", "1", true), Check::new("b", "2", false).of("v")];
        let text = table(&checks).to_markdown();
        assert!(
            text.contains("| a | 1 | kept |") && text.contains("| v: b | **2** | **missed** |")
        );
    }
}
