//! Parts of a whole over time, one on the other, and outcomes over time as a strip of colours.

use super::svg::{Anchor, Canvas, Scale, tick_label};

const WIDTH: f64 = 980.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 40.0;

/// One part of a [`StackedChart`], from the ground up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Waiting for the contract.
    Wait,
    /// In the store.
    Store,
    /// Until the client took the reply.
    Network,
    /// Waiting for the server's processors.
    Processing,
}

impl Part {
    /// All parts, in the order of the chart.
    pub const ALL: [Self; 4] = [Self::Store, Self::Network, Self::Processing, Self::Wait];

    const fn class(self) -> &'static str {
        match self {
            Self::Wait => "p-wait",
            Self::Store => "p-store",
            Self::Network => "p-network",
            Self::Processing => "p-processing",
        }
    }

    /// The part's label, for a legend.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Wait => "contract",
            Self::Store => "store",
            Self::Network => "network",
            Self::Processing => "processing",
        }
    }
}

/// One stretch of time of a [`StackedChart`].
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    /// The stretch's beginning and end.
    pub span: (f64, f64),
    /// The parts, as [`Part::ALL`].
    pub values: [f64; 4],
}

/// A chart of parts of a whole over time.
#[derive(Clone, Debug)]
pub struct StackedChart {
    /// Above the chart.
    pub title: String,
    /// Below the title, smaller.
    pub subtitle: String,
    /// The name of the values, with their unit.
    pub unit: String,
    /// The unit and the origin of time.
    pub time: String,
    /// First and last time shown.
    pub span: (f64, f64),
    /// The stretches, in order.
    pub stacks: Vec<Stack>,
}

impl StackedChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut canvas =
            Canvas::new(WIDTH, HEIGHT, &format!("{}: {} over time", self.title, self.unit));
        let x = scale_of_time(self.span);
        let whole = |stack: &Stack| stack.values.iter().sum::<f64>();
        let highest = self.stacks.iter().map(whole).fold(0.0, f64::max);
        let to = if highest > 0.0 { highest * 1.08 } else { 1.0 };
        let y = Scale { from: 0.0, to, start: HEIGHT - BOTTOM, end: TOP };
        canvas.text("title", (0.0, 16.0), Anchor::Start, &self.title);
        canvas.text("subtitle", (0.0, 33.0), Anchor::Start, &self.subtitle);
        legend(&mut canvas);
        let values = y.ticks(4);
        for &value in &values {
            canvas.line("hair", (LEFT, y.at(value)), (WIDTH - RIGHT, y.at(value)));
            let label = tick_label(value, &values);
            canvas.text("tick", (LEFT - 6.0, y.at(value) + 4.0), Anchor::End, &label);
        }
        for stack in &self.stacks {
            let (left, right) = (x.clamped(stack.span.0), x.clamped(stack.span.1));
            let mut ground = 0.0;
            for (part, value) in Part::ALL.into_iter().zip(stack.values) {
                let (bottom, top) = (y.clamped(ground), y.clamped(ground + value));
                if bottom - top >= 0.05 {
                    canvas.rect(part.class(), (left, top), (right - left, bottom - top));
                }
                ground += value;
            }
        }
        draw_time(&mut canvas, x, HEIGHT - BOTTOM, &self.time);
        canvas.text("unit", (0.0, HEIGHT - 8.0), Anchor::Start, &self.unit);
        canvas.finish()
    }
}

/// The outcome of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchOutcome {
    /// The stretch is as it should be.
    Good,
    /// Not as it should.
    Bad,
    /// There was nothing to judge.
    Neither,
}

/// Outcomes over time.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Above the strip.
    pub title: String,
    /// The names of the three outcomes: good, neither, bad.
    pub legend: [String; 3],
    /// The unit and the origin of time.
    pub time: String,
    /// First and last time shown.
    pub span: (f64, f64),
    /// The stretches, in order: when, how, and what to say of it.
    pub stretches: Vec<((f64, f64), StretchOutcome, String)>,
}

