//! Results as they might be, made up: every kind of test, step and mishap that a report has to
//! show. The tests of reports and the program that writes example reports share them.

use std::collections::BTreeMap;
use weir_load::{
    Connections, Generator, Interval, JobResult, Latency, Length, Mark, OpResult, Operation,
    Pattern, Point, RESULT_VERSION, Rate, RunResult, ServerCpu, VerifyResult, Workload,
};
use weir_results::compare::pairs::judge;
use weir_results::{
    CacheProof, Contract, Environment, Finding, Machine, Network, RESULTS_VERSION, Results, Stall,
    Steady, StepResult, StepRun, Summary, TestResult, WorkerResult,
};
use weir_scenario::scenario::{Axis, Cache, Chart, Language, Published};

const MIB: f64 = 1_048_576.0;
const SECONDS: u32 = 30;
const WARMUP: u32 = 5;

/// A made-up run: so many reads and writes a second of blocks of this size, at this latency.
struct Load {
    reads: f64,
    writes: f64,
    block: u32,
    mean_ms: f64,
    depth: u32,
    jobs: u32,
}

/// A steady rate that drifts a little less in each repeat.
fn drifting(repeat: u32) -> Steady {
    Steady {
        steady: true,
        drift_percent: 0.8 - f64::from(repeat),
        excursion_percent: 4.2,
        warmup_s: 3.0,
    }
}

impl Load {
    fn workload(&self, name: &str) -> Workload {
        let all = (self.reads + self.writes).max(1.0);
        let pattern = if self.block >= 32_768 { Pattern::Sequential } else { Pattern::Random };
        Workload {
            name: name.to_owned(),
            operation: Operation::Data { pattern, read_percent: percent(self.reads / all) },
            block_bytes: self.block,
            depth: self.depth,
            jobs: self.jobs,
            clients: 1,
            connections: 8,
            files: self.jobs,
            length: Length::Seconds(f64::from(SECONDS)),
            warmup_s: f64::from(WARMUP),
            direct: true,
            ..Workload::default()
        }
    }

    fn run(&self, name: &str, repeat: u32) -> StepRun {
        let wobble = 1.0 + (f64::from(repeat * 7 % 5) - 2.0) * 0.006;
        let (reads, writes) = (self.reads * wobble, self.writes * wobble);
        let (block, seconds) = (f64::from(self.block), f64::from(SECONDS));
        let kind = |iops: f64, slower: f64| OpResult {
            operations: whole(iops * seconds),
            bytes: whole(iops * seconds * block),
            iops,
            mibps: iops * block / MIB,
            latency_ms: distribution(self.mean_ms * slower / wobble),
        };
        let kinds = [("read", reads, 0.95), ("write", writes, 1.15)];
        let kinds = kinds.into_iter().filter(|(_, iops, _)| *iops > 0.0);
        let by_operation: BTreeMap<_, _> =
            kinds.map(|(name, iops, slower)| (name.to_owned(), kind(iops, slower))).collect();
        let all = reads + writes;
        let total = RunResult {
            version: RESULT_VERSION,
            name: name.to_owned(),
            target: "nfs://192.0.2.10:2049/vol".to_owned(),
            workload: self.workload(name),
            started_unix_s: 1_795_000_000.0 + f64::from(repeat) * 40.0,
            measured: Interval { from_s: f64::from(WARMUP), to_s: f64::from(WARMUP + SECONDS) },
            total: kind(all, 1.0),
            by_operation,
            jobs: vec![JobResult {
                job: 0,
                client: "192.0.2.1".to_owned(),
                operations: whole(all * seconds),
                bytes: whole(all * seconds * block),
                share: 1.0,
                kept_depth: Some(8),
            }],
            errors: BTreeMap::new(),
            connections: Connections { opened: 8, ..Connections::default() },
            addresses: BTreeMap::from([("192.0.2.10:2049".to_owned(), 8)]),
            series_1s: series(all, block, repeat),
            series_100ms: Vec::new(),
            series_10ms: Vec::new(),
            marks: Vec::new(),
            generator: Generator {
                cpu_s: all * f64::from(SECONDS) * 1.9e-6,
                cpu_us_per_op: 1.9,
                busiest_thread_percent: (all / 5e3).min(94.0),
                saturated: false,
                machine_busy_percent: 61.0,
                machine_processors: 16,
            },
            server: Some(ServerCpu { processors: all * 9.4e-6, cpu_us_per_op: 9.4 }),
            verify: None,
            interrupted: false,
        };
        StepRun {
            network: Some(Network {
                received_bytes: whole(reads * block * f64::from(SECONDS) * 1.04),
                sent_bytes: whole(writes * block * f64::from(SECONDS) * 1.04),
            }),
            client_processors: Some(0.8 + all * 4e-6),
            steady: Some(drifting(repeat)),
            stall: None,
            loads: Vec::new(),
            targets: Vec::new(),
            workers: Vec::new(),
            total,
        }
    }

