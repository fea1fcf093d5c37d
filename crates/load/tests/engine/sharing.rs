//! Several loads of a step: files they share, and addresses they are spread over.

use crate::responder::Responder;
use crate::{Site, workload};
use std::collections::BTreeSet;
use std::time::Instant;
use weir_load::{
    Control, Layout, NfsTarget, Operation, Pattern, StepRecord, Target, Targets, VerifyScope,
    Workload, prepare, prepare_step,
};

fn apply(site: &Site, loads: &[Workload]) -> StepRecord {
    let control = Control::new();
    let mut step = prepare_step(&site.target().into(), loads, &control, &mut |_, _| {}).unwrap();
    step.run(Instant::now(), &control, |_| {}).unwrap()
}

#[test]
fn loads_on_the_same_files_lay_them_out_once_and_remove_them_once() {
    let writes = Workload { name: "writes".into(), files: 3, ..workload(Pattern::Random, 0, 300) };
    let reads = Workload {
        name: "reads".into(),
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 100 },
        file_bytes: 2 << 20,
        files: 2,
        ..writes.clone()
    };
    let lists = Workload { operation: Operation::Getattr, files: 1, ..writes.clone() };
    for site in Site::both() {
        let record = apply(&site, &[writes.clone(), reads.clone(), lists.clone()]);
        let (total, each) = record.results("step").unwrap();
        assert!(total.is_clean() && each.len() == 3, "{:?}", total.errors);
        assert_eq!(total.total.operations, 900);
        assert_eq!(site.names(), Vec::<String>::new());
    }
}

#[test]
fn a_file_that_one_load_keeps_stays() {
    let keeps = Workload { keep: true, ..workload(Pattern::Random, 0, 10) };
    let other = Workload { files: 2, keep: false, ..keeps.clone() };
    for site in Site::both() {
        let (total, _) = apply(&site, &[other.clone(), keeps.clone()]).results("step").unwrap();
        assert!(total.is_clean(), "{:?}", total.errors);
        assert_eq!(site.names_in(&["weir-bench"]), ["file.00000"]);
    }
}

#[test]
fn a_load_that_reads_sees_what_the_other_one_writes() {
    let writes = Workload {
        name: "writes".into(),
        verify: Some(VerifyScope::All),
        jobs: 2,
        ..workload(Pattern::Random, 0, 1000)
    };
    let reads = Workload {
        name: "reads".into(),
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 100 },
        verify: None,
        verify_reads: true,
        ..writes.clone()
    };
    for site in Site::both() {
        let (total, _) = apply(&site, &[reads.clone(), writes.clone()]).results("step").unwrap();
        assert!(total.is_clean(), "{:?} {:?}", total.errors, total.verify);
        let verify = total.verify.unwrap();
        assert_eq!((verify.in_passing, verify.checked), (1000, 256));
    }
}

#[test]
fn a_step_that_cannot_be_prepared_leaves_nothing() {
    let fine = workload(Pattern::Random, 100, 10);
    let missing =
        Workload { layout: Layout::Existing, names: vec!["nowhere".into()], ..fine.clone() };
    for site in Site::both() {
        let control = Control::new();
        let loads = [fine.clone(), missing.clone()];
        let step = prepare_step(&site.target().into(), &loads, &control, &mut |_, _| {});
        assert!(step.is_err());
        assert_eq!(site.names(), Vec::<String>::new());
    }
}

#[test]
fn clients_are_spread_evenly_over_several_addresses() {
    let server = Responder::start();
    let more = ["127.0.0.2", "127.0.0.3"].map(|ip| server.also_at(ip));
    let target = NfsTarget { more: more.to_vec(), ..server.nfs_target("/vol") };
    let load =
        Workload { jobs: 6, clients: 6, connections: 2, ..workload(Pattern::Random, 100, 600) };
    let prepared = prepare(&Target::Nfs(target.clone()), &load).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?}", result.errors);
    assert_eq!(result.connections.opened, 12);
    let all: Vec<_> = [target.address].into_iter().chain(more).collect();
    let counts: Vec<_> = all.iter().map(|address| result.addresses[&address.to_string()]).collect();
    assert_eq!(counts, [4, 4, 4]);
    assert_eq!(server.locals(), all.into_iter().collect::<BTreeSet<_>>());
}

