//! The chapter of pairs.

use crate::compare::pairs::{Judged, RULE, chart, open, remarks, table};
use weir_report::Page;

const ID: &str = "pairs";
const HEADING: &str = "Pairs, against their published ratios";

/// The chapter's entry in the contents; none without pairs.
pub(super) fn entry(judged: &Judged) -> Option<(&'static str, &'static str)> {
    (!judged.is_empty()).then_some((ID, HEADING))
}

/// The chapter; nothing without pairs.
pub(super) fn write(page: &mut Page, judged: &Judged) {
    if judged.is_empty() {
        return;
    }
    page.chapter(ID, HEADING);
    if let Some(svg) = chart(&judged.pairs) {
        page.figure(&svg, "Ranges without an end go to the edge of the chart.");
        page.table(&table(&judged.pairs, false));
        page.list(RULE.iter().map(|&sentence| sentence.to_owned()));
    }
    let remarks = remarks(&judged.pairs);
    if !remarks.is_empty() {
        page.subsection("How the sides of each pair differ");
        page.list(remarks);
    }
    if !judged.open_pairs.is_empty() {
        page.subsection("Not judged");
        page.list(open(judged));
    }
}
