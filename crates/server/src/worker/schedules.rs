//! Workers at the gates of volumes, under many schedules: every access to an atomic and every lock
//! is a point where another worker may go on. The gates, the timers, the inboxes and the permits
//! are the real ones; sockets and operations are left out. Time stands still until all threads have
//! ended, and then moves on to the next timer, so that a request which no timer and no message
//! releases is found.
//!
//! Not here: reordered memory accesses. The scheduler runs one thread at a time.

use super::gates::Gates;
use super::request::Admitted;
use super::{Barrier, IoGenerations, Message, Released, Ticket};
use crate::clock::SystemClock;
use crate::engine::testing::{request, served_by, store};
use crate::engine::{Ended, Permit, ServedVolume, Workers};
use crate::inbox::Inbox;
use crate::session::Job;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering};
use crate::worker::GateEntry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::{self, JoinHandle};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use weir_core::{Mono, ObjectKey, OpClass, VolumeId};
use weir_gate::ConnId;
use weir_gate::{Gate, ParkedTotal, PoolGate, Queued, Room};
use weir_qos::{BytesPerSecond, Ceiling, ClientKey, Cost, Iops, Limits, Share};
use weir_store::VolumeStore;

/// Schedules of either sort. Those that choose a thread at random at every point find races of a
/// few steps; those that let one thread run and interrupt it a few times find long ones.
const SCHEDULES: usize = 1_500;
const INTERRUPTIONS: usize = 4;
/// Most of a gate's code is inlined into few functions, whose frames are large in tests.
const STACK_BYTES: usize = 1 << 18;

const NOW: Mono = Mono::from_secs(1);
/// No request waits for longer, by its contract, in nanoseconds.
const WAIT_MAX: u64 = 2_000_000_000;
/// Requests are of one byte: the 50 ms of a meter are five of them.
const RATE: u64 = 100;
/// The requests that a meter of that rate lets go at once.
const AT_ONCE: usize = 6;
/// The operations of a worker that run while requests arrive.
const RUNNING: usize = 3;

fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    explore_many(SCHEDULES, test);
}

fn explore_many(schedules: usize, test: impl Fn() + Clone + Send + Sync + 'static) {
    explore_by(RandomScheduler::new(schedules), test.clone());
    explore_by(PctScheduler::new(INTERRUPTIONS, schedules), test);
}

fn explore_by(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    shuttle::Runner::new(scheduler, config).run(test);
}

/// The store of all volumes: no operation is carried out. Its directory lasts as long as it is
/// open.
fn store_of_tests() -> VolumeStore {
    let directory = tempfile::tempdir().unwrap();
    store(&directory.path().join("volume"))
}

fn rate(bytes: u64) -> Limits {
    Limits::of(BytesPerSecond(bytes))
}

/// The fate of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It moves its byte.
    Used,
    /// It fails.
    Failed,
    /// It is not carried out: its permit is dropped.
    Dropped,
}

/// A worker without sockets.
struct Worker {
    id: usize,
    now: Mono,
    workers: Arc<Workers>,
    inbox: Arc<Inbox<Message>>,
    gates: Gates,
    /// Its connection.
    room: Arc<Room>,
    running: Vec<(Permit, Fate)>,
    /// The numbers of its requests that were admitted.
    admitted: Vec<u32>,
    /// The times at which requests of volumes moved their byte.
    used: Vec<(VolumeId, Mono)>,
}

impl Worker {
    /// The number of its first request.
    fn first(&self) -> u32 {
        [0, 10][self.id]
    }

    fn connection(&self) -> ConnId {
        ConnId { worker: self.id, token: self.id as u64 + 1 }
    }

    /// Takes up a request, as [`super::state::WorkerState::admit`] does.
    fn arrive(&mut self, volume: &Arc<ServedVolume>, number: u32, fate: Fate) {
        let key = ObjectKey::new(&[1]).unwrap();
        let mut request = request(volume, OpClass::Read, key, 1);
        let cost = Cost::of(1);
        (request.connection, request.arrived) = (self.connection(), self.now);
        request.client = ClientKey(self.id as u128);
        let Job::Rpc(job) = &mut request.job else { panic!("requests of tests are of RPC") };
        job.call.xid = number << 2 | fate as u32;
        let file = Some(&key);
        if let Some(charged) = volume.try_pass(cost, file, self.now) {
            let mut admitted = request.admitted(charged, self.now);
            admitted.permit.begin(cost, self.now);
            return self.start(admitted);
        }
        let room = Some(Arc::clone(&self.room));
        let parked = volume.gate.park(GateEntry::from(request), room, self.now);
        let Ok(parked) = parked else { panic!("there is memory for all") };
        if parked.must_poll {
            self.gates.poll_at(Arc::clone(&volume.gate), self.now);
        }
    }

