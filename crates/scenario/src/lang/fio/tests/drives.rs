//! Tests of the effect of fio's files and command lines: every option, and the steps that jobs
//! make.

use super::super::known::{JOB, Treatment};
use super::{command_line, load, read};
use crate::scenario::Cache;
use weir_load::workload::{
    Draw, FileOrder, Flow, LatencyTarget, Layout, Length, MinRate, Operation, Pacing, Pattern,
    Positions, Rate, Region, SizeShare, Stability, Starts, Think, VerifyScope, Visit, Workload,
    Zone,
};

fn data(pattern: Pattern, read_percent: u8) -> Operation {
    Operation::Data { pattern, read_percent }
}

fn shares(of: &[(u32, u8)]) -> Vec<SizeShare> {
    of.iter().map(|(bytes, percent)| SizeShare { bytes: *bytes, percent: *percent }).collect()
}

#[test]
fn defaults_are_fio_s() {
    let load = load("");
    assert_eq!(load.operation, data(Pattern::Sequential, 100));
    assert_eq!((load.block_bytes, load.depth, load.jobs, load.files), (4096, 1, 1, 1));
    assert_eq!(load.length, Length::Bytes { per_job: 1 << 20, at_most_s: None });
    assert_eq!((load.name.as_str(), load.names.as_slice()), ("a", &["a.0.0".to_owned()][..]));
    assert_eq!((load.warmup_s, load.start_delay_s, load.seed), (0.0, 0.0, 1));
    assert_eq!((load.draw, load.starts), (Draw::Permuted, Starts::Together));
    assert!(load.invalidate && !load.direct && !load.end_sync && load.verify.is_none());
    assert_eq!(load.layout, Layout::Written { block_bytes: 4096 });
}

type Check = fn(&Workload) -> bool;

