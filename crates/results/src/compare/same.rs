//! Did two steps of one name do the same work?

use super::Difference;
use crate::{StepResult, StepRun};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use weir_load::workload::Workload;

/// Settings that don't change what is measured.
const BESIDE_THE_POINT: [&str; 7] =
    ["name", "directory", "target", "seed", "keep", "part", "hosts"];
/// Settings of how it is measured: told, and compared all the same.
const CONDITIONS: [&str; 7] =
    ["length", "warmup_s", "drain_s", "threads", "verify", "verify_reads", "start_delay_s"];

/// The differences between two steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// In the work: it can't be compared.
    pub(super) work: Vec<Difference>,
    /// In how it was measured.
    pub(super) conditions: Vec<String>,
}

/// Compares the loads of two steps, and what they wanted of caches.
pub(super) fn differences(base: &StepResult, other: &StepResult) -> Differences {
    let mut found = Differences::default();
    let (first, second) = (loads(base), loads(other));
    if first.len() != second.len() {
        found.work.push(Difference {
            setting: "number of loads".to_owned(),
            base: first.len().to_string(),
            other: second.len().to_string(),
        });
        return found;
    }
    for (a, b) in first.iter().zip(&second) {
        compare_loads(a, b, &mut found);
    }
    if base.cache.wanted != other.cache.wanted {
        let word = |step: &StepResult| text(&serde_json::to_value(step.cache.wanted).ok());
        let (setting, base, other) = ("caches".to_owned(), word(base), word(other));
        found.work.push(Difference { setting, base, other });
    }
    let targets = [&first, &second]
        .map(|loads| loads.iter().map(|load| load.target.as_str()).collect::<BTreeSet<_>>().len());
    if targets[0] != targets[1] {
        found.conditions.push(format!("number of targets {}, not {}", targets[1], targets[0]));
    }
    found.work.dedup();
    found.conditions.dedup();
    found
}

/// The differences between two steps that are meant to differ, in words: what both wanted of caches
/// and every setting of their loads.
pub(super) fn differences_in_words(base: &StepResult, other: &StepResult) -> Vec<String> {
    let Differences { work, conditions } = differences(base, other);
    let told = work.iter().map(|one| format!("{} {}, not {}", one.setting, one.other, one.base));
    told.chain(conditions).collect()
}

fn loads(step: &StepResult) -> Vec<&Workload> {
    step.runs.first().map_or_else(Vec::new, StepRun::workloads)
}

impl StepRun {
    /// The loads it applied, as they were applied.
    #[must_use]
    pub fn workloads(&self) -> Vec<&Workload> {
        if self.loads.is_empty() {
            vec![&self.total.workload]
        } else {
            self.loads.iter().map(|load| &load.workload).collect()
        }
    }

    /// The requests that its loads kept in flight together.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.workloads().into_iter().map(Workload::in_flight).sum()
    }
}

fn compare_loads(first: &Workload, second: &Workload, found: &mut Differences) {
    let (first, second) = (settings(first), settings(second));
    for (name, value) in &second {
        let before = first.get(name);
        if before == Some(value) || BESIDE_THE_POINT.contains(&name.as_str()) {
            continue;
        }
        // A run that finds files does not say how they were laid out: a step before, or a run that
        // was not counted, wrote them.
        if name == "layout" && [before, Some(value)].contains(&Some(&Value::from("existing"))) {
            continue;
        }
        let difference = Difference {
            setting: name.replace('_', " "),
            base: text(&before.cloned()),
            other: text(&Some(value.clone())),
        };
        if CONDITIONS.contains(&name.as_str()) {
            let Difference { setting, base, other } = difference;
            found.conditions.push(format!("{setting} {other}, not {base}"));
        } else {
            found.work.push(difference);
        }
    }
}

fn settings(load: &Workload) -> Map<String, Value> {
    match serde_json::to_value(load) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    }
}

/// A setting's value in words: `4096`, `random`, `operations 5 000`.
fn text(value: &Option<Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(value) if number.is_f64() => weir_report::figure(value),
            _ => number.to_string(),
        },
        Some(Value::Object(parts)) => {
            let parts = parts.iter().map(|(name, value)| {
                format!("{} {}", name.replace('_', " "), text(&Some(value.clone())))
            });
            parts.collect::<Vec<_>>().join(", ")
        }
        Some(Value::Array(parts)) => {
            let parts = parts.iter().map(|value| text(&Some(value.clone())));
            format!("[{}]", parts.collect::<Vec<_>>().join("; "))
        }
        Some(Value::Bool(flag)) => if *flag { "yes" } else { "no" }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{result, step_result};
    use weir_load::workload::Layout;

    #[test]
    fn files_that_were_there_are_not_other_work_and_files_of_holes_are() {
        let with = |layout| Workload { layout, ..Workload::default() };
        let told = |first, second| {
            let mut found = Differences::default();
            compare_loads(&with(first), &with(second), &mut found);
            found.work.len()
        };
        let written = Layout::Written { block_bytes: 1 << 20 };
        assert_eq!(told(written, Layout::Existing) + told(Layout::Existing, written), 0);
        assert_eq!(told(written, Layout::Sparse), 1);
        assert_eq!(told(written, Layout::Written { block_bytes: 4096 }), 1);
    }

    #[test]
    fn names_of_targets_are_not_other_work_and_their_number_is_told() {
        let on = |targets: [&str; 2]| {
            let mut step = step_result(1.0, 1.0);
            step.runs[0].loads = targets
                .map(|target| {
                    let mut run = result(1.0, 1.0);
                    run.workload.target = target.to_owned();
                    run
                })
                .into();
            step
        };
        let [ours, theirs, one] = [["a", "b"], ["nfs://h/v", "nfs://h/w"], ["a", "a"]].map(on);
        assert_eq!(differences(&ours, &theirs), Differences::default());
        let found = differences(&ours, &one);
        assert_eq!(
            (found.work.len(), found.conditions),
            (0, vec!["number of targets 1, not 2".to_owned()])
        );
    }
}
