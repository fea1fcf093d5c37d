//! Scaling of written scenarios, and properties of any.

use super::*;
use crate::catalogue;
use crate::scenario::{Axis, Chart, Language, Published};
use proptest::prelude::*;
use weir_load::workload::{
    Layout, Operation, Pattern, Rate, Region, SizeShare, Starts, VerifyScope,
};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn written(steps: Vec<Step>) -> Scenario {
    Scenario {
        name: "own".to_owned(),
        title: String::new(),
        about: String::new(),
        source: None,
        language: Language::Native,
        chart: Chart::Bars,
        steps,
        changes: Vec::new(),
        waiting: None,
        addresses: None,
        target: None,
        text: None,
        hosts: Vec::new(),
    }
}

fn one(load: Workload) -> Scenario {
    written(vec![Step { name: "a".to_owned(), loads: vec![load], ..Step::default() }])
}

fn only(scenario: &Scenario) -> &Workload {
    &scenario.steps[0].loads[0]
}

#[test]
fn a_published_test_fits_a_small_machine_and_says_what_differs() {
    let original = catalogue::scenario("anf-linux-4k-random").unwrap();
    let facts = Facts {
        client_memory_bytes: 24 * GIB,
        same_machine: true,
        free_bytes: Some(20 * GIB),
        processors: 2,
        ..Facts::default()
    };
    let scaled = scale(&original, &Scale::automatic(&original, facts));
    assert_eq!(scaled.steps.len(), 11);
    for (step, before) in scaled.steps.iter().zip(&original.steps) {
        let load = &step.loads[0];
        assert_eq!((load.clients, load.jobs, load.depth, load.connections), (6, 16, 16, 8));
        assert_eq!(step.written_in_flight, Some(before.in_flight()));
        assert_eq!((load.files, load.file_bytes), (48, 64 * MIB));
        assert_eq!((&load.length, load.warmup_s), (&Length::Seconds(20.0), 5.0));
        assert_eq!((&step.published, &step.axis), (&before.published, &before.axis));
        assert_eq!(load.operation, before.loads[0].operation);
    }
    assert_eq!(
        scaled.changes,
        [
            "6 clients, 48 jobs, 16 in flight of each → 6 clients, 16 jobs, 16 in flight of each",
            "data set 1023.98 GiB → 3 GiB (1/341): 48 files of 21.33 GiB → 48 of 64 MiB",
            "120 s a step → 20 s",
            "30 s of warm-up → 5 s",
            "8 threads of the generator → 1",
        ]
    );
}

#[test]
fn files_of_a_vdbench_script_stay_as_many_and_become_smaller() {
    let original = catalogue::scenario("anf-vdbench").unwrap();
    let wanted = Scale { factor: Some(1.0 / 65_536.0), in_flight: Some(256), ..Scale::default() };
    let scaled = scale(&original, &wanted);
    let load = only(&scaled);
    assert_eq!((load.files, load.file_bytes), (144, 693 * GIB / 65_536 / (64 * 1024) * 64 * 1024));
    assert_eq!((load.clients, load.jobs, load.depth), (12, 12, 21));
    assert!(scaled.steps.iter().all(|step| step.loads[0].file_bytes == load.file_bytes));
    assert!(scaled.changes.iter().any(|change| change.contains("144 files of 693 GiB")));
}

#[test]
fn a_proportion_leaves_what_a_test_needs_and_a_bound_says_when_it_does_not() {
    let tiny = Scale { factor: Some(1e-9), ..Scale::default() };
    let load = Workload { files: 64, file_bytes: GIB, ..Workload::default() };
    let scaled = scale(&one(load.clone()), &tiny);
    assert!(only(&scaled).blocks() * u64::from(only(&scaled).files) >= 1000);
    let operation = Operation::Data { pattern: Pattern::Sequential, read_percent: 100 };
    let sequential = scale(&one(Workload { operation, ..load.clone() }), &tiny);
    let kept = only(&sequential);
    assert_eq!((kept.files, kept.file_bytes), (64, 4 * MIB));
    assert!(!sequential.changes.iter().any(|change| change.contains("is not meaningful")));
    let bounded = Scale { max_data_bytes: Some(64 * MIB), ..Scale::default() };
    let scaled = scale(&one(Workload { operation, ..load }), &bounded);
    assert_eq!((only(&scaled).files, only(&scaled).file_bytes), (16, 4 * MIB));
    assert!(
        scaled.changes.iter().any(|change| change.contains("64 MiB of data is not meaningful"))
    );
}

