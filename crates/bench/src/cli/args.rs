//! The arguments that describe one load, and their conversion to a workload.

use super::place::WhoArgs;
use super::values::{client_delay, rate, time};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use weir_core::units::parse_bytes;
use weir_load::error::BenchError;
use weir_load::target::Target;
use weir_load::workload::{
    Layout, Length, Operation, Pattern, Rate, Stability, VerifyScope, Workload,
};

/// One load, described by options.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// Target: `nfs://HOST[,HOST…][:PORT]/EXPORT[?mountport=PORT&resvport=1&uid=N&gid=N]`,
    /// `smb://[USER@]HOST[,HOST…][:PORT]/SHARE[/DIRECTORY]`, or a directory.
    ///
    /// The default ports are 2049 and 445. MOUNT is asked on the port of NFS, and then on the port
    /// that the port mapper names, unless ?mountport= is given; ?resvport=1 takes source ports
    /// below 1024. Several hosts are addresses of one server: clients are assigned to them
    /// round-robin. The password of the SMB user is read from the environment variable
    /// WEIR_SMB_PASSWORD or from --smb-password-file.
    #[arg(required = true)]
    pub target: Option<String>,

    /// Type of requests.
    #[arg(long, value_enum, default_value_t = Mode::Randread, help_heading = "Load")]
    pub rw: Mode,
    /// Percentage of reads for randrw and rw.
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Load",
          value_parser = clap::value_parser!(u8).range(0..=100))]
    pub read_percent: u8,
    /// Block size of reads and writes, at most 1MiB.
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block_bytes,
          help_heading = "Load")]
    pub bs: u32,
    /// Number of requests that each job keeps in flight.
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Load")]
    pub depth: u32,
    /// Number of independent request streams.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub jobs: u32,
    /// Number of simulated clients, each with its own source address; jobs are assigned to clients
    /// round-robin.
    ///
    /// For a target in 127.0.0.0/8 the source addresses are 127.0.1.1 and up.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub clients: u32,
    /// Number of connections per client [default: one per job of the client].
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub connections: Option<u32>,
    /// Fixed total rate of all jobs, in operations per second (5000) or bytes per second (64MiB/s).
    /// Latency is then measured from the scheduled time of each request, so that delays caused by a
    /// stall are included (no coordinated omission).
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Load")]
    pub rate: Option<Rate>,
    /// Simulated network round-trip time per client (200us,2ms); several values are assigned to
    /// clients round-robin.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = client_delay,
          help_heading = "Load")]
    pub client_delay: Vec<u64>,
    /// Stability level requested for writes.
    #[arg(long, value_enum, default_value_t = StabilityArg::Unstable, help_heading = "Load")]
    pub stability: StabilityArg,
    /// Send a COMMIT (over SMB a FLUSH) of the file after this many writes of a job.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          help_heading = "Load")]
    pub commit_every: Option<u32>,

    /// Duration of the measurement.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time,
          help_heading = "Length")]
    pub time: Duration,
    /// Stop after this many operations instead of after a time; there is no warm-up.
    #[arg(long, value_name = "N", conflicts_with = "time", help_heading = "Length")]
    pub ops: Option<u64>,
    /// Duration of the warm-up. For a throttled volume, it should cover two turnovers of the queue.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time,
          help_heading = "Length")]
    pub warmup: Duration,
    /// Maximum time to wait at the end for requests in flight.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time,
          help_heading = "Length")]
    pub drain: Duration,

    /// Number of files [default: one per job]. With fewer files, jobs share them.
    #[arg(long, value_name = "N", help_heading = "Files")]
    pub files: Option<u32>,
    /// Size of each file.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes,
          help_heading = "Files")]
    pub size: u64,
    /// Block size for writing the files before the measurement. This can affect results: on ext4,
    /// small overwrites of data written in large blocks cost twenty times as much.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = block_bytes,
          help_heading = "Files")]
    pub layout_block: u32,
    /// Create sparse files, without writing their data.
    #[arg(long, conflicts_with_all = ["layout_block", "reuse"], help_heading = "Files")]
    pub sparse: bool,
    /// Use the files of an earlier run with --keep as they are, and leave them.
    #[arg(long, conflicts_with = "layout_block", help_heading = "Files")]
    pub reuse: bool,
    /// Keep the files after the run.
    #[arg(long, help_heading = "Files")]
    pub keep: bool,
    /// Directory for the files, below the export or path; one that holds anything is refused.
    #[arg(long, value_name = "NAME", default_value = "weir-bench", help_heading = "Files")]
    pub dir: String,
    /// Read back and verify written data: everything, or this number of blocks.
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, require_equals = true,
          default_missing_value = "all", value_parser = verify_scope, help_heading = "Files")]
    pub verify: Option<VerifyScope>,

    /// User, group and addresses of the client.
    #[command(flatten)]
    pub who: WhoArgs,
    /// Number of worker threads (for NFS and SMB; a path has a thread for each request in flight).
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Client")]
    pub threads: u32,
    /// Open files with O_DIRECT (for a path). Over NFS, writes are FILE_SYNC, as the Linux kernel
    /// sends direct writes.
    #[arg(long, help_heading = "Client")]
    pub direct: bool,
    /// Seed of the pseudo-random sequences.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Client")]
    pub seed: u64,
}

