//! diskspd's command lines (diskspd 2.0 and 2.1): each becomes a scenario of one step.
//!
//! The meaning of each option is in [`words`]; the page for users is `docs/bench-diskspd.md`.

mod read;
mod words;

use super::paths::Places;
use super::{LangError, Options, Source, words as shell};
use crate::scenario::{Language, Scenario, Step};
use read::{Limit, Order, Settings, refused};
use std::collections::BTreeMap;
use weir_load::workload::{
    Layout, Length, Location, Operation, Pattern, Rate, Region, Stability, Starts, Think, Workload,
};

/// Bytes in one write when files are made.
const LAYOUT_BYTES: u32 = 1 << 20;

/// Reads a text: one command line, with or without the program's name.
pub(super) fn scenario(source: &Source, options: &Options) -> Result<Scenario, LangError> {
    let lines: Vec<&str> = source
        .text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .collect();
    let words = shell::split(&lines.join("\n"))
        .ok_or_else(|| LangError::whole(&source.name, "a quote is not closed"))?;
    let named = words.first().is_some_and(|word| super::program(word).is_some());
    let words = words.get(usize::from(named)..).unwrap_or_default();
    if words.iter().any(|word| super::program(word).is_some()) {
        let why = "it holds several command lines; give each a file of its own";
        return Err(LangError::whole(&source.name, why));
    }
    let found = build(words, options, &source.stem(), &source.text);
    found.map_err(|error| LangError { file: source.name.clone(), ..error })
}

/// Reads a command line, the program's name first.
pub(super) fn command(words: &[String], options: &Options) -> Result<Scenario, LangError> {
    build(words.get(1..).unwrap_or_default(), options, "diskspd", &words.join(" "))
}

fn build(
    words: &[String],
    options: &Options,
    name: &str,
    text: &str,
) -> Result<Scenario, LangError> {
    let settings = Settings::read(words)?;
    let mut changes = Vec::new();
    let directories = files(&settings, options, &mut changes)?;
    let mut loads = Vec::with_capacity(directories.len());
    for (at, names) in directories {
        let load = workload(&settings, at, names)?;
        load.check().map_err(|error| refused("", error.to_string()))?;
        loads.push(load);
    }
    if settings.write_percent > 0 && settings.write_through != Some(true) {
        let direct = if settings.direct == Some(true) {
            ", except over NFS, where direct writes are FILE_SYNC"
        } else {
            ""
        };
        changes.push(format!(
            "writes are unstable, and no COMMIT is sent{direct}: say -Sw or -Sh for durable ones"
        ));
    }
    changes.extend(settings.changes);
    let step = Step { name: name.to_owned(), loads, ..Step::default() };
    Ok(Scenario {
        name: name.to_owned(),
        title: format!("diskspd: {name}"),
        about: format!("diskspd {}", words.join(" ")),
        source: None,
        language: Language::Diskspd,
        chart: crate::scenario::Chart::Bars,
        steps: vec![step],
        changes,
        waiting: None,
        addresses: None,
        target: None,
        text: Some(text.to_owned()),
        hosts: Vec::new(),
    })
}

/// Names of files by the directory they lie in; adds what was changed for it.
fn files(
    settings: &Settings,
    options: &Options,
    changes: &mut Vec<String>,
) -> Result<BTreeMap<Location, Vec<String>>, LangError> {
    let directory = Workload::default().directory;
    let mut places = Places::new(options, &directory);
    let mut found: BTreeMap<Location, Vec<String>> = BTreeMap::new();
    for target in &settings.targets {
        let drive = target.strip_suffix(':').is_some_and(|letter| letter.chars().count() == 1);
        if drive || target.starts_with('#') {
            let why = "it is a disk; Weir measures files, so name one, as in z:\\test1.io";
            return Err(refused(target, why));
        }
        let place = places.place(target).map_err(|error| refused(target, error.message))?;
        let names = found.entry(place.at).or_default();
        if names.contains(&place.name) {
            return Err(refused(target, "it is named twice"));
        }
        names.push(place.name);
    }
    changes.extend(places.changes());
    Ok(found)
}

