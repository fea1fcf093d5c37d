//! The checks of scenarios that contact no machine: a dry run, a run and its workers refuse the
//! same.

use super::mounted;
use crate::cluster::{Hand, check_lengths, deal};
use std::collections::BTreeSet;
use weir_load::engine::{check_sources, check_step};
use weir_load::error::BenchError;
use weir_load::target::{Target, Targets};
use weir_load::workload::{Rate, Workload};
use weir_scenario::scenario::{Scenario, Step};

/// Checks that this process, or the workers of these names if there are any, can apply the loads of
/// `scenarios` to `targets`.
///
/// # Errors
/// [`BenchError`] names the scenario and the step, and says what to change.
pub fn check(
    targets: &Targets,
    workers: &[String],
    scenarios: &[Scenario],
) -> Result<(), BenchError> {
    for scenario in scenarios.iter().filter(|scenario| scenario.waiting.is_none()) {
        one_number_of_connections(targets, scenario)
            .map_err(|error| placed(&scenario.name, None, &error))?;
        for step in &scenario.steps {
            let at = |error| placed(&scenario.name, Some(&step.name), &error);
            check_one(targets, workers, step).map_err(at)?;
            mounted::check(targets, scenario.language, step).map_err(at)?;
        }
    }
    if workers.is_empty() { check_sources(targets) } else { Ok(()) }
}

fn placed(scenario: &str, step: Option<&str>, error: &BenchError) -> BenchError {
    let step = step.map(|step| format!(", step {step}")).unwrap_or_default();
    BenchError::Workload(format!("{scenario}{step}: {}", error.in_full()))
}

fn check_one(targets: &Targets, workers: &[String], step: &Step) -> Result<(), BenchError> {
    let loads: Vec<Workload> = step.loads.iter().map(closed).collect();
    if workers.is_empty() {
        if let Some(load) = loads.iter().find(|load| !load.hosts.is_empty()) {
            return Err(BenchError::Workload(format!(
                "the load {:?} is for the hosts {}, but there are no workers: see --worker and \
                 --local-workers",
                load.name,
                load.hosts.join(", ")
            )));
        }
        return check_step(targets, &loads);
    }
    check_lengths(&loads)?;
    let hands: Vec<Hand<'_>> = workers.iter().map(|name| Hand { name, there: true }).collect();
    let (dealt, _) = deal(&loads, &hands)?;
    for hand in dealt {
        let loads: Vec<Workload> = hand.into_iter().map(|assigned| assigned.workload).collect();
        check_step(targets, &loads)?;
    }
    Ok(())
}

/// A rate that is a share gets its number later.
fn closed(load: &Workload) -> Workload {
    let mut load = load.clone();
    if matches!(load.rate, Rate::Share { .. }) {
        load.rate = Rate::Operations(1.0);
    }
    load
}

/// The connections of a mount are the same in all steps: steps that vary them would be one test
/// under several names.
fn one_number_of_connections(targets: &Targets, scenario: &Scenario) -> Result<(), BenchError> {
    let mut numbers = BTreeSet::new();
    for load in scenario.steps.iter().flat_map(|step| &step.loads) {
        if let Target::Path(_) = targets.of(load)? {
            numbers.insert(load.connections);
        }
    }
    if numbers.len() < 2 {
        return Ok(());
    }
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    Err(BenchError::Workload(format!(
        "its steps have different numbers of connections per client ({}), which a mounted path \
         cannot vary: measure an nfs:// or smb:// target",
        numbers.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::super::testing::scenario;
    use super::*;
    use weir_load::target::NfsTarget;

    fn nfs() -> Targets {
        Target::Nfs(NfsTarget::new("192.0.2.1:2049".parse().unwrap(), "/vol")).into()
    }

    fn refused(targets: &Targets, workers: &[&str], scenario: &Scenario) -> String {
        let workers: Vec<String> = workers.iter().map(ToString::to_string).collect();
        check(targets, &workers, std::slice::from_ref(scenario)).unwrap_err().to_string()
    }

    #[test]
    fn many_clients_of_one_machine_are_no_error_on_any_address() {
        let mut one = scenario(&["a"]);
        (one.steps[0].loads[0].jobs, one.steps[0].loads[0].clients) = (48, 6);
        check(&nfs(), &[], std::slice::from_ref(&one)).unwrap();
        check(&nfs(), &["w".to_owned()], &[one]).unwrap();
    }

    #[test]
    fn what_the_load_refuses_is_told_with_its_step() {
        let mut one = scenario(&["a", "b"]);
        one.steps[1].loads[0].depth = 0;
        assert!(refused(&nfs(), &[], &one).contains("test, step b: depth is 0"));
        one.steps[1].loads[0].depth = 1;
        one.steps[1].loads[0].rate = Rate::Share { of: "a".to_owned(), percent: 50.0 };
        check(&nfs(), &[], std::slice::from_ref(&one)).unwrap();
        one.waiting = Some("SMB".to_owned());
        one.steps[1].loads[0].depth = 0;
        check(&nfs(), &[], &[one]).unwrap();
    }

    #[test]
    fn hosts_need_workers_of_their_names() {
        let mut one = scenario(&["a"]);
        one.steps[0].loads[0].hosts = vec!["hd1".to_owned()];
        assert!(refused(&nfs(), &[], &one).contains("hosts hd1"));
        assert!(refused(&nfs(), &["hd2"], &one).contains("--worker hd1="));
        check(&nfs(), &["hd1".to_owned()], &[one]).unwrap();
    }

    #[test]
    fn a_path_has_as_many_clients_as_mounts_unless_each_worker_is_one() {
        let path: Targets = Target::Path("/proc".into()).into();
        let mut one = scenario(&["a"]);
        (one.steps[0].loads[0].jobs, one.steps[0].loads[0].clients) = (6, 3);
        assert!(refused(&path, &[], &one).contains("3 clients with 1 mount"));
        assert!(refused(&path, &["w1", "w2"], &one).contains("3 clients with 1 mount"));
        let three = ["w1", "w2", "w3"].map(str::to_owned);
        check(&path, &three, &[one]).unwrap();
    }

    #[test]
    fn a_sweep_over_connections_is_refused_on_a_path() {
        let mut one = scenario(&["a", "b"]);
        one.steps[1].loads[0].connections = 8;
        check(&nfs(), &[], std::slice::from_ref(&one)).unwrap();
        let path: Targets = Target::Path("/proc".into()).into();
        one.steps[1].loads[0].connections = 1;
        check(&path, &[], std::slice::from_ref(&one)).unwrap();
        one.steps[1].loads[0].connections = 8;
        let why = one_number_of_connections(&path, &one).unwrap_err().to_string();
        assert!(why.contains("(1, 8)") && why.contains("nfs://"), "{why}");
        assert!(!why.contains("--connections"), "which would make all steps the same: {why}");
    }
}
