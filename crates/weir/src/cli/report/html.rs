//! A report as a page: what came of a contract, with charts. It judges nothing.

use super::{cause_words, counts, error_text, missing, nanos_text, utc, verdict};
use weir_api::{Report, Split, Verdict, Window};
use weir_core::units::Rate;
use weir_report::{
    Cell, Column, Fact, Line, Page, Part, Series, Stack, StackedChart, Stretch, StretchOutcome,
    Strip, Table, Timeline, Tone, figure,
};

/// Most rows of the table of broken periods; all are in that of every period.
const ROWS_SHOWN: usize = 48;

/// Most bars of a chart: narrower ones could not be told apart.
const BARS_MAX: usize = 450;

/// The page.
pub(super) fn page(report: &Report) -> String {
    let (whole, axis) = (&report.whole, Axis::of(report));
    let judged = match report.resolution_seconds {
        1 => "Each second is judged separately",
        _ => "Each 10-second interval is judged separately",
    };
    let lead = format!(
        "Volume {} of pool {}, from {} to {}. {}: whether the contract was demanded, and whether \
         it was delivered.",
        report.volume,
        report.pool,
        utc(whole.start),
        utc(report.made_at),
        judged,
    );
    let mut page = Page::new(&format!("Was the contract of {} kept?", report.volume), &lead);
    head(&mut page, report);
    page.facts(&facts(whole));
    page.section("Over time");
    page.figure(
        &throughput(report, &axis).to_svg(),
        "Delivered and requested throughput (grey) compared with the limit (dashed). If clients \
         request less than the limit, less is delivered; this does not break the contract.",
    );
    page.figure(
        &verdicts(report, &axis).to_svg(),
        &format!(
            "By {}; a period is broken if any interval in it is broken.",
            length(report.resolution_seconds)
        ),
    );
    page.figure(
        &latencies(report, &axis).to_svg(),
        "Breakdown of the mean latency of READs, WRITEs and COMMITs. Time waiting for the contract \
         is intended: it is the number of requests in flight divided by the rate of the limit.",
    );
    page.section("Lately");
    let names = ["last 10 s", "last minute", "last hour"].map(str::to_owned);
    let recent = names.into_iter().zip(&report.recent);
    page.table(&table(recent.chain([("total".to_owned(), whole)])));
    periods(&mut page, report);
    page.section("Conditions");
    page.list(report.conditions.iter().cloned());
    page.to_html(&format!("Weir {}. Made {}.", report.server, utc(report.made_at)))
}

fn head(page: &mut Page, report: &Report) {
    let counted = counts(report) + ".";
    match (report.whole.verdict, report.whole.cause) {
        (Verdict::Kept, _) => page.judgement(true, "Kept", &counted),
        (Verdict::NotDemanded, _) => page.remark("Not demanded", &counted),
        (Verdict::Broken, cause) => {
            let by = cause.map(|cause| format!(" Mostly by {}.", cause_words(cause)));
            page.judgement(false, "Broken", &(counted + &by.unwrap_or_default()));
        }
    }
    for sentence in missing(report) {
        page.remark("Incomplete", &sentence);
    }
}

fn facts(whole: &Window) -> [Fact; 4] {
    let fact = |value: String, label: &str| Fact { value, label: label.to_owned() };
    [
        fact(
            whole.error.map_or_else(|| "–".to_owned(), error_text),
            "contract error while it was demanded",
        ),
        fact(format!("{:.2}", Rate(whole.limit_bytes_per_second)), "limit, on average"),
        fact(
            format!("{:.2}", Rate(whole.delivered_bytes_per_second)),
            "delivered, average over the whole period",
        ),
        fact(
            whole.split.mean_nanos().map_or_else(|| "–".to_owned(), nanos_text),
            "mean latency of a READ, WRITE or COMMIT",
        ),
    ]
}

/// Time as it is shown: counted back from when the report was made.
struct Axis {
    end: u64,
    unit: f64,
    /// Length of a period, in seconds.
    period: f64,
    span: (f64, f64),
    label: String,
}

impl Axis {
    fn of(report: &Report) -> Self {
        // The time before the first period would only press the rest together.
        let first = report.periods.first().map_or(report.whole.start, |first| first.start);
        let start = first.max(report.whole.start);
        let seconds = report.made_at.saturating_sub(start).max(1);
        let (unit, name) = match seconds {
            ..=180 => (1.0, "seconds"),
            181..=10_800 => (60.0, "minutes"),
            10_801..=259_200 => (3600.0, "hours"),
            _ => (86_400.0, "days"),
        };
        let span = (-float(seconds) / unit, 0.0);
        Self {
            end: report.made_at,
            unit,
            period: float(report.resolution_seconds),
            span,
            label: format!("{name} until {}", utc(report.made_at)),
        }
    }

