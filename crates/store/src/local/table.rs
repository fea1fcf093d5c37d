//! The objects that are held open, by key. At most one [`Inode`] exists for a key at any time,
//! because an inode leaves the table only when nobody else holds it.
//!
//! Bounded: beyond the bound the least recently used idle objects are closed. Objects that
//! operations are using stay, so the true bound is that number plus the operations in flight.
//! Objects with uncommitted data stay too, until they are synced: whoever wants room is given some
//! to be synced. They are at most half (see [`super::uncommitted`]).

use super::attrs::nanos;
use super::inode::Inode;
use super::shape::Shape;
use crate::sync::{Arc, AtomicU64, Mutex, OnceLock, Relaxed, RwLock};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use weir_core::{Attr, ObjectKey};

const SHARDS: usize = 16;
/// Objects with uncommitted data that are given to be synced at once, and looked at for it.
const UNCOMMITTED_MAX: usize = 16;
const UNCOMMITTED_LOOKS: usize = 256;

/// The objects held open.
#[derive(Debug)]
pub(super) struct Table {
    /// The volume's root, which never leaves: all that an idle volume holds open.
    root: Arc<Inode>,
    /// All others. Made for the first: most volumes of a server with thousands are idle.
    slots: OnceLock<Box<Slots>>,
    seed: Mix,
    shard_max: usize,
    /// The most by which a count of changes was ahead of the time of the last change, of objects
    /// that have left.
    lead: AtomicU64,
}

type Slots = [Mutex<Slot>; SHARDS];

/// A part of the table.
#[derive(Debug, Default)]
struct Slot {
    /// Objects that have left.
    departures: u64,
    /// The objects of the shard, if there are any.
    shard: Option<Box<Shard>>,
}

#[derive(Debug)]
struct Shard {
    index: HashMap<ObjectKey, usize, Mix>,
    /// The clock: `hand` sweeps it, and an entry that was used since the last sweep stays.
    entries: Vec<Entry>,
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    inode: Arc<Inode>,
    used: bool,
}

impl Table {
    /// A table of the volume's root and up to `objects_max` others.
    pub(super) fn new(root: Arc<Inode>, objects_max: usize) -> Self {
        Self {
            root,
            slots: OnceLock::new(),
            seed: Mix(RandomState::new().hash_one(0u8) | 1),
            shard_max: objects_max.div_ceil(SHARDS).max(1),
            lead: AtomicU64::new(0),
        }
    }

    /// The object with this key, if it is held open.
    #[inline]
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Inode>> {
        if let Some(slot) = self.slot(key) {
            let mut slot = slot.lock();
            if let Some(shard) = &mut slot.shard
                && let Some(&at) = shard.index.get(key)
            {
                let entry = shard.entries.get_mut(at)?;
                entry.used = true;
                return Some(Arc::clone(&entry.inode));
            }
        }
        (*key == self.root.key).then(|| Arc::clone(&self.root))
    }

    /// A mark to take before reading the attributes of an object that is then inserted.
    pub(super) fn mark(&self, key: &ObjectKey) -> u64 {
        self.slot(key).map_or(0, |slot| slot.lock().departures)
    }

