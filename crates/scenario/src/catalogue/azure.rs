//! Azure Files premium (SMB, diskspd): many files and one, multichannel, metadata caching; and the
//! same loads over NFS, under names of their own.

use super::build::{CONNECTIONS, GIB, axis, blocks, data, laid_out, step};
use super::{Head, Test};
use crate::scenario::{Chart, Step};
use weir_load::workload::{Length, MixOp, OpShare, Operation, Pattern, Stability, Workload};

const SOURCE: &str = "Azure Files premium (SMB, diskspd), undated";
/// A remark on every load here that stands for one over SMB.
const LIKE: &str = "Figures published for SMB are told here and put beside nothing.";
const DISKSPD: &str = "diskspd.exe -W300 -C5 -r -w100 -b4k -t8 -o8 -Sh -d60 -L -c2G -Z1G";
/// Block sizes of the sweep over one file, in KiB: ours.
const BLOCKS_KIB: [u32; 7] = [4, 8, 16, 32, 64, 128, 256];

pub(super) fn tests() -> Vec<Test> {
    let mut tests = diskspd();
    for part in [many_files(), one_file(), one_thread(), metadata()] {
        tests.extend(part.both());
    }
    tests
}

/// A test over SMB, and the like load over NFS.
struct Pair {
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

impl Pair {
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
        [over_smb(&smb, self.steps.clone()), Test::nfs(&nfs, self.steps)]
    }
}

fn diskspd() -> Vec<Test> {
    let kinds = [("multifile", "ten files", 10), ("singlefile", "one file", 1)];
    let pair = |(kind, files_named, files): (&str, &'static str, u32)| {
        let load = Workload {
            jobs: 8 * files,
            connections: 4,
            files,
            file_bytes: 2 * GIB,
            length: Length::Seconds(60.0),
            warmup_s: 300.0,
            cooldown_s: 5.0,
            layout: laid_out(256),
            ..blocks(4, 8)
        };
        let steps = vec![step("4k-random-write", data(&load, Pattern::Random, 0))];
        let pair = Pair {
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
                "{DISKSPD} on {files_named} of 2 GiB from one D32s_v3: eight threads a file with \
                 eight requests in flight of each, written through, 300 s of warm-up and 5 s of \
                 cool-down. No figures were published with the command. The first run is a warm-up: repeat and discard it."
            ),
            instead: "Over NFS one client has four connections, and -Sh is FILE_SYNC.",
            chart: Chart::Bars,
            channels: false,
            steps,
        };
        pair.both()
    };
    kinds.into_iter().flat_map(pair).collect()
}

/// One client's load of `kib` KiB blocks over so many connections.
fn channels(kib: u32, connections: u32, (jobs, files, depth): (u32, u32, u32)) -> Workload {
    Workload {
        jobs,
        connections,
        files,
        file_bytes: 8 * GIB,
        length: Length::Seconds(60.0),
        warmup_s: 10.0,
        layout: laid_out(256),
        ..blocks(kib, depth)
    }
}

fn many_files() -> Pair {
    let mut steps = Vec::new();
    for (group, percent) in [("reads", 100), ("writes", 0)] {
        for connections in [1, 2, 4] {
            let load = channels(64, connections, (80, 10, 8));
            steps.push(Step {
                group: group.to_owned(),
                axis: axis(CONNECTIONS, connections),
                ..step(&format!("{group}-{connections}"), data(&load, Pattern::Random, percent))
            });
        }
    }
    Pair {
        name: "azure-multichannel-many-files",
        title: "multichannel, many threads and files",
        about: "Random 64 KiB over ten files with eight threads each, by the number of channels. \
                Published: four channels on one network card give 2 to 4 times what one gives \
                (reads 2 to 3, writes 3 to 4; reads above 2.7 GiB/s). Block size, sizes of files \
                and requests in flight are our choices."
            .to_owned(),
        instead: "Over NFS the connections of one client take the place of channels.",
        chart: Chart::Lines,
        channels: true,
        steps,
    }
}

fn one_file() -> Pair {
    let mut steps = Vec::new();
    for (group, connections) in [("1-connection", 1), ("4-connections", 4)] {
        for kib in BLOCKS_KIB {
            let load = channels(kib, connections, (8, 1, 8));
            steps.push(Step {
                group: group.to_owned(),
                axis: axis("block size, KiB", kib),
                ..step(&format!("{group}-{kib}k"), data(&load, Pattern::Random, 100))
            });
        }
    }
    Pair {
        name: "azure-multichannel-one-file",
        title: "multichannel, many threads and one file",
        about: "Random reads of one file by eight threads, over block sizes, with one channel and \
                four. Published: a gain above about 16 KiB and about -10 % below. Sizes and \
                requests in flight are our choices."
            .to_owned(),
        instead: "Over NFS the connections of one client take the place of channels.",
        chart: Chart::Lines,
        channels: true,
        steps,
    }
}

fn one_thread() -> Pair {
    let each = |connections: u32| Step {
        axis: axis(CONNECTIONS, connections),
        ..step(
            &format!("connections-{connections}"),
            data(&channels(64, connections, (1, 1, 1)), Pattern::Random, 100),
        )
    };
    Pair {
        name: "azure-multichannel-one-thread",
        title: "multichannel, a single thread",
        about: "Random 64 KiB reads, one at a time, with one channel and four. Published: about \
                -10 % with four. The block size is our choice."
            .to_owned(),
        instead: "Over NFS the connections of one client take the place of channels.",
        chart: Chart::Lines,
        channels: true,
        steps: [1, 4].map(each).to_vec(),
    }
}

fn metadata() -> Pair {
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
    Pair {
        name: "azure-metadata-cache",
        title: "metadata caching",
        about: "Create, open, close, delete, and work that is mostly metadata. Run it with the \
                server's metadata cache on and off, which is its operator's switch, and compare the \
                two. Published for the cache: latency -30 % or more, available IOPS +60 % or more, \
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
