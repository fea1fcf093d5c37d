use super::*;
use crate::limits::{Burst, Limits};
use crate::rate::{BytesPerSecond, Iops};
use proptest::prelude::*;

const MILLI: u64 = 1_000_000;
const KIB: u64 = 1024;
const MIB: u64 = 1 << 20;

/// Ten seconds at a limit of 16 MiB/s in which `mib` were moved by 8 KiB, one following another.
fn ten(mib: f64) -> Course {
    let nanos = 10 * SECOND;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
    let bytes = (mib * 1_048_576.0) as u64;
    let requests = bytes / (8 * KIB);
    let used = part(nanos, bytes, 160 * MIB);
    Course {
        nanos,
        offered: Cost { bytes, operations: requests },
        delivered: Cost { bytes, operations: requests },
        due: Cost { bytes: 160 * MIB, operations: 0 },
        requests,
        used_nanos: used,
        passed_nanos: used,
        let_through_nanos: used,
        reference_nanos: requests * REFERENCE_NANOS + used / REFERENCE_SPEED,
        largest_nanos: SECOND / 2048,
        ..Course::default()
    }
}

fn judged(course: Course) -> (Verdict, Reason) {
    let Judgement { verdict, reason } = course.judge();
    (verdict, reason)
}

#[test]
fn what_is_delivered_within_the_allowance_is_kept() {
    for mib in [160.0, 158.5, 161.5] {
        let course = Course { asked_nanos: 10 * SECOND, busy_nanos: 10 * SECOND, ..ten(mib) };
        assert_eq!(judged(course), (Verdict::Kept, Reason::Delivered), "{mib}");
    }
    // Just beyond: 1 % and one request.
    let course = Course { asked_nanos: 10 * SECOND, busy_nanos: 10 * SECOND, ..ten(158.3) };
    assert_eq!(course.judge().reason, Reason::HeldBack);
}

#[test]
fn too_much_is_the_gates_fault() {
    assert_eq!(judged(ten(161.7)), (Verdict::Broken(Cause::Gate), Reason::TooMuch));
    // The gate had let the requests through before that the store finished late.
    let caught_up = Course { let_through_nanos: 10 * SECOND, ..ten(200.0) };
    assert_eq!(judged(caught_up), (Verdict::Kept, Reason::Delivered));
}

#[test]
fn who_waits_while_there_is_room_is_held_back() {
    let waited = Course { asked_nanos: 10 * SECOND, busy_nanos: 10 * SECOND, ..ten(80.0) };
    // The gate let through what it should, and the rest is stuck.
    let stuck = Course { passed_nanos: 10 * SECOND, store_nanos: 50 * SECOND, ..waited };
    assert_eq!(judged(stuck), (Verdict::Broken(Cause::Store), Reason::HeldBack));
    let unsent = Course { network_nanos: 51 * SECOND, ..stuck };
    assert_eq!(judged(unsent).0, Verdict::Broken(Cause::Network));
    let crowded = Course { processing_nanos: 52 * SECOND, ..unsent };
    assert_eq!(judged(crowded).0, Verdict::Broken(Cause::Processing));
    // The gate let through too little, whatever else is slow.
    let gate = Course { passed_nanos: 5 * SECOND, ..stuck };
    assert_eq!(judged(gate), (Verdict::Broken(Cause::Gate), Reason::HeldBack));
    // Somebody waited for a part of the time, and as much was delivered in it.
    let bursts = Course { asked_nanos: 5 * SECOND, ..ten(80.0) };
    assert_eq!(judged(bursts), (Verdict::NotDemanded, Reason::LessAsked));
}