    fn start(&mut self, admitted: Admitted) {
        let Job::Rpc(job) = admitted.job else { panic!("requests of tests are of RPC") };
        let fate = match job.call.xid & 3 {
            0 => Fate::Used,
            1 => Fate::Failed,
            _ => Fate::Dropped,
        };
        self.admitted.push(job.call.xid >> 2);
        self.running.push((admitted.permit, fate));
    }

    /// Ends the operations that run, but for the youngest ones.
    fn end_operations(&mut self, but: usize) {
        let ended = self.running.len().saturating_sub(but);
        let ended: Vec<_> = self.running.drain(..ended).collect();
        for (permit, fate) in ended {
            let moved = u64::from(fate == Fate::Used);
            if fate == Fate::Dropped {
                self.give_up(permit);
                continue;
            }
            let ended = Ended { moved, ok: moved > 0, replied: true, woken: None };
            let settled = permit.settle(ended, self.now).unwrap();
            self.used.extend((moved > 0).then_some((settled.volume.id, self.now)));
            if settled.poll {
                self.gates.poll(Arc::clone(&settled.volume.gate), self.now);
            }
        }
    }

    fn give_up(&mut self, permit: Permit) {
        // The clock of a permit that is dropped stands still.
        if self.now == NOW {
            return drop(permit);
        }
        if let Some(volume) = permit.give_back(self.now) {
            self.gates.poll(Arc::clone(&volume.gate), self.now);
        }
    }

    /// One round of the worker, during which some operations go on `running`; true if there was
    /// something to do.
    fn round(&mut self, running: usize) -> bool {
        let mut busy = self.running.len() > running;
        self.end_operations(running);
        let mut messages = Vec::new();
        if wakes(&self.inbox) {
            self.inbox.take(&mut messages);
        }
        busy |= !messages.is_empty();
        for message in messages {
            match message {
                Message::Poll(gate) => self.gates.poll(gate, self.now),
                Message::Released(released) => self.released(*released),
                _ => panic!("no other message is sent"),
            }
        }
        busy |= self.gates.next_deadline().is_some_and(|at| at <= self.now);
        self.gates.poll_due(self.now);
        busy |= !self.gates.is_empty();
        self.hand_out();
        busy
    }

    fn hand_out(&mut self) {
        while let Some(released) = self.gates.released.pop_front() {
            let worker = released.ticket.request.connection().worker;
            if worker == self.id {
                self.released(released);
            } else {
                self.workers.post(worker, Message::Released(Box::new(released)));
            }
        }
        assert!(self.gates.resumed.is_empty(), "no connection was stopped");
    }

    fn released(&mut self, released: Released) {
        let Released { ticket, charged, charged_at } = released;
        let Ticket { request: entry, since, holds, .. } = ticket;
        let GateEntry::Request(request) = entry else { panic!("no request has parts") };
        self.room.arrived(holds);
        let mut admitted = request.admitted(charged, charged_at);
        admitted.permit.begin_delayed(since, self.now);
        self.start(admitted);
    }

    /// Says that its connection has room again, as [`super::state::WorkerState::open_room`] does.
    fn open_room(&mut self, volume: &Arc<ServedVolume>) {
        self.room.set_open(true);
        if self.room.was_refused() && volume.gate.resume_connection(self.connection(), self.now) {
            self.gates.poll(Arc::clone(&volume.gate), self.now);
        }
    }
}

/// Does the inbox end the sleep of its thread?
fn wakes<M>(inbox: &Inbox<M>) -> bool {
    let mut event = [PollFd::new(inbox, PollFlags::IN)];
    poll(&mut event, Some(&Timespec::default())).unwrap() > 0
}

