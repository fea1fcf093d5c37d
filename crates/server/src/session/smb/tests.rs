//! The session layer from sockets to the counters of volumes.

use super::testing::{Ask, Fixture};
use std::time::Duration;
use weir_catalog::{PoolChange, TermsChange, VolumeChange};
use weir_core::Clock;
use weir_qos::Iops;
use weir_qos::contract::Qos;
use weir_smb::wire::{LockFlags, Status};

#[test]
fn where_there_are_bursts_every_request_of_smb_counts_alone_and_in_a_compound() {
    let fixture = Fixture::start();
    fixture.change_pool(&PoolChange { qos: Some(Qos::ProvisionedV1), ..PoolChange::default() });
    let mut client = fixture.log_in("open");
    let file = client.open("file");
    assert_eq!(fixture.live("open").delayed_ops, 0);
    let limit = TermsChange { ceiling_iops: Some(Some(Iops(20))), ..TermsChange::default() };
    fixture.change("open", &VolumeChange { terms: limit, ..VolumeChange::default() });
    for _ in 0..10 {
        assert_eq!(client.ask(Ask::query(file)).status(), Status::SUCCESS);
    }
    let alone = fixture.live("open").delayed_ops;
    assert!(alone >= 5, "{alone} requests waited");
    for _ in 0..5 {
        client.send(&[Ask::query(file), Ask::query(file)]);
        let told = client.receive_frame().unwrap();
        assert!(told.iter().all(|told| told.status() == Status::SUCCESS), "{told:?}");
    }
    let both = fixture.live("open").delayed_ops;
    assert!(both >= alone + 5, "{both} requests waited, of them {alone} alone");
    assert_eq!(client.ask(Ask::close(file)).status(), Status::SUCCESS);
}

/// The time in which a request waits for other clients, or for permits of its own, is no time of
/// the server's, although the request counts as an operation.
#[test]
fn no_wait_for_others_is_counted_as_time_of_the_store() {
    let fixture = Fixture::start();
    fixture.change_pool(&PoolChange { qos: Some(Qos::ProvisionedV1), ..PoolChange::default() });
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), Status::SUCCESS);
    let lock = other.send(&[Ask::lock(wanted, exclusive)]);
    let told = other.receive_frame().unwrap();
    assert_eq!((told[0].status(), told[0].header.message_id), (Status::PENDING, lock));
    let volume = fixture.volume("open");
    let now = volume.clock().now();
    let inside = |at| volume.read(at).unwrap().inside_nanos;
    assert_eq!(inside(now + Duration::from_secs(10)), inside(now), "nothing is under way");
    let before = volume.read(now).unwrap();
    let unlocked = holder.ask(Ask::lock(held, LockFlags::UNLOCK));
    assert_eq!((unlocked.status(), other.receive().status()), (Status::SUCCESS, Status::SUCCESS));
    // The LOCK counts nevertheless, and so does the unlock.
    let after = volume.read(volume.clock().now()).unwrap();
    assert_eq!(after.delivered.operations - before.delivered.operations, 2);
}