impl Strip {
    /// The strip as an SVG element.
    #[must_use]
    pub fn to_svg(&self) -> String {
        const TOP: f64 = 44.0;
        const BAR: f64 = 26.0;
        let mut canvas = Canvas::new(WIDTH, TOP + BAR + BOTTOM, &self.title);
        let x = scale_of_time(self.span);
        canvas.text("title", (0.0, 16.0), Anchor::Start, &self.title);
        let mut at = LEFT;
        for (class, label) in ["v-good", "v-neither", "v-bad"].into_iter().zip(&self.legend) {
            at = key(&mut canvas, class, label, (at, TOP - 8.0));
        }
        let ground = (WIDTH - RIGHT - LEFT, BAR);
        canvas.rect("v-neither", (LEFT, TOP), ground);
        // Bad stretches come last, so that their neighbours don't hide them.
        for bad in [false, true] {
            let same = |outcome: StretchOutcome| (outcome == StretchOutcome::Bad) == bad;
            for ((from, to), outcome, hint) in self.stretches.iter().filter(|s| same(s.1)) {
                let class = match outcome {
                    StretchOutcome::Good => "v-good",
                    StretchOutcome::Bad => "v-bad",
                    StretchOutcome::Neither => continue,
                };
                let (left, right) = (x.clamped(*from), x.clamped(*to));
                let least = if bad { 2.0 } else { 0.0 };
                canvas.hinted(class, (left, TOP), ((right - left).max(least), BAR), hint);
            }
        }
        draw_time(&mut canvas, x, TOP + BAR, &self.time);
        canvas.finish()
    }
}

const fn scale_of_time((from, to): (f64, f64)) -> Scale {
    Scale { from, to, start: LEFT, end: WIDTH - RIGHT }
}

fn draw_time(canvas: &mut Canvas, x: Scale, ground: f64, time: &str) {
    let times = x.ticks(6);
    for &value in &times {
        let label = tick_label(value, &times);
        canvas.text("tick", (x.at(value), ground + 16.0), Anchor::Middle, &label);
    }
    canvas.line("axis", (LEFT, ground), (WIDTH - RIGHT, ground));
    canvas.text("unit", (WIDTH - RIGHT, ground + BOTTOM - 8.0), Anchor::End, time);
}

fn legend(canvas: &mut Canvas) {
    let mut at = LEFT;
    for part in Part::ALL {
        at = key(canvas, part.class(), part.label(), (at, TOP - 12.0));
    }
}

/// A colour and what it stands for; gives where the next begins.
fn key(canvas: &mut Canvas, class: &str, label: &str, (at, base): (f64, f64)) -> f64 {
    canvas.rect(class, (at, base - 9.0), (10.0, 10.0));
    canvas.text("legend", (at + 15.0, base), Anchor::Start, label);
    // About what a letter takes.
    at + 15.0 + label.chars().map(|_| 7.0).sum::<f64>() + 18.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_on_each_other() {
        let chart = StackedChart {
            title: "Time of a request".into(),
            subtitle: String::new(),
            unit: "ms".into(),
            time: "minutes".into(),
            span: (0.0, 2.0),
            stacks: vec![
                Stack { span: (0.0, 1.0), values: [1.0, 0.0, 0.0, 3.0] },
                Stack { span: (1.0, 2.0), values: [2.0, 1.0, 0.5, 0.5] },
            ],
        };
        let svg = chart.to_svg();
        // One for the legend, and one for each that is anything.
        for (part, count) in Part::ALL.into_iter().zip([3, 2, 2, 3]) {
            assert_eq!(svg.matches(part.class()).count(), count, "{part:?}");
        }
        let height = HEIGHT - BOTTOM - TOP;
        let quarter = height / 4.32;
        assert!(svg.contains(&format!("height=\"{quarter:.1}\"")), "{svg}");
        assert!(svg.contains(&format!("height=\"{:.1}\"", 3.0 * quarter)));
    }

    #[test]
    fn nothing_at_all_is_a_chart_too() {
        let chart = StackedChart {
            title: String::new(),
            subtitle: String::new(),
            unit: "ms".into(),
            time: String::new(),
            span: (0.0, 1.0),
            stacks: Vec::new(),
        };
        assert!(chart.to_svg().ends_with("</svg>\n"));
    }

    #[test]
    fn what_is_bad_is_never_too_narrow_to_see() {
        let stretch = |at: f64, outcome| ((at, at + 0.001), outcome, "<why>".to_owned());
        let strip = Strip {
            title: "Verdicts".into(),
            legend: ["kept".into(), "not demanded".into(), "broken".into()],
            time: "hours".into(),
            span: (0.0, 24.0),
            stretches: vec![stretch(1.0, StretchOutcome::Bad), stretch(2.0, StretchOutcome::Good)],
        };
        let svg = strip.to_svg();
        assert!(svg.contains("width=\"2.0\"") && svg.contains("&lt;why&gt;"), "{svg}");
        let (good, bad) = (svg.rfind("v-good").unwrap(), svg.rfind("v-bad").unwrap());
        assert!(good < bad);
    }
}