#[test]
fn an_axis_of_requests_in_flight_stays_true_and_repeats_are_left_out() {
    let original = catalogue::scenario("anf-nconnect-4k-random").unwrap();
    let scaled = scale(&original, &Scale { in_flight: Some(64), ..Scale::default() });
    for step in &scaled.steps {
        let load = &step.loads[0];
        let axis = step.axis.as_ref().unwrap();
        assert_eq!(axis.value, f64::from(load.jobs * load.depth), "{}", step.name);
        assert!(load.jobs * load.depth <= 64);
    }
    // One job: depths of 1 to 64; 128 would be 64 once more.
    assert_eq!(scaled.steps.len(), 14);
    assert!(scaled.changes.iter().any(|change| change.contains("left out")));
    let axes = |group: &str| -> Vec<f64> {
        let of = scaled.steps.iter().filter(|step| step.group == group);
        of.map(|step| step.axis.as_ref().unwrap().value).collect()
    };
    assert_eq!(axes("nconnect=1"), axes("nconnect=8"));
    // A single request goes round all connections, so that their number stays a difference.
    let single = scale(&original, &Scale { jobs: Some(1), depth: Some(1), ..Scale::default() });
    let connections = |step: &Step| step.loads[0].connections;
    assert_eq!(single.steps.iter().map(connections).collect::<Vec<_>>(), [1, 8]);
}

/// The measured properties of a step: its loads without names, seeds and the handling of files, and
/// the state of caches.
fn measured(step: &Step) -> String {
    let mut told = serde_json::to_value((&step.loads, step.cache)).unwrap();
    for load in told[0].as_array_mut().unwrap() {
        for field in ["name", "seed", "keep", "layout"] {
            load.as_object_mut().unwrap().remove(field);
        }
    }
    told.to_string()
}

/// Names of steps that measure the same as an earlier one, where they did not in `original`.
fn twice(scaled: &Scenario, original: &Scenario) -> Vec<String> {
    let before =
        |name: &str| original.steps.iter().find(|step| step.name == name).map(measured).unwrap();
    let steps: Vec<&Step> = scaled.steps.iter().filter(|step| !step.preparation).collect();
    let mut found = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let same = steps[..number].iter().any(|other| {
            measured(other) == measured(step) && before(&other.name) != before(&step.name)
        });
        found.extend(same.then(|| step.name.clone()));
    }
    found
}

#[test]
fn no_test_has_the_same_step_twice_after_scaling() {
    let mut left_out = 0;
    for entry in catalogue::all() {
        let Ok(original) = catalogue::scenario(&entry.name) else { continue };
        for to in [
            Scale { in_flight: Some(256), ..Scale::default() },
            Scale { in_flight: Some(8), max_data_bytes: Some(GIB), ..Scale::default() },
            Scale { clients: Some(1), jobs: Some(1), depth: Some(1), ..Scale::default() },
            Scale::automatic(&original, Facts { processors: 2, ..Facts::default() }),
        ] {
            let scaled = scale(&original, &to);
            assert_eq!(twice(&scaled, &original), Vec::<String>::new(), "{} {to:?}", entry.name);
            left_out += original.steps.len() - scaled.steps.len();
        }
    }
    assert!(left_out > 10, "{left_out}");
}

/// A step with so many jobs.
fn step_of(name: &str, jobs: u32) -> Step {
    let load = Workload { name: name.to_owned(), jobs, files: 4, ..Workload::default() };
    Step { name: name.to_owned(), loads: vec![load], shares_files: true, ..Step::default() }
}

