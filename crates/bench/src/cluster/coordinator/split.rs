//! Dealing the loads of a step to workers. Arithmetic: no connection is touched.

use crate::cluster::wire::Assigned;
use std::collections::BTreeMap;
use weir_load::error::BenchError;
use weir_load::workload::{Part, Workload};

/// A worker as far as dealing is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hand<'a> {
    /// The worker's name.
    pub(crate) name: &'a str,
    /// Is it still there?
    pub(crate) there: bool,
}

/// The loads of each worker, in the order of the workers, and remarks.
pub(crate) type Dealt = (Vec<Vec<Assigned>>, Vec<String>);

/// Deals `loads` to `workers`: each load to all that are there, or to those that it names, but to
/// no more than it has jobs.
///
/// # Errors
/// [`BenchError::Peer`] if a load names a worker that there is not, or nobody is left for it;
/// [`BenchError::Workload`] if the loads of a flow would be on several workers.
pub(crate) fn deal(loads: &[Workload], workers: &[Hand<'_>]) -> Result<Dealt, BenchError> {
    let (mut dealt, mut notes) = (vec![Vec::new(); workers.len()], Vec::new());
    // Loads of few jobs do not all go to the first workers.
    let mut turn = 0;
    for (number, load) in (0_u32..).zip(loads) {
        let mut takers = takers(load, workers, &mut notes)?;
        let count = u32::try_from(takers.len()).unwrap_or(u32::MAX).min(load.jobs.max(1));
        let parts = usize::try_from(count).unwrap_or(takers.len());
        if parts < takers.len() {
            let begin = turn % takers.len();
            takers.rotate_left(begin);
            turn += parts;
            notes.push(idle(load, workers, takers.get(parts..).unwrap_or_default()));
        }
        for (index, taker) in (0..count).zip(takers) {
            // Also where it is the whole: other loads of the step may use the same files, so that
            // nobody may remove them before all have ended.
            let part = Some(Part { index, of: count });
            let workload = Workload { part, hosts: Vec::new(), ..load.clone() };
            if let Some(hand) = dealt.get_mut(taker) {
                hand.push(Assigned { load: number, workload });
            }
        }
    }
    check_flows(workers, &dealt)?;
    Ok((dealt, notes))
}

/// The jobs of a flow wait for each other, which they can do only within one process.
fn check_flows(workers: &[Hand<'_>], dealt: &[Vec<Assigned>]) -> Result<(), BenchError> {
    let mut places: BTreeMap<u32, (&str, &str)> = BTreeMap::new();
    for (worker, hand) in workers.iter().zip(dealt) {
        for load in hand.iter().map(|assigned| &assigned.workload) {
            let Some(flow) = load.flow else { continue };
            let (first, load_there) =
                *places.entry(flow.group).or_insert((worker.name, &load.name));
            if first != worker.name {
                return Err(BenchError::Workload(format!(
                    "the loads of flow {} would be on several workers ({load_there:?} on {first}, \
                     {:?} on {}), which cannot wait for each other: let all of them name the same \
                     single host, or use one worker",
                    flow.group, load.name, worker.name
                )));
            }
        }
    }
    Ok(())
}

fn takers(
    load: &Workload,
    workers: &[Hand<'_>],
    notes: &mut Vec<String>,
) -> Result<Vec<usize>, BenchError> {
    let there = |index: &usize| workers.get(*index).is_some_and(|worker| worker.there);
    let mut named = Vec::with_capacity(load.hosts.len());
    for host in &load.hosts {
        match workers.iter().position(|worker| worker.name == host) {
            Some(index) if named.contains(&index) => {}
            Some(index) => named.push(index),
            None => return Err(unknown(load, host, workers)),
        }
    }
    if load.hosts.is_empty() {
        named = (0..workers.len()).collect();
    }
    let wanted = named.len();
    named.retain(there);
    if named.is_empty() {
        return Err(BenchError::Peer(format!(
            "all workers of the load {:?} were lost before this step",
            load.name
        )));
    }
    if named.len() < wanted {
        notes.push(format!(
            "of the {wanted} workers of the load {:?}, {} were lost before this step; the others \
             took over their part",
            load.name,
            wanted - named.len()
        ));
    }
    Ok(named)
}

fn unknown(load: &Workload, host: &str, workers: &[Hand<'_>]) -> BenchError {
    let names: Vec<_> = workers.iter().map(|worker| worker.name).collect();
    BenchError::Peer(format!(
        "the load {:?} is for the host {host:?}, but no worker has that name; the workers are: {}. \
         Name one with --worker {host}=ssh:[USER@]HOST",
        load.name,
        names.join(", ")
    ))
}

fn idle(load: &Workload, workers: &[Hand<'_>], idle: &[usize]) -> String {
    let names: Vec<_> =
        idle.iter().filter_map(|index| workers.get(*index)).map(|worker| worker.name).collect();
    format!(
        "the load {:?} has fewer jobs than there are workers ({}); idle in it: {}",
        load.name,
        load.jobs,
        names.join(", ")
    )
}

/// Jobs of a load in the part.
#[must_use]
pub(crate) fn jobs_of(workload: &Workload) -> u32 {
    match workload.part {
        None => workload.jobs,
        Some(part) => workload.jobs.saturating_sub(part.index).div_ceil(part.of.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_load::workload::Flow;

    fn hands<'a>(names: &[&'a str]) -> Vec<Hand<'a>> {
        names.iter().map(|name| Hand { name, there: true }).collect()
    }

    fn load(name: &str, jobs: u32, hosts: &[&str]) -> Workload {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Workload { name: name.to_owned(), jobs, hosts, ..Workload::default() }
    }

    /// Each worker's (load, index, of).
    fn parts(dealt: &Dealt) -> Vec<Vec<(u32, u32, u32)>> {
        let of = |assigned: &Assigned| {
            let part = assigned.workload.part.unwrap();
            (assigned.load, part.index, part.of)
        };
        dealt.0.iter().map(|hand| hand.iter().map(of).collect()).collect()
    }

    #[test]
    fn every_job_is_in_exactly_one_part() {
        for jobs in [1, 2, 5, 8, 9, 100] {
            let dealt = deal(&[load("a", jobs, &[])], &hands(&["1", "2", "3", "4", "5"])).unwrap();
            let all = dealt.0.iter().flatten();
            assert_eq!(all.map(|assigned| jobs_of(&assigned.workload)).sum::<u32>(), jobs);
            assert!(dealt.0.iter().flatten().all(|assigned| jobs_of(&assigned.workload) > 0));
        }
    }

    #[test]
    fn a_load_goes_to_all_or_to_those_it_names() {
        let loads = [load("a", 9, &[]), load("b", 9, &["z", "x", "z"]), load("c", 1, &["y"])];
        let dealt = deal(&loads, &hands(&["x", "y", "z"])).unwrap();
        let wanted =
            [vec![(0, 0, 3), (1, 1, 2)], vec![(0, 1, 3), (2, 0, 1)], vec![(0, 2, 3), (1, 0, 2)]];
        assert_eq!(parts(&dealt), wanted);
        assert_eq!(dealt.1, Vec::<String>::new());
    }

    #[test]
    fn with_fewer_jobs_than_workers_others_idle_and_small_loads_spread() {
        let loads = [load("a", 1, &[]), load("b", 2, &[]), load("c", 1, &[])];
        let dealt = deal(&loads, &hands(&["x", "y", "z"])).unwrap();
        let wanted = [vec![(0, 0, 1), (2, 0, 1)], vec![(1, 0, 2)], vec![(1, 1, 2)]];
        assert_eq!(parts(&dealt), wanted);
        assert!(dealt.1[0].contains("idle in it: y, z"), "{:?}", dealt.1);
    }

    #[test]
    fn the_loads_of_a_flow_stay_on_one_worker() {
        let flow = |name, jobs, hosts: &[&str], group| {
            let flow = Some(Flow { group, weight: 1, sleep_us: 0 });
            Workload { flow, ..load(name, jobs, hosts) }
        };
        let refused =
            |loads: &[Workload]| deal(loads, &hands(&["x", "y"])).unwrap_err().to_string();
        let why = refused(&[flow("a", 1, &["x"], 7), flow("b", 1, &["y"], 7)]);
        assert!(why.contains("flow 7") && why.contains("(\"a\" on x, \"b\" on y)"), "{why}");
        // Loads of one job each go to the workers in turn.
        assert!(refused(&[flow("a", 1, &[], 0), flow("b", 1, &[], 0)]).contains("one worker"));
        // A load of several jobs has its parts on both.
        assert!(refused(&[flow("a", 2, &[], 0)]).contains("(\"a\" on x, \"a\" on y)"));
        let apart = [flow("a", 1, &["x"], 0), flow("b", 2, &["x"], 0), flow("c", 1, &["y"], 1)];
        deal(&apart, &hands(&["x", "y"])).unwrap();
        deal(&[flow("a", 2, &[], 0), flow("b", 1, &[], 0)], &hands(&["x"])).unwrap();
    }

    #[test]
    fn unknown_and_lost_workers_are_said() {
        let mut workers = hands(&["x", "y"]);
        let error = deal(&[load("a", 2, &["hd9"])], &workers).unwrap_err().to_string();
        assert!(
            error.contains("the workers are: x, y")
                && error.contains("--worker hd9=ssh:[USER@]HOST"),
            "{error}"
        );
        workers[0].there = false;
        let dealt = deal(&[load("a", 2, &[])], &workers).unwrap();
        assert_eq!(parts(&dealt), [vec![], vec![(0, 0, 1)]]);
        assert!(dealt.1[0].contains("1 were lost before"), "{:?}", dealt.1);
        let error = deal(&[load("a", 2, &["x"])], &workers).unwrap_err().to_string();
        assert!(error.contains("all workers"), "{error}");
    }
}
