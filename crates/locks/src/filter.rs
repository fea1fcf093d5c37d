//! The files of a volume that may have locks or deny modes, told without a lock: for nearly all
//! files one load shows that they have none.
//!
//! Not here: the locks themselves. A file that the filter names is looked up in the tables.

use crate::sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering, lock};
use std::collections::HashMap;
use weir_core::{ObjectKey, VolumeId};
use weir_state::{File, Presence, Watch};

/// Counters, by a digest of the file. Of the other files, one in 1,024 shares its counter with a
/// file that has locks, and is looked up in the tables in vain.
const COUNTERS: usize = 1024;

/// A filter of the files of one volume. It takes no memory until a lock or a deny mode is there.
#[derive(Debug, Default)]
pub struct FileFilter(OnceLock<Box<[AtomicU64; COUNTERS]>>);

impl FileFilter {
    /// May `file` have a lock or deny mode? False only if it has none.
    #[inline]
    pub fn may_stand_on(&self, file: &ObjectKey) -> bool {
        let Some(counters) = self.0.get() else { return false };
        counters[place(file)].load(Ordering::SeqCst) > 0
    }

    /// Has no file had a lock or deny mode so far?
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.0.get().is_none()
    }

    /// `file` has a lock or deny mode from now on.
    pub fn add(&self, file: &ObjectKey) {
        let counters = self.0.get_or_init(|| Box::new([const { AtomicU64::new(0) }; COUNTERS]));
        counters[place(file)].fetch_add(1, Ordering::SeqCst);
    }

    /// `file`, which was [added](Self::add), has no lock or deny mode any more.
    pub fn remove(&self, file: &ObjectKey) {
        if let Some(counters) = self.0.get() {
            counters[place(file)].fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The filters of one volume.
#[derive(Debug, Default)]
pub struct VolumeFilters {
    /// The files on which uses without opens can conflict: with locks of opens, or deny modes.
    pub without_open: FileFilter,
    /// The files on which uses by opens can conflict: with locks of all kinds.
    pub with_open: FileFilter,
}

/// The filters of all volumes, which the tables keep true.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters(Arc<Mutex<HashMap<VolumeId, Arc<VolumeFilters>>>>);

impl Filters {
    /// The filters of a volume that is served from now on.
    pub(crate) fn open(&self, volume: VolumeId) -> Arc<VolumeFilters> {
        Arc::clone(lock(&self.0).entry(volume).or_default())
    }

    /// A volume is gone.
    pub(crate) fn close(&self, volume: VolumeId) {
        lock(&self.0).remove(&volume);
    }
}

impl Watch for Filters {
    fn changed(&mut self, file: &File, before: Presence, after: Presence) {
        let Some(filters) = lock(&self.0).get(&file.volume).cloned() else { return };
        let opens = Presence::DENIALS | Presence::OPEN_LOCKS;
        let locks = Presence::OPEN_LOCKS | Presence::OWNER_LOCKS;
        for (filter, kinds) in [(&filters.without_open, opens), (&filters.with_open, locks)] {
            match (before.intersects(kinds), after.intersects(kinds)) {
                (false, true) => filter.add(&file.object),
                (true, false) => filter.remove(&file.object),
                (true, true) | (false, false) => {}
            }
        }
    }
}

/// Multiplying spreads the numbers of which keys consist well enough.
fn place(file: &ObjectKey) -> usize {
    let mut digest = 0u64;
    for chunk in file.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        digest = (digest ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        digest ^= digest >> 32;
    }
    usize::try_from(digest % COUNTERS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> ObjectKey {
        ObjectKey::new(&number.to_le_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_named_as_long_as_it_has_a_lock_or_deny_mode() {
        let filter = FileFilter::default();
        assert!(!filter.may_stand_on(&key(1)) && filter.0.get().is_none());
        filter.add(&key(1));
        filter.add(&key(1));
        filter.remove(&key(1));
        assert!(filter.may_stand_on(&key(1)));
        filter.remove(&key(1));
        assert!(!filter.may_stand_on(&key(1)));
    }

    #[test]
    fn few_other_files_are_named_with_it() {
        let filter = FileFilter::default();
        filter.add(&key(7));
        let others = (1000..11_000).filter(|number| filter.may_stand_on(&key(*number))).count();
        assert!(others < 40, "{others} of 10,000");
    }
}
