//! A job of fio as loads: one, or one for each clone or direction where a single load can't say
//! it.

use super::bag::Bag;
use super::files::{Group, files};
use super::flow;
use super::known::Treatment;
use super::shape::{self, Direction, Extent, Sizes};
use super::value::{self, TimeUnit};
use super::{engine, names, order};
use crate::lang::LangError;
use crate::lang::paths::Places;
use std::collections::{BTreeMap, BTreeSet};
use weir_core::limits::IO_BYTES_MAX;
use weir_load::workload::{
    Draw, FileOrder, LatencyTarget, Layout, Length, MinRate, Operation, Pacing, Pattern, Positions,
    Rate, Starts, VerifyScope, Workload,
};

/// Milliseconds over which a minimum of a rate is judged, which is fio's default.
const RATE_CYCLE_MS: u32 = 1000;

/// Remarks for the reader, gathered over all jobs.
#[derive(Default)]
pub(super) struct Notes {
    /// Sentences.
    pub(super) changes: Vec<String>,
    nothing: BTreeMap<&'static str, BTreeSet<&'static str>>,
    pub(super) reporting: BTreeSet<&'static str>,
}

impl Notes {
    /// A sentence, once.
    pub(super) fn say(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.changes.contains(&sentence) {
            self.changes.push(sentence);
        }
    }

    /// Notes an option by its row; refuses it if the row says so.
    pub(super) fn option(
        &mut self,
        name: &'static str,
        treatment: Treatment,
        value: Option<&str>,
    ) -> Result<(), String> {
        match treatment {
            Treatment::Drives(_) => {}
            Treatment::Reporting => {
                self.reporting.insert(name);
            }
            Treatment::NoEffect(why) => {
                self.nothing.entry(why).or_default().insert(name);
            }
            Treatment::Only(values, why) if !values.contains(&value.unwrap_or("1")) => {
                return Err(format!(
                    "is not supported ({why}); only {name}={} is",
                    values.join("|")
                ));
            }
            Treatment::Only(..) => {}
            Treatment::Refused(why) => return Err(format!("is not supported: {why}")),
        }
        Ok(())
    }

    /// All sentences.
    pub(super) fn sentences(self) -> Vec<String> {
        let mut all = self.changes;
        let join = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
        for (why, names) in self.nothing {
            all.push(format!("no effect here: {} ({why})", join(names)));
        }
        if !self.reporting.is_empty() {
            all.push(format!("reporting only: {}", join(self.reporting)));
        }
        all
    }
}

/// The loads of the job in `bag`. `serial` counts loads, so that none visits blocks in the order
/// of another; `fresh` is a seed that no earlier reading had.
pub(super) fn loads(
    bag: &Bag,
    places: &mut Places<'_>,
    notes: &mut Notes,
    serial: u64,
    fresh: u64,
) -> Result<Vec<Workload>, LangError> {
    engine::check(bag)?;
    bag.known()?;
    for set in bag.sets() {
        let value = set.value.as_deref().map(str::trim);
        let known = set.known;
        notes
            .option(known.name, known.treatment, value)
            .map_err(|why| bag.error(known.name, why))?;
    }
    let name = bag.text("name").unwrap_or(&bag.section).to_owned();
    let clones = bag.count("numjobs", 1)?.unwrap_or(1);
    if let Some(operation) = engine::of_names(bag) {
        let seed = shape::seed(bag)?.unwrap_or(fresh).wrapping_add(serial);
        return names::loads(bag, (name, clones), operation, seed, places);
    }
    let direction = shape::direction(bag)?;
    let sizes = shape::sizes(bag)?;
    let files = files(bag, &name, clones, places)?;
    let per_clone = u64::from(files.per_clone.max(1));
    let extent = shape::extent(bag, per_clone, u64::from(clones), sizes.single(direction))?;
    let mut common = common(bag, direction, &sizes, (extent, per_clone), notes)?;
    common.seed = shape::seed(bag)?.unwrap_or(fresh).wrapping_add(serial);
    ordered(bag, direction, &extent, &mut common)?;
    common.file_order = file_order(bag, per_clone, &common, notes)?;
    say(bag, direction, clones, &common, notes)?;
    let apart = files.groups.len() > 1;
    let mut all = Vec::new();
    for group in files.groups {
        let name = if apart { format!("{name}.{}", group.first) } else { name.clone() };
        let load = on_files(&common, name, group);
        for load in rated(bag, direction, load)? {
            load.check()
                .map_err(|error| bag.at.error(&format!("[{}]", bag.section), error.to_string()))?;
            all.push(load);
        }
    }
    for (index, load) in (0..).zip(&mut all) {
        load.seed = load.seed.wrapping_add(index);
    }
    Ok(all)
}

