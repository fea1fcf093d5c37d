//! Azure NetApp Files by Vdbench (2019): six tests, and a latency curve for near and far clients.

use super::build::{GIB, axis, blocks, data, laid_out, step};
use super::{Head, Test};
use crate::scenario::{Bound, Chart, Published, Step};
use weir_load::workload::{Length, Pattern, Rate, Workload};

const SOURCE: &str = "Azure NetApp Files by Vdbench (2019)";
const WHO: &str = "ANF, one volume, twelve D32s_v3 (2019)";

/// A run of the published script.
struct Run {
    name: &'static str,
    kib: u32,
    pattern: Pattern,
    read_percent: u8,
    /// Threads of each file.
    threads: u32,
    /// Reads a second.
    read_iops: Option<f64>,
    /// MiB/s.
    mibps: Option<f64>,
}

#[rustfmt::skip]
const RUNS: [Run; 9] = [
    Run { name: "8k-random-read", kib: 8, pattern: Pattern::Random, read_percent: 100, threads: 25, read_iops: Some(300_000.0), mibps: None },
    Run { name: "8k-random-write", kib: 8, pattern: Pattern::Random, read_percent: 0, threads: 20, read_iops: None, mibps: None },
    Run { name: "8k-random-mix", kib: 8, pattern: Pattern::Random, read_percent: 50, threads: 25, read_iops: None, mibps: None },
    Run { name: "64k-sequential-read", kib: 64, pattern: Pattern::Sequential, read_percent: 100, threads: 20, read_iops: None, mibps: Some(4_500.0) },
    Run { name: "64k-sequential-write-26", kib: 64, pattern: Pattern::Sequential, read_percent: 0, threads: 26, read_iops: None, mibps: None },
    Run { name: "64k-sequential-write-32", kib: 64, pattern: Pattern::Sequential, read_percent: 0, threads: 32, read_iops: None, mibps: None },
    Run { name: "64k-sequential-write-40", kib: 64, pattern: Pattern::Sequential, read_percent: 0, threads: 40, read_iops: None, mibps: None },
    Run { name: "64k-sequential-mix-6", kib: 64, pattern: Pattern::Sequential, read_percent: 50, threads: 6, read_iops: None, mibps: None },
    Run { name: "64k-sequential-mix-7", kib: 64, pattern: Pattern::Sequential, read_percent: 50, threads: 7, read_iops: None, mibps: None },
];

/// Percents of the maximum that Vdbench's `curve` runs unless told otherwise.
const CURVE: [u8; 6] = [10, 50, 70, 80, 90, 100];
/// Network distance of the far clients in microseconds, there and back: ours.
const FAR_US: u64 = 1000;

pub(super) fn tests() -> Vec<Test> {
    vec![six(), curve()]
}

/// The load on 144 files, each with the run's number of threads, which read or write one block at a
/// time and share the file's position.
fn load(run: &Run) -> Workload {
    let base = Workload {
        jobs: 144,
        clients: 12,
        files: 144,
        file_bytes: 693 * GIB,
        length: Length::Seconds(600.0),
        warmup_s: 60.0,
        layout: laid_out(64),
        ..blocks(run.kib, run.threads)
    };
    data(&base, run.pattern, run.read_percent)
}

fn six() -> Test {
    let each = |run: &Run| Step {
        published: (run.read_iops.is_some() || run.mibps.is_some()).then(|| Published {
            who: WHO.to_owned(),
            read_iops: run.read_iops,
            mibps: run.mibps,
            bound: if run.mibps.is_some() { Bound::UpTo } else { Bound::MoreThan },
            ..Published::default()
        }),
        ..step(run.name, load(run))
    };
    let head = Head {
        name: "anf-vdbench",
        title: "ANF by Vdbench: 8 KiB random and 64 KiB sequential",
        about: "The published script: 144 files of 693 GB (Vdbench's, which are GiB) opened \
                o_direct, a fill by 64 KiB, 60 s of warm-up and 600 s at the highest rate, with its \
                threads of each file. Published: more than 300,000 reads a second and at most 4,500 \
                MiB/s (4.5 GiB/s in the summary) on one volume, about 1 ms for work that needs low \
                latency. That the 4,500 MiB/s were read is our reading. 14 clients were there and the charts show 12, which is what \
                runs here. One connection a client is our choice.",
        source: Some(SOURCE),
        chart: Chart::Bars,
    };
    Test::nfs(&head, RUNS.iter().map(each).collect())
}

fn curve() -> Test {
    let mut steps = Vec::new();
    let [run, ..] = &RUNS;
    for (group, delay_us) in [("near", 0), ("far", FAR_US)] {
        let base = Workload {
            client_delays_us: if delay_us == 0 { Vec::new() } else { vec![delay_us] },
            ..load(run)
        };
        let most = format!("{group}-max");
        let point = |name: &str, percent: f64, load: Workload| Step {
            group: group.to_owned(),
            axis: axis("% of the maximum", percent),
            ..step(name, load)
        };
        steps.push(point(&most, 100.0, base.clone()));
        for percent in CURVE {
            let rate = Rate::Share { of: most.clone(), percent: f64::from(percent) };
            let paced = Workload { rate, ..base.clone() };
            steps.push(point(&format!("{group}-{percent}"), f64::from(percent), paced));
        }
    }
    let head = Head {
        name: "anf-vdbench-curve",
        title: "ANF by Vdbench: latency against IOPS, near and far clients",
        about: "8 KiB random reads at the highest rate, then at 10, 50, 70, 80, 90 and 100 % of it \
                (Vdbench's iorate=curve), once as the network is and once with a distance of 1 ms, \
                there and back, added to every client. Only curves were published; which distance \
                its far clients had was not, so 1 ms is our choice, as is the load.",
        source: Some(SOURCE),
        chart: Chart::LatencyCurve,
    };
    Test::nfs(&head, steps)
}
