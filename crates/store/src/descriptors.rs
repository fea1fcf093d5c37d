//! The budget of file descriptors that all volumes of a process share.
//!
//! Each descriptor that outlives an operation is covered by a [`Share`], which returns to the
//! budget when it is dropped. An operation that needs one more when none is left makes volumes
//! close idle objects, those that hold the most first: an idle volume never keeps another from
//! opening a file. Descriptors that live only within an operation are not counted; the budget
//! leaves room for them. Not here: which objects of a volume are idle, and how they are closed.

use crate::sync::{AcqRel, Acquire, Arc, AtomicUsize, Mutex, Relaxed, Weak};

/// Descriptors that are reclaimed at once, so that looking at thousands of volumes is worth it.
const BATCH: usize = 64;
/// Attempts at one share, as others may take what was reclaimed.
const ATTEMPTS: usize = 4;

/// The budget of all volumes of a process.
#[derive(Debug)]
pub struct Descriptors {
    max: usize,
    used: AtomicUsize,
    /// Objects with uncommitted data, which can't be closed at once.
    uncommitted: AtomicUsize,
    holders: Mutex<Holders>,
    /// Held while descriptors are reclaimed.
    reclaiming: Mutex<()>,
}

/// A volume that can give descriptors back.
pub(crate) trait Reclaim: Send + Sync {
    /// Closes about `wanted` idle objects, which are opened again when a client asks for them.
    fn close_idle(&self, wanted: usize);

    /// Forgets about `wanted` of the descriptors that stand for handles; the handles become stale.
    /// Only where the kernel does not open objects by handle.
    fn forget_handles(&self, wanted: usize);
}

/// The volumes, some of which may be closed already.
#[derive(Default)]
struct Holders {
    list: Vec<(Weak<Account>, Weak<dyn Reclaim>)>,
    /// The length at which closed volumes are dropped from the list.
    prune_at: usize,
}

impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} volumes", self.list.len())
    }
}

/// The descriptors of one volume.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<Descriptors>,
    held: AtomicUsize,
}

/// One descriptor of a volume. Dropped after the descriptor is closed.
#[derive(Debug)]
pub(crate) struct Share(Arc<Account>);

impl Descriptors {
    /// A budget of `max` descriptors, of which half may be those of files with uncommitted data.
    #[must_use]
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max: max.max(2),
            used: AtomicUsize::new(0),
            uncommitted: AtomicUsize::new(0),
            holders: Mutex::default(),
            reclaiming: Mutex::default(),
        })
    }

    /// Descriptors held now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Acquire)
    }

    /// Is there room for one more without closing another?
    pub(crate) fn has_room(&self) -> bool {
        self.used() < self.max
    }

    /// May one more object have uncommitted data?
    pub(crate) fn may_be_uncommitted(&self) -> bool {
        self.uncommitted.load(Acquire) < self.max / 2
    }

    /// One more object has uncommitted data.
    pub(crate) fn add_uncommitted(&self) {
        self.uncommitted.fetch_add(1, AcqRel);
    }

    /// The uncommitted data of an object is about to be synced.
    pub(crate) fn remove_uncommitted(&self) {
        self.uncommitted.fetch_sub(1, AcqRel);
    }

    /// A new volume's account.
    pub(crate) fn account(self: &Arc<Self>) -> Arc<Account> {
        Arc::new(Account { budget: Arc::clone(self), held: AtomicUsize::new(0) })
    }

    /// Enters the volume with `account`, so that `volume` is asked when descriptors are short.
    pub(crate) fn enter(&self, account: &Arc<Account>, volume: Weak<dyn Reclaim>) {
        let mut holders = self.holders.lock();
        if holders.list.len() >= holders.prune_at {
            holders.list.retain(|(account, _)| account.strong_count() > 0);
            holders.prune_at = 2 * holders.list.len() + BATCH;
        }
        holders.list.push((Arc::downgrade(account), volume));
    }

    /// Makes volumes give descriptors back, those that hold the most first. True if any came back,
    /// also by the work of another thread.
    pub(crate) fn reclaim(&self) -> bool {
        let before = self.used();
        let _turn = self.reclaiming.lock();
        if self.used() < before {
            return true;
        }
        // Upgraded here and dropped at the end, without the lock of the list.
        let mut holders: Vec<(usize, Arc<dyn Reclaim>)> = {
            let held = |account: &Weak<Account>| Some(account.upgrade()?.held.load(Relaxed));
            let list = &self.holders.lock().list;
            list.iter()
                .filter_map(|(account, own)| Some((held(account)?, own.upgrade()?)))
                .collect()
        };
        holders.sort_unstable_by_key(|(held, _)| std::cmp::Reverse(*held));
        let batch = (self.max / 8).clamp(1, BATCH);
        let freed = |before: usize| before.saturating_sub(self.used());
        let ways: [fn(&dyn Reclaim, usize); 2] = [
            |volume, wanted| volume.close_idle(wanted),
            |volume, wanted| volume.forget_handles(wanted),
        ];
        for give in ways {
            for (held, volume) in &holders {
                let left = batch.saturating_sub(freed(before));
                if left == 0 {
                    break;
                }
                // A part of each, so that no volume loses all it has to one that is greedy.
                give(volume.as_ref(), left.min(held.div_ceil(4)));
            }
            if freed(before) > 0 {
                return true;
            }
        }
        false
    }

    fn try_take(&self) -> bool {
        let more = |used| (used < self.max).then_some(used + 1);
        self.used.fetch_update(AcqRel, Acquire, more).is_ok()
    }
}

