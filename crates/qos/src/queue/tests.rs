use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::meter::NEVER;
use crate::rate::{BytesPerSecond, Iops};
use core::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const START: Mono = Mono::from_secs(1);

/// A rate that lets go whatever waits.
fn open() -> Meters {
    Meters::new(Limits::of(BytesPerSecond(u64::MAX)))
}

/// A rate that lets nothing go.
fn shut() -> Meters {
    Meters::new(Limits::of(BytesPerSecond::ZERO))
}

fn released<T>(queue: &mut Queue<T>, meter: &Meters, now: Mono) -> Vec<T> {
    let mut tokens = Vec::new();
    queue.poll(meter, now, &mut |token, _| {
        tokens.push(token);
        Departure::Went
    });
    tokens
}

fn client(key: u128) -> ClientKey {
    ClientKey(key)
}

/// If operations bind, a client of small requests gets as many as a client of large ones; if bytes
/// bind, as many bytes.
#[test]
fn shares_are_of_what_binds() {
    let served = |limits: Limits, seconds: u64| {
        let (meters, mut queue) = (Meters::new(limits), Queue::new());
        for _ in 0..640 {
            queue.push(&meters, client(1), 1, Cost::of(KIB), 0);
            queue.push(&meters, client(2), 2, Cost::of(64 * KIB), 1);
        }
        let end = Mono(START.0 + seconds * 1_000_000_000);
        let (mut now, mut counts) = (START, [0_u64; 2]);
        while now < end {
            let again = queue.poll(&meters, now, &mut |client: usize, _| {
                counts[client] += 1;
                Departure::Went
            });
            now = again.unwrap();
        }
        counts
    };
    let rate = BytesPerSecond(MIB);
    let [small, large] = served(Limits::of(rate), 1);
    assert!(small.abs_diff(512) <= 64 && large.abs_diff(8) <= 1, "{small} and {large}");
    let [small, large] = served(Limits { iops: Some(Iops(10)), ..Limits::of(rate) }, 20);
    assert!(small.abs_diff(100) <= 1 && large.abs_diff(100) <= 1, "{small} and {large}");
}

/// Under limits so far apart that an operation would weigh all that can be counted, turns still
/// come round.
#[test]
fn absurd_limits_leave_everybody_a_turn() {
    let meters =
        Meters::new(Limits { iops: Some(Iops(1)), ..Limits::of(BytesPerSecond(u64::MAX)) });
    let mut queue = Queue::new();
    for _ in 0..100 {
        for key in 0..2 {
            queue.push(&meters, client(key), 1, Cost::of(KIB), key);
        }
    }
    let mut counts = [0_u64; 2];
    for second in 1..=100 {
        let release = &mut |key: u128, _| {
            counts[usize::from(key == 1)] += 1;
            Departure::Went
        };
        queue.poll(&meters, Mono::from_secs(second), release);
    }
    assert!(counts[0] >= 50 && counts[0].abs_diff(counts[1]) <= 1, "{counts:?}");
}

#[test]
fn whoever_parks_after_it_gave_back_a_charge_asks_for_the_others() {
    let limits = Limits { iops: Some(Iops(1)), ..Limits::of(BytesPerSecond(KIB)) };
    let (meters, mut queue) = (Meters::new(limits), Queue::new());
    assert!(meters.try_take(Cost::of(0), START).is_some());
    assert!(queue.push(&meters, client(1), 1, Cost::of(1), 'a'));
    assert!(!queue.push(&meters, client(1), 1, Cost::of(1), 'b'), "it waits behind the first");
    // This is the state left by a thread that was about to be refused when the first was parked.
    meters.set_waiting(false);
    assert!(meters.try_take(Cost::of(KIB), START).is_none());
    meters.set_waiting(true);
    assert!(queue.push(&meters, client(1), 1, Cost::of(KIB), 'c'));
    assert!(!queue.push(&meters, client(1), 1, Cost::of(KIB), 'd'));
}

