//! `docs/bench-results.md` names every field of the JSON, and nothing else.

use crate::example;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use weir_results::compare::compare;
use weir_results::pages::csv_columns;

const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-results.md"));

/// Fields by the section that has them: the names in backticks of the first cells below headings
/// of the third rank.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in DOCUMENT.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            heading.trim_matches('`').clone_into(&mut section);
        } else if line.starts_with('#') {
            section.clear();
        } else if let Some(name) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next())
            && !section.is_empty()
        {
            sections.entry(section.clone()).or_default().insert(name.to_owned());
        }
    }
    sections
}

/// Which section describes what stands at this place. Fields that hold the same type share one.
fn section_of(field: &str) -> Option<&'static str> {
    Some(match field {
        "environment" => "environment",
        "clients" | "server_machine" => "machine",
        "tests" => "test",
        "steps" => "step",
        "axis" => "axis",
        "published" => "published",
        "runs" => "application",
        "summary" => "summary",
        "cache" => "cache",
        "findings" => "finding",
        "pairs" => "pair",
        "base" | "other" => "pair_side",
        "published_ratio" => "published_ratio",
        "workers" => "worker",
        "steady" => "steady",
        "stall" => "stall",
        "network" => "network",
        "run" => "run",
        "workload" => "workload",
        "measured" => "measured",
        "operation" => "operations",
        "latency_ms" => "latency_ms",
        "jobs" => "job",
        "connections" => "connections",
        "series_1s" | "series_100ms" | "series_10ms" => "point",
        "marks" => "mark",
        "generator" => "generator",
        "server" => "server",
        "verify" => "verify",
        _ => return None,
    })
}

/// Notes the fields of `value`, which is described in `section`, and of what it holds.
fn walk(value: &Value, section: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let Value::Object(fields) = value else { return };
    let known = found.entry(section.to_owned()).or_default();
    known.extend(fields.keys().cloned());
    for (name, value) in fields {
        // The name stands for several types.
        let kind = match (section, name.as_str()) {
            ("environment", "server") => "server_machine",
            ("application", "total" | "loads" | "targets") => "run",
            ("run", "total") => "operation",
            ("run", "by_operation") => {
                for operation in value.as_object().into_iter().flat_map(|all| all.values()) {
                    walk(operation, "operations", found);
                }
                continue;
            }
            ("summary", _) => {
                walk(value, "spread", found);
                continue;
            }
            ("workload", _) | ("finding", "steps") => continue,
            (_, name) => name,
        };
        let Some(inner) = section_of(kind) else { continue };
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, inner, found)),
            other => walk(other, inner, found),
        }
    }
}

#[test]
fn every_field_of_results_is_documented_and_every_documented_one_exists() {
    let results = serde_json::to_value(example::results("weir", 1.0)).unwrap();
    let mut found = BTreeMap::new();
    walk(&results, "results", &mut found);
    let documented = documented();
    for (section, fields) in &found {
        let told = documented.get(section).cloned().unwrap_or_default();
        let missing: Vec<_> = fields.difference(&told).collect();
        assert!(missing.is_empty(), "### `{section}` does not tell of {missing:?}");
        let gone: Vec<_> = told.difference(fields).collect();
        assert!(gone.is_empty(), "### `{section}` tells of {gone:?}, which are not there");
    }
    assert!(found.len() >= 27, "the walk reaches every part: {:?}", found.keys());
}

#[test]
fn every_field_of_a_comparison_is_documented() {
    let (first, second) = (example::results("weir", 1.0), example::other());
    let comparison = serde_json::to_value(compare(&[&first, &second])).unwrap();
    let mut found: BTreeSet<String> = BTreeSet::new();
    names(&comparison, &mut found);
    let told = &documented()["comparison"];
    let missing: Vec<_> = found.difference(told).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let gone: Vec<_> = told.difference(&found).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn every_column_of_csv_is_documented_in_order() {
    let section = DOCUMENT.split("\n## CSV").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let told: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(told, csv_columns());
}
