//! Weir's own language: scenarios as TOML. `docs/bench-languages.md` describes it, and
//! `docs/bench-examples` has texts to begin with. A key that is not known is an error that names
//! the nearest one that is.

mod item;
pub(super) mod keys;

use super::{LangError, Options, Source};
use crate::scenario::{Axis, Bound, Cache, Chart, Language, Published, Scenario, Step};
use item::{Item, Value};
use keys::{Draft, KEYS, axis, layered};
use std::collections::{BTreeMap, BTreeSet};
use weir_load::workload::{Rate, Workload};

/// Keys of the text itself.
pub(super) const TOP: &[(&str, &str)] = &[
    ("title", "title for headings"),
    ("about", "purpose of the test"),
    ("source", "source of the published figures"),
    ("chart", "`bars` (the default), `latency-curve` or `lines`"),
    ("defaults", "defaults for the keys of all loads"),
    ("step", "the steps, in order: `[[step]]`"),
];

/// Keys of a step besides those of loads, which hold for its loads.
pub(super) const STEP: &[(&str, &str)] = &[
    ("name", "name of the step; with a sweep, the prefix of the steps' names"),
    ("group", "steps of one group are one line of a chart"),
    ("sweep", "creates a step for each value of one key: `{ depth = [1, 2, 4] }`"),
    ("groups", "repeats the sweep for each value of another key: `{ connections = [1, 8] }`"),
    ("axis", "position on the axis without a sweep: `{ label = \"…\", value = 1 }`"),
    ("preparation", "the step is a fill or warm-up, not a result of the test"),
    ("published", "published figures; with a sweep, a list of them"),
    ("stop-over", "skips the rest of the group when the mean latency exceeds this time"),
    ("cache", "`any` (the default), `included` or `excluded`"),
    ("shares-files", "later steps reuse the files"),
    ("load", "the loads, which run at the same time: `[[step.load]]`; without it, one load"),
];

/// Keys of published figures.
pub(super) const PUBLISHED: &[(&str, &str)] = &[
    ("who", "publisher of the figures, and tested system"),
    ("read-iops", "reads per second"),
    ("write-iops", "writes per second"),
    ("read-mibps", "MiB/s read"),
    ("write-mibps", "MiB/s written"),
    ("iops", "operations per second"),
    ("mibps", "MiB/s"),
    ("latency-ms", "mean latency"),
    ("about", "whether the source says \"about\""),
    ("bound", "`up-to` or `more-than`, if the source says so"),
];

/// Most steps of a scenario.
const STEPS_MAX: usize = 10_000;

type Table = BTreeMap<String, Item>;

/// Reads a text.
pub(super) fn scenario(source: &Source, _: &Options) -> Result<Scenario, LangError> {
    let text = Text { file: &source.name };
    let top = item::parse(&source.name, &source.text)?;
    text.known(&top, "the text", &names(TOP))?;
    let empty = Table::new();
    let defaults = match top.get("defaults") {
        Some(item) => text.of("defaults", item, Item::table)?,
        None => &empty,
    };
    text.known(defaults, "[defaults]", &load_keys())?;
    let mut steps = Vec::new();
    let list = match top.get("step") {
        Some(item) => text.of("step", item, Item::list)?,
        None => &[],
    };
    for item in list {
        steps.extend(text.steps(item, defaults)?);
        if steps.len() > STEPS_MAX {
            return Err(text.error(
                item.line,
                "step",
                format!("makes more than {STEPS_MAX} steps"),
            ));
        }
    }
    if steps.is_empty() {
        return Err(LangError::whole(&source.name, "has no step; begin one with [[step]]"));
    }
    text.unique(&steps)?;
    let string = |key: &str| {
        let item = top.get(key);
        item.map(|item| text.of(key, item, |item| item.text().map(str::to_owned))).transpose()
    };
    let name = source.stem();
    Ok(Scenario {
        title: string("title")?.unwrap_or_else(|| name.clone()),
        name,
        about: string("about")?.unwrap_or_default(),
        source: string("source")?,
        language: Language::Native,
        chart: match top.get("chart") {
            Some(item) => text.of("chart", item, chart)?,
            None => Chart::Bars,
        },
        steps: steps.into_iter().map(|(_, step)| step).collect(),
        changes: Vec::new(),
        waiting: None,
        addresses: None,
        target: None,
        text: None,
        hosts: Vec::new(),
    })
}

fn is_load_key(key: &str) -> bool {
    KEYS.iter().any(|known| known.name == key)
}

fn names(table: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

fn load_keys() -> Vec<&'static str> {
    KEYS.iter().map(|key| key.name).collect()
}

fn chart(item: &Item) -> Result<Chart, String> {
    match item.text()? {
        "bars" => Ok(Chart::Bars),
        "latency-curve" => Ok(Chart::LatencyCurve),
        "lines" => Ok(Chart::Lines),
        other => Err(format!("is {other:?}; it must be bars, latency-curve or lines")),
    }
}

