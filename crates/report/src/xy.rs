//! Lines through points on two axes, each straight or logarithmic: curves of latency, sweeps, and
//! rates over time.

use super::svg::{Anchor, Canvas, Legend, Scale, Series, fitted, grouped_label, text_width};

const NARROW: f64 = 480.0;
const WIDE: f64 = 900.0;
const PLOT: f64 = 220.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 46.0;

/// One axis.
#[derive(Clone, Debug, Default)]
pub struct XyAxis {
    /// The axis's label, with its unit.
    pub label: String,
    /// Are decades equally long? Only values over zero can be shown then.
    pub log: bool,
    /// Values to label, where they are not round numbers' turn.
    pub ticks: Vec<f64>,
    /// Ends, if not those of the points. A straight axis begins at zero otherwise.
    pub ends: Option<(f64, f64)>,
}

/// One point.
#[derive(Clone, Debug, Default)]
pub struct XyPoint {
    /// Along the ground.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Least and greatest of several repeats.
    pub spread: Option<(f64, f64)>,
    /// Shown when pointed at.
    pub hint: String,
}

/// One line.
#[derive(Clone, Debug)]
pub struct XyLine {
    /// The curve's colour.
    pub series: Series,
    /// In the legend; nothing if empty.
    pub label: String,
    /// In order.
    pub points: Vec<XyPoint>,
    /// Is every point marked?
    pub dots: bool,
    /// Is it joined up?
    pub joined: bool,
}

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct XyChart {
    /// Above the chart.
    pub title: String,
    /// Below the title, smaller.
    pub subtitle: String,
    /// Along the ground.
    pub x: XyAxis,
    /// Upwards.
    pub y: XyAxis,
    /// The lines, the first at the back.
    pub lines: Vec<XyLine>,
    /// Parts along the ground that don't count, and their names.
    pub shades: Vec<(f64, f64, String)>,
    /// Events along the ground.
    pub marks: Vec<(f64, String)>,
    /// Does the chart span the page?
    pub wide: bool,
}

/// From values to places.
#[derive(Clone, Copy)]
struct Mapped {
    scale: Scale,
    log: bool,
}

impl Mapped {
    fn at(&self, value: f64) -> f64 {
        self.scale.clamped(if self.log { value.max(1e-12).log10() } else { value })
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }
}

