//! Which addresses are held until when, and what is due for them: rules as plain data, with `now`
//! as an argument. Not here: the kernel.

use crate::announce::Connection;
use crate::limits::{ADDRESSES_MAX, ANNOUNCE_AFTER_MS, LEASE_MAX, TICKLE_AFTER_MS, TICKLES_MAX};
use crate::place::Place;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_core::Mono;

/// The held addresses.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    held: BTreeMap<IpAddr, Held>,
}

#[derive(Debug)]
struct Held {
    place: Place,
    until: Mono,
    /// Nothing may leave from the address.
    silent: bool,
    announcements: Series,
    tickled: Vec<Connection>,
    tickles: Series,
}

/// Something that is to be done for an address now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due<'a> {
    /// Its lease has ended: it is to be removed. It is no longer among the held ones.
    Ended(Place),
    /// It is to be announced.
    Announce(&'a Place),
    /// These connections are to be tickled.
    Tickle(IpAddr, &'a [Connection]),
}

/// Whether an address that is to be held is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    New,
    Present,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the lease has ended already")]
    Late,
    #[error("a lease ends at most {} s from now", LEASE_MAX.as_secs())]
    Long,
    #[error("{held} is held already: release it before it is held as {wanted}")]
    Elsewhere { held: Place, wanted: Place },
    #[error("{ADDRESSES_MAX} addresses are held, which is the most")]
    Full,
    #[error("{0} is not held")]
    NotHeld(IpAddr),
    #[error("more than {TICKLES_MAX} connections of {0} are being tickled")]
    Tickles(IpAddr),
}

/// Moments in growing distances from a start.
#[derive(Clone, Copy, Debug)]
struct Series {
    start: Mono,
    after_ms: &'static [u64],
    /// Moments that have passed.
    passed: usize,
}

impl Series {
    fn new(start: Mono, after_ms: &'static [u64]) -> Self {
        Self { start, after_ms, passed: 0 }
    }

    fn next(&self) -> Option<Mono> {
        let after = *self.after_ms.get(self.passed)?;
        Some(self.start + Duration::from_millis(after))
    }

    /// Has a moment come since the last call? Several count once: they were missed.
    fn take(&mut self, now: Mono) -> bool {
        let before = self.passed;
        while self.next().is_some_and(|next| next <= now) {
            self.passed += 1;
        }
        self.passed > before
    }
}

/// Checks the end of a lease against `now`.
///
/// # Errors
/// [`Refusal::Late`] and [`Refusal::Long`]
pub(crate) fn check_end(until: Mono, now: Mono) -> Result<(), Refusal> {
    if until <= now {
        return Err(Refusal::Late);
    }
    if until.since(now) > LEASE_MAX {
        return Err(Refusal::Long);
    }
    Ok(())
}

impl Holdings {
    /// May `place` be held, and is it already?
    ///
    /// # Errors
    /// [`Refusal`]
    pub(crate) fn check(&self, place: &Place) -> Result<Holding, Refusal> {
        match self.held.get(&place.address()) {
            Some(held) if held.place == *place => Ok(Holding::Present),
            Some(held) => {
                Err(Refusal::Elsewhere { held: held.place.clone(), wanted: place.clone() })
            }
            None if self.held.len() >= ADDRESSES_MAX => Err(Refusal::Full),
            None => Ok(Holding::New),
        }
    }

    /// Holds an address that was checked and added; its announcements begin.
    pub(crate) fn hold(&mut self, place: Place, until: Mono, now: Mono) {
        let held = Held {
            until,
            silent: false,
            announcements: Series::new(now, ANNOUNCE_AFTER_MS),
            tickled: Vec::new(),
            tickles: Series::new(now, &[]),
            place,
        };
        self.held.insert(held.place.address(), held);
    }

    /// Extends the lease of an address; it never becomes shorter. A silenced one may be used again.
    pub(crate) fn extend(&mut self, address: IpAddr, until: Mono) {
        if let Some(held) = self.held.get_mut(&address) {
            held.until = held.until.max(until);
            held.silent = false;
        }
    }

    /// Lets nothing leave from an address until it is extended.
    pub(crate) fn silence(&mut self, address: IpAddr) {
        if let Some(held) = self.held.get_mut(&address) {
            held.silent = true;
        }
    }

    /// Extends the leases of all addresses; none becomes shorter.
    pub(crate) fn renew(&mut self, until: Mono) {
        for held in self.held.values_mut() {
            held.until = held.until.max(until);
        }
    }