/// The load on the files of one directory.
fn workload(settings: &Settings, at: Location, names: Vec<String>) -> Result<Workload, LangError> {
    let files = u32::try_from(names.len()).map_err(|_| refused("", "there are too many files"))?;
    let (threads, depth) = parallel(settings)?;
    let too_many = || refused("-t", "there are more threads than can be applied");
    let jobs = threads.checked_mul(files).ok_or_else(too_many)?;
    let (pattern, starts) = order(settings)?;
    let (file_bytes, region) = places(settings)?;
    let align_bytes = match settings.align {
        None => None,
        Some(align) => {
            Some(u32::try_from(align).map_err(|_| refused("-r", "its alignment is 4G or more"))?)
        }
    };
    let (rate, think) = pace(settings, jobs)?;
    Ok(Workload {
        name: "diskspd".to_owned(),
        operation: Operation::Data { pattern, read_percent: 100 - settings.write_percent },
        block_bytes: settings.block,
        depth,
        jobs,
        files,
        file_bytes,
        stability: if settings.write_through == Some(true) {
            Stability::FileSync
        } else {
            Stability::Unstable
        },
        length: Length::Seconds(settings.measured_s.into()),
        warmup_s: settings.warmup_s.into(),
        cooldown_s: settings.cooldown_s.into(),
        layout: match settings.create {
            Some(_) => Layout::Written { block_bytes: LAYOUT_BYTES },
            None => Layout::Existing,
        },
        directory: at.directory,
        target: at.target,
        direct: settings.direct == Some(true),
        seed: settings.seed.into(),
        names,
        align_bytes,
        starts,
        region,
        rate,
        think,
        ..Workload::default()
    })
}

/// Threads on each file, and requests in flight of each of them.
fn parallel(settings: &Settings) -> Result<(u32, u32), LangError> {
    if settings.threads.is_some() && settings.all_threads.is_some() {
        return Err(refused("-F", "threads are said by -t or by -F, not by both"));
    }
    let threads = settings.all_threads.or(settings.threads).unwrap_or(1);
    match (settings.all_depth, settings.depth) {
        (None, depth) => Ok((threads, depth.unwrap_or(2))),
        (Some(_), Some(_)) => Err(refused("-O", "requests are said by -o or by -O, not by both")),
        (Some(_), _) if settings.all_threads.is_none() => {
            Err(refused("-O", "it needs -F; with -t use -o"))
        }
        (Some(_), _) if settings.targets.len() > 1 => {
            let why = "with several files, threads that draw one for each request cannot be applied; \
                       use -F with -o";
            Err(refused("-O", why))
        }
        (Some(depth), None) => Ok((threads, depth)),
    }
}

fn order(settings: &Settings) -> Result<(Pattern, Starts), LangError> {
    Ok(match (settings.order, settings.stride) {
        (Order::Random, _) => (Pattern::Random, Starts::Apart),
        (Order::Mixed(random_percent), stride) => {
            let starts = stride.map_or(Starts::Together, |bytes| Starts::Stride { bytes });
            (Pattern::Mixed { random_percent }, starts)
        }
        (Order::Sequential, Some(bytes)) => (Pattern::Sequential, Starts::Stride { bytes }),
        (Order::Sequential, None) => (Pattern::Sequential, Starts::Together),
        (Order::Interlocked, None) => (Pattern::Sequential, Starts::Interlocked),
        (Order::Interlocked, Some(_)) => {
            return Err(refused("-T", "threads that share a sequence (-si) begin at one place"));
        }
    })
}

/// Size of the files, and the part of them that is used.
fn places(settings: &Settings) -> Result<(u64, Region), LangError> {
    let Some(file_bytes) = settings.create.or(settings.most) else {
        let why = "the files' size is missing: -c2G makes them, -f2G says how much of existing ones \
                   is used";
        return Err(refused("-c", why));
    };
    let end = settings.most.unwrap_or(file_bytes).min(file_bytes);
    let Some(bytes) = end.checked_sub(settings.base).filter(|left| *left > 0) else {
        return Err(refused("-B", "it leaves nothing of the files"));
    };
    let whole = settings.base == 0 && end == file_bytes;
    let bytes = (!whole).then_some(bytes);
    Ok((file_bytes, Region { offset: settings.base, bytes, job_increment: 0 }))
}

/// Limits and pauses of all threads together.
fn pace(settings: &Settings, jobs: u32) -> Result<(Rate, Option<Think>), LangError> {
    let rate = match settings.limit {
        None => Rate::Unlimited,
        Some(Limit::BytesPerMs(bytes)) => Rate::Bytes(f64::from(bytes) * 1000.0 * f64::from(jobs)),
        Some(Limit::Requests(requests)) => Rate::Operations(f64::from(requests) * f64::from(jobs)),
    };
    let think = match (settings.burst, settings.pause_ms) {
        (None, None) => None,
        (Some(every), Some(ms)) => Some(Think { us: u64::from(ms) * 1000, every }),
        (Some(_), None) => return Err(refused("-i", "it needs -j: how long the pause is")),
        (None, Some(_)) => return Err(refused("-j", "it needs -i: how many requests lie between")),
    };
    if think.is_some() && settings.limit.is_some() {
        return Err(refused("-g", "limits and pauses (-i, -j) cannot be joined; omit one of them"));
    }
    Ok((rate, think))
}

#[cfg(test)]
mod tests;
