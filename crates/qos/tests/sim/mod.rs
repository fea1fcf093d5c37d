//! A gate under load in virtual time: clients that keep requests outstanding, a pump that comes
//! late, a store that takes a moment, and failures. Every random choice follows from one seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_core::Mono;
use weir_core::rng::step;
use weir_qos::{
    Burst, BytesPerSecond, ClientKey, Cost, Departure, Iops, Limits, Meters, NEVER, Queue,
};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLI: u64 = 1_000_000;

/// One client of the volume and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) client: u64,
    pub(crate) connections: u64,
    /// Requests that each connection keeps outstanding, or sends at a fixed pace.
    pub(crate) demand: Demand,
    /// Sizes are drawn evenly from this range, in bytes.
    pub(crate) size: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Demand {
    /// A closed loop: the next request follows the reply.
    Depth(u64),
    /// An open loop: a request every so many nanoseconds, whatever becomes of the others.
    Every(u64),
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) client: u64,
    pub(crate) connection: u64,
    pub(crate) serial: u64,
    /// Zero if it failed.
    pub(crate) bytes: u64,
    /// Zero if it failed, and one otherwise.
    pub(crate) operations: u64,
    pub(crate) sent: u64,
    pub(crate) at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    load: usize,
    connection: u64,
    serial: u64,
    cost: u64,
    /// Operations that it was charged.
    operations: u64,
    sent: u64,
    /// Time of the charge.
    charged: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send { load: usize, connection: u64 },
    Pump,
    Reply(Request),
    SetLimits(u64, Option<u64>),
    Disconnect(u64),
}

pub(crate) struct World {
    pub(crate) meters: Meters,
    queue: Queue<Request>,
    loads: Vec<Load>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    /// Latest the pump may come, in nanoseconds.
    lateness: u64,
    /// One request in so many fails; zero for none.
    fail_one_in: u64,
    pump_at: Option<u64>,
    gone: Vec<u64>,
    pub(crate) now: u64,
    random: u64,
    order: u64,
    pub(crate) sent: u64,
    pub(crate) cancelled: u64,
    pub(crate) in_service: u64,
    pub(crate) done: Vec<Done>,
}

impl World {
    /// All connections begin to send at the same moment, one second after the clock's origin.
    pub(crate) fn new(seed: u64, rate: u64, lateness: u64, loads: Vec<Load>) -> Self {
        let mut world = Self {
            meters: Meters::new(limits(rate, None)),
            queue: Queue::new(),
            events: BinaryHeap::new(),
            lateness,
            fail_one_in: 0,
            pump_at: None,
            gone: Vec::new(),
            now: SECOND,
            random: seed,
            order: 0,
            sent: 0,
            cancelled: 0,
            in_service: 0,
            done: Vec::new(),
            loads,
        };
        for load in 0..world.loads.len() {
            for connection in 0..world.loads[load].connections {
                let connection = world.loads[load].client * 1000 + connection;
                let at_once = match world.loads[load].demand {
                    Demand::Depth(depth) => depth,
                    Demand::Every(_) => 1,
                };
                for _ in 0..at_once {
                    world.schedule(SECOND, Event::Send { load, connection });
                }
            }
        }
        world
    }

    /// One request in `n` fails after it was charged.
    pub(crate) fn failing(self, n: u64) -> Self {
        Self { fail_one_in: n, ..self }
    }

    /// Operations are counted from the start.
    pub(crate) fn counting(self, rate: u64, iops: u64) -> Self {
        self.meters.set(limits(rate, Some(iops)), Mono(self.now));
        self
    }

    /// Operations come in bursts from the start, with full credits.
    pub(crate) fn bursting(self, rate: u64, burst: u64, of: Burst) -> Self {
        let limits = Limits { burst: Some(of), ..limits(rate, Some(burst)) };
        self.meters.set(limits, Mono(self.now));
        self
    }

    pub(crate) fn set_limits_at(&mut self, at: u64, rate: u64, iops: Option<u64>) {
        self.schedule(at, Event::SetLimits(rate, iops));
    }

    pub(crate) fn disconnect_at(&mut self, at: u64, connection: u64) {
        self.schedule(at, Event::Disconnect(connection));
    }

