use super::*;
use proptest::prelude::*;
use std::path::Path;
use weir_load::workload::{
    Draw, FileOrder, Flow, Layout, Length, MinRate, MixOp, OpShare, Operation, Pacing, Pattern,
    Positions, Region, SizeShare, Stability, Starts, Think, VerifyScope, Visit, Zone,
};

fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "mine.toml".into(), text: text.into(), language: Language::Native };
    scenario(&source, &Options::default()).map_err(|error| error.to_string())
}

fn load(keys: &str) -> Workload {
    let mut scenario = read(&format!("[[step]]\nname = \"s\"\n{keys}\n")).unwrap();
    scenario.steps.remove(0).loads.remove(0)
}

fn refusal(keys: &str) -> String {
    read(&format!("[[step]]\nname = \"s\"\n{keys}\n")).unwrap_err()
}

const fn data(pattern: Pattern, read_percent: u8) -> Operation {
    Operation::Data { pattern, read_percent }
}

type Check = fn(&Workload) -> bool;

/// For each key of a load: what is written, and what the load is then.
const DRIVEN: &[(&str, &str, Check)] = &[
    ("operation", "operation = \"getattr\"", |w| w.operation == Operation::Getattr),
    ("order", "order = \"30% random\"", |w| {
        w.operation == data(Pattern::Mixed { random_percent: 30 }, 100)
    }),
    ("read-percent", "read-percent = 70", |w| w.operation == data(Pattern::Random, 70)),
    ("mix", "mix = { stat = 60, read-file = 40 }", |w| {
        w.operation == Operation::Mix
            && w.mix.contains(&OpShare { op: MixOp::Stat, percent: 60 })
            && w.mix.contains(&OpShare { op: MixOp::ReadFile, percent: 40 })
    }),
    ("block", "block = \"8KiB\"", |w| w.block_bytes == 8192),
    ("read-sizes", "read-sizes = { \"8KiB\" = 40, \"4KiB\" = 60 }", |w| {
        w.read_sizes
            == [(4096, 60), (8192, 40)].map(|(bytes, percent)| SizeShare { bytes, percent })
    }),
    ("write-sizes", "write-sizes = { \"4KiB\" = 100 }", |w| {
        w.write_sizes == [SizeShare { bytes: 4096, percent: 100 }]
    }),
    ("align", "align = \"1KiB\"", |w| w.align_bytes == Some(1024)),
    ("depth", "depth = 7", |w| w.depth == 7),
    ("jobs", "jobs = 7", |w| w.jobs == 7),
    ("clients", "clients = 2\njobs = 2", |w| w.clients == 2),
    ("connections", "connections = 8", |w| w.connections == 8),
    ("files", "files = 9", |w| w.files == 9),
    ("size", "size = \"1.5GiB\"", |w| w.file_bytes == 3 << 29),
    ("names", "names = [\"a\"]", |w| w.names == ["a"]),
    ("directory", "directory = \"d\"", |w| w.directory == "d"),
    ("target", "target = \"vol1\"", |w| w.target == "vol1"),
    ("layout", "layout = \"sparse\"", |w| w.layout == Layout::Sparse),
    ("layout-block", "layout-block = \"64KiB\"", |w| {
        w.layout == Layout::Written { block_bytes: 65_536 }
    }),
    ("keep", "keep = true", |w| w.keep),
    ("time", "time = \"2m\"", |w| w.length == Length::Seconds(120.0)),
    ("operations", "operations = 5", |w| w.length == Length::Operations(5)),
    ("bytes", "bytes = \"4MiB\"\ntime = \"9s\"", |w| {
        w.length == Length::Bytes { per_job: 4 << 20, at_most_s: Some(9.0) }
    }),
    ("warmup", "warmup = \"500ms\"", |w| w.warmup_s == 0.5),
    ("cooldown", "cooldown = \"5s\"", |w| w.cooldown_s == 5.0),
    ("drain", "drain = \"3s\"", |w| w.drain_s == 3.0),
    ("start-delay", "start-delay = \"3s\"", |w| w.start_delay_s == 3.0),
    ("stability", "stability = \"file-sync\"", |w| w.stability == Stability::FileSync),
    ("commit-every", "commit-every = 3", |w| w.commit_every == Some(3)),
    ("end-sync", "end-sync = true", |w| w.end_sync),
    ("draw", "draw = \"zipf 1.2\"", |w| w.draw == Draw::Zipf { theta: 1.2 }),
    ("starts", "starts = \"stride 1MiB\"", |w| w.starts == Starts::Stride { bytes: 1 << 20 }),
    ("skip", "order = \"sequential\"\nskip = \"-8KiB\"", |w| w.skip_bytes == -8192),
    ("visit", "visit = \"8 again\"", |w| w.visit == Some(Visit { requests: 8, again: true })),
    ("file-order", "file-order = \"in-turn\"", |w| w.file_order == FileOrder::InTurn),
    ("positions", "order = \"sequential\"\npositions = \"by-direction\"", |w| {
        w.positions == Positions::ByDirection
    }),
    ("min-rate", "min-rate = \"100/s\"", |w| w.min_rate == Some(MinRate::Operations(100.0))),
    ("keep-latency", "keep-latency = \"99.9% of requests in 2ms\"", |w| {
        w.latency_target.is_some_and(|target| {
            (target.us, target.window_us, target.percent) == (2000, 1_000_000, 99.9)
        })
    }),
    ("flow", "flow = 3", |w| w.flow == Some(Flow { group: 0, weight: 3, sleep_us: 0 })),
    ("offset", "offset = \"4KiB\"", |w| w.region == Region { offset: 4096, ..Region::default() }),
    ("region", "region = \"1MiB\"", |w| w.region.bytes == Some(1 << 20)),
    ("job-offset", "job-offset = \"1MiB\"", |w| w.region.job_increment == 1 << 20),
    ("rate", "rate = \"20k/s\"", |w| w.rate == Rate::Operations(20_000.0)),
    ("pacing", "pacing = \"poisson\"", |w| w.pacing == Pacing::Poisson),
    ("think", "think = \"250us\"", |w| w.think == Some(Think { us: 250, every: 1 })),
    ("think-every", "think = \"2ms\"\nthink-every = 4", |w| {
        w.think == Some(Think { us: 2000, every: 4 })
    }),
    ("client-delays", "client-delays = [\"0us\", \"1ms\"]\nclients = 2\njobs = 2", |w| {
        w.client_delays_us == [0, 1000]
    }),
    ("verify", "verify = 9\nread-percent = 0", |w| w.verify == Some(VerifyScope::Sample(9))),
    ("verify-reads", "verify-reads = true", |w| w.verify_reads),
    ("direct", "direct = true", |w| w.direct),
    ("invalidate", "invalidate = true", |w| w.invalidate),
    ("threads", "threads = 2", |w| w.threads == 2),
    ("seed", "seed = 5", |w| w.seed == 5),
    ("hosts", "hosts = [\"a\"]", |w| w.hosts == ["a"]),
];

