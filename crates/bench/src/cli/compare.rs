//! `weir bench compare`: comparison of results.

use super::Format;
use super::report::{ReportError, print, print_json, read_all, write};
use clap::Args;
use std::io;
use std::path::PathBuf;
use weir_results::compare::{compare, json, terminal};
use weir_results::pages;

const EXAMPLES: &str = "\
Examples:
  Compare two versions, measured with --out before and --out after:
    weir bench compare before after

  Compare several servers, as an HTML page:
    weir bench compare weir.json ganesha.json samba.json --html servers.html

Steps are matched by the name of the test and of the step. A difference is reported only if the
repeats of both sides do not overlap and there are at least three of each: measure with --repeats 3
or more.";

/// Compare results with the first one: ratios, and their statistical significance
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES, max_term_width = 100)]
pub struct CompareArgs {
    /// JSON result files of `weir bench`, or directories that --out named; the others are compared
    /// with the first.
    #[arg(required = true, num_args = 2.., value_name = "RESULT.json|DIR")]
    pub results: Vec<PathBuf>,
    /// Write the comparison as one self-contained HTML file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the comparison as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Compares the results, prints the comparison in the format `format`, and writes the requested
/// files.
///
/// # Errors
/// [`ReportError`] names the file, and says what to do.
pub fn run(args: &CompareArgs, format: Format) -> Result<(), ReportError> {
    let results = read_all(&args.results)?;
    let sides: Vec<_> = results.iter().collect();
    let comparison = compare(&sides);
    if let Some(path) = &args.html {
        write(path, &pages::html(&sides))?;
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
