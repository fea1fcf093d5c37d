//! From definitions to steps: who applies what to which files, in which order.

use super::load::{Load, Seek};
use super::run::{Rates, Run, Turn, Turns};
use super::storage::{Flags, General, Host, Storage};
use super::text::TextPosition;
use super::value;
use crate::lang::LangError;
use crate::scenario::{Axis, Step};
use std::collections::{BTreeMap, BTreeSet};
use weir_load::workload::{
    Layout, Length, Location, Operation, Pacing, Pattern, Rate, Region, Starts, VerifyScope,
    Workload,
};

/// Most steps of a scenario.
const STEPS_MAX: usize = 5000;
/// Most files of all steps together.
const STEP_FILES_MAX: usize = 2_000_000;
/// All of something, in thousandths of a percent.
const WHOLE: u64 = 100_000;

/// Everything that is defined, and the steps that are made of it.
pub(super) struct Builder<'a> {
    pub(super) general: General,
    pub(super) hosts: Vec<Host>,
    pub(super) storages: Vec<Storage>,
    pub(super) loads: Vec<Load>,
    /// The workload of runs that name only files.
    pub(super) default_load: Load,
    pub(super) changes: &'a mut Vec<String>,
    pub(super) steps: Vec<Step>,
    /// Files that are laid out, by directory and name: in which step, for requests of which size.
    laid: BTreeMap<(Location, String), (usize, u32)>,
    names: BTreeSet<String>,
    pause_s: f64,
    /// Files of all steps until now.
    step_files: usize,
}

/// One workload of a run, with what the run's loops say.
struct Part<'a> {
    load: Load,
    storages: Vec<&'a Storage>,
    hosts: Vec<String>,
    /// The part of the run's rate, in thousandths of a percent.
    part: u64,
    /// The part of the files' threads.
    weight: u64,
}

/// Files that one [`Workload`] can hold: all alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    at: Location,
    threads: u32,
    flags: Flags,
    file_bytes: u64,
    region: (u64, Option<u64>),
    align: Option<u32>,
    hosts: Vec<String>,
    layout: u32,
}

impl<'a> Builder<'a> {
    pub(super) fn new(default_load: Load, changes: &'a mut Vec<String>) -> Self {
        Self {
            general: General::default(),
            hosts: Vec::new(),
            storages: Vec::new(),
            loads: Vec::new(),
            default_load,
            changes,
            steps: Vec::new(),
            laid: BTreeMap::new(),
            names: BTreeSet::new(),
            pause_s: 0.0,
            step_files: 0,
        }
    }

