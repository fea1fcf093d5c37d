//! Gates among clients that hold, cancel, fail and stall as they like, in virtual time: whatever
//! they do, no limit is passed, and no verdict blames the server.
//!
//! The worker's part is written out here in its simplest form: it starts what a gate releases,
//! keeps the room of each connection, and sends replies as the client's socket takes them.

use crate::engine::testing::{request, served};
use crate::engine::{Asked, Ended, Permit, ServedVolume};
use crate::limits::{REPLY_BYTES_MAX, UNSENT_BYTES_MAX};
use crate::sync::Arc;
use crate::worker::GateEntry;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use weir_core::rng::step;
use weir_core::{Mono, ObjectKey, OpClass, VolumeId};
use weir_gate::{ConnId, Gate, ParkedTotal, PoolGate, Queued, Released, Room};
use weir_qos::verdict::{Cause, Course, Reading, Verdict};
use weir_qos::{Burst, BytesPerSecond, Ceiling, ClientKey, Cost, Iops, Limits, NEVER, Share};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// Bytes that a socket and the network behind it take although the client reads nothing.
const SOCKET_BYTES: u64 = 256 * KIB;

/// The behaviour of a client.
#[derive(Clone, Copy, Debug)]
struct Habit {
    client: u64,
    volume: usize,
    file: u8,
    depth: usize,
    size: u64,
    /// Share of requests that move nothing, because their READs lie beyond the end of the file.
    empty_percent: u64,
    /// Share of requests that fail.
    failing_percent: u64,
    /// Time that the store takes for a request of either sort, in nanoseconds.
    wasted_nanos: u64,
    reading: Reads,
    /// Time between two resets of its connection, in nanoseconds; zero for never.
    reset_every: u64,
}

/// The client's way of reading replies.
#[derive(Clone, Copy, Debug)]
enum Reads {
    AtOnce,
    /// Reads this number of bytes a second.
    Slowly(u64),
    /// Reads nothing for this number of nanoseconds, then everything for as long, and so on.
    InTurns(u64),
}

/// The limits in force.
#[derive(Clone, Copy, Debug)]
struct World {
    limits: Limits,
    pool: Option<u64>,
    files: Option<Ceiling>,
}

struct Connection {
    habit: usize,
    room: Arc<Room>,
    parked: usize,
    in_flight: usize,
    reserved: usize,
    /// Replies that the socket did not take yet.
    out: VecDeque<u64>,
    /// Bytes that the socket took and the client had not read at the time `looked`.
    unread: u64,
    looked: u64,
    /// An event is on its way that sends replies, or requests.
    flushing: bool,
    sending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send(u64),
    Poll(usize),
    Done(usize),
    Flush(u64),
    Reset(u64),
    Judge,
}

/// An operation under way.
struct Operation {
    connection: u64,
    permit: Permit,
    held_bytes: usize,
    file: u8,
    charged_at: u64,
}

/// An operation that was carried out.
#[derive(Clone, Copy, Debug)]
struct Moved {
    at: u64,
    volume: usize,
    file: u8,
    cost: Cost,
}

struct Simulation {
    habits: Vec<Habit>,
    volumes: Vec<Arc<ServedVolume>>,
    connections: BTreeMap<u64, Connection>,
    operations: Vec<Option<Operation>>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    poll_at: Vec<Option<u64>>,
    readings: Vec<Option<Reading>>,
    courses: Vec<Course>,
    verdicts: Vec<(usize, Verdict, Course)>,
    moved: Vec<Moved>,
    lateness: u64,
    now: u64,
    order: u64,
    serial: u64,
    random: u64,
    shared: bool,
    _directory: tempfile::TempDir,
}

/// Requests that wait in a gate own the volume that owns the gate, and permits return their charges
/// when they are dropped, at the time of a clock that the simulation does not follow.
impl Drop for Simulation {
    fn drop(&mut self) {
        for operation in self.operations.drain(..).flatten() {
            operation.permit.give_back(Mono(self.now));
        }
        for (&token, connection) in &self.connections {
            let volume = self.habits[connection.habit].volume;
            self.volumes[volume].gate.cancel(conn(token), Mono(self.now), &mut Vec::new());
        }
    }
}

