//! `/metrics` of all gateways: the text of each, with the label `gateway` on every sample.
//!
//! The samples of a metric stay together, as the format demands (OpenMetrics 1.0, "ABNF"); so the
//! texts are taken apart into metrics. Lines that this server would not have written are refused,
//! and with them the text: what other programs read is never what another gateway made up.

use super::super::failure::Failure;
use super::super::{Control, ControlState};
use super::{Answers, NoAnswer, WhoseQuery};
use crate::metrics::{self, GATEWAY_UP};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::fmt::Write as _;
use weir_api::{Gateways, routes};

/// The last line of a text.
const EOF: &str = "# EOF";

pub(in super::super) async fn metrics(
    State(state): State<ControlState>,
    whose: WhoseQuery,
) -> Result<Response, Failure> {
    let all = state.is_for_all(whose, Gateways::This)?;
    let own = state.0.metrics()?;
    if !all {
        return Ok(shown(own));
    }
    Ok(shown(merged(state.ask_all(own, routes::METRICS, text).await)))
}

fn text(body: &[u8]) -> Result<String, NoAnswer> {
    std::str::from_utf8(body).map(str::to_owned).map_err(|_| NoAnswer::Malformed)
}

/// The answer to another gateway.
pub(super) async fn own(State(state): State<ControlState>) -> Result<Response, Failure> {
    Ok(shown(state.0.metrics()?))
}

fn shown(text: String) -> Response {
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

impl Control {
    fn metrics(&self) -> Result<String, Failure> {
        metrics::render(&self.catalog.snapshot(), &*self.plane, &self.watch)
            .map_err(|_| Failure::internal("metrics", "cannot generate the metrics"))
    }
}

/// The metrics of all gateways, with one that says which of them answer. Gateways that have ended
/// do not.
fn merged(answers: Answers<String>) -> String {
    let mut all = Metrics::default();
    let mut up = Vec::new();
    for (gateway, answer) in answers {
        let taken = answer.ok().and_then(|text| all.take(&gateway.name, &text));
        up.push((gateway.name, u8::from(taken.is_some())));
    }
    let (name, help) = GATEWAY_UP;
    let mut text = format!("# HELP {name} {help}.\n# TYPE {name} gauge\n");
    for (gateway, value) in up {
        // Writing to a text never fails.
        let _never = writeln!(text, "{name}{{gateway=\"{gateway}\"}} {value}");
    }
    for metric in &all.list {
        text += &metric.head;
        text += &metric.samples;
    }
    text + EOF + "\n"
}

/// Metrics in the order in which they were first seen.
#[derive(Default)]
struct Metrics {
    list: Vec<Metric>,
    places: HashMap<String, usize>,
}

struct Metric {
    name: String,
    /// Its type, which gateways of all versions must agree upon.
    kind: String,
    /// The lines before its samples.
    head: String,
    samples: String,
}

impl Metrics {
    /// Takes the text of a gateway in; none of it if it is malformed.
    fn take(&mut self, gateway: &str, text: &str) -> Option<()> {
        let read = read(gateway, text)?;
        let agrees = |one: &Metric| {
            let known = self.places.get(&one.name).and_then(|place| self.list.get(*place));
            known.is_none_or(|known| known.kind == one.kind)
        };
        if !read.iter().all(agrees) {
            return None;
        }
        for metric in read {
            match self.places.get(&metric.name).and_then(|place| self.list.get_mut(*place)) {
                Some(known) => known.samples += &metric.samples,
                None => {
                    self.places.insert(metric.name.clone(), self.list.len());
                    self.list.push(metric);
                }
            }
        }
        Some(())
    }
}

/// The metrics of a text, with the label of their gateway; none if a line is not of the format.
fn read(gateway: &str, text: &str) -> Option<Vec<Metric>> {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut lines = text.strip_suffix(EOF).or_else(|| text.strip_suffix("# EOF\n"))?.lines();
    let mut next = lines.next();
    while let Some(help) = next {
        let (name, _) = help.strip_prefix("# HELP ")?.split_once(' ')?;
        let types = lines.next()?;
        let kind = types.strip_prefix("# TYPE ")?.strip_prefix(name)?.strip_prefix(' ')?;
        let is_new = metrics.iter().all(|known| known.name != name);
        if !is_new || !is_name(name) || !is_name(kind) || help.chars().any(char::is_control) {
            return None;
        }
        let mut samples = String::new();
        next = lines.next();
        while let Some(line) = next.filter(|line| !line.starts_with('#')) {
            labelled(&mut samples, line, name, gateway)?;
            next = lines.next();
        }
        let head = format!("{help}\n{types}\n");
        metrics.push(Metric { name: name.to_owned(), kind: kind.to_owned(), head, samples });
    }
    Some(metrics)
}

/// Adds a sample of the metric `name`, with the label of its gateway; nothing if it is none.
fn labelled(out: &mut String, line: &str, name: &str, gateway: &str) -> Option<()> {
    let end = line.find(['{', ' '])?;
    let (series, rest) = line.split_at_checked(end)?;
    if !series.starts_with(name) || !is_name(series) {
        return None;
    }
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_at_checked(labels_end(rest)?)?,
        None => ("", rest),
    };
    let value = value.strip_prefix('}').unwrap_or(value).strip_prefix(' ')?;
    value.parse::<f64>().ok()?;
    let comma = if labels.is_empty() { "" } else { "," };
    // Writing to a text never fails.
    let _never = writeln!(out, "{series}{{gateway=\"{gateway}\"{comma}{labels}}} {value}");
    Some(())
}

