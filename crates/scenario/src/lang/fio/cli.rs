//! Command lines of fio: options of the program, jobs begun by `--name`, and job files.

use super::bag::At;
use super::known::{JOB, Known, OptionKind, PROGRAM, Treatment, find};
use super::text::Reader;
use crate::lang::{LangError, Options, Source, read_text};
use crate::scenario::Language;
use std::path::Path;
use std::rc::Rc;

/// The name of a command line in messages.
const FILE: &str = "the command line";

/// The content of a command line.
pub(super) struct Said<'a> {
    pub(super) reader: Reader<'a>,
    /// Sections that run; all of them if empty.
    pub(super) sections: Vec<String>,
    /// Options of the program, for the notes.
    pub(super) program: Vec<&'static Known>,
    /// For each job file the number of jobs before it: a step begins there.
    pub(super) begins: Vec<usize>,
    /// The files, in order.
    pub(super) files: Vec<Source>,
}

/// Reads the words after the program's name.
pub(super) fn read<'a>(words: &[String], options: &'a Options) -> Result<Said<'a>, LangError> {
    let mut said = Said {
        reader: Reader::new(FILE, options),
        sections: Vec::new(),
        program: Vec::new(),
        begins: Vec::new(),
        files: Vec::new(),
    };
    let at = At { file: Rc::from(FILE), line: None };
    said.reader.section("global", at.clone());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(bare) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            let path = Path::new(word);
            let text = read_text(path)?;
            said.files.push(Source { name: word.clone(), text, language: Language::Fio });
            continue;
        };
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (bare, None),
        };
        let known = find(JOB, name).or_else(|| find(PROGRAM, name));
        let needs = known.is_some_and(|known| known.kind == OptionKind::Value);
        let value = match value {
            None if needs => words.next_if(|next| !next.starts_with('-')).cloned(),
            value => value,
        };
        said.take(name, value, &at)?;
    }
    for source in said.files.clone() {
        said.begins.push(said.reader.jobs.len());
        said.reader.file(&source)?;
    }
    Ok(said)
}

impl Said<'_> {
    fn take(&mut self, name: &str, value: Option<String>, at: &At) -> Result<(), LangError> {
        if find(JOB, name).is_none()
            && let Some(known) = find(PROGRAM, name)
        {
            return self.program(known, name, value, at);
        }
        if name != "name" {
            return self.reader.option(name, value, at.clone());
        }
        let Some(job) = value.filter(|job| !job.is_empty()) else {
            return Err(at.error("name", "needs a value: the job's name"));
        };
        self.reader.section(&job, at.clone());
        Ok(())
    }

    fn program(
        &mut self,
        known: &'static Known,
        name: &str,
        value: Option<String>,
        at: &At,
    ) -> Result<(), LangError> {
        if let Treatment::Refused(why) = known.treatment {
            return Err(at.error(name, why));
        }
        if known.kind == OptionKind::Value && value.is_none() {
            return Err(at.error(name, "needs a value"));
        }
        if known.name == "section" {
            self.sections.extend(value);
        } else {
            self.program.push(known);
        }
        Ok(())
    }
}
