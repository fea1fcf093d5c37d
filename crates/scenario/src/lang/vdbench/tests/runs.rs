//! Tests of storages, workloads and runs.

use super::*;
use crate::scenario::Chart;
use weir_load::workload::{
    Layout, Length, Pacing, Rate, Region, SizeShare, Stability, Starts, VerifyScope,
};

/// One file of 1 GiB with this in `sd=`, `wd=` and `rd=`.
fn with(sd: &str, wd: &str, rd: &str) -> Workload {
    let comma = |text: &str| if text.is_empty() { String::new() } else { format!(",{text}") };
    let (sd, wd, rd) = (comma(sd), comma(wd), comma(rd));
    load(&format!(
        "sd=sd1,lun=/v/f1,size=1g{sd}\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1,iorate=max{rd}\n"
    ))
}

/// The steps of [`BASE`] with this run.
fn run(rd: &str) -> Vec<Step> {
    steps(&format!("{BASE}rd=rd1,wd=wd1,{rd}\n"))
}

#[test]
fn defaults_are_those_of_vdbench() {
    let load = with("", "", "");
    assert_eq!(operation(&load), (Pattern::Random, 100));
    assert_eq!((load.block_bytes, load.jobs, load.depth, load.files), (4096, 8, 1, 1));
    assert_eq!((load.length, load.warmup_s), (Length::Seconds(30.0), 0.0));
    assert_eq!((load.rate.clone(), load.pacing), (Rate::Unlimited, Pacing::Even));
    assert_eq!((load.direct, load.stability, load.end_sync), (false, Stability::Unstable, false));
    assert_eq!(load.layout, Layout::Written { block_bytes: 128 << 10 });
    assert_eq!((load.region, load.align_bytes, load.hosts.len()), (Region::default(), None, 0));
    assert_eq!((load.verify, load.verify_reads, load.keep), (None, false, false));
}

#[test]
fn storages() {
    assert_eq!(with("threads=5", "", "").jobs, 5);
    assert_eq!(with("threads=(64,8)", "", "").jobs, 8);
    assert_eq!(with("align=512", "", "").align_bytes, Some(512));
    let offset = with("offset=1m", "", "");
    assert_eq!(offset.file_bytes, (1 << 30) + (1 << 20));
    let region = Region { offset: 1 << 20, bytes: Some(1 << 30), job_increment: 0 };
    assert_eq!(offset.region, region);
    let half = with("range=(25,75)", "", "").region;
    assert_eq!((half.offset, half.bytes), (256 << 20, Some(512 << 20)));
    let bytes = with("range=(1m,3m)", "", "").region;
    assert_eq!((bytes.offset, bytes.bytes), (1 << 20, Some(2 << 20)));
    // The workload's counts before the storage's.
    let own = with("range=(25,75)", "range=(0,10)", "").region;
    assert_eq!((own.offset, own.bytes), (0, Some((1 << 30) / 10 / 4096 * 4096)));
    let past = "sd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1,range=(2g,3g)\nrd=rd1,wd=wd1,iorate=max\n";
    assert!(error(past).contains("wd=wd1: range= leaves no request of sd=sd1"));
}

#[test]
fn files_are_counted_and_named() {
    let names = |lun: &str| {
        let text = format!(
            "sd=s,lun={lun},count=(9,2),size=1g\nwd=wd1,sd=(s9-s10)\nrd=rd1,wd=wd1,iorate=max\n"
        );
        load(&text).names
    };
    assert_eq!(names("/v/f%03d.x"), ["f009.x", "f010.x"]);
    assert_eq!(names("/v/f%d"), ["f9", "f10"]);
    assert_eq!(names("/v/f*"), ["f9", "f10"]);
}

