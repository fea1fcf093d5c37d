//! Requests that wait for their file and whose connection takes no replies.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::rate::{BytesPerSecond, Iops};

const START: Mono = Mono(1_000_000_000);

/// A volume, the ceiling of its files, and the connections that take no replies.
struct World {
    meters: Meters,
    waiting: WaitQueue<u64, u64>,
    /// The requests that were parked, by their tokens.
    ids: BTreeMap<u64, RequestId<u64>>,
    deaf: BTreeSet<u64>,
    now: Mono,
}

impl World {
    /// A volume that never binds, and files of 100 operations a second.
    fn new() -> Self {
        Self::of(BytesPerSecond(1 << 40), 100)
    }

    fn of(rate: BytesPerSecond, iops: u64) -> Self {
        let (meters, mut waiting) = (Meters::new(Limits::of(rate)), WaitQueue::new());
        waiting.set_ceiling(operations(iops), &meters, START);
        Self { meters, waiting, ids: BTreeMap::new(), deaf: BTreeSet::new(), now: START }
    }

    fn at(&mut self, milli: u64) -> &mut Self {
        self.now = Mono(START.0 + milli * 1_000_000);
        self
    }

    /// Parks a request. The thousands of a token name its connection, the ten thousands its client.
    fn park(&mut self, token: u64, file: Option<u64>) {
        self.park_of(token, file, Cost::of(1));
    }

    fn park_of(&mut self, token: u64, file: Option<u64>, cost: Cost) {
        let asks = Demand { cost, file, ..self.asks(token) };
        self.push(asks, token);
    }

    fn push(&mut self, asks: Demand<u64>, token: u64) {
        self.waiting.push(&self.meters, asks, token);
        self.ids.insert(token, self.waiting.last_id(&asks));
    }

    fn asks(&self, token: u64) -> Demand<u64> {
        let (client, connection) = (ClientKey(u128::from(token / 10_000)), token / 1000);
        Demand { client, connection, cost: Cost::of(1), file: None, pinned: 1 }
    }

    /// Parks and releases until the file is used up: its 50 ms, and one operation.
    fn use_up(&mut self, file: u64) {
        for token in 90_000..90_006 {
            self.park(token, Some(file));
        }
        assert_eq!(self.went().len(), 6);
    }

    /// The requests that go now.
    fn went(&mut self) -> Vec<u64> {
        let (mut went, deaf) = (Vec::new(), &self.deaf);
        self.waiting.poll(&self.meters, self.now, &mut |token, _| {
            if deaf.contains(&(token / 1000)) {
                return Some(token);
            }
            went.push(token);
            None
        });
        self.keeps();
        went
    }

    /// The requests that go within this number of milliseconds, polled every 10 ms.
    fn went_until(&mut self, milli: u64) -> Vec<u64> {
        let mut went = Vec::new();
        while self.now.0 < START.0 + milli * 1_000_000 {
            self.now.0 += 10_000_000;
            went.extend(self.went());
        }
        went
    }

    fn hear(&mut self, connection: u64) {
        self.deaf.remove(&connection);
        self.waiting.resume(&self.meters, connection);
        self.keeps();
    }

    fn cancel(&mut self, connection: u64) -> Vec<u64> {
        let mut cancelled = Vec::new();
        let cancel = &mut |token| cancelled.push(token);
        self.waiting.cancel(&self.meters, connection, self.now, cancel);
        self.deaf.remove(&connection);
        self.keeps();
        cancelled
    }

    /// Cancels one request; false if it went, or was cancelled before.
    fn cancel_one(&mut self, token: u64) -> bool {
        let cancelled = self.waiting.cancel_one(&self.meters, self.ids[&token], self.now);
        assert!(cancelled.is_none_or(|cancelled| cancelled == token), "another one");
        self.keeps();
        cancelled.is_some()
    }

