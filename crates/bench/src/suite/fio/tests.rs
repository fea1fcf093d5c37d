use super::*;
use std::collections::BTreeMap;
use weir_load::control::Control;
use weir_load::workload::{
    Draw, LatencyTarget, Length, MixOp, OpShare, Operation, Pacing, Pattern, Rate, Region,
    SizeShare, Stability, Starts, Think, VerifyScope,
};

fn data(pattern: Pattern, read_percent: u8) -> Operation {
    Operation::Data { pattern, read_percent }
}

fn small() -> Workload {
    Workload {
        file_bytes: 1 << 20,
        depth: 1,
        warmup_s: 0.0,
        length: Length::Seconds(1.0),
        ..Workload::default()
    }
}

/// The options of each section of the job file.
fn sections(loads: &[Workload]) -> BTreeMap<String, BTreeMap<String, String>> {
    let text = jobs::job_file(loads, Path::new("/mnt/t")).unwrap();
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[') {
            Some(section) => name = section.trim_end_matches(']').to_owned(),
            None => {
                let (key, value) = line.split_once('=').unwrap();
                all.entry(name.clone()).or_default().insert(key.to_owned(), value.to_owned());
            }
        }
    }
    all
}

fn options(load: Workload) -> BTreeMap<String, String> {
    sections(&[load]).remove("l0j0").unwrap()
}

#[test]
fn a_mix_in_sequence_is_fio_s_rw() {
    let share = |op, percent| OpShare { op, percent };
    let mix = vec![share(MixOp::ReadSequential, 75), share(MixOp::WriteSequential, 25)];
    let load = Workload { operation: Operation::Mix, mix, ..small() };
    let told = options(load.clone());
    assert_eq!((told["rw"].as_str(), told["rwmixread"].as_str()), ("rw", "75"));
    assert_eq!(jobs::notes(&[load]), Vec::<String>::new(), "positions are the same here");
    let cursor = Workload { operation: data(Pattern::Sequential, 75), ..small() };
    assert_eq!(jobs::notes(&[cursor]).len(), 1);
}