#[test]
fn opening() {
    for (flags, direct, stability, end_sync) in [
        ("o_direct", true, Stability::Unstable, false),
        ("directio", true, Stability::Unstable, false),
        ("o_sync", false, Stability::FileSync, false),
        ("(o_direct,o_dsync)", true, Stability::DataSync, false),
        ("o_rsync", false, Stability::DataSync, false),
        ("fsync", false, Stability::Unstable, true),
    ] {
        let load = with(&format!("openflags={flags}"), "", "");
        assert_eq!((load.direct, load.stability, load.end_sync), (direct, stability, end_sync));
    }
    assert_eq!(with("openflags=fsync", "openflags=o_sync", "").stability, Stability::FileSync);
    assert!(with("openflags=fsync", "openflags=o_sync", "openflags=o_direct").direct);
    assert!(!with("openflags=fsync", "openflags=o_sync", "openflags=o_direct").end_sync);
}

#[test]
fn mix_order_and_sizes() {
    assert_eq!(operation(&with("", "rdpct=30", "")).1, 30);
    assert_eq!(operation(&with("", "wrpct=30", "")).1, 70);
    for (seek, pattern, starts) in [
        ("100", Pattern::Random, Starts::Apart),
        ("rand", Pattern::Random, Starts::Apart),
        ("0", Pattern::Sequential, Starts::Interlocked),
        ("seq", Pattern::Sequential, Starts::Interlocked),
        ("sequential", Pattern::Sequential, Starts::Interlocked),
        ("20", Pattern::Mixed { random_percent: 20 }, Starts::Apart),
    ] {
        let load = with("", &format!("seekpct={seek}"), "");
        assert_eq!((operation(&load).0, load.starts), (pattern, starts), "{seek}");
    }
    assert_eq!(with("threads=4", "seekpct=seq,streams=4", "").starts, Starts::Apart);
    let text = format!("{BASE}wd=wd2,sd=sd1,seekpct=seq,streams=2\nrd=rd1,wd=wd2,iorate=max\n");
    assert!(error(&text).contains("wd=wd2: streams= can be applied"));
    let sizes = with("", "xfersize=(4k,50,8k,30,64k,20)", "");
    let share = |bytes, percent| SizeShare { bytes, percent };
    let wanted = [share(4096, 50), share(8192, 30), share(65_536, 20)];
    assert_eq!((sizes.read_sizes.as_slice(), sizes.block_bytes), (&wanted[..], 65_536));
    assert_eq!(sizes.write_sizes, sizes.read_sizes);
    let even = with("", "xfersize=(4k,8k,1k)", "").read_sizes;
    let wanted: Vec<_> = (4..=8).map(|k| share(k * 1024, 20)).collect();
    assert_eq!(even, wanted);
    let one = with("", "xfersize=(8k,100)", "");
    assert_eq!((one.block_bytes, one.read_sizes.len()), (8192, 0));
}

#[test]
fn eof_is_once_to_the_end() {
    let fill = with("threads=1", "seekpct=eof,rdpct=0,xfersize=64k", "elapsed=1h");
    // 0: the threads of a file together move it once.
    assert_eq!(fill.length, Length::Bytes { per_job: 0, at_most_s: Some(3600.0) });
    assert_eq!((fill.layout, fill.starts), (Layout::Sparse, Starts::Interlocked));
    let three = with("threads=3", "seekpct=-1,rdpct=0,xfersize=64k", "").length;
    assert_eq!(three, Length::Bytes { per_job: 0, at_most_s: Some(30.0) });
    let streams = with("threads=4", "seekpct=eof,streams=4", "").length;
    assert_eq!(streams, Length::Bytes { per_job: 256 << 20, at_most_s: Some(30.0) });
    let less = with("threads=4", "seekpct=eof", "maxdata=100m").length;
    assert_eq!(less, Length::Bytes { per_job: 25 << 20, at_most_s: Some(30.0) });
    let more = with("threads=4", "seekpct=eof", "maxdata=100g").length;
    assert_eq!(more, Length::Bytes { per_job: 0, at_most_s: Some(30.0) });
    let text = format!("{BASE}wd=wd2,sd=sd1,seekpct=eof\nrd=rd1,wd=wd2,iorate=max,warmup=5\n");
    let changes = read(&text).unwrap().changes;
    assert!(changes.contains(&"rd=rd1: what ends by bytes has no warm-up".to_owned()));
}

