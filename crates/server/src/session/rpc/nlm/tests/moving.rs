//! A volume moves from one server to another with its locks, as bytes.

use super::*;
use weir_catalog::MonitoredHost;
use weir_cluster::{GatewayId, Life as GatewayLife};
use weir_handover::{Image, Move};
use weir_nfs::PROGRAM_NSM;
use weir_nfs::client::Datagram;
use weir_nfs::nlm::Host;
use weir_state::Use;

/// Another address of the servers.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 8, 8, 8));
const HOUR: Duration = Duration::from_secs(3600);

fn of() -> Move {
    let life = |gateway| GatewayLife { gateway: GatewayId(gateway), number: 1 };
    Move { volume: VOLUME, from: life(1), to: life(2) }
}

fn row(last: u8, local: IpAddr) -> MonitoredHost {
    let name = format!("host-{last}").into_bytes();
    MonitoredHost { address: [10, 0, 0, last].into(), name, local }
}

impl World {
    /// Gives the hosts of the volume up, as far as they are known at this moment.
    fn leave(&mut self, left: &mut HostsLeft) {
        let mut asked = self.nlm.leave(BTreeSet::from([LOCAL]));
        self.run_thread();
        left.add(asked.try_recv().unwrap());
    }

    /// Gives the volume up; gives its image.
    fn depart(&mut self) -> Vec<u8> {
        let mut left = HostsLeft::default();
        self.leave(&mut left);
        let locks = self.nlm.locks.tables().hand_over(self.nlm.clock.now(), VOLUME);
        self.leave(&mut left);
        self.nlm.locks.volume_gone(VOLUME);
        self.nlm.note_released();
        self.nlm.image(locks, &left).encode(of()).unwrap()
    }

    /// Takes the volume up.
    fn arrive(&mut self, image: &[u8]) -> Result<(), NotTaken> {
        let images = vec![(VOLUME, Image::decode(image, of()).unwrap())];
        let taken = self.nlm.take_up(&self.catalog, &BTreeSet::from([LOCAL]), &images, HOUR);
        self.run_thread();
        taken
    }

    /// The next home of the volume, whose address is there.
    fn moved(&mut self) -> Self {
        let image = self.depart();
        let mut next = self.another(Limits::SERVER);
        next.arrive(&image).unwrap();
        next.nlm.notify(BTreeSet::from([LOCAL]));
        next
    }

    /// Does the work of the lock thread; gives the last byte of each host that is called.
    fn called(&mut self) -> Vec<u8> {
        self.run_thread();
        self.service.tick();
        let host = |datagram: Datagram| match datagram.to.ip() {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => panic!("{address}"),
        };
        std::mem::take(&mut self.service.out).into_iter().map(host).collect()
    }

    /// The status of a call; the lock thread works if it is needed.
    fn status(&mut self, mut call: Awaited) -> Option<Status> {
        let now = call.poll();
        self.run_thread();
        now.or_else(|| call.poll())
    }
}

#[test]
fn a_lock_is_held_through_a_move_and_nobody_is_told_of_a_restart() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let mut next = world.moved();
    assert_eq!((world.held(), next.held()), (0, 1));
    assert!(next.called().is_empty(), "no host has to reclaim anything");
    assert!(!next.nlm.totals().grace);
    let (other, same) = (next.lock(2, 1, false), next.lock(1, 1, false));
    assert_eq!(next.status(other), Some(Status::DENIED));
    assert_eq!(next.status(same), Some(Status::GRANTED), "the answer was lost with the move");
    let (free, unlock) = (next.lock(2, 2, false), next.unlock(1, 1));
    assert_eq!(next.status(free), Some(Status::GRANTED), "nobody waits for a grace period");
    assert_eq!(next.status(unlock), Some(Status::GRANTED));
    let other = next.lock(2, 1, false);
    assert_eq!(next.status(other), Some(Status::GRANTED));
    assert!(world.called().is_empty());
}

#[test]
fn a_lock_that_moves_counts_for_smb_too() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let image = world.depart();
    let mut next = world.another(Limits::SERVER);
    next.nlm.locks.volume_gone(VOLUME);
    next.arrive(&image).unwrap();
    let filters = next.nlm.locks.volume_opened(VOLUME);
    assert!(filters.with_open.may_stand_on(&file(1).object));
    let unlock = next.unlock(1, 1);
    assert_eq!(next.status(unlock), Some(Status::GRANTED));
    assert!(!filters.with_open.may_stand_on(&file(1).object));
}

#[test]
fn the_home_before_gives_no_lock_any_more() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let _image = world.depart();
    let other = world.lock(1, 1, false);
    assert_eq!(world.status(other), Some(Status::STALE_FH));
    world.service.tidy();
    assert_eq!(world.catalog.monitored_hosts().unwrap().len(), 1, "it is the next home's");
}

