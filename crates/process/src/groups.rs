//! The supplementary groups of users according to this machine, for users in more than the sixteen
//! groups that AUTH_SYS carries.
//!
//! A look-up may ask a directory service over the network for an unknown time, so it runs on
//! threads of its own, and requests wait for it as futures. Results are valid for some minutes.
//! All of it is bounded, see [`crate::limits`].

use crate::limits::{GROUP_IDS_MAX, GROUP_LOOKUPS_MAX, GROUP_THREADS, GROUP_USERS_MAX};
use crate::sync::{Arc, Condvar, Mutex, lock, wait};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_core::limits::GROUPS_MAX;
use weir_core::{Clock, FsError, FsResult, Groups, Mono};

/// Time for which a lookup's result is valid.
const FOUND_FOR: Duration = Duration::from_secs(300);
/// Time after which a failed lookup is tried again.
const FAILED_FOR: Duration = Duration::from_secs(1);

/// Returns the groups of a user; none for an unknown one.
type Source = dyn Fn(u32) -> io::Result<Vec<u32>> + Send + Sync;

type ServerClock = dyn Clock + Send + Sync;

/// The groups of users, and the threads that look them up. Those end when it is dropped.
pub struct GroupDirectory(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    clock: Box<ServerClock>,
    source: Box<Source>,
}

#[derive(Default)]
struct State {
    users: HashMap<u32, Known>,
    /// Groups of all users found.
    ids: usize,
    queue: VecDeque<u32>,
    stopping: bool,
}

/// The cached knowledge of a user.
enum Known {
    Found { groups: Groups, until: Mono },
    Failed { until: Mono },
    Asked(Vec<Waker>),
}

impl GroupDirectory {
    /// Asks the machine's user database (NSS).
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn of_machine(clock: impl Clock + Send + Sync + 'static) -> io::Result<Self> {
        Self::new(Box::new(clock), Box::new(weir_store::groups_of_user))
    }

    fn new(clock: Box<ServerClock>, source: Box<Source>) -> io::Result<Self> {
        let (state, work) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { state, work, clock, source });
        for number in 0..GROUP_THREADS {
            let shared = Arc::clone(&shared);
            let name = format!("weir-groups-{number}");
            std::thread::Builder::new().name(name).spawn(move || shared.serve())?;
        }
        Ok(Self(shared))
    }

    /// The groups of `uid`, if they were looked up not long ago.
    pub fn known(&self, uid: u32, now: Mono) -> Option<Groups> {
        match lock(&self.0.state).users.get(&uid)? {
            Known::Found { groups, until } if *until > now => Some(groups.clone()),
            _ => None,
        }
    }

    /// The groups of `uid`, looked up if need be.
    pub fn look_up(&self, uid: u32) -> LookUp {
        LookUp { directory: Arc::clone(&self.0), uid, asked: false }
    }
}

impl Drop for GroupDirectory {
    fn drop(&mut self) {
        lock(&self.0.state).stopping = true;
        self.0.work.notify_all();
    }
}

/// Waits for the groups of a user. `Busy` if the look-up failed for now.
pub struct LookUp {
    directory: Arc<Shared>,
    uid: u32,
    /// The look-up was requested, so a known value is newer.
    asked: bool,
}

impl Future for LookUp {
    type Output = FsResult<Groups>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let directory = Arc::clone(&self.directory);
        let fresh = |until: Mono| self.asked || until > directory.clock.now();
        let mut state = lock(&directory.state);
        let full = state.queue.len() >= GROUP_LOOKUPS_MAX;
        match state.users.get_mut(&self.uid) {
            Some(Known::Found { groups, until }) if fresh(*until) => {
                return Poll::Ready(Ok(groups.clone()));
            }
            Some(Known::Failed { until }) if fresh(*until) => {
                return Poll::Ready(Err(FsError::Busy));
            }
            Some(Known::Asked(waiting)) => waiting.push(cx.waker().clone()),
            _ if full => return Poll::Ready(Err(FsError::Busy)),
            _ => {
                state.forget(self.uid);
                state.users.insert(self.uid, Known::Asked(vec![cx.waker().clone()]));
                state.queue.push_back(self.uid);
                directory.work.notify_one();
            }
        }
        drop(state);
        self.asked = true;
        Poll::Pending
    }
}

impl Shared {
    fn serve(&self) {
        loop {
            let mut state = lock(&self.state);
            let uid = loop {
                if state.stopping {
                    return;
                }
                match state.queue.pop_front() {
                    Some(uid) => break uid,
                    None => state = wait(&self.work, state),
                }
            };
            drop(state);
            let found = (self.source)(uid);
            for waker in self.learn(uid, found) {
                waker.wake();
            }
        }
    }