/// All but files, names and rates.
fn common(
    bag: &Bag,
    direction: Direction,
    sizes: &Sizes,
    (extent, files): (Extent, u64),
    notes: &mut Notes,
) -> Result<Workload, LangError> {
    let smallest = sizes.smallest(direction);
    let largest = sizes.reads.iter().chain(&sizes.writes).map(|share| share.bytes).max();
    if largest.is_some_and(|largest| largest > IO_BYTES_MAX) {
        let why = format!("is over {IO_BYTES_MAX} bytes, the most that one request carries");
        return Err(bag.error("bs", why));
    }
    if extent.region.bytes.unwrap_or(extent.file_bytes) < u64::from(smallest) {
        return Err(bag.error("size", "is smaller than a block"));
    }
    let per_job = per_job(bag, direction, (&extent, files), smallest)?;
    let (length, warmup_s) = shape::length(bag, per_job)?;
    let (depth, waits) = engine::depth(bag)?;
    if waits {
        notes.say(format!(
            "iodepth of [{}] counts nothing with ioengine={}, as in fio: one request at a time",
            bag.section,
            bag.text("ioengine").unwrap_or("psync")
        ));
    }
    let single = sizes.single(direction);
    let shares = |used: bool, of: &[weir_load::workload::SizeShare]| match single {
        None if used => of.to_vec(),
        _ => Vec::new(),
    };
    let direct = shape::direct(bag)?;
    let verifies = shape::verifies(bag)?;
    let (written, pre_read) = (written(bag, direction)?, bag.truth("pre_read")? == Some(true));
    let layout_block = if direct { 1 << 20 } else { sizes.largest_write().clamp(4096, 1 << 20) };
    let end_sync =
        bag.truth("end_fsync")? == Some(true) || bag.truth("fsync_on_close")? == Some(true);
    Ok(Workload {
        operation: shape::operation(bag, direction)?,
        block_bytes: smallest,
        read_sizes: shares(direction.reads(), &sizes.reads),
        write_sizes: shares(direction.writes(), &sizes.writes),
        align_bytes: align(bag, direction)?,
        depth,
        file_bytes: extent.file_bytes,
        region: extent.region,
        stability: shape::stability(bag)?,
        commit_every: shape::commit_every(bag)?.filter(|_| direction.writes()),
        end_sync: end_sync && direction.writes(),
        length,
        warmup_s,
        layout: if written {
            Layout::Written { block_bytes: layout_block }
        } else {
            Layout::Sparse
        },
        verify: (verifies && direction.writes()).then_some(VerifyScope::All),
        verify_reads: verifies && !direction.writes(),
        direct,
        starts: Starts::Together,
        flow: flow::flow(bag)?,
        latency_target: latency_target(bag)?,
        think: shape::think(bag)?,
        start_delay_s: start_delay(bag)?,
        invalidate: bag.truth("invalidate")?.unwrap_or(true) && !pre_read,
        ..Workload::default()
    })
}

/// Bytes that a job moves. A pass that leaves bytes out is one that moves less, as fio's.
fn per_job(
    bag: &Bag,
    direction: Direction,
    (extent, files): (&Extent, u64),
    block: u32,
) -> Result<u64, LangError> {
    let (skip, _) = order::modifier(bag, direction)?;
    let Ok(skip @ 1..) = u64::try_from(skip) else { return Ok(extent.per_job) };
    if bag.set("io_size").is_some() {
        return Ok(extent.per_job);
    }
    let loops = u64::from(bag.count("loops", 1)?.unwrap_or(1));
    let pass = order::one_pass(extent, skip, block).saturating_mul(files);
    Ok(extent.per_job.min(pass.saturating_mul(loops)))
}