impl Account {
    /// One more descriptor. None if all are in use: no volume has an idle object to close.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Share> {
        for _ in 0..ATTEMPTS {
            if self.budget.try_take() {
                return Some(self.share());
            }
            if !self.budget.reclaim() {
                break;
            }
        }
        self.budget.try_take().then(|| self.share())
    }

    /// One more descriptor that the volume can't do without. Others make room for it if they can.
    pub(crate) fn need(self: &Arc<Self>) -> Share {
        if self.budget.used.fetch_add(1, AcqRel) >= self.budget.max {
            self.budget.reclaim();
        }
        self.share()
    }

    /// The budget that the account belongs to.
    pub(crate) fn budget(&self) -> &Arc<Descriptors> {
        &self.budget
    }

    fn share(self: &Arc<Self>) -> Share {
        self.held.fetch_add(1, Relaxed);
        Share(Arc::clone(self))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Relaxed);
        self.0.budget.used.fetch_sub(1, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume that holds shares and gives idle ones back.
    #[derive(Default)]
    struct Holder {
        idle: Mutex<Vec<Share>>,
        handles: Mutex<Vec<Share>>,
    }

    impl Reclaim for Holder {
        fn close_idle(&self, wanted: usize) {
            let mut idle = self.idle.lock();
            let left = idle.len().saturating_sub(wanted);
            idle.truncate(left);
        }

        fn forget_handles(&self, wanted: usize) {
            let mut handles = self.handles.lock();
            let left = handles.len().saturating_sub(wanted);
            handles.truncate(left);
        }
    }

    fn holder(budget: &Arc<Descriptors>) -> (Arc<Account>, Arc<Holder>) {
        let (account, holder) = (budget.account(), Arc::new(Holder::default()));
        let weak = Arc::downgrade(&holder);
        budget.enter(&account, weak);
        (account, holder)
    }

    #[test]
    fn the_volume_that_holds_the_most_gives_way() {
        let budget = Descriptors::new(16);
        let ((a, greedy), (b, modest)) = (holder(&budget), holder(&budget));
        greedy.idle.lock().extend((0..12).map(|_| a.take().unwrap()));
        modest.idle.lock().extend((0..4).map(|_| b.take().unwrap()));
        let (c, _new) = holder(&budget);
        let taken: Vec<_> = (0..6).map(|_| c.take().unwrap()).collect();
        assert_eq!((modest.idle.lock().len(), budget.used()), (4, 16));
        assert_eq!(greedy.idle.lock().len(), 6);
        drop(taken);
        assert_eq!(budget.used(), 10);
    }

    #[test]
    fn what_is_in_use_stays_and_the_bound_holds() {
        let budget = Descriptors::new(8);
        let (a, _own) = holder(&budget);
        let used: Vec<_> = (0..8).map(|_| a.take().unwrap()).collect();
        let (b, other) = holder(&budget);
        assert!(b.take().is_none());
        assert_eq!(budget.used(), 8);
        drop(used);
        other.idle.lock().extend((0..8).map(|_| b.take().unwrap()));
        let needed = a.need();
        assert_eq!(budget.used(), 8, "an idle object makes room");
        drop(needed);
    }

    #[test]
    fn handles_become_stale_only_when_nothing_is_idle() {
        let budget = Descriptors::new(8);
        let ((a, keeper), (b, idle)) = (holder(&budget), holder(&budget));
        keeper.handles.lock().extend((0..6).map(|_| a.take().unwrap()));
        idle.idle.lock().extend((0..2).map(|_| b.take().unwrap()));
        let (c, _new) = holder(&budget);
        let _two = [c.take().unwrap(), c.take().unwrap()];
        assert_eq!((keeper.handles.lock().len(), idle.idle.lock().len()), (6, 0));
        let _third = c.take().unwrap();
        assert_eq!(keeper.handles.lock().len(), 5);
    }

    #[test]
    fn closed_volumes_are_dropped_from_the_list() {
        let budget = Descriptors::new(8);
        for _ in 0..10 * BATCH {
            let (_account, _holder) = holder(&budget);
        }
        assert!(budget.holders.lock().list.len() <= 2 * BATCH);
    }

    #[test]
    fn threads_that_compete_stay_within_the_bound() {
        let budget = Descriptors::new(32);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let (account, holder) = holder(&budget);
                    for _ in 0..1000 {
                        let share = account.take();
                        assert!(budget.used() <= 32);
                        holder.idle.lock().extend(share);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
