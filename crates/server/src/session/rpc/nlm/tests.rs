//! Calls to the lock manager, with the lock thread played by the test.

mod moving;

use super::calls::carry_out;
use super::service::Service;
use super::*;
use crate::sync::{AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use weir_core::{ObjectKey, Shared};
use weir_locks::LockDoor;
use weir_nfs::client::{Caller, NlmLock, NlmUnlock, RemoteCall, Reply};
use weir_nfs::nlm::Status;
use weir_nfs::nlm::wire::{CallerName, Lock, LockArgs, NetObj, UnlockArgs};
use weir_nfs::rpc::reply;
use weir_nfs::xdr::Encode;
use weir_state::Limits;

/// The volume of all files.
const VOLUME: VolumeId = VolumeId(1);

struct World {
    nlm: Arc<Nlm>,
    service: Service,
    catalog: Arc<Catalog>,
    directory: Arc<tempfile::TempDir>,
}

/// A reply that is awaited, and how often its future was woken.
struct Awaited {
    reply: Pin<Box<dyn Future<Output = Vec<u8>>>>,
    woken: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Awaited {
    /// The status in the reply, if it is there.
    fn poll(&mut self) -> Option<Status> {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.reply.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(record) => {
                let reply = Reply::parse(&record[4..]).unwrap();
                Some(reply.results::<NlmLock<'_>>().unwrap().status)
            }
            Poll::Pending => None,
        }
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::Relaxed)
    }
}

fn file(number: u8) -> File {
    File { volume: VOLUME, object: ObjectKey::new(&[number]).unwrap() }
}

fn about(name: &str) -> Lock<'_> {
    let (caller_name, fh, oh) = (CallerName(name.as_bytes()), NetObj(b"file"), NetObj(b"oh"));
    Lock { caller_name, fh, oh, svid: 1, offset: 0, length: 10 }
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Arc::new(Catalog::open(directory.path()).unwrap());
        let locks = Arc::new(LockDoor::new(Limits::SERVER));
        locks.volume_opened(VOLUME);
        let (nlm, life) = Nlm::open(&catalog, SystemClock::start(), locks).unwrap();
        let service = Service::new(Arc::clone(&nlm), life, 7);
        Self { nlm, service, catalog, directory: Arc::new(directory) }
    }

    /// Another server over the same catalogue.
    fn another(&self, limits: Limits) -> Self {
        let (catalog, directory) = (Arc::clone(&self.catalog), Arc::clone(&self.directory));
        let locks = Arc::new(LockDoor::new(limits));
        locks.volume_opened(VOLUME);
        let (nlm, life) = Nlm::open_alone(&catalog, SystemClock::start(), locks).unwrap();
        let service = Service::new(Arc::clone(&nlm), life, 8);
        Self { nlm, service, catalog, directory }
    }

    /// Begins a call of the host 10.0.0.`last` about file `number`.
    fn begin<A: RemoteCall>(&self, last: u8, number: u8, args: &A) -> Awaited {
        let peer = Peer { address: [10, 0, 0, last].into(), local: [10, 9, 9, 9].into() };
        let mut record = Vec::new();
        Caller::none().call(&mut record, 7, args);
        let call = Call::parse(Shared::from(record).skip(4)).unwrap();
        let (nlm, file) = (Arc::clone(&self.nlm), file(number));
        let place = nlm.locks.begin(peer.address, Some(file)).unwrap();
        let reply = Box::pin(async move { carry_out(&nlm, &place, call, peer, Ok(file)).await });
        Awaited { reply, woken: Arc::default() }
    }

    fn lock(&self, last: u8, number: u8, block: bool) -> Awaited {
        self.ask(last, number, block, false, 3)
    }

    fn reclaim(&self, last: u8, number: u8) -> Awaited {
        self.ask(last, number, false, true, 3)
    }

    /// Asks for a lock, as a host in the life `state` does.
    fn ask(&self, last: u8, number: u8, block: bool, reclaim: bool, state: u32) -> Awaited {
        let (cookie, name) = (NetObj(b""), format!("host-{last}"));
        let lock = about(&name);
        let args = LockArgs { cookie, block, exclusive: true, lock, reclaim, state };
        self.begin(last, number, &NlmLock(args))
    }

    fn unlock(&self, last: u8, number: u8) -> Awaited {
        let name = format!("host-{last}");
        let args = UnlockArgs { cookie: NetObj(b""), lock: about(&name) };
        self.begin(last, number, &NlmUnlock(args))
    }

    /// Does the work of the lock thread. Gives the number of calls and callbacks that it got.
    fn run_thread(&mut self) -> (usize, usize) {
        let (mut messages, mut calls, mut callbacks) = (Vec::new(), 0, 0);
        self.nlm.inbox.take(&mut messages);
        for message in messages {
            match message {
                Message::Call(asked) => {
                    calls += 1;
                    self.service.carry_out(*asked);
                }
                Message::CallBack(callback) => {
                    callbacks += 1;
                    self.service.call_back(callback);
                }
                Message::Moved(moved) => self.service.moved(moved),
                Message::Wake(_) | Message::RollCall(_) => {}
            }
        }
        (calls, callbacks)
    }

    /// Locks file `number` for the first time of a host.
    fn lock_first(&mut self, last: u8, number: u8) {
        let mut call = self.lock(last, number, false);
        assert_eq!(call.poll(), None);
        self.run_thread();
        assert_eq!(call.poll(), Some(Status::GRANTED));
    }

    fn held(&self) -> u64 {
        self.nlm.totals().held
    }
}