#[test]
fn max_data_ends_a_run() {
    let end = |rd: &str| with("threads=4", "", rd).length;
    assert_eq!(end("maxdata=1g"), Length::Bytes { per_job: 256 << 20, at_most_s: Some(30.0) });
    // Below 100 it counts the files.
    assert_eq!(end("maxdata=2"), Length::Bytes { per_job: 512 << 20, at_most_s: Some(30.0) });
}

#[test]
fn times() {
    let steps = steps(&format!(
        "{BASE}rd=rd1,wd=wd1,iorate=max,elapsed=2m,warmup=10,interval=5,pause=7\n\
         rd=rd2,wd=wd1,iorate=max\nrd=rd3,wd=wd1,iorate=max\n"
    ));
    let load = |at: usize| &steps[at].loads[0];
    assert_eq!((load(0).length, load(0).warmup_s), (Length::Seconds(120.0), 10.0));
    let delays: Vec<f64> = (0..3).map(|at| load(at).start_delay_s).collect();
    assert_eq!(delays, [0.0, 7.0, 0.0]);
}

#[test]
fn rates() {
    let rate = |rd: &str| {
        let load = run(rd)[0].loads[0].clone();
        (load.rate, load.pacing)
    };
    assert_eq!(rate("iorate=500"), (Rate::Operations(500.0), Pacing::Poisson));
    assert_eq!(rate("iorate=500,distribution=exp"), (Rate::Operations(500.0), Pacing::Poisson));
    assert_eq!(rate("iorate=500,distribution=det"), (Rate::Operations(500.0), Pacing::Even));
    assert_eq!(rate("iorate=MAX"), (Rate::Unlimited, Pacing::Even));
    let list = run("iorate=(100-300,100),forthreads=(1,2)");
    assert_eq!(
        names(&list),
        [
            "rd1 threads=1 iorate=100",
            "rd1 threads=1 iorate=200",
            "rd1 threads=1 iorate=300",
            "rd1 threads=2 iorate=100",
            "rd1 threads=2 iorate=200",
            "rd1 threads=2 iorate=300",
        ]
    );
    assert_eq!(list[4].loads[0].rate, Rate::Operations(200.0));
    assert_eq!(list[4].group, "rd1 threads=2");
    assert_eq!(list[4].axis.as_ref().unwrap().value, 200.0);
}

#[test]
fn curves() {
    let steps = run("iorate=curve");
    assert_eq!(
        names(&steps),
        ["rd1 max", "rd1 10%", "rd1 50%", "rd1 70%", "rd1 80%", "rd1 90%", "rd1 100%"]
    );
    assert!(steps.iter().all(|step| step.stop_over_ms.is_none() && !step.preparation));
    let stopped = run("iorate=curve,curve=(5-100,50),stopcurve=2.5,forthreads=(1,2)");
    assert_eq!(
        names(&stopped),
        [
            "rd1 threads=1 max",
            "rd1 threads=1 5%",
            "rd1 threads=1 55%",
            "rd1 threads=2 max",
            "rd1 threads=2 5%",
            "rd1 threads=2 55%",
        ]
    );
    let stops: Vec<_> = stopped.iter().map(|step| step.stop_over_ms).take(3).collect();
    assert_eq!(stops, [None, Some(2.5), Some(2.5)]);
    let of = "rd1 threads=2 max".to_owned();
    assert_eq!(stopped[5].loads[0].rate, Rate::Share { of, percent: 55.0 });
    assert_eq!(stopped[5].loads[0].pacing, Pacing::Poisson);
    assert_eq!((stopped[5].group.as_str(), stopped[5].loads[0].jobs), ("rd1 threads=2", 2));
}

