//! Whatever is locked, unlocked, waited for, cancelled, refused or given up, in whatever order, the
//! tables answer as an array of bytes does that has nothing clever in it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that fails is a test that fails")]

mod naive;

use naive::{Answer, BYTES, FILES, Naive, OWNERS, Span, Want};
use proptest::prelude::*;
use std::collections::BTreeSet;
use weir_core::{Mono, ObjectKey, Origin, VolumeId};
use weir_state::{
    Ask, Client, File, Grant, Limits, Locked, Mode, Owner, Protocol, Range, Refused, Tables,
};

#[derive(Clone, Debug)]
enum Step {
    Lock(Want, bool),
    Unlock(usize, usize, Span),
    Cancel(Want),
    /// Cancels the request at this place of the queue.
    CancelWaiting(usize),
    /// Asks once more for the request at this place of the queue.
    Again(usize),
    Taken(usize),
    Refused(usize),
    ReleaseOwner(usize),
    ReleaseClient(usize),
}

fn want() -> impl Strategy<Value = Want> {
    let mode = prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)];
    (0..FILES, 0..OWNERS, span(), mode).prop_map(|(file, owner, span, mode)| Want {
        file,
        owner,
        span,
        mode,
    })
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        6 => (0..BYTES, 0usize..8).prop_map(|(from, more)| (from, (from + more).min(BYTES - 2).max(from))),
        2 => (0..BYTES).prop_map(|from| (from, BYTES - 1)),
        1 => Just((0, BYTES - 1)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (want(), prop::bool::weighted(0.7)).prop_map(|(want, wait)| Step::Lock(want, wait)),
        6 => (0..FILES, 0..OWNERS, span()).prop_map(|(f, o, s)| Step::Unlock(f, o, s)),
        1 => want().prop_map(Step::Cancel),
        1 => (0usize..8).prop_map(Step::CancelWaiting),
        2 => (0usize..8).prop_map(Step::Again),
        2 => (0usize..30).prop_map(Step::Taken),
        3 => (0usize..30).prop_map(Step::Refused),
        1 => (0..OWNERS).prop_map(Step::ReleaseOwner),
        1 => (0..OWNERS / 2).prop_map(Step::ReleaseClient),
    ]
}

/// The tables and the array of bytes, side by side.
struct Both {
    tables: Tables<usize>,
    naive: Naive,
    grants: Vec<Grant<usize>>,
    tokens: usize,
}

/// Each file is on a volume of its own, so that owners wait across volumes.
fn file(number: usize) -> File {
    let object = ObjectKey::new(&[u8::try_from(number).unwrap()]).unwrap();
    File { volume: VolumeId(u32::try_from(number).unwrap()), object }
}

fn client(number: usize) -> Client {
    Client::new(Protocol::Nlm, Origin::default(), &[u8::try_from(number).unwrap()])
}

/// Owners of two clients may have the same name.
fn owner(number: usize) -> Owner {
    Owner::new(client(number / 2), &[u8::try_from(number % 2).unwrap()])
}

fn range(span: Span) -> Range {
    let (from, to) = (span.0 as u64, span.1 as u64);
    if span.1 == BYTES - 1 {
        return Range::to_eof(from);
    }
    Range::new(from, to - from + 1).unwrap()
}

fn ask(want: &Want) -> Ask {
    let Want { file: at, owner: who, span, mode } = *want;
    Ask { file: file(at), owner: owner(who), range: range(span), mode }
}

impl Both {
    fn new() -> Self {
        let (mut tables, naive) = (Tables::new(Limits::SERVER), Naive::default());
        (0..FILES).for_each(|number| tables.open(file(number).volume));
        Self { tables, naive, grants: Vec::new(), tokens: 0 }
    }

