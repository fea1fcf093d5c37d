//! The comparison's tables and page.

use super::Findings;
use super::judge::{BarVerdict, CPU_RATIO, DEARER, OVER_BARE, RATE_RATIO, Row, SLOWER};
use super::plan::InFlight;
use crate::disk::Filesystem;
use weir_report::terminal;
use weir_report::{BarChart, BarGroup, Cell, Column, Fact, Page, Series, Table, Tone, figure};
use weir_results::median;

/// One row in one line, for progress.
pub(super) fn line(row: &Row) -> String {
    let cost = |figures: &super::Figures| {
        let mark = if figures.median.generator_saturated { "*" } else { "" };
        format!("{:.2} µs {:.0}/s{mark}", figures.median.server_us, figures.median.iops)
    };
    let verdicts: Vec<String> =
        row.bars.iter().map(|bar| format!("{:.2} {:?}", bar.value, bar.verdict)).collect();
    format!(
        "{:4} {:26} weir {} | ganesha {} | bare {} | generator {:.2} µs | {}",
        row.filesystem.name(),
        row.workload,
        cost(&row.weir),
        cost(&row.ganesha),
        cost(&row.bare),
        row.weir.median.generator_us,
        verdicts.join(", ")
    )
}

/// The tables in the terminal.
pub(super) fn print(findings: &Findings) {
    let colour = terminal::shows_output();
    if !findings.rows.is_empty() {
        terminal::show(&bars(findings).to_terminal(colour));
    }
    if let Some(table) = super::smb::table(&findings.smb) {
        terminal::show(&table.to_terminal(colour));
    }
    if let Some(table) = others(findings) {
        terminal::show(&table.to_terminal(colour));
    }
    weir_report::outln!("{}", verdict(findings).1);
}

/// The bars, row by row.
fn bars(findings: &Findings) -> Table {
    let mut columns = vec![
        Column::words("workload"),
        Column::words("on"),
        Column::figures("Weir µs/op"),
        Column::figures("bare µs/op"),
        Column::figures("allowed µs/op"),
        Column::figures("Ganesha µs/op"),
        Column::figures("CPU ÷ Ganesha"),
        Column::figures("op/s ÷ Ganesha"),
    ];
    let compared = findings.rows.iter().any(|row| row.before.is_some());
    if compared {
        columns.push(Column::figures("before µs/op"));
        columns.push(Column::figures("now % worse"));
    }
    let rows = findings.rows.iter().map(|row| {
        let judged = |what: &str, text: String| {
            let verdict = row.bar(what).map_or(BarVerdict::Void, |bar| bar.verdict);
            Cell::new(text, tone(verdict))
        };
        let ratio = |what: &str, sign: &str| {
            let Some(bar) = row.bar(what) else { return Cell::default() };
            let bound = bar.bound.map(|bound| format!(" ({sign} {bound})")).unwrap_or_default();
            let void = if bar.verdict == BarVerdict::Void { " void" } else { "" };
            judged(what, format!("{:.2}{bound}{void}", bar.value))
        };
        let allowed = row.bar(OVER_BARE).and_then(|bar| bar.bound);
        let known = row.ganesha_bound_us.is_none_or(|bound| row.ganesha.median.server_us <= bound);
        let mut cells = vec![
            row.workload.into(),
            row.filesystem.name().into(),
            judged(OVER_BARE, format!("{:.2}", row.weir.median.server_us)),
            format!("{:.2}", row.bare.median.server_us).into(),
            allowed.map_or_else(String::new, |allowed| format!("{allowed:.2}")).into(),
            Cell::new(
                format!("{:.1}", row.ganesha.median.server_us),
                if known { Tone::Plain } else { Tone::Muted },
            ),
            ratio(CPU_RATIO, "≤"),
            ratio(RATE_RATIO, "≥"),
        ];
        if let Some(before) = &row.before {
            let what = if row.in_flight == InFlight::One { SLOWER } else { DEARER };
            let bar = row.bar(what).map_or((0.0, 0.0), |b| (b.value, b.bound.unwrap_or(0.0)));
            cells.push(format!("{:.2}", before.median.server_us).into());
            cells.push(judged(what, format!("{:+.1} (≤ {:.1})", bar.0, bar.1)));
        }
        cells
    });
    Table { columns, rows: rows.collect() }
}

pub(super) const fn tone(verdict: BarVerdict) -> Tone {
    match verdict {
        BarVerdict::Pass => Tone::Good,
        BarVerdict::Miss => Tone::Bad,
        BarVerdict::Void => Tone::Muted,
        BarVerdict::Reported => Tone::Plain,
    }
}

