//! The sessions, opens and locks of clients as the control plane lists and closes them.
//!
//! The tables of opens and locks are locked for a few entries at a time, so that no worker waits
//! long; nothing is made of the entries meanwhile.

use super::Engine;
use super::lock_ids::LockId;
use crate::session::deliver;
use crate::session::rpc::nlm;
use crate::session::smb::Moment;
use weir_control::plane::{ClientState, Lock, Object, SmbOpen, SmbSession, Step};
use weir_core::hex;
use weir_state::{ListedLock, LockPlace, LockSpot, Mode, OpenFile, OpenId, ReleasedLock};

/// Entries that are taken from the tables at a time.
const AT_ONCE: usize = 64;

impl Engine {
    /// At most `most` opens with numbers above `after`, and whether their files are to be deleted.
    fn opens_after(&self, after: OpenId, most: usize) -> Vec<(OpenFile, bool)> {
        let tables = self.locks.tables();
        let opens = tables.opens(after).take(most);
        opens.map(|open| (open.clone(), tables.is_delete_pending(&open.file))).collect()
    }

    /// An open with this number.
    fn open_numbered(&self, OpenId(number): OpenId) -> Option<(OpenFile, bool)> {
        let before = OpenId(number.checked_sub(1)?);
        self.opens_after(before, 1).pop().filter(|(open, _)| open.id == OpenId(number))
    }

    /// Some locks after the one in the place `after`, or the first ones.
    fn locks_after(&self, after: Option<&LockPlace>) -> Vec<ListedLock> {
        self.locks.tables().locks(after).take(AT_ONCE).collect()
    }

    /// The place of the lock with this ID. Goes through the list of all locks, and costs as much as
    /// to list them.
    fn place_of(&self, id: LockId) -> Option<LockPlace> {
        let mut after = None;
        loop {
            let part = self.locks_after(after.as_ref());
            let found = part.iter().find(|listed| self.lock_ids.of(&listed.place) == id);
            if let Some(found) = found {
                return Some(found.place.clone());
            }
            after = Some(last_of(&part)?.place.clone());
        }
    }

    /// A lock as it is listed, if its owner's protocol has locks for operators.
    fn list_lock(&self, listed: &ListedLock) -> Option<Lock> {
        let ListedLock { place, owner, offset, length, mode } = listed;
        let file = place.file;
        let unknown = || Object { key: hex::encode(file.object.as_bytes()), path: None };
        let (owner, object) = match nlm::list_owner(owner) {
            Some(host) => (host, unknown()),
            None => self.smb.list_owner(owner, &file.object)?,
        };
        let waits = matches!(place.spot, LockSpot::Waiting(_));
        let (volume, exclusive) = (file.volume, *mode == Mode::Exclusive);
        let (id, offset, length) = (self.lock_ids.of(place).to_text(), *offset, *length);
        Some(Lock { id, volume, object, owner, offset, length, exclusive, waits })
    }
}

/// At most `most` entries of a list. `part` gives some after the entry with the given key, and the
/// key of the last it looked at if there may be more.
fn gather<K, T>(mut after: K, most: usize, part: impl Fn(&K) -> (Vec<T>, Option<K>)) -> Vec<T> {
    let mut entries = Vec::new();
    while entries.len() < most {
        let (some, last) = part(&after);
        entries.extend(some);
        let Some(last) = last else { break };
        after = last;
    }
    entries.truncate(most);
    entries
}

/// The last of a part of a list, if there may be more after it.
fn last_of<T>(part: &[T]) -> Option<&T> {
    part.last().filter(|_| part.len() == AT_ONCE)
}

impl ClientState for Engine {
    fn smb_sessions(&self, after: u64, most: usize) -> Vec<SmbSession> {
        self.smb.list_sessions(after, most, Moment::now(self.clock))
    }

    fn close_smb_session(&self, id: u64) -> Step<'_, Option<SmbSession>> {
        let moment = Moment::now(self.clock);
        Box::pin(async move { self.smb.close_session(id, moment).await })
    }

    fn smb_opens(&self, after: u64, most: usize) -> Vec<SmbOpen> {
        let moment = Moment::now(self.clock);
        gather(OpenId(after), most, |after| {
            let part = self.opens_after(*after, AT_ONCE);
            let listed = part
                .iter()
                .filter_map(|(open, pending)| self.smb.list_open(open, *pending, moment));
            (listed.collect(), last_of(&part).map(|(open, _)| open.id))
        })
    }

    fn close_smb_open(&self, id: u64) -> Step<'_, Option<SmbOpen>> {
        let moment = Moment::now(self.clock);
        Box::pin(async move {
            let (open, pending) = self.open_numbered(OpenId(id))?;
            let listed = self.smb.list_open(&open, pending, moment)?;
            let closed = self.smb.close_open(listed.session, open.id).await;
            closed.then_some(listed)
        })
    }

    fn locks(&self, after: Option<&str>, most: usize) -> Option<Vec<(String, Lock)>> {
        let after = match after {
            Some(text) => Some(LockPlace::from_text(text)?),
            None => None,
        };
        Some(gather(after, most, |after| {
            let part = self.locks_after(after.as_ref());
            let keyed = |listed: &ListedLock| {
                let lock = self.list_lock(listed)?;
                Some((listed.place.to_text(), lock))
            };
            let listed = part.iter().filter_map(keyed).collect();
            (listed, last_of(&part).map(|last| Some(last.place.clone())))
        }))
    }

    fn close_lock(&self, id: &str) -> Option<Lock> {
        let place = self.place_of(LockId::from_text(id)?)?;
        let mut grants = Vec::new();
        let released = self.locks.tables().release_lock(&place, &mut grants);
        deliver(grants);
        let ReleasedLock { lock, waiter } = released?;
        if let Some(waiter) = waiter {
            waiter.cancelled();
        }
        if let Some(nlm) = &self.nlm {
            nlm.note_released();
        }
        self.list_lock(&lock)
    }
}
