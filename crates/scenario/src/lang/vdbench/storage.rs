//! General parameters, hosts and storages: what there is, before anything is done with it.

use super::scan::{Definition, Param};
use super::text::TextPosition;
use super::value;
use crate::lang::LangError;
use crate::lang::paths::Places;
use weir_load::workload::{Location, Stability};

/// Most files of a text.
pub(super) const FILES_MAX: usize = 65_536;

/// The values of general parameters.
#[derive(Clone, Debug)]
pub(super) struct General {
    /// Compare what is read with what was written.
    pub(super) validate: bool,
    /// Read back what was written.
    pub(super) read_back: bool,
    /// Write files before their first use: always, never, or unless the first use fills them.
    pub(super) format: Option<bool>,
    /// Bytes in one write of that.
    pub(super) format_bytes: u32,
}

impl Default for General {
    fn default() -> Self {
        Self { validate: false, read_back: false, format: None, format_bytes: 128 << 10 }
    }
}

impl General {
    /// Takes in general parameters.
    pub(super) fn add(&mut self, definition: &Definition) -> Result<(), LangError> {
        for param in &definition.params {
            match param.word.name {
                "validate" => self.validate(param)?,
                "formatsds" => self.format = Some(param.read(yes_or_no, "yes or no")?),
                "formatxfersize" => self.format_bytes = request_bytes(param)?,
                "concatenatesds" => {
                    param.read(|text| yes_or_no(text).filter(|yes| !yes), "no")?;
                }
                "compratio" | "dedupratio" => only(param, "1")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn validate(&mut self, param: &Param) -> Result<(), LangError> {
        for value in &param.values {
            match value.to_ascii_lowercase().as_str() {
                "no" | "n" => self.validate = false,
                "yes" | "y" | "time" | "no_preread" => self.validate = true,
                "read_after_write" => (self.validate, self.read_back) = (true, true),
                other => {
                    let why = format!(
                        "{other:?} is not one of yes, no, read_after_write, no_preread, time"
                    );
                    return Err(param.error(why));
                }
            }
        }
        Ok(())
    }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().chars().next()? {
        'y' => Some(true),
        'n' => Some(false),
        _ => None,
    }
}

/// Refuses every value but one.
pub(super) fn only(param: &Param, wanted: &str) -> Result<(), LangError> {
    let same = |text: &String| {
        value::thousandths(text).is_some() && value::thousandths(text) == value::thousandths(wanted)
    };
    if param.values.iter().all(same) { Ok(()) } else { Err(param.error(param.word.says)) }
}

/// Bytes of a request.
pub(super) fn request_bytes(param: &Param) -> Result<u32, LangError> {
    let bytes = param.read(value::size, "a size")?;
    sector(bytes).ok_or_else(|| param.error(SECTORS))
}

/// Why a size of requests is refused.
pub(super) const SECTORS: &str = "sizes of requests are multiples of 512 bytes, from 512";

/// A number of bytes that is a multiple of 512.
pub(super) fn sector(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|bytes| *bytes > 0 && bytes % 512 == 0)
}

/// The flags with which files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flags {
    pub(super) direct: bool,
    /// 0: unstable, 1: data-sync, 2: file-sync.
    sync: u8,
    pub(super) end_sync: bool,
}

impl Flags {
    /// Reads `openflags=`.
    pub(super) fn read(param: &Param) -> Result<Self, LangError> {
        let mut flags = Self::default();
        for value in &param.values {
            match value.to_ascii_lowercase().as_str() {
                "o_direct" | "directio" => flags.direct = true,
                "o_sync" => flags.sync = 2,
                "o_dsync" | "o_rsync" => flags.sync = flags.sync.max(1),
                "fsync" => flags.end_sync = true,
                other => {
                    let why = format!(
                        "{other:?} cannot be applied; known are o_direct, directio, o_sync, o_dsync, \
                         o_rsync and fsync"
                    );
                    return Err(param.error(why));
                }
            }
        }
        Ok(flags)
    }

    pub(super) const fn stability(self) -> Stability {
        match self.sync {
            0 => Stability::Unstable,
            1 => Stability::DataSync,
            _ => Stability::FileSync,
        }
    }
}

/// The part of a file that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// From and to, in thousandths of a percent.
    Percent(u64, u64),
    /// From and to, in bytes.
    Bytes(u64, u64),
}

