use std::sync::Barrier;
use std::thread;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const KIB8: u64 = 8 << 10;
/// Late enough that a lag of 50 ms is before it.
const START: Mono = Mono::from_secs(1);

fn meter(rate: u64) -> Meter {
    Meter::new(RateSlice::owned(BytesPerSecond(rate)))
}

fn at(millis: u64) -> Mono {
    Mono(START.0 + millis * 1_000_000)
}

/// Takes as many requests of `cost` as go at `now`.
fn drain(meter: &Meter, cost: u64, now: Mono) -> u64 {
    let mut count = 0;
    while meter.try_take(cost, now) {
        count += 1;
    }
    count
}

#[test]
fn what_an_admission_reads_fills_one_cache_line() {
    assert_eq!((core::mem::offset_of!(Meter, history), align_of::<Meter>()), (64, 64));
}

#[test]
fn an_idle_volume_has_fifty_milliseconds_and_one_request() {
    // 50 ms of 1.5625 MiB/s are 81,920 bytes: ten requests, and one that overshoots.
    let meter = meter(1_638_400);
    assert_eq!(drain(&meter, KIB8, START), 11);
    assert_eq!(drain(&meter, KIB8, at(4)), 0);
    assert_eq!(drain(&meter, KIB8, at(5)), 1);
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(3600)), 11);
}

#[test]
fn a_request_larger_than_the_credit_goes_at_once_and_is_paid_for() {
    let meter = meter(1_638_400);
    assert_eq!(drain(&meter, MIB, START), 1);
    // 640 ms less the 50 ms of credit.
    assert_eq!(drain(&meter, MIB, at(589)), 0);
    assert_eq!(drain(&meter, MIB, at(590)), 1);
}

#[test]
fn a_waiter_closes_the_fast_path() {
    let meter = meter(MIB);
    meter.set_waiting(true);
    assert!(meter.is_waiting());
    assert!(!meter.try_take(1, START));
    assert_eq!(meter.take_waiting(1, START, 0), Ok(()));
    meter.set_waiting(false);
    assert!(meter.try_take(1, START));
}

#[test]
fn a_refused_waiter_learns_the_moment() {
    let meter = meter(MIB);
    assert_eq!(meter.take_waiting(MIB, START, 0), Ok(()));
    assert_eq!(meter.take_waiting(1, START, 0), Err(at(950)));
    assert_eq!(meter.take_waiting(1, at(950), 0), Ok(()));
}

#[test]
fn a_refund_gives_back_what_was_taken() {
    let meter = meter(MIB);
    assert!(meter.try_take(MIB, START));
    assert!(!meter.try_take(1, at(1)));
    meter.refund(MIB, START, at(1));
    assert!(meter.try_take(MIB, at(1)));
}

#[test]
fn refunds_cannot_be_saved_up() {
    let meter = meter(MIB);
    for _ in 0..1000 {
        meter.refund(MIB, START, START);
    }
    assert_eq!(drain(&meter, MIB, START), 1);
    assert_eq!(meter.take_waiting(1, START, 0), Err(at(950)));
}

#[test]
fn a_charge_that_is_given_back_within_its_bucket_moves_no_moment_after_it() {
    // A charge at the start of a bucket is given back at its end, and that ends the credit.
    let (meter, rate) = (meter(1 << 30), 1 << 30);
    let bucket = Mono(start_of(bucket_of(START) + 1));
    let later = Mono(bucket.0 + BUCKET_NANOS - 1);
    assert!(meter.try_take(MIB, bucket));
    let mut went = 0;
    while meter.try_take(KIB8, later) {
        went += KIB8;
    }
    meter.refund(MIB, bucket, later);
    while meter.try_take(KIB8, later) {
        went += KIB8;
    }
    let allowed = rate / 20 + KIB8;
    assert!(went <= allowed, "{went} of {allowed}");
}

