//! A job: one stream of requests, decided one at a time.

use crate::rng::{Rng, mix};
use crate::stats::OpKind;
use crate::verify::Ledger;
use crate::workload::{Length, Operation, Pattern, Workload};
use std::sync::Arc;

/// One request of a job. Files are numbers; blocks count from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read { file: u32, block: u64 },
    Write { file: u32, block: u64, generation: u32 },
    Commit { file: u32 },
    Null,
    Getattr { file: u32 },
    Access { file: u32 },
    Lookup { file: u32 },
    Create { serial: u64 },
    Remove { serial: u64 },
}

impl Request {
    /// How it is counted.
    pub(crate) const fn kind(&self) -> OpKind {
        match self {
            Self::Read { .. } => OpKind::Read,
            Self::Write { .. } => OpKind::Write,
            Self::Commit { .. } => OpKind::Commit,
            Self::Null => OpKind::Null,
            Self::Getattr { .. } => OpKind::Getattr,
            Self::Access { .. } => OpKind::Access,
            Self::Lookup { .. } => OpKind::Lookup,
            Self::Create { .. } => OpKind::Create,
            Self::Remove { .. } => OpKind::Remove,
        }
    }
}

/// The name of the file with number `file`.
pub(crate) fn file_name(file: u32) -> String {
    format!("file.{file:05}")
}

/// The name of the file that `job` creates under `serial`.
pub(crate) fn created_name(job: u32, serial: u64) -> String {
    format!("new.{job}.{serial:x}")
}

/// Decides what a job does next.
pub(crate) struct Job {
    index: u32,
    operation: Operation,
    rng: Rng,
    first_file: u32,
    file_stride: u32,
    file_count: u32,
    blocks: u64,
    cursor: u64,
    last_written: u32,
    commit_every: Option<u32>,
    writes_since_commit: u32,
    left: u64,
    serial: u64,
    ledger: Option<Arc<Ledger>>,
}

impl Job {
    /// Job number `index` of `workload`; `run` makes the names it creates unique.
    pub(crate) fn new(
        workload: &Workload,
        index: u32,
        run: u64,
        ledger: Option<Arc<Ledger>>,
    ) -> Self {
        let (jobs, files) = (workload.jobs, workload.files);
        let blocks = workload.blocks();
        let sharers = jobs.div_ceil(files);
        let rank = u64::from(index / files);
        let left = match workload.length {
            Length::Seconds(_) | Length::Bytes { .. } => u64::MAX,
            Length::Operations(total) => {
                total / u64::from(jobs) + u64::from(u64::from(index) < total % u64::from(jobs))
            }
        };
        Self {
            index,
            operation: workload.operation,
            rng: Rng::new(mix(workload.seed ^ mix(u64::from(index)))),
            first_file: index % files,
            file_stride: jobs,
            file_count: if files > index { (files - index).div_ceil(jobs) } else { 1 },
            blocks,
            cursor: if files >= jobs { 0 } else { rank * blocks / u64::from(sharers) },
            last_written: index % files,
            commit_every: workload.commit_every,
            writes_since_commit: 0,
            left,
            serial: mix(run) << 32,
            ledger,
        }
    }

    /// Its number.
    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    /// The next request after `previous` of the same slot succeeded. `ending` asks only for what
    /// must not be left undone. `None` when there is nothing more to do.
    pub(crate) fn next(&mut self, previous: Option<&Request>, ending: bool) -> Option<Request> {
        if let Some(Request::Create { serial }) = previous {
            self.left = self.left.saturating_sub(1);
            return Some(Request::Remove { serial: *serial });
        }
        if ending || self.left == 0 {
            return None;
        }
        self.left -= 1;
        match self.operation {
            Operation::Data { pattern, read_percent } => self.data(pattern, read_percent),
            Operation::Null => Some(Request::Null),
            Operation::Getattr => Some(Request::Getattr { file: self.any_file() }),
            Operation::Access => Some(Request::Access { file: self.any_file() }),
            Operation::Lookup => Some(Request::Lookup { file: self.any_file() }),
            Operation::Mix => None,
            Operation::CreateRemove => {
                self.serial += 1;
                Some(Request::Create { serial: self.serial })
            }
        }
    }

    fn data(&mut self, pattern: Pattern, read_percent: u8) -> Option<Request> {
        if let Some(every) = self.commit_every
            && self.writes_since_commit >= every
        {
            self.writes_since_commit = 0;
            return Some(Request::Commit { file: self.last_written });
        }
        let (file, block) = match pattern {
            Pattern::Random => {
                let file = self.any_file();
                (file, self.rng.below(self.blocks))
            }
            Pattern::Sequential | Pattern::Mixed { .. } => self.advance(),
        };
        let reads = match read_percent {
            0 => false,
            100 => true,
            percent => self.rng.below(100) < u64::from(percent),
        };
        if reads {
            return Some(Request::Read { file, block });
        }
        self.writes_since_commit += 1;
        self.last_written = file;
        let Some(ledger) = &self.ledger else {
            return Some(Request::Write { file, block, generation: 0 });
        };
        let (block, generation) = ledger.begin(file, block)?;
        Some(Request::Write { file, block, generation })
    }

