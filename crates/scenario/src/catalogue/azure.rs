//! Azure Files premium (SMB, diskspd): many files and one, multichannel, metadata caching; and the
//! same loads over NFS, under names of their own.

use super::build::{GIB, axis, blocks, data, laid_out, step};
use super::{Head, Test};
use crate::scenario::{Bound, Chart, Published, Step};
use weir_load::workload::{Length, MixOp, OpShare, Operation, Pattern, Stability, Workload};

const SOURCE: &str = "Azure Files premium (SMB, diskspd), undated";
/// A remark on every load here that stands for one over SMB.
const LIKE: &str = "Figures published for SMB are told here and stand beside nothing; \
                    published ratios stand beside those of pairs.";
const DISKSPD: &str = "diskspd.exe -W300 -C5 -r -w100 -b4k -t8 -o8 -Sh -d60 -L -c2G -Z1G";
/// Block sizes of sweeps, in KiB: ours.
const BLOCKS_KIB: [u32; 7] = [4, 8, 16, 32, 64, 128, 256];
const ONE_THREAD_KIB: [u32; 4] = [4, 16, 64, 256];
/// Size of the file of tests of one file.
const ONE_FILE_BYTES: u64 = 128 * GIB;
/// Requests in flight of each thread in the tests of channels: the page's I/O depth.
const DEPTH: u32 = 10;

pub(super) fn tests() -> Vec<Test> {
    let mut tests = diskspd();
    for twins in [many_files(), one_file(), one_thread(), metadata()] {
        tests.extend(twins.both());
    }
    tests
}

/// A test over SMB, and the like load over NFS.
struct Twins {
    name: &'static str,
    title: &'static str,
    about: String,
    /// The replacement of SMB's features over NFS.
    instead: &'static str,
    chart: Chart,
    /// Over SMB, the connections of a client are channels of one session.
    channels: bool,
    steps: Vec<Step>,
}

impl Twins {
    fn both(self) -> [Test; 2] {
        let smb = Head {
            name: self.name,
            title: &format!("Azure Files: {}", self.title),
            about: &self.about,
            source: Some(SOURCE),
            chart: self.chart,
        };
        let nfs = Head {
            name: &format!("{}-nfs", self.name),
            title: &format!("As Azure Files, over NFS: {}", self.title),
            about: &format!("{} {} {LIKE}", self.about, self.instead),
            source: None,
            chart: self.chart,
        };
        let over_smb = if self.channels { Test::smb_channels } else { Test::smb };
        let like = self.steps.iter().map(|step| Step { published: None, ..step.clone() });
        let like = Test::nfs(&nfs, like.collect());
        [over_smb(&smb, self.steps), like]
    }
}

fn diskspd() -> Vec<Test> {
    let kinds = [("multifile", "ten files of 2 GiB", 10), ("singlefile", "one file of 128 GiB", 1)];
    let both = |(kind, files_named, files): (&str, &'static str, u32)| {
        let bytes = if files == 1 { ONE_FILE_BYTES } else { 2 * GIB };
        let load = Workload {
            jobs: 8 * files,
            connections: 4,
            files,
            file_bytes: bytes,
            length: Length::Seconds(60.0),
            warmup_s: 300.0,
            cooldown_s: 5.0,
            layout: laid_out(256),
            ..blocks(4, 8)
        };
        let steps = vec![step("4k-random-write", data(&load, Pattern::Random, 0))];
        let twins = Twins {
            name: if kind == "multifile" {
                "azure-files-multifile"
            } else {
                "azure-files-singlefile"
            },
            title: if files == 1 {
                "4 KiB random writes to one file"
            } else {
                "4 KiB random writes to ten files"
            },
            about: format!(
                "{DISKSPD} on {files_named} from one D32s_v3: eight threads a file with \
                 eight requests in flight of each, written through, 300 s of warm-up and 5 s of \
                 cool-down. The page has the command for ten files, tests one of 128 GiB beside it, and \
                 gives no figures for either. The first run is a warm-up: repeat and discard it."
            ),
            instead: "Over NFS one client has four connections, and -Sh is FILE_SYNC.",
            chart: Chart::Bars,
            channels: false,
            steps,
        };
        twins.both()
    };
    kinds.into_iter().flat_map(both).collect()
}

/// The files and streams of a test of channels.
#[derive(Clone, Copy)]
struct Shape {
    jobs: u32,
    files: u32,
    /// Bytes of each file.
    bytes: u64,
}

/// Ten files of the published command, with its eight threads each.
const TEN_FILES: Shape = Shape { jobs: 80, files: 10, bytes: 2 * GIB };
const ONE_FILE: Shape = Shape { jobs: 8, files: 1, bytes: ONE_FILE_BYTES };

/// One client's load of `kib` KiB blocks over this number of connections.
fn channels(kib: u32, connections: u32, shape: Shape) -> Workload {
    Workload {
        jobs: shape.jobs,
        connections,
        files: shape.files,
        file_bytes: shape.bytes,
        length: Length::Seconds(60.0),
        warmup_s: 10.0,
        directory: format!("weir-bench-{}", shape.files),
        layout: laid_out(256),
        ..blocks(kib, DEPTH)
    }
}

/// The name of the group of steps of `what` over this number of connections.
fn group(what: &str, connections: u32) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("{what}, {connections} connection{plural}")
}