#[test]
fn only_the_first_lock_of_a_host_waits_for_the_disk() {
    let mut world = World::new();
    let mut first = world.lock(1, 1, false);
    assert_eq!(first.poll(), None);
    assert_eq!((world.held(), world.catalog.monitored_hosts().unwrap().len()), (0, 0));
    assert_eq!(world.run_thread(), (1, 0));
    assert_eq!(world.catalog.monitored_hosts().unwrap().len(), 1);
    assert_eq!((first.wakes(), first.poll()), (1, Some(Status::GRANTED)));
    assert_eq!(world.lock(1, 2, false).poll(), Some(Status::GRANTED));
    assert_eq!(world.unlock(1, 2).poll(), Some(Status::GRANTED));
    assert_eq!(world.run_thread(), (0, 0));
    let totals = world.nlm.totals();
    assert_eq!((totals.held, totals.hosts, totals.granted), (1, 1, 2));
}

#[test]
fn calls_of_one_address_about_one_file_are_carried_out_as_they_came() {
    let mut world = World::new();
    let (mut lock, mut unlock) = (world.lock(1, 1, false), world.unlock(1, 1));
    // Even where the second is asked for first.
    assert_eq!((unlock.poll(), lock.poll()), (None, None));
    // Calls about other files and from other addresses do not wait.
    assert_eq!(world.unlock(1, 2).poll(), Some(Status::GRANTED));
    assert_eq!(world.unlock(2, 1).poll(), Some(Status::GRANTED));
    world.run_thread();
    assert_eq!((unlock.poll(), unlock.wakes()), (None, 0));
    assert_eq!(lock.poll(), Some(Status::GRANTED));
    drop(lock);
    assert_eq!((unlock.wakes(), unlock.poll()), (1, Some(Status::GRANTED)));
    assert_eq!(world.held(), 0);
    // A call whose worker ends before it is done lets the next go on.
    let (lock, mut unlock) = (world.lock(1, 1, false), world.unlock(1, 1));
    assert_eq!(unlock.poll(), None);
    drop(lock);
    assert_eq!((unlock.wakes(), unlock.poll()), (1, Some(Status::GRANTED)));
}

#[test]
fn a_worker_hands_a_call_over_while_another_thread_has_the_locks() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let mut unlock = world.unlock(1, 1);
    let nlm = Arc::clone(&world.nlm);
    let tables = nlm.locks.tables();
    assert_eq!(unlock.poll(), None);
    drop(tables);
    assert_eq!(world.run_thread(), (1, 0));
    assert_eq!((unlock.poll(), world.held()), (Some(Status::GRANTED), 0));
}

#[test]
fn a_call_that_waits_is_queued_by_the_thread_which_calls_back() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.lock_first(2, 2);
    let mut waits = world.lock(2, 1, true);
    assert_eq!((waits.poll(), world.run_thread()), (None, (1, 0)));
    assert_eq!(waits.poll(), Some(Status::BLOCKED));
    assert_eq!(world.unlock(1, 1).poll(), Some(Status::GRANTED));
    assert_eq!(world.run_thread(), (0, 1));
    world.service.tick();
    assert_eq!(world.service.out.len(), 1, "the client's portmapper is asked");
}