/// The gates, and the workers before their threads start and after they ended.
struct World {
    volumes: Vec<Arc<ServedVolume>>,
    total: Arc<ParkedTotal>,
    workers: Vec<Worker>,
}

impl World {
    /// Two workers, and volumes with these limits.
    fn new(store: &VolumeStore, limits: &[Limits]) -> Self {
        let inboxes = [Inbox::new().unwrap(), Inbox::new().unwrap()];
        let mut clock = SystemClock::start();
        clock.stands_at = Some(NOW);
        let workers = Arc::new(Workers::new(&inboxes, clock));
        let total = Arc::new(ParkedTotal::new(1 << 30));
        let volume = |(id, limits): (u32, &Limits)| {
            let gate = Gate::new(VolumeId(id), *limits, Arc::clone(&total));
            Arc::new(served_by(&workers, store.clone(), gate))
        };
        let volumes = (1..).zip(limits).map(volume).collect();
        let worker = |(id, inbox)| Worker {
            id,
            now: NOW,
            workers: Arc::clone(&workers),
            inbox,
            gates: Gates::default(),
            room: Arc::default(),
            running: Vec::new(),
            admitted: Vec::new(),
            used: Vec::new(),
        };
        let workers = inboxes.into_iter().enumerate().map(worker).collect();
        Self { volumes, total, workers }
    }

    /// Has each worker do its `work` on a thread of its own, and `beside` on a third.
    fn run(
        &mut self,
        work: impl Fn(&mut Worker, &[Arc<ServedVolume>]) + Clone + Send + 'static,
        beside: impl FnOnce(&[Arc<ServedVolume>]) + Send + 'static,
    ) {
        let volumes = self.volumes.clone();
        let beside = thread::spawn(move || beside(&volumes));
        let start = |mut worker: Worker| {
            let (work, volumes) = (work.clone(), self.volumes.clone());
            thread::spawn(move || {
                work(&mut worker, &volumes);
                worker
            })
        };
        let threads: Vec<JoinHandle<_>> = self.workers.drain(..).map(start).collect();
        self.workers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        beside.join().unwrap();
    }

    /// Has the workers do all that is to be done at their present time.
    fn settle(&mut self) {
        while self.workers.iter_mut().fold(false, |busy, worker| worker.round(0) | busy) {}
    }

    /// Has the workers do all that is to be done at once; the requests of each volume that moved
    /// their byte then.
    fn used_at_once(&mut self) -> Vec<usize> {
        self.settle();
        let used: Vec<_> = self.workers.iter().flat_map(|worker| &worker.used).collect();
        let by = |volume: &Arc<ServedVolume>| {
            used.iter().filter(|one| **one == &(volume.id, NOW)).count()
        };
        self.volumes.iter().map(by).collect()
    }

    /// Moves time from timer to timer until no request waits. Each of the `requests` was admitted
    /// once then, and nothing is accounted for any more.
    fn finish(mut self, requests: impl IntoIterator<Item = u32>) {
        self.settle();
        while self.volumes.iter().any(|volume| volume.gate.waiting() > 0) {
            let next = self.workers.iter().filter_map(|worker| worker.gates.next_deadline()).min();
            let next = next.expect("requests wait, and nobody is going to poll their gate");
            assert!(
                next.0 <= NOW.0 + WAIT_MAX,
                "requests wait for longer than their contract says"
            );
            for volume in self.volumes.iter().filter(|volume| volume.gate.waiting() > 0) {
                assert!(volume.try_pass(Cost::of(1), None, next).is_none(), "none is overtaken");
            }
            self.workers.iter_mut().for_each(|worker| worker.now = next);
            self.settle();
        }
        let admitted = self.workers.iter().flat_map(|worker| &worker.admitted);
        let mut admitted: Vec<u32> = admitted.copied().collect();
        admitted.sort_unstable();
        assert!(admitted.into_iter().eq(requests), "each request is admitted once");
        assert_eq!(self.total.bytes(), 0);
        for volume in &self.volumes {
            assert_eq!(volume.gate.parked(), 0);
            let later = Mono(self.workers[0].now.0 + NOW.0);
            assert!(volume.try_pass(Cost::of(1), None, later).is_some(), "the fast path is open");
        }
    }
}

