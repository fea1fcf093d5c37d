//! Medians, ratios and bars. Nothing here measures or prints.

use super::Findings;
use super::measure::Sample;
use super::plan::{InFlight, Trial};
use crate::disk::Filesystem;
use crate::judge::{Check, all_kept};
use serde::Serialize;
use weir_results::median;

/// The outcome of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum BarVerdict {
    /// Met.
    Pass,
    /// Not met.
    Miss,
    /// No verdict is possible: the opponent was not itself, or the generator was the limit.
    Void,
    /// There is no bar; the figure is reported.
    Reported,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Bar {
    /// The compared figure.
    pub(super) what: &'static str,
    /// The measured value.
    pub(super) value: f64,
    /// The bound; absent where the figure is only reported.
    pub(super) bound: Option<f64>,
    /// The outcome.
    pub(super) verdict: BarVerdict,
    /// Why it is void.
    pub(super) why: Option<&'static str>,
}

/// The medians of one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Medians over the rounds, each figure for itself.
    pub(super) median: Sample,
    /// Least and greatest processor time for an operation over the rounds, in µs.
    pub(super) server_us_range: (f64, f64),
    /// Every round.
    pub(super) rounds: Vec<Sample>,
}

/// One workload on one file system.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The workload.
    pub(super) workload: &'static str,
    /// The file system.
    pub(super) filesystem: Filesystem,
    /// Requests in flight.
    pub(super) in_flight: InFlight,
    /// Weir.
    pub(super) weir: Figures,
    /// NFS-Ganesha.
    pub(super) ganesha: Figures,
    /// The bare loop.
    pub(super) bare: Figures,
    /// An earlier build of Weir, if there was one to compare with.
    pub(super) before: Option<Figures>,
    /// The highest processor time per request of Ganesha at which the row counts, in µs; absent
    /// where that time is not known.
    pub(super) ganesha_bound_us: Option<f64>,
    /// The bars.
    pub(super) bars: Vec<Bar>,
}

/// The names of the bars.
pub(super) const OVER_BARE: &str = "CPU per operation against the bare loop, µs";
pub(super) const CPU_RATIO: &str = "Weir ÷ Ganesha, CPU per operation";
pub(super) const RATE_RATIO: &str = "Weir ÷ Ganesha, operations per second";
pub(super) const DEARER: &str = "CPU per operation above the earlier build's, %";
pub(super) const SLOWER: &str = "operations per second below the earlier build's, %";

impl Figures {
    /// From the rounds, of which there is at least one.
    pub(super) fn new(rounds: Vec<Sample>) -> Self {
        let middle = |figure: fn(&Sample) -> f64| median(rounds.iter().map(figure));
        let cost = || rounds.iter().map(|round| round.server_us);
        let saturated = rounds.iter().filter(|round| round.generator_saturated).count();
        let median = Sample {
            server_us: middle(|round| round.server_us),
            kernel_workers_us: middle(|round| round.kernel_workers_us),
            generator_us: middle(|round| round.generator_us),
            iops: middle(|round| round.iops),
            p50_ms: middle(|round| round.p50_ms),
            p99_ms: middle(|round| round.p99_ms),
            generator_saturated: saturated * 2 > rounds.len(),
        };
        let server_us_range = (cost().fold(f64::INFINITY, f64::min), cost().fold(0.0, f64::max));
        Self { median, server_us_range, rounds }
    }
}

impl Row {
    /// Judges one workload, measured on Weir, Ganesha, the bare loop and perhaps an earlier build.
    pub(super) fn new(
        trial: &Trial,
        on: Filesystem,
        [weir, ganesha, bare]: [Figures; 3],
        before: Option<Figures>,
    ) -> Self {
        let ganesha_bound_us = trial.ganesha_bound_us(on);
        let untuned = ganesha_bound_us.is_some_and(|bound| ganesha.median.server_us > bound);
        let void = if untuned {
            Some("Ganesha costs more than 1.15 times what it is known to")
        } else if ganesha.median.generator_saturated || weir.median.generator_saturated {
            Some("the generator was the limit")
        } else {
            None
        };
        let own = weir.median.server_us;
        let mut bars = vec![
            judge(
                OVER_BARE,
                own,
                trial.over_bare.map(|over| over.bound_us(bare.median.server_us)),
                None,
                at_most,
            ),
            judge(
                CPU_RATIO,
                own / ganesha.median.server_us,
                trial.cpu_ratio,
                void.filter(|_| untuned),
                at_most,
            ),
            judge(
                RATE_RATIO,
                weir.median.iops / ganesha.median.iops,
                Some(trial.rate_ratio),
                void,
                at_least,
            ),
        ];
        if let Some(before) = &before {
            bars.push(not_worse(trial.in_flight, before, &weir));
        }
        Self {
            workload: trial.name,
            filesystem: on,
            in_flight: trial.in_flight,
            weir,
            ganesha,
            bare,
            before,
            ganesha_bound_us,
            bars,
        }
    }

