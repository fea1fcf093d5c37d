//! The sections about larger clusters.

use super::super::model::{ASSUMPTIONS, GATEWAYS, Limit};
use super::Findings;
use weir_report::{Cell, Column, Page, Table, figure};

/// The formulas, in the order of the parts.
const FORMULAS: [&str; 5] = [
    "processors of the gateways: gateways × 16 ÷ gateway CPU",
    "mounts of the gateways: gateways × 4 × the greater of 1 ÷ libcephfs CPU and one mount's rate",
    "metadata server: 1 ÷ CPU of its busiest thread, however many gateways there are",
    "processors of the OSDs: machines × 16 ÷ OSDs' CPU; that of a write × 3 ÷ 2",
    "network: machines × 25 Gbit/s ÷ bytes; of a write ÷ 3 more, as each copy comes in at a machine",
];

/// Adds the sections.
pub(super) fn sections(findings: &Findings, page: &mut Page) {
    page.section("A model of larger clusters");
    page.paragraph(
        "The rate at which each part of a cluster would be used up, if operations cost there what \
         was measured here. The lowest is the rate of the cluster. It is arithmetic, and nothing of \
         that size was measured.",
    );
    page.list(ASSUMPTIONS.map(str::to_owned));
    page.paragraph(
        "The costs that were measured, in µs of processor time, and the rate of a mount:",
    );
    page.table(&costs(findings));
    page.paragraph("The limits in operations per second:");
    page.list(FORMULAS.map(str::to_owned));
    page.table(&rates(findings));
    page.paragraph("Every limit, the lowest first:");
    page.table(&limits(findings));
}

fn costs(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("workload"),
        Column::figures("gateway CPU"),
        Column::figures("libcephfs CPU"),
        Column::figures("one mount, op/s"),
        Column::figures("metadata server's thread"),
        Column::figures("OSDs"),
    ];
    let rows = findings.model.iter().map(|modelled| {
        let load = &modelled.load;
        let us = |us: f64| Cell::from(format!("{us:.1}"));
        vec![
            load.name.into(),
            us(load.gateway.cpu_us),
            us(load.library_us),
            figure(load.mount_rate).into(),
            us(load.gateway.metadata_thread_us),
            us(load.gateway.osds_us),
        ]
    });
    Table { columns, rows: rows.collect() }
}

/// The rates of clusters.
fn rates(findings: &Findings) -> Table {
    let columns = std::iter::once(Column::words("workload"))
        .chain(GATEWAYS.map(|gateways| Column::figures(format!("{gateways} gateways, op/s"))))
        .chain([Column::words("binds first")])
        .collect();
    let rows = findings.model.iter().map(|modelled| {
        let first = |limits: &Vec<Limit>| limits.first().copied();
        let lowest: Vec<Limit> = modelled.limits.iter().filter_map(first).collect();
        let mut parts: Vec<&str> = lowest.iter().map(|limit| limit.part.words()).collect();
        parts.dedup();
        let rates = lowest.iter().map(|limit| figure(limit.rate).into());
        std::iter::once(modelled.load.name.into())
            .chain(rates)
            .chain([parts.join(", then ").into()])
            .collect()
    });
    Table { columns, rows: rows.collect() }
}

fn limits(findings: &Findings) -> Table {
    let columns = std::iter::once(Column::words("workload"))
        .chain(GATEWAYS.map(|gateways| Column::words(format!("{gateways} gateways"))))
        .collect();
    let rows = findings.model.iter().map(|modelled| {
        let all = modelled.limits.iter().map(|limits| {
            let one = |limit: &Limit| format!("{} {}", limit.part.words(), figure(limit.rate));
            limits.iter().map(one).collect::<Vec<_>>().join("; ").into()
        });
        std::iter::once(modelled.load.name.into()).chain(all).collect()
    });
    Table { columns, rows: rows.collect() }
}
