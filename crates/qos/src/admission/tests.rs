use super::*;
use crate::burst;
use proptest::prelude::*;

const MIXES: [u8; 3] = [100, 70, 0];

fn cell(read_percent: u8, block_kib: u32, mib: u64, iops: u64) -> Cell {
    let rate = BytesPerSecond::from_mib(mib);
    Cell { read_percent, block_bytes: block_kib << 10, rate, iops: Iops(iops) }
}

/// READs are quick, WRITEs slow, and the mix is between.
fn table() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (mix, factor) in MIXES.into_iter().zip([4, 2, 1]) {
        cells.push(cell(mix, 4, 10 * factor, 2560 * factor));
        cells.push(cell(mix, 8, 15 * factor, 1920 * factor));
        cells.push(cell(mix, 64, 100 * factor, 1600 * factor));
        cells.push(cell(mix, 1024, 200 * factor, 200 * factor));
    }
    cells
}

fn holds(mib: u64, iops: u64) -> Holds {
    Holds { rate: Some(BytesPerSecond::from_mib(mib)), iops: Some(Iops(iops)) }
}

fn of(mib: u64, iops: Option<u64>) -> Limits {
    Limits { iops: iops.map(Iops), ..Limits::of(BytesPerSecond::from_mib(mib)) }
}

#[test]
fn the_worst_mix_at_the_planned_sizes_unless_another_is_planned_for() {
    let plan = Plan::default();
    assert_eq!(plan.holds(&table()), holds(100, 1920));
    let reads = Plan { mix: Mix::Reads(100), ..plan };
    assert_eq!(reads.holds(&table()), holds(400, 7680));
    assert_eq!(Plan { mix: Mix::Reads(70), ..plan }.holds(&table()), holds(200, 3840));
    // A mix that was not measured is no better than the worst that was.
    assert_eq!(Plan { mix: Mix::Reads(50), ..plan }.holds(&table()), holds(100, 1920));
    assert_eq!(plan.holds(&[]), Holds::default());
}

#[test]
fn a_size_that_was_not_measured_is_taken_for_the_next_that_does_no_better() {
    let between = Plan { block_bytes: 512 << 10, iops_block_bytes: 16 << 10, ..Plan::default() };
    assert_eq!(between.holds(&table()), holds(100, 1600));
    let apart = Plan { block_bytes: 1 << 10, iops_block_bytes: 2 << 20, ..Plan::default() };
    assert_eq!(apart.holds(&table()), Holds::default(), "nothing is known of either");
    let one = [cell(0, 64, 100, 1600)];
    assert_eq!(Plan::default().holds(&one), holds(100, 1600));
}

#[test]
fn a_mix_that_was_measured_in_part_does_not_drop_out() {
    let plan = Plan::default();
    // 64 KiB of WRITEs are no quicker than 1 MiB, and 8 KiB no more operations than 4 KiB.
    let partial = [cell(100, 64, 5000, 80_000), cell(0, 1024, 50, 50), cell(0, 4, 400, 90)];
    assert_eq!(plan.holds(&partial[..2]), holds(50, 50));
    let read = [cell(100, 64, 5000, 80_000), cell(0, 4, 20, 5000)];
    assert_eq!(plan.holds(&read), holds(20, 5000));
    assert_eq!(Plan { mix: Mix::Reads(100), ..plan }.holds(&partial), holds(5000, 80_000));
    // If only bounds are known, nothing is known, and no change is refused.
    assert_eq!(plan.holds(&partial[1..2]), Holds { iops: Some(Iops(50)), rate: None });
    let reads = Plan { mix: Mix::Reads(0), ..plan };
    assert_eq!(reads.holds(&partial[..2]), Holds { iops: Some(Iops(50)), rate: None });
}

fn adding(sum: Committed, limits: Limits) -> Committed {
    sum.with(limits, Ceiling::default())
}

