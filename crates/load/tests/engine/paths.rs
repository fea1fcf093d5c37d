//! The path engine on a directory of this machine.

use crate::workload;
use weir_load::{
    Control, Operation, PathTarget, Pattern, RunResult, Target, VerifyScope, Workload, check_step,
    prepare,
};

fn run(workload: &Workload) -> (RunResult, usize) {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::Path(directory.path().into());
    let result = prepare(&target, workload).unwrap().run(&Control::new(), |_| {}).unwrap();
    (result, std::fs::read_dir(directory.path()).unwrap().count())
}

#[test]
fn reads_and_writes_are_counted_verified_and_cleaned_up() {
    let workload = Workload {
        jobs: 2,
        depth: 3,
        files: 2,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 40, 2000)
    };
    let (result, left) = run(&workload);
    assert!(result.is_clean(), "{:?}", result.errors);
    assert_eq!(result.total.operations, 2000);
    assert!(result.verify.unwrap().checked > 0);
    assert_eq!(left, 0);
}

#[test]
fn metadata_operations_work_on_a_path() {
    for (operation, kind) in [
        (Operation::Getattr, "getattr"),
        (Operation::Access, "access"),
        (Operation::Lookup, "lookup"),
        (Operation::CreateRemove, "create"),
    ] {
        let workload = Workload { operation, ..workload(Pattern::Random, 100, 200) };
        let (result, left) = run(&workload);
        assert!(result.is_clean() && result.by_operation.contains_key(kind), "{kind}");
        assert_eq!(left, 0);
    }
}

#[test]
fn a_path_has_no_null_operation_and_must_be_there() {
    let null = Workload { operation: Operation::Null, ..Workload::default() };
    let error = prepare(&Target::Path("/".into()), &null).err().unwrap();
    assert!(error.to_string().contains("nfs://"));
    let missing = Target::Path("/nonexistent/place".into());
    let error = prepare(&missing, &Workload::default()).err().unwrap();
    assert!(error.to_string().contains("name an existing directory"));
}

#[test]
fn clients_are_mounts_and_work_on_the_same_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("one");
    std::fs::create_dir(&root).unwrap();
    let more = ["two", "three"].map(|name| directory.path().join(name)).to_vec();
    for mount in &more {
        std::os::unix::fs::symlink(&root, mount).unwrap();
    }
    let target = Target::Path(PathTarget { root, more });
    let load = Workload {
        jobs: 6,
        clients: 3,
        files: 20,
        verify: Some(VerifyScope::All),
        ..workload(Pattern::Random, 40, 3000)
    };
    let result = prepare(&target, &load).unwrap().run(&Control::new(), |_| {}).unwrap();
    assert!(result.is_clean(), "{:?}", result.errors);
    assert!(result.verify.unwrap().checked > 0);
    let client = |job: usize| result.jobs[job].client.rsplit('/').next().unwrap();
    assert_eq!([0, 1, 2, 3].map(client), ["one", "two", "three", "one"]);
    let left = std::fs::read_dir(directory.path().join("one")).unwrap().count();
    assert_eq!(left, 0, "files are removed");
}

#[test]
fn what_a_mount_cannot_be_told_is_refused() {
    let target: weir_load::Targets = Target::Path("/proc".into()).into();
    let refused = |load: Workload| check_step(&target, &[load]).unwrap_err().to_string();
    let load = Workload { jobs: 8, ..Workload::default() };
    check_step(&target, std::slice::from_ref(&load)).unwrap();
    let clients = refused(Workload { clients: 6, ..load.clone() });
    assert!(
        clients.contains("6 clients with 1 mount") && clients.contains("--mounts"),
        "{clients}"
    );
    let connections = refused(Workload { connections: 8, ..load });
    assert!(connections.contains("/proc (proc)"), "{connections}");
    assert!(connections.contains("--connections 1"), "{connections}");
}