/// Charges that were held for ten seconds and come back together leave no more than an idle meter
/// has, however the refunds and the admissions that follow them alternate.
#[test]
fn charges_that_were_held_are_not_exchanged_for_a_burst() {
    let meter = meter(MIB);
    let mut held = Vec::new();
    for milli in 0..10_000 {
        while meter.try_take(KIB8, at(milli)) {
            held.push(at(milli));
        }
    }
    let mut burst = 0;
    for charged_at in held {
        meter.refund(KIB8, charged_at, at(10_000));
        burst += drain(&meter, KIB8, at(10_000));
    }
    assert!(burst * KIB8 <= MIB / 20 + KIB8, "{burst} requests");
}

/// Refunds that are charged anew at once, so that no charge is ever old, leave no more than an idle
/// meter has.
#[test]
fn charges_that_are_renewed_all_the_time_are_not_exchanged_for_a_burst() {
    let meter = meter(MIB);
    let mut held: Vec<Mono> = Vec::new();
    for milli in (0..10_000).step_by(40) {
        for charged_at in core::mem::take(&mut held) {
            meter.refund(KIB8, charged_at, at(milli));
            held.extend((0..drain(&meter, KIB8, at(milli))).map(|_| at(milli)));
        }
        held.extend((0..drain(&meter, KIB8, at(milli))).map(|_| at(milli)));
    }
    let mut burst = 0;
    for charged_at in held {
        meter.refund(KIB8, charged_at, at(10_000));
        burst += drain(&meter, KIB8, at(10_000));
    }
    assert!(burst * KIB8 <= MIB / 20 + KIB8, "{burst} requests");
}

#[test]
fn a_short_request_gives_back_all_that_it_did_not_move_also_after_a_while() {
    let meter = meter(MIB);
    let mut moved = 0;
    let mut under_way = std::collections::VecDeque::new();
    for milli in 0..10_000 {
        while meter.try_take(KIB8, at(milli)) {
            under_way.push_back(milli);
        }
        // Each takes 20 ms and moves half of what it asked for.
        while under_way.front().is_some_and(|&charged| charged + 20 <= milli) {
            meter.refund(KIB8 / 2, at(under_way.pop_front().unwrap()), at(milli));
            moved += KIB8 / 2;
        }
    }
    let due = 10 * MIB;
    assert!(moved.abs_diff(due) <= due / 100 + KIB8, "{moved} of {due}");
}

#[test]
fn a_change_of_rate_keeps_what_may_be_given_back() {
    let meter = meter(MIB);
    assert!(meter.try_take(MIB, START));
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(100)), at(1));
    assert!(!meter.try_take(1, at(2)));
    meter.refund(MIB, START, at(2));
    assert!(meter.try_take(1, at(2)));
}

#[test]
fn a_faster_rate_pays_the_same_bytes() {
    let meter = meter(MIB);
    assert!(meter.try_take(MIB, START));
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(100)), START);
    // 950 KiB·ms of debt at 1 MiB/s are 9.5 ms at 100 MiB/s.
    assert_eq!(meter.take_waiting(1, START, 0), Err(Mono(START.0 + 9_500_000)));
}

#[test]
fn a_slower_rate_pays_the_same_bytes() {
    let meter = meter(100 * MIB);
    assert_eq!(drain(&meter, MIB, START), 6);
    // Five of the six are credit: 1 MiB is owed.
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(2)), START);
    assert_eq!(meter.take_waiting(1, START, 0), Err(at(500)));
}

#[test]
fn an_unused_credit_does_not_grow_with_the_rate() {
    let meter = meter(MIB);
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(1000)), START);
    // 50 ms of 1 MiB/s: six requests of 8 KiB and a part, and one that overshoots.
    assert_eq!(drain(&meter, KIB8, START), 7);
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(5)), 6401);
}

#[test]
fn from_tiny_to_large_is_in_force_at_once() {
    let meter = meter(1);
    assert!(meter.try_take(MIB, START));
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(128)), START);
    assert_eq!(meter.take_waiting(KIB8, at(8), 0), Ok(()));
}

