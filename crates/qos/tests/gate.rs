//! The promises of the gate, proved in virtual time with a closed loop around it: the rate is
//! kept within the rule, clients share fairly, nobody is overtaken, and changes, disconnects and
//! refunds are in force at once.

mod sim;

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_core::Mono;
use weir_qos::burst::v1;
use weir_qos::{
    Burst, BytesPerSecond, Ceiling, ClientKey, Cost, Departure, Iops, Limits, Meters, Queue,
};

use sim::{Demand, Done, KIB, Load, MIB, MILLI, SECOND, World, shares, worst_windows};

/// The latest pump that the rule must survive.
const LATENESS: u64 = 20 * MILLI;

/// An ordinary pump. Fairness is among those who wait, so a client must have more outstanding
/// than goes at one pump; with the latest pump it would take more than real clients keep.
const PROMPT: u64 = 2 * MILLI;

/// The start of every world.
const START: u64 = SECOND;

fn closed(client: u64, connections: u64, depth: u64, size: (u64, u64)) -> Load {
    Load { client, connections, demand: Demand::Depth(depth), size }
}

/// 1 % over 10 s and 5 % over 1 s, each plus one largest request, in every window.
fn assert_contract(done: &[Done], rate: u64, largest: u64, from: u64, to: u64) {
    assert_kept(done, |one| one.bytes, rate, largest, from, to);
}

/// Asserts the limit on bytes or operations, as `of` says.
fn assert_kept(done: &[Done], of: fn(&Done) -> u64, rate: u64, largest: u64, from: u64, to: u64) {
    assert_not_passed(done, of, rate, largest, from, to);
    for (window, percent) in [(SECOND, 5), (10 * SECOND, 1)] {
        let (least, _) = worst_windows(done, of, window, from, to);
        let due = rate * (window / SECOND);
        let allowed = due * percent / 100 + largest;
        assert!(least + allowed >= due, "{least} in {} s, {due} due", window / SECOND);
    }
}

/// No window has more than the limit and what is allowed beyond it.
fn assert_not_passed(
    done: &[Done],
    of: fn(&Done) -> u64,
    rate: u64,
    largest: u64,
    from: u64,
    to: u64,
) {
    for (window, percent) in [(SECOND, 5), (10 * SECOND, 1)] {
        let (_, most) = worst_windows(done, of, window, from, to);
        let due = rate * (window / SECOND);
        let allowed = due * percent / 100 + largest;
        assert!(most <= due + allowed, "{most} in {} s, {due} due", window / SECOND);
    }
}

fn mixed_load() -> impl Strategy<Value = Vec<Load>> {
    let sizes = prop_oneof![
        Just((4 * KIB, 4 * KIB)),
        Just((8 * KIB, 8 * KIB)),
        Just((512, 64 * KIB)),
        Just((1, 256 * KIB)),
    ];
    // Enough outstanding that each client is always waiting for something.
    prop::collection::vec((1..5_u64, 16..48_u64, sizes), 1..8).prop_map(|clients| {
        let clients = (0..).zip(clients);
        clients
            .map(|(key, (connections, depth, size))| closed(key, connections, depth, size))
            .collect()
    })
}