fn names_of(scenario: &Scenario) -> Vec<&str> {
    scenario.steps.iter().map(|step| step.name.as_str()).collect()
}

#[test]
fn steps_that_became_the_same_are_left_out_whatever_they_are_called() {
    let mut original = one(Workload::default());
    original.steps = vec![step_of("26", 26), step_of("32", 32), step_of("64", 64)];
    original.steps[0].loads[0].keep = true;
    original.steps[1].loads[0].keep = true;
    original.steps[1].loads[0].layout = Layout::Existing;
    original.steps[1].loads[0].seed = 7;
    original.steps[1].published = Some(Published { iops: Some(1.0), ..Published::default() });
    original.steps[2].shares_files = false;
    let of = |jobs| scale(&original, &Scale { jobs: Some(jobs), ..Scale::default() });
    let scaled = of(20);
    assert_eq!(names_of(&scaled), ["26"]);
    let last = &scaled.steps[0];
    assert!(!last.shares_files && !last.loads[0].keep, "it is the last one now");
    let told = "left out, for being the same as another now: 32 (as 26), 64 (as 26)";
    assert!(scaled.changes.iter().any(|change| change == told), "{:?}", scaled.changes);
    assert_eq!(scaled.steps[0].written_in_flight, Some(26 * 16));
    assert_eq!(names_of(&of(40)), ["26", "32", "64"]);
    assert_eq!(of(40).steps[1].written_in_flight, None, "32 jobs are as many as written");
    let mut excluded = original.clone();
    excluded.steps[1].cache = Cache::Excluded;
    let scaled = scale(&excluded, &Scale { jobs: Some(20), ..Scale::default() });
    assert_eq!(names_of(&scaled), ["26", "32"], "caches are part of what is measured");
}

#[test]
fn connections_make_another_step_however_few_requests_are_in_flight() {
    let step = |name: &str, connections: u32, depth: u32| Step {
        name: name.to_owned(),
        loads: vec![Workload { connections, jobs: 2, depth, ..Workload::default() }],
        ..Step::default()
    };
    let original = written(vec![step("1x8", 1, 8), step("8x8", 8, 8), step("8x16", 8, 16)]);
    let names = |depth| -> Vec<String> {
        let scaled = scale(&original, &Scale { depth: Some(depth), ..Scale::default() });
        scaled.steps.into_iter().map(|step| step.name).collect()
    };
    assert_eq!(names(8), ["1x8", "8x8"]);
    assert_eq!(names(1), ["1x8", "8x8"], "two requests in flight go round eight connections");
}

#[test]
fn parts_of_a_rate_that_is_left_out_become_parts_of_the_one_that_stays() {
    let mut original = one(Workload::default());
    let half = |name: &str, of: &str| {
        let mut step = step_of(name, 4);
        step.loads[0].rate = Rate::Share { of: of.to_owned(), percent: 50.0 };
        step
    };
    let fill = Step { preparation: true, ..step_of("warm", 30) };
    original.steps =
        vec![step_of("a", 26), half("half a", "a"), fill, step_of("b", 32), half("half b", "b")];
    let scaled = scale(&original, &Scale { jobs: Some(2), ..Scale::default() });
    assert_eq!(names_of(&scaled), ["a", "half a"], "with the preparation of what is left out");
}

#[test]
fn places_in_files_shrink_with_them() {
    let load = Workload {
        file_bytes: GIB,
        jobs: 4,
        region: Region { offset: 256 * MIB, bytes: Some(512 * MIB), job_increment: 128 * MIB },
        starts: Starts::Stride { bytes: 16 * MIB },
        length: Length::Bytes { per_job: 512 * MIB, at_most_s: None },
        ..Workload::default()
    };
    let scaled = scale(&one(load), &Scale { factor: Some(0.25), ..Scale::default() });
    let load = only(&scaled);
    assert_eq!(load.file_bytes, 256 * MIB);
    assert_eq!(
        load.region,
        Region { offset: 64 * MIB, bytes: Some(128 * MIB), job_increment: 32 * MIB }
    );
    assert_eq!(load.starts, Starts::Stride { bytes: 4 * MIB });
    assert_eq!(load.length, Length::Bytes { per_job: 128 * MIB, at_most_s: None });
}