/// The place of the brace behind labels. A brace within a value is none.
fn labels_end(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (place, char) in text.char_indices() {
        match char {
            _ if char.is_control() => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return Some(place),
            _ => {}
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::super::tests::known;
    use super::*;
    use weir_api::GatewayState::{Ended, Live};

    const FIRST: &str = "# HELP weir_locks_held Ranges.\n# TYPE weir_locks_held gauge\n\
                         weir_locks_held 3\n\
                         # HELP weir_volume_used_bytes Space.\n# TYPE weir_volume_used_bytes gauge\n\
                         weir_volume_used_bytes{volume=\"a\",pool=\"p\"} 7\n# EOF\n";
    const SECOND: &str = "# HELP weir_volume_used_bytes Of another version.\n\
                          # TYPE weir_volume_used_bytes gauge\n\
                          weir_volume_used_bytes{volume=\"}\\\"\",pool=\"p\"} 8.5\n\
                          # HELP weir_new New.\n# TYPE weir_new counter\nweir_new_total 1\n# EOF\n";

    #[test]
    fn samples_of_one_metric_stay_together_and_have_their_gateway() {
        let answers = vec![
            (known(1, Live), Ok(FIRST.to_owned())),
            (known(2, Live), Ok(SECOND.to_owned())),
            (known(3, Ended), Err(NoAnswer::Ended)),
        ];
        let expected = "\
# HELP weir_gateway_up 1 if the gateway answers the one that is asked for the metrics of all, else 0.
# TYPE weir_gateway_up gauge
weir_gateway_up{gateway=\"g1\"} 1
weir_gateway_up{gateway=\"g2\"} 1
weir_gateway_up{gateway=\"g3\"} 0
# HELP weir_locks_held Ranges.
# TYPE weir_locks_held gauge
weir_locks_held{gateway=\"g1\"} 3
# HELP weir_volume_used_bytes Space.
# TYPE weir_volume_used_bytes gauge
weir_volume_used_bytes{gateway=\"g1\",volume=\"a\",pool=\"p\"} 7
weir_volume_used_bytes{gateway=\"g2\",volume=\"}\\\"\",pool=\"p\"} 8.5
# HELP weir_new New.
# TYPE weir_new counter
weir_new_total{gateway=\"g2\"} 1
# EOF
";
        assert_eq!(merged(answers), expected);
    }

    #[test]
    fn a_text_that_is_not_of_the_format_is_left_out_as_a_whole() {
        for (from, to) in [
            ("# EOF\n", ""),
            ("# HELP weir_locks_held Ranges.\n", ""),
            ("weir_locks_held 3", "weir_other 3"),
            ("weir_locks_held 3", "weir_locks_held three"),
            ("weir_locks_held 3", "weir_locks_held"),
            ("weir_locks_held 3", "weir_locks_held{x=\"} 3"),
            ("weir_locks_held 3", "weir_locks_held{x=\"\u{1b}[2J\"} 3"),
            ("gauge\nweir_locks_held", "gauge\u{7}\nweir_locks_held"),
            ("weir_volume_used_bytes", "weir_locks_held"),
            ("used_bytes gauge", "used_bytes counter"),
        ] {
            assert!(FIRST.contains(from) || SECOND.contains(from), "{from}");
            let damaged = FIRST.replace(from, to);
            let answers = vec![
                (known(1, Live), Ok(SECOND.to_owned())),
                (known(2, Live), Ok(damaged.clone())),
            ];
            let text = merged(answers);
            assert!(text.contains("weir_gateway_up{gateway=\"g2\"} 0"), "{damaged}");
            assert!(
                !text.replace("weir_gateway_up{gateway=\"g2\"} 0", "").contains("g2"),
                "{text}"
            );
        }
    }
}