    fn at(&self, time: f64) -> f64 {
        (time - float(self.end)) / self.unit
    }

    fn span_of(&self, window: &Window) -> (f64, f64) {
        let start = float(window.start);
        // Seconds are counted a little more or less long; that is no gap.
        (self.at(start), self.at(start + self.period).min(0.0))
    }
}

fn throughput(report: &Report, axis: &Axis) -> Timeline {
    let mib = |rate: u64| float(rate) / 1_048_576.0;
    let line = |series, rate: fn(&Window) -> u64| {
        // Steps, down to nothing where nothing came.
        let mut points: Vec<(f64, f64)> = vec![(axis.span.0, 0.0)];
        for window in &report.periods {
            let (from, to) = axis.span_of(window);
            if let Some(&(last, _)) = points.last()
                && from - last > 1e-9
            {
                points.extend([(last, 0.0), (from, 0.0)]);
            }
            let value = mib(rate(window));
            points.extend([(from, value), (to, value)]);
        }
        let last = points.last().map_or(axis.span.0, |last| last.0);
        points.extend([(last, 0.0), (0.0, 0.0)]);
        Line { series, points }
    };
    let due = limits(report, axis);
    let rates = report.periods.iter().map(|one| one.delivered_bytes_per_second);
    let delivered = rates.map(mib).fold(0.0, f64::max);
    let limit = due.iter().map(|stretch| stretch.value).fold(0.0, f64::max);
    // A limit far above what anybody moves would press the line to the ground.
    let top =
        if limit > delivered * 20.0 && delivered > 0.0 { delivered * 1.25 } else { limit * 1.25 };
    let top = top.max(delivered * 1.1).max(f64::MIN_POSITIVE);
    let note = if limit > top { "; the limit is beyond the chart" } else { "" };
    Timeline {
        title: "Throughput".to_owned(),
        subtitle: format!("delivered, offered and limit{note}"),
        unit: "MiB/s".to_owned(),
        time: axis.label.clone(),
        span_s: axis.span,
        range: (0.0, top),
        lines: vec![
            line(Series::Published, |one| one.offered_bytes_per_second),
            line(Series::Weir, |one| one.delivered_bytes_per_second),
        ],
        due: if limit > top { Vec::new() } else { due },
        band: 0.0,
        judged_from_s: axis.span.0,
        marks: Vec::new(),
        wide: true,
    }
}

/// The limits, as far as they are known: one holds until another is seen.
fn limits(report: &Report, axis: &Axis) -> Vec<Stretch> {
    let mut due: Vec<Stretch> = Vec::new();
    for window in report
        .periods
        .iter()
        .chain([&report.whole].into_iter().filter(|_| report.periods.is_empty()))
    {
        let value = float(window.limit_bytes_per_second) / 1_048_576.0;
        let (from, _) = axis.span_of(window);
        match due.last_mut() {
            // Values that differ by rounding are no change.
            Some(last) if (last.value - value).abs() <= value * 1e-4 => {}
            Some(last) => {
                last.to_s = from;
                due.push(Stretch { from_s: from, to_s: 0.0, value });
            }
            None => due.push(Stretch { from_s: axis.span.0, to_s: 0.0, value }),
        }
    }
    due
}

fn verdicts(report: &Report, axis: &Axis) -> Strip {
    let stretch = |window: &Window| {
        let outcome = match window.verdict {
            Verdict::Kept => StretchOutcome::Good,
            Verdict::NotDemanded => StretchOutcome::Neither,
            Verdict::Broken => StretchOutcome::Bad,
        };
        let error = window.error.filter(|_| outcome == StretchOutcome::Bad);
        let error = error.map(|error| format!(", {}", error_text(error))).unwrap_or_default();
        let hint = format!("from {}: {}{error}", utc(window.start), verdict(window));
        (axis.span_of(window), outcome, hint)
    };
    let mut stretches: Vec<((f64, f64), StretchOutcome, String)> = Vec::new();
    for (span, outcome, hint) in report.periods.iter().map(stretch) {
        match stretches.last_mut() {
            // Periods that are alike become one; each broken one says so itself.
            Some((last, same, _))
                if *same == outcome
                    && outcome != StretchOutcome::Bad
                    && last.1 >= span.0 - 1e-9 =>
            {
                last.1 = span.1;
            }
            _ => stretches.push((span, outcome, hint)),
        }
    }
    Strip {
        title: "Verdict".to_owned(),
        legend: ["kept".to_owned(), "not demanded".to_owned(), "broken".to_owned()],
        time: axis.label.clone(),
        span: axis.span,
        stretches,
    }
}