/// Each job begins a block further: what is verified needs two blocks for each request in flight
/// behind the place where the last one begins, however few the files become.
#[test]
fn the_last_of_many_jobs_keeps_room_to_be_verified() {
    let load = |offset: u64| Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 0 },
        jobs: 247,
        depth: 1,
        files: 262,
        block_bytes: 65_536,
        file_bytes: 800 * GIB,
        region: Region { offset, bytes: Some(8 * GIB), job_increment: 65_536 },
        verify: Some(VerifyScope::All),
        layout: Layout::Sparse,
        ..Workload::default()
    };
    for offset in (0..790).map(|offset| offset * GIB) {
        load(offset).check().unwrap();
        let least = Scale { max_data_bytes: Some(1), ..Scale::default() };
        only(&scale(&one(load(offset)), &least)).check().unwrap();
    }
}

#[test]
fn a_bound_is_for_the_files_on_all_targets_together() {
    let on = |target: &str| Workload {
        target: target.to_owned(),
        files: 16,
        file_bytes: 64 * MIB,
        ..Workload::default()
    };
    let step =
        Step { name: "a".to_owned(), loads: vec![on("x"), on("y"), on("x")], ..Step::default() };
    let bound = Scale { max_data_bytes: Some(512 * MIB), ..Scale::default() };
    let scaled = scale(&written(vec![step]), &bound);
    for load in &scaled.steps[0].loads {
        assert_eq!((load.files, load.file_bytes), (16, 16 * MIB), "256 MiB on each of two");
    }
    assert!(scaled.changes[0].contains("in weir-bench of x"), "{:?}", scaled.changes);
}

#[test]
fn named_files_keep_names_of_all_loads() {
    let load = |names: [&str; 4]| Workload {
        files: 4,
        names: names.map(str::to_owned).to_vec(),
        file_bytes: 8 * MIB,
        ..Workload::default()
    };
    let step = Step {
        name: "a".to_owned(),
        loads: vec![load(["a", "b", "c", "d"]), load(["e", "f", "g", "h"])],
        ..Step::default()
    };
    let bound = Scale { max_data_bytes: Some(16 * MIB), ..Scale::default() };
    let scaled = scale(&written(vec![step]), &bound);
    for (load, names) in scaled.steps[0].loads.iter().zip([["a", "b"], ["e", "f"]]) {
        assert_eq!((load.files, load.file_bytes), (2, 4 * MIB));
        assert_eq!(load.names, names);
    }
}

#[test]
fn caches_that_hold_the_data_are_told_of() {
    let original = catalogue::scenario("anf-linux-4k-random-uncached").unwrap();
    let facts = |free: u64| Facts {
        client_memory_bytes: 8 * GIB,
        server_memory_bytes: Some(8 * GIB),
        client_caches: true,
        free_bytes: Some(free),
        processors: 4,
        ..Facts::default()
    };
    let of = |free: u64| scale(&original, &Scale::automatic(&original, facts(free * GIB)));
    let told = |scenario: &Scenario| {
        scenario.changes.iter().any(|change| change.contains("caches can hold the data set"))
    };
    let roomy = of(100);
    assert!(!told(&roomy), "{:?}", roomy.changes);
    let load = only(&roomy);
    assert!(load.file_bytes * u64::from(load.files) > 16 * GIB);
    let little = of(30);
    assert!(told(&little));
    let why = "data set of at most 1 GiB and not 20 GiB, as excluded caches demand: half of the 30 \
               GiB that are free is less than that; 40 GiB have to be free";
    let explained = |scenario: &Scenario| scenario.changes.iter().any(|told| told.starts_with(why));
    assert!(explained(&little), "{:?}", little.changes);
    assert!(!roomy.changes.iter().any(|told| told.contains("have to be free")), "{roomy:?}");
    let mut small = original.clone();
    small.steps.truncate(1);
    (small.steps[0].loads[0].files, small.steps[0].loads[0].file_bytes) = (1, GIB);
    let small = scale(&small, &Scale::automatic(&small, facts(30 * GIB)));
    assert!(!explained(&small), "it has no more data: {:?}", small.changes);
}

