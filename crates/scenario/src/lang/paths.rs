//! Paths of a text as places on the target: a directory there and plain names in it.

use super::{LangError, Options};
use std::collections::BTreeMap;
use weir_load::workload::Location;

/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Renamed files that are told one by one.
const RENAMED_MAX: usize = 10;

/// The place on the target for a path prefix of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The prefix: a directory (`/mnt/vol`) or a drive letter (`z`).
    pub from: String,
    /// The target: its name, its URL or its path; empty for the one without a name.
    pub target: String,
    /// The directory below the target, one plain name; empty for the target itself.
    pub to: String,
}

impl Map {
    /// Reads `FROM:=DIRECTORY`, as in `z:=data`, `/mnt/vol:=data` or `/mnt/vol:=`, or
    /// `FROM:=TARGET`, as in `/mnt/vol:=nfs://10.0.0.4/vol`.
    ///
    /// # Errors
    /// A sentence that says how it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let how = "write FROM:=DIRECTORY, as in z:=data or /mnt/vol:=data; DIRECTORY is one plain \
                   name below the target, or empty for the target itself; or write FROM:=TARGET, \
                   as in /mnt/vol:=nfs://10.0.0.4/vol";
        let (from, to) = text.split_once(":=").ok_or_else(|| format!("{text:?}: {how}"))?;
        let from = from.trim_end_matches(['/', '\\', ':']);
        let is_target = to.contains("://") || to.starts_with('/');
        if is_target && !from.is_empty() {
            let (from, target) = (from.to_owned(), to.to_owned());
            return Ok(Self { from, target, to: String::new() });
        }
        let plain = !to.contains(['/', '\\']) && !to.starts_with('.') && to.len() <= NAME_BYTES_MAX;
        if from.is_empty() || !plain {
            return Err(format!("{text:?}: {how}"));
        }
        Ok(Self { from: from.to_owned(), target: String::new(), to: to.to_owned() })
    }

    /// With the target of this name if the directory has it: `--map /mnt/a:=a` for the target `a`.
    pub fn name_target<'a>(&mut self, mut names: impl Iterator<Item = &'a str>) {
        if self.target.is_empty() && !self.to.is_empty() && names.any(|name| name == self.to) {
            self.target = std::mem::take(&mut self.to);
        }
    }

    /// The part of `path`, written with slashes, below the prefix.
    fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let drive = self.from.len() == 1;
        let from = self.from.replace('\\', "/");
        let head = path.get(..from.len())?;
        let rest = path.get(from.len()..)?;
        if drive {
            let rest = head.eq_ignore_ascii_case(&from).then_some(rest)?.strip_prefix(':')?;
            return Some(rest.trim_start_matches('/'));
        }
        (head == from).then_some(rest)?.strip_prefix('/')
    }
}

/// A file's place on a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePlace {
    /// The directory.
    pub at: Location,
    /// The name in it.
    pub name: String,
}

/// Gives the files of one text their places: the same path the same one, different paths
/// different ones.
pub(super) struct Places<'a> {
    options: &'a Options,
    directory: &'a str,
    /// The path to which a place belongs.
    taken: BTreeMap<FilePlace, String>,
    /// By directory of the text and directory of the target: the first file, and how many more.
    noted: BTreeMap<(String, Location), (String, usize)>,
    /// Files whose names are not those of the text.
    renamed: Vec<String>,
}

impl<'a> Places<'a> {
    /// Files without a map go to `directory`.
    pub(super) fn new(options: &'a Options, directory: &'a str) -> Self {
        Self {
            options,
            directory,
            taken: BTreeMap::new(),
            noted: BTreeMap::new(),
            renamed: Vec::new(),
        }
    }

