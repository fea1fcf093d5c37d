//! Drawing: a canvas that writes SVG, linear scales and round ticks.

use super::escape;
use std::fmt::Write as _;

/// The owner of a mark's figures; the page's style gives each a colour that works on light and
/// dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Weir.
    Weir,
    /// Figures published by the service that Weir follows.
    Published,
    /// NFS-Ganesha.
    Ganesha,
    /// Samba's smbd.
    Smbd,
    /// The bare loop.
    Bare,
    /// A contract or a bound.
    Contract,
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads, as somebody published them.
    PublishedRead,
    /// Writes, as somebody published them.
    PublishedWrite,
    /// A numbered owner of a kind; colours repeat after six.
    Nth(usize),
}

impl Series {
    /// The class in the page's style.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Weir => "s-weir",
            Self::Published => "s-published",
            Self::Ganesha | Self::Smbd => "s-ganesha",
            Self::Bare => "s-bare",
            Self::Contract => "s-contract",
            Self::Read => "s-read",
            Self::Write => "s-write",
            Self::PublishedRead => "s-read open",
            Self::PublishedWrite => "s-write open",
            Self::Nth(number) => match number % 6 {
                0 => "s-a",
                1 => "s-b",
                2 => "s-c",
                3 => "s-d",
                4 => "s-e",
                _ => "s-f",
            },
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

/// The label, with thin spaces between thousands where there are many digits.
pub(super) fn grouped_label(value: f64, all: &[f64]) -> String {
    let text = tick_label(value, all);
    if value.abs() < 9999.5 || text.contains('.') { text } else { super::figure(value) }
}

/// About how wide `text` is on a canvas, in its units, at a font size of 12; rather more than
/// less.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|letter| if letter.is_uppercase() || letter == 'm' { 8.6 } else { 6.7 }).sum()
}

/// `text` cut to `width`, with dots where something is missing.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut left = width - 10.0;
    let kept = text.chars().take_while(|letter| {
        left -= text_width(letter.encode_utf8(&mut [0; 4]));
        left > 0.0
    });
    format!("{}…", kept.collect::<String>().trim_end())
}

/// Room for labels on the left of a chart, with a gap: as much as they need, up to a quarter of a
/// wide chart.
pub(super) fn label_room<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(text_width).fold(60.0, f64::max).min(196.0) * 1.1 + 20.0
}

/// Coloured keys and their words, in as many lines as `width` asks for.
pub(super) struct Legend<'a> {
    lines: Vec<Vec<(&'a str, &'a str, f64)>>,
}

impl<'a> Legend<'a> {
    /// Height of one line.
    pub(super) const LINE: f64 = 18.0;

    /// Lays out `keys`: classes and words.
    pub(super) fn new(keys: impl Iterator<Item = (&'a str, &'a str)>, width: f64) -> Self {
        let mut lines: Vec<Vec<_>> = vec![Vec::new()];
        let mut x = 0.0;
        for (class, words) in keys {
            let wide = 17.0 + text_width(words).min(width - 17.0) + 20.0;
            if x > 0.0 && x + wide - 20.0 > width {
                lines.push(Vec::new());
                x = 0.0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((class, words, x));
            }
            x += wide;
        }
        Self { lines }
    }

    /// Height of all lines.
    pub(super) fn height(&self) -> f64 {
        self.lines.iter().filter(|line| !line.is_empty()).map(|_| Self::LINE).sum()
    }

    /// Draws it from `left` and `top` on, never wider than `width`.
    pub(super) fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), width: f64) {
        let mut y = top;
        for line in &self.lines {
            for (class, words, x) in line {
                canvas.rect(&format!("span {class}"), (left + x, y + 2.0), (11.0, 11.0));
                let words = fitted(words, width - 17.0);
                canvas.text("legend", (left + x + 17.0, y + 12.0), Anchor::Start, &words);
            }
            y += Self::LINE;
        }
    }
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
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted("a text that is far too long for its place", 100.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 100.0, "{cut}");
    }

    #[test]
    fn a_legend_breaks_its_lines() {
        let keys = [("s-a", "reads of one kind"), ("s-b", "writes of another kind")];
        assert!((Legend::new(keys.into_iter(), 400.0).height() - Legend::LINE).abs() < 1e-9);
        assert!((Legend::new(keys.into_iter(), 200.0).height() - 2.0 * Legend::LINE).abs() < 1e-9);
        assert!(Legend::new(std::iter::empty(), 200.0).height().abs() < 1e-9);
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
