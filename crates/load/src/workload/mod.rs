//! The load to apply: the terms shared by every engine.

mod check;
mod control;
mod places;

pub use control::{Flow, LatencyTarget, MinRate};
pub use places::{Draw, FileOrder, Pattern, Positions, Region, Starts, Visit, Zone};

use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Most requests that one connection keeps in flight.
pub const DEPTH_MAX: u32 = 4096;

/// The share of requests that have this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeShare {
    /// Bytes of one request.
    pub bytes: u32,
    /// The size's part, in percent; those of a list add up to 100.
    pub percent: u8,
}

/// The rate at which requests are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Requests go as fast as they are answered, with the depth in flight.
    #[default]
    Unlimited,
    /// A number of operations a second, all jobs of the load together, each with the same part of
    /// them. A request that can't leave at its time because the depth is used up counts as late
    /// from its time on: latencies are measured from when a request was due, so that a stall is not
    /// hidden by the requests that it kept back (no "coordinated omission").
    Operations(f64),
    /// A number of payload bytes a second, all jobs together, measured in the same way.
    Bytes(f64),
    /// A percentage of the operations a second that the step of this name reached. The runner of
    /// the scenario puts the number in; the engine refuses one that is still open.
    Share {
        /// Name of an earlier step of the same scenario.
        of: String,
        /// Over 0.
        percent: f64,
    },
}

/// The times at which requests of a limited rate are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At even distances.
    #[default]
    Even,
    /// A Poisson process: distances drawn from an exponential distribution.
    Poisson,
}

/// A pause of a job after so many of its requests. It begins when all of these are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Microseconds.
    pub us: u64,
    /// Requests between two pauses; at least 1.
    pub every: u32,
}

/// One kind of operation among those of [`Operation::Mix`].
///
/// An object that an operation makes is the job's own, named anew in every run, and removed at the
/// end. A job keeps at most 64 empty files and 64 directories: beyond these it removes the oldest
/// before it makes the next. An operation that finds nothing to remove makes it first. Operations
/// besides the drawn ones count under their own kind, so that results show how much it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixOp {
    /// GETATTR of a file; counts as `getattr`.
    Stat,
    /// ACCESS of a file; counts as `access`.
    Access,
    /// LOOKUP of a file; counts as `lookup`.
    Lookup,
    /// READ of one block at a random place of a file; counts as `read`.
    ReadRandom,
    /// WRITE of one block at a random place of a file; counts as `write`.
    WriteRandom,
    /// READ of one block, the next of its file; counts as `read`.
    ReadSequential,
    /// WRITE of one block, the next of its file; counts as `write`. Reads and writes each have a
    /// place of their own in the file.
    WriteSequential,
    /// LOOKUP of a file and READ of all of it, block after block; counts as one `read-file`.
    ReadFile,
    /// All of a file WRITTEN anew, block after block, and a COMMIT; counts as one `write-file`.
    WriteFile,
    /// CREATE of a new empty file; counts as `create`.
    Create,
    /// SETATTR of a file's mode; counts as `setattr`.
    Chmod,
    /// MKDIR of a new directory; counts as `mkdir`.
    Mkdir,
    /// RMDIR of the oldest directory that the job made; counts as `rmdir`.
    Rmdir,
    /// REMOVE of the oldest empty file that the job made; counts as `remove`.
    Unlink,
    /// REMOVE of a file that holds a block of data; counts as `remove`. It is made for the purpose,
    /// by a CREATE and a WRITE, which count as `create` and `write`.
    Unlink2,
}

impl MixOp {
    /// Does it change data of the laid-out files?
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::WriteRandom | Self::WriteSequential | Self::WriteFile)
    }

    /// Does it read file data?
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::ReadRandom | Self::ReadSequential | Self::ReadFile)
    }

    /// Does it work on the laid-out files?
    const fn needs_files(self) -> bool {
        !matches!(self, Self::Create | Self::Mkdir | Self::Rmdir | Self::Unlink | Self::Unlink2)
    }
}

/// The share of operations that are of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpShare {
    /// The kind.
    pub op: MixOp,
    /// The operation's part, in percent; those of a list add up to 100.
    pub percent: u8,
}

/// The part that one of several processes takes in a load: the jobs whose number leaves this
/// remainder, and the laying out of the files whose number does. Counts, rates and sizes of the
/// workload stay those of the whole load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// The number of processes.
    pub of: u32,
}