#[test]
fn each_client_calls_under_a_machine_name_of_its_own_also_from_one_address() {
    let server = Responder::start();
    let here = std::net::IpAddr::from([127, 0, 0, 9]);
    let target = NfsTarget { sources: vec![here], ..server.nfs_target("/vol") };
    let load =
        Workload { jobs: 6, clients: 3, connections: 2, ..workload(Pattern::Random, 100, 600) };
    let prepared = prepare(&Target::Nfs(target), &load).unwrap();
    let result = prepared.run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?}", result.errors);
    assert_eq!(result.connections.opened, 6);
    let clients: BTreeSet<_> = result.jobs.iter().map(|job| job.client.as_str()).collect();
    assert_eq!(clients, BTreeSet::from(["client-1", "client-2", "client-3"]));
    let wanted = ["weir-bench", "weir-bench-1", "weir-bench-2", "weir-bench-3"];
    assert_eq!(server.machines(), wanted.map(str::to_owned).into());
    assert!(server.peers().contains(&here));
}

#[test]
fn resvport_takes_privileged_ports_for_all_connections_or_says_what_it_needs() {
    let server = Responder::start();
    // An address of this test alone, so that its ports are free.
    let here = std::net::IpAddr::from([127, 66, 12, 1]);
    let target = NfsTarget { resvport: true, sources: vec![here], ..server.nfs_target("/vol") };
    let load = Workload { jobs: 4, connections: 4, ..workload(Pattern::Random, 100, 400) };
    let bound = std::net::TcpListener::bind((here, 665));
    let may = !bound.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    let prepared = prepare(&Target::Nfs(target), &load);
    if !may {
        let error = prepared.err().unwrap().to_string();
        assert!(error.contains("CAP_NET_BIND_SERVICE"), "{error}");
        return;
    }
    let result = prepared.unwrap().run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?}", result.errors);
    assert_eq!(result.connections.opened, 4);
    let ports = server.ports();
    assert!(ports.len() >= 4 && ports.iter().all(|port| (665..1024).contains(port)), "{ports:?}");
}

#[test]
fn loads_of_several_targets_have_results_for_each_and_for_all() {
    let sites = Site::both();
    let targets: Targets = [("a", &sites[0]), ("b", &sites[1])]
        .into_iter()
        .map(|(name, site)| (name.to_owned(), site.target()))
        .collect();
    let load = |name: &str, target: &str, operations| Workload {
        name: name.to_owned(),
        target: target.to_owned(),
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 50, operations)
    };
    let loads = [load("one", "a", 100), load("two", "b", 300), load("three", "a", 500)];
    let control = Control::new();
    let mut step = prepare_step(&targets, &loads, &control, &mut |_, _| {}).unwrap();
    let record = step.run(Instant::now(), &control, |_| {}).unwrap();
    let by_target = record.by_target();
    let counts: Vec<_> =
        by_target.iter().map(|run| (run.name.as_str(), run.total.operations)).collect();
    assert_eq!(counts, [("a", 600), ("b", 300)]);
    let (total, each) = record.results("step").unwrap();
    assert!(total.is_clean() && each.len() == 3, "{:?} {:?}", total.errors, total.verify);
    assert_eq!(total.total.operations, 900);
    for site in &sites {
        assert!(total.target.contains(&site.target().to_string()), "{}", total.target);
        assert_eq!(site.names(), Vec::<String>::new());
    }
    let lost = [load("four", "c", 1)];
    let refused = prepare_step(&targets, &lost, &control, &mut |_, _| {}).err().unwrap();
    assert!(refused.to_string().contains("--target c="), "{refused}");
}