    /// Gives an address up.
    pub(crate) fn release(&mut self, address: IpAddr) -> Option<Place> {
        self.held.remove(&address).map(|held| held.place)
    }

    /// Begins to tickle connections, and once more those that are being tickled.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`] and [`Refusal::Tickles`]
    pub(crate) fn tickle(
        &mut self,
        local: SocketAddr,
        clients: &[SocketAddr],
        now: Mono,
    ) -> Result<(), Refusal> {
        let address = local.ip();
        let held = self.held.get_mut(&address).ok_or(Refusal::NotHeld(address))?;
        if held.tickled.len() + clients.len() > TICKLES_MAX {
            return Err(Refusal::Tickles(address));
        }
        held.tickled.extend(clients.iter().map(|client| (local, *client)));
        held.tickles = Series::new(now, TICKLE_AFTER_MS);
        Ok(())
    }

    /// The next thing that is due, until there is none.
    pub(crate) fn due(&mut self, now: Mono) -> Option<Due<'_>> {
        let ended = self.held.values().find(|held| held.until <= now);
        if let Some(address) = ended.map(|held| held.place.address()) {
            return self.release(address).map(Due::Ended);
        }
        for held in self.held.values_mut().filter(|held| !held.silent) {
            if held.tickles.next().is_none() {
                // Assigned rather than cleared: the room of a long list is given back.
                held.tickled = Vec::new();
            }
            if held.announcements.take(now) {
                return Some(Due::Announce(&held.place));
            }
            if held.tickles.take(now) {
                return Some(Due::Tickle(held.place.address(), &held.tickled));
            }
        }
        None
    }

    /// The moment at which something will be due.
    pub(crate) fn wake_at(&self) -> Option<Mono> {
        let next = |held: &Held| {
            let series = [held.announcements.next(), held.tickles.next()];
            let series = series.into_iter().flatten().filter(|_| !held.silent);
            series.fold(held.until, Mono::min)
        };
        self.held.values().map(next).min()
    }

    /// The held addresses with their places and the ends of their leases.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Place, Mono)> {
        self.held.values().map(|held| (&held.place, held.until))
    }

    /// The addresses from which something may leave, with the ends of their leases.
    pub(crate) fn leased(&self) -> impl Iterator<Item = (IpAddr, Mono)> {
        let leased = self.held.values().filter(|held| !held.silent);
        leased.map(|held| (held.place.address(), held.until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Interface;

    fn place(last: u8, interface: &str) -> Place {
        let interface = Interface::parse(interface).unwrap();
        Place::new(IpAddr::from([10, 0, 1, last]), 32, interface).unwrap()
    }

    fn at(millis: u64) -> Mono {
        Mono::from_millis(100_000 + millis)
    }

    /// Everything that is due, in short words.
    fn due(holdings: &mut Holdings, now: Mono) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(due) = holdings.due(now) {
            all.push(match due {
                Due::Ended(place) => format!("end {}", place.address()),
                Due::Announce(place) => format!("announce {}", place.address()),
                Due::Tickle(address, connections) => {
                    format!("tickle {address} {}", connections.len())
                }
            });
        }
        all
    }

    #[test]
    fn an_address_is_announced_in_growing_distances_and_ends_with_its_lease() {
        let mut holdings = Holdings::default();
        assert_eq!(holdings.wake_at(), None);
        holdings.hold(place(1, "eth0"), at(3_000), at(0));
        let mut told = Vec::new();
        while let Some(now) = holdings.wake_at() {
            assert_eq!(due(&mut holdings, Mono(now.0 - 1)), [""; 0], "not a moment too early");
            for what in due(&mut holdings, now) {
                told.push((now.since(at(0)).as_millis(), what));
            }
        }
        let expected = [(0, "announce"), (250, "announce"), (1_000, "announce"), (3_000, "end")];
        let expected = expected.map(|(after, what)| (after, format!("{what} 10.0.1.1")));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_renewal_extends_all_leases_and_shortens_none() {
        let mut holdings = Holdings::default();
        holdings.hold(place(1, "eth0"), at(3_000), at(0));
        holdings.hold(place(2, "eth0"), at(9_000), at(0));
        holdings.renew(at(5_000));
        let ends: Vec<Mono> = holdings.all().map(|(_, until)| until).collect();
        assert_eq!(ends, [at(5_000), at(9_000)]);
        due(&mut holdings, at(4_999));
        assert_eq!(due(&mut holdings, at(5_000)), ["end 10.0.1.1"]);
        assert_eq!(due(&mut holdings, at(60_000)), ["end 10.0.1.2"], "late, and without the rest");
    }

    #[test]
    fn a_silenced_address_has_no_lease_until_it_is_extended_and_ends_all_the_same() {
        let mut holdings = Holdings::default();
        holdings.hold(place(1, "eth0"), at(3_000), at(0));
        holdings.hold(place(2, "eth0"), at(3_000), at(0));
        let (one, two) = (place(1, "eth0").address(), place(2, "eth0").address());
        holdings.silence(one);
        holdings.renew(at(4_000));
        let leased = |holdings: &Holdings| holdings.leased().collect::<Vec<_>>();
        assert_eq!(leased(&holdings), [(two, at(4_000))], "a renewal does not end the silence");
        assert_eq!(due(&mut holdings, at(0)), ["announce 10.0.1.2"]);
        holdings.extend(one, at(5_000));
        assert_eq!(leased(&holdings), [(one, at(5_000)), (two, at(4_000))]);
        assert_eq!(due(&mut holdings, at(0)), ["announce 10.0.1.1"]);
        holdings.release(two);
        holdings.silence(one);
        assert_eq!(holdings.wake_at(), Some(at(5_000)), "only its end is due");
        assert_eq!(due(&mut holdings, at(5_000)), ["end 10.0.1.1"]);
    }

    #[test]
    fn moments_that_were_missed_count_once() {
        let mut holdings = Holdings::default();
        holdings.hold(place(1, "eth0"), at(50_000), at(0));
        assert_eq!(due(&mut holdings, at(5_000)), ["announce 10.0.1.1"]);
        assert_eq!(holdings.wake_at(), Some(at(7_000)));
    }

    #[test]
    fn tickles_are_repeated_and_then_forgotten() {
        let mut holdings = Holdings::default();
        let local: SocketAddr = "10.0.1.1:2049".parse().unwrap();
        let clients: Vec<SocketAddr> =
            (1..=3).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect();
        let refused = holdings.tickle(local, &clients, at(0));
        assert_eq!(refused, Err(Refusal::NotHeld(local.ip())));
        holdings.hold(place(1, "eth0"), at(50_000), at(0));
        due(&mut holdings, at(20_000));
        holdings.tickle(local, &clients, at(20_000)).unwrap();
        assert_eq!(due(&mut holdings, at(20_000)), ["tickle 10.0.1.1 3"]);
        holdings.tickle(local, &clients[..1], at(20_100)).unwrap();
        for moment in [20_100, 20_800, 22_200] {
            assert_eq!(holdings.wake_at(), Some(at(moment)));
            assert_eq!(due(&mut holdings, at(moment)), ["tickle 10.0.1.1 4"], "{moment}");
        }
        assert_eq!(holdings.wake_at(), Some(at(50_000)));
        due(&mut holdings, at(30_000));
        let many = vec![clients[0]; TICKLES_MAX];
        holdings.tickle(local, &many, at(30_000)).unwrap();
        let refused = holdings.tickle(local, &clients[..1], at(30_000));
        assert_eq!(refused, Err(Refusal::Tickles(local.ip())));
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        assert_eq!(check_end(at(0), at(0)), Err(Refusal::Late));
        assert_eq!(check_end(at(60_001), at(0)), Err(Refusal::Long));
        assert_eq!(check_end(at(60_000), at(0)), Ok(()));
        let mut holdings = Holdings::default();
        assert_eq!(holdings.check(&place(1, "eth0")), Ok(Holding::New));
        holdings.hold(place(1, "eth0"), at(1), at(0));
        assert_eq!(holdings.check(&place(1, "eth0")), Ok(Holding::Present));
        let refused = holdings.check(&place(1, "eth1")).unwrap_err().to_string();
        assert_eq!(
            refused,
            "10.0.1.1/32 on eth0 is held already: release it before it is held as 10.0.1.1/32 on eth1"
        );
        for last in 2..=255 {
            holdings.hold(place(last, "eth0"), at(1), at(0));
        }
        holdings.hold(place(0, "eth0"), at(1), at(0));
        let interface = Interface::parse("eth0").unwrap();
        let more = Place::new(IpAddr::from([10, 0, 2, 1]), 32, interface).unwrap();
        assert_eq!(holdings.check(&more), Err(Refusal::Full));
        assert_eq!(holdings.check(&place(9, "eth0")), Ok(Holding::Present));
        assert_eq!(holdings.release(place(9, "eth0").address()), Some(place(9, "eth0")));
        assert_eq!(holdings.check(&more), Ok(Holding::New));
    }
}
