//! `weir bench compare`: results held against each other.

use super::Format;
use super::report::{ReportError, print, print_json, read_all, write};
use crate::compare::{compare, json, terminal};
use crate::report::suite;
use clap::Args;
use std::io;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  What changed from one version to the next:
    weir bench compare before.json after.json

  Several servers, as a page to send to someone:
    weir bench compare weir.json ganesha.json samba.json --html servers.html

Steps are matched by the names of their tests and their own. A difference is shown only where the
repeats of both sides do not overlap and there are at least three of each: measure with --repeats 3
or more.";

/// Hold results against the first: ratios, and how far they can be trusted
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct CompareArgs {
    /// Results of `weir bench`, as JSON; the others are held against the first.
    #[arg(required = true, num_args = 2.., value_name = "RESULT.json")]
    pub results: Vec<PathBuf>,
    /// Write the comparison as one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the comparison to this file too, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Compares, prints in the form `format`, and writes the files that are wanted.
///
/// # Errors
/// [`ReportError`] says which file, and what to do.
pub fn run(args: &CompareArgs, format: Format) -> Result<(), ReportError> {
    let results = read_all(&args.results)?;
    let sides: Vec<_> = results.iter().collect();
    let comparison = compare(&sides);
    if let Some(path) = &args.html {
        write(path, &suite::html(&sides))?;
    }
    if let Some(path) = &args.json {
        let failed =
            |error| ReportError::Write { path: path.clone(), source: io::Error::from(error) };
        write(path, &json(&comparison).map_err(failed)?)?;
    }
    match format {
        Format::Table => print(&terminal(&comparison, None)),
        Format::Json => print_json(&comparison),
    }
}
