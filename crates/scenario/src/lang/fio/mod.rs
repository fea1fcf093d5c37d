//! The language of fio 3.33: job files and command lines. [`known`] is the table of what becomes of
//! each option; `docs/bench-languages.md` prints it.
//!
//! Jobs that run at the same time are the loads of one step; `stonewall` begins the next.

mod bag;
mod cli;
mod engine;
mod files;
mod flow;
pub(super) mod known;
mod load;
mod names;
mod order;
mod shape;
mod text;
mod value;

use super::paths::Places;
use super::{LangError, Options, Source};
use crate::scenario::{Cache, Chart, Language, Scenario, Step};
use bag::Bag;
use load::Notes;
use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_load::workload::{Layout, Length, Location, Workload};

/// Directory of the target in which files lie that no map places.
const DIRECTORY: &str = "weir-bench";
/// Most loads of a scenario.
const LOADS_MAX: usize = 4096;

/// Reads a job file.
pub(super) fn scenario(source: &Source, options: &Options) -> Result<Scenario, LangError> {
    let mut reader = text::Reader::new(&source.name, options);
    reader.file(source)?;
    let jobs = Jobs { bags: reader.jobs, begins: vec![0], file: source.name.clone() };
    let mut scenario = build(&jobs, Notes::default(), options)?;
    scenario.name = source.stem();
    scenario.title.clone_from(&scenario.name);
    scenario.text = Some(source.text.clone());
    Ok(scenario)
}

/// Reads a command line, the program's name first.
pub(super) fn command(words: &[String], options: &Options) -> Result<Scenario, LangError> {
    let said = cli::read(words.get(1..).unwrap_or_default(), options)?;
    let mut notes = Notes::default();
    for known in &said.program {
        notes
            .option(known.name, known.treatment, None)
            .map_err(|why| LangError::whole("the command line", why).option(known.name))?;
    }
    let mut begins = said.begins;
    let mut bags = said.reader.jobs;
    if !said.sections.is_empty() {
        for wanted in &said.sections {
            if !bags.iter().any(|bag| bag.section == *wanted) {
                let message = format!("{wanted:?} is not a section of the job file");
                return Err(LangError::whole("the command line", message).option("section"));
            }
        }
        // Steps begin by stonewall alone then: positions of jobs left out count no more.
        begins.clear();
        bags.retain(|bag| said.sections.contains(&bag.section));
    }
    let jobs = Jobs { bags, begins, file: "the command line".to_owned() };
    let mut scenario = build(&jobs, notes, options)?;
    if let Some(file) = said.files.first() {
        scenario.name = file.stem();
        scenario.text = Some(file.text.clone()).filter(|_| said.files.len() == 1);
    }
    scenario.title.clone_from(&scenario.name);
    Ok(scenario)
}

/// The jobs of a text, and where steps begin whatever the jobs say.
struct Jobs {
    bags: Vec<Bag>,
    begins: Vec<usize>,
    file: String,
}

fn build(jobs: &Jobs, mut notes: Notes, options: &Options) -> Result<Scenario, LangError> {
    if jobs.bags.is_empty() {
        return Err(LangError::whole(&jobs.file, "holds no job; begin one with [name] or --name="));
    }
    let fresh = fresh_seed();
    let mut places = Places::new(options, DIRECTORY);
    let mut steps: Vec<Step> = Vec::new();
    let mut about = Vec::new();
    let mut target = None;
    let mut count = 0;
    // Jobs of the last step.
    let mut together: Vec<&str> = Vec::new();
    for (index, bag) in jobs.bags.iter().enumerate() {
        let loads = load::loads(bag, &mut places, &mut notes, count as u64, fresh)?;
        count += loads.len();
        if count > LOADS_MAX {
            return Err(bag.error("numjobs", format!("makes more than {LOADS_MAX} loads in all")));
        }
        let waits = waits(bag, jobs.bags.get(..index).unwrap_or(&[]), &together)?;
        let wall = waits || bag.truth("stonewall")? == Some(true) || jobs.begins.contains(&index);
        if wall {
            together.clear();
        }
        together.push(&bag.section);
        note_target(bag, &mut target)?;
        let filled = bag.truth("pre_read")? == Some(true);
        let step = match steps.last_mut() {
            Some(step) if !wall => step,
            _ => {
                steps.push(Step::default());
                match steps.last_mut() {
                    Some(step) => step,
                    None => continue,
                }
            }
        };
        if filled {
            step.cache = Cache::Included;
        }
        step.loads.extend(loads);
        check_end(bag, step)?;
        about.extend(bag.text("description").map(str::to_owned));
    }
    name_steps(&mut steps);
    share_files(&mut steps, &jobs.file)?;
    let mut changes = places.changes();
    changes.extend(notes.sentences());
    about.dedup();
    let name = jobs.bags.first().map_or_else(String::new, |bag| bag.section.clone());
    Ok(Scenario {
        title: name.clone(),
        name,
        about: about.join(" "),
        source: None,
        language: Language::Fio,
        chart: Chart::Bars,
        steps,
        changes,
        waiting: None,
        target,
        addresses: None,
        text: None,
        hosts: Vec::new(),
    })
}

