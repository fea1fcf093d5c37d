//! The history of a volume at one gateway, in the form in which gateways of a cluster give it to
//! each other, and the history at all of them.
//!
//! A volume has one home at a time. Each home recorded the part of a period in which it served the
//! volume, so periods that begin at the same time are added.

use super::volume::Period;
use super::{PERIODS_MAX, SECOND};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use weir_api::Window;
use weir_qos::Cost;
use weir_qos::verdict::{Course, Tally};

/// The history of a volume at one gateway, or at all.
pub(crate) struct Past {
    /// The time of the last look at the counters, in seconds since 1970.
    pub(super) at: u64,
    /// The length of a period, in seconds.
    pub(super) resolution: u64,
    /// The last 10 s, minute and hour.
    pub(super) recent: [Window; 3],
    /// The periods in which anything came, oldest first.
    pub(super) periods: Vec<Period>,
}

impl Past {
    /// Adds what other gateways recorded `within` a time, in seconds since 1970. Recent windows
    /// stay those of the present home.
    pub(crate) fn join(&mut self, others: impl IntoIterator<Item = Told>, within: Range<u64>) {
        let within = within.start / self.resolution * self.resolution..within.end;
        let own = std::mem::take(&mut self.periods);
        let mut all: BTreeMap<u64, Period> = own.into_iter().map(|one| (one.start, one)).collect();
        for Told(told) in others.into_iter().filter(|Told(told)| told.resolution == self.resolution)
        {
            for row in
                told.periods.iter().take(PERIODS_MAX).filter(|row| within.contains(&row.start))
            {
                let period = row.period(self.resolution);
                match all.get_mut(&period.start) {
                    Some(known) => known.take_in(&period),
                    None => drop(all.insert(period.start, period)),
                }
            }
        }
        let surplus = all.len().saturating_sub(PERIODS_MAX);
        self.periods = all.into_values().skip(surplus).collect();
    }

    /// For another gateway.
    pub(crate) fn told(&self) -> Told {
        let Self { at, resolution, recent, periods } = self;
        let periods = periods.iter().map(Row::of).collect();
        Told(Wire { at: *at, resolution: *resolution, recent: recent.clone(), periods })
    }
}

/// The history of a volume, as another gateway tells it. Fields that a version does not know are
/// ignored, and those that another lacks are 0.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Told(Wire);

impl Told {
    /// The history, if it has periods of this length.
    pub(crate) fn past(self, resolution: u64) -> Option<Past> {
        let Wire { at, recent, periods, .. } = self.0;
        let period = |row: Row| row.period(resolution);
        let periods = periods.into_iter().take(PERIODS_MAX).map(period).collect();
        (self.0.resolution == resolution).then_some(Past { at, resolution, recent, periods })
    }
}

#[derive(Serialize, Deserialize)]
struct Wire {
    at: u64,
    resolution: u64,
    recent: [Window; 3],
    periods: Vec<Row>,
}

/// A [`Period`]. Bytes come before operations. Counts of intervals have 32 bits, so that no sum of
/// them overflows.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    start: u64,
    nanos: u64,
    looked_nanos: u64,
    offered: (u64, u64),
    delivered: (u64, u64),
    due: (u64, u64),
    requests: u64,
    used_nanos: u64,
    asked_nanos: u64,
    busy_nanos: u64,
    wait_nanos: u64,
    store_nanos: u64,
    network_nanos: u64,
    processing_nanos: u64,
    kept: u32,
    not_demanded: u32,
    broken: [u32; 4],
    demanded_nanos: u64,
    demanded_used_nanos: u64,
}

