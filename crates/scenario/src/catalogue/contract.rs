//! Is the limit of a volume kept? The seven published volumes, each as a test of its own, and a
//! test of any load for one target whose limit the reader knows.

use super::build::{MIB, data, step};
use super::{Head, Test};
use crate::scenario::{Chart, Published, Step};
use weir_load::workload::{Draw, Layout, Length, Pattern, Stability, Workload};

const SOURCE: &str = "Azure NetApp Files, accuracy of an enforced limit (fio, Standard, NFSv3), \
                      2020-11-28";

/// A published volume.
struct Row {
    name: &'static str,
    /// Kind of quality of service, and the volume's quota.
    volume: &'static str,
    /// The rule that the volume's limit follows from.
    rule: &'static str,
    /// The limit, in MiB/s.
    limit_mibps: f64,
    /// Writes a second.
    iops: f64,
    /// MiB/s written.
    mibps: f64,
    /// Mean latency, in milliseconds.
    mean_ms: f64,
}

#[rustfmt::skip]
const ROWS: [Row; 7] = [
    Row { name: "anf-qos-auto-100gib", volume: "auto, 100 GiB", rule: "16 MiB/s for each TiB of quota",
          limit_mibps: 1.5625, iops: 205.0, mibps: 1.6045, mean_ms: 5_410.0 },
    Row { name: "anf-qos-auto-1tib", volume: "auto, 1 TiB", rule: "16 MiB/s for each TiB of quota",
          limit_mibps: 16.0, iops: 2_053.0, mibps: 16.05, mean_ms: 614.0 },
    Row { name: "anf-qos-auto-4tib", volume: "auto, 4 TiB", rule: "16 MiB/s for each TiB of quota",
          limit_mibps: 64.0, iops: 8_413.0, mibps: 65.73, mean_ms: 152.0 },
    Row { name: "anf-qos-pair-1tib", volume: "auto, 1 TiB beside 3 TiB", rule: "16 MiB/s for each TiB of quota, with the other volume of its pool under load too",
          limit_mibps: 16.0, iops: 2_103.0, mibps: 16.43, mean_ms: 600.0 },
    Row { name: "anf-qos-pair-3tib", volume: "auto, 3 TiB beside 1 TiB", rule: "16 MiB/s for each TiB of quota, with the other volume of its pool under load too",
          limit_mibps: 48.0, iops: 6_309.0, mibps: 49.29, mean_ms: 202.0 },
    Row { name: "anf-qos-manual-1tib", volume: "manual, 1 TiB", rule: "given to the volume",
          limit_mibps: 48.0, iops: 6_162.0, mibps: 48.14, mean_ms: 207.0 },
    Row { name: "anf-qos-manual-3tib", volume: "manual, 3 TiB", rule: "given to the volume",
          limit_mibps: 16.0, iops: 2_053.0, mibps: 16.05, mean_ms: 613.0 },
];

/// Blocks in KiB, order, and reads among a hundred.
const LOADS: [(u32, Pattern, u8); 6] = [
    (8, Pattern::Random, 0),
    (8, Pattern::Random, 100),
    (8, Pattern::Random, 50),
    (4, Pattern::Random, 50),
    (64, Pattern::Sequential, 50),
    (256, Pattern::Sequential, 50),
];

pub(super) fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = ROWS.iter().map(volume).collect();
    let head = Head {
        name: "weir-contract-accuracy",
        title: "Accuracy of a contract: any mix, one limit",
        about: "On one volume whose limit you know: 40 clients with 32 requests in flight each, in \
                blocks of 4 to 256 KiB and all mixes, and the published load (one client, one \
                connection, 1,280 writes of 8 KiB in flight) as the last step. A limit in MiB/s is \
                kept if all steps give that many; one in IOPS, if all give that many operations. \
                Weir promises 1 % over 10 s and 5 % over 1 s. The published table has seven volumes \
                of different limits, so its rows are no figures of any one target: the tests \
                anf-qos-… have one each, and `make demo` makes those volumes and measures each \
                beside its row. Let the warm-up last two turnovers of the queue: 1,280 requests \
                divided by the IOPS, twice.",
        source: Some(SOURCE),
        chart: Chart::Bars,
    };
    let mut steps: Vec<Step> = LOADS.iter().map(|load| each(*load)).collect();
    let directory = "weir-bench-published".to_owned();
    steps.push(step("as-published", Workload { warmup_s: 30.0, directory, ..as_published() }));
    tests.push(Test::nfs(&head, steps));
    tests
}

/// The test of a published volume.
fn volume(row: &Row) -> Test {
    let (limit, name) = (row.limit_mibps, row.volume);
    let who = format!("ANF Standard, {name}");
    let published = Published {
        who,
        write_iops: Some(row.iops),
        write_mibps: Some(row.mibps),
        latency_ms: Some(row.mean_ms),
        ..Published::default()
    };
    let head = Head {
        name: row.name,
        title: &format!("ANF QoS: {name}, limit {limit} MiB/s"),
        about: &format!(
            "The published fio command (rw=randwrite, bs=8k, size=1000m, numjobs=40, iodepth=32, \
             direct=1, 180 s) from one client over one connection, on a volume with a limit of \
             {limit} MiB/s: {}. Give the measured volume this limit. Mean latency is the 1,280 \
             writes in flight, divided by the IOPS (Little's law). There was no warm-up, so that \
             the first turnover of the queue counts; the files begin as holes, as fio leaves them.",
            row.rule
        ),
        source: Some(SOURCE),
        chart: Chart::Bars,
    };
    let step = Step { published: Some(published), ..step("8k-random-write", as_published()) };
    Test::nfs(&head, vec![step])
}

/// The published load: 40 processes of one virtual machine, over its only connection.
fn as_published() -> Workload {
    let base = Workload {
        block_bytes: 8 << 10,
        depth: 32,
        jobs: 40,
        files: 40,
        file_bytes: 1000 * MIB,
        stability: Stability::FileSync,
        direct: true,
        invalidate: true,
        draw: Draw::Permuted,
        length: Length::Seconds(180.0),
        warmup_s: 0.0,
        layout: Layout::Sparse,
        ..Workload::default()
    };
    data(&base, Pattern::Random, 0)
}

fn each((kib, pattern, percent): (u32, Pattern, u8)) -> Step {
    let base = Workload {
        block_bytes: kib << 10,
        depth: 32,
        jobs: 40,
        clients: 40,
        files: 40,
        file_bytes: 256 * MIB,
        // Direct writes would be FILE_SYNC over NFS.
        stability: Stability::Unstable,
        direct: false,
        length: Length::Seconds(180.0),
        warmup_s: 30.0,
        layout: Layout::Sparse,
        ..Workload::default()
    };
    let order = if pattern == Pattern::Random { "random" } else { "sequential" };
    step(&format!("{kib}k-{order}-reads-{percent}"), data(&base, pattern, percent))
}
