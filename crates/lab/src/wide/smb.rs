//! The SMB part of the campaign: opens of names in another case than the directory has them, with
//! the index that the first of them builds, and files created over SMB and NFS side by side.

use super::{DIRECTORY, Directory, name, tenths};
use crate::disk::Filesystem;
use crate::judge::Check;
use crate::process::resident_mib;
use crate::stop::Stop;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use weir_core::rng::Rng;
use weir_load::engine::{Session, SmbReply, SmbSession, smb_outcome};
use weir_load::error::BenchError;
use weir_load::{Control, Password, SmbTarget};
use weir_nfs::v3::wire::{CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, Sattr3};
use weir_report::{Column, Table, figure};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::{
    AccessMask, CreateContexts, CreateDisposition, CreateOptions, FileId, Status,
};
use weir_smb_client::{Open, Request};

/// The user of the SMB clients.
pub(super) const USER: &str = "wide";
pub(super) const UID: u32 = 1000;
pub(super) const PASSWORD: &str = "a password of the campaign";
/// The directory in which files are created over both protocols.
const BESIDE: &str = "beside";
/// Opens of each kind of name, one at a time.
const OPENS: usize = 20_000;
/// Files that are created over SMB, and as many over NFS.
pub(super) const CREATES: u32 = 100_000;
/// Parts of the creates whose times are compared.
const STEPS: u32 = 10;
/// Creates over NFS that are sent at once, for as many that were answered over SMB.
const BATCH: u32 = 16;

/// The bars, for a directory of a million names: the time of the open that builds the index, the
/// memory of the index, and the time of 99 of 100 opens after it.
const FIRST_MS_MAX: f64 = 2000.0;
const INDEX_MIB_MAX: f64 = 64.0;
const OPEN_P99_US_MAX: f64 = 1000.0;
/// The bar for the median of the later half of the steps, by that of the earlier half. A cost that
/// doubles over the run makes it 1.4. Single steps last half a second, and are slowed by whatever
/// else the machine does.
const SLOWDOWN_MAX: f64 = 1.35;

/// The costs of the SMB part on one file system.
#[derive(Debug, Serialize)]
pub(super) struct SmbCost {
    filesystem: Filesystem,
    /// Time of the first open of a name in another case, which waits for the index.
    first_open_ms: f64,
    /// Growth of the server's memory by that open.
    index_mib: f64,
    opens: Vec<OpenCost>,
    creates: u32,
    /// Seconds of each tenth of the creates over SMB.
    create_tenths_s: Vec<f64>,
}

/// Times of opens, one request in flight.
#[derive(Debug, Serialize)]
struct OpenCost {
    names: &'static str,
    opens: usize,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

/// The names that are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    AsTheyAre,
    OtherCase,
    Missing,
}

impl Names {
    const ALL: [Self; 3] = [Self::AsTheyAre, Self::OtherCase, Self::Missing];

    const fn words(self) -> &'static str {
        match self {
            Self::AsTheyAre => "as they are",
            Self::OtherCase => "in another case",
            Self::Missing => "that do not exist",
        }
    }

    /// The path of the file with this number. Missing names have numbers after the last.
    fn path(self, number: u32, entries: u32) -> String {
        let name = match self {
            Self::AsTheyAre => name(number),
            Self::OtherCase => name(number).to_ascii_uppercase(),
            Self::Missing => name(number + entries).to_ascii_uppercase(),
        };
        format!("{DIRECTORY}\\{name}")
    }

    const fn outcome(self) -> Status {
        match self {
            Self::AsTheyAre | Self::OtherCase => Status::SUCCESS,
            Self::Missing => Status::OBJECT_NAME_NOT_FOUND,
        }
    }
}

impl SmbCost {
    /// Measures the opens and then the creates.
    pub(super) fn measure(directory: &mut Directory<'_>, filesystem: Filesystem) -> Result<Self> {
        let target = target(directory);
        let mut session = SmbSession::open(&target, (target.address, None))?;
        let (entries, stop, pid) = (directory.entries, directory.stop, directory.server.pid()?);
        let mut rng = Rng::new(u64::from(entries));
        let (mut opens, mut first_open_ms, mut index_mib) = (Vec::new(), 0.0, 0.0);
        for names in Names::ALL {
            if names == Names::OtherCase {
                let before_mib = resident_mib(pid)?;
                let first = open(&mut session, &names.path(0, entries), names.outcome())?;
                first_open_ms = first.as_secs_f64() * 1e3;
                index_mib = resident_mib(pid)? - before_mib;
            }
            let mut times = Vec::with_capacity(OPENS);
            for _ in 0..OPENS {
                stop.check()?;
                let number = u32::try_from(rng.below(entries.into()))?;
                times.push(open(&mut session, &names.path(number, entries), names.outcome())?);
            }
            opens.push(OpenCost::new(names.words(), times));
        }
        let create_tenths_s = create(directory, &mut session)?;
        let cost =
            Self { filesystem, first_open_ms, index_mib, opens, creates: CREATES, create_tenths_s };
        cost.print();
        Ok(cost)
    }