impl XyChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let width = if self.wide { WIDE } else { NARROW };
        let named = self.lines.iter().filter(|line| !line.label.is_empty());
        let keys = named.map(|line| (line.series.class(), line.label.as_str()));
        let legend = Legend::new(keys, width - LEFT);
        let marks: f64 = if self.marks.is_empty() { 0.0 } else { 30.0 };
        let top = 50.0 + legend.height() + marks.max(14.0) + 6.0;
        let foot = top + PLOT;
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x = self.x.mapped(points().map(|point| point.x), (LEFT, width - RIGHT));
        let heights = points().flat_map(|point| {
            [point.y, point.spread.map_or(point.y, |spread| spread.1)].into_iter()
        });
        let y = self.y.mapped(heights, (foot, top));
        let label = format!("{}: {} over {}", self.title, self.y.label, self.x.label);
        let mut canvas = Canvas::new(width, foot + BOTTOM, &label);
        canvas.text("title", (0.0, 16.0), Anchor::Start, &fitted(&self.title, width / 1.25));
        canvas.text("subtitle", (0.0, 33.0), Anchor::Start, &fitted(&self.subtitle, width));
        legend.draw(&mut canvas, (LEFT, 42.0), width - LEFT);
        self.draw_ground(&mut canvas, (x, y), (top, foot));
        self.draw_marks(&mut canvas, x, (top, foot));
        for line in &self.lines {
            line.draw(&mut canvas, x, y);
        }
        canvas.finish()
    }

    fn draw_ground(&self, canvas: &mut Canvas, (x, y): (Mapped, Mapped), (top, foot): (f64, f64)) {
        let (left, right) = (x.scale.start, x.scale.end);
        for (from, to, name) in &self.shades {
            let (from, to) = (x.at(*from), x.at(*to));
            canvas.hinted("unjudged", (from, top), (to - from, foot - top), name);
            if text_width(name) + 8.0 <= to - from {
                canvas.text("shade-label", (from + 4.0, foot - 6.0), Anchor::Start, name);
            }
        }
        let values = self.y.values(y, 5);
        for &value in &values {
            canvas.line("hair", (left, y.at(value)), (right, y.at(value)));
            let label = grouped_label(value, &values);
            canvas.text("tick", (left - 6.0, y.at(value) + 4.0), Anchor::End, &label);
        }
        let values = self.x.values(x, 6);
        let mut free = left - 40.0;
        for &value in &values {
            let label = grouped_label(value, &values);
            let (place, half) = (x.at(value), text_width(&label) / 2.0);
            if place - half >= free {
                canvas.line("axis", (place, foot), (place, foot + 4.0));
                canvas.text("tick", (place, foot + 17.0), Anchor::Middle, &label);
                free = place + half + 6.0;
            }
        }
        canvas.line("axis", (left, foot), (right, foot));
        let low = foot + BOTTOM - 10.0;
        canvas.text("unit", (right, low), Anchor::End, &self.x.label);
        canvas.text("unit", (0.0, top - 8.0), Anchor::Start, &self.y.label);
    }

    /// Labels of marks stand in two lines by turns, on the side where there is room.
    fn draw_marks(&self, canvas: &mut Canvas, x: Mapped, (top, foot): (f64, f64)) {
        let mut free = [f64::MIN; 2];
        for (number, (at, label)) in self.marks.iter().enumerate() {
            let (place, line) = (x.at(*at), number % 2);
            let base = top - 10.0 - if line == 0 { 15.0 } else { 0.0 };
            canvas.line("mark", (place, base + 2.0), (place, foot));
            let room = (x.scale.end - place).max(place - x.scale.start) - 6.0;
            let label = fitted(label, room);
            let wide = text_width(&label);
            let right = place + 4.0 + wide <= x.scale.end;
            let from = if right { place + 4.0 } else { place - 4.0 - wide };
            let Some(free) = free.get_mut(line) else { continue };
            // The unit of the y axis stands at the left end of the lower line.
            let taken = if line == 1 { text_width(&self.y.label) + 6.0 } else { 0.0 };
            if from < free.max(taken) {
                continue;
            }
            *free = from + wide + 8.0;
            let (anchor, at) =
                if right { (Anchor::Start, place + 4.0) } else { (Anchor::End, place - 4.0) };
            canvas.text("mark-label", (at, base), anchor, &label);
        }
    }
}

impl XyAxis {
    fn mapped(&self, values: impl Iterator<Item = f64>, (start, end): (f64, f64)) -> Mapped {
        let shown = values.filter(|value| value.is_finite() && (!self.log || *value > 0.0));
        let (least, most) = shown
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (least, most) = if least <= most { (least, most) } else { (0.5, 1.0) };
        let (from, to) = match (self.ends, self.log) {
            (Some(ends), false) => ends,
            (Some((from, to)), true) => (from.max(1e-12).log10(), to.max(1e-12).log10()),
            (None, false) => (least.min(0.0), if most > 0.0 { most * 1.06 } else { 1.0 }),
            (None, true) => {
                let margin = ((most / least).log10() * 0.05).max(0.03);
                (least.log10() - margin, most.log10() + margin)
            }
        };
        let to = if to > from { to } else { from + 1.0 };
        Mapped { scale: Scale { from, to, start, end }, log: self.log }
    }

    /// Values to label.
    fn values(&self, mapped: Mapped, wanted: u32) -> Vec<f64> {
        if !self.ticks.is_empty() {
            return self.ticks.clone();
        }
        if !mapped.log {
            return mapped.scale.ticks(wanted);
        }
        let (from, to) = (10f64.powf(mapped.scale.from), 10f64.powf(mapped.scale.to));
        log_ticks(from, to).into_iter().filter(|tick| (from..=to).contains(tick)).collect()
    }
}