#[test]
fn what_waits_is_released_with_what_it_was_charged() {
    let mut queue = Queue::new();
    let counted = Limits { iops: Some(Iops(1000)), ..Limits::of(BytesPerSecond(u64::MAX)) };
    for (limits, operations) in [(Limits::of(counted.rate), 0), (counted, 1)] {
        let meters = Meters::new(limits);
        queue.push(&meters, client(1), 1, Cost::of(KIB), ());
        let charged = |(), charged| {
            assert_eq!(charged, Cost { bytes: KIB, operations });
            Departure::Went
        };
        assert_eq!(queue.poll(&meters, START, &mut { charged }), None);
    }
}

#[test]
fn nobody_waits_at_first() {
    let mut queue = Queue::<u8>::default();
    let meter = open();
    assert_eq!((queue.len(), queue.parked_cost(), queue.is_empty()), (0, 0, true));
    assert_eq!(queue.poll(&meter, START, &mut |_, _| Departure::Went), None);
    assert!(meter.try_take(Cost::of(1), START).is_some());
}

#[test]
fn the_fast_path_is_closed_exactly_while_somebody_waits() {
    let (mut queue, meter) = (Queue::new(), open());
    queue.push(&meter, client(1), 1, Cost::of(KIB), "a");
    queue.push(&meter, client(2), 2, Cost::of(KIB), "b");
    assert!(meter.try_take(Cost::of(1), START).is_none());
    queue.cancel_connection(&meter, 1, &mut |token| assert_eq!(token, "a"));
    assert!(meter.try_take(Cost::of(1), START).is_none());
    assert_eq!(released(&mut queue, &meter, START), ["b"]);
    assert!(meter.try_take(Cost::of(1), START).is_some());
}

#[test]
fn cancelling_the_last_waiter_opens_the_fast_path() {
    let (mut queue, meter) = (Queue::new(), open());
    queue.push(&meter, client(1), 1, Cost::of(KIB), ());
    queue.cancel_connection(&meter, 2, &mut |()| panic!("nothing waits there"));
    assert!(meter.is_waiting());
    queue.cancel_connection(&meter, 1, &mut |()| ());
    assert!(!meter.is_waiting());
}

#[test]
fn it_says_when_to_ask_again() {
    let mut queue = Queue::new();
    let meter = Meters::new(Limits::of(BytesPerSecond(MIB)));
    assert!(meter.try_take(Cost::of(MIB), START).is_some());
    queue.push(&meter, client(1), 1, Cost::of(MIB), 'a');
    queue.push(&meter, client(1), 1, Cost::of(MIB), 'b');
    let mut tokens = Vec::new();
    let mut poll = |now| {
        queue.poll(&meter, now, &mut |token, _| {
            tokens.push(token);
            Departure::Went
        })
    };
    assert_eq!(poll(START), Some(Mono::from_millis(1950)));
    assert_eq!(poll(Mono::from_millis(1950)), Some(Mono::from_millis(2950)));
    assert_eq!(poll(Mono::from_millis(2949)), Some(Mono::from_millis(2950)));
    assert_eq!(poll(Mono::from_millis(2999)), None);
    assert_eq!(tokens, ['a', 'b']);
}

#[test]
fn only_a_new_slice_helps_a_stopped_volume() {
    let (mut queue, meter) = (Queue::new(), shut());
    queue.push(&meter, client(1), 1, Cost::of(KIB), 'a');
    assert_eq!(queue.poll(&meter, START, &mut |_, _| panic!("stopped")), Some(NEVER));
    meter.set(Limits::of(BytesPerSecond(MIB)), START);
    assert_eq!(released(&mut queue, &meter, START), ['a']);
}

