//! The SMB rows as tables and in the report.

use super::super::judge::{BarVerdict, Figures};
use super::super::present::tone;
use super::judge::{CPU_RATIO, RATE_RATIO, Row};
use weir_report::{Cell, Column, Page, Table, Tone, figure};

/// One row in one line, for progress.
pub(crate) fn line(row: &Row) -> String {
    let cost = |figures: &Figures| {
        let mark = if figures.median.generator_saturated { "*" } else { "" };
        format!("{:.2} µs {:.0}/s{mark}", figures.median.server_us, figures.median.iops)
    };
    let verdicts: Vec<String> =
        row.bars.iter().map(|bar| format!("{:.2} {:?}", bar.value, bar.verdict)).collect();
    format!(
        "{:4} {:28} weir {} | smbd {} | bare {} | generator {:.2} µs | {}",
        row.filesystem.name(),
        row.workload,
        cost(&row.weir),
        cost(&row.smbd),
        cost(&row.bare),
        row.weir.median.generator_us,
        verdicts.join(", ")
    )
}

/// The bars, row by row; none without rows.
pub(crate) fn table(rows: &[Row]) -> Option<Table> {
    let columns = vec![
        Column::words("workload"),
        Column::words("on"),
        Column::words("messages"),
        Column::figures("Weir µs/op"),
        Column::figures("smbd µs/op"),
        Column::figures("bare µs/op"),
        Column::figures("CPU ÷ smbd"),
        Column::figures("op/s ÷ smbd"),
        Column::figures("Weir op/s"),
        Column::figures("smbd op/s"),
    ];
    let cells = rows.iter().map(|row| {
        let ratio = |what: &str, sign: &str| {
            let Some(bar) = row.bar(what) else { return Cell::default() };
            let bound = bar.bound.map(|bound| format!(" ({sign} {bound:.2})")).unwrap_or_default();
            let void = if bar.verdict == BarVerdict::Void { " void" } else { "" };
            Cell::new(format!("{:.2}{bound}{void}", bar.value), tone(bar.verdict))
        };
        let is_known = row.smbd_bound_us.is_none_or(|bound| row.smbd.median.server_us <= bound);
        let rate = |figures: &Figures| {
            let limit = if figures.median.generator_saturated { " *" } else { "" };
            Cell::from(format!("{}{limit}", figure(figures.median.iops)))
        };
        vec![
            row.workload.into(),
            row.filesystem.name().into(),
            row.protection.into(),
            format!("{:.2}", row.weir.median.server_us).into(),
            Cell::new(
                format!("{:.2}", row.smbd.median.server_us),
                if is_known { Tone::Plain } else { Tone::Muted },
            ),
            format!("{:.2}", row.bare.median.server_us).into(),
            ratio(CPU_RATIO, "≤"),
            ratio(RATE_RATIO, "≥"),
            rate(&row.weir),
            rate(&row.smbd),
        ]
    });
    (!rows.is_empty()).then(|| Table { columns, rows: cells.collect() })
}

/// The part of the report about SMB.
pub(crate) fn section(rows: &[Row], page: &mut Page) {
    let Some(table) = table(rows) else { return };
    page.section("SMB beside smbd");
    page.table(&table);
    page.paragraph(
        "The processor time of smbd is that of all its processes. \"open + close\" and \"create + \
         delete\" are compounds of two messages each, and each compound counts as one operation. The \
         bare loop has the like load over NFS. A row is void where smbd, divided by the bare loop of \
         the same rounds, costs more than 1.15 times what the two are known to cost when smbd is \
         tuned; a rate is void where the load generator was the limit. An operation of 64 or 256 KiB \
         may also cost 1.15 times the bare loop, and a protected one what the plain one costs and \
         1.25 times what `openssl speed` needs for the cipher.",
    );
    let costs: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let openssl_us = row.openssl_us?;
            Some(format!("{}: the cipher alone {openssl_us:.1} µs", row.workload))
        })
        .collect();
    if !costs.is_empty() {
        page.list(costs);
    }
    page.list(vec![
        "Samba's smbd, one process for each connection: AIO off, sendfile on, no oplocks, no DOS \
         attributes in extended attributes, no log; the same user on both servers."
            .to_owned(),
    ]);
}