fn latencies(report: &Report, axis: &Axis) -> StackedChart {
    let stack = |windows: &[Window]| {
        let sum = |get: fn(&Split) -> u64| windows.iter().map(|one| get(&one.split)).sum::<u64>();
        let split = Split {
            requests: sum(|one| one.requests),
            wait_nanos: sum(|one| one.wait_nanos),
            store_nanos: sum(|one| one.store_nanos),
            network_nanos: sum(|one| one.network_nanos),
            processing_nanos: sum(|one| one.processing_nanos),
        };
        let spans = || windows.iter().map(|window| axis.span_of(window));
        let from = spans().map(|span| span.0).fold(0.0, f64::min);
        let to = spans().map(|span| span.1).fold(axis.span.0, f64::max);
        let millis = |nanos: u64| float(nanos) / 1e6 / float(split.requests.max(1));
        let value = |part| match part {
            Part::Wait => millis(split.wait_nanos),
            Part::Store => millis(split.store_nanos),
            Part::Network => millis(split.network_nanos),
            Part::Processing => millis(split.processing_nanos),
        };
        Stack { span: (from, to), values: Part::ALL.map(value) }
    };
    StackedChart {
        title: "Latency of a request".to_owned(),
        subtitle: "by component".to_owned(),
        unit: "ms".to_owned(),
        time: axis.label.clone(),
        span: axis.span,
        stacks: bars(&answered(report)).into_iter().map(stack).collect(),
    }
}

/// Periods in which anything was answered.
fn answered(report: &Report) -> Vec<Window> {
    report.periods.iter().filter(|one| one.split.requests > 0).cloned().collect()
}

/// Neighbours put together, so that at most [`BARS_MAX`] are drawn. What has a gap before it begins
/// anew.
fn bars(windows: &[Window]) -> Vec<&[Window]> {
    let size = windows.len().div_ceil(BARS_MAX).max(1);
    let adjoin = |a: &Window, b: &Window| float(b.start) <= float(a.start) + a.seconds + 0.5;
    windows.chunk_by(adjoin).flat_map(|run| run.chunks(size)).collect()
}

fn periods(page: &mut Page, report: &Report) {
    let all = |window: &Window| (utc(window.start), window.clone());
    let rows: Vec<(String, Window)> = report.periods.iter().map(all).collect();
    let broken = rows.iter().filter(|(_, window)| window.verdict == Verdict::Broken);
    let broken: Vec<_> = broken.map(|(name, window)| (name.clone(), window)).collect();
    if !broken.is_empty() {
        page.section("Broken");
        let first = broken.len().saturating_sub(ROWS_SHOWN);
        page.table(&table(broken.into_iter().skip(first)));
    }
    page.section("Every period");
    let count = rows.len();
    let summary =
        format!("{count} periods with requests, by {}", length(report.resolution_seconds));
    page.details(&summary, &table(rows.iter().map(|(name, window)| (name.clone(), window))));
}

fn table<'a>(rows: impl Iterator<Item = (String, &'a Window)>) -> Table {
    let columns = vec![
        Column::words("time"),
        Column::words("verdict"),
        Column::figures("error"),
        Column::figures("limit MiB/s"),
        Column::figures("offered MiB/s"),
        Column::figures("delivered MiB/s"),
        Column::figures("IOPS"),
        Column::figures("latency"),
        Column::figures("contract"),
        Column::figures("store"),
        Column::figures("network"),
        Column::figures("processing"),
    ];
    let row = |(name, window): (String, &Window)| {
        let split = &window.split;
        let tone = match window.verdict {
            Verdict::Kept => Tone::Good,
            Verdict::NotDemanded => Tone::Muted,
            Verdict::Broken => Tone::Bad,
        };
        let mib = |rate: u64| Cell::from(figure(float(rate) / 1_048_576.0));
        let part = |nanos| Cell::from(format!("{:.0} %", split.part(nanos) * 100.0));
        vec![
            name.into(),
            Cell::new(verdict(window), tone),
            window.error.map_or_else(|| "–".to_owned(), error_text).into(),
            mib(window.limit_bytes_per_second),
            mib(window.offered_bytes_per_second),
            mib(window.delivered_bytes_per_second),
            figure(window.delivered_iops).into(),
            split.mean_nanos().map_or_else(|| "–".to_owned(), nanos_text).into(),
            part(split.wait_nanos),
            part(split.store_nanos),
            part(split.network_nanos),
            part(split.processing_nanos),
        ]
    };
    Table { columns, rows: rows.map(row).collect() }
}

