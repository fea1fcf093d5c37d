//! `make wide`: a directory of a million entries, on ext4 and XFS: created, listed in both ways and
//! emptied, in memory of the server that does not grow with the number of entries. Between listing
//! and emptying it, names are opened over SMB in another case, and files created over SMB and NFS
//! side by side ([`smb`]).
//!
//! Not here: the same with 20,000 entries on any file system, which is a test of `crates/weir`.

mod smb;

use crate::campaign::{self, Campaign, Origin, Report};
use crate::disk::{Disk, Filesystem};
use crate::judge::{self, Check};
use crate::process::resident_mib;
use crate::sandbox;
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use smb::SmbCost;
use std::path::PathBuf;
use std::time::Instant;
use weir_core::Credentials;
use weir_load::engine::Session;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, MkdirArgs, ReaddirArgs, ReaddirplusArgs,
    RemoveArgs, Res, RmdirArgs, Sattr3, Status,
};
use weir_report::{Column, Page, Table, figure};

/// Calls that are sent before their replies are read.
const DEPTH: u32 = 128;
/// The memory that the server may take beyond that before the first entry (MiB): the allocator
/// keeps up to 2 MiB for each of the 64 disk threads, and an open object takes about 1 KiB.
const GROWTH_MIB_MAX: f64 = 320.0;
/// Least size of a file system, and its size for each entry: ext4 makes one inode for each 16 KiB.
const DISK_BYTES_MIN: u64 = 6 << 30;
const DISK_BYTES_PER_ENTRY: u64 = 20 << 10;
/// The volume, and the directory in it.
const VOLUME: &str = "wide";
const DIRECTORY: &str = "wide";
/// Bytes of a page of a listing.
const PAGE_BYTES: u32 = 64 << 10;
/// The programs that the campaign needs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 5] = [
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mount", "mount"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// Create, list and empty a directory of many entries on ext4 and XFS, as root, and measure times
/// and the memory of the server, over NFS and SMB. The rules of opens over SMB are those of a
/// million entries.
#[derive(Debug, Args)]
pub(crate) struct Wide {
    /// Server program [default: the one in the directory of this program].
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Directory for file system images and logs; it needs 6 GiB.
    #[arg(long, default_value = "target/wide")]
    work: PathBuf,
    /// Directory for wide.json and wide.md.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of entries.
    #[arg(long, default_value_t = 1_000_000, env = "WEIR_WIDE_ENTRIES",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    entries: u32,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
struct Findings {
    #[serde(flatten)]
    origin: Origin,
    entries: u32,
    passed: bool,
    phases: Vec<PhaseCost>,
    smb: Vec<SmbCost>,
}

/// One phase on one file system.
#[derive(Debug, Serialize)]
struct PhaseCost {
    filesystem: Filesystem,
    phase: &'static str,
    seconds: f64,
    /// Seconds of each tenth of the entries, for phases with a call for each entry.
    tenths_s: Vec<f64>,
    /// Memory of the server at the end of the phase.
    memory_mib: f64,
}

impl Campaign for Wide {
    fn requirements(&self) -> Result<()> {
        sandbox::programs("wide directories", &PROGRAMS)?;
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
        let origin = Origin::here();
        let entries = u64::from(self.entries) + 2 * u64::from(smb::CREATES);
        let bytes = DISK_BYTES_MIN.max(entries * DISK_BYTES_PER_ENTRY);
        let (mut phases, mut costs, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        for filesystem in Filesystem::ALL {
            let name = filesystem.name();
            let disk = Disk::make(&work, &format!("wide-{name}"), filesystem, bytes)?;
            let log = work.join(format!("{name}.log"));
            let settings = Settings::temporary(&weir, disk.path().join("weir"), log)?;
            let settings = Settings { durability: "process", smb: true, ..settings };
            let mut directory = Directory::create(settings, self.entries, stop)?;
            let before_mib = directory.memory_mib()?;
            let mut measured = directory.measure(filesystem, &FILLING)?;
            directory.restart()?;
            let cost = SmbCost::measure(&mut directory, filesystem)?;
            directory.restart()?;
            measured.extend(directory.measure(filesystem, &EMPTYING)?);
            let most = measured.iter().map(|phase| phase.memory_mib).fold(0.0, f64::max);
            let check = Check::at_most("memory growth", most - before_mib, GROWTH_MIB_MAX, "MiB");
            let judged = std::iter::once(check.of(name)).chain(cost.checks());
            checks.extend(judged.inspect(Check::print));
            phases.extend(measured);
            costs.push(cost);
        }
        let passed = judge::all_kept(&checks);
        let findings = Findings { origin, entries: self.entries, passed, phases, smb: costs };
        let page = page(&findings, &checks);
        let contents = (&findings, &page, findings.origin.foot());
        Report::new(checks).files(self.out.as_deref(), &["wide.json", "wide.md"], contents)
    }
}

/// The directory, and a connection to its server.
struct Directory<'a> {
    server: TestServer,
    session: Session,
    root: Box<[u8]>,
    handle: Box<[u8]>,
    entries: u32,
    /// Seconds of each tenth of the entries in the present phase.
    tenths_s: Vec<f64>,
    stop: &'a Stop,
}

/// A phase of the measurement, and its name.
type Phase = (&'static str, fn(&mut Directory<'_>) -> Result<()>);