#[test]
fn what_is_committed_is_what_may_be_used_for_good() {
    let none = Committed::default();
    assert_eq!(adding(none, of(48, None)).iops(), Iops(0), "they are not counted");
    let both = adding(adding(none, of(48, Some(1000))), of(2, Some(5)));
    assert_eq!((both.rate(), both.iops()), (BytesPerSecond::from_mib(50), Iops(1005)));
    let burst = burst::v1(1 << 40);
    assert_eq!(adding(none, burst).iops(), Iops(4024), "its base, not its bursts of 10,000");
    let huge = Limits::of(BytesPerSecond(u64::MAX));
    assert_eq!(adding(adding(none, huge), huge).rate(), BytesPerSecond(u64::MAX));
}

#[test]
fn a_ceiling_lowers_what_is_promised_and_promises_nothing() {
    let none = Committed::default();
    let most = |rate: Option<u64>, iops: Option<u64>| Ceiling {
        rate: rate.map(BytesPerSecond::from_mib),
        iops: iops.map(Iops),
    };
    let uncounted = none.with(of(48, None), most(Some(40), Some(6000)));
    assert_eq!(uncounted, adding(none, of(40, None)), "operations that no contract counts");
    let lowered = none.with(of(48, Some(1000)), most(Some(60), Some(100)));
    assert_eq!(lowered, adding(none, of(48, Some(100))));
    let burst = burst::v1(1 << 40);
    assert_eq!(none.with(burst, most(None, Some(100))).iops(), Iops(100), "below its base");
    assert_eq!(none.with(burst, most(None, Some(9000))).iops(), Iops(4024), "above its base");
}

#[test]
fn more_than_is_held_is_beyond_and_says_all_of_it() {
    let (admission, holds) = (Admission::default(), holds(100, 1000));
    let before = adding(Committed::default(), of(60, Some(900)));
    assert!(admission.judge(before, adding(before, of(40, Some(100))), holds).is_none());
    let excess = admission.judge(before, adding(before, of(41, None)), holds);
    let mib = BytesPerSecond::from_mib;
    let told = Beyond { before: mib(60), after: mib(101), holds: mib(100), allowed: mib(100) };
    assert_eq!(excess, Excess { rate: Some(told), iops: None });
    let excess = admission.judge(before, adding(before, of(0, Some(101))), holds);
    assert_eq!(excess.iops.map(|beyond| beyond.after), Some(Iops(1001)));
    assert!(excess.rate.is_none());
    let half = Admission { overcommit_percent: 150, ..admission };
    assert!(half.judge(before, adding(before, of(90, Some(600))), holds).is_none());
    let excess = half.judge(before, adding(before, of(91, None)), holds);
    assert_eq!(excess.rate.map(|beyond| beyond.allowed), Some(mib(150)));
    assert!(admission.judge(before, adding(before, of(900, None)), Holds::default()).is_none());
}

#[test]
fn words_are_read_as_they_are_written() {
    for mix in [Mix::Worst, Mix::Reads(0), Mix::Reads(70), Mix::Reads(100)] {
        assert_eq!(alloc::format!("{mix}").parse(), Ok(mix));
    }
    assert!("101".parse::<Mix>().is_err() && "best".parse::<Mix>().is_err());
}

fn committed() -> impl Strategy<Value = Vec<(u64, Option<u64>)>> {
    prop::collection::vec((0u64..400, prop::option::of(0u64..4000)), 0..8)
}

fn sum(parts: &[(u64, Option<u64>)]) -> Committed {
    parts.iter().fold(Committed::default(), |sum, &(mib, iops)| adding(sum, of(mib, iops)))
}

