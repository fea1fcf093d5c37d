//! From lines to definitions: which parameters belong to which `hd=`, `sd=`, `wd=`, `rd=`.

use super::text::{Line, TextPosition};
use super::treatment::Treatment;
use super::words::{self, Section, Unknown, Word};
use crate::lang::LangError;

/// Most parameters of a text.
const PARAMS_MAX: usize = 200_000;

/// A parameter with its values.
#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) word: &'static Word,
    pub(super) values: Vec<String>,
    pub(super) place: TextPosition,
}

impl Param {
    /// An error about it.
    pub(super) fn error(&self, message: impl Into<String>) -> LangError {
        self.place.error(self.word.name, message)
    }

    /// The parameter's only value.
    pub(super) fn one(&self) -> Result<&str, LangError> {
        match self.values.as_slice() {
            [value] => Ok(value),
            values => Err(self.error(format!("it has one value, not {}", values.len()))),
        }
    }

    /// The parameter's only value, read by `read`; `what` names the expected value.
    pub(super) fn read<T>(
        &self,
        read: impl Fn(&str) -> Option<T>,
        what: &str,
    ) -> Result<T, LangError> {
        let value = self.one()?;
        read(value).ok_or_else(|| self.error(format!("{value:?} is not {what}")))
    }
}

/// A definition: what stands between one beginning word and the next.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) section: Section,
    /// The entry's name; empty for general parameters.
    pub(super) name: String,
    /// The entry's own parameters, after those of the defaults before it.
    pub(super) params: Vec<Param>,
    pub(super) place: TextPosition,
}

/// Everything that is defined.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// In order, without defaults: those are in what follows them.
    pub(super) all: Vec<Definition>,
    /// The last `wd=default`.
    pub(super) default_workload: Vec<Param>,
    /// Remarks for the reader, a sentence each.
    pub(super) changes: Vec<String>,
}

/// A parameter as it is written.
struct Written {
    key: String,
    values: Vec<String>,
}

/// Reads the lines.
pub(super) fn definitions(lines: &[Line]) -> Result<Definitions, LangError> {
    let mut done = Definitions::default();
    let mut defaults: [Vec<Param>; 4] = Default::default();
    let mut open: Option<Definition> = None;
    let (mut goes_on, mut count) = (false, 0_usize);
    for line in lines {
        let (params, more) = split(&line.text).map_err(|(key, why)| line.place.error(&key, why))?;
        for (at, written) in params.into_iter().enumerate() {
            count += 1;
            if count > PARAMS_MAX {
                let why = format!("there are more than {PARAMS_MAX} parameters");
                return Err(line.place.error(&written.key, why));
            }
            let inside = at > 0 || goes_on;
            if let Some(section) = begins(&written, inside, open.as_ref(), &line.place)? {
                close(open.take(), &mut defaults, &mut done);
                let name = written.values.first().cloned().unwrap_or_default();
                let params = Vec::new();
                open = Some(Definition { section, name, params, place: line.place.clone() });
            } else {
                add(&mut open, &mut done, written, &line.place)?;
            }
        }
        goes_on = more;
    }
    close(open, &mut defaults, &mut done);
    let [.., workload, _] = defaults;
    done.default_workload = workload;
    Ok(done)
}

/// Does this parameter begin a definition?
fn begins(
    written: &Written,
    inside: bool,
    open: Option<&Definition>,
    place: &TextPosition,
) -> Result<Option<Section>, LangError> {
    let section = match written.key.as_str() {
        "hd" => Section::Host,
        "sd" => Section::Storage,
        "wd" => Section::Workload,
        "rd" => Section::Run,
        "fsd" | "fwd" if !inside => {
            let why = "file system workloads are not read; describe the load with sd= and wd=";
            return Err(place.error(&written.key, why));
        }
        "rg" if !inside => {
            return Err(place.error("rg", "traces cannot be replayed; use wd= and rd="));
        }
        _ => return Ok(None),
    };
    // `sd=` within `wd=` says which files, but at the beginning of a line of its own it defines.
    let belongs = inside
        && open.is_some_and(|open| open.section != section)
        && open.is_some_and(|open| words::find(open.section, &written.key).is_ok());
    if belongs {
        return Ok(None);
    }
    match written.values.as_slice() {
        [name] if !name.is_empty() => Ok(Some(section)),
        _ => Err(place.error(&written.key, "a definition has one name")),
    }
}