    fn step(&self, name: &str, repeats: u32) -> StepResult {
        let runs: Vec<StepRun> = (0..repeats).map(|repeat| self.run(name, repeat)).collect();
        StepResult {
            name: name.to_owned(),
            group: String::new(),
            axis: None,
            preparation: false,
            published: None,
            written_in_flight: None,
            summary: Summary::of(&runs),
            runs,
            skipped: None,
            notes: Vec::new(),
            out_of_reach: Vec::new(),
            cache: CacheProof { data_bytes: 48 << 30, ..CacheProof::default() },
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures")]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures")]
fn percent(part: f64) -> u8 {
    (part * 100.0).round().clamp(0.0, 100.0) as u8
}

fn distribution(mean: f64) -> Latency {
    Latency {
        min: mean * 0.21,
        mean,
        p5: mean * 0.45,
        p50: mean * 0.86,
        p90: mean * 1.6,
        p95: mean * 2.1,
        p99: mean * 3.4,
        p99_9: mean * 9.0,
        p99_99: mean * 17.0,
        max: mean * 41.0,
    }
}

fn series(iops: f64, block: f64, repeat: u32) -> Vec<Point> {
    let rate = |second: u32| {
        let rise = if second < 3 { 0.35 + 0.2 * f64::from(second) } else { 1.0 };
        let noise = f64::from((second * 37 + repeat * 11) % 17) / 17.0 - 0.5;
        iops * rise * (1.0 + noise * 0.05)
    };
    let point = |second: u32| Point {
        at_s: f64::from(second),
        operations: whole(rate(second)),
        bytes: whole(rate(second) * block),
    };
    let mut all: Vec<Point> = (0..SECONDS + WARMUP).map(point).collect();
    all.push(Point { at_s: f64::from(SECONDS + WARMUP), operations: 3, bytes: whole(3.0 * block) });
    all
}

fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        processor: "AMD EPYC 7543 32-Core Processor".to_owned(),
        processors: 16,
        memory_bytes: 64 << 30,
        kernel: "Linux 6.1.0".to_owned(),
        system: "Debian GNU/Linux 12".to_owned(),
    }
}

fn test(name: &str, title: &str, chart: Chart, steps: Vec<StepResult>) -> TestResult {
    TestResult {
        name: name.to_owned(),
        title: title.to_owned(),
        about: "Reads and writes of one size in shares that change from step to step.".to_owned(),
        source: Some("Azure NetApp Files, performance benchmarks for Linux".to_owned()),
        language: Language::Catalogue,
        chart,
        changes: vec!["Data set of 48 GiB in place of 1 TiB (--scale).".to_owned()],
        steps,
        findings: Vec::new(),
        waiting: None,
    }
}

/// Published shares of reads, cache excluded, three repeats of each step.
fn mix(speed: f64) -> TestResult {
    let shares = [
        ("100-0", 388_000.0, 0.0),
        ("75-25", 216_000.0, 72_000.0),
        ("50-50", 112_000.0, 112_000.0),
        ("25-75", 43_000.0, 129_000.0),
        ("0-100", 0.0, 120_000.0),
    ];
    let steps = shares.map(|(name, reads, writes)| {
        let load = Load {
            reads: reads * 0.21 * speed,
            writes: writes * 0.31 * speed,
            block: 4096,
            mean_ms: 1.3 / speed,
            depth: 16,
            jobs: 48,
        };
        let mut step = load.step(name, 3);
        let some = |value: f64| (value > 0.0).then_some(value);
        step.published = Some(Published {
            who: "ANF Ultra, 100 TiB, six D32s_v5".to_owned(),
            read_iops: some(reads),
            write_iops: some(writes),
            about: true,
            ..Published::default()
        });
        step.written_in_flight = Some(48 * 128);
        step.cache = CacheProof {
            wanted: Cache::Excluded,
            data_bytes: 48 << 30,
            client_memory_bytes: 64 << 30,
            server_memory_bytes: Some(32 << 30),
            done: vec!["The server's page cache was dropped before every repeat.".to_owned()],
            open: vec![
                "The memory of the client is larger than the data set; O_DIRECT keeps it out of the page cache."
                    .to_owned(),
            ],
        };
        step
    });
    let mut steps = steps.to_vec();
    steps.insert(0, fill());
    let title = "ANF, Linux scale-out: 4 KiB random, cache excluded";
    test("anf-linux-4k-random", title, Chart::Bars, steps)
}