#[test]
fn every_key_of_a_load_drives_what_it_says() {
    for (name, keys, check) in DRIVEN {
        let load = load(keys);
        assert!(check(&load), "{name}: {load:#?}");
    }
    for key in KEYS {
        assert!(DRIVEN.iter().any(|(name, ..)| *name == key.name), "{}", key.name);
    }
    assert_eq!(load(""), Workload { name: "s".into(), ..Workload::default() });
}

#[test]
fn words_of_values_are_all_known() {
    for (keys, check) in [
        ("order = \"sequential\"", (|w| w.operation == data(Pattern::Sequential, 100)) as Check),
        ("draw = \"each-once\"", |w| w.draw == Draw::Permuted),
        ("draw = \"independent\"", |w| w.draw == Draw::Independent),
        ("draw = \"pareto 0.2\"", |w| w.draw == Draw::Pareto { h: 0.2 }),
        ("draw = \"normal 20\"", |w| w.draw == Draw::Normal { deviation_percent: 20.0 }),
        ("draw = \"zones 60/10 40/90\"", |w| {
            let zones = [(60, 10.0), (40, 90.0)];
            let zones = zones
                .map(|(requests_percent, size_percent)| Zone { requests_percent, size_percent });
            w.draw == Draw::Zoned { zones: zones.to_vec() }
        }),
        ("visit = \"4 onward\"", |w| w.visit == Some(Visit { requests: 4, again: false })),
        ("order = \"sequential\"\nskip = \"64KiB\"", |w| w.skip_bytes == 65_536),
        ("operation = \"create\"\noperations = 9", |w| w.operation == Operation::Create),
        ("operation = \"remove\"\noperations = 1", |w| w.operation == Operation::Remove),
        ("min-rate = \"1MiB/s\"", |w| w.min_rate == Some(MinRate::Bytes(1_048_576.0))),
        ("order = \"sequential\"\nstarts = \"interlocked\"", |w| w.starts == Starts::Interlocked),
        ("starts = \"together\"", |w| w.starts == Starts::Together),
        ("rate = \"64MiB/s\"", |w| w.rate == Rate::Bytes(67_108_864.0)),
        ("rate = \"1.5M/s\"", |w| w.rate == Rate::Operations(1_500_000.0)),
        ("rate = \"250/s\"", |w| w.rate == Rate::Operations(250.0)),
        ("verify = true\nread-percent = 0", |w| w.verify == Some(VerifyScope::All)),
        ("verify = false", |w| w.verify.is_none()),
        ("layout = \"existing\"", |w| w.layout == Layout::Existing),
        ("operation = \"create-remove\"", |w| w.operation == Operation::CreateRemove),
    ] {
        let load = load(keys);
        assert!(check(&load), "{keys}: {load:#?}");
    }
}

