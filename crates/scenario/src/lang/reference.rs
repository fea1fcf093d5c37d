//! The words of the languages, as tables in Markdown, from the very tables by which they are read.

use super::fio::known::{JOB, Known, PROGRAM, Treatment};
use super::native::keys::KEYS;
use super::native::{PUBLISHED, STEP, TOP};
use std::fmt::Write;

/// The keys of Weir's own language.
#[must_use]
pub fn native() -> String {
    let mut text = String::new();
    let tables = [("the text", TOP), ("`[[step]]`", STEP), ("`published`", PUBLISHED)];
    for (place, keys) in tables {
        head(&mut text, &format!("key of {place}"), "what it says");
        keys.iter().for_each(|(name, about)| line(&mut text, name, about));
    }
    head(&mut text, "key of a load", "what it says");
    KEYS.iter().for_each(|key| line(&mut text, key.name, key.about));
    text
}

/// The options of fio and what becomes of each.
#[must_use]
pub fn fio() -> String {
    let mut text = String::new();
    for (kind, table) in [("option of a job", JOB), ("option of the program", PROGRAM)] {
        head(&mut text, kind, "here");
        table.iter().for_each(|known| line(&mut text, &names(known), &treatment(known)));
    }
    text
}

fn head(text: &mut String, left: &str, right: &str) {
    // Writing to a string can't fail.
    let _ = write!(text, "\n| {left} | {right} |\n|---|---|\n");
}

fn line(text: &mut String, name: &str, about: &str) {
    let _ = writeln!(text, "| `{name}` | {} |", about.replace('|', "\\|"));
}

fn names(known: &Known) -> String {
    let mut names = vec![known.name];
    names.extend(known.aliases);
    names.join("`, `")
}

fn treatment(known: &Known) -> String {
    match known.treatment {
        Treatment::Drives(what) => format!("drives: {what}"),
        Treatment::Reporting => "reporting only".to_owned(),
        Treatment::NoEffect(why) => format!("no effect: {why}"),
        Treatment::Only(values, why) => {
            format!(
                "only `{}`, which changes nothing; others are refused: {why}",
                values.join("`, `")
            )
        }
        Treatment::Refused(why) => format!("refused: {why}"),
    }
}