    /// Holds `inode` open, unless there already is one with its key: gives the one that counts, and
    /// objects to be synced so that they can leave.
    ///
    /// Its attributes and shape were read after `mark` was taken. If nothing has left since, no
    /// other inode of this key can have come, changed the object and gone again, so they are still
    /// true.
    pub(super) fn insert(&self, mut inode: Inode, mark: u64) -> (Arc<Inode>, Vec<Arc<Inode>>) {
        if inode.key == self.root.key {
            return (Arc::clone(&self.root), Vec::new());
        }
        let slots = self.slots.get_or_init(Box::default);
        let mut slot = self.pick(slots, &inode.key).lock();
        let departures = slot.departures;
        let shard = slot.shard.get_or_insert_with(|| Box::new(Shard::new(self.seed)));
        if let Some(entry) = shard.index.get(&inode.key).and_then(|&at| shard.entries.get(at)) {
            let present = Arc::clone(&entry.inode);
            drop(slot);
            return (present, Vec::new());
        }
        if departures == mark {
            inode.attrs.validate();
        } else {
            inode.shape = RwLock::new(Shape::UNKNOWN);
            inode.plain.forget();
        }
        inode.attrs.count_from(self.lead.load(Relaxed));
        let surplus = (shard.entries.len() + 1).saturating_sub(self.shard_max);
        // Dropped, and with that closed, only after the lock.
        let Shed { closed, uncommitted } = shard.shed(surplus);
        let inode = Arc::new(inode);
        shard.put(Arc::clone(&inode));
        slot.departures += closed.len() as u64;
        self.note_counts(&closed);
        drop(slot);
        drop(closed);
        (inode, uncommitted)
    }

    /// Is there room for one more object with this key without closing another?
    pub(super) fn has_room(&self, key: &ObjectKey) -> bool {
        self.slot(key).map_or(0, held) < self.shard_max
    }

    /// Lets go of an object whose last name is gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        let Some(slot) = self.slot(key) else { return };
        let mut slot = slot.lock();
        let Some(shard) = &mut slot.shard else { return };
        if let Some(&at) = shard.index.get(key) {
            let removed = shard.take(at);
            slot.departures += 1;
            drop(slot);
            drop(removed);
        }
    }

    /// Closes about a quarter of the idle objects: descriptors are short. Gives objects to be
    /// synced so that they can leave.
    pub(super) fn shed(&self) -> Vec<Arc<Inode>> {
        self.close(|held| held.div_ceil(4))
    }

    /// Closes all idle objects of an idle volume and frees their memory. Gives objects to be synced
    /// so that they can be closed next time.
    pub(super) fn release_idle(&self) -> Vec<Arc<Inode>> {
        self.close(|held| held)
    }

    /// Closes about so many idle objects, for which another volume has more use. Gives objects to
    /// be synced so that they can leave.
    pub(super) fn close_idle(&self, wanted: usize) -> Vec<Arc<Inode>> {
        let all = self.len().max(1);
        self.close(|held| (held * wanted).div_ceil(all))
    }

    /// Closes so many of each part's idle objects.
    fn close(&self, wanted: impl Fn(usize) -> usize) -> Vec<Arc<Inode>> {
        let mut all = Vec::new();
        for slot in self.slots.get().into_iter().flat_map(|slots| slots.iter()) {
            let mut slot = slot.lock();
            let Some(shard) = &mut slot.shard else { continue };
            let Shed { closed, uncommitted } = shard.shed(wanted(shard.entries.len()));
            let empty = if shard.entries.is_empty() { slot.shard.take() } else { None };
            slot.departures += closed.len() as u64;
            self.note_counts(&closed);
            drop(slot);
            drop((closed, empty));
            all.extend(uncommitted);
        }
        all
    }

    /// Notes how far the counts of changes were ahead of the times of change, of objects that leave
    /// and whose part of the table is locked: those that come back must not repeat a count.
    fn note_counts(&self, leaving: &[Inode]) {
        let lead = leaving.iter().map(|inode| inode.attrs.lead()).max();
        self.lead.fetch_max(lead.unwrap_or(0), Relaxed);
    }

    /// The count of changes of an object that is not held open.
    pub(super) fn count_of(&self, attr: &Attr) -> u64 {
        nanos(attr.ctime).saturating_add(self.lead.load(Relaxed))
    }

    /// Some idle objects with uncommitted data, from the part of the table that `key` is in.
    pub(super) fn uncommitted(&self, key: &ObjectKey) -> Vec<Arc<Inode>> {
        let Some(slot) = self.slot(key) else { return Vec::new() };
        slot.lock().shard.as_mut().map_or_else(Vec::new, |shard| shard.uncommitted())
    }

    /// The number of objects that are held open, without the root.
    pub(super) fn len(&self) -> usize {
        self.slots.get().map_or(0, |slots| slots.iter().map(held).sum())
    }

    /// The part that `key` is in, if there is any yet.
    #[inline]
    fn slot(&self, key: &ObjectKey) -> Option<&Mutex<Slot>> {
        self.slots.get().map(|slots| self.pick(slots, key))
    }

    #[inline]
    fn pick<'a>(&self, slots: &'a Slots, key: &ObjectKey) -> &'a Mutex<Slot> {
        // Bits that the maps inside use for neither bucket nor tag.
        let at = usize::try_from((self.seed.hash_one(key) >> 40) & 0xf).unwrap_or(0);
        slots.get(at).unwrap_or(&slots[0])
    }
}