/// `wait_for`: does the job of `bag` begin a step, because it waits for the only job of the last
/// one? Those of steps before have ended anyway.
fn waits(bag: &Bag, before: &[Bag], together: &[&str]) -> Result<bool, LangError> {
    let Some(wanted) = bag.text("wait_for") else { return Ok(false) };
    if !before.iter().any(|bag| bag.section == wanted) {
        return Err(bag.error("wait_for", format!("there is no job [{wanted}] before it")));
    }
    match together {
        [only] => Ok(*only == wanted),
        several if several.contains(&wanted) => {
            let why = "is one of several jobs that run at the same time, of which the others would \
                       go on; begin a step with stonewall";
            Err(bag.error("wait_for", why))
        }
        _ => Ok(false),
    }
}

/// `nfs_url`: the same for all jobs.
fn note_target(bag: &Bag, target: &mut Option<String>) -> Result<(), LangError> {
    let Some(url) = bag.text("nfs_url") else { return Ok(()) };
    if !url.starts_with("nfs://") {
        return Err(bag.error("nfs_url", "must start with nfs://, as in nfs://127.0.0.1/vol"));
    }
    match target {
        Some(other) if other != url => {
            Err(bag.error("nfs_url", format!("is another one than {other}; a run has one target")))
        }
        _ => {
            *target = Some(url.to_owned());
            Ok(())
        }
    }
}

/// `exitall` ends a step with its first load: no difference where all end at one time.
fn check_end(bag: &Bag, step: &Step) -> Result<(), LangError> {
    if bag.truth("exitall")? != Some(true) || step.loads.len() < 2 {
        return Ok(());
    }
    let end = |load: &Workload| match load.length {
        Length::Seconds(seconds) => Some(load.start_delay_s + load.warmup_s + seconds),
        _ => None,
    };
    let first = step.loads.first().and_then(end);
    if first.is_none() || step.loads.iter().any(|load| end(load) != first) {
        let why = "needs loads that all end at the same time: a step ends with its last load here";
        return Err(bag.error("exitall", why));
    }
    Ok(())
}

/// Names steps by their loads, each differently.
fn name_steps(steps: &mut [Step]) {
    let mut taken = BTreeSet::new();
    for step in steps {
        let names: Vec<&str> = step.loads.iter().map(|load| load.name.as_str()).collect();
        let name = match names.as_slice() {
            [first, _, _, _, ..] => format!("{first} and {} others", names.len() - 1),
            few => few.join(" + "),
        };
        let mut unique = name.clone();
        let mut turn = 1;
        while !taken.insert(unique.clone()) {
            turn += 1;
            unique = format!("{name} ({turn})");
        }
        step.name = unique;
    }
}

type FilesOf = (Location, Vec<String>);

fn files_of(load: &Workload) -> FilesOf {
    let mut names = load.names.clone();
    names.sort_unstable();
    (load.location(), names)
}

/// Loads that use the same files: the first lays them out, as large as any wants them; steps
/// before the last that uses them keep them.
fn share_files(steps: &mut [Step], file: &str) -> Result<(), LangError> {
    for step in &mut *steps {
        let all: Vec<FilesOf> = step.loads.iter().map(files_of).collect();
        for index in 0..all.len() {
            let Some(own) = all.get(index) else { continue };
            let first = all.iter().position(|other| overlap(own, other));
            let Some(first) = first.filter(|first| *first < index) else { continue };
            if all.get(first) != Some(own) {
                let name = step.loads.get(index).map_or("", |load| &load.name);
                let why = "shares some of its files with a job that runs at the same time; share all or none";
                return Err(LangError::whole(file, why).option(format!("filename in [{name}]")));
            }
            let (before, from) = step.loads.split_at_mut(index);
            if let (Some(owner), Some(load)) = (before.get_mut(first), from.first_mut()) {
                share(owner, load);
            }
        }
    }
    let used: Vec<Vec<FilesOf>> =
        steps.iter().map(|step| step.loads.iter().map(files_of).collect()).collect();
    for (index, step) in steps.iter_mut().enumerate() {
        let own = used.get(index).map_or(&[][..], Vec::as_slice);
        let later = used.iter().skip(index + 1).flatten();
        step.shares_files = later.clone().any(|later| own.iter().any(|own| overlap(own, later)));
    }
    Ok(())
}

fn overlap(one: &FilesOf, other: &FilesOf) -> bool {
    one.0 == other.0 && one.1.iter().any(|name| other.1.binary_search(name).is_ok())
}

/// `load` uses the files that `owner` lays out.
fn share(owner: &mut Workload, load: &mut Workload) {
    let size = owner.file_bytes.max(load.file_bytes);
    for load in [&mut *owner, &mut *load] {
        if load.file_bytes < size && load.region.bytes.is_none() {
            load.region.bytes = Some(load.file_bytes.saturating_sub(load.region.offset));
        }
        load.file_bytes = size;
    }
    if let (Layout::Sparse, Layout::Written { .. }) = (owner.layout, load.layout) {
        owner.layout = load.layout;
    }
    load.layout = Layout::Existing;
}

/// A seed that no earlier reading had.
fn fresh_seed() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    weir_core::rng::mix(u64::from(time.subsec_nanos()) ^ (time.as_secs() << 30))
}

#[cfg(test)]
mod tests;
