//! Drawing: a canvas that writes SVG, linear scales and round ticks.

use super::escape;
use std::fmt::Write as _;

/// Whose figures a mark shows; the page's style gives each a colour that works on light and dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Weir.
    Weir,
    /// Figures published by the service that Weir follows.
    Published,
    /// NFS-Ganesha.
    Ganesha,
    /// The bare loop.
    Bare,
    /// A contract or a bound.
    Contract,
}

impl Series {
    /// Its class in the page's style.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Weir => "s-weir",
            Self::Published => "s-published",
            Self::Ganesha => "s-ganesha",
            Self::Bare => "s-bare",
            Self::Contract => "s-contract",
        }
    }
}

/// From values to places on the canvas, in a straight line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Scale {
    /// The place of `value`.
    pub(super) fn at(&self, value: f64) -> f64 {
        let span = self.to - self.from;
        let part = if span == 0.0 { 0.0 } else { (value - self.from) / span };
        self.start + part * (self.end - self.start)
    }

    /// The place of `value`, or of the nearer end where it lies outside.
    pub(super) fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.from, self.to))
    }

    /// Round values to label, about `wanted` of them.
    pub(super) fn ticks(&self, wanted: u32) -> Vec<f64> {
        ticks(self.from, self.to, wanted)
    }
}

/// Round values from `from` to `to`, about `wanted` of them: steps of 1, 2, 2.5 or 5 × 10ⁿ.
fn ticks(from: f64, to: f64, wanted: u32) -> Vec<f64> {
    let rough = (to - from) / f64::from(wanted.max(1));
    if !rough.is_finite() || rough <= 0.0 {
        return vec![from];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|&step| step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let first = (from / step - 1e-9).ceil();
    let mut all = Vec::new();
    let mut number = first;
    while number * step <= to + step * 1e-9 && all.len() < 100 {
        all.push(number * step);
        number += 1.0;
    }
    all
}

/// A tick's value with the decimals that tell it from its neighbours.
pub(super) fn tick_label(value: f64, all: &[f64]) -> String {
    let step = match all {
        [first, second, ..] => (second - first).abs(),
        _ => value.abs(),
    };
    let decimals = (0usize..4)
        .find(|&decimals| {
            let scaled = step * 10f64.powi(i32::try_from(decimals).unwrap_or(0));
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
        })
        .unwrap_or(4);
    let value = if value.abs() < step * 1e-6 { 0.0 } else { value };
    format!("{value:.decimals$}")
}

/// Which side of its place a text stands.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in the making.
pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// An empty canvas; `label` is read out in place of the drawing.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Self {
        let label = escape(label);
        Self {
            out: format!(
                "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n"
            ),
        }
    }

    /// A rectangle with these classes.
    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A rectangle; `hint` shows when pointed at.
    pub(super) fn hinted(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        hint: &str,
    ) {
        let hint = escape(hint);
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{hint}</title></rect>"
        );
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(
            self.out,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// A circle; `hint` shows when pointed at.
    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, hint: &str) {
        let hint = escape(hint);
        let _ = writeln!(
            self.out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{hint}</title></circle>"
        );
    }

    /// A line through points.
    pub(super) fn path(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut data = String::new();
        for (number, (x, y)) in points.enumerate() {
            let command = if number == 0 { 'M' } else { 'L' };
            let _ = write!(data, "{command}{x:.1} {y:.1}");
        }
        if !data.is_empty() {
            let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{data}\"/>");
        }
    }

    /// Text with its baseline at a place.
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// The finished drawing.
    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(14.4, 17.6, 4), [15.0, 16.0, 17.0]);
        assert_eq!(ticks(3.0, 3.0, 4), [3.0]);
        let fine = ticks(1.4, 1.72, 4);
        assert!(fine.iter().all(|&tick| (1.4..=1.72).contains(&tick)), "{fine:?}");
    }

    #[test]
    fn tick_labels_tell_neighbours_apart() {
        let labels = |all: &[f64]| all.iter().map(|&t| tick_label(t, all)).collect::<Vec<_>>();
        assert_eq!(labels(&[0.0, 2.5, 5.0]), ["0.0", "2.5", "5.0"]);
        assert_eq!(labels(&[-1e-17, 20.0]), ["0", "20"]);
        assert_eq!(labels(&[1.4, 1.45]), ["1.40", "1.45"]);
    }

    #[test]
    fn scales_map_ends_to_ends_and_clamp() {
        let scale = Scale { from: 0.0, to: 10.0, start: 100.0, end: 0.0 };
        assert_eq!((scale.at(0.0), scale.at(10.0), scale.at(2.5)), (100.0, 0.0, 75.0));
        assert_eq!(scale.clamped(99.0), 0.0);
    }

    #[test]
    fn a_canvas_is_one_labelled_drawing_with_text_escaped() {
        let mut canvas = Canvas::new(10.0, 20.0, "a \"b\"");
        canvas.text("t", (1.0, 2.0), Anchor::End, "<x>");
        canvas.path("p", [(0.0, 0.0), (1.0, 1.0)].into_iter());
        canvas.path("none", std::iter::empty());
        let svg = canvas.finish();
        assert!(svg.starts_with(
            "<svg viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"a &quot;b&quot;\">"
        ));
        assert!(svg.contains("&lt;x&gt;") && svg.contains("d=\"M0.0 0.0L1.0 1.0\""));
        assert!(!svg.contains("none") && svg.ends_with("</svg>\n"));
    }
}