#[test]
fn loops_nest_as_they_are_written() {
    let steps = run("iorate=max,forxfersize=(4k-16k,d),forthreads=(1,3)");
    let seen: Vec<_> =
        steps.iter().map(|step| (step.loads[0].block_bytes, step.loads[0].jobs)).collect();
    let wanted = [(4096, 1), (4096, 3), (8192, 1), (8192, 3), (16_384, 1), (16_384, 3)];
    assert_eq!(seen, wanted);
    assert_eq!(steps[3].name, "rd1 xfersize=8k threads=3");
    let turned = run("iorate=max,forthreads=(1,3),forxfersize=(4k,8k)");
    assert_eq!(turned[1].name, "rd1 threads=1 xfersize=8k");
    // A word that is given again, as after a default, takes its new place.
    let text = format!(
        "{BASE}rd=default,forthreads=(1,2)\nrd=rd1,wd=wd1,iorate=max,forrdpct=(0,100),forthreads=(5,6)\n"
    );
    let again = super::steps(&text);
    assert_eq!(again[1].name, "rd1 rdpct=0 threads=6");
    let mix: Vec<_> =
        run("iorate=max,rdpct=(0-100,50)").iter().map(|step| operation(&step.loads[0]).1).collect();
    assert_eq!(mix, [0, 50, 100]);
    let seeks: Vec<_> =
        run("iorate=max,forseekpct=(0,30,100)").iter().map(|s| operation(&s.loads[0]).0).collect();
    let wanted = [Pattern::Sequential, Pattern::Mixed { random_percent: 30 }, Pattern::Random];
    assert_eq!(seeks, wanted);
    let ends: Vec<_> = run("iorate=max,forseekpct=(seq,eof)")
        .iter()
        .map(|step| matches!(step.loads[0].length, Length::Bytes { .. }))
        .collect();
    assert_eq!(ends, [false, true]);
    assert_eq!(names(&run("iorate=max,forthreads=(2,2)")), ["rd1 threads=2", "rd1 threads=2 (2)"]);
    assert_eq!(
        read(&format!("{BASE}rd=r,wd=wd1,iorate=max,th=(1,2)\n")).unwrap().chart,
        Chart::Lines
    );
}

/// Two files and two workloads with these words, and a run.
fn pair(one: &str, two: &str, rd: &str) -> String {
    format!(
        "sd=sd1,lun=/v/f1,size=1g,threads=10\nsd=sd2,lun=/v/f2,size=1g,threads=10\n\
         wd=wd1,sd=sd*{one}\nwd=wd2,sd=sd*{two}\nrd=rd1,wd=(wd1,wd2),{rd}\n"
    )
}

fn jobs_and_rates(text: &str) -> Vec<(u32, Rate)> {
    let steps = steps(text);
    steps[0].loads.iter().map(|load| (load.jobs, load.rate.clone())).collect()
}

