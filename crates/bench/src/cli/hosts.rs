//! The workers for loads that name hosts.

use super::CliError;
use super::worker::WorkersArgs;
use crate::cluster::{Wanted, WorkerPlace};
use std::collections::{BTreeMap, BTreeSet};
use weir_scenario::scenario::{Host, Scenario};

/// The names of this machine that need no ssh.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The workers that apply `scenarios`: those of the command line, and those on the hosts that loads
/// name, where the text says where they are. With `--local-workers`, hosts without a worker of
/// their name are processes of this machine, and the loads name those.
///
/// # Errors
/// [`CliError::Usage`] if nobody knows where a host is.
pub(super) fn workers(
    args: &WorkersArgs,
    scenarios: &mut [Scenario],
) -> Result<Vec<Wanted>, CliError> {
    let mut workers = args.wanted();
    let known: BTreeSet<String> = workers.iter().map(|worker| worker.name.clone()).collect();
    let missing: Vec<String> =
        named(scenarios).into_iter().filter(|name| !known.contains(name)).collect();
    if missing.is_empty() {
        return Ok(workers);
    }
    if let Some(count) = args.local_workers {
        let local = |at: usize| format!("local-{}", at % usize::try_from(count).unwrap_or(1) + 1);
        let numbered = missing.into_iter().enumerate();
        let stand_ins: BTreeMap<String, String> =
            numbered.map(|(at, name)| (name, local(at))).collect();
        scenarios.iter_mut().for_each(|scenario| rename(scenario, &stand_ins));
        return Ok(workers);
    }
    for name in missing {
        let host = defined(scenarios, &name)?;
        let place = host.as_ref().and_then(place).ok_or_else(|| unknown(&name))?;
        if let Some(shell) = host.as_ref().and_then(|host| host.shell.as_deref())
            && shell != "ssh"
        {
            let change = format!("the worker {name} is started over ssh, not over {shell}");
            scenarios.iter_mut().for_each(|scenario| scenario.changes.push(change.clone()));
        }
        workers.push(Wanted { name, place });
    }
    Ok(workers)
}

fn unknown(name: &str) -> CliError {
    CliError::Usage(format!(
        "a load is for the host {name:?}, and nothing says where that is: start a worker of this \
         name with --worker {name}=ssh:[USER@]HOST, or apply the loads of all hosts on this machine \
         with --local-workers N"
    ))
}

/// The hosts that the loads of a scenario name.
fn hosts_of(scenario: &Scenario) -> impl Iterator<Item = &String> {
    scenario.steps.iter().flat_map(|step| &step.loads).flat_map(|load| &load.hosts)
}

/// The scenarios that are applied.
fn applied(scenarios: &[Scenario]) -> impl Iterator<Item = &Scenario> {
    scenarios.iter().filter(|scenario| scenario.waiting.is_none())
}