/// The comparisons that are not with peers; none where they were left out.
fn others(findings: &Findings) -> Option<Table> {
    let mut rows = Vec::new();
    for (filesystem, figures) in &findings.power {
        let found =
            format!("{:.2} µs/op, {:.0} op/s", figures.median.server_us, figures.median.iops);
        let what = format!("CREATE + REMOVE, power durability, {}", filesystem.name());
        rows.push(vec![what.into(), found.into(), "reported".into()]);
    }
    if let Some(gate) = &findings.gate {
        let found = format!("{:+.2} % CPU per operation", gate.difference_percent);
        let allowed =
            format!("within ±{:.2} % (noise of the rounds, or 2 %)", gate.noise_percent.max(2.0));
        let what = "a contract half above the load against one far above it";
        rows.push(vec![what.into(), Cell::judged(found, gate.passed), allowed.into()]);
    }
    for neighbour in findings.isolation.iter().flat_map(|isolation| &isolation.neighbours) {
        let found =
            format!("p99 {:.3} → {:.3} ms", neighbour.alone_p99_ms, neighbour.beside_p99_ms);
        let what = format!("{} beside a volume on a slow disk", neighbour.operation);
        let cell = Cell::judged(found, neighbour.passed);
        rows.push(vec![what.into(), cell, "rises by less than 2 ms".into()]);
    }
    let columns = vec![Column::words("comparison"), Column::figures("found"), Column::words("bar")];
    (!rows.is_empty()).then_some(Table { columns, rows })
}

/// Did everything pass, and a sentence about it.
fn verdict(findings: &Findings) -> (bool, String) {
    let all = || {
        let smb = findings.smb.iter().flat_map(|row| &row.bars);
        findings.rows.iter().flat_map(|row| &row.bars).chain(smb)
    };
    let count = |verdict| all().filter(|bar| bar.verdict == verdict).count();
    let (passed, missed, void) =
        (count(BarVerdict::Pass), count(BarVerdict::Miss), count(BarVerdict::Void));
    let rest =
        if findings.passed || missed + void > 0 { "" } else { "; see the other comparisons" };
    (findings.passed, format!("{passed} bars met, {missed} missed, {void} void{rest}."))
}

/// The report.
pub(super) fn page(findings: &Findings) -> Page {
    let mut page = Page::new(
        "Weir beside its peers",
        "What an operation costs in Weir, in NFS-Ganesha, in Samba and in a loop that does nothing \
         but the system calls: the same files, the same load, one server after the other.",
    );
    let (passed, sentence) = verdict(findings);
    page.verdict(passed, &sentence);
    if !findings.rows.is_empty() {
        page.facts(&facts(findings));
        nfs(findings, &mut page);
    }
    super::smb::section(&findings.smb, &mut page);
    if let Some(table) = others(findings) {
        page.section("Durability, the gate, and a slow neighbour");
        page.table(&table);
        if let Some(isolation) = &findings.isolation {
            page.paragraph(&format!(
                "The slow volume lies on a disk that takes 20 MiB/s; its clients wrote {} MiB/s \
                 into it with a COMMIT after every 32 writes, page cache included.",
                figure(isolation.slow_mibps)
            ));
        }
    }
    page.section("Rates and latencies");
    page.table(&rates(findings));
    page.section("How it was measured");
    page.list(method(findings));
    page
}

/// The bars of NFS, and their charts.
fn nfs(findings: &Findings, page: &mut Page) {
    page.section("The bars");
    page.table(&bars(findings));
    page.paragraph(
        "CPU per operation is the processor time of all the server's threads and of the kernel's \
         own threads during the measurement, divided by the operations completed in it. A row \
         against Ganesha is void where Ganesha costs more than 1.15 times what it is known to \
         cost when tuned; a rate is void where the load generator was the limit.",
    );
    for filesystem in Filesystem::ALL {
        for part in [ChartPart::Small, ChartPart::Large, ChartPart::OneAtATime] {
            let groups = groups(findings, filesystem, part);
            if !groups.is_empty() {
                let heading = part.heading();
                page.section(&format!("CPU per operation on {}, {heading}", filesystem.name()));
                page.figure(
                    &chart(groups),
                    "Medians. The dashed mark is what Weir is allowed against the bare loop.",
                );
            }
        }
    }
}

/// The parts of the charts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChartPart {
    Small,
    Large,
    OneAtATime,
}

impl ChartPart {
    /// The part of the charts that `row` belongs to.
    fn of(row: &Row) -> Self {
        match row.in_flight {
            InFlight::One => Self::OneAtATime,
            InFlight::Many if row.workload.contains("sequential") => Self::Large,
            InFlight::Many if row.workload == super::CREATE_REMOVE => Self::Large,
            InFlight::Many => Self::Small,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Small => "small operations",
            Self::Large => "large operations",
            Self::OneAtATime => "one at a time",
        }
    }
}

fn facts(findings: &Findings) -> Vec<Fact> {
    let batched = || findings.rows.iter().filter(|row| row.in_flight == InFlight::Many);
    let ratios = |what: &str| median(batched().filter_map(|row| row.bar(what)).map(|b| b.value));
    let extra = median(
        batched()
            .filter(|row| row.weir.median.server_us < 30.0)
            .map(|row| row.weir.median.server_us - row.bare.median.server_us),
    );
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    vec![
        fact(
            format!("{:.2} ×", ratios(CPU_RATIO)),
            "Ganesha's CPU per operation, median of the rows",
        ),
        fact(
            format!("{:.1} ×", ratios(RATE_RATIO)),
            "Ganesha's operations per second, median of the rows",
        ),
        fact(format!("+{extra:.2} µs"), "above the bare loop, median of the small operations"),
    ]
}