#[test]
fn workloads_of_one_run_share_threads_and_rate() {
    let rate = Rate::Operations;
    let even = jobs_and_rates(&pair("", ",rdpct=0", "iorate=1000"));
    assert_eq!(even, [(10, rate(500.0)), (10, rate(500.0))]);
    let skewed = jobs_and_rates(&pair(",skew=80", "", "iorate=1000"));
    assert_eq!(skewed, [(16, rate(800.0)), (4, rate(200.0))]);
    let own = jobs_and_rates(&pair(",iorate=100,priority=1", ",priority=2", "iorate=max"));
    assert_eq!(own, [(10, rate(100.0)), (10, Rate::Unlimited)]);
    let loops = jobs_and_rates(&pair("", "", "iorate=max,forthreads=1"));
    assert_eq!(loops, [(2, Rate::Unlimited), (2, Rate::Unlimited)]);
    // The second workload finds what the first laid out.
    let loads = steps(&pair("", "", "iorate=max"))[0].loads.clone();
    assert_eq!(loads[0].layout, Layout::Written { block_bytes: 128 << 10 });
    assert_eq!(loads[1].layout, Layout::Existing);
    let scenario = read(&pair(",skew=80", ",skew=20", "iorate=max")).unwrap();
    assert!(scenario.changes.iter().any(|change| change.contains("divide the threads")));
    for (one, two) in [(",skew=80", ",skew=30"), (",skew=50", ",skew=20"), (",skew=100", "")] {
        assert!(error(&pair(one, two, "iorate=max")).contains("skew"), "{one} {two}");
    }
    let curve = error(&pair(",iorate=100,priority=1", "", "iorate=curve"));
    assert!(curve.contains("iorate: a curve and a workload"), "{curve}");
    let parts = steps(&pair(",skew=80", "", "iorate=curve,curve=(50)"));
    let of = "rd1 max".to_owned();
    assert_eq!(parts[1].loads[0].rate, Rate::Share { of, percent: 40.0 });
}

#[test]
fn files_that_differ_are_loads_of_their_own() {
    let text = "sd=sd1,lun=/v/f1,size=1g\nsd=sd2,lun=/v/f2,size=2g\nsd=sd3,lun=/v/f3,size=1g\n\
                wd=wd1,sd=sd*\nrd=rd1,wd=wd1,iorate=300\n";
    let steps = steps(text);
    let mut seen: Vec<_> = steps[0]
        .loads
        .iter()
        .map(|load| (load.names.clone(), load.file_bytes >> 30, load.rate.clone()))
        .collect();
    seen.sort_by(|one, two| one.0.cmp(&two.0));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(seen[0], (names(&["f1", "f3"]), 1, Rate::Operations(200.0)));
    assert_eq!(seen[1], (names(&["f2"]), 2, Rate::Operations(100.0)));
}

#[test]
fn runs_choose_workloads_and_files() {
    let text = "sd=sd,lun=/v/f%d,count=(1,9),size=1g\nwd=default,rdpct=70\nwd=wd1,sd=sd*\nwd=wd2,sd=sd1\n\
                rd=a,wd=wd*,iorate=max\nrd=b,wd=wd2,sd=(sd2-sd4),iorate=max\nrd=c,sd=sd5,iorate=max\n";
    let steps = steps(text);
    assert_eq!(steps[0].loads.len(), 2 + 1);
    assert_eq!(steps[1].loads[0].names, ["f2", "f3", "f4"]);
    assert_eq!(steps[2].loads[0].names, ["f5"]);
    assert_eq!(operation(&steps[2].loads[0]).1, 70);
    let shared: Vec<_> = steps.iter().map(|step| step.shares_files).collect();
    assert_eq!(shared, [true, true, false]);
    let keep: Vec<_> = steps.iter().map(|step| step.loads[0].keep).collect();
    assert_eq!(keep, [true, true, false]);
    assert!(steps[1..].iter().flat_map(|s| &s.loads).all(|l| l.layout == Layout::Existing));
}

#[test]
fn layouts() {
    let layout = |general: &str, wd: &str| {
        let text = format!(
            "{general}\nsd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1,{wd}\nrd=rd1,wd=wd1,iorate=max\n"
        );
        load(&text).layout
    };
    let written = |block_bytes| Layout::Written { block_bytes };
    assert_eq!(layout("", "rdpct=0,seekpct=seq"), Layout::Sparse);
    assert_eq!(layout("", "rdpct=0,seekpct=100"), written(128 << 10));
    assert_eq!(layout("", "rdpct=50,seekpct=seq"), written(128 << 10));
    assert_eq!(layout("formatsds=yes", "rdpct=0,seekpct=seq"), written(128 << 10));
    assert_eq!(layout("formatsds=yes,formatxfersize=1m", "rdpct=0"), written(1 << 20));
    assert_eq!(layout("formatsds=no", "rdpct=100"), Layout::Sparse);
}