/// For each option that drives something: a value, and what the load is then.
const DRIVEN: &[(&str, &str, Check)] = &[
    ("name", "name=other", |w| w.name == "other" && w.names == ["other.0.0"]),
    ("description", "description=x", |w| w.name == "a"),
    ("directory", "directory=/mnt/vol", |w| w.directory == "weir-bench" && w.names == ["a.0.0"]),
    ("filename", "filename=x:y\\:z", |w| w.files == 2 && w.names == ["x", "y:z"]),
    ("filename_format", "filename_format=f.$jobnum.$filenum.$jobname", |w| w.names == ["f.0.0.a"]),
    ("nrfiles", "nrfiles=2 numjobs=2", |w| {
        w.names == ["a.0.0", "a.1.0", "a.0.1", "a.1.1"] && w.file_bytes == 1 << 19
    }),
    ("numjobs", "numjobs=4", |w| (w.jobs, w.files, w.file_bytes) == (4, 4, 1 << 20)),
    ("rw", "readwrite=randwrite", |w| w.operation == data(Pattern::Random, 0)),
    ("rwmixread", "rw=randrw rwmixread=70", |w| w.operation == data(Pattern::Random, 70)),
    ("rwmixwrite", "rw=rw rwmixread=70 rwmixwrite=60", |w| {
        w.operation == data(Pattern::Sequential, 40)
    }),
    ("bs", "rw=randrw blocksize=8k,32k", |w| {
        w.read_sizes == shares(&[(8192, 100)])
            && w.write_sizes == shares(&[(32_768, 100)])
            && w.block_bytes == 8192
    }),
    ("bssplit", "rw=randread bssplit=4k/50:8k/:64k/", |w| {
        w.read_sizes == shares(&[(4096, 50), (8192, 25), (65_536, 25)])
            && w.write_sizes.is_empty()
            && w.block_bytes == 4096
    }),
    ("bsrange", "bsrange=16k-16k", |w| w.block_bytes == 16_384),
    ("ba", "rw=randread bs=4k ba=1k", |w| {
        w.align_bytes == Some(1024) && w.draw == Draw::Independent
    }),
    ("size", "size=2g", |w| w.file_bytes == 2 << 30),
    ("filesize", "filesize=512k", |w| {
        w.file_bytes == 1 << 19 && w.length == Length::Bytes { per_job: 1 << 19, at_most_s: None }
    }),
    ("io_size", "io_size=4m", |w| {
        w.length == Length::Bytes { per_job: 4 << 20, at_most_s: None } && w.file_bytes == 1 << 20
    }),
    ("offset", "offset=64k", |w| {
        w.region == Region { offset: 65_536, bytes: Some(1 << 20), job_increment: 0 }
            || (w.region.offset == 65_536 && w.file_bytes == (1 << 20) + 65_536)
    }),
    ("offset_increment", "filename=x numjobs=3 offset_increment=1m", |w| {
        w.region == Region { offset: 0, bytes: Some(1 << 20), job_increment: 1 << 20 }
            && (w.file_bytes, w.jobs, w.files) == (3 << 20, 3, 1)
    }),
    ("number_ios", "number_ios=10", |w| {
        w.length == Length::Bytes { per_job: 40_960, at_most_s: None }
    }),
    ("loops", "loops=3", |w| w.length == Length::Bytes { per_job: 3 << 20, at_most_s: None }),
    ("iodepth", "iodepth=32 ioengine=libaio", |w| w.depth == 32),
    ("ioengine", "iodepth=32 ioengine=sync", |w| w.depth == 1),
    ("direct", "direct=1", |w| w.direct),
    ("buffered", "direct=1 buffered=1", |w| !w.direct),
    ("sync", "sync=dsync", |w| w.stability == Stability::DataSync),
    ("invalidate", "invalidate=0", |w| !w.invalidate),
    ("pre_read", "pre_read=1", |w| !w.invalidate),
    ("fsync", "rw=write fsync=32", |w| w.commit_every == Some(32)),
    ("fdatasync", "rw=write fdatasync=8", |w| w.commit_every == Some(8)),
    ("end_fsync", "rw=write end_fsync=1", |w| w.end_sync),
    ("fsync_on_close", "rw=write fsync_on_close=1", |w| w.end_sync),
    ("runtime", "timeout=2m", |w| {
        w.length == Length::Bytes { per_job: 1 << 20, at_most_s: Some(120.0) }
    }),
    ("time_based", "time_based runtime=90", |w| w.length == Length::Seconds(90.0)),
    ("ramp_time", "time_based runtime=90 ramp_time=1500ms", |w| w.warmup_s == 1.5),
    ("startdelay", "startdelay=3", |w| w.start_delay_s == 3.0),
    ("stonewall", "stonewall", |w| w.name == "a"),
    ("randrepeat", "randrepeat=0", |w| w.seed != 1),
    ("allrandrepeat", "randrepeat=0 allrandrepeat=1", |w| w.seed == 1),
    ("randseed", "randseed=42 randrepeat=0", |w| w.seed == 42),
    ("norandommap", "rw=randread norandommap", |w| w.draw == Draw::Independent),
    ("random_generator", "rw=randread norandommap random_generator=lfsr", |w| {
        w.draw == Draw::Permuted
    }),
    ("random_distribution", "rw=randread random_distribution=zipf:1.2", |w| {
        w.draw == Draw::Zipf { theta: 1.2 }
    }),
    ("rw_sequencer", "rw=randread:4 rw_sequencer=identical", |w| {
        w.visit == Some(Visit { requests: 4, again: true })
    }),
    ("io_submit_mode", "ioengine=sync iodepth=9 io_submit_mode=offload", |w| w.depth == 9),
    ("nfs_url", "ioengine=nfs iodepth=9 nfs_url=nfs://h/v", |w| w.depth == 9),
    ("rate_min", "rate=1m ratemin=512k numjobs=2", |w| {
        w.min_rate == Some(MinRate::Bytes(524_288.0)) && w.rate == Rate::Bytes(2_097_152.0)
    }),
    ("rate_iops_min", "rw=write rate_iops_min=1,500", |w| {
        w.min_rate == Some(MinRate::Operations(500.0))
    }),
    ("latency_target", "latency_target=500ms latency_window=5000000", |w| {
        let (us, window_us) = (500_000, 5_000_000);
        w.latency_target == Some(LatencyTarget { us, window_us, percent: 100.0, goes_on: false })
    }),
    ("latency_window", "latency_target=9 latency_window=5s", |w| {
        w.latency_target.is_some_and(|target| (target.us, target.window_us) == (9, 5_000_000))
    }),
    ("latency_percentile", "latency_target=9 latency_window=5 latency_percentile=99.9", |w| {
        w.latency_target.is_some_and(|target| target.percent == 99.9)
    }),
    ("latency_run", "latency_target=9 latency_window=5 latency_run=1", |w| {
        w.latency_target.is_some_and(|target| target.goes_on)
    }),
    ("flow", "flow=8", |w| w.flow == Some(Flow { group: 0, weight: 8, sleep_us: 0 })),
    ("flow_id", "flow=8 flow_id=3", |w| w.flow.is_some_and(|flow| flow.group == 3)),
    ("flow_sleep", "flow=8 flow_sleep=500", |w| w.flow.is_some_and(|flow| flow.sleep_us == 500)),
    ("percentage_random", "rw=randread percentage_random=30", |w| {
        w.operation == data(Pattern::Mixed { random_percent: 30 }, 100)
    }),
    ("rate", "rate=1m numjobs=4", |w| w.rate == Rate::Bytes(4_194_304.0)),
    ("rate_iops", "rw=write rate_iops=1,500", |w| w.rate == Rate::Operations(500.0)),
    ("rate_process", "rate=1m rate_process=poisson", |w| w.pacing == Pacing::Poisson),
    ("thinktime", "thinktime=2ms", |w| w.think == Some(Think { us: 2000, every: 1 })),
    ("thinktime_blocks", "thinktime=50 thinktime_blocks=8", |w| {
        w.think == Some(Think { us: 50, every: 8 })
    }),
    ("overwrite", "rw=randwrite overwrite=1", |w| {
        w.layout == Layout::Written { block_bytes: 4096 }
    }),
    ("verify", "rw=write verify=crc32c", |w| w.verify == Some(VerifyScope::All)),
    ("do_verify", "rw=write verify=crc32c do_verify=0", |w| w.verify.is_none()),
    ("file_service_type", "nrfiles=2 file_service_type=sequential", |w| {
        (w.files, w.file_order) == (2, FileOrder::ByOperation)
    }),
    ("kb_base", "kb_base=1000 bs=8k size=800k", |w| {
        (w.block_bytes, w.file_bytes) == (8000, 800_000)
    }),
    ("exitall", "exitall=1", |w| w.jobs == 1),
];

