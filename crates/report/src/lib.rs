//! Reports: tables and charts that the demo, the comparison with peers and a volume's report share.
//!
//! A [`Page`] is one HTML file that needs nothing else: style and charts are inside it, there is no
//! script, and it follows the reader's light or dark setting. What is *not* here: any judgement.
//! Callers decide what passed and say so in the tone of a cell.

#![forbid(unsafe_code)]

mod bars;
mod page;
mod percentiles;
mod ranges;
mod segments;
mod stacked;
mod svg;
mod table;
pub mod terminal;
mod timeline;
mod xy;

pub use bars::{BarChart, BarGroup};
pub use page::{Fact, Page};
pub use percentiles::{PercentileChart, PercentileRow, Percentiles};
pub use ranges::{Dot, RangeChart, RangeRow, Span};
pub use segments::{SegmentBar, SegmentChart, SegmentRow};
pub use stacked::{Part, Stack, StackedChart, StretchOutcome, Strip};
pub use svg::Series;
pub use table::{Cell, Column, Table, Tone};
pub use timeline::{Line, Stretch, Timeline};
pub use xy::{XyAxis, XyChart, XyLine, XyPoint};

use weir_core::text::commands;

/// `text` with the characters that mean something in HTML and SVG replaced, and those that no page
/// may hold, or that turn the direction of writing.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            other if commands(other) => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// `value` with as many decimals as three significant digits need, and thin separators between
/// thousands.
#[must_use]
pub fn figure(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99.95 || size == 0.0 => 0,
        _ if size >= 9.995 => 1,
        _ => 2,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// `value` percent with a sign and that many decimals; what rounds to zero has none.
#[must_use]
pub fn percent(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    if text.trim_start_matches(['+', '-', '0', '.']).is_empty() {
        return format!("{:.decimals$} %", 0.0);
    }
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_stays_text() {
        assert_eq!(escape("a\n\0\u{1b}\u{202e}"), "a\n\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn percents_have_a_sign_unless_they_are_zero() {
        assert_eq!(percent(0.3456, 2), "+0.35 %");
        assert_eq!(percent(-1.04, 1), "-1.0 %");
        assert_eq!(percent(-0.001, 2), "0.00 %");
        assert_eq!(percent(0.04, 1), "0.0 %");
    }

    #[test]
    fn figures_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (1.5625, "1.56"),
            (16.046, "16.0"),
            (205.0, "205"),
            (8413.2, "8\u{2009}413"),
            (1_234_567.0, "1\u{2009}234\u{2009}567"),
            (-0.29, "-0.29"),
            (9.999, "10.0"),
        ];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }
}