    /// The bar of this name.
    pub(super) fn bar(&self, what: &str) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.what == what)
    }
}

/// Is a build no worse than an earlier one, but for the noise of the rounds or 2 %? Where one
/// request is in flight at a time, the rate counts and not the processor time: a server may spend
/// some of that to answer sooner.
fn not_worse(in_flight: InFlight, before: &Figures, now: &Figures) -> Bar {
    let (what, cost): (_, fn(&Sample) -> f64) = match in_flight {
        InFlight::Many => (DEARER, |sample| sample.server_us),
        InFlight::One => (SLOWER, |sample| -sample.iops),
    };
    let (difference, noise) = difference_percent(before, now, cost);
    judge(what, difference, Some(noise.max(2.0)), None, at_most)
}

/// By how many percent `other` costs more than `one` in the medians of `cost`, and by how many the
/// rounds of either differ by themselves: half their range.
fn difference_percent(one: &Figures, other: &Figures, cost: fn(&Sample) -> f64) -> (f64, f64) {
    let base = cost(&one.median);
    let half_range = |figures: &Figures| {
        let costs = || figures.rounds.iter().map(cost);
        let low = costs().fold(f64::INFINITY, f64::min);
        let high = costs().fold(f64::NEG_INFINITY, f64::max);
        (high - low) / 2.0 / base.abs() * 100.0
    };
    let difference = (cost(&other.median) - base) / base.abs() * 100.0;
    (difference, half_range(one).max(half_range(other)))
}

pub(super) fn at_most(value: f64, bound: f64) -> bool {
    value <= bound
}

pub(super) fn at_least(value: f64, bound: f64) -> bool {
    value >= bound
}

pub(super) fn judge(
    what: &'static str,
    value: f64,
    bound: Option<f64>,
    why: Option<&'static str>,
    met: fn(f64, f64) -> bool,
) -> Bar {
    let verdict = match (bound, why) {
        (_, Some(_)) => BarVerdict::Void,
        (None, None) => BarVerdict::Reported,
        (Some(bound), None) if met(value, bound) => BarVerdict::Pass,
        (Some(_), None) => BarVerdict::Miss,
    };
    Bar { what, value, bound, verdict, why }
}

/// Two loads that should not differ, taken in turns.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Same {
    /// The first.
    pub(super) one: Figures,
    /// The second.
    pub(super) other: Figures,
    /// Processor time for an operation: by how many percent the second is dearer.
    pub(super) difference_percent: f64,
    /// The difference of the rounds of either by themselves, in percent: half their range.
    pub(super) noise_percent: f64,
    /// Is the difference within 2 % or the noise, whichever is greater?
    pub(super) passed: bool,
}

impl Same {
    /// Compares.
    pub(super) fn new(one: Figures, other: Figures) -> Self {
        let (difference_percent, noise_percent) =
            difference_percent(&one, &other, |sample| sample.server_us);
        let passed = difference_percent.abs() <= noise_percent.max(2.0);
        Self { one, other, difference_percent, noise_percent, passed }
    }
}

/// The neighbour of a volume on a slow disk.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Isolation {
    /// The rate (MiB/s) at which the slow volume's clients wrote meanwhile.
    pub(super) slow_mibps: f64,
    /// Operation, p99 alone and p99 beside the slow volume, in ms.
    pub(super) neighbours: Vec<Neighbour>,
}

