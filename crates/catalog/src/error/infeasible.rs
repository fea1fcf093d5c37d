//! Messages for refusals by the arithmetic of contracts.

use weir_core::units::{Bytes, Rate};
use weir_qos::contract::{Infeasible, Remedy};
use weir_qos::rate::BytesPerSecond;

/// The violated rule, with units.
pub(super) fn infeasible(rule: Infeasible) -> String {
    match rule {
        Infeasible::Quota { asked_bytes, free_bytes, size_needed_bytes } => format!(
            "the sum of the quotas must not exceed the size of the pool: {} requested, {} left; the pool would need a size of {}",
            Bytes(asked_bytes),
            Bytes(free_bytes).at_most(),
            Bytes(size_needed_bytes).at_least()
        ),
        Infeasible::Throughput { asked, free, remedy } => format!(
            "the sum of the throughputs must not exceed the budget of the pool{}: {} requested, {} left; the pool would have to {}",
            budget_of(remedy),
            Rate(asked.0),
            Rate(free.0).at_most(),
            with(remedy)
        ),
        Infeasible::PoolSize { asked_bytes, needed_bytes } => format!(
            "the size must not be less than the sum of the volumes' quotas: {} requested, the minimum is {}",
            Bytes(asked_bytes),
            Bytes(needed_bytes).at_least()
        ),
        Infeasible::PoolThroughput { budget, needed, remedy } => format!(
            "the budget{} must not be less than the throughput assigned to the volumes: {} against {}; {}",
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
            "the sum of the IOPS must not exceed the IOPS of the pool: {asked} requested, {free} left; the pool would have to purchase {needed}"
        ),
        Infeasible::PoolIops { budget, needed } => format!(
            "the pool's IOPS must not be less than the IOPS assigned to the volumes: {budget} against {needed}"
        ),
        Infeasible::BoughtRate { asked, least, most } => {
            format!("{} at this size", out_of_bounds("purchased", asked, least, most))
        }
        Infeasible::BoughtIops { asked, least, most } => {
            format!("{asked} cannot be purchased: the range is {least} to {most}")
        }
        Infeasible::ProvisionedRate { asked, least, most } => {
            out_of_bounds("provisioned", asked, least, most)
        }
        Infeasible::LevelCeiling { asked, most } => beyond_ceiling(asked, most),
        Infeasible::ProvisionedIops { asked, least, most } => {
            format!("{asked} cannot be provisioned: the range is {least} to {most}")
        }
        Infeasible::RateWithoutIops { asked, least } => format!(
            "{} is too small a share of the pool's throughput to include any IOPS: the minimum is {}, or set the IOPS of the volume",
            Rate(asked.0),
            Rate(least.0).at_least()
        ),
        Infeasible::ZeroIops => "0 IOPS would stop all I/O: the minimum is 1".to_owned(),
        Infeasible::QuotaWithoutRate { asked_bytes, least_bytes } => format!(
            "a quota of {} provides no throughput: the minimum is {}",
            Bytes(asked_bytes),
            Bytes(least_bytes).at_least()
        ),
        Infeasible::ZeroRate => {
            "a throughput of zero would stop all I/O: the minimum is 1 B/s".to_owned()
        }
    }
}

/// The message for a rate out of range.
fn out_of_bounds(
    had: &str,
    asked: BytesPerSecond,
    least: BytesPerSecond,
    most: BytesPerSecond,
) -> String {
    let (least, most) = (Rate(least.0).at_least(), Rate(most.0).at_most());
    format!("a throughput of {} cannot be {had}: the range is {least} to {most}", Rate(asked.0))
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
        Remedy::Buy(rate) => format!("purchase {}", Rate(rate.0).at_least()),
    }
}

fn beyond_ceiling(asked: BytesPerSecond, most: BytesPerSecond) -> String {
    format!(
        "{} exceeds the volume ceiling of the service level: request at most {}, use another level, or raise the ceiling (`weir level set --volume-ceiling`)",
        Rate(asked.0),
        Rate(most.0).at_most()
    )
}

/// The code for programs of a broken rule, which never changes.
pub(super) const fn code(rule: &Infeasible) -> &'static str {
    match rule {
        Infeasible::Quota { .. } => "pool_capacity_exceeded",
        Infeasible::Throughput { .. } => "pool_throughput_exceeded",
        Infeasible::PoolSize { .. } => "pool_below_quotas",
        Infeasible::PoolThroughput { .. } => "pool_below_throughput",
        Infeasible::QuotaWithoutRate { .. } => "quota_without_throughput",
        Infeasible::ZeroRate => "zero_throughput",
        Infeasible::ZeroIops => "zero_iops",
        Infeasible::Iops { .. } => "pool_iops_exceeded",
        Infeasible::PoolIops { .. } => "pool_below_iops",
        Infeasible::BoughtRate { .. } => "pool_throughput_out_of_bounds",
        Infeasible::BoughtIops { .. } => "pool_iops_out_of_bounds",
        Infeasible::RateWithoutIops { .. } => "throughput_without_iops",
        Infeasible::ProvisionedRate { .. } | Infeasible::LevelCeiling { .. } => {
            "throughput_out_of_bounds"
        }
        Infeasible::ProvisionedIops { .. } => "iops_out_of_bounds",
    }
}
