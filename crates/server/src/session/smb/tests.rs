//! The session layer from sockets to the counters of volumes.

mod renames;

use super::sums::{Charge, Holder, SumAccount};
use super::testing::{Ask, Client, Fixture, Protection, Received};
use crate::limits::{PATH_BYTES, PATH_BYTES_UNCOUNTED, REPLY_BYTES_MAX};
use std::time::Duration;
use weir_catalog::{PoolChange, TermsChange, VolumeChange};
use weir_control::plane::SmbOpen;
use weir_core::testing::block_on;
use weir_core::{Clock, Name, Store};
use weir_qos::Iops;
use weir_qos::contract::Qos;
use weir_smb::wire::{Command, CreateOptions, FileId, HeaderFlags, LockFlags, Status};

/// A write that spends the contract of the volume `tiny` for a minute, so that the next one waits
/// also on a busy machine.
const SPENT: [u8; 1024] = [0; 1024];

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
        let response = client.receive_final();
        assert!(
            response.iter().all(|response| response.status() == Status::SUCCESS),
            "{response:?}"
        );
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
    let response = other.receive_frame().unwrap();
    assert_eq!((response[0].status(), response[0].header.message_id), (Status::PENDING, lock));
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

/// A client could otherwise have the disk read for nothing, as often as it likes.
#[test]
fn a_read_that_finds_too_little_is_charged_for_what_was_read() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("tiny");
    let file = client.open("file");
    fixture.lift();
    assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    fixture.tighten();
    let too_little = || Ask::read_at_least(2048, file, 0, 2048);
    let volume = fixture.volume("tiny");
    let delivered = || volume.read(volume.clock().now()).unwrap().delivered;
    let before = delivered();
    assert_eq!(client.ask(too_little()).status(), Status::END_OF_FILE);
    let after = delivered();
    assert_eq!(after.bytes - before.bytes, 1024);
    assert_eq!(after.operations - before.operations, 1);
    client.send(&[too_little(), Ask::echo()]);
    fixture.until_waiting("tiny", 1);
    fixture.lift();
    let statuses: Vec<_> = client.receive_frame().unwrap().iter().map(Received::status).collect();
    assert_eq!(statuses, [Status::END_OF_FILE, Status::SUCCESS]);
    assert_eq!(fixture.live("tiny").read_bytes, 2 * 1024);
}

/// The time in which an element waits for its contract is no time of the elements after it: a
/// client could otherwise have the server blamed.
#[test]
fn an_element_of_a_compound_comes_when_those_before_it_are_done() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("tiny");
    let file = client.open("file");
    assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    // A busy machine makes the second element wait too: what counts is that it can be less.
    for seconds in 1..10 {
        let before = fixture.live("tiny");
        client.send(&[Ask::write(file, 0, &[1; 512]), Ask::write(file, 0, &[2; 512])]);
        fixture.until_waiting("tiny", 1);
        std::thread::sleep(Duration::from_secs(seconds));
        fixture.lift();
        assert_eq!(client.receive_final().len(), 2);
        let after = fixture.live("tiny");
        let waited = after.wait_nanos - before.wait_nanos;
        assert!(waited >= seconds * 1_000_000_000, "{waited} ns");
        if after.processing_nanos - before.processing_nanos < waited {
            return;
        }
        fixture.tighten();
        assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    }
    panic!("the second element counts the wait of the first as the server's time");
}

/// Each copy holds its chunk while it waits for the contract: so many begin as hold the bytes that
/// a connection may, alone and in compounds.
#[test]
fn copies_that_wait_for_their_contract_hold_what_a_connection_may() {
    const CHUNK: u32 = 1 << 20;
    const COPIES: usize = 16;
    for compound in [false, true] {
        let fixture = Fixture::start();
        let mut client = fixture.log_in("open");
        let (source, target) = (client.open("source"), client.open("target"));
        let data = vec![7; CHUNK as usize];
        assert_eq!(client.ask(Ask::write(source, 0, &data)).status(), Status::SUCCESS);
        let slow = TermsChange { ceiling_iops: Some(Some(Iops(1))), ..TermsChange::default() };
        fixture.change("open", &VolumeChange { terms: slow, ..VolumeChange::default() });
        let copy = || Ask::copy(source, target, CHUNK);
        for _ in 0..COPIES {
            match compound {
                false => client.send(&[copy()]),
                true => client.send(&[copy(), Ask::close(FileId::default())]),
            };
        }
        client.send(&[Ask::echo()]);
        let freed = TermsChange { ceiling_iops: Some(None), ..TermsChange::default() };
        let most = REPLY_BYTES_MAX.div_ceil(CHUNK as usize);
        while fixture.live("open").waiting < most as u64 {
            std::thread::yield_now();
        }
        fixture.change("open", &VolumeChange { terms: freed, ..VolumeChange::default() });
        let mut before = 0;
        loop {
            let response = client.receive_frame().unwrap();
            match response[0].header.command {
                Ok(Command::Echo) => break,
                _ if response[0].status() == Status::PENDING => {}
                _ => {
                    assert_eq!(response[0].status(), Status::SUCCESS);
                    before += 1;
                }
            }
        }
        // The last ones hold no more than the bound, so the ECHO may be answered before them.
        assert!(before >= COPIES - most, "{before} copies were done before the ECHO was read");
    }
}

