//! The name cache: which object a directory's entry leads to.
//!
//! Coherent because every change of a directory goes through Weir and holds the directory's
//! `names` lock; at its end it moves the directory's count and forgets or replaces the names it
//! touched. A lookup notes the count before it asks the kernel and keeps the answer only if the
//! count is still the same, under the lock. A turn of the cache's switch moves every count. Entries
//! hold no object open.
//!
//! Every change that comes here goes on to the directory's index of folded names, if it has one.

use super::inode::Inode;
use super::switch::{CacheSwitch, Epoch};
use crate::sync::{Arc, Guard, OnceLock, Weak};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, UnitWeighter};
use weir_core::Name;

/// Parts of the cache that are locked apart; a volume that is in use holds them all, and there are
/// thousands.
const SHARDS: usize = 8;

/// Which object a name in a directory leads to.
#[derive(Debug)]
pub(super) struct Names {
    names_max: usize,
    switch: Arc<CacheSwitch>,
    /// Made for the first name: most volumes of a server with thousands are idle.
    cache: OnceLock<Cache<Entry, Kept>>,
}

/// The changes of a directory's entries.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The number of changes, and of turns of the cache's switch.
    count: u64,
    /// The epoch of the cache in which the lock of the entries was taken.
    epoch: Epoch,
}

impl Changes {
    /// Counts a change.
    pub(super) fn add(&mut self) {
        self.count += 1;
    }
}

/// The object of a name, and the epoch of the cache in which it was.
#[derive(Clone, Debug)]
struct Kept {
    inode: Weak<Inode>,
    epoch: Epoch,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Entry {
    directory: u64,
    name: Box<[u8]>,
}

#[derive(Hash)]
struct Borrowed<'a> {
    directory: u64,
    name: &'a [u8],
}

impl Equivalent<Entry> for Borrowed<'_> {
    fn equivalent(&self, entry: &Entry) -> bool {
        self.directory == entry.directory && self.name == &*entry.name
    }
}

impl Names {
    /// A cache of `names_max` names, which is used while the `switch` is on.
    pub(super) fn new(names_max: usize, switch: Arc<CacheSwitch>) -> Self {
        Self { names_max, switch, cache: OnceLock::new() }
    }

    /// The object, if the name is known and the object still open.
    #[inline]
    pub(super) fn get(&self, directory: &Inode, name: Name<'_>) -> Option<Arc<Inode>> {
        let cache = self.cache.get()?;
        let epoch = self.switch.epoch();
        let entry = Borrowed { directory: directory.serial, name: name.as_bytes() };
        let kept = cache.get(&entry).filter(|kept| epoch.is_on() && kept.epoch == epoch)?;
        kept.inode.upgrade().filter(|inode| !inode.is_gone())
    }

    /// Takes the lock of a directory's entries.
    pub(super) fn lock<'a>(&self, directory: &'a Inode) -> Guard<'a, Changes> {
        self.locked(directory.names.lock())
    }

    /// Takes the lock of a directory's entries, if nobody else has it.
    pub(super) fn try_lock<'a>(&self, directory: &'a Inode) -> Option<Guard<'a, Changes>> {
        directory.names.try_lock().map(|lock| self.locked(lock))
    }

    fn locked<'a>(&self, mut lock: Guard<'a, Changes>) -> Guard<'a, Changes> {
        let epoch = self.switch.epoch();
        if lock.epoch != epoch {
            lock.epoch = epoch;
            lock.add();
        }
        lock
    }

    /// The count of a directory's changes.
    pub(super) fn count(&self, directory: &Inode) -> u64 {
        self.lock(directory).count
    }

    /// Keeps what a lookup found that began when the directory's count was `began`.
    pub(super) fn found(&self, directory: &Inode, name: Name<'_>, inode: &Arc<Inode>, began: u64) {
        // A directory that is being changed right now is not worth waiting for.
        if let Some(now) = self.try_lock(directory)
            && now.count == began
        {
            self.set(directory, name, inode, &now);
        }
    }

    /// Keeps a name that was found under the directory's `lock`.
    pub(super) fn set(
        &self,
        directory: &Inode,
        name: Name<'_>,
        inode: &Arc<Inode>,
        lock: &Changes,
    ) {
        let epoch = lock.epoch;
        if epoch.is_on() {
            let entry = Entry { directory: directory.serial, name: name.as_bytes().into() };
            let cache = self.cache.get_or_init(|| cache(self.names_max));
            cache.insert(entry, Kept { inode: Arc::downgrade(inode), epoch });
        }
    }

    /// Forgets all names, of an idle volume or one whose cache is switched. Lookups under way keep
    /// theirs.
    pub(super) fn release_all(&self) {
        if let Some(cache) = self.cache.get() {
            cache.clear();
        }
    }

    /// Forgets a name, and with it all lookups under way.
    pub(super) fn forget(&self, directory: &Inode, name: Name<'_>, lock: &mut Changes) {
        lock.add();
        directory.note_folded(name, false, lock.count);
        if let Some(cache) = self.cache.get() {
            cache.remove(&Borrowed { directory: directory.serial, name: name.as_bytes() });
        }
    }

    /// Notes that a name now leads to `inode`, and forgets all lookups under way.
    pub(super) fn replace(
        &self,
        directory: &Inode,
        name: Name<'_>,
        inode: &Arc<Inode>,
        lock: &mut Changes,
    ) {
        lock.add();
        directory.note_folded(name, true, lock.count);
        self.set(directory, name, inode, lock);
    }
}

fn cache(names_max: usize) -> Cache<Entry, Kept> {
    let mut options = OptionsBuilder::new();
    options.shards(SHARDS).estimated_items_capacity(names_max).weight_capacity(names_max as u64);
    match options.build() {
        Ok(options) => Cache::with_options(
            options,
            UnitWeighter,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        ),
        // Only where one of these is missing.
        Err(_) => Cache::new(names_max),
    }
}