/// The operation of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// READ and WRITE of blocks.
    Data {
        /// Order of the blocks.
        pattern: Pattern,
        /// The number of reads in a hundred requests; the rest are writes.
        read_percent: u8,
    },
    /// NULL: nothing at all, the cost of the protocol alone.
    Null,
    /// GETATTR of the files.
    Getattr,
    /// ACCESS of the files.
    Access,
    /// LOOKUP of the files in their directory.
    Lookup,
    /// CREATE of a new empty file, then REMOVE of it; each counts as one operation.
    CreateRemove,
    /// CREATE of a new empty file each time. The files stay until the load is over, so that it has
    /// to end by a count.
    Create,
    /// REMOVE of each of the laid-out files of a job, which then ends.
    Remove,
    /// The mix in [`Workload::mix`].
    Mix,
}

impl Operation {
    /// Does it ever change file data? Of a mixture that depends on its parts:
    /// [`Workload::writes`].
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Data { read_percent, .. } if read_percent < 100)
    }

    /// Does it ever read file data? Of a mixture that depends on its parts: [`Workload::reads`].
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Data { read_percent, .. } if read_percent > 0)
    }

    /// Does it move file data at all? Of a mixture that depends on its parts:
    /// [`Workload::moves_data`].
    #[must_use]
    pub const fn moves_data(self) -> bool {
        matches!(self, Self::Data { .. })
    }
}

/// The durability of an answered write (RFC 1813 §3.3.7, `stable_how`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stability {
    /// The data may be lost until a COMMIT.
    Unstable,
    /// Data and what is needed to read it back are on stable storage.
    DataSync,
    /// Data and all attributes are on stable storage.
    FileSync,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// After this many seconds, not counting the warm-up.
    Seconds(f64),
    /// After this many operations in all; there is no warm-up then. Those that belong together,
    /// such as the removal of what was created, are done to the end, even if that is one more.
    Operations(u64),
    /// Each job moves a number of bytes, or the time is over; there is no warm-up then. The last
    /// request of a job is shorter if need be.
    Bytes {
        /// Of one job. Zero: as many as its region of all its files holds, once; of jobs that
        /// share a cursor, all together.
        per_job: u64,
        /// Seconds after which it ends in any case.
        at_most_s: Option<f64>,
    },
}

/// The content of the files before the load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The files are there already; nothing is created. They have at least the wanted size, unless
    /// the load only writes: writes behind the end make them longer.
    Existing,
    /// The files get their size as one hole.
    Sparse,
    /// The files are written from front to back, in stamped blocks if anything is verified.
    Written {
        /// Bytes in one write. It matters: ext4 keeps data laid out by large writes in large
        /// folios, and overwrites small parts of those at twenty times the cost.
        block_bytes: u32,
    },
}

/// The part of the written data that is read back after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyScope {
    /// Every block that was written, be it while laying out.
    All,
    /// This many of them, spread evenly.
    Sample(u64),
}

/// A directory of files: its name, and the target that it lies on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// Name of the target; empty for the one without a name.
    pub target: String,
    /// Directory below it.
    pub directory: String,
}

