//! The course of one client's load: when its requests were answered, and when its connection broke.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_lab::rate::Rate;
use weir_load::Point;

/// A stretch of time, in seconds since the loads began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Span {
    /// Its beginning.
    pub(crate) from_s: f64,
    /// Its end.
    pub(crate) to_s: f64,
}

impl Span {
    /// Does it hold this time?
    pub(crate) fn holds(self, at_s: f64) -> bool {
        at_s >= self.from_s && at_s <= self.to_s
    }

    /// Its length in seconds.
    pub(crate) fn length_s(self) -> f64 {
        self.to_s - self.from_s
    }
}

/// An answered request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Completion {
    /// Time of the answer, in seconds since the loads began.
    pub(crate) at_s: f64,
    /// Bytes that the request moved.
    pub(crate) bytes: u32,
}

/// A connection that broke, and what the client did about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Break {
    /// Time at which the client noticed, in seconds since the loads began.
    pub(crate) at_s: f64,
    /// The error.
    pub(crate) why: String,
    /// Attempts to connect again, the last one included.
    pub(crate) attempts: u32,
    /// Time of the new connection.
    pub(crate) connected_s: Option<f64>,
    /// Time of the first answer on it.
    pub(crate) answered_s: Option<f64>,
}

/// The answers and broken connections of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// In order.
    pub(crate) completions: Vec<Completion>,
    /// In order.
    pub(crate) breaks: Vec<Break>,
    /// Answers that refused a request.
    pub(crate) refusals: Refusals,
}

/// Answers that refused a request, by their reasons.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refusals(BTreeMap<String, Refused>);

/// Answers that refused a request for one reason.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Refused {
    count: u64,
    /// Time of the first, in seconds since the loads began.
    first_s: f64,
}

impl Refusals {
    /// Notes a refusal.
    pub(crate) fn note(&mut self, why: String, at_s: f64) {
        self.0.entry(why).or_insert(Refused { count: 0, first_s: at_s }).count += 1;
    }

    /// The number of those whose reason is none of `expected`, and the first of these in words.
    pub(crate) fn but(&self, expected: &[&str]) -> (u64, Option<String>) {
        let is_other = |(why, _): &(&String, &Refused)| !expected.contains(&why.as_str());
        let others = || self.0.iter().filter(is_other);
        let first = others().min_by(|one, other| one.1.first_s.total_cmp(&other.1.first_s));
        let words = first.map(|(why, one)| format!("at {:.1} s: {why}", one.first_s));
        (others().map(|(_, one)| one.count).sum(), words)
    }

    /// The number of all.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().map(|one| one.count).sum()
    }
}

impl Course {
    /// Notes an answer.
    pub(crate) fn completed(&mut self, at_s: f64, bytes: u32) {
        self.completions.push(Completion { at_s, bytes });
        if let Some(last) = self.breaks.last_mut().filter(|last| last.answered_s.is_none()) {
            last.answered_s = Some(at_s);
        }
    }

    /// The bytes over time.
    pub(crate) fn rate(&self) -> Rate {
        let point = |one: &Completion| Point {
            at_s: (one.at_s * 100.0).floor() / 100.0,
            operations: 1,
            bytes: one.bytes.into(),
        };
        Rate::new(&self.completions.iter().map(point).collect::<Vec<_>>())
    }

    /// The bytes of the answers after `from_s`, up to `to_s`. Unlike those of [`Course::rate`] they
    /// are not spread over steps: an answer that ends a pause is not counted behind it.
    pub(crate) fn bytes_between(&self, from_s: f64, to_s: f64) -> f64 {
        let before = |at_s: f64| self.completions.partition_point(|one| one.at_s <= at_s);
        let (from, to) = (before(from_s), before(to_s));
        let within = self.completions.get(from..to).unwrap_or_default();
        within.iter().map(|one| f64::from(one.bytes)).sum()
    }

    /// The longest time without an answer, of all that touch `within`. A client that got no answer
    /// until the end of `within` waited until then at least.
    pub(crate) fn longest_gap(&self, within: Span) -> Span {
        let ends = self.completions.iter().map(|one| one.at_s).chain([f64::INFINITY]);
        let starts = [0.0].into_iter().chain(self.completions.iter().map(|one| one.at_s));
        let gaps = starts.zip(ends).map(|(from_s, to_s)| Span { from_s, to_s });
        let touching = gaps.filter(|gap| gap.to_s > within.from_s && gap.from_s < within.to_s);
        let cut = touching.map(|gap| match gap.to_s.is_finite() {
            true => gap,
            false => Span { to_s: within.to_s, ..gap },
        });
        cut.max_by(|one, other| one.length_s().total_cmp(&other.length_s())).unwrap_or(within)
    }

