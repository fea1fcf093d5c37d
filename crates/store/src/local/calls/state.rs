//! The known calls in memory, and the times at which they are written.

use super::entries::{Entries, Entry, Stage};
use super::file::Log;
use super::format::{FRAME_MAX, HALF, NameChange, Record};
use crate::descriptors::Account;
use crate::sync::{Arc, now, time_of_day};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;
use weir_core::limits::CALLS_VOLUME_MAX;
use weir_core::{CallId, Mono, ObjectKey, Remembered};

/// Time in which nothing is recorded after the log could not be written.
const PAUSE: Duration = Duration::from_secs(60);
/// Most bytes of what a new generation begins with.
const WHOLE_MAX: usize = HALF / 4 * 3;
/// Most bytes of the records of one entry, beside its change: an intent and what was made.
const ENTRY_BYTES_MAX: usize = 128;

/// The record of a call that is about to change names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing, or something else.
    New,
    /// Just this.
    Foreseen,
    /// Just this, and that it has begun.
    Begun,
}

/// The entries of all clients, oldest first for each, and the file.
#[derive(Debug, Default)]
pub(super) struct State {
    log: Option<Log>,
    /// After a failure: when to try again.
    again: Option<Mono>,
    last: u64,
    entries: Entries,
    /// To be written with the next intent.
    pending: Vec<Record<'static>>,
    buffer: Vec<u8>,
    encoded: Vec<u8>,
}

impl State {
    /// The state found at the start.
    pub(super) fn found(log: Log, entries: Vec<Entry>) -> Self {
        let mut state = Self { log: Some(log), ..Self::default() };
        for entry in entries {
            state.last = state.last.max(entry.number);
            state.void(&entry.call);
            state.add(entry);
        }
        state
    }

    pub(super) fn is_open(&self) -> bool {
        self.log.is_some()
    }

    /// Is it worth trying to open the log?
    pub(super) fn may_open(&self) -> bool {
        self.again.is_none_or(|again| now() >= again)
    }

    /// Makes the log. Blocks.
    pub(super) fn open(&mut self, root: impl AsFd, stable: bool, descriptors: &Arc<Account>) {
        match Log::make(root, stable, descriptors) {
            Ok(log) => self.log = Some(log),
            Err(errno) => {
                self.again = Some(now() + PAUSE);
                tracing::warn!(
                    %errno,
                    "cannot create meta/calls: calls retransmitted after a restart may be executed twice"
                );
            }
        }
    }

    pub(super) fn file(&self) -> Option<Arc<OwnedFd>> {
        self.log.as_ref().map(Log::file)
    }

    /// The record of `call`, which is about to make `change`.
    pub(super) fn known(&mut self, call: &CallId, change: &NameChange<'_>) -> Known {
        self.encoded.clear();
        change.encode(&mut self.encoded);
        let Some(entry) = self.entries.find(call) else { return Known::New };
        let same = entry.change.as_deref() == Some(self.encoded.as_slice());
        match entry.stage {
            Stage::Foreseen if same => Known::Foreseen,
            Stage::Begun if same => Known::Begun,
            _ => Known::New,
        }
    }

    /// Puts on record what `call` is about to do.
    pub(super) fn intend(
        &mut self,
        call: &CallId,
        change: &NameChange<'_>,
        begun: bool,
        synced: bool,
    ) {
        self.void(call);
        self.encoded.clear();
        change.encode(&mut self.encoded);
        self.last += 1;
        let (number, at) = (self.last, time_of_day());
        let stage = if begun { Stage::Begun } else { Stage::Foreseen };
        let change = Some(self.encoded.as_slice().into());
        self.add(Entry { number, call: *call, at, stage, synced, change, made: None });
        let change = std::mem::take(&mut self.encoded);
        self.write(Some(Record::Intent {
            number,
            call: *call,
            at,
            begun,
            synced,
            change: &change,
        }));
        self.encoded = change;
    }

    /// A call that was foreseen begins.
    pub(super) fn begun(&mut self, call: &CallId) {
        let Some(entry) = self.entries.find(call) else { return };
        entry.stage = Stage::Begun;
        let number = entry.number;
        self.write(Some(Record::Begun { number }));
    }

    /// The change of `call` was made. True if that is to be written. The outcome alone is kept
    /// unless it may have to be looked for after a power cut.
    pub(super) fn acted(&mut self, call: &CallId, made: Option<ObjectKey>, power: bool) -> bool {
        let Some(entry) = self.entries.find(call) else { return false };
        (entry.stage, entry.made) = (Stage::Acted, made);
        if !power {
            entry.change = None;
        }
        self.pending.push(Record::Acted { number: entry.number, made });
        true
    }

    /// The change of `call` is stable. True if that is to be written.
    pub(super) fn settled(&mut self, call: &CallId) -> bool {
        let Some(entry) = self.entries.find(call) else { return false };
        (entry.stage, entry.change) = (Stage::Settled, None);
        self.pending.push(Record::Settled { number: entry.number });
        true
    }