#[test]
fn a_load_is_said_in_fio_s_words() {
    let load = Workload {
        operation: data(Pattern::Random, 70),
        depth: 16,
        direct: true,
        warmup_s: 2.0,
        draw: Draw::Zipf { theta: 1.2 },
        align_bytes: Some(512),
        read_sizes: vec![
            SizeShare { bytes: 4096, percent: 25 },
            SizeShare { bytes: 8192, percent: 75 },
        ],
        stability: Stability::DataSync,
        commit_every: Some(9),
        end_sync: true,
        think: Some(Think { us: 70, every: 4 }),
        start_delay_s: 0.5,
        invalidate: true,
        ..small()
    };
    let options = options(load);
    for (name, value) in [
        ("rw", "randrw"),
        ("rwmixread", "70"),
        ("bssplit", "4096/25:8192/75,4096/100"),
        ("blockalign", "512"),
        ("random_distribution", "zipf:1.2"),
        ("iodepth", "16"),
        ("ioengine", "libaio"),
        ("direct", "1"),
        ("invalidate", "1"),
        ("sync", "dsync"),
        ("fdatasync", "9"),
        ("end_fsync", "1"),
        ("thinktime", "70us"),
        ("thinktime_blocks", "4"),
        ("startdelay", "500000us"),
        ("ramp_time", "2000000us"),
        ("runtime", "1000000us"),
        ("time_based", "1"),
        ("size", "1048576"),
        ("offset", "0"),
        ("filename", "/mnt/t/weir-bench/file.00000"),
    ] {
        assert_eq!(options.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn jobs_get_their_files_regions_rates_and_ends() {
    let load = Workload {
        jobs: 2,
        files: 4,
        rate: Rate::Operations(1000.0),
        pacing: Pacing::Poisson,
        length: Length::Operations(5),
        ..small()
    };
    let all = sections(&[load]);
    assert_eq!(
        all["l0j1"]["filename"],
        "/mnt/t/weir-bench/file.00001:/mnt/t/weir-bench/file.00003"
    );
    assert_eq!(
        (all["l0j0"]["number_ios"].as_str(), all["l0j1"]["number_ios"].as_str()),
        ("3", "2")
    );
    assert_eq!(all["l0j0"]["rate_iops"], "500,1");
    assert_eq!(all["l0j0"]["rate_process"], "poisson");
    assert_ne!(all["l0j0"]["randseed"], all["l0j1"]["randseed"]);
    let region = Region { offset: 4096, bytes: Some(65_536), job_increment: 131_072 };
    let load = Workload {
        operation: data(Pattern::Sequential, 0),
        jobs: 2,
        starts: Starts::Together,
        region,
        names: vec!["x:y".to_owned()],
        length: Length::Bytes { per_job: 99, at_most_s: Some(3.0) },
        ..small()
    };
    let all = sections(&[small(), load]);
    assert_eq!(all["l1j1"]["offset"], (4096 + 131_072).to_string());
    assert_eq!((all["l1j1"]["size"].as_str(), all["l1j1"]["io_size"].as_str()), ("65536", "99"));
    assert_eq!(all["l1j1"]["filename"], "/mnt/t/weir-bench/x\\:y");
    assert_eq!(
        (all["l1j0"]["rw"].as_str(), all["l1j0"]["runtime"].as_str()),
        ("write", "3000000us")
    );
    assert!(!all["l1j0"].contains_key("time_based"));
}

#[test]
fn what_fio_can_t_say_is_refused_by_name() {
    let refusal =
        |load: Workload| jobs::job_file(&[load], Path::new("/t")).unwrap_err().to_string();
    let write = data(Pattern::Sequential, 0);
    let target = LatencyTarget { us: 500, window_us: 1000, percent: 99.0, goes_on: true };
    for (load, wanted) in [
        (Workload { operation: Operation::Getattr, ..small() }, "another operation"),
        (Workload { operation: write, jobs: 2, ..small() }, "the same start position"),
        (
            Workload { operation: write, verify: Some(VerifyScope::All), ..small() },
            "Weir's verification",
        ),
        (Workload { client_delays_us: vec![5], ..small() }, "network distance"),
        (Workload { latency_target: Some(target), ..small() }, "does not keep a latency"),
        (Workload { hosts: vec!["a".into()], ..small() }, "this machine alone"),
        (Workload { rate: Rate::Operations(0.4), ..small() }, "below one per second"),
        (Workload { directory: "a#b".into(), ..small() }, "contains a character"),
        (Workload { jobs: 2000, ..small() }, "at most 1024 jobs"),
    ] {
        let error = refusal(load);
        assert!(error.contains(wanted) && error.contains("omit --engine fio"), "{error}");
    }
    let nfs = Target::Nfs(weir_load::NfsTarget::new("127.0.0.1:2049".parse().unwrap(), "/v"));
    let error = FioExecutor::new(&nfs).err().unwrap().to_string();
    assert!(error.contains("only mounted paths"), "{error}");
    let mounts = PathTarget { root: "/mnt/a".into(), more: vec!["/mnt/b".into()] };
    let error = FioExecutor::new(&Target::Path(mounts)).err().unwrap().to_string();
    assert!(error.contains("omit --mounts or --engine fio"), "{error}");
}

#[test]
fn versions_and_progress_are_read() {
    assert_eq!(version("fio-3.33"), Some((3, 33)));
    assert_eq!(version("fio-3.9-12-gab"), Some((3, 9)));
    assert_eq!(version("fi"), None);
    let line = "Jobs: 2 (f=2): [m(2)][60.0%][r=2MiB/s,w=1024KiB/s][r=26.5k,w=10 IOPS][eta 00m]";
    assert_eq!(process::rates(line), Some((26_510.0, 3.0 * 1_048_576.0)));
    assert_eq!(process::rates("Jobs: 2 (f=0)"), None);
}

#[test]
fn answers_become_records_that_merge() {
    let json = "\nfio: terminating on signal 2\n{\"jobs\": [\
        {\"jobname\": \"l0j0\", \"job_runtime\": 2000, \"usr_cpu\": 10.0, \"sys_cpu\": 15.0, \
         \"read\": {\"io_bytes\": 12288, \"runtime\": 2000, \"lat_ns\": {\"bins\": {\"1000000\": 2, \"3000000\": 1}}}, \
         \"write\": {}}, \
        {\"jobname\": \"l0j1\", \"error\": 28, \"job_runtime\": 2000, \
         \"read\": {}, \
         \"write\": {\"io_bytes\": 4096, \"runtime\": 1500, \"clat_ns\": {\"bins\": {\"2000000\": 1}}}}]}";
    let ran =
        process::Ran { json: json.to_owned(), started_unix_s: 7.0, stopped: true, complaint: None };
    let scratch = tempfile::tempdir().unwrap();
    let log = |kind: &str, text: &str| {
        std::fs::write(scratch.path().join(format!("log_{kind}.1.log")), text).unwrap();
    };
    log("bw", "1000, 8, 0, 0, 0\n2000, 4, 0, 0, 0\n");
    log("iops", "1000, 2, 0, 0, 0\n2000, 1, 0, 0, 0\n");
    let load = Workload { jobs: 2, warmup_s: 1.0, length: Length::Seconds(5.0), ..small() };
    let mut records = output::records("/t", &[load], &ran, scratch.path()).unwrap();
    let result = records.remove(0).record(Vec::new()).result();
    assert!(result.interrupted);
    assert_eq!((result.total.operations, result.total.bytes), (4, 16_384));
    assert!((result.total.iops - 2.0).abs() < 1e-9 && (result.measured.from_s - 1.0).abs() < 1e-9);
    assert!((result.by_operation["read"].latency_ms.max - 3.0).abs() < 0.01);
    assert!((result.by_operation["write"].latency_ms.p50 - 2.0).abs() < 0.01);
    assert_eq!((result.jobs[0].operations, result.jobs[1].operations), (3, 1));
    assert!((result.generator.cpu_s - 0.5).abs() < 1e-9);
    assert_eq!(
        result.errors.keys().collect::<Vec<_>>(),
        ["fio: No space left on device (os error 28)"]
    );
    let seconds: Vec<_> = result.series_1s.iter().map(|point| point.operations).collect();
    assert_eq!(seconds, [0, 2, 1]);
}

/// fio is installed wherever the whole test run is made; elsewhere this says that it is not.
#[test]
fn the_real_fio_applies_loads_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let target = Target::Path(root.path().into());
    let mut fio = match FioExecutor::new(&target) {
        Ok(fio) => fio,
        Err(error) => {
            assert!(error.to_string().contains("is not installed"), "{error}");
            return;
        }
    };
    let control = Control::new();
    let mut context = Context {
        control: &control,
        layout: &mut |_, _| {},
        ready: &mut || {},
        observe: &mut |_| {},
    };
    let load = Workload {
        operation: data(Pattern::Random, 50),
        length: Length::Operations(400),
        jobs: 2,
        files: 2,
        ..small()
    };
    let applied = fio.apply(&[load], &mut context).unwrap();
    let (total, _) = applied.record.results("x").unwrap();
    assert_eq!((total.total.operations, total.total.bytes), (400, 400 * 4096));
    assert!(total.by_operation.contains_key("read") && total.by_operation.contains_key("write"));
    assert!(total.is_clean() && !total.interrupted);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn a_stop_ends_fio_with_what_was_measured() {
    let root = tempfile::tempdir().unwrap();
    let Ok(mut fio) = FioExecutor::new(&Target::Path(root.path().into())) else { return };
    let control = Control::new();
    let stop = control.clone();
    let mut seen = 0;
    let mut context = Context {
        control: &control,
        layout: &mut |_, _| {},
        ready: &mut || {},
        observe: &mut |window| {
            seen += window.operations;
            if seen > 0 {
                stop.stop();
            }
        },
    };
    let load = Workload { length: Length::Seconds(600.0), ..small() };
    let applied = fio.apply(&[load], &mut context).unwrap();
    let (total, _) = applied.record.results("x").unwrap();
    assert!(total.interrupted && total.total.operations > 0 && seen > 0);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

/// Reads and writes, and their bytes.
fn moved(executor: &mut dyn Executor, loads: &[Workload]) -> [(u64, u64); 2] {
    let control = Control::new();
    let mut context = Context {
        control: &control,
        layout: &mut |_, _| {},
        ready: &mut || {},
        observe: &mut |_| {},
    };
    let applied = executor.apply(loads, &mut context).unwrap();
    let (total, _) = applied.record.results("x").unwrap();
    assert_eq!(total.error_count(), 0, "{}: {:?}", executor.name(), total.errors);
    ["read", "write"].map(|kind| {
        let done = total.by_operation.get(kind).copied().unwrap_or_default();
        (done.operations, done.bytes)
    })
}

/// Jobs that end by what they move do the same, to the operation, in our engine, in fio through
/// our job file, and in fio as they were written.
#[test]
fn jobs_move_the_same_in_both_engines_and_in_fio_itself() {
    let root = tempfile::tempdir().unwrap();
    let target = Target::Path(root.path().into());
    let Ok(mut fio) = FioExecutor::new(&target) else { return };
    let mut native = crate::suite::Local::new(target.clone());
    for options in [
        "--rw=read --size=1m",
        "--rw=randread --size=1m --numjobs=2 --iodepth=4 --ioengine=libaio --direct=1",
        "--rw=write --size=1m --bs=64k --loops=3",
        "--rw=randwrite --size=1m --bs=8k --filename=shared --numjobs=2",
        "--rw=randwrite --size=1m --io_size=256k --norandommap",
        "--rw=read --size=1m --nrfiles=4 --bs=16k",
        "--rw=write --size=256k --offset=64k --offset_increment=256k --numjobs=2 --filename=shared",
        "--rw=randread --size=1m --number_ios=17",
        "--rw=randread --filesize=512k --size=1m",
    ] {
        let line = format!("fio --name=a {options}");
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let scenario =
            weir_scenario::lang::command(&words, &weir_scenario::lang::Options::default()).unwrap();
        let loads = &scenario.steps[0].loads;
        let ours = moved(&mut native, loads);
        assert_eq!(moved(&mut fio, loads), ours, "{options}");
        let own = tempfile::tempdir().unwrap();
        let output = Command::new(&fio.program)
            .current_dir(own.path())
            .args(words.iter().skip(1))
            .args(["--output-format=json", "--eta=never"])
            .output()
            .unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let sum = |kind: &str, what: &str| -> u64 {
            let jobs = answer["jobs"].as_array().unwrap();
            jobs.iter().map(|job| job[kind][what].as_u64().unwrap()).sum()
        };
        let theirs = ["read", "write"].map(|kind| (sum(kind, "total_ios"), sum(kind, "io_bytes")));
        assert_eq!(theirs, ours, "{options}");
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
