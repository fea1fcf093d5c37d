//! Vdbench's parameter files and command lines (Vdbench 5.04): hosts, files, workloads and runs
//! become steps. What its file system workloads (`fsd=`, `fwd=`) say is refused.
//!
//! The meaning of each word is in [`words`]; the page for users is `docs/bench-vdbench.md`.

mod build;
mod load;
mod run;
mod scan;
mod storage;
mod text;
pub(in crate::lang) mod treatment;
mod value;
mod words;

use super::paths::Places;
use super::{LangError, Options, Source, read_text};
use crate::scenario::{Chart, Language, Scenario};
use build::Builder;
use load::Load;
use run::{Rates, Run};
use scan::{Definition, Definitions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use storage::{FILES_MAX, Host, Storage};
use text::{Lines, TextPosition};
use treatment::Treatment;
use weir_load::workload::{Location, Workload};
use words::{Section, Word};

/// The options of a command line beside the files.
#[derive(Debug, Default)]
struct Overrides {
    elapsed_s: Option<f64>,
    warmup_s: Option<f64>,
    first_run: Option<String>,
    validate: bool,
    read_back: bool,
}

/// Reads a parameter file.
pub(super) fn scenario(source: &Source, options: &Options) -> Result<Scenario, LangError> {
    let mut lines = Lines::new(options);
    lines.add(&source.name, &source.text)?;
    build(source, &lines, options, &Overrides::default(), Vec::new())
}

/// Reads a command line, `vdbench -f FILE …`.
pub(super) fn command(words: &[String], options: &Options) -> Result<Scenario, LangError> {
    let mut line = CommandLine::default();
    line.read(words)?;
    let Some(first) = line.files.first().cloned() else {
        return Err(refused("-f", "it is missing: the parameter file"));
    };
    let mut options = options.clone();
    for (name, value) in &line.variables {
        options.variables.insert(name.clone(), value.clone());
    }
    let mut lines = Lines::new(&options);
    let mut whole = String::new();
    for file in &line.files {
        let text = read_text(Path::new(file))?;
        lines.add(file, &text)?;
        whole.push_str(&text);
    }
    if let Some((name, _)) = line.variables.iter().find(|(name, _)| !lines.used.contains(name)) {
        let why = "no file asks for it; write $NAME there, or omit it";
        return Err(refused(&format!("{name}="), why));
    }
    let source = Source { name: first, text: whole, language: Language::Vdbench };
    build(&source, &lines, &options, &line.overrides, line.changes)
}

fn refused(option: &str, why: &str) -> LangError {
    LangError::whole("the command line", why).option(option)
}

/// A command line as it is read.
#[derive(Default)]
struct CommandLine {
    files: Vec<String>,
    variables: Vec<(String, String)>,
    overrides: Overrides,
    changes: Vec<String>,
}

impl CommandLine {
    fn read(&mut self, words: &[String]) -> Result<(), LangError> {
        let mut rest = words.iter().skip(1).peekable();
        let mut files = false;
        while let Some(word) = rest.next() {
            let Some(letter) = word.strip_prefix('-').and_then(|word| word.chars().next()) else {
                match word.split_once('=') {
                    Some((name, value)) => self.variables.push((name.into(), value.into())),
                    None if files => self.files.push(word.clone()),
                    None => return Err(refused(word, "it belongs to no option; files follow -f")),
                }
                continue;
            };
            let known = words::find(Section::Command, &format!("-{letter}"))
                .map_err(|_| refused(word, &words::unknown(Section::Command, word)))?;
            if known.treatment == Treatment::Refused {
                return Err(refused(word, known.says));
            }
            files = known.name == "-f";
            let attached = word.get(1 + letter.len_utf8()..).unwrap_or("");
            let value = if known.name == "-v" || !attached.is_empty() {
                attached.to_owned()
            } else {
                let next = rest.next_if(|next| !next.starts_with('-'));
                next.cloned().ok_or_else(|| refused(word, "its value is missing"))?
            };
            self.take(known, word, value)?;
        }
        Ok(())
    }

    fn take(&mut self, known: &Word, word: &str, value: String) -> Result<(), LangError> {
        let time = || {
            let seconds = value::seconds(&value).filter(|seconds| *seconds <= 604_800.0);
            seconds.ok_or_else(|| refused(word, "its value is not a time of at most a week"))
        };
        match known.name {
            "-f" => self.files.push(value),
            "-e" => {
                let seconds = time()?;
                if seconds == 0.0 {
                    return Err(refused(word, "a run of 0 s measures nothing"));
                }
                self.overrides.elapsed_s = Some(seconds);
            }
            "-w" => self.overrides.warmup_s = Some(time()?),
            "-r" => self.overrides.first_run = Some(value),
            "-v" => {
                if let Some(other) = value.chars().find(|c| !matches!(c, 'r' | '2' | 'w' | 't')) {
                    return Err(refused(word, &format!("-v{other} is not known here")));
                }
                self.overrides.validate = true;
                self.overrides.read_back |= value.contains(['r', '2']);
            }
            _ if known.treatment == Treatment::Nothing => {
                self.changes.push(format!("{} has no effect here: {}", known.name, known.says));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Makes the scenario.
fn build(
    source: &Source,
    lines: &Lines<'_>,
    options: &Options,
    overrides: &Overrides,
    mut changes: Vec<String>,
) -> Result<Scenario, LangError> {
    let mut found = scan::definitions(&lines.lines)?;
    changes.append(&mut found.changes);
    let place = TextPosition { file: Arc::from(source.name.as_str()), line: 1 };
    let default_load = Load::read("default", &found.default_workload, &place)?;
    let directory = Workload::default().directory;
    let mut places = Places::new(options, &directory);
    let mut builder = Builder::new(default_load, &mut changes);
    let mut runs = Vec::new();
    take(&found, &mut builder, &mut places, &mut runs)?;
    builder.general.validate |= overrides.validate;
    builder.general.read_back |= overrides.read_back;
    let from = match &overrides.first_run {
        None => 0,
        Some(name) => runs
            .iter()
            .position(|run: &Run| run.name == *name)
            .ok_or_else(|| refused("-r", &format!("there is no rd={name}")))?,
    };
    let runs = runs.get_mut(from..).unwrap_or_default();
    if runs.is_empty() {
        return Err(LangError::whole(&source.name, "it defines no run; add rd="));
    }
    for run in runs.iter_mut() {
        run.elapsed_s = overrides.elapsed_s.unwrap_or(run.elapsed_s);
        run.warmup_s = overrides.warmup_s.unwrap_or(run.warmup_s);
        builder.run(run)?;
    }
    let curve = runs.iter().any(|run| run.rates == Rates::Curve);
    let hosts = builder.hosts.iter().map(Host::known).collect();
    let steps = builder.finish();
    changes.extend(places.changes());
    let chart = match (curve, steps.iter().any(|step| step.axis.is_some())) {
        (true, _) => Chart::LatencyCurve,
        (false, true) => Chart::Lines,
        (false, false) => Chart::Bars,
    };
    Ok(Scenario {
        name: source.stem(),
        title: format!("Vdbench: {}", source.stem()),
        about: format!("The runs of {}.", source.name),
        source: None,
        language: Language::Vdbench,
        chart,
        steps,
        changes,
        waiting: None,
        target: None,
        addresses: None,
        text: Some(source.text.clone()),
        hosts,
    })
}

/// Takes in all definitions, in order.
fn take(
    found: &Definitions,
    builder: &mut Builder<'_>,
    places: &mut Places<'_>,
    runs: &mut Vec<Run>,
) -> Result<(), LangError> {
    let mut names: BTreeSet<(&'static str, &str)> = BTreeSet::new();
    let mut known = Known::default();
    for definition in &found.all {
        let Definition { section, name, params, place } = definition;
        let kind = match section {
            Section::Host => "hd",
            Section::Storage => "sd",
            Section::Workload => "wd",
            Section::Run => "rd",
            Section::General | Section::Command => "",
        };
        if !kind.is_empty() && !names.insert((kind, name)) {
            return Err(place.error(&format!("{kind}={name}"), "it is defined twice"));
        }
        match section {
            Section::General => builder.general.add(definition)?,
            Section::Host => builder.hosts.push(Host::read(definition)?),
            Section::Storage => {
                for storage in Storage::read(definition, places)? {
                    known.add(&storage, place)?;
                    builder.storages.push(storage);
                }
            }
            Section::Workload => builder.loads.push(Load::read(name, params, place)?),
            Section::Run => runs.push(Run::read(definition)?),
            Section::Command => {}
        }
    }
    Ok(())
}

/// Names and files that are taken.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    files: BTreeMap<(Location, String), String>,
}

impl Known {
    fn add(&mut self, storage: &Storage, place: &TextPosition) -> Result<(), LangError> {
        let what = format!("sd={}", storage.name);
        if self.names.len() >= FILES_MAX {
            let why = format!("there are more than {FILES_MAX} files");
            return Err(place.error(&what, why));
        }
        if !self.names.insert(storage.name.clone()) {
            return Err(place.error(&what, "it is defined twice"));
        }
        let file = (storage.at.clone(), storage.file.clone());
        match self.files.insert(file, storage.name.clone()) {
            Some(other) => {
                Err(place.error(&what, format!("it is the file of sd={other}; name another")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