#[test]
fn the_memory_of_a_client_without_a_cache_makes_no_data_set_larger() {
    let original = catalogue::scenario("anf-linux-4k-random-uncached").unwrap();
    let bytes = |facts: Facts| Scale::automatic(&original, facts).max_data_bytes.unwrap();
    let facts = |client_caches, server: Option<u64>| Facts {
        client_memory_bytes: 24 * GIB,
        server_memory_bytes: server.map(|server| server * GIB),
        client_caches,
        processors: 2,
        ..Facts::default()
    };
    assert_eq!(bytes(facts(false, Some(64))), 80 * GIB);
    assert_eq!(bytes(facts(true, Some(64))), 110 * GIB);
    assert_eq!(bytes(facts(false, None)), 30 * GIB, "it stands for the server's");
    let here = Facts { same_machine: true, ..facts(false, Some(24)) };
    assert_eq!(bytes(here), 30 * GIB);
}

#[test]
fn a_fill_goes_on_to_its_end() {
    let length = Length::Bytes { per_job: GIB, at_most_s: None };
    let mut scenario = one(Workload { length, ..Workload::default() });
    let short = Scale { time_s: Some(1.0), ..Scale::default() };
    let measured = scale(&scenario, &short);
    assert_eq!(only(&measured).length, Length::Bytes { per_job: GIB, at_most_s: Some(1.0) });
    scenario.steps[0].preparation = true;
    assert_eq!(scale(&scenario, &short), scenario);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (wrong, part) in [
        (Scale { factor: Some(0.0), ..Scale::default() }, "the scale is 0"),
        (Scale { factor: Some(f64::NAN), ..Scale::default() }, "the scale is NaN"),
        (Scale { time_s: Some(0.0), ..Scale::default() }, "the time of a step"),
        (Scale { warmup_s: Some(-1.0), ..Scale::default() }, "the warm-up"),
    ] {
        assert!(wrong.check().unwrap_err().contains(part));
    }
    Scale { factor: Some(0.5), time_s: Some(1.0), ..Scale::default() }.check().unwrap();
}

#[test]
fn an_estimate_counts_the_layout_once_and_every_step() {
    let load = Workload {
        file_bytes: 300 * MIB,
        length: Length::Seconds(9.0),
        warmup_s: 0.0,
        ..Workload::default()
    };
    let step = |name: &str, shares_files| Step {
        name: name.to_owned(),
        loads: vec![load.clone()],
        shares_files,
        ..Step::default()
    };
    let shared = written(vec![step("a", true), step("b", false)]);
    assert_eq!(estimate(&shared, 1).as_secs(), 21);
    assert_eq!(estimate(&shared, 3).as_secs(), 63);
    let apart = written(vec![step("a", false), step("b", false)]);
    assert_eq!(estimate(&apart, 1).as_secs(), 22);
    let mut filled = shared;
    filled.steps[1].cache = Cache::Included;
    assert_eq!(estimate(&filled, 1).as_secs(), 22, "a pass fills the caches of a step");
}

#[test]
fn every_test_of_the_catalogue_can_be_scaled_to_any_machine() {
    for entry in catalogue::all() {
        let original = catalogue::scenario(&entry.name).unwrap();
        for memory in [1, 24, 1024] {
            let facts = Facts {
                client_memory_bytes: memory * GIB,
                free_bytes: Some(memory * GIB / 2),
                processors: 2,
                ..Facts::default()
            };
            let scaled = scale(&original, &Scale::automatic(&original, facts));
            assert!(data::bytes(&scaled.steps) <= memory * GIB / 4 + 16 * MIB, "{}", entry.name);
            for load in scaled.steps.iter().flat_map(|step| &step.loads) {
                closed(load).check().unwrap();
            }
        }
    }
}