#[test]
fn a_store_is_measured_by_what_would_have_been_with_a_better_one() {
    // 16 in flight all the time, and each takes 20 ms instead of 1.25: 800 a second instead of
    // 2,048.
    let slow = Course { busy_nanos: 10 * SECOND, store_nanos: 160 * SECOND, ..ten(62.5) };
    assert_eq!(judged(slow), (Verdict::Broken(Cause::Store), Reason::WouldHave));
    let by_network = Course { store_nanos: 0, network_nanos: 160 * SECOND, ..slow };
    assert_eq!(judged(by_network).0, Verdict::Broken(Cause::Network));
    let by_processing = Course { store_nanos: 0, processing_nanos: 160 * SECOND, ..slow };
    assert_eq!(judged(by_processing).0, Verdict::Broken(Cause::Processing));
    // The same rate is reached by requests that come one each 1.25 ms and take as long: a quicker
    // store would not have seen more of them.
    let paused = Course { busy_nanos: 9 * SECOND, store_nanos: 10 * SECOND, ..slow };
    assert_eq!(judged(paused), (Verdict::NotDemanded, Reason::LessAsked));
    // One request of 8 KiB at a time can't reach 16 MiB/s at 1.25 ms each.
    let one = Course { busy_nanos: 10 * SECOND, store_nanos: 10 * SECOND, ..ten(62.5) };
    assert_eq!(judged(one), (Verdict::NotDemanded, Reason::LessAsked));
    // A client that comes with 8 KiB each 100 ms and waits half that time for a slow disk.
    let seldom = Course { busy_nanos: 5 * SECOND, store_nanos: 5 * SECOND, ..ten(0.8) };
    assert_eq!(judged(seldom), (Verdict::NotDemanded, Reason::LessAsked));
}

#[test]
fn one_stream_of_large_requests_shows_a_slow_store() {
    // 1 MiB at a time, 200 ms each, at a limit of 16 MiB/s.
    let requests = 50;
    let course = Course {
        requests,
        reference_nanos: requests * REFERENCE_NANOS + part(10 * SECOND, 50, 160) / REFERENCE_SPEED,
        busy_nanos: 10 * SECOND,
        store_nanos: 10 * SECOND,
        largest_nanos: SECOND / 16,
        ..ten(50.0)
    };
    assert_eq!(judged(course), (Verdict::Broken(Cause::Store), Reason::WouldHave));
}

#[test]
fn a_store_that_hangs_has_broken_the_contract() {
    let hung = Course { busy_nanos: 10 * SECOND, store_nanos: 40 * SECOND, ..ten(0.0) };
    assert_eq!(judged(hung), (Verdict::Broken(Cause::Store), Reason::WouldHave));
    let waited = Course { asked_nanos: 9 * SECOND, passed_nanos: 10 * SECOND, ..hung };
    assert_eq!(judged(waited), (Verdict::Broken(Cause::Store), Reason::HeldBack));
}

#[test]
fn where_nothing_comes_nothing_is_demanded() {
    assert_eq!(judged(ten(0.0)), (Verdict::NotDemanded, Reason::NothingCame));
    assert_eq!(judged(Course::default()), (Verdict::NotDemanded, Reason::NothingCame));
    let a_little = Course { busy_nanos: SECOND, store_nanos: SECOND, ..ten(20.0) };
    assert_eq!(judged(a_little), (Verdict::NotDemanded, Reason::LessAsked));
}

/// Readings one second apart of a volume under `limits`.
fn second(limits: Limits, delivered: Cost) -> Course {
    let iops = limits.iops.map_or(0, |iops| iops.0);
    let before = Reading { at: Mono(SECOND), ..Reading::default() };
    let after = Reading {
        at: Mono(2 * SECOND),
        offered: delivered,
        passed: delivered,
        delivered,
        requests: delivered.operations,
        due: Cost { bytes: limits.rate.0, operations: iops },
        counted_nanos: if limits.iops.is_some() { SECOND } else { 0 },
        largest_bytes: 8 * KIB,
        ..before
    };
    Course::between(&before, &after)
}

#[test]
fn the_tightest_limit_is_what_counts() {
    let rate = BytesPerSecond::from_mib(16);
    let both = Limits { iops: Some(Iops(1000)), ..Limits::of(rate) };
    let cost = Cost { bytes: 4 * MIB, operations: 1000 };
    assert_eq!(second(both, cost).used_nanos, SECOND, "operations bind");
    assert_eq!(second(Limits::of(rate), cost).used_nanos, SECOND / 4);
    let cost = Cost { bytes: 16 * MIB, operations: 512 };
    assert_eq!(second(both, cost).used_nanos, SECOND, "bytes bind");
    assert_eq!(second(both, cost).largest_nanos, MILLI, "an operation, not its bytes");
}

