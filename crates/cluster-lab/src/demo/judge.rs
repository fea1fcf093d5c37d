//! The rules of the demonstration. Nothing here measures.

use super::plan::{BLOCK_BYTES, Disturbance, NO_PAUSE_S};
use crate::load::{Course, Span};
use serde::Serialize;
use weir_lab::judge::Check;
use weir_report::percent;

/// Length of the windows in seconds, the part of the contract that each may miss, and the rule.
const WINDOWS: [(f64, f64, &str); 2] = [
    (10.0, 0.01, "every 10 s within 1 % of the contract"),
    (1.0, 0.05, "every 1 s within 5 % of the contract"),
];

/// A part of the time in which contracts are judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Part {
    /// Name of the part.
    pub(super) what: &'static str,
    /// From its beginning to that of the next part.
    pub(super) span: Span,
}

/// The part of the load in which addresses may move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Phase {
    /// The reason.
    pub(super) why: Disturbance,
    /// From the event to the end of the part.
    pub(super) span: Span,
}

/// A pause of a volume's client while its address moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Pause {
    /// The reason.
    pub(super) why: Disturbance,
    /// The time without an answer.
    pub(super) span: Span,
    /// Actions of the client meanwhile.
    pub(super) course: Option<String>,
}

/// The pauses of a client whose address moved in these phases.
pub(super) fn pauses(course: &Course, moved: &[Phase]) -> Vec<Pause> {
    let pause = |phase: &Phase| {
        let span = course.longest_gap(phase.span);
        let words = course.breaks_within(span);
        Pause { why: phase.why, span, course: words }
    };
    moved.iter().map(pause).collect()
}

/// The rules about pauses.
pub(super) fn pause(pause: &Pause) -> Check {
    let bar_s = pause.why.bar_s();
    let length_s = pause.span.length_s();
    let rule = format!("pause at most {:.0} ms: {}", bar_s * 1000.0, pause.why.words());
    let mut worst = format!("{:.0} ms", length_s * 1000.0);
    if let Some(course) = pause.course.as_ref().filter(|_| length_s > bar_s) {
        worst += &format!(": {course}");
    }
    Check::new(rule, worst, length_s <= bar_s).within(pause.span.from_s, pause.span.to_s)
}

/// The rule that there is no pause in `span`, outside these pauses and the span `other`.
pub(super) fn no_pause(
    what: &str,
    course: &Course,
    (span, other): (Span, Option<Span>),
    pauses: &[Pause],
) -> Check {
    let cuts = pauses.iter().map(|pause| pause.span).chain(other);
    let gaps = outside(span, cuts).into_iter().map(|part| course.longest_gap(part));
    // A gap may reach beyond the part that it touches: that of a pause does, and one that begins in
    // the other span belongs to it.
    let begins_there = |gap: &Span| other.is_some_and(|other| other.holds(gap.from_s));
    let own = |gap: &Span| !pauses.iter().any(|pause| pause.span == *gap) && !begins_there(gap);
    let longest = gaps.filter(own).max_by(|a, b| a.length_s().total_cmp(&b.length_s()));
    let longest = longest.unwrap_or_default();
    let words = format!("{:.0} ms at {:.1} s", longest.length_s() * 1000.0, longest.from_s);
    let rule = format!("no pause over {:.0} ms: {what}", NO_PAUSE_S * 1000.0);
    let passed = longest.length_s() <= NO_PAUSE_S;
    let words = match course.breaks_within(longest).filter(|_| !passed) {
        Some(broken) => format!("{words}: {broken}"),
        None => words,
    };
    Check::new(rule, words, passed).within(longest.from_s, longest.to_s)
}

/// The parts of `span` outside others.
fn outside(span: Span, others: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut sorted: Vec<Span> = others.collect();
    sorted.sort_by(|one, other| one.from_s.total_cmp(&other.from_s));
    let (mut parts, mut from_s) = (Vec::new(), span.from_s);
    for other in sorted {
        parts.push(Span { from_s, to_s: other.from_s.min(span.to_s) });
        from_s = from_s.max(other.to_s);
    }
    parts.push(Span { from_s, to_s: span.to_s });
    parts.retain(|part| part.length_s() > 0.0);
    parts
}

/// The rules about the contract, `due` bytes a second, in the windows that begin in `part`, outside
/// the pauses; none reaches beyond `judged`. Each window may miss one request more.
pub(super) fn contract(
    course: &Course,
    (part, judged): (&Part, Span),
    pauses: &[Pause],
    due: f64,
) -> [Check; 2] {
    let calm = outside(judged, pauses.iter().map(|pause| pause.span));
    WINDOWS.map(|(length_s, allowed, rule)| {
        let rule = format!("{rule}: {}", part.what);
        let all = calm.iter().flat_map(|calm| windows(*calm, length_s));
        let all = all.filter(|at_s| *at_s >= part.span.from_s && *at_s < part.span.to_s);
        let bytes = |at_s: f64| course.bytes_between(at_s, at_s + length_s);
        let off = all.map(|at_s| (at_s, bytes(at_s) - due * length_s));
        let worst = off.max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()));
        let Some((at_s, off)) = worst else {
            return Check::new(rule, format!("less than {length_s} s measured"), false);
        };
        let words = format!("{} at {at_s:.1} s", percent(off / (due * length_s) * 100.0, 2));
        let passed = off.abs() <= due * length_s * allowed + f64::from(BLOCK_BYTES);
        Check::new(rule, words, passed).within(at_s, at_s + length_s)
    })
}