#[test]
fn equal_requests_alternate_between_clients_and_between_connections() {
    let (mut queue, meter) = (Queue::new(), open());
    for request in 0..3 {
        for (key, connection) in [(1, 10), (1, 11), (2, 20)] {
            queue.push(
                &meter,
                client(key),
                connection,
                Cost::of(TURN_BYTES),
                (connection, request),
            );
        }
    }
    let order = released(&mut queue, &meter, START);
    assert_eq!(
        order,
        [(10, 0), (20, 0), (11, 0), (20, 1), (10, 1), (20, 2), (11, 1), (10, 2), (11, 2)]
    );
}

#[test]
fn in_its_turn_a_connection_is_served_what_the_rate_yields_meanwhile() {
    for (rate, requests) in [(MIB, 1), (16 * MIB, 4), (24 * MIB, 6), (48 * MIB, 8), (u64::MAX, 8)] {
        let (mut queue, meter) = (Queue::new(), Meters::new(Limits::of(BytesPerSecond(rate))));
        for request in 0..48_u64 {
            queue.push(
                &meter,
                client((request % 2).into()),
                request % 2,
                Cost::of(8 * KIB),
                request % 2,
            );
        }
        let mut order = Vec::new();
        let mut now = START;
        while let Some(again) = queue.poll(&meter, now, &mut |key, _| {
            order.push(key);
            Departure::Went
        }) {
            now = again;
        }
        let turns: Vec<_> = order.chunk_by(|one, next| one == next).map(<[_]>::len).collect();
        // The first turns are what came first, the last what is left.
        let whole = &turns[2..turns.len() - 2];
        assert!(whole.iter().all(|&turn| turn == requests), "{rate}: {turns:?}");
    }
}

#[test]
fn who_has_less_than_its_share_is_to_be_asked_about_at_once() {
    let mut queue = Queue::new();
    let meter = Meters::new(Limits::of(BytesPerSecond(8 * KIB)));
    assert!(queue.push(&meter, client(1), 1, Cost::of(8 * KIB), 1), "the first to wait");
    assert!(!queue.push(&meter, client(1), 1, Cost::of(8 * KIB), 1), "behind itself");
    assert!(!queue.push(&meter, client(2), 2, Cost::of(8 * KIB), 2), "behind another");
    assert_eq!(released(&mut queue, &meter, START), [1]);
    assert!(!queue.push(&meter, client(3), 3, Cost::of(8 * KIB), 3), "behind who came before");
    assert_eq!(released(&mut queue, &meter, Mono::from_secs(3)), [2]);
    assert_eq!(released(&mut queue, &meter, Mono::from_secs(4)), [3]);
    // Client 1 was served more than any party that joins at the clock.
    assert!(queue.push(&meter, client(4), 4, Cost::of(8 * KIB), 4), "before one that had a turn");
}

#[test]
fn small_requests_get_as_many_bytes_as_large_ones() {
    let (mut queue, meter) = (Queue::new(), open());
    for _ in 0..4 {
        queue.push(&meter, client(1), 1, Cost::of(64 * KIB), 1);
    }
    for _ in 0..64 {
        queue.push(&meter, client(2), 2, Cost::of(4 * KIB), 2);
    }
    let order = released(&mut queue, &meter, START);
    for round in order.chunks(17) {
        assert_eq!(round.iter().filter(|&&key| key == 1).count(), 1);
    }
}

#[test]
fn an_absent_client_saves_nothing_up() {
    let mut queue = Queue::new();
    // One request a second.
    let meter = Meters::new(Limits::of(BytesPerSecond(8 * KIB)));
    assert!(meter.try_take(Cost::of(8 * KIB), START).is_some());
    for (key, connection) in [(1, 1), (2, 2), (3, 3)] {
        queue.push(&meter, client(key), connection, Cost::of(8 * KIB), key);
    }
    for _ in 0..20 {
        queue.push(&meter, client(1), 1, Cost::of(8 * KIB), 1);
        queue.push(&meter, client(2), 2, Cost::of(8 * KIB), 2);
    }
    let mut order = Vec::new();
    for second in 2..20 {
        // The third client was served at first, and comes back after ten turns of the others.
        if second == 14 {
            for _ in 0..10 {
                queue.push(&meter, client(3), 3, Cost::of(8 * KIB), 3);
            }
        }
        order.extend(released(&mut queue, &meter, Mono::from_secs(second)));
    }
    let before = [1, 2, 3, 1, 2, 1, 2, 1, 2, 1, 2, 1];
    assert_eq!(order, [&before[..], &[2, 3, 1, 2, 3, 1]].concat());
}