/// The order of the blocks.
fn ordered(
    bag: &Bag,
    direction: Direction,
    extent: &Extent,
    load: &mut Workload,
) -> Result<(), LangError> {
    let draw = order::draw(bag, direction, extent)?;
    load.draw = if direction.random { draw } else { Draw::Permuted };
    (load.skip_bytes, load.visit) = order::modifier(bag, direction)?;
    if direction.mixed() && !direction.random {
        load.positions = Positions::ByDirection;
    }
    Ok(())
}

/// Do the files hold data before? fio writes them for jobs that read, and for `overwrite`.
fn written(bag: &Bag, direction: Direction) -> Result<bool, LangError> {
    Ok(direction.reads() || bag.truth("overwrite")? == Some(true))
}

fn align(bag: &Bag, direction: Direction) -> Result<Option<u32>, LangError> {
    let Some(text) = bag.text("ba") else { return Ok(None) };
    let [reads, writes] = value::parts(text);
    let base = bag.kb_base()?;
    let read = |part: Option<&str>| -> Result<Option<u32>, LangError> {
        let Some(part) = part else { return Ok(None) };
        let bytes = value::count(part, base).map_err(|why| bag.error("ba", why))?;
        if bytes == 0 {
            return Err(bag.error("ba", "is 0"));
        }
        Ok(Some(bytes))
    };
    let (reads, writes) = (read(reads)?, read(writes)?);
    if direction.mixed() && reads != writes {
        return Err(bag.error("ba", "must be the same for reads and writes"));
    }
    Ok(if direction.reads() { reads } else { writes })
}

/// `latency_target`, `latency_window`, `latency_percentile`, `latency_run`.
fn latency_target(bag: &Bag) -> Result<Option<LatencyTarget>, LangError> {
    let target = bag.time_us("latency_target", TimeUnit::Microseconds)?.filter(|us| *us > 0);
    let Some(us) = target else { return Ok(None) };
    let window = bag.time_us("latency_window", TimeUnit::Microseconds)?.filter(|us| *us > 0);
    let Some(window_us) = window else {
        let why = "needs latency_window: for how long each number of requests in flight is tried";
        return Err(bag.error("latency_target", why));
    };
    let percent = match bag.text("latency_percentile").map(str::parse::<f64>) {
        None => 100.0,
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => percent,
        Some(_) => return Err(bag.error("latency_percentile", "must be over 0, at most 100")),
    };
    let goes_on = bag.truth("latency_run")? == Some(true);
    Ok(Some(LatencyTarget { us, window_us, percent, goes_on }))
}

/// `rate_min`, `rate_iops_min`, of reads and of writes.
fn minimums(bag: &Bag) -> Result<[Option<MinRate>; 2], LangError> {
    let name = match (bag.set("rate_min"), bag.set("rate_iops_min")) {
        (None, None) => return Ok([None, None]),
        (Some(_), Some(_)) => {
            let why = "and rate_min are both given; omit one of them";
            return Err(bag.error("rate_iops_min", why));
        }
        (Some(_), None) => "rate_min",
        (None, Some(_)) => "rate_iops_min",
    };
    if bag.count("rate_cycle", 1)?.is_some_and(|period_ms| period_ms != RATE_CYCLE_MS) {
        let why = format!("is the period of {name}, which is {RATE_CYCLE_MS} ms here: omit it");
        return Err(bag.error("rate_cycle", why));
    }
    // Of one job.
    let rates = rates(bag, name, 1)?;
    Ok(rates.map(|rate| match rate {
        Some(Rate::Bytes(rate)) => Some(MinRate::Bytes(rate)),
        Some(Rate::Operations(rate)) => Some(MinRate::Operations(rate)),
        _ => None,
    }))
}

