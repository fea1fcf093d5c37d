//! Clients that keep few requests outstanding where two limits bind by turns, in virtual time: the
//! queue runs empty with every request or so, and neither limit is lost by that, nor passed by more
//! than is said in `meters`. The same for a volume on its own and for one that shares a pool.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::Mono;
use weir_qos::{
    BytesPerSecond, ClientKey, Cost, Departure, Iops, Limits, Meters, NEVER, Queue, Share, Shares,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
const START: u64 = SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send(usize),
    Pump,
}

/// One volume with limits on both, and clients that each send 1 MiB and then so many of 4 KiB that
/// they would use both limits up, over and over. Whatever goes is answered at once.
struct World {
    limits: (u64, u64),
    meters: Meters,
    queue: Queue<(usize, u64)>,
    /// The pool whose budget it shares, if any, which has enough.
    pool: Option<(Meters, Shares)>,
    /// The bytes that each client sent so far.
    sent: Vec<u64>,
    turnaround: u64,
    /// Nobody sends anything in the last 100 ms of so many nanoseconds.
    pause_in: Option<u64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    pump_at: Option<u64>,
    now: u64,
    /// Time, and bytes.
    done: Vec<(u64, u64)>,
}

impl World {
    fn new(mib: u64, iops: u64, shared: bool) -> Self {
        let rate = BytesPerSecond::from_mib(mib);
        let mut shares = Shares::new();
        shares.set(1, Share::default());
        let budget = Meters::new(Limits::of(BytesPerSecond::from_mib(10 * mib)));
        Self {
            limits: (rate.0, iops),
            meters: Meters::new(Limits { iops: Some(Iops(iops)), ..Limits::of(rate) }),
            queue: Queue::new(),
            pool: shared.then_some((budget, shares)),
            sent: Vec::new(),
            turnaround: 0,
            pause_in: None,
            events: BinaryHeap::new(),
            order: 0,
            pump_at: None,
            now: START,
            done: Vec::new(),
        }
    }

    fn run(mut self, clients: usize, depth: u64, seconds: u64) -> Self {
        self.sent = vec![0; clients];
        for client in 0..clients {
            (0..depth).for_each(|_| self.schedule(START, Event::Send(client)));
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > START + seconds * SECOND {
                break;
            }
            self.now = at;
            match event {
                Event::Send(client) => self.send(client),
                Event::Pump if self.pump_at == Some(at) => self.pump(),
                Event::Pump => {}
            }
        }
        self
    }

    fn send(&mut self, client: usize) {
        if let Some(pause_in) = self.pause_in
            && self.now % pause_in >= pause_in - 100 * MILLI
        {
            let end = self.now.next_multiple_of(pause_in);
            return self.schedule(end, Event::Send(client));
        }
        let (rate, iops) = self.limits;
        let is_large = self.sent[client].is_multiple_of(iops * MIB / rate);
        self.sent[client] += 1;
        let size = if is_large { MIB } else { 4 * KIB };
        let (cost, now) = (Cost::of(size), Mono(self.now));
        let charged = match &self.pool {
            Some((budget, _)) => self.meters.try_take_with(budget, cost, now),
            None => self.meters.try_take(cost, now),
        };
        if charged.is_some() {
            return self.answer((client, size));
        }
        let key = ClientKey(u128::try_from(client).unwrap());
        let mut ask = self.queue.push(&self.meters, key, client as u64, cost, (client, size));
        if let Some((budget, shares)) = &mut self.pool {
            if ask {
                shares.again(budget, 1);
            }
            ask |= shares.wake(budget, 1);
        }
        if ask {
            self.pump_at(self.now);
        }
    }

    fn pump(&mut self) {
        self.pump_at = None;
        let (mut released, now) = (Vec::new(), Mono(self.now));
        let release = &mut |token, _| {
            released.push(token);
            Departure::Went
        };
        let next = match &mut self.pool {
            Some((budget, shares)) => {
                let budget = &*budget;
                shares.poll(budget, now, |_| self.queue.step(&self.meters, budget, now, release))
            }
            None => self.queue.poll(&self.meters, now, release),
        };
        released.into_iter().for_each(|token| self.answer(token));
        if let Some(at) = next.filter(|&at| at != NEVER) {
            self.pump_at(at.0.max(self.now));
        }
    }

    fn pump_at(&mut self, at: u64) {
        if self.pump_at.is_none_or(|earlier| at < earlier) {
            self.pump_at = Some(at);
            self.schedule(at, Event::Pump);
        }
    }

    fn answer(&mut self, (client, size): (usize, u64)) {
        self.done.push((self.now, size));
        self.schedule(self.now + self.turnaround, Event::Send(client));
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// Bytes and operations from the third second on, of 1,000 that were due until then.
    fn used(&self) -> (u64, u64) {
        let from = START + 2 * SECOND;
        let late = self.done.iter().filter(|(at, _)| *at >= from);
        let (bytes, operations) = late.fold((0, 0), |sum, (_, size)| (sum.0 + size, sum.1 + 1));
        let (rate, iops) = self.limits;
        let of = |what: u64, limit: u64| what * 1000 / (limit * (self.now - from) / SECOND);
        (of(bytes, rate), of(operations, iops))
    }

    /// The bound of `meters` in every window that begins with an answer.
    fn assert_bound(&self) {
        let (rate, iops) = self.limits;
        let slowest = (MIB * SECOND / rate).max(SECOND / iops);
        let most = |limit: u64, window: u64, largest: u64| {
            limit * (window + 50 * MILLI + slowest) / SECOND + largest + 1
        };
        for (begin, (from, _)) in self.done.iter().enumerate() {
            let (mut bytes, mut operations) = (0, 0);
            for (at, size) in self.done[begin..].iter().take_while(|one| one.0 < from + 2 * SECOND)
            {
                (bytes, operations) = (bytes + size, operations + 1);
                let window = at - from;
                assert!(bytes <= most(rate, window, MIB), "{bytes} bytes in {window} ns");
                assert!(operations <= most(iops, window, 1), "{operations} in {window} ns");
            }
        }
    }
}

const LIMITS: [(u64, u64); 5] = [(1, 20), (2, 32), (4, 64), (8, 128), (16, 100)];

/// Of the operations a part is left over, as the small ones move bytes too.
#[test]
fn shallow_clients_lose_neither_limit() {
    for (mib, iops) in LIMITS {
        for (clients, depth) in [(1, 1), (2, 1), (3, 1), (1, 2), (1, 64)] {
            for (turnaround, shared) in [(0, false), (MILLI, false), (MILLI, true)] {
                let world = World { turnaround, ..World::new(mib, iops, shared) };
                let world = world.run(clients, depth, 42);
                let (bytes, operations) = world.used();
                let what = format!("{mib} MiB/s, {iops} IOPS, {clients} of depth {depth}");
                assert!(bytes >= 980 && operations >= 900, "{what}: {bytes}, {operations}");
                world.assert_bound();
            }
        }
    }
}

/// A hold-up of long ago is no credit.
#[test]
fn after_a_pause_there_is_no_more_than_was_held_up() {
    for (mib, iops) in LIMITS {
        for pause_in in [150 * MILLI, 450 * MILLI, SECOND] {
            let world = World { pause_in: Some(pause_in), ..World::new(mib, iops, false) };
            world.run(3, 1, 42).assert_bound();
        }
    }
}
