//! The time after a restart in which those who held locks on a volume before may take them again,
//! and nobody else may take any there (RFC 7530 §9.6.2 tells why; NLM does the same).

use crate::error::Refused;
use crate::owner::{Client, Protocol};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::time::Duration;
use weir_core::{Mono, Origin, VolumeId};

/// The grace periods, which begin and end apart: each is that of some volumes.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    /// No volume is in two of them, so there are no more than volumes.
    periods: Vec<Period>,
}

#[derive(Debug)]
struct Period {
    until: Mono,
    /// The volumes that were served before the restart. A volume that is new since has no locks to
    /// reclaim.
    volumes: BTreeSet<VolumeId>,
    clients: Claimants,
}

/// The clients of a grace period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimants {
    /// The clients that held something before the restart, which alone may reclaim.
    pub known: BTreeSet<Client>,
    /// The clients that may still have something to reclaim. The period ends with the last one.
    pub awaited: BTreeSet<Client>,
}

/// The rest of the grace period of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraceLeft {
    /// The longest time that it lasts.
    pub time: Duration,
    /// Its clients.
    pub clients: Claimants,
}

impl Claimants {
    /// Clients of which all are awaited.
    fn all(clients: impl IntoIterator<Item = Client>) -> Self {
        let known: BTreeSet<Client> = clients.into_iter().collect();
        Self { awaited: known.clone(), known }
    }
}

impl Grace {
    /// Begins the grace period of `volumes`, in place of any that they have. It lasts until
    /// `until`, or until `clients` are all done. Without clients there is nothing to wait for.
    pub(crate) fn begin(
        &mut self,
        until: Mono,
        volumes: impl IntoIterator<Item = VolumeId>,
        clients: impl IntoIterator<Item = Client>,
    ) {
        self.go_on(until, volumes.into_iter().collect(), Claimants::all(clients));
    }

    /// As [`Self::begin`], for a period that began elsewhere.
    pub(crate) fn go_on(&mut self, until: Mono, volumes: BTreeSet<VolumeId>, clients: Claimants) {
        for period in &mut self.periods {
            period.volumes.retain(|volume| !volumes.contains(volume));
        }
        self.periods.push(Period { until, volumes, clients });
        self.tidy();
    }

    /// Ends the grace period of `volume`, which goes on elsewhere; gives what is left of it.
    pub(crate) fn leave(&mut self, now: Mono, volume: VolumeId) -> Option<GraceLeft> {
        let mut periods = self.periods.iter_mut();
        let period = periods.find_map(|period| period.volumes.remove(&volume).then_some(period))?;
        let left = (now < period.until)
            .then(|| GraceLeft { time: period.until.since(now), clients: period.clients.clone() });
        self.tidy();
        left
    }

    /// Nothing more is to be expected of `client`.
    pub(crate) fn done(&mut self, client: &Client) {
        for period in &mut self.periods {
            period.clients.awaited.remove(client);
        }
        self.tidy();
    }

    /// The clients of `origin` that may still reclaim; one may come more than once.
    pub(crate) fn awaited_at(
        &self,
        protocol: Protocol,
        origin: Origin,
    ) -> impl Iterator<Item = &Client> {
        let first = Client::new(protocol, origin, &[]);
        let is_there =
            move |client: &&Client| (client.protocol(), client.origin()) == (protocol, origin);
        self.periods.iter().flat_map(move |period| {
            period.clients.awaited.range(first.clone()..).take_while(is_there)
        })
    }

    /// Latest end of any grace period; `None` if all are over at `now`.
    pub(crate) fn until(&self, now: Mono) -> Option<Mono> {
        self.periods.iter().map(|period| period.until).max().filter(|until| now < *until)
    }

    /// May `client` take something on `volume`, as a reclaim or not?
    pub(crate) fn admit(
        &self,
        now: Mono,
        volume: VolumeId,
        client: &Client,
        reclaim: bool,
    ) -> Result<(), Refused> {
        let is_on = |period: &&Period| now < period.until && period.volumes.contains(&volume);
        let period = self.periods.iter().find(is_on);
        match (period, reclaim) {
            (None, false) => Ok(()),
            (Some(_), false) => Err(Refused::Grace),
            (Some(period), true) if period.clients.known.contains(client) => Ok(()),
            (_, true) => Err(Refused::NoReclaim),
        }
    }

    /// Forgets the periods that nobody waits for.
    fn tidy(&mut self) {
        self.periods
            .retain(|period| !period.volumes.is_empty() && !period.clients.awaited.is_empty());
    }
}
