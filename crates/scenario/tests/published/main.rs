//! The published parameter files and command lines, as what they drive. `make test` reads fixtures
//! that have the parameters of the published texts in other words. The published texts themselves
//! are not part of the project: an ignored test reads them, byte for byte, from the directory in
//! `WEIR_PUBLISHED` (`make published PUBLISHED=DIRECTORY`), and compares them with the fixtures.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation ends the test")]

mod examples;

use examples::{EXAMPLES, Example};
use std::path::{Path, PathBuf};
use weir_load::workload::{
    Layout, Length, Operation, Pattern, Rate, Stability, Starts, Think, Workload,
};
use weir_scenario::lang::{self, Map, Options};
use weir_scenario::scenario::{Chart, Language, Scenario};

/// Each published text with its fixture.
const TEXTS: &[(&str, &str)] = &[
    ("vnet1-FillWrite-workload", "anf-vdbench/fill.parm"),
    ("vnet1-RndRead-workload", "anf-vdbench/random-read.parm"),
    ("vnet1-RndWrite-workload", "anf-vdbench/random-write.parm"),
    ("vnet1-RndMix-workload", "anf-vdbench/random-mix.parm"),
    ("vnet1-SeqRead-workload", "anf-vdbench/sequential-read.parm"),
    ("vnet1-SeqWrite-workload", "anf-vdbench/sequential-write.parm"),
    ("vnet1-SeqMix-workload", "anf-vdbench/sequential-mix.parm"),
    ("anf-qos.fio", "anf-qos.fio"),
    ("azure-files-multifile.diskspd", "azure-multifile.diskspd"),
];

fn read(path: &Path, maps: &[&str]) -> Scenario {
    let maps = maps.iter().map(|map| Map::parse(map).unwrap()).collect();
    let options = Options { maps, ..Options::default() };
    lang::read(path, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn fixture(name: &str) -> Scenario {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang").join(name), &[])
}

/// The loads of each step without the names of files, hosts and runs.
fn nameless(scenario: &Scenario) -> Vec<(bool, bool, Vec<Workload>)> {
    let load = |load: &Workload| Workload {
        name: String::new(),
        directory: String::new(),
        names: vec![String::new(); load.names.len()],
        hosts: vec![String::new(); load.hosts.len()],
        ..load.clone()
    };
    let steps = scenario.steps.iter();
    steps
        .map(|step| (step.preparation, step.shares_files, step.loads.iter().map(load).collect()))
        .collect()
}

fn operation(load: &Workload) -> (Pattern, u8) {
    match load.operation {
        Operation::Data { pattern, read_percent } => (pattern, read_percent),
        other => panic!("{other:?}"),
    }
}

/// Asserts the properties that the loads of all Vdbench texts share: 24 hosts, each with a file of
/// its own on each of six volumes.
fn on_every_host(loads: &[Workload], threads: u32) {
    assert_eq!(loads.len(), 24);
    for load in loads {
        assert_eq!((load.files, load.jobs, load.depth), (6, 6 * threads, 1));
        assert_eq!((load.names.len(), load.file_bytes), (6, 693 << 30));
        assert_eq!((load.clients, load.hosts.len()), (1, 1));
        assert!(load.direct);
        assert_eq!((load.rate.clone(), load.think), (Rate::Unlimited, None::<Think>));
    }
    let mut hosts: Vec<_> = loads.iter().map(|load| &load.hosts[0]).collect();
    let mut names: Vec<_> = loads.iter().flat_map(|load| &load.names).collect();
    for list in [&mut hosts, &mut names] {
        list.sort_unstable();
        list.dedup();
    }
    assert_eq!((hosts.len(), names.len()), (24, 144));
}

#[test]
fn the_fill_writes_every_file_once() {
    let scenario = fixture("anf-vdbench/fill.parm");
    assert_eq!((scenario.language, scenario.steps.len()), (Language::Vdbench, 1));
    let step = &scenario.steps[0];
    assert!(!step.preparation && !step.shares_files);
    on_every_host(&step.loads, 1);
    for load in &step.loads {
        assert_eq!((operation(load), load.block_bytes), ((Pattern::Sequential, 0), 64 << 10));
        assert_eq!((load.starts, load.layout), (Starts::Interlocked, Layout::Sparse));
        // 0: the only thread of a file moves all of it once.
        assert_eq!(load.length, Length::Bytes { per_job: 0, at_most_s: Some(259_200.0) });
    }
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
        let scenario = fixture(&format!("anf-vdbench/{file}"));
        assert_eq!(scenario.steps.len(), threads.len(), "{file}");
        for (at, (step, threads)) in scenario.steps.iter().zip(threads).enumerate() {
            on_every_host(&step.loads, *threads);
            let is_last = at + 1 == scenario.steps.len();
            assert_eq!(step.shares_files, !is_last);
            for load in &step.loads {
                assert_eq!((operation(load), load.block_bytes), ((pattern, reads), block));
                assert_eq!((load.starts, load.length), (starts, Length::Seconds(600.0)));
                assert_eq!((load.warmup_s, load.start_delay_s), (60.0, 0.0));
                assert_eq!(load.keep, !is_last);
                assert_eq!(load.layout == Layout::Existing, at > 0, "{file}");
            }
        }
    }
}

#[test]
fn volumes_are_directories_where_they_are_mapped() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang/anf-vdbench/fill.parm");
    let maps: Vec<String> = (1..=6).map(|volume| format!("/vol/v{volume}:=v{volume}")).collect();
    let maps: Vec<&str> = maps.iter().map(String::as_str).collect();
    let scenario = read(&path, &maps);
    let loads = &scenario.steps[0].loads;
    assert_eq!(loads.len(), 144);
    for volume in 1..=6 {
        let own: Vec<_> =
            loads.iter().filter(|load| load.directory == format!("v{volume}")).collect();
        assert_eq!(own.len(), 24);
        assert!(own.iter().all(|load| load.files == 1 && load.hosts.len() == 1));
    }
}

