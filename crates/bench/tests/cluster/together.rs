//! Workers that all stay.

use crate::crew::{apply, counted, crew, endless};
use crate::responder::Responder;
use weir_bench::cluster::Farewell;
use weir_bench::suite::Executor;
use weir_load::{Control, Layout, Length, Operation, Pattern, VerifyScope, Workload};

#[test]
fn what_eight_workers_did_is_the_sum_of_what_each_did() {
    let server = Responder::start();
    let (mut workers, hands) = crew(server.target(), 8);
    assert_eq!(workers.name(), "8 workers");
    let control = Control::new();
    let (mut shown, mut windows, hand) = (0, 0, control.clone());
    let applied = apply(&mut workers, &[endless(8)], &control, |window| {
        (shown, windows) = (shown + window.operations, windows + 1);
        // Everybody has had his turn by then, however busy the machine is.
        if shown > 1000 && windows >= 10 {
            hand.mark("enough");
            hand.stop();
        }
    })
    .unwrap();
    let sum: u64 = applied.workers.iter().map(|worker| worker.operations).sum();
    assert!(applied.workers.iter().all(|worker| worker.operations > 0 && worker.lost.is_none()));
    assert_eq!(applied.record.measured().0, sum);
    // Clocks are hours apart, and were found to be.
    for (hours, worker) in (0_u32..).zip(&applied.workers) {
        let off_ms = worker.clock_offset_ms - f64::from(hours) * 3_600_000.0;
        assert!(off_ms.abs() < 60_000.0, "{off_ms}");
        assert!(worker.clock_uncertainty_ms > 0.0);
    }
    let (total, _) = applied.record.results("all").unwrap();
    assert_eq!(total.total.operations, sum);
    // Operations in flight at the end completed outside the measured interval.
    let completed = total.series_10ms.iter().map(|point| point.operations).sum::<u64>();
    assert!((sum..=sum + 8 * 16).contains(&completed), "{completed} {sum}");
    assert_eq!(total.workload.part, None);
    assert!(total.interrupted && total.is_clean(), "{:?}", total.errors);
    assert_eq!(total.marks[0].label, "enough");
    // Times count from the common start: nobody's figures lie hours later.
    assert!(total.measured.to_s < 3600.0);
    drop(workers);
    for hand in hands {
        assert_eq!(hand.thread.join().unwrap(), Farewell::Bye);
    }
}

#[test]
fn steps_follow_each_other_and_loads_go_where_they_are_to() {
    let server = Responder::start();
    let (mut workers, _hands) = crew(server.target(), 3);
    let hosts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let control = Control::new();
    let loads = [
        Workload { name: "a".to_owned(), hosts: hosts(&["w2"]), ..counted(2, 300) },
        Workload { name: "b".to_owned(), hosts: hosts(&["w0", "w2"]), ..counted(2, 300) },
    ];
    let applied = apply(&mut workers, &loads, &control, |_| {}).unwrap();
    let names: Vec<_> = applied.workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["w0", "w2"]);
    let (_, each) = applied.record.results("all").unwrap();
    assert_eq!(each.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(each[0].total.operations, 300);

    let applied = apply(&mut workers, &[counted(1, 50)], &control, |_| {}).unwrap();
    assert_eq!(applied.record.measured().0, 50);
    assert!(applied.notes[0].contains("idle in it: w1, w2"), "{:?}", applied.notes);
    assert!(!applied.record.results("x").unwrap().0.interrupted);
}

#[test]
fn files_are_laid_out_by_workers_and_gone_afterwards() {
    let server = Responder::start();
    let (mut workers, _hands) = crew(server.target(), 1);
    let load = Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..counted(2, 500)
    };
    let applied = apply(&mut workers, &[load], &Control::new(), |_| {}).unwrap();
    let (total, _) = applied.record.results("x").unwrap();
    assert_eq!(total.total.bytes, 500 * 4096);
    assert!(total.is_clean(), "{:?}", total.errors);
    assert_eq!(server.names(), Vec::<String>::new());
}

/// Data of eight jobs, on as many files.
fn data(files: u32) -> Workload {
    Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 50 },
        files,
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..counted(8, 4004)
    }
}

#[test]
fn a_load_on_files_is_dealt_out_to_the_last_operation() {
    for files in [1, 8, 12] {
        let server = Responder::start();
        let (mut workers, _hands) = crew(server.target(), 5);
        let applied = apply(&mut workers, &[data(files)], &Control::new(), |_| {}).unwrap();
        let (total, _) = applied.record.results("x").unwrap();
        assert!(total.is_clean() && !total.interrupted, "{files}: {:?}", total.errors);
        assert_eq!(total.total.operations, 4004, "{files}");
        let jobs: Vec<u64> = total.jobs.iter().map(|job| job.operations).collect();
        assert_eq!(jobs, [501, 501, 501, 501, 500, 500, 500, 500]);
        assert_eq!(server.names(), Vec::<String>::new(), "{files}");
    }
}

#[test]
fn what_several_workers_wrote_is_verified() {
    let server = Responder::start();
    let (mut workers, _hands) = crew(server.target(), 4);
    let load = Workload { verify: Some(VerifyScope::All), depth: 4, ..data(8) };
    let applied = apply(&mut workers, &[load], &Control::new(), |_| {}).unwrap();
    let (total, _) = applied.record.results("x").unwrap();
    let verify = total.verify.clone().unwrap();
    assert!(total.is_clean() && verify.checked > 0, "{:?} {verify:?}", total.errors);
    assert_eq!(server.names(), Vec::<String>::new());
}

#[test]
fn what_makes_no_sense_is_refused_before_anybody_is_asked() {
    let server = Responder::start();
    let (mut workers, _hands) = crew(server.target(), 1);
    let mut error = |load: Workload| {
        apply(&mut workers, &[load], &Control::new(), |_| {}).err().unwrap().to_string()
    };
    assert!(error(Workload { depth: 0, ..endless(1) }).contains("depth is 0"));
    let days = Workload { length: Length::Seconds(100_000.0), ..endless(1) };
    assert!(error(days).contains("the maximum is one day"));
    let hosts = vec!["hd1".to_owned()];
    assert!(error(Workload { hosts, ..endless(1) }).contains("--worker hd1=ssh:[USER@]HOST"));
}

#[test]
fn a_target_that_is_not_there_is_told_as_the_worker_saw_it() {
    let server = Responder::start();
    let target = weir_load::Target::Nfs(server.nfs_target("/absent"));
    let (mut workers, _hands) = crew(target, 2);
    let error = apply(&mut workers, &[endless(2)], &Control::new(), |_| {}).err().unwrap();
    let error = error.to_string();
    assert!(error.contains("worker w") && error.contains("/absent"), "{error}");
}

#[test]
fn a_stop_before_the_start_is_no_result() {
    let server = Responder::start();
    let (mut workers, _hands) = crew(server.target(), 2);
    let control = Control::new();
    control.stop();
    let outcome = apply(&mut workers, &[endless(2)], &control, |_| {});
    assert!(outcome.err().unwrap().to_string().contains("stopped"));
    // The workers are ready for more.
    let applied = apply(&mut workers, &[counted(2, 20)], &Control::new(), |_| {}).unwrap();
    assert!(applied.record.measured().0 > 0);
}
