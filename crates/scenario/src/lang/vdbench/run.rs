//! Run definitions: which workloads, how fast, how long, and with what values in turn.

use super::load::{Seek, percent};
use super::scan::{Definition, Param};
use super::storage::{Flags, SECTORS, only, sector};
use super::text::TextPosition;
use super::value;
use crate::lang::LangError;

/// Most runs that loops may make of one definition.
const RUNS_MAX: usize = 2000;
/// Longest time, in seconds: a week.
const SECONDS_MAX: f64 = 604_800.0;

/// The rates of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rates {
    /// The highest rate that the target can serve.
    Max,
    /// The highest rate, and then parts of that.
    Curve,
    /// At each of these, in requests a second.
    List(Vec<u64>),
}

/// A value of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Threads(u32),
    Bytes(u32),
    Reads(u8),
    Seek(Seek),
    Rate(u64),
}

impl Turn {
    /// The rate in names of steps.
    pub(super) fn name(self) -> String {
        match self {
            Self::Threads(threads) => format!("threads={threads}"),
            Self::Bytes(bytes) if bytes % 1024 == 0 => format!("xfersize={}k", bytes / 1024),
            Self::Bytes(bytes) => format!("xfersize={bytes}"),
            Self::Reads(percent) => format!("rdpct={percent}"),
            Self::Seek(Seek::Eof) => "seekpct=eof".to_owned(),
            Self::Seek(seek) => format!("seekpct={}", seek.percent()),
            Self::Rate(rate) => format!("iorate={rate}"),
        }
    }

    /// Label and value of an axis.
    pub(super) fn axis(self) -> (&'static str, f64) {
        match self {
            Self::Threads(threads) => ("threads for each file", f64::from(threads)),
            Self::Bytes(bytes) => ("KiB of a request", f64::from(bytes) / 1024.0),
            Self::Reads(percent) => ("reads %", f64::from(percent)),
            Self::Seek(seek) => ("random %", f64::from(seek.percent())),
            #[expect(clippy::cast_precision_loss, reason = "nobody draws rates of over 2^53")]
            Self::Rate(rate) => ("requests a second", rate as f64),
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) loads: Vec<String>,
    pub(super) storages: Vec<String>,
    pub(super) rates: Rates,
    /// Percents.
    pub(super) curve: Vec<u64>,
    pub(super) stop_ms: Option<f64>,
    /// Even distances between requests.
    pub(super) even: bool,
    pub(super) elapsed_s: f64,
    pub(super) warmup_s: f64,
    pub(super) pause_s: f64,
    pub(super) max_data: Option<u64>,
    pub(super) flags: Option<Flags>,
    /// Outermost first.
    loops: Vec<Vec<Turn>>,
    pub(super) place: TextPosition,
}

impl Run {
    pub(super) fn read(definition: &Definition) -> Result<Self, LangError> {
        let mut run = Self {
            name: definition.name.clone(),
            loads: Vec::new(),
            storages: Vec::new(),
            rates: Rates::List(Vec::new()),
            curve: vec![10, 50, 70, 80, 90, 100],
            stop_ms: None,
            even: false,
            elapsed_s: 30.0,
            warmup_s: 0.0,
            pause_s: 0.0,
            max_data: None,
            flags: None,
            loops: Vec::new(),
            place: definition.place.clone(),
        };
        for param in &definition.params {
            run.take(param)?;
        }
        let what = format!("rd={}", run.name);
        if run.rates == Rates::List(Vec::new()) {
            return Err(run.place.error(&what, "iorate= is missing: max, curve or a number"));
        }
        let count = run.loops.iter().try_fold(1_usize, |all, turns| all.checked_mul(turns.len()));
        if count.is_none_or(|count| count > RUNS_MAX) {
            let why = format!("its loops make more than {RUNS_MAX} runs");
            return Err(run.place.error(&what, why));
        }
        Ok(run)
    }

    fn take(&mut self, param: &Param) -> Result<(), LangError> {
        match param.word.name {
            "wd" => self.loads.clone_from(&param.values),
            "sd" => self.storages.clone_from(&param.values),
            "iorate" => self.rates = rates(param)?,
            "curve" => self.curve = numbers(param, value::whole, 1, 1000)?,
            "stopcurve" => {
                let known = |text: &str| value::thousandths(text).filter(|ms| *ms > 0);
                let thousandths = param.read(known, "a time in milliseconds")?;
                #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 µs")]
                let ms = thousandths as f64 / 1000.0;
                self.stop_ms = Some(ms);
            }
            "distribution" => self.even = distribution(param)?,
            "elapsed" => {
                self.elapsed_s = time(param)?;
                if self.elapsed_s == 0.0 {
                    return Err(param.error("a run of 0 s measures nothing"));
                }
            }
            "warmup" => self.warmup_s = time(param)?,
            "pause" => self.pause_s = time(param)?,
            "maxdata" => {
                let known = |text: &str| value::size(text).filter(|bytes| *bytes > 0);
                self.max_data = Some(param.read(known, "a number of bytes")?);
            }
            "openflags" => self.flags = Some(Flags::read(param)?),
            "hitarea" | "forhitarea" | "rhpct" | "forrhpct" | "whpct" | "forwhpct" => {
                only(param, "0")?;
            }
            "compratio" | "forcompratio" => only(param, "1")?,
            _ => self.take_loop(param)?,
        }
        Ok(())
    }