#[test]
fn coming_and_going_gains_nothing() {
    let mut queue = Queue::new();
    let meter = Meters::new(Limits::of(BytesPerSecond(8 * KIB)));
    assert!(meter.try_take(Cost::of(8 * KIB), START).is_some());
    for _ in 0..30 {
        queue.push(&meter, client(1), 1, Cost::of(8 * KIB), 1);
        queue.push(&meter, client(2), 2, Cost::of(8 * KIB), 2);
    }
    let mut order = Vec::new();
    for second in 2..32 {
        // The third has one request waiting at a time, and a new connection every second.
        queue.cancel_connection(&meter, 100 + second - 1, &mut |_| ());
        queue.push(&meter, client(3), 100 + second, Cost::of(8 * KIB), 3);
        order.extend(released(&mut queue, &meter, Mono::from_secs(second)));
    }
    let third = order.iter().filter(|&&key| key == 3).count();
    assert!((9..=10).contains(&third), "{order:?}");
}

#[test]
fn a_request_that_costs_nothing_still_ends_its_turn() {
    let mut queue = Queue::new();
    // A rate at which a turn is one byte.
    let meter = Meters::new(Limits::of(BytesPerSecond(500)));
    for request in 0..4 {
        queue.push(&meter, client(1), 1, Cost::of(0), (1, request));
        queue.push(&meter, client(2), 2, Cost::of(0), (2, request));
    }
    let order = released(&mut queue, &meter, START);
    let turns: Vec<_> = order.iter().map(|token| token.0).collect();
    assert_eq!(turns, [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_request_above_the_largest_io_is_served_and_counted() {
    let (mut queue, meter) = (Queue::new(), open());
    queue.push(&meter, client(1), 1, Cost::of(u64::MAX), 'a');
    queue.push(&meter, client(1), 1, Cost::of(1), 'b');
    assert_eq!(queue.parked_cost(), u64::MAX);
    let cheap = Meters::new(Limits::of(BytesPerSecond(1)));
    assert_eq!(released(&mut queue, &cheap, START), ['a']);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_connection_may_carry_several_clients() {
    let (mut queue, meter) = (Queue::new(), open());
    for key in 1..=3 {
        queue.push(&meter, client(key), 7, Cost::of(KIB), key);
        queue.push(&meter, client(key), 8, Cost::of(KIB), key + 10);
    }
    let mut cancelled = Vec::new();
    queue.cancel_connection(&meter, 7, &mut |token| cancelled.push(token));
    cancelled.sort_unstable();
    assert_eq!(cancelled, [1, 2, 3]);
    assert_eq!((queue.len(), queue.parked_cost()), (3, 3 * KIB));
    assert_eq!(released(&mut queue, &meter, START), [11, 12, 13]);
}

#[test]
fn a_cancel_amid_a_turn_leaves_clients_even() {
    for polls in 1..40 {
        let (mut queue, rate) = (Queue::new(), 64 * MIB);
        let meter = Meters::new(Limits::of(BytesPerSecond(rate)));
        // All of the credit, so that each poll from now on lets one request go.
        assert!(meter.try_take(Cost::of(rate / 20), START).is_some());
        for _ in 0..32 {
            for (key, connection) in [(1, 10), (1, 11), (2, 20)] {
                queue.push(&meter, client(key), connection, Cost::of(8 * KIB), key);
            }
        }
        let mut got = [0_u64; 2];
        for poll in 0..polls {
            let now = Mono(START.0 + poll * 122_071);
            let went = released(&mut queue, &meter, now);
            assert_eq!(went.len(), 1);
            got[usize::from(went == [2])] += 8 * KIB;
        }
        let gone =
            32 - queue.connections.iter().find(|one| one.1.id == 10).unwrap().1.waiters.len();
        let mut cancelled = 0;
        queue.cancel_connection(&meter, 10, &mut |_| cancelled += 1);
        assert_eq!(cancelled + gone, 32);
        for key in released(&mut queue, &meter, Mono::from_secs(60)) {
            let at = usize::from(key == 2);
            got[at] += 8 * KIB;
            let both_wait = got.iter().all(|&got| got < 32 * 8 * KIB);
            assert!(!both_wait || got[0].abs_diff(got[1]) <= TURN_BYTES, "{polls}: {got:?}");
        }
    }
}

#[test]
fn a_drained_queue_gives_its_memory_back() {
    let (mut queue, meter) = (Queue::new(), open());
    for round in 0..2 {
        for connection in 0..10_000_u64 {
            queue.push(&meter, client(u128::from(connection % 100)), connection, Cost::of(KIB), ());
        }
        if round == 0 {
            assert_eq!(released(&mut queue, &meter, START).len(), 10_000);
        } else {
            for connection in 0..10_000 {
                queue.cancel_connection(&meter, connection, &mut |()| ());
            }
        }
        assert_eq!((queue.len(), queue.parked_cost()), (0, 0));
        let kept = [
            queue.connections.capacity(),
            queue.clients.capacity(),
            queue.by_connection.len(),
            queue.by_client.len(),
        ];
        assert_eq!(kept, [0; 4]);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push { client: u128, connection: u64, cost: u64 },
    Cancel { connection: u64 },
    Poll { millis: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u128, 0..3_u64, prop_oneof![0..=MIB, Just(8 * KIB)])
            .prop_map(|(client, connection, cost)| Step::Push { client, connection, cost }),
        1 => (0..12_u64).prop_map(|connection| Step::Cancel { connection }),
        3 => (0..200_u64).prop_map(|millis| Step::Poll { millis }),
    ]
}

proptest! {
    /// Whatever comes in goes out once, in order within its connection, and the counters agree.
    #[test]
    fn everything_leaves_once_and_in_order(
        steps in prop::collection::vec(step(), 1..200),
        rate in prop_oneof![Just(4 * MIB), Just(64 * MIB)],
    ) {
        let mut queue = Queue::new();
        let meter = Meters::new(Limits::of(BytesPerSecond(rate)));
        let mut now = START;
        let mut waiting: Vec<(u64, u64, u64)> = Vec::new();
        for (serial, step) in (0_u64..).zip(steps) {
            match step {
                Step::Push { client: key, connection, cost } => {
                    // Three connections of its own for each client.
                    let connection = connection * 4 + u64::try_from(key).unwrap();
                    queue.push(&meter, client(key), connection, Cost::of(cost), (connection, serial));
                    waiting.push((connection, serial, cost));
                }
                Step::Cancel { connection } => {
                    let mut cancelled = Vec::new();
                    queue.cancel_connection(&meter, connection, &mut |token| cancelled.push(token));
                    let gone: Vec<_> = waiting
                        .extract_if(.., |waiter| waiter.0 == connection)
                        .map(|waiter| (waiter.0, waiter.1))
                        .collect();
                    prop_assert_eq!(cancelled, gone);
                }
                Step::Poll { millis } => {
                    now = Mono(now.0 + millis * 1_000_000);
                    for token in released(&mut queue, &meter, now) {
                        let first = waiting.iter().position(|waiter| waiter.0 == token.0).unwrap();
                        prop_assert_eq!(waiting.remove(first).1, token.1);
                    }
                }
            }
            prop_assert_eq!(queue.len(), waiting.len());
            prop_assert_eq!(queue.parked_cost(), waiting.iter().map(|waiter| waiter.2).sum::<u64>());
            prop_assert_eq!(meter.is_waiting(), !waiting.is_empty());
        }
    }

    /// While two clients both wait, what they were served differs by at most one turn or
    /// largest request of each.
    #[test]
    fn backlogged_clients_stay_even(
        costs in prop::collection::vec(prop::collection::vec(1_u64..=256 * KIB, 40), 2..6),
        connections in 1_u64..5,
    ) {
        let (mut queue, meter) = (Queue::new(), open());
        for (key, costs) in (0_u64..).zip(&costs) {
            for (serial, &cost) in (0_u64..).zip(costs) {
                let connection = key * 100 + serial % connections;
                queue.push(&meter, client(key.into()), connection, Cost::of(cost), (key, cost));
            }
        }
        let mut left: Vec<usize> = costs.iter().map(Vec::len).collect();
        let mut got = std::vec![0_u64; costs.len()];
        for (key, cost) in released(&mut queue, &meter, START) {
            let key = usize::try_from(key).unwrap();
            got[key] += cost;
            left[key] -= 1;
            if left.contains(&0) {
                break;
            }
            let spread = got.iter().max().unwrap() - got.iter().min().unwrap();
            prop_assert!(spread <= 512 * KIB, "{:?}", got);
        }
    }
}

/// Polls with some connections stalled: answers which tokens went.
fn polled_but(queue: &mut Queue<u64>, meters: &Meters, now: Mono, stalled: &[u64]) -> Vec<u64> {
    let mut went = Vec::new();
    queue.poll(meters, now, &mut |token, _| {
        // The hundreds of a token name its connection.
        if stalled.contains(&(token / 100)) {
            return Departure::Stalled(token);
        }
        went.push(token);
        Departure::Went
    });
    went
}

#[test]
fn a_stalled_connection_is_charged_nothing_and_keeps_nobody_waiting() {
    let (meters, mut queue) = (Meters::new(Limits::of(BytesPerSecond(1000))), Queue::new());
    let now = Mono::from_secs(10);
    let push = |queue: &mut Queue<u64>, token: u64, client: u128| {
        queue.push(&meters, ClientKey(client), token / 100, Cost::of(10), token)
    };
    for token in [100, 101, 200] {
        push(&mut queue, token, 1);
    }
    push(&mut queue, 300, 2);
    assert_eq!(polled_but(&mut queue, &meters, now, &[1]), [200, 300]);
    assert!(queue.is_stalled(client(1), 1) && !queue.is_stalled(client(1), 2));
    assert_eq!((queue.len(), queue.ready()), (2, 0));
    assert!(!meters.is_waiting(), "newcomers go at once");
    // 50 bytes of credit and one request, of which two went.
    let newcomers = (0..9).map_while(|_| meters.try_take(Cost::of(10), now)).count();
    assert_eq!(newcomers, 4);
    assert!(queue.resume(&meters, 1) && !queue.resume(&meters, 1));
    assert!(meters.is_waiting());
    assert_eq!(polled_but(&mut queue, &meters, now, &[]), [] as [u64; 0]);
    assert_eq!(polled_but(&mut queue, &meters, Mono(now.0 + 20_000_000), &[]), [100, 101]);
    assert!(queue.is_empty() && !meters.is_waiting());
}

#[test]
fn a_stalled_connection_keeps_its_order_and_gains_nothing() {
    let (meters, mut queue) = (Meters::new(Limits::of(BytesPerSecond(1_000_000))), Queue::new());
    let at = |milli: u64| Mono(Mono::from_secs(10).0 + milli * 1_000_000);
    let (mut next, mut waiting, mut went) = (0_u64, [0_usize; 2], [0_u64; 2]);
    for milli in 0..4000 {
        for (at, waiting) in waiting.iter_mut().enumerate() {
            while *waiting < 20 {
                let (key, connection) = (ClientKey(at as u128), at as u64);
                queue.push(&meters, key, connection, Cost::of(1000), (next, at));
                (next, *waiting) = (next + 1, *waiting + 1);
            }
        }
        // The first takes nothing for a second.
        let stalled = (1000..2000).contains(&milli);
        if milli == 2000 {
            assert!(queue.resume(&meters, 0));
        }
        let mut last = None;
        queue.poll(&meters, at(milli), &mut |(token, at), _| {
            if stalled && at == 0 {
                return Departure::Stalled((token, at));
            }
            if at == 0 {
                assert!(last < Some(token), "in order");
                last = Some(token);
            }
            waiting[at] -= 1;
            went[at] += u64::from(milli >= 2000);
            Departure::Went
        });
        queue_keeps(&mut queue, &meters, milli);
    }
    let [one, two] = went;
    assert!(one.abs_diff(two) < 100, "{one} and {two} after the stall");
}

/// The counts agree with what is there.
fn queue_keeps<T>(queue: &mut Queue<T>, meters: &Meters, milli: u64) {
    let waiting: usize = queue.connections.iter().map(|(_, one)| one.waiters.len()).sum();
    let stalled = queue.connections.iter().filter(|(_, one)| one.stalled);
    let stalled: usize = stalled.map(|(_, one)| one.waiters.len()).sum();
    assert_eq!((queue.len, queue.stalled), (waiting, stalled), "at {milli}");
    for (at, client) in &queue.clients {
        let of = queue.connections.iter().filter(|(_, one)| one.client == at && one.stalled);
        assert_eq!(client.stalled, of.count(), "at {milli}");
    }
    assert_eq!(meters.is_waiting(), queue.ready() > 0, "at {milli}");
}

#[test]
fn a_stalled_connection_may_be_cancelled_and_survives_other_limits() {
    let (meters, mut queue) = (Meters::new(Limits::of(BytesPerSecond(1000))), Queue::new());
    let now = Mono::from_secs(10);
    for token in [100, 101, 200, 201] {
        queue.push(&meters, ClientKey(1), token / 100, Cost::of(10), token);
    }
    assert_eq!(polled_but(&mut queue, &meters, now, &[1, 2]), [] as [u64; 0]);
    meters.set(Limits { iops: Some(Iops(100)), ..Limits::of(BytesPerSecond(1000)) }, now);
    queue.reweigh(&meters);
    assert!(
        queue.is_stalled(client(1), 1) && queue.is_stalled(client(1), 2) && !meters.is_waiting()
    );
    let mut cancelled = Vec::new();
    queue.cancel_connection(&meters, 1, &mut |token| cancelled.push(token));
    assert_eq!((cancelled, queue.len(), queue.ready()), (Vec::from([100, 101]), 2, 0));
    assert!(queue.resume(&meters, 2));
    let later = Mono(now.0 + 50_000_000);
    assert_eq!(polled_but(&mut queue, &meters, later, &[]), [200, 201]);
    assert!(queue.is_empty());
}

/// The requests of 64 KiB that each of two connections of a client gets served in 20 s. The second
/// one always has 32 of them waiting, and the first one has what `park` parks after each.
fn shares_of_connections(park: impl Fn(&mut Queue<u64>, &Meters)) -> [u64; 2] {
    let limits = Limits { iops: None, ..Limits::of(BytesPerSecond(MIB)) };
    let (meters, mut queue) = (Meters::new(limits), Queue::new());
    (0..32).for_each(|_| park_one(&mut queue, &meters, 1, u64::MAX));
    park(&mut queue, &meters);
    let (mut now, mut went) = (START, [0; 2]);
    while now < Mono(START.0 + 20_000_000_000) {
        let mut gone = Vec::new();
        let next = queue.poll(&meters, now, &mut |connection, _| {
            gone.push(connection);
            Departure::Went
        });
        for connection in gone {
            went[usize::try_from(connection).unwrap()] += 1;
            match connection {
                0 => park(&mut queue, &meters),
                _ => park_one(&mut queue, &meters, connection, u64::MAX),
            }
        }
        now = next.unwrap();
    }
    went
}

fn park_one(queue: &mut Queue<u64>, meters: &Meters, connection: u64, serial: u64) {
    let order = Order { serial, standing: Standing::New };
    let cost = Cost::of(64 * KIB);
    let entry = Entry { client: client(1), connection, cost, token: connection };
    queue.push_in_order(meters, entry, order);
}

#[test]
fn cancelling_gains_no_share_among_the_connections_of_a_client() {
    const CANCELLED: u64 = 7;
    let honest = shares_of_connections(|queue, meters| park_one(queue, meters, 0, u64::MAX));
    let alone = shares_of_connections(|queue, meters| {
        park_one(queue, meters, 0, CANCELLED);
        assert!(queue.cancel(meters, client(1), 0, CANCELLED).is_some());
        park_one(queue, meters, 0, u64::MAX);
    });
    let in_front = shares_of_connections(|queue, meters| {
        park_one(queue, meters, 0, CANCELLED);
        park_one(queue, meters, 0, u64::MAX);
        assert!(queue.cancel(meters, client(1), 0, CANCELLED).is_some());
    });
    for [one, other] in [honest, alone, in_front] {
        assert!(one.abs_diff(other) <= 1 && one + other > 300, "{one} and {other}");
    }
}

#[test]
fn a_connection_whose_only_stalled_request_is_cancelled_is_not_stalled_any_more() {
    let (meters, mut queue) = (Meters::new(Limits::of(BytesPerSecond(MIB))), Queue::new());
    let park = |queue: &mut Queue<u64>, connection: u64, serial| {
        let order = Order { serial, standing: Standing::New };
        let (client, cost) = (client(connection.into()), Cost::of(512));
        let entry = Entry { client, connection, cost, token: connection * 100 + serial };
        queue.push_in_order(&meters, entry, order);
    };
    // The other client keeps the queue from being emptied.
    park(&mut queue, 1, 1);
    park(&mut queue, 2, 2);
    assert_eq!(polled_but(&mut queue, &meters, START, &[1, 2]), [] as [u64; 0]);
    assert_eq!(queue.cancel(&meters, client(1), 1, 1), Some(101));
    queue_keeps(&mut queue, &meters, 1);
    park(&mut queue, 1, 3);
    queue_keeps(&mut queue, &meters, 3);
    assert_eq!(released(&mut queue, &meters, START), [103]);
}

#[test]
fn the_request_behind_a_cancelled_one_goes_when_its_turn_comes() {
    let (meters, mut queue) = (Meters::new(Limits::of(BytesPerSecond(1000))), Queue::new());
    let order = |serial| Order { serial, standing: Standing::New };
    // Connection 1 has two small requests behind a large one, and connection 2 has small ones.
    for (serial, (connection, bytes)) in
        [(1, 1 << 20), (2, 100), (1, 100), (2, 100), (1, 100), (2, 100)].into_iter().enumerate()
    {
        let (serial, cost) = (serial as u64, Cost::of(bytes));
        let entry = Entry { client: client(1), connection, cost, token: serial };
        queue.push_in_order(&meters, entry, order(serial));
    }
    assert_eq!(queue.cancel(&meters, client(1), 1, 0), Some(0));
    let mut went = Vec::new();
    let mut now = START;
    while !queue.is_empty() {
        went.extend(released(&mut queue, &meters, now));
        now = now + Duration::from_millis(100);
    }
    assert_eq!(went, [1, 2, 3, 4, 5], "the connections take turns again");
}