/// Options that need several jobs, and are tested apart.
const OF_SEVERAL: &[&str] = &["wait_for"];

#[test]
fn every_option_that_drives_drives_what_it_says() {
    for (name, options, check) in DRIVEN {
        let driven = load(options);
        assert!(check(&driven), "{name}: {options}: {driven:#?}");
    }
    for known in JOB {
        let drives = matches!(known.treatment, Treatment::Drives(_));
        let tested =
            DRIVEN.iter().any(|(name, ..)| *name == known.name) || OF_SEVERAL.contains(&known.name);
        assert_eq!(drives, tested, "{}", known.name);
    }
}

#[test]
fn every_pattern_is_known() {
    for (rw, pattern, reads, written) in [
        ("read", Pattern::Sequential, 100, true),
        ("write", Pattern::Sequential, 0, false),
        ("randread", Pattern::Random, 100, true),
        ("randwrite", Pattern::Random, 0, false),
        ("rw", Pattern::Sequential, 50, true),
        ("readwrite", Pattern::Sequential, 50, true),
        ("randrw", Pattern::Random, 50, true),
    ] {
        let load = load(&format!("rw={rw}"));
        assert_eq!(load.operation, data(pattern, reads), "{rw}");
        assert_eq!(load.layout != Layout::Sparse, written, "{rw}");
    }
}

