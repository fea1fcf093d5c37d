//! Pairs of the catalogue in results: found, and judged against their published ratios.
//!
//! Both sides of a pair must have been measured on one target: in one result, or in two. The rules
//! are stated for users in `docs/bench-results.md`. What is *not* here: which pairs there are
//! ([`weir_scenario::catalogue::pairs`]), and running anything.

mod present;
mod verdict;

pub(crate) use present::{RULE, chart, open, remarks, table, write};

use super::judge::doubts;
use super::same::differences_in_words;
use super::{Figure, Ratio};
use crate::{PairResult, PairSide, PairVerdict, Results, Spread, StepResult, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_scenario::catalogue::pairs::{Compared, Pair, Pick, Side, pairs};

/// The pairs of which results have a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judged {
    /// The pairs whose sides were both measured.
    pub pairs: Vec<PairResult>,
    /// The other pairs, by the reason.
    pub open_pairs: Vec<OpenPairs>,
}

/// Pairs that can't be judged for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPairs {
    /// The reason, in a sentence without its full stop.
    pub why: String,
    /// The titles of the pairs.
    pub titles: Vec<String>,
}

impl Judged {
    /// Is there nothing to tell?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.open_pairs.is_empty()
    }
}

/// The pairs of the catalogue in `results`.
#[must_use]
pub fn judge(results: &[&Results]) -> Judged {
    let mut judged = Judged::default();
    for pair in pairs() {
        let [bases, others] =
            [&pair.base, &pair.other].map(|side| find(side, pair.figure, results));
        if bases.is_empty() && others.is_empty() {
            continue;
        }
        let before = judged.pairs.len();
        for base in &bases {
            let found = partner(base, &others);
            judged.pairs.extend(found.and_then(|other| judged_pair(&pair, base, other)));
        }
        if judged.pairs.len() == before {
            let why = missing(&pair, bases.is_empty(), others.is_empty());
            match judged.open_pairs.iter_mut().find(|known| known.why == why) {
                Some(known) => known.titles.push(pair.title),
                None => judged.open_pairs.push(OpenPairs { why, titles: vec![pair.title] }),
            }
        }
    }
    judged
}

/// A side in one of the results.
struct Found<'a> {
    results: &'a Results,
    test: &'a str,
    step: &'a StepResult,
    summary: &'a Summary,
}

impl Found<'_> {
    /// Sentences about the contracts that were the limit of at least half of the repeats.
    fn contracts_reached(&self) -> Vec<String> {
        let contracts = &self.results.environment.contracts;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for said in self.step.runs.iter().flat_map(|run| run.reached(contracts)) {
            *counts.entry(said).or_default() += 1;
        }
        let half = self.step.runs.len().div_ceil(2);
        counts.into_iter().filter(|(_, times)| *times >= half).map(|(said, _)| said).collect()
    }

    /// Was something else than the server the limit of at least half of the repeats?
    fn is_limited(&self) -> bool {
        let saturated = self.step.runs.iter().filter(|run| run.total.generator.saturated).count();
        saturated * 2 >= self.step.runs.len() || !self.contracts_reached().is_empty()
    }

    /// The reasons against the figures.
    fn doubts(&self, label: &str) -> Vec<String> {
        let contracts = self.contracts_reached().into_iter().map(|said| format!("{label}: {said}"));
        doubts(self.step, label).into_iter().chain(contracts).collect()
    }
}

/// `side` in each of the results that have it.
fn find<'a>(side: &Side, figure: Compared, results: &[&'a Results]) -> Vec<Found<'a>> {
    let set = |one: &Results| match &side.setting {
        Some((name, value)) => one.environment.settings.get(name) == Some(value),
        None => true,
    };
    let of = |results: &'a Results| {
        let test = results.tests.iter().find(|test| test.name == side.test)?;
        let steps = test.steps.iter().filter(|step| !step.preparation);
        let measured = steps.filter_map(|step| Some((step, step.summary.as_ref()?)));
        let (step, summary) = match &side.pick {
            Pick::Step(name) => measured.into_iter().find(|(step, _)| step.name == *name),
            Pick::Best(group) => {
                let of_group = measured.into_iter().filter(|(step, _)| step.group == *group);
                of_group
                    .max_by(|a, b| value(figure, a.1).median.total_cmp(&value(figure, b.1).median))
            }
        }?;
        Some(Found { results, test: &test.name, step, summary })
    };
    results.iter().copied().filter(|one| set(one)).filter_map(of).collect()
}