fn length(seconds: u64) -> String {
    match seconds {
        1 => "the second".to_owned(),
        60 => "the minute".to_owned(),
        seconds => format!("{} minutes", seconds / 60),
    }
}

#[expect(clippy::cast_precision_loss, reason = "drawn, and shown with a few digits")]
const fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::{Cause, REPORT_VERSION};

    fn window(start: u64, verdict: Verdict) -> Window {
        Window {
            start,
            seconds: 60.0,
            verdict,
            cause: (verdict == Verdict::Broken).then_some(Cause::Store),
            limit_bytes_per_second: 16 << 20,
            delivered_bytes_per_second: 8 << 20,
            split: Split { requests: 10, store_nanos: 1_000_000, ..Split::default() },
            ..Window::default()
        }
    }

    fn report(periods: Vec<Window>) -> Report {
        Report {
            version: REPORT_VERSION,
            volume: "<home>".into(),
            volume_id: 1,
            pool: "fast".into(),
            server: "0.1.0".into(),
            made_at: 1_700_003_600,
            resolution_seconds: 60,
            whole: Window { seconds: 3600.0, ..window(1_700_000_000, Verdict::Broken) },
            recent: vec![window(1_700_003_540, Verdict::NotDemanded)],
            periods,
            conditions: vec!["one <condition>".into()],
            missing: Vec::new(),
        }
    }

    #[test]
    fn a_page_shows_every_part_and_nothing_unescaped() {
        let periods = vec![
            window(1_700_000_000, Verdict::Kept),
            window(1_700_000_060, Verdict::Broken),
            window(1_700_001_800, Verdict::NotDemanded),
        ];
        let html = page(&report(periods));
        for part in ["class=\"v-bad\"", "class=\"p-store\"", "class=\"due\"", "broken: store"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<home>") && html.contains("one &lt;condition&gt;"));
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }

    #[test]
    fn a_report_of_nothing_is_a_page_too() {
        let html = page(&report(Vec::new()));
        assert!(!html.contains("NaN") && html.ends_with("</html>\n"));
    }

    #[test]
    fn seconds_that_are_a_little_short_leave_no_gap() {
        let second =
            |at: u64| Window { seconds: 0.998, ..window(1_700_003_590 + at, Verdict::Kept) };
        let mut report = report((0..10).map(second).collect());
        report.resolution_seconds = 1;
        let axis = Axis::of(&report);
        let [_, delivered] = &throughput(&report, &axis).lines[..] else { panic!("two lines") };
        let inside = &delivered.points[1..delivered.points.len() - 2];
        assert!(inside.iter().all(|(_, value)| *value == 8.0), "{inside:?}");
        assert_eq!(verdicts(&report, &axis).stretches.len(), 1);
    }

    #[test]
    fn many_periods_are_drawn_as_fewer_bars() {
        let minutes = |from: u64| (0..700).map(move |at| window(from + 60 * at, Verdict::Kept));
        let day: Vec<_> = minutes(0).chain(minutes(60 * 800)).collect();
        let drawn = bars(&day);
        assert!(drawn.len() <= BARS_MAX + 2 && drawn.len() > BARS_MAX / 2, "{}", drawn.len());
        assert_eq!(drawn.iter().map(|bar| bar.len()).sum::<usize>(), 1400);
        let gap =
            drawn.iter().find(|bar| bar[0].start < 60 * 700 && bar[bar.len() - 1].start > 60 * 700);
        assert!(gap.is_none(), "no bar spans the time in which nothing came");
        assert_eq!(bars(&day[..3]).len(), 3);
    }

    #[test]
    fn a_changed_limit_is_a_step() {
        let mut periods = vec![window(1_700_000_000, Verdict::Kept); 3];
        periods[1].limit_bytes_per_second = (16 << 20) + 3;
        (periods[2].start, periods[2].limit_bytes_per_second) = (1_700_001_800, 32 << 20);
        let report = report(periods);
        let steps = limits(&report, &Axis::of(&report));
        let values: Vec<_> = steps.iter().map(|step| (step.from_s, step.value)).collect();
        assert_eq!(values, [(-60.0, 16.0), (-30.0, 32.0)]);
        assert_eq!(steps[0].to_s, -30.0);
    }
}
