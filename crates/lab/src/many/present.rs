//! The page for people.

use super::Report;
use std::fmt::Write as _;

/// The page.
pub(super) fn page(report: &Report) -> String {
    let (house, load) = (&report.house, &report.load);
    let mut out = format!(
        "# Many volumes\n\nWhat `make many` found: a server of {} volumes, {} of which work at their \
         limits. {}\n\nWeir {}, {}. The same as data: [many.json](many.json).\n\n",
        report.volumes,
        report.active,
        if report.passed { "Every bar was kept." } else { "**A bar was missed.**" },
        report.weir,
        report.machine,
    );
    out.push_str("| bar | |\n|---|---|\n");
    for verdict in report.verdicts() {
        let _ = writeln!(
            out,
            "| {} | {} |",
            verdict.what,
            if verdict.kept { "kept" } else { "**missed**" }
        );
    }
    let _ = write!(
        out,
        "\n| | |\n|---|---|\n\
         | memory of an empty server | {:.1} MiB |\n\
         | with all volumes, idle | {:.1} MiB, {} descriptors |\n\
         | with {} of them at work, at most | {:.1} MiB |\n\
         | those together | {:.0} operations a second |\n\
         | making the volumes, one after the other | {:.0} s |\n\
         | from the start until it answers for a volume | {:.0} ms |\n\
         | from the request to stop until it is gone | {:.0} ms |\n",
        house.empty_mib,
        house.idle_mib,
        house.descriptors,
        report.active,
        load.memory_mib,
        load.iops,
        house.making_s,
        house.start_ms,
        house.stop_ms,
    );
    out
}
