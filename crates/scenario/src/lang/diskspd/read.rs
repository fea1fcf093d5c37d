//! From words to settings: what a command line of diskspd says.

use super::words::{self, Word};
use crate::lang::LangError;
use crate::lang::vdbench::treatment::Treatment;

/// Most threads of a file, and most requests of a thread.
const COUNT_MAX: u32 = 65_536;
/// Longest time, in seconds: a week.
const SECONDS_MAX: u32 = 604_800;

/// An error about an option of the command line.
pub(super) fn refused(option: &str, why: impl Into<String>) -> LangError {
    LangError::whole("the command line", why).option(option)
}

/// Order of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// One after the other.
    #[default]
    Sequential,
    /// Sequential, with one sequence for all threads.
    Interlocked,
    /// Each somewhere else.
    Random,
    /// A number of a hundred requests go somewhere else.
    Mixed(u8),
}

/// A limit of each thread on each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    BytesPerMs(u32),
    Requests(u32),
}

/// Everything that a command line says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) block: u32,
    pub(super) base: u64,
    pub(super) create: Option<u64>,
    pub(super) most: Option<u64>,
    pub(super) warmup_s: u32,
    pub(super) measured_s: u32,
    pub(super) cooldown_s: u32,
    pub(super) threads: Option<u32>,
    pub(super) all_threads: Option<u32>,
    pub(super) depth: Option<u32>,
    pub(super) all_depth: Option<u32>,
    pub(super) order: Order,
    pub(super) align: Option<u64>,
    pub(super) stride: Option<u64>,
    pub(super) write_percent: u8,
    pub(super) limit: Option<Limit>,
    pub(super) burst: Option<u32>,
    pub(super) pause_ms: Option<u32>,
    pub(super) direct: Option<bool>,
    pub(super) write_through: Option<bool>,
    pub(super) seed: u32,
    pub(super) targets: Vec<String>,
    /// Remarks for the reader, a sentence each.
    pub(super) changes: Vec<String>,
}

