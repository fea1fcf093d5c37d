//! `weir bench list`: the published tests.

use super::{CliError, Format, output};
use clap::Args;
use serde::Serialize;
use weir_core::units::span;
use weir_report::terminal::{Grid, Text};
use weir_scenario::catalogue::{self, Entry};

/// List the published tests that `weir bench run` knows by name
///
/// The time is the duration of one run at the original size, including writing the files; --scale
/// and --time of `weir bench run` reduce it. Tests shown as waiting cannot be run yet.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// List only names that contain this text.
    pub part: Option<String>,
    /// Print JSON; same as --output json.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    title: &'a str,
    protocol: &'a str,
    steps: usize,
    published: bool,
    minutes: f64,
    waiting: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry) -> Self {
        Self {
            name: &entry.name,
            title: &entry.title,
            protocol: entry.protocol.name(),
            steps: entry.steps,
            published: entry.published,
            minutes: entry.minutes,
            waiting: entry.waiting.as_deref(),
        }
    }
}

/// Prints the list.
pub(super) fn run(args: &ListArgs, format: Format) -> Result<(), CliError> {
    let mut all = catalogue::all();
    if let Some(part) = &args.part {
        all.retain(|entry| entry.name.contains(&part.to_lowercase()));
    }
    let rows: Vec<Row<'_>> = all.iter().map(Row::of).collect();
    if args.json || format == Format::Json {
        return output::print_json(&rows);
    }
    output::print(&table(&rows))
}

fn table(rows: &[Row<'_>]) -> Text {
    let mut grid = Grid::columns();
    grid.head(["NAME", "PROTOCOL", "STEPS", "TAKES", "WHAT"]);
    for row in rows {
        let what = row.waiting.map_or_else(
            || row.title.to_owned(),
            |waiting| format!("{} (waiting for {waiting})", row.title),
        );
        grid.row([
            row.name.to_owned(),
            row.protocol.to_owned(),
            row.steps.to_string(),
            span(row.minutes * 60.0),
            what,
        ]);
    }
    grid.align_right([2, 3]);
    grid.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_a_row_and_what_waits_says_so() {
        let all = catalogue::all();
        let rows: Vec<Row<'_>> = all.iter().map(Row::of).collect();
        let text = table(&rows).to_string();
        for entry in &all {
            assert!(text.contains(&entry.name), "{}", entry.name);
        }
        assert!(text.contains("waiting for"));
    }
}
