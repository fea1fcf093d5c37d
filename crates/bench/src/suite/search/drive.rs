//! Having probes applied, and putting what was learnt into words.

use super::Probe;
use super::knee::{Point, knee};
use super::rate::{Next, RateSearch, SearchResult};
use super::scale::{Enough, ScaleSearch};
use crate::suite::event::Event;
use crate::suite::run::{Suite, SuiteOutcome, Whole, blank};
use crate::suite::state::SuiteState;
use weir_core::units::{latency, three_digits};
use weir_load::workload::{Rate, Workload};
use weir_results::{Finding, TestResult};
use weir_scenario::scenario::{Axis, Chart, Language, Scenario, Step};

/// Doublings without a gain that a curve goes on for, so that it shows the rise after its knee.
const BEYOND: usize = 2;

/// The quantity that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varied {
    /// Connections of each client.
    Connections,
    /// Jobs.
    Jobs,
    /// Requests in flight of each job.
    Depth,
}

impl Varied {
    /// In words, for axes.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Jobs => "jobs",
            Self::Depth => "requests in flight of each job",
        }
    }

    fn set(self, load: &mut Workload, number: u32) {
        match self {
            Self::Connections => load.connections = number,
            Self::Jobs => load.jobs = number,
            Self::Depth => load.depth = number,
        }
    }
}

/// The question about a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// The highest rate with p99 under so many milliseconds.
    RateUnder(f64),
    /// The knee of the curve of latency over throughput, over requests in flight up to this bound.
    Knee(u32),
    /// The number up to which more of something helps, up to a bound.
    Scaling(Varied, u32),
}

impl Question {
    fn scenario(self, load: &Workload) -> Scenario {
        let (name, title, chart) = match self {
            Self::RateUnder(ms) => (
                "search-p99",
                format!("Highest rate with p99 under {}", latency(ms)),
                Chart::LatencyCurve,
            ),
            Self::Knee(_) => {
                ("search-knee", "Knee of the latency curve".to_owned(), Chart::LatencyCurve)
            }
            Self::Scaling(Varied::Connections, _) => {
                ("search-connections", "Scaling over connections".to_owned(), Chart::Lines)
            }
            Self::Scaling(Varied::Jobs, _) => {
                ("search-jobs", "Scaling over jobs".to_owned(), Chart::Lines)
            }
            Self::Scaling(Varied::Depth, _) => {
                ("search-depth", "Scaling over requests in flight".to_owned(), Chart::Lines)
            }
        };
        Scenario {
            name: name.to_owned(),
            title,
            about: format!("Searched with the load {:?}; each probe is a step.", load.name),
            source: None,
            language: Language::Native,
            chart,
            steps: Vec::new(),
            changes: Vec::new(),
            waiting: None,
            addresses: None,
            target: None,
            text: None,
            hosts: Vec::new(),
        }
    }
}

/// Searches for the answers to `questions` with `load`, one after the other.
pub fn search(suite: &mut Suite<'_>, load: &Workload, questions: &[Question]) -> SuiteOutcome {
    let mut outcome = suite.begin();
    let mut whole = Whole::default();
    let of = questions.len();
    for (index, question) in questions.iter().enumerate() {
        let scenario = question.scenario(load);
        (suite.observer)(&Event::Test { scenario: &scenario, number: index + 1, of });
        let mut driver = Driver {
            state: SuiteState::new(&scenario.name, suite.options.seed),
            test: blank(&scenario),
            suite: &mut *suite,
            whole: &mut whole,
            load,
        };
        let finding = match *question {
            Question::RateUnder(ms) => driver.rate_under(ms),
            Question::Knee(most) => driver.knee(most),
            Question::Scaling(varied, most) => driver.scaling(varied, most),
        };
        let mut test = driver.finish();
        test.findings.extend(finding);
        outcome.results.tests.push(test);
    }
    suite.end(outcome, whole)
}

struct Driver<'s, 'a, 'w> {
    suite: &'s mut Suite<'a>,
    whole: &'w mut Whole,
    state: SuiteState,
    test: TestResult,
    load: &'w Workload,
}

