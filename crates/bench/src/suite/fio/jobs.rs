//! Loads as a job file of fio. Each job of a load becomes a section of its own, so that it gets its
//! own files, seed and figures.

use std::fmt::Write;
use std::path::Path;
use weir_load::error::BenchError;
use weir_load::workload::{
    Draw, FileOrder, Length, MinRate, MixOp, Operation, Pacing, Pattern, Positions, Rate,
    SizeShare, Stability, Starts, Workload, Zone,
};

/// Most jobs of one step: fio shares their memory in one piece.
const JOBS_MAX: u64 = 1024;

/// The name of the section of `job` of `load`.
pub(super) fn section(load: usize, job: u32) -> String {
    format!("l{load}j{job}")
}

/// The job file for `loads` on files below `root`.
pub fn job_file(loads: &[Workload], root: &Path) -> Result<String, BenchError> {
    let jobs: u64 = loads.iter().map(|load| u64::from(load.jobs)).sum();
    if jobs > JOBS_MAX {
        return Err(refused("", &format!("takes at most {JOBS_MAX} jobs, not {jobs}")));
    }
    let mut text = "[global]\nallow_file_create=0\nlat_percentiles=1\nclat_percentiles=0\n\
                    write_bw_log=log\nwrite_iops_log=log\nlog_avg_msec=1000\n"
        .to_owned();
    for (index, load) in loads.iter().enumerate() {
        load.check()?;
        check(load)?;
        let common = common(load)?;
        for job in 0..load.jobs {
            let own = own(load, job, root)?;
            // Writing to a string can't fail.
            let _ = write!(text, "\n[{}]\n{common}{own}", section(index, job));
        }
    }
    Ok(text)
}

/// The differences of fio from our own engine, for the reader.
pub(super) fn notes(loads: &[Workload]) -> Vec<String> {
    let mut all = Vec::new();
    let sequential_mix = |load: &Workload| {
        matches!(
            load.operation,
            Operation::Data { pattern: Pattern::Sequential, read_percent: 1..=99 }
        ) && load.positions == Positions::Shared
    };
    if loads.iter().any(sequential_mix) {
        all.push("fio reads and writes at two places of each file in a sequential mix".to_owned());
    }
    if loads.iter().any(|load| load.rate != Rate::Unlimited) {
        let note = "fio measures latencies at a fixed rate from when it sent a request, not from when \
                    the request was due: waiting behind a slow one is not in them";
        all.push(note.to_owned());
    }
    if loads.iter().any(|load| load.commit_every.is_some()) {
        all.push("fio does not count syncs among the operations".to_owned());
    }
    all
}

fn refused(load: &str, why: &str) -> BenchError {
    let of = if load.is_empty() { String::new() } else { format!(" for the load {load:?}") };
    BenchError::Workload(format!("fio{of} {why}; omit --engine fio"))
}

fn check(load: &Workload) -> Result<(), BenchError> {
    let no = |why: &str| Err(refused(&load.name, why));
    let Some((pattern, _)) = shape(load) else {
        return no("reads and writes alone, and this is another operation");
    };
    let sharers = load.jobs.div_ceil(load.files);
    if pattern != Pattern::Random && sharers > 1 && load.starts != Starts::Together {
        return no("supports only the same start position for sequential jobs that share a file");
    }
    if load.verify.is_some() || load.verify_reads {
        return no("does not support Weir's verification");
    }
    if !load.client_delays_us.is_empty() {
        return no("does not support network distance");
    }
    if load.latency_target.is_some() {
        return no("does not keep a latency as Weir does");
    }
    if load.part.is_some() || !load.hosts.is_empty() {
        return no("runs on this machine alone");
    }
    if matches!(load.rate, Rate::Share { .. }) {
        return no("needs a rate in numbers, not as a share of another step");
    }
    Ok(())
}

/// The order of a load and its reads among a hundred requests, where fio can apply it. A mix of
/// reads and writes in sequence is fio's `rw=rw`.
fn shape(load: &Workload) -> Option<(Pattern, u8)> {
    match (load.operation, load.mix.as_slice()) {
        (Operation::Data { pattern, read_percent }, _) => Some((pattern, read_percent)),
        (Operation::Mix, [reads, writes])
            if (reads.op, writes.op) == (MixOp::ReadSequential, MixOp::WriteSequential) =>
        {
            Some((Pattern::Sequential, reads.percent))
        }
        _ => None,
    }
}