    /// The rules of the SMB part, for a directory of a million names.
    pub(super) fn checks(&self) -> Vec<Check> {
        // Opens of names as they are need no index: their times are there to compare.
        let judged = self.opens.iter().filter(|open| open.names != Names::AsTheyAre.words());
        let opens = judged.map(|open| {
            let what = format!("SMB opens of names {}, p99", open.names);
            Check::at_most(&what, open.p99_us, OPEN_P99_US_MAX, "µs")
        });
        let first = "the first SMB open of a name in another case";
        let slowdown = slowdown(&self.create_tenths_s);
        let rule = format!(
            "creates over SMB and NFS in one directory: median of the last five tenths, at most \
             {SLOWDOWN_MAX} times that of the first five"
        );
        let others = [
            Check::at_most(first, self.first_open_ms, FIRST_MS_MAX, "ms"),
            Check::at_most("the index of names", self.index_mib, INDEX_MIB_MAX, "MiB"),
            Check::new(rule, format!("{slowdown:.2} times"), slowdown <= SLOWDOWN_MAX),
        ];
        others.into_iter().chain(opens).map(|check| check.of(self.filesystem.name())).collect()
    }

    fn print(&self) {
        let name = self.filesystem.name();
        weir_report::outln!(
            "# {name} first SMB open in another case: {:.0} ms, {:.1} MiB",
            self.first_open_ms,
            self.index_mib
        );
        for OpenCost { names, opens, p50_us, p99_us, max_us } in &self.opens {
            weir_report::outln!(
                "# {name} {opens} SMB opens of names {names}: p50 {p50_us:.0} µs, p99 \
                 {p99_us:.0} µs, longest {max_us:.0} µs"
            );
        }
        let seconds: f64 = self.create_tenths_s.iter().sum();
        weir_report::outln!(
            "# {name} SMB CREATE beside NFS: {seconds:.1} s, {:.0} per second{}",
            f64::from(self.creates) / seconds,
            tenths(&self.create_tenths_s)
        );
    }
}

impl OpenCost {
    fn new(names: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
        };
        Self { names, opens: times.len(), p50_us: at(50), p99_us: at(99), max_us: at(100) }
    }
}

/// The median of the later half of the steps, by that of the earlier half.
fn slowdown(steps_s: &[f64]) -> f64 {
    let median = |steps: &[f64]| {
        let mut steps = steps.to_vec();
        steps.sort_unstable_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (earlier, later) = steps_s.split_at(steps_s.len() / 2);
    median(later) / median(earlier)
}

fn target(directory: &Directory<'_>) -> SmbTarget {
    let password = Password::new(PASSWORD.to_owned());
    SmbTarget::new(directory.server.smb_address(), super::VOLUME, USER, password)
}

/// The time of one CREATE of a path, which must end with `outcome`. An open that it makes is
/// closed.
fn open(session: &mut SmbSession, path: &str, outcome: Status) -> Result<Duration> {
    let path = to_utf16(path);
    let access = AccessMask::READ_DATA | AccessMask::READ_ATTRIBUTES;
    let create = request(&path, access, CreateDisposition::Open);
    let begun = Instant::now();
    let replies = session.call(&[create])?;
    let time = begun.elapsed();
    let status = smb_outcome(&replies);
    ensure!(status == outcome, "a CREATE was answered {status}");
    if status == Status::SUCCESS {
        let created = replies.first().map(SmbReply::created).context("CREATE had no answer")?;
        let closed = session.call(&[Request::Close(created?.file)])?;
        ensure!(smb_outcome(&closed) == Status::SUCCESS, "a CLOSE failed");
    }
    Ok(time)
}

fn request(name: &[u8], access: AccessMask, disposition: CreateDisposition) -> Request<'_> {
    let (options, contexts) = (CreateOptions::NON_DIRECTORY_FILE, CreateContexts::default());
    Request::Create(Open { name, access, disposition, options, contexts })
}

/// Creates files over SMB, and as many over NFS beside it, in a new directory. Gives the seconds of
/// each step of the creates over SMB.
fn create(directory: &mut Directory<'_>, smb: &mut SmbSession) -> Result<Vec<f64>> {
    let handle = directory.make(BESIDE, Sattr3 { mode: Some(0o777), ..Sattr3::NONE })?;
    let mut nfs = directory.connect()?;
    let stop = directory.stop;
    let (allow, allowed) = channel();
    std::thread::scope(|scope| {
        let beside = Builder::new().name("beside".to_owned());
        let beside =
            beside.spawn_scoped(scope, move || create_beside(&mut nfs, &handle, &allowed))?;
        let steps = create_over_smb(smb, &allow, stop);
        // The other side ends.
        drop(allow);
        let beside = beside.join().map_err(|_| anyhow::anyhow!("the NFS client panicked"))?;
        let steps = steps?;
        beside.context("creating files over NFS beside SMB")?;
        Ok(steps)
    })
}

