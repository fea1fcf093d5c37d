//! The versions in etcd after each step: of the gateways, of the cluster's records, and of the
//! catalogue. Not here: the steps.

use crate::stage::Stage;
use anyhow::{Context, Result};
use serde::Serialize;
use std::time::{Duration, Instant};
use weir_lab::judge::Check;

/// Longest time until formats are what they have to be.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// The versions after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Formats {
    /// Name of the step.
    pub(super) after: String,
    /// The version that each gateway knows.
    pub(super) knows: Vec<u32>,
    /// The version of the cluster's records.
    pub(super) records: u32,
    /// The format of the catalogue.
    pub(super) catalogue: u32,
}

impl Formats {
    /// The versions of a cluster that has just been set up.
    ///
    /// # Errors
    /// If etcd does not have them.
    pub(super) fn begun(stage: &Stage) -> Result<Self> {
        let is_agreed = |formats: &Self| formats.knows.iter().min() == Some(&formats.records);
        settled(stage, "the beginning", is_agreed)
    }

    /// The versions after a step, and the check that the records are in the newest version that all
    /// gateways know. `before` are those of all earlier steps.
    ///
    /// # Errors
    /// If etcd does not have them.
    pub(super) fn after(step: &str, stage: &Stage, before: &[Self]) -> Result<(Self, Check)> {
        let due = |formats: &Self| formats.knows.iter().min() == Some(&formats.records);
        let found = settled(stage, step, due)?;
        let risen = before.last().is_none_or(|before| {
            before.records <= found.records && before.catalogue <= found.catalogue
        });
        let Self { knows, records, catalogue, .. } = &found;
        let words = format!(
            "gateways know {knows:?}, records in {records}, catalogue in format {catalogue}"
        );
        let passed = due(&found) && risen;
        let rule = "the records are in the newest version that all gateways know";
        Ok((found, Check::new(rule, words, passed).of(step)))
    }

    fn of(stage: &Stage, after: &str) -> Result<Self> {
        let value = |below: &str| stage.engines.etcd_value(below);
        let mut knows = Vec::new();
        for gateway in &stage.gateways {
            let row = value(&row_of(gateway.number()))?;
            knows.push(number_in(&row, "speaks").with_context(|| format!("no member: {row}"))?);
        }
        let records = value("cluster/format")?;
        let head = value("catalog/head")?;
        Ok(Self {
            after: after.to_owned(),
            knows,
            records: records.parse().with_context(|| format!("the format: {records:?}"))?,
            catalogue: number_in(&head, "format").with_context(|| format!("no head: {head}"))?,
        })
    }
}

/// The key of a gateway's row, below the prefix of the cluster.
pub(super) fn row_of(number: u8) -> String {
    format!("cluster/gateway/{number:05}")
}

/// The versions as soon as they are so, or as they are when the patience is over.
fn settled(stage: &Stage, after: &str, is_so: impl Fn(&Formats) -> bool) -> Result<Formats> {
    let begun = Instant::now();
    loop {
        match Formats::of(stage, after) {
            Ok(formats) if is_so(&formats) => {
                // The catalogue follows the records.
                std::thread::sleep(Duration::from_secs(1));
                return Formats::of(stage, after);
            }
            found if begun.elapsed() > PATIENCE => return found,
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Are the cluster's records in a newer version than in the beginning? Then the program that it
/// began with is too old.
pub(super) fn is_raised(formats: &[Formats]) -> bool {
    match (formats.first(), formats.last()) {
        (Some(first), Some(last)) => last.records > first.records,
        _ => false,
    }
}

/// The rule that both formats rose with the next version, once all gateways had it, and not before.
pub(super) fn raised_with_the_next(formats: &[Formats], last_step: &str) -> Check {
    let place = formats.iter().position(|formats| formats.after == last_step);
    let before = place.and_then(|place| formats.get(place.checked_sub(1)?));
    // The catalogue follows the records, and may have been late for the step itself.
    let two = before.zip(formats.last());
    let rule = "both formats rise when the last gateway has the next version";
    match two {
        Some((before, after)) => {
            let words = format!(
                "records {} to {}, catalogue {} to {}",
                before.records, after.records, before.catalogue, after.catalogue
            );
            let passed = before.records < after.records && before.catalogue < after.catalogue;
            Check::new(rule, words, passed)
        }
        None => Check::new(rule, "it was not reached", false),
    }
}

/// The number of a field in a row of JSON whose names are unlike.
fn number_in(row: &str, field: &str) -> Option<u32> {
    let (_, rest) = row.split_once(&format!("\"{field}\":"))?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats(after: &str, knows: &[u32], records: u32, catalogue: u32) -> Formats {
        Formats { after: after.to_owned(), knows: knows.to_vec(), records, catalogue }
    }

    #[test]
    fn numbers_are_found_in_rows() {
        let row = r#"{"version":1,"machine":"0a","life":2,"member":{"since":3,"speaks":12,"sessions":[]}}"#;
        assert_eq!((number_in(row, "speaks"), number_in(row, "life")), (Some(12), Some(2)));
        assert_eq!((number_in(row, "fences"), number_in(row, "machine")), (None, None));
        assert_eq!(number_in("{\"format\":13", "format"), Some(13));
    }

    #[test]
    fn both_formats_rise_with_the_last_gateway_and_not_before() {
        let course = |last: &[(u32, u32)]| {
            let all = last.iter().zip(["second", "last"]);
            let all =
                all.map(|((records, catalogue), after)| formats(after, &[2], *records, *catalogue));
            raised_with_the_next(&all.collect::<Vec<_>>(), "last").passed
        };
        assert!(course(&[(1, 13), (2, 14)]));
        assert!(!course(&[(2, 13), (2, 14)]), "too early");
        assert!(!course(&[(1, 13), (2, 13)]), "the catalogue stays");
        assert!(!course(&[(1, 13)]), "not reached");
        let risen = [formats("a", &[1], 1, 13), formats("b", &[2], 2, 13)];
        assert!(is_raised(&risen) && !is_raised(&risen[..1]) && !is_raised(&[]));
    }
}
