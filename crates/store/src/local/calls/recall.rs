//! Reading the log of calls at the start of a process: which calls have made their change.
//!
//! Where the kernel has kept in memory what the last process wrote, that is believed; and of a call
//! that had begun, and of which nothing more is known, the names tell: its directories were locked,
//! so they are as just before or just after the change.
//!
//! After a power cut (or where it can't be told from one) only that is believed which was stable:
//! what was settled, and intents that were synced, of which the names tell again. File systems make
//! changes of names stable in the order in which they were made; but the locks of directories say
//! nothing now, so where two calls may have made the same change it is left undecided. So it is
//! wherever the names don't prove that the change was made: the call is then carried out if it is
//! sent again.

use super::entries::{Entry, Stage, is_old};
use super::file::{Log, Memory};
use super::format::{Half, NameChange, Place, Record};
use super::state::State;
use crate::local::inode::Inode;
use crate::local::volume::Volume;
use crate::sync::{Arc, time_of_day};
use crate::sys::born_at;
use rustix::fs::syncfs;
use rustix::io::Errno;
use std::collections::BTreeMap;
use weir_core::{FsError, FsResult, Name, ObjectKey, Timestamp};

impl Volume {
    /// Reads the log, and finds out which of its calls have made their change. Blocks.
    pub(in crate::local) fn recall(&self) {
        let calls = &self.calls;
        if !calls.on {
            return;
        }
        match self.recalled() {
            Ok(Some(state)) => *calls.state() = state,
            Ok(None) => {}
            Err(errno) => {
                let volume = &self.label;
                tracing::warn!(
                    volume, %errno,
                    "cannot read meta/calls: calls retransmitted after this restart may be executed twice"
                );
            }
        }
    }