    fn note(&mut self, change: String) {
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    /// Adds the steps of a run.
    pub(super) fn run(&mut self, run: &Run) -> Result<(), LangError> {
        let chosen = self.chosen(run)?;
        if run.rates == Rates::Curve && chosen.iter().any(|load| load.rate.is_some()) {
            let why = "a curve and a workload with iorate= of its own cannot be joined";
            return Err(run.place.error("iorate", why));
        }
        for turns in run.turns() {
            let mut names: Vec<String> = turns.varying.iter().map(|turn| turn.name()).collect();
            names.insert(0, run.name.clone());
            if run.rates == Rates::Curve {
                self.curve(run, &chosen, &turns, &names)?;
                continue;
            }
            let axis = turns.varying.last().map(|turn| turn.axis());
            // A line of a chart is everything but what its axis shows.
            let group = names.split_last().filter(|_| axis.is_some());
            let group = group.map_or_else(String::new, |(_, head)| head.join(" "));
            let rate = turns.all.iter().find_map(|turn| match turn {
                Turn::Rate(rate) => Some(Speed::Fixed(*rate)),
                _ => None,
            });
            let step = Step {
                name: names.join(" "),
                group,
                axis: axis.map(|(label, value)| Axis { label: label.to_owned(), value }),
                ..Step::default()
            };
            self.step(run, &chosen, &turns, step, &rate.unwrap_or(Speed::Max))?;
        }
        Ok(())
    }

    /// The highest rate first, and then parts of it.
    fn curve(
        &mut self,
        run: &Run,
        chosen: &[Load],
        turns: &Turns,
        names: &[String],
    ) -> Result<(), LangError> {
        let group = names.join(" ");
        let first = Step { name: format!("{group} max"), group: group.clone(), ..Step::default() };
        let of = self.step(run, chosen, turns, first, &Speed::Max)?;
        for percent in &run.curve {
            #[expect(clippy::cast_precision_loss, reason = "percents are at most 1000")]
            let value = *percent as f64;
            let step = Step {
                name: format!("{group} {percent}%"),
                group: group.clone(),
                axis: Some(Axis { label: "% of the highest rate".to_owned(), value }),
                stop_over_ms: run.stop_ms,
                ..Step::default()
            };
            self.step(run, chosen, turns, step, &Speed::Share(of.clone(), value))?;
        }
        Ok(())
    }

    /// Completes a step and adds it; gives its name.
    fn step(
        &mut self,
        run: &Run,
        chosen: &[Load],
        turns: &Turns,
        mut step: Step,
        speed: &Speed,
    ) -> Result<String, LangError> {
        if self.steps.len() >= STEPS_MAX || self.step_files >= STEP_FILES_MAX {
            let why = format!(
                "the text makes more than {STEPS_MAX} runs, or runs on more than {STEP_FILES_MAX} \
                 files together"
            );
            return Err(run.place.error(&format!("rd={}", run.name), why));
        }
        let storages = std::mem::take(&mut self.storages);
        let loads = self
            .parts(run, chosen, turns, &storages)
            .and_then(|parts| self.workloads(run, &parts, turns, speed));
        self.storages = storages;
        step.loads = loads?;
        self.step_files += step.loads.iter().map(|load| load.names.len()).sum::<usize>();
        let name = step.name.clone();
        let mut again = 1;
        while !self.names.insert(step.name.clone()) {
            again += 1;
            step.name = format!("{name} ({again})");
        }
        for load in &mut step.loads {
            load.start_delay_s = self.pause_s;
        }
        self.pause_s = run.pause_s;
        let name = step.name.clone();
        self.steps.push(step);
        Ok(name)
    }

    /// The workloads that a run names.
    fn chosen(&self, run: &Run) -> Result<Vec<Load>, LangError> {
        let what = format!("rd={}", run.name);
        if run.loads.is_empty() {
            if run.storages.is_empty() {
                return Err(run.place.error(&what, "wd= is missing: the workloads it runs"));
            }
            return Ok(vec![self.default_load.clone()]);
        }
        let mut found: Vec<Load> = Vec::new();
        for pattern in &run.loads {
            let before = found.len();
            for load in self.loads.iter().filter(|load| value::fits(pattern, &load.name)) {
                if found.iter().any(|other| other.name == load.name) {
                    let why = format!("wd={} is named twice", load.name);
                    return Err(run.place.error(&what, why));
                }
                found.push(load.clone());
            }
            if found.len() == before {
                let why = format!("there is no wd={pattern} before it");
                return Err(run.place.error(&what, why));
            }
        }
        Ok(found)
    }

    /// Each workload with its files, its hosts, its part, and the values of the loops.
    fn parts<'s>(
        &mut self,
        run: &Run,
        chosen: &[Load],
        turns: &Turns,
        storages: &'s [Storage],
    ) -> Result<Vec<Part<'s>>, LangError> {
        let parts = split_rate(chosen).map_err(|why| run.place.error("skew", why))?;
        let limited = !matches!(run.rates, Rates::Max);
        if !limited && chosen.iter().any(|load| load.skew.is_some()) {
            self.note(format!(
                "rd={}: at iorate=max the parts of skew= divide the threads; no workload is held \
                 back for another",
                run.name
            ));
        }
        let mut done = Vec::with_capacity(chosen.len());
        let (free, all) = (chosen.iter().filter(|load| load.rate.is_none()).count(), chosen.len());
        for (load, part) in chosen.iter().zip(parts) {
            // Workloads with a rate of their own have an even part of the threads.
            let weight = match load.rate {
                Some(_) => WHOLE / all.max(1) as u64,
                None => part * free as u64 / all.max(1) as u64,
            };
            let mut load = load.clone();
            for turn in &turns.all {
                match turn {
                    Turn::Bytes(bytes) => load.set_bytes(*bytes),
                    Turn::Reads(percent) => load.read_percent = *percent,
                    Turn::Seek(seek) => load.seek = *seek,
                    Turn::Threads(_) | Turn::Rate(_) => {}
                }
            }
            let storages = if run.storages.is_empty() {
                select(storages, &load.storages, &load.place, &format!("wd={}", load.name))?
            } else {
                select(storages, &run.storages, &run.place, &format!("rd={}", run.name))?
            };
            let hosts = self.hosts_of(&load.hosts, &load.place)?;
            done.push(Part { load, storages, hosts, part, weight });
        }
        Ok(done)
    }

    /// Labels of hosts that fit; all that are defined if nothing is said.
    fn hosts_of(
        &self,
        patterns: &[String],
        place: &TextPosition,
    ) -> Result<Vec<String>, LangError> {
        let labels: Vec<&str> = self.hosts.iter().map(|host| host.label.as_str()).collect();
        for pattern in patterns {
            let known = pattern == "*" || labels.is_empty() && pattern == "localhost";
            if !known && !labels.iter().any(|label| value::fits(pattern, label)) {
                return Err(place.error("host", format!("there is no hd={pattern} before it")));
            }
        }
        if labels == ["localhost"] {
            return Ok(Vec::new());
        }
        let wanted = |label: &&str| {
            patterns.is_empty() || patterns.iter().any(|pattern| value::fits(pattern, label))
        };
        Ok(labels.into_iter().filter(wanted).map(str::to_owned).collect())
    }

    /// The loads of a step.
    fn workloads(
        &mut self,
        run: &Run,
        parts: &[Part<'_>],
        turns: &Turns,
        speed: &Speed,
    ) -> Result<Vec<Workload>, LangError> {
        let threads = self.threads(run, parts, turns);
        let mut done: Vec<Workload> = Vec::new();
        let mut ends: Vec<bool> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let mut groups: BTreeMap<Alike, Vec<&Storage>> = BTreeMap::new();
            for storage in &part.storages {
                let own = threads.get(&(at, storage.name.as_str())).copied().unwrap_or(1);
                let alike = self.alike(run, part, storage, own)?;
                groups.entry(alike).or_default().push(storage);
            }
            let several = groups.len() > 1;
            for (number, (alike, storages)) in groups.into_iter().enumerate() {
                let mut load = self.workload(run, part, &alike, &storages)?;
                load.rate = speed.of(part, storages.len());
                if load.rate != Rate::Unlimited && !run.even {
                    load.pacing = Pacing::Poisson;
                }
                if several {
                    load.name = format!("{} {}", load.name, number + 1);
                }
                done.push(load);
                ends.push(part.load.seek == Seek::Eof);
            }
        }
        self.lengths(run, parts, &mut done, &ends);
        self.verify(&mut done);
        for load in &done {
            check(run, load)?;
        }
        Ok(done)
    }

    /// The threads of each workload on each file: its part of those of the file.
    fn threads<'p>(
        &mut self,
        run: &Run,
        parts: &'p [Part<'_>],
        turns: &Turns,
    ) -> BTreeMap<(usize, &'p str), u32> {
        let said = turns.all.iter().find_map(|turn| match turn {
            Turn::Threads(threads) => Some(*threads),
            _ => None,
        });
        let mut users: BTreeMap<&str, (u32, Vec<usize>)> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            for storage in &part.storages {
                let threads = said.unwrap_or(storage.threads);
                users.entry(&storage.name).or_insert((threads, Vec::new())).1.push(at);
            }
        }
        let mut done = BTreeMap::new();
        for (name, (threads, users)) in users {
            let weights: Vec<u64> = users
                .iter()
                .filter_map(|at| parts.get(*at))
                .map(|part| part.weight.max(1))
                .collect();
            if u64::from(threads) < weights.len() as u64 {
                self.note(format!(
                    "rd={}: sd={name} has fewer threads than workloads; each has one",
                    run.name
                ));
            }
            done.extend(users.into_iter().map(|at| (at, name)).zip(deal(threads, &weights)));
        }
        done
    }

    /// The properties that a file shares with others.
    fn alike(
        &mut self,
        run: &Run,
        part: &Part<'_>,
        storage: &Storage,
        threads: u32,
    ) -> Result<Alike, LangError> {
        let load = &part.load;
        let region = match load.range.or(storage.range) {
            None if storage.offset == 0 => (0, None),
            None => (storage.offset, Some(storage.size)),
            Some(extent) => {
                let (from, bytes) = extent.of(storage.size, load.block_bytes());
                if bytes < u64::from(load.block_bytes()) {
                    let why = format!("range= leaves no request of sd={}", storage.name);
                    return Err(load.place.error(&format!("wd={}", load.name), why));
                }
                (storage.offset + from, Some(bytes))
            }
        };
        let mut hosts = part.hosts.clone();
        if !storage.hosts.is_empty() {
            let own = self.hosts_of(&storage.hosts, &load.place)?;
            hosts.retain(|host| own.contains(host));
            if hosts.is_empty() && !own.is_empty() {
                let why = format!("none of its hosts has sd={}", storage.name);
                return Err(load.place.error(&format!("wd={}", load.name), why));
            }
        }
        Ok(Alike {
            at: storage.at.clone(),
            threads,
            flags: run.flags.or(load.flags).unwrap_or(storage.flags),
            file_bytes: storage.offset + storage.size,
            region,
            align: storage.align,
            hosts,
            layout: self.layout(load, storage),
        })
    }

    /// The layout of a file at this use, as a number that sorts: 0 exists, 1 a hole, else bytes in
    /// one write.
    fn layout(&mut self, load: &Load, storage: &Storage) -> u32 {
        let fills = load.read_percent == 0 && matches!(load.seek, Seek::Sequential | Seek::Eof);
        let file = (storage.at.clone(), storage.file.clone());
        let now = (self.steps.len(), load.block_bytes());
        if let Some(before) = self.laid.get(&file).copied() {
            if !self.general.validate || before.0 == now.0 || before.1 == now.1 {
                return 0;
            }
            // A compared block is found by the blocks it was written in.
            self.laid.insert(file, now);
            self.note(
                "with validate= files are written anew before a run with requests of another size"
                    .to_owned(),
            );
            return self.general.format_bytes;
        }
        self.laid.insert(file, now);
        match self.general.format {
            Some(true) => self.general.format_bytes,
            Some(false) => 1,
            None if fills => 1,
            None => self.general.format_bytes,
        }
    }

    /// A load on files that are alike, without its rate, length and verification.
    fn workload(
        &self,
        run: &Run,
        part: &Part<'_>,
        alike: &Alike,
        storages: &[&Storage],
    ) -> Result<Workload, LangError> {
        let load = &part.load;
        let refused = |why: &str| load.place.error(&format!("wd={}", load.name), why);
        let files = u32::try_from(storages.len()).map_err(|_| refused("it has too many files"))?;
        let jobs = alike.threads.checked_mul(files);
        let jobs = jobs.ok_or_else(|| refused("it has too many threads"))?;
        let pattern = match load.seek {
            Seek::Random => Pattern::Random,
            Seek::Sequential | Seek::Eof => Pattern::Sequential,
            Seek::Mixed(random_percent) => Pattern::Mixed { random_percent },
        };
        let starts = match (pattern, load.streams) {
            (Pattern::Sequential, Some(streams)) if streams == alike.threads => Starts::Apart,
            (_, Some(_)) => {
                let why = "streams= can be applied to sequential workloads, as many as threads";
                return Err(refused(why));
            }
            // The threads of a file take turns at one sequence.
            (Pattern::Sequential, None) => Starts::Interlocked,
            (_, None) => Starts::Apart,
        };
        let sizes = if load.sizes.len() > 1 { load.sizes.clone() } else { Vec::new() };
        let clients = self.hosts.iter().map(|host| host.clients).max().unwrap_or(1);
        Ok(Workload {
            name: load.name.clone(),
            operation: Operation::Data { pattern, read_percent: load.read_percent },
            block_bytes: load.block_bytes(),
            depth: 1,
            jobs,
            clients: clients.min(jobs).max(1),
            files,
            file_bytes: alike.file_bytes,
            stability: alike.flags.stability(),
            length: Length::Seconds(run.elapsed_s),
            warmup_s: run.warmup_s,
            layout: match alike.layout {
                0 => Layout::Existing,
                1 => Layout::Sparse,
                block_bytes => Layout::Written { block_bytes },
            },
            directory: alike.at.directory.clone(),
            target: alike.at.target.clone(),
            direct: alike.flags.direct,
            names: storages.iter().map(|storage| storage.file.clone()).collect(),
            read_sizes: sizes.clone(),
            write_sizes: sizes,
            align_bytes: alike.align,
            starts,
            region: Region { offset: alike.region.0, bytes: alike.region.1, job_increment: 0 },
            end_sync: alike.flags.end_sync,
            hosts: alike.hosts.clone(),
            ..Workload::default()
        })
    }

    /// Loads that end by what they moved.
    fn lengths(&mut self, run: &Run, parts: &[Part<'_>], loads: &mut [Workload], ends: &[bool]) {
        let files: BTreeMap<&str, u64> = parts
            .iter()
            .flat_map(|part| &part.storages)
            .map(|storage| (storage.name.as_str(), storage.size))
            .collect();
        let sizes = files.values().fold(0_u64, |sum, size| sum.saturating_add(*size));
        let data = run.max_data.map(|bytes| match bytes {
            times @ 0..100 => sizes.saturating_mul(times),
            bytes => bytes,
        });
        let jobs: u64 = loads.iter().map(|load| u64::from(load.jobs)).sum();
        let mut without_warmup = false;
        for (load, to_end) in loads.iter_mut().zip(ends) {
            let block = u64::from(load.block_bytes);
            let each = |bytes: u64, jobs: u64| {
                bytes.div_ceil(jobs.max(1)).div_ceil(block).saturating_mul(block)
            };
            let region = load.region.bytes.unwrap_or(load.file_bytes);
            let end = to_end.then(|| each(region, u64::from(load.jobs / load.files.max(1))));
            let most = data.map(|bytes| each(bytes, jobs));
            let per_job = match (end, most) {
                (Some(end), Some(most)) if most < end => most,
                // The threads of a file end where their common sequence does.
                (Some(_), _) if load.starts == Starts::Interlocked => 0,
                (Some(end), _) => end,
                (None, Some(most)) => most,
                (None, None) => continue,
            };
            load.length = Length::Bytes { per_job, at_most_s: Some(run.elapsed_s) };
            without_warmup |= run.warmup_s > 0.0;
        }
        if without_warmup {
            self.note(format!("rd={}: what ends by bytes has no warm-up", run.name));
        }
        if ends.contains(&true) && ends.contains(&false) {
            self.note(format!(
                "rd={}: it ends with the last of its workloads; Vdbench ends it when all with \
                 seekpct=eof have",
                run.name
            ));
        }
    }

    /// Compares and reads back, where that was asked for.
    fn verify(&mut self, loads: &mut [Workload]) {
        if !self.general.validate {
            return;
        }
        let mut users: BTreeMap<(Location, String), u32> = BTreeMap::new();
        for load in loads.iter() {
            for name in &load.names {
                *users.entry((load.location(), name.clone())).or_default() += 1;
            }
        }
        for load in loads {
            load.verify_reads = load.reads();
            // Data that is only written is compared when it is read back.
            if !load.writes() || !self.general.read_back && load.reads() {
                continue;
            }
            let own = |name: &String| users.get(&(load.location(), name.clone()));
            if load.names.iter().all(|name| own(name) == Some(&1)) {
                load.verify = Some(VerifyScope::All);
            } else {
                self.note("files that several workloads use are not read back".to_owned());
            }
        }
    }

    /// Says which steps leave their files to those after them.
    pub(super) fn finish(mut self) -> Vec<Step> {
        let last = self.steps.len().saturating_sub(1);
        for step in self.steps.iter_mut().take(last) {
            step.shares_files = true;
            for load in &mut step.loads {
                load.keep = true;
            }
        }
        self.steps
    }
}