#[test]
fn the_curve_runs_parts_of_the_highest_rate() {
    let scenario = fixture("anf-vdbench/curve.parm");
    assert_eq!(scenario.chart, Chart::LatencyCurve);
    let names: Vec<&str> = scenario.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["rates max", "rates 50%", "rates 100%"]);
    assert!(scenario.steps.iter().all(|step| step.group == "rates"));
    on_every_host(&scenario.steps[0].loads, 25);
    for (step, percent) in scenario.steps[1..].iter().zip([50.0, 100.0]) {
        for load in &step.loads {
            // Each host has its part of the rate that all had together.
            let percent = percent / 24.0;
            assert_eq!(load.rate, Rate::Share { of: "rates max".to_owned(), percent });
            assert_eq!((load.jobs, load.layout), (150, Layout::Existing));
        }
    }
}

#[test]
fn what_has_no_effect_is_noted_once() {
    let changes = fixture("anf-vdbench/fill.parm").changes;
    let told = changes.iter().filter(|change| change.starts_with("jvms has no effect here: "));
    assert_eq!(told.count(), 1);
    for word in ["shell", "user", "system"] {
        assert!(!changes.iter().any(|change| change.starts_with(word)), "{word} has an effect");
    }
}

#[test]
fn the_fio_line_is_forty_processes_with_direct_writes() {
    let scenario = fixture("anf-qos.fio");
    assert_eq!((scenario.language, scenario.steps.len()), (Language::Fio, 1));
    let [load] = scenario.steps[0].loads.as_slice() else { panic!("one load") };
    assert_eq!((operation(load), load.block_bytes), ((Pattern::Random, 0), 8192));
    assert_eq!((load.jobs, load.files, load.depth), (40, 40, 32));
    assert_eq!(load.file_bytes, 1000 << 20);
    assert_eq!(load.length, Length::Bytes { per_job: 1000 << 20, at_most_s: Some(180.0) });
    assert!(load.direct && load.invalidate);
    assert_eq!((load.stability, load.layout), (Stability::Unstable, Layout::Sparse));
}

#[test]
fn the_diskspd_line_is_ten_files_with_write_through_writes() {
    let scenario = fixture("azure-multifile.diskspd");
    assert_eq!((scenario.language, scenario.steps.len()), (Language::Diskspd, 1));
    let [load] = scenario.steps[0].loads.as_slice() else { panic!("one load") };
    assert_eq!((operation(load), load.block_bytes), ((Pattern::Random, 0), 4096));
    assert_eq!((load.jobs, load.files, load.depth), (80, 10, 8));
    assert_eq!(load.file_bytes, 2 << 30);
    assert_eq!((load.length, load.warmup_s), (Length::Seconds(60.0), 300.0));
    assert!((load.cooldown_s - 5.0).abs() < f64::EPSILON);
    assert_eq!((load.stability, load.direct), (Stability::FileSync, true));
}

#[test]
#[ignore = "reads the examples of fio 3.33 from the directory in WEIR_FIO_EXAMPLES: make fio-examples"]
fn the_examples_of_fio_are_read_or_refused_for_a_reason() {
    let directory = std::env::var_os("WEIR_FIO_EXAMPLES").map(PathBuf::from);
    let directory = directory.expect("WEIR_FIO_EXAMPLES names the directory of fio's examples");
    let mut found = 0;
    for (name, wanted) in EXAMPLES {
        let path = directory.join(format!("{name}.fio"));
        let read = |words: &[&str], map: Option<&str>| {
            let mut line = vec!["fio".to_owned()];
            line.extend(words.iter().map(ToString::to_string));
            line.push(path.display().to_string());
            let maps = map.iter().map(|map| Map::parse(&format!("{map}:=data")).unwrap());
            let options = Options { maps: maps.collect(), ..Options::default() };
            lang::command(&line, &options).map(drop).map_err(|error| error.to_string())
        };
        let outcome = match wanted {
            Example::Runs => {
                lang::read(&path, &Options::default()).map(drop).map_err(|error| error.to_string())
            }
            Example::WithSize => read(&["--size=64m"], None),
            Example::Section(section) => read(&[&format!("--section={section}")], None),
            Example::OnAFile(device) => read(&["--size=64m"], Some(device)),
            Example::Refused(why) => match read(&["--size=64m"], None) {
                Err(error) if error.contains(why) => Ok(()),
                Err(error) => Err(error),
                Ok(()) => Err("it is read".to_owned()),
            },
        };
        assert_eq!(outcome, Ok(()), "{name}");
        found += 1;
    }
    let all = std::fs::read_dir(&directory).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension() == Some("fio".as_ref()))
    });
    assert_eq!(all.count(), found, "every example is in the table");
}

#[test]
#[ignore = "reads the published texts from the directory in WEIR_PUBLISHED: make published"]
fn the_published_texts_drive_what_their_fixtures_drive() {
    let directory = std::env::var_os("WEIR_PUBLISHED").map(PathBuf::from);
    let directory = directory.expect("WEIR_PUBLISHED names the directory of the published texts");
    for (name, own) in TEXTS {
        let published = read(&directory.join(name), &[]);
        assert_eq!(nameless(&published), nameless(&fixture(own)), "{name} and {own}");
    }
}