impl Driver<'_, '_, '_> {
    /// Applies `load` as a step; `None` if nothing came of it.
    fn probe(&mut self, name: &str, axis: Option<Axis>, load: Workload) -> Option<Probe> {
        let taken = |name: &str| self.test.steps.iter().any(|step| step.name == name);
        let name = if taken(name) { format!("{name}, again") } else { name.to_owned() };
        let step = Step { name, axis, loads: vec![load], shares_files: true, ..Step::default() };
        let number = self.test.steps.len() + 1;
        (self.suite.observer)(&Event::Step { step: &step, number, of: None });
        let result = self.state.step(self.suite, self.whole, &step);
        (self.suite.observer)(&Event::Done(&result));
        let summary = result.summary;
        let ended = result.skipped.is_some() || result.runs.iter().all(|run| run.total.interrupted);
        let saturated = result.runs.iter().any(|run| run.total.generator.saturated);
        self.test.steps.push(result);
        let summary = summary.filter(|_| !ended)?;
        Some(Probe {
            iops: summary.iops.median,
            p99_ms: summary.p99_ms.median,
            mean_ms: summary.mean_ms.median,
            saturated,
        })
    }

    fn finish(mut self) -> TestResult {
        self.state.finish(self.suite, self.whole);
        self.test
    }

    fn names(&self) -> Vec<String> {
        self.test.steps.iter().map(|step| step.name.clone()).collect()
    }

    fn rate_under(&mut self, ms: f64) -> Option<Finding> {
        let mut search = RateSearch::new(ms);
        loop {
            match search.next() {
                Next::Unlimited => {
                    let load = Workload { rate: Rate::Unlimited, ..self.load.clone() };
                    let probe = self.probe("unlimited", None, load)?;
                    search.unlimited(&probe);
                }
                Next::Rate(rate) => {
                    let load = Workload { rate: Rate::Operations(rate), ..self.load.clone() };
                    let axis = Axis { label: "op/s wanted".to_owned(), value: rate };
                    let name = format!("{} op/s", exact(rate));
                    let probe = self.probe(&name, Some(axis), load)?;
                    search.rate(rate, &probe);
                }
                Next::Done(answer) => return Some(self.rate_finding(ms, answer)),
            }
        }
    }

    fn rate_finding(&self, ms: f64, answer: SearchResult) -> Finding {
        let target = latency(ms);
        let (value, words) = match answer {
            SearchResult::Between { met, missed, noisy, saturated } => {
                let mut words = format!(
                    "{met:.0} op/s; at {missed:.0} op/s p99 exceeds {target}, or the rate is not reached"
                );
                if noisy {
                    words.push_str(", not reproducibly: the boundary is within the noise");
                }
                if saturated {
                    words.push_str(
                        "; the generator was the limit there, the target may do more with more \
                         --threads or workers",
                    );
                }
                (met, words)
            }
            SearchResult::Everything(iops) => (
                iops,
                format!(
                    "no limit found: p99 is below {target} at {iops:.0} op/s without a rate limit; \
                     use more --jobs or --depth"
                ),
            ),
            SearchResult::Nothing(rate) => {
                (0.0, format!("none: even {rate:.1} op/s have p99 over {target}"))
            }
        };
        Finding {
            question: format!("highest rate with p99 under {target}"),
            answer: words,
            value,
            unit: "op/s".to_owned(),
            steps: self.names(),
        }
    }

    /// Doubles what is varied until it gains nothing; gives the curve.
    fn double(
        &mut self,
        varied: Varied,
        most: u32,
        patience: usize,
    ) -> Option<(Vec<(u32, Probe)>, Enough)> {
        let mut search = ScaleSearch::new(most, patience);
        let mut curve = Vec::new();
        while let Some(number) = search.next() {
            let mut load = self.load.clone();
            varied.set(&mut load, number);
            let axis = Axis { label: varied.words().to_owned(), value: f64::from(number) };
            let name = format!("{number} {}", varied.words());
            let probe = self.probe(&name, Some(axis), load)?;
            search.tell(number, probe.iops);
            curve.push((number, probe));
        }
        search.enough().map(|enough| (curve, enough))
    }

    fn knee(&mut self, most: u32) -> Option<Finding> {
        let (curve, _) = self.double(Varied::Depth, most, BEYOND)?;
        let points: Vec<Point> =
            curve.iter().map(|(_, probe)| Point { iops: probe.iops, ms: probe.mean_ms }).collect();
        let found = knee(&points).and_then(|index| curve.get(index));
        let (value, answer) = match found {
            Some((depth, probe)) => (
                probe.iops,
                format!(
                    "{:.0} op/s at a mean of {}, with {depth} requests in flight of each job",
                    probe.iops,
                    latency(probe.mean_ms)
                ),
            ),
            None => (0.0, format!("none up to {most} requests in flight: the curve has no knee")),
        };
        Some(Finding {
            question: "knee of the latency curve".to_owned(),
            answer,
            value,
            unit: "op/s".to_owned(),
            steps: self.names(),
        })
    }

    fn scaling(&mut self, varied: Varied, most: u32) -> Option<Finding> {
        let (curve, enough) = self.double(varied, most, 1)?;
        let one = curve.first().map_or(0.0, |(_, probe)| probe.iops);
        let words = varied.words();
        let times = three_digits(enough.iops / one.max(f64::MIN_POSITIVE));
        let number = enough.number;
        let mut answer =
            format!("{number}: {:.0} op/s, {times} times the rate of one", enough.iops);
        if enough.bounded {
            answer.push_str(&format!("; more than {most} were not tried and may give more"));
        } else {
            answer.push_str("; a doubling gains less than 5 %");
        }
        if curve.iter().any(|(at, probe)| *at >= number && probe.saturated) {
            answer.push_str("; the generator was the limit, the target may do more");
        }
        Some(Finding {
            question: format!("how many {words} are worth it"),
            answer,
            value: f64::from(number),
            unit: words.to_owned(),
            steps: self.names(),
        })
    }
}