#[test]
fn a_request_that_went_just_before_may_be_paid_for_in_this_time() {
    let none = Reading { at: Mono(SECOND), ..Reading::default() };
    let after = Reading {
        at: Mono(2 * SECOND),
        due: Cost { bytes: MIB, operations: 0 },
        largest_bytes: 8 * KIB,
        ..none
    };
    let largest = |before: &Reading| Course::between(before, &after).largest_nanos;
    assert_eq!(largest(&none), SECOND / 128);
    assert_eq!(largest(&Reading { largest_bytes: MIB / 2, ..none }), SECOND / 2);
    assert_eq!(largest(&Reading { owed_bytes: MIB / 4, ..none }), SECOND / 4);
}

#[test]
fn a_change_of_limits_is_judged_by_what_they_yielded() {
    // 5 s at 16 MiB/s and 5 s at 32.
    let one = |mib| {
        let moved = Cost { bytes: mib * MIB, operations: mib * 128 };
        Course { asked_nanos: SECOND, ..second(Limits::of(BytesPerSecond::from_mib(mib)), moved) }
    };
    let mut course = Course::default();
    for mib in [16, 16, 16, 16, 16, 32, 32, 32, 32, 32] {
        course += one(mib);
    }
    assert_eq!((course.due.bytes, course.used_nanos), (240 * MIB, 10 * SECOND));
    assert_eq!(judged(course), (Verdict::Kept, Reason::Delivered));
}

#[test]
fn the_first_reading_follows_on_one_of_an_unused_volume() {
    let limits = Limits { iops: Some(Iops(10)), ..Limits::of(BytesPerSecond(1000)) };
    let due = Cost { bytes: 50_000, operations: 500 };
    let first = Reading {
        at: Mono(50 * SECOND),
        due,
        counted_nanos: 50 * SECOND,
        delivered: Cost::of(700),
        ..Reading::default()
    };
    let course = Course::between(&first.unused(limits.into(), Mono(49 * SECOND)), &first);
    assert_eq!((course.nanos, course.due), (SECOND, Cost { bytes: 1000, operations: 10 }));
    assert_eq!((course.delivered, course.used_nanos), (Cost::of(700), 7 * SECOND / 10));
}

#[test]
fn what_was_certain_before_a_volume_shared_is_nothing_to_its_first_second() {
    // A volume of its own for an hour, and one of a shared pool that has nothing for certain from
    // then on.
    let limits = Limits::of(BytesPerSecond(1000));
    let lent = uncertain(limits, Some(BytesPerSecond::ZERO));
    let first = Reading {
        at: Mono(3601 * SECOND),
        due: Cost { bytes: 3_601_000, operations: 0 },
        lent: Cost { bytes: 1000, operations: 0 },
        asked_nanos: SECOND,
        passed: Cost::of(300),
        delivered: Cost::of(300),
        ..Reading::default()
    };
    let course =
        Course::between(&first.unused(Entitled { limits, lent }, Mono(3600 * SECOND)), &first);
    assert_eq!(course.judge().verdict, Verdict::Kept, "others had the rest");
}

/// Ten seconds throughout which somebody waited for a limit of 16 MiB/s, of which so much is
/// certain, and got so much.
fn shared(certain_mib: u64, mib: u64) -> Course {
    let (limit, floor) = (Limits::of(BytesPerSecond(16 * MIB)), BytesPerSecond(certain_mib * MIB));
    let lent = uncertain(limit, Some(floor)).rate.0;
    let after = Reading {
        at: Mono(10 * SECOND),
        due: Cost { bytes: 160 * MIB, operations: 0 },
        lent: Cost { bytes: yields(lent, 10 * SECOND), operations: 0 },
        passed: Cost::of(mib * MIB),
        delivered: Cost::of(mib * MIB),
        asked_nanos: 10 * SECOND,
        busy_nanos: 10 * SECOND,
        ..Reading::default()
    };
    Course::between(&Reading::default(), &after)
}

