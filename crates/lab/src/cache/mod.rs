//! `make cache`: the metadata cache of a volume, on and off, on the same files: LOOKUPs of many
//! names by a client that sends one request at a time, and by one with [`DEPTH`] in flight.
//!
//! Each round measures *cold* (the server was just started and the kernel's caches were emptied, so
//! each name is asked for once) and then *warm* (all names are asked for again). Not here: a store
//! that takes a millisecond for each name, which is the example `lookups` of `weir-store`.
//!
//! Nothing is judged: the report is the measurement.

mod present;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::disk::{Disk, Filesystem};
use crate::peers::cpu::Reading;
use crate::sandbox;
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;
use weir_api::{TermsChange, VolumeChange};
use weir_core::Credentials;
use weir_core::rng::Rng;
use weir_load::engine::Session;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, LookupArgs, MkdirArgs, Res, Sattr3, Status,
};

/// Requests in flight of the second client.
pub(super) const DEPTH: usize = 16;
/// Room for the files, the catalogue and the journals.
const DISK_BYTES: u64 = 3 << 30;
/// Files that are created before their replies are read.
const CREATES: usize = 128;
/// Directories that the files are spread over, so that a cold lookup reads blocks of its own.
const DIRECTORIES: usize = 64;
const VOLUME: &str = "cache";
/// The programs that the campaign needs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 5] = [
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// Measure LOOKUPs with the metadata cache of a volume on and off, on warm and cold ext4 and XFS,
/// as root, and write cache.json and cache.md.
#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for file system images and logs; it needs 3 GiB.
    #[arg(long, default_value = "target/cache")]
    work: PathBuf,
    /// Directory for the report.
    #[arg(long, default_value = "docs/performance")]
    out: PathBuf,
    /// Number of files.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    entries: u32,
    /// Number of rounds; in each, both settings take their turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// A pass over all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Pass {
    /// Nothing is in memory; one request at a time.
    Cold,
    /// All was asked for before; one request at a time.
    Warm,
    /// All was asked for before; many requests in flight.
    Deep,
}

impl Pass {
    /// All, in the order in which they come.
    pub(super) const ALL: [Self; 3] = [Self::Cold, Self::Warm, Self::Deep];

    /// Shown in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold, one at a time",
            Self::Warm => "warm, one at a time",
            Self::Deep => "warm, 16 in flight",
        }
    }
}

/// The result of one pass.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sample {
    pub(super) filesystem: Filesystem,
    pub(super) pass: Pass,
    /// Was the metadata cache on?
    pub(super) cached: bool,
    pub(super) round: u32,
    /// LOOKUPs per second.
    pub(super) per_second: f64,
    /// Median latency in µs; of many in flight, none is taken.
    pub(super) p50_us: Option<f64>,
    /// 99th percentile of it.
    pub(super) p99_us: Option<f64>,
    /// Processor time of the server and the kernel for a LOOKUP, in µs.
    pub(super) cpu_us: f64,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    #[serde(flatten)]
    pub(super) origin: Origin,
    pub(super) entries: u32,
    pub(super) rounds: u32,
    pub(super) samples: Vec<Sample>,
}

impl Campaign for Cache {
    fn requirements(&self) -> Result<()> {
        sandbox::programs("the metadata cache", &PROGRAMS)?;
        ensure!(sandbox::is_root(), "the campaign mounts file systems: run it as root");
        Ok(())
    }

    fn isolated(&self) -> bool {
        true
    }

