//! Ceilings of files in virtual time: clients that keep requests outstanding on files of a volume
//! that has limits of its own, alone or in a shared pool. What is said in `files` holds: no file
//! gets more than its ceiling, none that is asked for gets less unless the volume's limits bind,
//! and nobody waits for a file he doesn't want.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use proptest::prelude::*;
use weir_core::Mono;
use weir_qos::{
    BytesPerSecond, Ceiling, ClientKey, Cost, Demand, Iops, Limits, Meters, NEVER, Share, Shares,
    WaitQueue,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
const START: u64 = SECOND;

/// One client: so many requests outstanding on each connection, of sizes and on files drawn from
/// these ranges.
#[derive(Clone, Debug)]
struct Load {
    connections: u64,
    depth: u64,
    files: (u64, u64),
    size: (u64, u64),
}

impl Load {
    /// 32 requests of 8 KiB on one connection, for one file.
    fn on(file: u64) -> Self {
        Self { connections: 1, depth: 32, files: (file, file), size: (8 * KIB, 8 * KIB) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    load: usize,
    connection: u64,
    file: u64,
    bytes: u64,
    /// Time of sending, and the request's number among all.
    sent: (u64, u64),
}

impl Request {
    /// The connection, among those of all clients.
    fn connection(&self) -> u64 {
        self.load as u64 * 1000 + self.connection
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send {
        load: usize,
        connection: u64,
    },
    /// A connection has room for replies again.
    Resume {
        connection: u64,
    },
    Pump,
}

/// A request that went, and its time.
#[derive(Clone, Copy, Debug)]
struct Done {
    at: u64,
    load: usize,
    file: u64,
    bytes: u64,
}

/// Whatever goes is answered at once.
struct World {
    meters: Meters,
    line: WaitQueue<u64, Request>,
    /// The pool whose budget the volume shares, if any, which has enough.
    pool: Option<(Meters, Shares)>,
    loads: Vec<Load>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    pump_at: Option<u64>,
    /// Latest the pump may come, in nanoseconds.
    lateness: u64,
    random: u64,
    now: u64,
    done: Vec<Done>,
    /// The requests sent that have not gone.
    waiting: BTreeSet<(u64, u64)>,
    /// The longest wait of a client that always reads replies.
    longest: u64,
    /// Period (ns) for which each client reads no replies, and then reads them for as long. Zero,
    /// and a missing entry, is a client that always reads them.
    deaf: Vec<u64>,
    /// The waiting requests of each connection, and the stalled connections.
    parked: BTreeMap<u64, usize>,
    stalled: BTreeSet<u64>,
}

impl World {
    fn new(limits: Limits, ceiling: Ceiling, shared: bool, loads: Vec<Load>) -> Self {
        let meters = Meters::new(limits);
        let mut line = WaitQueue::new();
        line.set_ceiling(Some(ceiling), &meters, Mono(START));
        let mut shares = Shares::new();
        shares.set(1, Share::default());
        let budget = Meters::new(Limits::of(BytesPerSecond(10 * limits.rate.0)));
        Self {
            meters,
            line,
            pool: shared.then_some((budget, shares)),
            loads,
            events: BinaryHeap::new(),
            order: 0,
            pump_at: None,
            lateness: 0,
            random: 1,
            now: START,
            done: Vec::new(),
            waiting: BTreeSet::new(),
            longest: 0,
            deaf: Vec::new(),
            parked: BTreeMap::new(),
            stalled: BTreeSet::new(),
        }
    }

    /// Time that the connections of a client have no room for replies from `at` on.
    fn deaf_for(deaf: &[u64], load: usize, at: u64) -> Option<u64> {
        let period = deaf.get(load).copied().filter(|&period| period > 0)?;
        let passed = at % (2 * period);
        (passed < period).then(|| period - passed)
    }

    fn run(mut self, seconds: u64) -> Self {
        for load in 0..self.loads.len() {
            let Load { connections, depth, .. } = self.loads[load];
            for connection in 0..connections {
                let send = Event::Send { load, connection };
                (0..depth).for_each(|_| self.schedule(START, send));
            }
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > START + seconds * SECOND {
                break;
            }
            self.now = at;
            match event {
                Event::Send { load, connection } => self.send(load, connection),
                Event::Resume { connection } => self.resume(connection),
                Event::Pump if self.pump_at == Some(at) => self.pump(),
                Event::Pump => {}
            }
        }
        let outstanding: u64 = self.loads.iter().map(|load| load.connections * load.depth).sum();
        let coming = self.events.iter();
        let coming = coming.filter(|Reverse((.., event))| matches!(event, Event::Send { .. }));
        // The one that was taken out of the events at the end is one of them, if it was a request.
        let known = self.line.len() as u64 + coming.count() as u64;
        assert!(known == outstanding || known + 1 == outstanding, "{known} of {outstanding}");
        if let Some((oldest, _)) = self.waiting.first() {
            self.longest = self.longest.max(self.now - oldest);
        }
        self
    }

    fn draw(&mut self, range: (u64, u64)) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        range.0 + self.random % (range.1 - range.0 + 1)
    }

    fn send(&mut self, load: usize, connection: u64) {
        let Load { files, size, .. } = self.loads[load];
        let (file, bytes) = (self.draw(files), self.draw(size));
        self.order += 1;
        let request = Request { load, connection, file, bytes, sent: (self.now, self.order) };
        if self.deaf.get(load).is_none_or(|&period| period == 0) {
            self.waiting.insert(request.sent);
        }
        let (cost, now) = (Cost::of(bytes), Mono(self.now));
        let (meters, pool) = (&self.meters, &self.pool);
        let hears = Self::deaf_for(&self.deaf, load, self.now).is_none();
        let pass = || match pool {
            Some((budget, _)) => meters.try_take_with(budget, cost, now),
            None => meters.try_take(cost, now),
        };
        if hears && self.line.try_pass(file, cost, now, pass).is_some() {
            return self.answer(request);
        }
        let client = ClientKey(u128::try_from(load).unwrap());
        let connection = request.connection();
        *self.parked.entry(connection).or_default() += 1;
        let asks = Demand { client, connection, cost, file: Some(file), pinned: bytes };
        let mut ask = self.line.push(&self.meters, asks, request);
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
        let (mut released, mut stalled, now) = (Vec::new(), Vec::new(), Mono(self.now));
        let (line, meters, deaf) = (&mut self.line, &self.meters, &self.deaf);
        let release = &mut |request: Request, _| match Self::deaf_for(deaf, request.load, now.0) {
            Some(nanos) => {
                stalled.push((request.connection(), nanos));
                Some(request)
            }
            None => {
                released.push(request);
                None
            }
        };
        let next = match &mut self.pool {
            Some((budget, shares)) => {
                let budget = &*budget;
                shares.poll(budget, now, |_| line.step(meters, budget, now, release))
            }
            None => line.poll(meters, now, release),
        };
        for (connection, nanos) in stalled {
            assert!(self.stalled.insert(connection), "it was stalled");
            self.schedule(self.now + nanos, Event::Resume { connection });
        }
        for request in released {
            *self.parked.get_mut(&request.connection()).unwrap() -= 1;
            self.answer(request);
        }
        if let Some(at) = next.filter(|&at| at != NEVER) {
            let late = self.draw((0, self.lateness));
            self.pump_at(at.0.max(self.now) + late);
        }
        let stalled: usize = self.stalled.iter().map(|connection| self.parked[connection]).sum();
        assert!(self.line.len() == stalled || self.pump_at.is_some(), "somebody waits for nothing");
    }

    fn resume(&mut self, connection: u64) {
        assert!(self.stalled.remove(&connection) && self.line.resume(&self.meters, connection));
        if let Some((budget, shares)) = &mut self.pool {
            shares.again(budget, 1);
            shares.wake(budget, 1);
        }
        self.pump_at(self.now);
    }

    fn answer(&mut self, Request { load, connection, file, bytes, sent }: Request) {
        if self.waiting.remove(&sent) {
            self.longest = self.longest.max(self.now - sent.0);
        }
        self.done.push(Done { at: self.now, load, file, bytes });
        // A moment, so that a world without limits doesn't stand still.
        self.schedule(self.now + 1000, Event::Send { load, connection });
    }

    fn pump_at(&mut self, at: u64) {
        if self.pump_at.is_none_or(|earlier| at < earlier) {
            self.pump_at = Some(at);
            self.schedule(at, Event::Pump);
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// Bytes a second from the second second on.
    fn rate(&self, of: impl Fn(&Done) -> bool) -> f64 {
        let from = START + SECOND;
        let bytes: u64 = self
            .done
            .iter()
            .filter(|done| done.at >= from && of(done))
            .map(|done| done.bytes)
            .sum();
        let seconds = u32::try_from((self.now - from) / MILLI).unwrap();
        f64::from(u32::try_from(bytes / KIB).unwrap()) * 1024.0 / (f64::from(seconds) / 1000.0)
    }

    /// The most bytes, and the most requests, that went in any window of so many nanoseconds.
    fn most(&self, window: u64, of: impl Fn(&Done) -> bool) -> (u64, u64) {
        let done: Vec<_> = self.done.iter().filter(|done| of(done)).collect();
        let (mut first, mut bytes, mut most) = (0, 0, (0, 0));
        for (at, last) in done.iter().enumerate() {
            bytes += last.bytes;
            while done[first].at + window <= last.at {
                bytes -= done[first].bytes;
                first += 1;
            }
            most = (bytes.max(most.0), ((at - first + 1) as u64).max(most.1));
        }
        most
    }
}

fn mib(rate: u64) -> Limits {
    Limits::of(BytesPerSecond::from_mib(rate))
}

fn ceiling(mib: u64) -> Ceiling {
    Ceiling { rate: Some(BytesPerSecond::from_mib(mib)), iops: None }
}

fn is_near(rate: f64, mib: f64) {
    let is = rate / 1_048_576.0;
    assert!((is / mib - 1.0).abs() < 0.01, "{is} MiB/s and not {mib}");
}

#[test]
fn each_file_has_its_ceiling_where_the_volume_has_more() {
    for shared in [false, true] {
        let load = Load { files: (1, 4), depth: 256, size: (KIB, 64 * KIB), ..Load::on(1) };
        let world = World::new(mib(64), ceiling(4), shared, vec![load]).run(11);
        (1..=4).for_each(|file| is_near(world.rate(|done| done.file == file), 4.0));
    }
}

#[test]
fn operations_have_a_ceiling_of_their_own() {
    let both = Ceiling { iops: Some(Iops(100)), ..ceiling(4) };
    for shared in [false, true] {
        let small = Load { size: (KIB, KIB), ..Load::on(1) };
        let large = Load { size: (128 * KIB, 128 * KIB), ..Load::on(2) };
        let world = World::new(mib(64), both, shared, vec![small, large]).run(11);
        is_near(world.rate(|done| done.file == 1), 100.0 / 1024.0);
        is_near(world.rate(|done| done.file == 2), 4.0);
    }
}

#[test]
fn a_file_at_its_ceiling_holds_up_nobody_who_wants_another() {
    for shared in [false, true] {
        // On one connection, most of what is outstanding wants the first file.
        let hot = Load { depth: 60, ..Load::on(1) };
        let rest = Load { depth: 4, files: (2, 1000), ..Load::on(2) };
        let mut world = World::new(mib(16), ceiling(1), shared, vec![hot, rest]);
        world.loads[0].connections = 3;
        let world = world.run(11);
        is_near(world.rate(|done| done.load == 0), 1.0);
        is_near(world.rate(|done| done.load == 1), 15.0);
    }
}

#[test]
fn clients_of_one_file_have_equal_parts_of_it() {
    let many = Load { connections: 8, ..Load::on(1) };
    let large = Load { size: (MIB, MIB), ..Load::on(1) };
    let little = Load { depth: 2, ..Load::on(1) };
    let world = World::new(mib(64), ceiling(12), false, vec![many, large, little]).run(31);
    for load in 0..3 {
        let is = world.rate(|done| done.load == load) / 1_048_576.0;
        assert!((is / 4.0 - 1.0).abs() < 0.05, "{is} MiB/s of 4 for {load}");
    }
}

#[test]
fn clients_have_equal_parts_of_the_volume_as_far_as_their_files_let_them() {
    for shared in [false, true] {
        for (rate, first, second) in [(6, 3.0, 3.0), (20, 4.0, 16.0)] {
            let loads = vec![Load::on(1), Load { files: (2, 1000), ..Load::on(2) }];
            let world = World::new(mib(rate), ceiling(4), shared, loads).run(11);
            is_near(world.rate(|done| done.load == 0), first);
            is_near(world.rate(|done| done.load == 1), second);
        }
    }
}

#[test]
fn nobody_is_overtaken_without_end() {
    // The volume and the files bind by turns: a request on a connection waits for either.
    let of = |file| Load { size: (64 * KIB, 64 * KIB), ..Load::on(file) };
    for shared in [false, true] {
        for (rate, each) in [(20, 10), (28, 27), (30, 10)] {
            let loads = vec![of(1), of(1), of(2)];
            let mut world = World::new(mib(rate), ceiling(each), shared, loads);
            world.lateness = MILLI / 10;
            let world = world.run(20);
            // 32 requests of three clients at a third of the volume, or half a file, and as long
            // again.
            assert!(world.longest < 1_500 * MILLI, "{} ns at {rate} and {each}", world.longest);
        }
    }
}

#[test]
fn those_of_one_connection_go_in_the_order_in_which_they_came() {
    let meters = Meters::new(mib(1000));
    let mut line = WaitQueue::new();
    line.set_ceiling(Some(ceiling(1)), &meters, Mono(START));
    let asks = |token: u64| {
        let cost = Cost::of(16 * KIB);
        let (client, pinned) = (ClientKey(1), token);
        Demand { client, connection: 7, cost, file: Some(1), pinned }
    };
    for token in 1..=12 {
        line.push(&meters, asks(token), token);
    }
    let gone = |line: &mut WaitQueue<u64, u64>, at: u64| {
        let mut gone = Vec::new();
        line.poll(&meters, Mono(at), &mut |token, _| {
            gone.push(token);
            None
        });
        gone
    };
    assert_eq!(gone(&mut line, START), [1, 2, 3, 4], "50 ms and one");
    assert_eq!((line.len(), line.len_of_volume(), line.is_throttled(7)), (8, 0, true));
    assert_eq!(line.throttled_bytes(), (5..=12).sum::<u64>());
    assert_eq!(gone(&mut line, START + 60 * MILLI), [5, 6, 7, 8]);
    assert!(!line.cleared());
    line.set_ceiling(None, &meters, Mono(START + 61 * MILLI));
    assert!(line.cleared() && !line.is_throttled(7));
    assert_eq!(gone(&mut line, START + 61 * MILLI), [9, 10, 11, 12]);
    assert_eq!((line.len(), line.throttled_bytes()), (0, 0));
}

#[test]
fn a_volume_that_binds_is_used_up_and_no_file_gets_what_it_missed() {
    let loads = (0..40).map(Load::on).collect();
    let mut world = World::new(mib(20), ceiling(1), false, loads);
    world.lateness = MILLI;
    let mut world = world.run(11);
    is_near(world.rate(|_| true), 20.0);
    // All of a sudden it doesn't bind any more.
    world.meters.set(mib(1000), Mono(world.now));
    world.line.reweigh(&world.meters);
    let changed = world.now;
    world.pump();
    while let Some(Reverse((at, _, event))) =
        world.events.pop().filter(|Reverse((at, ..))| *at < changed + SECOND)
    {
        world.now = at;
        match event {
            Event::Send { load, connection } => world.send(load, connection),
            Event::Resume { connection } => world.resume(connection),
            Event::Pump if world.pump_at == Some(at) => world.pump(),
            Event::Pump => {}
        }
    }
    for file in 0..40 {
        let (most, _) = world.most(100 * MILLI, |done| done.file == file && done.at >= changed);
        assert!(most <= MIB / 10 + MIB / 20 + 2 * 8 * KIB, "{most} bytes of {file} in 100 ms");
    }
}

prop_compose! {
    fn load()(
        connections in 1..4_u64,
        depth in 1..40_u64,
        first in 0..4_u64,
        files in 0..6_u64,
        least in 0..64 * KIB,
        more in prop_oneof![Just(0), 0..64 * KIB, 0..MIB],
    ) -> Load {
        Load { connections, depth, files: (first, first + files), size: (least, least + more) }
    }
}

/// The period (ns) for which a client reads no replies and then reads them: half of the clients
/// always do, and some never.
fn deaf() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => MILLI..20 * MILLI, 1 => MILLI..SECOND, 1 => Just(1000 * SECOND)]
}

/// The size of a client's requests, in bytes.
fn load_size() -> impl Strategy<Value = u64> {
    prop_oneof![Just(8 * KIB), Just(64 * KIB), 4 * KIB..128 * KIB, 128 * KIB..MIB]
}

/// The file's clients have 22.2 MiB/s of the volume, and its ceiling is 22 MiB/s.
#[test]
fn nobody_waits_for_long_where_a_ceiling_is_what_the_clients_have_of_the_volume() {
    let loads = [(3, 25, 2), (1, 3, 1), (3, 18, 2), (2, 30, 2), (2, 16, 1)];
    let size = (64 * KIB, 64 * KIB);
    let load = |(connections, depth, file)| Load { connections, depth, size, ..Load::on(file) };
    let mut world = World::new(mib(37), ceiling(22), false, loads.map(load).to_vec());
    (world.lateness, world.random) = (414_807, 1_430_166_919_784_390_429);
    // 75 requests of 64 KiB at a third of 22 MiB/s take 639 ms.
    let longest = world.run(9).longest / MILLI;
    assert!(longest <= 2 * 639, "{longest} ms is longer than all before them take twice");
}

/// The max-min parts of clients that have one file each, in MiB/s, of a volume of `rate` with
/// `each` file's ceiling.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn parts(rate: u64, each: u64, files: &[u64]) -> Vec<f64> {
    let of_file = |file| {
        let clients = files.iter().filter(|&&other| other == file).count();
        each as f64 / clients as f64
    };
    let mut parts: Vec<_> = files.iter().copied().map(of_file).enumerate().collect();
    parts.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let (mut left, all) = (rate as f64, parts.len());
    for (at, (_, part)) in parts.iter_mut().enumerate() {
        *part = part.min(left / (all - at) as f64);
        left -= *part;
    }
    parts.sort_by_key(|(client, _)| *client);
    parts.into_iter().map(|(_, part)| part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_file_gets_more_than_its_ceiling_and_no_volume_more_than_its_limit(
        mut loads in prop::collection::vec(load(), 1..5),
        rate in 2..80_u64,
        each in 1..20_u64,
        iops in prop::option::of(20..2000_u64),
        limited in prop::option::of(100..4000_u64),
        lateness in 0..2 * MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        let limits = Limits { iops: limited.map(Iops), ..mib(rate) };
        let both = Ceiling { iops: iops.map(Iops), ..ceiling(each) };
        if iops.is_none() && limited.is_none() {
            // If only bytes bind, requests of no bytes go at once, and there is no end of them.
            loads.iter_mut().for_each(|load| load.size = (load.size.0.max(512), load.size.1.max(512)));
        }
        let largest = loads.iter().map(|load| load.size.1).max().unwrap();
        let mut world = World::new(limits, both, shared, loads);
        (world.lateness, world.random) = (lateness, seed);
        let world = world.run(4);
        // The time for which either limit holds the other up: one largest request by the slower.
        let takes = |per_second: u64, of: u64| of * SECOND / per_second;
        let longest = |mib: u64, iops: Option<u64>| {
            iops.map_or(0, |iops| takes(mib * MIB, largest).max(takes(iops, 1)))
        };
        for window in [10 * MILLI, 100 * MILLI, SECOND] {
            let within = |(mib, iops): (u64, Option<u64>), (bytes, requests): (u64, u64)| {
                let time = window + 50 * MILLI + longest(mib, iops);
                let most = (mib * MIB).saturating_mul(time / 1000) / MILLI + largest + 2;
                prop_assert!(bytes <= most, "{bytes} of {most} in {window}");
                if let Some(iops) = iops {
                    let most = iops * time / SECOND + 2;
                    prop_assert!(requests <= most, "{requests} of {most} in {window}");
                }
                Ok(())
            };
            for file in 0..10 {
                within((each, iops), world.most(window, |done| done.file == file))?;
            }
            within((rate, limited), world.most(window, |_| true))?;
        }
    }

    #[test]
    fn nobody_waits_for_longer_than_what_goes_before_him_takes(
        loads in prop::collection::vec((1..4_u64, 1..33_u64, 1..3_u64), 2..6),
        rate in 4..40_u64,
        each in 2..40_u64,
        edge in prop::option::of(0..3_u64),
        kib in prop_oneof![Just(8_u64), Just(64), 4..128_u64],
        lateness in 0..MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        // In half of the cases the ceiling is about what the clients of a file have of the volume
        // anyway.
        let on_first = loads.iter().filter(|load| load.2 == loads[0].2).count() as u64;
        let has = rate * on_first / loads.len() as u64;
        let each = edge.map_or(each, |edge| (has + edge).saturating_sub(1).max(2));
        let size = (kib * KIB, kib * KIB);
        let load = |&(connections, depth, file)| Load { connections, depth, size, ..Load::on(file) };
        let loads: Vec<_> = loads.iter().map(load).collect();
        // A client has at least an equal part of the volume, or of its file.
        let part = rate.min(each) * MIB / loads.len() as u64;
        let most = loads.iter().map(|load| load.connections * load.depth).max().unwrap() * size.0;
        let allowed = 2 * (most * 1000 / part) * MILLI + 300 * MILLI;
        let mut world = World::new(mib(rate), ceiling(each), shared, loads);
        (world.lateness, world.random) = (lateness, seed);
        let world = world.run(2 * allowed / SECOND + 5);
        prop_assert!(world.longest <= allowed, "{} ns of {allowed}", world.longest);
    }

    #[test]
    fn clients_of_many_files_wait_no_longer_than_what_goes_before_them_takes(
        loads in prop::collection::vec((1..3_u64, 4..33_u64, load_size()), 1..4),
        many in prop::collection::vec((1..3_u64, 1..33_u64, load_size(), 1..20_u64), 1..3),
        rate in 8..60_u64,
        part in 0..100_u64,
        lateness in 0..MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        let each = 2 + part * (rate - 2) / 100;
        let one = |&(connections, depth, size)| Load {
            connections, depth, files: (1, 1), size: (size, size),
        };
        let several = |&(connections, depth, size, files)| Load {
            connections, depth, files: (1, 1 + files), size: (size, size),
        };
        let loads: Vec<_> = loads.iter().map(one).chain(many.iter().map(several)).collect();
        // At worst all that a client has outstanding is for the first file, and of that it has an
        // equal part.
        let part = each * MIB / loads.len() as u64;
        let outstanding = |load: &Load| load.connections * load.depth * load.size.0;
        let most = loads.iter().map(outstanding).max().unwrap();
        let others: u64 = loads.iter().map(|load| load.size.0).sum();
        let allowed = 3 * ((most + others) * 1000 / part) * MILLI / 2 + 300 * MILLI;
        let mut world = World::new(mib(rate), ceiling(each), shared, loads);
        (world.lateness, world.random) = (lateness, seed);
        let world = world.run(2 * allowed / SECOND + 5);
        prop_assert!(world.longest <= allowed, "{} ns of {allowed}", world.longest);
    }

    #[test]
    fn clients_have_their_parts_of_files_and_volume_whatever_their_sizes(
        loads in prop::collection::vec((1..4_u64, 0..4_u64, 4..256_u64, 1..4_u64), 2..8),
        rate in 4..60_u64,
        each in 1..40_u64,
        lateness in 0..MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        let files: Vec<_> = loads.iter().map(|load| load.1).collect();
        // With as much in flight as a client needs for its part.
        let load = |&(connections, file, kib, times): &(u64, u64, u64, u64)| Load {
            connections,
            depth: (times + 1) * 512 / kib + 4,
            files: (file, file),
            size: (kib * KIB, kib * KIB),
        };
        let loads = loads.iter().map(load).collect();
        let mut world = World::new(mib(rate), ceiling(each), shared, loads);
        (world.lateness, world.random) = (lateness, seed);
        let world = world.run(11);
        let mut all = 0.0;
        for (client, part) in parts(rate, each, &files).into_iter().enumerate() {
            let is = world.rate(|done| done.load == client) / 1_048_576.0;
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let two = 2.0 * world.loads[client].size.0 as f64 / 1_048_576.0 / 10.0;
            let near = (is - part).abs() < 0.05 * part + two;
            prop_assert!(near, "{is} MiB/s and not {part} of {client}");
            all += part;
        }
        let is = world.rate(|_| true) / 1_048_576.0;
        prop_assert!((is - all).abs() < 0.02 * all + 0.1, "{is} MiB/s and not {all}");
    }

    #[test]
    fn clients_that_read_no_replies_take_nothing_from_others(
        loads in prop::collection::vec((1..4_u64, 0..3_u64, 4..128_u64, deaf()), 2..7),
        rate in 4..40_u64,
        each in 2..40_u64,
        lateness in 0..MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        let files: Vec<_> = loads.iter().map(|load| load.1).collect();
        let load = |&(connections, file, kib, _): &(u64, u64, u64, u64)| Load {
            connections,
            depth: 1024 / kib + 4,
            files: (file, file),
            size: (kib * KIB, kib * KIB),
        };
        let of_loads: Vec<_> = loads.iter().map(load).collect();
        let part = rate.min(each) * MIB / loads.len() as u64;
        let outstanding = |load: &Load| load.connections * load.depth * load.size.0;
        let most = of_loads.iter().map(outstanding).max().unwrap();
        let allowed = 2 * (most * 1000 / part) * MILLI + 300 * MILLI;
        let mut world = World::new(mib(rate), ceiling(each), shared, of_loads);
        (world.lateness, world.random) = (lateness, seed);
        world.deaf = loads.iter().map(|load| load.3).collect();
        world.deaf[0] = 0;
        let world = world.run(2 * allowed / SECOND + 5);
        prop_assert!(world.longest <= allowed, "{} ns of {allowed}", world.longest);
        // Each has what it would have if all read their replies, or more.
        for (client, part) in parts(rate, each, &files).into_iter().enumerate() {
            let is = world.rate(|done| done.load == client) / 1_048_576.0;
            prop_assert!(world.deaf[client] > 0 || is > 0.93 * part - 0.1, "{is} of {part} MiB/s");
        }
        let window = SECOND / 4;
        for file in 0..3 {
            let (most, _) = world.most(window, |done| done.file == file);
            prop_assert!(most <= each * MIB * 3 / 10 + 2 * 128 * KIB, "{most} bytes in 250 ms");
        }
    }

    #[test]
    fn files_with_clients_of_their_own_get_all_that_both_limits_allow(
        files in 1..12_u64,
        depth in 4..40_u64,
        rate in 4..60_u64,
        each in 1..20_u64,
        most in prop_oneof![Just(8 * KIB), 4 * KIB..128 * KIB],
        lateness in 0..MILLI,
        shared: bool,
        seed in 1..u64::MAX,
    ) {
        let size = (most.min(4 * KIB), most);
        let loads = (0..files).map(|file| Load { depth, size, ..Load::on(file) }).collect();
        let mut world = World::new(mib(rate), ceiling(each), shared, loads);
        (world.lateness, world.random) = (lateness, seed);
        let world = world.run(6);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (all, part) = (rate.min(files * each) as f64, (rate as f64 / files as f64).min(each as f64));
        let is = world.rate(|_| true) / 1_048_576.0;
        // Turns are of whole requests, which for 5 s may make a difference of two.
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let two = 2.0 * most as f64 / 1_048_576.0 / 5.0;
        prop_assert!((is - all).abs() < 0.02 * all + two, "{is} MiB/s and not {all}");
        for file in 0..files {
            let is = world.rate(|done| done.file == file) / 1_048_576.0;
            prop_assert!((is - part).abs() < 0.05 * part + two, "{is} MiB/s and not {part} of {file}");
        }
    }
}