#[test]
fn modifiers_of_the_order_skip_bytes_or_visit_a_place_several_times() {
    let forwards = load("rw=read:8k bs=4k");
    assert_eq!((forwards.operation, forwards.skip_bytes), (data(Pattern::Sequential, 100), 8192));
    // As fio 3.33: requests at every third block, once. 1 MiB holds 256 blocks.
    assert_eq!(forwards.length, Length::Bytes { per_job: 86 * 4096, at_most_s: None });
    let twice = load("rw=read:8k bs=4k loops=2 nrfiles=2");
    // Of each file of 128 blocks 43, and all of it twice.
    assert_eq!(twice.length, Length::Bytes { per_job: 4 * 43 * 4096, at_most_s: None });
    let backwards = load("rw=write:-8k bs=4k");
    assert_eq!(backwards.skip_bytes, -8192);
    assert_eq!(backwards.length, Length::Bytes { per_job: 1 << 20, at_most_s: None });
    let onward = load("rw=randread:8 norandommap");
    assert_eq!(onward.visit, Some(Visit { requests: 8, again: false }));
    assert_eq!(load("rw=randread:1").visit, None);
    assert_eq!(load("rw=write:3 rw_sequencer=identical").skip_bytes, 3, "bytes, as in fio");
}

#[test]
fn every_distribution_is_known() {
    let draw = |text: &str| load(&format!("rw=randread random_distribution={text}")).draw;
    assert_eq!(draw("zipf:1.2:0.25"), Draw::Zipf { theta: 1.2 });
    assert_eq!(draw("pareto:0.2"), Draw::Pareto { h: 0.2 });
    assert_eq!(draw("normal:20"), Draw::Normal { deviation_percent: 20.0 });
    let zones = |of: &[(u8, f64)]| {
        let zone = |(requests_percent, size_percent): &(u8, f64)| Zone {
            requests_percent: *requests_percent,
            size_percent: *size_percent,
        };
        Draw::Zoned { zones: of.iter().map(zone).collect() }
    };
    assert_eq!(draw("zoned:50/5:30/15:20/"), zones(&[(50, 5.0), (30, 15.0), (20, 80.0)]));
    assert_eq!(draw("zoned:100/10"), zones(&[(100, 10.0)]));
    let quarters = zones(&[(60, 25.0), (40, 75.0)]);
    assert_eq!(draw("zoned_abs:60/256k:40/"), quarters);
    let writes = load("rw=randwrite random_distribution=zoned:100/10,60/25:40/75").draw;
    assert_eq!(writes, quarters, "writes have their own");
    assert_eq!(load("rw=read random_distribution=pareto:0.2").draw, Draw::Permuted);
}

#[test]
fn files_are_visited_in_turn_unless_another_order_is_wanted() {
    for (options, order) in [
        ("nrfiles=4", FileOrder::InTurn),
        ("nrfiles=4 rw=randwrite file_service_type=roundrobin:1", FileOrder::InTurn),
        ("", FileOrder::ByOperation),
        ("nrfiles=4 file_service_type=roundrobin:8", FileOrder::ByOperation),
        ("nrfiles=4 rw=randread file_service_type=random", FileOrder::ByOperation),
        ("nrfiles=4 rw=randread percentage_random=50", FileOrder::ByOperation),
        ("nrfiles=4 rw=randread:4", FileOrder::ByOperation),
    ] {
        assert_eq!(load(options).file_order, order, "{options}");
    }
    let noted = |options: &str| {
        let text = format!("[a]\nsize=1m\nnrfiles=4\n{options}\n");
        let changes = read(&text).unwrap().changes;
        changes.iter().any(|change| change.contains("are visited in"))
    };
    assert!(!noted("") && noted("file_service_type=random") && noted("rw=randread:4"));
}