/// A connection with open files makes room only where no other can.
#[test]
fn of_idle_connections_those_without_open_files_make_room() {
    for workers in [1, 3] {
        let fixture = Fixture::with(|config| {
            config.workers = workers;
            config.connections_max = 16;
        });
        let (mut first, mut second) = (fixture.log_in("open"), fixture.log_in("open"));
        let (one, two) = (first.open("one"), second.open("two"));
        let idle: Vec<_> = (2..16).map(|_| fixture.connect()).collect();
        let _others: Vec<_> = (2..16).map(|last| fixture.connect_from(last)).collect();
        idle.into_iter().for_each(Client::until_closed);
        assert_eq!(second.ask(Ask::query(two)).status(), Status::SUCCESS);
        assert_eq!(first.ask(Ask::query(one)).status(), Status::SUCCESS);
        let _newcomer = fixture.connect_from(99);
        // The last resort: of one worker's connections, the one that was idle the longest.
        if workers == 1 {
            second.until_closed();
            assert_eq!(first.ask(Ask::query(one)).status(), Status::SUCCESS);
        }
    }
}

/// Without this the stop would wait for its whole grace.
#[test]
fn a_stop_cancels_requests_that_wait_for_other_clients() {
    let fixture = Fixture::start();
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), Status::SUCCESS);
    other.send(&[Ask::lock(wanted, exclusive)]);
    assert_eq!(other.receive_frame().unwrap()[0].status(), Status::PENDING);
    let stop = std::thread::spawn(move || fixture.server.stop().unwrap());
    assert_eq!(other.receive().status(), Status::CANCELLED);
    drop((holder, other));
    stop.join().unwrap();
}

/// A client that does not close its side keeps its connection to the end of the stop.
#[test]
fn a_stop_deletes_files_that_are_to_be_deleted_when_they_are_closed() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("open");
    let options = CreateOptions::NON_DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE;
    let made = client.ask(Ask::open_as("scratch", options));
    assert_eq!(made.status(), Status::SUCCESS);
    let volume = fixture.volume("open");
    let there = || {
        let (store, name) = (&volume.store, Name::new(b"scratch").unwrap());
        block_on(store.lookup(&store.root(), name)).is_ok()
    };
    assert!(there());
    fixture.server.stop().unwrap();
    assert!(!there(), "the file is deleted");
}