fn held(slot: &Mutex<Slot>) -> usize {
    slot.lock().shard.as_ref().map_or(0, |shard| shard.entries.len())
}

impl Shard {
    fn new(seed: Mix) -> Self {
        Self { index: HashMap::with_hasher(seed), entries: Vec::new(), hand: 0 }
    }

    /// Takes up to `wanted` idle objects out, least recently used first.
    fn shed(&mut self, wanted: usize) -> Shed {
        let (mut out, mut uncommitted) = (Vec::new(), Vec::new());
        // Two turns: the first may find every entry marked as used.
        let mut looks = self.entries.len() * 2;
        while out.len() < wanted && looks > 0 && !self.entries.is_empty() {
            looks -= 1;
            self.hand %= self.entries.len();
            let Some(entry) = self.entries.get_mut(self.hand) else { break };
            let second_chance = std::mem::take(&mut entry.used);
            let idle = Arc::strong_count(&entry.inode) == 1 && !entry.inode.syncs.has_failed();
            if second_chance || !idle {
                self.hand += 1;
                continue;
            }
            if entry.inode.uncommitted.is() {
                if uncommitted.len() < UNCOMMITTED_MAX {
                    uncommitted.push(Arc::clone(&entry.inode));
                }
                self.hand += 1;
                continue;
            }
            let Some(inode) = self.take(self.hand) else { break };
            match Arc::try_unwrap(inode) {
                Ok(inode) => out.push(inode),
                // Since the count was looked at, somebody got it through the name cache.
                Err(inode) => self.put(inode),
            }
        }
        Shed { closed: out, uncommitted }
    }

    fn uncommitted(&mut self) -> Vec<Arc<Inode>> {
        let mut found = Vec::new();
        for _ in 0..UNCOMMITTED_LOOKS.min(self.entries.len()) {
            self.hand = (self.hand + 1) % self.entries.len();
            let Some(Entry { inode, .. }) = self.entries.get(self.hand) else { break };
            if Arc::strong_count(inode) == 1 && inode.uncommitted.is() {
                found.push(Arc::clone(inode));
            }
            if found.len() == UNCOMMITTED_MAX {
                break;
            }
        }
        found
    }

    fn put(&mut self, inode: Arc<Inode>) {
        self.index.insert(inode.key, self.entries.len());
        self.entries.push(Entry { inode, used: true });
    }

    fn take(&mut self, at: usize) -> Option<Arc<Inode>> {
        if at >= self.entries.len() {
            return None;
        }
        let entry = self.entries.swap_remove(at);
        self.index.remove(&entry.inode.key);
        if let Some(moved) = self.entries.get(at) {
            self.index.insert(moved.inode.key, at);
        }
        Some(entry.inode)
    }
}

/// The objects that were evicted to make room.
struct Shed {
    /// To be dropped, and with that closed.
    closed: Vec<Inode>,
    /// To be synced, so that they can leave next time.
    uncommitted: Vec<Arc<Inode>>,
}

/// A seeded multiply-and-fold hash: the keys are the kernel's and come to us under a MAC, so the
/// seed is enough against chosen collisions.
#[derive(Clone, Copy, Debug)]
struct Mix(u64);

impl BuildHasher for Mix {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Mix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.write_u64(rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
