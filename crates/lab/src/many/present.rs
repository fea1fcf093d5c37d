//! The page of `make many`.

use super::Findings;
use crate::judge::{Check, table};
use weir_report::{Column, Page, Table};

pub(super) fn page(findings: &Findings, checks: &[Check]) -> Page {
    let (server, load) = (&findings.server, &findings.load);
    let lead = format!(
        "A server of {} volumes, {} of which work at their limits, measured by make many.",
        findings.volumes, findings.active
    );
    let mut page = Page::new("Many volumes", &lead);
    let sentence = if findings.passed { "Every bar was kept." } else { "A bar was missed." };
    page.verdict(findings.passed, sentence);
    page.table(&table(checks));
    let row = |what: String, found: String| vec![what.into(), found.into()];
    let fixed = |what: &str, found: String| row(what.to_owned(), found);
    let idle = format!("{:.1} MiB, {} descriptors", server.idle_mib, server.descriptors);
    page.table(&Table {
        columns: vec![Column::words("measured"), Column::figures("figure")],
        rows: vec![
            fixed("memory of an empty server", format!("{:.1} MiB", server.empty_mib)),
            fixed("with all volumes, idle", idle),
            row(
                format!("with {} of them at work, at most", findings.active),
                format!("{:.1} MiB", load.memory_mib),
            ),
            fixed("those together", format!("{:.0} operations a second", load.iops)),
            fixed("creating the volumes, one after the other", format!("{:.0} s", server.making_s)),
            fixed(
                "from the start until it answers for a volume",
                format!("{:.0} ms", server.start_ms),
            ),
            fixed(
                "from the request to stop until it has ended",
                format!("{:.0} ms", server.stop_ms),
            ),
        ],
    });
    page
}
