//! The last events of a watch, kept until they were asked for.

use super::{failure, text};
use crate::client::{Connection, EtcdError};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use weir_catalog::{Changes, Event, StoreError};

/// Most bytes of events that nobody has asked for. Beyond: their history counts as lost.
const EVENT_BYTES_MAX: usize = 32 << 20;
/// Bytes that an event takes besides its key and value.
const EVENT_BYTES: usize = 96;

/// The events of a watch over a prefix.
pub(super) struct Tail {
    runtime: Handle,
    connection: Connection,
    prefix: String,
    /// Shared with the task that watches.
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// The watch that runs, if one does.
    watch: Option<AbortHandle>,
    /// The number of that watch. What earlier ones tell is ignored.
    number: u64,
    /// The revision behind which the events are here, or will be.
    floor: u64,
    /// The revision up to which they are here.
    told: u64,
    events: VecDeque<Event>,
    bytes: usize,
    /// The reason for which the watch has ended by itself.
    ended: Option<StoreError>,
}

impl State {
    fn covers(&self, after: u64) -> bool {
        self.watch.is_some() && self.floor <= after
    }

    fn stop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.abort();
        }
        self.number += 1;
        self.events.clear();
        self.bytes = 0;
    }

    fn forget(&mut self, up_to: u64) {
        while let Some(event) = self.events.front().filter(|event| event.revision <= up_to) {
            self.bytes -= size(event);
            self.events.pop_front();
        }
        self.floor = self.floor.max(up_to);
    }
}

fn size(event: &Event) -> usize {
    event.key.len() + event.value.as_ref().map_or(0, Vec::len) + EVENT_BYTES
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what the watch with this number told. Tells whether it goes on.
    fn keep(&self, number: u64, told: Result<crate::client::Changes, EtcdError>) -> bool {
        let mut state = self.lock();
        if state.number != number {
            return false;
        }
        match told {
            Ok(changes) => {
                for event in changes.events {
                    let key = text(&event.key);
                    let event = Event { key, value: event.value, revision: event.revision };
                    state.bytes += size(&event);
                    state.events.push_back(event);
                }
                state.told = changes.revision;
                if state.bytes > EVENT_BYTES_MAX {
                    state.ended = Some(StoreError::Compacted);
                }
            }
            // An answer that is too long: the rows have to be read anew.
            Err(EtcdError::TooLong) => state.ended = Some(StoreError::Compacted),
            Err(error) => state.ended = Some(failure(&error)),
        }
        self.news.notify_all();
        state.ended.is_none()
    }
}

impl Tail {
    pub(super) fn new(runtime: Handle, connection: Connection, prefix: String) -> Self {
        Self { runtime, connection, prefix, told: Arc::default() }
    }

    /// The events after `after`, as soon as those up to the revision `last` are here; `None` if
    /// they do not come `within` this time. Those up to `after` are forgotten.
    ///
    /// # Errors
    /// The watch has ended for this reason. The next call begins another one.
    pub(super) fn take(
        &self,
        after: u64,
        last: u64,
        within: Duration,
    ) -> Result<Option<Changes>, StoreError> {
        let Some(mut state) = self.reached(after, last, within)? else { return Ok(None) };
        state.forget(after);
        let events = state.events.iter().filter(|event| event.revision > after);
        let (events, revision) = (events.cloned().collect(), state.told.max(after));
        Ok(Some(Changes { revision, events }))
    }

    /// Waits for an event after `after`, for at most `within`.
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub(super) fn wait(&self, after: u64, within: Duration) -> Result<(), StoreError> {
        self.reached(after, after.saturating_add(1), within).map(drop)
    }

    /// The state in which the events after `after` and up to the revision `last` are here.
    fn reached(
        &self,
        after: u64,
        last: u64,
        within: Duration,
    ) -> Result<Option<MutexGuard<'_, State>>, StoreError> {
        let until = Instant::now() + within;
        let mut state = self.told.lock();
        loop {
            if let Some(error) = state.ended.take() {
                state.stop();
                return Err(error);
            }
            if !state.covers(after) {
                self.begin(&mut state, after);
            }
            if after >= last || state.told >= last {
                return Ok(Some(state));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.told.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Begins another watch, which tells the events after `after` once more.
    pub(super) fn begin_anew(&self, after: u64) {
        let mut state = self.told.lock();
        let after = if state.watch.is_some() { after.min(state.floor) } else { after };
        self.begin(&mut state, after);
    }

    fn begin(&self, state: &mut State, after: u64) {
        state.stop();
        (state.floor, state.told) = (after, after);
        let mut watch = self.connection.watch(&self.prefix, after);
        let (told, number) = (Arc::clone(&self.told), state.number);
        let watching =
            self.runtime.spawn(async move { while told.keep(number, watch.next().await) {} });
        state.watch = Some(watching.abort_handle());
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.told.lock().stop();
    }
}