#[test]
fn every_message_ends_the_sleep_of_a_worker() {
    explore_by(RandomScheduler::new(2 * SCHEDULES), || {
        let inbox = Inbox::new().unwrap();
        let posts = Arc::clone(&inbox);
        let posting = thread::spawn(move || (0..3).for_each(|message| posts.post(message)));
        let (mut taken, mut messages) = (Vec::new(), Vec::new());
        let mut take = || {
            if wakes(&inbox) {
                inbox.take(&mut messages);
                taken.append(&mut messages);
            }
        };
        for _ in 0..8 {
            // Asking the kernel is no point where others go on.
            thread::yield_now();
            take();
        }
        posting.join().unwrap();
        take();
        assert_eq!(taken, [0, 1, 2]);
    });
}

/// The requests of both workers: those of the second have the numbers from 10 on.
fn numbers(each: u32) -> impl Iterator<Item = u32> {
    (0..each).chain(10..10 + each)
}

/// The first requests give their charge back while others wait already.
fn fate(number: u32) -> Fate {
    match number % 10 {
        0 | 2 => Fate::Dropped,
        1 => Fate::Failed,
        _ => Fate::Used,
    }
}

/// So many requests of a worker arrive at the volumes in turns, with a round after each.
fn arrivals(each: u32) -> impl Fn(&mut Worker, &[Arc<ServedVolume>]) + Clone + Send + 'static {
    move |worker, volumes| {
        for number in 0..each {
            let volume = &volumes[number as usize % volumes.len()];
            worker.arrive(volume, worker.first() + number, fate(number));
            worker.round(RUNNING);
        }
    }
}

/// A pool that these volumes share, since before their first charge: what was charged earlier is
/// not the pool's.
fn pool_of(volumes: &[Arc<ServedVolume>], budget: u64) -> Arc<PoolGate<GateEntry>> {
    let pool = Arc::new(PoolGate::new(rate(budget)));
    for volume in volumes {
        volume.gate.set_share(Some((&pool, Share::default())), Mono(NOW.0 - 1));
    }
    pool
}

#[test]
fn every_request_of_a_volume_goes_and_what_is_returned_is_used() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(RATE)]);
        world.run(arrivals(7), |_| {});
        assert_eq!(world.used_at_once(), [AT_ONCE]);
        world.finish(numbers(7));
    });
}

#[test]
fn every_request_goes_where_operations_are_counted_too() {
    let store = store_of_tests();
    explore(move || {
        let limits = Limits { iops: Some(Iops(RATE)), ..rate(2 * RATE) };
        let mut world = World::new(&store, &[limits]);
        world.run(arrivals(7), |_| {});
        assert_eq!(world.used_at_once(), [AT_ONCE]);
        world.finish(numbers(7));
    });
}

#[test]
fn every_request_goes_while_the_limits_change() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(RATE)]);
        world.run(arrivals(7), |volumes| {
            let volume = &volumes[0];
            let counted = Limits { iops: Some(Iops(RATE / 4)), ..rate(RATE) };
            let ceiling = Ceiling { rate: Some(BytesPerSecond(RATE / 2)), iops: None };
            volume.gate.set_limits(counted, NOW);
            volume.workers.poll(&volume.gate);
            volume.gate.set_file_ceiling(Some(ceiling), NOW);
            volume.workers.poll(&volume.gate);
            volume.gate.set_limits(rate(2 * RATE), NOW);
            volume.gate.set_file_ceiling(None, NOW);
            volume.workers.poll(&volume.gate);
        });
        world.finish(numbers(7));
    });
}

/// A volume whose own limit, and one whose ceiling of files admits nothing: both limits are lifted.
#[test]
fn every_request_of_a_pool_goes_when_limits_are_lifted() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(0), rate(RATE)]);
        let _pool = pool_of(&world.volumes, 10 * RATE);
        let ceiling = Ceiling { rate: Some(BytesPerSecond::ZERO), iops: None };
        world.volumes[1].gate.set_file_ceiling(Some(ceiling), NOW);
        world.run(arrivals(8), |volumes| {
            volumes[0].gate.set_limits(rate(RATE), NOW);
            volumes[0].workers.poll(&volumes[0].gate);
            volumes[1].gate.set_file_ceiling(None, NOW);
            volumes[1].workers.poll(&volumes[1].gate);
        });
        world.finish(numbers(8));
    });
}

