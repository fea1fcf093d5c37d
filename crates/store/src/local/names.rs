//! The name cache: which object a directory's entry leads to.
//!
//! Coherent because every change of a directory goes through Weir and holds the directory's
//! `names` lock; at its end it moves the directory's number and forgets or replaces the names it
//! touched. A lookup notes the number before it asks the kernel and keeps the answer only if the
//! number is still the same, under the lock. Entries hold no object open.
//!
//! Every change that comes here goes on to the directory's index of folded names, if it has one.

use super::inode::Inode;
use super::switch::CacheSwitch;
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
    cache: OnceLock<Cache<Entry, Weak<Inode>>>,
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
        let cache = self.cache.get().filter(|_| self.switch.is_on())?;
        let entry = Borrowed { directory: directory.serial, name: name.as_bytes() };
        cache.get(&entry)?.upgrade().filter(|inode| !inode.is_gone())
    }

    /// Keeps what a lookup found that began when the directory's number was `began`.
    pub(super) fn found(&self, directory: &Inode, name: Name<'_>, inode: &Arc<Inode>, began: u64) {
        // A directory that is being changed right now is not worth waiting for.
        if let Some(now) = directory.names.try_lock()
            && *now == began
        {
            self.set(directory, name, inode);
        }
    }

    /// Keeps a name, while the directory's lock is held.
    pub(super) fn set(&self, directory: &Inode, name: Name<'_>, inode: &Arc<Inode>) {
        if self.switch.is_on() {
            let entry = Entry { directory: directory.serial, name: name.as_bytes().into() };
            let cache = self.cache.get_or_init(|| cache(self.names_max));
            cache.insert(entry, Arc::downgrade(inode));
        } else {
            // The entry from before the cache was switched off may be another object.
            self.drop_entry(directory, name);
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
    pub(super) fn forget(&self, directory: &Inode, name: Name<'_>, lock: &mut Guard<'_, u64>) {
        **lock += 1;
        directory.note_folded(name, false, **lock);
        self.drop_entry(directory, name);
    }

    fn drop_entry(&self, directory: &Inode, name: Name<'_>) {
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
        lock: &mut Guard<'_, u64>,
    ) {
        **lock += 1;
        directory.note_folded(name, true, **lock);
        self.set(directory, name, inode);
    }
}

fn cache(names_max: usize) -> Cache<Entry, Weak<Inode>> {
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
