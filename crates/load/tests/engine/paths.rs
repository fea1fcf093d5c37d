//! The path engine on a directory of this machine.

use crate::workload;
use weir_load::{Control, Operation, Pattern, RunResult, Target, VerifyScope, Workload, prepare};

fn run(workload: &Workload) -> (RunResult, usize) {
    let directory = tempfile::tempdir().unwrap();
    let target = Target::Path(directory.path().to_owned());
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