#[test]
fn a_sequential_mix_has_two_positions() {
    assert_eq!(load("rw=rw").positions, Positions::ByDirection);
    assert_eq!(load("rw=randrw").positions, Positions::Shared);
    assert_eq!(load("rw=write").positions, Positions::Shared);
}

#[test]
fn engines_of_names_create_look_up_and_remove_each_file_once() {
    let text = |engine: &str, more: &str| {
        format!("[global]\nioengine={engine}\nnrfiles=200\nfilesize=4k\n{more}\n[a]\n")
    };
    let only = |engine: &str, more: &str| {
        let scenario = read(&text(engine, more)).unwrap();
        assert_eq!((scenario.steps.len(), scenario.steps[0].loads.len()), (1, 1));
        scenario.steps[0].loads[0].clone()
    };
    let create = only("filecreate", "create_on_open=1\nfallocate=none\nopenfiles=1\nnumjobs=3");
    assert_eq!((create.operation, create.jobs, create.depth), (Operation::Create, 3, 1));
    assert_eq!(create.length, Length::Operations(600));
    let stat = only("filestat", "thread");
    assert_eq!((stat.operation, stat.files, stat.file_bytes), (Operation::Lookup, 200, 4096));
    assert_eq!((stat.length, stat.file_order), (Length::Operations(200), FileOrder::InTurn));
    assert_eq!(stat.names.first().unwrap(), "a.0.0");
    let timed = only("filestat", "time_based\nruntime=5\nrate_iops=100");
    assert_eq!((timed.length, timed.rate), (Length::Seconds(5.0), Rate::Operations(100.0)));
    let remove = only("filedelete", "unlink=0");
    assert_eq!((remove.operation, remove.size_needed()), (Operation::Remove, 4096));
    for (engine, more, wanted) in [
        ("filecreate", "time_based\nruntime=5", "time_based in [a]: cannot be applied"),
        ("filedelete", "loops=2", "loops in [a]: cannot be applied"),
        ("filestat", "ramp_time=5", "ramp_time in [a]: needs time_based"),
        ("filestat", "rw_mixread=5", "is not an option of a fio job"),
    ] {
        let error = read(&text(engine, more)).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_job_waits_for_the_only_one_before_it() {
    let text = "[global]\nsize=1m\n[w]\nrw=write\n[r]\nwait_for=w\n[s]\n[late]\nwait_for=w\n";
    let steps = read(text).unwrap().steps;
    let names: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["w", "r + s + late"], "the job that it waits for has ended before");
    let several = read("[global]\nsize=1m\n[a]\n[b]\n[c]\nwait_for=a\n").unwrap_err();
    assert!(several.contains("wait_for in [c]: is one of several jobs"), "{several}");
    let none = read("[a]\nsize=1m\nwait_for=b\n").unwrap_err();
    assert!(none.contains("there is no job [b] before it"), "{none}");
}

#[test]
fn nfs_url_is_the_target_of_all_jobs() {
    let text = "[global]\nioengine=nfs\nsize=1m\nnfs_url=nfs://1.2.3.4/vol\n\
                filename_format=f.$clientuid.$jobnum\n[a]\n[b]\nstonewall\n";
    let scenario = read(text).unwrap();
    assert_eq!(scenario.target.as_deref(), Some("nfs://1.2.3.4/vol"));
    assert_eq!(scenario.steps[0].loads[0].names, ["f..0"]);
    assert_eq!(read("[a]\nsize=1m\n").unwrap().target, None);
    for (url, wanted) in [("nfs://5.6.7.8/vol", "is another one than"), ("host:/v", "must start")] {
        let error = read(&format!("{text}[c]\nnfs_url={url}\n")).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_device_is_a_file_where_it_is_mapped() {
    let text = "[a]\nsize=1m\nfilename=/dev/nvme0n1\n";
    let source = crate::lang::Source {
        name: "jobs.fio".into(),
        text: text.into(),
        language: crate::scenario::Language::Fio,
    };
    let maps = vec![crate::lang::Map::parse("/dev/nvme0n1:=data").unwrap()];
    let options = crate::lang::Options { maps, ..Default::default() };
    let load = super::super::scenario(&source, &options).unwrap().steps[0].loads[0].clone();
    assert_eq!((load.directory.as_str(), load.names.as_slice()), ("data", &["nvme0n1".into()][..]));
    let error = read(text).unwrap_err();
    assert!(error.contains("--map /dev/nvme0n1:=DIRECTORY"), "{error}");
}

#[test]
fn a_mix_at_rates_has_a_minimum_of_each_direction() {
    let text = "[a]\nsize=1m\nrw=randrw\ntime_based\nruntime=5\nratemin=4k,8k\n";
    let scenario = read(&format!("{text}rate=1m,1m\n")).unwrap();
    let minimums: Vec<_> = scenario.steps[0].loads.iter().map(|load| load.min_rate).collect();
    assert_eq!(minimums, [Some(MinRate::Bytes(4096.0)), Some(MinRate::Bytes(8192.0))]);
    let error = read(text).unwrap_err();
    assert!(error.contains("rate_min in [a]: of a mix needs a rate"), "{error}");
}

#[test]
fn the_period_of_a_minimum_is_a_second() {
    let with = |options: &str| load(options).min_rate;
    assert_eq!(with("rate_min=1k rate_cycle=1000"), Some(MinRate::Bytes(1024.0)));
    assert_eq!(with("rate=1m rate_cycle=500"), None, "it has nothing to judge");
}

#[test]
fn a_mix_at_rates_divides_its_weight_between_reads_and_writes() {
    let read = |options: &str| {
        let text = format!("[a]\nsize=1m\nrw=randrw\ntime_based\nruntime=5\nflow_id=2\n{options}");
        let scenario = read(&text.replace(' ', "\n"))?;
        let flows = scenario.steps[0].loads.iter().map(|load| load.flow.unwrap());
        assert!(flows.clone().all(|flow| flow.group == 2));
        Ok::<_, String>(flows.map(|flow| flow.weight).collect::<Vec<_>>())
    };
    assert_eq!(read("flow=4 rate_iops=300,100").unwrap(), [3, 1]);
    assert_eq!(read("flow=8 rate_iops=300,100 numjobs=3").unwrap(), [6, 2]);
    // As many bytes are fewer requests where these are larger.
    assert_eq!(read("flow=6 rate=8m,8m bs=4k,8k").unwrap(), [4, 2]);
    assert_eq!(read("flow=7 rate=8m,8m bssplit=4k/50:8k/50,8k/100").unwrap(), [4, 3]);
    assert_eq!(read("flow=5").unwrap(), [5], "one load has all of it");
    let refused = read("flow=6 rate_iops=300,100").unwrap_err();
    assert!(refused.contains("flow in [a]: is 6") && refused.contains("3 to 1"), "{refused}");
    assert!(refused.contains("of this flow_id by 2"), "{refused}");
}

#[test]
fn engines_decide_whether_depth_counts() {
    for engine in ["libaio", "io_uring", "posixaio", "windowsaio", "solarisaio"] {
        assert_eq!(load(&format!("ioengine={engine} iodepth=9")).depth, 9, "{engine}");
    }
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2"] {
        assert_eq!(load(&format!("ioengine={engine} iodepth=9")).depth, 1, "{engine}");
    }
    let scenario = read("[a]\nsize=1m\niodepth=9\n").unwrap();
    assert!(scenario.changes.iter().any(|c| c.contains("iodepth of [a] counts nothing")));
}

#[test]
fn the_published_job_runs_unmodified() {
    let line = "fio --name=8krandomreads --rw=randread --direct=1 --ioengine=libaio --bs=8k \
                --numjobs=4 --iodepth=128 --size=4G --runtime=600 --group_reporting";
    let scenario = command_line(line).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.steps.len()), ("8krandomreads", 1));
    let load = &scenario.steps[0].loads[0];
    assert_eq!(load.operation, data(Pattern::Random, 100));
    assert_eq!((load.block_bytes, load.jobs, load.files, load.depth), (8192, 4, 4, 128));
    assert_eq!(load.file_bytes, 4 << 30);
    assert_eq!(load.length, Length::Bytes { per_job: 4 << 30, at_most_s: Some(600.0) });
    assert!(load.direct);
    assert!(scenario.changes.iter().any(|change| change == "reporting only: group_reporting"));
    let excluded = command_line(&format!("{line} --randrepeat=0")).unwrap();
    assert_ne!(excluded.steps[0].loads[0].seed, load.seed);
}