fn fill() -> StepResult {
    let load =
        Load { reads: 0.0, writes: 900.0, block: 1 << 20, mean_ms: 17.0, depth: 16, jobs: 1 };
    let mut step = load.step("fill", 1);
    step.preparation = true;
    step
}

/// Near and far clients at rising rates; the last far step is left out.
fn curve(speed: f64) -> TestResult {
    let mut steps = Vec::new();
    for (group, distance) in [("near", 0.0), ("far (+1 ms)", 1.0)] {
        for share in [10.0, 50.0, 70.0, 80.0, 90.0, 100.0] {
            let busy: f64 = share / 104.0;
            let rate = 82_000.0 * speed * share / 100.0 / (1.0 + distance * 0.2);
            let load = Load {
                reads: rate,
                writes: 0.0,
                block: 8192,
                mean_ms: distance + 0.22 / (1.0 - busy),
                depth: 25,
                jobs: 12,
            };
            let mut step = load.step(&format!("{group} {share:.0} %"), 1);
            step.group = group.to_owned();
            step.axis = Some(Axis { label: "percent of the maximum".to_owned(), value: share });
            for run in &mut step.runs {
                run.total.workload.rate = Rate::Operations(rate);
                run.total.workload.client_delays_us = vec![whole(distance * 1000.0)];
            }
            if distance > 0.0 && share > 95.0 {
                step.runs.clear();
                step.summary = None;
                step.skipped =
                    Some("The mean latency of the step before was over 3 ms.".to_owned());
            }
            steps.push(step);
        }
    }
    let mut curve = test(
        "anf-vdbench-curve",
        "ANF, Vdbench: latency over IOPS, 8 KiB random reads",
        Chart::LatencyCurve,
        steps,
    );
    curve.findings = vec![
        Finding {
            question: "Highest rate with p99 under 2 ms".to_owned(),
            answer: "57 400 op/s; at 65 600 op/s p99 was 3.2 ms".to_owned(),
            value: 57_400.0,
            unit: "op/s".to_owned(),
            steps: vec!["near 70 %".to_owned(), "near 80 %".to_owned()],
        },
        Finding {
            question: "Knee of the curve".to_owned(),
            value: 65_600.0,
            unit: "op/s".to_owned(),
            ..Finding::default()
        },
    ];
    curve
}

/// Depths with and without several connections; with them the generator is the limit.
fn depth(speed: f64) -> TestResult {
    let mut steps = Vec::new();
    for (group, connections, most) in
        [("one connection", 1, 61_000.0), ("nconnect=8", 8, 142_000.0)]
    {
        for depth in [1_u32, 2, 4, 8, 16, 32, 64, 128] {
            let flight = f64::from(depth);
            let rate: f64 = speed * most * flight / (flight + 9.0);
            let load = Load {
                reads: rate,
                writes: 0.0,
                block: 4096,
                mean_ms: flight / rate * 1000.0,
                depth,
                jobs: 1,
            };
            let mut step = load.step(&format!("{group}, depth {depth}"), 1);
            step.group = group.to_owned();
            step.axis = Some(Axis { label: "requests in flight".to_owned(), value: flight });
            for run in &mut step.runs {
                run.total.workload.connections = connections;
            }
            if depth == 128 && connections == 8 {
                for run in &mut step.runs {
                    run.total.generator.saturated = true;
                    run.total.generator.busiest_thread_percent = 98.4;
                }
                step.notes.push(
                    "The generator was the limit (busiest thread 98 % busy): the target can do more. Use more --threads."
                        .to_owned(),
                );
            }
            steps.push(step);
        }
    }
    let title = "ANF, Linux scale-up: 4 KiB random reads, depth sweep with and without nconnect";
    test("anf-linux-nconnect", title, Chart::Lines, steps)
}

