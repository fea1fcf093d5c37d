//! Is the limit of a volume kept, whatever the load? For one target whose limit the reader knows.

use super::build::{MIB, data, step};
use super::{Head, Test};
use crate::scenario::{Chart, Step};
use weir_load::workload::{Layout, Length, Pattern, Stability, Workload};

/// Blocks in KiB, order, and reads among a hundred. The first is the published load.
const LOADS: [(u32, Pattern, u8); 6] = [
    (8, Pattern::Random, 0),
    (8, Pattern::Random, 100),
    (8, Pattern::Random, 50),
    (4, Pattern::Random, 50),
    (64, Pattern::Sequential, 50),
    (256, Pattern::Sequential, 50),
];

pub(super) fn tests() -> Vec<Test> {
    let head = Head {
        name: "weir-contract-accuracy",
        title: "Accuracy of a contract: forty clients, any mix, one limit",
        about: "On one volume whose limit you know: 40 clients with 32 requests in flight each, in \
                blocks of 4 to 256 KiB and all mixes. A limit in MiB/s is kept if all steps give \
                that many; one in IOPS, if all give that many operations. Weir promises 1 % over \
                10 s and 5 % over 1 s. The published table (ANF Standard, 8 KiB random writes for \
                180 s, error +0.28 to +2.70 %) has seven volumes of different limits, so its rows \
                are no figures of any one target: `make demo` makes those volumes and measures each \
                beside its row. Let the warm-up last two turnovers of the queue: 1,280 requests \
                divided by the IOPS, twice.",
        source: Some(
            "Azure NetApp Files, accuracy of an enforced limit (Standard, NFSv3), undated",
        ),
        chart: Chart::Bars,
    };
    vec![Test::nfs(&head, LOADS.iter().map(|load| each(*load)).collect())]
}

fn each((kib, pattern, percent): (u32, Pattern, u8)) -> Step {
    let base = Workload {
        block_bytes: kib << 10,
        depth: 32,
        jobs: 40,
        clients: 40,
        files: 40,
        file_bytes: 256 * MIB,
        stability: Stability::Unstable,
        direct: true,
        length: Length::Seconds(180.0),
        warmup_s: 30.0,
        layout: Layout::Sparse,
        ..Workload::default()
    };
    let order = if pattern == Pattern::Random { "random" } else { "sequential" };
    step(&format!("{kib}k-{order}-reads-{percent}"), data(&base, pattern, percent))
}
