//! Throughput over time, with the contract that it should keep.

use super::svg::{Anchor, Canvas, Scale, Series, tick_label};

/// Width of a small chart, several to a row.
const NARROW: f64 = 480.0;
/// Width of a chart that spans the page.
const WIDE: f64 = 980.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 40.0;

/// One line of a timeline.
#[derive(Clone, Debug)]
pub struct Line {
    /// The owner of the figures.
    pub series: Series,
    /// Time in seconds and value, in order.
    pub points: Vec<(f64, f64)>,
}

/// A stretch of time in which one value is due.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Start of the stretch, in seconds.
    pub from_s: f64,
    /// End of the stretch, in seconds.
    pub to_s: f64,
    /// The value due.
    pub value: f64,
}

/// A chart of values over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Above the chart.
    pub title: String,
    /// Below the title, smaller.
    pub subtitle: String,
    /// The name of the values, with their unit.
    pub unit: String,
    /// The unit and the origin of time.
    pub time: String,
    /// First and last time shown.
    pub span_s: (f64, f64),
    /// Least and greatest value shown; lines are cut off there.
    pub range: (f64, f64),
    /// The lines.
    pub lines: Vec<Line>,
    /// The values due.
    pub due: Vec<Stretch>,
    /// Half width of the band drawn around them, as a part of the value.
    pub band: f64,
    /// Times before this are shaded: they are not judged.
    pub judged_from_s: f64,
    /// Events: when and what.
    pub marks: Vec<(f64, String)>,
    /// Does the chart span the page?
    pub wide: bool,
}

impl Timeline {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let width = if self.wide { WIDE } else { NARROW };
        let mut canvas =
            Canvas::new(width, HEIGHT, &format!("{}: {} over time", self.title, self.unit));
        let (from, to) = self.span_s;
        let x = Scale { from, to, start: LEFT, end: width - RIGHT };
        let (low, high) = self.range;
        let y = Scale { from: low, to: high, start: HEIGHT - BOTTOM, end: TOP };
        canvas.text("title", (0.0, 16.0), Anchor::Start, &self.title);
        canvas.text("subtitle", (0.0, 33.0), Anchor::Start, &self.subtitle);
        self.draw_ground(&mut canvas, x, y);
        for line in &self.lines {
            let class = format!("line {}", line.series.class());
            let inside = line.points.iter().filter(|(at, _)| (from..=to).contains(at));
            canvas.path(&class, inside.map(|&(at, value)| (x.at(at), y.clamped(value))));
        }
        for (at, label) in &self.marks {
            let place = x.clamped(*at);
            canvas.line("mark", (place, TOP - 6.0), (place, HEIGHT - BOTTOM));
            canvas.text("mark-label", (place + 4.0, TOP - 1.0), Anchor::Start, label);
        }
        canvas.finish()
    }

    fn draw_ground(&self, canvas: &mut Canvas, x: Scale, y: Scale) {
        let (left, right) = (x.start, x.end);
        let judged = x.clamped(self.judged_from_s);
        canvas.rect("unjudged", (left, TOP), (judged - left, HEIGHT - BOTTOM - TOP));
        let values = y.ticks(4);
        for &value in &values {
            canvas.line("hair", (left, y.at(value)), (right, y.at(value)));
            let label = tick_label(value, &values);
            canvas.text("tick", (left - 6.0, y.at(value) + 4.0), Anchor::End, &label);
        }
        let times = x.ticks(6);
        for &time in &times {
            let label = tick_label(time, &times);
            canvas.text("tick", (x.at(time), HEIGHT - BOTTOM + 16.0), Anchor::Middle, &label);
        }
        canvas.line("axis", (left, HEIGHT - BOTTOM), (right, HEIGHT - BOTTOM));
        canvas.text("unit", (right, HEIGHT - 8.0), Anchor::End, &self.time);
        canvas.text("unit", (0.0, HEIGHT - 8.0), Anchor::Start, &self.unit);
        for stretch in &self.due {
            let (from, to) = (x.clamped(stretch.from_s), x.clamped(stretch.to_s));
            let top = y.clamped(stretch.value * (1.0 + self.band));
            let bottom = y.clamped(stretch.value * (1.0 - self.band));
            canvas.rect("band", (from, top), (to - from, bottom - top));
            let place = y.clamped(stretch.value);
            canvas.line("due", (from, place), (to, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        Timeline {
            title: "auto, 1 TiB".into(),
            subtitle: "contract 16 MiB/s".into(),
            unit: "MiB/s".into(),
            time: "seconds".into(),
            span_s: (0.0, 10.0),
            range: (14.0, 18.0),
            lines: vec![Line {
                series: Series::Weir,
                points: (0..=12).map(|second| (f64::from(second), 16.0)).collect(),
            }],
            due: vec![Stretch { from_s: 0.0, to_s: 10.0, value: 16.0 }],
            band: 0.05,
            judged_from_s: 3.0,
            marks: vec![(9.0, "resized <now>".into())],
            wide: false,
        }
    }

    #[test]
    fn draws_line_contract_band_mark_and_what_is_not_judged() {
        let svg = timeline().to_svg();
        for part in ["class=\"due\"", "class=\"band\"", "class=\"unjudged\"", "class=\"mark\""] {
            assert_eq!(svg.matches(part).count(), 1, "{part}");
        }
        assert!(svg.contains("class=\"line s-weir\"") && svg.contains("resized &lt;now&gt;"));
    }

    #[test]
    fn the_line_stays_inside_the_frame() {
        let mut chart = timeline();
        chart.lines[0].points = vec![(-5.0, 16.0), (1.0, 99.0), (2.0, 16.0), (11.0, 16.0)];
        let svg = chart.to_svg();
        let data = svg.split("line s-weir\" d=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(data.matches(['M', 'L']).count(), 2, "{data}");
        assert!(data.ends_with("133.0") && data.contains(" 56.0L"), "{data}");
    }
}