#[test]
fn an_expired_slice_admits_nothing_until_renewed() {
    let slice = RateSlice { expires: Some(at(100)), ..RateSlice::owned(BytesPerSecond(MIB)) };
    let meter = Meter::new(slice);
    assert!(meter.try_take(1, at(99)));
    assert!(!meter.try_take(1, at(100)));
    assert_eq!(meter.take_waiting(1, at(100), 0), Err(NEVER));
    meter.set_slice(RateSlice { expires: Some(at(200)), ..slice }, at(100));
    assert!(meter.try_take(1, at(199)));
}

#[test]
fn rate_zero_admits_nothing_and_keeps_the_debt_in_bytes() {
    let nothing = RateSlice::owned(BytesPerSecond::ZERO);
    assert!(!Meter::new(nothing).try_take(1, START));
    let meter = meter(MIB);
    assert!(meter.try_take(MIB, START));
    meter.set_slice(nothing, START);
    assert_eq!(meter.take_waiting(1, at(10_000), 0), Err(NEVER));
    meter.set_slice(RateSlice::owned(BytesPerSecond::from_mib(10)), START);
    assert_eq!(meter.take_waiting(1, START, 0), Err(at(95)));
}

#[test]
fn a_change_leaves_the_waiting_flag_alone() {
    let meter = meter(MIB);
    for waiting in [true, false] {
        meter.set_waiting(waiting);
        for rate in 1..10 {
            meter.set_slice(RateSlice::owned(BytesPerSecond(rate)), START);
            meter.refund(1, START, START);
            assert_eq!(meter.is_waiting(), waiting);
        }
    }
}

#[test]
fn clock_jumps_give_no_burst() {
    let meter = meter(1_638_400);
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(100)), 11);
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(10)), 0, "back");
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(1_000_000)), 11, "ahead");
    assert_eq!(drain(&meter, KIB8, Mono::from_secs(1_000_000)), 0, "standing still");
}

#[test]
fn extreme_values_saturate() {
    for rate in [0, 1, u64::MAX] {
        let meter = meter(rate);
        for now in [Mono::ZERO, START, Mono(u64::MAX - 1), Mono(u64::MAX)] {
            let _admitted = meter.try_take(u64::MAX, now);
            meter.set_slice(RateSlice::owned(BytesPerSecond(u64::MAX)), now);
            meter.refund(u64::MAX, START, now);
            meter.set_slice(RateSlice::owned(BytesPerSecond(rate)), now);
            assert!(!meter.is_waiting());
        }
    }
    let slow = meter(1);
    assert!(slow.try_take(u64::MAX, START));
    assert!(!slow.try_take(1, Mono::from_secs(280_000_000)), "paid for after 9 years at most");
}

/// All threads together get at each moment as much as one thread would get, over enough admissions
/// that they do collide.
#[test]
fn threads_together_get_what_one_would() {
    const THREADS: usize = 4;
    let rate = 16 << 30;
    let (shared, alone) = (meter(rate), meter(rate));
    for step in 0..5 {
        let now = at(step * 37);
        let begin = Barrier::new(THREADS);
        let got: u64 = thread::scope(|scope| {
            let drain_together = || {
                begin.wait();
                drain(&shared, 4096, now)
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(drain_together)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(got, drain(&alone, 4096, now), "step {step}");
    }
}

/// Admissions, refunds and changes of rate all at once: never more than the bound for the fastest
/// rate, and the last slice is the one in force.
#[test]
fn threads_with_changes_stay_within_the_bound() {
    const TAKERS: u64 = 3;
    const STEPS: u64 = 20_000;
    let clock = AtomicU64::new(START.0);
    let meter = meter(MIB);
    let rates = [MIB, 64 * MIB, 7 * MIB, 128 * MIB];
    let net: u64 = thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut net = 0;
                    for step in 0..STEPS {
                        let now = Mono(clock.fetch_add(10_000, Ordering::Relaxed));
                        if meter.try_take(4096, now) {
                            net += 4096;
                            if step % 5 == 0 {
                                meter.refund(1024, now, now);
                                net -= 1024;
                            }
                        }
                    }
                    net
                })
            })
            .collect();
        for _changer in 0..2 {
            scope.spawn(|| {
                for rate in rates.into_iter().cycle().take(2000) {
                    let now = Mono(clock.load(Ordering::Relaxed));
                    meter.set_slice(RateSlice::owned(BytesPerSecond(rate)), now);
                }
            });
        }
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    let elapsed = clock.load(Ordering::Relaxed) - START.0 + CATCH_UP_NANOS;
    let most = u128::from(elapsed) * u128::from(128 * MIB) / 1_000_000_000 + 4096;
    assert!(u128::from(net) <= most, "{net} of at most {most}");
    let later = Mono(clock.load(Ordering::Relaxed) + 10_000_000_000);
    meter.set_slice(RateSlice::owned(BytesPerSecond(10 * MIB)), later);
    let settled = later + core::time::Duration::from_secs(1);
    assert_eq!(drain(&meter, MIB / 2, settled), 2);
}

