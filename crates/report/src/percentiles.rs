//! Latency distributions, a row for each step, on one axis whose decades are equally long.

use super::svg::{Anchor, Canvas, Scale, Series, fitted, label_room, text_width};
use super::xy::log_ticks;
use weir_core::units::latency;

const WIDTH: f64 = 900.0;
const ROW: f64 = 26.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 40.0;

/// A latency distribution in milliseconds. What was not taken is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// Greatest.
    pub max: f64,
}

/// One distribution.
#[derive(Clone, Debug)]
pub struct PercentileRow {
    /// On the left.
    pub label: String,
    /// The curve's colour.
    pub series: Series,
    /// The distribution.
    pub latency: Percentiles,
}

/// A chart of rows.
#[derive(Clone, Debug)]
pub struct PercentileChart {
    /// Above the chart.
    pub title: String,
    /// The rows, from the top.
    pub rows: Vec<PercentileRow>,
}

impl PercentileChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let drawn = || self.rows.iter().filter(|row| drawable(&row.latency));
        let height = TOP + drawn().map(|_| ROW).sum::<f64>() + BOTTOM;
        let least = drawn().map(|row| low(&row.latency)).fold(f64::MAX, f64::min);
        let most = drawn().map(|row| row.latency.max).fold(0.0, f64::max);
        let (least, most) = if most > 0.0 { (least, most) } else { (0.1, 1.0) };
        let note = |row: &PercentileRow| format!("p99 {}", latency(row.latency.p99));
        let notes = drawn().map(|row| text_width(&note(row))).fold(60.0, f64::max);
        let left = label_room(drawn().map(|row| row.label.as_str()));
        let x = Scale {
            from: least.log10() - 0.04,
            to: most.log10() + 0.04,
            start: left,
            end: WIDTH - notes - 12.0,
        };
        let mut canvas = Canvas::new(
            WIDTH,
            height,
            &format!("{}: median to greatest latency of each step", self.title),
        );
        canvas.text("title", (0.0, 16.0), Anchor::Start, &fitted(&self.title, WIDTH / 1.25));
        legend(&mut canvas, left);
        let foot = height - BOTTOM;
        let mut free = 0.0;
        for tick in log_ticks(least, most) {
            let (place, label) = (x.at(tick.log10()), round_latency(tick));
            let half = text_width(&label) / 2.0;
            if place - half < free || place < x.start || place > x.end {
                continue;
            }
            canvas.line("hair", (place, TOP - 6.0), (place, foot));
            canvas.text("tick", (place, foot + 16.0), Anchor::Middle, &label);
            free = place + half + 8.0;
        }
        canvas.line("axis", (left, foot), (x.end, foot));
        let unit = "latency; each power of ten is equally long";
        canvas.text("unit", (x.end, height - 6.0), Anchor::End, unit);
        let mut y = TOP;
        for row in drawn() {
            row.draw(&mut canvas, x, y);
            canvas.text("bar-note", (x.end + 8.0, y + 13.0), Anchor::Start, &note(row));
            y += ROW;
        }
        canvas.finish()
    }
}

/// A round latency without zeros behind the point.
fn round_latency(ms: f64) -> String {
    let text = latency(ms);
    let Some((value, unit)) = text.split_once(' ') else { return text };
    let value =
        if value.contains('.') { value.trim_end_matches('0').trim_end_matches('.') } else { value };
    format!("{value} {unit}")
}

/// Is it a distribution of anything?
fn drawable(latency: &Percentiles) -> bool {
    let all = [latency.mean, latency.p50, latency.p99, latency.max];
    latency.max > 0.0 && all.iter().all(|value| value.is_finite())
}

/// The left end of a row.
fn low(latency: &Percentiles) -> f64 {
    latency.p50.min(latency.mean).max(1e-6)
}

fn legend(canvas: &mut Canvas, mut x: f64) {
    let y = 44.0;
    let step = |x: &mut f64, words: &str, canvas: &mut Canvas| {
        canvas.text("legend", (*x + 26.0, y + 4.0), Anchor::Start, words);
        *x += 26.0 + text_width(words) + 18.0;
    };
    canvas.rect("span s-a", (x, y - 5.0), (20.0, 10.0));
    step(&mut x, "p50 to p99", canvas);
    canvas.line("tail s-a", (x, y), (x + 20.0, y));
    step(&mut x, "p99 to greatest", canvas);
    canvas.line("tick-mark s-a", (x + 10.0, y - 5.0), (x + 10.0, y + 5.0));
    step(&mut x, "p99.9, p99.99", canvas);
    canvas.circle("hollow s-a", (x + 10.0, y), 4.0, "mean");
    step(&mut x, "mean", canvas);
}

impl PercentileRow {
    fn draw(&self, canvas: &mut Canvas, x: Scale, top: f64) {
        let times = &self.latency;
        let middle = top + 9.0;
        let at = |ms: f64| x.clamped(ms.max(1e-6).log10());
        let label = fitted(&self.label, x.start - 18.0);
        canvas.text("row-label", (x.start - 12.0, middle + 4.5), Anchor::End, &label);
        let class = self.series.class();
        canvas.line(&format!("tail {class}"), (at(times.p99), middle), (at(times.max), middle));
        let hint = format!(
            "{}: p50 {}, p95 {}, p99 {}, p99.9 {}, greatest {}",
            self.label,
            latency(times.p50),
            latency(times.p95),
            latency(times.p99),
            latency(times.p99_9),
            latency(times.max)
        );
        let size = ((at(times.p99) - at(times.p50)).max(1.5), 12.0);
        canvas.hinted(&format!("span {class}"), (at(times.p50), middle - 6.0), size, &hint);
        for tick in [times.p99_9, times.p99_99, times.max] {
            if tick > 0.0 {
                let place = at(tick);
                let class = format!("tick-mark {class}");
                canvas.line(&class, (place, middle - 5.0), (place, middle + 5.0));
            }
        }
        let mean = format!("mean {}", latency(times.mean));
        canvas.circle(&format!("hollow {class}"), (at(times.mean), middle), 4.0, &mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_are_equally_long_and_empty_rows_are_left_out() {
        let of = |max| Percentiles {
            mean: 1.0,
            p50: 1.0,
            p95: 5.0,
            p99: 10.0,
            p99_9: max / 2.0,
            p99_99: 0.0,
            max,
        };
        let row =
            |latency| PercentileRow { label: "a <b>".into(), series: Series::Nth(0), latency };
        let rows = vec![row(of(100.0)), row(Percentiles::default())];
        let svg = PercentileChart { title: "Latency".into(), rows }.to_svg();
        assert_eq!(svg.matches("a &lt;b&gt;: p50 1.00 ms").count(), 1);
        let bar = svg.rsplit("class=\"span s-a\"").next().unwrap();
        let number = |name: &str| -> f64 {
            bar.split(&format!("{name}=\""))
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let tail = svg.rsplit("class=\"tail s-a\"").next().unwrap();
        let end: f64 =
            tail.split("x2=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        let p99 = number("x") + number("width");
        assert!((end - p99 - number("width")).abs() < 0.4, "1 to 10 is as long as 10 to 100");
    }
}
