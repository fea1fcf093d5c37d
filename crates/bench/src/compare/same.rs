//! Did two steps of one name do the same work?

use crate::results::{StepResult, StepRun};
use crate::workload::Workload;
use serde_json::{Map, Value};

/// Settings that don't change what is measured.
const BESIDE_THE_POINT: [&str; 6] = ["name", "directory", "seed", "keep", "part", "hosts"];
/// Settings of how it is measured: told, and compared all the same.
const CONDITIONS: [&str; 7] =
    ["length", "warmup_s", "drain_s", "threads", "verify", "verify_reads", "start_delay_s"];

/// What is not the same in two steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// In the work: it can't be compared.
    pub(super) work: Vec<String>,
    /// In how it was measured.
    pub(super) conditions: Vec<String>,
}

/// Compares the loads of two steps, and what they wanted of caches.
pub(super) fn differences(base: &StepResult, other: &StepResult) -> Differences {
    let mut found = Differences::default();
    let (first, second) = (loads(base), loads(other));
    if first.len() != second.len() {
        found.work.push(format!("{} loads, not {}", second.len(), first.len()));
        return found;
    }
    for (a, b) in first.iter().zip(&second) {
        compare_loads(a, b, &mut found);
    }
    if base.cache.wanted != other.cache.wanted {
        let word = |step: &StepResult| text(&serde_json::to_value(step.cache.wanted).ok());
        found.work.push(format!("caches {}, not {}", word(other), word(base)));
    }
    found.work.dedup();
    found.conditions.dedup();
    found
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
}

fn compare_loads(first: &Workload, second: &Workload, found: &mut Differences) {
    let (first, second) = (settings(first), settings(second));
    for (name, value) in &second {
        let before = first.get(name);
        if before == Some(value) || BESIDE_THE_POINT.contains(&name.as_str()) {
            continue;
        }
        let difference = format!(
            "{} {}, not {}",
            name.replace('_', " "),
            text(&Some(value.clone())),
            text(&before.cloned())
        );
        if CONDITIONS.contains(&name.as_str()) {
            found.conditions.push(difference);
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

fn text(value: &Option<Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string().replace('"', ""),
    }
}
