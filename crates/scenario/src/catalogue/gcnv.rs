//! Google Cloud NetApp Volumes, Flex and Extreme, over NFSv3 and SMB.

use super::build::{GIB, blocks, laid_out, sweep};
use super::{Head, Protocol, Test};
use crate::scenario::{Cache, Chart, Published};
use weir_load::workload::{Draw, Length, Pattern, Workload};

const SOURCE: &str = "Google Cloud NetApp Volumes, performance (fio), undated";
/// Reads among a hundred, in the order of the published table.
const PERCENTS: [u8; 5] = [100, 75, 50, 25, 0];

/// A service level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Custom performance: 10 TiB volume, pool of 5,120 MiB/s and 160,000 IOPS.
    Flex,
    /// 75 TiB volume.
    Extreme,
}

/// A row of the published table.
struct Row {
    level: Level,
    protocol: Protocol,
    kib: u32,
    pattern: Pattern,
    /// Requests in flight of each of the 48 jobs: ours.
    depth: u32,
    /// Reads and writes at each of [`PERCENTS`]: operations a second in random order, MiB/s in
    /// sequence.
    published: [(f64, f64); 5],
}

#[rustfmt::skip]
const ROWS: [Row; 10] = [
    Row { level: Level::Flex, protocol: Protocol::Nfs, kib: 64, pattern: Pattern::Sequential, depth: 4,
          published: [(4_304.0, 0.0), (2_963.0, 989.0), (1_345.0, 1_344.0), (464.0, 1_390.0), (0.0, 1_476.0)] },
    Row { level: Level::Flex, protocol: Protocol::Nfs, kib: 8, pattern: Pattern::Random, depth: 6,
          published: [(126_397.0, 0.0), (101_740.0, 33_916.0), (57_223.0, 57_217.0), (23_600.0, 70_751.0), (0.0, 78_582.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Nfs, kib: 64, pattern: Pattern::Sequential, depth: 4,
          published: [(5_237.0, 0.0), (2_284.0, 764.0), (1_415.0, 1_416.0), (610.0, 1_835.0), (0.0, 2_172.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Nfs, kib: 256, pattern: Pattern::Sequential, depth: 2,
          published: [(4_928.0, 0.0), (2_522.0, 839.0), (1_638.0, 1_640.0), (677.0, 2_036.0), (0.0, 2_440.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Nfs, kib: 4, pattern: Pattern::Random, depth: 16,
          published: [(380_000.0, 0.0), (172_000.0, 57_300.0), (79_800.0, 79_800.0), (32_000.0, 96_200.0), (0.0, 118_000.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Nfs, kib: 8, pattern: Pattern::Random, depth: 12,
          published: [(265_000.0, 0.0), (132_000.0, 44_100.0), (66_900.0, 66_900.0), (30_200.0, 90_500.0), (0.0, 104_000.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Smb, kib: 64, pattern: Pattern::Sequential, depth: 4,
          published: [(5_128.0, 0.0), (2_675.0, 892.0), (1_455.0, 1_454.0), (559.0, 1_676.0), (0.0, 1_781.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Smb, kib: 256, pattern: Pattern::Sequential, depth: 2,
          published: [(4_617.0, 0.0), (2_708.0, 900.0), (1_533.0, 1_534.0), (584.0, 1_744.0), (0.0, 1_826.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Smb, kib: 4, pattern: Pattern::Random, depth: 16,
          published: [(390_900.0, 0.0), (164_700.0, 54_848.0), (84_200.0, 84_200.0), (32_822.0, 98_500.0), (0.0, 109_300.0)] },
    Row { level: Level::Extreme, protocol: Protocol::Smb, kib: 8, pattern: Pattern::Random, depth: 12,
          published: [(271_800.0, 0.0), (135_900.0, 45_293.0), (65_700.0, 65_900.0), (28_093.0, 84_400.0), (0.0, 85_500.0)] },
];

pub(super) fn tests() -> Vec<Test> {
    ROWS.iter().map(test).collect()
}

fn test(row: &Row) -> Test {
    let (level, gibibytes, size) = match row.level {
        Level::Flex => {
            ("Flex", 12, "576 GiB on a 10 TiB volume, pool at 5,120 MiB/s and 160,000 IOPS")
        }
        Level::Extreme => ("Extreme", 128, "6 TiB on a 75 TiB volume"),
    };
    let order = if row.pattern == Pattern::Sequential { "sequential" } else { "random" };
    let (suffix, mount) = match (row.protocol, row.level) {
        (Protocol::Smb, _) => (
            "-smb",
            "Windows 2022, 16 connections of each RSS network interface, each with a session of its own here",
        ),
        (Protocol::Nfs, Level::Flex) => ("", "RHEL 9, nconnect=16, rsize = wsize = 65536"),
        (Protocol::Nfs, Level::Extreme) => ("", "RHEL 9, nconnect=16"),
    };
    let base = Workload {
        jobs: 48,
        clients: 6,
        connections: 16,
        files: 48,
        file_bytes: gibibytes * GIB,
        length: Length::Seconds(120.0),
        warmup_s: 30.0,
        draw: Draw::Permuted,
        layout: laid_out(if row.level == Level::Flex { 64 } else { 256 }),
        ..blocks(row.kib, row.depth)
    };
    let steps = sweep(&base, row.pattern, Cache::Any, PERCENTS, |percent| published(row, percent));
    let head = Head {
        name: &format!("gcnv-{}-{}k-{order}{suffix}", level.to_lowercase(), row.kib),
        title: &format!("GCNV {level}: {} KiB {order} over {}", row.kib, row.protocol.name()),
        about: &format!(
            "Six n2-standard-32 clients with eight jobs each ({mount}), a data set of {size}. Our \
             choices, where the publication is silent: a file for each job, direct I/O, as many \
             requests in flight as give about 2 ms at the published rate, 30 s of warm-up and \
             120 s measured."
        ),
        source: Some(SOURCE),
        chart: Chart::Bars,
    };
    match row.protocol {
        Protocol::Nfs => Test::nfs(&head, steps),
        Protocol::Smb => Test::smb(&head, steps),
    }
}

fn published(row: &Row, percent: u8) -> Option<Published> {
    let column = PERCENTS.iter().position(|one| *one == percent)?;
    let (read, write) = *row.published.get(column)?;
    let (read, write) = ((percent > 0).then_some(read), (percent < 100).then_some(write));
    let level = if row.level == Level::Flex { "Flex" } else { "Extreme" };
    let who = format!("GCNV {level}, {}, six n2-standard-32", row.protocol.name());
    let base = Published { who, ..Published::default() };
    Some(match row.pattern {
        Pattern::Sequential => Published { read_mibps: read, write_mibps: write, ..base },
        _ => Published { read_iops: read, write_iops: write, ..base },
    })
}