#[test]
fn jobs_run_together_until_a_stonewall() {
    let text = "[global]\nsize=1m\nbs=64k\n[a]\nrw=read\n[b]\nrw=write\n[global]\nbs=8k\n\
                [c]\nstonewall\nrw=randread\n[d]\n[c]\nwait_for_previous\n";
    let scenario = read(text).unwrap();
    let steps: Vec<_> = scenario.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["a + b", "c + d", "c"]);
    let loads: Vec<_> = scenario.steps.iter().flat_map(|step| &step.loads).collect();
    let blocks: Vec<_> = loads.iter().map(|load| load.block_bytes).collect();
    assert_eq!(blocks, [65_536, 65_536, 8192, 8192, 8192]);
    let seeds: std::collections::BTreeSet<_> = loads.iter().map(|load| load.seed).collect();
    assert_eq!(seeds.len(), 5, "no load visits blocks in the order of another");
    assert!(scenario.steps[1].shares_files && !scenario.steps[2].shares_files);
    assert_eq!(scenario.steps[2].cache, Cache::Any);
    assert_eq!(read("[a]\nsize=1m\npre_read=1\n").unwrap().steps[0].cache, Cache::Included);
}

#[test]
fn jobs_that_share_a_file_lay_it_out_once() {
    let text = "[global]\nfilename=x\nbs=4k\n[w]\nrw=write\nsize=1m\n[r]\nrw=randread\nsize=2m\n";
    let scenario = read(text).unwrap();
    let [w, r] = scenario.steps[0].loads.as_slice() else { panic!("two loads") };
    assert_eq!((w.file_bytes, r.file_bytes), (2 << 20, 2 << 20));
    assert_eq!((w.region.bytes, r.region.bytes), (Some(1 << 20), None));
    assert_eq!((w.layout, r.layout), (Layout::Written { block_bytes: 4096 }, Layout::Existing));
    let partly = read("[a]\nsize=1m\nfilename=x\n[b]\nsize=1m\nfilename=x:y\n").unwrap_err();
    assert!(partly.contains("filename in [b]") && partly.contains("share all or none"), "{partly}");
}