/// A worker changes few locks at once; a request for more of them is carried out by a thread, and
/// all the same whole or not at all.
#[test]
fn long_changes_of_locks_are_left_to_a_thread() {
    let fixture = Fixture::start();
    let (mut one, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (one.open("file"), other.open("file"));
    let flags = LockFlags::EXCLUSIVE | LockFlags::FAIL_IMMEDIATELY;
    let lock = |bytes| Ask::lock_bytes(held, bytes, flags);
    let has_thread = || fixture.server.engine().locks.has_thread();
    assert_eq!(one.ask(lock(0..32)).status(), Status::SUCCESS);
    assert!(!has_thread(), "a worker takes that many");
    assert_eq!(one.ask(lock(100..1000)).status(), Status::SUCCESS);
    assert!(has_thread());
    assert_eq!(one.ask(lock(1000..1040)).status(), Status::SUCCESS);
    assert_eq!(one.ask(lock(2000..2001)).status(), Status::SUCCESS);
    assert_eq!(one.ask(lock(1990..2030)).status(), Status::LOCK_NOT_GRANTED);
    let write = |at| Ask::write(wanted, at, b"x");
    assert_eq!(other.ask(write(999)).status(), Status::FILE_LOCK_CONFLICT);
    assert_eq!(other.ask(write(1990)).status(), Status::SUCCESS, "none of the refused are held");
    let unlock = |bytes| Ask::lock_bytes(held, bytes, LockFlags::UNLOCK);
    assert_eq!(one.ask(unlock(100..1000)).status(), Status::SUCCESS);
    assert_eq!(other.ask(write(999)).status(), Status::SUCCESS);
    assert_eq!(one.ask(unlock(500..501)).status(), Status::RANGE_NOT_LOCKED);
    assert_eq!(one.ask(lock(100..1000)).status(), Status::SUCCESS);
    assert_eq!(one.ask(Ask::close(held)).status(), Status::SUCCESS);
    assert_eq!(other.ask(write(999)).status(), Status::SUCCESS);
    assert_eq!(fixture.server.engine().locks.tables().used().locks, 0);
}

/// The responses of a compound are one frame, whose memory has a bound: the elements beyond it are
/// refused, one after another, and the open before them stays.
#[test]
fn a_compound_beyond_its_bound_is_refused_from_there_on() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("open");
    let file = client.open("file");
    assert_eq!(client.ask(Ask::write(file, 0, &[7; 1 << 20])).status(), Status::SUCCESS);
    // Credits for all of it.
    (0..4).for_each(|_| drop(client.ask(Ask::echo())));
    let read = || Ask::read(FileId::PREVIOUS, 0, 1 << 20).related();
    let close = Ask::close(FileId::PREVIOUS).related();
    client.send(&[Ask::open("file"), read(), read(), read(), read(), close]);
    let response = client.receive_frame().unwrap();
    let statuses: Vec<_> = response.iter().map(Received::status).collect();
    let (good, full) = (Status::SUCCESS, Status::INSUFFICIENT_RESOURCES);
    assert_eq!(statuses, [good, good, good, good, full, full]);
    assert_eq!(response[3].message.len(), response[1].message.len());
    // The connection goes on, and the open that the compound made is its client's to close.
    assert_eq!(client.ask(Ask::close(response[0].file())).status(), Status::SUCCESS);
    assert_eq!(client.ask(Ask::close(file)).status(), Status::SUCCESS);
}

/// In dialect 3.1.1 no honest client asks (MS-SMB2 §3.3.5.15.12).
#[test]
fn a_request_to_validate_the_negotiation_ends_its_connection_at_whatever_place() {
    let fixture = Fixture::start();
    for protection in [Protection::Least, Protection::Signed, Protection::Sealed] {
        for place in 0..3 {
            let mut client = fixture.log_in("open");
            client.protection = protection;
            let mut asks = [Ask::echo(), Ask::open("made"), Ask::echo()];
            asks[place] = Ask::validate();
            client.send(&asks);
            client.until_closed();
        }
    }
    let volume = fixture.volume("open");
    let name = Name::new(b"made").unwrap();
    let made = block_on(volume.store.lookup(&volume.store.root(), name));
    assert!(made.is_err(), "no element of the frame is carried out");
}

#[test]
fn a_compound_whose_connection_closes_leaves_the_gate_and_its_opens() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("tiny");
    let file = client.open("file");
    assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    client.send(&[Ask::open("other"), Ask::write(file, 0, &[1; 512])]);
    fixture.until_waiting("tiny", 1);
    drop(client);
    fixture.until_waiting("tiny", 0);
    fixture.until_nobody_is_left();
    assert_eq!(fixture.live("tiny").write_bytes, SPENT.len() as u64, "it is not carried out");
    fixture.server.stop().unwrap();
}

#[test]
fn a_lock_whose_connection_closes_waits_no_more() {
    let fixture = Fixture::start();
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), Status::SUCCESS);
    other.send(&[Ask::lock(wanted, exclusive)]);
    assert_eq!(other.receive_frame().unwrap()[0].status(), Status::PENDING);
    drop(other);
    let used = || fixture.server.engine().locks.tables().used();
    while used().waiters > 0 || used().opens > 1 {
        std::thread::yield_now();
    }
    assert_eq!((used().locks, used().opens), (1, 1), "the other client's are there");
    assert_eq!(holder.ask(Ask::lock(held, LockFlags::UNLOCK)).status(), Status::SUCCESS);
    drop(holder);
    fixture.until_nobody_is_left();
    fixture.server.stop().unwrap();
}

