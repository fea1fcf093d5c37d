//! The languages in which a load can be written: Weir's own (TOML), fio's job files and command
//! lines, Vdbench's parameter files, diskspd's command lines. Each is read into the same
//! [`Scenario`]; what a language can say and Weir can't do is refused by name, never passed over.
//!
//! Nothing here applies load or touches a target.

mod detect;
mod diskspd;
mod error;
mod fio;
mod native;
mod paths;
pub mod reference;
mod vdbench;
mod words;

pub use detect::{detect, program};
pub use error::LangError;
pub use paths::Map;

use crate::scenario::{Language, Scenario};
use std::collections::BTreeMap;
use std::path::Path;
use weir_core::units::Bytes;

/// Longest text that is read, in bytes: no job file of a person comes near it.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// The place of errors in command lines.
const COMMAND_LINE: &str = "the command line";

/// A text in one of the languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The source's name, for messages: the path as the user wrote it. Files that it includes are
    /// looked for beside it.
    pub name: String,
    /// The text.
    pub text: String,
    /// The source's language.
    pub language: Language,
}

/// The user's options beside the text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The places of the text's paths on the target; the first that fits counts.
    pub maps: Vec<Map>,
    /// Values of the variables that a text may name (fio's `${NAME}`, Vdbench's `$name`); they
    /// come before those of the environment.
    pub variables: BTreeMap<String, String>,
}

impl Options {
    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned().or_else(|| std::env::var(name).ok())
    }
}

impl Source {
    /// Reads the file at `path` and finds out its language.
    ///
    /// # Errors
    /// [`LangError`] if it can't be read, is too long, is no text, or its language can't be told.
    pub fn open(path: &Path) -> Result<Self, LangError> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let language = detect(&name, &text).ok_or_else(|| {
            LangError::whole(
                &name,
                "its language cannot be determined; name it NAME.toml (Weir scenario), NAME.fio or \
                 NAME.vdb, or start a command line with fio or diskspd",
            )
        })?;
        Ok(Self { name, text, language })
    }

    /// The file's name without directory and ending: the name of the scenario.
    pub fn stem(&self) -> String {
        let stem = Path::new(&self.name).file_stem();
        stem.map_or_else(|| self.name.clone(), |stem| stem.to_string_lossy().into_owned())
    }
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, LangError> {
    let name = path.display().to_string();
    let failed =
        |error: std::io::Error| LangError::whole(&name, format!("cannot be read: {error}"));
    let meta = std::fs::metadata(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(LangError::whole(&name, "is not a regular file"));
    }
    if meta.len() > TEXT_BYTES_MAX {
        let why = format!(
            "holds {:.2}, and the longest text that is read {}",
            Bytes(meta.len()),
            Bytes(TEXT_BYTES_MAX)
        );
        return Err(LangError::whole(&name, why));
    }
    let text = String::from_utf8(std::fs::read(path).map_err(failed)?);
    text.map_err(|_| LangError::whole(&name, "is not valid UTF-8 text"))
}

/// The name nearest to `name` among those known, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(near, _)| *near > 0.8)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}

/// Reads the scenario in the file at `path`.
///
/// # Errors
/// [`LangError`] names file, line and option, and says what to do.
pub fn read(path: &Path, options: &Options) -> Result<Scenario, LangError> {
    scenario(&Source::open(path)?, options)
}

/// Reads the scenario in `source`.
///
/// # Errors
/// The errors of [`read`].
pub fn scenario(source: &Source, options: &Options) -> Result<Scenario, LangError> {
    if let Some(words) = words::command_of(&source.text) {
        return written(source, command(&words, options));
    }
    match source.language {
        Language::Native => native::scenario(source, options),
        Language::Fio => fio::scenario(source, options),
        Language::Vdbench => vdbench::scenario(source, options),
        Language::Diskspd => diskspd::scenario(source, options),
        Language::Catalogue => Err(LangError::whole(
            &source.name,
            "the catalogue is part of the program and is not read from files; see weir bench list",
        )),
    }
}

/// The scenario of a command line that stands in a file: the file names it, also in errors.
fn written(source: &Source, read: Result<Scenario, LangError>) -> Result<Scenario, LangError> {
    match read {
        Ok(scenario) => Ok(Scenario { name: source.stem(), ..scenario }),
        Err(error) if error.file == COMMAND_LINE => {
            Err(LangError { file: source.name.clone(), ..error })
        }
        Err(error) => Err(error),
    }
}

/// Reads the scenario that a command line of another program says, its name first: `fio …`,
/// `diskspd.exe …`, `vdbench -f FILE …`.
///
/// # Errors
/// The errors of [`read`].
pub fn command(words: &[String], options: &Options) -> Result<Scenario, LangError> {
    match words.first().and_then(|word| program(word)) {
        Some(Language::Fio) => fio::command(words, options),
        Some(Language::Vdbench) => vdbench::command(words, options),
        Some(Language::Diskspd) => diskspd::command(words, options),
        _ => {
            let first = words.first().map_or("", String::as_str);
            let why = "it must start with fio, vdbench or diskspd";
            Err(LangError::whole(COMMAND_LINE, why).option(first))
        }
    }
}

#[cfg(test)]
mod tests;
