//! Files as the published script makes them: what each drives.

use super::*;
use crate::scenario::Chart;
use weir_load::workload::{Layout, Length, Rate, Stability, Starts};

fn published(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang/anf-vdbench").join(name);
    crate::lang::read(&path, &Options::default()).unwrap()
}

/// Asserts the properties that all of them share.
fn common(load: &Workload, threads: u32) {
    assert_eq!((load.files, load.jobs, load.depth), (144, 144 * threads, 1));
    assert_eq!(load.file_bytes, 693 << 30);
    assert_eq!(load.names.len(), 144);
    assert_eq!(load.names.first().unwrap(), "file001");
    assert_eq!(load.names.last().unwrap(), "file144");
    assert!(load.direct);
    assert_eq!(load.stability, Stability::Unstable);
    assert_eq!(load.hosts.len(), 12);
    assert_eq!(load.hosts.last().unwrap(), "hd12");
    assert_eq!(load.rate, Rate::Unlimited);
}

#[test]
fn the_fill_writes_every_file_once() {
    let scenario = published("fill.parm");
    assert_eq!(scenario.language, Language::Vdbench);
    let step = &scenario.steps[0];
    assert_eq!((scenario.steps.len(), step.loads.len()), (1, 1));
    assert!(!step.preparation && !step.shares_files);
    let load = &step.loads[0];
    common(load, 8);
    assert_eq!(operation(load), (Pattern::Sequential, 0));
    assert_eq!((load.block_bytes, load.starts), (64 << 10, Starts::Interlocked));
    assert_eq!(load.layout, Layout::Sparse);
    // 0: the eight threads of a file together move it once.
    assert_eq!(load.length, Length::Bytes { per_job: 0, at_most_s: Some(360_000.0) });
}

#[test]
fn the_six_tests_drive_what_they_say() {
    let random = |reads| (Pattern::Random, reads, 8 << 10, Starts::Apart);
    let sequential = |reads| (Pattern::Sequential, reads, 64 << 10, Starts::Interlocked);
    for (file, (pattern, reads, block, starts), threads) in [
        ("random-read.parm", random(100), &[25][..]),
        ("random-write.parm", random(0), &[20]),
        ("random-mix.parm", random(50), &[25]),
        ("sequential-read.parm", sequential(100), &[20]),
        ("sequential-write.parm", sequential(0), &[26, 32, 40]),
        ("sequential-mix.parm", sequential(50), &[6, 7]),
    ] {
        let scenario = published(file);
        assert_eq!(scenario.steps.len(), threads.len(), "{file}");
        for (at, (step, threads)) in scenario.steps.iter().zip(threads).enumerate() {
            assert_eq!(step.loads.len(), 1);
            let load = &step.loads[0];
            common(load, *threads);
            assert_eq!((operation(load), load.block_bytes), ((pattern, reads), block), "{file}");
            assert_eq!(load.starts, starts, "{file}");
            assert_eq!(load.length, Length::Seconds(600.0));
            assert_eq!((load.warmup_s, load.start_delay_s), (60.0, 0.0));
            let last = at + 1 == scenario.steps.len();
            assert_eq!((step.shares_files, load.keep), (!last, !last));
            assert_eq!(load.layout == Layout::Existing, at > 0, "{file}");
        }
    }
    let steps = published("sequential-write.parm").steps;
    assert_eq!(names(&steps), ["rd1 threads=26", "rd1 threads=32", "rd1 threads=40"]);
    let axis: Vec<f64> = steps.iter().map(|step| step.axis.as_ref().unwrap().value).collect();
    assert_eq!(axis, [26.0, 32.0, 40.0]);
    assert_eq!(steps[0].group, "rd1");
    assert_eq!(published("random-read.parm").steps[0].name, "rd1");
}

#[test]
fn the_curve_runs_parts_of_the_highest_rate() {
    let scenario = published("curve.parm");
    assert_eq!(scenario.chart, Chart::LatencyCurve);
    assert_eq!(names(&scenario.steps), ["rd1 max", "rd1 50%", "rd1 100%"]);
    assert!(scenario.steps.iter().all(|step| step.group == "rd1"));
    common(&scenario.steps[0].loads[0], 25);
    for (step, percent) in scenario.steps[1..].iter().zip([50.0, 100.0]) {
        let of = "rd1 max".to_owned();
        assert_eq!(step.loads[0].rate, Rate::Share { of, percent });
        assert_eq!(step.loads[0].jobs, 3600);
        assert_eq!(step.loads[0].layout, Layout::Existing);
    }
}

#[test]
fn what_has_no_effect_is_noted_once() {
    let changes = published("fill.parm").changes;
    for word in ["data_errors", "messagescan", "vdbench", "jvms"] {
        let begins = format!("{word} has no effect here: ");
        assert_eq!(
            changes.iter().filter(|change| change.starts_with(&begins)).count(),
            1,
            "{word}"
        );
    }
    for word in ["shell", "user", "system"] {
        assert!(!changes.iter().any(|change| change.starts_with(word)), "{word} has an effect");
    }
    let files = "/mnt/vol/vdbench/file001 is file001 in the target's directory weir-bench, and so are \
                 143 more from beside it";
    assert!(changes.iter().any(|change| change == files), "{changes:?}");
}
