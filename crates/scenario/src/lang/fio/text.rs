//! Job files: sections, options, comments, includes, variables. The result is the jobs in order,
//! each with all that it inherits.

use super::bag::{At, Bag};
use crate::lang::{LangError, Options, Source, read_text};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Deepest nesting of includes.
const INCLUDES_MAX: u32 = 16;
/// Most lines of a file with all that it includes.
const LINES_MAX: usize = 200_000;

/// The state of reading.
pub(super) struct Reader<'a> {
    options: &'a Options,
    /// Options for all jobs that follow.
    pub(super) globals: Bag,
    /// Jobs in order.
    pub(super) jobs: Vec<Bag>,
    /// The place for options: the last job, or the globals.
    place: Where,
    order: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Nowhere,
    Globals,
    Job,
}

impl<'a> Reader<'a> {
    /// Nothing read yet from `file`.
    pub(super) fn new(file: &str, options: &'a Options) -> Self {
        let at = At { file: Rc::from(file), line: None };
        let globals = Bag::new("global", at);
        Self { options, globals, jobs: Vec::new(), place: Where::Nowhere, order: 0 }
    }

    /// Reads a job file after what was read before.
    pub(super) fn file(&mut self, source: &Source) -> Result<(), LangError> {
        self.place = Where::Nowhere;
        self.text(&source.name, &source.text, 0)
    }

    /// A new job, or more options for all, whose options follow.
    pub(super) fn section(&mut self, name: &str, at: At) {
        if name == "global" {
            self.place = Where::Globals;
            return;
        }
        self.place = Where::Job;
        self.jobs.push(self.globals.inherited(name, at));
    }

    /// An option where reading is.
    pub(super) fn option(
        &mut self,
        name: &str,
        value: Option<String>,
        at: At,
    ) -> Result<(), LangError> {
        self.order += 1;
        let order = self.order;
        self.bag(name, &at)?.add(name, value, at, order)
    }

    /// The options where reading is, of which `name` is to be one.
    fn bag(&mut self, name: &str, at: &At) -> Result<&mut Bag, LangError> {
        match self.place {
            Where::Nowhere => {
                Err(at.error(name, "stands before the first section; put it under [global]"))
            }
            Where::Globals => Ok(&mut self.globals),
            Where::Job => Ok(self.jobs.last_mut().unwrap_or(&mut self.globals)),
        }
    }

    fn text(&mut self, file: &str, text: &str, depth: u32) -> Result<(), LangError> {
        let shared: Rc<str> = Rc::from(file);
        for (index, line) in text.lines().enumerate() {
            let at = At { file: Rc::clone(&shared), line: Some(index + 1) };
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            if self.order > LINES_MAX {
                return Err(at.error("include", "makes the text too long"));
            }
            if let Some(name) = line.strip_prefix('[') {
                let Some(name) = name.strip_suffix(']').filter(|name| !name.is_empty()) else {
                    return Err(at.error(line, "is not a section; write [name]"));
                };
                self.section(name, at);
            } else if let Some(name) = line.strip_prefix("include ") {
                self.include(file, name.trim(), &at, depth)?;
            } else {
                self.line(line, at)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, at: At) -> Result<(), LangError> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (line, None),
        };
        match value.map(|value| self.expand(value, name, &at)).transpose() {
            Ok(value) => self.option(name, value, at),
            Err(error) => {
                self.bag(name, &at)?.put_off(error);
                Ok(())
            }
        }
    }

    fn include(&mut self, file: &str, name: &str, at: &At, depth: u32) -> Result<(), LangError> {
        self.order += 1;
        if depth >= INCLUDES_MAX {
            return Err(at.error("include", format!("{name}: files include each other too deeply")));
        }
        let path: PathBuf = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
        let text = read_text(&path)
            .map_err(|error| at.error("include", format!("{}: {}", error.file, error.message)))?;
        self.text(&path.display().to_string(), &text, depth + 1)
    }

    /// Puts in the values of variables and of fio's own words.
    fn expand(&self, value: &str, name: &str, at: &At) -> Result<String, LangError> {
        let mut out = String::with_capacity(value.len());
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, behind)) = after.split_once('}') else {
                return Err(at.error(name, "a ${ is left open"));
            };
            let Some(found) = self.options.variable(variable) else {
                return Err(at.error(name, format!("the variable {variable} is not set")));
            };
            out.push_str(before);
            out.push_str(&found);
            rest = behind;
        }
        out.push_str(rest);
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if out.contains("$ncpus") {
            out = out.replace("$ncpus", &processors().to_string());
        }
        if out.contains("$pagesize") {
            out = out.replace("$pagesize", &rustix::param::page_size().to_string());
        }
        if out.contains("$mb_memory") {
            return Err(at.error(name, "$mb_memory is not known here; write the number of MiB"));
        }
        Ok(out)
    }
}

/// The part of a line that counts: fio cuts it at the first `;` or `#`, wherever that is.
fn without_comment(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("").trim()
}
