//! The objects that are held open, by key. At most one [`Inode`] exists for a key at any time,
//! because an inode leaves the table only when nobody else holds it.
//!
//! Bounded: beyond the bound the least recently used idle objects are closed. Objects that
//! operations are using stay, so the true bound is that number plus the operations in flight.
//! Objects with uncommitted data stay too, until they are synced: whoever wants room is given some
//! to be synced. They are at most half (see [`super::uncommitted`]).

use super::inode::Inode;
use super::shape::Shape;
use crate::sync::{Arc, Mutex, RwLock};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use weir_core::ObjectKey;

const SHARDS: usize = 16;
/// Objects with uncommitted data that are given to be synced at once, and looked at for it.
const UNCOMMITTED_MAX: usize = 16;
const UNCOMMITTED_LOOKS: usize = 256;

/// The objects held open.
#[derive(Debug)]
pub(super) struct Table {
    shards: [Mutex<Shard>; SHARDS],
    seed: Mix,
    shard_max: usize,
}

#[derive(Debug)]
struct Shard {
    index: HashMap<ObjectKey, usize, Mix>,
    /// The clock: `hand` sweeps it, and an entry that was used since the last sweep stays.
    entries: Vec<Entry>,
    hand: usize,
    /// Objects that have left.
    departures: u64,
}

#[derive(Debug)]
struct Entry {
    inode: Arc<Inode>,
    used: bool,
}

impl Table {
    pub(super) fn new(objects_max: usize) -> Self {
        let seed = Mix(RandomState::new().hash_one(0u8) | 1);
        let shard = || Shard {
            index: HashMap::with_hasher(seed),
            entries: Vec::new(),
            hand: 0,
            departures: 0,
        };
        Self {
            shards: std::array::from_fn(|_| Mutex::new(shard())),
            seed,
            shard_max: objects_max.div_ceil(SHARDS).max(1),
        }
    }

    /// The object with this key, if it is held open.
    #[inline]
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Inode>> {
        let mut shard = self.shard(key).lock();
        let &at = shard.index.get(key)?;
        let entry = shard.entries.get_mut(at)?;
        entry.used = true;
        Some(Arc::clone(&entry.inode))
    }

    /// A mark to take before reading the attributes of an object that is then inserted.
    pub(super) fn mark(&self, key: &ObjectKey) -> u64 {
        self.shard(key).lock().departures
    }

    /// Holds `inode` open, unless there already is one with its key: gives the one that counts, and
    /// objects to be synced so that they can leave.
    ///
    /// Its attributes and shape were read after `mark` was taken. If nothing has left since, no
    /// other inode of this key can have come, changed the object and gone again, so they are still
    /// true.
    pub(super) fn insert(&self, mut inode: Inode, mark: u64) -> (Arc<Inode>, Vec<Arc<Inode>>) {
        let mut shard = self.shard(&inode.key).lock();
        if let Some(entry) = shard.index.get(&inode.key).and_then(|&at| shard.entries.get(at)) {
            let present = Arc::clone(&entry.inode);
            drop(shard);
            return (present, Vec::new());
        }
        if shard.departures == mark {
            inode.attrs.validate();
        } else {
            inode.shape = RwLock::new(Shape::UNKNOWN);
        }
        let surplus = (shard.entries.len() + 1).saturating_sub(self.shard_max);
        // Dropped, and with that closed, only after the lock.
        let Shed { closed, uncommitted } = shard.shed(surplus);
        let inode = Arc::new(inode);
        shard.put(Arc::clone(&inode));
        drop(shard);
        drop(closed);
        (inode, uncommitted)
    }

    /// Holds the volume's root, which others hold too, so it never leaves.
    pub(super) fn hold(&self, root: &Arc<Inode>) {
        self.shard(&root.key).lock().put(Arc::clone(root));
    }

    /// Is there room for one more object with this key without closing another?
    pub(super) fn has_room(&self, key: &ObjectKey) -> bool {
        self.shard(key).lock().entries.len() < self.shard_max
    }

    /// Lets go of an object whose last name is gone.
    pub(super) fn remove(&self, key: &ObjectKey) {
        let mut shard = self.shard(key).lock();
        if let Some(&at) = shard.index.get(key) {
            let removed = shard.take(at);
            drop(shard);
            drop(removed);
        }
    }

    /// Closes about a quarter of the idle objects: descriptors are short. Gives objects to be synced
    /// so that they can leave.
    pub(super) fn shed(&self) -> Vec<Arc<Inode>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock();
            let quarter = shard.entries.len().div_ceil(4);
            let Shed { closed, uncommitted } = shard.shed(quarter);
            drop(shard);
            drop(closed);
            all.extend(uncommitted);
        }
        all
    }

    /// Some idle objects with uncommitted data, from the part of the table that `key` is in.
    pub(super) fn uncommitted(&self, key: &ObjectKey) -> Vec<Arc<Inode>> {
        self.shard(key).lock().uncommitted()
    }

    fn shard(&self, key: &ObjectKey) -> &Mutex<Shard> {
        // Bits that the maps inside use for neither bucket nor tag.
        let at = usize::try_from((self.seed.hash_one(key) >> 40) & 0xf).unwrap_or(0);
        self.shards.get(at).unwrap_or(&self.shards[0])
    }
}

impl Shard {
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
        self.departures += 1;
        self.index.remove(&entry.inode.key);
        if let Some(moved) = self.entries.get(at) {
            self.index.insert(moved.inode.key, at);
        }
        Some(entry.inode)
    }
}

/// What came of making room.
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
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