    fn run(&self, stop: &Stop) -> Result<Report> {
        sandbox::loopback_up()?;
        let weir = campaign::weir_program(self.weir.as_deref())?;
        let work = campaign::work_directory(&self.work)?;
        let mut findings = Findings {
            origin: Origin::here(),
            entries: self.entries,
            rounds: self.rounds,
            samples: Vec::new(),
        };
        for filesystem in Filesystem::ALL {
            let disk = Disk::make(&work, "cache", filesystem, DISK_BYTES)?;
            let settings =
                Settings::temporary(&weir, disk.path().join("weir"), work.join("cache.log"))?;
            let settings = Settings { durability: "process", ..settings };
            weir_report::errln!("creating {} files on {}", self.entries, filesystem.name());
            let mut volume = Volume::create(settings, self.entries)?;
            volume.server.stop();
            disk.sync()?;
            for round in 0..self.rounds {
                // The setting that comes first changes, in case that matters.
                let first = round % 2 == 0;
                for cached in [first, !first] {
                    stop.check()?;
                    let samples = volume.measure(filesystem, cached, round)?;
                    samples.iter().for_each(present::print);
                    findings.samples.extend(samples);
                }
            }
        }
        let page = present::page(&findings);
        let contents = (&findings, &page, findings.origin.foot());
        Report::new(Vec::new()).files(Some(&self.out), &["cache.json", "cache.md"], contents)
    }
}

/// A volume with the files, and its server.
struct Volume {
    server: TestServer,
    entries: u32,
}

fn caller() -> Caller {
    Caller::sys(&Credentials::ROOT, b"weir-lab")
}

/// A connection, and the handles of the directories.
struct Client {
    session: Session,
    directories: Vec<Box<[u8]>>,
}

impl Volume {
    fn create(settings: Settings, entries: u32) -> Result<Self> {
        let (mut server, operator) = TestServer::start_new(settings)?;
        operator.make_pool("cache", 256, None)?;
        operator.make_volume(VOLUME, "cache", 125 * 1024)?;
        let root = server.mount(&format!("/{VOLUME}"), &caller())?;
        let mut session = Session::open(server.address(), None, caller())?;
        let mut directories = Vec::new();
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
        for number in 0..DIRECTORIES {
            let name = directory(number);
            let location = DirOpArgs3 { dir: FileHandle3(&root), name: name.as_bytes() };
            let made =
                session.call(&MkdirArgs { location, attributes }, |result| match result {
                    Res::Ok(made) => Ok(made.object.map(|handle| handle.0.into())),
                    Res::Fail(status, _) => Err(status),
                })?;
            directories.push(succeeded("MKDIR", made)?.context("MKDIR returned no handle")?);
        }
        let mut client = Client { session, directories };
        let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        let names: Vec<u32> = (0..entries).collect();
        client.for_all(&names, CREATES, |location, caller, out, xid| {
            caller.call(out, xid, &CreateArgs { location, how });
        })?;
        Ok(Self { server, entries })
    }

    /// All passes with one setting, by a server that is just started.
    fn measure(&mut self, filesystem: Filesystem, cached: bool, round: u32) -> Result<Vec<Sample>> {
        self.server.stop();
        std::fs::write("/proc/sys/vm/drop_caches", "3")
            .context("cannot empty the kernel's caches")?;
        self.server.start()?;
        let root = self.server.mount(&format!("/{VOLUME}"), &caller())?;
        let terms = TermsChange { metadata_cache: Some(Some(cached)), ..TermsChange::default() };
        let change = VolumeChange { terms, ..VolumeChange::default() };
        self.server.operator()?.change(VOLUME, &change)?;
        let session = Session::open(self.server.address(), None, caller())?;
        let mut client = Client::of(session, &root)?;
        let pid = self.server.pid()?;
        let mut samples = Vec::new();
        for pass in Pass::ALL {
            let names = shuffled(self.entries, u64::from(round) * 3 + pass as u64);
            let (before, begun) = (Reading::take(pid)?, Instant::now());
            let mut latencies = client.look_up(&names, pass)?;
            let seconds = begun.elapsed().as_secs_f64();
            let used = Reading::take(pid)?.since(&before);
            latencies.sort_by(f64::total_cmp);
            let count = f64::from(self.entries);
            samples.push(Sample {
                filesystem,
                pass,
                cached,
                round,
                per_second: count / seconds,
                p50_us: at(&latencies, 50),
                p99_us: at(&latencies, 99),
                cpu_us: (used.process_s + used.kernel_s) * 1e6 / count,
            });
        }
        Ok(samples)
    }
}