/// Sequential work over several workers: one is lost, operations fail, blocks differ.
fn mishaps(speed: f64) -> TestResult {
    let load = |reads: f64, writes: f64| Load {
        reads: reads * speed,
        writes: writes * speed,
        block: 65_536,
        mean_ms: 4.1,
        depth: 8,
        jobs: 16,
    };
    let mut lost = load(18_400.0, 0.0).step("64k reads, eight workers", 1);
    lost.notes
        .push("Worker host-6 was lost after 14 s; its part of the figures ends there.".to_owned());
    for run in &mut lost.runs {
        run.total.interrupted = true;
        let at_s = 14.2;
        run.total.marks = vec![
            Mark { at_s: 5.0, label: "all workers started".to_owned() },
            Mark { at_s, label: "host-6 was lost: connection reset by peer".to_owned() },
        ];
        run.workers = (1..=8)
            .map(|number| WorkerResult {
                name: format!("host-{number}"),
                operations: if number == 6 { 21_160 } else { 69_000 + number * 13 },
                bytes: 69_000 << 16,
                cpu_s: 0.31,
                clock_offset_ms: f64::from(u32::try_from(number).unwrap_or(0)) * 3.7 - 12.0,
                clock_uncertainty_ms: 0.12,
                lost: (number == 6).then(|| "connection reset by peer".to_owned()),
            })
            .collect();
        run.steady = Some(Steady {
            steady: false,
            drift_percent: -11.9,
            excursion_percent: 26.3,
            warmup_s: 5.0,
        });
        run.stall = Some(Stall { from_s: at_s, seconds: 1.3 });
    }
    let mut failed = load(0.0, 9_100.0).step("64k writes, verified", 1);
    for run in &mut failed.runs {
        run.total.errors =
            BTreeMap::from([("NFS3ERR_IO".to_owned(), 17), ("NFS3ERR_JUKEBOX".to_owned(), 2)]);
        run.total.verify = Some(VerifyResult {
            checked: 273_000,
            uncertain: 8,
            unread: 0,
            in_passing: 0,
            in_passing_mismatches: 0,
            mismatches: 2,
            details: vec![
                "file.00003 at 1 048 576: stale block (generation 1, not 2)".to_owned(),
                "file.00007 at 65 536: <zeros> & a torn write".to_owned(),
            ],
        });
        let halves = [(5_460.0, "front end"), (3_640.0, "back end")];
        run.loads = halves.map(|(writes, name)| load(0.0, writes).run(name, 0).total).to_vec();
    }
    let mut mishaps = test(
        "gcnv-64k-sequential",
        "GCNV Extreme: 64 KiB sequential, eight workers",
        Chart::Bars,
        vec![lost, failed],
    );
    mishaps.changes.push("The SMB half of the published table is left out.".to_owned());
    mishaps
}

/// One connection against eight, five repeats of each step: a pair of the catalogue, and a side of
/// another.
fn nconnect(speed: f64) -> TestResult {
    let rates = [
        ("nconnect=1", 64, 10_200.0),
        ("nconnect=1", 128, 11_000.0),
        ("nconnect=8", 64, 19_000.0),
        ("nconnect=8", 256, 26_000.0),
    ];
    let steps = rates.map(|(group, flight, rate)| {
        let load = Load {
            reads: rate * speed,
            writes: 0.0,
            block: 65_536,
            mean_ms: f64::from(flight) / rate * 1000.0,
            depth: flight / 8,
            jobs: 8,
        };
        let mut step = load.step(&format!("{group}-{flight}"), 5);
        step.group = group.to_owned();
        step.axis = Some(Axis { label: "requests in flight".to_owned(), value: f64::from(flight) });
        for run in &mut step.runs {
            run.total.workload.connections = if group == "nconnect=1" { 1 } else { 8 };
        }
        step
    });
    let title = "ANF, Linux scale-up: 64 KiB sequential reads, with and without nconnect=8";
    test("anf-nconnect-64k-sequential", title, Chart::Lines, steps.to_vec())
}

