//! The suite's results for people and for spreadsheets: the terminal, CSV and one HTML file.
//!
//! Everything is made from [`Results`] alone, so that a report can be
//! made again, anywhere, from the JSON. What is *not* here: how results are held against each
//! other ([`crate::compare`]), and any measuring.

mod charts;
mod costs;
mod csv;
mod html;
mod pairs;
mod side;
mod steps;
mod targets;
mod terminal;
mod time;
mod verdict;
mod words;

pub use csv::{csv, csv_columns};
pub use terminal::{terminal, terminal_within};
pub use words::{machine as machine_in_words, when};

use crate::Results;

/// One self-contained HTML file: of one result everything, of several a comparison with the
/// first.
#[must_use]
pub fn html(results: &[&Results]) -> String {
    match results {
        [one] => html::page(one),
        several => side::page(several),
    }
}
