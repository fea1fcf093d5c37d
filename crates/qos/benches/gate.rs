//! The cost of one admission with 1,000 of 10,000 volumes active: the meters are spread over more
//! memory than the first-level caches hold, as they are in a server.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use weir_core::Mono;
use weir_qos::{
    BytesPerSecond, ClientKey, Cost, Departure, Iops, Limits, Meters, Queue, Share, Shares,
};

const VOLUMES: usize = 10_000;
const ACTIVE: usize = 1_000;
const COST: Cost = Cost::of(8 << 10);

/// The active volumes in an order without a pattern that a prefetcher could follow.
fn active() -> Vec<usize> {
    let mut order: Vec<usize> = (0..VOLUMES).collect();
    let mut state = 1_u64;
    for at in (1..VOLUMES).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let with = usize::try_from(state >> 33).unwrap_or(0) % (at + 1);
        order.swap(at, with);
    }
    order.truncate(ACTIVE);
    order
}

fn meters(limits: Limits) -> Vec<Meters> {
    (0..VOLUMES).map(|_| Meters::new(limits)).collect()
}

fn admission(criterion: &mut Criterion) {
    let rate = Limits::of(BytesPerSecond::from_mib(16));
    admissions(criterion, "admit, 1,000 of 10,000 volumes active", rate);
    let counted = Limits { iops: Some(Iops(4_000)), ..rate };
    admissions(criterion, "admit, the same with IOPS counted", counted);
}

fn admissions(criterion: &mut Criterion, name: &str, limits: Limits) {
    let order = active();
    // One round over the active volumes takes 10 ms of virtual time, and 8 KiB at 16 MiB/s take
    // half a millisecond: every admission succeeds and is charged.
    let meters = meters(limits);
    let (mut at, mut now, mut refused) = (0, Mono::from_secs(1), 0_u64);
    criterion.bench_function(name, |bench| {
        bench.iter(|| {
            at = if at + 1 == ACTIVE { 0 } else { at + 1 };
            now = Mono(now.0 + 10_000);
            refused +=
                u64::from(black_box(&meters[order[at]]).try_take(black_box(COST), now).is_none());
        });
    });
    assert_eq!(refused, 0, "the bench measures admissions");
}

fn waiting(criterion: &mut Criterion) {
    let meters = Meters::new(Limits::of(BytesPerSecond::from_mib(16)));
    let mut queue = Queue::new();
    for client in 0..40_u32 {
        for _ in 0..32 {
            queue.push(&meters, ClientKey(client.into()), client.into(), COST, client);
        }
    }
    let mut now = Mono::from_secs(1);
    criterion.bench_function("release and park again, 40 clients x 32 waiting", |bench| {
        let mut released = Vec::new();
        bench.iter(|| {
            // The time that one request takes at this rate.
            now = Mono(now.0 + 488_282);
            queue.poll(&meters, now, &mut |client, _| {
                released.push(client);
                Departure::Went
            });
            for client in released.drain(..) {
                queue.push(&meters, ClientKey(client.into()), client.into(), COST, client);
            }
        });
    });
}

/// The same for the only volume of a pool whose budget never binds.
fn waiting_in_a_pool(criterion: &mut Criterion) {
    let meters = Meters::new(Limits::of(BytesPerSecond::from_mib(16)));
    let budget = Meters::new(Limits::of(BytesPerSecond(u64::MAX)));
    let (mut queue, mut shares) = (Queue::new(), Shares::new());
    shares.set(1, Share::default());
    let push = |queue: &mut Queue<u32>, shares: &mut Shares, client: u32| {
        if queue.push(&meters, ClientKey(client.into()), client.into(), COST, client) {
            shares.again(&budget, 1);
        }
        shares.wake(&budget, 1);
    };
    for client in 0..40_u32 {
        (0..32).for_each(|_| push(&mut queue, &mut shares, client));
    }
    let mut now = Mono::from_secs(1);
    criterion.bench_function("release and park again, the same in a pool of one", |bench| {
        let mut released = Vec::new();
        bench.iter(|| {
            now = Mono(now.0 + 488_282);
            shares.poll(&budget, now, |_| {
                queue.step(&meters, &budget, now, &mut |client, _| {
                    released.push(client);
                    Departure::Went
                })
            });
            released.drain(..).for_each(|client| push(&mut queue, &mut shares, client));
        });
    });
}

criterion_group!(benches, admission, waiting, waiting_in_a_pool);
criterion_main!(benches);
