//! `/metrics` of all gateways: the text of each, with the label `gateway` on every sample.
//!
//! The samples of a metric stay together, as the format demands (OpenMetrics 1.0, "ABNF"); so the
//! texts are taken apart into metrics ([`mod@text`]). A metric with a line that this server would
//! not have written is left out, and so is one whose type differs from that of an earlier gateway:
//! what other programs read is never what another gateway made up.
//!
//! The texts may be large, so one request at a time has them collected, and they are put together
//! on a thread of its own.

mod text;

use super::super::failure::Failure;
use super::super::{Control, ControlState};
use super::{Answers, NoAnswer, WhoseQuery};
use crate::limits::MERGE_TURN_WAIT;
use crate::metrics::{self, GATEWAY_UP};
use crate::sync::Arc;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::fmt::Write as _;
use text::{EOF, Metric};
use tokio::time::timeout;
use weir_api::{Gateways, routes};

pub(in super::super) async fn metrics(
    State(state): State<ControlState>,
    whose: WhoseQuery,
) -> Result<Response, Failure> {
    if state.is_for_all(whose, Gateways::This)? {
        return of_all(&state).await.map(shown);
    }
    Ok(shown(state.0.metrics()?))
}

async fn of_all(state: &ControlState) -> Result<String, Failure> {
    let turn = Arc::clone(&state.0.others.merges).acquire_owned();
    // It is never closed.
    let Ok(Ok(turn)) = timeout(MERGE_TURN_WAIT, turn).await else {
        let message = "another request has the metrics of all gateways collected; try again later";
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "metrics_busy", message));
    };
    let own = state.0.metrics()?;
    let answers = state.ask_all(own, routes::METRICS, text).await;
    // The turn lasts until the thread is done, also if the client goes away.
    let merging = tokio::task::spawn_blocking(move || {
        let text = merged(answers);
        drop(turn);
        text
    });
    merging.await.map_err(|_| Failure::internal("metrics", "cannot generate the metrics"))
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
        if let Some(refused @ 1..) = taken {
            tracing::warn!(gateway = gateway.name, refused, "left out metrics of another gateway");
        }
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

impl Metrics {
    /// Takes the text of a gateway in; nothing of it if it is not of the format. Gives the number
    /// of its metrics that were left out.
    fn take(&mut self, gateway: &str, text: &str) -> Option<usize> {
        let text::Read { metrics, mut refused } = text::read(gateway, text)?;
        for metric in metrics {
            match self.places.get(&metric.name).and_then(|place| self.list.get_mut(*place)) {
                _ if metric.name == GATEWAY_UP.0 => refused += 1,
                Some(known) if known.kind != metric.kind => refused += 1,
                Some(known) => known.samples += &metric.samples,
                None => {
                    self.places.insert(metric.name.clone(), self.list.len());
                    self.list.push(metric);
                }
            }
        }
        Some(refused)
    }
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

    /// The merged metrics of the gateways `g1`, with the second text, and `g2`, with the first in
    /// which `from` is replaced.
    fn damaged(from: &str, to: &str) -> String {
        assert!(FIRST.contains(from), "{from}");
        let texts = [SECOND.to_owned(), FIRST.replace(from, to)];
        merged((1..).zip(texts).map(|(number, text)| (known(number, Live), Ok(text))).collect())
    }

    #[test]
    fn a_text_that_cannot_be_taken_apart_is_left_out_as_a_whole() {
        for (from, to) in [
            ("# EOF\n", ""),
            ("# HELP weir_locks_held Ranges.\n", ""),
            ("# TYPE weir_locks_held gauge\n", ""),
            ("Ranges.", "Ran\u{7}ges."),
            ("weir_locks_held", "7locks"),
            ("weir_volume_used_bytes", "weir_locks_held"),
        ] {
            let text = damaged(from, to);
            let down = "weir_gateway_up{gateway=\"g2\"} 0\n";
            assert!(text.contains(down), "{text}");
            assert!(!text.replace(down, "").contains("g2"), "{text}");
        }
    }