/// Adds a parameter to the definition that is open, or to the general ones.
fn add(
    open: &mut Option<Definition>,
    done: &mut Definitions,
    written: Written,
    place: &TextPosition,
) -> Result<(), LangError> {
    let section = open.as_ref().map_or(Section::General, |open| open.section);
    let found = match words::find(section, &written.key) {
        Err(_)
            if section != Section::General
                && words::find(Section::General, &written.key).is_ok() =>
        {
            let why = "general parameters come before the first hd=, sd=, wd= and rd=";
            return Err(place.error(&written.key, why));
        }
        found => found,
    };
    let word = found.map_err(|unknown| match unknown {
        Unknown::None => place.error(&written.key, words::unknown(section, &written.key)),

        Unknown::Several(names) => {
            place.error(&written.key, format!("it may be any of {}", names.join(", ")))
        }
    })?;
    let param = Param { word, values: written.values, place: place.clone() };
    match word.treatment {
        Treatment::Refused => return Err(param.error(word.says)),
        Treatment::Nothing => {
            let note = format!("{} has no effect here: {}", word.name, word.says);
            if !done.changes.contains(&note) {
                done.changes.push(note);
            }
        }
        Treatment::Drives | Treatment::Reports => {}
    }
    let open = open.get_or_insert_with(|| Definition {
        section: Section::General,
        name: String::new(),
        params: Vec::new(),
        place: place.clone(),
    });
    open.params.push(param);
    Ok(())
}

/// A definition is complete: it becomes a default, or gets those before it.
fn close(open: Option<Definition>, defaults: &mut [Vec<Param>; 4], done: &mut Definitions) {
    let Some(mut open) = open else { return };
    let [host, storage, workload, run] = defaults;
    let own = match open.section {
        Section::Host => host,
        Section::Storage => storage,
        Section::Workload => workload,
        Section::Run => run,
        Section::General | Section::Command => return done.all.push(open),
    };
    if open.name == "default" {
        own.append(&mut open.params);
    } else {
        open.params = own.iter().cloned().chain(open.params).collect();
        done.all.push(open);
    }
}

/// Cuts a line into parameters, and says whether it goes on with the next.
fn split(line: &str) -> Result<(Vec<Written>, bool), (String, String)> {
    let mut params = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let Some((key, after)) = rest.split_once('=').filter(|(key, _)| !key.contains(',')) else {
            let word = rest.split(',').next().unwrap_or(rest);
            let why = "it has no value; write NAME=VALUE, and several values in parentheses";
            return Err((word.to_owned(), why.to_owned()));
        };
        let failed = |why: &str| (key.to_owned(), why.to_owned());
        let (values, behind) = match after.strip_prefix('(') {
            Some(list) => in_parentheses(list).map_err(failed)?,
            None => {
                let (value, behind) = value(after, &[',']).map_err(failed)?;
                (vec![value], behind)
            }
        };
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(failed("a value is missing; write NAME=VALUE"));
        }
        params.push(Written { key: key.to_ascii_lowercase(), values });
        match behind.strip_prefix(',') {
            Some("") => return Ok((params, true)),
            Some(next) => rest = next,
            None if behind.is_empty() => break,
            None => return Err(failed("a comma is missing behind it")),
        }
    }
    Ok((params, false))
}

fn in_parentheses(mut rest: &str) -> Result<(Vec<String>, &str), &'static str> {
    let mut values = Vec::new();
    loop {
        let (one, behind) = value(rest, &[',', ')'])?;
        values.push(one);
        if let Some(next) = behind.strip_prefix(',') {
            rest = next;
        } else {
            let open = "the parenthesis is not closed on this line";
            return behind.strip_prefix(')').map(|behind| (values, behind)).ok_or(open);
        }
    }
}

/// A value up to one of `ends`, with what follows; quotes keep everything together.
fn value<'t>(text: &'t str, ends: &[char]) -> Result<(String, &'t str), &'static str> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (inner, behind) = quoted.split_once('"').ok_or("the quote is not closed")?;
        return Ok((inner.to_owned(), behind));
    }
    let (one, behind) = text.split_at(text.find(ends).unwrap_or(text.len()));
    if one.contains('(') {
        return Err("parentheses within parentheses are not read");
    }
    Ok((one.to_owned(), behind))
}