#[test]
fn clones_that_share_several_files_are_a_load_each() {
    let scenario = read("[a]\nsize=2m\nfilename=x:y\nnumjobs=3\noffset_increment=1m\n").unwrap();
    let loads = &scenario.steps[0].loads;
    assert_eq!(loads.len(), 3);
    assert!(loads.iter().all(|load| load.jobs == 1 && load.names == ["x", "y"]));
    let offsets: Vec<_> = loads.iter().map(|load| load.region.offset).collect();
    assert_eq!(offsets, [0, 1 << 20, 2 << 20]);
    assert!(loads[1..].iter().all(|load| load.layout == Layout::Existing));
    let seeds: std::collections::BTreeSet<_> = loads.iter().map(|load| load.seed).collect();
    assert_eq!(seeds.len(), 3);
}

#[test]
fn a_mix_at_rates_is_a_load_for_each_direction() {
    let options = "[a]\nsize=1m\nrw=randrw\nrwmixread=70\nnumjobs=2\ntime_based\nruntime=5\n";
    let scenario = read(&format!("{options}rate=1m,500k\n")).unwrap();
    let [reads, writes] = scenario.steps[0].loads.as_slice() else { panic!("two loads") };
    assert_eq!(reads.operation, data(Pattern::Random, 100));
    assert_eq!(writes.operation, data(Pattern::Random, 0));
    assert_eq!((&reads.rate, &writes.rate), (&Rate::Bytes(2_097_152.0), &Rate::Bytes(1_024_000.0)));
    assert_eq!(writes.layout, Layout::Existing);
    assert_ne!(reads.seed, writes.seed);
    let one = read(&format!("{options}rate=,500k\n")).unwrap_err();
    assert!(one.contains("rate in [a]") && one.contains("jobs.fio:8"), "{one}");
}

