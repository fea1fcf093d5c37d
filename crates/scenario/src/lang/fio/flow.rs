//! `flow`: a part of the activity of several jobs.

use super::bag::Bag;
use crate::lang::LangError;
use weir_load::workload::{Flow, Rate, SizeShare, Workload};

/// `flow`, `flow_id`, `flow_sleep`.
pub(super) fn flow(bag: &Bag) -> Result<Option<Flow>, LangError> {
    let Some(weight) = bag.count("flow", 0)?.filter(|weight| *weight > 0) else { return Ok(None) };
    let group = bag.count("flow_id", 0)?.unwrap_or(0);
    let sleep_us = bag.bytes("flow_sleep")?.unwrap_or(0);
    Ok(Some(Flow { group, weight, sleep_us }))
}

/// The parts of the flow of `load` that its reads and its writes have as loads of their own with
/// these rates: its weight, divided in the proportion of their requests.
pub(super) fn parts(
    bag: &Bag,
    load: &Workload,
    [reads, writes]: [&Rate; 2],
) -> Result<[Option<Flow>; 2], LangError> {
    let Some(flow) = load.flow else { return Ok([None, None]) };
    let sizes = [&load.read_sizes, &load.write_sizes].map(|sizes| mean(sizes, load.block_bytes));
    let [read_rate, write_rate] = [reads, writes].map(number);
    // Of rates in bytes, the requests are what remains after a division by their sizes.
    let (reads, writes) = match reads {
        Rate::Bytes(_) => (read_rate * sizes[1], write_rate * sizes[0]),
        _ => (read_rate, write_rate),
    };
    let divisor = common_divisor(reads, writes).max(1);
    let (reads, writes) = (reads / divisor, writes / divisor);
    let (weight, sum) = (u128::from(flow.weight), (reads + writes).max(1));
    if !weight.is_multiple_of(sum) {
        let factor = sum / common_divisor(weight, sum).max(1);
        return Err(bag.error(
            "flow",
            format!(
                "is {weight}, which cannot be divided between the reads and the writes of the mix \
                 in the proportion of their rates, {reads} to {writes}: multiply flow of all jobs \
                 of this flow_id by {factor}"
            ),
        ));
    }
    let part = |share: u128| {
        let weight = u32::try_from(weight / sum * share).unwrap_or(u32::MAX);
        Some(Flow { weight, ..flow })
    };
    Ok([part(reads), part(writes)])
}

/// A rate of whole operations or bytes a second.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of u64")]
fn number(rate: &Rate) -> u128 {
    match rate {
        Rate::Operations(rate) | Rate::Bytes(rate) => *rate as u128,
        Rate::Unlimited | Rate::Share { .. } => 0,
    }
}

/// A hundred times the mean of `sizes`, or of `block` without any.
fn mean(sizes: &[SizeShare], block: u32) -> u128 {
    let each = |share: &SizeShare| u128::from(share.bytes) * u128::from(share.percent);
    if sizes.is_empty() { u128::from(block) * 100 } else { sizes.iter().map(each).sum() }
}

/// The greatest common divisor (Euclid).
const fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
