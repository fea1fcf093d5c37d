//! The outcome of the campaign, in the shape of its JSON.

use super::fault::{Fault, Moves};
use super::round::Round;
use serde::Serialize;
use weir_lab::campaign::Origin;
use weir_lab::judge::{Check, all_kept};
use weir_results::median;

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Findings {
    /// Program, machine and time.
    #[serde(flatten)]
    pub(crate) origin: Origin,
    /// Commit of the program.
    pub(crate) commit: Option<String>,
    /// Were the pauses compared with the bars?
    pub(crate) bars: bool,
    /// Was every rule kept?
    pub(crate) passed: bool,
    /// The faults, in order.
    pub(crate) faults: Vec<FaultOutcome>,
    /// All rounds, in order.
    pub(crate) rounds: Vec<Round>,
    /// Blocks and names that were looked at in the end.
    pub(crate) looked_at_in_the_end: u64,
    /// The blocks and names that were not as they have to be, or the reason for an early end.
    pub(crate) end_misses: Vec<String>,
    /// The rules.
    #[serde(skip)]
    pub(crate) checks: Vec<Check>,
}

/// All rounds of one fault.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FaultOutcome {
    /// Name.
    pub(crate) name: &'static str,
    /// The event and the expectation.
    pub(crate) what: &'static str,
    /// The moves that it causes.
    pub(crate) moves: Moves,
    /// Longest pause, if there is a bar.
    pub(crate) bar_s: Option<f64>,
    /// Number of rounds.
    pub(crate) rounds: usize,
    /// Median of the pauses.
    pub(crate) median_s: f64,
    /// The longest pause.
    pub(crate) worst_s: f64,
    /// The longest time without an answer of a volume that did not move.
    pub(crate) others_s: f64,
    /// Number of rounds in which something was not as it has to be.
    pub(crate) missed: usize,
}

impl Findings {
    /// Nothing yet.
    pub(crate) fn new(bars: bool, commit: Option<String>) -> Self {
        Self {
            origin: Origin::here(),
            commit,
            bars,
            passed: false,
            faults: Vec::new(),
            rounds: Vec::new(),
            looked_at_in_the_end: 0,
            end_misses: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Takes a round, with the bar if pauses are compared. Returns its rule.
    pub(crate) fn judge(&mut self, fault: &Fault, mut round: Round) -> Check {
        if let Some(bar_s) = fault.bar_s.filter(|bar_s| self.bars && round.pause_s > *bar_s) {
            round.misses.push(format!("a pause of {:.2} s, at most {bar_s} s", round.pause_s));
        }
        let check = Check::new(fault.name, in_words(&round), round.misses.is_empty());
        self.checks.push(check.clone());
        self.rounds.push(round);
        check
    }

    /// The misses of the last round.
    pub(crate) fn last_misses(&self) -> &[String] {
        self.rounds.last().map(|round| round.misses.as_slice()).unwrap_or_default()
    }

    /// Takes the last look at everything. Returns its rule.
    pub(crate) fn end(&mut self, looked_at: u64, misses: Vec<String>) -> Check {
        let words = format!("{looked_at} blocks and names of all rounds, misses: {}", misses.len());
        let passed = misses.is_empty() && looked_at > 0;
        let check = Check::new("everything acknowledged is there in the end", words, passed);
        (self.looked_at_in_the_end, self.end_misses) = (looked_at, misses);
        self.checks.push(check.clone());
        check
    }

    /// Takes the reason why no further round was possible. Returns its rule.
    pub(crate) fn end_early(&mut self, error: &anyhow::Error) -> Check {
        let words = format!("after {} rounds", self.rounds.len());
        let check = Check::new("the campaign was completed", words, false);
        self.end_misses = vec![format!("{error:#}")];
        self.checks.push(check.clone());
        check
    }

    /// Sums the rounds of each fault up, if it had any.
    pub(crate) fn finish(&mut self, faults: impl Iterator<Item = &'static Fault>) {
        let sums = faults.map(|fault| self.sum(fault));
        self.faults = sums.filter(|sum| sum.rounds > 0).collect();
        self.passed = all_kept(&self.checks);
    }

    fn sum(&self, fault: &'static Fault) -> FaultOutcome {
        let own = || self.rounds.iter().filter(|round| round.fault == fault.name);
        let longest = |of: fn(&Round) -> f64| own().map(of).fold(0.0, f64::max);
        FaultOutcome {
            name: fault.name,
            what: fault.what,
            moves: fault.moves,
            bar_s: fault.bar_s,
            rounds: own().count(),
            median_s: median(own().map(|round| round.pause_s)),
            worst_s: longest(|round| round.pause_s),
            others_s: longest(|round| round.others_s),
            missed: own().filter(|round| !round.misses.is_empty()).count(),
        }
    }
}

/// A round in words.
fn in_words(round: &Round) -> String {
    let mut words = format!("{:.2} s pause", round.pause_s);
    if let Some(gateway) = &round.gateway {
        words += &format!(", {gateway}, {} addresses moved", round.moved);
    }
    if round.refused > 0 {
        words += &format!(", {} refused", round.refused);
    }
    let Round { writes, names, looked_at, .. } = round;
    words + &format!("; {writes} writes and {names} changes of names, {looked_at} looked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(fault: &'static str, pause_s: f64) -> Round {
        Round {
            fault,
            gateway: None,
            moved: 0,
            pause_s,
            others_s: 0.1,
            writes: 10,
            names: 5,
            refused: 0,
            looked_at: 8,
            misses: Vec::new(),
        }
    }

    #[test]
    fn bars_decide_only_if_they_are_asked_for() {
        let fault = &super::super::gateways::FAULTS[0];
        let judge = |bars, pause_s| {
            Findings::new(bars, None).judge(fault, round(fault.name, pause_s)).passed
        };
        assert!(judge(false, 99.0) && judge(true, 2.0) && !judge(true, 2.1));
    }

    #[test]
    fn rounds_are_summed_up_by_fault() {
        let faults = &super::super::gateways::FAULTS;
        let mut findings = Findings::new(true, None);
        for pause_s in [1.0, 3.0, 1.2] {
            findings.judge(&faults[0], round(faults[0].name, pause_s));
        }
        findings.judge(&faults[1], round(faults[1].name, 4.0));
        assert!(findings.end(10, Vec::new()).passed && !findings.end(0, Vec::new()).passed);
        findings.finish(faults.iter().take(3));
        let [first, second] = findings.faults.as_slice() else { panic!("two faults") };
        assert_eq!((first.rounds, first.missed, second.rounds), (3, 1, 1));
        assert!((first.median_s - 1.2).abs() < 1e-9 && (first.worst_s - 3.0).abs() < 1e-9);
        assert!(!findings.passed);
    }

    #[test]
    fn an_early_end_is_a_miss_of_its_own_and_keeps_the_rounds_before_it() {
        let fault = &super::super::gateways::FAULTS[0];
        let mut findings = Findings::new(false, None);
        findings.judge(fault, round(fault.name, 1.0));
        assert!(!findings.end_early(&anyhow::anyhow!("not whole")).passed);
        findings.finish(std::iter::once(fault));
        assert!(!findings.passed && findings.faults[0].missed == 0);
        assert_eq!(findings.end_misses, ["not whole"]);
    }
}