impl Row {
    /// The fields that the history on disk has.
    fn of(period: &Period) -> Self {
        let Period { start, nanos, course, tally } = *period;
        let pair = |cost: Cost| (cost.bytes, cost.operations);
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            start,
            nanos,
            looked_nanos: course.nanos,
            offered: pair(course.offered),
            delivered: pair(course.delivered),
            due: pair(course.due),
            requests: course.requests,
            used_nanos: course.used_nanos,
            asked_nanos: course.asked_nanos,
            busy_nanos: course.busy_nanos,
            wait_nanos: course.wait_nanos,
            store_nanos: course.store_nanos,
            network_nanos: course.network_nanos,
            processing_nanos: course.processing_nanos,
            kept: count(tally.kept),
            not_demanded: count(tally.not_demanded),
            broken: tally.broken.map(count),
            demanded_nanos: tally.demanded_nanos,
            demanded_used_nanos: tally.used_nanos,
        }
    }

    /// The period, which is `resolution` seconds long at most.
    fn period(&self, resolution: u64) -> Period {
        let cost = |(bytes, operations): (u64, u64)| Cost { bytes, operations };
        let course = Course {
            nanos: self.looked_nanos,
            offered: cost(self.offered),
            delivered: cost(self.delivered),
            due: cost(self.due),
            requests: self.requests,
            used_nanos: self.used_nanos,
            asked_nanos: self.asked_nanos,
            busy_nanos: self.busy_nanos,
            wait_nanos: self.wait_nanos,
            store_nanos: self.store_nanos,
            network_nanos: self.network_nanos,
            processing_nanos: self.processing_nanos,
            ..Course::default()
        };
        let tally = Tally {
            kept: self.kept.into(),
            not_demanded: self.not_demanded.into(),
            broken: self.broken.map(u64::from),
            demanded_nanos: self.demanded_nanos,
            used_nanos: self.demanded_used_nanos,
        };
        let nanos = self.nanos.clamp(1, resolution.saturating_mul(SECOND));
        Period { start: self.start, nanos, course, tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(start: u64, requests: u64) -> Period {
        let course = Course { nanos: 30 * SECOND, requests, ..Course::default() };
        let tally = Tally { kept: 3, ..Tally::default() };
        Period { start, nanos: 60 * SECOND, course, tally }
    }

    fn past(periods: Vec<Period>) -> Past {
        Past { at: 600, resolution: 60, recent: [(); 3].map(|()| Window::default()), periods }
    }

    fn wired(past: &Past) -> Told {
        serde_json::from_slice(&serde_json::to_vec(&past.told()).unwrap()).unwrap()
    }

    fn shown(past: &Past) -> Vec<(u64, u64, u64)> {
        let shown = |one: &Period| (one.start, one.course.requests, one.tally.kept);
        past.periods.iter().map(shown).collect()
    }

    #[test]
    fn periods_are_told_as_they_are_on_disk() {
        let mut numbers = 0..;
        let mut next = || numbers.next().unwrap();
        let course = Course {
            nanos: next(),
            offered: Cost { bytes: next(), operations: next() },
            delivered: Cost { bytes: next(), operations: next() },
            due: Cost { bytes: next(), operations: next() },
            requests: next(),
            used_nanos: next(),
            asked_nanos: next(),
            busy_nanos: next(),
            wait_nanos: next(),
            store_nanos: next(),
            network_nanos: next(),
            processing_nanos: next(),
            ..Course::default()
        };
        let tally = Tally {
            kept: next(),
            not_demanded: next(),
            broken: [next(), next(), next(), next()],
            demanded_nanos: next(),
            used_nanos: next(),
        };
        let whole = Period { start: 540, nanos: 60 * SECOND, course, tally };
        let told = wired(&past(vec![whole])).past(60).unwrap();
        assert_eq!((told.at, told.periods), (600, vec![whole]));
        assert!(wired(&past(vec![whole])).past(900).is_none(), "of another length");
    }

    #[test]
    fn the_history_is_that_of_all_and_parts_of_a_period_are_added() {
        let mut whole = past(vec![period(120, 5), period(240, 7)]);
        let others = [
            past(vec![period(60, 1), period(120, 2), period(180, 3)]),
            past(vec![period(0, 9), period(240, 4)]),
            Past { resolution: 900, ..past(vec![period(180, 1000)]) },
        ];
        // From the middle of a minute on, which belongs to the report as a whole.
        whole.join(others.iter().map(wired), 90..600);
        assert_eq!(shown(&whole), [(60, 1, 3), (120, 7, 6), (180, 3, 3), (240, 11, 6)]);
    }

    #[test]
    fn a_history_that_is_made_up_is_bounded() {
        let huge = |start| Row { start, requests: u64::MAX, kept: u32::MAX, ..Row::default() };
        let rows = (0..2 * PERIODS_MAX as u64).map(|minute| huge(60 * minute));
        let rows = rows.chain([huge(u64::MAX), huge(120), huge(120)]).collect();
        let wire =
            Wire { at: u64::MAX, resolution: 60, recent: past(vec![]).recent, periods: rows };
        let mut whole = past(vec![period(120, 5)]);
        whole.join([Told(wire)], 60..60 * 3000);
        assert_eq!(whole.periods.len(), PERIODS_MAX - 1, "only so many of its rows are read");
        let mut sum = Period::default();
        whole.periods.iter().for_each(|one| sum.take_in(one));
        assert_eq!(sum.course.requests, u64::MAX);
        assert!(whole.periods.iter().all(|one| one.nanos <= 60 * SECOND));
        // Fields that another version has, or lacks, are no error.
        let row: Row = serde_json::from_str("{\"start\":60,\"of_later\":1}").unwrap();
        assert_eq!((row.start, row.requests), (60, 0));
        assert!(serde_json::from_str::<Row>("{\"kept\":4294967296}").is_err());
    }
}