pub(super) fn start_delay(bag: &Bag) -> Result<f64, LangError> {
    if bag.text("startdelay").is_some_and(|text| text.contains(['-', ':'])) {
        return Err(bag.error("startdelay", "is a range; give one time"));
    }
    Ok(bag.seconds("startdelay")?.unwrap_or(0.0))
}

/// The load of `group`.
fn on_files(common: &Workload, name: String, group: Group) -> Workload {
    let mut load = Workload {
        name,
        jobs: group.jobs,
        files: u32::try_from(group.names.len()).unwrap_or(u32::MAX),
        directory: group.at.directory,
        target: group.at.target,
        names: group.names,
        ..common.clone()
    };
    if group.first > 0 {
        // An offset beyond all numbers lies beyond the file, which the check of the load reports.
        let moved = load.region.job_increment.saturating_mul(u64::from(group.first));
        load.region.offset = load.region.offset.saturating_add(moved);
    }
    load
}

/// `rate`, `rate_iops`, `rate_process`, `rate_min`, `rate_iops_min`. In a mix fio holds reads and
/// writes to rates of their own, whatever `rwmixread` says: two loads.
pub(super) fn rated(
    bag: &Bag,
    direction: Direction,
    load: Workload,
) -> Result<Vec<Workload>, LangError> {
    let pacing = match bag.text("rate_process") {
        None | Some("linear") => Pacing::Even,
        Some("poisson") => Pacing::Poisson,
        Some(other) => {
            let why = format!("is {other:?}; it must be linear or poisson");
            return Err(bag.error("rate_process", why));
        }
    };
    let [min_reads, min_writes] = minimums(bag)?;
    let min_rate = if direction.reads() { min_reads } else { min_writes };
    let name = match (bag.set("rate"), bag.set("rate_iops")) {
        (None, None) if direction.mixed() && (min_reads.is_some() || min_writes.is_some()) => {
            let why = "of a mix needs a rate of reads and of writes, which makes two loads of it";
            let option = if bag.set("rate_min").is_some() { "rate_min" } else { "rate_iops_min" };
            return Err(bag.error(option, why));
        }
        (None, None) => return Ok(vec![Workload { min_rate, ..load }]),
        (Some(_), Some(_)) => {
            return Err(bag.error("rate_iops", "and rate are both given; omit one of them"));
        }
        (Some(_), None) => "rate",
        (None, Some(_)) => "rate_iops",
    };
    let [reads, writes] = rates(bag, name, load.jobs)?;
    if !direction.mixed() {
        let rate = if direction.reads() { reads } else { writes };
        let rate = rate.unwrap_or_default();
        return Ok(vec![Workload { rate, pacing, min_rate, ..load }]);
    }
    let (Some(reads), Some(writes)) = (reads, writes) else {
        let why = "is given for one direction of a mix; give both, as in 1m,500k, or make two jobs";
        return Err(bag.error(name, why));
    };
    if !matches!(load.length, Length::Seconds(_)) || load.verify.is_some() {
        let why = "of a mix becomes a load of reads and one of writes, which needs time_based and no verify";
        return Err(bag.error(name, why));
    }
    let [flow_of_reads, flow_of_writes] = flow::parts(bag, &load, [&reads, &writes])?;
    let one = |kind: &str, read_percent, (rate, min_rate), flow, layout| Workload {
        name: format!("{} {kind}", load.name),
        operation: match load.operation {
            Operation::Data { pattern, .. } => Operation::Data { pattern, read_percent },
            other => other,
        },
        rate,
        pacing,
        min_rate,
        flow,
        layout,
        positions: Positions::Shared,
        ..load.clone()
    };
    Ok(vec![
        one("reads", 100, (reads, min_reads), flow_of_reads, load.layout),
        one("writes", 0, (writes, min_writes), flow_of_writes, Layout::Existing),
    ])
}

