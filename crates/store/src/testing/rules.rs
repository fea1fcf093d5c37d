//! Which calls fail, and how.

use super::call::{Kind, Seen};
use rustix::io::Errno;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fault for some of the calls.
#[derive(Clone, Debug)]
pub struct Rule {
    kinds: Vec<Kind>,
    below: PathBuf,
    bytes: Range<u64>,
    when: When,
    fault: Fault,
}

/// The choice among the calls that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All calls.
    Always,
    /// The first calls, so many.
    First(u64),
    /// This call, counted from 1.
    Nth(u64),
    /// One call in so many, by chance that the seed decides.
    OneIn(u64, u64),
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with this error and has done nothing.
    Fail(Errno),
    /// A read or write moves at most so many bytes.
    Short(usize),
    /// The call is carried out after this time.
    Slow(Duration),
    /// The call is carried out once the rule is lifted.
    Hold,
}

/// A rule in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(u64);

impl Rule {
    /// `fault` happens to every call of these kinds on an object whose path is `below` or begins
    /// with it.
    pub fn new(kinds: &[Kind], below: impl AsRef<Path>, fault: Fault) -> Self {
        let (kinds, below) = (kinds.to_vec(), below.as_ref().to_owned());
        Self { kinds, below, bytes: 0..u64::MAX, when: When::Always, fault }
    }

    /// Only to reads and writes that touch these bytes.
    #[must_use]
    pub fn bytes(self, bytes: Range<u64>) -> Self {
        Self { bytes, ..self }
    }

    /// Only to some of the calls.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    fn is_about(&self, seen: &Seen) -> bool {
        let touches = |(offset, count): (u64, usize)| {
            offset < self.bytes.end && offset.saturating_add(count as u64) > self.bytes.start
        };
        self.kinds.contains(&seen.kind)
            && seen.path.starts_with(&self.below)
            && seen.range.is_none_or(touches)
    }
}

/// A rule, and what it met.
#[derive(Debug)]
struct InForce {
    id: RuleId,
    rule: Rule,
    met: u64,
    hits: u64,
    chance: u64,
    held: Vec<u64>,
}

/// The rules in force, in the order in which they are asked.
#[derive(Debug, Default)]
pub(super) struct Rules {
    all: Vec<InForce>,
    added: u64,
}

impl Rules {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        self.added += 1;
        let id = RuleId(self.added);
        let chance = if let When::OneIn(_, seed) = rule.when { seed } else { 0 };
        self.all.push(InForce { id, rule, met: 0, hits: 0, chance, held: Vec::new() });
        id
    }

    /// Ends a rule. Gives the calls that it has held.
    pub(super) fn lift(&mut self, id: RuleId) -> Vec<u64> {
        let ended = self.all.extract_if(.., |one| one.id == id);
        ended.flat_map(|one| one.held).collect()
    }

    /// Ends all rules.
    pub(super) fn lift_all(&mut self) -> Vec<u64> {
        self.all.drain(..).flat_map(|one| one.held).collect()
    }

    /// The number of times that a rule has struck.
    pub(super) fn hits(&self, id: RuleId) -> u64 {
        self.all.iter().find(|one| one.id == id).map_or(0, |one| one.hits)
    }

    /// The fault for a call: that of the first rule that strikes it.
    pub(super) fn judge(&mut self, seen: &Seen) -> Option<Fault> {
        let one = self.all.iter_mut().find_map(|one| {
            let strikes = one.rule.is_about(seen) && one.strikes();
            strikes.then_some(one)
        })?;
        one.hits += 1;
        if one.rule.fault == Fault::Hold {
            one.held.push(seen.id);
        }
        Some(one.rule.fault)
    }
}

impl InForce {
    fn strikes(&mut self) -> bool {
        self.met += 1;
        match self.rule.when {
            When::Always => true,
            When::First(count) => self.met <= count,
            When::Nth(number) => self.met == number,
            When::OneIn(parts, _) => {
                weir_core::rng::step(&mut self.chance).is_multiple_of(parts.max(1))
            }
        }
    }
}
