//! Which files the clones of a job use, and how that is said to the engine.

use super::bag::Bag;
use crate::lang::LangError;
use crate::lang::paths::Places;
use std::collections::BTreeSet;
use weir_load::workload::Location;

/// Most files of one job.
const FILES_MAX: u64 = 65_536;
/// Most clones that become loads of their own.
const APART_MAX: usize = 256;

/// Loads of a job by their files: so many jobs each, on these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The first clone in it.
    pub(super) first: u32,
    /// Jobs.
    pub(super) jobs: u32,
    /// The directory.
    pub(super) at: Location,
    /// Names of the files, in the engine's order: job `k` of `n` has those with numbers `k`,
    /// `k + n` and so on, or shares them.
    pub(super) names: Vec<String>,
}

/// The files of each clone, and how many each has.
pub(super) struct FilesOfJob {
    pub(super) groups: Vec<Group>,
    pub(super) per_clone: u32,
}

/// `directory`, `filename`, `filename_format`, `nrfiles` of a job with `clones` clones.
pub(super) fn files(
    bag: &Bag,
    name: &str,
    clones: u32,
    places: &mut Places<'_>,
) -> Result<FilesOfJob, LangError> {
    let option = if bag.set("filename").is_some() { "filename" } else { "directory" };
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut directories = BTreeSet::new();
    for paths in paths(bag, name, clones)? {
        let mut names = Vec::with_capacity(paths.len());
        for path in paths {
            let place = places.place(&path).map_err(|error| bag.error(option, error.message))?;
            directories.insert(place.at);
            names.push(place.name);
        }
        lists.push(names);
    }
    let directory = directories.pop_first().unwrap_or_default();
    if let Some(other) = directories.first() {
        let why = format!(
            "puts files of one job into two directories, {} and {}; map both to one",
            in_words(&directory),
            in_words(other)
        );
        return Err(bag.error(option, why));
    }
    let per_clone = u32::try_from(lists.first().map_or(0, Vec::len)).unwrap_or(u32::MAX);
    let groups = groups(&lists, &directory).ok_or_else(|| {
        bag.error(option, format!("makes more than {APART_MAX} loads of this job"))
    })?;
    Ok(FilesOfJob { groups, per_clone })
}

/// A directory in words, with its target if that has a name.
fn in_words(at: &Location) -> String {
    let Location { target, directory } = at;
    if target.is_empty() { directory.clone() } else { format!("{directory} of {target}") }
}

/// Clones that share one file, or have files of their own, are one load; others are a load each.
fn groups(lists: &[Vec<String>], at: &Location) -> Option<Vec<Group>> {
    let first = lists.first()?;
    let whole = |names: Vec<String>| Group {
        first: 0,
        jobs: u32::try_from(lists.len()).unwrap_or(u32::MAX),
        at: at.clone(),
        names,
    };
    let same = lists.iter().all(|names| names == first);
    if lists.len() == 1 || (same && first.len() == 1) {
        return Some(vec![whole(first.clone())]);
    }
    let distinct: BTreeSet<&String> = lists.iter().flatten().collect();
    if distinct.len() == lists.iter().map(Vec::len).sum::<usize>() {
        let across = |index| lists.iter().filter_map(move |names| names.get(index).cloned());
        return Some(vec![whole((0..first.len()).flat_map(across).collect())]);
    }
    let apart = |(index, names): (usize, &Vec<String>)| Group {
        first: u32::try_from(index).unwrap_or(u32::MAX),
        jobs: 1,
        at: at.clone(),
        names: names.clone(),
    };
    (lists.len() <= APART_MAX).then(|| lists.iter().enumerate().map(apart).collect())
}

/// The paths of each clone's files.
fn paths(bag: &Bag, name: &str, clones: u32) -> Result<Vec<Vec<String>>, LangError> {
    let directories = bag.text("directory").map_or_else(Vec::new, list);
    let below = |directory: Option<&String>, file: &str| match directory {
        Some(directory) => format!("{}/{file}", directory.trim_end_matches(['/', '\\'])),
        None => file.to_owned(),
    };
    if let Some(text) = bag.text("filename") {
        let all: Vec<String> =
            list(text).iter().map(|file| below(directories.first(), file)).collect();
        if all.is_empty() || all.iter().any(|path| path == "-") {
            return Err(bag.error("filename", "names no file"));
        }
        let distinct: BTreeSet<&String> = all.iter().collect();
        if distinct.len() < all.len() {
            return Err(bag.error("filename", "names a file twice"));
        }
        if (all.len() as u64).saturating_mul(u64::from(clones)) > FILES_MAX {
            return Err(bag.error("filename", format!("with numjobs is over {FILES_MAX} files")));
        }
        return Ok(vec![all; usize::try_from(clones).unwrap_or(0)]);
    }
    let files = bag.count("nrfiles", 1)?.unwrap_or(1);
    if u64::from(files).saturating_mul(u64::from(clones)) > FILES_MAX {
        return Err(bag.error("nrfiles", format!("times numjobs is over {FILES_MAX}")));
    }
    let format = bag.text("filename_format").unwrap_or("$jobname.$jobnum.$filenum");
    // It names the client of fio's own client and server, of which there is none.
    let format = format.replace("$clientuid", "");
    let name = name.replace(['/', '\\'], "_");
    let of = |clone: u32, file: u32| {
        let index = usize::try_from(clone).unwrap_or(0) % directories.len().max(1);
        let file = format
            .replace("$jobname", &name)
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", &file.to_string());
        below(directories.get(index), &file)
    };
    let all: Vec<Vec<String>> =
        (0..clones).map(|clone| (0..files).map(|file| of(clone, file)).collect()).collect();
    if files > 1 && all.first().is_some_and(|names| names.first() == names.get(1)) {
        return Err(bag.error("filename_format", "needs $filenum where nrfiles is over 1"));
    }
    Ok(all)
}

/// A list by colons; `\:` is a colon of a name.
fn list(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let colon = c == '\\' && chars.next_if_eq(&':').is_some();
        match (all.last_mut(), c) {
            (Some(last), _) if colon => last.push(':'),
            (_, ':') => all.push(String::new()),
            (Some(last), c) => last.push(c),
            (None, _) => {}
        }
    }
    all.retain(|name| !name.is_empty());
    all
}