impl Extent {
    /// Reads `range=`: percents up to 100, bytes over 200.
    pub(super) fn read(param: &Param) -> Result<Self, LangError> {
        let [from, to] = param.values.as_slice() else {
            return Err(param.error("it has two values, as in (40,60) or (1g,2g)"));
        };
        let percent = (value::thousandths(from), value::thousandths(to));
        match percent {
            (Some(from), Some(to)) if from < to && to <= 100_000 => {
                return Ok(Self::Percent(from, to));
            }
            (Some(from), Some(to)) if from < to && to <= 200_000 => {
                let why = "it goes on at the beginning of the file; use a range up to 100 percent";
                return Err(param.error(why));
            }
            _ => {}
        }
        match (value::size(from), value::size(to)) {
            (Some(from), Some(to)) if from < to => Ok(Self::Bytes(from, to)),
            _ => Err(param.error("the first value is below the second: (40,60) or (1g,2g)")),
        }
    }

    /// Offset and length in a file of `size` bytes, on boundaries of `block`.
    pub(super) fn of(self, size: u64, block: u32) -> (u64, u64) {
        let block = u64::from(block);
        let at = |thousandths: u64| {
            let bytes = u128::from(size) * u128::from(thousandths) / 100_000;
            u64::try_from(bytes).unwrap_or(size)
        };
        let (from, to) = match self {
            Self::Percent(from, to) => (at(from), at(to)),
            Self::Bytes(from, to) => (from.min(size), to.min(size)),
        };
        let down = |bytes: u64| bytes / block * block;
        (down(from), down(to).saturating_sub(down(from)))
    }
}

/// The texts that are network names, in words.
const SYSTEM: &str =
    "a network name or an address: letters, digits and . _ - : [ ] %, with no hyphen in front";
/// The texts that are users, in words.
const USER: &str =
    "a user: letters, digits and . _ - + @, with no hyphen in front, and a $ at the end";

fn system(text: &str) -> Option<String> {
    crate::scenario::Host::is_system(text).then(|| text.to_owned())
}

fn user(text: &str) -> Option<String> {
    crate::scenario::Host::is_user(text).then(|| text.to_owned())
}

/// A host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub(super) label: String,
    pub(super) clients: u32,
    pub(super) system: Option<String>,
    pub(super) user: Option<String>,
    pub(super) shell: Option<String>,
}

impl Host {
    pub(super) fn read(definition: &Definition) -> Result<Self, LangError> {
        let label = definition.name.clone();
        let mut host = Self { label, clients: 1, system: None, user: None, shell: None };
        for param in &definition.params {
            match param.word.name {
                "clients" => {
                    let known = |text: &str| value::whole(text).filter(|n| (1..=1000).contains(n));
                    let clients = param.read(known, "a number from 1 to 1000")?;
                    host.clients = u32::try_from(clients).unwrap_or(1);
                }
                "system" => host.system = Some(param.read(system, SYSTEM)?),
                "user" => host.user = Some(param.read(user, USER)?),
                "shell" => host.shell = Some(param.one()?.to_owned()),
                _ => {}
            }
        }
        Ok(host)
    }

    /// The host as part of a scenario.
    pub(super) fn known(&self) -> crate::scenario::Host {
        crate::scenario::Host {
            name: self.label.clone(),
            system: self.system.clone(),
            user: self.user.clone(),
            shell: self.shell.clone(),
        }
    }
}

/// A file.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) name: String,
    pub(super) at: Location,
    pub(super) file: String,
    /// Without the part that is left free.
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) threads: u32,
    pub(super) flags: Flags,
    pub(super) align: Option<u32>,
    pub(super) range: Option<Extent>,
    pub(super) hosts: Vec<String>,
}

/// Parameters of a storage, and what is not yet one of its fields.
struct Draft {
    storage: Storage,
    lun: Option<String>,
    sized: bool,
    count: Option<(u64, u64)>,
}

impl Storage {
    /// The storages that a definition makes.
    pub(super) fn read(
        definition: &Definition,
        places: &mut Places<'_>,
    ) -> Result<Vec<Self>, LangError> {
        let mut draft = Draft {
            storage: Self {
                name: definition.name.clone(),
                at: Location::default(),
                file: String::new(),
                size: 0,
                offset: 0,
                threads: 8,
                flags: Flags::default(),
                align: None,
                range: None,
                hosts: Vec::new(),
            },
            lun: None,
            sized: false,
            count: None,
        };
        for param in &definition.params {
            draft.take(param)?;
        }
        draft.finish(&definition.place, places)
    }
}