/// The phases before those of SMB, and after them.
const FILLING: [Phase; 3] = [
    ("CREATE", |directory| directory.create_all()),
    ("READDIR", |directory| directory.list("READDIR", Directory::page)),
    ("READDIRPLUS", |directory| directory.list("READDIRPLUS", Directory::page_plus)),
];
const EMPTYING: [Phase; 2] =
    [("REMOVE", |directory| directory.remove_all()), ("RMDIR", |directory| directory.remove())];

fn caller() -> Caller {
    Caller::sys(&Credentials::ROOT, b"weir-lab")
}

impl<'a> Directory<'a> {
    fn create(settings: Settings, entries: u32, stop: &'a Stop) -> Result<Self> {
        let (mut server, operator) = TestServer::start_new(settings)?;
        operator.make_pool("wide", 256, None)?;
        operator.make_volume(VOLUME, "wide", 125 * 1024)?;
        operator.share(VOLUME)?;
        operator.make_user(smb::USER, smb::UID, smb::PASSWORD)?;
        let root = server.mount(&format!("/{VOLUME}"), &caller())?;
        let session = Session::open(server.address(), None, caller())?;
        let (handle, tenths_s) = (Box::default(), Vec::new());
        let mut directory = Self { server, session, root, handle, entries, tenths_s, stop };
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
        directory.handle = directory.make(DIRECTORY, attributes)?;
        Ok(directory)
    }

    /// Makes a directory in the top directory. Gives its handle.
    fn make(&mut self, name: &str, attributes: Sattr3) -> Result<Box<[u8]>> {
        let location = DirOpArgs3 { dir: FileHandle3(&self.root), name: name.as_bytes() };
        let made =
            self.session.call(&MkdirArgs { location, attributes }, |result| match result {
                Res::Ok(made) => Ok(made.object.map(|handle| handle.0.into())),
                Res::Fail(status, _) => Err(status),
            })?;
        succeeded("MKDIR", made)?.context("MKDIR returned no handle")
    }

    /// Another connection to the server.
    fn connect(&self) -> Result<Session> {
        Ok(Session::open(self.server.address(), None, caller())?)
    }

    /// Stops the server and starts it again, so that its memory is that of a new process.
    fn restart(&mut self) -> Result<()> {
        self.server.stop();
        self.server.start()?;
        self.root = self.server.mount(&format!("/{VOLUME}"), &caller())?;
        self.session = self.connect()?;
        Ok(())
    }

    fn memory_mib(&self) -> Result<f64> {
        resident_mib(self.server.pid()?)
    }

