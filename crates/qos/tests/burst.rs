//! Credits for bursts in virtual time: full at birth, spent and earned as published, and never more
//! than there are.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use weir_core::Mono;
use weir_qos::burst::{v1, v2};
use weir_qos::{Burst, BytesPerSecond, Cost, Iops, Limits, Meters};

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;
const START: u64 = SECOND;

/// A volume whose clients ask for so many operations a second, in portions of what the fastest
/// burst does in 5 ms. Metadata is as good as anything: bytes bind nobody here.
struct Volume {
    meters: Meters,
    limits: Limits,
    now: u64,
}

impl Volume {
    fn new(limits: Limits) -> Self {
        Self { meters: Meters::new(limits), limits, now: START }
    }

    fn burst(&self) -> (u64, u64, u64) {
        let Burst { base, credits } = self.limits.burst.unwrap();
        (base.0, self.limits.iops.unwrap().0, credits)
    }

    fn credits(&self) -> u64 {
        self.meters.credits(Mono(self.now)).unwrap()
    }

    /// Demand for `rate` operations a second for so long, and says how many went. What is refused
    /// is asked for again, like a waiting request; demand that the limit leaves over for more than
    /// 0.1 s is dropped.
    fn ask(&mut self, rate: u64, seconds: u64) -> u64 {
        let portion = self.portion();
        let (begin, end) = (self.now, self.now + seconds * SECOND);
        let (mut asked, mut went) = (0, 0);
        while self.now < end {
            self.now += 5_000_000;
            let due = u128::from(rate) * u128::from(self.now - begin) / u128::from(SECOND);
            let due = u64::try_from(due).unwrap();
            asked = asked.max(due.saturating_sub(rate / 10 + portion));
            while asked + portion <= due {
                let cost = Cost { bytes: 0, operations: portion };
                if self.meters.try_take(cost, Mono(self.now)).is_none() {
                    break;
                }
                asked += portion;
                went += portion;
            }
        }
        went
    }

    fn portion(&self) -> u64 {
        (self.burst().1 / 200).max(1)
    }

    /// The uncertainty that counting in portions and 50 ms of catch-up leave.
    fn slack(&self) -> u64 {
        self.burst().1 / 20 + 2 * self.portion()
    }
}

fn near(found: u64, wanted: u64, slack: u64) -> bool {
    found.abs_diff(wanted) <= wanted / 1000 + slack
}

/// A full bucket lasts an hour at full speed, then the base rate is left; idle it fills up again at
/// the base rate, and no further. All with the published figures.
#[test]
fn published_volumes_burst_for_an_hour_and_fill_up_again() {
    let rate = BytesPerSecond::from_mib(100);
    let published = [
        (v1(1_024 * GIB), (4_024, 10_000, 21_513_600)),
        (v1(10_240 * GIB), (13_240, 30_720, 62_928_000)),
        (v2(rate, Iops(3_000)), (3_000, 10_000, 25_200_000)),
        (v2(rate, Iops(25_000)), (25_000, 75_000, 180_000_000)),
        (v2(rate, Iops(50_000)), (50_000, 102_400, 188_640_000)),
    ];
    for (limits, figures) in published {
        let mut volume = Volume::new(limits);
        let (base, burst, full) = volume.burst();
        assert_eq!((base, burst, full), figures);
        let slack = volume.slack();
        assert_eq!(volume.credits(), full, "full at birth");
        let went = volume.ask(burst * 2, 1800);
        assert!(near(went, burst * 1800, slack), "{went} of {burst}/s in half an hour");
        assert!(near(volume.credits(), full / 2, slack), "half are spent");
        let went = volume.ask(burst * 2, 1800);
        assert!(near(went, burst * 1800, slack), "{went} of {burst}/s in the other half");
        assert!(volume.credits() <= slack, "all are spent");
        let went = volume.ask(burst * 2, 600);
        assert!(near(went, base * 600, 2 * slack), "{went} of {base}/s");
        // Idle, then under half of the base rate, which earns half.
        volume.now += full / base / 2 * SECOND;
        assert!(near(volume.credits(), full / 2, slack + base), "{}", volume.credits());
        let before = volume.credits();
        let went = volume.ask(base / 2, 600);
        assert!(
            near(went, base * 300, slack) && near(volume.credits(), before + base * 300, slack)
        );
        volume.now += full / base * SECOND;
        assert_eq!(volume.credits(), full);
        volume.now += 1_000_000 * SECOND;
        assert_eq!(volume.credits(), full, "and no more");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Credits are what was there, and what the base rate had beyond what was done.
    #[test]
    fn credits_are_a_ledger_of_operations(
        base in 100..5000_u64,
        faster in 1..10_000_u64,
        full in 1000..1_000_000_u64,
        segments in prop::collection::vec((0..200_u64, 1..120_u64), 1..12),
    ) {
        let burst = base + faster;
        let of = Some(Burst { base: Iops(base), credits: full });
        let limits = Limits { rate: BytesPerSecond(1 << 40), iops: Some(Iops(burst)), burst: of };
        let mut volume = Volume::new(limits);
        let slack = volume.slack();
        for (percent_of_burst, seconds) in segments {
            let before = volume.credits();
            let rate = burst * percent_of_burst / 100;
            let went = volume.ask(rate, seconds);
            let after = volume.credits();
            let due = (before + base * seconds).saturating_sub(went).min(full);
            prop_assert!(after.abs_diff(due) <= slack, "{after} left, {due} by the ledger");
            prop_assert!(went <= burst * seconds + slack, "{went} in {seconds} s of {burst}/s");
            prop_assert!(went <= before + base * seconds + slack, "more than there was");
            // A client that asks for it gets the base rate, and the burst while there are credits.
            let entitled = rate.min(base) * seconds;
            prop_assert!(went + slack >= entitled - entitled / 100, "{went} of {entitled}");
            if after > slack {
                let entitled = rate.min(burst) * seconds;
                prop_assert!(went + slack >= entitled - entitled / 100, "{went} of {entitled}");
            }
        }
    }
}