    fn step(&mut self, step: &Step) {
        let mut new = Vec::new();
        match *step {
            Step::Lock(want, wait) => self.lock(want, wait, &mut new),
            Step::Again(at) => {
                if let Some((want, _)) = self.naive.queue.get(at).copied() {
                    self.lock(want, true, &mut new);
                }
            }
            Step::Unlock(at, who, span) => {
                self.naive.unlock(at, who, span);
                self.tables.unlock(&file(at), &owner(who), range(span), &mut new).unwrap();
            }
            Step::Cancel(want) => self.cancel(&want, &mut new),
            Step::CancelWaiting(at) => {
                if let Some((want, _)) = self.naive.queue.get(at).copied() {
                    self.cancel(&want, &mut new);
                }
            }
            Step::Taken(number) => {
                self.naive.taken(number);
                if let Some(grant) = self.grants.get(number) {
                    self.tables.taken(grant.id);
                }
            }
            Step::Refused(number) => {
                self.naive.refused(number);
                if let Some(grant) = self.grants.get(number) {
                    self.tables.refused(grant.id, &mut new);
                }
            }
            Step::ReleaseOwner(who) => {
                self.naive.release(&[who]);
                self.tables.release_owner(&owner(who), &mut new);
            }
            Step::ReleaseClient(who) => {
                self.naive.release(&[2 * who, 2 * who + 1]);
                self.tables.release_client(&client(who), &mut new);
            }
        }
        let told: Vec<_> = new.iter().map(|grant| (grant.ask.clone(), grant.waiter)).collect();
        let expected: Vec<_> =
            self.naive.grants.drain(..).map(|(want, token)| (ask(&want), token)).collect();
        assert_eq!(told, expected);
        self.grants.extend(new);
    }

    fn lock(&mut self, want: Want, wait: bool, new: &mut Vec<Grant<usize>>) {
        self.tokens += 1;
        let wait = wait.then_some(self.tokens);
        let expected = self.naive.lock(want, wait);
        let answer = match self.tables.lock(Mono::ZERO, &ask(&want), false, wait, new) {
            Ok(Locked::Granted) => Answer::Granted,
            Ok(Locked::Waits) => Answer::Waits,
            Err(Refused::Held(_)) => Answer::Held,
            Err(Refused::Deadlock) => Answer::Deadlock,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(answer, expected, "{want:?}");
    }

    fn cancel(&mut self, want: &Want, new: &mut Vec<Grant<usize>>) {
        assert_eq!(self.tables.cancel(&ask(want), new), self.naive.cancel(want));
    }

    /// Compares everything that can be seen from outside.
    fn check(&self) {
        for file in 0..FILES {
            for byte in 0..BYTES {
                for owner in 0..OWNERS {
                    self.check_byte(file, byte, owner);
                }
            }
        }
        let used = self.tables.used();
        assert_eq!((used.locks, used.waiters), (self.naive.ranges(), self.naive.queue.len()));
        let owners: Vec<usize> = (0..OWNERS).filter(|who| self.naive.has(*who)).collect();
        assert_eq!(used.owner_bytes, owners.len(), "their names are one byte long");
        let clients: BTreeSet<usize> = owners.iter().map(|who| who / 2).collect();
        assert_eq!(self.tables.clients().len(), clients.len());
    }

    fn check_byte(&self, at: usize, byte: usize, who: usize) {
        for mode in [Mode::Shared, Mode::Exclusive] {
            let want = Want { file: at, owner: who, span: (byte, byte), mode };
            let answer = self.tables.test(Mono::ZERO, &ask(&want));
            assert_eq!(answer.is_ok(), self.naive.test(&want), "{want:?}");
            let Err(Refused::Held(holder)) = answer else { continue };
            let other = (0..OWNERS).find(|other| owner(*other) == holder.owner).unwrap();
            assert_ne!(other, who);
            let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(BYTES).min(BYTES - 1);
            let (first, last) = (bytes(holder.range.first()), bytes(holder.range.last()));
            assert!((first..=last).contains(&byte));
            let held = |byte| self.naive.held(at, other, byte) == Some(holder.mode);
            assert!((first..=last).all(held), "a range told must be held whole");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_tables_agree_with_an_array_of_bytes(steps in prop::collection::vec(step(), 1..120)) {
        let mut both = Both::new();
        for step in steps {
            both.step(&step);
            both.check();
        }
        for number in 0..OWNERS / 2 {
            both.step(&Step::ReleaseClient(number));
        }
        prop_assert_eq!(both.tables.used(), weir_state::Use::default());
        prop_assert_eq!(both.tables.clients().len(), 0);
    }
}