    /// Measures `phases` in their order.
    fn measure(&mut self, filesystem: Filesystem, phases: &[Phase]) -> Result<Vec<PhaseCost>> {
        let mut costs = Vec::new();
        for &(phase, run) in phases {
            let begun = Instant::now();
            run(self).with_context(|| format!("{phase} on {}", filesystem.name()))?;
            let (seconds, memory_mib) = (begun.elapsed().as_secs_f64(), self.memory_mib()?);
            let tenths_s = std::mem::take(&mut self.tenths_s);
            weir_report::outln!(
                "# {} {phase}: {seconds:.1} s, {:.0} entries per second, {memory_mib:.0} MiB{}",
                filesystem.name(),
                f64::from(self.entries) / seconds,
                tenths(&tenths_s)
            );
            costs.push(PhaseCost { filesystem, phase, seconds, tenths_s, memory_mib });
        }
        Ok(costs)
    }

    fn create_all(&mut self) -> Result<()> {
        let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
        self.for_all(|location, caller, out, xid| {
            caller.call(out, xid, &CreateArgs { location, how });
        })
    }

    fn remove_all(&mut self) -> Result<()> {
        self.for_all(|object, caller, out, xid| caller.call(out, xid, &RemoveArgs { object }))
    }

    /// Calls for every entry, [`DEPTH`] at a time; each call must succeed.
    fn for_all(&mut self, call: impl Fn(DirOpArgs3<'_>, &Caller, &mut Vec<u8>, u32)) -> Result<()> {
        let (tenth, mut begun) = ((self.entries / 10).max(1), Instant::now());
        for first in (0..self.entries).step_by(DEPTH as usize) {
            self.stop.check()?;
            let numbers = first..(first + DEPTH).min(self.entries);
            let ends_tenth = numbers.end / tenth > first / tenth;
            for name in numbers.clone().map(name) {
                let place = DirOpArgs3 { dir: FileHandle3(&self.handle), name: name.as_bytes() };
                self.session.queue(|caller, out, xid| call(place, caller, out, xid));
            }
            for _ in numbers {
                answered(&mut self.session)?;
            }
            if ends_tenth {
                self.tenths_s.push(begun.elapsed().as_secs_f64());
                begun = Instant::now();
            }
        }
        Ok(())
    }

    /// Reads the whole directory, page by page; every name must come exactly once.
    fn list(
        &mut self,
        phase: &str,
        page: fn(&mut Self, u64, &mut Listing) -> Result<bool>,
    ) -> Result<()> {
        let mut listing =
            Listing { seen: vec![false; self.entries as usize], ..Listing::default() };
        loop {
            self.stop.check()?;
            let from = listing.cookie;
            if page(self, from, &mut listing)? {
                break;
            }
            ensure!(listing.cookie != from, "a page of {phase} is empty");
        }
        if let Some(name) = listing.repeated {
            bail!("{phase} returned {name} twice");
        }
        let missing = listing.seen.iter().filter(|seen| !**seen).count();
        ensure!(missing == 0, "{phase} left out {missing} names");
        Ok(())
    }

    /// One page of READDIR; `true` at the end of the directory.
    fn page(&mut self, cookie: u64, listing: &mut Listing) -> Result<bool> {
        let (dir, cookie_verifier) = (FileHandle3(&self.handle), [0; 8]);
        let args = ReaddirArgs { dir, cookie, cookie_verifier, count: PAGE_BYTES };
        let page = self.session.call(&args, |result| match result {
            Res::Ok(page) => {
                page.entries.iter().for_each(|entry| listing.add(entry.name, entry.cookie));
                Ok(page.eof)
            }
            Res::Fail(status, _) => Err(status),
        })?;
        succeeded("READDIR", page)
    }

    /// One page of READDIRPLUS; `true` at the end of the directory.
    fn page_plus(&mut self, cookie: u64, listing: &mut Listing) -> Result<bool> {
        let (dir, cookie_verifier) = (FileHandle3(&self.handle), [0; 8]);
        let (dir_count, max_count) = (PAGE_BYTES, PAGE_BYTES);
        let args = ReaddirplusArgs { dir, cookie, cookie_verifier, dir_count, max_count };
        let page = self.session.call(&args, |result| match result {
            Res::Ok(page) => {
                let mut complete = true;
                for entry in page.entries.iter() {
                    complete &= entry.attributes.is_some() && entry.handle.is_some();
                    listing.add(entry.name, entry.cookie);
                }
                Ok((page.eof, complete))
            }
            Res::Fail(status, _) => Err(status),
        })?;
        let (eof, complete) = succeeded("READDIRPLUS", page)?;
        ensure!(complete, "READDIRPLUS left out attributes or handles");
        Ok(eof)
    }

    /// Removes the empty directory.
    fn remove(&mut self) -> Result<()> {
        let object = DirOpArgs3 { dir: FileHandle3(&self.root), name: DIRECTORY.as_bytes() };
        let removed = self.session.call(&RmdirArgs { object }, |result| match result {
            Res::Ok(_) => Ok(()),
            Res::Fail(status, _) => Err(status),
        })?;
        succeeded("RMDIR", removed)
    }
}

/// The names that a listing has returned.
#[derive(Default)]
struct Listing {
    cookie: u64,
    seen: Vec<bool>,
    repeated: Option<String>,
}

impl Listing {
    /// Notes an entry. `.` and `..` are not counted.
    fn add(&mut self, name: &[u8], cookie: u64) {
        self.cookie = cookie;
        let number = str::from_utf8(name).ok().and_then(number);
        if let Some(seen) = number.and_then(|number| self.seen.get_mut(number))
            && std::mem::replace(seen, true)
        {
            self.repeated = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
}

/// The times of tenths in words, so that one that grows is seen.
fn tenths(seconds: &[f64]) -> String {
    let each: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.1}")).collect();
    if each.is_empty() { String::new() } else { format!("; each tenth (s): {}", each.join(" ")) }
}

const PREFIX: &str = "a-name-of-the-usual-length-";

fn name(number: u32) -> String {
    format!("{PREFIX}{number:08}")
}

fn number(name: &str) -> Option<usize> {
    name.strip_prefix(PREFIX)?.parse().ok()
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

fn page(findings: &Findings, checks: &[Check]) -> Page {
    let lead = format!(
        "A directory of {} entries, created, listed and emptied over NFS, and opened from over \
         SMB, by make wide.",
        findings.entries
    );
    let mut page = Page::new("Wide directories", &lead);
    let sentence = if findings.passed { "Every bar was kept." } else { "A bar was missed." };
    page.verdict(findings.passed, sentence);
    page.table(&judge::table(checks));
    let rows = findings.phases.iter().map(|phase| {
        vec![
            phase.filesystem.name().into(),
            phase.phase.into(),
            format!("{:.1}", phase.seconds).into(),
            figure(f64::from(findings.entries) / phase.seconds).into(),
            format!("{:.0}", phase.memory_mib).into(),
        ]
    });
    page.table(&Table {
        columns: vec![
            Column::words("file system"),
            Column::words("phase"),
            Column::figures("seconds"),
            Column::figures("entries per second"),
            Column::figures("memory, MiB"),
        ],
        rows: rows.collect(),
    });
    page.table(&smb::table(&findings.smb));
    page.table(&smb::creates(&findings.smb));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_finds_names_that_are_missing_or_come_twice() {
        let mut listing = Listing { seen: vec![false; 3], ..Listing::default() };
        for (entry, cookie) in [(".".to_owned(), 1), (name(0), 2), (name(2), 3)] {
            listing.add(entry.as_bytes(), cookie);
        }
        assert_eq!((listing.cookie, listing.seen.as_slice()), (3, [true, false, true].as_slice()));
        assert_eq!(listing.repeated, None);
        listing.add(name(2).as_bytes(), 4);
        assert_eq!(listing.repeated, Some(name(2)));
    }
}