/// The other side of `base`: of the same result, or of the first other one of the same target.
fn partner<'a, 'b>(base: &Found<'_>, others: &'b [Found<'a>]) -> Option<&'b Found<'a>> {
    let same = others.iter().find(|other| std::ptr::eq(other.results, base.results));
    same.or_else(|| others.iter().find(|other| other.results.target == base.results.target))
}

const fn value(figure: Compared, summary: &Summary) -> Spread {
    match figure {
        Compared::Operations => summary.iops,
        Compared::Throughput => summary.mibps,
        Compared::Mean => summary.mean_ms,
    }
}

const fn figure_of(figure: Compared) -> Figure {
    match figure {
        Compared::Operations => Figure::Operations,
        Compared::Throughput => Figure::Throughput,
        Compared::Mean => Figure::Mean,
    }
}

fn judged_pair(pair: &Pair, base: &Found<'_>, other: &Found<'_>) -> Option<PairResult> {
    let ratio = Ratio::of(figure_of(pair.figure), base.summary, other.summary)?;
    let side = |side: &Side, found: &Found<'_>| PairSide {
        label: side.label.clone(),
        result: found.results.label.clone(),
        test: found.test.to_owned(),
        step: found.step.name.clone(),
        value: value(pair.figure, found.summary),
        repeats: found.summary.repeats,
    };
    let differences = differences_in_words(base.step, other.step);
    let same_load = differences.is_empty() && pair.base.setting == pair.other.setting;
    let limited = [base, other].iter().all(|found| found.is_limited());
    let verdict = match (same_load, limited) {
        (true, _) => PairVerdict::SameLoad,
        (false, true) => PairVerdict::Limited,
        (false, false) => verdict::of(&ratio, &pair.published),
    };
    Some(PairResult {
        name: pair.name.clone(),
        title: pair.title.clone(),
        figure: pair.figure,
        base: side(&pair.base, base),
        other: side(&pair.other, other),
        ratio: ratio.ratio,
        low: ratio.low,
        high: ratio.high,
        confidence: ratio.confidence,
        published_ratio: pair.published.clone(),
        verdict,
        differences,
        remarks: doubts_about(pair, base, other),
    })
}

/// The doubts about the figures of both sides, each once.
fn doubts_about(pair: &Pair, base: &Found<'_>, other: &Found<'_>) -> Vec<String> {
    const BOTH: &str = "both sides";
    let [first, second] = [base, other].map(|found| found.doubts(BOTH));
    let both = first.iter().filter(|doubt| second.contains(doubt));
    let mut all: Vec<String> = both.cloned().collect();
    for (found, label, own, others) in
        [(base, &pair.base.label, &first, &second), (other, &pair.other.label, &second, &first)]
    {
        let told = found.doubts(label).into_iter().zip(own);
        all.extend(told.filter(|(_, doubt)| !others.contains(doubt)).map(|(told, _)| told));
    }
    all
}