#[test]
fn the_examples_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench-examples");
    let mut steps = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let scenario = crate::lang::read(&path, &Options::default()).unwrap();
        steps.insert(scenario.name.clone(), scenario);
    }
    let mix = &steps["mix"];
    assert_eq!((mix.steps.len(), mix.chart), (5, Chart::Bars));
    assert_eq!(mix.steps[1].name, "mix read-percent 75");
    assert_eq!(mix.steps[1].axis, Some(Axis { label: "reads %".into(), value: 75.0 }));
    assert_eq!(mix.steps[1].cache, Cache::Excluded);
    assert_eq!(mix.steps[1].loads[0].operation, data(Pattern::Random, 75));
    let depth = &steps["depth"];
    assert_eq!(depth.steps.len(), 16);
    assert_eq!(depth.steps[8].group, "connections 8");
    assert_eq!((depth.steps[9].loads[0].depth, depth.steps[9].loads[0].connections), (2, 8));
    assert_eq!(depth.steps[9].stop_over_ms, Some(50.0));
    let curve = &steps["curve"];
    assert_eq!(curve.chart, Chart::LatencyCurve);
    assert!(curve.steps[0].shares_files);
    let share = Rate::Share { of: "highest".into(), percent: 70.0 };
    assert_eq!(curve.steps[3].loads[0].rate, share);
    let eda = &steps["eda"];
    assert_eq!((eda.steps[0].loads.len(), eda.steps[0].loads[0].mix.len()), (2, 11));
    assert_eq!(eda.steps[0].loads[1].directory, "back-end");
    assert_eq!(eda.steps[0].loads[1].length, Length::Seconds(60.0));
}

#[test]
fn published_figures_and_axes_belong_to_steps() {
    let text = "[[step]]\nname = \"s\"\nsweep = { depth = [1, 2] }\n\
                published = [{ who = \"x\", read-iops = 5, bound = \"up-to\" }, { iops = 6.5, about = true }]\n\
                [[step]]\nname = \"t\"\naxis = { label = \"l\", value = 3 }\npreparation = true\n\
                published = { latency-ms = 1 }\n";
    let scenario = read(text).unwrap();
    let published = |step: usize| scenario.steps[step].published.clone().unwrap();
    assert_eq!((published(0).who.as_str(), published(0).read_iops), ("x", Some(5.0)));
    assert_eq!((published(1).iops, published(1).about), (Some(6.5), true));
    assert_eq!((published(0).bound, published(1).bound), (Bound::UpTo, Bound::None));
    assert_eq!(published(2).latency_ms, Some(1.0));
    assert_eq!(scenario.steps[2].axis, Some(Axis { label: "l".into(), value: 3.0 }));
    assert!(scenario.steps[2].preparation);
    assert_eq!(scenario.steps[0].group, "s");
}

