//! What load to apply: the terms shared by every engine.

use crate::error::BenchError;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_core::limits::IO_BYTES_MAX;

/// Most requests that one connection keeps in flight.
pub(crate) const DEPTH_MAX: u32 = 4096;
/// Most jobs, connections or files in one run.
const PARTS_MAX: u32 = 65_536;

/// The order in which blocks of a file are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Every block equally likely each time.
    Random,
    /// One after the other, starting over at the end. Where jobs that share a file start, says
    /// [`Workload::starts`].
    Sequential,
    /// So many of a hundred requests at a random place, the others after the one before them.
    Mixed {
        /// 1 to 99.
        random_percent: u8,
    },
}

/// Which blocks come up in random order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Each time every block equally likely (fio's `norandommap`).
    #[default]
    Independent,
    /// Every block once, in an order of chance, before any comes again (fio's random map).
    Permuted,
    /// Few blocks often and many seldom: the k-th most wanted with a weight of k^-theta, the
    /// wanted ones strewn over the file.
    Zipf {
        /// Over 0, not 1, at most 5.
        theta: f64,
    },
}

/// Where sequential jobs that share a file start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// Spread evenly over the region.
    #[default]
    Apart,
    /// All at its beginning, each with a cursor of its own.
    Together,
    /// All share one cursor: together they visit each block once a pass.
    Interlocked,
    /// Job k of a file k times so many bytes behind its beginning.
    Stride {
        /// A multiple of the block size is not needed; offsets keep their alignment to the start.
        bytes: u64,
    },
}

/// How many requests of a hundred have this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeShare {
    /// Bytes of one request.
    pub bytes: u32,
    /// Its part; those of a list add up to 100.
    pub percent: u8,
}

/// How fast requests are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// As fast as they are answered, with the depth in flight.
    #[default]
    Unlimited,
    /// So many operations a second, all jobs of the load together. A request that can't leave at
    /// its time because the depth is used up counts as late from its time on: latencies are
    /// measured from when a request was due, so that a stall is not hidden by the requests that
    /// it kept back (no "coordinated omission").
    Operations(f64),
    /// So many payload bytes a second, all jobs together, measured in the same way.
    Bytes(f64),
    /// So many percent of the operations a second that the step of this name reached. Whoever runs
    /// the scenario puts the number in; the engine refuses what is still open.
    Share {
        /// Name of an earlier step of the same scenario.
        of: String,
        /// Over 0.
        percent: f64,
    },
}

/// When requests of a limited rate are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// At even distances.
    #[default]
    Even,
    /// As a Poisson process: distances drawn from an exponential distribution.
    Poisson,
}

/// A pause of a job after so many of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Microseconds.
    pub us: u64,
    /// Requests between two pauses; at least 1.
    pub every: u32,
}

/// The part of each file that is visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its length; the rest of the file without.
    pub bytes: Option<u64>,
    /// Job k begins k times this further on (fio's `offset_increment`).
    pub job_increment: u64,
}

/// One kind of operation among those of [`Operation::Mix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MixOp {
    /// GETATTR of a file.
    Stat,
    /// ACCESS of a file.
    Access,
    /// LOOKUP of a file.
    Lookup,
    /// READ of one block at a random place of a file.
    ReadRandom,
    /// WRITE of one block at a random place of a file.
    WriteRandom,
    /// READ of one block, the next of its file.
    ReadSequential,
    /// WRITE of one block, the next of its file.
    WriteSequential,
    /// LOOKUP of a file and READ of all of it, block after block; counts as one `read-file`.
    ReadFile,
    /// All of a file WRITTEN anew, block after block, and a COMMIT; counts as one `write-file`.
    WriteFile,
    /// CREATE of a new empty file.
    Create,
    /// SETATTR of a file's mode.
    Chmod,
    /// MKDIR of a new directory.
    Mkdir,
    /// RMDIR of a directory that the mix made; nothing is sent, and another operation drawn, while
    /// there is none.
    Rmdir,
    /// REMOVE of a file that the mix created; as with `rmdir`.
    Unlink,
    /// REMOVE of a name under which a file of the set had been linked or created with data before.
    Unlink2,
}