#[test]
fn who_waits_goes_on_waiting_and_is_called_by_the_next_home() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.lock_first(2, 2);
    let waits = world.lock(2, 1, true);
    assert_eq!(world.status(waits), Some(Status::BLOCKED));
    let mut next = world.moved();
    assert!(next.called().is_empty());
    let unlock = next.unlock(1, 1);
    assert_eq!(next.status(unlock), Some(Status::GRANTED));
    assert_eq!(next.called(), [2], "its portmapper is asked");
    let other = next.lock(3, 1, false);
    assert_eq!(next.status(other), Some(Status::DENIED));
    assert!(world.called().is_empty());
}

#[test]
fn a_callback_under_way_ends_with_the_move_and_the_lock_is_the_client_s() {
    let mut world = World::new();
    world.lock_first(1, 1);
    world.lock_first(2, 2);
    let waits = world.lock(2, 1, true);
    assert_eq!(world.status(waits), Some(Status::BLOCKED));
    let mut unlock = world.unlock(1, 1);
    assert_eq!(unlock.poll(), Some(Status::GRANTED));
    assert_eq!(world.called(), [2]);
    let mut next = world.moved();
    assert!(world.called().is_empty(), "it is not called again from here");
    let other = next.lock(1, 1, false);
    assert_eq!(next.status(other), Some(Status::DENIED));
    let again = next.lock(2, 1, true);
    assert_eq!(next.status(again), Some(Status::GRANTED), "it asks again by itself");
}

#[test]
fn a_notice_that_a_client_repeats_after_the_move_frees_nothing() {
    let mut world = World::new();
    world.lock_first(1, 1);
    // The client restarts in the life 5, says so, and locks again.
    let grants = world.nlm.state().rebooted([10, 0, 0, 1].into(), b"host-1", 5);
    assert!(grants.is_empty());
    assert_eq!(world.held(), 0);
    let again = world.ask(1, 1, false, false, 5);
    assert_eq!(world.status(again), Some(Status::GRANTED));
    let mut next = world.moved();
    next.run_thread();
    let grants = next.nlm.state().rebooted([10, 0, 0, 1].into(), b"host-1", 5);
    assert!(grants.is_empty());
    assert_eq!(next.held(), 1);
    let grants = next.nlm.state().rebooted([10, 0, 0, 1].into(), b"host-1", 7);
    assert!(grants.is_empty());
    assert_eq!(next.held(), 0, "that is another restart");
}

#[test]
fn a_host_that_the_home_before_forgot_is_recorded_again() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let image = world.depart();
    world.catalog.forget_hosts(&[row(1, LOCAL)]).unwrap();
    let mut next = world.another(Limits::SERVER);
    next.arrive(&image).unwrap();
    assert_eq!(next.catalog.monitored_hosts().unwrap(), [row(1, LOCAL)]);
    next.service.tidy();
    assert_eq!(next.catalog.monitored_hosts().unwrap().len(), 1);
    let unlock = next.unlock(1, 1);
    assert_eq!(next.status(unlock), Some(Status::GRANTED));
    next.service.tidy();
    assert_eq!(next.catalog.monitored_hosts().unwrap(), []);
}

/// It would hear neither of the next home nor of its restart.
#[test]
fn locks_of_a_host_that_called_another_address_do_not_move() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let elsewhere = Arc::new(row(2, ELSEWHERE));
    world.catalog.monitor_host(&elsewhere).unwrap();
    world.nlm.state().beside.monitored.insert(&elsewhere);
    let host = Host::new(elsewhere.address, &elsewhere.name);
    let owner = weir_state::Owner::new(host.client(), b"owner");
    let range = weir_state::Range::ALL;
    let ask = Ask { file: file(7), owner, range, mode: weir_state::Mode::Exclusive };
    let mut grants = Vec::new();
    world.nlm.locks.tables().lock(Mono::ZERO, &ask, false, None, &mut grants).unwrap();
    assert_eq!(world.held(), 2);
    assert_eq!(world.moved().held(), 1);
}

#[test]
fn the_rest_of_a_grace_period_moves_with_those_who_were_not_told() {
    let world = World::new();
    for last in [1, 2] {
        world.catalog.monitor_host(&row(last, LOCAL)).unwrap();
    }
    let mut home = world.another(Limits::SERVER);
    home.nlm.inherit(&home.catalog, &BTreeSet::from([LOCAL]), [VOLUME], HOUR).unwrap();
    home.run_thread();
    home.service.hosts.notified(&row(1, LOCAL));
    let reclaim = home.reclaim(1, 1);
    assert_eq!(home.status(reclaim), Some(Status::GRANTED));
    let mut next = home.moved();
    assert!(next.nlm.totals().grace);
    assert_eq!(next.called(), [2], "the other was told before");
    let (new, again) = (next.lock(3, 3, false), next.reclaim(1, 2));
    assert_eq!(next.status(new), Some(Status::DENIED_GRACE_PERIOD));
    assert_eq!(next.status(again), Some(Status::GRANTED));
    assert_eq!(next.held(), 2);
}

