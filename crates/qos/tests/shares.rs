//! Volumes that share the budget of a pool, in virtual time with closed loops around them: the
//! budget is kept as every contract is, an idle volume's part is the others' at once and its own
//! again at once, and a busy pool is divided by weights and floors.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_core::Mono;
use weir_core::rng::step;
use weir_qos::{
    BytesPerSecond, ClientKey, Cost, Departure, Limits, Meters, NEVER, Queue, Share, Shares,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;
const START: u64 = SECOND;

/// A volume, what its client keeps outstanding, and when.
#[derive(Clone, Debug)]
struct Load {
    share: Share,
    /// The volume's own limit; `None` for the pool's alone.
    ceiling: Option<u64>,
    depth: u64,
    size: u64,
    /// Times at which its client works, from and until.
    active: Vec<(u64, u64)>,
}

fn busy(depth: u64, size: u64) -> Load {
    let active = vec![(START, u64::MAX)];
    Load { share: Share::default(), ceiling: None, depth, size, active }
}

fn weight(weight: u32, load: Load) -> Load {
    Load { share: Share { weight, ..load.share }, ..load }
}

fn floor(rate: u64, load: Load) -> Load {
    Load { share: Share { floor: BytesPerSecond(rate), ..load.share }, ..load }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Send(usize),
    /// Of a volume: its size, and when it was charged.
    Reply(usize, u64, u64),
    Pump,
}

/// A pool, its volumes and their clients. Every random choice follows from one seed.
struct World {
    budget: Meters,
    shares: Shares,
    volumes: Vec<(Load, Meters, Queue<u64>)>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pump_at: Option<u64>,
    now: u64,
    lateness: u64,
    /// One request in so many fails; zero for none.
    fail_one_in: u64,
    random: u64,
    order: u64,
    /// Volume, bytes, when it was answered.
    done: Vec<(usize, u64, u64)>,
}

impl World {
    fn new(seed: u64, rate: u64, lateness: u64, loads: Vec<Load>) -> Self {
        let of = |rate: u64| Meters::new(Limits::of(BytesPerSecond(rate)));
        let mut shares = Shares::new();
        for (volume, load) in (0..).zip(&loads) {
            shares.set(volume, load.share);
        }
        let own = |load: Load| {
            let meters = of(load.ceiling.unwrap_or(rate).min(rate));
            (load, meters, Queue::new())
        };
        let mut world = Self {
            budget: of(rate),
            shares,
            volumes: loads.into_iter().map(own).collect(),
            events: BinaryHeap::new(),
            pump_at: None,
            now: START,
            lateness,
            fail_one_in: 0,
            random: seed,
            order: 0,
            done: Vec::new(),
        };
        for volume in 0..world.volumes.len() {
            let Load { depth, active, .. } = world.volumes[volume].0.clone();
            for (from, _) in active {
                (0..depth).for_each(|_| world.schedule(from, Event::Send(volume)));
            }
        }
        world
    }

    fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Send(volume) => self.send(volume),
                Event::Reply(volume, size, charged) => self.reply(volume, size, Mono(charged)),
                Event::Pump if self.pump_at == Some(at) => self.pump(),
                Event::Pump => {}
            }
        }
        self.now = end;
    }

    fn send(&mut self, volume: usize) {
        let now = self.now;
        let (load, meters, queue) = &mut self.volumes[volume];
        if !load.active.iter().any(|&(from, until)| (from..until).contains(&now)) {
            return;
        }
        let (cost, size) = (Cost::of(load.size), load.size);
        if meters.try_take_with(&self.budget, cost, Mono(now)).is_some() {
            return self.serve(volume, size);
        }
        let ask = queue.push(meters, ClientKey(1), 1, cost, size);
        let id = u32::try_from(volume).unwrap();
        if ask {
            self.shares.again(&self.budget, id);
        }
        if self.shares.wake(&self.budget, id) || ask {
            self.pump_at(now);
        }
    }

    /// A failed request is given back.
    fn reply(&mut self, volume: usize, size: u64, charged_at: Mono) {
        if self.fail_one_in > 0 && self.draw(self.fail_one_in) == 0 {
            let charged = Cost::of(size).uncounted();
            self.volumes[volume].1.refund(charged, charged_at, Mono(self.now));
            self.budget.refund(charged, charged_at, Mono(self.now));
            self.shares.again(&self.budget, u32::try_from(volume).unwrap());
            self.pump();
        } else {
            self.done.push((volume, size, self.now));
        }
        let turnaround = self.draw(MILLI / 2);
        self.schedule(self.now + turnaround, Event::Send(volume));
    }

    fn pump(&mut self) {
        self.pump_at = None;
        let (mut released, now) = (Vec::new(), Mono(self.now));
        let (volumes, budget) = (&mut self.volumes, &self.budget);
        let next = self.shares.poll(budget, now, |volume| {
            let (_, meters, queue) = &mut volumes[volume as usize];
            queue.step(meters, budget, now, &mut |size, _| {
                released.push((volume as usize, size));
                Departure::Went
            })
        });
        for (volume, size) in released {
            self.serve(volume, size);
        }
        if let Some(at) = next.filter(|&at| at != NEVER) {
            let late = self.draw(self.lateness + 1);
            self.pump_at(at.0.max(self.now) + late);
        }
    }

    fn pump_at(&mut self, at: u64) {
        if self.pump_at.is_none_or(|earlier| at < earlier) {
            self.pump_at = Some(at);
            self.schedule(at, Event::Pump);
        }
    }

    fn serve(&mut self, volume: usize, size: u64) {
        let service = self.draw(MILLI);
        self.schedule(self.now + service, Event::Reply(volume, size, self.now));
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    /// A random number below `below`.
    fn draw(&mut self, below: u64) -> u64 {
        step(&mut self.random) % below.max(1)
    }

    /// One request in `n` fails after it was charged.
    fn failing(self, n: u64) -> Self {
        Self { fail_one_in: n, ..self }
    }

    /// Bytes of each volume answered within `from..to`.
    fn got(&self, from: u64, to: u64) -> Vec<u64> {
        let mut got = vec![0; self.volumes.len()];
        for &(volume, bytes, _) in self.done.iter().filter(|done| (from..to).contains(&done.2)) {
            got[volume] += bytes;
        }
        got
    }

    /// 1 % over 10 s and 5 % over 1 s, each plus one largest request, in every window that begins
    /// with an answer.
    fn assert_budget_kept(&self, rate: u64, from: u64, to: u64) {
        let largest = self.volumes.iter().map(|(load, ..)| load.size).max().unwrap();
        let done: Vec<_> = self.done.iter().filter(|one| (from..to).contains(&one.2)).collect();
        for (window, percent) in [(SECOND, 5), (10 * SECOND, 1)] {
            let (mut end, mut sum) = (0, 0);
            for begin in 0..done.len() {
                let until = done[begin].2 + window;
                if until > to {
                    break;
                }
                while end < done.len() && done[end].2 < until {
                    sum += done[end].1;
                    end += 1;
                }
                let due = rate * (window / SECOND);
                let allowed = due * percent / 100 + largest;
                assert!(sum.abs_diff(due) <= allowed, "{sum} in {window} ns, {due} due");
                sum -= done[begin].1;
            }
        }
    }
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_638_400), Just(16 * MIB), MIB..48 * MIB]
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let sizes = prop_oneof![Just(4 * KIB), Just(8 * KIB), Just(64 * KIB), Just(256 * KIB)];
    let load = (32..96_u64, sizes).prop_map(|(depth, size)| busy(depth, size));
    prop::collection::vec(load, 2..8)
}