    /// The connections that broke in a pause, in words; nothing if none did.
    pub(crate) fn breaks_within(&self, pause: Span) -> Option<String> {
        let within = |one: &&Break| pause.holds(one.at_s);
        let words = self.breaks.iter().filter(within).map(Break::in_words);
        Some(words.collect::<Vec<_>>().join("; ")).filter(|words| !words.is_empty())
    }
}

impl Break {
    /// The events, in words.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("connection broken at {:.2} s ({})", self.at_s, self.why);
        let attempts = match self.attempts {
            1 => "1 attempt".to_owned(),
            attempts => format!("{attempts} attempts"),
        };
        match self.connected_s {
            Some(at_s) => words += &format!(", connected at {at_s:.2} s ({attempts})"),
            None => words += &format!(", not connected again in {attempts}"),
        }
        if let Some(at_s) = self.answered_s {
            words += &format!(", first answer at {at_s:.2} s");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(times: &[f64]) -> Course {
        let mut course = Course::default();
        times.iter().for_each(|at_s| course.completed(*at_s, 1000));
        course
    }

    #[test]
    fn the_longest_gap_is_one_that_touches_the_time_asked_for() {
        let course = course(&[1.0, 1.1, 3.0, 3.1, 3.2, 4.0, 4.1]);
        let gap = |from_s, to_s| {
            let gap = course.longest_gap(Span { from_s, to_s });
            (gap.from_s, gap.to_s)
        };
        assert_eq!(gap(0.0, 4.0), (1.1, 3.0));
        assert_eq!(gap(2.9, 4.05), (1.1, 3.0), "it began before");
        assert_eq!(gap(3.05, 4.05), (3.2, 4.0));
        assert_eq!(gap(4.02, 9.0), (4.1, 9.0), "nothing came until the end");
        assert_eq!(gap(4.02, 4.05), (4.0, 4.1));
        assert_eq!(Course::default().longest_gap(Span { from_s: 2.0, to_s: 3.0 }).length_s(), 3.0);
    }

    #[test]
    fn bytes_are_counted_where_they_were_answered() {
        let rate = course(&[0.005, 0.015, 0.5, 2.0]).rate();
        assert!((rate.bytes_between(0.0, 1.0) - 3000.0).abs() < 1e-6);
        assert!((rate.bytes_between(1.0, 3.0) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn an_answer_counts_in_the_stretch_that_it_ends_and_not_in_the_one_that_it_begins() {
        let course = course(&[1.0, 1.5, 2.0, 2.5]);
        assert!((course.bytes_between(1.0, 2.0) - 2000.0).abs() < 1e-6);
        assert!((course.bytes_between(0.0, 9.0) - 4000.0).abs() < 1e-6);
        assert!(course.bytes_between(2.5, 9.0).abs() < 1e-6);
        assert!(course.bytes_between(9.0, 3.0).abs() < 1e-6);
    }

    #[test]
    fn the_first_answer_ends_a_break_and_later_ones_do_not() {
        let mut course = course(&[1.0]);
        let (at_s, attempts) = (1.2, 7);
        let why = "reset".to_owned();
        course.breaks.push(Break { at_s, why, attempts, ..Break::default() });
        let lost = course.breaks[0].in_words();
        assert_eq!(lost, "connection broken at 1.20 s (reset), not connected again in 7 attempts");
        course.breaks[0].connected_s = Some(1.5);
        course.completed(1.75, 1);
        course.completed(1.8, 1);
        assert_eq!(course.breaks[0].answered_s, Some(1.75));
        let words = course.breaks[0].in_words();
        assert!(words.ends_with("connected at 1.50 s (7 attempts), first answer at 1.75 s"));
        let touching = |from_s, to_s| course.breaks_within(Span { from_s, to_s });
        assert_eq!(touching(1.0, 1.75), Some(words));
        assert_eq!((touching(1.3, 1.75), touching(0.0, 1.1)), (None, None));
    }

    #[test]
    fn the_first_refusal_is_told_unless_it_was_expected() {
        let mut refusals = Refusals::default();
        assert_eq!(refusals.but(&[]), (0, None));
        for (why, at_s) in [("full", 1.0), ("stale", 2.0), ("full", 3.0)] {
            refusals.note(why.to_owned(), at_s);
        }
        assert_eq!(refusals.count(), 3);
        assert_eq!(refusals.but(&[]), (3, Some("at 1.0 s: full".to_owned())));
        assert_eq!(refusals.but(&["full"]), (1, Some("at 2.0 s: stale".to_owned())));
        assert_eq!(refusals.but(&["full", "stale"]), (0, None));
    }
}