#[test]
fn a_client_that_knows_of_its_lock_is_not_called_back() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.lock_first(2, 2);
    let mut waits = world.lock(2, 1, true);
    assert_eq!((waits.poll(), world.run_thread()), (None, (1, 0)));
    assert_eq!(waits.poll(), Some(Status::BLOCKED));
    drop(waits);
    assert_eq!(world.unlock(1, 1).poll(), Some(Status::GRANTED));
    // The client asks again by itself, and unlocks, before the thread gets to calling it.
    assert_eq!(world.lock(2, 1, true).poll(), Some(Status::GRANTED));
    assert_eq!(world.unlock(2, 1).poll(), Some(Status::GRANTED));
    assert_eq!(world.run_thread(), (0, 1));
    world.service.tick();
    assert_eq!(world.service.out, []);
}

#[test]
fn a_callback_under_way_is_not_sent_again_once_its_grant_is_settled() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.lock_first(2, 2);
    let mut waits = world.lock(2, 1, true);
    assert_eq!((waits.poll(), world.run_thread()), (None, (1, 0)));
    assert_eq!(waits.poll(), Some(Status::BLOCKED));
    drop(waits);
    assert_eq!(world.unlock(1, 1).poll(), Some(Status::GRANTED));
    assert_eq!(world.run_thread(), (0, 1));
    world.service.tick();
    let [ask] = &std::mem::take(&mut world.service.out)[..] else { panic!("nobody is asked") };
    let xid = Call::parse(ask.bytes.clone().into()).unwrap().xid;
    // The client asks again by itself, and unlocks, before its portmapper tells the port.
    assert_eq!(world.lock(2, 1, true).poll(), Some(Status::GRANTED));
    assert_eq!(world.unlock(2, 1).poll(), Some(Status::GRANTED));
    let mut port = reply::begin(Vec::new(), xid);
    700u32.encode(&mut port);
    world.service.answer(ask.to, &reply::finish(port)[4..]);
    world.service.tick();
    assert_eq!(world.service.out, []);
}

#[test]
fn a_host_that_was_forgotten_is_recorded_before_its_next_lock() {
    let mut world = World::new();
    world.lock_first(1, 1);
    assert_eq!(world.unlock(1, 1).poll(), Some(Status::GRANTED));
    world.service.tidy();
    assert_eq!(world.catalog.monitored_hosts().unwrap(), []);
    world.lock_first(1, 1);
    assert_eq!(world.catalog.monitored_hosts().unwrap().len(), 1);
    world.service.tidy();
    assert_eq!(world.catalog.monitored_hosts().unwrap().len(), 1, "it holds a lock");
}

#[test]
fn a_volume_that_is_gone_takes_no_locks() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.nlm.locks.volume_gone(VOLUME);
    world.nlm.note_released();
    assert_eq!(world.held(), 0);
    assert_eq!(world.lock(1, 1, false).poll(), Some(Status::STALE_FH));
    world.service.tidy();
    assert_eq!(world.nlm.totals().hosts, 0);
}

/// The address by which the hosts of the tests know us.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));

#[test]
fn hosts_of_a_group_that_leaves_stay_in_the_catalogue_for_its_next_home() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let mut left = world.nlm.leave(BTreeSet::from([LOCAL]));
    world.run_thread();
    assert!(left.try_recv().is_ok());
    world.nlm.locks.volume_gone(VOLUME);
    world.nlm.note_released();
    world.service.tidy();
    assert_eq!(world.nlm.totals().hosts, 0);
    assert_eq!(world.catalog.monitored_hosts().unwrap().len(), 1);
}

#[test]
fn a_new_home_lets_hosts_reclaim_and_tells_them_when_it_can() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let before = world.service.state;
    world = world.another(Limits::SERVER);
    world.service.tick();
    assert!(world.service.out.is_empty(), "no host is its own yet");
    let (addresses, grace) = (BTreeSet::from([LOCAL]), Duration::from_secs(3600));
    world.nlm.inherit(&world.catalog, &addresses, [VOLUME], grace).unwrap();
    world.run_thread();
    world.service.tick();
    assert!(world.service.out.is_empty(), "the address is not here yet");
    assert_ne!(world.service.state, before);
    let mut newcomer = world.lock(2, 1, false);
    // The first lock of a host waits for the disk.
    assert_eq!(newcomer.poll(), None);
    world.run_thread();
    assert_eq!(newcomer.poll(), Some(Status::DENIED_GRACE_PERIOD));
    world.nlm.notify(BTreeSet::from([[10, 8, 8, 8].into()]));
    world.run_thread();
    world.service.tick();
    assert!(world.service.out.is_empty(), "another address");
    world.nlm.notify(addresses);
    world.run_thread();
    world.service.tick();
    assert!(!world.service.out.is_empty());
}