    /// The place of the file that the text calls `path`.
    ///
    /// # Errors
    /// A path that leaves its directory, or names none.
    pub(super) fn place(&mut self, path: &str) -> Result<FilePlace, LangError> {
        let slashed = path.replace('\\', "/");
        let parts: Vec<&str> =
            slashed.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let refused = |why: &str| Err(LangError::whole("", format!("{path:?} {why}")));
        if parts.is_empty() || slashed.ends_with('/') {
            return refused("names no file");
        }
        if parts.contains(&"..") {
            return refused("leaves its directory; write the path without ..");
        }
        let device = slashed.starts_with("/dev/");
        if device && let Some(map) = self.options.maps.iter().find(|map| map.from == slashed) {
            let name = parts.last().copied().unwrap_or("");
            let (directory, name) = self.mapped(&map.to, name);
            let at = Location { target: map.target.clone(), directory };
            return Ok(self.settle(path, &slashed, &parts, FilePlace { at, name }));
        }
        if device || slashed.starts_with("//./") || path.starts_with('#') {
            return refused(&format!(
                "is a device; Weir measures files: name a file, or put one in its place with \
                 --map {path}:=DIRECTORY, and say how large it is to be"
            ));
        }
        let place = self.find(path, &slashed, &parts);
        if place.name.len() > NAME_BYTES_MAX {
            return refused("is too long; at most 200 bytes of it may become a name");
        }
        Ok(place)
    }

    fn find(&mut self, path: &str, slashed: &str, parts: &[&str]) -> FilePlace {
        let mapped = self.options.maps.iter().find_map(|map| Some((map, map.below(slashed)?)));
        let (directory, name) = match mapped {
            Some((map, below)) => self.mapped(&map.to, below),
            None => (self.directory.to_owned(), plain(parts.last().copied().unwrap_or(""))),
        };
        let target = mapped.map(|(map, _)| map.target.clone()).unwrap_or_default();
        self.settle(path, slashed, parts, FilePlace { at: Location { target, directory }, name })
    }

    /// The place of `path`: `place`, unless another path has it.
    fn settle(
        &mut self,
        path: &str,
        slashed: &str,
        parts: &[&str],
        mut place: FilePlace,
    ) -> FilePlace {
        if self.taken.get(&place).is_some_and(|owner| owner != slashed) {
            let (target, directory) = (place.at.target, self.directory.to_owned());
            let name = plain(&slashed.replace([':'], ""));
            place = FilePlace { at: Location { target, directory }, name };
        }
        if self.taken.insert(place.clone(), slashed.to_owned()).is_none() {
            self.note(path, parts, &place);
        }
        place
    }

    /// Notes where a file lies, once for all that keep their names and lay in one directory.
    fn note(&mut self, path: &str, parts: &[&str], place: &FilePlace) {
        let FilePlace { at, name } = place;
        let Location { target, directory } = at;
        let sentence = if target.is_empty() {
            format!("{path} is {name} in the target's directory {directory}")
        } else {
            format!("{path} is {name} in the directory {directory} of the target {target}")
        };
        if parts.last() != Some(&name.as_str()) {
            self.renamed.push(sentence);
        } else if let Some((_, above)) = parts.split_last()
            && !above.is_empty()
        {
            let key = (above.join("/"), at.clone());
            self.noted.entry(key).or_insert((sentence, 0)).1 += 1;
        }
    }

    /// Remarks about names for the reader, a sentence each.
    pub(super) fn changes(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .noted
            .values()
            .map(|(first, files)| match files {
                1 => first.clone(),
                2 => format!("{first}, and so is 1 more from beside it"),
                files => format!("{first}, and so are {} more from beside it", files - 1),
            })
            .collect();
        match self.renamed.len() {
            0..=RENAMED_MAX => all.extend(self.renamed.iter().cloned()),
            more => {
                all.extend(self.renamed.iter().take(RENAMED_MAX).cloned());
                all.push(format!("{} more files got other names", more - RENAMED_MAX));
            }
        }
        all
    }

    /// Below the target itself the first part of a path is the directory.
    fn mapped(&self, to: &str, below: &str) -> (String, String) {
        if !to.is_empty() {
            return (to.to_owned(), plain(below));
        }
        match below.trim_matches('/').split_once('/') {
            Some((directory, name)) if !directory.starts_with('.') => {
                (directory.to_owned(), plain(name))
            }
            _ => (self.directory.to_owned(), plain(below)),
        }
    }
}

/// A path as one name: its parts joined by underscores, a dot at the front replaced.
fn plain(path: &str) -> String {
    let name = path.trim_matches('/').replace('/', "_");
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}
