//! The text of a gateway's metrics, taken apart into metrics whose samples have the label of the
//! gateway.
//!
//! Read is what `prometheus-client` writes: of each metric a line with its help, one with its type,
//! and its samples without timestamps and exemplars.

use crate::limits::{METRIC_LABELS_MAX, METRICS_FAMILIES_MAX};
use std::collections::HashSet;
use std::fmt::Write as _;

/// The last line of a text.
pub(super) const EOF: &str = "# EOF";

/// The label that is added.
const GATEWAY: &str = "gateway";

/// A metric with its samples.
pub(super) struct Metric {
    pub(super) name: String,
    /// Its type, which gateways of all versions must agree upon.
    pub(super) kind: String,
    /// The lines before its samples.
    pub(super) head: String,
    pub(super) samples: String,
}

/// A text that was taken apart.
pub(super) struct Read {
    pub(super) metrics: Vec<Metric>,
    /// Metrics that were left out, because a sample was not of the format.
    pub(super) refused: usize,
}

/// The metrics of a text; none if they cannot be told apart, have the same name, or are more than
/// [`METRICS_FAMILIES_MAX`].
pub(super) fn read(gateway: &str, text: &str) -> Option<Read> {
    let (mut read, mut names) = (Read { metrics: Vec::new(), refused: 0 }, HashSet::new());
    let mut lines = text.strip_suffix(EOF).or_else(|| text.strip_suffix("# EOF\n"))?.lines();
    let mut next = lines.next();
    while let Some(help) = next {
        let (name, _) = help.strip_prefix("# HELP ")?.split_once(' ')?;
        let types = lines.next()?;
        let kind = types.strip_prefix("# TYPE ")?.strip_prefix(name)?.strip_prefix(' ')?;
        let is_sound = is_name(name) && !help.chars().any(char::is_control);
        if !is_sound || !names.insert(name) || names.len() > METRICS_FAMILIES_MAX {
            return None;
        }
        let suffixes = suffixes(kind);
        let (mut samples, mut is_refused) = (String::new(), suffixes.is_empty());
        next = lines.next();
        while let Some(line) = next.filter(|line| !line.starts_with('#')) {
            is_refused =
                is_refused || labelled(&mut samples, line, (name, suffixes), gateway).is_none();
            next = lines.next();
        }
        if is_refused {
            read.refused += 1;
            continue;
        }
        let head = format!("{help}\n{types}\n");
        read.metrics.push(Metric { name: name.to_owned(), kind: kind.to_owned(), head, samples });
    }
    Some(read)
}

/// The endings that names of samples may add to that of a metric of this type; none if there is no
/// such type.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "gauge" | "unknown" | "stateset" => &[""],
        "counter" => &["_total", "_created"],
        "histogram" => &["_bucket", "_count", "_sum", "_created"],
        "gaugehistogram" => &["_bucket", "_gcount", "_gsum"],
        "summary" => &["", "_count", "_sum", "_created"],
        "info" => &["_info"],
        _ => &[],
    }
}

/// Adds a sample of the metric `name`, with the label of its gateway; nothing if it is none.
fn labelled(
    out: &mut String,
    line: &str,
    (name, suffixes): (&str, &[&str]),
    gateway: &str,
) -> Option<()> {
    let (series, rest) = line.split_at_checked(line.find(['{', ' '])?)?;
    if !suffixes.contains(&series.strip_prefix(name)?) {
        return None;
    }
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => split_labels(rest)?,
        None => ("", rest),
    };
    let value = value.strip_prefix(' ')?;
    value.parse::<f64>().ok()?;
    let comma = if labels.is_empty() { "" } else { "," };
    // Writing to a text never fails.
    let _never = writeln!(out, "{series}{{{GATEWAY}=\"{gateway}\"{comma}{labels}}} {value}");
    Some(())
}

/// The labels at the start of `text`, and what is behind their brace. None if one of them is no
/// label, is there twice, or is that of the gateway.
fn split_labels(text: &str) -> Option<(&str, &str)> {
    if let Some(behind) = text.strip_prefix('}') {
        return Some(("", behind));
    }
    let (mut names, mut rest) = (Vec::new(), text);
    loop {
        let (name, value) = rest.split_once("=\"")?;
        let is_fit = is_name(name) && !name.contains(':') && name != GATEWAY;
        if !is_fit || names.contains(&name) || names.len() >= METRIC_LABELS_MAX {
            return None;
        }
        names.push(name);
        let behind = behind_value(value)?;
        if let Some(behind) = behind.strip_prefix('}') {
            let labels = text.len().checked_sub(behind.len() + 1)?;
            return Some((text.get(..labels)?, behind));
        }
        rest = behind.strip_prefix(',')?;
    }
}

/// The text behind the quote that ends the value of a label.
fn behind_value(text: &str) -> Option<&str> {
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some(chars.as_str()),
            '\\' if !matches!(chars.next()?, '\\' | '"' | 'n') => return None,
            char if char.is_control() => return None,
            _ => {}
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| !first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
}
