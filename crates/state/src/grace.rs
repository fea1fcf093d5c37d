//! The time after a restart in which those who held locks on a volume before may take them again,
//! and nobody else may take any there (RFC 7530 §9.6.2 tells why; NLM does the same).

use crate::error::Refused;
use crate::owner::{Client, Protocol};
use alloc::collections::BTreeSet;
use weir_core::{Mono, Origin, VolumeId};

/// A grace period, or none.
#[derive(Debug, Default)]
pub(crate) struct Grace {
    period: Option<Period>,
}

#[derive(Debug)]
struct Period {
    until: Mono,
    /// The volumes that were served before the restart. A volume that is new since has no locks to
    /// reclaim.
    volumes: BTreeSet<VolumeId>,
    /// The clients that held something before the restart.
    known: BTreeSet<Client>,
    /// The clients that may still reclaim.
    awaited: BTreeSet<Client>,
}

impl Grace {
    /// Begins the grace period of `volumes`, which lasts until `until`, or until `clients` are all
    /// done. Without clients there is nothing to wait for.
    pub(crate) fn begin(
        &mut self,
        until: Mono,
        volumes: impl IntoIterator<Item = VolumeId>,
        clients: impl IntoIterator<Item = Client>,
    ) {
        let known: BTreeSet<Client> = clients.into_iter().collect();
        let volumes = volumes.into_iter().collect();
        self.period = Some(Period { until, volumes, awaited: known.clone(), known })
            .filter(|period| !period.awaited.is_empty());
    }

    /// Nothing more is to be expected of `client`.
    pub(crate) fn done(&mut self, client: &Client) {
        if let Some(period) = &mut self.period {
            period.awaited.remove(client);
            if period.awaited.is_empty() {
                self.period = None;
            }
        }
    }

    /// The clients of `origin` that may still reclaim.
    pub(crate) fn awaited_at(
        &self,
        protocol: Protocol,
        origin: Origin,
    ) -> impl Iterator<Item = &Client> {
        let first = Client::new(protocol, origin, &[]);
        let all = self.period.iter().flat_map(move |period| period.awaited.range(first.clone()..));
        all.take_while(move |client| (client.protocol(), client.origin()) == (protocol, origin))
    }

    /// Latest end of the grace period; `None` if it is over at `now`.
    pub(crate) fn until(&self, now: Mono) -> Option<Mono> {
        self.period.as_ref().map(|period| period.until).filter(|until| now < *until)
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
        let period = self.period.as_ref().filter(is_on);
        match (period, reclaim) {
            (None, false) => Ok(()),
            (Some(_), false) => Err(Refused::Grace),
            (Some(period), true) if period.known.contains(client) => Ok(()),
            (_, true) => Err(Refused::NoReclaim),
        }
    }
}