    #[test]
    fn a_metric_that_is_not_of_the_format_is_left_out_alone() {
        let held = "weir_locks_held 3";
        for to in [
            "weir_other 3",
            "weir_locks_held three",
            "weir_locks_held",
            "weir_locks_held 3 17",
            "weir_locks_held_total 3",
            "weir_locks_held 3\n\nweir_locks_held{x=\"\"} 4",
            "weir_locks_held{x=\"} 3",
            "weir_locks_held{x=\"\u{1b}[2J\"} 3",
            "weir_locks_held{x=\"\\t\"} 3",
            "weir_locks_held{x} 3",
            "weir_locks_held{x=\"\",} 3",
            "weir_locks_held{x=\"\"y=\"\"} 3",
            "weir_locks_held{x=\"\",x=\"\"} 3",
            "weir_locks_held{gateway=\"g1\"} 3",
            "weir_locks_held{7=\"\"} 3",
        ] {
            let text = damaged(held, to);
            assert!(text.contains("weir_gateway_up{gateway=\"g2\"} 1\n"), "{text}");
            assert!(text.contains("weir_volume_used_bytes{gateway=\"g2\","), "{to}: {text}");
            assert!(!text.contains("locks"), "{to}: {text}");
        }
        let text = damaged("weir_locks_held gauge", "weir_locks_held gorge");
        assert!(!text.contains("locks") && text.contains("used_bytes{gateway=\"g2\""), "{text}");
    }

    #[test]
    fn a_type_that_differs_is_that_of_the_first_gateway() {
        let other = FIRST.replace("used_bytes gauge", "used_bytes unknown");
        let answers = vec![(known(1, Live), Ok(SECOND.to_owned())), (known(2, Live), Ok(other))];
        let text = merged(answers);
        assert!(!text.contains("used_bytes{gateway=\"g2\""), "{text}");
        assert!(text.contains("weir_locks_held{gateway=\"g2\"} 3\n"), "{text}");
        assert!(text.contains("# TYPE weir_volume_used_bytes gauge\n"), "{text}");
    }

    #[test]
    fn no_gateway_says_which_of_them_answer() {
        let text = damaged("weir_locks_held", GATEWAY_UP.0);
        assert_eq!(text.matches("# TYPE weir_gateway_up ").count(), 1, "{text}");
        assert!(!text.contains("} 3"), "{text}");
    }

    #[test]
    fn each_type_has_its_suffixes() {
        let text = "# HELP a A.\n# TYPE a counter\na_total 1\n\
                    # HELP b B.\n# TYPE b histogram\nb_bucket{le=\"+Inf\"} 1\nb_sum 2.5\nb_count 1\n\
                    # HELP c C.\n# TYPE c counter\nc 1\n\
                    # HELP d D.\n# TYPE d info\nd_info{v=\"1\",w=\"a,b=\\\"}\"} 1\n# EOF";
        let read = text::read("g", text).unwrap();
        let names: Vec<_> = read.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!((names, read.refused), (vec!["a", "b", "d"], 1));
        let last = "d_info{gateway=\"g\",v=\"1\",w=\"a,b=\\\"}\"} 1\n";
        assert_eq!(read.metrics[2].samples, last);
    }

    #[test]
    fn a_text_has_only_so_many_metrics_and_a_sample_so_many_labels() {
        let of = |count: usize| {
            let metric = |number| format!("# HELP m{number} M.\n# TYPE m{number} gauge\n");
            (0..count).map(metric).collect::<String>() + EOF
        };
        let most = crate::limits::METRICS_FAMILIES_MAX;
        assert_eq!(text::read("g", &of(most)).map(|read| read.metrics.len()), Some(most));
        assert!(text::read("g", &of(most + 1)).is_none());
        let labelled = |count: usize| {
            let labels: Vec<_> = (0..count).map(|number| format!("l{number}=\"\"")).collect();
            format!("# HELP m M.\n# TYPE m gauge\nm{{{}}} 1\n# EOF", labels.join(","))
        };
        let most = crate::limits::METRIC_LABELS_MAX;
        assert_eq!(text::read("g", &labelled(most)).unwrap().refused, 0);
        assert_eq!(text::read("g", &labelled(most + 1)).unwrap().refused, 1);
    }
}
