//! Horizontal bars of segments that stand behind each other, several bars to a row: reads and
//! writes of each step, measured and published, or of several sides.

use super::figure;
use super::svg::{
    Anchor, Canvas, Legend, Scale, Series, fitted, grouped_label, label_room, text_width,
};

const WIDTH: f64 = 900.0;
const BAR: f64 = 17.0;
const GAP: f64 = 13.0;
const BOTTOM: f64 = 40.0;

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct SegmentBar {
    /// The bar's segments from the left; segments of zero are left out.
    pub segments: Vec<(Series, f64)>,
    /// Least and greatest whole of several repeats.
    pub spread: Option<(f64, f64)>,
    /// In words, on the right.
    pub note: String,
    /// Shown when pointed at, behind the figure of the segment.
    pub hint: String,
}

/// The bars of one label.
#[derive(Clone, Debug)]
pub struct SegmentRow {
    /// On the left.
    pub label: String,
    /// From the top.
    pub bars: Vec<SegmentBar>,
}

/// A chart of rows on one axis that begins at zero.
#[derive(Clone, Debug)]
pub struct SegmentChart {
    /// Above the chart.
    pub title: String,
    /// Below the title, smaller.
    pub subtitle: String,
    /// Below the axis.
    pub unit: String,
    /// Words for the colours.
    pub legend: Vec<(Series, String)>,
    /// The rows, from the top.
    pub rows: Vec<SegmentRow>,
}

impl SegmentChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let left = label_room(self.rows.iter().map(|row| row.label.as_str()));
        let keys = self.legend.iter().map(|(series, words)| (series.class(), words.as_str()));
        let legend = Legend::new(keys, WIDTH - left);
        let top = 48.0 + legend.height() + 8.0;
        let height = top + self.rows.iter().map(SegmentRow::height).sum::<f64>() + BOTTOM;
        let bars = || self.rows.iter().flat_map(|row| &row.bars);
        let most = bars().map(SegmentBar::reach).fold(0.0, f64::max).max(1e-9);
        let notes = bars().map(|bar| text_width(&bar.note)).fold(40.0, f64::max).min(230.0);
        let x = Scale { from: 0.0, to: most, start: left, end: WIDTH - notes - 12.0 };
        let foot = height - BOTTOM;
        let mut canvas = Canvas::new(WIDTH, height, &format!("{}, in {}", self.title, self.unit));
        canvas.text("title", (0.0, 16.0), Anchor::Start, &fitted(&self.title, WIDTH / 1.25));
        canvas.text("subtitle", (0.0, 34.0), Anchor::Start, &fitted(&self.subtitle, WIDTH));
        legend.draw(&mut canvas, (left, 46.0), WIDTH - left);
        let ticks = x.ticks(6);
        for &tick in &ticks {
            canvas.line("hair", (x.at(tick), top - 4.0), (x.at(tick), foot));
            let label = grouped_label(tick, &ticks);
            canvas.text("tick", (x.at(tick), foot + 16.0), Anchor::Middle, &label);
        }
        canvas.line("axis", (left, top - 4.0), (left, foot));
        canvas.text("unit", (x.end, height - 6.0), Anchor::End, &self.unit);
        let mut y = top;
        for row in &self.rows {
            row.draw(&mut canvas, x, y);
            y += row.height();
        }
        canvas.finish()
    }
}

impl SegmentRow {
    fn height(&self) -> f64 {
        self.bars.iter().map(|_| BAR).sum::<f64>().max(BAR) + GAP
    }

    fn draw(&self, canvas: &mut Canvas, x: Scale, top: f64) {
        let middle = top + (self.height() - GAP) / 2.0;
        let label = fitted(&self.label, x.start - 18.0);
        canvas.text("row-label", (x.start - 12.0, middle + 4.5), Anchor::End, &label);
        let mut y = top;
        for bar in &self.bars {
            bar.draw(canvas, x, y);
            y += BAR;
        }
    }
}

impl SegmentBar {
    fn whole(&self) -> f64 {
        self.segments.iter().map(|segment| sound(segment.1)).sum()
    }

    fn reach(&self) -> f64 {
        self.whole().max(self.spread.map_or(0.0, |spread| sound(spread.1)))
    }

    fn draw(&self, canvas: &mut Canvas, x: Scale, y: f64) {
        let mut from = 0.0;
        for (series, value) in &self.segments {
            let value = sound(*value);
            if value <= 0.0 {
                continue;
            }
            let class = format!("segment {}", series.class());
            let place = (x.at(from), y + 1.5);
            let size = (x.at(from + value) - x.at(from), BAR - 3.0);
            canvas.hinted(&class, place, size, &format!("{} {}", figure(value), self.hint));
            from += value;
        }
        let mut end = x.at(self.whole());
        if let Some((least, most)) = self.spread {
            let (low, high, middle) = (x.clamped(least), x.clamped(most), y + BAR / 2.0);
            canvas.line("whisker", (low, middle), (high, middle));
            for place in [low, high] {
                canvas.line("whisker", (place, middle - 3.5), (place, middle + 3.5));
            }
            end = end.max(high);
        }
        let note = fitted(&self.note, WIDTH - end - 7.0);
        canvas.text("bar-note", (end + 7.0, y + BAR - 4.5), Anchor::Start, &note);
    }
}

/// Zero in place of what can't be drawn.
fn sound(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_and_spreads_are_drawn() {
        let bar = |segments, spread| SegmentBar {
            segments,
            spread,
            note: "30 op/s".into(),
            hint: "op/s, <75 %>".into(),
        };
        let chart = SegmentChart {
            title: "Mix".into(),
            subtitle: String::new(),
            unit: "op/s".into(),
            legend: vec![(Series::Read, "reads".into()), (Series::Write, "writes".into())],
            rows: vec![SegmentRow {
                label: "75 %".into(),
                bars: vec![
                    bar(vec![(Series::Read, 20.0), (Series::Write, 10.0)], Some((25.0, 30.0))),
                    bar(vec![(Series::PublishedRead, f64::NAN), (Series::Write, 0.0)], None),
                ],
            }],
        };
        let svg = chart.to_svg();
        assert_eq!(svg.matches("class=\"segment").count(), 2, "nothing for what is nothing");
        assert_eq!(svg.matches("class=\"whisker\"").count(), 3);
        assert!(svg.contains("20.0 op/s, &lt;75 %&gt;") && !svg.contains("NaN"), "{svg}");
        let first = svg.split("segment s-read\" x=\"86.0\"").nth(1).unwrap();
        let width: f64 =
            first.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(svg.contains(&format!("segment s-write\" x=\"{:.1}\"", 86.0 + width)), "{svg}");
    }
}