impl Client {
    /// A client that knows the directories below `root`.
    fn of(mut session: Session, root: &[u8]) -> Result<Self> {
        let mut directories = Vec::new();
        for number in 0..DIRECTORIES {
            let name = directory(number);
            let what = DirOpArgs3 { dir: FileHandle3(root), name: name.as_bytes() };
            directories.push(look_up(&mut session, what)?);
        }
        Ok(Self { session, directories })
    }

    /// Asks for all names once. The latency of each in µs, if they are asked for one by one.
    fn look_up(&mut self, names: &[u32], pass: Pass) -> Result<Vec<f64>> {
        if pass == Pass::Deep {
            self.for_all(names, DEPTH, |what, caller, out, xid| {
                caller.call(out, xid, &LookupArgs { what });
            })?;
            return Ok(Vec::new());
        }
        let mut latencies = Vec::with_capacity(names.len());
        for number in names {
            let (dir, name) = place(&self.directories, *number)?;
            let what = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
            let begun = Instant::now();
            look_up(&mut self.session, what)?;
            latencies.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok(latencies)
    }

    /// Calls for every name, with so many in flight; each call must succeed.
    fn for_all(
        &mut self,
        names: &[u32],
        depth: usize,
        call: impl Fn(DirOpArgs3<'_>, &Caller, &mut Vec<u8>, u32),
    ) -> Result<()> {
        let mut outstanding = 0;
        for number in names {
            if outstanding == depth {
                answered(&mut self.session)?;
                outstanding -= 1;
            }
            let (dir, name) = place(&self.directories, *number)?;
            let place = DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() };
            self.session.queue(|caller, out, xid| call(place, caller, out, xid));
            outstanding += 1;
        }
        (0..outstanding).try_for_each(|_| answered(&mut self.session))
    }
}

fn directory(number: usize) -> String {
    format!("directory-{number:03}")
}

/// The directory and the name of the file of this number.
fn place(directories: &[Box<[u8]>], number: u32) -> Result<(&[u8], String)> {
    let directory = directories.get(number as usize % DIRECTORIES).context("no directory")?;
    Ok((directory, format!("a-name-of-the-usual-length-{number:08}")))
}

/// All numbers below `entries`, in an order that depends on `seed`.
fn shuffled(entries: u32, seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(weir_core::rng::mix(seed));
    let mut names: Vec<_> = (0..entries).map(|number| (rng.next(), number)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, number)| number).collect()
}

/// The value that so many percent of the `sorted` ones do not exceed.
fn at(sorted: &[f64], percent: usize) -> Option<f64> {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied()
}

/// Looks a name up. Gives the handle.
fn look_up(session: &mut Session, what: DirOpArgs3<'_>) -> Result<Box<[u8]>> {
    let found = session.call(&LookupArgs { what }, |result| match result {
        Res::Ok(found) => Ok(found.object.0.into()),
        Res::Fail(status, _) => Err(status),
    })?;
    succeeded("LOOKUP", found)
}

/// Receives the next response, whose status must be success.
fn answered(session: &mut Session) -> Result<()> {
    // The results of every procedure begin with the status.
    let done =
        session.answer(|reply| Ok(reply.body.is_ok_and(|results| results.starts_with(&[0; 4]))))?;
    ensure!(done, "a call failed");
    Ok(())
}

fn succeeded<T>(call: &str, outcome: Result<T, Status>) -> Result<T> {
    outcome.map_err(|status| anyhow::anyhow!("{call}: status {}", status.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_asks_for_every_name_once_in_another_order() {
        let (one, other) = (shuffled(1000, 1), shuffled(1000, 2));
        assert_ne!(one, other);
        let mut sorted = one;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1000));
    }

    #[test]
    fn percentiles_are_of_what_there_is() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!((at(&values, 50), at(&values, 99)), (Some(50.0), Some(99.0)));
        assert_eq!(at(&[7.0], 99), Some(7.0));
        assert_eq!(at(&[], 50), None);
    }
}