#[test]
fn command_lines_have_defaults_jobs_files_and_sections() {
    let scenario =
        command_line("fio --size=1m --bs 8k --name=a --rw=write --name=b --iodepth=4 --eta=never")
            .unwrap();
    let [a, b] = scenario.steps[0].loads.as_slice() else { panic!("two loads") };
    assert_eq!((a.block_bytes, b.block_bytes), (8192, 8192));
    assert_eq!(a.operation, data(Pattern::Sequential, 0));
    assert_eq!(b.operation, data(Pattern::Sequential, 100));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("three.fio");
    std::fs::write(&path, "[x]\nrw=read\n[y]\nbs=16k\n[z]\nstonewall\n").unwrap();
    let path = path.display();
    let all = command_line(&format!("fio {path} --size=1m --bs=8k")).unwrap();
    assert_eq!((all.name.as_str(), all.steps.len()), ("three", 2));
    let [x, y] = all.steps[0].loads.as_slice() else { panic!("two loads") };
    assert_eq!((x.block_bytes, y.block_bytes), (8192, 16_384), "the file comes last");
    let some = command_line(&format!("fio --section=y --section=z --size=1m {path}")).unwrap();
    let names: Vec<_> = some.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["y", "z"]);
    let twice = command_line(&format!("fio --size=1m {path} {path}")).unwrap();
    let names: Vec<_> = twice.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["x + y", "z", "x + y (2)", "z (2)"], "each file begins a step");
    let error = command_line(&format!("fio --size=1m --section=q {path}")).unwrap_err();
    assert!(error.contains("section") && error.contains("\"q\""), "{error}");
}

#[test]
fn files_include_others_and_take_variables() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("common.inc"), "bs=${BLOCK}\nsize=${MB}m\n").unwrap();
    let path = dir.path().join("jobs.fio");
    let text = "; a comment\n# another\n[a]\ninclude common.inc\nrw = randread ; behind\n\
                description=what # for\nnumjobs=$ncpus\n";
    std::fs::write(&path, text).unwrap();
    let variables = [("BLOCK", "16k"), ("MB", "3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let options = crate::lang::Options { variables: variables.into(), ..Default::default() };
    let scenario = crate::lang::read(&path, &options).unwrap();
    let load = &scenario.steps[0].loads[0];
    assert_eq!((load.block_bytes, load.file_bytes), (16_384, 3 << 20));
    assert_eq!(load.operation, data(Pattern::Random, 100));
    assert_eq!((scenario.name.as_str(), scenario.about.as_str()), ("jobs", "what"));
    assert_eq!(scenario.text.as_deref(), Some(text));
}