/// `load` with a rate that is open until its scenario runs left out.
fn closed(load: &Workload) -> Workload {
    match load.rate {
        Rate::Share { .. } => Workload { rate: Rate::Unlimited, ..load.clone() },
        _ => load.clone(),
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let pattern = prop_oneof![
        Just(Pattern::Random),
        Just(Pattern::Sequential),
        (1_u8..100).prop_map(|random_percent| Pattern::Mixed { random_percent }),
    ];
    prop_oneof![
        4 => (pattern, 0_u8..=100)
            .prop_map(|(pattern, read_percent)| Operation::Data { pattern, read_percent }),
        1 => Just(Operation::Getattr),
        1 => Just(Operation::CreateRemove),
    ]
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        (1.0..1e5).prop_map(Length::Seconds),
        (1_u64..1_000_000_000).prop_map(Length::Operations),
        (1_u64..1 << 44, prop::option::of(1.0..1e5))
            .prop_map(|(per_job, at_most_s)| Length::Bytes { per_job, at_most_s }),
    ]
}

prop_compose! {
    fn load()(
        operation in operation(),
        length in length(),
        block_bytes in prop_oneof![Just(512_u32), Just(4096), Just(65_536), 512_u32..=1 << 20],
        (depth, jobs, clients) in (1_u32..=256, 1_u32..=400, 1_u32..=16),
        files in 1_u32..=1000,
        extra_blocks in prop_oneof![0_u64..1024, 0_u64..1 << 24],
        odd in 0_u64..512,
        verify in any::<bool>(),
        named in any::<bool>(),
        directory in 0_u8..2,
        region in prop::option::of((0_u64..50, 1_u64..50, any::<bool>())),
        (sizes, align) in (any::<bool>(), prop::option::of(1_u64..=4)),
        delays in 0_usize..3,
    ) -> Workload {
        let jobs = jobs.max(clients);
        let shape = Workload { operation, ..Workload::default() };
        let (writes, moves) = (shape.writes(), shape.moves_data());
        let verify = verify && writes;
        let outstanding = u64::from(jobs) * u64::from(depth);
        let blocks = if verify { 2 * outstanding } else { 4 } + extra_blocks;
        let block = u64::from(block_bytes);
        let region = region.map_or(Region::default(), |(offset, part, increment)| {
            let held = (blocks * part / 100).max(if verify { 2 * outstanding } else { 1 });
            let offset = (blocks * offset / 100).min(blocks - held);
            let room = if verify { 2 * outstanding } else { held.min(4) };
            let fits = increment && offset + u64::from(jobs) + room <= blocks;
            Region {
                offset: offset * block,
                bytes: Some(held * block),
                job_increment: if fits { block } else { 0 },
            }
        });
        let align = align.filter(|times| region == Region::default() && *times <= blocks);
        let file_bytes = blocks * block + odd;
        let share = |bytes, percent| SizeShare { bytes, percent };
        Workload {
            operation,
            length: match length {
                Length::Bytes { .. } if !moves => Length::Seconds(9.0),
                // Verification wants whole blocks.
                Length::Bytes { per_job, at_most_s } => {
                    Length::Bytes { per_job: per_job.div_ceil(block) * block, at_most_s }
                }
                other => other,
            },
            align_bytes: align.and_then(|times| u32::try_from(times * block).ok()),
            client_delays_us: vec![500; delays.min(usize::try_from(clients).unwrap())],
            block_bytes, depth, jobs, clients, files, file_bytes, region,
            verify: verify.then_some(VerifyScope::All),
            names: if named {
                (0..files).map(|number| format!("own.{number}")).collect()
            } else {
                Vec::new()
            },
            read_sizes: if sizes && !verify {
                vec![share(block_bytes, 50), share(block_bytes / 512 * 512, 50)]
            } else {
                Vec::new()
            },
            directory: format!("dir{directory}"),
            layout: Layout::Sparse,
            rate: Rate::Unlimited,
            ..Workload::default()
        }
    }
}

