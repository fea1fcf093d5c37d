//! The catalogue against the published figures, written down here a second time.

use super::pairs::Pick;
use super::*;
use crate::scenario::{Bound, Cache, Chart};
use std::collections::BTreeSet;
use weir_load::target::{NfsTarget, Target};
use weir_load::workload::{Length, MixOp, Operation, Pattern, Rate, Stability, Workload};

const GIB: u64 = 1 << 30;

fn get(name: &str) -> Scenario {
    scenario(name).unwrap()
}

fn loads(scenario: &Scenario) -> impl Iterator<Item = &Workload> {
    scenario.steps.iter().flat_map(|step| &step.loads)
}

/// The published figures of a test's steps, as "read+write" in the order of the steps.
fn figures(name: &str) -> Vec<String> {
    let parts = |step: &&Step| {
        step.published.as_ref().is_some_and(|row| row.iops.is_none() && row.mibps.is_none())
    };
    let text = |figure: Option<f64>| figure.map(|figure| figure.to_string()).unwrap_or_default();
    let of = |step: &Step| {
        let row = step.published.as_ref()?;
        let read = text(row.read_iops.or(row.read_mibps));
        let write = text(row.write_iops.or(row.write_mibps));
        Some(format!("{read}+{write}"))
    };
    get(name).steps.iter().filter(parts).filter_map(of).collect()
}

/// Reads a table of the reference, as it stands there.
#[rustfmt::skip]
const GCNV: [(&str, &str); 10] = [
    ("gcnv-flex-64k-sequential", "4,304 | 2,963+989 | 1,345+1,344 | 464+1,390 | 1,476"),
    ("gcnv-flex-8k-random", "126,397 | 101,740+33,916 | 57,223+57,217 | 23,600+70,751 | 78,582"),
    ("gcnv-extreme-64k-sequential", "5,237 | 2,284+764 | 1,415+1,416 | 610+1,835 | 2,172"),
    ("gcnv-extreme-256k-sequential", "4,928 | 2,522+839 | 1,638+1,640 | 677+2,036 | 2,440"),
    ("gcnv-extreme-4k-random", "380,000 | 172,000+57,300 | 79,800+79,800 | 32,000+96,200 | 118,000"),
    ("gcnv-extreme-8k-random", "265,000 | 132,000+44,100 | 66,900+66,900 | 30,200+90,500 | 104,000"),
    ("gcnv-extreme-64k-sequential-smb", "5,128 | 2,675+892 | 1,455+1,454 | 559+1,676 | 1,781"),
    ("gcnv-extreme-256k-sequential-smb", "4,617 | 2,708+900 | 1,533+1,534 | 584+1,744 | 1,826"),
    ("gcnv-extreme-4k-random-smb", "390,900 | 164,700+54,848 | 84,200+84,200 | 32,822+98,500 | 109,300"),
    ("gcnv-extreme-8k-random-smb", "271,800 | 135,900+45,293 | 65,700+65,900 | 28,093+84,400 | 85,500"),
];

#[test]
fn the_rows_of_gcnv_are_those_published() {
    for (name, row) in GCNV {
        let mut expected: Vec<String> =
            row.replace(',', "").split(" | ").map(str::to_owned).collect();
        expected[0].push('+');
        expected[4].insert(0, '+');
        assert_eq!(figures(name), expected, "{name}");
        let test = get(name);
        let percents: Vec<_> = test.steps.iter().map(|s| s.axis.as_ref().unwrap().value).collect();
        assert_eq!(percents, [100.0, 75.0, 50.0, 25.0, 0.0], "{name}");
        let random = name.contains("random");
        for step in &test.steps {
            let row = step.published.as_ref().unwrap();
            let iops = row.read_iops.is_some() || row.write_iops.is_some();
            assert_eq!(iops, random, "{name}");
            assert!(!row.about);
            let load = &step.loads[0];
            assert_eq!((load.clients, load.jobs, load.connections), (6, 48, 16));
            let data: u64 = if name.contains("flex") { 576 } else { 6 * 1024 };
            assert_eq!(load.file_bytes * u64::from(load.files), data * GIB, "{name}");
        }
        assert_eq!(test.waiting, None);
    }
}

