//! The rules of a gate that its queue does not know: memory, pools, and charges taken back.

use super::*;
use weir_qos::{BytesPerSecond, Queue};

const CONNECTION: ConnId = ConnId { worker: 0, token: 1 };

/// A request of one client that writes so many bytes, and pins as many.
struct Write(u64);

impl Queued for Write {
    fn client(&self) -> ClientKey {
        ClientKey(1)
    }

    fn connection(&self) -> ConnId {
        CONNECTION
    }

    fn cost(&self) -> Cost {
        Cost::of(self.0)
    }

    fn file(&self) -> Option<&ObjectKey> {
        None
    }

    fn detach(&mut self) {}

    fn pinned(&self) -> usize {
        usize::try_from(self.0).unwrap()
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

#[test]
fn what_may_be_parked_follows_the_tightest_limit() {
    let limits = |mib, iops| Limits { iops, ..Limits::of(BytesPerSecond::from_mib(mib)) };
    let mib = |mib, iops: Option<u64>| parked_max(limits(mib, iops.map(Iops))) >> 20;
    assert_eq!([mib(1, None), mib(2, None), mib(1000, None)], [20, 40, 64]);
    assert_eq!([mib(1000, Some(16)), mib(1000, Some(32)), mib(1000, Some(1))], [20, 40, 16]);
    assert_eq!([mib(1, Some(1_000_000)), mib(0, Some(7))], [20, 16]);
}

#[test]
fn what_is_given_back_lets_a_volume_of_a_shared_pool_go_sooner() {
    let (now, rate) = (Mono(1), Limits::of(BytesPerSecond::from_mib(1)));
    let gate = Gate::<Write>::new(VolumeId(7), rate, Arc::new(ParkedTotal::new(0)));
    let pool = Arc::new(PoolGate::new(rate));
    lock(&pool.sharing).shares.set(7, Share::default());
    gate.meters.set_shared(true);
    gate.pool.store(Some(Arc::clone(&pool)));
    // Something waits, and the volume's own limit holds it back for long.
    Queue::new().push(&gate.meters, ClientKey(1), 1, Cost::of(1), ());
    let asked = |step| {
        let mut asked = 0;
        lock(&pool.sharing).shares.poll(&pool.budget, now, |_| {
            asked += 1;
            step
        });
        asked
    };
    lock(&pool.sharing).shares.wake(&pool.budget, 7);
    assert_eq!(asked(Step::Held(Mono(u64::MAX))), 1);
    assert_eq!(asked(Step::Nothing), 0);
    assert!(gate.refund(Charged { volume: Cost::of(1), file: None }, now, now));
    assert_eq!(asked(Step::Nothing), 1);
}

#[test]
fn waiting_requests_of_all_volumes_never_hold_more_than_the_bound() {
    let total = Arc::new(ParkedTotal::new(16 << 20));
    let limits = Limits::of(BytesPerSecond::from_mib(1));
    let gate = |id| Gate::new(VolumeId(id), limits, Arc::clone(&total));
    let now = Mono::from_secs(1);
    let park = |gate: &Gate<Write>| gate.park(Write(1 << 20), None, now).is_ok();
    let (one, other) = (gate(1), gate(2));
    assert_eq!((0..20).filter(|_| park(&one)).count(), 15, "of a MiB and a little each");
    assert!(!park(&other) && total.bytes() <= 16 << 20);
    one.cancel(CONNECTION, now, &mut Vec::new());
    assert_eq!(total.bytes(), 0);
    assert!(park(&other));
}

#[test]
fn a_cancelled_request_frees_its_memory_and_the_next_one_goes_when_it_may() {
    let total = Arc::new(ParkedTotal::new(64 << 20));
    let limits = Limits::of(BytesPerSecond::from_mib(1));
    let gate = Gate::new(VolumeId(7), limits, Arc::clone(&total));
    let (now, mut resumed) = (Mono::from_secs(1), Vec::new());
    assert!(gate.try_pass(Cost::of(1 << 20), None, now).is_some());
    let park = |bytes| gate.park(Write(bytes), None, now).ok().unwrap();
    let (one, other) = (park(1 << 20), park(512));
    let cancelled = gate.cancel_one(one.id, now, &mut resumed).unwrap();
    assert_eq!((cancelled.request.0, cancelled.pinned), (1 << 20, one.pinned));
    assert_eq!((gate.waiting(), gate.parked(), total.bytes()), (1, other.pinned, other.pinned));
    assert!(gate.cancel_one(one.id, now, &mut resumed).is_none(), "it waits no more");
    let (later, mut released) = (Mono::from_secs(3), Vec::new());
    assert!(gate.poll(later, &mut released, &mut resumed).is_none());
    assert_eq!((released.len(), released[0].ticket.request.0), (1, 512));
    assert!(gate.cancel_one(other.id, later, &mut resumed).is_none(), "it was released");
    assert_eq!((gate.parked(), total.bytes()), (0, 0));
    // Nobody waits: the cancelled request was not charged.
    assert!(gate.try_pass(Cost::of(1), None, later).is_some());
}

#[test]
fn a_request_that_is_refused_and_dropped_says_so_if_it_was_charged() {
    let limits = Limits { iops: Some(Iops(1)), ..Limits::of(BytesPerSecond::from_mib(1)) };
    let gate = Gate::<Write>::new(VolumeId(7), limits, Arc::new(ParkedTotal::new(0)));
    // Late enough for the meter of bytes to have its catch-up.
    let now = Mono::from_secs(1);
    assert!(gate.try_pass(Cost::of(1), None, now).is_some());
    assert!(!gate.took_back());
    assert!(gate.try_pass(Cost::of(1), None, now).is_none(), "one operation a second");
    assert!(gate.took_back() && !gate.took_back());
}