proptest! {
    /// Whatever is committed: with less or the same it never goes further beyond.
    #[test]
    fn shrinking_is_never_refused(
        before in committed(), kept in 0usize..8, mib in 0u64..500, iops in 0u64..5000,
        percent in 0u32..300,
    ) {
        let admission = Admission { overcommit_percent: percent, ..Admission::default() };
        let after = sum(&before[..kept.min(before.len())]);
        prop_assert!(admission.judge(sum(&before), after, holds(mib, iops)).is_none());
    }

    /// A ceiling that is set where there was none, or lowered, never lets grow what is committed.
    #[test]
    fn a_ceiling_never_lets_grow_what_is_committed(
        mib in 0u64..400, iops in prop::option::of(0u64..4000), quota in prop::option::of(30u32..50),
        rates in (prop::option::of(1u64..500), 1u64..500),
        counts in (prop::option::of(1u64..5000), 1u64..5000), which in 0u8..4,
    ) {
        let contract = quota.map_or(of(mib, iops), |power| burst::v1(1 << power));
        let before = Ceiling {
            rate: rates.0.map(BytesPerSecond::from_mib), iops: counts.0.map(Iops),
        };
        let lower = |old: Option<u64>, new: u64| old.map_or(new, |old| old.min(new));
        let mut after = before;
        if which & 1 != 0 {
            after.rate = Some(BytesPerSecond::from_mib(lower(rates.0, rates.1)));
        }
        if which & 2 != 0 {
            after.iops = Some(Iops(lower(counts.0, counts.1)));
        }
        let none = Committed::default();
        let (free, was) = (none.with(contract, Ceiling::default()), none.with(contract, before));
        let (is, admission) = (none.with(contract, after), Admission::default());
        prop_assert!(is.rate() <= was.rate() && was.rate() <= free.rate());
        prop_assert!(is.iops() <= was.iops() && was.iops() <= free.iops());
        prop_assert!(admission.judge(was, is, holds(0, 0)).is_none());
    }

    /// From nothing at all, what passes is within what may be, and what doesn't isn't.
    #[test]
    fn what_passes_is_within_what_may_be(
        after in committed(), mib in 0u64..500, iops in 0u64..5000, percent in 0u32..300,
    ) {
        let admission = Admission { overcommit_percent: percent, ..Admission::default() };
        let (after, holds) = (sum(&after), holds(mib, iops));
        let allows = admission.allows(holds);
        let excess = admission.judge(Committed::default(), after, holds);
        prop_assert_eq!(excess.rate.is_none(), after.rate() <= allows.rate.unwrap());
        prop_assert_eq!(excess.iops.is_none(), after.iops() <= allows.iops.unwrap());
    }

    /// A mix that is measured besides, at whatever size, never makes the worst mix better.
    #[test]
    fn a_mix_more_is_never_hopeful(
        sizes in prop::collection::btree_set(0u32..9, 1..5), mib in 1u64..9000, power in 0u32..9,
    ) {
        let one: Vec<_> = sizes.iter().map(|&power| cell(0, 4 << power, 100, 1000)).collect();
        let mut both = one.clone();
        both.push(cell(100, 4 << power, mib, mib));
        let (one, both) = (Plan::default().holds(&one), Plan::default().holds(&both));
        prop_assert!(one.rate.is_none_or(|one| both.rate.is_some_and(|both| both <= one)));
        prop_assert!(one.iops.is_none_or(|one| both.iops.is_some_and(|both| both <= one)));
    }

    /// One measurement more, of the same mixes, never makes the plan hopeful: what it holds was
    /// measured at a block size at which hardware whose figures are in order does no better than at
    /// the planned one.
    #[test]
    fn what_a_plan_holds_is_no_better_than_the_hardware(
        sizes in prop::collection::btree_set(0u32..9, 1..5), at in 0u32..9, iops_at in 0u32..9,
    ) {
        // MiB/s rise with the block, operations fall.
        let rate = |power: u32| 10 * (u64::from(power) + 1);
        let iops = |power: u32| 10_000 / (u64::from(power) + 1);
        let cells: Vec<_> =
            sizes.iter().map(|&power| cell(0, 4 << power, rate(power), iops(power))).collect();
        let plan = Plan { block_bytes: 4096 << at, iops_block_bytes: 4096 << iops_at, ..Plan::default() };
        let held = plan.holds(&cells);
        prop_assert!(held.rate.is_none_or(|held| held <= BytesPerSecond::from_mib(rate(at))));
        prop_assert!(held.iops.is_none_or(|held| held <= Iops(iops(iops_at))));
        prop_assert_eq!(held.rate.is_some(), sizes.iter().any(|&size| size <= at));
        prop_assert_eq!(held.iops.is_some(), sizes.iter().any(|&size| size >= iops_at));
    }
}