#[test]
fn a_login_whose_answer_is_held_back_ends_with_its_connection() {
    let fixture = Fixture::start();
    let mut clients: Vec<_> = (0..4).map(|_| fixture.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(Ask::negotiate()).status(), Status::SUCCESS);
        client.send_proof("a guess");
    }
    drop(clients);
    fixture.until_nobody_is_left();
    let mut client = fixture.log_in("open");
    client.open("file");
    fixture.server.stop().unwrap();
}

/// A volume that was made after a compound began may have opens when the compound ends the session.
#[test]
fn a_late_logoff_closes_opens_on_volumes_that_its_frame_did_not_know() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("tiny");
    let file = client.open("file");
    assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    client.send(&[Ask::write(file, 0, &[1; 512]), Ask::log_off()]);
    fixture.until_waiting("tiny", 1);
    fixture.create("young");
    client.tree("young");
    client.open("file");
    fixture.lift();
    let response = client.receive_final();
    assert!(response.iter().all(|response| response.status() == Status::SUCCESS), "{response:?}");
    assert_eq!(fixture.server.engine().locks.tables().used().opens, 0);
}

#[test]
fn the_end_of_a_session_gives_way_and_closes_all_its_opens() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("open");
    for _ in 0..600 {
        client.open("file");
    }
    assert_eq!(fixture.server.engine().locks.tables().used().opens, 600);
    assert_eq!(client.ask(Ask::log_off()).status(), Status::SUCCESS);
    assert_eq!(fixture.server.engine().locks.tables().used().opens, 0);
}

/// The interim response to the element `id` of a compound, alone in its frame. On a machine that
/// stands still for a second, other elements may have one too.
fn interim(client: &mut Client, id: u64) -> Received {
    loop {
        let mut frame = client.receive_frame().unwrap();
        let response = frame.remove(0);
        assert!(frame.is_empty(), "an interim response comes alone");
        assert_eq!(response.status(), Status::PENDING);
        assert_eq!(response.async_id(), Some(response.header.message_id));
        assert!(
            response.header.credits > 0 && !response.header.flags.contains(HeaderFlags::SIGNED)
        );
        if response.header.message_id == id {
            return response;
        }
    }
}

/// The statuses of the next frame of final responses. That to the element `asynchronous`, which had
/// an interim response, has the asynchronous form.
fn finals(client: &mut Client, asynchronous: usize) -> Vec<Status> {
    let frame = client.receive_final();
    assert!(frame[asynchronous].async_id().is_some());
    for response in &frame {
        let id = response.async_id();
        assert!(id.is_none_or(|id| id == response.header.message_id));
        assert_eq!(
            response.header.credits == 0,
            id.is_some(),
            "the credits came with the interim one"
        );
    }
    frame.iter().map(Received::status).collect()
}

/// A client of `tiny` whose contract is spent, and a file that it has open.
fn spent(fixture: &Fixture) -> (Client, FileId) {
    let mut client = fixture.log_in("tiny");
    let file = client.open("file");
    assert_eq!(client.ask(Ask::write(file, 0, &SPENT)).status(), Status::SUCCESS);
    (client, file)
}

#[test]
fn an_element_that_waits_for_its_contract_gets_an_interim_response_whatever_protects_it() {
    for protection in [Protection::Least, Protection::Signed, Protection::Sealed] {
        let fixture = Fixture::start();
        let (mut client, file) = spent(&fixture);
        client.protection = protection;
        let write = Ask::write(file, 0, &[1; 512]);
        let first = client.send(&[Ask::open("other"), write, Ask::echo()]);
        let response = interim(&mut client, first + 1);
        assert_eq!(response.sealed, protection == Protection::Sealed);
        fixture.lift();
        let frame = client.receive_final();
        assert_eq!(frame.len(), 3);
        assert_eq!(frame[1].async_id(), Some(first + 1));
        for response in &frame {
            assert_eq!(response.status(), Status::SUCCESS);
            assert_eq!(response.sealed, protection == Protection::Sealed);
            let signed = response.header.flags.contains(HeaderFlags::SIGNED);
            assert_eq!(signed, protection == Protection::Signed);
        }
        assert_eq!(client.ask(Ask::close(frame[0].file())).status(), Status::SUCCESS);
    }
}