#[test]
fn what_is_certain_is_compared_over_all_of_the_time() {
    // Each second somebody waits for half of it. The first has 12 operations, the other 3, of 8.
    let (limit, base) = (Iops(24), Iops(8));
    let burst = Some(Burst { base, credits: 100 });
    let limits = Limits { rate: BytesPerSecond(1 << 40), iops: Some(limit), burst };
    let lent = uncertain(limits, None);
    let mut before = Reading::default();
    let mut course = Course::default();
    for second in 1..=10 {
        let operations = if second % 2 == 1 { 12 } else { 3 };
        let mut after = before;
        after.at = Mono(second * SECOND);
        after.due.bytes += 1 << 40;
        after.due.operations += 24;
        after.lent.operations += lent.iops.unwrap().0;
        after.counted_nanos += SECOND;
        after.asked_nanos += SECOND / 2;
        after.delivered.operations += operations;
        after.passed = after.delivered;
        course += Course::between(&before, &after);
        before = after;
    }
    assert_eq!(course.used_certain_nanos, 75 * SECOND / 8);
    assert_eq!((course.used_nanos, course.asked_nanos), (5 * SECOND, 5 * SECOND));
    assert_eq!(judged(course).0, Verdict::NotDemanded);
}

#[test]
fn where_a_budget_is_shared_what_is_certain_decides() {
    let cases = [(4, 40), (4, 100), (4, 160), (0, 1), (0, 160), (16, 160)];
    for (certain, mib) in cases {
        let course = shared(certain, mib);
        assert_eq!(judged(course), (Verdict::Kept, Reason::Delivered), "{certain} {mib}");
        assert_eq!(course.used_nanos, 10 * SECOND, "{certain} {mib}");
    }
    let gate = (Verdict::Broken(Cause::Gate), Reason::HeldBack);
    assert_eq!(judged(shared(4, 39)), gate);
    assert_eq!(judged(shared(16, 158)), gate);
    let whole = |mib| Course { largest_certain_nanos: SECOND / 4, ..shared(4, mib) };
    assert_eq!(judged(whole(39)).0, Verdict::NotDemanded, "a request of 1 MiB takes 250 ms of it");
    assert_eq!(judged(whole(38)), gate);
    let much = (Verdict::Broken(Cause::Gate), Reason::TooMuch);
    assert_eq!(judged(shared(4, 162)), much, "more than it may have at all");
    // Asked for half of the time, and given what is certain meanwhile.
    let half = Course { asked_nanos: 5 * SECOND, ..shared(4, 20) };
    assert_ne!(half.judge().verdict, Verdict::Kept);
}

#[test]
fn after_a_burst_the_base_is_what_is_promised() {
    let burst = Burst { base: Iops(100), credits: 1000 };
    let limits =
        Limits { iops: Some(Iops(500)), burst: Some(burst), ..Limits::of(BytesPerSecond(1 << 30)) };
    let beyond = uncertain(limits, None);
    assert_eq!((beyond.rate, beyond.iops), (BytesPerSecond(0), Some(Iops(400))));
    let judge = |operations: u64| {
        let cost = Cost { bytes: operations, operations };
        let after = Reading {
            at: Mono(10 * SECOND),
            due: Cost { bytes: 10 << 30, operations: 5000 },
            lent: Cost { bytes: 0, operations: 4000 },
            counted_nanos: 10 * SECOND,
            passed: cost,
            delivered: cost,
            asked_nanos: 10 * SECOND,
            busy_nanos: 10 * SECOND,
            ..Reading::default()
        };
        Course::between(&Reading::default(), &after).judge().verdict
    };
    let verdicts = [1000, 3000, 5000, 5200, 950].map(judge);
    let gate = Verdict::Broken(Cause::Gate);
    assert_eq!(verdicts, [Verdict::Kept, Verdict::Kept, Verdict::Kept, gate, gate]);
}

#[test]
fn counters_that_wrap_are_followed() {
    let before = Reading { at: Mono(0), inside_nanos: u64::MAX - 1, ..Reading::default() };
    let after = Reading { at: Mono(5), inside_nanos: 3, ..Reading::default() };
    assert_eq!(Course::between(&before, &after).store_nanos, 5);
}

