//! Tests of requests that wait at the gate of a volume, and of the connections that they stop.

use super::testing::{request, served};
use super::*;
use crate::worker::{GateEntry, Request};
use weir_core::{Mono, ObjectKey, OpClass, VolumeId};
use weir_gate::ConnId;
use weir_gate::{Gate, ParkedTotal, Queued};
use weir_qos::{Ceiling, ClientKey, Cost};

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// A WRITE on the client's own connection.
fn write(volume: &Arc<ServedVolume>, client: u64, file: u8, bytes: u64) -> GateEntry {
    let key = ObjectKey::new(&[file]).unwrap();
    let client_key = ClientKey(u128::from(client));
    let request = request(volume, OpClass::Write, key, bytes);
    let connection = ConnId { worker: 0, token: client };
    Request { connection, client: client_key, ..request }.into()
}

#[test]
fn who_floods_one_file_stops_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits::of(BytesPerSecond::from_mib(100));
    let gate = Gate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(1 << 30)));
    let volume = Arc::new(served(&directory.path().join("volume"), gate));
    let mut now = SECOND;
    let gate = &volume.gate;
    let ceiling = Ceiling { rate: Some(BytesPerSecond::from_mib(1)), iops: None };
    gate.set_file_ceiling(Some(ceiling), Mono(now));
    let (mut released, mut resumed) = (Vec::new(), Vec::new());
    // One client floods a file until it is stopped; its turns come at once, as the volume has
    // plenty.
    let mut flood = 0;
    loop {
        let request = write(&volume, 1, 7, MIB);
        if gate.try_pass(request.cost(), request.file(), Mono(now)).is_some() {
            continue;
        }
        flood += 1;
        let full =
            gate.park(request, Some(Arc::default()), Mono(now)).is_ok_and(|parked| parked.full);
        now += SECOND / 100;
        gate.poll(Mono(now), &mut released, &mut resumed);
        if full {
            break;
        }
        assert!(flood < 200, "what waits has a bound");
    }
    assert!(flood > 60, "{flood}: no connection is stopped before the bound");
    // Another uses the volume up with other files, and one of its requests has to wait.
    for file in 0..=255 {
        let request = write(&volume, 2, file, 4096);
        let passed = gate.try_pass(Cost::of(MIB / 20), request.file(), Mono(now));
        if file != 7 && passed.is_none() {
            let parked = gate.park(request, Some(Arc::default()), Mono(now)).ok().unwrap();
            assert!(!parked.full, "it is not what fills the memory");
            break;
        }
    }
    assert!(resumed.is_empty());
    // The first goes on when a quarter of what it may have waiting is free.
    released.clear();
    let from = now;
    let mut next = gate.poll(Mono(now), &mut released, &mut resumed);
    while resumed.is_empty() {
        now = next.unwrap().0;
        next = gate.poll(Mono(now), &mut released, &mut resumed);
    }
    assert!(now - from >= 10 * SECOND, "{} ns", now - from);
    assert!(released.iter().any(|one| one.ticket.request.connection().token == 2), "meanwhile");
    assert!(gate.waiting() > 40);
    // A connection that is gone takes its waiting requests with it.
    gate.cancel(ConnId { worker: 0, token: 1 }, Mono(now), &mut resumed);
    assert_eq!((gate.waiting(), gate.parked()), (0, 0));
}

#[test]
fn the_connections_of_each_client_are_on_all_workers() {
    let inboxes: Vec<_> = (0..2).map(|_| Inbox::new().unwrap()).collect();
    let workers = Workers::new(&inboxes, SystemClock::start());
    let connect = |last: u8| workers.place(Origin::of([10, 0, 0, last].into())).unwrap();
    // One connection of a first client, then a second client's four: two on each worker.
    assert_eq!([1, 2, 2, 2, 2].map(connect), [0, 1, 0, 1, 0]);
    assert_eq!([3, 1, 1].map(connect), [1, 1, 0]);
}
