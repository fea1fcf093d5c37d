//! Workload definitions: what is done to files.

use super::scan::Param;
use super::storage::{Extent, Flags, SECTORS, only, sector};
use super::text::TextPosition;
use super::value;
use crate::lang::LangError;
use weir_load::workload::SizeShare;

/// Order of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seek {
    /// Each somewhere else.
    Random,
    /// One after the other, over and over.
    Sequential,
    /// One after the other, once.
    Eof,
    /// A number of a hundred requests go somewhere else.
    Mixed(u8),
}

impl Seek {
    /// Reads a value of `seekpct=`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        let begins = |word: &str| text.len() >= 3 && word.starts_with(text.as_str());
        match text.as_str() {
            "eof" | "-1" => return Ok(Self::Eof),
            "seqnz" | "sequentialnz" | "poisson" => {
                let why = "cannot be applied; use random, sequential, eof or a percentage";
                return Err(format!("{text:?} {why}"));
            }
            _ if begins("random") => return Ok(Self::Random),
            _ if begins("sequential") => return Ok(Self::Sequential),
            _ => {}
        }
        match value::whole(&text).and_then(|percent| u8::try_from(percent).ok()) {
            Some(0) => Ok(Self::Sequential),
            Some(100) => Ok(Self::Random),
            Some(percent @ 1..=99) => Ok(Self::Mixed(percent)),
            _ => Err(format!("{text:?} is not one of random, sequential, eof and 0 to 100")),
        }
    }

    /// The value as a number for axes.
    pub(super) const fn percent(self) -> u8 {
        match self {
            Self::Random => 100,
            Self::Mixed(percent) => percent,
            Self::Sequential | Self::Eof => 0,
        }
    }
}

/// A workload.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) name: String,
    /// Names, wildcards and ranges of storages.
    pub(super) storages: Vec<String>,
    pub(super) hosts: Vec<String>,
    pub(super) read_percent: u8,
    /// At least one; they add up to 100.
    pub(super) sizes: Vec<SizeShare>,
    pub(super) seek: Seek,
    /// Thousandths of a percent.
    pub(super) skew: Option<u64>,
    pub(super) rate: Option<u64>,
    pub(super) range: Option<Extent>,
    pub(super) streams: Option<u32>,
    pub(super) flags: Option<Flags>,
    pub(super) place: TextPosition,
}

impl Load {
    /// The workload `name` of these parameters.
    pub(super) fn read(
        name: &str,
        params: &[Param],
        place: &TextPosition,
    ) -> Result<Self, LangError> {
        let mut load = Self {
            name: name.to_owned(),
            storages: Vec::new(),
            hosts: Vec::new(),
            read_percent: 100,
            sizes: vec![SizeShare { bytes: 4096, percent: 100 }],
            seek: Seek::Random,
            skew: None,
            rate: None,
            range: None,
            streams: None,
            flags: None,
            place: place.clone(),
        };
        for param in params {
            load.take(param)?;
        }
        if load.skew.is_some() && load.rate.is_some() {
            return Err(place.error(&format!("wd={name}"), "it has skew= or iorate=, not both"));
        }
        Ok(load)
    }

    fn take(&mut self, param: &Param) -> Result<(), LangError> {
        match param.word.name {
            "sd" => self.storages.clone_from(&param.values),
            "host" | "hd" => self.hosts.clone_from(&param.values),
            "rdpct" | "readpct" => self.read_percent = param.read(percent, "from 0 to 100")?,
            "writepct" | "wrpct" => {
                self.read_percent = 100 - param.read(percent, "from 0 to 100")?;
            }
            "xfersize" => self.sizes = sizes(param)?,
            "seekpct" => self.seek = Seek::parse(param.one()?).map_err(|why| param.error(why))?,
            "skew" => {
                let known = |text: &str| value::thousandths(text).filter(|part| *part <= 100_000);
                let skew = param.read(known, "a percentage")?;
                // 0 is what Vdbench has where nothing is said.
                self.skew = (skew > 0).then_some(skew);
            }
            "iorate" => {
                let known = |text: &str| value::whole(text).filter(|rate| *rate > 0);
                self.rate = Some(param.read(known, "a rate in requests a second")?);
            }
            "range" => self.range = Some(Extent::read(param)?),
            "streams" => {
                let known = |text: &str| value::whole(text)?.try_into().ok().filter(|n| *n >= 2);
                self.streams = Some(param.read(known, "a number of streams, from 2")?);
            }
            "openflags" => self.flags = Some(Flags::read(param)?),
            "rhpct" | "whpct" => only(param, "0")?,
            _ => {}
        }
        Ok(())
    }
}

/// A percentage.
pub(super) fn percent(text: &str) -> Option<u8> {
    value::whole(text).and_then(|n| u8::try_from(n).ok()).filter(|n| *n <= 100)
}

/// Reads `xfersize=`: one size, sizes with percentages, or (min,max,align).
fn sizes(param: &Param) -> Result<Vec<SizeShare>, LangError> {
    let refused = |why: &str| Err(param.error(why));
    let size =
        |text: &String| value::size(text).and_then(sector).ok_or_else(|| param.error(SECTORS));
    match param.values.as_slice() {
        [one] => Ok(vec![SizeShare { bytes: size(one)?, percent: 100 }]),
        [min, max, step] => between(size(min)?, size(max)?, size(step)?).ok_or_else(|| {
            let why = "sizes between two can be applied if there are 2, 4, 5, 10, 20, 25, 50 or 100 \
                       of them; choose another step, or write (size,percent,…)";
            param.error(why)
        }),
        values => {
            let mut found = Vec::with_capacity(values.len() / 2);
            let mut sum = 0_u32;
            for pair in values.chunks(2) {
                let [bytes, part] = pair else {
                    return refused("sizes and percentages stand in pairs: (4k,50,8k,50)");
                };
                let Some(percent) = percent(part).filter(|part| *part > 0) else {
                    return refused("percentages of sizes are whole numbers from 1 to 100");
                };
                sum += u32::from(percent);
                found.push(SizeShare { bytes: size(bytes)?, percent });
            }
            if sum == 100 { Ok(found) } else { refused("the percentages do not add up to 100") }
        }
    }
}

/// Every size from `min` to `max`, equally often; `None` if a hundred can't be divided so.
fn between(min: u32, max: u32, step: u32) -> Option<Vec<SizeShare>> {
    let number = max.checked_sub(min).filter(|room| *room > 0)?.checked_div(step)? + 1;
    let percent = u8::try_from(100_u32.checked_div(number)?).ok().filter(|part| *part > 0)?;
    (100 % number == 0)
        .then(|| (0..number).map(|at| SizeShare { bytes: min + at * step, percent }).collect())
}
