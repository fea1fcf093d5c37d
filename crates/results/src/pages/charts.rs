//! The charts of a test: of one result, or of several side by side.

use super::steps::{Whole, about_bytes, grouped, measured};
use super::words::step_name;
use crate::{Spread, StepResult, Summary, TestResult};
use weir_core::units::latency;
use weir_load::Latency;
use weir_report::{
    PercentileChart, PercentileRow, Percentiles, SegmentBar, SegmentChart, SegmentRow, Series,
    XyAxis, XyChart, XyLine, XyPoint, figure,
};
use weir_scenario::scenario::Chart;

/// A test of one of several results.
pub(super) struct Source<'a> {
    /// The owner's label; empty if there is only one.
    pub(super) label: &'a str,
    pub(super) test: &'a TestResult,
}

/// The charts of a test: over the page's whole width, each with a caption, and small ones.
#[derive(Default)]
pub(super) struct Charts {
    pub(super) wide: Vec<(String, &'static str)>,
    pub(super) small: Vec<String>,
}

/// The charts that show the figures of a test best.
pub(super) fn of(sources: &[Source<'_>]) -> Charts {
    let Some(first) = sources.first() else { return Charts::default() };
    match first.test.chart {
        Chart::Bars => bars(sources),
        Chart::LatencyCurve => curves(sources),
        Chart::Lines => lines(sources),
    }
}

fn bars(sources: &[Source<'_>]) -> Charts {
    let mut charts = Charts::default();
    match sources {
        [one] => {
            charts.wide.push((measured_bars(one.test), MEASURED));
            charts.wide.extend(shape(one.test).map(|svg| (svg, SHAPE)));
        }
        several => charts.wide.push((side_bars(several), SIDES)),
    }
    charts
}

const MEASURED: &str = "Measured figures. Whiskers, if present, extend from the minimum to the maximum of the repeats.";
const SHAPE: &str = "The published figures come from other machines and other sizes, so that only the shape can be compared: \
                     each side as a part of its own figure for the step that was published highest.";
const SIDES: &str =
    "Reads and writes together. Whiskers extend from the minimum to the maximum of the repeats.";

/// Reads and writes of each step.
fn measured_bars(test: &TestResult) -> String {
    let (bytes, groups) = (about_bytes(test), grouped(test));
    let unit = unit(bytes);
    let rows = measured(test).map(|(step, summary)| {
        let (read, write, whole) = parts(summary, bytes);
        let known = read.median + write.median;
        let other = (whole.median - known).max(0.0);
        let mut segments = vec![(Series::Read, read.median), (Series::Write, write.median)];
        // Medians of parts need not add up to the median of the whole.
        if other > whole.median * 0.02 {
            segments.push((Series::Nth(3), other));
        }
        let both = read.median > 0.0 && write.median > 0.0;
        let note = if both {
            format!("{} + {}", figure(read.median), figure(write.median))
        } else {
            figure(whole.median)
        };
        let name = step_name(step, groups);
        let hint = format!("{unit}, {name}");
        let bar = SegmentBar { segments, spread: ends(&whole, summary), note, hint };
        SegmentRow { label: name, bars: vec![bar] }
    });
    let rows: Vec<SegmentRow> = rows.collect();
    let has = |series| {
        rows.iter()
            .flat_map(|row| &row.bars)
            .flat_map(|bar| &bar.segments)
            .any(|(one, value)| *one == series && *value > 0.0)
    };
    let all =
        [(Series::Read, "reads"), (Series::Write, "writes"), (Series::Nth(3), "other operations")];
    let legend = all.into_iter().filter(|(series, _)| has(*series));
    SegmentChart {
        title: format!("Measured {unit}"),
        subtitle: "medians of the repeats of each step".to_owned(),
        unit: unit.to_owned(),
        legend: legend.map(|(series, words)| (series, words.to_owned())).collect(),
        rows,
    }
    .to_svg()
}

/// Measured and published, each in percent of its own figure for the step that was published
/// highest; nothing with fewer than two published steps.
fn shape(test: &TestResult) -> Option<String> {
    let steps: Vec<(&StepResult, &Summary, Whole)> = measured(test)
        .filter_map(|(step, summary)| {
            let whole = step.published.as_ref().and_then(Whole::first)?;
            (whole.sum() > 0.0).then_some((step, summary, whole))
        })
        .collect();
    let (top, top_summary, top_whole) =
        steps.iter().max_by(|a, b| a.2.sum().total_cmp(&b.2.sum()))?;
    let base = top_whole.measured(top_summary);
    if steps.len() < 2 || base <= 0.0 {
        return None;
    }
    let groups = grouped(test);
    let rows = steps.iter().map(|(step, summary, whole)| {
        let (read, write, all) = parts(summary, whole.bytes);
        let percent = |value: f64| value / base * 100.0;
        let measured = SegmentBar {
            segments: if read.median + write.median > 0.0 {
                vec![(Series::Read, percent(read.median)), (Series::Write, percent(write.median))]
            } else {
                vec![(Series::Read, percent(all.median))]
            },
            spread: None,
            note: format!("measured {} %", figure(percent(all.median))),
            hint: "% measured".to_owned(),
        };
        let share = |value: f64| value / top_whole.sum() * 100.0;
        let published = SegmentBar {
            segments: vec![
                (Series::PublishedRead, share(whole.read)),
                (Series::PublishedWrite, share(whole.write)),
            ],
            spread: None,
            note: format!("published {} %", figure(share(whole.sum()))),
            hint: "% published".to_owned(),
        };
        SegmentRow { label: step_name(step, groups), bars: vec![measured, published] }
    });
    let legend = [
        (Series::Read, "reads measured"),
        (Series::Write, "writes measured"),
        (Series::PublishedRead, "reads published"),
        (Series::PublishedWrite, "writes published"),
    ];
    let name = step_name(top, groups);
    let chart = SegmentChart {
        title: "Shape compared with the published one".to_owned(),
        subtitle: format!(
            "100 % is {name}: {} {} measured, {} published",
            figure(base),
            top_whole.unit(),
            figure(top_whole.sum())
        ),
        unit: format!("percent of {name}"),
        legend: legend.map(|(series, words)| (series, words.to_owned())).to_vec(),
        rows: rows.collect(),
    };
    Some(chart.to_svg())
}

/// A chart of one step of several sides.
fn side_bars(sources: &[Source<'_>]) -> String {
    let Some(first) = sources.first() else { return String::new() };
    let (bytes, groups) = (about_bytes(first.test), grouped(first.test));
    let unit = unit(bytes);
    let rows = measured(first.test).map(|(step, _)| {
        let bars = sources.iter().enumerate().map(|(side, source)| {
            let found = measured(source.test).find(|(one, _)| one.name == step.name);
            let Some((_, summary)) = found else {
                return SegmentBar { note: "not measured".to_owned(), ..SegmentBar::default() };
            };
            let (_, _, whole) = parts(summary, bytes);
            SegmentBar {
                segments: vec![(Series::Nth(side), whole.median)],
                spread: ends(&whole, summary),
                note: figure(whole.median),
                hint: format!("{unit}, {}", source.label),
            }
        });
        SegmentRow { label: step_name(step, groups), bars: bars.collect() }
    });
    let legend = sources.iter().enumerate();
    SegmentChart {
        title: format!("Measured {unit}"),
        subtitle: "medians of the repeats of each step".to_owned(),
        unit: unit.to_owned(),
        legend: legend.map(|(side, one)| (Series::Nth(side), one.label.to_owned())).collect(),
        rows: rows.collect(),
    }
    .to_svg()
}

/// Latency over operations a second.
fn curves(sources: &[Source<'_>]) -> Charts {
    let chart = |title: &str, label: &str, height: fn(&Summary) -> Spread| {
        let lines = lines_of(sources, |step, summary| {
            let latency_of = height(summary);
            Some(XyPoint {
                x: summary.iops.median,
                y: latency_of.median,
                spread: ends(&latency_of, summary),
                hint: hint(step, summary),
            })
        });
        let heights = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.y));
        let steep = heights().fold(0.0, f64::max) > 30.0 * heights().fold(f64::MAX, f64::min);
        XyChart {
            title: title.to_owned(),
            subtitle: "each point is a step".to_owned(),
            x: XyAxis { label: "operations a second".to_owned(), ..XyAxis::default() },
            y: XyAxis { label: label.to_owned(), log: steep, ..XyAxis::default() },
            lines,
            ..XyChart::default()
        }
    };
    let mut mean = chart("Mean latency over rate", "mean latency, ms", |one| one.mean_ms);
    if let [one] = sources {
        mean.lines.extend(published_curve(one.test, &mean));
    }
    let p99 = chart("99th percentile over rate", "p99 latency, ms", |one| one.p99_ms);
    Charts { wide: Vec::new(), small: vec![mean.to_svg(), p99.to_svg()] }
}

/// Published points that lie near enough to be seen beside the measured ones.
fn published_curve(test: &TestResult, chart: &XyChart) -> Option<XyLine> {
    let most = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.x);
    let most = most.fold(0.0, f64::max) * 3.0;
    let points: Vec<XyPoint> = measured(test)
        .filter_map(|(step, _)| {
            let published = step.published.as_ref()?;
            let whole = Whole::first(published).filter(|whole| !whole.bytes)?;
            let y = published.latency_ms?;
            let hint = format!("{}: {} op/s at {}", published.who, figure(whole.sum()), latency(y));
            Some(XyPoint { x: whole.sum(), y, spread: None, hint })
        })
        .filter(|point| point.x <= most)
        .collect();
    (!points.is_empty()).then(|| XyLine {
        series: Series::Published,
        label: "published".to_owned(),
        points,
        dots: true,
        joined: false,
    })
}

/// Rate and latency over what the test varies.
fn lines(sources: &[Source<'_>]) -> Charts {
    let steps = || sources.iter().flat_map(|source| measured(source.test));
    let axis = steps().find_map(|(step, _)| step.axis.clone());
    // Without an axis there is nothing to draw over.
    let Some(axis) = axis else { return bars(sources) };
    let bytes = sources.first().is_some_and(|source| about_bytes(source.test));
    let mut ticks: Vec<f64> =
        steps().filter_map(|(step, _)| step.axis.as_ref().map(|axis| axis.value)).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let wide = match (ticks.first(), ticks.last()) {
        (Some(&least), Some(&most)) => least > 0.0 && most / least >= 10.0,
        _ => false,
    };
    let x = XyAxis { label: axis.label, log: wide, ticks, ends: None };
    let x = if wide { x } else { XyAxis { ticks: Vec::new(), ..x } };
    let chart = |title: String, label: String, value: &dyn Fn(&Summary) -> Spread| {
        let lines = lines_of(sources, |step, summary| {
            let spread = value(summary);
            let x = step.axis.as_ref()?.value;
            let hint = hint(step, summary);
            Some(XyPoint { x, y: spread.median, spread: ends(&spread, summary), hint })
        });
        XyChart {
            title,
            subtitle: "medians of the repeats of each step".to_owned(),
            x: x.clone(),
            y: XyAxis { label, ..XyAxis::default() },
            lines,
            ..XyChart::default()
        }
        .to_svg()
    };
    let rate = if bytes { |one: &Summary| one.mibps } else { |one: &Summary| one.iops };
    let unit = unit(bytes);
    Charts {
        wide: Vec::new(),
        small: vec![
            chart(format!("Measured {unit}"), unit.to_owned(), &rate),
            chart("Mean latency".to_owned(), "mean latency, ms".to_owned(), &|one| one.mean_ms),
        ],
    }
}

/// A line for each group of each source.
fn lines_of(
    sources: &[Source<'_>],
    point: impl Fn(&StepResult, &Summary) -> Option<XyPoint>,
) -> Vec<XyLine> {
    let mut lines: Vec<XyLine> = Vec::new();
    for source in sources {
        let mut names: Vec<&str> = Vec::new();
        for (step, _) in measured(source.test) {
            if !names.contains(&step.group.as_str()) {
                names.push(&step.group);
            }
        }
        for group in names {
            let steps = measured(source.test).filter(|(step, _)| step.group == group);
            let points: Vec<XyPoint> =
                steps.filter_map(|(step, summary)| point(step, summary)).collect();
            let words = [source.label, group].into_iter().filter(|word| !word.is_empty());
            let label = words.collect::<Vec<_>>().join(", ");
            let series = Series::Nth(lines.len());
            lines.push(XyLine { series, label, points, dots: true, joined: true });
        }
    }
    lines
}

/// The latency distribution of every step.
pub(super) fn percentiles(test: &TestResult) -> Option<String> {
    let groups = grouped(test);
    let mut names: Vec<&str> = Vec::new();
    let mut rows = Vec::new();
    for (step, _) in measured(test) {
        if !names.contains(&step.group.as_str()) {
            names.push(&step.group);
        }
        let group = names.iter().position(|name| *name == step.group).unwrap_or(0);
        let Some(run) = middle(step) else { continue };
        rows.push(PercentileRow {
            label: step_name(step, groups),
            series: Series::Nth(group),
            latency: distribution(&run.total.total.latency_ms),
        });
    }
    let any = rows.iter().any(|row| row.latency.max > 0.0);
    any.then(|| PercentileChart { title: "Latency of each step".to_owned(), rows }.to_svg())
}

/// The repeat whose rate is the median, or the next below.
pub(super) fn middle(step: &StepResult) -> Option<&crate::StepRun> {
    let mut runs: Vec<_> = step.runs.iter().collect();
    runs.sort_by(|a, b| a.total.total.iops.total_cmp(&b.total.total.iops));
    let middle = runs.len().saturating_sub(1) / 2;
    runs.get(middle).copied()
}

fn hint(step: &StepResult, summary: &Summary) -> String {
    format!(
        "{}: {} op/s, {} MiB/s, mean {}, p99 {}",
        step.name,
        figure(summary.iops.median),
        figure(summary.mibps.median),
        latency(summary.mean_ms.median),
        latency(summary.p99_ms.median)
    )
}

/// Reads, writes and all kinds together, in operations or MiB a second.
pub(super) const fn parts(summary: &Summary, bytes: bool) -> (Spread, Spread, Spread) {
    if bytes {
        (summary.read_mibps, summary.write_mibps, summary.mibps)
    } else {
        (summary.read_iops, summary.write_iops, summary.iops)
    }
}

pub(super) fn ends(spread: &Spread, summary: &Summary) -> Option<(f64, f64)> {
    (summary.repeats > 1).then_some((spread.min, spread.max))
}

pub(super) const fn unit(bytes: bool) -> &'static str {
    if bytes { "MiB/s" } else { "op/s" }
}

/// The figures of a distribution that its row shows.
fn distribution(latency: &Latency) -> Percentiles {
    let &Latency { mean, p50, p95, p99, p99_9, p99_99, max, .. } = latency;
    Percentiles { mean, p50, p95, p99, p99_9, p99_99, max }
}