/// Why a pair of which a side was measured can't be judged.
fn missing(pair: &Pair, no_base: bool, no_other: bool) -> String {
    let side = match (no_base, no_other) {
        (true, _) => &pair.base,
        (_, true) => &pair.other,
        (false, false) => {
            return "the two sides were measured on different targets, or one has no such figure"
                .to_owned();
        }
    };
    let step = match &side.pick {
        Pick::Step(step) => format!("step {step} of {}", side.test),
        Pick::Best(group) => format!("a step of {:?} in {}", group, side.test),
    };
    match &side.setting {
        Some((name, value)) => {
            format!("{} with --setting {name}={value} was not measured", side.test)
        }
        None => format!("{step} was not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::step_result;
    use crate::{Contract, TestResult};
    use weir_scenario::scenario::{Cache, Chart, Language};

    /// A step with five repeats that reached about these figures.
    fn step(name: &str, group: &str, iops: f64) -> StepResult {
        let mut step = step_result(iops, 1.0);
        (step.name, step.group) = (name.to_owned(), group.to_owned());
        step.runs = [0.99, 1.0, 1.0, 1.0, 1.01]
            .map(|part| step_result(iops * part, 1.0 / part).runs.remove(0))
            .into();
        step.summary = Summary::of(&step.runs);
        step
    }

    /// The same, with caches excluded.
    fn uncached(name: &str, iops: f64) -> StepResult {
        let mut step = step(name, "", iops);
        step.cache.wanted = Cache::Excluded;
        step
    }

    /// The same, with eight connections.
    fn of_eight(name: &str, iops: f64) -> StepResult {
        let mut step = step(name, "nconnect=8", iops);
        step.runs.iter_mut().for_each(|run| run.total.workload.connections = 8);
        step
    }

    fn results(target: &str, tests: Vec<(&str, Vec<StepResult>)>) -> Results {
        let test = |(name, steps): (&str, Vec<StepResult>)| TestResult {
            name: name.to_owned(),
            title: String::new(),
            about: String::new(),
            source: None,
            language: Language::Catalogue,
            chart: Chart::Bars,
            changes: Vec::new(),
            steps,
            findings: Vec::new(),
            waiting: None,
        };
        Results {
            label: target.to_owned(),
            target: target.to_owned(),
            tests: tests.into_iter().map(test).collect(),
            ..Results::default()
        }
    }

    const CACHED: &str = "anf-linux-4k-random";
    const UNCACHED: &str = "anf-linux-4k-random-uncached";

    #[test]
    fn two_tests_of_one_result_are_a_pair() {
        let both = results(
            "a",
            vec![
                (CACHED, vec![step("reads-100", "", 1000.0)]),
                (UNCACHED, vec![uncached("reads-100", 830.0)]),
            ],
        );
        let judged = judge(&[&both]);
        let [pair] = judged.pairs.as_slice() else { panic!("{judged:?}") };
        assert_eq!(
            (pair.name.as_str(), pair.verdict),
            ("anf-uncached-4k-reads", PairVerdict::AsPublished)
        );
        assert!((pair.ratio - 0.83).abs() < 1e-6 && pair.low < 0.83 && pair.high > 0.83);
        assert_eq!((pair.base.test.as_str(), pair.other.test.as_str()), (CACHED, UNCACHED));
        assert_eq!(judged.open_pairs, []);
    }

    #[test]
    fn two_results_of_one_target_are_a_pair_and_of_two_targets_are_none() {
        let first = |target| results(target, vec![(CACHED, vec![step("reads-100", "", 1000.0)])]);
        let second = results("a", vec![(UNCACHED, vec![uncached("reads-100", 500.0)])]);
        let (same, elsewhere) = (first("a"), first("b"));
        let judged = judge(&[&same, &second]);
        assert_eq!(judged.pairs[0].verdict, PairVerdict::Stronger);
        let judged = judge(&[&elsewhere, &second]);
        assert_eq!(judged.pairs, []);
        assert!(judged.open_pairs[0].why.contains("different targets"), "{judged:?}");
        let alone = judge(&[&same]);
        let told = format!("step reads-100 of {UNCACHED} was not measured");
        assert_eq!(alone.open_pairs[0].why, told);
    }

    #[test]
    fn sides_with_the_same_load_have_no_verdict() {
        let steps = |other| vec![step("nconnect=1-8", "nconnect=1", 1000.0), other];
        let verdict = |other| {
            let both = results("a", vec![("anf-nconnect-4k-random", steps(other))]);
            judge(&[&both]).pairs[0].verdict
        };
        assert_eq!(verdict(of_eight("nconnect=8-8", 2500.0)), PairVerdict::AsPublished);
        let same = step("nconnect=8-8", "nconnect=8", 2500.0);
        assert_eq!(verdict(same), PairVerdict::SameLoad);
    }

    #[test]
    fn sides_that_the_server_did_not_limit_have_no_verdict() {
        // 4,000 operations of 4 KiB a second are 15.6 MiB/s.
        let limited = |contract_mib: u64, saturated: [bool; 2]| {
            let mut sides = [step("reads-100", "", 4000.0), uncached("reads-100", 3980.0)];
            for (side, saturated) in sides.iter_mut().zip(saturated) {
                side.runs.iter_mut().for_each(|run| run.total.generator.saturated = saturated);
            }
            let [base, other] = sides;
            let mut both = results("a", vec![(CACHED, vec![base]), (UNCACHED, vec![other])]);
            let contract = Contract { bytes_per_second: contract_mib << 20, ..Contract::default() };
            both.environment.contracts = [(String::new(), contract)].into();
            judge(&[&both]).pairs.remove(0)
        };
        let free = limited(100, [false, true]);
        assert_eq!(free.verdict, PairVerdict::NotShown);
        let by_contract = limited(16, [false, false]);
        assert_eq!(by_contract.verdict, PairVerdict::Limited);
        let told = "both sides: the contract of volume  was the limit (16 MiB/s)";
        assert!(by_contract.remarks[0].starts_with(told), "{:?}", by_contract.remarks);
        let by_generator = limited(100, [true, true]);
        assert_eq!(by_generator.verdict, PairVerdict::Limited);
        assert_eq!(by_generator.remarks, ["both sides: the generator was the limit"]);
    }

    #[test]
    fn doubts_about_both_sides_are_told_once() {
        let with = |open: &[&str]| {
            let mut step = step("reads-100", "", 1000.0);
            step.cache.wanted = Cache::Excluded;
            step.cache.open = open.iter().map(|&doubt| doubt.to_owned()).collect();
            vec![step]
        };
        let both = results("a", vec![(CACHED, with(&["x", "y"])), (UNCACHED, with(&["y", "z"]))]);
        let remarks = &judge(&[&both]).pairs[0].remarks;
        let expected =
            ["both sides: caches: y", "cache included: caches: x", "cache excluded: caches: z"];
        assert_eq!(*remarks, expected);
    }

    #[test]
    fn the_best_steps_of_two_groups_are_compared() {
        let test = "anf-nconnect-4k-random";
        let steps = vec![
            step("nconnect=1-8", "nconnect=1", 900.0),
            step("nconnect=1-128", "nconnect=1", 1000.0),
            of_eight("nconnect=8-8", 1500.0),
            of_eight("nconnect=8-16", 2500.0),
        ];
        let judged = judge(&[&results("a", vec![(test, steps)])]);
        let [pair] = judged.pairs.as_slice() else { panic!("{judged:?}") };
        assert_eq!(
            (pair.base.step.as_str(), pair.other.step.as_str()),
            ("nconnect=1-128", "nconnect=8-16")
        );
        assert_eq!(pair.verdict, PairVerdict::AsPublished);
        // Latencies are compared at a point that was measured on one side.
        assert_eq!(
            judged.open_pairs[0].why,
            format!("step nconnect=8-128 of {test} was not measured")
        );
    }

    #[test]
    fn a_setting_of_the_server_tells_two_results_of_one_test_apart() {
        let with = |value: &str, iops: f64| {
            let steps = vec![step("open", "", iops)];
            let mut one = results("a", vec![("azure-metadata-cache", steps)]);
            one.environment.settings.insert("metadata-cache".to_owned(), value.to_owned());
            one
        };
        let (off, on) = (with("off", 1000.0), with("on", 1200.0));
        for order in [[&off, &on], [&on, &off]] {
            let judged = judge(&order);
            let names: Vec<&str> = judged.pairs.iter().map(|pair| pair.name.as_str()).collect();
            assert_eq!(names, ["azure-metadata-open-latency", "azure-metadata-open-iops"]);
            let verdicts: Vec<_> = judged.pairs.iter().map(|pair| pair.verdict).collect();
            assert_eq!(verdicts, [PairVerdict::NotShown, PairVerdict::Weaker]);
        }
        let alone = judge(&[&on, &on]);
        assert_eq!(alone.pairs, []);
        assert!(alone.open_pairs[0].why.contains("--setting metadata-cache=off"), "{alone:?}");
        // Results of servers whose setting nobody told are no pair.
        let plain = results("a", vec![("azure-metadata-cache", vec![step("open", "", 1.0)])]);
        assert!(judge(&[&plain, &plain]).is_empty());
    }
}