#[test]
#[rustfmt::skip]
fn the_rows_of_anf_on_linux_are_those_published() {
    let rows = [
        ("anf-linux-4k-random", 4, "460000+", "+130000", 11, Cache::Included),
        ("anf-linux-4k-random-uncached", 4, "388000+", "+120000", 5, Cache::Excluded),
        ("anf-linux-8k-random-uncached", 8, "293000+", "+111000", 5, Cache::Excluded),
        ("anf-linux-64k-sequential", 64, "4500+", "+1600", 11, Cache::Included),
        ("anf-linux-64k-sequential-uncached", 64, "3600+", "+2400", 5, Cache::Excluded),
        ("anf-linux-256k-sequential-uncached", 256, "3500+", "+2500", 5, Cache::Excluded),
    ];
    for (name, kib, read, write, steps, cache) in rows {
        let test = get(name);
        assert_eq!(figures(name), [read, write], "{name}");
        assert_eq!((test.steps.len(), test.chart), (steps, Chart::Bars));
        for step in &test.steps {
            assert_eq!(step.cache, cache);
            let load = &step.loads[0];
            assert_eq!(load.block_bytes, kib * 1024);
            assert_eq!((load.clients, load.connections), (6, 8));
            let data = load.file_bytes * u64::from(load.files);
            assert_eq!(data.next_multiple_of(GIB), 1024 * GIB);
            let random = matches!(load.operation, Operation::Data { pattern: Pattern::Random, .. });
            assert_eq!(random, name.contains("random"));
            assert_eq!(load.invalidate, cache == Cache::Excluded);
        }
        let about = test.steps.iter().filter_map(|step| step.published.as_ref());
        assert!(about.into_iter().all(|row| row.about));
    }
}

#[test]
fn a_sequential_mix_by_fio_has_two_positions_in_each_file() {
    for entry in all() {
        let by_fio = entry.name.starts_with("anf-linux") || entry.name.starts_with("gcnv");
        if !by_fio || !entry.name.contains("sequential") {
            continue;
        }
        for step in &get(&entry.name).steps {
            let percent: u8 = step.name.trim_start_matches("reads-").parse().unwrap();
            let load = &step.loads[0];
            if percent.is_multiple_of(100) {
                let pattern = Pattern::Sequential;
                assert_eq!(load.operation, Operation::Data { pattern, read_percent: percent });
                continue;
            }
            let shares: Vec<_> = load.mix.iter().map(|share| (share.op, share.percent)).collect();
            let both = [(MixOp::ReadSequential, percent), (MixOp::WriteSequential, 100 - percent)];
            assert_eq!((load.operation, shares.as_slice()), (Operation::Mix, both.as_slice()));
        }
    }
}

#[test]
fn the_page_compares_half_writes_with_reads() {
    let half = |name: &str| {
        let test = get(name);
        let step = test.steps.iter().find(|step| step.name == "reads-50").unwrap().clone();
        step.published.map(|row| (row.mibps, row.bound))
    };
    let (small, large) =
        ("anf-linux-64k-sequential-uncached", "anf-linux-256k-sequential-uncached");
    assert_eq!(half(small), Some((Some(3600.0), Bound::None)));
    assert_eq!(half(large), Some((Some(3500.0), Bound::MoreThan)));
    assert_eq!(half("anf-linux-4k-random-uncached"), None);
}