#[test]
fn a_tally_says_broken_if_it_ever_was() {
    let mut tally = Tally::default();
    assert_eq!((tally.verdict(), tally.error()), (Verdict::NotDemanded, None));
    tally.count(&ten(5.0), Verdict::NotDemanded);
    assert_eq!((tally.verdict(), tally.error()), (Verdict::NotDemanded, None));
    tally.count(&ten(160.0), Verdict::Kept);
    assert_eq!((tally.verdict(), tally.error()), (Verdict::Kept, Some(0.0)));
    tally.count(&ten(80.0), Verdict::Broken(Cause::Network));
    assert_eq!(tally.error(), Some(-0.25));
    let mut all = Tally::default();
    all.count(&ten(80.0), Verdict::Broken(Cause::Store));
    all += tally;
    assert_eq!(all.verdict(), Verdict::Broken(Cause::Store), "of equals the first");
    all += tally;
    assert_eq!(all.verdict(), Verdict::Broken(Cause::Network));
    assert_eq!((all.kept, all.not_demanded, all.broken_in_all()), (2, 2, 3));
}

#[test]
fn a_second_may_be_off_by_more() {
    let second = |milli| Course {
        nanos: SECOND,
        asked_nanos: SECOND,
        used_nanos: milli * MILLI,
        passed_nanos: milli * MILLI,
        let_through_nanos: milli * MILLI,
        due: Cost { bytes: 1000, operations: 0 },
        delivered: Cost { bytes: milli, operations: 0 },
        ..Course::default()
    };
    assert_eq!(second(950).judge().verdict, Verdict::Kept);
    assert_eq!(second(949).judge().verdict, Verdict::Broken(Cause::Gate));
    assert_eq!(second(1050).judge().verdict, Verdict::Kept);
    assert_eq!(second(1051).judge().verdict, Verdict::Broken(Cause::Gate));
}

proptest! {
    /// Whatever the figures, nothing panics, and what is broken or kept was demanded.
    #[test]
    fn any_course_is_judged(
        nanos in 0..20 * SECOND, used in 0..40 * SECOND, passed in 0..40 * SECOND,
        asked in any::<u64>(), busy in any::<u64>(), store in any::<u64>(),
        network in any::<u64>(), reference in any::<u64>(), bytes in 0..2u64,
    ) {
        let course = Course {
            nanos, used_nanos: used, passed_nanos: passed, asked_nanos: asked, busy_nanos: busy,
            store_nanos: store, network_nanos: network, reference_nanos: reference,
            due: Cost { bytes, operations: 0 }, ..Course::default()
        };
        let counterfactual = course.counterfactual_nanos();
        prop_assert!(counterfactual <= nanos);
        let Judgement { verdict, reason } = course.judge();
        match verdict {
            Verdict::Kept => prop_assert!(used + course.allowance() >= nanos),
            Verdict::NotDemanded => prop_assert!(
                bytes == 0 || nanos == 0 || used < nanos && used + course.allowance() >= asked
            ),
            Verdict::Broken(_) => prop_assert!(
                reason == Reason::TooMuch && course.let_through_nanos > nanos
                    || course.waited_nanos() > used || busy > 0 && used >= counterfactual
            ),
        }
    }

    /// A better store never makes a verdict worse: who isn't accused at a slower one isn't at a
    /// quicker one.
    #[test]
    fn a_quicker_store_is_never_accused_sooner(
        used in 0..10 * SECOND, busy in 0..10 * SECOND, store in 0..100 * SECOND,
        quicker in 0..100 * SECOND, reference in 0..100 * SECOND,
    ) {
        let course = |store_nanos| Course {
            nanos: 10 * SECOND, used_nanos: used, passed_nanos: used, busy_nanos: busy,
            store_nanos, reference_nanos: reference, due: Cost::of(1), ..Course::default()
        };
        let slower = course(store.max(quicker)).judge().verdict;
        if slower == Verdict::NotDemanded {
            prop_assert_eq!(course(store.min(quicker)).judge().verdict, Verdict::NotDemanded);
        }
    }
}