fn modest_rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_638_400), MIB..=16 * MIB]
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_638_400), Just(16 * MIB), MIB..48 * MIB]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_rate_is_kept_from_idle_on(seed: u64, rate in rate(), loads in mixed_load()) {
        let largest = loads.iter().map(|load| load.size.1).max().unwrap();
        let mut world = World::new(seed, rate, LATENESS, loads);
        world.run_until(START + 25 * SECOND);
        assert_contract(&world.done, rate, largest, START, world.now);
    }

    #[test]
    fn nobody_is_overtaken_within_a_connection(seed: u64, rate in rate(), loads in mixed_load()) {
        let depth_total: u64 = loads.iter().map(|load| match load.demand {
            Demand::Depth(depth) => depth * load.connections,
            Demand::Every(_) => 0,
        }).sum();
        let mut world = World::new(seed, rate, LATENESS, loads);
        world.run_until(START + 5 * SECOND);
        prop_assert_eq!(world.sent, world.done.len() as u64 + world.waiting() + world.in_service);
        prop_assert!(world.waiting() <= depth_total);
        // The store reorders within its millisecond; beyond it, order is the gate's.
        let mut done = world.done;
        done.sort_by_key(|one| (one.connection, one.serial));
        for pair in done.windows(2).filter(|pair| pair[0].connection == pair[1].connection) {
            prop_assert!(pair[0].at < pair[1].at + MILLI, "{:?}", pair);
        }
    }

    #[test]
    fn hungry_clients_share_equally(
        seed: u64,
        rate in modest_rate(),
        loads in mixed_load(),
    ) {
        let clients = loads.len() as u64;
        let mut world = World::new(seed, rate, PROMPT, loads);
        world.run_until(START + 25 * SECOND);
        let shares = shares(&world.done, clients, START + 5 * SECOND, world.now);
        let mean = shares.iter().sum::<u64>() / clients;
        for share in &shares {
            // One request of each client at each end, of 256 KiB at most.
            prop_assert!(share.abs_diff(mean) <= mean / 100 + MIB, "{:?}", shares);
        }
    }

    /// A client that asks for less than an equal share gets all of it; the rest is divided equally.
    #[test]
    fn shares_are_max_min_fair(
        seed: u64,
        modest_percent in 5..90_u64,
        modest_size in prop_oneof![Just(4 * KIB), Just(8 * KIB), Just(32 * KIB)],
        hungry in 2..6_u64,
    ) {
        let rate = 32 * MIB;
        let equal = rate / (hungry + 1);
        let modest = equal * modest_percent / 100;
        let pause = modest_size * SECOND / modest;
        let mut loads: Vec<_> = (0..hungry)
            .map(|key| {
                let size = (8 * KIB) << key.min(3);
                closed(key, key + 1, 32, (size, size))
            })
            .collect();
        let demand = Demand::Every(pause);
        loads.push(Load { client: hungry, connections: 1, demand, size: (modest_size, modest_size) });
        let mut world = World::new(seed, rate, PROMPT, loads);
        world.run_until(START + 12 * SECOND);
        let shares = shares(&world.done, hungry + 1, START + 2 * SECOND, START + 12 * SECOND);
        let (modest_share, hungry_shares) = shares.split_last().unwrap();
        prop_assert!(modest_share.abs_diff(modest * 10) <= modest / 5 + MIB, "{:?}", shares);
        let each = (rate - modest) * 10 / hungry;
        for share in hungry_shares {
            prop_assert!(share.abs_diff(each) <= each / 50 + MIB, "{:?} of {}", shares, each);
        }
    }

    #[test]
    fn a_change_is_in_force_at_once(
        seed: u64,
        before in prop_oneof![Just(1_638_400), Just(64 * MIB), MIB..64 * MIB],
        after in prop_oneof![Just(1_638_400), Just(64 * MIB), MIB..64 * MIB],
    ) {
        let size = 8 * KIB;
        let loads = (0..40).map(|key| closed(key, 1, 32, (size, size))).collect();
        let mut world = World::new(seed, before, LATENESS, loads);
        let change = START + 3 * SECOND;
        world.set_limits_at(change, after, None);
        world.run_until(change + 12 * SECOND);
        // Whatever was released before the change is answered within a millisecond.
        assert_contract(&world.done, after, size, change + MILLI, world.now);
        let first = shares(&world.done, 40, change + MILLI, change + 100 * MILLI);
        let bytes: u64 = first.iter().sum();
        let due = after / 10;
        // Late by at most two pumps, ahead by at most the catch-up of one.
        prop_assert!(bytes + after / 20 + size * 2 >= due, "{bytes} of {due}");
        prop_assert!(bytes <= due + after / 20 + size, "{bytes} of {due}");
    }

    /// Bytes and operations at once: neither is ever passed, and the tighter is used up.
    #[test]
    fn of_two_limits_the_tighter_is_kept(
        seed: u64,
        iops in prop_oneof![Just(100_u64), 20..2000_u64],
        size in prop_oneof![Just((8 * KIB, 8 * KIB)), Just((512, 64 * KIB)), Just((KIB, 16 * KIB))],
        // The rate's bytes for each operation, in per cent of the mean size.
        room in prop_oneof![20..80_u64, 125..500_u64],
        failing in prop_oneof![Just(0_u64), 5..20_u64],
    ) {
        let mean = size.0.midpoint(size.1);
        let rate = iops * mean * room / 100;
        let loads = (0..5).map(|key| closed(key, 2, 32, size)).collect();
        let world = World::new(seed, rate, LATENESS, loads).failing(failing);
        let mut world = world.counting(rate, iops);
        world.run_until(START + 25 * SECOND);
        let (done, now) = (&world.done, world.now);
        // Operations begin to be counted at the start, without the 50 ms that bytes have then, and
        // hold these up once: what that may come to is in the guarantee of `meters`.
        let held = (size.1 * SECOND / rate).max(SECOND / iops);
        let more = |limit: u64, largest: u64| largest + limit * held / SECOND + 1;
        assert_not_passed(done, |one| one.bytes, rate, more(rate, size.1), START, now);
        assert_not_passed(done, |one| one.operations, iops, more(iops, 1), START, now);
        let from = START + SECOND;
        assert_not_passed(done, |one| one.bytes, rate, size.1, from, now);
        assert_not_passed(done, |one| one.operations, iops, 1, from, now);
        match room < 100 {
            true => assert_kept(done, |one| one.bytes, rate, size.1, from, now),
            false => assert_kept(done, |one| one.operations, iops, 1, from, now),
        }
    }

    /// If operations bind, clients share those, whatever the sizes of their requests.
    #[test]
    fn operations_are_shared_equally_where_they_bind(seed: u64, iops in 200..2000_u64) {
        let sizes = [4 * KIB, 8 * KIB, 32 * KIB, 64 * KIB];
        let loads = (0..).zip(sizes).map(|(key, size)| closed(key, 2, 32, (size, size)));
        let rate = iops * 64 * KIB;
        let mut world = World::new(seed, rate, PROMPT, loads.collect()).counting(rate, iops);
        world.run_until(START + 12 * SECOND);
        let counted = |key| {
            let own = world.done.iter().filter(|one| one.client == key);
            own.filter(|one| one.at >= START + 2 * SECOND).count() as u64
        };
        for share in (0..4).map(counted) {
            prop_assert!(share.abs_diff(iops * 10 / 4) <= iops / 40 + 4, "{share} of {iops}");
        }
    }

    /// Large requests beside small ones bind bytes and operations by turns: one of the two is used
    /// up, clients have equal shares of what binds them, and neither limit is passed by more than
    /// 50 ms and the longest time that one request takes.
    #[test]
    fn of_two_limits_that_bind_by_turns_one_is_used_up(
        seed: u64,
        (rate, iops) in prop_oneof![
            Just((4 * MIB, 64_u64)),
            (1..16_u64, 16..1000_u64).prop_map(|(mib, iops)| (mib * MIB, iops)),
        ],
        large in prop_oneof![Just(MIB), Just(256 * KIB)],
        clients in (1..6_u64, 1..6_u64),
        lateness in prop_oneof![Just(PROMPT), Just(LATENESS)],
    ) {
        let of = |keys: std::ops::Range<u64>, depth, size| {
            keys.map(move |key| closed(key, 2, depth, (size, size)))
        };
        let all = clients.0 + clients.1;
        let loads = of(0..clients.0, 4, large).chain(of(clients.0..all, 64, 4 * KIB)).collect();
        let mut world = World::new(seed, rate, lateness, loads).counting(rate, iops);
        let (from, seconds) = (START + 10 * SECOND, 60);
        world.run_until(from + seconds * SECOND);
        let slowest = (large * SECOND / rate).max(SECOND / iops);
        let within = |of: fn(&Done) -> u64, limit: u64, largest: u64| {
            for window in [SECOND, 10 * SECOND] {
                // The store's millisecond lets replies of one window fall into the next.
                let (_, most) = worst_windows(&world.done, of, window, START, world.now);
                let time = window + 50 * MILLI + slowest + MILLI;
                let allowed = limit * time / SECOND + 1 + largest;
                assert!(most <= allowed, "{most} in {window} ns, {allowed} allowed");
            }
            let done = world.done.iter().filter(|one| one.at >= from);
            done.map(of).sum::<u64>() * 1000 / (limit * seconds)
        };
        let bytes = within(|one| one.bytes, rate, large);
        let operations = within(|one| one.operations, iops, 1);
        prop_assert!(bytes.max(operations) >= 950, "{bytes} and {operations} of 1000");
        let per_operation = rate / iops;
        let share = |key| {
            let own = world.done.iter().filter(|one| one.client == key && one.at >= from);
            own.map(|one| one.bytes.max(per_operation)).sum::<u64>()
        };
        let shares: Vec<_> = (0..all).map(share).collect();
        let mean = shares.iter().sum::<u64>() / all;
        for share in &shares {
            let turn = large.max(per_operation);
            prop_assert!(share.abs_diff(mean) <= mean / 50 + 4 * turn, "{shares:?}");
        }
    }

    /// Waiting requests are weighed anew when limits change: no client that was served much by the
    /// old weights waits until the others have caught up.
    #[test]
    fn a_change_of_operations_starves_nobody(
        seed: u64,
        before in prop_oneof![Just(20_u64), 2..10_000_u64],
        after in prop_oneof![Just(10_000_u64), 50..10_000_u64],
    ) {
        let sizes = [4 * KIB, 8 * KIB, 64 * KIB];
        let loads = (0..).zip(sizes).map(|(key, size)| closed(key, 4, 32, (size, size)));
        let rate = 16 * MIB;
        let mut world = World::new(seed, rate, PROMPT, loads.collect()).counting(rate, before);
        let change = START + 3 * SECOND;
        world.set_limits_at(change, rate, Some(after));
        world.run_until(change + 3 * SECOND);
        let part = rate / after;
        let share = |key: u64| {
            let own = world.done.iter().filter(|one| one.client == key && one.at >= change + MILLI);
            own.map(|one| one.bytes.max(part)).sum::<u64>()
        };
        let shares = [0, 1, 2].map(share);
        let mean = shares.iter().sum::<u64>() / 3;
        for share in shares {
            prop_assert!(share.abs_diff(mean) <= mean / 20 + 4 * part.max(64 * KIB), "{shares:?}");
        }
    }

    /// In a burst and after it the rule of the contract holds, with those who wait and late pumps.
    #[test]
    fn bursts_keep_the_contract_until_credits_are_spent(
        seed: u64,
        base in 20..500_u64,
        faster in 100..1000_u64,
        failing in prop_oneof![Just(0_u64), 5..20_u64],
    ) {
        let burst = base + faster;
        let of = Burst { base: Iops(base), credits: 12 * faster };
        let loads = (0..5).map(|key| closed(key, 2, 64, (512, 16 * KIB))).collect();
        let world = World::new(seed, 1 << 40, LATENESS, loads).failing(failing);
        let mut world = world.bursting(1 << 40, burst, of);
        let spent = START + 12 * SECOND;
        world.run_until(spent + 12 * SECOND);
        assert_kept(&world.done, |one| one.operations, burst, 1, START, spent - SECOND / 2);
        // The catch-up of the burst is left over at its end.
        assert_kept(&world.done, |one| one.operations, base, 1, spent + SECOND, world.now);
        prop_assert!(world.meters.credits(Mono(world.now)).unwrap() <= base / 20 + 1);
    }

    #[test]
    fn a_ceiling_on_operations_comes_and_goes_at_once(
        seed: u64,
        rate in MIB..16 * MIB,
        iops in 20..100_u64,
    ) {
        let size = 8 * KIB;
        let loads = (0..10).map(|key| closed(key, 1, 32, (size, size))).collect();
        let mut world = World::new(seed, rate, LATENESS, loads);
        let (on, off) = (START + 3 * SECOND, START + 15 * SECOND);
        world.set_limits_at(on, rate, Some(iops));
        world.set_limits_at(off, rate, None);
        world.run_until(off + 12 * SECOND);
        assert_kept(&world.done, |one| one.operations, iops, 1, on + MILLI, off);
        assert_contract(&world.done, rate, size, off + MILLI, world.now);
    }

    #[test]
    fn a_disconnect_gives_its_share_to_the_others(seed: u64, rate in rate(), gone in 0..4_u64) {
        let size = (4 * KIB, 32 * KIB);
        let loads = (0..4).map(|key| closed(key, 2, 32, size)).collect();
        let mut world = World::new(seed, rate, LATENESS, loads);
        let moment = START + 5 * SECOND;
        for connection in 0..2 {
            world.disconnect_at(moment, gone * 1000 + connection);
        }
        world.run_until(moment + 21 * SECOND);
        prop_assert!(world.cancelled > 0);
        let accounted = world.done.len() as u64 + world.cancelled + world.waiting();
        prop_assert_eq!(world.sent, accounted + world.in_service);
        assert_contract(&world.done, rate, size.1, START, world.now);
        let shares = shares(&world.done, 4, moment + SECOND, world.now);
        for (key, share) in (0..).zip(&shares) {
            let due = if key == gone { 0 } else { rate * 20 / 3 };
            prop_assert!(share.abs_diff(due) <= due / 50 + 256 * KIB, "{:?}", shares);
        }
    }

    #[test]
    fn failures_cost_the_contract_nothing(seed: u64, rate in rate(), one_in in 2..20_u64) {
        let size = (4 * KIB, 64 * KIB);
        let loads = (0..5).map(|key| closed(key, 2, 32, size)).collect();
        let mut world = World::new(seed, rate, LATENESS, loads).failing(one_in);
        world.run_until(START + 25 * SECOND);
        assert_contract(&world.done, rate, size.1, START, world.now);
    }

    /// Whatever the clock does, what goes is covered by the time that has really passed.
    #[test]
    fn a_jumping_clock_gives_no_burst(
        rate in MIB..128 * MIB,
        jumps in prop::collection::vec(0..100 * SECOND, 1..50),
    ) {
        let meters = Meters::new(Limits::of(BytesPerSecond(rate)));
        let mut queue = Queue::new();
        for _ in 0..10_000 {
            queue.push(&meters, ClientKey(1), 1, Cost::of(MIB), ());
        }
        let (mut latest, mut released) = (0, 0);
        for now in jumps {
            let before = released;
            queue.poll(&meters, Mono(now), &mut |(), _| {
                released += MIB;
                Departure::Went
            });
            let passed = now.saturating_sub(latest) + SECOND / 20;
            latest = now.max(latest);
            let most = u128::from(rate) * u128::from(passed) / u128::from(SECOND) + u128::from(MIB);
            prop_assert!(u128::from(released - before) <= most.min(u128::from(rate / 20 + 1 + MIB)));
        }
    }
}