#[test]
fn refusals_name_file_line_and_key() {
    for (keys, wanted) in [
        ("dept = 3", "mine.toml:3: dept: is not a key of [[step]]; did you mean depth?"),
        ("block = \"8k\"", "mine.toml:3: block: \"8k\" is ambiguous: use 8KiB"),
        ("block = 8192", "must be a size in quotes"),
        ("depth = 0", "mine.toml:3: depth: must be a whole number of at least 1"),
        ("read-percent = 101", "must be from 0 to 100"),
        ("order = \"odd\"", "it must be one of random, sequential"),
        ("mix = { stat = 50 }", "its shares add up to 50"),
        ("mix = { fly = 100 }", "\"fly\" is not an operation of a mix"),
        ("operation = \"mix\"", "mix: is missing"),
        ("operation = \"null\"\norder = \"random\"", "order: belongs to data"),
        ("operation = \"null\"\nread-percent = 3", "read-percent: belongs to data"),
        ("rate = \"5\"", "it must be one of 20k/s"),
        ("rate = \"50% of nothing\"", "which is no earlier step"),
        ("think-every = 3", "think-every: needs think"),
        ("operations = 3\ntime = \"3s\"", "operations: stands alone"),
        ("sweep = { depth = [1], jobs = [1] }", "must have exactly one key"),
        ("sweep = { dept = [1] }", "dept: is not a key of sweep; did you mean depth?"),
        ("sweep = { depth = [] }", "needs a list of values"),
        ("sweep = { order = [\"random\"] }", "has no place on an axis"),
        ("sweep = { depth = [1, 2] }\npublished = [{}]", "one table for each of the 2 steps"),
        ("cache = \"cold\"", "it must be any, included or excluded"),
        ("load = []", "load: is an empty list"),
        ("load = [{ depht = 3 }]", "depht: is not a key of [[step.load]]; did you mean depth?"),
        ("depth = 5000", "depth is 5000; it must be from 1 to 4096"),
        ("size = \"1KiB\"", "is smaller than a block"),
        ("depth = 3\ndepth = 4", "mine.toml:4"),
        ("axis = { label = \"x\" }", "needs label and value"),
        ("[[step]]\nname = \"s\"", "name: \"s\" is taken"),
        ("[[step]]\ndepth = 3", "mine.toml:3: name: is missing"),
    ] {
        let error = refusal(keys);
        assert!(error.contains(wanted), "{keys}: {error}");
    }
    assert!(read("").unwrap_err().contains("has no step"));
    assert!(read("titel = \"x\"\n").unwrap_err().contains("did you mean title?"));
    assert!(read("[defaults]\nname = \"x\"\n").unwrap_err().contains("is not a key of [defaults]"));
    assert!(read("chart = \"pie\"\n[[step]]\nname=\"s\"\n").unwrap_err().contains("bars"));
    assert!(read("= 3").unwrap_err().starts_with("mine.toml:1"), "a syntax error has its line");
}

proptest! {
    #[test]
    fn no_text_panics(text in "(\\[\\[step\\]\\]\n|name = \"[a-z]\"\n|(depth|block|rate|sweep|mix|time|published|load|axis) = [0-9a-z\"{}=, \\[\\]%/.-]{0,16}\n|\\PC{0,12}\n){0,10}") {
        let _ = read(&text);
    }

    #[test]
    fn no_value_panics(index in 0..KEYS.len(), value in "(\"[0-9]{0,20}[a-zA-Z%/. -]{0,12}\"|-?[0-9]{0,25}|[0-9]{1,3}\\.[0-9]e[0-9]{1,3}|\\[\\]|\\{\\}|nan|inf|true)") {
        let _ = read(&format!("[[step]]\nname = \"s\"\n{} = {value}\n", KEYS[index].name));
    }
}
