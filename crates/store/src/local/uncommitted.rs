//! Which objects have data that was answered as UNSTABLE and not synced since.
//!
//! The kernel tells of data that it could not write back on descriptors that were open when that
//! happened, and forgets it with the inode. So an object with such data keeps its descriptor until
//! a sync has covered it: when its room is wanted, it is synced first. There is room for so many;
//! beyond that a write is synced before it is answered.

use crate::descriptors::Descriptors;
use crate::sync::{AcqRel, Acquire, Arc, AtomicBool, AtomicUsize};

/// Objects with uncommitted data that a volume may have whatever other volumes have.
const OBJECTS_ALWAYS: usize = 64;

/// The number of objects of a volume with uncommitted data, and its limit. All volumes together
/// have another.
#[derive(Debug)]
pub(super) struct Crowd {
    objects: AtomicUsize,
    objects_max: usize,
    all: Arc<Descriptors>,
}

impl Crowd {
    /// Half of the objects that are kept open, so that the others always find room.
    pub(super) fn new(cached_objects_max: usize, all: &Arc<Descriptors>) -> Arc<Self> {
        let (objects, all) = (AtomicUsize::new(0), Arc::clone(all));
        Arc::new(Self { objects, objects_max: cached_objects_max / 2, all })
    }

    /// A volume may always have a few, so that others cannot use up the common limit.
    fn has_room(&self) -> bool {
        let own = self.objects.load(Acquire);
        own < self.objects_max && (own < OBJECTS_ALWAYS || self.all.may_be_uncommitted())
    }

    fn add(&self) {
        self.objects.fetch_add(1, AcqRel);
        self.all.add_uncommitted();
    }

    fn remove(&self) {
        self.objects.fetch_sub(1, AcqRel);
        self.all.remove_uncommitted();
    }
}

/// Has an object uncommitted data?
#[derive(Debug)]
pub(super) struct Uncommitted {
    is: AtomicBool,
    crowd: Arc<Crowd>,
}

impl Uncommitted {
    /// None.
    pub(super) fn none(crowd: &Arc<Crowd>) -> Self {
        Self { is: AtomicBool::new(false), crowd: Arc::clone(crowd) }
    }

    /// Is there any?
    #[inline]
    pub(super) fn is(&self) -> bool {
        self.is.load(Acquire)
    }

    /// May there be any more objects with uncommitted data, if this is none yet?
    #[inline]
    pub(super) fn may_be(&self) -> bool {
        self.is() || self.crowd.has_room()
    }

    /// Data was written. Noted after the write, so that a sync that forgets it has covered it.
    #[inline]
    pub(super) fn note(&self) {
        if !self.is() && !self.is.swap(true, AcqRel) {
            self.crowd.add();
        }
    }

    /// A sync begins, which will cover all that was noted. Was there anything?
    pub(super) fn forget(&self) -> bool {
        let was = self.is.swap(false, AcqRel);
        if was {
            self.crowd.remove();
        }
        was
    }
}

impl Drop for Uncommitted {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_objects_may_have_uncommitted_data_and_each_counts_once() {
        let crowd = Crowd::new(4, &Descriptors::new(100));
        let [a, b, c] = std::array::from_fn(|_| Uncommitted::none(&crowd));
        a.note();
        a.note();
        assert!(c.may_be());
        b.note();
        assert!(!c.may_be() && a.may_be() && b.may_be());
        a.forget();
        a.forget();
        assert!(c.may_be() && !a.is());
        c.note();
        drop(b);
        drop(c);
        assert_eq!(crowd.objects.load(Acquire), 0);
    }

    #[test]
    fn half_of_all_descriptors_may_be_those_of_uncommitted_data() {
        let all = Descriptors::new(2 * OBJECTS_ALWAYS);
        let (greedy, modest) = (Crowd::new(1000, &all), Crowd::new(1000, &all));
        let mut noted: Vec<_> = (0..OBJECTS_ALWAYS)
            .map(|_| {
                let object = Uncommitted::none(&greedy);
                object.note();
                object
            })
            .collect();
        let next = Uncommitted::none(&greedy);
        assert!(!next.may_be() && noted[0].may_be());
        assert!(Uncommitted::none(&modest).may_be(), "of another volume");
        noted.pop();
        assert!(next.may_be());
    }
}