#[test]
fn every_request_of_a_pool_goes_and_what_is_returned_is_used() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(RATE * 10), rate(RATE * 10)]);
        let _pool = pool_of(&world.volumes, RATE);
        world.run(arrivals(8), |_| {});
        assert_eq!(world.used_at_once().iter().sum::<usize>(), AT_ONCE);
        world.finish(numbers(8));
    });
}

/// The second volume uses up the budget and returns all of it. The first one's requests, which its
/// own limit refused for a moment, go as soon as those that it admits.
#[test]
fn a_volume_that_its_pool_held_back_has_all_of_its_own_limit() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(RATE / 5), rate(RATE * 10)]);
        let _pool = pool_of(&world.volumes, RATE);
        world.run(
            |worker, volumes| {
                for number in 0..7 {
                    let (volume, fate) = match number {
                        0 | 3 | 5 | 6 => (&volumes[0], Fate::Used),
                        _ => (&volumes[1], Fate::Dropped),
                    };
                    worker.arrive(volume, worker.first() + number, fate);
                    worker.round(RUNNING);
                }
            },
            |_| {},
        );
        assert_eq!(world.used_at_once(), [2, 0], "50 ms, and one that is paid for later");
        world.finish(numbers(7));
    });
}

#[test]
fn every_request_goes_while_volumes_join_and_leave_a_pool() {
    let store = store_of_tests();
    // The changes are chosen at random too.
    explore_many(4 * SCHEDULES, move || {
        let mut world = World::new(&store, &[rate(RATE / 10), rate(RATE / 10)]);
        let pool = Arc::new(PoolGate::new(rate(RATE)));
        world.run(arrivals(4), move |volumes| {
            for _ in 0..4 {
                let volume = &volumes[thread_rng().gen_range(0..volumes.len())];
                let weight = thread_rng().gen_range(0..3);
                let share = (weight > 0).then(|| Share { weight, ..Share::default() });
                // As the engine puts a snapshot in force.
                if volume.gate.set_share(share.map(|share| (&pool, share)), NOW) {
                    volume.workers.poll(&volume.gate);
                }
                if let Some((worker, gate)) = pool.door() {
                    volume.workers.post(worker, Message::Poll(gate));
                }
            }
        });
        world.finish(numbers(4));
    });
}

/// Whatever a worker notes while a volume leaves its pool, the pool has no timer that the volume
/// took away.
#[test]
fn a_timer_is_noted_at_the_pool_only_while_the_volume_is_in_it() {
    let store = store_of_tests();
    explore(move || {
        let world = World::new(&store, &[rate(RATE), rate(RATE)]);
        let _pool = pool_of(&world.volumes, RATE);
        let [leaves, stays] = [0, 1].map(|at| Arc::clone(&world.volumes[at]));
        let gate = Arc::clone(&leaves.gate);
        let arming = thread::spawn(move || gate.arm(NOW));
        leaves.gate.set_share(None, NOW);
        arming.join().unwrap();
        assert!(stays.gate.arm(Mono(NOW.0 + 1)), "the pool needs a timer");
    });
}

/// A timer that fires while the volume is in a pool is not awaited once the volume is alone again.
#[test]
fn a_timer_that_fired_in_a_pool_is_forgotten_outside() {
    let store = store_of_tests();
    explore(move || {
        let world = World::new(&store, &[rate(RATE)]);
        let volume = Arc::clone(&world.volumes[0]);
        let gate = Arc::clone(&volume.gate);
        let firing = thread::spawn(move || {
            gate.arm(NOW);
            // Reading the pool is no point where others go on.
            thread::yield_now();
            gate.fired(NOW);
        });
        let _pool = pool_of(&world.volumes, RATE);
        volume.gate.set_share(None, NOW);
        firing.join().unwrap();
        assert!(volume.gate.arm(Mono(NOW.0 + 1)), "the volume needs a timer");
    });
}