#[test]
fn validation() {
    let with = |validate: &str, wd: &str| {
        let text = format!(
            "validate={validate}\nsd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1,{wd}\nrd=rd1,wd=wd1,iorate=max\n"
        );
        let load = load(&text);
        (load.verify_reads, load.verify)
    };
    let all = Some(VerifyScope::All);
    assert_eq!(with("yes", "rdpct=100"), (true, None));
    assert_eq!(with("yes", "rdpct=50"), (true, None));
    assert_eq!(with("yes", "rdpct=0"), (false, all));
    assert_eq!(with("(read_after_write,time)", "rdpct=50"), (true, all));
    assert_eq!(with("no", "rdpct=0"), (false, None));
    let layouts = |validate: &str| -> Vec<Layout> {
        let text = format!(
            "validate={validate}\n{BASE}rd=rd1,wd=wd1,iorate=max,forxfersize=(4k,8k),forrdpct=(50,100)\n"
        );
        steps(&text).iter().map(|step| step.loads[0].layout).collect()
    };
    let written = Layout::Written { block_bytes: 128 << 10 };
    let existing = Layout::Existing;
    assert_eq!(layouts("yes"), [written, existing, written, existing]);
    assert_eq!(layouts("no"), [written, existing, existing, existing]);
}

#[test]
fn hosts() {
    let hosts = |hd: &str, sd: &str, wd: &str| {
        let text = format!(
            "{hd}sd=sd1,lun=/v/f1,size=1g{sd}\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1,iorate=max\n"
        );
        load(&text).hosts
    };
    let three =
        "hd=default,shell=ssh\nhd=localhost\nhd=one,system=1.2.3.4\nhd=two,system=1.2.3.5\n";
    assert_eq!(hosts(three, "", ""), ["localhost", "one", "two"]);
    assert_eq!(hosts(three, "", ",host=(one,two)"), ["one", "two"]);
    assert_eq!(hosts(three, "", ",host=t*"), ["two"]);
    assert_eq!(hosts(three, ",host=one", ""), ["one"]);
    assert_eq!(hosts(three, ",host=one,lun=/v/f1,host=two", ""), ["one", "two"]);
    assert_eq!(hosts("hd=localhost\n", "", ",host=localhost"), Vec::<String>::new());
    assert_eq!(hosts("", "", ",host=*"), Vec::<String>::new());
    let text = |sd: &str, wd: &str| {
        format!(
            "{three}sd=sd1,lun=/v/f1,size=1g{sd}\nwd=wd1,sd=sd1{wd}\nrd=rd1,wd=wd1,iorate=max\n"
        )
    };
    assert!(error(&text("", ",host=three")).contains("host: there is no hd=three"));
    assert!(error(&text(",host=one", ",host=two")).contains("none of its hosts has sd=sd1"));
    assert!(error(&text(",host=one,lun=/v/f2", "")).contains("hosts cannot have different files"));
    let clients =
        "hd=one,clients=5\nsd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n";
    assert_eq!(load(clients).clients, 5);
}

#[test]
fn hosts_may_be_names_addresses_and_accounts_of_machines_and_realms() {
    for (system, user) in [
        ("load01.example", "load"),
        ("10.0.0.1", "a.b-c_d"),
        ("[fe80::1%eth0]", "CLIENT1$"),
        ("_a-1", "7"),
        ("h", "me+x@REALM"),
    ] {
        let text = format!(
            "hd=one,system={system},user={user}\nsd=sd1,lun=/v/f1,size=1g\nwd=wd1,sd=sd1\n\
             rd=rd1,wd=wd1,iorate=max\n"
        );
        let host = read(&text).unwrap().hosts.remove(0);
        assert_eq!((host.system.as_deref(), host.user.as_deref()), (Some(system), Some(user)));
    }
}