/// The options that all jobs of a load have in common.
fn common(load: &Workload) -> Result<String, BenchError> {
    let mut lines = Vec::new();
    let mut put = |name: &str, value: String| lines.push(format!("{name}={value}\n"));
    let Some((pattern, read_percent)) = shape(load) else {
        return Ok(String::new());
    };
    let random = pattern != Pattern::Sequential;
    put("rw", format!("{}{}", direction(random, read_percent), modifier(load)));
    if load.visit.is_some_and(|visit| visit.again) {
        put("rw_sequencer", "identical".to_owned());
    }
    if (1..=99).contains(&read_percent) {
        put("rwmixread", read_percent.to_string());
    }
    if let Pattern::Mixed { random_percent } = pattern {
        put("percentage_random", random_percent.to_string());
    }
    if load.read_sizes.is_empty() && load.write_sizes.is_empty() {
        put("bs", load.block_bytes.to_string());
    } else {
        let [reads, writes] =
            [&load.read_sizes, &load.write_sizes].map(|sizes| split(sizes, load.block_bytes));
        put("bssplit", format!("{reads},{writes}"));
    }
    if let Some(align) = load.align_bytes {
        put("blockalign", align.to_string());
    }
    draw(load, &mut put)?;
    put("iodepth", load.depth.to_string());
    put("ioengine", engine(load).to_owned());
    put("direct", u8::from(load.direct).to_string());
    put("invalidate", u8::from(load.invalidate).to_string());
    match load.stability {
        Stability::Unstable => {}
        Stability::DataSync => put("sync", "dsync".to_owned()),
        Stability::FileSync => put("sync", "sync".to_owned()),
    }
    if let Some(every) = load.commit_every {
        put("fdatasync", every.to_string());
    }
    if load.end_sync {
        put("end_fsync", "1".to_owned());
    }
    if let Some(think) = load.think {
        put("thinktime", format!("{}us", think.us));
        put("thinktime_blocks", think.every.to_string());
    }
    if load.start_delay_s > 0.0 {
        put("startdelay", microseconds(load.start_delay_s));
    }
    if load.warmup().as_secs_f64() > 0.0 {
        put("ramp_time", microseconds(load.warmup_s));
    }
    let order = match load.file_order {
        FileOrder::InTurn => "roundrobin",
        FileOrder::ByOperation if random => "random",
        FileOrder::ByOperation => "sequential",
    };
    put("file_service_type", order.to_owned());
    regulated(load, &mut put);
    rate(load, &mut put)?;
    Ok(lines.concat())
}

/// The text behind the direction in `rw`.
fn modifier(load: &Workload) -> String {
    match (load.skip_bytes, load.visit) {
        (0, None) => String::new(),
        (0, Some(visit)) => format!(":{}", visit.requests),
        (skip, _) => format!(":{skip}"),
    }
}

fn draw(load: &Workload, put: &mut impl FnMut(&str, String)) -> Result<(), BenchError> {
    let distribution = match &load.draw {
        Draw::Independent => {
            put("norandommap", "1".to_owned());
            return Ok(());
        }
        Draw::Permuted => return Ok(()),
        Draw::Zipf { theta } => format!("zipf:{theta}"),
        Draw::Pareto { h } => format!("pareto:{h}"),
        Draw::Normal { deviation_percent } => format!("normal:{deviation_percent}"),
        Draw::Zoned { zones } => {
            if zones.iter().any(|zone| zone.size_percent.fract() != 0.0) {
                return Err(refused(&load.name, "knows only zones of whole percents of a file"));
            }
            let zone = |zone: &Zone| format!("{}/{}", zone.requests_percent, zone.size_percent);
            put("norandommap", "1".to_owned());
            format!("zoned:{}", zones.iter().map(zone).collect::<Vec<_>>().join(":"))
        }
    };
    put("random_distribution", distribution);
    Ok(())
}

/// A part of the activity of several loads, and a minimum.
fn regulated(load: &Workload, put: &mut impl FnMut(&str, String)) {
    if let Some(flow) = load.flow {
        put("flow", flow.weight.to_string());
        put("flow_id", flow.group.to_string());
        put("flow_sleep", flow.sleep_us.to_string());
    }
    match load.min_rate {
        None => {}
        Some(MinRate::Bytes(min)) => put("rate_min", format!("{min:.0}")),
        Some(MinRate::Operations(min)) => put("rate_iops_min", format!("{min:.0}")),
    }
}

