//! Medians, ratios and bars. Nothing here measures or prints.

use super::measure::Sample;
use super::plan::{GANESHA_MIN, OVER_LIBRARY_US, STORE_MIN, Work};
use serde::Serialize;
use weir_lab::judge::Check;
use weir_results::median;

/// The measurements of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Medians over the turns, each figure for itself.
    pub(super) median: Sample,
    /// Every turn.
    pub(super) turns: Vec<Sample>,
}

/// All sides of one workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sides<T> {
    /// libcephfs itself, without its object cache.
    pub(super) library: T,
    /// Weir's store, without the object cache.
    pub(super) store: T,
    /// libcephfs itself, with its object cache, as gateways have it.
    pub(super) caching_library: T,
    /// A gateway.
    pub(super) gateway: T,
    /// Ganesha, which asks libcephfs for attributes each time.
    pub(super) ganesha: T,
    /// Ganesha, which keeps attributes for ten minutes.
    pub(super) keeping_ganesha: T,
}

/// A bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Bar {
    /// The compared figure.
    pub(super) what: &'static str,
    /// The measured value.
    pub(super) value: f64,
    /// The bound.
    pub(super) bound: f64,
    /// Is it met?
    pub(super) met: bool,
    /// The reason why it cannot be judged, and so is not met.
    pub(super) void: Option<&'static str>,
}

/// One workload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    /// The workload.
    pub(super) workload: &'static str,
    /// The measured figures.
    pub(super) sides: Sides<Figures>,
    /// Throughput of the store as a part of the library's.
    pub(super) store: Bar,
    /// Rate of operations of the gateway as a part of Ganesha's.
    pub(super) rate: Bar,
    /// Processor time of the gateway beyond that of the library, in µs for an operation.
    pub(super) cost: Bar,
}

impl Figures {
    /// From the turns, of which there is at least one.
    pub(super) fn new(turns: Vec<Sample>) -> Self {
        let middle = |figure: fn(&Sample) -> f64| median(turns.iter().map(figure));
        let saturated = turns.iter().filter(|turn| turn.generator_saturated).count();
        let median = Sample {
            iops: middle(|turn| turn.iops),
            cpu_us: middle(|turn| turn.cpu_us),
            metadata_us: middle(|turn| turn.metadata_us),
            metadata_thread_us: middle(|turn| turn.metadata_thread_us),
            osds_us: middle(|turn| turn.osds_us),
            generator_saturated: saturated * 2 > turns.len(),
        };
        Self { median, turns }
    }

    /// The median over the turns of a comparison with another side in the same turn.
    fn beside(&self, other: &Self, compare: fn(&Sample, &Sample) -> f64) -> f64 {
        let pairs = self.turns.iter().zip(&other.turns);
        median(pairs.map(|(one, other)| compare(one, other)))
    }
}

impl<T> From<[T; 6]> for Sides<T> {
    /// The sides in the order of their fields.
    fn from(sides: [T; 6]) -> Self {
        let [library, store, caching_library, gateway, ganesha, keeping_ganesha] = sides;
        Self { library, store, caching_library, gateway, ganesha, keeping_ganesha }
    }
}

impl Row {
    /// Judges one workload.
    pub(super) fn new(work: &Work, sides: Sides<Figures>) -> Self {
        let rates = |one: &Sample, other: &Sample| one.iops / other.iops;
        let costs = |one: &Sample, other: &Sample| one.cpu_us - other.cpu_us;
        let saturated =
            [&sides.gateway, &sides.ganesha].iter().any(|side| side.median.generator_saturated);
        let at_least =
            |what, value, bound| Bar { what, value, bound, met: value >= bound, void: None };
        let store =
            at_least("store ÷ libcephfs", sides.store.beside(&sides.library, rates), STORE_MIN);
        let mut rate =
            at_least("gateway ÷ Ganesha", sides.gateway.beside(&sides.ganesha, rates), GANESHA_MIN);
        if saturated {
            rate = Bar { met: false, void: Some("the load generator was the limit"), ..rate };
        }
        let value = sides.gateway.beside(&sides.caching_library, costs);
        let cost = Bar {
            what: "CPU of the gateway above libcephfs, µs",
            value,
            bound: OVER_LIBRARY_US,
            met: value <= OVER_LIBRARY_US,
            void: None,
        };
        Self { workload: work.name, sides, store, rate, cost }
    }

    /// The bars as rules.
    pub(super) fn checks(&self) -> [Check; 3] {
        [&self.store, &self.rate, &self.cost].map(|bar| {
            let void = bar.void.map(|why| format!(" ({why})")).unwrap_or_default();
            let rule = format!("{}: {}", self.workload, bar.what);
            Check::new(rule, format!("{:.2}{void}", bar.value), bar.met)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::WORKS;
    use super::*;

    fn figures(turns: &[(f64, f64)]) -> Figures {
        let sample = |&(iops, cpu_us): &(f64, f64)| Sample { iops, cpu_us, ..Sample::default() };
        Figures::new(turns.iter().map(sample).collect())
    }

    fn row(store: &[(f64, f64)], gateway: &[(f64, f64)]) -> Row {
        let turns = gateway.len();
        let sides = Sides {
            library: figures(&vec![(1000.0, 90.0); turns]),
            store: figures(store),
            caching_library: figures(&vec![(900.0, 100.0); turns]),
            gateway: figures(gateway),
            ganesha: figures(&vec![(800.0, 120.0); turns]),
            keeping_ganesha: figures(&vec![(5000.0, 20.0); turns]),
        };
        Row::new(&WORKS[0], sides)
    }

    fn met(row: &Row) -> [bool; 3] {
        row.checks().map(|check| check.passed)
    }

    #[test]
    fn each_bar_is_met_up_to_its_bound() {
        assert_eq!(met(&row(&[(900.0, 0.0)], &[(800.0, 115.0)])), [true, true, true]);
        assert_eq!(met(&row(&[(899.0, 0.0)], &[(800.0, 115.0)])), [false, true, true]);
        assert_eq!(met(&row(&[(900.0, 0.0)], &[(799.0, 115.0)])), [true, false, true]);
        assert_eq!(met(&row(&[(900.0, 0.0)], &[(800.0, 115.1)])), [true, true, false]);
    }

    #[test]
    fn sides_are_compared_turn_by_turn() {
        let gateway = [(1000.0, 110.0), (400.0, 130.0), (900.0, 112.0)];
        let row = row(&[(950.0, 0.0), (100.0, 0.0), (990.0, 0.0)], &gateway);
        assert_eq!(row.store.value, 0.95);
        assert_eq!(row.rate.value, 900.0 / 800.0);
        assert_eq!(row.cost.value, 12.0);
        assert_eq!(row.sides.gateway.median.iops, 900.0);
    }

    #[test]
    fn a_saturated_generator_leaves_the_rate_unjudged() {
        let mut row = row(&[(900.0, 0.0)], &[(800.0, 115.0)]);
        row.sides.gateway.median.generator_saturated = true;
        let judged = Row::new(&WORKS[0], row.sides);
        assert_eq!(met(&judged), [true, false, true]);
        assert!(judged.checks()[1].worst.contains("generator"));
    }
}