/// The shapes of the measured table: forty jobs of depth 32, 8 KiB each.
fn demo(rate: u64, loads: Vec<Load>, jobs: impl Fn(&Done) -> u64) {
    let size = 8 * KIB;
    let turnover = 1280 * size * SECOND / rate;
    let mut world = World::new(42, rate, PROMPT, loads);
    let steady = START + 2 * turnover + SECOND;
    world.run_until(steady + (10 * turnover).max(11 * SECOND));
    assert_contract(&world.done, rate, size, START, world.now);

    let done: Vec<_> = world.done.iter().filter(|one| one.at >= steady).collect();
    let mut latencies: Vec<_> = done.iter().map(|one| one.at - one.sent).collect();
    latencies.sort_unstable();
    let mean = latencies.iter().sum::<u64>() / latencies.len() as u64;
    for percent in [5, 95] {
        let latency = latencies[latencies.len() * percent / 100];
        assert!(latency.abs_diff(mean) <= mean * 15 / 100, "p{percent} {latency}, mean {mean}");
    }
    let little = turnover.abs_diff(mean);
    assert!(little <= turnover / 50 + 2 * MILLI, "latency {mean}, outstanding ÷ IOPS {turnover}");

    let mut shares = BTreeMap::<u64, u64>::new();
    for one in &done {
        *shares.entry(jobs(one)).or_default() += one.bytes;
    }
    assert_eq!(shares.len(), 40);
    let equal = shares.values().sum::<u64>() / 40;
    for share in shares.values() {
        assert!(share.abs_diff(equal) <= equal / 10, "{shares:?}");
    }
}

