//! The tables of the comparison and of the model, and the page with both.

mod model;

use super::Findings;
use super::judge::{Bar, Figures, Row};
use super::plan::{CREATE_REMOVE, IN_FLIGHT};
use weir_report::{Cell, Column, Page, Table, figure, terminal};

/// One row in one line, for progress.
pub(super) fn line(row: &Row) -> String {
    let bars: Vec<String> = [&row.store, &row.rate, &row.cost]
        .iter()
        .map(|bar| format!("{} {:.2} {}", bar.what, bar.value, word(bar)))
        .collect();
    format!("{:16} {}", row.workload, bars.join(" | "))
}

/// The bars in the terminal.
pub(super) fn print(findings: &Findings) {
    terminal::show(&bars(findings).to_terminal(terminal::shows_output()));
    weir_report::outln!("{}", verdict(findings));
}

/// The report.
pub(super) fn page(findings: &Findings) -> Page {
    let mut page = Page::new(
        "Gateways on CephFS",
        "The cost of a gateway on CephFS, measured by make cluster-peers: libcephfs itself, Weir's \
         store on it without a protocol, a gateway over NFSv3, and NFS-Ganesha with FSAL_CEPH over \
         NFSv3, in turns on one small Ceph. Then a model of larger clusters from these costs.",
    );
    page.verdict(findings.passed, &verdict(findings));
    page.section("The bars");
    page.table(&bars(findings));
    page.paragraph(
        "Each comparison is the median of those within one turn. CPU is the processor time (user \
         and system) of all threads of the side's process for one operation. libcephfs and the \
         store have its object cache off in the first comparison; in the last one libcephfs has it \
         on, as gateways do.",
    );
    page.section("Every side");
    page.table(&sides(findings));
    page.table(&stable_names(findings));
    page.section("Daemons of Ceph");
    page.paragraph(
        "Their processor time for one operation of the gateway, in µs; of the OSDs all three \
         together, which keep two copies. CREATE and REMOVE are two operations.",
    );
    page.table(&daemons(findings));
    page.section("Threads and mounts");
    page.paragraph(
        "libcephfs itself, without its object cache. It has one lock for a mount. This machine has \
         few processors, which the OSDs share: a rate that stays below that of one mount with more \
         threads shows the lock only where no daemon is asked, as in GETATTR.",
    );
    page.table(&scales(findings));
    page.section("Method");
    page.list(method(findings));
    model::sections(findings, &mut page);
    page
}

fn verdict(findings: &Findings) -> String {
    let bars = || findings.rows.iter().flat_map(|row| [&row.store, &row.rate, &row.cost]);
    let met = bars().filter(|bar| bar.met).count();
    let void = bars().filter(|bar| bar.void.is_some()).count();
    format!("{met} bars met, {} missed, {void} void.", bars().count() - met - void)
}

const fn word(bar: &Bar) -> &'static str {
    match bar {
        Bar { void: Some(_), .. } => "void",
        Bar { met: true, .. } => "met",
        Bar { met: false, .. } => "missed",
    }
}

/// The bars, row by row.
fn bars(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("workload"),
        Column::figures("store ÷ libcephfs (≥ 0.9)"),
        Column::figures("gateway ÷ Ganesha (≥ 1)"),
        Column::figures("gateway CPU µs"),
        Column::figures("libcephfs CPU µs"),
        Column::figures("more (≤ 15 µs)"),
    ];
    let judged = |bar: &Bar, text: String| Cell::judged(format!("{text} {}", word(bar)), bar.met);
    let rows = findings.rows.iter().map(|row| {
        let cpu = |figures: &Figures| Cell::from(format!("{:.1}", figures.median.cpu_us));
        vec![
            row.workload.into(),
            judged(&row.store, format!("{:.2}", row.store.value)),
            judged(&row.rate, format!("{:.2}", row.rate.value)),
            cpu(&row.sides.gateway),
            cpu(&row.sides.caching_library),
            judged(&row.cost, format!("{:+.1}", row.cost.value)),
        ]
    });
    Table { columns, rows: rows.collect() }
}