impl Simulation {
    fn new(seed: u64, world: World, habits: Vec<Habit>) -> Self {
        let pool = world.pool.map(|rate| Arc::new(PoolGate::new(Limits::of(BytesPerSecond(rate)))));
        let directory = tempfile::tempdir().unwrap();
        let count = habits.iter().map(|habit| habit.volume).max().unwrap_or(0) + 1;
        let volumes: Vec<Arc<ServedVolume>> = (0..count)
            .map(|volume| {
                let id = VolumeId(u32::try_from(volume).unwrap() + 1);
                let gate = Gate::new(id, world.limits, Arc::new(ParkedTotal::new(1 << 30)));
                let volume = Arc::new(served(&directory.path().join(format!("{id}")), gate));
                volume.gate.set_file_ceiling(world.files, Mono(SECOND));
                if let Some(pool) = &pool {
                    volume.gate.set_share(Some((pool, Share::default())), Mono(SECOND));
                }
                volume
            })
            .collect();
        let mut simulation = Self {
            poll_at: vec![None; count],
            readings: vec![None; count],
            courses: vec![Course::default(); count],
            volumes,
            habits,
            connections: BTreeMap::new(),
            operations: Vec::new(),
            events: BinaryHeap::new(),
            verdicts: Vec::new(),
            moved: Vec::new(),
            lateness: MILLI / 2,
            now: SECOND,
            order: 0,
            serial: 0,
            random: seed,
            shared: pool.is_some(),
            _directory: directory,
        };
        for habit in 0..simulation.habits.len() {
            simulation.connect(habit);
        }
        simulation.schedule(2 * SECOND, Event::Judge);
        simulation
    }

    fn connect(&mut self, habit: usize) {
        self.serial += 1;
        let token = self.serial;
        let connection = Connection {
            habit,
            room: Arc::default(),
            parked: 0,
            in_flight: 0,
            reserved: 0,
            out: VecDeque::new(),
            unread: 0,
            looked: self.now,
            flushing: false,
            sending: true,
        };
        self.connections.insert(token, connection);
        let reset = self.habits[habit].reset_every;
        if reset > 0 {
            self.schedule(self.now + reset, Event::Reset(token));
        }
        self.schedule(self.now, Event::Send(token));
    }

    fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Send(token) => self.send(token),
                Event::Poll(volume) if self.poll_at[volume] == Some(at) => self.poll(volume),
                Event::Poll(_) => {}
                Event::Done(operation) => self.done(operation),
                Event::Flush(token) => {
                    if let Some(connection) = self.connections.get_mut(&token) {
                        connection.flushing = false;
                    }
                    self.flush(token);
                }
                Event::Reset(token) => self.reset(token),
                Event::Judge => self.judge(),
            }
        }
        self.now = end;
    }

    /// Sends requests until the client has its depth in flight, as far as the server reads them.
    fn send(&mut self, token: u64) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.sending = false;
        }
        while let Some(connection) = self.connections.get(&token) {
            let habit = self.habits[connection.habit];
            let busy = connection.parked + connection.in_flight + connection.out.len();
            if busy >= habit.depth || !may_reply(connection) {
                return;
            }
            self.ask(token, habit);
        }
    }

    fn ask(&mut self, token: u64, habit: Habit) {
        let volume = Arc::clone(&self.volumes[habit.volume]);
        let key = ObjectKey::new(&[habit.file]).unwrap();
        let client = ClientKey(habit.client.into());
        let mut request = request(&volume, OpClass::Read, key, habit.size);
        (request.client, request.connection) = (client, conn(token));
        request.arrived = Mono(self.now);
        let asked = Asked {
            op: request.op,
            class: OpClass::Read,
            cost: request.cost,
            arrived: request.arrived,
        };
        let (now, entry) = (Mono(self.now), GateEntry::from(request));
        if let Some(charged) = volume.gate.try_pass(asked.cost, entry.file(), now) {
            let mut permit = Permit::new(conn(token), volume, asked, entry.file(), charged, now);
            permit.begin(asked.cost, now);
            return self.start(token, &entry, permit, self.now);
        }
        if volume.gate.took_back() {
            self.poll_soon(habit.volume, self.now);
        }
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.parked += 1;
        let parked = volume.gate.park(entry, Some(Arc::clone(&connection.room)), now).ok().unwrap();
        if parked.must_poll {
            self.poll_soon(habit.volume, self.now);
        }
    }

    fn start(&mut self, token: u64, entry: &GateEntry, permit: Permit, charged_at: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let habit = self.habits[connection.habit];
        let (held_bytes, file) = (entry.held_bytes(), entry.file().unwrap().as_bytes()[0]);
        connection.in_flight += 1;
        connection.reserved += held_bytes;
        let wasted = self.draw(100) < habit.empty_percent + habit.failing_percent;
        let takes = if wasted { self.draw(habit.wasted_nanos + 1) } else { self.draw(MILLI / 4) };
        let operation = Operation { connection: token, permit, held_bytes, file, charged_at };
        let at = self.operations.iter().position(Option::is_none).unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() - 1
        });
        if !wasted {
            // The request counts when it is carried out, which is at once.
            let cost = Cost { bytes: habit.size, operations: 1 };
            let Habit { volume, file, .. } = habit;
            self.moved.push(Moved { at: self.now, volume, file, cost });
        }
        self.operations[at] = Some(operation);
        self.schedule(self.now + takes, Event::Done(at * 2 + usize::from(wasted)));
    }

    fn done(&mut self, operation: usize) {
        let wasted = operation % 2 == 1;
        let Some(Operation { connection: token, permit, held_bytes, file, charged_at }) =
            self.operations[operation / 2].take()
        else {
            return;
        };
        let failed = wasted && self.draw(2) == 0;
        let moved = if wasted { 0 } else { permit.cost().bytes };
        let volume = volume_of(&self.volumes, permit.volume().unwrap());
        if wasted && !failed {
            // A READ beyond the end of the file is an operation all the same.
            let cost = Cost { bytes: 0, operations: 1 };
            self.moved.push(Moved { at: charged_at, volume, file, cost });
        }
        let replied = self.connections.contains_key(&token);
        let ended = Ended { moved, ok: !failed, replied, woken: None };
        if permit.settle(ended, Mono(self.now)).unwrap().poll {
            self.poll_soon(volume, self.now);
        }
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.in_flight -= 1;
            connection.reserved -= held_bytes;
            connection.out.push_back(moved + 128);
            self.flush(token);
        }
    }

    /// Sends as much as the socket takes, and starts the requests that waited for that.
    fn flush(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let habit = self.habits[connection.habit];
        let elapsed = self.now - connection.looked;
        connection.looked = self.now;
        let (read, pause) = match habit.reading {
            Reads::AtOnce => (u64::MAX, MILLI),
            Reads::Slowly(rate) => (rate * (elapsed / 1000) / 1_000_000, 20 * MILLI),
            Reads::InTurns(turn) if (self.now / turn).is_multiple_of(2) => {
                (0, turn - self.now % turn)
            }
            Reads::InTurns(_) => (u64::MAX, MILLI),
        };
        connection.unread = connection.unread.saturating_sub(read);
        let mut sent = 0;
        while let Some(reply) = connection.out.front().copied() {
            if connection.unread > 0 && connection.unread + reply > SOCKET_BYTES {
                break;
            }
            connection.out.pop_front();
            connection.unread += reply;
            sent += 1;
        }
        let waits = !connection.out.is_empty();
        self.volumes[habit.volume].stats.sent(0, sent, Mono(self.now));
        let flush = waits && !std::mem::replace(&mut connection.flushing, true);
        let send = !std::mem::replace(&mut connection.sending, true);
        if flush {
            self.schedule(self.now + pause, Event::Flush(token));
        }
        self.open_room(token, habit.volume);
        if send {
            let turnaround = 10_000 + self.draw(MILLI / 4);
            self.schedule(self.now + turnaround, Event::Send(token));
        }
    }

    fn open_room(&mut self, token: u64, volume: usize) {
        let Some(connection) = self.connections.get(&token) else { return };
        let open = may_reply(connection);
        connection.room.set_open(open);
        let asks = open && connection.parked > 0 && connection.room.was_refused();
        if asks && self.volumes[volume].gate.resume_connection(conn(token), Mono(self.now)) {
            self.poll_soon(volume, self.now);
        }
    }

    fn reset(&mut self, token: u64) {
        let Some(connection) = self.connections.remove(&token) else { return };
        let volume = self.habits[connection.habit].volume;
        let gate = &self.volumes[volume].gate;
        gate.cancel(conn(token), Mono(self.now), &mut Vec::new());
        let unsent = connection.out.len() as u64;
        self.volumes[volume].stats.sent(0, unsent, Mono(self.now));
        self.connect(connection.habit);
    }

    fn poll_soon(&mut self, volume: usize, at: u64) {
        // The gate of a shared pool is one for all of its volumes.
        let volume = if self.shared { 0 } else { volume };
        if self.poll_at[volume].is_none_or(|earlier| at < earlier) {
            self.poll_at[volume] = Some(at);
            self.schedule(at, Event::Poll(volume));
        }
    }

    fn poll(&mut self, volume: usize) {
        self.poll_at[volume] = None;
        let (mut released, mut resumed) = (Vec::new(), Vec::new());
        let gate = &self.volumes[volume].gate;
        let next = gate.poll(Mono(self.now), &mut released, &mut resumed);
        for one in released {
            self.released(one);
        }
        if let Some(at) = next.filter(|&at| at != NEVER) {
            let late = self.draw(self.lateness);
            self.poll_soon(volume, at.0.max(self.now) + late);
        }
    }

    fn released(&mut self, released: Released<GateEntry>) {
        let Released { ticket, charged, charged_at } = released;
        let (now, entry) = (Mono(self.now), ticket.request);
        let token = entry.connection().token;
        let GateEntry::Request(request) = &entry else { panic!("no parts were asked for") };
        let volume = Arc::clone(&request.volume);
        let asked = Asked {
            op: request.op,
            class: request.class,
            cost: request.cost,
            arrived: request.arrived,
        };
        let mut permit = Permit::new(conn(token), volume, asked, entry.file(), charged, charged_at);
        let Some(connection) = self.connections.get_mut(&token) else {
            if let Some(volume) = permit.give_back(now) {
                self.poll_soon(volume_of(&self.volumes, &volume), self.now);
            }
            return;
        };
        connection.room.arrived(ticket.holds);
        connection.parked -= 1;
        permit.begin_delayed(ticket.since, now);
        self.start(token, &entry, permit, charged_at.0);
    }

    /// Reads the counters each second, and judges ten of them, as the watch does.
    fn judge(&mut self) {
        for (at, volume) in self.volumes.iter().enumerate() {
            let Some(reading) = volume.read(Mono(self.now)) else { continue };
            let began = || reading.unused(volume.gate.entitled(), Mono(SECOND));
            let before = self.readings[at].unwrap_or_else(began);
            self.courses[at] += Course::between(&before, &reading);
            self.readings[at] = Some(reading);
            if self.now % (10 * SECOND) == SECOND {
                let course = std::mem::take(&mut self.courses[at]);
                self.verdicts.push((at, course.judge().verdict, course));
            }
        }
        self.schedule(self.now + SECOND, Event::Judge);
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

/// The connection with this number.
fn conn(token: u64) -> ConnId {
    ConnId { worker: 0, token }
}

fn volume_of(volumes: &[Arc<ServedVolume>], volume: &Arc<ServedVolume>) -> usize {
    volumes.iter().position(|one| Arc::ptr_eq(one, volume)).unwrap()
}

/// The worker's rule, as far as one connection decides.
fn may_reply(connection: &Connection) -> bool {
    let out: u64 = connection.out.iter().sum();
    let out = usize::try_from(out).unwrap();
    let bytes = out + connection.reserved;
    bytes == 0 || bytes < REPLY_BYTES_MAX && out < UNSENT_BYTES_MAX
}

/// No window of what was moved passes `rate` by more than 1 % (10 s) or 5 % (1 s) and one largest
/// request.
fn assert_kept(moved: &[(u64, u64)], rate: u64, largest: u64, what: &str) {
    for (window, percent) in [(SECOND, 5), (10 * SECOND, 1)] {
        let due = rate * (window / SECOND);
        let allowed = due + due * percent / 100 + largest;
        let (mut begin, mut sum) = (0, 0);
        for &(at, amount) in moved {
            sum += amount;
            while moved[begin].0 + window <= at {
                sum -= moved[begin].1;
                begin += 1;
            }
            let seconds = window / SECOND;
            assert!(sum <= allowed, "{what}: {sum} in {seconds} s up to {at}, {due} due");
        }
    }
}

impl Simulation {
    /// The moves in the order of time, with the amount that `of` counts.
    fn course(&self, of: impl Fn(&Moved) -> Option<u64>) -> Vec<(u64, u64)> {
        let mut course: Vec<_> =
            self.moved.iter().filter_map(|one| Some((one.at, of(one)?))).collect();
        course.sort_unstable();
        course
    }

    fn assert_contracts(&self, world: &World) {
        let largest = self.habits.iter().map(|habit| habit.size).max().unwrap_or(0);
        let Limits { rate, iops, burst } = world.limits;
        for volume in 0..self.volumes.len() {
            let bytes = self.course(|one| (one.volume == volume).then_some(one.cost.bytes));
            assert_kept(&bytes, rate.0, largest, "volume");
            let operations =
                self.course(|one| (one.volume == volume).then_some(one.cost.operations));
            if let Some(Iops(iops)) = iops {
                assert_kept(&operations, iops, 1, "operations");
            }
            if let Some(Burst { base: Iops(base), credits }) = burst {
                let seconds = (self.now - SECOND) / SECOND;
                let all: u64 = operations.iter().map(|(_, operations)| operations).sum();
                let most = credits + base * seconds * 101 / 100 + base / 20 + 1;
                assert!(all <= most, "credits: {all} of {most}");
            }
        }
        if let Some(rate) = world.pool {
            assert_kept(&self.course(|one| Some(one.cost.bytes)), rate, largest, "pool");
        }
        let Some(Ceiling { rate, iops }) = world.files else { return };
        for file in 0..8 {
            let of_file = |one: &Moved| (one.volume, one.file) == (0, file);
            if let Some(rate) = rate {
                let bytes = self.course(|one| of_file(one).then_some(one.cost.bytes));
                assert_kept(&bytes, rate.0, largest, "file");
            }
            if let Some(Iops(iops)) = iops {
                let operations = self.course(|one| of_file(one).then_some(one.cost.operations));
                assert_kept(&operations, iops, 1, "operations of a file");
            }
        }
    }

    fn assert_not_to_blame(&self) {
        for (volume, verdict, course) in &self.verdicts {
            let blames =
                matches!(verdict, Verdict::Broken(Cause::Gate | Cause::Store | Cause::Processing));
            assert!(!blames, "volume {volume}: {verdict:?} {course:?}");
        }
    }
}

fn habit(volumes: usize, wasted_nanos: u64) -> impl Strategy<Value = Habit> {
    let size = prop_oneof![Just(64 * KIB), Just(256 * KIB), Just(MIB), 1..MIB];
    let reading = prop_oneof![
        3 => Just(Reads::AtOnce),
        1 => (MIB / 64..8 * MIB).prop_map(Reads::Slowly),
        2 => (100 * MILLI..12 * SECOND).prop_map(Reads::InTurns),
    ];
    let reset = prop_oneof![3 => Just(0), 1 => 5 * MILLI..15 * SECOND];
    let percents =
        prop_oneof![2 => Just((0, 0)), 1 => (0..100_u64, Just(0)), 1 => (Just(0), 0..100_u64)];
    let who = (0..4_u64, 0..volumes, 0..3_u8);
    let wasted = prop_oneof![Just(0), Just(50_000), 0..=wasted_nanos];
    (who, 1..200_usize, size, percents, wasted, reading, reset).prop_map(
        |((client, volume, file), depth, size, (empty, failing), wasted_nanos, reading, reset)| {
            Habit {
                client,
                volume,
                file,
                depth,
                size,
                empty_percent: empty,
                failing_percent: failing,
                wasted_nanos,
                reading,
                reset_every: reset,
            }
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let rate = || MIB..24 * MIB;
    let plain = rate().prop_map(|rate| World {
        limits: Limits::of(BytesPerSecond(rate)),
        pool: None,
        files: None,
    });
    let counted = (4..200_u64).prop_map(|iops| World {
        limits: Limits { iops: Some(Iops(iops)), ..Limits::of(BytesPerSecond(1 << 40)) },
        pool: None,
        files: None,
    });
    let bursting = (4..50_u64, 2..5_u64, 100..1000_u64).prop_map(|(base, times, credits)| {
        let burst = Some(Burst { base: Iops(base), credits });
        let limits = Limits::of(BytesPerSecond(1 << 40));
        World {
            limits: Limits { iops: Some(Iops(base * times)), burst, ..limits },
            pool: None,
            files: None,
        }
    });
    let shared = (rate(), rate()).prop_map(|(own, pool)| World {
        limits: Limits::of(BytesPerSecond(own)),
        pool: Some(pool),
        files: None,
    });
    let filed = (rate(), MIB..8 * MIB).prop_map(|(own, file)| World {
        limits: Limits::of(BytesPerSecond(own)),
        pool: None,
        files: Some(Ceiling { rate: Some(BytesPerSecond(file)), iops: None }),
    });
    prop_oneof![plain, counted, bursting, shared, filed]
}

fn habits(wasted_nanos: u64) -> impl Strategy<Value = Vec<Habit>> {
    prop::collection::vec(habit(2, wasted_nanos), 1..7)
}

/// Histories that are drawn: 64, or as many as `WEIR_HOSTILE_CASES` says.
fn cases() -> u32 {
    let asked = std::env::var("WEIR_HOSTILE_CASES").ok();
    asked.map_or(64, |cases| cases.parse().expect("WEIR_HOSTILE_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// Held, cancelled, failed, reset and refunded requests in any order pass no limit.
    #[test]
    fn no_limit_is_passed_whatever_clients_do(seed: u64, world in world(), habits in habits(SECOND)) {
        let mut simulation = Simulation::new(seed, world, habits);
        simulation.run_until(26 * SECOND);
        simulation.assert_contracts(&world);
    }

    /// The store here is quick, and the worker is never late: if anybody is to blame it is the
    /// clients.
    #[test]
    fn no_client_makes_the_server_take_the_blame(
        seed: u64,
        world in world(),
        habits in habits(MILLI / 4),
    ) {
        let mut simulation = Simulation::new(seed, world, habits);
        simulation.run_until(52 * SECOND);
        simulation.assert_not_to_blame();
    }
}

#[test]
fn requests_of_a_client_that_takes_no_replies_wait_for_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits::of(BytesPerSecond(20 * MIB));
    let gate = Gate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(1 << 30)));
    let volume = Arc::new(served(&directory.path().join("volume"), gate));
    let room = Arc::new(Room::default());
    room.set_open(false);
    let key = ObjectKey::new(&[1]).unwrap();
    for _ in 0..3 {
        let request = request(&volume, OpClass::Read, key, MIB);
        assert!(volume.gate.park(request.into(), Some(Arc::clone(&room)), Mono(SECOND)).is_ok());
    }
    volume.gate.poll(Mono(SECOND), &mut Vec::new(), &mut Vec::new());
    let mut reading = Reading { at: Mono(2 * SECOND), ..Reading::default() };
    volume.gate.read(&mut reading);
    assert_eq!((reading.unsent_nanos, reading.wait_nanos, reading.asked_nanos), (3 * SECOND, 0, 0));
}
