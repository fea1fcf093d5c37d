//! Whatever is opened, locked, unlocked, waited for, cancelled and closed, by opens and by owners
//! with names at once, the tables answer as plain lists do, and a watcher knows what there is.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

mod naive;

use naive::{Answer, BYTES, FILES, Lock, Naive, OWNERS, Open, SESSIONS, Who};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use weir_core::{Access, Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, DeleteRequest, File, Grant, GrantId, Io, Limits, ListedLock, LockSpot, Locked,
    Mode, NotLocked, OpenId, OpenLocked, OpenMode, Owner, Presence, Protocol, Range, Refused,
    ReleasedLock, Share, Sharing, Span, Tables, Use, Watch,
};

/// An offset and a length.
type At = (u64, u64);

#[derive(Clone, Debug)]
enum Step {
    Open {
        file: usize,
        session: usize,
        mode: OpenMode,
        delete_on_close: bool,
    },
    /// Opens are named by their place among all that ever were, counted back from the last.
    Close(usize),
    SetDelete(usize, bool),
    Lock(usize, At, Mode, bool),
    /// Locks once more exactly what an open holds, at this place among all that opens hold.
    LockAgain(usize, Mode),
    LockAll(usize, Vec<(At, Mode)>),
    Unlock(usize, At),
    /// Unlocks the lock at this place among those held by opens.
    UnlockHeld(usize),
    /// Cancels the wait at this place of the queue.
    Cancel(usize),
    /// Releases the lock, or ends the wait, at this place of the list of all.
    ReleaseLock(usize),
    OwnerLock(usize, usize, At, Mode, bool),
    OwnerUnlock(usize, usize, At),
    Share(usize, usize, Share),
    Unshare(usize, usize),
    ReleaseOwner(usize),
    ReleaseSession(usize),
}

fn sharing() -> impl Strategy<Value = Sharing> {
    prop_oneof![3 => Just(Sharing::all()), 2 => (0u8..8).prop_map(Sharing::from_bits_truncate)]
}

fn open_mode() -> impl Strategy<Value = OpenMode> {
    (0u8..8, sharing())
        .prop_map(|(access, share)| OpenMode { access: Sharing::from_bits_truncate(access), share })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)]
}

fn at() -> impl Strategy<Value = At> {
    (0..BYTES, prop_oneof![1 => Just(0), 4 => 1u64..6])
        .prop_map(|(offset, length)| (offset, length.min(BYTES - offset)))
}

fn bytes() -> impl Strategy<Value = At> {
    (0..BYTES, 1u64..6).prop_map(|(offset, length)| (offset, length.min(BYTES - offset)))
}

fn step() -> impl Strategy<Value = Step> {
    let access = || prop::sample::select(vec![Access::empty(), Access::READ, Access::WRITE]);
    let open = (0..FILES, 0..SESSIONS, open_mode(), prop::bool::weighted(0.3)).prop_map(
        |(file, session, mode, delete_on_close)| Step::Open {
            file,
            session,
            mode,
            delete_on_close,
        },
    );
    prop_oneof![
        8 => open,
        3 => (0usize..5).prop_map(Step::Close),
        1 => (0usize..5, any::<bool>()).prop_map(|(open, on)| Step::SetDelete(open, on)),
        12 => (0usize..5, at(), mode(), any::<bool>()).prop_map(|(o, a, m, w)| Step::Lock(o, a, m, w)),
        2 => (0usize..5, prop::collection::vec((at(), mode()), 0..4)).prop_map(|(o, l)| Step::LockAll(o, l)),
        2 => (0usize..5, at()).prop_map(|(o, a)| Step::Unlock(o, a)),
        3 => (0usize..8, mode()).prop_map(|(at, mode)| Step::LockAgain(at, mode)),
        6 => (0usize..8).prop_map(Step::UnlockHeld),
        2 => (0usize..6).prop_map(Step::Cancel),
        3 => (0usize..12).prop_map(Step::ReleaseLock),
        6 => (0..FILES, 0..OWNERS, bytes(), mode(), any::<bool>())
            .prop_map(|(f, o, a, m, w)| Step::OwnerLock(f, o, a, m, w)),
        4 => (0..FILES, 0..OWNERS, bytes()).prop_map(|(f, o, a)| Step::OwnerUnlock(f, o, a)),
        1 => (0..FILES, 0..OWNERS, access(), access())
            .prop_map(|(f, o, access, deny)| Step::Share(f, o, Share { access, deny })),
        1 => (0..FILES, 0..OWNERS).prop_map(|(f, o)| Step::Unshare(f, o)),
        1 => (0..OWNERS).prop_map(Step::ReleaseOwner),
        1 => (0..SESSIONS).prop_map(Step::ReleaseSession),
    ]
}