#[test]
fn a_client_cancels_the_element_that_waits_for_its_contract_and_those_after_it_go_on() {
    for asynchronous in [false, true] {
        let fixture = Fixture::start();
        let (mut client, file) = spent(&fixture);
        let close = Ask::close(FileId::PREVIOUS).related();
        let first = client.send(&[Ask::write(file, 0, &[1; 512]), close]);
        fixture.until_waiting("tiny", 1);
        if asynchronous {
            interim(&mut client, first);
        }
        client.cancel(first, asynchronous);
        let finals = match asynchronous {
            true => finals(&mut client, 0),
            false => client.receive_final().iter().map(Received::status).collect(),
        };
        assert_eq!(finals, [Status::CANCELLED, Status::SUCCESS], "the CLOSE finds the open");
        fixture.until_waiting("tiny", 0);
        assert_eq!(fixture.volume("tiny").gate.parked(), 0);
        assert_eq!(client.ask(Ask::close(file)).status(), Status::FILE_CLOSED);
        assert_eq!(fixture.live("tiny").write_bytes, SPENT.len() as u64, "it is not carried out");
    }
}

#[test]
fn a_lock_in_a_compound_waits_like_one_alone() {
    let fixture = Fixture::start();
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    let compound = || {
        let write = Ask::write(FileId::PREVIOUS, 0, b"x").related();
        [Ask::query(wanted), Ask::lock(wanted, exclusive).related(), write]
    };
    let (good, conflict) = (Status::SUCCESS, Status::FILE_LOCK_CONFLICT);
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), good);
    for asynchronous in [true, false] {
        let id = other.send(&compound()) + 1;
        interim(&mut other, id);
        other.cancel(id, asynchronous);
        assert_eq!(finals(&mut other, 1), [good, Status::CANCELLED, conflict]);
    }
    let id = other.send(&compound()) + 1;
    interim(&mut other, id);
    assert_eq!(holder.ask(Ask::lock(held, LockFlags::UNLOCK)).status(), good);
    assert_eq!(finals(&mut other, 1), [good; 3]);
    assert_eq!(fixture.server.engine().locks.tables().used().waiters, 0);
}

#[test]
fn a_client_cancels_a_copy_that_waits_for_its_contract() {
    let fixture = Fixture::start();
    let (mut client, file) = spent(&fixture);
    let target = client.open("target");
    let copy = client.send(&[Ask::copy(file, target, 512)]);
    fixture.until_waiting("tiny", 1);
    client.cancel(copy, false);
    assert_eq!(client.receive().status(), Status::CANCELLED);
    fixture.until_waiting("tiny", 0);
    assert_eq!(client.ask(Ask::close(target)).status(), Status::SUCCESS);
}

/// A cancelled request gives back its memory at once, and has used nothing of the contract.
#[test]
fn cancelled_requests_leave_their_gate_and_those_behind_them_go_on() {
    let fixture = Fixture::start();
    let (mut client, file) = spent(&fixture);
    let mut other = fixture.log_in("tiny");
    let others = other.open("other");
    let gate = &fixture.volume("tiny").gate;
    for asynchronous in [false, true] {
        let ids = [1, 2, 3].map(|byte| client.send(&[Ask::write(file, 0, &[byte; 512])]));
        let last = other.send(&[Ask::write(others, 0, &[4; 512])]);
        fixture.until_waiting("tiny", 4);
        let parked = gate.parked();
        if asynchronous {
            ids.iter().for_each(|id| drop(interim(&mut client, *id)));
        }
        for id in [ids[1], ids[0], ids[2]] {
            client.cancel(id, asynchronous);
            let response = client.receive();
            assert_eq!((response.header.message_id, response.status()), (id, Status::CANCELLED));
        }
        fixture.until_waiting("tiny", 1);
        assert_eq!(gate.parked(), parked / 4);
        // Cancelled again, none of them is there.
        client.cancel(ids[0], asynchronous);
        assert_eq!(client.ask(Ask::echo()).status(), Status::SUCCESS);
        other.cancel(last, false);
        assert_eq!(other.receive().status(), Status::CANCELLED);
        fixture.until_waiting("tiny", 0);
        assert_eq!(gate.parked(), 0);
    }
    fixture.lift();
    assert_eq!(client.ask(Ask::write(file, 0, &[5; 512])).status(), Status::SUCCESS);
    assert_eq!(fixture.live("tiny").write_bytes, SPENT.len() as u64 + 512);
}