const fn direction(random: bool, read_percent: u8) -> &'static str {
    match (random, read_percent) {
        (false, 100) => "read",
        (false, 0) => "write",
        (false, _) => "rw",
        (true, 100) => "randread",
        (true, 0) => "randwrite",
        (true, _) => "randrw",
    }
}

/// One at a time needs no queue; libaio queues only with `O_DIRECT`.
const fn engine(load: &Workload) -> &'static str {
    match (load.depth, load.direct) {
        (1, _) => "psync",
        (_, true) => "libaio",
        (_, false) => "io_uring",
    }
}

fn split(sizes: &[SizeShare], block: u32) -> String {
    if sizes.is_empty() {
        return format!("{block}/100");
    }
    let each: Vec<String> =
        sizes.iter().map(|share| format!("{}/{}", share.bytes, share.percent)).collect();
    each.join(":")
}

fn microseconds(seconds: f64) -> String {
    format!("{:.0}us", seconds * 1e6)
}

fn rate(load: &Workload, put: &mut impl FnMut(&str, String)) -> Result<(), BenchError> {
    let (name, all) = match load.rate {
        Rate::Operations(all) => ("rate_iops", all),
        Rate::Bytes(all) => ("rate", all),
        Rate::Unlimited | Rate::Share { .. } => return Ok(()),
    };
    let each = (all / f64::from(load.jobs)).round();
    if each < 1.0 {
        return Err(refused(&load.name, "does not support a rate below one per second for a job"));
    }
    let reads_percent = shape(load).map_or(100.0, |(_, reads)| f64::from(reads));
    // A rate holds for each direction by itself.
    let part = |percent: f64| (each * percent / 100.0).round();
    let (reads, writes) = (part(reads_percent), part(100.0 - reads_percent));
    put(name, format!("{:.0},{:.0}", reads.max(1.0), writes.max(1.0)));
    if load.pacing == Pacing::Poisson {
        put("rate_process", "poisson".to_owned());
    }
    Ok(())
}

/// The options of one job: files, extent, end, seed.
fn own(load: &Workload, job: u32, root: &Path) -> Result<String, BenchError> {
    let files: Vec<u32> = if load.files > job {
        (job..load.files).step_by(usize::try_from(load.jobs).unwrap_or(1)).collect()
    } else {
        vec![job % load.files]
    };
    let mut paths = Vec::with_capacity(files.len());
    for file in &files {
        let path = root.join(&load.directory).join(load.file_name(*file));
        paths.push(escaped(load, &path)?);
    }
    let offset = load.region.job_increment.saturating_mul(u64::from(job));
    let offset = load.region.offset.saturating_add(offset);
    let rest = load.file_bytes.saturating_sub(offset);
    let part = load.region.bytes.unwrap_or(rest).min(rest);
    if part < u64::from(load.block_bytes) {
        return Err(refused(&load.name, "would have nothing to do behind the end of a file"));
    }
    let mut text = format!(
        "filename={}\nsize={}\noffset={offset}\nrandseed={}\n",
        paths.join(":"),
        part.saturating_mul(files.len() as u64),
        load.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(job)) >> 1,
    );
    match load.length {
        Length::Seconds(seconds) => {
            let _ = write!(text, "time_based=1\nruntime={}\n", microseconds(seconds));
        }
        Length::Bytes { per_job, at_most_s } => {
            let _ = writeln!(text, "io_size={per_job}");
            if let Some(seconds) = at_most_s {
                let _ = writeln!(text, "runtime={}", microseconds(seconds));
            }
        }
        Length::Operations(all) => {
            let jobs = u64::from(load.jobs);
            let each = all / jobs + u64::from(u64::from(job) < all % jobs);
            if each == 0 {
                return Err(refused(&load.name, "needs at least one operation for each job"));
            }
            let largest = load.read_sizes.iter().chain(&load.write_sizes).map(|share| share.bytes);
            let largest = largest.max().unwrap_or(load.block_bytes);
            let bytes = each.saturating_mul(u64::from(largest));
            let _ = write!(text, "number_ios={each}\nio_size={bytes}\n");
        }
    }
    Ok(text)
}

/// A path as fio reads it: colons escaped. What would end a line's value is refused.
fn escaped(load: &Workload, path: &Path) -> Result<String, BenchError> {
    let text = path.to_string_lossy();
    if text.contains(['\n', ';', '#', '$', '\\', '\u{fffd}']) || text.trim() != text {
        let why = format!(
            "does not support {text:?}: it contains a character that job files do not permit"
        );
        return Err(refused(&load.name, &why));
    }
    Ok(text.replace(':', "\\:"))
}