/// One load on one target.
///
/// A *client* is one source address. Each client has `connections` connections, jobs are dealt
/// to the clients in turn, and each job keeps `depth` requests in flight on its client's
/// connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Shown in results.
    pub name: String,
    /// The operation of each request.
    pub operation: Operation,
    /// Bytes of one READ or WRITE.
    pub block_bytes: u32,
    /// Requests each job keeps in flight.
    pub depth: u32,
    /// Independent streams of requests.
    pub jobs: u32,
    /// Simulated clients, each with a source address of its own.
    pub clients: u32,
    /// Connections of each client.
    pub connections: u32,
    /// Files. Fewer than jobs: jobs share them; more: each job visits several.
    pub files: u32,
    /// Size of each file in bytes.
    pub file_bytes: u64,
    /// Stability asked for in writes.
    pub stability: Stability,
    /// A COMMIT (or `fdatasync`) of the file after this many writes of a job.
    pub commit_every: Option<u32>,
    /// The end of the run.
    pub length: Length,
    /// Seconds of load before the measurement begins.
    pub warmup_s: f64,
    /// Seconds of load that goes on unmeasured after the measured part (diskspd's `-C`); none in a
    /// run that ends by a count.
    pub cooldown_s: f64,
    /// Seconds to wait, after the end, for requests still in flight.
    pub drain_s: f64,
    /// The content of the files before the run.
    pub layout: Layout,
    /// Read back what was written.
    pub verify: Option<VerifyScope>,
    /// Keep files and directory afterwards.
    pub keep: bool,
    /// Directory for the files, a name below the export or path.
    pub directory: String,
    /// Name of the target, where the step has several; empty for the one without a name.
    pub target: String,
    /// Worker threads of the engines of NFS and SMB.
    pub threads: u32,
    /// The path engine opens files with `O_DIRECT`. Over NFS, writes are `FILE_SYNC`
    /// ([`Workload::applied_to`]).
    pub direct: bool,
    /// Start of the pseudo-random sequences; the same seed visits the same blocks.
    pub seed: u64,
    /// Names of the files in the directory, in place of `file.00000` and up; as many as files, or
    /// none. Loads of a step that name the same file in the same directory share it.
    pub names: Vec<String>,
    /// Sizes of reads; [`Workload::block_bytes`] alone if empty.
    pub read_sizes: Vec<SizeShare>,
    /// Sizes of writes; as with reads.
    pub write_sizes: Vec<SizeShare>,
    /// Random offsets are multiples of this, counted from the beginning of the region; without, of
    /// the size of the request.
    pub align_bytes: Option<u32>,
    /// Which blocks come up in random order.
    pub draw: Draw,
    /// The start of sequential jobs that share a file.
    pub starts: Starts,
    /// The positions of sequential reads and writes in a file.
    pub positions: Positions,
    /// The part of each file that is visited.
    pub region: Region,
    /// Bytes between the end of a request in order and the beginning of the next; negative:
    /// backwards, from the end. Sequential jobs that share a cursor have none.
    pub skip_bytes: i64,
    /// Several requests from each random place.
    pub visit: Option<Visit>,
    /// The order in which a job visits its files.
    pub file_order: FileOrder,
    /// The operations of [`Operation::Mix`].
    pub mix: Vec<OpShare>,
    /// The rate at which requests are sent.
    pub rate: Rate,
    /// The times at which requests of a limited rate are due.
    pub pacing: Pacing,
    /// Pauses of each job.
    pub think: Option<Think>,
    /// A part of the activity of several loads.
    pub flow: Option<Flow>,
    /// A latency to keep by adjusting the requests in flight; the depth is the most of them.
    pub latency_target: Option<LatencyTarget>,
    /// A rate under which a job ends.
    pub min_rate: Option<MinRate>,
    /// Seconds that this load waits when its step starts; its warm-up begins after them.
    pub start_delay_s: f64,
    /// Microseconds of network distance (there and back together) added between clients and
    /// server, dealt to the clients in turn; none if empty. Each request leaves that much later,
    /// and its latency includes it.
    pub client_delays_us: Vec<u64>,
    /// A COMMIT (or `fsync`) of each file after the last write of the load, outside the measured
    /// interval.
    pub end_sync: bool,
    /// Compare what is read during the run with what was written, block by block, laid-out data
    /// included.
    pub verify_reads: bool,
    /// The path engine drops the files from the page cache when it opens them for the load. The
    /// engines of NFS and SMB have no cache.
    pub invalidate: bool,
    /// Hosts that take part; all of them if empty.
    pub hosts: Vec<String>,
    /// The part that this process takes; all of it without.
    pub part: Option<Part>,
}

impl Default for Workload {
    /// 4 KiB random reads for 30 s: one client, one job, depth 16, one file of 1 GiB.
    fn default() -> Self {
        Self {
            name: "run".to_owned(),
            operation: Operation::Data { pattern: Pattern::Random, read_percent: 100 },
            block_bytes: 4096,
            depth: 16,
            jobs: 1,
            clients: 1,
            connections: 1,
            files: 1,
            file_bytes: 1 << 30,
            stability: Stability::Unstable,
            commit_every: None,
            length: Length::Seconds(30.0),
            warmup_s: 2.0,
            cooldown_s: 0.0,
            drain_s: 30.0,
            layout: Layout::Written { block_bytes: 1 << 20 },
            verify: None,
            keep: false,
            directory: "weir-bench".to_owned(),
            target: String::new(),
            threads: 1,
            direct: false,
            seed: 1,
            names: Vec::new(),
            read_sizes: Vec::new(),
            write_sizes: Vec::new(),
            align_bytes: None,
            draw: Draw::Independent,
            starts: Starts::Apart,
            positions: Positions::Shared,
            region: Region::default(),
            skip_bytes: 0,
            visit: None,
            file_order: FileOrder::ByOperation,
            mix: Vec::new(),
            rate: Rate::Unlimited,
            pacing: Pacing::Even,
            think: None,
            flow: None,
            latency_target: None,
            min_rate: None,
            start_delay_s: 0.0,
            client_delays_us: Vec::new(),
            end_sync: false,
            verify_reads: false,
            invalidate: false,
            hosts: Vec::new(),
            part: None,
        }
    }
}