/// Max–min fair parts: of each the level that all have, but at least its floor and at most its
/// ceiling.
fn divided(rate: u64, loads: &[Load]) -> Vec<u64> {
    let parts = |level: u64| -> Vec<u64> {
        let part = |load: &Load| level.max(load.share.floor.0).min(load.ceiling.unwrap_or(rate));
        loads.iter().map(part).collect()
    };
    let (mut low, mut high) = (0, rate);
    while high - low > 1 {
        let level = low.midpoint(high);
        if parts(level).iter().sum::<u64>() > rate { high = level } else { low = level }
    }
    parts(low)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn the_budget_is_kept_from_idle_on_and_divided_fairly(
        seed: u64,
        rate in rates(),
        loads in loads(),
    ) {
        let count = loads.len() as u64;
        let mut world = World::new(seed, rate, 20 * MILLI, loads);
        world.run_until(START + 25 * SECOND);
        world.assert_budget_kept(rate, START, world.now);
        let mut world = World::new(seed, rate, 2 * MILLI, world.volumes.iter().map(|one| one.0.clone()).collect());
        world.run_until(START + 25 * SECOND);
        let got = world.got(START + 5 * SECOND, world.now);
        for bytes in &got {
            let due = rate * 20 / count;
            prop_assert!(bytes.abs_diff(due) <= due / 20 + 512 * KIB, "{:?} of {}", got, due);
        }
    }

    /// While some are away the others have all of it, within a second of a change; who comes back
    /// has its part within a second.
    #[test]
    fn what_is_idle_is_used_at_once_and_given_back_at_once(
        seed: u64,
        rate in 4 * MIB..48 * MIB,
        size in prop_oneof![Just(4 * KIB), Just(8 * KIB), Just(64 * KIB)],
        stay in 1..5_usize,
        go in 1..5_usize,
    ) {
        let (away, back) = (START + 5 * SECOND, START + 15 * SECOND);
        let active = vec![(START, away), (back, u64::MAX)];
        let all = (stay + go) as u64;
        // The requests that wait when a client goes away are done within a quarter of a second.
        let depth = (rate / 4 / (size * all)).max(4);
        let sometimes = Load { active, ..busy(depth, size) };
        let loads = [vec![busy(depth * all, size); stay], vec![sometimes; go]].concat();
        let mut world = World::new(seed, rate, 2 * MILLI, loads);
        world.run_until(back + 10 * SECOND);
        world.assert_budget_kept(rate, START, world.now);
        // The second second after they went, and after they came back.
        let got = world.got(away + SECOND, away + 2 * SECOND);
        for bytes in &got[..stay] {
            let due = rate / stay as u64;
            prop_assert!(bytes.abs_diff(due) <= due / 20 + 2 * size, "{:?} of {}", got, due);
        }
        let got = world.got(back + SECOND, back + 2 * SECOND);
        for bytes in &got {
            let due = rate / all;
            prop_assert!(bytes.abs_diff(due) <= due / 20 + 128 * KIB, "{:?} of {}", got, due);
        }
    }

    #[test]
    fn a_busy_pool_is_divided_by_weight(
        seed: u64,
        rate in 4 * MIB..32 * MIB,
        weights in prop::collection::vec(20..500_u32, 2..6),
    ) {
        let loads: Vec<_> = weights.iter().map(|&of| weight(of, busy(128, 8 * KIB))).collect();
        let mut world = World::new(seed, rate, 2 * MILLI, loads);
        world.run_until(START + 22 * SECOND);
        let got = world.got(START + 2 * SECOND, world.now);
        let sum: u64 = weights.iter().map(|&of| u64::from(of)).sum();
        for (bytes, &of) in got.iter().zip(&weights) {
            let due = rate * 20 * u64::from(of) / sum;
            prop_assert!(bytes.abs_diff(due) <= due / 20 + 256 * KIB, "{:?} of {:?}", got, weights);
        }
    }

    /// Each has its floor or its share, whichever is more; a ceiling leaves the rest to the others.
    #[test]
    fn floors_are_kept_and_ceilings_leave_the_rest(
        seed: u64,
        rate in 8 * MIB..32 * MIB,
        others in 2..8_u64,
        floor_percent in 20..90_u64,
        ceiling_percent in 1..8_u64,
    ) {
        let (least, most) = (rate * floor_percent / 100, rate * ceiling_percent / 100);
        let held = Load { ceiling: Some(most), ..busy(64, 8 * KIB) };
        let mut loads = vec![floor(least, busy(64, 8 * KIB)), held];
        loads.extend((0..others).map(|_| busy(64, 8 * KIB)));
        let mut world = World::new(seed, rate, 2 * MILLI, loads);
        world.run_until(START + 22 * SECOND);
        world.assert_budget_kept(rate, START, world.now);
        let got = world.got(START + 2 * SECOND, world.now);
        let parts: Vec<_> = world.volumes.iter().map(|(load, ..)| load.clone()).collect();
        let expected: Vec<_> = divided(rate, &parts).iter().map(|part| part * 20).collect();
        for ((bytes, due), (load, ..)) in got.iter().zip(&expected).zip(&world.volumes) {
            // One whose ceiling is little more than its share may have an eighth less than that:
            // its own meter refuses it now and then when it is its turn.
            let part = if load.ceiling.is_some() { 7 } else { 20 };
            prop_assert!(bytes.abs_diff(*due) <= due / part + 256 * KIB, "{:?}, {:?} due", got, expected);
        }
    }
}

