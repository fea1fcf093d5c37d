//! Azure NetApp Files on Linux: six clients against a regular volume, and one client with and
//! without `nconnect`.

use super::build::{IN_FLIGHT, MIB, axis, blocks, data, laid_out, step, sweep};
use super::{Head, Test};
use crate::scenario::{Bound, Cache, Chart, Published, Step};
use weir_load::workload::{Draw, Length, Pattern, Workload};

const SOURCE: &str = "Azure NetApp Files, regular volume on Linux (fio, NFSv3), English and French \
                      editions, undated";
const WHO: &str = "ANF Ultra, 100 TiB, six D32s_v5";
const ABOUT: &str = "Six clients (RHEL 9.3, vers=3, nconnect=8, rsize = wsize = 262144) on a data \
                     set of 1 TiB; published figures are approximate. The editions of the page \
                     differ: the English one lists six D32s_v5 and a volume of 100 TiB, the French \
                     one says 32 clients; here six run. Our choices, where the publication is \
                     silent: eight jobs a client with a file each (48 of 21,845 MiB), direct I/O, \
                     as many requests in flight as give about 2 ms at the published rate (as many \
                     without caches as with them), 30 s of warm-up and 120 s measured.";

/// A row of the published table.
struct Row {
    name: &'static str,
    title: &'static str,
    kib: u32,
    pattern: Pattern,
    cache: Cache,
    /// Between the steps from all reads to all writes.
    percent: u8,
    /// Requests in flight of each of the 48 jobs: ours.
    depth: u32,
    /// All reads and all writes: operations a second in random order, MiB/s in sequence.
    published: (f64, f64),
    /// MiB/s of reads and writes together, half of each, as the page compares it with all reads.
    half: Option<(f64, Bound)>,
}

#[rustfmt::skip]
const ROWS: [Row; 6] = [
    Row { name: "anf-linux-4k-random", title: "4 KiB random, cache included", kib: 4, pattern: Pattern::Random,
          cache: Cache::Included, percent: 10, depth: 16, published: (460_000.0, 130_000.0), half: None },
    Row { name: "anf-linux-4k-random-uncached", title: "4 KiB random, cache excluded", kib: 4, pattern: Pattern::Random,
          cache: Cache::Excluded, percent: 25, depth: 16, published: (388_000.0, 120_000.0), half: None },
    Row { name: "anf-linux-8k-random-uncached", title: "8 KiB random, cache excluded", kib: 8, pattern: Pattern::Random,
          cache: Cache::Excluded, percent: 25, depth: 12, published: (293_000.0, 111_000.0), half: None },
    Row { name: "anf-linux-64k-sequential", title: "64 KiB sequential, cache included", kib: 64, pattern: Pattern::Sequential,
          cache: Cache::Included, percent: 10, depth: 4, published: (4_500.0, 1_600.0), half: None },
    Row { name: "anf-linux-64k-sequential-uncached", title: "64 KiB sequential, cache excluded", kib: 64, pattern: Pattern::Sequential,
          cache: Cache::Excluded, percent: 25, depth: 4, published: (3_600.0, 2_400.0), half: Some((3_600.0, Bound::None)) },
    Row { name: "anf-linux-256k-sequential-uncached", title: "256 KiB sequential, cache excluded", kib: 256, pattern: Pattern::Sequential,
          cache: Cache::Excluded, percent: 25, depth: 2, published: (3_500.0, 2_500.0), half: Some((3_500.0, Bound::MoreThan)) },
];

/// A test of one client with and without `nconnect=8`.
struct ScaleUp {
    name: &'static str,
    title: &'static str,
    kib: u32,
    pattern: Pattern,
    read_percent: u8,
}

#[rustfmt::skip]
const SCALE_UPS: [ScaleUp; 4] = [
    ScaleUp { name: "anf-nconnect-4k-random", title: "4 KiB random reads", kib: 4, pattern: Pattern::Random, read_percent: 100 },
    ScaleUp { name: "anf-nconnect-4k-random-writes", title: "4 KiB random writes", kib: 4, pattern: Pattern::Random, read_percent: 0 },
    ScaleUp { name: "anf-nconnect-64k-sequential", title: "64 KiB sequential reads", kib: 64, pattern: Pattern::Sequential, read_percent: 100 },
    ScaleUp { name: "anf-nconnect-64k-sequential-writes", title: "64 KiB sequential writes", kib: 64, pattern: Pattern::Sequential, read_percent: 0 },
];

/// Requests in flight of each of the eight jobs.
const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

pub(super) fn tests() -> Vec<Test> {
    ROWS.iter().map(scale_out).chain(SCALE_UPS.iter().map(scale_up)).collect()
}

fn scale_out(row: &Row) -> Test {
    let base = Workload {
        jobs: 48,
        clients: 6,
        connections: 8,
        files: 48,
        file_bytes: 21_845 * MIB,
        length: Length::Seconds(120.0),
        warmup_s: 30.0,
        draw: Draw::Permuted,
        layout: laid_out(256),
        invalidate: row.cache == Cache::Excluded,
        ..blocks(row.kib, row.depth)
    };
    let percents = (0..=100).rev().step_by(usize::from(row.percent));
    let steps = sweep(&base, row.pattern, row.cache, percents, |percent| published(row, percent));
    let head = Head {
        name: row.name,
        title: &format!("ANF, Linux scale-out: {}", row.title),
        about: ABOUT,
        source: Some(SOURCE),
        chart: Chart::Bars,
    };
    Test::nfs(&head, steps)
}

fn published(row: &Row, percent: u8) -> Option<Published> {
    let base = Published { who: WHO.to_owned(), about: true, ..Published::default() };
    if percent == 50 {
        return row.half.map(|(mibps, bound)| Published { mibps: Some(mibps), bound, ..base });
    }
    let read = (percent == 100).then_some(row.published.0);
    let write = (percent == 0).then_some(row.published.1);
    (read.is_some() || write.is_some()).then_some(match row.pattern {
        Pattern::Sequential => Published { read_mibps: read, write_mibps: write, ..base },
        _ => Published { read_iops: read, write_iops: write, ..base },
    })
}

fn scale_up(test: &ScaleUp) -> Test {
    let mut steps = Vec::new();
    for (group, connections) in [("nconnect=1", 1), ("nconnect=8", 8)] {
        for depth in DEPTHS {
            let base = Workload {
                jobs: 8,
                connections,
                files: 8,
                file_bytes: 128 << 30,
                length: Length::Seconds(60.0),
                warmup_s: 10.0,
                draw: Draw::Permuted,
                layout: laid_out(256),
                invalidate: true,
                ..blocks(test.kib, depth)
            };
            let in_flight = base.jobs * depth;
            let name = format!("{group}-{in_flight}");
            steps.push(Step {
                group: group.to_owned(),
                axis: axis(IN_FLIGHT, in_flight),
                cache: Cache::Excluded,
                ..step(&name, data(&base, test.pattern, test.read_percent))
            });
        }
    }
    let head = Head {
        name: test.name,
        title: &format!("ANF, Linux scale-up: {}, with and without nconnect=8", test.title),
        about: "One client (D32s_v4), one connection against eight, over the requests in flight, \
                with caches excluded, as published. Only curves were published: more operations and lower latency with nconnect=8 (an \
                older edition: reads 2.3 to 3 times as many). Our choices: eight jobs with 128 GiB \
                each, 1 to 128 requests in flight of each, 10 s of warm-up and 60 s measured.",
        source: Some("Azure NetApp Files, Linux scale-up with nconnect (fio, NFSv3), undated"),
        chart: Chart::Lines,
    };
    Test::nfs(&head, steps)
}
