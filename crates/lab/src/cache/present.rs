//! The report: both settings side by side, with their ratio.

use super::{Findings, Pass, Sample};
use crate::disk::Filesystem;
use weir_report::{Column, Page, Table, figure};

/// Says on standard output what a pass measured.
pub(super) fn print(sample: &Sample) {
    let micros = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    weir_report::outln!(
        "# {}, {}, cache {}: {} LOOKUPs/s, median {} µs, p99 {} µs, {} µs of CPU each",
        sample.filesystem.name(),
        sample.pass.name(),
        if sample.cached { "on" } else { "off" },
        figure(sample.per_second),
        micros(sample.p50_us),
        micros(sample.p99_us),
        figure(sample.cpu_us),
    );
}

/// The median of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    per_second: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    cpu_us: f64,
}

fn figures(
    findings: &Findings,
    filesystem: Filesystem,
    pass: Pass,
    cached: bool,
) -> Option<Figures> {
    let is_it =
        |one: &&Sample| one.filesystem == filesystem && one.pass == pass && one.cached == cached;
    let samples: Vec<&Sample> = findings.samples.iter().filter(is_it).collect();
    Some(Figures {
        per_second: median(samples.iter().map(|one| one.per_second))?,
        p50_us: median(samples.iter().filter_map(|one| one.p50_us)),
        p99_us: median(samples.iter().filter_map(|one| one.p99_us)),
        cpu_us: median(samples.iter().map(|one| one.cpu_us))?,
    })
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The report as a page.
pub(super) fn page(findings: &Findings) -> Page {
    let lead = format!(
        "LOOKUPs of {} files with the metadata cache of the volume on and off, by make cache: the \
         median of {} rounds. Cold: the server was just started, and the kernel's caches were \
         emptied. The ratio is that of the rates, on to off.",
        findings.entries, findings.rounds
    );
    let mut page = Page::new("The metadata cache", &lead);
    let mut rows = Vec::new();
    for filesystem in Filesystem::ALL {
        for pass in Pass::ALL {
            let [on, off] = [true, false].map(|cached| figures(findings, filesystem, pass, cached));
            let Some((on, off)) = on.zip(off) else { continue };
            let micros = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure).into();
            rows.push(vec![
                filesystem.name().into(),
                pass.name().into(),
                figure(on.per_second).into(),
                figure(off.per_second).into(),
                figure(on.per_second / off.per_second).into(),
                micros(on.p50_us),
                micros(off.p50_us),
                micros(on.p99_us),
                micros(off.p99_us),
                figure(on.cpu_us).into(),
                figure(off.cpu_us).into(),
            ]);
        }
    }
    page.table(&Table {
        columns: vec![
            Column::words("file system"),
            Column::words("pass"),
            Column::figures("LOOKUPs/s, on"),
            Column::figures("off"),
            Column::figures("ratio"),
            Column::figures("median µs, on"),
            Column::figures("off"),
            Column::figures("p99 µs, on"),
            Column::figures("off"),
            Column::figures("CPU µs, on"),
            Column::figures("off"),
        ],
        rows,
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Origin;

    fn sample(cached: bool, round: u32, per_second: f64) -> Sample {
        Sample {
            filesystem: Filesystem::Xfs,
            pass: Pass::Warm,
            cached,
            round,
            per_second,
            p50_us: Some(1e6 / per_second),
            p99_us: None,
            cpu_us: 2.0,
        }
    }

    #[test]
    fn settings_stand_side_by_side_by_their_medians() {
        let samples = vec![
            sample(true, 0, 300.0),
            sample(true, 1, 100.0),
            sample(true, 2, 200.0),
            sample(false, 0, 50.0),
        ];
        let findings = Findings { origin: Origin::here(), entries: 9, rounds: 3, samples };
        let on = figures(&findings, Filesystem::Xfs, Pass::Warm, true).unwrap();
        assert_eq!((on.per_second, on.p50_us, on.p99_us), (200.0, Some(5000.0), None));
        assert_eq!(figures(&findings, Filesystem::Ext4, Pass::Warm, true), None);
        let text = page(&findings).to_markdown("foot");
        assert!(text.contains("| xfs | warm, one at a time | 200 | 50.0 | 4.00 |"), "{text}");
    }
}