/// A volume with a floor that was above its share is no worse off when the others go.
#[test]
fn what_a_floor_gave_is_not_held_against_it() {
    let rate = 16 * MIB;
    let sometimes = Load { active: vec![(START, START + 20 * SECOND)], ..busy(64, 8 * KIB) };
    let mut loads = vec![floor(12 * MIB, busy(64, 8 * KIB)), busy(64, 8 * KIB)];
    loads.extend(vec![sometimes; 6]);
    let mut world = World::new(1, rate, 2 * MILLI, loads);
    world.run_until(START + 20 * SECOND);
    assert!(world.got(START + SECOND, world.now)[0] >= 19 * 12 * MIB * 95 / 100);
    // Then two are left, and it has its floor still, and the other the rest; without a floor half.
    world.shares.set(0, Share::default());
    world.run_until(START + 26 * SECOND);
    let got = world.got(START + 21 * SECOND, world.now);
    let half = 5 * 8 * MIB;
    assert!(got[..2].iter().all(|bytes| bytes.abs_diff(half) <= half / 20), "{got:?}");
}

/// A client that asks now and then waits for no more than a turn of each of the others.
#[test]
fn a_quiet_volume_is_served_soon() {
    let loads = [vec![busy(1, 4 * KIB)], vec![busy(64, 64 * KIB); 7]].concat();
    let mut world = World::new(1, 64 * MIB, 2 * MILLI, loads);
    world.run_until(START + 10 * SECOND);
    // In every 10 ms or so, where its part of the pool would be one of 8 KiB in each millisecond.
    let own = world.done.iter().filter(|done| done.0 == 0).count();
    assert!(own >= 1500, "{own}");
}

/// The time of a failed request goes to another volume at once, also where the volume's own limit
/// holds it back, as it does where a volume is alone in its pool. In the order a failed request
/// counts as served, so its part of the larger pool is more than twice its limit.
#[test]
fn failures_cost_a_volume_of_a_shared_pool_nothing() {
    let rate = 4 * MIB;
    let held = |size| Load { ceiling: Some(rate), ..busy(16, size) };
    for (size, one_in) in [(MIB, 2), (MIB, 4), (MIB, 10), (256 * KIB, 2), (64 * KIB, 2)] {
        for (pool, loads) in
            [(rate, vec![held(size)]), (8 * rate, vec![held(size), busy(64, 64 * KIB)])]
        {
            let mut world = World::new(3, pool, 2 * MILLI, loads).failing(one_in);
            world.run_until(START + 21 * SECOND);
            world.assert_budget_kept(pool, START, world.now);
            let (got, due) = (world.got(START + SECOND, world.now)[0], 20 * rate);
            let off = got.abs_diff(due);
            assert!(off <= due / 100 + MIB, "{got} of {due}, {size} one in {one_in}");
        }
    }
}
