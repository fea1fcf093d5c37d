//! Does a workload make sense? Everything that contradicts itself, or that no engine can do, is
//! refused here, with the setting that has to change.

mod order;

use super::{
    DEPTH_MAX, Layout, Length, MinRate, Operation, Pattern, Rate, SizeShare, Starts, Workload,
};
use crate::error::BenchError;
use std::collections::HashSet;
use weir_core::limits::{IO_BYTES_MAX, NAME_BYTES_MAX};

/// Most jobs, connections or files in one run.
const PARTS_MAX: u32 = 65_536;
/// Longest time that any setting may name, in seconds: a week.
const SECONDS_MAX: f64 = 604_800.0;
/// Longest added network distance and longest pause, in microseconds: an hour.
const DELAY_US_MAX: u64 = 3_600_000_000;
/// Most different sizes of one kind of request.
const SIZES_MAX: usize = 64;
/// Most files that one job creates or removes in a run.
const MADE_MAX: u64 = 65_536;
/// Most operations or bytes a second that can be asked for.
const RATE_MAX: f64 = 1e15;
/// The unit that `O_DIRECT` wants everything to be a multiple of, in bytes: the sector of most
/// devices. A file system may want more, and says so by itself.
const DIRECT_BYTES: u64 = 512;

type Checked = Result<(), BenchError>;

impl Workload {
    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// [`BenchError::Workload`] says which setting to change, and to what.
    pub fn check(&self) -> Result<(), BenchError> {
        self.check_counts()?;
        self.check_operation()?;
        self.check_times()?;
        self.check_names()?;
        self.check_sizes()?;
        self.check_places()?;
        self.check_pace()?;
        self.check_direct()?;
        self.check_verify()
    }

    fn check_counts(&self) -> Checked {
        let counts = [
            ("jobs", self.jobs, PARTS_MAX),
            ("clients", self.clients, PARTS_MAX),
            ("connections", self.connections, PARTS_MAX),
            ("files", self.files, PARTS_MAX),
            ("depth", self.depth, DEPTH_MAX),
            ("threads", self.threads, 256),
            ("block size", self.block_bytes, IO_BYTES_MAX),
        ];
        for (name, value, most) in counts {
            if value == 0 || value > most {
                return refuse(format!("{name} is {value}; it must be from 1 to {most}"));
            }
        }
        if self.clients > self.jobs {
            let (clients, jobs) = (self.clients, self.jobs);
            return refuse(format!("{clients} clients need at least {clients} jobs, not {jobs}"));
        }
        if let Some(part) = self.part
            && (part.of == 0 || part.index >= part.of || part.of > PARTS_MAX)
        {
            let (index, of) = (part.index, part.of);
            return refuse(format!(
                "part {index} of {of} does not exist: parts are numbered from 0"
            ));
        }
        Ok(())
    }

    fn check_operation(&self) -> Checked {
        if let Operation::Data { pattern, read_percent } = self.operation {
            if read_percent > 100 {
                return refuse(format!("read percentage {read_percent} is over 100"));
            }
            if let Pattern::Mixed { random_percent } = pattern
                && !(1..=99).contains(&random_percent)
            {
                return refuse(format!(
                    "{random_percent} % random offsets are not a mix: use 1 to 99, or one of the \
                     patterns random and sequential"
                ));
            }
        }
        self.check_made()?;
        if self.operation != Operation::Mix {
            if self.mix.is_empty() {
                return Ok(());
            }
            return refuse("a mix of operations needs the operation mix".into());
        }
        let kinds: HashSet<_> = self.mix.iter().map(|share| share.op).collect();
        if kinds.len() < self.mix.len() {
            return refuse("a kind of operation is twice in the mix: add their parts up".into());
        }
        let sum: u32 = self.mix.iter().map(|share| u32::from(share.percent)).sum();
        if sum != 100 {
            return refuse(format!("the parts of the mix add up to {sum} %, not to 100 %"));
        }
        Ok(())
    }