proptest! {
    /// In any window, whatever happens: at most its rate plus 50 ms plus one request.
    #[test]
    fn no_window_gets_more_than_the_rule_permits(
        rate in 1_u64..1 << 34,
        steps in prop::collection::vec((1_u64..=MIB, 0_u64..200_000_000), 1..200),
    ) {
        let meter = meter(rate);
        let mut now = START;
        let mut admitted: Vec<(Mono, u64)> = Vec::new();
        for (cost, pause) in steps {
            if meter.try_take(cost, now) {
                admitted.push((now, cost));
            }
            now = Mono(now.0 + pause / 7);
        }
        let largest = admitted.iter().map(|taken| taken.1).max().unwrap_or(0);
        for from in 0..admitted.len() {
            let mut sum = 0;
            for &(moment, cost) in &admitted[from..] {
                sum += cost;
                let nanos = moment.0 - admitted[from].0.0 + CATCH_UP_NANOS;
                let most = u128::from(nanos) * u128::from(rate) / 1_000_000_000;
                prop_assert!(u128::from(sum) <= most + 1 + u128::from(largest));
            }
        }
    }

    /// Asked within 50 ms of each moment, nothing of the rate is lost but the rounding.
    #[test]
    fn lateness_is_made_up(
        rate in 1_u64 << 16..1 << 33,
        cost in 512_u64..=MIB,
        lateness in prop::collection::vec(0..CATCH_UP_NANOS, 100..200),
    ) {
        let meter = meter(rate);
        let mut now = START;
        let mut sum = 0_u128;
        for late in lateness {
            while meter.take_waiting(cost, now, 0).is_ok() {
                sum += u128::from(cost);
                if sum > u128::from(cost) * 20_000 {
                    return Ok(());
                }
            }
            let due = meter.take_waiting(cost, now, 0).unwrap_err();
            now = Mono(due.0 + late);
            let paid = u128::from(due.0 - START.0 + CATCH_UP_NANOS) * u128::from(rate);
            let rounding = sum / u128::from(cost) * u128::from(rate) / u128::from(TICKS_PER_SECOND);
            prop_assert!(sum + rounding + 2 * u128::from(rate) / 1_000_000_000 + 2
                >= paid / 1_000_000_000);
        }
    }

    /// A change keeps the bytes owed, in both directions, and no request is free.
    #[test]
    fn debt_is_kept_in_bytes(
        old in 1_u64 << 10..1 << 34,
        new in 1_u64 << 10..1 << 34,
        cost in 1_u64..=MIB,
    ) {
        let meter = meter(old);
        while meter.try_take(cost, START) {}
        let owed = |rate: u64| match meter.take_waiting(0, START, 0) {
            Err(at) => u128::from(at.0 - START.0) * u128::from(rate) / 1_000_000_000,
            Ok(()) => 0,
        };
        let before = owed(old);
        meter.set_slice(RateSlice::owned(BytesPerSecond(new)), START);
        let after = owed(new);
        let rounding = u128::from(old.max(new)) / 500_000_000 + 2;
        prop_assert!(after.abs_diff(before) <= rounding, "{before} became {after}");
    }
}