/// Each file is on a volume of its own.
fn file(number: usize) -> File {
    let object = ObjectKey::new(&[u8::try_from(number).unwrap()]).unwrap();
    File { volume: VolumeId(u32::try_from(number).unwrap()), object }
}

fn session(number: usize) -> Client {
    Client::new(Protocol::Smb, Origin::default(), &[u8::try_from(number).unwrap()])
}

fn owner(number: usize) -> Owner {
    let client = Client::new(Protocol::Nlm, Origin::default(), &[u8::try_from(number).unwrap()]);
    Owner::new(client, b"o")
}

fn span((offset, length): At) -> Span {
    Span::new(offset, length).unwrap()
}

/// A watcher, with its knowledge of each file.
#[derive(Clone, Debug)]
struct Known(Arc<Mutex<[Presence; FILES]>>);

impl Watch for Known {
    fn changed(&mut self, changed: &File, before: Presence, after: Presence) {
        let at = (0..FILES).find(|number| file(*number) == *changed).unwrap();
        let known = &mut self.0.lock().unwrap()[at];
        assert_eq!(*known, before);
        assert_ne!(before, after, "no change");
        *known = after;
    }
}

/// The tables and the lists, side by side.
struct Both {
    tables: Tables<usize>,
    naive: Naive,
    known: Known,
    ids: Vec<OpenId>,
    /// The numbers of waits, by token.
    waits: Vec<Option<GrantId>>,
}

impl Both {
    fn new() -> Self {
        let known = Known(Arc::new(Mutex::new([Presence::empty(); FILES])));
        let mut tables = Tables::new(Limits::SERVER).watched_by(Box::new(known.clone()));
        (0..FILES).for_each(|number| tables.open(file(number).volume));
        Self { tables, naive: Naive::default(), known, ids: Vec::new(), waits: Vec::new() }
    }

    /// The place of an open that is counted back from the last.
    fn place(&self, back: usize) -> Option<usize> {
        self.ids.len().checked_sub(back + 1)
    }

    fn step(&mut self, step: &Step) {
        let mut new = Vec::new();
        match *step {
            Step::Open { file, session, mode, delete_on_close } => {
                self.open(Open { file, session, mode, delete_on_close, closed: false });
            }
            Step::Close(back) => {
                if let Some(at) = self.place(back) {
                    self.close(at, &mut new);
                }
            }
            Step::SetDelete(back, on) => self.set_delete(back, on),
            Step::Lock(back, at, mode, wait) => {
                if let Some(open) = self.place(back) {
                    self.lock(open, at, mode, wait);
                }
            }
            Step::LockAgain(at, mode) => {
                if let Some((open, at)) = self.held(at) {
                    self.lock(open, at, mode, false);
                }
            }
            Step::LockAll(back, ref locks) => self.lock_all(back, locks),
            Step::Unlock(back, at) => {
                if let Some(open) = self.place(back) {
                    self.unlock(open, at, &mut new);
                }
            }
            Step::UnlockHeld(at) => {
                if let Some((open, at)) = self.held(at) {
                    self.unlock(open, at, &mut new);
                }
            }
            Step::Cancel(at) => self.cancel(at, &mut new),
            Step::ReleaseLock(at) => self.release_lock(at, &mut new),
            Step::OwnerLock(file, who, at, mode, wait) => {
                self.owner_lock(file, who, at, mode, wait, &mut new);
            }
            Step::OwnerUnlock(file, who, at) => self.owner_unlock(file, who, at, &mut new),
            Step::Share(at, who, share) => {
                let done = self.tables.share(Mono::ZERO, &file(at), &owner(who), share, false);
                assert_eq!(done.is_ok(), self.naive.share(at, who, share), "{done:?}");
            }
            Step::Unshare(at, who) => {
                self.tables.unshare(&file(at), &owner(who));
                self.naive.unshare(at, who);
            }
            Step::ReleaseOwner(who) => {
                let closed = self.tables.release_client(owner(who).client(), &mut new);
                assert_eq!(closed, []);
                self.naive.release(who);
            }
            Step::ReleaseSession(who) => self.release_session(who, &mut new),
        }
        self.compare_grants(&new);
    }