#[test]
fn one_client_is_compared_with_and_without_nconnect() {
    let names = [
        ("anf-nconnect-4k-random", 100),
        ("anf-nconnect-4k-random-writes", 0),
        ("anf-nconnect-64k-sequential", 100),
        ("anf-nconnect-64k-sequential-writes", 0),
    ];
    for (name, percent) in names {
        let test = get(name);
        assert_eq!(test.chart, Chart::Lines);
        for step in &test.steps {
            let load = &step.loads[0];
            let connections = if step.group == "nconnect=8" { 8 } else { 1 };
            assert_eq!((load.clients, load.connections), (1, connections));
            let Operation::Data { read_percent, .. } = load.operation else { panic!("{name}") };
            assert_eq!(read_percent, percent, "{name}");
            assert!(step.cache == Cache::Excluded && load.invalidate, "{name}");
            let axis = step.axis.as_ref().unwrap();
            assert_eq!(axis.value, f64::from(load.jobs * load.depth));
        }
        let groups = |name| test.steps.iter().filter(|step| step.group == name).count();
        assert_eq!((groups("nconnect=1"), groups("nconnect=8")), (8, 8));
    }
}

/// Limit, IOPS, MiB/s and mean latency of the seven volumes, as they stand in the reference.
#[rustfmt::skip]
const QOS: [(&str, f64, f64, f64, f64); 7] = [
    ("anf-qos-auto-100gib", 1.5625, 205.0, 1.6045, 5410.0),
    ("anf-qos-auto-1tib", 16.0, 2053.0, 16.05, 614.0),
    ("anf-qos-auto-4tib", 64.0, 8413.0, 65.73, 152.0),
    ("anf-qos-pair-1tib", 16.0, 2103.0, 16.43, 600.0),
    ("anf-qos-pair-3tib", 48.0, 6309.0, 49.29, 202.0),
    ("anf-qos-manual-1tib", 48.0, 6162.0, 48.14, 207.0),
    ("anf-qos-manual-3tib", 16.0, 2053.0, 16.05, 613.0),
];

#[test]
fn the_seven_volumes_are_loaded_as_published() {
    for (name, limit, iops, mibps, mean_ms) in QOS {
        let test = get(name);
        assert!(test.title.contains(&format!("limit {limit} MiB/s")), "{}", test.title);
        assert!(test.source.as_deref().unwrap().contains("2020-11-28"));
        let [step] = test.steps.as_slice() else { panic!("one step") };
        let row = step.published.as_ref().unwrap();
        assert_eq!((row.write_iops, row.write_mibps), (Some(iops), Some(mibps)), "{name}");
        assert_eq!((row.latency_ms, row.about, row.bound), (Some(mean_ms), false, Bound::None));
        // Blocks of 8 KiB, and Little's law with 1,280 in flight: figures of one row agree.
        assert!((mibps * 128.0 - iops).abs() < 1.5, "{name}: {}", mibps * 128.0);
        assert!((1_280_000.0 / iops / mean_ms - 1.0).abs() < 0.16, "{name}");
        for load in [&step.loads[0], &get("weir-contract-accuracy").steps[6].loads[0]] {
            assert_eq!((load.clients, load.connections, load.jobs * load.depth), (1, 1, 1280));
            assert_eq!((load.files, load.file_bytes), (40, 1000 << 20));
            assert_eq!(load.stability, Stability::FileSync);
            assert_eq!((load.length, load.block_bytes), (Length::Seconds(180.0), 8192));
        }
    }
}

#[test]
fn the_vdbench_script_has_its_parameters() {
    let test = get("anf-vdbench");
    for load in loads(&test) {
        assert_eq!((load.files, load.jobs, load.file_bytes), (144, 144, 693 * GIB));
        assert_eq!((load.length, load.warmup_s), (Length::Seconds(600.0), 60.0));
        assert!(load.direct && load.stability == Stability::FileSync);
    }
    let threads: Vec<_> = test
        .steps
        .iter()
        .map(|step| {
            let load = &step.loads[0];
            let Operation::Data { read_percent, .. } = load.operation else { panic!() };
            (load.block_bytes / 1024, read_percent, load.depth)
        })
        .collect();
    let random = [(8, 100, 25), (8, 0, 20), (8, 50, 25)];
    let sequential =
        [(64, 100, 20), (64, 0, 26), (64, 0, 32), (64, 0, 40), (64, 50, 6), (64, 50, 7)];
    assert_eq!(threads, [random.as_slice(), &sequential].concat());
    let published: Vec<_> = test.steps.iter().filter_map(|step| step.published.as_ref()).collect();
    assert_eq!((published[0].read_iops, published[0].bound), (Some(300_000.0), Bound::MoreThan));
    assert_eq!((published[1].mibps, published[1].bound), (Some(4_500.0), Bound::UpTo));
    assert_eq!(published.len(), 2);
}