const DEMO_RATES: [u64; 4] = [1_638_400, 16 * MIB, 48 * MIB, 64 * MIB];

#[test]
fn the_demo_with_forty_clients() {
    for rate in DEMO_RATES {
        let loads = (0..40).map(|key| closed(key, 1, 32, (8 * KIB, 8 * KIB))).collect();
        demo(rate, loads, |one| one.client);
    }
}

#[test]
fn the_demo_with_one_client_of_forty_connections() {
    for rate in DEMO_RATES {
        demo(rate, vec![closed(0, 40, 32, (8 * KIB, 8 * KIB))], |one| one.connection);
    }
}

#[test]
fn forty_connections_count_as_one_client() {
    let size = (8 * KIB, 8 * KIB);
    let loads = vec![closed(0, 40, 8, size), closed(1, 1, 32, size)];
    let mut world = World::new(7, 16 * MIB, LATENESS, loads);
    world.run_until(START + 12 * SECOND);
    let shares = shares(&world.done, 2, START + 2 * SECOND, START + 12 * SECOND);
    assert!(shares[0].abs_diff(shares[1]) <= shares[0] / 50, "{shares:?}");
}

/// The few small requests of one are all served long before the next large one of the other.
#[test]
fn a_small_shallow_client_keeps_its_half_beside_large_requests() {
    for (rate, depth) in [(16 * MIB, 16), (64 * MIB, 64)] {
        for large in [64 * KIB, 256 * KIB, MIB] {
            let small = closed(0, 1, depth, (4 * KIB, 4 * KIB));
            let loads = vec![small, closed(1, 4, 8, (large, large))];
            let mut world = World::new(11, rate, PROMPT, loads);
            world.run_until(START + 12 * SECOND);
            let shares = shares(&world.done, 2, START + 2 * SECOND, START + 12 * SECOND);
            let off = shares[0].abs_diff(shares[1]);
            assert!(off <= 2 * MIB * (rate / (16 * MIB)), "{rate}, {large}: {shares:?}");
        }
    }
}