    fn compare_grants(&mut self, new: &[Grant<usize>]) {
        let told: Vec<_> = new.iter().map(|grant| (grant.ask.clone(), grant.waiter)).collect();
        let grants = std::mem::take(&mut self.naive.grants);
        assert_eq!(told.len(), grants.len(), "{told:?} {grants:?}");
        for ((ask, waiter), (lock, token)) in told.into_iter().zip(grants) {
            assert_eq!((waiter, ask.file, ask.mode), (token, file(lock.file), lock.mode));
            match lock.who {
                Who::Owner(who) => assert_eq!(ask.owner, owner(who)),
                Who::Open(at) => assert_eq!(ask.owner.open(), Some(self.ids[at])),
            }
        }
        // A grant to an open has the number that its wait had.
        for grant in new {
            assert!(self.waits[grant.waiter].is_none_or(|wait| wait == grant.id));
            self.tables.taken(grant.id);
        }
    }

    fn open(&mut self, open: Open) {
        let Open { file: at, session: who, mode, delete_on_close, .. } = open;
        let opened = self.tables.open_file(&file(at), &session(who), mode, delete_on_close);
        if self.naive.delete[at].is_some() {
            assert_eq!(opened, Err(Refused::DeletePending));
            return;
        }
        match self.naive.open(open) {
            None => assert_eq!(opened, Err(Refused::Sharing)),
            Some(_) => self.ids.push(opened.unwrap()),
        }
    }

    fn close(&mut self, at: usize, new: &mut Vec<Grant<usize>>) {
        let closed = self.tables.close_file(self.ids[at], new);
        self.compare_closed(at, closed);
    }

    fn compare_closed(&mut self, at: usize, closed: Option<weir_state::Closed<usize>>) {
        let expected = self.naive.close(at);
        let told = closed.map(|closed| {
            assert_eq!(closed.open, self.ids[at]);
            assert_eq!(closed.file, file(self.naive.opens[at].file));
            (closed.last, closed.delete, closed.waiters)
        });
        let expected = expected.map(|(last, delete, waiters)| {
            let delete = delete.map(|by| DeleteRequest {
                open: self.ids[by],
                client: session(self.naive.opens[by].session),
            });
            (last, delete, waiters)
        });
        assert_eq!(told, expected);
    }

    fn release_session(&mut self, who: usize, new: &mut Vec<Grant<usize>>) {
        let closed = self.tables.release_client(&session(who), new);
        let own = |open: &Open| open.session == who && !open.closed;
        let opens: Vec<usize> =
            (0..self.ids.len()).filter(|at| own(&self.naive.opens[*at])).collect();
        assert_eq!(closed.len(), opens.len());
        for (closed, at) in closed.into_iter().zip(opens) {
            self.compare_closed(at, Some(closed));
        }
        assert!(!self.tables.has(&session(who)));
    }

    fn set_delete(&mut self, back: usize, on: bool) {
        let Some(at) = self.place(back) else { return };
        let done = self.tables.set_delete_pending(self.ids[at], on);
        let Open { file, closed, .. } = self.naive.opens[at];
        assert_eq!(done, if closed { Err(Refused::Closed) } else { Ok(()) });
        if !closed {
            self.naive.delete[file] = on.then_some(at);
        }
    }

    fn token(&mut self) -> usize {
        self.waits.push(None);
        self.waits.len() - 1
    }

    /// The open and the range of a lock, by its place among all that opens hold.
    fn held(&self, at: usize) -> Option<(usize, At)> {
        let mut opens = self.naive.held.iter().filter_map(|lock| match lock.who {
            Who::Open(open) => Some((open, (lock.offset, lock.length))),
            Who::Owner(_) => None,
        });
        opens.nth(at)
    }

