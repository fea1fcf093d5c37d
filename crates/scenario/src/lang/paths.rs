//! Paths of a text as places on the target: a directory there and plain names in it.

use super::{LangError, Options};
use std::collections::BTreeMap;

/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Renamed files that are told one by one.
const RENAMED_MAX: usize = 10;

/// The place on the target for a path prefix of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The prefix: a directory (`/mnt/vol`) or a drive letter (`z`).
    pub from: String,
    /// The directory below the target, one plain name; empty for the target itself.
    pub to: String,
}

impl Map {
    /// Reads `FROM:=DIRECTORY`, as in `z:=data`, `/mnt/vol:=data` or `/mnt/vol:=`.
    ///
    /// # Errors
    /// A sentence that says how it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let how = "write FROM:=DIRECTORY, as in z:=data or /mnt/vol:=data; DIRECTORY is one plain \
                   name below the target, or empty for the target itself";
        let (from, to) = text.split_once(":=").ok_or_else(|| format!("{text:?}: {how}"))?;
        let from = from.trim_end_matches(['/', '\\', ':']);
        let plain = !to.contains(['/', '\\']) && !to.starts_with('.') && to.len() <= NAME_BYTES_MAX;
        if from.is_empty() || !plain {
            return Err(format!("{text:?}: {how}"));
        }
        Ok(Self { from: from.to_owned(), to: to.to_owned() })
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

/// A file's place on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePlace {
    /// Directory below the target.
    pub directory: String,
    /// The name in it.
    pub name: String,
}

/// Gives the files of one text their places: the same path the same one, different paths
/// different ones.
pub(super) struct Places<'a> {
    options: &'a Options,
    directory: &'a str,
    /// The path to which a place belongs.
    taken: BTreeMap<(String, String), String>,
    /// By directory of the text and directory of the target: the first file, and how many more.
    noted: BTreeMap<(String, String), (String, usize)>,
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
            return Ok(self.settle(path, &slashed, &parts, (directory, name)));
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
        let mapped =
            self.options.maps.iter().find_map(|map| Some((map.to.clone(), map.below(slashed)?)));
        let (directory, name) = match mapped {
            Some((to, below)) => self.mapped(&to, below),
            None => (self.directory.to_owned(), plain(parts.last().copied().unwrap_or(""))),
        };
        self.settle(path, slashed, parts, (directory, name))
    }

    /// The place of `path` where it would be this one, unless another path has it.
    fn settle(
        &mut self,
        path: &str,
        slashed: &str,
        parts: &[&str],
        (directory, name): (String, String),
    ) -> FilePlace {
        let key = (directory.clone(), name.clone());
        let whole = (self.directory.to_owned(), plain(&slashed.replace([':'], "")));
        let (directory, name) = match self.taken.get(&key) {
            Some(owner) if owner != slashed => whole,
            _ => key,
        };
        let place = FilePlace { directory, name };
        let key = (place.directory.clone(), place.name.clone());
        if self.taken.insert(key, slashed.to_owned()).is_none() {
            self.note(path, parts, &place);
        }
        place
    }

    /// Notes where a file lies, once for all that keep their names and lay in one directory.
    fn note(&mut self, path: &str, parts: &[&str], place: &FilePlace) {
        let FilePlace { directory, name } = place;
        let sentence = format!("{path} is {name} in the target's directory {directory}");
        if parts.last() != Some(&name.as_str()) {
            self.renamed.push(sentence);
        } else if let Some((_, above)) = parts.split_last()
            && !above.is_empty()
        {
            let key = (above.join("/"), directory.clone());
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