    pub(crate) fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            self.step(event);
        }
        self.now = end;
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Send { load, connection } => self.send(load, connection),
            Event::Reply(request) => self.reply(request),
            Event::Pump if self.pump_at == Some(self.now) => self.pump(),
            Event::Pump => {}
            Event::SetLimits(rate, iops) => {
                self.meters.set(limits(rate, iops), Mono(self.now));
                self.queue.reweigh(&self.meters);
                self.pump();
            }
            Event::Disconnect(connection) => {
                self.gone.push(connection);
                let cancelled = &mut self.cancelled;
                self.queue.cancel_connection(&self.meters, connection, &mut |_| *cancelled += 1);
                self.pump();
            }
        }
    }

    fn send(&mut self, load: usize, connection: u64) {
        if self.gone.contains(&connection) {
            return;
        }
        let Load { client, demand, size: (least, most), .. } = self.loads[load];
        let cost = least + self.draw(most - least + 1);
        self.sent += 1;
        let (serial, sent) = (self.sent, self.now);
        let request =
            Request { load, connection, serial, cost, operations: 0, sent, charged: sent };
        if let Some(charged) = self.meters.try_take(Cost::of(cost), Mono(self.now)) {
            self.serve(Request { operations: charged.operations, ..request });
        } else {
            let key = ClientKey(client.into());
            if self.queue.push(&self.meters, key, connection, Cost::of(cost), request) {
                self.pump_at(self.now);
            }
        }
        if let Demand::Every(pause) = demand {
            self.schedule(self.now + pause, Event::Send { load, connection });
        }
    }

    fn pump(&mut self) {
        self.pump_at = None;
        let (mut released, now) = (Vec::new(), self.now);
        let next = self.queue.poll(&self.meters, Mono(now), &mut |request, charged| {
            released.push(Request { operations: charged.operations, charged: now, ..request });
            Departure::Went
        });
        for request in released {
            self.serve(request);
        }
        if let Some(at) = next.filter(|&at| at != NEVER) {
            let late = self.draw(self.lateness + 1);
            self.pump_at(at.0.max(self.now) + late);
        }
    }

    /// Asks the queue at `at`, after all else that happens by then, unless it is asked before.
    fn pump_at(&mut self, at: u64) {
        if self.pump_at.is_none_or(|earlier| at < earlier) {
            self.pump_at = Some(at);
            self.schedule(at, Event::Pump);
        }
    }

    /// The store answers within a millisecond.
    fn serve(&mut self, request: Request) {
        self.in_service += 1;
        let service = self.draw(MILLI);
        self.schedule(self.now + service, Event::Reply(request));
    }

    fn reply(&mut self, request: Request) {
        self.in_service -= 1;
        let Request { load, connection, serial, cost, operations, sent, charged } = request;
        let failed = self.fail_one_in > 0 && self.draw(self.fail_one_in) == 0;
        let bytes = if failed { 0 } else { cost };
        let client = self.loads[load].client;
        let done = u64::from(!failed);
        let at = self.now;
        self.done.push(Done { client, connection, serial, bytes, operations: done, sent, at });
        if failed {
            self.meters.refund(Cost { bytes: cost, operations }, Mono(charged), Mono(self.now));
            self.pump();
        }
        if let Demand::Depth(_) = self.loads[load].demand {
            let turnaround = self.draw(MILLI / 2);
            self.schedule(self.now + turnaround, Event::Send { load, connection });
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// A random number below `below`.
    fn draw(&mut self, below: u64) -> u64 {
        step(&mut self.random) % below.max(1)
    }
}

fn limits(rate: u64, iops: Option<u64>) -> Limits {
    Limits { iops: iops.map(Iops), ..Limits::of(BytesPerSecond(rate)) }
}

/// The worst windows of `window` nanoseconds: the least and the most that any of them saw that
/// lies within `from..to`, in bytes or operations as `of` says.
pub(crate) fn worst_windows(
    done: &[Done],
    of: fn(&Done) -> u64,
    window: u64,
    from: u64,
    to: u64,
) -> (u64, u64) {
    let done: Vec<_> = done.iter().filter(|one| one.at >= from && one.at < to).collect();
    let (mut least, mut most) = (u64::MAX, 0);
    let (mut end, mut sum) = (0, 0);
    for begin in 0..done.len() {
        let until = done[begin].at + window;
        if until > to {
            break;
        }
        while end < done.len() && done[end].at < until {
            sum += of(done[end]);
            end += 1;
        }
        // [t, t + window) with the reply at t, and (t, t + window) without it.
        most = most.max(sum);
        sum -= of(done[begin]);
        least = least.min(sum);
    }
    (least, most)
}

/// Bytes that each client of `clients` got within `from..to`.
pub(crate) fn shares(done: &[Done], clients: u64, from: u64, to: u64) -> Vec<u64> {
    (0..clients)
        .map(|client| {
            let mine = done.iter().filter(|one| one.client == client);
            mine.filter(|one| (from..to).contains(&one.at)).map(|one| one.bytes).sum()
        })
        .collect()
}
