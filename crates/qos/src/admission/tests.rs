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
    // What was not measured is no better than the worst that was.
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
fn what_is_committed_is_what_may_be_used_for_good() {
    let none = Committed::default();
    assert_eq!(none.with(of(48, None)).iops(), Iops(0), "they are not counted");
    let both = none.with(of(48, Some(1000))).with(of(2, Some(5)));
    assert_eq!((both.rate(), both.iops()), (BytesPerSecond::from_mib(50), Iops(1005)));
    let burst = burst::v1(1 << 40);
    assert_eq!(none.with(burst).iops(), Iops(4024), "its base, not its bursts of 10,000");
    let most = Limits { iops: Some(Iops(100)), ..burst };
    assert_eq!(none.with(most).iops(), Iops(100), "a ceiling below its base");
    let huge = Limits::of(BytesPerSecond(u64::MAX));
    assert_eq!(none.with(huge).with(huge).rate(), BytesPerSecond(u64::MAX));
}

#[test]
fn more_than_is_held_is_beyond_and_says_all_of_it() {
    let (admission, holds) = (Admission::default(), holds(100, 1000));
    let before = Committed::default().with(of(60, Some(900)));
    assert!(admission.judge(before, before.with(of(40, Some(100))), holds).is_none());
    let excess = admission.judge(before, before.with(of(41, None)), holds);
    let mib = BytesPerSecond::from_mib;
    let told = Beyond { before: mib(60), after: mib(101), holds: mib(100), allowed: mib(100) };
    assert_eq!(excess, Excess { rate: Some(told), iops: None });
    let excess = admission.judge(before, before.with(of(0, Some(101))), holds);
    assert_eq!(excess.iops.map(|beyond| beyond.after), Some(Iops(1001)));
    assert!(excess.rate.is_none());
    let half = Admission { overcommit_percent: 150, ..admission };
    assert!(half.judge(before, before.with(of(90, Some(600))), holds).is_none());
    let excess = half.judge(before, before.with(of(91, None)), holds);
    assert_eq!(excess.rate.map(|beyond| beyond.allowed), Some(mib(150)));
    assert!(admission.judge(before, before.with(of(900, None)), Holds::default()).is_none());
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
    parts.iter().fold(Committed::default(), |sum, &(mib, iops)| sum.with(of(mib, iops)))
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

    /// One measurement more, of the same mixes, never makes the plan hopeful: what it holds was measured
    /// at a block size at which hardware whose figures are in order does no better than at the planned one.
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
