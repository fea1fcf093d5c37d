//! Tests of the requests of jobs, given their workload, their number and the time.

use super::made::KEPT_MAX;
use super::*;
use crate::verify::{Base, FileLedger};
use crate::workload::{MixOp, OpShare, Pacing, Rate, SizeShare, Starts, Think};
use std::collections::{BTreeMap, BTreeSet};

fn workload(pattern: Pattern, read_percent: u8) -> Workload {
    Workload {
        operation: Operation::Data { pattern, read_percent },
        file_bytes: 4096 * 8,
        ..Workload::default()
    }
}

fn job(workload: &Workload, index: u32) -> Job {
    Job::new(workload, index, &Common::default())
}

/// An answer to a request that was due at once.
fn answer(now_ns: u64) -> Answer {
    Answer { now_ns, queued_ns: Some(now_ns), bytes: 4096 }
}

/// The next operation at once; `None` at the end.
fn next(job: &mut Job) -> Option<Op> {
    match job.next(0) {
        Next::Op(op, _) => Some(op),
        Next::Done => None,
        other => panic!("{other:?}"),
    }
}

fn requests(job: &mut Job, count: usize) -> Vec<Request> {
    (0..count).map_while(|_| next(job).map(|op| op.request)).collect()
}

/// Does `count` operations, each with all that belongs to it; gives what counts, by kind, and the
/// requests that were sent for it.
fn carry_out(job: &mut Job, count: usize) -> (BTreeMap<&'static str, u32>, Vec<Request>) {
    let (mut counts, mut sent) = (BTreeMap::new(), Vec::new());
    for _ in 0..count {
        let Some(mut op) = next(job) else { break };
        loop {
            sent.push(op.request);
            let after = job.after(&op);
            if !matches!(after, After::Part(_)) {
                *counts.entry(op.kind.name()).or_insert(0) += 1;
            }
            op = match after {
                After::Part(next) | After::Then(next, _) => next,
                After::Whole => break,
            };
        }
    }
    (counts, sent)
}

fn mix(shares: &[(MixOp, u8)]) -> Workload {
    let mix = shares.iter().map(|(op, percent)| OpShare { op: *op, percent: *percent });
    Workload {
        operation: Operation::Mix,
        mix: mix.collect(),
        file_bytes: 10_000,
        ..Workload::default()
    }
}

#[test]
fn reads_and_writes_mix_in_the_wanted_part_and_have_sizes_of_their_own() {
    let load = Workload {
        read_sizes: vec![SizeShare { bytes: 4096, percent: 100 }],
        write_sizes: vec![SizeShare { bytes: 8192, percent: 100 }],
        ..workload(Pattern::Random, 30)
    };
    let seen = requests(&mut job(&load, 0), 10_000);
    let reads = seen.iter().filter(|r| matches!(r, Request::Read { bytes: 4096, .. })).count();
    let writes = seen.iter().filter(|r| matches!(r, Request::Write { bytes: 8192, .. })).count();
    assert!((2800..3200).contains(&reads), "{reads}");
    assert_eq!(reads + writes, 10_000);
}

#[test]
fn a_commit_follows_every_so_many_writes() {
    let load = Workload { commit_every: Some(3), ..workload(Pattern::Random, 0) };
    let seen = requests(&mut job(&load, 0), 8);
    let commits: Vec<_> = (0..8).filter(|i| matches!(seen[*i], Request::Commit { .. })).collect();
    assert_eq!(commits, [3, 7]);
}

#[test]
fn counts_are_dealt_to_the_jobs_with_none_lost() {
    let length = Length::Operations(10);
    let load = Workload { jobs: 3, length, ..workload(Pattern::Random, 100) };
    let total: usize = (0..3).map(|index| requests(&mut job(&load, index), 100).len()).sum();
    assert_eq!(total, 10);
}

#[test]
fn a_length_in_bytes_ends_exactly_there() {
    let length = |per_job| Length::Bytes { per_job, at_most_s: None };
    let sum = |load: &Workload, index| {
        let seen = requests(&mut job(load, index), 1000);
        (seen.len(), seen.iter().map(|request| u64::from(request.bytes())).sum::<u64>())
    };
    let load = Workload { length: length(10_000), ..workload(Pattern::Sequential, 0) };
    assert_eq!(sum(&load, 0), (3, 10_000));
    let once = Workload { file_bytes: 10_000, files: 3, length: length(0), ..load.clone() };
    assert_eq!(sum(&once, 0), (9, 30_000));
    let apart = Workload { jobs: 2, files: 1, ..once };
    assert_eq!(sum(&apart, 1).1, 10_000);
    let random = Workload { length: length(10_000), ..workload(Pattern::Random, 100) };
    assert_eq!(sum(&random, 0), (3, 10_000));
}