prop_compose! {
    fn any_scenario()(
        steps in prop::collection::vec((prop::collection::vec(load(), 1..3), any::<bool>()), 1..4)
    ) -> Scenario {
        let step = |(number, (loads, shares_files)): (usize, (Vec<Workload>, bool))| Step {
            name: format!("step{number}"),
            axis: Some(Axis { label: "depth".to_owned(), value: f64::from(loads[0].depth) }),
            loads,
            shares_files,
            ..Step::default()
        };
        written(steps.into_iter().enumerate().map(step).collect())
    }
}

prop_compose! {
    fn any_scale()(
        factor in prop::option::of(1e-12..=1.0),
        max_data_bytes in prop::option::of(0_u64..1 << 40),
        (time_s, warmup_s) in (prop::option::of(0.1..1e4), prop::option::of(0.0..1e3)),
        (clients, jobs) in (prop::option::of(0_u32..100), prop::option::of(0_u32..100)),
        depth in prop::option::of(0_u32..100),
        (in_flight, bytes_in_flight) in
            (prop::option::of(0_u32..10_000), prop::option::of(0_u64..1 << 32)),
        threads in prop::option::of(0_u32..8),
    ) -> Scale {
        Scale {
            factor, max_data_bytes, time_s, warmup_s, clients, jobs, depth, in_flight,
            bytes_in_flight, threads, facts: None, too_little_room: None,
        }
    }
}

fn seconds(load: &Workload) -> f64 {
    load.measured_time().map_or(f64::INFINITY, |time| time.as_secs_f64())
}

/// Bytes of all files that are visited.
fn held_in_all(load: &Workload) -> u64 {
    load.region.bytes.unwrap_or(load.file_bytes).min(load.file_bytes) * u64::from(load.files)
}

/// The steps of `scaled`, each beside the one it was.
fn beside<'a>(
    scaled: &'a Scenario,
    before: &'a Scenario,
) -> impl Iterator<Item = (&'a Workload, &'a Workload)> {
    scaled.steps.iter().flat_map(|step| {
        let old = before.steps.iter().find(|old| old.name == step.name).unwrap();
        step.loads.iter().zip(&old.loads)
    })
}

proptest! {
    #[test]
    fn what_is_scaled_is_sound_and_never_grows(scenario in any_scenario(), wanted in any_scale()) {
        for load in scenario.steps.iter().flat_map(|step| &step.loads) {
            load.check().unwrap();
        }
        let scaled = scale(&scenario, &wanted);
        for (new, old) in beside(&scaled, &scenario) {
            prop_assert!(new.check().is_ok(), "{:?} of {new:?}", new.check());
            prop_assert!(new.files <= old.files && new.file_bytes <= old.file_bytes);
            prop_assert!(new.jobs <= old.jobs && new.clients <= old.clients);
            prop_assert!(new.depth <= old.depth && new.threads <= old.threads);
            prop_assert!(new.warmup_s <= old.warmup_s && seconds(new) <= seconds(old));
            prop_assert!(new.names.is_empty() || new.names.len() == new.files as usize);
            prop_assert_eq!(&old.names[..new.names.len()], &new.names[..]);
            if let (Length::Bytes { per_job: new, .. }, Length::Bytes { per_job: old, .. }) =
                (new.length, old.length)
            {
                prop_assert!(new <= old);
            }
            prop_assert!(new.region.offset < new.file_bytes);
            prop_assert!(new.region.bytes <= old.region.bytes);
            let last = u64::from(new.jobs - 1) * new.region.job_increment + new.region.offset;
            let held = (new.file_bytes - last).min(new.region.bytes.unwrap_or(u64::MAX));
            prop_assert!(held >= load::largest(new).max(u64::from(new.align_bytes.unwrap_or(1))));
            prop_assert!(new.client_delays_us.len() <= new.clients as usize);
            if new.verify.is_some() {
                let visited = held_in_all(new) / u64::from(new.block_bytes);
                prop_assert!(visited >= 2 * u64::from(new.jobs) * u64::from(new.depth));
            }
            prop_assert_eq!((new.block_bytes, new.operation), (old.block_bytes, old.operation));
        }
        prop_assert_eq!(scaled.steps == scenario.steps, scaled.changes.is_empty());
    }

    #[test]
    fn at_a_factor_of_one_nothing_changes(scenario in any_scenario()) {
        prop_assert_eq!(scale(&scenario, &Scale { factor: Some(1.0), ..Scale::default() }), scenario);
    }

    #[test]
    fn a_bound_is_kept_but_for_what_a_load_needs(scenario in any_scenario(), most in 1_u64 << 24..1 << 40) {
        let scaled = scale(&scenario, &Scale { max_data_bytes: Some(most), ..Scale::default() });
        let loads = || scaled.steps.iter().flat_map(|step| &step.loads);
        // A block of each request in flight twice, a file's rounding, and the least of a file,
        // which may be the largest common multiple of its sizes.
        let needs = |load: &Workload| {
            let blocks = u64::from(load.files) * 2 + 2 * u64::from(load.jobs * load.depth);
            blocks * 2 * load::largest(load) * 1000 + 96 * MIB
        };
        let slack: u64 = loads().map(needs).sum();
        prop_assert!(data::bytes(&scaled.steps) <= most.saturating_add(slack));
    }
}