/// A rate as a name: whole, or with as many digits as tell it from the next.
fn exact(rate: f64) -> String {
    if rate >= 100.0 { format!("{rate:.0}") } else { format!("{rate:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Options;
    use crate::suite::testing::{Act, Ground, Scripted};
    use weir_load::control::Control;
    use weir_results::testing::Figures;

    fn ask(script: Vec<Act>, question: Question) -> (SuiteOutcome, Scripted, Ground) {
        let (mut executor, mut ground) = (Scripted::new(script), Ground::default());
        let (options, control) = (Options::default(), Control::new());
        let load = Workload { file_bytes: 1 << 20, ..Workload::default() };
        let mut suite = Suite {
            executor: &mut executor,
            place: &mut ground,
            options: &options,
            control: &control,
            observer: &mut |_| {},
        };
        let outcome = search(&mut suite, &load, &[question]);
        (outcome, executor, ground)
    }

    fn give(iops: f64, ms: f64) -> Act {
        Act::Give(Figures::new(iops, ms))
    }

    #[test]
    fn a_rate_is_searched_for_in_steps_that_are_kept() {
        // 1600 at most; 100, 200, 400 and 800 a second are within 2 ms, 1600 is not, and 1200 is.
        let script = vec![
            give(1600.0, 40.0),
            give(100.0, 1.0),
            give(200.0, 1.0),
            give(400.0, 1.0),
            give(800.0, 1.0),
            give(1500.0, 40.0),
            give(1200.0, 1.0),
            give(1390.0, 30.0),
            give(1300.0, 30.0),
            give(1250.0, 30.0),
        ];
        let (outcome, executor, ground) = ask(script, Question::RateUnder(2.0));
        let test = &outcome.results.tests[0];
        let finding = &test.findings[0];
        assert!((finding.value - 1200.0).abs() < 0.01, "{finding:?}");
        assert_eq!(finding.steps.len(), executor.applied.len());
        assert_eq!(test.steps[1].name, "100 op/s");
        assert_eq!(executor.applied[1][0].rate, Rate::Operations(executor_rate(test, 1)));
        let laid = executor
            .applied
            .iter()
            .filter(|loads| loads[0].layout != weir_load::workload::Layout::Existing);
        assert_eq!(laid.count(), 1, "files are laid out once");
        assert!(ground.there.is_empty() && outcome.failures.is_empty());
    }

    #[test]
    fn nothing_is_found_with_a_step_that_lost_its_connection() {
        let lost = Act::Give(Figures { lost: 1, ..Figures::new(100.0, 1.0) });
        let (outcome, executor, _) = ask(vec![give(1600.0, 40.0), lost], Question::RateUnder(2.0));
        assert!(outcome.results.tests[0].findings.is_empty());
        assert_eq!(executor.applied.len(), 2);
    }

    fn executor_rate(test: &TestResult, step: usize) -> f64 {
        test.steps[step].axis.as_ref().unwrap().value
    }

    #[test]
    fn a_target_met_without_a_rate_says_to_ask_for_more() {
        let (outcome, ..) = ask(vec![give(1600.0, 1.0)], Question::RateUnder(2.0));
        let finding = &outcome.results.tests[0].findings[0];
        assert!(finding.answer.contains("no limit found"), "{finding:?}");
    }

    #[test]
    fn the_knee_is_the_depth_that_fills_the_server() {
        let script = [(1000.0, 1.0), (2000.0, 1.0), (4000.0, 1.0), (4040.0, 2.0), (4050.0, 4.0)];
        let script = script.into_iter().map(|(iops, ms)| give(iops, ms)).collect();
        let (outcome, executor, _) = ask(script, Question::Knee(1024));
        let finding = &outcome.results.tests[0].findings[0];
        assert!(finding.answer.contains("with 4 requests in flight"), "{finding:?}");
        let depths: Vec<u32> = executor.applied.iter().map(|loads| loads[0].depth).collect();
        assert_eq!(depths, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn scaling_ends_when_it_has_learnt_it() {
        let script = vec![give(1000.0, 1.0), give(1900.0, 1.0), give(1950.0, 1.0)];
        let question = Question::Scaling(Varied::Connections, 64);
        let (outcome, executor, _) = ask(script, question);
        let finding = &outcome.results.tests[0].findings[0];
        assert_eq!((finding.value, finding.unit.as_str()), (2.0, "connections"));
        assert!(finding.answer.contains("1.90 times"), "{finding:?}");
        assert_eq!(executor.applied.len(), 3);
    }

    #[test]
    fn an_interrupted_search_keeps_its_probes_and_claims_nothing() {
        let script = vec![give(1600.0, 40.0), Act::Interrupt(Figures::new(50.0, 1.0))];
        let (outcome, executor, ground) = ask(script, Question::RateUnder(2.0));
        assert!(outcome.results.interrupted);
        let test = &outcome.results.tests[0];
        assert!(test.findings.is_empty());
        assert_eq!((test.steps.len(), executor.applied.len()), (2, 2));
        assert!(ground.there.is_empty());
    }
}