/// The beginnings of the windows of this length in `part`, one every 100 ms.
fn windows(part: Span, length_s: f64) -> impl Iterator<Item = f64> {
    const HOP_S: f64 = 0.1;
    let begins = (0u32..).map(move |number| part.from_s + f64::from(number) * HOP_S);
    begins.take_while(move |at_s| at_s + length_s <= part.to_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: f64 = 3_276_800.0;

    /// An answer each 20 ms, except in the gaps.
    fn course(seconds: f64, gaps: &[(f64, f64)]) -> Course {
        let mut course = Course::default();
        let mut at_s = 0.01;
        while at_s < seconds {
            if !gaps.iter().any(|gap| at_s > gap.0 && at_s < gap.1) {
                course.completed(at_s, BLOCK_BYTES);
            }
            at_s += 0.02;
        }
        course
    }

    fn death(from_s: f64, to_s: f64) -> Phase {
        Phase { why: Disturbance::Death, span: Span { from_s, to_s } }
    }

    fn part(span: Span) -> Part {
        Part { what: "here", span }
    }

    const MEASURED: Span = Span { from_s: 5.0, to_s: 55.0 };

    fn kept(course: &Course, pauses: &[Pause]) -> Vec<bool> {
        let checks = contract(course, (&part(MEASURED), MEASURED), pauses, DUE);
        checks.iter().map(|check| check.passed).collect()
    }

    #[test]
    fn a_pause_is_left_out_of_the_contract_and_a_gap_elsewhere_is_not() {
        let gap = (20.2, 21.4);
        let course = course(60.0, &[gap]);
        assert_eq!(kept(&course, &[]), [false, false]);
        let found = pauses(&course, &[death(20.3, 40.0)]);
        assert!((found[0].span.length_s() - 1.2).abs() < 0.02, "{found:?}");
        assert_eq!(kept(&course, &found), [true, true]);
        let elsewhere = [death(30.0, 40.0)];
        assert_eq!(kept(&course, &pauses(&course, &elsewhere)), [false, false]);
    }

    #[test]
    fn windows_begin_and_end_with_the_parts_outside_pauses() {
        let course = course(60.0, &[(20.0, 20.1), (22.0, 23.0)]);
        let found = pauses(&course, &[death(21.0, 30.0)]);
        assert_eq!(kept(&course, &found), [true, false], "100 ms are missing in a second");
        let short = Span { from_s: 5.0, to_s: 9.0 };
        let checks = contract(&course, (&part(short), short), &[], DUE);
        assert!(!checks[0].passed && checks[1].passed, "too short for 10 s");
    }

    #[test]
    fn a_window_belongs_to_the_part_in_which_it_begins() {
        let course = course(60.0, &[(30.0, 30.5)]);
        let of = |from_s, to_s| {
            let part = part(Span { from_s, to_s });
            contract(&course, (&part, MEASURED), &[], DUE).map(|check| check.passed)
        };
        assert_eq!(of(5.0, 18.0), [true, true]);
        assert_eq!(of(5.0, 25.0), [false, true]);
        assert_eq!(of(25.0, 30.4), [false, false]);
        assert_eq!(of(31.0, 55.0), [true, true]);
    }

    #[test]
    fn bars_of_pauses_differ_by_their_reason() {
        let mut long = course(60.0, &[(20.0, 21.5)]);
        let why = "reset".to_owned();
        long.breaks.push(crate::load::Break { at_s: 20.1, why, ..Default::default() });
        let check = |why| pause(&pauses(&long, &[Phase { why, ..death(20.0, 40.0) }])[0]);
        assert!(check(Disturbance::Death).passed);
        let missed = check(Disturbance::Drain);
        assert!(!missed.passed && missed.worst.contains("reset"), "{missed:?}");
        assert!(missed.rule.contains("1000 ms"));
    }

    #[test]
    fn a_gap_outside_pauses_is_told_and_one_that_is_a_pause_is_not() {
        let course = course(60.0, &[(20.0, 21.5), (45.0, 45.7)]);
        let found = pauses(&course, &[death(20.0, 40.0)]);
        let check = no_pause("always", &course, (Span { from_s: 5.0, to_s: 40.0 }, None), &found);
        assert!(check.passed, "{check:?}");
        let check = no_pause("always", &course, (MEASURED, None), &found);
        assert!(!check.passed && check.worst.starts_with("7"), "{check:?}");
        let check = no_pause("always", &course, (MEASURED, None), &[]);
        assert!(!check.passed && check.worst.starts_with("15"), "{check:?}");
        let other = Some(Span { from_s: 44.9, to_s: 45.3 });
        assert!(no_pause("otherwise", &course, (MEASURED, other), &found).passed);
    }

    #[test]
    fn a_client_that_gets_no_answer_any_more_misses_every_rule() {
        let course = course(30.0, &[]);
        let found = pauses(&course, &[death(29.0, 55.0)]);
        assert!(!pause(&found[0]).passed);
        assert!(!no_pause("always", &course, (MEASURED, None), &[]).passed);
        assert_eq!(kept(&course, &[]), [false, false]);
    }
}