#[test]
fn a_curve_runs_at_parts_of_its_own_maximum() {
    let test = get("anf-vdbench-curve");
    assert_eq!(test.chart, Chart::LatencyCurve);
    for group in ["near", "far"] {
        let steps: Vec<_> = test.steps.iter().filter(|step| step.group == group).collect();
        assert_eq!(steps[0].loads[0].rate, Rate::Unlimited);
        let rates: Vec<_> = steps[1..].iter().map(|step| step.loads[0].rate.clone()).collect();
        let expected = [10.0, 50.0, 70.0, 80.0, 90.0, 100.0]
            .map(|percent| Rate::Share { of: steps[0].name.clone(), percent });
        assert_eq!(rates, expected);
        let far = steps.iter().all(|step| !step.loads[0].client_delays_us.is_empty());
        assert_eq!(far, group == "far");
    }
}

#[test]
fn the_diskspd_command_has_its_parameters() {
    for (name, files) in [("azure-files-multifile", 10), ("azure-files-singlefile", 1)] {
        for name in [name.to_owned(), format!("{name}-nfs")] {
            let test = get(&name);
            assert_eq!(test.waiting, None);
            let load = &test.steps[0].loads[0];
            let random_write = Operation::Data { pattern: Pattern::Random, read_percent: 0 };
            assert_eq!(load.operation, random_write);
            assert_eq!((load.block_bytes, load.depth, load.jobs), (4096, 8, 8 * files));
            let size = if files == 1 { 128 * GIB } else { 2 * GIB };
            assert_eq!((load.files, load.file_bytes), (files, size));
            assert_eq!(load.cooldown_s, 5.0);
            assert_eq!((load.length, load.warmup_s), (Length::Seconds(60.0), 300.0));
            assert_eq!(load.stability, Stability::FileSync);
        }
    }
}

#[test]
fn channels_are_compared_over_block_sizes_at_the_published_depth() {
    for (kind, files, size) in [("many-files", 10, 2 * GIB), ("one-file", 1, 128 * GIB)] {
        for suffix in ["", "-nfs"] {
            let test = get(&format!("azure-multichannel-{kind}{suffix}"));
            for step in &test.steps {
                let load = &step.loads[0];
                assert_eq!((load.depth, load.files, load.file_bytes), (10, files, size));
                assert_eq!(load.jobs, 8 * files);
                assert!(load.connections == 1 || load.connections == 4);
            }
            let kibs = |group: &str| -> Vec<u32> {
                let steps = test.steps.iter().filter(|step| step.group == group);
                steps.map(|step| step.loads[0].block_bytes / 1024).collect()
            };
            for group in ["reads, 1 connection", "writes, 4 connections"] {
                assert_eq!(kibs(group), [4, 8, 16, 32, 64, 128, 256], "{kind}{suffix}");
            }
        }
    }
    let published = |name: &str| {
        let test = get(name);
        let rows: Vec<_> = test.steps.into_iter().filter_map(|step| step.published).collect();
        rows.into_iter().map(|row| (row.read_mibps, row.bound)).collect::<Vec<_>>()
    };
    let most = (Some(2.7 * 1024.0), Bound::MoreThan);
    assert_eq!(published("azure-multichannel-many-files"), [most]);
    assert_eq!(published("azure-multichannel-many-files-nfs"), []);
    // Requests of a single thread reach every connection.
    for step in &get("azure-multichannel-one-thread-nfs").steps {
        let load = &step.loads[0];
        assert!(load.jobs == 1 && load.depth >= load.connections);
    }
}