    /// The number of requeued requests of the first file, and the number for which it is reserved.
    fn requeued(&self) -> (usize, usize) {
        let mut files = self.waiting.limiter.iter().flat_map(|files| files.requeued());
        files.next().map_or((0, 0), |(_, counts)| counts)
    }

    /// Each file counts the requeued requests that wait for their turn, and no others; none of
    /// these is on a stalled connection.
    fn keeps(&mut self) {
        let (mut requeued, mut on) = (BTreeMap::<_, (usize, usize)>::new(), BTreeSet::new());
        self.waiting.queue.for_each(&mut |waiter: &mut Waiter<u64, u64>| {
            if let (Some(by), Some(file)) = (waiter.requeued, waiter.demand.file) {
                let counts = requeued.entry(Some(file)).or_default();
                *counts = (counts.0 + 1, counts.1 + usize::from(by.reserved));
                on.insert((waiter.demand.client, waiter.demand.connection));
            }
        });
        let files = self.waiting.limiter.as_ref();
        let counted = files.map_or_else(BTreeMap::new, |files| files.requeued().collect());
        assert_eq!(counted, requeued);
        assert!(!on.iter().any(|&(client, on)| self.waiting.queue.is_stalled(client, on)));
        assert_eq!(self.meters.is_waiting(), self.waiting.len_of_volume() > 0);
        let aside: usize = self.waiting.throttled.connections.values().sum();
        assert_eq!(aside, files.map_or(0, |files| files.len()));
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what is set is an option")]
fn operations(iops: u64) -> Option<Ceiling> {
    Some(Ceiling { rate: None, iops: Some(Iops(iops)) })
}

#[test]
fn what_is_given_back_is_charged_to_no_file_and_keeps_its_place_on_its_connection() {
    let mut world = World::new();
    world.deaf.insert(11);
    world.park(11_000, Some(1));
    assert_eq!(world.went(), []);
    world.park(11_001, Some(1));
    assert_eq!((world.waiting.len(), world.waiting.len_of_volume()), (2, 0));
    world.use_up(1);
    world.hear(11);
    world.park(11_002, Some(1));
    assert_eq!(world.went(), []);
    assert_eq!(world.waiting.len_of_volume(), 0, "all wait for their file");
    assert_eq!(world.went_until(60), [11_000, 11_001, 11_002]);
}

#[test]
fn a_client_has_its_part_of_a_file_after_a_newcomer_of_it_was_given_back() {
    let mut world = World::new();
    world.use_up(1);
    for token in [11_000, 11_001, 22_000, 22_001] {
        world.park(token, Some(1));
    }
    assert_eq!(world.went(), []);
    // The third client has had nothing yet, so its newcomer is the first of the file, and does not
    // go.
    assert_eq!(world.at(10).went(), [11_000]);
    world.at(20).deaf.insert(33);
    world.park(33_000, Some(1));
    assert_eq!(world.went(), [22_000]);
    assert!(world.waiting.queue.is_stalled(ClientKey(3), 33));
    world.hear(33);
    assert_eq!(world.went(), []);
    assert_eq!(world.went_until(60), [33_000, 11_001, 22_001]);
}

/// File 1 is reserved for request 11000, which is to have the next turn at the volume, at 187 ms.
/// Request 11001 of the same connection waits for the file.
fn reserved() -> World {
    // A byte takes 1 ms of the volume, and an operation 10 ms of the file.
    let mut world = World::of(BytesPerSecond(1000), 100);
    world.use_up(1);
    world.park_of(11_000, Some(1), Cost { bytes: 100, operations: 1 });
    world.park_of(22_000, Some(1), Cost { bytes: 1, operations: 6 });
    assert_eq!(world.went(), []);
    world.park_of(88_000, None, Cost::of(130));
    assert_eq!(world.went(), [88_000]);
    // The volume is used up until 86 ms, and the file requeues both.
    world.at(10).went();
    world.at(20).went();
    assert_eq!(world.requeued(), (2, 0));
    world.at(90).park_of(88_001, None, Cost::of(100));
    world.park(11_001, Some(1));
    // The smaller one goes and uses up the file, so the other is refused.
    assert_eq!(world.went(), [22_000, 88_001]);
    assert_eq!((world.requeued(), world.waiting.len()), ((0, 0), 2));
    assert_eq!(world.at(100).went(), []);
    assert_eq!(world.requeued(), (1, 1));
    world
}

#[test]
fn a_file_is_not_reserved_for_a_request_whose_connection_takes_no_replies() {
    let mut world = reserved();
    world.park(33_000, Some(1));
    world.deaf.insert(11);
    // The connection's stall shows at the turn, and others go at once.
    assert_eq!(world.at(190).went(), [33_000]);
    assert_eq!(world.requeued(), (0, 0));
    world.park(33_001, Some(1));
    assert_eq!(world.went(), [33_001], "the file has 50 ms and saves up nothing for the others");
    assert_eq!((world.waiting.len(), world.waiting.len_of_volume()), (2, 0));
    assert!(!world.waiting.is_throttled(11), "its other request waits with it");
    world.hear(11);
    assert_eq!(world.at(200).went(), [11_000]);
    assert_eq!(world.went_until(500), [11_001]);
}

#[test]
fn requests_of_a_stalled_connection_are_not_in_the_way_in_the_queue_of_their_file() {
    let mut world = World::new();
    world.use_up(1);
    // All of these wait for the file before their connection is known to be deaf.
    for token in 11_000..11_010 {
        world.park(token, Some(1));
    }
    assert_eq!(world.went(), []);
    world.deaf.insert(11);
    for token in 22_000..22_003 {
        world.park(token, Some(1));
    }
    // 10 ms apart from the first moment on, as if the others were alone.
    assert_eq!(world.went_until(10), [22_000]);
    assert_eq!(world.went_until(20), [22_001]);
    assert_eq!(world.went_until(30), [22_002]);
    assert_eq!((world.waiting.len(), world.waiting.len_of_volume()), (10, 0));
    // The file had nothing to do for 300 ms, and has saved up 50 ms.
    world.at(330).hear(11);
    assert_eq!(world.went(), Vec::from_iter(11_000..11_006));
    assert_eq!(world.went_until(370), Vec::from_iter(11_006..11_010));
}

#[test]
fn clients_of_one_connection_are_stalled_each_by_itself() {
    let mut world = World::new();
    world.use_up(1);
    world.deaf.insert(11);
    world.park(11_000, None);
    assert_eq!(world.went(), []);
    // The file is asked for by another client of the connection, whose requests have turns.
    for token in [11_001, 11_002] {
        let asks = Demand { client: ClientKey(5), file: Some(1), ..world.asks(token) };
        world.waiting.push(&world.meters, asks, token);
    }
    world.park(22_000, Some(1));
    assert_eq!(world.went(), []);
    assert_eq!(world.waiting.len_of_volume(), 0);
    assert_eq!(world.went_until(10), [22_000]);
    assert_eq!((world.waiting.len(), world.requeued()), (3, (0, 0)));
    world.hear(11);
    assert_eq!(world.went_until(40), [11_000, 11_001, 11_002]);
}

#[test]
fn a_connection_is_cancelled_wherever_its_requests_are() {
    for deaf in [false, true] {
        let mut world = reserved();
        if deaf {
            world.deaf.insert(11);
            assert_eq!(world.at(190).went(), []);
            assert!(world.waiting.queue.is_stalled(ClientKey(1), 11));
        }
        let mut cancelled = world.cancel(11);
        cancelled.sort_unstable();
        assert_eq!(cancelled, [11_000, 11_001]);
        assert_eq!((world.waiting.len(), world.requeued()), (0, (0, 0)));
        assert!(!world.waiting.queue.is_stalled(ClientKey(1), 11));
        world.park(33_000, Some(1));
        assert_eq!(world.at(190).went(), [33_000], "no turn is kept for the others");
    }
}

#[test]
fn a_request_is_cancelled_wherever_it_is() {
    for deaf in [false, true] {
        // The file is reserved for the first one, and the second one waits behind it.
        for (cancelled, other) in [(11_000, 11_001), (11_001, 11_000)] {
            let mut world = reserved();
            if deaf {
                world.deaf.insert(11);
                assert_eq!(world.at(190).went(), []);
            }
            assert!(world.cancel_one(cancelled) && !world.cancel_one(cancelled));
            assert_eq!(world.waiting.len(), 1);
            world.hear(11);
            assert_eq!(world.went_until(400), [other]);
            assert!(!world.cancel_one(other), "it went");
            assert!(world.waiting.is_empty() && world.waiting.throttled_bytes() == 0);
        }
    }
}

#[test]
fn the_request_behind_a_cancelled_one_has_its_turn_and_its_client_no_other_share() {
    let mut world = World::of(BytesPerSecond(1000), 100);
    world.park_of(90_000, None, Cost::of(1000));
    assert_eq!(world.went(), [90_000]);
    // Two clients, of which the first cancels its first requests.
    for number in 0..3 {
        world.park_of(11_000 + number, None, Cost::of(100));
        world.park_of(22_000 + number, None, Cost::of(100));
    }
    assert!(world.cancel_one(11_000) && world.cancel_one(11_001));
    assert!(world.cancel_one(22_001), "in the middle");
    let order = world.went_until(3000);
    let turns = |client| order.iter().filter(|token| *token / 10_000 == client).count();
    assert_eq!((turns(1), turns(2)), (1, 2), "{order:?}");
    assert_eq!(Vec::from_iter(order.iter().filter(|token| **token > 20_000)), [&22_000, &22_002]);
    assert!(!world.meters.is_waiting(), "the fast path is open");
}

#[test]
fn other_limits_and_ceilings_find_reserved_and_stalled_requests() {
    for deaf in [false, true] {
        let mut world = reserved();
        if deaf {
            world.deaf.insert(11);
            assert_eq!(world.at(190).went(), []);
        }
        let limits = Limits { iops: Some(Iops(1000)), ..Limits::of(BytesPerSecond(1000)) };
        world.meters.set(limits, world.now);
        world.waiting.reweigh(&world.meters);
        world.waiting.set_ceiling(operations(50), &world.meters, world.now);
        world.keeps();
        assert_eq!(world.requeued(), if deaf { (0, 0) } else { (1, 1) });
        // Without a ceiling they wait for the volume alone, and no later ceiling knows them.
        world.waiting.set_ceiling(None, &world.meters, world.now);
        world.waiting.set_ceiling(operations(1), &world.meters, world.now);
        world.keeps();
        assert_eq!((world.requeued(), world.waiting.len()), ((0, 0), 2));
        world.hear(11);
        assert_eq!(world.went_until(200), [11_000]);
        assert_eq!(world.went_until(2000), [11_001]);
        assert!(world.waiting.is_empty());
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Park { connection: u64, file: Option<u64>, cost: Cost },
    Poll { milli: u64 },
    Deaf { connection: u64 },
    Hear { connection: u64 },
    Cancel { connection: u64 },
    CancelOne { number: usize },
    Limits(Limits),
    Ceiling(Option<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    let connection = || 10..18_u64;
    let cost = (0..200_u64, 1..6_u64).prop_map(|(bytes, operations)| Cost { bytes, operations });
    let limits = (500..5000_u64, prop::option::of(100..1000_u64)).prop_map(|(rate, iops)| Limits {
        iops: iops.map(Iops),
        ..Limits::of(BytesPerSecond(rate))
    });
    prop_oneof![
        12 => (connection(), prop::option::weighted(0.8, 0..3_u64), cost)
            .prop_map(|(connection, file, cost)| Step::Park { connection, file, cost }),
        12 => (0..60_u64).prop_map(|milli| Step::Poll { milli }),
        2 => connection().prop_map(|connection| Step::Deaf { connection }),
        2 => connection().prop_map(|connection| Step::Hear { connection }),
        1 => connection().prop_map(|connection| Step::Cancel { connection }),
        4 => (0..300_usize).prop_map(|number| Step::CancelOne { number }),
        1 => limits.prop_map(Step::Limits),
        1 => prop::option::weighted(0.8, 20..400_u64).prop_map(Step::Ceiling),
    ]
}

impl World {
    /// Takes a step that draws what happens; `waiting` is what has neither gone nor been cancelled.
    fn take(
        &mut self,
        step: Step,
        serial: u64,
        waiting: &mut BTreeMap<u64, Cost>,
    ) -> Result<(), TestCaseError> {
        let now = self.now;
        match step {
            Step::Park { connection, file, cost } => {
                let token = connection * 1000 + serial;
                // Each client has two connections, and each connection two clients.
                let client = ClientKey(u128::from(connection / 2 + serial % 2));
                let asks = Demand { client, connection, cost, file, pinned: 1 };
                self.push(asks, token);
                waiting.insert(token, cost);
            }
            Step::Poll { milli } => {
                self.now = Mono(now.0 + milli * 1_000_000);
                for token in self.went() {
                    prop_assert!(waiting.remove(&token).is_some(), "{token} went twice");
                }
            }
            Step::Deaf { connection } => _ = self.deaf.insert(connection),
            Step::Hear { connection } => self.hear(connection),
            Step::Cancel { connection } => {
                let mut cancelled = self.cancel(connection);
                cancelled.sort_unstable();
                let of = waiting.extract_if(.., |token, _| token / 1000 == connection);
                prop_assert_eq!(cancelled, Vec::from_iter(of.map(|(token, _)| token)));
            }
            Step::CancelOne { number } => {
                let parked = self.ids.keys().nth(number % self.ids.len().max(1)).copied();
                if let Some(token) = parked {
                    prop_assert_eq!(self.cancel_one(token), waiting.remove(&token).is_some());
                }
            }
            Step::Limits(limits) => {
                let meters = &self.meters;
                meters.set(limits, now);
                self.waiting.reweigh(meters);
            }
            Step::Ceiling(iops) => {
                self.waiting.set_ceiling(iops.and_then(operations), &self.meters, now);
            }
        }
        prop_assert_eq!(self.waiting.len(), waiting.len());
        Ok(())
    }
}

proptest! {
    /// Whatever comes goes once, unless it is cancelled, as soon as its connection takes replies
    /// again; and no file is charged more than what went.
    #[test]
    fn whatever_becomes_of_connections_and_limits_all_is_let_go_in_its_time(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let (mut world, mut waiting) = (World::of(BytesPerSecond(2000), 100), BTreeMap::new());
        for (serial, step) in (0_u64..).zip(steps) {
            world.take(step, serial, &mut waiting)?;
        }
        world.deaf.clear();
        (10..18).for_each(|connection| world.hear(connection));
        world.meters.set(Limits::of(BytesPerSecond(2000)), world.now);
        world.waiting.reweigh(&world.meters);
        world.waiting.set_ceiling(operations(100), &world.meters, world.now);
        // The time that the waiting requests take, beside the charges under slower limits before.
        let takes: u64 = waiting.values().map(|cost| cost.bytes / 2 + cost.operations * 10).sum();
        let end = (world.now.0 - START.0) / 1_000_000 + takes + 1000;
        for token in world.went_until(end) {
            prop_assert!(waiting.remove(&token).is_some());
        }
        prop_assert!(waiting.is_empty() && world.waiting.is_empty(), "{waiting:?} still wait");
    }
}