    /// Stores the result of a look-up, and returns the wakers of the requests that wait for it.
    fn learn(&self, uid: u32, found: io::Result<Vec<u32>>) -> Vec<Waker> {
        let now = self.clock.now();
        let known = match found {
            Ok(groups) => Known::Found { groups: Groups::new(&groups), until: now + FOUND_FOR },
            Err(error) => {
                tracing::warn!(uid, %error, "cannot look up the groups of a user; its requests are answered with NFS3ERR_JUKEBOX");
                Known::Failed { until: now + FAILED_FOR }
            }
        };
        let mut state = lock(&self.state);
        let waiting = state.forget(uid);
        state.make_room(now);
        state.ids += known.ids();
        state.users.insert(uid, known);
        waiting
    }
}

impl Known {
    fn ids(&self) -> usize {
        if let Self::Found { groups, .. } = self { groups.as_slice().len() } else { 0 }
    }

    fn is_worth_keeping(&self, now: Mono) -> bool {
        match self {
            Self::Found { until, .. } | Self::Failed { until } => *until > now,
            Self::Asked(_) => true,
        }
    }
}

impl State {
    /// Removes a user; returns the wakers of the requests that wait for it.
    fn forget(&mut self, uid: u32) -> Vec<Waker> {
        let Some(known) = self.users.remove(&uid) else { return Vec::new() };
        self.ids -= known.ids();
        if let Known::Asked(waiting) = known { waiting } else { Vec::new() }
    }

    /// Makes room for one more user: expired results are removed first, then all.
    fn make_room(&mut self, now: Mono) {
        let full = |state: &Self| {
            state.users.len() >= GROUP_USERS_MAX || state.ids + GROUPS_MAX > GROUP_IDS_MAX
        };
        if full(self) {
            self.users.retain(|_, known| known.is_worth_keeping(now));
            self.ids = self.users.values().map(Known::ids).sum();
        }
        if full(self) {
            self.users.retain(|_, known| matches!(known, Known::Asked(_)));
            self.ids = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc::channel;
    use weir_control::SystemClock;
    use weir_core::testing::block_on;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_machine_s_users_have_the_groups_that_id_prints() {
        let directory = GroupDirectory::of_machine(SystemClock::start()).unwrap();
        let printed = std::process::Command::new("id").args(["-G", "root"]).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let mut expected: Vec<u32> =
            printed.split_whitespace().map(|id| id.parse().unwrap()).collect();
        let found = block_on(directory.look_up(0)).unwrap();
        let mut found = found.as_slice().to_vec();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(block_on(directory.look_up(u32::MAX - 9)), Ok(Groups::NONE), "unknown here");
    }

    #[test]
    fn one_look_up_serves_all_who_wait_and_is_kept_until_it_expires() {
        let (asked, asks) = channel();
        let (give, given) = channel();
        let given = Mutex::new(given);
        let source = move |uid| {
            asked.send(uid).unwrap();
            given.lock().unwrap().recv().map_err(io::Error::other)
        };
        let clock = SystemClock::start();
        let directory = GroupDirectory::new(Box::new(clock), Box::new(source)).unwrap();
        let (mut first, mut second) = (pin!(directory.look_up(7)), pin!(directory.look_up(7)));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert_eq!(directory.known(7, clock.now()), None);
        let many: Vec<u32> = (1..=40).collect();
        give.send(many.clone()).unwrap();
        assert_eq!(block_on(first).unwrap().as_slice(), many);
        assert_eq!(block_on(second).unwrap().as_slice(), many);
        assert_eq!(directory.known(7, clock.now()).unwrap().as_slice(), many);
        assert_eq!(directory.known(7, clock.now() + FOUND_FOR), None, "it is out of date then");
        assert_eq!(asks.try_iter().collect::<Vec<_>>(), [7], "asked once");
    }

    #[test]
    fn a_failure_is_told_and_a_full_queue_too() {
        let (open, gate) = channel::<()>();
        let gate = Mutex::new(gate);
        let source = move |uid| {
            if uid == 0 {
                return Err(io::Error::other("no directory service"));
            }
            let _closed = gate.lock().unwrap().recv();
            Ok(vec![uid])
        };
        let directory =
            GroupDirectory::new(Box::new(SystemClock::start()), Box::new(source)).unwrap();
        assert_eq!(block_on(directory.look_up(0)), Err(FsError::Busy));
        let most = u32::try_from(GROUP_LOOKUPS_MAX + GROUP_THREADS).unwrap();
        let refused = (1..=most + 1).any(|uid| {
            matches!(poll(pin!(directory.look_up(uid))), Poll::Ready(Err(FsError::Busy)))
        });
        assert!(refused, "at least the last");
        drop(open);
        assert_eq!(block_on(directory.look_up(1)).unwrap().as_slice(), [1]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let source = |_| Ok((0..60_000).collect());
        let directory =
            GroupDirectory::new(Box::new(SystemClock::start()), Box::new(source)).unwrap();
        for uid in 0..200 {
            assert!(block_on(directory.look_up(uid)).is_ok());
            let state = lock(&directory.0.state);
            assert!(state.ids <= GROUP_IDS_MAX);
            assert_eq!(state.ids, state.users.values().map(Known::ids).sum::<usize>());
        }
    }
}