#[test]
fn pairs_are_of_steps_that_exist() {
    let mut names = BTreeSet::new();
    for pair in pairs::pairs() {
        assert!(names.insert(pair.name.clone()), "{} twice", pair.name);
        for side in [&pair.base, &pair.other] {
            let test = get(&side.test);
            let there = match &side.pick {
                Pick::Step(name) => test.steps.iter().any(|step| step.name == *name),
                Pick::Best(group) => test.steps.iter().any(|step| step.group == *group),
            };
            assert!(there, "{}: {:?} of {}", pair.name, side.pick, side.test);
        }
        assert_ne!(pair.base, pair.other, "{}", pair.name);
        let settings = [&pair.base.setting, &pair.other.setting].map(Option::is_some);
        assert_eq!(settings[0], settings[1], "{}", pair.name);
        let range = (pair.published.low, pair.published.high);
        assert!(range != (None, None), "{}", pair.name);
        assert!(!matches!(range, (Some(low), Some(high)) if low >= high), "{}", pair.name);
        assert!(!pair.published.words.is_empty() && !pair.published.who.is_empty());
    }
}

#[test]
fn the_mix_of_eda_is_the_public_one() {
    let shares = |name: &str| -> Vec<_> {
        get(name).steps[0].loads[0].mix.iter().map(|share| (share.op, share.percent)).collect()
    };
    let front = shares("eda-frontend");
    for (op, percent) in [
        (MixOp::Stat, 39),
        (MixOp::Access, 15),
        (MixOp::WriteRandom, 15),
        (MixOp::WriteFile, 10),
        (MixOp::ReadRandom, 8),
        (MixOp::ReadFile, 7),
        (MixOp::Create, 2),
        (MixOp::Chmod, 1),
        (MixOp::Mkdir, 1),
        (MixOp::Unlink, 1),
        (MixOp::Unlink2, 1),
    ] {
        assert!(front.contains(&(op, percent)), "{op:?}");
    }
    assert_eq!(front.len(), 11);
    assert_eq!(shares("eda-backend"), [(MixOp::ReadSequential, 50), (MixOp::WriteSequential, 50)]);
    let both = get("eda");
    let row = both.steps[0].published.as_ref().unwrap();
    assert_eq!((row.iops, row.mibps), (Some(1_350_000.0), Some(22_016.0)));
    assert_eq!(row.bound, Bound::UpTo);
    assert_eq!(both.steps[0].loads.len(), 2);
    for name in ["eda", "eda-frontend", "eda-backend"] {
        assert!(loads(&get(name)).all(|load| load.clients % 6 == 0), "six addresses, evenly");
    }
}

#[test]
fn writes_are_applied_as_stably_as_the_page_says() {
    let nfs = Target::Nfs(NfsTarget::new("192.0.2.1:2049".parse().unwrap(), "/vol"));
    let (eda, accuracy) = (["eda", "eda-frontend", "eda-backend"], "weir-contract-accuracy");
    for entry in all() {
        for step in get(&entry.name).steps {
            let name = entry.name.as_str();
            let of_a_mix = name == accuracy && step.name != "as-published";
            let unstable = eda.contains(&name) || of_a_mix;
            let wanted = if unstable { Stability::Unstable } else { Stability::FileSync };
            for load in step.loads.iter().filter(|load| load.writes()) {
                assert_eq!(load.applied_to(&nfs).stability, wanted, "{name}, step {}", step.name);
            }
        }
    }
}

#[test]
fn minutes_contain_the_cool_down() {
    let test = get("azure-files-multifile");
    let mut without = test.clone();
    without.steps[0].loads[0].cooldown_s = 0.0;
    let [with, without] = [&test, &without].map(|test| scale::estimate(test, 3).as_secs_f64());
    assert!((with - without - 15.0).abs() < 1e-9, "5 s in each of three runs");
}