    fn lock(&mut self, open: usize, at: At, mode: Mode, wait: bool) {
        let wait = wait.then(|| self.token());
        let done = self.tables.lock_open(Mono::ZERO, self.ids[open], span(at), mode, wait);
        let (file, (offset, length)) = (self.naive.opens[open].file, at);
        let lock = Lock { file, who: Who::Open(open), offset, length, mode };
        let answer = match done {
            Ok(OpenLocked::Granted) => Answer::Granted,
            Ok(OpenLocked::Waits(id)) => {
                self.waits[wait.unwrap()] = Some(id);
                Answer::Waits
            }
            Err(Refused::Held(_)) => Answer::Held,
            Err(Refused::Closed) => Answer::Closed,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(answer, self.naive.lock(lock, wait), "{lock:?}");
    }

    fn lock_all(&mut self, back: usize, locks: &[(At, Mode)]) {
        let Some(open) = self.place(back) else { return };
        let spans: Vec<_> = locks.iter().map(|(at, mode)| (span(*at), *mode)).collect();
        let done = self.tables.lock_all(Mono::ZERO, self.ids[open], &spans);
        let Open { file, closed, .. } = self.naive.opens[open];
        if closed {
            assert_eq!(done, Err(Refused::Closed));
            return;
        }
        let lock = |((offset, length), mode): &(At, Mode)| {
            let (offset, length, mode) = (*offset, *length, *mode);
            Lock { file, who: Who::Open(open), offset, length, mode }
        };
        let locks: Vec<_> = locks.iter().map(lock).collect();
        assert_eq!(done.is_ok(), self.naive.lock_all(&locks) == Answer::Granted, "{done:?}");
    }

    fn unlock(&mut self, open: usize, at: At, new: &mut Vec<Grant<usize>>) {
        let done = self.tables.unlock_open(self.ids[open], span(at), new);
        let (file, (offset, length)) = (self.naive.opens[open].file, at);
        let (who, mode) = (Who::Open(open), Mode::Shared);
        let expected = self.naive.unlock_open(&Lock { file, who, offset, length, mode });
        assert_eq!(done, if expected { Ok(()) } else { Err(NotLocked) });
    }

    fn cancel(&mut self, at: usize, new: &mut Vec<Grant<usize>>) {
        let Some((lock, token)) = self.naive.queue.get(at).copied() else { return };
        self.naive.cancel(at);
        match lock.who {
            Who::Open(open) => {
                let wait = self.waits[token].unwrap();
                assert_eq!(self.tables.cancel_open(self.ids[open], wait, new), Some(token));
                assert_eq!(self.tables.cancel_open(self.ids[open], wait, new), None);
            }
            Who::Owner(who) => {
                let Lock { file, offset, length, mode, .. } = lock;
                assert!(self.tables.cancel(&ask(file, who, (offset, length), mode), new));
            }
        }
    }

    fn release_lock(&mut self, at: usize, new: &mut Vec<Grant<usize>>) {
        let listed: Vec<ListedLock> = self.tables.locks(None).collect();
        let Some(lock) = listed.get(at).cloned() else { return };
        let at = (0..FILES).find(|number| file(*number) == lock.place.file).unwrap();
        let (offset, length, mode) = (lock.offset, lock.length.unwrap(), lock.mode);
        let held = |who| Lock { file: at, who, offset, length, mode };
        let waiter = match &lock.place.spot {
            LockSpot::Named(by, _) => {
                let who = (0..OWNERS).find(|who| owner(*who) == *by).unwrap();
                self.naive.unlock(&held(Who::Owner(who)));
                None
            }
            LockSpot::Open(by, ..) => {
                let open = self.ids.iter().position(|id| by.open() == Some(*id)).unwrap();
                self.naive.unlock_every(&held(Who::Open(open)));
                None
            }
            LockSpot::Waiting(number) => {
                let earlier = |lock: &&ListedLock| matches!(lock.place.spot, LockSpot::Waiting(other) if other < *number);
                Some(self.naive.cancel(listed.iter().filter(earlier).count()))
            }
        };
        let released = self.tables.release_lock(&lock.place, new);
        let place = lock.place.clone();
        assert_eq!(released, Some(ReleasedLock { lock, waiter }));
        // The same owner may have waited for it.
        if !self.tables.locks(None).any(|lock| lock.place == place) {
            assert_eq!(self.tables.release_lock(&place, new), None);
        }
    }

    fn owner_unlock(&mut self, at: usize, who: usize, range: At, new: &mut Vec<Grant<usize>>) {
        let (offset, length) = range;
        let range = Range::new(offset, length).unwrap();
        self.tables.unlock(&file(at), &owner(who), range, new).unwrap();
        let (who, mode) = (Who::Owner(who), Mode::Shared);
        self.naive.unlock(&Lock { file: at, who, offset, length, mode });
    }

    fn owner_lock(
        &mut self,
        file: usize,
        who: usize,
        at: At,
        mode: Mode,
        wait: bool,
        new: &mut Vec<Grant<usize>>,
    ) {
        let wait = wait.then(|| self.token());
        let done = self.tables.lock(Mono::ZERO, &ask(file, who, at, mode), false, wait, new);
        let answer = match done {
            Ok(Locked::Granted) => Answer::Granted,
            Ok(Locked::Waits) => Answer::Waits,
            Err(Refused::Held(_)) => Answer::Held,
            Err(Refused::Deadlock) => Answer::Deadlock,
            Err(other) => panic!("{other}"),
        };
        let (who, (offset, length)) = (Who::Owner(who), at);
        let lock = Lock { file, who, offset, length, mode };
        assert_eq!(answer, self.naive.lock(lock, wait), "{lock:?}");
    }

    /// Compares everything that can be seen from outside.
    fn check(&self) {
        let open = |(_, open): &(usize, &Open)| !open.closed;
        let live: Vec<_> = self.naive.opens.iter().enumerate().filter(open).collect();
        let listed = self.tables.opens(OpenId(0)).map(|open| (open.id, open.file, open.client));
        let expected = live.iter().map(|(at, o)| (self.ids[*at], file(o.file), session(o.session)));
        assert!(listed.eq(expected));
        for at in 0..FILES {
            let (now, lists) = (file(at), &self.naive);
            assert_eq!(self.tables.is_delete_pending(&now), lists.delete[at].is_some());
            assert_eq!(self.tables.opens_on(&now), lists.live(at).count());
            assert_eq!(self.tables.denied(&now), lists.denied(at));
            assert_eq!(self.known.0.lock().unwrap()[at], lists.presence(at));
            self.check_io(at);
        }
        for (at, _) in live {
            self.check_locks(at);
        }
        let used = self.tables.used();
        let lists = &self.naive;
        assert_eq!((used.locks, used.waiters), (lists.ranges().len(), lists.queue.len()));
        assert_eq!(used.shares, lists.shares.len());
        assert_eq!(used.opens, lists.opens.iter().filter(|open| !open.closed).count());
    }

    fn check_io(&self, at: usize) {
        let opens = self.naive.live(at).map(|(open, _)| Some(open));
        for open in opens.chain([None]) {
            for byte in 0..BYTES {
                for io in [Io::Read, Io::Write] {
                    let id = open.map(|open| self.ids[open]);
                    let may = self.tables.io(&file(at), id, span((byte, 1)), io);
                    let expected = self.naive.io(at, open, byte, io);
                    assert_eq!(may.is_ok(), expected, "{at} {open:?} {byte} {io:?}");
                }
            }
        }
    }

    fn check_locks(&self, at: usize) {
        let told =
            self.tables.locks_of(self.ids[at]).into_iter().flat_map(|(span, mode, times)| {
                std::iter::repeat_n((span.offset(), span.length(), mode), times)
            });
        let own = self.naive.held.iter().filter(|lock| lock.who == Who::Open(at));
        let mut expected: Vec<_> = own.map(|lock| (lock.offset, lock.length, lock.mode)).collect();
        expected.sort_unstable();
        assert!(told.eq(expected));
    }
}

fn ask(at: usize, who: usize, (offset, length): At, mode: Mode) -> Ask {
    let range = Range::new(offset, length).unwrap();
    Ask { file: file(at), owner: owner(who), range, mode }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_tables_agree_with_lists(steps in prop::collection::vec(step(), 1..100)) {
        let mut both = Both::new();
        for step in steps {
            both.step(&step);
            both.check();
        }
        for number in 0..SESSIONS {
            both.step(&Step::ReleaseSession(number));
        }
        for number in 0..OWNERS {
            both.step(&Step::ReleaseOwner(number));
        }
        both.check();
        prop_assert_eq!(both.tables.used(), Use::default());
        prop_assert_eq!(both.tables.clients().len(), 0);
        let left = both.tables.take_left();
        prop_assert!(left.iter().all(|client| client.protocol() == Protocol::Nlm));
    }
}