impl Workload {
    /// The requests that all its jobs keep in flight together.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        u64::from(self.jobs) * u64::from(self.depth)
    }

    /// The load as it is applied to `target`. Over NFS the direct writes of a load that asks for no
    /// stability are `FILE_SYNC`: Linux sends a write of a file that is open with `O_DIRECT` so
    /// where it fits into one request, as all requests here do. Over SMB, `O_DIRECT` does not make
    /// writes durable.
    #[must_use]
    pub fn applied_to(&self, target: &Target) -> Self {
        let direct_writes = self.direct && self.writes() && self.stability == Stability::Unstable;
        match target {
            Target::Nfs(_) if direct_writes => {
                Self { stability: Stability::FileSync, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Blocks in one file.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.file_bytes / self.block_bytes as u64
    }

    /// Duration of the measured part; `None` if it ends by a count.
    #[must_use]
    pub fn measured_time(&self) -> Option<Duration> {
        match self.length {
            Length::Seconds(seconds) => Some(Duration::from_secs_f64(seconds)),
            Length::Operations(_) => None,
            Length::Bytes { at_most_s, .. } => at_most_s.map(Duration::from_secs_f64),
        }
    }

    /// Load before the measurement; none in a run that ends by a count.
    #[must_use]
    pub fn warmup(&self) -> Duration {
        match self.length {
            Length::Seconds(_) => Duration::from_secs_f64(self.warmup_s),
            Length::Operations(_) | Length::Bytes { .. } => Duration::ZERO,
        }
    }

    /// Does it ever change data of its files?
    #[must_use]
    pub fn writes(&self) -> bool {
        self.operation.writes() || self.mixes(MixOp::writes)
    }

    /// Does it ever read data of its files?
    #[must_use]
    pub fn reads(&self) -> bool {
        self.operation.reads() || self.mixes(MixOp::reads)
    }

    /// Does it move data of its files at all?
    #[must_use]
    pub fn moves_data(&self) -> bool {
        self.reads() || self.writes()
    }

    /// Does it compare what it reads, in passing or afterwards? Its blocks are stamped then.
    #[must_use]
    pub const fn verifies(&self) -> bool {
        self.verify.is_some() || self.verify_reads
    }

    /// The name of file `number` in the directory.
    #[must_use]
    pub fn file_name(&self, number: u32) -> String {
        let given = usize::try_from(number).ok().and_then(|index| self.names.get(index));
        given.map_or_else(|| format!("file.{number:05}"), Clone::clone)
    }

    /// The place of its files.
    #[must_use]
    pub fn location(&self) -> Location {
        Location { target: self.target.clone(), directory: self.directory.clone() }
    }

    /// The files the run needs: metadata operations may run on empty ones.
    pub fn needs_files(&self) -> bool {
        match self.operation {
            Operation::Null | Operation::CreateRemove | Operation::Create => false,
            Operation::Mix => self.mixes(MixOp::needs_files),
            _ => true,
        }
    }

    /// Is there an operation of this property in the mixture?
    fn mixes(&self, is: impl Fn(MixOp) -> bool) -> bool {
        self.operation == Operation::Mix
            && self.mix.iter().any(|share| share.percent > 0 && is(share.op))
    }

    /// Bytes that each file needs to hold.
    pub fn size_needed(&self) -> u64 {
        let filled = self.moves_data() || self.operation == Operation::Remove;
        if filled { self.file_bytes } else { 0 }
    }

    /// The largest request of the load, in bytes: what buffers have to hold.
    pub fn request_bytes_max(&self) -> u32 {
        let sizes = self.read_sizes.iter().chain(&self.write_sizes).map(|share| share.bytes);
        sizes.chain([self.block_bytes]).max().unwrap_or(self.block_bytes)
    }

    /// Does job `index` belong to the part of the load that this process takes?
    pub const fn has_job(&self, index: u32) -> bool {
        match self.part {
            None => true,
            Some(part) => index % part.of == part.index,
        }
    }

    /// Does this process lay file `number` out?
    pub const fn lays_out(&self, number: u32) -> bool {
        self.has_job(number)
    }

    /// Do the jobs of this process work on files that it lays out itself, and nobody else does?
    pub const fn parts_are_apart(&self) -> bool {
        let Some(part) = self.part else { return true };
        match (self.jobs, self.files) {
            (jobs, files) if jobs > files => files.is_multiple_of(part.of),
            (jobs, files) if jobs < files => jobs.is_multiple_of(part.of),
            _ => true,
        }
    }

    /// Does the job `index` visit file `number`?
    #[must_use]
    pub const fn visits(&self, index: u32, number: u32) -> bool {
        if self.files < self.jobs {
            index % self.files == number
        } else {
            number % self.jobs == index
        }
    }

    /// Does the load need its files open, where a protocol has opens?
    #[must_use]
    pub fn opens_files(&self) -> bool {
        self.needs_files()
            && !matches!(self.operation, Operation::Lookup | Operation::Access | Operation::Remove)
    }

    /// Does any job of this process visit file `number`?
    pub fn uses(&self, number: u32) -> bool {
        let Some(_) = self.part else { return true };
        let step = usize::try_from(self.files.min(self.jobs)).unwrap_or(1).max(1);
        (number % self.jobs.min(self.files)..self.jobs).step_by(step).any(|job| self.has_job(job))
    }
}
