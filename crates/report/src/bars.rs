//! Groups of horizontal bars: the same figure for several servers, workload by workload.

use super::figure;
use super::ranges::draw_legend;
use super::svg::{Anchor, Canvas, Scale, Series, tick_label};

const WIDTH: f64 = 980.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 40.0;
const BAR: f64 = 13.0;
const GAP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// The bars of one workload.
#[derive(Clone, Debug)]
pub struct BarGroup {
    /// On the left.
    pub label: String,
    /// The bars from the top; `None` where there is no valid figure.
    pub bars: Vec<(Series, Option<f64>)>,
    /// A bound that the first bar should not pass.
    pub bound: Option<f64>,
}

/// A chart of groups on one axis that begins at zero.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// Read out in place of the chart.
    pub label: String,
    /// Below the axis.
    pub unit: String,
    /// Words for the colours.
    pub legend: Vec<(Series, String)>,
    /// The groups, from the top.
    pub groups: Vec<BarGroup>,
}

impl BarChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let height = TOP + self.groups.iter().map(BarGroup::height).sum::<f64>() + BOTTOM;
        let most = self
            .groups
            .iter()
            .flat_map(|group| group.bars.iter().filter_map(|bar| bar.1).chain(group.bound))
            .fold(0.0, f64::max);
        let x = Scale { from: 0.0, to: most.max(1e-9), start: LEFT, end: WIDTH - RIGHT };
        let foot = height - BOTTOM;
        let mut canvas = Canvas::new(WIDTH, height, &self.label);
        let ticks = x.ticks(8);
        for &tick in &ticks {
            canvas.line("hair", (x.at(tick), TOP - 6.0), (x.at(tick), foot));
            let label = tick_label(tick, &ticks);
            canvas.text("tick", (x.at(tick), foot + 16.0), Anchor::Middle, &label);
        }
        canvas.line("axis", (LEFT, TOP - 6.0), (LEFT, foot));
        canvas.text("unit", (x.end, height - 6.0), Anchor::End, &self.unit);
        draw_legend(&mut canvas, &self.legend, LEFT);
        let mut y = TOP;
        for group in &self.groups {
            group.draw(&mut canvas, x, y);
            y += group.height();
        }
        canvas.finish()
    }
}

impl BarGroup {
    #[expect(clippy::cast_precision_loss, reason = "bars are few")]
    fn height(&self) -> f64 {
        BAR * self.bars.len() as f64 + GAP
    }

    fn draw(&self, canvas: &mut Canvas, x: Scale, top: f64) {
        let middle = top + (self.height() - GAP) / 2.0;
        canvas.text("row-label", (LEFT - 14.0, middle + 4.5), Anchor::End, &self.label);
        let mut y = top;
        for (series, value) in &self.bars {
            let (width, note) =
                value.map_or((0.0, "void".to_owned()), |value| (x.at(value) - LEFT, figure(value)));
            let class = format!("span {}", series.class());
            canvas.rect(&class, (LEFT, y + 1.0), (width, BAR - 2.0));
            canvas.text("bar-note", (LEFT + width + 5.0, y + BAR - 3.0), Anchor::Start, &note);
            y += BAR;
        }
        if let Some(bound) = self.bound {
            let place = x.clamped(bound);
            canvas.line("due", (place, top - 2.0), (place, top + BAR + 2.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_spans_the_axis_and_void_figures_say_so() {
        let svg = BarChart {
            label: "cpu".into(),
            unit: "µs".into(),
            legend: vec![(Series::Weir, "Weir".into())],
            groups: vec![BarGroup {
                label: "NULL".into(),
                bars: vec![
                    (Series::Weir, Some(2.0)),
                    (Series::Ganesha, Some(20.0)),
                    (Series::Bare, None),
                ],
                bound: Some(4.0),
            }],
        }
        .to_svg();
        let full = WIDTH - RIGHT - LEFT;
        assert!(svg.contains(&format!("width=\"{full:.1}\"")));
        assert!(svg.contains(&format!("width=\"{:.1}\"", full / 10.0)));
        assert!(svg.contains(">void<") && svg.matches("class=\"due\"").count() == 1);
    }
}