/// How many operations of a hundred are of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpShare {
    /// The kind.
    pub op: MixOp,
    /// Its part; those of a list add up to 100.
    pub percent: u8,
}

/// The part that one of several processes takes in a load: jobs and files whose number leaves
/// this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// How many processes there are.
    pub of: u32,
}

/// What each request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// READ and WRITE of blocks.
    Data {
        /// Order of the blocks.
        pattern: Pattern,
        /// How many of a hundred requests are reads; the rest are writes.
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
    /// What [`Workload::mix`] says.
    Mix,
}

impl Operation {
    /// Does it ever change file data?
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Data { read_percent, .. } if read_percent < 100)
    }

    /// Does it ever read file data?
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Data { read_percent, .. } if read_percent > 0)
    }

    /// Does it move file data at all?
    #[must_use]
    pub const fn moves_data(self) -> bool {
        matches!(self, Self::Data { .. })
    }
}

/// How durable a write is when it is answered (RFC 1813 §3.3.7, `stable_how`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stability {
    /// It may be lost until a COMMIT.
    Unstable,
    /// Data and what is needed to read it back are on stable storage.
    DataSync,
    /// Data and all attributes are on stable storage.
    FileSync,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Length {
    /// After this many seconds, not counting the warm-up.
    Seconds(f64),
    /// After this many operations in all; there is no warm-up then.
    Operations(u64),
    /// When each job has moved so many bytes (its region once: up to the end of the file), or the
    /// time is over; there is no warm-up then.
    Bytes {
        /// Of one job.
        per_job: u64,
        /// Seconds after which it ends in any case.
        at_most_s: Option<f64>,
    },
}

/// What the files hold before the load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// They are there already, with at least the wanted size; nothing is created.
    Existing,
    /// They get their size as one hole.
    Sparse,
    /// They are written from front to back.
    Written {
        /// Bytes in one write. It matters: ext4 keeps data laid out by large writes in large
        /// folios, and overwrites small parts of those at twenty times the cost.
        block_bytes: u32,
    },
}