/// Refuses what no engine can do, at the run that asks for it.
fn check(run: &Run, load: &Workload) -> Result<(), LangError> {
    let mut closed = load.clone();
    if matches!(closed.rate, Rate::Share { .. }) {
        closed.rate = Rate::Operations(1.0);
    }
    let what = format!("rd={} wd={}", run.name, load.name);
    closed.check().map_err(|error| run.place.error(&what, error.to_string()))
}

impl Load {
    /// The largest request.
    pub(super) fn block_bytes(&self) -> u32 {
        self.sizes.iter().map(|share| share.bytes).max().unwrap_or(4096)
    }

    fn set_bytes(&mut self, bytes: u32) {
        self.sizes = vec![weir_load::workload::SizeShare { bytes, percent: 100 }];
    }
}

/// The speed of a step.
enum Speed {
    Max,
    /// Requests a second.
    Fixed(u64),
    /// A percentage of the rate that the step of this name reached.
    Share(String, f64),
}

impl Speed {
    /// The part of a workload on so many of its files.
    #[expect(clippy::cast_precision_loss, reason = "rates and counts are far below 2^53")]
    fn of(&self, part: &Part<'_>, files: usize) -> Rate {
        let all = part.storages.len().max(1);
        let own =
            |rate: f64, part: u64| rate * files as f64 * part as f64 / (all as f64 * WHOLE as f64);
        match (self, part.load.rate) {
            (_, Some(rate)) => Rate::Operations(own(rate as f64, WHOLE)),
            (Self::Max, None) => Rate::Unlimited,
            (Self::Fixed(rate), None) => Rate::Operations(own(*rate as f64, part.part)),
            (Self::Share(of, percent), None) => {
                Rate::Share { of: of.clone(), percent: own(*percent, part.part) }
            }
        }
    }
}