    /// A loop; one that is named again takes its new place, as in Vdbench.
    fn take_loop(&mut self, param: &Param) -> Result<(), LangError> {
        let turns: Vec<Turn> = match param.word.name.trim_start_matches("for") {
            "threads" => {
                let found = numbers(param, value::whole, 1, 65_536)?;
                found.into_iter().filter_map(|n| n.try_into().ok()).map(Turn::Threads).collect()
            }
            "xfersize" => {
                let found = numbers(param, value::size, 512, u64::from(u32::MAX))?;
                let bytes = found.into_iter().map(sector).collect::<Option<Vec<u32>>>();
                let bytes = bytes.ok_or_else(|| param.error(SECTORS))?;
                bytes.into_iter().map(Turn::Bytes).collect()
            }
            "rdpct" => {
                let found = numbers(param, |text| percent(text).map(u64::from), 0, 100)?;
                found.into_iter().filter_map(|n| n.try_into().ok()).map(Turn::Reads).collect()
            }
            "seekpct" => seeks(param)?,
            _ => return Ok(()),
        };
        let same = |other: &Vec<Turn>| match (other.first(), turns.first()) {
            (Some(own), Some(new)) => std::mem::discriminant(own) == std::mem::discriminant(new),
            _ => false,
        };
        self.loops.retain(|other| !same(other));
        self.loops.push(turns);
        Ok(())
    }

    /// Every run that the loops make, in order; the values that vary, outermost first, and all.
    pub(super) fn turns(&self) -> Vec<Turns> {
        let mut loops = self.loops.clone();
        if let Rates::List(rates) = &self.rates {
            // Rates are the innermost loop wherever they stand.
            loops.push(rates.iter().copied().map(Turn::Rate).collect());
        }
        let mut all = vec![Turns::default()];
        for values in &loops {
            let varies = values.len() > 1;
            all = all
                .iter()
                .flat_map(|before| {
                    values.iter().map(move |turn| {
                        let mut next = before.clone();
                        next.all.push(*turn);
                        if varies {
                            next.varying.push(*turn);
                        }
                        next
                    })
                })
                .collect();
        }
        all
    }
}

/// The values of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    pub(super) all: Vec<Turn>,
    /// The turns of loops with more than one value.
    pub(super) varying: Vec<Turn>,
}

fn time(param: &Param) -> Result<f64, LangError> {
    let known = |text: &str| value::seconds(text).filter(|seconds| *seconds <= SECONDS_MAX);
    param.read(known, "a time of at most a week, as in 60, 10m or 2h")
}

fn numbers(
    param: &Param,
    read: impl Fn(&str) -> Option<u64>,
    least: u64,
    most: u64,
) -> Result<Vec<u64>, LangError> {
    let found = value::series(&param.values, read).map_err(|why| param.error(why))?;
    match found.iter().find(|value| !(least..=most).contains(*value)) {
        Some(value) => Err(param.error(format!("{value} is not from {least} to {most}"))),
        None => Ok(found),
    }
}

fn rates(param: &Param) -> Result<Rates, LangError> {
    match param.values.as_slice() {
        [one] if one.eq_ignore_ascii_case("max") => Ok(Rates::Max),
        [one] if one.eq_ignore_ascii_case("curve") => Ok(Rates::Curve),
        _ => numbers(param, value::whole, 1, 1_000_000_000).map(Rates::List),
    }
}

fn distribution(param: &Param) -> Result<bool, LangError> {
    let value = param.one()?.to_ascii_lowercase();
    let begins = |word: &str| value.len() >= 2 && word.starts_with(value.as_str());
    if begins("exponential") {
        Ok(false)
    } else if begins("deterministic") {
        Ok(true)
    } else {
        let why = format!("{value:?} cannot be applied; use exponential or deterministic");
        Err(param.error(why))
    }
}

/// Seeks are numbers in a series, or words.
fn seeks(param: &Param) -> Result<Vec<Turn>, LangError> {
    let failed = |why: String| param.error(why);
    let words: Result<Vec<Seek>, String> =
        param.values.iter().map(|text| Seek::parse(text)).collect();
    let seeks = match words {
        Ok(seeks) => seeks,
        Err(why) => match value::series(&param.values, value::whole) {
            Ok(found) => {
                let seek = |percent: &u64| Seek::parse(&percent.to_string());
                found.iter().map(seek).collect::<Result<Vec<Seek>, String>>().map_err(failed)?
            }
            Err(_) => return Err(failed(why)),
        },
    };
    Ok(seeks.into_iter().map(Turn::Seek).collect())
}