/// How much of what was written is read back after the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyScope {
    /// Every block that was written.
    All,
    /// This many of them, spread evenly.
    Sample(u64),
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
    /// What each request does.
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
    /// When it ends.
    pub length: Length,
    /// Seconds of load before the measurement begins.
    pub warmup_s: f64,
    /// Seconds of load that goes on unmeasured after the measured part (diskspd's `-C`); none in a
    /// run that ends by a count.
    pub cooldown_s: f64,
    /// Seconds to wait, after the end, for requests still in flight.
    pub drain_s: f64,
    /// What the files hold before.
    pub layout: Layout,
    /// Read back what was written.
    pub verify: Option<VerifyScope>,
    /// Keep files and directory afterwards.
    pub keep: bool,
    /// Directory for the files, a name below the export or path.
    pub directory: String,
    /// Worker threads of the NFS engine.
    pub threads: u32,
    /// The path engine opens files with `O_DIRECT`.
    pub direct: bool,
    /// Start of the pseudo-random sequences; the same seed visits the same blocks.
    pub seed: u64,
    /// Names of the files below the directory, in place of `file.00000` and up; as many as files.
    pub names: Vec<String>,
    /// Sizes of reads; [`Workload::block_bytes`] alone if empty.
    pub read_sizes: Vec<SizeShare>,
    /// Sizes of writes; as with reads.
    pub write_sizes: Vec<SizeShare>,
    /// Random offsets are multiples of this; of the block size without.
    pub align_bytes: Option<u32>,
    /// Which blocks come up in random order.
    pub draw: Draw,
    /// Where sequential jobs that share a file start.
    pub starts: Starts,
    /// The part of each file that is visited.
    pub region: Region,
    /// The operations of [`Operation::Mix`].
    pub mix: Vec<OpShare>,
    /// How fast requests are sent.
    pub rate: Rate,
    /// When requests of a limited rate are due.
    pub pacing: Pacing,
    /// Pauses of each job.
    pub think: Option<Think>,
    /// Seconds that this load waits when its step starts.
    pub start_delay_s: f64,
    /// Microseconds of network distance (there and back together) added between clients and
    /// server, dealt to the clients in turn; none if empty.
    pub client_delays_us: Vec<u64>,
    /// A COMMIT (or `fsync`) of each file after the last write.
    pub end_sync: bool,
    /// Compare what is read during the run with what was written, block by block, laid-out data
    /// included.
    pub verify_reads: bool,
    /// The path engine drops the files from the page cache when it opens them.
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
            threads: 1,
            direct: false,
            seed: 1,
            names: Vec::new(),
            read_sizes: Vec::new(),
            write_sizes: Vec::new(),
            align_bytes: None,
            draw: Draw::Independent,
            starts: Starts::Apart,
            region: Region::default(),
            mix: Vec::new(),
            rate: Rate::Unlimited,
            pacing: Pacing::Even,
            think: None,
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
    /// Blocks in one file.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.file_bytes / self.block_bytes as u64
    }

    /// How long the measured part is; `None` if it ends by a count.
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

    /// The files the run needs: metadata operations may run on empty ones.
    pub(crate) fn needs_files(&self) -> bool {
        !matches!(self.operation, Operation::Null | Operation::CreateRemove)
    }

    /// Checks that the parts fit together.
    ///
    /// # Errors
    /// [`BenchError::Workload`] says which setting to change, and to what.
    pub fn check(&self) -> Result<(), BenchError> {
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
        if self.operation.moves_data() && self.blocks() == 0 {
            let (size, block) = (self.file_bytes, self.block_bytes);
            return refuse(format!("a file of {size} bytes holds no block of {block} bytes"));
        }
        self.check_times()?;
        self.check_names()?;
        self.check_verify()
    }

    fn check_times(&self) -> Result<(), BenchError> {
        let seconds = match self.length {
            Length::Seconds(seconds) => seconds,
            Length::Operations(0) => {
                return refuse("a run of 0 operations measures nothing".into());
            }
            Length::Operations(_) | Length::Bytes { .. } => 1.0,
        };
        let all = [("run time", seconds), ("warm-up", self.warmup_s), ("drain", self.drain_s)];
        for (name, value) in all {
            if !(0.0..=604_800.0).contains(&value) {
                return refuse(format!("{name} is {value} s; it must be from 0 to a week"));
            }
        }
        if seconds == 0.0 {
            return refuse("a run of 0 s measures nothing".into());
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), BenchError> {
        let name = &self.directory;
        if name.is_empty() || name.len() > 200 || name.contains('/') || name.starts_with('.') {
            return refuse(format!(
                "directory {name:?} must be one plain name of 1 to 200 bytes, not starting with a dot"
            ));
        }
        if let Operation::Data { read_percent, .. } = self.operation
            && read_percent > 100
        {
            return refuse(format!("read percentage {read_percent} is over 100"));
        }
        if let Layout::Written { block_bytes } = self.layout
            && !(512..=IO_BYTES_MAX).contains(&block_bytes)
        {
            return refuse(format!(
                "layout block {block_bytes} must be from 512 to {IO_BYTES_MAX} bytes"
            ));
        }
        Ok(())
    }

    fn check_verify(&self) -> Result<(), BenchError> {
        if self.verify.is_none() {
            return Ok(());
        }
        if !self.operation.writes() {
            return refuse("verification needs a workload that writes".into());
        }
        if self.block_bytes < crate::verify::STAMP_BYTES_MIN {
            let least = crate::verify::STAMP_BYTES_MIN;
            return refuse(format!("verification needs blocks of at least {least} bytes"));
        }
        let outstanding = u64::from(self.jobs) * u64::from(self.depth);
        let blocks = self.blocks().saturating_mul(u64::from(self.files));
        if blocks < outstanding.saturating_mul(2) {
            return refuse(format!(
                "verification needs at least two blocks for each of {outstanding} requests in \
                 flight, and the files hold {blocks}: make them larger or the depth smaller"
            ));
        }
        Ok(())
    }
}

fn refuse(message: String) -> Result<(), BenchError> {
    Err(BenchError::Workload(message))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(message(|w| w.file_bytes = 100).contains("holds no block"));
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

    #[test]
    fn a_workload_survives_json() {
        let workload = Workload { verify: Some(VerifyScope::Sample(9)), ..Workload::default() };
        let json = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
    }
}