/// The part of a run's rate that each workload has: its skew, or an even part of what is left;
/// nothing for those with a rate of their own.
fn split_rate(loads: &[Load]) -> Result<Vec<u64>, String> {
    let free = || loads.iter().filter(|load| load.rate.is_none());
    let said: u64 = free().filter_map(|load| load.skew).sum();
    let open = free().filter(|load| load.skew.is_none()).count() as u64;
    let left = WHOLE.checked_sub(said).ok_or("the workloads' skew is more than 100 together")?;
    if open == 0 && left > 1000 && free().count() > 0 {
        return Err("the workloads' skew is less than 100 together".to_owned());
    }
    if open > 0 && left == 0 {
        return Err("the workloads' skew leaves nothing for those without".to_owned());
    }
    let each = left.checked_div(open).unwrap_or(0);
    let part = |load: &Load| match load.rate {
        Some(_) => 0,
        None => load.skew.unwrap_or(each),
    };
    Ok(loads.iter().map(part).collect())
}

/// Deals `total` by weight, at least one each; what rounding leaves goes to the first.
fn deal(total: u32, weights: &[u64]) -> Vec<u32> {
    let sum: u64 = weights.iter().sum::<u64>().max(1);
    let mut dealt: Vec<u32> = weights
        .iter()
        .map(|weight| {
            let part = u128::from(total) * u128::from(*weight) / u128::from(sum);
            u32::try_from(part).unwrap_or(total).max(1)
        })
        .collect();
    let mut left = total.saturating_sub(dealt.iter().sum());
    for part in &mut dealt {
        let more = left.min(1);
        *part += more;
        left -= more;
    }
    let mut over = dealt.iter().sum::<u32>().saturating_sub(total);
    while over > 0 {
        let Some(most) = dealt.iter_mut().max().filter(|most| **most > 1) else { break };
        *most -= 1;
        over -= 1;
    }
    dealt
}

/// The storages that fit, each once.
fn select<'s>(
    storages: &'s [Storage],
    patterns: &[String],
    place: &TextPosition,
    what: &str,
) -> Result<Vec<&'s Storage>, LangError> {
    let mut found: Vec<&Storage> = Vec::new();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for pattern in patterns {
        let mut any = false;
        for storage in storages.iter().filter(|storage| value::fits(pattern, &storage.name)) {
            any = true;
            if !taken.insert(&storage.name) {
                return Err(place.error(what, format!("sd={} is named twice", storage.name)));
            }
            found.push(storage);
        }
        if !any {
            return Err(place.error(what, format!("there is no sd={pattern} before it")));
        }
    }
    if found.is_empty() {
        return Err(place.error(what, "sd= is missing: the files it uses"));
    }
    Ok(found)
}