/// One operation on the neighbour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Neighbour {
    /// Which.
    pub(super) operation: &'static str,
    /// p99 of the latency with nothing else going on, in ms.
    pub(super) alone_p99_ms: f64,
    /// p99 beside the slow volume, in ms.
    pub(super) beside_p99_ms: f64,
    /// Is the rise less than 2 ms?
    pub(super) passed: bool,
}

impl Neighbour {
    /// Judges from the medians of both.
    pub(super) fn new(operation: &'static str, alone_p99_ms: f64, beside_p99_ms: f64) -> Self {
        const RISE_MS: f64 = 2.0;
        let passed = beside_p99_ms - alone_p99_ms < RISE_MS;
        Self { operation, alone_p99_ms, beside_p99_ms, passed }
    }
}

/// Was every bar met, and is none void? A comparison without rows has shown nothing.
pub(super) fn passed(findings: &Findings) -> bool {
    let is_empty = findings.rows.is_empty() && findings.smb.is_empty();
    !is_empty && all_kept(&checks(findings))
}

/// Every bar as a rule.
pub(super) fn checks(findings: &Findings) -> Vec<Check> {
    let bars = findings.rows.iter().flat_map(|row| row.bars.iter().map(move |bar| (row, bar)));
    let mut checks: Vec<Check> = bars.map(|(row, bar)| bar.check(row)).collect();
    checks.extend(super::smb::checks(&findings.smb));
    checks.extend(findings.gate.iter().map(|gate| {
        let worst = format!("{:+.2} % CPU per operation", gate.difference_percent);
        Check::new("a contract half above the load costs the same", worst, gate.passed)
    }));
    let neighbours = findings.isolation.iter().flat_map(|isolation| &isolation.neighbours);
    checks.extend(neighbours.map(|one| {
        let worst = format!("p99 {:.3} → {:.3} ms", one.alone_p99_ms, one.beside_p99_ms);
        Check::new(format!("{} beside a volume on a slow disk", one.operation), worst, one.passed)
    }));
    checks
}