/// A step for each block size of `kibs`, with one channel and with four.
fn over_sizes(
    what: &str,
    kibs: &[u32],
    shape: Shape,
    read_percent: u8,
) -> impl Iterator<Item = Step> {
    let each = move |connections: u32| {
        let group = group(what, connections);
        let step = move |kib: &u32| Step {
            group: group.clone(),
            axis: axis("block size, KiB", *kib),
            ..step(
                &format!("{}-{connections}-{kib}k", what.replace(' ', "-")),
                data(&channels(*kib, connections, shape), Pattern::Random, read_percent),
            )
        };
        kibs.iter().map(step).collect::<Vec<_>>()
    };
    [1, 4].map(each).into_iter().flatten()
}

const CHANNELS: &str = "Over NFS the connections of one client take the place of channels.";

fn many_files() -> Twins {
    let reads = over_sizes("reads", &BLOCKS_KIB, TEN_FILES, 100);
    let mut steps: Vec<Step> = reads.collect();
    steps.extend(over_sizes("writes", &BLOCKS_KIB, TEN_FILES, 0));
    for step in &mut steps {
        // Where the page tells of 2.7 GiB/s, it names no size: they belong to the largest.
        if step.name == "reads-4-256k" {
            step.published = Some(Published {
                who: "Azure Files premium over SMB, four channels, D32s_v3".to_owned(),
                read_mibps: Some(2.7 * 1024.0),
                bound: Bound::MoreThan,
                ..Published::default()
            });
        }
    }
    Twins {
        name: "azure-multichannel-many-files",
        title: "multichannel, many threads and files",
        about: "Random reads and writes of ten files with eight threads each and an I/O depth of \
                10, over block sizes, with one channel and four. Published: four channels on one \
                network card give 2 to 4 times what one gives (reads 2 to 3, writes 3 to 4; reads \
                above 2.7 GiB/s, which stand beside the largest block size). Ten files of 2 GiB are \
                those of the published command; the block sizes are our choice."
            .to_owned(),
        instead: CHANNELS,
        chart: Chart::Lines,
        channels: true,
        steps,
    }
}

fn one_file() -> Twins {
    let mut steps: Vec<Step> = over_sizes("reads", &BLOCKS_KIB, ONE_FILE, 100).collect();
    steps.extend(over_sizes("writes", &BLOCKS_KIB, ONE_FILE, 0));
    Twins {
        name: "azure-multichannel-one-file",
        title: "multichannel, many threads and one file",
        about: "Random reads and writes of one file of 128 GiB by eight threads with an I/O depth \
                of 10, over block sizes, with one channel and four. Published: a gain of reads and \
                writes above about 16 KiB and about -10 % below. The block sizes and the number of \
                threads are our choices."
            .to_owned(),
        instead: CHANNELS,
        chart: Chart::Lines,
        channels: true,
        steps,
    }
}

fn one_thread() -> Twins {
    let (one, ten) = (Shape { jobs: 1, ..ONE_FILE }, Shape { jobs: 1, ..TEN_FILES });
    let mut steps: Vec<Step> = over_sizes("one file", &ONE_THREAD_KIB, one, 100).collect();
    steps.extend(over_sizes("ten files", &ONE_THREAD_KIB, ten, 100));
    Twins {
        name: "azure-multichannel-one-thread",
        title: "multichannel, a single thread",
        about: "Random reads by a single thread with the page's I/O depth of 10, of one file and of \
                ten, over block sizes, with one channel and four. Published: about -10 % with four \
                channels; a small gain with several files above 16 KiB. The block sizes are our \
                choice, and so is reading the depth of 10 as that of the single thread too: with one \
                request in flight only one channel would carry anything."
            .to_owned(),
        instead: CHANNELS,
        chart: Chart::Lines,
        channels: true,
        steps,
    }
}

fn metadata() -> Twins {
    let base = Workload {
        jobs: 16,
        connections: 4,
        depth: 4,
        files: 10_000,
        file_bytes: 16_384,
        stability: Stability::FileSync,
        direct: true,
        threads: 4,
        length: Length::Seconds(60.0),
        warmup_s: 10.0,
        ..Workload::default()
    };
    let mix = |shares: &[(MixOp, u8)]| Workload {
        operation: Operation::Mix,
        mix: shares.iter().map(|&(op, percent)| OpShare { op, percent }).collect(),
        ..base.clone()
    };
    let only = |operation| Workload { operation, ..base.clone() };
    let cycle =
        [(MixOp::Create, 25), (MixOp::Lookup, 25), (MixOp::Access, 25), (MixOp::Unlink, 25)];
    let heavy = [
        (MixOp::Lookup, 30),
        (MixOp::Stat, 20),
        (MixOp::Access, 20),
        (MixOp::Create, 10),
        (MixOp::Unlink, 10),
        (MixOp::ReadRandom, 5),
        (MixOp::WriteRandom, 5),
    ];
    Twins {
        name: "azure-metadata-cache",
        title: "metadata caching",
        about: "Create, open, close, delete, and work that is mostly metadata. Run it with the \
                server's metadata cache off and on, which is its operator's switch, with --setting \
                metadata-cache=off and =on, and compare the two results. Published for the cache: latency -30 % or more, available IOPS +60 % or more, \
                throughput +60 % or more on work that is mostly metadata. All sizes and shares are \
                our choices."
            .to_owned(),
        instead: "Over NFS opening is LOOKUP and ACCESS, and there is no close.",
        chart: Chart::Bars,
        channels: false,
        steps: vec![
            step("create-open-delete", mix(&cycle)),
            step("create-delete", only(Operation::CreateRemove)),
            step("open", only(Operation::Lookup)),
            step("mostly-metadata", mix(&heavy)),
        ],
    }
}