/// Where a gate finds no room, the worker that makes some looks after the request.
#[test]
fn a_gate_that_finds_no_room_is_seen() {
    explore(|| {
        let room = Arc::new(Room::default());
        room.set_open(false);
        let asked = Arc::clone(&room);
        let asking = thread::spawn(move || asked.take(1));
        room.set_open(true);
        let seen = room.was_refused();
        assert!(asking.join().unwrap() || seen);
    });
}

/// The first worker's connection gets room while the second one returns what its requests were
/// charged, and polls the gate.
#[test]
fn requests_that_wait_for_room_go_when_there_is_some() {
    let store = store_of_tests();
    explore(move || {
        let mut world = World::new(&store, &[rate(RATE)]);
        let volume = Arc::clone(&world.volumes[0]);
        let [first, second] = world.workers.as_mut_slice() else { panic!("two workers") };
        (10..16).for_each(|number| second.arrive(&volume, number, Fate::Failed));
        first.room.set_open(false);
        (0..6).for_each(|number| first.arrive(&volume, number, Fate::Used));
        world.run(
            |worker, volumes| {
                if worker.id == 0 {
                    worker.open_room(&volumes[0]);
                }
                worker.round(0);
            },
            |_| {},
        );
        assert_eq!(world.used_at_once(), [AT_ONCE]);
        world.finish(numbers(6));
    });
}

/// A volume alone, and one in a pool whose budget is lower than its own limit.
#[test]
fn what_a_closed_connection_left_waiting_holds_up_nobody() {
    let store = store_of_tests();
    for pooled in [false, true] {
        let store = store.clone();
        explore(move || {
            let mut world = World::new(&store, &[rate(if pooled { RATE } else { RATE / 5 })]);
            let _pool = pooled.then(|| pool_of(&world.volumes, RATE / 5));
            world.run(
                |worker, volumes| {
                    for number in 0..[2, 4][worker.id] {
                        worker.arrive(&volumes[0], worker.first() + number, Fate::Used);
                        worker.round(RUNNING);
                    }
                    if worker.id == 1 {
                        volumes[0].gate.cancel(worker.connection(), NOW, &mut Vec::new());
                    }
                },
                |_| {},
            );
            world.settle();
            let gone = world.workers[1].admitted.clone();
            world.finish((0..2).chain(gone));
        });
    }
}

/// A worker that only takes note of barriers.
fn note_barriers(inbox: &Inbox<Message>, io: &IoGenerations) {
    let mut messages = Vec::new();
    inbox.take(&mut messages);
    for message in messages {
        if let Message::Barrier(token) = message {
            io.end(token);
        }
    }
}

/// One worker reads or writes while another locks what is read or written.
#[test]
fn a_lock_is_answered_when_the_operations_that_did_not_see_it_have_ended() {
    explore(|| {
        let inboxes = [Inbox::new().unwrap(), Inbox::new().unwrap()];
        let workers = Workers::new(&inboxes, SystemClock::start());
        let [operating, locking] = inboxes;
        let (locked, answered) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let unseen = Arc::new(AtomicUsize::new(0));
        let operations = {
            let (locked, answered) = (Arc::clone(&locked), Arc::clone(&answered));
            let unseen = Arc::clone(&unseen);
            thread::spawn(move || {
                let io = IoGenerations::default();
                for _ in 0..3 {
                    let guard = io.enter();
                    if !locked.load(Ordering::SeqCst) {
                        // It waits for the disk, and other messages come meanwhile.
                        unseen.fetch_add(1, Ordering::SeqCst);
                        note_barriers(&operating, &io);
                        unseen.fetch_sub(1, Ordering::SeqCst);
                    }
                    drop(guard);
                    note_barriers(&operating, &io);
                }
                while !answered.load(Ordering::SeqCst) {
                    note_barriers(&operating, &io);
                    thread::yield_now();
                }
            })
        };
        let io = IoGenerations::default();
        locked.store(true, Ordering::SeqCst);
        let mut barrier = Barrier::new(&workers);
        let mut cx = Context::from_waker(Waker::noop());
        while Pin::new(&mut barrier).poll(&mut cx).is_pending() {
            note_barriers(&locking, &io);
            thread::yield_now();
        }
        assert_eq!(unseen.load(Ordering::SeqCst), 0, "operations that did not see the lock");
        answered.store(true, Ordering::SeqCst);
        operations.join().unwrap();
    });
}