/// Rate and processor time of each side.
fn sides(findings: &Findings) -> Table {
    let names = [
        "libcephfs",
        "store",
        "libcephfs, object cache",
        "gateway",
        "Ganesha",
        "Ganesha, attributes kept",
    ];
    let columns =
        std::iter::once(Column::words("op/s (CPU µs)")).chain(names.map(Column::figures)).collect();
    let rows = findings.rows.iter().map(|row| {
        let sides = &row.sides;
        let all = [
            &sides.library,
            &sides.store,
            &sides.caching_library,
            &sides.gateway,
            &sides.ganesha,
            &sides.keeping_ganesha,
        ];
        std::iter::once(row.workload.into()).chain(all.map(rate)).collect()
    });
    Table { columns, rows: rows.collect() }
}

fn rate(figures: &Figures) -> Cell {
    let median = figures.median;
    let limit = if median.generator_saturated { " *" } else { "" };
    format!("{}{limit} ({:.1})", figure(median.iops), median.cpu_us).into()
}

/// The price of names that are on disk before the gateway answers.
fn stable_names(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("names of the gateway"),
        Column::figures("CREATE + REMOVE, op/s (CPU µs)"),
    ];
    let process = findings.rows.iter().find(|row| row.workload == CREATE_REMOVE.name);
    let mut rows = Vec::new();
    if let Some(row) = process {
        rows.push(vec!["known to the metadata server".into(), rate(&row.sides.gateway)]);
    }
    rows.push(vec!["on disk (the default)".into(), rate(&findings.stable_names)]);
    Table { columns, rows }
}

/// Processor time of the daemons beside the gateway.
fn daemons(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("workload"),
        Column::figures("metadata server"),
        Column::figures("its busiest thread"),
        Column::figures("OSDs"),
    ];
    let named = findings.rows.iter().map(|row| (row.workload, &row.sides.gateway));
    let all = named.chain([("CREATE + REMOVE, on disk", &findings.stable_names)]);
    let rows = all.map(|(name, figures)| {
        let of = figures.median;
        let cells = [of.metadata_us, of.metadata_thread_us, of.osds_us];
        std::iter::once(name.into()).chain(cells.map(|us| format!("{us:.1}").into())).collect()
    });
    Table { columns, rows: rows.collect() }
}

fn scales(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("workload"),
        Column::figures("threads"),
        Column::figures("mounts"),
        Column::figures("op/s"),
        Column::figures("CPU µs"),
    ];
    let rows = findings.scales.iter().map(|scale| {
        vec![
            scale.workload.into(),
            scale.threads.to_string().into(),
            scale.mounts.to_string().into(),
            figure(scale.median.iops).into(),
            format!("{:.1}", scale.median.cpu_us).into(),
        ]
    });
    Table { columns, rows: rows.collect() }
}

fn method(findings: &Findings) -> Vec<String> {
    let times = findings.times;
    let commit = findings.commit.as_deref().unwrap_or("not told");
    vec![
        format!("make cluster-peers; commit {commit}; {}.", findings.versions.join("; ")),
        format!(
            "{} turns; in each, every side is loaded for {} s and then measured for {} s. Figures \
             are medians over the turns.",
            times.turns, times.warmup_s, times.measured_s
        ),
        format!(
            "Programs beside the comparison kept {:.2} processors busy on average.",
            findings.others_processors
        ),
        format!(
            "{IN_FLIGHT} operations at a time: threads of libcephfs and of the store, and requests \
             of the load on a server, over 4 connections. Each has a file of 16 MiB of its own, and \
             libcephfs an object cache of 8 MiB, so that nearly every read goes to an OSD. Writes \
             are stable when they are answered."
        ),
        "The gateway is one of one, with three members of etcd, the words that gateways give each \
         other, and a contract that never binds. It answers CREATE and REMOVE when the metadata \
         server has the name (--namespace-durability process), as Ganesha does."
            .to_owned(),
        "Ganesha asks libcephfs for attributes each time, as the example of its package has it, \
         because other clients of CephFS may change them; the last column of the second table is \
         an export that keeps them for ten minutes. No lock manager, no statistics, no duplicate \
         request cache."
            .to_owned(),
        "Ceph has three monitors, three OSDs on BlueStore and two metadata servers, of which one \
         serves, and keeps two copies. Its files are in memory. Ceph, etcd, the servers and the \
         clients have a network namespace each, on one bridge, and share the processors."
            .to_owned(),
    ]
}