#[test]
fn files_of_sizes_with_a_large_common_multiple_become_fewer() {
    let share = |bytes, percent| SizeShare { bytes, percent };
    let block_bytes = 8191;
    let load = Workload {
        files: 1000,
        file_bytes: u64::from(block_bytes) << 23,
        block_bytes,
        read_sizes: vec![share(block_bytes, 50), share(7680, 50)],
        ..Workload::default()
    };
    load.check().unwrap();
    let bound = Scale { max_data_bytes: Some(5 * GIB), ..Scale::default() };
    let scaled = scale(&one(load), &bound);
    let load = only(&scaled);
    assert_eq!(load.file_bytes, 8191 * 7680, "a multiple of both");
    assert!(data::bytes(&scaled.steps).abs_diff(5 * GIB) < load.file_bytes, "{}", load.files);
}

#[test]
fn a_small_set_beside_a_large_one_keeps_what_it_needs() {
    let original = catalogue::scenario("eda").unwrap();
    let bound = |bytes| {
        let to = Scale { max_data_bytes: Some(bytes), ..Scale::default() };
        scale(&original, &to)
    };
    let scaled = bound(3 * GIB);
    let held = |directory: &str| -> u64 {
        let loads = scaled.steps.iter().flat_map(|step| &step.loads);
        let own = loads.filter(|load| load.directory.ends_with(directory));
        own.map(|load| u64::from(load.files) * load.file_bytes).max().unwrap()
    };
    assert_eq!(held("front"), 1000 << 16, "a thousand small files");
    assert!(held("back") > 2 * GIB && held("back") + held("front") <= 3 * GIB);
    assert!(!scaled.changes.iter().any(|change| change.contains("is not meaningful")));
    // If there is no room for the needs of all, all shrink alike.
    let changes = bound(32 * MIB).changes;
    assert_eq!(changes.iter().filter(|change| change.contains("is not meaningful")).count(), 2);
}

#[test]
fn rounding_alone_makes_no_set_too_small_and_proportions_are_near() {
    let accuracy = catalogue::scenario("weir-contract-accuracy").unwrap();
    let scaled = scale(&accuracy, &Scale { factor: Some(0.001), ..Scale::default() });
    assert!(!scaled.changes.iter().any(|change| change.contains("is not meaningful")));
    assert_eq!(only(&scaled).file_bytes, 6656 << 10);
    let metadata = catalogue::scenario("azure-metadata-cache-nfs").unwrap();
    let scaled = scale(&metadata, &Scale { max_data_bytes: Some(64 * MIB), ..Scale::default() });
    assert!(scaled.changes[0].contains("→ 64 MiB (40 %)"), "{:?}", scaled.changes);
}