/// A host ignores a notice with the number that it has heard last.
#[test]
fn a_host_that_is_owed_a_notice_gets_it_with_a_number_that_is_new() {
    let world = World::new();
    world.catalog.monitor_host(&row(1, LOCAL)).unwrap();
    // This life tells the host of its number, and gives the group away.
    let mut next = world.another(Limits::SERVER);
    let heard = next.service.state;
    // At the home after it the host becomes due again, and the group comes back.
    let mut home = world.another(Limits::SERVER);
    home.nlm.inherit(&home.catalog, &BTreeSet::from([LOCAL]), [VOLUME], HOUR).unwrap();
    home.run_thread();
    let image = home.depart();
    next.arrive(&image).unwrap();
    assert!(next.service.state > home.service.state && home.service.state > heard);
    next.nlm.notify(BTreeSet::from([LOCAL]));
    assert_eq!(next.called(), [1]);
    // Where nobody is owed one, the number stays.
    let mut other = World::new();
    other.lock_first(1, 1);
    let image = other.depart();
    let mut after = other.another(Limits::SERVER);
    let before = after.service.state;
    after.arrive(&image).unwrap();
    assert_eq!(after.service.state, before);
}

/// The volume was to be served here before, and was not.
#[test]
fn what_an_earlier_arrival_left_is_not_there_after_the_next_one() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let earlier = world.depart();
    let mut next = world.another(Limits::SERVER);
    next.arrive(&earlier).unwrap();
    let mut home = world.another(Limits::SERVER);
    home.lock_first(2, 2);
    let later = home.depart();
    next.arrive(&later).unwrap();
    assert_eq!(next.held(), 1);
    let (free, held) = (next.lock(2, 1, false), next.lock(1, 2, false));
    assert_eq!(next.status(free), Some(Status::GRANTED));
    assert_eq!(next.status(held), Some(Status::DENIED));
    let filters = next.nlm.locks.volume_opened(VOLUME);
    let unlock = next.unlock(2, 1);
    assert_eq!(next.status(unlock), Some(Status::GRANTED));
    assert!(!filters.with_open.may_stand_on(&file(1).object));
}

#[test]
fn a_grace_period_that_moves_is_no_longer_than_one_that_begins() {
    let world = World::new();
    world.catalog.monitor_host(&row(1, LOCAL)).unwrap();
    let mut home = world.another(Limits::SERVER);
    home.nlm.inherit(&home.catalog, &BTreeSet::from([LOCAL]), [VOLUME], HOUR * 100).unwrap();
    home.run_thread();
    let image = home.depart();
    let mut next = home.another(Limits::SERVER);
    next.arrive(&image).unwrap();
    let now = next.nlm.clock.now();
    let until = next.nlm.locks.tables().grace_until(now).unwrap();
    assert!(until.since(now) <= HOUR);
}

#[test]
fn locks_that_have_no_room_are_reclaimed_in_a_grace_period() {
    let mut world = World::new();
    world.lock_first(1, 1);
    let second = world.lock(1, 2, false);
    assert_eq!(world.status(second), Some(Status::GRANTED));
    let image = world.depart();
    let server = Use { locks: 1, ..Limits::SERVER.server };
    let mut next = world.another(Limits { server, ..Limits::SERVER });
    world.catalog.forget_hosts(&[row(1, LOCAL)]).unwrap();
    assert!(matches!(next.arrive(&image), Err(NotTaken::Refused(_))));
    assert_eq!((next.held(), world.catalog.monitored_hosts().unwrap()), (0, vec![]));
    world.catalog.monitor_host(&row(1, LOCAL)).unwrap();
    next.nlm.locks.volume_opened(VOLUME);
    next.nlm.inherit(&next.catalog, &BTreeSet::from([LOCAL]), [VOLUME], HOUR).unwrap();
    next.nlm.notify(BTreeSet::from([LOCAL]));
    assert_eq!(next.called(), [1]);
    let reclaim = next.reclaim(1, 1);
    assert_eq!(next.status(reclaim), Some(Status::GRANTED));
}

#[test]
fn the_calls_of_a_move_are_those_of_its_programs() {
    let mut world = World::new();
    world.catalog.monitor_host(&row(1, LOCAL)).unwrap();
    let mut home = world.another(Limits::SERVER);
    home.nlm.inherit(&home.catalog, &BTreeSet::from([LOCAL]), [VOLUME], HOUR).unwrap();
    home.run_thread();
    world = home.moved();
    world.run_thread();
    world.service.tick();
    let [ask] = &world.service.out[..] else { panic!("one host is owed a notice") };
    let call = Call::parse(ask.bytes.clone().into()).unwrap();
    let asked: weir_nfs::rpcbind::wire::Mapping = weir_nfs::xdr::decode(&call.args).unwrap();
    assert_eq!((asked.program, ask.from), (PROGRAM_NSM, LOCAL));
}