fn create_over_smb(smb: &mut SmbSession, allow: &Sender<()>, stop: &Stop) -> Result<Vec<f64>> {
    let mut steps = Vec::new();
    let mut created = 0_u32;
    for step in 0..STEPS {
        let (each, begun) = (CREATES / STEPS, Instant::now());
        smb.ahead(
            &Control::new(),
            step * each..(step + 1) * each,
            |session, token, number| {
                let path = to_utf16(&format!("{BESIDE}\\smb-{}", name(*number)));
                let access = AccessMask::WRITE_DATA | AccessMask::READ_ATTRIBUTES;
                let create = request(&path, access, CreateDisposition::Create);
                session.queue(token, &[create, Request::Close(FileId::PREVIOUS)])
            },
            |_, replies| {
                let status = smb_outcome(&replies);
                if status.is_error() {
                    let action = "creating a file over SMB".to_owned();
                    return Err(BenchError::Refused {
                        action,
                        status: status.to_string(),
                        hint: "",
                    });
                }
                created += 1;
                if created.is_multiple_of(BATCH) {
                    // If the other thread has failed, it reports that itself.
                    allow.send(()).ok();
                }
                Ok(None)
            },
        )?;
        steps.push(begun.elapsed().as_secs_f64());
        stop.check()?;
    }
    Ok(steps)
}

/// Creates [`BATCH`] files over NFS each time that it is allowed to.
fn create_beside(nfs: &mut Session, handle: &[u8], allowed: &Receiver<()>) -> Result<()> {
    let how = CreateHow3::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
    let mut next = 0..;
    while allowed.recv().is_ok() {
        for number in next.by_ref().take(BATCH as usize) {
            let name = format!("nfs-{}", name(number));
            let location = DirOpArgs3 { dir: FileHandle3(handle), name: name.as_bytes() };
            nfs.queue(|caller, out, xid| caller.call(out, xid, &CreateArgs { location, how }));
        }
        for _ in 0..BATCH {
            super::answered(nfs)?;
        }
    }
    Ok(())
}

/// The times of opens on all file systems.
pub(super) fn table(costs: &[SmbCost]) -> Table {
    let rows = costs.iter().flat_map(|cost| {
        cost.opens.iter().map(|open| {
            vec![
                cost.filesystem.name().into(),
                open.names.into(),
                open.opens.to_string().into(),
                figure(open.p50_us).into(),
                figure(open.p99_us).into(),
                figure(open.max_us).into(),
            ]
        })
    });
    Table {
        columns: vec![
            Column::words("file system"),
            Column::words("SMB opens of names"),
            Column::figures("opens"),
            Column::figures("p50, µs"),
            Column::figures("p99, µs"),
            Column::figures("longest, µs"),
        ],
        rows: rows.collect(),
    }
}

/// The creates of all file systems.
pub(super) fn creates(costs: &[SmbCost]) -> Table {
    let rows = costs.iter().map(|cost| {
        let seconds: f64 = cost.create_tenths_s.iter().sum();
        vec![
            cost.filesystem.name().into(),
            cost.creates.to_string().into(),
            figure(f64::from(cost.creates) / seconds).into(),
            format!("{:.2}", slowdown(&cost.create_tenths_s)).into(),
        ]
    });
    Table {
        columns: vec![
            Column::words("file system"),
            Column::figures("files created over SMB, and as many over NFS"),
            Column::figures("over SMB per second"),
            Column::figures("late tenths by early ones"),
        ],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times = (1..=200).rev().map(Duration::from_micros).collect();
        let cost = OpenCost::new("n", times);
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
        assert!(near(cost.p50_us, 100.0) && near(cost.p99_us, 198.0) && near(cost.max_us, 200.0));
        assert!(OpenCost::new("n", Vec::new()).p99_us.is_nan());
    }

    #[test]
    fn a_cost_that_grows_with_the_directory_is_a_slowdown_and_one_slow_step_is_none() {
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
        let mut steps = [2.0; 10];
        steps[9] = 4.0;
        assert!(near(slowdown(&steps), 1.0));
        let growing = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5];
        assert!(near(slowdown(&growing), 3.0));
        assert!(slowdown(&[]).is_nan());
    }

    #[test]
    fn missing_names_come_after_the_last() {
        assert_eq!(Names::Missing.path(0, 10), "wide\\A-NAME-OF-THE-USUAL-LENGTH-00000010");
        assert_eq!(Names::OtherCase.path(9, 10), "wide\\A-NAME-OF-THE-USUAL-LENGTH-00000009");
    }
}