impl Bar {
    fn check(&self, row: &Row) -> Check {
        let rule = format!("{} on {}: {}", row.workload, row.filesystem.name(), self.what);
        let passed = matches!(self.verdict, BarVerdict::Pass | BarVerdict::Reported);
        Check::new(rule, format!("{:.2}", self.value), passed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::TRIALS;
    use super::*;

    fn figures(server_us: f64, iops: f64) -> Figures {
        Figures::new(vec![Sample { server_us, iops, ..Sample::default() }])
    }

    fn verdicts(weir: Figures, ganesha: Figures, bare: Figures) -> Vec<BarVerdict> {
        let row = Row::new(&TRIALS[0], Filesystem::Ext4, [weir, ganesha, bare], None);
        row.bars.iter().map(|bar| bar.verdict).collect()
    }

    #[test]
    fn each_bar_is_met_up_to_its_bound() {
        use BarVerdict::{Miss, Pass};
        let ganesha = || figures(27.0, 40_000.0);
        assert_eq!(
            verdicts(figures(5.0, 100_000.0), ganesha(), figures(2.0, 1e6)),
            [Pass, Pass, Pass]
        );
        assert_eq!(
            verdicts(figures(5.1, 100_000.0), ganesha(), figures(2.0, 1e6)),
            [Miss, Pass, Pass]
        );
        assert_eq!(
            verdicts(figures(5.5, 99_000.0), ganesha(), figures(3.0, 1e6)),
            [Pass, Miss, Miss]
        );
    }

    #[test]
    fn an_untuned_ganesha_voids_its_bars_and_only_those() {
        use BarVerdict::{Pass, Void};
        let slow = figures(31.2, 40_000.0);
        assert_eq!(verdicts(figures(4.0, 1e5), slow, figures(2.0, 1e6)), [Pass, Void, Void]);
    }

    #[test]
    fn a_saturated_generator_voids_the_rate_alone() {
        use BarVerdict::{Pass, Void};
        let limited =
            Sample { server_us: 4.0, iops: 1e6, generator_saturated: true, ..Sample::default() };
        let weir =
            Figures::new(vec![limited, limited, Sample { generator_saturated: false, ..limited }]);
        assert_eq!(verdicts(weir, figures(27.0, 40_000.0), figures(2.0, 1e6)), [Pass, Pass, Void]);
    }

    #[test]
    fn slower_than_before_is_what_passes_the_noise_of_the_rounds() {
        let slower = |own: f64, before: &[f64]| {
            let sample = |&server_us| Sample { server_us, ..Sample::default() };
            let before = Figures::new(before.iter().map(sample).collect());
            let servers = [figures(own, 1e5), figures(27.0, 4e4), figures(2.0, 1e6)];
            let row = Row::new(&TRIALS[0], Filesystem::Ext4, servers, Some(before));
            row.bar(DEARER).unwrap().verdict
        };
        assert_eq!(slower(4.07, &[4.0]), BarVerdict::Pass);
        assert_eq!(slower(4.1, &[4.0]), BarVerdict::Miss);
        assert_eq!(slower(4.1, &[3.8, 4.0, 4.2]), BarVerdict::Pass);
        assert_eq!(slower(2.0, &[4.0]), BarVerdict::Pass);
    }

    #[test]
    fn one_request_at_a_time_is_judged_by_its_rate() {
        let trial = TRIALS.iter().find(|trial| trial.in_flight == InFlight::One).unwrap();
        let row = |own: (f64, f64), before: &[f64]| {
            let sample = |&iops| Sample { server_us: 10.0, iops, ..Sample::default() };
            let before = Figures::new(before.iter().map(sample).collect());
            let servers = [figures(own.0, own.1), figures(20.0, 20_000.0), figures(9.0, 2e4)];
            Row::new(trial, Filesystem::Ext4, servers, Some(before))
        };
        let verdict = |row: &Row, what| row.bar(what).unwrap().verdict;
        let sooner = row((20.0, 24_000.0), &[18_000.0]);
        assert_eq!(verdict(&sooner, OVER_BARE), BarVerdict::Reported);
        assert_eq!(verdict(&sooner, CPU_RATIO), BarVerdict::Pass);
        assert_eq!(verdict(&sooner, RATE_RATIO), BarVerdict::Pass);
        assert_eq!(verdict(&sooner, SLOWER), BarVerdict::Pass);
        assert!(sooner.bar(DEARER).is_none(), "twice the processor time is its price");
        let later = row((20.1, 23_900.0), &[24_000.0, 24_500.0, 25_000.0]);
        assert_eq!(verdict(&later, CPU_RATIO), BarVerdict::Miss);
        assert_eq!(verdict(&later, RATE_RATIO), BarVerdict::Miss);
        assert_eq!(verdict(&later, SLOWER), BarVerdict::Miss);
        let noisy = row((20.0, 23_900.0), &[23_500.0, 24_500.0, 25_000.0]);
        assert_eq!(verdict(&noisy, SLOWER), BarVerdict::Pass);
    }

    #[test]
    fn figures_without_a_bar_are_reported() {
        let sequential = TRIALS.iter().find(|trial| trial.cpu_ratio.is_none()).unwrap();
        let servers = [figures(10.0, 2.0), figures(20.0, 1.0), figures(9.0, 2.0)];
        let row = Row::new(sequential, Filesystem::Xfs, servers, None);
        assert_eq!(row.bar(CPU_RATIO).unwrap().verdict, BarVerdict::Reported);
        assert_eq!(row.bar(OVER_BARE).unwrap().bound, Some(11.25));
    }

    #[test]
    fn no_difference_means_within_the_noise_or_two_percent() {
        let many = |costs: &[f64]| {
            let sample = |&server_us| Sample { server_us, ..Sample::default() };
            Figures::new(costs.iter().map(sample).collect())
        };
        assert!(Same::new(many(&[4.0]), many(&[4.07])).passed);
        assert!(!Same::new(many(&[4.0]), many(&[4.1])).passed);
        assert!(Same::new(many(&[3.9, 4.0, 4.2]), many(&[4.1])).passed);
    }

    #[test]
    fn a_neighbour_may_rise_by_less_than_two_milliseconds() {
        assert!(Neighbour::new("READ", 0.2, 2.19).passed);
        assert!(!Neighbour::new("READ", 0.2, 2.21).passed);
    }
}