#[test]
fn ratios_of_smb_are_for_orientation_over_nfs_alone() {
    for pair in pairs::pairs() {
        let over_nfs = pair.base.test.starts_with("azure") && pair.base.test.ends_with("-nfs");
        assert_eq!(pair.published.orientation, over_nfs, "{}", pair.name);
        assert_eq!(pair.published.words.starts_with("of SMB"), over_nfs, "{}", pair.name);
    }
}

#[test]
fn what_waits_is_no_work_of_the_page() {
    // A test that waits has no item that works by it alone.
    for item in audit::PAGES.iter().flat_map(|page| page.items) {
        if let audit::End::Works(place) = item.end {
            for entry in all().iter().filter(|entry| entry.waiting.is_some()) {
                let name = format!("`{}`", entry.name);
                assert!(!place.contains(&name), "{}: {} waits", item.what, entry.name);
            }
            assert!(!place.contains("azure-multichannel-…"), "{}", item.what);
            assert!(!place.contains("azure-channels-"), "{}", item.what);
        }
    }
}

#[test]
fn shares_of_every_mix_add_up() {
    for entry in all() {
        for load in loads(&get(&entry.name)).filter(|load| load.operation == Operation::Mix) {
            let sum: u32 = load.mix.iter().map(|share| u32::from(share.percent)).sum();
            assert_eq!(sum, 100, "{}", entry.name);
        }
    }
}

#[test]
fn every_test_is_sound_and_every_name_means_one() {
    let mut names = Vec::new();
    for entry in all() {
        let test = get(&entry.name);
        assert!(!names.contains(&entry.name), "{} twice", entry.name);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(entry.name.chars().all(plain), "{}", entry.name);
        let mut steps: Vec<_> = test.steps.iter().map(|step| &step.name).collect();
        steps.sort();
        steps.dedup();
        assert_eq!(steps.len(), test.steps.len(), "{}", entry.name);
        for load in loads(&test) {
            // A rate that is a part of another step's is open until that has run.
            let open = matches!(load.rate, Rate::Share { .. });
            let load = if open {
                Workload { rate: Rate::Unlimited, ..load.clone() }
            } else {
                load.clone()
            };
            load.check().unwrap();
        }
        assert!(test.about.len() > 80 && !test.steps.is_empty() && entry.minutes > 0.0);
        let over_channels = entry.name.starts_with("azure-multichannel");
        let waits = over_channels && entry.protocol == Protocol::Smb;
        assert_eq!(test.waiting.is_some(), waits, "{}", entry.name);
        assert_eq!(protocol(&entry.name), Some(entry.protocol));
        // Only what is like for like stands beside a published row.
        assert!(!entry.published || test.source.is_some());
        names.push(entry.name);
    }
    assert_eq!(names.len(), 45);
}

#[test]
fn a_wrong_name_suggests_the_nearest() {
    assert!(scenario(" ANF-Linux-4K-random").is_ok());
    let told = |name: &str| scenario(name).unwrap_err();
    assert!(told("anf-linux-4k-randm").contains("did you mean anf-linux-4k-random?"));
    assert!(told("eda-front").contains("did you mean eda-frontend?"));
    let uncached = "did you mean anf-linux-4k-random-uncached?";
    assert!(told("anf-linux-4k-uncached").contains(uncached), "it has all words");
    assert!(told("contract-accuracy").contains("did you mean weir-contract-accuracy?"));
    assert!(told("").contains("weir bench list"));
    assert!(told("something else entirely").contains("weir bench list"));
    assert_eq!(distance("kitten", "sitting"), 3);
    assert_eq!(distance("", "abc"), 3);
}

/// `WEIR_CATALOGUE=write` writes the page.
#[test]
fn the_page_is_that_of_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bench-catalogue.md");
    let page = document::page();
    if std::env::var_os("WEIR_CATALOGUE").is_some_and(|what| what == "write") {
        std::fs::write(path, &page).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap();
    assert!(stored == page, "{path} is stale: run this test with WEIR_CATALOGUE=write");
}