impl Draft {
    fn take(&mut self, param: &Param) -> Result<(), LangError> {
        let storage = &mut self.storage;
        match param.word.name {
            "lun" => {
                let lun = param.one()?;
                if self.lun.as_ref().is_some_and(|other| other != lun) {
                    let why = "hosts cannot have different files for one sd=; define one for each";
                    return Err(param.error(why));
                }
                self.lun = Some(lun.to_owned());
            }
            "size" => {
                storage.size = divided(param, value::size, "a size such as 100g")?;
                self.sized = true;
            }
            "threads" => {
                let threads = divided(param, value::whole, "a number of threads")?.max(1);
                let known = u32::try_from(threads).ok().filter(|threads| *threads <= 65_536);
                storage.threads =
                    known.ok_or_else(|| param.error("there are more threads than 65536"))?;
            }
            "openflags" => storage.flags = Flags::read(param)?,
            "host" | "hd" => storage.hosts.extend(param.values.iter().cloned()),
            "count" => self.count = Some(count(param)?),
            "range" => storage.range = Some(Extent::read(param)?),
            "offset" => storage.offset = param.read(value::size, "a number of bytes")?,
            "align" => storage.align = Some(request_bytes(param)?),
            "hitarea" => only(param, "0")?,
            "dedupratio" => only(param, "1")?,
            _ => {}
        }
        Ok(())
    }

    fn finish(
        self,
        place: &TextPosition,
        places: &mut Places<'_>,
    ) -> Result<Vec<Storage>, LangError> {
        let name = self.storage.name.clone();
        let what = format!("sd={name}");
        let refused = |why: &str| Err(place.error(&what, why));
        let Some(lun) = self.lun else { return refused("lun= is missing: the file it stands for") };
        if !self.sized || self.storage.size == 0 {
            return refused("size= is missing: how large the file is, or is to be");
        }
        if self.storage.offset.checked_add(self.storage.size).is_none() {
            return refused("offset= and size= are too large");
        }
        let files = match self.count {
            None => vec![(name, lun)],
            Some((first, number)) => (first..first.saturating_add(number))
                .map(|at| Some((format!("{name}{at}"), numbered(&lun, at)?)))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| {
                    let why = "with count= it holds one %d, %04d or *, where the number goes";
                    place.error("lun", why)
                })?,
        };
        let made = files.into_iter().map(|(name, lun)| {
            let at = places.place(&lun).map_err(|error| place.error("lun", error.message))?;
            let (at, file) = (at.at, at.name);
            Ok(Storage { name, at, file, ..self.storage.clone() })
        });
        made.collect()
    }
}

/// A value, or two of which the second divides the first.
fn divided(
    param: &Param,
    read: impl Fn(&str) -> Option<u64>,
    what: &str,
) -> Result<u64, LangError> {
    let wrong = || param.error(format!("it is not {what}"));
    match param.values.as_slice() {
        [value] => read(value).ok_or_else(wrong),
        [value, by] => {
            let value = read(value).ok_or_else(wrong)?;
            value::whole(by).and_then(|by| value.checked_div(by)).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn count(param: &Param) -> Result<(u64, u64), LangError> {
    let wrong = || param.error(format!("it has two values, as in (1,144), at most {FILES_MAX}"));
    let [first, number] = param.values.as_slice() else { return Err(wrong()) };
    match (value::whole(first), value::whole(number)) {
        (Some(first), Some(number)) if (1..=FILES_MAX as u64).contains(&number) => {
            Ok((first, number))
        }
        _ => Err(wrong()),
    }
}

/// `lun` with a number in place of `%d`, `%04d` or `*`, of which there is one.
fn numbered(lun: &str, number: u64) -> Option<String> {
    if let Some((head, rest)) = lun.split_once('%') {
        let (width, tail) = rest.split_once('d')?;
        let zeros = width.starts_with('0');
        let digits = if width.is_empty() { 0 } else { value::whole(width)? };
        let digits = usize::try_from(digits).ok().filter(|digits| *digits <= 20)?;
        if tail.contains('%') || digits > 0 && !zeros {
            return None;
        }
        return Some(format!("{head}{number:0digits$}{tail}"));
    }
    let (head, tail) = lun.split_once('*')?;
    (!tail.contains('*')).then(|| format!("{head}{number}{tail}"))
}
