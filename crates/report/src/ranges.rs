//! One row for each case, all on one axis: ranges, dots and the band they should lie in.

use super::svg::{Anchor, Canvas, Scale, Series, tick_label};

const WIDTH: f64 = 980.0;
/// Room for labels, at least and at most.
const LEFT: f64 = 250.0;
const LEFT_MAX: f64 = 470.0;
/// Width of a letter of a label, about.
const LETTER: f64 = 6.6;
/// Letters of a label that have room in one line.
const LABEL_MAX: usize = 66;
const RIGHT: f64 = 150.0;
const TOP: f64 = 44.0;
const ROW: f64 = 30.0;
const BOTTOM: f64 = 40.0;

/// A thick line from one value to another.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The owner of the figures.
    pub series: Series,
    /// The range's ends.
    pub ends: (f64, f64),
}

/// A dot at a value.
#[derive(Clone, Debug)]
pub struct Dot {
    /// The owner of the figure.
    pub series: Series,
    /// The value.
    pub value: f64,
    /// Shown when pointed at.
    pub hint: String,
}

/// One row.
#[derive(Clone, Debug)]
pub struct RangeRow {
    /// On the left.
    pub label: String,
    /// On the right: the row's figures in words.
    pub note: String,
    /// The row's ranges, the first at the back.
    pub spans: Vec<Span>,
    /// The row's dots.
    pub dots: Vec<Dot>,
}

/// A chart of rows.
#[derive(Clone, Debug)]
pub struct RangeChart {
    /// Read out in place of the chart.
    pub label: String,
    /// Below the axis.
    pub unit: String,
    /// Least and greatest value shown; what lies outside is drawn at the edge.
    pub range: (f64, f64),
    /// The allowed values.
    pub band: (f64, f64),
    /// The exact value.
    pub exact: f64,
    /// Words for the colours.
    pub legend: Vec<(Series, String)>,
    /// The rows, from the top.
    pub rows: Vec<RangeRow>,
}

impl RangeChart {
    /// The chart as an SVG element.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "rows are few")]
    pub fn to_svg(&self) -> String {
        let height = TOP + ROW * self.rows.len() as f64 + BOTTOM;
        let mut canvas = Canvas::new(WIDTH, height, &self.label);
        let (from, to) = self.range;
        let longest = |row: &RangeRow| {
            let (first, rest) = lines(&row.label);
            first.chars().count().max(rest.chars().count())
        };
        let letters = self.rows.iter().map(longest).max().unwrap_or(0);
        let left = (letters as f64 * LETTER + 28.0).clamp(LEFT, LEFT_MAX);
        let x = Scale { from, to, start: left, end: WIDTH - RIGHT };
        let foot = height - BOTTOM;
        let (low, high) = (x.clamped(self.band.0), x.clamped(self.band.1));
        canvas.rect("band", (low, TOP - 8.0), (high - low, foot - TOP + 8.0));
        let ticks = x.ticks(8);
        for &tick in &ticks {
            canvas.line("hair", (x.at(tick), TOP - 8.0), (x.at(tick), foot));
            let label = tick_label(tick, &ticks);
            canvas.text("tick", (x.at(tick), foot + 16.0), Anchor::Middle, &label);
        }
        let exact = x.clamped(self.exact);
        canvas.line("due", (exact, TOP - 8.0), (exact, foot));
        canvas.text("unit", (x.end, height - 6.0), Anchor::End, &self.unit);
        draw_legend(&mut canvas, &self.legend, left);
        for (number, row) in self.rows.iter().enumerate() {
            row.draw(&mut canvas, x, TOP + ROW * (number as f64 + 0.5));
        }
        canvas.finish()
    }
}

/// A label in one line or, if it is longer than [`LABEL_MAX`], in two.
fn lines(label: &str) -> (&str, &str) {
    if label.chars().count() <= LABEL_MAX {
        return (label, "");
    }
    let middle = label.len() / 2;
    let spaces = label.match_indices(' ').map(|(at, _)| at);
    let split = spaces.min_by_key(|at| at.abs_diff(middle)).map(|at| label.split_at(at));
    split.map_or((label, ""), |(first, rest)| (first, rest.trim_start()))
}

impl RangeRow {
    fn draw(&self, canvas: &mut Canvas, x: Scale, y: f64) {
        let (first, rest) = lines(&self.label);
        let label = (x.start - 14.0, y + if rest.is_empty() { 4.5 } else { -2.0 });
        canvas.text("row-label", label, Anchor::End, first);
        if !rest.is_empty() {
            canvas.text("row-label", (label.0, label.1 + 13.0), Anchor::End, rest);
        }
        canvas.text("row-note", (x.end + 14.0, y + 4.5), Anchor::Start, &self.note);
        for span in &self.spans {
            let (low, high) = (x.clamped(span.ends.0), x.clamped(span.ends.1));
            let thick = if span.series == Series::Weir { 10.0 } else { 18.0 };
            let class = format!("span {}", span.series.class());
            canvas.rect(&class, (low, y - thick / 2.0), ((high - low).max(2.0), thick));
        }
        for dot in &self.dots {
            let class = format!("dot {}", dot.series.class());
            canvas.circle(&class, (x.clamped(dot.value), y), 5.5, &dot.hint);
        }
    }
}

/// Small squares with words, from `x` on along the top.
pub(super) fn draw_legend(canvas: &mut Canvas, legend: &[(Series, String)], mut x: f64) {
    for (series, words) in legend {
        canvas.rect(&format!("span {}", series.class()), (x, 9.0), (11.0, 11.0));
        canvas.text("legend", (x + 17.0, 19.0), Anchor::Start, words);
        x += 40.0 + 6.6 * f64::from(u32::try_from(words.chars().count()).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_label_has_two_lines() {
        let short = "a label that has room";
        assert_eq!(lines(short), (short, ""));
        let long = ["first half of a label that is far too long for one line,", "and its second"];
        let label = long.join(" ");
        let (first, rest) = lines(&label);
        assert_eq!([first, rest].join(" "), label);
        assert!(first.len() <= LABEL_MAX && rest.len() <= LABEL_MAX, "{first:?} {rest:?}");
        let one = "x".repeat(80);
        assert_eq!(lines(&one), (one.as_str(), ""));
    }

    #[test]
    fn every_row_is_drawn_and_outliers_stay_on_the_canvas() {
        let row = |value| RangeRow {
            label: "case".into(),
            note: "+0.1 %".into(),
            spans: vec![Span { series: Series::Weir, ends: (-0.5, 0.5) }],
            dots: vec![Dot { series: Series::Published, value, hint: "published".into() }],
        };
        let svg = RangeChart {
            label: "error".into(),
            unit: "percent".into(),
            range: (-4.0, 4.0),
            band: (-1.0, 1.0),
            exact: 0.0,
            legend: vec![(Series::Weir, "Weir".into())],
            rows: vec![row(0.1), row(77.0)],
        }
        .to_svg();
        assert_eq!(svg.matches("class=\"dot s-published\"").count(), 2);
        assert!(svg.contains("viewBox=\"0 0 980 144\""));
        assert!(
            svg.contains(&format!("cx=\"{:.1}\"", WIDTH - RIGHT)),
            "the outlier is at the edge"
        );
    }
}