/// Two loads on three volumes at the same time: one of the volumes gets less than the others, and
/// has no name of its own.
fn volumes(speed: f64) -> TestResult {
    let shares = [("gold", 0.5), ("silver", 0.3), ("", 0.2)];
    let steps = [("8k, 80 % reads", 8192), ("64k, 80 % reads", 65_536)].map(|(name, block)| {
        let load = |share: f64| Load {
            reads: 24_000.0 * speed * share,
            writes: 6000.0 * speed * share,
            block,
            mean_ms: 1.1 / share / speed,
            depth: 16,
            jobs: 4,
        };
        let mut step = load(1.0).step(name, 3);
        step.published = Some(Published {
            who: "three volumes of the same level".to_owned(),
            iops: Some(40_000.0),
            ..Published::default()
        });
        for (repeat, run) in (0..).zip(&mut step.runs) {
            let parts = shares.map(|(target, share)| {
                let mut part = load(share).run(target, repeat).total;
                part.target = format!("nfs://192.0.2.10/{target}");
                target.clone_into(&mut part.workload.target);
                part.server = None;
                part
            });
            run.loads = parts.to_vec();
            run.targets = parts.to_vec();
        }
        step
    });
    test("vdbench-volumes", "Three volumes at the same time", Chart::Bars, steps.to_vec())
}

fn waiting() -> TestResult {
    let mut waiting = test(
        "azure-files-multichannel",
        "Azure Files premium: SMB multichannel on and off",
        Chart::Bars,
        Vec::new(),
    );
    waiting.waiting = Some("SMB: this program has no SMB client yet.".to_owned());
    waiting
}

/// Results of `label`, everything `speed` times as fast.
pub(crate) fn results(label: &str, speed: f64) -> Results {
    let target = "nfs://192.0.2.10:2049/vol".to_owned();
    let words = [
        "weir",
        "bench",
        "run",
        "anf-linux-4k-random",
        "nfs://192.0.2.10:2049/vol?uid=0",
        "--scale",
        "48GiB",
        "--repeats",
        "3",
    ];
    let mut results = Results {
        version: RESULTS_VERSION,
        label: label.to_owned(),
        target,
        command: words.map(str::to_owned).to_vec(),
        program: "Weir 0.1.0".to_owned(),
        started_unix_s: 1_795_000_000.0,
        environment: Environment {
            clients: (1..=2).map(|number| machine(&format!("host-{number}"))).collect(),
            server: Some(Machine { memory_bytes: 32 << 30, ..machine("nas-1") }),
            transport: "NFSv3 in user space, 2 addresses, 8 connections each".to_owned(),
            links: BTreeMap::from([("eth0".to_owned(), 25_000)]),
            settings: BTreeMap::from([("metadata-cache".to_owned(), "off".to_owned())]),
            contracts: BTreeMap::from([(
                String::new(),
                Contract {
                    volume: "vol".to_owned(),
                    bytes_per_second: 12 << 30,
                    iops: Some(2_000_000),
                    base_iops: Some(500_000),
                },
            )]),
            facts: vec![(
                "server's file system".to_owned(),
                "XFS on 4 NVMe devices, RAID 0".to_owned(),
            )],
        },
        tests: vec![
            mix(speed),
            curve(speed),
            depth(speed),
            mishaps(speed),
            waiting(),
            nconnect(speed),
            volumes(speed),
        ],
        interrupted: true,
        warnings: vec!["Client and server share a switch with other work.".to_owned()],
        pairs: Vec::new(),
    };
    results.pairs = judge(&[&results]).pairs;
    results
}

/// One test that went well in every way.
pub(crate) fn sound() -> Results {
    let mut sound = results("weir", 1.0);
    sound.tests.truncate(1);
    sound.pairs.clear();
    sound.warnings.clear();
    sound.interrupted = false;
    for step in sound.tests.iter_mut().flat_map(|test| &mut test.steps) {
        step.cache.open.clear();
    }
    sound
}

/// The results of another server, compared with [`results`]: slower, with other depths in one step,
/// without one of the tests, and with a step of its own.
pub(crate) fn other() -> Results {
    let mut other = results("ganesha", 0.83);
    other.tests.retain(|test| test.name != "gcnv-64k-sequential");
    if let Some(test) = other.tests.first_mut() {
        if let Some(step) = test.steps.iter_mut().find(|step| step.name == "50-50") {
            for run in &mut step.runs {
                run.total.workload.depth = 32;
            }
        }
        if let Some(mut step) = test.steps.last().cloned() {
            "0-100, again".clone_into(&mut step.name);
            test.steps.push(step);
        }
    }
    other
}
