//! The page of the catalogue, `docs/bench-catalogue.md`: a text with the tables that follow from
//! the catalogue itself.

use super::audit::{End, PAGES};
use super::pairs::{Pick, Side, pairs};
use super::{Entry, all, scenario};
use crate::scenario::Published;
use std::fmt::Write;

const TEXT: &str = include_str!("document.txt");

/// The page, in Markdown.
#[must_use]
pub fn page() -> String {
    TEXT.replace("{tests}\n", &tests())
        .replace("{pairs}\n", &pair_table())
        .replace("{audit}\n", &audit())
}

fn tests() -> String {
    let mut text = String::from(
        "| name | test | speaks | steps | minutes | published |\n|---|---|---|---|---|---|\n",
    );
    for entry in all() {
        let speaks = match entry.waiting {
            Some(_) => format!("{}, waiting", entry.protocol.name()),
            None => entry.protocol.name().to_owned(),
        };
        let Entry { name, title, steps, minutes, .. } = &entry;
        let published = published(name);
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "| `{name}` | {title} | {speaks} | {steps} | {minutes:.0} | {published} |"
        );
    }
    text
}

/// The published figures of a test's steps.
fn published(name: &str) -> String {
    let steps = scenario(name).map(|test| test.steps).unwrap_or_default();
    let of = |step: &crate::scenario::Step| {
        let row = step.published.as_ref()?;
        Some(format!("{}: {}", step.name, row_of(row)))
    };
    let all: Vec<String> = steps.iter().filter_map(of).collect();
    if all.is_empty() { "–".to_owned() } else { all.join("; ") }
}

fn row_of(row: &Published) -> String {
    let figures = [
        (row.read_iops, " IOPS read"),
        (row.write_iops, " IOPS written"),
        (row.read_mibps, " MiB/s read"),
        (row.write_mibps, " MiB/s written"),
        (row.iops, " IOPS"),
        (row.mibps, " MiB/s"),
        (row.latency_ms, " ms"),
    ];
    let told = figures.into_iter().filter_map(|(figure, unit)| Some(format!("{}{unit}", figure?)));
    let about = if row.about { "~" } else { "" };
    format!("{}{about}{}", row.bound.words(), told.collect::<Vec<_>>().join(" + "))
}

fn pair_table() -> String {
    let mut text = String::from("| pair | compares | published ratio |\n|---|---|---|\n");
    for pair in pairs() {
        let (base, other) = (side(&pair.base), side(&pair.other));
        let range = match (pair.published.low, pair.published.high) {
            (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
            (Some(low), None) => format!("over {low:.2}"),
            (None, Some(high)) => format!("under {high:.2}"),
            (None, None) => "–".to_owned(),
        };
        let (name, title, words) = (&pair.name, &pair.title, &pair.published.words);
        let _ = writeln!(text, "| `{name}` | {title}: {other} over {base} | {words}: {range} |");
    }
    text
}

fn side(side: &Side) -> String {
    let step = match &side.pick {
        Pick::Step(step) => format!("`{step}`"),
        Pick::Best(group) => format!("the best step of “{group}”"),
    };
    let setting = side.setting.as_ref().map(|(name, value)| format!(" with `{name}={value}`"));
    format!("{step} of `{}`{}", side.test, setting.unwrap_or_default())
}

fn audit() -> String {
    let mut text = String::from("| page | published | here |\n|---|---|---|\n");
    for page in &PAGES {
        for item in page.items {
            let end = match item.end {
                End::Works(place) => format!("**works**: {place}"),
                End::Differs(why) => format!("**differs**: {why}"),
            };
            let _ = writeln!(text, "| {} | {} | {end} |", page.title, item.what);
        }
    }
    text
}