/// Round values around `from` to `to`: 1, 2 and 5 times powers of ten, or the powers alone where
/// there are many.
pub(super) fn log_ticks(from: f64, to: f64) -> Vec<f64> {
    let factors: &[f64] = if to / from > 2e3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut all = Vec::new();
    let mut power = 10f64.powf(from.max(1e-12).log10().floor());
    while power <= to && all.len() < 60 {
        all.extend(factors.iter().map(|factor| factor * power));
        power *= 10.0;
    }
    all
}

impl XyLine {
    fn draw(&self, canvas: &mut Canvas, x: Mapped, y: Mapped) {
        let class = self.series.class();
        let shown = || self.points.iter().filter(|point| x.shows(point.x) && y.shows(point.y));
        if self.joined {
            let points = shown().map(|point| (x.at(point.x), y.at(point.y)));
            canvas.path(&format!("line {class}"), points);
        }
        for point in shown() {
            let place = x.at(point.x);
            if let Some((low, high)) = point.spread
                && y.shows(low)
                && y.shows(high)
            {
                let (low, high) = (y.at(low), y.at(high));
                canvas.line(&format!("error {class}"), (place, low), (place, high));
                for end in [low, high] {
                    canvas.line(&format!("error {class}"), (place - 3.0, end), (place + 3.0, end));
                }
            }
            if self.dots {
                let shape = if self.joined { "dot" } else { "hollow" };
                canvas.circle(
                    &format!("{shape} {class}"),
                    (place, y.at(point.y)),
                    4.5,
                    &point.hint,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(log: bool) -> XyChart {
        let point = |x: f64, y: f64| XyPoint { x, y, spread: None, hint: format!("{x} <{y}>") };
        XyChart {
            title: "Sweep".into(),
            x: XyAxis { label: "requests in flight".into(), log, ..XyAxis::default() },
            y: XyAxis { label: "op/s".into(), ..XyAxis::default() },
            lines: vec![XyLine {
                series: Series::Nth(0),
                label: "one connection".into(),
                points: vec![point(1.0, 10.0), point(10.0, 50.0), point(100.0, f64::NAN)],
                dots: true,
                joined: true,
            }],
            ..XyChart::default()
        }
    }

    fn places(svg: &str) -> Vec<f64> {
        svg.split("cx=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect()
    }

    #[test]
    fn axes_are_straight_or_logarithmic_and_what_is_no_number_is_left_out() {
        let svg = chart(false).to_svg();
        let [first, second] = places(&svg)[..] else { panic!("two points: {svg}") };
        assert!(((second - LEFT) / (first - LEFT) - 10.0).abs() < 0.6, "{first} {second}");
        assert!(svg.contains("1 &lt;10&gt;") && !svg.contains("NaN"));
        let svg = chart(true).to_svg();
        let all = places(&svg);
        assert!(all.len() == 2 && all[1] - all[0] > 150.0, "{all:?}");
    }

    #[test]
    fn a_chart_without_points_is_drawn_too() {
        for log in [false, true] {
            let mut empty = chart(log);
            empty.lines.clear();
            assert!(empty.to_svg().ends_with("</svg>\n"));
        }
    }

    #[test]
    fn labels_of_marks_do_not_run_into_each_other_or_out() {
        let mut marked = chart(false);
        marked.x.ends = Some((0.0, 100.0));
        marked.marks = (0..6).map(|n| (95.0 + f64::from(n), "something happened".into())).collect();
        let svg = marked.to_svg();
        assert_eq!(svg.matches("class=\"mark\"").count(), 6);
        assert_eq!(svg.matches("class=\"mark-label\"").count(), 2);
        assert!(svg.contains("text-anchor=\"end\">something happened"));
    }

    #[test]
    fn ticks_of_logarithmic_axes_are_round() {
        assert_eq!(log_ticks(0.9, 6.0)[2..6], [0.5, 1.0, 2.0, 5.0]);
        assert!(log_ticks(1e-3, 1e4).len() <= 9);
    }
}