/// Options for the result of one load.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Also write the result as JSON to this file.
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub json: Option<PathBuf>,
    /// Name of the run in the result.
    #[arg(long, default_value = "run", help_heading = "Result")]
    pub name: String,
    /// Measure the CPU time of this server process on this machine.
    #[arg(long, value_name = "PID", help_heading = "Result")]
    pub server_pid: Option<u32>,
    /// Do not show progress.
    #[arg(long, short, help_heading = "Result")]
    pub quiet: bool,
}

/// Type of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Read blocks in random order.
    Randread,
    /// Write blocks in random order.
    Randwrite,
    /// Read and write blocks in random order.
    Randrw,
    /// Read blocks sequentially.
    Read,
    /// Write blocks sequentially.
    Write,
    /// Read and write blocks sequentially.
    Rw,
    /// NULL: cost of the protocol alone.
    Null,
    /// GETATTR of the files.
    Getattr,
    /// ACCESS of the files.
    Access,
    /// LOOKUP of the files.
    Lookup,
    /// CREATE a new file, then REMOVE it.
    CreateRemove,
}

/// Stability level requested for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StabilityArg {
    /// Data may be lost before a COMMIT.
    Unstable,
    /// Data is on stable storage.
    DataSync,
    /// Data and attributes are on stable storage.
    FileSync,
}

impl LoadArgs {
    /// The target as written by the user.
    #[must_use]
    pub fn target_text(&self) -> &str {
        // Without one the command line could not be read.
        self.target.as_deref().unwrap_or_default()
    }

    /// The target, with user, group and addresses of the client.
    ///
    /// # Errors
    /// [`BenchError::Target`] if it is neither a URL nor a path.
    pub fn target(&self) -> Result<Target, BenchError> {
        self.who.target(self.target_text())
    }

    /// The workload, checked.
    ///
    /// # Errors
    /// [`BenchError::Workload`] says which setting to change.
    pub fn workload(&self, name: &str) -> Result<Workload, BenchError> {
        let per_client = self.jobs.div_ceil(self.clients.max(1)).max(1);
        let workload = Workload {
            name: name.to_owned(),
            operation: self.rw.operation(self.read_percent),
            block_bytes: self.bs,
            depth: self.depth,
            jobs: self.jobs,
            clients: self.clients,
            connections: self.connections.unwrap_or(per_client),
            files: self.files.unwrap_or(self.jobs),
            file_bytes: self.size,
            stability: match self.stability {
                StabilityArg::Unstable => Stability::Unstable,
                StabilityArg::DataSync => Stability::DataSync,
                StabilityArg::FileSync => Stability::FileSync,
            },
            commit_every: self.commit_every,
            length: match self.ops {
                Some(count) => Length::Operations(count),
                None => Length::Seconds(self.time.as_secs_f64()),
            },
            warmup_s: self.warmup.as_secs_f64(),
            drain_s: self.drain.as_secs_f64(),
            layout: match (self.reuse, self.sparse) {
                (true, _) => Layout::Existing,
                (false, true) => Layout::Sparse,
                (false, false) => Layout::Written { block_bytes: self.layout_block },
            },
            verify: self.verify,
            keep: self.keep,
            directory: self.dir.clone(),
            threads: self.threads,
            direct: self.direct,
            seed: self.seed,
            rate: self.rate.clone().unwrap_or_default(),
            client_delays_us: self.client_delay.clone(),
            ..Workload::default()
        };
        workload.check()?;
        Ok(workload)
    }
}