impl Default for Settings {
    /// The defaults of diskspd.
    fn default() -> Self {
        Self {
            block: 64 << 10,
            base: 0,
            create: None,
            most: None,
            warmup_s: 5,
            measured_s: 10,
            cooldown_s: 0,
            threads: None,
            all_threads: None,
            depth: None,
            all_depth: None,
            order: Order::Sequential,
            align: None,
            stride: None,
            write_percent: 0,
            limit: None,
            burst: None,
            pause_ms: None,
            direct: None,
            write_through: None,
            seed: 0,
            targets: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl Settings {
    /// Reads the words behind the program's name.
    pub(super) fn read(words: &[String]) -> Result<Self, LangError> {
        let mut settings = Self::default();
        // Other sizes may be in blocks, wherever the block size stands.
        for word in words.iter().filter(|word| word.starts_with("-b")) {
            let block = size(word.get(2..).unwrap_or(""), 0).and_then(|size| size.try_into().ok());
            let wrong = || refused(word, "it is not a size; write it as in -b4K");
            settings.block = block.filter(|block| *block > 0).ok_or_else(wrong)?;
        }
        for word in words {
            if !word.starts_with('-') {
                settings.targets.push(word.clone());
            } else if let Some(target) = settings.targets.first() {
                let why = format!(
                    "options stand before the files, of which {target} is the first; a value stands \
                     right behind its option, as in -d10"
                );
                return Err(refused(word, why));
            } else {
                settings.option(word)?;
            }
        }
        if settings.targets.is_empty() {
            return Err(refused("", "it names no file; write it behind the options"));
        }
        Ok(settings)
    }

    fn option(&mut self, written: &str) -> Result<(), LangError> {
        let Some((word, value)) = words::find(written) else {
            return Err(refused(written, "it is not known here; see docs/bench-diskspd.md"));
        };
        match word.treatment {
            Treatment::Refused => return Err(refused(written, word.says)),
            Treatment::Nothing => self.note(format!("{written} has no effect here: {}", word.says)),
            Treatment::Reports => {}
            Treatment::Drives => self.drive(word, value, written)?,
        }
        Ok(())
    }

    fn note(&mut self, change: String) {
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }

    fn drive(&mut self, word: &Word, value: &str, written: &str) -> Result<(), LangError> {
        let block = self.block;
        let bytes = || size(value, block).ok_or_else(|| refused(written, "it is not a size"));
        let count = |most: u32| {
            let found = whole(value).filter(|count| (1..=most).contains(count));
            found.ok_or_else(|| refused(written, format!("it is not a number from 1 to {most}")))
        };
        let seconds = |least: u32| {
            let found = whole(value).filter(|time| (least..=SECONDS_MAX).contains(time));
            let why = format!("it is not a whole number of seconds from {least} to a week");
            found.ok_or_else(|| refused(written, why))
        };
        match word.name {
            "-B" => self.base = bytes()?,
            "-c" => self.create = Some(bytes()?),
            "-C" => self.cooldown_s = seconds(0)?,
            "-d" => self.measured_s = seconds(1)?,
            "-W" => self.warmup_s = seconds(0)?,
            "-f" if !value.is_empty() && value.chars().all(|c| matches!(c, 'r' | 's' | 't')) => {
                self.note(format!("{written} has no effect here: it is a hint to Windows"));
            }
            "-f" => self.most = Some(bytes()?),
            "-F" => self.all_threads = Some(count(COUNT_MAX)?),
            "-t" => self.threads = Some(count(COUNT_MAX)?),
            "-o" => self.depth = Some(count(COUNT_MAX)?),
            "-O" => self.all_depth = Some(count(COUNT_MAX)?),
            "-g" => self.limit = Some(limit(value, written)?),
            "-h" => self.caching("h", written)?,
            "-S" => self.caching(if value.is_empty() { "u" } else { value }, written)?,
            "-i" => self.burst = Some(count(u32::MAX)?),
            "-j" => self.pause_ms = Some(count(3_600_000)?),
            "-T" => self.stride = Some(bytes()?).filter(|bytes| *bytes > 0),
            "-w" if value.is_empty() => self.write_percent = 0,
            "-w" => self.write_percent = percent(value, written)?,
            "-z" => self.seed = if value.is_empty() { 0 } else { seed(value, written)? },
            _ => self.places(word, value, written)?,
        }
        Ok(())
    }

    /// Reads the options about the places of requests.
    fn places(&mut self, word: &Word, value: &str, written: &str) -> Result<(), LangError> {
        let random = matches!(self.order, Order::Random | Order::Mixed(_));
        match word.name {
            "-r" => {
                if !value.is_empty() {
                    let align = size(value, self.block).filter(|align| *align > 0);
                    self.align = Some(align.ok_or_else(|| refused(written, "it is not a size"))?);
                }
                if !random {
                    self.order = Order::Random;
                }
            }
            "-rs" => {
                self.order = match percent(value, written)? {
                    0 => Order::Sequential,
                    100 => Order::Random,
                    percent => Order::Mixed(percent),
                };
            }
            // In diskspd, -r counts where both are given.
            "-s" | "-si" => {
                let step = if value.is_empty() {
                    Some(self.block.into())
                } else {
                    size(value, self.block)
                };
                if random {
                    self.note(format!("{written} has no effect here: -r is said too"));
                    return Ok(());
                }
                if step != Some(u64::from(self.block)) {
                    let why = "only the block size can be the distance between requests; for threads \
                               that share a sequence use -si";
                    return Err(refused(written, why));
                }
                let own = if word.name == "-si" { Order::Interlocked } else { Order::Sequential };
                self.order = own;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the letters of `-S`; each of the two properties may be given once.
    fn caching(&mut self, letters: &str, written: &str) -> Result<(), LangError> {
        for letter in letters.chars() {
            let (direct, through) = match letter {
                'b' => (Some(false), None),
                'u' | 'r' => (Some(true), None),
                'w' => (None, Some(true)),
                'h' => (Some(true), Some(true)),
                'm' => {
                    return Err(refused(written, "files cannot be mapped into memory; omit m"));
                }
                _ => {
                    let why = format!("{letter:?} is not one of u, w, h, r and b");
                    return Err(refused(written, why));
                }
            };
            if direct.is_some() && self.direct.is_some()
                || through.is_some() && self.write_through.is_some()
            {
                return Err(refused(
                    written,
                    "it says again what was said before; omit one of them",
                ));
            }
            self.direct = self.direct.or(direct);
            self.write_through = self.write_through.or(through);
        }
        Ok(())
    }
}

/// A size: bytes, or K, M, G, or b for blocks.
fn size(text: &str, block: u32) -> Option<u64> {
    let (at, last) = text.char_indices().next_back()?;
    let factor = match last.to_ascii_lowercase() {
        'k' => 1 << 10,
        'm' => 1 << 20,
        'g' => 1 << 30,
        't' => 1 << 40,
        'b' if block > 0 => u64::from(block),
        _ => return digits(text),
    };
    digits(text.get(..at)?)?.checked_mul(factor)
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn whole(text: &str) -> Option<u32> {
    u32::try_from(digits(text)?).ok()
}

fn percent(text: &str, written: &str) -> Result<u8, LangError> {
    let found = whole(text).and_then(|n| u8::try_from(n).ok()).filter(|n| *n <= 100);
    found.ok_or_else(|| refused(written, "it is not a percentage from 0 to 100"))
}

fn seed(text: &str, written: &str) -> Result<u32, LangError> {
    whole(text).ok_or_else(|| refused(written, "it is not a number"))
}

fn limit(value: &str, written: &str) -> Result<Limit, LangError> {
    let (number, requests) = match value.strip_suffix('i') {
        Some(number) => (number, true),
        None => (value, false),
    };
    let number = whole(number).filter(|number| *number > 0).ok_or_else(|| {
        refused(written, "it is neither bytes a millisecond (-g100) nor requests a second (-g500i)")
    })?;
    Ok(if requests { Limit::Requests(number) } else { Limit::BytesPerMs(number) })
}