/// The hosts that loads name, each once, in order.
fn named(scenarios: &[Scenario]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in applied(scenarios).flat_map(hosts_of) {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

/// The definition of the host `name` in the texts whose loads name it; `None` without one.
///
/// # Errors
/// [`CliError::Usage`] if two texts define it on different machines or with different users: there
/// is one worker of this name.
fn defined(scenarios: &[Scenario], name: &str) -> Result<Option<Host>, CliError> {
    let mut users = applied(scenarios)
        .filter(|scenario| hosts_of(scenario).any(|host| host == name))
        .map(|scenario| (scenario, scenario.hosts.iter().find(|host| host.name == name)));
    let Some((first, host)) = users.next() else { return Ok(None) };
    let login = |host: Option<&Host>| host.map(|host| (host.system.clone(), host.user.clone()));
    match users.find(|(_, other)| login(*other) != login(host)) {
        None => Ok(host.cloned()),
        Some((second, other)) => Err(CliError::Usage(format!(
            "the host {name:?} is {} in {} and {} in {}: give it another name in one of them, say \
             where it is with --worker {name}=ssh:[USER@]HOST, or measure them in two runs",
            in_words(host),
            first.name,
            in_words(other),
            second.name
        ))),
    }
}

/// The machine of a host as the text says it.
fn in_words(host: Option<&Host>) -> String {
    let Some(host) = host else { return "not defined".to_owned() };
    let user = host.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    format!("{user}{}", host.system.as_deref().unwrap_or("(no system)"))
}

/// Where a worker is started for `host`; `None` if the text does not say.
fn place(host: &Host) -> Option<WorkerPlace> {
    let system = host.system.as_deref().or((host.name == "localhost").then_some("localhost"))?;
    if HERE.contains(&system) {
        return Some(WorkerPlace::Local);
    }
    let user = host.user.as_deref();
    if !Host::is_system(system) || !user.is_none_or(Host::is_user) {
        return None;
    }
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    Some(WorkerPlace::Ssh(format!("{user}{system}")))
}

/// Has loads name the workers in place of the hosts.
fn rename(scenario: &mut Scenario, stand_ins: &BTreeMap<String, String>) {
    let mut renamed = BTreeSet::new();
    for load in scenario.steps.iter_mut().flat_map(|step| &mut step.loads) {
        for host in &mut load.hosts {
            if let Some(worker) = stand_ins.get(host) {
                renamed.insert(std::mem::replace(host, worker.clone()));
            }
        }
    }
    if !renamed.is_empty() {
        scenario.changes.push(format!(
            "{} hosts ({}) are processes of this machine: they share its processors and its link",
            renamed.len(),
            renamed.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::testing::scenario;

    fn host(name: &str, system: Option<&str>, user: Option<&str>) -> Host {
        let text = |text: &str| text.to_owned();
        let (system, user) = (system.map(text), user.map(text));
        Host { name: name.to_owned(), system, user, shell: Some("ssh".to_owned()) }
    }

    fn on_hosts(names: &[&str]) -> Scenario {
        let mut one = scenario(&["a"]);
        one.steps[0].loads[0].hosts = names.iter().map(ToString::to_string).collect();
        one.hosts = vec![
            host("hd1", Some("10.0.0.1"), Some("root")),
            host("hd2", Some("client2"), None),
            host("here", Some("localhost"), None),
            host("nowhere", None, None),
            host("evil", Some("-oProxyCommand=x"), None),
            host("shell", Some("$(id)"), None),
            host("user", Some("10.0.0.1"), Some("`id`")),
        ];
        one
    }

    fn resolved(
        args: &WorkersArgs,
        one: &mut Scenario,
    ) -> Result<Vec<(String, WorkerPlace)>, String> {
        let all = workers(args, std::slice::from_mut(one)).map_err(|error| error.to_string())?;
        Ok(all.into_iter().map(|one| (one.name, one.place)).collect())
    }

    fn ssh(host: &str) -> WorkerPlace {
        WorkerPlace::Ssh(host.to_owned())
    }

    #[test]
    fn hosts_are_started_where_the_text_says() {
        let mut one = on_hosts(&["hd1", "hd2", "here", "hd1"]);
        let all = resolved(&WorkersArgs::default(), &mut one).unwrap();
        let wanted = [
            ("hd1".to_owned(), ssh("root@10.0.0.1")),
            ("hd2".to_owned(), ssh("client2")),
            ("here".to_owned(), WorkerPlace::Local),
        ];
        assert_eq!(all, wanted);
    }

    #[test]
    fn workers_of_the_command_line_come_before_what_the_text_says() {
        let mut one = on_hosts(&["hd1", "nowhere"]);
        let worker = ["hd1=ssh:a", "nowhere=ssh:b"].map(|text| text.parse().unwrap()).to_vec();
        let mut args = WorkersArgs::default();
        args.worker = worker;
        let all = resolved(&args, &mut one).unwrap();
        assert_eq!(all, [("hd1".to_owned(), ssh("a")), ("nowhere".to_owned(), ssh("b"))]);
    }

    #[test]
    fn hosts_that_cannot_be_reached_are_an_error_and_never_one_process() {
        for name in ["nowhere", "evil", "shell", "user", "undefined"] {
            let refused = resolved(&WorkersArgs::default(), &mut on_hosts(&["hd1", name]));
            let refused = refused.unwrap_err();
            assert!(refused.contains(&format!("--worker {name}=ssh:")), "{refused}");
            assert!(refused.contains("--local-workers"), "{refused}");
        }
    }

    #[test]
    fn a_host_that_two_files_define_differently_is_refused_with_both_names() {
        let file = |name: &str, system: Option<&str>| {
            let mut one = on_hosts(&["hd1", "hd2"]);
            one.name = name.to_owned();
            one.hosts[0] = host("hd1", system, Some("root"));
            one
        };
        let with = |args: &WorkersArgs, others: Option<&str>| {
            let mut both = [file("first", Some("10.0.0.1")), file("second", others)];
            workers(args, &mut both).map_err(|error| error.to_string())
        };
        let alone = WorkersArgs::default();
        assert_eq!(with(&alone, Some("10.0.0.1")).unwrap().len(), 2);
        let why = with(&alone, Some("10.0.0.9")).unwrap_err();
        let words = "\"hd1\" is root@10.0.0.1 in first and root@10.0.0.9 in second";
        assert!(why.contains(words) && why.contains("--worker hd1=ssh:"), "{why}");
        assert!(with(&alone, None).unwrap_err().contains("root@(no system) in second"));
        // The command line says which machine is meant.
        let mut given = WorkersArgs::default();
        given.worker = vec!["hd1=ssh:a".parse().unwrap()];
        assert_eq!(with(&given, Some("10.0.0.9")).unwrap().len(), 2);
        let mut local = WorkersArgs::default();
        local.local_workers = Some(1);
        assert_eq!(with(&local, Some("10.0.0.9")).unwrap().len(), 1);
    }

    #[test]
    fn local_workers_take_the_hosts_in_turn() {
        let mut args = WorkersArgs::default();
        args.local_workers = Some(2);
        let mut one = on_hosts(&["hd1", "hd2", "nowhere"]);
        let all = resolved(&args, &mut one).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(one.steps[0].loads[0].hosts, ["local-1", "local-2", "local-1"]);
        assert!(one.changes[0].contains("3 hosts (hd1, hd2, nowhere)"), "{:?}", one.changes);
    }

    #[test]
    fn loads_without_hosts_need_no_workers() {
        assert_eq!(resolved(&WorkersArgs::default(), &mut scenario(&["a"])).unwrap(), []);
    }
}