    /// All changes are stable. True if that was to be written, and was.
    pub(super) fn settle_all(&mut self) -> bool {
        let mut changed = false;
        for entry in self.entries.iter_mut().filter(|it| it.stage == Stage::Acted) {
            (entry.stage, entry.change) = (Stage::Settled, None);
            changed = true;
        }
        changed && self.begin()
    }

    /// Forgets `call`, which has failed, unless it has made its change. True if that is to be
    /// written.
    pub(super) fn failed_call(&mut self, call: &CallId) -> bool {
        let open = self.entries.find(call).is_some_and(|entry| entry.stage < Stage::Acted);
        open && self.void(call)
    }

    /// Forgets `call`. True if that is to be written.
    pub(super) fn void(&mut self, call: &CallId) -> bool {
        let Some(Entry { number, .. }) = self.entries.remove(call) else { return false };
        self.pending.push(Record::Void { number });
        true
    }

    /// Writes what is to be written.
    pub(super) fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.write(None);
        }
    }

    /// The calls that have made their change, oldest first for each client.
    pub(super) fn remembered(&self) -> Vec<Remembered> {
        let entries = self.entries.iter().filter(|it| it.stage >= Stage::Acted);
        entries.map(|it| Remembered { call: it.call, made: it.made }).collect()
    }

    /// Forgets the log where there is nothing in it to remember.
    pub(super) fn release_idle(&mut self) {
        self.entries.forget_old();
        if self.entries.is_empty()
            && let Some(log) = self.log.take()
            && let Err(errno) = log.empty()
        {
            tracing::warn!(%errno, "cannot empty meta/calls");
        }
    }

    /// Begins a new generation with what is known. False if that can't be written.
    pub(super) fn begin(&mut self) -> bool {
        self.entries.forget_old();
        while self.whole_bytes() > WHOLE_MAX && self.give_way() {}
        self.pending.clear();
        let Some(log) = &mut self.log else { return false };
        let entries = self.entries.iter();
        match log.begin(&mut self.buffer, entries.flat_map(records)) {
            Ok(()) => true,
            Err(errno) => {
                self.failed(errno);
                false
            }
        }
    }

    /// The log can't be relied on: what it says is taken away, as far as that can be done.
    pub(super) fn give_up(&mut self) {
        self.failed(Errno::IO);
    }

    fn failed(&mut self, errno: Errno) {
        let Some(log) = self.log.take() else { return };
        let emptied = log.empty().is_ok();
        self.again = Some(now() + PAUSE);
        self.pending.clear();
        tracing::warn!(
            %errno, emptied,
            "cannot write meta/calls: calls retransmitted after a restart may be executed twice"
        );
    }

    /// Writes what is to be written, and one record more. That is in memory already, so a new
    /// generation begins with it.
    fn write(&mut self, record: Option<Record<'_>>) {
        let Some(log) = &mut self.log else {
            self.pending.clear();
            return;
        };
        let records = self.pending.iter().copied().chain(record);
        match log.append(&mut self.buffer, records) {
            Ok(true) => self.pending.clear(),
            Ok(false) => {
                self.begin();
            }
            Err(errno) => self.failed(errno),
        }
    }

    fn add(&mut self, entry: Entry) {
        self.entries.add(entry, |entry| forgotten(&mut self.pending, &entry));
    }

    /// Has the log forget the oldest call of the client that has the most. False if there is none.
    fn give_way(&mut self) -> bool {
        let entry = self.entries.give_way();
        entry.inspect(|entry| forgotten(&mut self.pending, entry)).is_some()
    }

    /// About as many bytes as a new generation begins with, never fewer.
    fn whole_bytes(&self) -> usize {
        let bytes = |entry: &Entry| {
            ENTRY_BYTES_MAX + entry.change.as_ref().map_or(0, |change| change.len())
        };
        self.entries.iter().map(bytes).sum()
    }
}

/// Notes that a call's entry was removed for want of room: the outcome of a call that is still
/// under way won't be known.
fn forgotten(pending: &mut Vec<Record<'static>>, entry: &Entry) {
    if entry.stage < Stage::Acted {
        pending.push(Record::Void { number: entry.number });
    }
}

/// The records of a known call.
fn records(entry: &Entry) -> impl Iterator<Item = Record<'_>> {
    let Entry { number, call, at, stage, synced, made, .. } = *entry;
    let acted = stage >= Stage::Acted;
    let settled = stage == Stage::Settled;
    match entry.change.as_deref() {
        Some(change) => {
            let begun = stage >= Stage::Begun;
            let intent = Record::Intent { number, call, at, begun, synced, change };
            [Some(intent), acted.then_some(Record::Acted { number, made })]
        }
        None => [Some(Record::Done { number, call, at, made, settled }), None],
    }
    .into_iter()
    .flatten()
}

const _: () = assert!(WHOLE_MAX + 2 * FRAME_MAX < HALF);
const _: () = assert!(CALLS_VOLUME_MAX * ENTRY_BYTES_MAX < WHOLE_MAX);
