//! What waits at the gate of a volume, and which connections that stops.

use super::rest::tests::served;
use super::*;
use crate::gate::{Gate, ParkedTotal};
use crate::worker::Request;
use weir_core::{Credentials, FileHandle, Mono, ObjectKey, Shared, SnapshotId};
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::v3::{Class, Rights};
use weir_qos::{Ceiling, ClientKey, Cost};

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// A WRITE on the client's own connection.
fn write(volume: &Arc<ServedVolume>, client: u64, file: u8, bytes: u64) -> Request {
    let key = ObjectKey::new(&[file]).unwrap();
    Request {
        worker: 0,
        connection: client,
        client: ClientKey(u128::from(client)),
        volume: Arc::clone(volume),
        rights: Rights { cred: Credentials::ROOT, read_only: false },
        lookup: None,
        handle: FileHandle { volume: volume.id, snapshot: SnapshotId::LIVE, key },
        call: Call {
            xid: 1,
            program: 100_003,
            version: 3,
            procedure: 7,
            credential: Credential::None,
            args: Shared::from(vec![0; usize::try_from(bytes).unwrap()]),
        },
        class: Class::Write,
        cost: Cost::of(bytes),
        file: None,
        arrived: Mono(SECOND),
        passed: Mono(SECOND),
        claim: None,
    }
}

#[test]
fn who_floods_one_file_stops_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = served(directory.path());
    let limits = Limits::of(BytesPerSecond::from_mib(100));
    volume.gate = Gate::new(volume.id, limits, Arc::new(ParkedTotal::new(1 << 30)));
    let (volume, mut now) = (Arc::new(volume), SECOND);
    let gate = &volume.gate;
    let ceiling = Ceiling { rate: Some(BytesPerSecond::from_mib(1)), iops: None };
    gate.set_file_ceiling(Some(ceiling), Mono(now));
    let (mut released, mut resumed) = (Vec::new(), Vec::new());
    // One client floods a file until it is stopped; its turns come at once, as the volume has plenty.
    let mut flood = 0;
    loop {
        let request = write(&volume, 1, 7, MIB);
        if gate.try_pass(request.cost, request.reads_or_writes(), Mono(now)).is_some() {
            continue;
        }
        flood += 1;
        let full = gate.park(request, Mono(now)).full;
        now += SECOND / 100;
        gate.pump(Mono(now), &mut released, &mut resumed);
        if full {
            break;
        }
        assert!(flood < 200, "what waits has a bound");
    }
    assert!(flood > 60, "{flood}: no connection is stopped before the bound");
    // Another uses the volume up with other files, and one of its requests has to wait.
    for file in 0..=255 {
        let request = write(&volume, 2, file, 4096);
        let passed = gate.try_pass(Cost::of(MIB / 20), request.reads_or_writes(), Mono(now));
        if file != 7 && passed.is_none() {
            let parked = gate.park(request, Mono(now));
            assert!(!parked.full, "it is not what fills the memory");
            break;
        }
    }
    assert!(resumed.is_empty());
    // The first goes on when a quarter of what it may have waiting is free.
    released.clear();
    let from = now;
    let mut next = gate.pump(Mono(now), &mut released, &mut resumed);
    while resumed.is_empty() {
        now = next.unwrap().0;
        next = gate.pump(Mono(now), &mut released, &mut resumed);
    }
    assert!(now - from >= 10 * SECOND, "{} ns", now - from);
    assert!(released.iter().any(|ticket| ticket.request.connection == 2), "meanwhile");
    assert!(gate.waiting() > 40);
    // A connection that is gone takes what waits with it.
    gate.cancel(1, Mono(now), &mut resumed);
    assert_eq!((gate.waiting(), gate.parked()), (0, 0));
}