    fn recalled(&self) -> Result<Option<State>, Errno> {
        let Some(mut log) = Log::open(&self.root.fd, &self.descriptors)? else { return Ok(None) };
        let memory = log.memory();
        let halves = log.halves()?;
        let found = read(&halves, &mut log);
        let (settled, open): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|entry| entry.stage == Stage::Settled);
        let (undecided, power) = (!open.is_empty(), self.calls.power);
        let mut entries = self.decide(settled, open, memory);
        entries.sort_by_key(|entry| entry.number);
        if entries.is_empty() && !undecided {
            return Ok(None);
        }
        if undecided && (power || memory == Memory::Unknown) {
            // Answers are given of it from now on.
            syncfs(&self.root.fd)?;
        }
        for entry in &mut entries {
            entry.change = None;
            if power || memory == Memory::Unknown {
                entry.stage = Stage::Settled;
            }
        }
        if !entries.is_empty() {
            let (volume, count) = (&self.label, entries.len());
            tracing::info!(volume, count, "restored the log of calls from before the restart");
        }
        let mut state = State::found(log, entries);
        // A decision must not be repeated by names that have changed since.
        if undecided
            && state.begin()
            && power
            && let Some(file) = state.file()
        {
            rustix::fs::fdatasync(&file)?;
        }
        Ok(Some(state))
    }

    /// The entries of `known`, and of `open`, which is in doubt, that have made their change.
    fn decide(&self, mut known: Vec<Entry>, open: Vec<Entry>, memory: Memory) -> Vec<Entry> {
        let kept = memory == Memory::Kept;
        let mut guessed = Vec::new();
        for mut entry in open {
            let acted = entry.stage >= Stage::Acted;
            let made = match entry.stage {
                Stage::Acted if kept => true,
                Stage::Foreseen if kept => false,
                _ if !kept && !entry.synced => false,
                _ => self.was_made(&mut entry, kept).unwrap_or(false),
            };
            entry.stage = Stage::Acted;
            match (made, acted) {
                (false, _) => {}
                (true, true) => known.push(entry),
                (true, false) => guessed.push(entry),
            }
        }
        let guessed = without_rivals(&known, guessed);
        known.extend(guessed);
        known
    }

    /// Do the names prove that `entry` has made its change? Notes the object that it made.
    fn was_made(&self, entry: &mut Entry, kept: bool) -> Option<bool> {
        let acted = entry.stage >= Stage::Acted;
        let change = entry.change.take()?;
        Some(match NameChange::decode(&change)? {
            NameChange::Make { at, .. } if acted => {
                let made = entry.made?;
                self.leads(&at, &made)? || self.open_key(&made).is_ok()
            }
            NameChange::Make { at, whole } => {
                let (key, born) = self.there(&at).ok()??;
                entry.made = Some(key);
                whole && born? >= entry.at
            }
            NameChange::Remove { at, object, last } => {
                let stale = |key| matches!(self.open_key(key), Err(FsError::Stale));
                let goes_on = || last && !stale(&object);
                !self.leads(&at, &object)? && (kept || acted || !goes_on())
            }
            NameChange::Rename { from, to, object } => {
                !self.leads(&from, &object)? && (acted || self.leads(&to, &object)?)
            }
            NameChange::Link { at, object } => self.leads(&at, &object)?,
        })
    }

    /// Does a name lead to `object`? Unknown where the directory can't be looked at.
    fn leads(&self, place: &Place<'_>, object: &ObjectKey) -> Option<bool> {
        let there = self.there(place).ok()?;
        Some(there.is_some_and(|(key, _)| key.may_be(object)))
    }

    /// The object that a name leads to, and when that was made.
    fn there(&self, place: &Place<'_>) -> FsResult<Option<(ObjectKey, Option<Timestamp>)>> {
        let dir: Arc<Inode> = self.open_key(&place.dir)?;
        Name::new(place.name)?;
        match self.find_name(dir.fd(), place.name) {
            Ok(found) => Ok(Some((found.key, born_at(&found.fd).ok().flatten()))),
            Err(FsError::NotFound) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

/// Leaves out of `guessed` the makers of objects that others may have made, or are `known` to have.
fn without_rivals(known: &[Entry], guessed: Vec<Entry>) -> Vec<Entry> {
    let mut makers: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for made in known.iter().chain(&guessed).filter_map(|entry| entry.made) {
        *makers.entry(made).or_default() += 1;
    }
    let alone = |made| makers.get(&made).is_none_or(|count| *count == 1);
    guessed.into_iter().filter(|entry| entry.made.is_none_or(alone)).collect()
}

/// The calls in a log, by number, that may be remembered.
fn read(halves: &[Vec<u8>; 2], log: &mut Log) -> Vec<Entry> {
    let key = *log.key();
    let mut there: Vec<_> = halves
        .iter()
        .enumerate()
        .filter_map(|(at, bytes)| Some((at, Half::read(bytes, &key)?)))
        .collect();
    there.sort_by_key(|(_, half)| half.generation);
    let mut entries = BTreeMap::new();
    for (at, mut half) in there {
        log.follow(half.generation, at);
        let mut new = BTreeMap::new();
        let mut whole = false;
        while let Some(record) = half.next() {
            if record == Record::Whole {
                whole = true;
                entries = std::mem::take(&mut new);
                continue;
            }
            take(if whole { &mut entries } else { &mut new }, &record);
        }
        if !whole {
            // It was cut off: what it repeats is in the other half.
            entries.extend(new);
        }
    }
    let now = time_of_day();
    entries.into_values().filter(|entry: &Entry| !is_old(entry.at, now)).collect()
}

fn take(entries: &mut BTreeMap<u64, Entry>, record: &Record<'_>) {
    match *record {
        Record::Intent { number, call, at, begun, synced, change } => {
            let stage = if begun { Stage::Begun } else { Stage::Foreseen };
            let change = Some(change.into());
            entries.insert(number, Entry { number, call, at, stage, synced, change, made: None });
        }
        Record::Begun { number } => {
            if let Some(entry) = entries.get_mut(&number) {
                entry.stage = entry.stage.max(Stage::Begun);
            }
        }
        Record::Acted { number, made } => {
            if let Some(entry) = entries.get_mut(&number) {
                (entry.stage, entry.made) = (Stage::Acted, made);
            }
        }
        Record::Settled { number } => {
            if let Some(entry) = entries.get_mut(&number) {
                entry.stage = Stage::Settled;
            }
        }
        Record::Void { number } => {
            entries.remove(&number);
        }
        Record::Done { number, call, at, made, settled } => {
            let stage = if settled { Stage::Settled } else { Stage::Acted };
            let entry = Entry { number, call, at, stage, synced: false, change: None, made };
            entries.insert(number, entry);
        }
        Record::Whole => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::CallId;

    fn entry(xid: u32, made: u8) -> Entry {
        let call = CallId { client: 1, xid, procedure: 8, print: 0 };
        Entry {
            number: xid.into(),
            call,
            at: Timestamp::default(),
            stage: Stage::Acted,
            synced: true,
            change: None,
            made: (made > 0).then(|| ObjectKey::new(&[made]).unwrap()),
        }
    }

    #[test]
    fn of_two_that_may_have_made_an_object_neither_is_believed() {
        let guessed = vec![entry(1, 1), entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 0)];
        let left = without_rivals(&[entry(9, 2)], guessed);
        let left: Vec<u32> = left.iter().map(|entry| entry.call.xid).collect();
        assert_eq!(left, [4, 5], "and one that is known to have made it is alone");
    }
}
