//! The options of one job: what the text says, with what it inherits, found by name.

use super::known::{JOB, Known, find, nearest};
use super::value::{self, KbBase, TimeUnit};
use crate::lang::LangError;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An option as it was written.
#[derive(Clone, Debug)]
pub(super) struct Set {
    /// The option's row of the table.
    pub known: &'static Known,
    /// The option's value; a flag may have none.
    pub value: Option<String>,
    /// The place in the text.
    pub at: At,
    /// The number among all options that were read: of two that contradict, the later counts.
    pub order: usize,
}

/// A place in a text.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub file: Rc<str>,
    /// From 1; none on command lines.
    pub line: Option<usize>,
}

impl At {
    /// An error here about `option`.
    pub(super) fn error(&self, option: &str, message: impl Into<String>) -> LangError {
        LangError { line: self.line, ..LangError::whole(&self.file, message).option(option) }
    }
}

/// The options of a job, or of all jobs (`[global]`).
#[derive(Clone, Debug)]
pub(super) struct Bag {
    /// The job's name.
    pub section: String,
    /// The place at which the job begins.
    pub at: At,
    sets: BTreeMap<&'static str, Set>,
    /// The first option that is not known, or whose value cannot be told, as an error.
    unknown: Option<LangError>,
}

impl Bag {
    /// A section of this name without options.
    pub(super) fn new(section: &str, at: At) -> Self {
        Self { section: section.to_owned(), at, sets: BTreeMap::new(), unknown: None }
    }

    /// The options for another section.
    pub(super) fn inherited(&self, section: &str, at: At) -> Self {
        let (sets, unknown) = (self.sets.clone(), self.unknown.clone());
        Self { section: section.to_owned(), at, sets, unknown }
    }

    /// Are all options known, and the variables in their values? One that is not may belong to an
    /// engine that is refused, which is the better reason.
    pub(super) fn known(&self) -> Result<(), LangError> {
        self.unknown.clone().map_or(Ok(()), Err)
    }

    /// Takes in an error that is told unless there is a better reason.
    pub(super) fn put_off(&mut self, error: LangError) {
        self.unknown.get_or_insert(error);
    }

    /// Takes in one option. An option that was there before is replaced.
    pub(super) fn add(
        &mut self,
        name: &str,
        value: Option<String>,
        at: At,
        order: usize,
    ) -> Result<(), LangError> {
        let Some(known) = find(JOB, name) else {
            let hint =
                nearest(name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let message = format!("is not an option of a fio job that is known here{hint}");
            self.put_off(at.error(&format!("{name} in [{}]", self.section), message));
            return Ok(());
        };
        let alone = value.as_deref().is_none_or(|value| value.trim().is_empty());
        if alone && known.kind == super::known::OptionKind::Value {
            return Err(at.error(&format!("{name} in [{}]", self.section), "needs a value"));
        }
        self.sets.insert(known.name, Set { known, value, at, order });
        Ok(())
    }

    /// All options.
    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        self.sets.values()
    }

    /// An option as it was written.
    pub(super) fn set(&self, name: &str) -> Option<&Set> {
        self.sets.get(name)
    }

    /// An error about the option `name` of this job.
    pub(super) fn error(&self, name: &str, message: impl Into<String>) -> LangError {
        let at = self.set(name).map_or(&self.at, |set| &set.at);
        at.error(&format!("{name} in [{}]", self.section), message)
    }

    /// Of two options, the one written later, with its value.
    pub(super) fn later(&self, names: [&'static str; 2]) -> Option<&Set> {
        names.iter().filter_map(|name| self.set(name)).max_by_key(|set| set.order)
    }

    /// The text of an option.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.set(name).and_then(|set| set.value.as_deref()).map(str::trim)
    }

    /// The meaning of `k`.
    pub(super) fn kb_base(&self) -> Result<KbBase, LangError> {
        match self.text("kb_base") {
            None | Some("1024") => Ok(KbBase::Binary),
            Some("1000") => Ok(KbBase::Decimal),
            Some(_) => Err(self.error("kb_base", "must be 1024 or 1000")),
        }
    }

    fn parse<T>(
        &self,
        name: &str,
        read: impl Fn(&str, KbBase) -> Result<T, String>,
    ) -> Result<Option<T>, LangError> {
        let base = self.kb_base()?;
        let value = self.text(name).map(|text| read(text, base)).transpose();
        value.map_err(|why| self.error(name, why))
    }

    /// A number with units of data.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<u64>, LangError> {
        self.parse(name, value::number)
    }

    /// A count, at least `least`.
    pub(super) fn count(&self, name: &str, least: u32) -> Result<Option<u32>, LangError> {
        let count = self.parse(name, value::count)?;
        match count {
            Some(count) if count < least => {
                Err(self.error(name, format!("is {count}; it must be at least {least}")))
            }
            count => Ok(count),
        }
    }

    /// A percentage.
    pub(super) fn percent(&self, name: &str) -> Result<Option<u8>, LangError> {
        match self.count(name, 0)? {
            None => Ok(None),
            Some(percent) => match u8::try_from(percent) {
                Ok(percent) if percent <= 100 => Ok(Some(percent)),
                _ => Err(self.error(name, format!("is {percent}; it must be from 0 to 100"))),
            },
        }
    }

    /// A time in microseconds.
    pub(super) fn time_us(&self, name: &str, unit: TimeUnit) -> Result<Option<u64>, LangError> {
        self.parse(name, |text, _| value::time_us(text, unit))
    }

    /// A time in seconds.
    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^52 microseconds")]
    pub(super) fn seconds(&self, name: &str) -> Result<Option<f64>, LangError> {
        Ok(self.time_us(name, TimeUnit::Seconds)?.map(|us| us as f64 / 1e6))
    }

    /// Yes or no; a flag alone is yes.
    pub(super) fn truth(&self, name: &str) -> Result<Option<bool>, LangError> {
        let Some(set) = self.set(name) else { return Ok(None) };
        match set.value.as_deref().map(str::trim) {
            None | Some("" | "1" | "true") => Ok(Some(true)),
            Some("0" | "false") => Ok(Some(false)),
            Some(other) => Err(self.error(name, format!("is {other:?}; it must be 0 or 1"))),
        }
    }
}
