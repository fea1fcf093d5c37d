//! The words for what the arithmetic of contracts refuses.

use weir_core::units::{Bytes, Rate};
use weir_qos::contract::{Infeasible, Remedy};
use weir_qos::rate::BytesPerSecond;

/// The rule broken, in units people use.
pub(super) fn infeasible(rule: Infeasible) -> String {
    match rule {
        Infeasible::Quota { asked_bytes, free_bytes, size_needed_bytes } => format!(
            "the sum of quotas may not exceed the pool's size: {} asked for, {} left; the pool would have to be {}",
            Bytes(asked_bytes),
            Bytes(free_bytes).at_most(),
            Bytes(size_needed_bytes).at_least()
        ),
        Infeasible::Throughput { asked, free, remedy } => format!(
            "the sum of throughputs may not exceed the pool's budget{}: {} asked for, {} left; the pool would have to {}",
            budget_of(remedy),
            Rate(asked.0),
            Rate(free.0).at_most(),
            with(remedy)
        ),
        Infeasible::PoolSize { asked_bytes, needed_bytes } => format!(
            "the size may not go below the sum of the volumes' quotas: {} asked for, at least {} allowed",
            Bytes(asked_bytes),
            Bytes(needed_bytes).at_least()
        ),
        Infeasible::PoolThroughput { budget, needed, remedy } => format!(
            "the budget{} may not go below what the volumes are given: {} against {}; {}",
            budget_of(remedy),
            Rate(budget.0),
            Rate(needed.0),
            match remedy {
                Remedy::Size(least) => {
                    format!("at this level the size must be at least {}", Bytes(least).at_least())
                }
                Remedy::Buy(least) => {
                    format!("the throughput must be at least {}", Rate(least.0).at_least())
                }
            }
        ),
        Infeasible::Iops { asked, free, needed } => format!(
            "the sum of IOPS may not exceed the pool's: {asked} asked for, {free} left; the pool would have to buy {needed}"
        ),
        Infeasible::PoolIops { budget, needed } => format!(
            "the pool's IOPS may not go below what the volumes are given: {budget} against {needed}"
        ),
        Infeasible::BoughtRate { asked, least, most } => {
            format!("{} at this size", out_of_bounds("bought", asked, least, most))
        }
        Infeasible::BoughtIops { asked, least, most } => {
            format!("{asked} can't be bought: from {least} to {most} is allowed")
        }
        Infeasible::ProvisionedRate { asked, least, most } => {
            out_of_bounds("provisioned", asked, least, most)
        }
        Infeasible::ProvisionedIops { asked, least, most } => {
            format!("{asked} can't be provisioned: from {least} to {most} is allowed")
        }
        Infeasible::RateWithoutIops { asked, least } => format!(
            "{} is so small a part of the pool's throughput that no IOPS come with it: at least {} allowed, or give the volume IOPS of its own",
            Rate(asked.0),
            Rate(least.0).at_least()
        ),
        Infeasible::ZeroIops => "0 IOPS would stop all I/O: at least 1 allowed".to_owned(),
        Infeasible::QuotaWithoutRate { asked_bytes, least_bytes } => format!(
            "a quota of {} buys no throughput at all: at least {} allowed",
            Bytes(asked_bytes),
            Bytes(least_bytes).at_least()
        ),
        Infeasible::ZeroRate => {
            "a throughput of zero would stop all I/O: at least 1 B/s allowed".to_owned()
        }
    }
}

/// The message that a rate can't be had, with the bounds.
fn out_of_bounds(
    had: &str,
    asked: BytesPerSecond,
    least: BytesPerSecond,
    most: BytesPerSecond,
) -> String {
    let (least, most) = (Rate(least.0).at_least(), Rate(most.0).at_most());
    format!("a throughput of {} can't be {had}: from {least} to {most} is allowed", Rate(asked.0))
}

/// The words for the source of a pool's budget.
const fn budget_of(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Size(_) => " (size × level rate)",
        Remedy::Buy(_) => "",
    }
}

/// The words for the size that a pool must have, or the rate it must buy.
fn with(remedy: Remedy) -> String {
    match remedy {
        Remedy::Size(bytes) => format!("be {}", Bytes(bytes).at_least()),
        Remedy::Buy(rate) => format!("buy {}", Rate(rate.0).at_least()),
    }
}