fn groups(findings: &Findings, filesystem: Filesystem, part: ChartPart) -> Vec<BarGroup> {
    let rows = findings.rows.iter();
    let rows = rows.filter(|row| row.filesystem == filesystem && ChartPart::of(row) == part);
    rows.map(|row| BarGroup {
        label: row.workload.to_owned(),
        bars: vec![
            (Series::Weir, Some(row.weir.median.server_us)),
            (Series::Bare, Some(row.bare.median.server_us)),
            (Series::Ganesha, Some(row.ganesha.median.server_us)),
        ],
        bound: row.bar(OVER_BARE).and_then(|bar| bar.bound),
    })
    .collect()
}

fn chart(groups: Vec<BarGroup>) -> String {
    BarChart {
        label: "CPU per operation of three servers".to_owned(),
        unit: "µs of processor time for an operation".to_owned(),
        legend: vec![
            (Series::Weir, "Weir".to_owned()),
            (Series::Bare, "bare loop".to_owned()),
            (Series::Ganesha, "NFS-Ganesha 4.3".to_owned()),
        ],
        groups,
    }
    .to_svg()
}

fn rates(findings: &Findings) -> Table {
    let columns = vec![
        Column::words("workload"),
        Column::words("on"),
        Column::words("server"),
        Column::figures("op/s"),
        Column::figures("p50 ms"),
        Column::figures("p99 ms"),
        Column::figures("server µs/op"),
        Column::figures("least – most"),
        Column::figures("kernel workers µs/op"),
        Column::figures("generator µs/op"),
    ];
    let rows = findings.rows.iter().flat_map(|row| {
        let servers = [("Weir", &row.weir), ("Ganesha", &row.ganesha), ("bare loop", &row.bare)];
        let before = row.before.iter().map(|figures| ("earlier Weir", figures));
        let place = (row.workload, row.filesystem);
        servers.into_iter().chain(before).map(move |(name, figures)| rate(place, name, figures))
    });
    let smb = findings.smb.iter().flat_map(|row| {
        let servers = [("Weir", &row.weir), ("smbd", &row.smbd), ("bare loop", &row.bare)];
        let place = (row.workload, row.filesystem);
        servers.into_iter().map(move |(name, figures)| rate(place, name, figures))
    });
    Table { columns, rows: rows.chain(smb).collect() }
}

/// The figures of one server in one row.
fn rate(
    (workload, filesystem): (&'static str, Filesystem),
    name: &'static str,
    figures: &super::Figures,
) -> Vec<Cell> {
    let median = figures.median;
    let (least, most) = figures.server_us_range;
    let limit = if median.generator_saturated { " *" } else { "" };
    vec![
        workload.into(),
        filesystem.name().into(),
        name.into(),
        format!("{}{limit}", figure(median.iops)).into(),
        format!("{:.3}", median.p50_ms).into(),
        format!("{:.3}", median.p99_ms).into(),
        format!("{:.2}", median.server_us).into(),
        format!("{least:.2} – {most:.2}").into(),
        format!("{:.2}", median.kernel_workers_us).into(),
        format!("{:.2}", median.generator_us).into(),
    ]
}

fn method(findings: &Findings) -> Vec<String> {
    let times = findings.times;
    vec![
        format!(
            "{} rounds; in each, Weir, Ganesha or smbd, and the bare loop take turns, {} s of load \
             before {} s measured. Figures are medians over the rounds.",
            times.rounds, times.warmup_s, times.measured_s
        ),
        format!(
            "One generator with {} thread(s) on the same machine: 4 connections, 16 requests in \
             flight on each; in the rows \"one at a time\" one connection with one request. A star \
             marks rates where it was the limit: it computed 95 % of the time or more. \
             Against an earlier build, rows \"one at a time\" are judged by rate, others by CPU.",
            times.generator_threads
        ),
        "Four files of 128 MiB in page cache, laid out once by writes of 4 KiB, on a fresh file \
         system on a loop device. Everything dirty is written back before each measurement."
            .to_owned(),
        "Kernel workers are all of the kernel's own threads, whatever they did: write-back, \
         journals and the loop device."
            .to_owned(),
        "The bare loop answers GETATTR, ACCESS and LOOKUP from memory without a system call, the \
         strictest reading of its part; READ, WRITE, CREATE and REMOVE make theirs."
            .to_owned(),
        "Ganesha 4.3 with the VFS module: NFSv3 over TCP alone, no lock manager, no statistics, no \
         duplicate request cache, attributes cached for ten minutes, 1 MiB transfers."
            .to_owned(),
    ]
}