impl Mode {
    const fn operation(self, read_percent: u8) -> Operation {
        let (random, sequential) = (Pattern::Random, Pattern::Sequential);
        match self {
            Self::Randread => Operation::Data { pattern: random, read_percent: 100 },
            Self::Randwrite => Operation::Data { pattern: random, read_percent: 0 },
            Self::Randrw => Operation::Data { pattern: random, read_percent },
            Self::Read => Operation::Data { pattern: sequential, read_percent: 100 },
            Self::Write => Operation::Data { pattern: sequential, read_percent: 0 },
            Self::Rw => Operation::Data { pattern: sequential, read_percent },
            Self::Null => Operation::Null,
            Self::Getattr => Operation::Getattr,
            Self::Access => Operation::Access,
            Self::Lookup => Operation::Lookup,
            Self::CreateRemove => Operation::CreateRemove,
        }
    }
}

fn block_bytes(text: &str) -> Result<u32, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map_err(|_| format!("{text:?} is over 1MiB"))
}

pub(super) fn verify_scope(text: &str) -> Result<VerifyScope, String> {
    match text {
        "all" => Ok(VerifyScope::All),
        count => count
            .parse()
            .map(VerifyScope::Sample)
            .map_err(|_| format!("{text:?} is neither \"all\" nor a number of blocks")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: LoadArgs,
    }

    fn parse(line: &str) -> Result<LoadArgs, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Program::try_parse_from(words).map(|program| program.args).map_err(|e| e.to_string())
    }

    #[test]
    fn the_arguments_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn the_brief_form_means_what_it_says() {
        let args = parse(
            "nfs://127.0.0.1:2050/vol?uid=7 --rw randrw --read-percent 30 --bs 8KiB --depth 32 \
             --jobs 40 --clients 20 --time 1m --warmup 5s --size 64MiB --verify=500",
        )
        .unwrap();
        let workload = args.workload("run").unwrap();
        let operation = Operation::Data { pattern: Pattern::Random, read_percent: 30 };
        assert_eq!(workload.operation, operation);
        assert_eq!((workload.block_bytes, workload.connections, workload.files), (8192, 2, 40));
        assert_eq!(workload.length, Length::Seconds(60.0));
        assert_eq!(workload.verify, Some(VerifyScope::Sample(500)));
        let Target::Nfs(target) = args.target().unwrap() else { panic!("an NFS target") };
        assert_eq!(target.uid, 7);
        assert_eq!(target.gid, rustix::process::getegid().as_raw());
    }

    #[test]
    fn a_rate_counts_operations_or_bytes_and_delays_are_microseconds() {
        let workload =
            |line: &str| parse(&format!("/mnt {line}")).unwrap().workload("run").unwrap();
        assert_eq!(workload("").rate, Rate::Unlimited);
        assert_eq!(workload("--rate 5000").rate, Rate::Operations(5000.0));
        assert_eq!(workload("--rate 64MiB/s").rate, Rate::Bytes(67_108_864.0));
        let delays =
            workload("--jobs 3 --clients 3 --client-delay 200us,2ms,0.5ms").client_delays_us;
        assert_eq!(delays, [200, 2000, 500]);
        for line in ["/mnt --rate 0", "/mnt --rate fast", "/mnt --client-delay 2"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn verify_alone_means_all_and_takes_no_argument_away() {
        let args = parse("--rw write --verify /mnt/vol").unwrap();
        assert_eq!(args.verify, Some(VerifyScope::All));
        assert_eq!(args.target().unwrap(), Target::Path("/mnt/vol".into()));
    }

    #[test]
    fn contradictions_are_refused() {
        for line in [
            "/mnt --time 1m --ops 5",
            "/mnt --reuse --sparse",
            "/mnt --read-percent 101",
            "/mnt --bs 8GiB",
            "/mnt --verify=some",
            "/mnt --commit-every 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        let error = parse("ftp://host/share").unwrap().target().unwrap_err().to_string();
        assert!(error.contains("none of nfs://"), "{error}");
        let error = parse("/mnt --bs 2MiB").unwrap().workload("run").unwrap_err().to_string();
        assert!(error.contains("block size"), "{error}");
    }
}