    /// Loads of files that are only created, or only removed.
    fn check_made(&self) -> Checked {
        let most = match self.operation {
            Operation::Create => MADE_MAX.saturating_mul(u64::from(self.jobs)),
            Operation::Remove => u64::from(self.files),
            _ => return Ok(()),
        };
        match self.length {
            Length::Operations(count) if count <= most => {}
            _ => {
                return refuse(format!(
                    "a load that only creates files, or only removes them, ends by a number of \
                     operations, here at most {most}; create-remove can go on"
                ));
            }
        }
        if self.operation == Operation::Remove {
            if self.files < self.jobs {
                return refuse("jobs that remove files need at least one file each".into());
            }
            if self.layout == Layout::Existing {
                return refuse("only files that were laid out before the load are removed".into());
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Checked {
        let seconds = match self.length {
            Length::Seconds(seconds) => seconds,
            Length::Operations(0) => {
                return refuse("a run of 0 operations measures nothing".into());
            }
            Length::Operations(_) => 1.0,
            Length::Bytes { at_most_s, .. } => {
                if !matches!(self.operation, Operation::Data { .. }) {
                    return refuse("a length in bytes needs a load of reads and writes".into());
                }
                at_most_s.unwrap_or(1.0)
            }
        };
        let all = [
            ("run time", seconds),
            ("warm-up", self.warmup_s),
            ("cool-down", self.cooldown_s),
            ("drain", self.drain_s),
            ("start delay", self.start_delay_s),
        ];
        for (name, value) in all {
            if !(0.0..=SECONDS_MAX).contains(&value) {
                return refuse(format!("{name} is {value} s; it must be from 0 to a week"));
            }
        }
        if seconds == 0.0 {
            return refuse("a run of 0 s measures nothing".into());
        }
        Ok(())
    }

    fn check_names(&self) -> Checked {
        let name = &self.directory;
        if name.is_empty() || name.len() > 200 || name.contains('/') || name.starts_with('.') {
            return refuse(format!(
                "directory {name:?} must be one plain name of 1 to 200 bytes, not starting with a dot"
            ));
        }
        if let Layout::Written { block_bytes } = self.layout
            && !(512..=IO_BYTES_MAX).contains(&block_bytes)
        {
            return refuse(format!(
                "layout block {block_bytes} must be from 512 to {IO_BYTES_MAX} bytes"
            ));
        }
        let (given, wanted) = (self.names.len(), self.files);
        if given != 0 && u32::try_from(given) != Ok(wanted) {
            return refuse(format!("{given} names for {wanted} files: give each file one"));
        }
        let plain = |name: &String| {
            !matches!(name.as_str(), "" | "." | "..")
                && name.len() <= NAME_BYTES_MAX
                && !name.contains(['/', '\0'])
        };
        if let Some(name) = self.names.iter().find(|name| !plain(name)) {
            return refuse(format!("{name:?} is not a file name"));
        }
        let different: HashSet<_> = self.names.iter().collect();
        if different.len() < given {
            return refuse("two files of one load have the same name".into());
        }
        Ok(())
    }

    fn check_sizes(&self) -> Checked {
        for (what, sizes) in [("reads", &self.read_sizes), ("writes", &self.write_sizes)] {
            if sizes.is_empty() {
                continue;
            }
            if sizes.len() > SIZES_MAX {
                return refuse(format!("more than {SIZES_MAX} different sizes of {what}"));
            }
            let right = |share: &SizeShare| (1..=IO_BYTES_MAX).contains(&share.bytes);
            if let Some(share) = sizes.iter().find(|share| !right(share)) {
                let bytes = share.bytes;
                return refuse(format!(
                    "{what} of {bytes} bytes; they must be from 1 to {IO_BYTES_MAX}"
                ));
            }
            let sum: u32 = sizes.iter().map(|share| u32::from(share.percent)).sum();
            if sum != 100 {
                return refuse(format!("the sizes of {what} add up to {sum} %, not to 100 %"));
            }
        }
        Ok(())
    }

    fn check_places(&self) -> Checked {
        if !self.moves_data() {
            return Ok(());
        }
        let (size, block) = (self.file_bytes, u64::from(self.request_bytes_max()));
        if size < block {
            return refuse(format!(
                "a file of {size} bytes is smaller than a block of {block} bytes"
            ));
        }
        let (begins, held) = (self.last_begins(), self.least_room());
        if held < block {
            return refuse(format!(
                "the region of job {} begins at {begins} and holds {held} bytes of a file of \
                 {size}, less than a request of {block}: make the file larger, or the region's \
                 offset or increment smaller",
                self.jobs - 1
            ));
        }
        if let Some(align) = self.align_bytes
            && (align == 0 || u64::from(align) > held)
        {
            return refuse(format!("an alignment of {align} bytes must be from 1 to {held}"));
        }
        self.check_draw()?;
        self.check_order()?;
        self.check_starts()
    }

    fn check_starts(&self) -> Checked {
        if self.starts != Starts::Interlocked {
            return Ok(());
        }
        if !matches!(self.operation, Operation::Data { pattern: Pattern::Sequential, .. }) {
            return refuse("only sequential jobs can share one cursor".into());
        }
        if self.region.job_increment > 0 {
            return refuse(
                "jobs that share one cursor access the same region: omit the increment".into(),
            );
        }
        if !self.parts_are_apart() {
            return refuse(self.apart("jobs share a cursor"));
        }
        Ok(())
    }

    fn check_pace(&self) -> Checked {
        let rate = match &self.rate {
            Rate::Unlimited => None,
            Rate::Operations(rate) => Some(*rate),
            Rate::Bytes(rate) => {
                if !matches!(self.operation, Operation::Data { .. }) {
                    return refuse("a rate in bytes needs a load of reads and writes".into());
                }
                Some(*rate)
            }
            Rate::Share { of, percent } => {
                return refuse(format!(
                    "a rate of {percent} % of step {of:?} is still open: the number has to be put \
                     in when that step is done"
                ));
            }
        };
        if let Some(rate) = rate {
            if !(rate > 0.0 && rate <= RATE_MAX) {
                return refuse(format!("a rate of {rate} per second; it must be greater than 0"));
            }
            if self.think.is_some() {
                return refuse(
                    "pauses and a rate exclude each other: the rate sets the pauses".into(),
                );
            }
        }
        if let Some(think) = self.think
            && (think.every == 0 || think.us > DELAY_US_MAX)
        {
            return refuse("a pause of at most an hour follows at least one request".into());
        }
        self.check_regulated()?;
        let delays = &self.client_delays_us;
        if delays.iter().any(|delay| *delay > DELAY_US_MAX) {
            return refuse("the round-trip time of clients can be at most one hour".into());
        }
        if u32::try_from(delays.len()).map_or(true, |count| count > self.clients) {
            let (count, clients) = (delays.len(), self.clients);
            return refuse(format!("{count} distances for {clients} clients are too many"));
        }
        Ok(())
    }

    fn check_regulated(&self) -> Checked {
        if let Some(flow) = self.flow {
            if flow.weight == 0 || flow.sleep_us > DELAY_US_MAX {
                return refuse(
                    "the weight of a flow is at least 1, and its sleep at most an hour".into(),
                );
            }
            if self.part.is_some_and(|part| part.of > 1) {
                return refuse(
                    "the parts of a flow are kept within one process: use a single worker".into(),
                );
            }
        }
        if let Some(target) = self.latency_target {
            let is_percent = target.percent > 0.0 && target.percent <= 100.0;
            let is_time = (1..=DELAY_US_MAX).contains(&target.window_us);
            if target.us == 0 || !is_percent || !is_time || self.think.is_some() {
                return refuse(
                    "a latency to keep needs a time over 0, a window of at most an hour, a part of \
                     the requests over 0 and at most 100 %, and no pauses"
                        .into(),
                );
            }
        }
        let (MinRate::Operations(min) | MinRate::Bytes(min)) = match self.min_rate {
            Some(min) => min,
            None => return Ok(()),
        };
        if !(min > 0.0 && min <= RATE_MAX) {
            return refuse(format!("a minimum of {min} per second; it must be greater than 0"));
        }
        let moves = matches!(self.operation, Operation::Data { .. });
        if matches!(self.min_rate, Some(MinRate::Bytes(_))) && !moves {
            return refuse("a minimum in bytes needs a load of reads and writes".into());
        }
        Ok(())
    }

    fn check_direct(&self) -> Checked {
        if !self.direct || !self.moves_data() {
            return Ok(());
        }
        for (what, bytes) in self.lengths() {
            if !bytes.is_multiple_of(DIRECT_BYTES) {
                return refuse(format!(
                    "direct I/O needs multiples of {DIRECT_BYTES} bytes, and {what} is {bytes}"
                ));
            }
        }
        Ok(())
    }

    /// Everything that says where requests begin and how long they are, but the file's end.
    fn lengths(&self) -> Vec<(&'static str, u64)> {
        let sizes = self.read_sizes.iter().chain(&self.write_sizes);
        let mut lengths: Vec<_> = sizes.map(|share| ("a size", u64::from(share.bytes))).collect();
        lengths.push(("the block size", u64::from(self.block_bytes)));
        lengths.push(("the file size", self.file_bytes));
        lengths.push(("the region's offset", self.region.offset));
        lengths.push(("the region's length", self.region.bytes.unwrap_or(0)));
        lengths.push(("the region's increment", self.region.job_increment));
        lengths.push(("the alignment", u64::from(self.align_bytes.unwrap_or(0))));
        if let Starts::Stride { bytes } = self.starts {
            lengths.push(("the stride", bytes));
        }
        lengths.push(("the skipped length", self.skip_bytes.unsigned_abs()));
        if let Length::Bytes { per_job, .. } = self.length {
            lengths.push(("the length of a job", per_job));
        }
        lengths
    }

    fn check_verify(&self) -> Checked {
        if !self.verifies() {
            return Ok(());
        }
        if self.verify.is_some() && !self.writes() {
            return refuse("verification needs a workload that writes".into());
        }
        if self.verify_reads && !self.reads() {
            return refuse("verifying reads requires a workload that reads".into());
        }
        let (block, least) = (self.block_bytes, crate::verify::STAMP_BYTES_MIN);
        if block < least {
            return refuse(format!("verification needs blocks of at least {least} bytes"));
        }
        let sizes = self.read_sizes.iter().chain(&self.write_sizes);
        if let Some(share) = sizes.clone().find(|share| share.bytes != block) {
            return refuse(format!(
                "verification needs requests of one size: the block size is {block}, and there \
                 are requests of {}",
                share.bytes
            ));
        }
        for (what, bytes) in self.lengths() {
            if what != "the file size" && !bytes.is_multiple_of(u64::from(block)) {
                return refuse(format!(
                    "verification needs multiples of the block size of {block}, and {what} is \
                     {bytes}"
                ));
            }
        }
        if !self.parts_are_apart() {
            return refuse(self.apart("data is verified"));
        }
        let outstanding = u64::from(self.jobs) * u64::from(self.depth);
        let held = self.least_room() / u64::from(block);
        let blocks = held.saturating_mul(u64::from(self.files));
        if self.writes() && blocks < outstanding.saturating_mul(2) {
            return refuse(format!(
                "verification needs at least two blocks for each of {outstanding} requests in \
                 flight, and the files hold {blocks}: make them larger or the depth smaller"
            ));
        }
        Ok(())
    }

    /// Bytes of a file that the last job visits, whose part begins farthest in and so has the least
    /// room.
    pub fn least_room(&self) -> u64 {
        let held = self.file_bytes.saturating_sub(self.last_begins());
        held.min(self.region.bytes.unwrap_or(u64::MAX))
    }

    /// The offset in a file at which the part of the last job begins.
    fn last_begins(&self) -> u64 {
        let jobs_before = u64::from(self.jobs.saturating_sub(1));
        let last = jobs_before.saturating_mul(self.region.job_increment);
        self.region.offset.saturating_add(last)
    }

    fn apart(&self, why: &str) -> String {
        let of = self.part.map_or(1, |part| part.of);
        format!(
            "where {why}, each of {of} processes needs files of its own: make the number of files \
             (or of jobs, if there are fewer) a multiple of {of}"
        )
    }
}

fn refuse(message: String) -> Checked {
    Err(BenchError::Workload(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use crate::workload::{
        Draw, FileOrder, Flow, LatencyTarget, MixOp, OpShare, Part, Positions, Region, Stability,
        Think, VerifyScope, Visit, Zone,
    };

    fn message(change: impl FnOnce(&mut Workload)) -> String {
        let mut workload = Workload::default();
        change(&mut workload);
        workload.check().unwrap_err().to_string()
    }

    #[test]
    fn the_default_is_sound() {
        Workload::default().check().unwrap();
    }

    #[test]
    fn refusals_name_the_setting_and_the_bound() {
        assert_eq!(message(|w| w.depth = 0), "depth is 0; it must be from 1 to 4096");
        assert_eq!(message(|w| w.clients = 2), "2 clients need at least 2 jobs, not 1");
        assert!(message(|w| w.file_bytes = 100).contains("is smaller than a block"));
        assert!(message(|w| w.directory = "../x".into()).contains("one plain name"));
        assert!(message(|w| w.length = Length::Seconds(0.0)).contains("measures nothing"));
        assert!(message(|w| w.warmup_s = f64::NAN).contains("warm-up"));
        assert!(message(|w| w.verify = Some(VerifyScope::All)).contains("writes"));
    }

    #[test]
    fn verification_wants_room_for_requests_in_flight() {
        let small = |w: &mut Workload| {
            w.operation = Operation::Data { pattern: Pattern::Random, read_percent: 0 };
            w.verify = Some(VerifyScope::All);
            w.file_bytes = 4096 * 31;
        };
        assert!(message(small).contains("make them larger"));
        let mut workload = Workload::default();
        small(&mut workload);
        workload.file_bytes = 4096 * 32;
        workload.check().unwrap();
    }

    fn zones(requests_percent: u8, size_percent: f64) -> Draw {
        Draw::Zoned { zones: vec![Zone { requests_percent, size_percent }] }
    }

    fn sequential() -> Operation {
        Operation::Data { pattern: Pattern::Sequential, read_percent: 100 }
    }

    type Change = Box<dyn FnOnce(&mut Workload)>;

    fn assert_refused(cases: Vec<(&str, Change)>) {
        for (words, change) in cases {
            let told = message(change);
            assert!(told.contains(words), "{words:?} is not in {told:?}");
        }
    }

    #[test]
    fn operations_and_times_that_make_no_sense_are_refused_by_their_name() {
        let share = Rate::Share { of: "max".into(), percent: 50.0 };
        let twice = OpShare { op: MixOp::Stat, percent: 50 };
        assert_refused(vec![
            ("still open", Box::new(|w| w.rate = share)),
            ("greater than 0", Box::new(|w| w.rate = Rate::Operations(0.0))),
            ("start delay", Box::new(|w| w.start_delay_s = -1.0)),
            ("at most 65536", Box::new(|w| w.operation = Operation::Create)),
            (
                "at least one file each",
                Box::new(|w| {
                    w.operation = Operation::Remove;
                    (w.jobs, w.length) = (2, Length::Operations(1));
                }),
            ),
            (
                "were laid out",
                Box::new(|w| {
                    w.operation = Operation::Remove;
                    (w.layout, w.length) = (Layout::Existing, Length::Operations(1));
                }),
            ),
            (
                "a single worker",
                Box::new(|w| {
                    w.flow = Some(Flow { group: 0, weight: 1, sleep_us: 0 });
                    w.part = Some(Part { index: 0, of: 2 });
                }),
            ),
            (
                "a latency to keep",
                Box::new(|w| {
                    let (us, window_us) = (1, 0);
                    w.latency_target =
                        Some(LatencyTarget { us, window_us, percent: 99.0, goes_on: false });
                }),
            ),
            ("a minimum of 0", Box::new(|w| w.min_rate = Some(MinRate::Bytes(0.0)))),
            ("2 distances for 1", Box::new(|w| w.client_delays_us = vec![1, 2])),
            ("operation mix", Box::new(move |w| w.mix = vec![twice])),
            ("part 2 of 2 does not exist", Box::new(|w| w.part = Some(Part { index: 2, of: 2 }))),
            (
                "exclude each other",
                Box::new(|w| {
                    w.rate = Rate::Operations(5.0);
                    w.think = Some(Think { us: 1, every: 1 });
                }),
            ),
            (
                "twice in the mix",
                Box::new(move |w| {
                    w.operation = Operation::Mix;
                    w.mix = vec![twice, twice];
                }),
            ),
            (
                "reads and writes",
                Box::new(|w| {
                    w.operation = Operation::Getattr;
                    w.length = Length::Bytes { per_job: 1, at_most_s: None };
                }),
            ),
        ]);
    }

    #[test]
    fn places_and_sizes_that_make_no_sense_are_refused_by_their_name() {
        let sizes = vec![SizeShare { bytes: 4096, percent: 60 }];
        assert_refused(vec![
            ("add up to 60 %", Box::new(|w| w.read_sizes = sizes)),
            ("not 1", Box::new(|w| w.draw = Draw::Zipf { theta: 1.0 })),
            ("sequential jobs", Box::new(|w| w.starts = Starts::Interlocked)),
            ("region of job 0", Box::new(|w| w.region.offset = 1 << 30)),
            ("from 1 to", Box::new(|w| w.align_bytes = Some(0))),
            ("below 1", Box::new(|w| w.draw = Draw::Pareto { h: 1.0 })),
            ("0 to 100", Box::new(|w| w.draw = Draw::Normal { deviation_percent: -1.0 })),
            ("0 zones", Box::new(|w| w.draw = Draw::Zoned { zones: Vec::new() })),
            ("add up to 60 %", Box::new(|w| w.draw = zones(60, 10.0))),
            ("more than it has", Box::new(|w| w.draw = zones(100, 101.0))),
            ("is empty", Box::new(|w| w.draw = zones(100, f64::NAN))),
            ("each direction", Box::new(|w| w.positions = Positions::ByDirection)),
            ("can skip bytes", Box::new(|w| w.skip_bytes = 4096)),
            (
                "leave the region",
                Box::new(|w| {
                    w.operation = sequential();
                    w.skip_bytes = -(1 << 30);
                }),
            ),
            ("need random order", Box::new(|w| w.visit = Some(Visit { requests: 1, again: true }))),
            (
                "files in turn",
                Box::new(|w| {
                    w.file_order = FileOrder::InTurn;
                    w.visit = Some(Visit { requests: 2, again: true });
                }),
            ),
            ("2 names for 1 files", Box::new(|w| w.names = vec!["a".into(), "b".into()])),
            ("not a file name", Box::new(|w| w.names = vec!["../a".into()])),
            (
                "direct I/O",
                Box::new(|w| {
                    w.direct = true;
                    w.block_bytes = 1000;
                }),
            ),
        ]);
    }

    #[test]
    fn what_cannot_be_verified_is_refused_by_its_name() {
        assert_refused(vec![
            (
                "requires a workload that reads",
                Box::new(|w| {
                    w.operation = Operation::Data { pattern: Pattern::Random, read_percent: 0 };
                    w.verify_reads = true;
                }),
            ),
            (
                "requests of one size",
                Box::new(|w| {
                    w.verify_reads = true;
                    w.read_sizes = vec![SizeShare { bytes: 8192, percent: 100 }];
                }),
            ),
            (
                "the region's offset",
                Box::new(|w| {
                    w.verify_reads = true;
                    w.region = Region { offset: 512, ..Region::default() };
                }),
            ),
            (
                "files of its own",
                Box::new(|w| {
                    w.verify_reads = true;
                    w.jobs = 4;
                    w.files = 3;
                    w.part = Some(Part { index: 0, of: 2 });
                }),
            ),
        ]);
    }

    #[test]
    fn parts_have_the_jobs_and_files_that_leave_their_remainder() {
        for (jobs, files) in [(4, 4), (6, 2), (2, 6), (5, 3), (3, 7)] {
            let load = |index| Workload {
                jobs,
                files,
                part: Some(Part { index, of: 2 }),
                ..Workload::default()
            };
            for number in 0..files {
                let visits = |job: u32| match jobs >= files {
                    true => job % files == number,
                    false => number % jobs == job,
                };
                let by = |w: &Workload| (0..jobs).any(|job| w.has_job(job) && visits(job));
                let users = [0, 1].map(|index| by(&load(index)));
                assert_eq!(users, [0, 1].map(|index| load(index).uses(number)), "{jobs} {files}");
                let own = [0, 1].map(|index| load(index).lays_out(number));
                assert!(own[0] != own[1]);
                if load(0).parts_are_apart() {
                    assert_eq!(users, own, "{jobs} jobs, {files} files, file {number}");
                }
            }
        }
    }

    #[test]
    fn direct_writes_are_file_sync_over_nfs_alone() {
        let target = |text: &str| Target::Nfs(crate::target::NfsTarget::parse(text).unwrap());
        let nfs = target("nfs://127.0.0.1/vol");
        let path = Target::Path("/mnt".into());
        let load = |read_percent, direct, stability| Workload {
            operation: Operation::Data { pattern: Pattern::Random, read_percent },
            direct,
            stability,
            ..Workload::default()
        };
        let applied = |load: &Workload, target| load.applied_to(target).stability;
        let direct = load(50, true, Stability::Unstable);
        assert_eq!(applied(&direct, &nfs), Stability::FileSync);
        assert_eq!(applied(&direct, &path), Stability::Unstable);
        for kept in [load(0, false, Stability::Unstable), load(0, true, Stability::DataSync)] {
            assert_eq!(kept.applied_to(&nfs), kept);
        }
        let reads = load(100, true, Stability::Unstable);
        assert_eq!(reads.applied_to(&nfs), reads, "a load without writes stays as it is");
    }

    #[test]
    fn a_workload_survives_json() {
        let workload = Workload { verify: Some(VerifyScope::Sample(9)), ..Workload::default() };
        let json = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
    }
}