/// The rates of reads and writes, all jobs together.
#[expect(clippy::cast_precision_loss, reason = "rates need no more than 52 bits")]
fn rates(bag: &Bag, name: &str, jobs: u32) -> Result<[Option<Rate>; 2], LangError> {
    let base = bag.kb_base()?;
    let mut all = [None, None];
    for (rate, part) in all.iter_mut().zip(value::parts(bag.text(name).unwrap_or(""))) {
        let Some(part) = part else { continue };
        let each = value::number(part, base).map_err(|why| bag.error(name, why))?;
        let sum = each as f64 * f64::from(jobs);
        *rate = match (each, name) {
            (0, _) => None,
            (_, "rate" | "rate_min") => Some(Rate::Bytes(sum)),
            _ => Some(Rate::Operations(sum)),
        };
    }
    Ok(all)
}

/// `file_service_type` of a job with `files` files; notes it where another order is applied.
fn file_order(
    bag: &Bag,
    files: u64,
    load: &Workload,
    notes: &mut Notes,
) -> Result<FileOrder, LangError> {
    let order = bag.text("file_service_type").unwrap_or("roundrobin");
    let (order, every) = order.split_once(':').unwrap_or((order, "1"));
    if !["roundrobin", "sequential", "random"].contains(&order) {
        let why = format!("is {order:?}; roundrobin, sequential and random are accepted");
        return Err(bag.error("file_service_type", why));
    }
    let pattern = match load.operation {
        Operation::Data { pattern, .. } => Some(pattern),
        _ => None,
    };
    let mixes = matches!(pattern, Some(Pattern::Mixed { .. })) || load.visit.is_some();
    if order == "roundrobin" && every == "1" && files > 1 && !mixes {
        return Ok(FileOrder::InTurn);
    }
    let here = if pattern == Some(Pattern::Sequential) { "sequential" } else { "random" };
    if files > 1 && (order != here || every != "1") {
        notes.say(format!(
            "the {files} files of a job of [{}] are visited in {here} order, not {order}:{every}",
            bag.section
        ));
    }
    Ok(FileOrder::ByOperation)
}

/// Notes the differences from fio that no option shows.
fn say(
    bag: &Bag,
    direction: Direction,
    clones: u32,
    load: &Workload,
    notes: &mut Notes,
) -> Result<(), LangError> {
    let job = &bag.section;
    if bag.kb_base()? == value::KbBase::Binary {
        for name in ["bs", "size", "filesize", "io_size", "offset", "offset_increment", "rate"] {
            if let Some(text) =
                bag.text(name).filter(|text| text.to_ascii_lowercase().ends_with("ib"))
            {
                notes.say(format!(
                    "{name}={text} is a power of 1000 to fio unless kb_base=1000 is set; 8k is 8192, 8KiB is 8000"
                ));
            }
        }
    }
    if !load.direct && bag.text("ioengine") == Some("libaio") && load.depth > 1 {
        notes.say(format!("iodepth of [{job}] is kept; fio's libaio keeps it only with direct=1"));
    }
    if load.visit.is_some() && load.draw == Draw::Permuted {
        notes.say(format!(
            "[{job}]: each random place is the first of a visit once per pass; the blocks behind \
             it may be accessed again"
        ));
    }
    if matches!(load.draw, Draw::Zoned { .. }) && bag.truth("norandommap")? != Some(true) {
        notes.say(format!(
            "[{job}]: a block of a zone may be accessed again before all of them were, as with \
             norandommap"
        ));
    }
    let smallest =
        |sizes: &[weir_load::workload::SizeShare]| sizes.iter().map(|size| size.bytes).min();
    if direction.random
        && bag.set("ba").is_none()
        && smallest(&load.read_sizes) != smallest(&load.write_sizes)
        && direction.mixed()
    {
        notes.say(format!(
            "[{job}]: reads and writes both begin at multiples of {} bytes; fio aligns each to its \
             own smallest size",
            load.block_bytes
        ));
    }
    if load.verify.is_some() || load.verify_reads {
        notes.say(
            "verify: blocks carry address, generation and checksum of Weir's, not fio's header",
        );
    }
    if bag.truth("exitall")? == Some(true)
        && clones > 1
        && !matches!(load.length, Length::Seconds(_))
    {
        return Err(bag.error("exitall", "needs time_based here: jobs end by themselves"));
    }
    Ok(())
}