#[test]
fn interlocked_jobs_end_together_when_all_is_done_once() {
    let load = Workload {
        jobs: 3,
        starts: Starts::Interlocked,
        length: Length::Bytes { per_job: 0, at_most_s: None },
        ..workload(Pattern::Sequential, 0)
    };
    let common = Common { cursors: Cursors::new(&load), ..Common::default() };
    let mut jobs = [0, 1, 2].map(|index| Job::new(&load, index, &common));
    let mut seen = Vec::new();
    for turn in 0..30 {
        seen.extend(requests(&mut jobs[turn % 3], 1));
    }
    let offsets: BTreeSet<_> = seen
        .iter()
        .map(|request| match request {
            Request::Write { offset, .. } => *offset,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((seen.len(), offsets.len()), (8, 8));
}

#[test]
fn operations_are_due_at_the_wanted_rate_and_chains_count_as_what_they_are() {
    let rate = Rate::Operations(1000.0);
    let load = Workload {
        operation: Operation::CreateRemove,
        rate,
        pacing: Pacing::Even,
        ..Workload::default()
    };
    let mut job = job(&load, 0);
    let Next::Op(create, Some(0)) = job.next(0) else { panic!("due at once") };
    let After::Then(remove, Some(1_000_000)) = job.after(&create) else { panic!("due next") };
    assert_eq!(job.after(&remove), After::Whole);
    let Next::Op(_, Some(2_000_000)) = job.next(5) else { panic!("due after both") };
}

#[test]
fn a_job_that_pauses_says_when_to_come_back() {
    let load =
        Workload { think: Some(Think { us: 7, every: 1 }), ..workload(Pattern::Random, 100) };
    let mut job = job(&load, 0);
    assert!(matches!(job.next(0), Next::Op(..)));
    assert_eq!(job.next(0), Next::Held);
    assert!(job.freed(&answer(100)));
    assert_eq!(job.next(100), Next::Wait(7100));
    assert!(matches!(job.next(7100), Next::Op(..)));
}

#[test]
fn what_was_created_is_removed_or_left_to_the_clean_up() {
    let load = Workload { operation: Operation::CreateRemove, ..Workload::default() };
    let common = Common { run: 5, ..Common::default() };
    let mut one = Job::new(&load, 0, &common);
    carry_out(&mut one, 3);
    let Some(open) = next(&mut one) else { panic!("no end") };
    drop(one);
    let Request::Create { serial } = open.request else { panic!("{open:?}") };
    assert_eq!(common.leftovers.take(), [Made { job: 0, serial, directory: false }]);
    assert_eq!(common.leftovers.take(), []);
}

#[test]
fn with_a_ledger_writes_carry_generations_and_an_unsent_one_is_taken_back() {
    let file = FileLedger::new("f".into(), 1, Base::Hole, 8);
    let ledger = Arc::new(Ledger::new(vec![Arc::new(file)], 4096));
    let common = Common { ledger: Some(Arc::clone(&ledger)), ..Common::default() };
    let load = Workload { verify_reads: true, ..workload(Pattern::Random, 0) };
    let mut job = Job::new(&load, 0, &common);
    let ops: Vec<_> = (0..8).map(|_| next(&mut job).unwrap()).collect();
    for op in &ops {
        assert!(matches!(op.request, Request::Write { generation: 1, .. }), "{op:?}");
    }
    assert!(matches!(job.next(0), Next::Wait(1..)), "every block is being written");
    assert_eq!(ledger.written(0).count(), 8);
    job.dropped(&ops[3]);
    assert_eq!(ledger.written(0).count(), 7);
}

#[test]
fn a_whole_file_is_read_and_written_block_by_block_and_counts_once() {
    let (counts, sent) = carry_out(&mut job(&mix(&[(MixOp::ReadFile, 100)]), 0), 1);
    assert_eq!(counts, BTreeMap::from([("read-file", 1)]));
    let read = |offset, bytes| Request::Read { file: 0, offset, bytes };
    let lookup = Request::Lookup { file: 0 };
    assert_eq!(sent, [lookup, read(0, 4096), read(4096, 4096), read(8192, 1808)]);
    let (counts, sent) = carry_out(&mut job(&mix(&[(MixOp::WriteFile, 100)]), 0), 1);
    assert_eq!(counts, BTreeMap::from([("write-file", 1)]));
    let write = |offset, bytes| Request::Write { file: 0, offset, bytes, generation: 0 };
    let commit = Request::Commit { file: 0, covers: 0 };
    assert_eq!(sent, [write(0, 4096), write(4096, 4096), write(8192, 1808), commit]);
}

#[test]
fn the_mixture_has_the_wanted_parts() {
    let shares =
        [(MixOp::Stat, 40), (MixOp::Access, 20), (MixOp::ReadFile, 30), (MixOp::Chmod, 10)];
    let (counts, _) = carry_out(&mut job(&mix(&shares), 0), 10_000);
    for (kind, percent) in [("getattr", 40), ("access", 20), ("read-file", 30), ("setattr", 10)] {
        assert!(counts[kind].abs_diff(percent * 100) < 300, "{kind}: {counts:?}");
    }
}

#[test]
fn what_is_to_be_removed_is_made_first_if_there_is_nothing() {
    let (counts, sent) = carry_out(&mut job(&mix(&[(MixOp::Rmdir, 100)]), 0), 10);
    assert_eq!(counts, BTreeMap::from([("mkdir", 10), ("rmdir", 10)]));
    assert!(
        matches!(sent[..2], [Request::Mkdir { serial: a }, Request::Rmdir { serial: b }] if a == b)
    );
    let (counts, _) = carry_out(&mut job(&mix(&[(MixOp::Unlink2, 100)]), 0), 10);
    assert_eq!(counts, BTreeMap::from([("create", 10), ("remove", 10), ("write", 10)]));
}

#[test]
fn no_more_is_kept_than_agreed_and_the_oldest_goes_first() {
    for (kind, directory) in [(MixOp::Create, false), (MixOp::Mkdir, true)] {
        let common = Common { run: 9, ..Common::default() };
        let mut one = Job::new(&mix(&[(kind, 100)]), 0, &common);
        let (_, sent) = carry_out(&mut one, KEPT_MAX + 10);
        let first = sent.iter().find_map(|request| match request {
            Request::Create { serial } | Request::Mkdir { serial } => Some(*serial),
            _ => None,
        });
        let removed = sent.iter().find_map(|request| match request {
            Request::Remove { serial } | Request::Rmdir { serial } => Some(*serial),
            _ => None,
        });
        assert_eq!(first, removed);
        drop(one);
        let left = common.leftovers.take();
        assert_eq!(left.len(), KEPT_MAX);
        assert!(left.iter().all(|made| made.directory == directory));
    }
}

#[test]
fn sequential_reads_and_writes_of_a_mixture_each_have_their_place() {
    let shares = [(MixOp::ReadSequential, 50), (MixOp::WriteSequential, 50)];
    let load = Workload { file_bytes: 1 << 20, ..mix(&shares) };
    let seen = requests(&mut job(&load, 0), 40);
    let (mut reads, mut writes) = (0, 0);
    for request in seen {
        match request {
            Request::Read { offset, .. } => {
                assert_eq!(offset, reads * 4096);
                reads += 1;
            }
            Request::Write { offset, .. } => {
                assert_eq!(offset, writes * 4096);
                writes += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(reads > 5 && writes > 5);
}

#[test]
fn reads_and_writes_in_order_have_positions_of_their_own_where_wanted() {
    let positions = Positions::ByDirection;
    let load = Workload { positions, file_bytes: 1 << 20, ..workload(Pattern::Sequential, 50) };
    let (mut reads, mut writes) = (0, 0);
    for request in requests(&mut job(&load, 0), 100) {
        let (next, offset) = match request {
            Request::Read { offset, .. } => (&mut reads, offset),
            Request::Write { offset, .. } => (&mut writes, offset),
            other => panic!("{other:?}"),
        };
        assert_eq!(offset, *next * 4096);
        *next += 1;
    }
    assert!(reads > 30 && writes > 30);
}

#[test]
fn files_are_only_created_or_only_removed() {
    let length = Length::Operations(10);
    let load = Workload { operation: Operation::Create, length, ..Workload::default() };
    let common = Common { run: 5, ..Common::default() };
    let mut one = Job::new(&load, 0, &common);
    let (counts, _) = carry_out(&mut one, 20);
    assert_eq!(counts, BTreeMap::from([("create", 10)]));
    drop(one);
    assert_eq!(common.leftovers.take().len(), 10, "they are left to the clean-up");
    let load = Workload { operation: Operation::Remove, files: 7, jobs: 2, ..load };
    let removed = |index| {
        let seen = requests(&mut job(&load, index), 20);
        let file = |request: &Request| match request {
            Request::Unlink { file } => *file,
            other => panic!("{other:?}"),
        };
        seen.iter().map(file).collect::<Vec<_>>()
    };
    assert_eq!((removed(0), removed(1)), (vec![0, 2, 4, 6], vec![1, 3, 5]));
}

#[test]
fn a_job_below_its_minimum_ends_and_says_so() {
    let min_rate = Some(crate::workload::MinRate::Operations(10.0));
    let mut job = job(&Workload { min_rate, ..workload(Pattern::Random, 100) }, 0);
    for second in 0..4_u64 {
        assert!(matches!(job.next(second * 1_000_000_000), Next::Op(..)));
        job.freed(&answer(second * 1_000_000_000));
    }
    assert_eq!(job.next(3_500_000_000), Next::Done);
    assert!(job.complaint().is_some_and(|why| why.contains("minimum of 10 operations/s")));
}

#[test]
fn the_writes_in_order_of_a_mixture_begin_where_the_jobs_begin() {
    let load = Workload {
        jobs: 4,
        block_bytes: 4096,
        file_bytes: 64 << 10,
        ..mix(&[(MixOp::WriteSequential, 100)])
    };
    let first = |index| match job(&load, index).next(0) {
        Next::Op(Op { request: Request::Write { offset, .. }, .. }, _) => offset,
        other => panic!("{other:?}"),
    };
    let starts: Vec<_> = (0..4).map(first).collect();
    let quarter = load.file_bytes / 4;
    assert_eq!(starts, [0, quarter, 2 * quarter, 3 * quarter]);
}

#[test]
fn a_job_that_keeps_a_latency_holds_its_requests_back_and_ends_when_it_has_found_the_depth() {
    let target = crate::workload::LatencyTarget {
        us: 1000,
        window_us: 1000,
        percent: 100.0,
        goes_on: false,
    };
    let load =
        Workload { latency_target: Some(target), depth: 4, ..workload(Pattern::Random, 100) };
    let mut job = job(&load, 0);
    let (mut now_ns, mut most) = (0, 0);
    while !job.is_done() {
        let mut sent = 0;
        while matches!(job.next(now_ns), Next::Op(..)) {
            sent += 1;
        }
        assert_eq!(job.next(now_ns), Next::Held);
        assert!(sent > 0);
        most = most.max(sent);
        // Three requests at a time keep the latency, four do not.
        let queued_ns = Some(now_ns);
        now_ns += if sent > 3 { 1_100_000 } else { 1_000_000 };
        for _ in 0..sent {
            job.freed(&Answer { now_ns, queued_ns, bytes: 4096 });
        }
    }
    assert_eq!((most, job.kept_depth()), (4, Some(3)));
    assert_eq!(job.next(now_ns), Next::Done);
}

#[test]
fn jobs_of_one_flow_wait_for_each_other() {
    let load = |weight| Workload {
        flow: Some(crate::workload::Flow { group: 0, weight, sleep_us: 0 }),
        ..workload(Pattern::Random, 100)
    };
    let common = Common { flow: Some(Arc::default()), ..Common::default() };
    let (mut two, mut one) = (Job::new(&load(2), 0, &common), Job::new(&load(1), 0, &common));
    let mut sent = [0; 2];
    for _ in 0..300 {
        for (job, sent) in [&mut two, &mut one].into_iter().zip(&mut sent) {
            match job.next(5) {
                Next::Op(..) => *sent += 1,
                Next::Wait(at) => assert!(at > 5),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!((290..=300).contains(&sent[0]) && sent[0] <= 2 * sent[1] + 2, "{sent:?}");
    drop(one);
    assert!((0..100).all(|_| matches!(two.next(5), Next::Op(..))), "nobody is waited for");
}

/// A common of `files` files of `blocks` blocks, laid out.
fn with_ledger(files: u32, blocks: u64) -> Common {
    let file = |number: u32| {
        let (name, id) = (number.to_string(), u64::from(number));
        Arc::new(FileLedger::new(name, id, Base::Stamped, blocks))
    };
    let ledger = Arc::new(Ledger::new((0..files).map(file).collect(), 4096));
    Common { ledger: Some(ledger), ..Common::default() }
}

#[test]
fn a_job_whose_file_is_all_in_flight_writes_another_one_and_does_not_end() {
    let load = Workload {
        files: 16,
        file_bytes: 2 * 4096,
        verify: Some(crate::VerifyScope::All),
        ..workload(Pattern::Random, 0)
    };
    load.check().unwrap();
    let mut job = Job::new(&load, 0, &with_ledger(16, 2));
    let written: BTreeSet<_> = requests(&mut job, 32)
        .into_iter()
        .map(|request| match request {
            Request::Write { file, offset, .. } => (file, offset),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(written.len(), 32, "every block of every file");
    assert!(matches!(job.next(5), Next::Wait(at) if at > 5), "it waits for one, and is not done");
    assert!(!job.is_done());
}

#[test]
fn a_block_whose_write_failed_is_written_again() {
    let load = Workload {
        length: Length::Operations(100),
        verify: Some(crate::VerifyScope::All),
        ..workload(Pattern::Random, 0)
    };
    let mut job = Job::new(&load, 0, &with_ledger(1, 8));
    for _ in 0..100 {
        let op = next(&mut job).unwrap();
        assert!(matches!(op.request, Request::Write { generation: 2, .. }), "{op:?}");
        job.failed(&op, false);
    }
    assert!(job.is_done());
}

#[test]
fn the_rest_of_a_request_is_a_part_of_its_operation_and_neither_counts_nor_is_due_apart() {
    let rate = Rate::Operations(1000.0);
    let load = Workload { rate, length: Length::Operations(2), ..workload(Pattern::Random, 0) };
    let mut one = job(&load, 0);
    let Next::Op(op, Some(0)) = one.next(0) else { panic!("due at once") };
    let Request::Write { file, offset, bytes: 4096, .. } = op.request else { panic!("{op:?}") };
    let After::Part(rest) = one.rest(&op, 1000) else { panic!("a part") };
    let request = Request::Write { file, offset: offset + 1000, bytes: 3096, generation: 0 };
    assert_eq!(rest, Op { request, ..op });
    assert_eq!(one.after(&rest), After::Whole);
    let Next::Op(_, Some(1_000_000)) = one.next(5) else { panic!("due as if there was no rest") };
    assert_eq!(one.next(5), Next::Done);
}

#[test]
fn a_file_is_read_and_written_on_after_the_rest_of_a_block() {
    for kind in [MixOp::ReadFile, MixOp::WriteFile] {
        let mut one = job(&mix(&[(kind, 100)]), 0);
        let (mut op, mut ends) = (next(&mut one).unwrap(), Vec::new());
        while let After::Part(after) = match op.request.bytes() {
            bytes @ 1001.. => one.rest(&op, bytes - 1000),
            _ => one.after(&op),
        } {
            if let Request::Read { offset, bytes, .. } | Request::Write { offset, bytes, .. } =
                after.request
            {
                ends.push((offset, bytes));
            }
            op = after;
        }
        let rests =
            [(0, 4096), (3096, 1000), (4096, 4096), (7192, 1000), (8192, 1808), (9000, 1000)];
        let after_the_first = usize::from(kind == MixOp::WriteFile);
        assert_eq!(ends, rests[after_the_first..], "{kind:?}");
    }
}

#[test]
fn a_block_of_which_only_the_front_was_written_may_hold_the_old_content_or_the_new() {
    for ends in
        [|job: &mut Job, op: &Op| job.dropped(op), |job: &mut Job, op: &Op| job.failed(op, false)]
    {
        let common = with_ledger(1, 8);
        let ledger = common.ledger.clone().unwrap();
        let load =
            Workload { verify: Some(crate::VerifyScope::All), ..workload(Pattern::Random, 0) };
        let mut one = Job::new(&load, 0, &common);
        let op = next(&mut one).unwrap();
        let Request::Write { offset, generation: 2, .. } = op.request else { panic!("{op:?}") };
        let After::Part(rest) = one.rest(&op, 100) else { panic!("a part") };
        ends(&mut one, &rest);
        let block = ledger.block(offset);
        let state = ledger.look(0, block);
        assert_eq!(state.until(state), (1, 2), "the old or the new");
        assert_eq!(ledger.begin_this(0, block), Some(2), "it is written again");
    }
}