/// A client with one request at a time waits for none of the long turns of the others, as long as
/// it has less than its share.
#[test]
fn a_client_with_one_request_at_a_time_is_served_before_busy_ones() {
    let size = (8 * KIB, 8 * KIB);
    for (busy, most) in [(1, 4 * MILLI), (39, 4 * MILLI)] {
        let mut loads = vec![closed(0, 1, 1, (4 * KIB, 4 * KIB))];
        loads.extend((1..=busy).map(|key| closed(key, 1, 32, size)));
        let mut world = World::new(5, 64 * MIB, PROMPT, loads);
        world.run_until(START + 12 * SECOND);
        let own = world.done.iter().filter(|one| one.client == 0);
        let (took, count) = own.fold((0, 0), |sum, one| (sum.0 + one.at - one.sent, sum.1 + 1));
        assert!(took / count <= most, "beside {busy}: {} us", took / count / 1000);
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let run = || {
        let loads = (0..3).map(|key| closed(key, 2, 8, (1, 64 * KIB))).collect();
        let mut world = World::new(3, 8 * MIB, LATENESS, loads);
        world.run_until(START + SECOND);
        world.done.iter().map(|one| (one.serial, one.at)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

/// If a ceiling is lower than the base rate of a volume with bursts, the ceiling limits operations.
#[test]
fn under_a_ceiling_below_the_base_shares_are_equal() {
    let Limits { rate, iops, burst } =
        v1(1 << 40).under(Ceiling { rate: None, iops: Some(Iops(200)) });
    let sizes = [256 * KIB, 4 * KIB];
    let loads = (0..).zip(sizes).map(|(key, size)| closed(key, 1, 32, (size, size))).collect();
    let world = World::new(1, rate.0, PROMPT, loads);
    let mut world = world.bursting(rate.0, iops.unwrap().0, burst.unwrap());
    world.run_until(START + 22 * SECOND);
    let done = |client| world.done.iter().filter(|one| one.client == client).count();
    let (large, small) = (done(0), done(1));
    assert!(large.abs_diff(small) <= large / 20, "{large} and {small}");
    assert!((large + small).abs_diff(200 * 22) <= 200, "{large} and {small}");
}
