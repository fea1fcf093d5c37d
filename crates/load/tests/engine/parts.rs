//! A load that several processes share: here, several steps side by side in one.

use crate::{Site, workload};
use std::time::{Duration, Instant};
use weir_load::{
    Control, Length, Part, Pattern, PreparedStep, Region, Starts, StepRecord, VerifyScope,
    Workload, prepare_step,
};

/// Leads `of` parts of `load` through their stages, and merges their records.
fn together(site: &Site, load: &Workload, of: u32) -> StepRecord {
    let control = Control::new();
    let part = |index| {
        let load = Workload { part: Some(Part { index, of }), ..site.fit(load) };
        prepare_step(&site.target().into(), &[load], &control, &mut |_, _| {}).unwrap()
    };
    let mut parts: Vec<PreparedStep> = (0..of).map(part).collect();
    for part in &mut parts {
        part.attach().unwrap();
    }
    let start = Instant::now() + Duration::from_millis(20);
    let records: Vec<StepRecord> = std::thread::scope(|scope| {
        let begin = |part| {
            let control = Control::new();
            scope.spawn(move || PreparedStep::run(part, start, &control, |_| {}).unwrap())
        };
        let threads: Vec<_> = parts.iter_mut().map(begin).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(site.names(), ["weir-bench"], "nothing goes before all have ended");
    std::thread::scope(|scope| {
        for part in parts {
            scope.spawn(move || part.finish().unwrap());
        }
    });
    assert_eq!(site.names(), Vec::<String>::new());
    let mut records = records.into_iter();
    let mut all = records.next().unwrap();
    records.for_each(|record| all.merge(record));
    all
}

#[test]
fn parts_do_together_what_one_would_do() {
    for (jobs, files, of) in [(4, 4, 2), (5, 1, 3), (3, 7, 2)] {
        let load = Workload {
            jobs,
            files,
            clients: jobs,
            connections: 1,
            ..workload(Pattern::Random, 50, 1003)
        };
        for site in Site::both() {
            let (total, _) = together(&site, &load, of).results("all").unwrap();
            assert!(total.is_clean(), "{:?}", total.errors);
            assert_eq!(total.total.operations, 1003);
            assert_eq!(total.jobs.len(), usize::try_from(jobs).unwrap());
            assert!(total.jobs.iter().all(|job| job.operations >= 1003 / u64::from(jobs)));
            if matches!(site, Site::Server(_)) {
                assert_eq!(total.connections.opened, u64::from(jobs));
            }
        }
    }
}

#[test]
fn parts_verify_the_files_that_are_theirs() {
    let load = Workload {
        jobs: 4,
        files: 2,
        verify: Some(VerifyScope::All),
        verify_reads: true,
        ..workload(Pattern::Random, 50, 2000)
    };
    for site in Site::both() {
        let (total, _) = together(&site, &load, 2).results("all").unwrap();
        assert!(total.is_clean(), "{:?} {:?}", total.errors, total.verify);
        assert_eq!(total.verify.unwrap().checked, 512);
    }
}

#[test]
fn a_fill_in_parts_writes_everything_once() {
    let load = Workload {
        jobs: 4,
        files: 1,
        region: Region { offset: 0, bytes: Some(256 << 10), job_increment: 256 << 10 },
        starts: Starts::Together,
        length: Length::Bytes { per_job: 0, at_most_s: None },
        layout: weir_load::Layout::Sparse,
        ..workload(Pattern::Sequential, 0, 1)
    };
    for site in Site::both() {
        let (total, _) = together(&site, &load, 3).results("all").unwrap();
        assert_eq!(total.total.bytes, 1 << 20);
    }
}

#[test]
fn a_part_that_is_given_up_clears_its_files_away() {
    let load = Workload { jobs: 2, files: 2, ..workload(Pattern::Random, 100, 10) };
    for site in Site::both() {
        let part = Some(Part { index: 1, of: 2 });
        let load = Workload { part, ..load.clone() };
        let step =
            prepare_step(&site.target().into(), &[load], &Control::new(), &mut |_, _| {}).unwrap();
        assert_eq!(site.names_in(&["weir-bench"]), ["file.00001"]);
        step.finish().unwrap();
        assert_eq!(site.names(), Vec::<String>::new());
    }
}