fn cache(item: &Item) -> Result<Cache, String> {
    match item.text()? {
        "any" => Ok(Cache::Any),
        "included" => Ok(Cache::Included),
        "excluded" => Ok(Cache::Excluded),
        other => Err(format!("is {other:?}; it must be any, included or excluded")),
    }
}

/// A key that is set for one step of a sweep.
struct Turn<'a> {
    key: &'a str,
    item: &'a Item,
}

impl Turn<'_> {
    /// The value in names of steps.
    fn shown(&self) -> String {
        match &self.item.value {
            Value::Text(text) => text.clone(),
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Truth(truth) => truth.to_string(),
            Value::List(_) | Value::Table(_) | Value::Date => String::new(),
        }
    }
}

struct Text<'a> {
    file: &'a str,
}

impl Text<'_> {
    fn error(&self, line: usize, key: &str, message: impl Into<String>) -> LangError {
        LangError { line: Some(line), ..LangError::whole(self.file, message).option(key) }
    }

    fn of<'i, T>(
        &self,
        key: &str,
        item: &'i Item,
        read: impl Fn(&'i Item) -> Result<T, String>,
    ) -> Result<T, LangError> {
        read(item).map_err(|why| self.error(item.line, key, why))
    }

    /// Refuses keys that are not among `names`.
    fn known(&self, table: &Table, place: &str, names: &[&'static str]) -> Result<(), LangError> {
        for (key, item) in table {
            if !names.contains(&key.as_str()) {
                let near = super::nearest(key, names.iter().copied());
                let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                return Err(self.error(item.line, key, format!("is not a key of {place}{hint}")));
            }
        }
        Ok(())
    }

    /// The steps of one `[[step]]`, with their lines.
    fn steps(&self, item: &Item, defaults: &Table) -> Result<Vec<(usize, Step)>, LangError> {
        let table = self.of("step", item, Item::table)?;
        let all = [names(STEP), load_keys()].concat();
        self.known(table, "[[step]]", &all)?;
        let Some(name) = table.get("name") else {
            return Err(self.error(item.line, "name", "is missing; a step needs one"));
        };
        let name = self.of("name", name, Item::text)?;
        let groups = self.turns(table, "groups")?;
        let sweep = self.turns(table, "sweep")?;
        let mut steps = Vec::new();
        for group in &groups {
            for (place, turn) in sweep.iter().enumerate() {
                let turns: Vec<&Turn<'_>> = group.iter().chain(turn).collect();
                let mut step = self.step(item.line, table, defaults, name, &turns)?;
                if let Some(turn) = turn {
                    let (label, value) = axis(turn.key, turn.item)
                        .map_err(|why| self.error(turn.item.line, turn.key, why))?;
                    step.axis = Some(Axis { label, value });
                }
                if let Some(group) = group {
                    step.group = format!("{} {}", group.key, group.shown());
                } else if turn.is_some() && step.group.is_empty() {
                    step.group = name.to_owned();
                }
                step.published = self.published(table, turn.is_some(), place, sweep.len())?;
                steps.push((item.line, step));
            }
        }
        Ok(steps)
    }

    /// The values of the one key under `name`; one turn without any if it is absent.
    fn turns<'t>(&self, table: &'t Table, name: &str) -> Result<Vec<Option<Turn<'t>>>, LangError> {
        let Some(item) = table.get(name) else { return Ok(vec![None]) };
        let swept = self.of(name, item, Item::table)?;
        let (1, Some((key, values))) = (swept.len(), swept.first_key_value()) else {
            return Err(self.error(item.line, name, "must have exactly one key"));
        };
        self.known(swept, name, &load_keys())?;
        let values = self.of(key, values, Item::list)?;
        if values.is_empty() || values.len() > STEPS_MAX {
            return Err(self.error(item.line, key, "needs a list of values"));
        }
        Ok(values.iter().map(|item| Some(Turn { key, item })).collect())
    }

    fn step(
        &self,
        line: usize,
        table: &Table,
        defaults: &Table,
        name: &str,
        turns: &[&Turn<'_>],
    ) -> Result<Step, LangError> {
        let flag = |key: &str| match table.get(key) {
            Some(item) => self.of(key, item, Item::truth),
            None => Ok(false),
        };
        let mut full = name.to_owned();
        for turn in turns {
            full = format!("{full} {} {}", turn.key, turn.shown());
        }
        let axis = table.get("axis").map(|item| self.axis(item)).transpose()?;
        let stop = table.get("stop-over").map(|item| self.of("stop-over", item, Item::seconds));
        let group = table.get("group").map(|item| self.of("group", item, Item::text));
        Ok(Step {
            group: group.transpose()?.unwrap_or("").to_owned(),
            axis,
            loads: self.loads(line, table, defaults, &full, turns)?,
            name: full,
            preparation: flag("preparation")?,
            published: None,
            stop_over_ms: stop.transpose()?.map(|seconds| seconds * 1e3),
            cache: match table.get("cache") {
                Some(item) => self.of("cache", item, cache)?,
                None => Cache::Any,
            },
            shares_files: flag("shares-files")?,
            written_in_flight: None,
        })
    }

    fn axis(&self, item: &Item) -> Result<Axis, LangError> {
        let table = self.of("axis", item, Item::table)?;
        self.known(table, "axis", &["label", "value"])?;
        let (Some(label), Some(value)) = (table.get("label"), table.get("value")) else {
            return Err(self.error(item.line, "axis", "needs label and value"));
        };
        let label = self.of("label", label, Item::text)?.to_owned();
        Ok(Axis { label, value: self.of("value", value, Item::number)? })
    }

    fn loads(
        &self,
        line: usize,
        table: &Table,
        defaults: &Table,
        name: &str,
        turns: &[&Turn<'_>],
    ) -> Result<Vec<Workload>, LangError> {
        let own: Table = table
            .iter()
            .filter(|(key, _)| is_load_key(key))
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect();
        let swept: Table =
            turns.iter().map(|turn| (turn.key.to_owned(), turn.item.clone())).collect();
        let Some(list) = table.get("load") else {
            return Ok(vec![self.load(line, name, &[defaults, &own, &swept])?]);
        };
        let mut loads = Vec::new();
        for (index, item) in self.of("load", list, Item::list)?.iter().enumerate() {
            let mut load = self.of("load", item, Item::table)?.clone();
            let named = load.remove("name");
            self.known(&load, "[[step.load]]", &load_keys())?;
            let name = match &named {
                Some(item) => self.of("name", item, Item::text)?.to_owned(),
                None => format!("{name} load {}", index + 1),
            };
            loads.push(self.load(item.line, &name, &[defaults, &own, &load, &swept])?);
        }
        if loads.is_empty() {
            return Err(self.error(line, "load", "is an empty list"));
        }
        Ok(loads)
    }

    fn load(&self, line: usize, name: &str, layers: &[&Table]) -> Result<Workload, LangError> {
        let mut draft = Draft::default();
        let keys = layered(layers);
        for (key, item) in &keys {
            draft.take(key, item).map_err(|why| self.error(item.line, key, why))?;
        }
        let load = draft.finish(name).map_err(|(key, why)| {
            self.error(keys.get(key).map_or(line, |item| item.line), key, why)
        })?;
        // A share of another step's rate is known only when that step is done.
        let mut known = load.clone();
        if matches!(known.rate, Rate::Share { .. }) {
            known.rate = Rate::Unlimited;
        }
        known.check().map_err(|error| self.error(line, name, error.to_string()))?;
        Ok(load)
    }

    fn published(
        &self,
        table: &Table,
        swept: bool,
        place: usize,
        places: usize,
    ) -> Result<Option<Published>, LangError> {
        let Some(item) = table.get("published") else { return Ok(None) };
        if !swept {
            return self.figures(item).map(Some);
        }
        let list = self.of("published", item, Item::list)?;
        match list.get(place) {
            Some(item) if list.len() == places => self.figures(item).map(Some),
            _ => {
                let why = format!("needs one table for each of the {places} steps of the sweep");
                Err(self.error(item.line, "published", why))
            }
        }
    }

    fn figures(&self, item: &Item) -> Result<Published, LangError> {
        let table = self.of("published", item, Item::table)?;
        self.known(table, "published", &names(PUBLISHED))?;
        let number =
            |key: &str| table.get(key).map(|item| self.of(key, item, Item::number)).transpose();
        Ok(Published {
            who: match table.get("who") {
                Some(item) => self.of("who", item, Item::text)?.to_owned(),
                None => String::new(),
            },
            read_iops: number("read-iops")?,
            write_iops: number("write-iops")?,
            read_mibps: number("read-mibps")?,
            write_mibps: number("write-mibps")?,
            iops: number("iops")?,
            mibps: number("mibps")?,
            latency_ms: number("latency-ms")?,
            about: match table.get("about") {
                Some(item) => self.of("about", item, Item::truth)?,
                None => false,
            },
            bound: match table.get("bound") {
                Some(item) => self.of("bound", item, bound)?,
                None => Bound::None,
            },
        })
    }

    /// Names of steps differ, and shares are of earlier ones.
    fn unique(&self, steps: &[(usize, Step)]) -> Result<(), LangError> {
        let mut before = BTreeSet::new();
        for (line, step) in steps {
            for load in &step.loads {
                if let Rate::Share { of, .. } = &load.rate
                    && !before.contains(of.as_str())
                {
                    let why = format!("is a share of {of:?}, which is no earlier step");
                    return Err(self.error(*line, "rate", why));
                }
            }
            if !before.insert(step.name.as_str()) {
                return Err(self.error(*line, "name", format!("{:?} is taken", step.name)));
            }
        }
        Ok(())
    }
}

/// The way in which a source bounds its figures.
fn bound(item: &Item) -> Result<Bound, String> {
    match item.text()? {
        "up-to" => Ok(Bound::UpTo),
        "more-than" => Ok(Bound::MoreThan),
        other => Err(format!("{other:?} is neither up-to nor more-than")),
    }
}

#[cfg(test)]
mod tests;
