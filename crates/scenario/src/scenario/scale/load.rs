//! Fewer requests at a time.

use super::{Changes, Scale};
use crate::scenario::Step;
use weir_load::workload::{Length, Operation, Workload};

/// Makes clients, jobs and depths fit: jobs in the same proportion in all steps, what is left over
/// from the depth.
pub(super) fn fewer_at_a_time(steps: &mut [Step], scale: &Scale, changes: &mut Changes) {
    let before: Vec<Step> = steps.to_vec();
    for load in steps.iter_mut().flat_map(|step| &mut step.loads) {
        bound(load, scale);
    }
    let (part, of) = steps.iter().map(|step| proportion(step, scale)).fold((1, 1), tighter);
    for load in steps.iter_mut().flat_map(|step| &mut step.loads) {
        load.jobs = times(load.jobs, part, of).max(load.clients);
    }
    for step in steps.iter_mut() {
        let (part, of) = proportion(step, scale);
        for load in &mut step.loads {
            load.depth = times(load.depth, part, of);
        }
    }
    for (step, before) in steps.iter_mut().zip(&before) {
        for (load, before) in step.loads.iter_mut().zip(&before.loads) {
            if let (Operation::Create, Length::Operations(count)) =
                (load.operation, &mut load.length)
            {
                // Each job creates as many files as before.
                let jobs = (u64::from(load.jobs), u64::from(before.jobs.max(1)));
                *count = (*count / jobs.1).saturating_mul(jobs.0).max(1);
            }
            if load.client_delays_us != before.client_delays_us {
                let (some, all) = (load.client_delays_us.len(), before.client_delays_us.len());
                changes.say(format!("the first {some} of {all} distances of clients"));
            }
            if (load.clients, load.jobs, load.depth) != (before.clients, before.jobs, before.depth)
            {
                changes.say(format!("{} → {}", told(before), told(load)));
            }
        }
    }
}

fn told(load: &Workload) -> String {
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    format!(
        "{} client{}, {} job{}, {} in flight of each",
        load.clients,
        plural(load.clients),
        load.jobs,
        plural(load.jobs),
        load.depth
    )
}

/// Keeps the bounds of one load.
fn bound(load: &mut Workload, scale: &Scale) {
    let most = |bound: Option<u32>| bound.unwrap_or(u32::MAX).max(1);
    let clients = load.clients.min(most(scale.clients));
    load.jobs = times(load.jobs, u64::from(clients), u64::from(load.clients.max(1)));
    load.jobs = load.jobs.min(most(scale.jobs));
    load.clients = clients.min(load.jobs);
    // Distances are dealt to the clients in turn: no more than there are clients.
    load.client_delays_us.truncate(usize::try_from(load.clients).unwrap_or(usize::MAX));
    load.depth = load.depth.min(most(scale.depth));
}

/// Which part of what a step has in flight may be.
fn proportion(step: &Step, scale: &Scale) -> (u64, u64) {
    let requests: u64 = step.loads.iter().map(Workload::in_flight).sum();
    let bytes: u64 = step.loads.iter().map(|load| load.in_flight() * largest(load)).sum();
    let most = scale.in_flight.map_or(u64::MAX, u64::from).max(1);
    let most_bytes = scale.bytes_in_flight.unwrap_or(u64::MAX).max(1);
    let capped = |most: u64, now: u64| (most.min(now).max(1), now.max(1));
    tighter(capped(most, requests), capped(most_bytes, bytes))
}

/// Bytes of the largest request.
pub(super) fn largest(load: &Workload) -> u64 {
    let sizes = load.read_sizes.iter().chain(&load.write_sizes).map(|share| share.bytes);
    u64::from(sizes.chain([load.block_bytes]).max().unwrap_or(1).max(1))
}

/// The lesser of two fractions.
fn tighter(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    let less = u128::from(one.0) * u128::from(other.1) <= u128::from(other.0) * u128::from(one.1);
    if less { one } else { other }
}

/// A part of a count, at least one.
fn times(count: u32, part: u64, of: u64) -> u32 {
    let product = u128::from(count) * u128::from(part) / u128::from(of.max(1));
    u32::try_from(product).unwrap_or(count).clamp(1, count.max(1))
}