#[test]
fn a_stop_cancels_elements_that_wait_for_other_clients() {
    let fixture = Fixture::start();
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), Status::SUCCESS);
    let lock = || Ask::lock(wanted, exclusive);
    let first = other.send(&[lock(), lock(), Ask::query(wanted)]);
    interim(&mut other, first);
    let stop = std::thread::spawn(move || fixture.server.stop().unwrap());
    // The second LOCK begins to wait when the server stops already.
    let (cancelled, good) = (Status::CANCELLED, Status::SUCCESS);
    assert_eq!(finals(&mut other, 0), [cancelled, cancelled, good]);
    drop((holder, other));
    stop.join().unwrap();
}

#[test]
fn a_stop_gives_up_elements_that_their_contract_does_not_let_go_in_time() {
    let fixture = Fixture::with(|config| config.shutdown_grace = Duration::ZERO);
    let (mut client, file) = spent(&fixture);
    client.send(&[Ask::write(file, 0, &[1; 512]), Ask::close(file)]);
    fixture.until_waiting("tiny", 1);
    let volume = fixture.volume("tiny");
    fixture.server.stop().unwrap();
    client.until_closed();
    assert_eq!((volume.gate.waiting(), volume.gate.parked()), (0, 0));
}

#[test]
fn an_element_whose_connection_closes_waits_no_more() {
    let fixture = Fixture::start();
    let (mut holder, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let (held, wanted) = (holder.open("file"), other.open("file"));
    let exclusive = LockFlags::EXCLUSIVE;
    assert_eq!(holder.ask(Ask::lock(held, exclusive)).status(), Status::SUCCESS);
    let lock = other.send(&[Ask::lock(wanted, exclusive), Ask::query(wanted)]);
    interim(&mut other, lock);
    let (mut client, file) = spent(&fixture);
    let write = client.send(&[Ask::write(file, 0, &[1; 512]), Ask::close(file)]);
    interim(&mut client, write);
    drop((other, client));
    fixture.until_waiting("tiny", 0);
    assert_eq!(fixture.volume("tiny").gate.parked(), 0);
    drop(holder);
    fixture.until_nobody_is_left();
    assert_eq!(fixture.live("tiny").write_bytes, SPENT.len() as u64, "it is not carried out");
    fixture.server.stop().unwrap();
}

/// The paths of all opens, as operators see them.
fn paths(fixture: &Fixture) -> Vec<String> {
    let opens = fixture.server.plane().smb_opens(0, 1000);
    let path = |open: SmbOpen| String::from_utf8(open.object.path.unwrap()).unwrap();
    opens.into_iter().map(path).collect()
}

#[test]
fn a_rename_reaches_the_opens_of_all_sessions() {
    let fixture = Fixture::start();
    let (mut one, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let file = one.open("file");
    for _ in 0..300 {
        other.open("file");
    }
    assert_eq!(one.ask(Ask::rename(file, "new")).status(), Status::SUCCESS);
    let expected = vec!["new".to_owned(); 301];
    assert_eq!(paths(&fixture), expected);
    // The rename of another file of that name, in another volume, does not.
    let mut third = fixture.log_in("tiny");
    let namesake = third.open("new");
    assert_eq!(third.ask(Ask::rename(namesake, "third")).status(), Status::SUCCESS);
    assert_eq!(paths(&fixture), [expected, vec!["third".to_owned()]].concat());
}

#[test]
fn a_file_that_another_session_renames_is_deleted_when_it_is_closed() {
    let fixture = Fixture::start();
    let (mut one, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let options = CreateOptions::NON_DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE;
    let file = one.ask(Ask::open_as("file", options)).file();
    let renaming = other.open("file");
    assert_eq!(other.ask(Ask::rename(renaming, "new")).status(), Status::SUCCESS);
    assert_eq!(other.ask(Ask::close(renaming)).status(), Status::SUCCESS);
    let newer = other.open("file");
    assert_eq!(one.ask(Ask::close(file)).status(), Status::SUCCESS);
    let volume = fixture.volume("open");
    let is_there = |name: &[u8]| {
        let (store, name) = (&volume.store, Name::new(name).unwrap());
        block_on(store.lookup(&store.root(), name)).is_ok()
    };
    assert!(!is_there(b"new") && is_there(b"file"), "the newer file stays");
    assert_eq!(other.ask(Ask::close(newer)).status(), Status::SUCCESS);
}

#[test]
fn a_directory_is_not_renamed_while_any_session_has_an_open_below() {
    let fixture = Fixture::start();
    let (mut one, mut other) = (fixture.log_in("open"), fixture.log_in("open"));
    let directory = CreateOptions::DIRECTORY_FILE;
    let dir = one.ask(Ask::open_as("dir", directory)).file();
    // More opens than are looked at in one part come before the one that counts.
    for _ in 0..300 {
        other.open("file");
    }
    let below = other.open(r"dir\file");
    assert_eq!(one.ask(Ask::rename(dir, "new")).status(), Status::ACCESS_DENIED);
    assert_eq!(other.ask(Ask::close(below)).status(), Status::SUCCESS);
    // The same path in another volume is another one.
    let mut third = fixture.log_in("tiny");
    third.ask(Ask::open_as("dir", directory)).file();
    third.open(r"dir\file");
    assert_eq!(one.ask(Ask::rename(dir, "new")).status(), Status::SUCCESS);
}

#[test]
fn long_paths_have_a_bound_in_sum_and_short_ones_none() {
    let fixture = Fixture::start();
    let mut client = fixture.log_in("open");
    let dir = "d".repeat(250);
    let made = client.ask(Ask::open_as(&dir, CreateOptions::DIRECTORY_FILE)).file();
    assert_eq!(client.ask(Ask::close(made)).status(), Status::SUCCESS);
    let [long, other] = ["f", "g"].map(|name| format!(r"{dir}\{}", name.repeat(100)));
    let others = SumAccount::new(Holder::Renames, &fixture.server.engine().smb.path_bytes);
    let mut theirs = Charge::new(&others);
    theirs.set(PATH_BYTES.most - (long.len() - PATH_BYTES_UNCOUNTED));
    let file = client.open(&long);
    let full = Status::INSUFFICIENT_RESOURCES;
    assert_eq!(client.ask(Ask::open(&long)).status(), full);
    assert_eq!(client.ask(Ask::open(&other)).status(), full);
    let short = client.open("short");
    // The name is free: nothing is left of the CREATE that failed.
    assert_eq!(client.ask(Ask::rename(short, &other)).status(), Status::SUCCESS);
    assert_eq!(paths(&fixture).last().unwrap(), "short", "there is no room for the new one");
    assert_eq!(client.ask(Ask::close(file)).status(), Status::SUCCESS);
    let file = client.open(&long);
    assert_eq!(client.ask(Ask::rename(file, "shorter")).status(), Status::SUCCESS);
    assert_eq!(paths(&fixture).last().unwrap(), "shorter");
    client.open(&other);
    drop(client);
    fixture.until_nobody_is_left();
    // An open is dropped a moment after it is closed.
    theirs.set(0);
    while !theirs.try_set(PATH_BYTES.most / PATH_BYTES.one_in) {
        std::thread::yield_now();
    }
}

/// SMB has no status after which clients send the request again, as `NFS3ERR_JUKEBOX` is for NFS.
#[test]
fn requests_beyond_the_memory_of_all_gates_are_refused_and_others_are_served() {
    let fixture = Fixture::with(|config| config.parked_total_mib = 2);
    let (mut client, file) = spent(&fixture);
    let large = vec![1; 1 << 20];
    let waits = client.send(&[Ask::write(file, 0, &large)]);
    fixture.until_waiting("tiny", 1);
    let (refused, good) = (Status::INSUFFICIENT_RESOURCES, Status::SUCCESS);
    assert_eq!(client.ask(Ask::write(file, 0, &large)).status(), refused);
    assert_eq!(fixture.server.plane().totals().requests_refused, 1);
    // A small request has room, and another volume is served.
    let small = client.send(&[Ask::write(file, 0, &[2; 512])]);
    fixture.until_waiting("tiny", 2);
    let mut other = fixture.log_in("open");
    let others = other.open("other");
    assert_eq!(other.ask(Ask::write(others, 0, &large)).status(), good);
    fixture.lift();
    let mut answered = [client.receive(), client.receive()].map(|response| {
        assert_eq!(response.status(), good);
        response.header.message_id
    });
    answered.sort_unstable();
    assert_eq!(answered, [waits, small]);
    assert_eq!(client.ask(Ask::write(file, 0, &large)).status(), good);
    assert_eq!(fixture.volume("tiny").gate.parked(), 0);
}