    /// The block at the cursor, which moves on through all files of the job and starts over.
    fn advance(&mut self) -> (u32, u64) {
        let place = (self.file_at(self.cursor / self.blocks), self.cursor % self.blocks);
        self.cursor = (self.cursor + 1) % (self.blocks * u64::from(self.file_count));
        place
    }

    fn any_file(&mut self) -> u32 {
        if self.file_count == 1 {
            return self.first_file;
        }
        let position = self.rng.below(u64::from(self.file_count));
        self.file_at(position)
    }

    fn file_at(&self, position: u64) -> u32 {
        let position = u32::try_from(position).unwrap_or(0) % self.file_count;
        self.first_file + position * self.file_stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn workload(pattern: Pattern, read_percent: u8) -> Workload {
        Workload {
            operation: Operation::Data { pattern, read_percent },
            file_bytes: 4096 * 8,
            ..Workload::default()
        }
    }

    fn requests(job: &mut Job, count: usize) -> Vec<Request> {
        (0..count).map(|_| job.next(None, false).unwrap()).collect()
    }

    #[test]
    fn a_sequential_job_visits_all_its_files_in_order_and_starts_over() {
        let workload = Workload { files: 4, jobs: 2, ..workload(Pattern::Sequential, 100) };
        let mut job = Job::new(&workload, 1, 0, None);
        let seen = requests(&mut job, 17);
        assert_eq!(seen[0], Request::Read { file: 1, block: 0 });
        assert_eq!(seen[8], Request::Read { file: 3, block: 0 });
        assert_eq!(seen[16], seen[0]);
    }

    #[test]
    fn sequential_jobs_that_share_a_file_start_apart() {
        let workload = Workload { jobs: 4, ..workload(Pattern::Sequential, 100) };
        let starts: Vec<_> =
            (0..4).map(|index| requests(&mut Job::new(&workload, index, 0, None), 1)[0]).collect();
        let wanted: Vec<_> = [0, 2, 4, 6].map(|block| Request::Read { file: 0, block }).to_vec();
        assert_eq!(starts, wanted);
    }

    #[test]
    fn random_jobs_stay_in_their_files_and_reach_every_block() {
        let workload = Workload { files: 5, jobs: 2, ..workload(Pattern::Random, 100) };
        let seen: BTreeSet<_> = requests(&mut Job::new(&workload, 0, 0, None), 1000)
            .into_iter()
            .map(|request| match request {
                Request::Read { file, block } => (file, block),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen.len(), 24);
        assert!(seen.iter().all(|(file, block)| [0, 2, 4].contains(file) && *block < 8));
    }

    #[test]
    fn reads_and_writes_mix_in_the_wanted_part() {
        let mut job = Job::new(&workload(Pattern::Random, 30), 0, 0, None);
        let seen = requests(&mut job, 10_000);
        let reads = seen.iter().filter(|r| matches!(r, Request::Read { .. })).count();
        assert!((2800..3200).contains(&reads), "{reads}");
    }

    #[test]
    fn a_commit_follows_every_so_many_writes() {
        let workload = Workload { commit_every: Some(3), ..workload(Pattern::Random, 0) };
        let seen = requests(&mut Job::new(&workload, 0, 0, None), 8);
        let commits: Vec<_> =
            (0..8).filter(|i| matches!(seen[*i], Request::Commit { .. })).collect();
        assert_eq!(commits, [3, 7]);
    }

    #[test]
    fn counts_are_dealt_to_the_jobs_with_none_lost() {
        let workload =
            Workload { jobs: 3, length: Length::Operations(10), ..workload(Pattern::Random, 100) };
        let mut total = 0;
        for index in 0..3 {
            let mut job = Job::new(&workload, index, 0, None);
            while job.next(None, false).is_some() {
                total += 1;
            }
        }
        assert_eq!(total, 10);
    }

    #[test]
    fn what_was_created_is_removed_even_at_the_end() {
        let workload = Workload { operation: Operation::CreateRemove, ..Workload::default() };
        let mut job = Job::new(&workload, 0, 5, None);
        let created = job.next(None, false).unwrap();
        let Request::Create { serial } = created else { panic!("{created:?}") };
        assert_eq!(job.next(Some(&created), true), Some(Request::Remove { serial }));
        assert_eq!(job.next(Some(&Request::Remove { serial }), true), None);
    }

    #[test]
    fn with_a_ledger_writes_carry_generations() {
        let ledger = Arc::new(Ledger::new(1, 8).unwrap());
        let mut job = Job::new(&workload(Pattern::Random, 0), 0, 0, Some(Arc::clone(&ledger)));
        for _ in 0..8 {
            let Some(Request::Write { generation: 1, .. }) = job.next(None, false) else {
                panic!("every block has room for one write");
            };
        }
        assert_eq!(job.next(None, false), None);
        assert_eq!(ledger.written().count(), 8);
    }
}
