//! Groups of volumes that come to this server and go, where several gateways share a catalogue.
//!
//! The order of an arrival: the locks that the last home handed over are here, or the hosts that
//! held them are known and have their grace period; the volumes are open; then, elsewhere, their
//! addresses come; then the hosts are told that are owed a notice. The order of a departure: the
//! addresses are gone (elsewhere), the hosts are left to the next home, requests that come are
//! dropped, those under way have ended, data are synced, files closed, and the locks and cached
//! replies are written for the next home.
//!
//! Not here: which server is a group's home, when (`weir-cluster`), the addresses on interfaces
//! (`weir-address`), and the content of what is handed over (`weir-handover`). Calls block, and
//! those about one group come one after the other.

use crate::engine::{Engine, at_once, credits};
use crate::session::Waiter;
use crate::session::rpc::nlm::{HostsLeft, NotTaken};
use crate::sync::{Arc, Mutex, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use weir_catalog::{Catalog, CatalogError, Volume};
use weir_cluster::{GroupId, Life};
use weir_control::plane::{Plane as _, PlaneError};
use weir_core::{Clock as _, VolumeId};
use weir_handover::{Image, Move, Unusable};
use weir_state::VolumeLocks;

/// A group did not arrive, or did not leave.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// A volume cannot be served.
    #[error(transparent)]
    Volume(#[from] PlaneError),
    /// The catalogue fails.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Requests still hold volumes of the group.
    #[error("requests are still under way on {0} volume(s) of the group")]
    Busy(usize),
    /// The next home might take what an earlier move has left for the state of now.
    #[error("what an earlier move has left is not known to be gone: {0}")]
    Left(String),
}

/// How a group comes to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It had no home before.
    New,
    /// The life before has ended. Its clients' locks are lost, and can be reclaimed.
    Taken,
    /// The life `from` gave it over to this one, which is `to`, with what its clients hold.
    Handed {
        /// The life before.
        from: Life,
        /// This life.
        to: Life,
    },
    /// It was stopped here, and nobody has served it since.
    Back,
}

/// A group that leaves, or has left.
#[derive(Default)]
struct Departure {
    hosts: HostsLeft,
    locks: BTreeMap<VolumeId, VolumeLocks<Waiter>>,
    /// The images of its volumes, from when no request holds them any more.
    images: Option<BTreeMap<VolumeId, Image>>,
    /// The life that gives it up, and the one that gets it.
    between: Option<(Life, Life)>,
}

/// The images of the volumes of a group.
type Images = Vec<(VolumeId, Image)>;

/// The groups of a server.
pub struct Groups {
    engine: Arc<Engine>,
    catalog: Arc<Catalog>,
    grace: Duration,
    patience: Duration,
    /// The groups that arrive, whose locks are here, or whose hosts have their grace period; with
    /// the volumes for which that was prepared.
    arriving: Mutex<BTreeMap<GroupId, BTreeSet<VolumeId>>>,
    /// The images of groups that were taken and could not be used yet, and the way of the arrival.
    /// Nobody else has them.
    taken: Mutex<BTreeMap<GroupId, (Arrival, Images)>>,
    departures: Mutex<BTreeMap<GroupId, Departure>>,
}

impl Groups {
    /// The groups of the server of `engine`. After an arrival locks can be reclaimed for `grace`;
    /// a departure waits for requests at most for `patience`.
    pub(crate) fn new(
        engine: Arc<Engine>,
        catalog: Arc<Catalog>,
        grace: Duration,
        patience: Duration,
    ) -> Self {
        let (arriving, taken, departures) = Default::default();
        Self { engine, catalog, grace, patience, arriving, taken, departures }
    }

    /// Begins to serve the volumes of `group`, which clients reach by `addresses`. To be called
    /// again after a failure.
    ///
    /// # Errors
    /// [`GroupError::Volume`], [`GroupError::Catalog`], and then volumes that could be opened are
    /// served; [`GroupError::Busy`] if the group has not left yet.
    pub fn adopt(
        &self,
        group: GroupId,
        addresses: &BTreeSet<IpAddr>,
        arrival: Arrival,
    ) -> Result<(), GroupError> {
        match self.engine.leaving(group) {
            0 => {}
            held => return Err(GroupError::Busy(held)),
        }
        // The volumes of other groups have their own failures.
        let _others = self.engine.apply(self.catalog.snapshot());
        let volumes = self.engine.volumes_of(group);
        if !lock(&self.arriving).contains_key(&group) {
            self.prepare(group, addresses, &volumes, arrival)?;
            let prepared = volumes.iter().map(|config| config.id).collect();
            lock(&self.arriving).insert(group, prepared);
        }
        self.engine.take_credits(self.catalog.credits()?, &volumes);
        self.engine.adopt_group(group)?;
        let prepared = lock(&self.arriving).remove(&group).unwrap_or_default();
        // Of a volume that was deleted or has left the group since.
        drop(self.release_unserved(&prepared));
        Ok(())
    }

    /// Ends the tables that were prepared for volumes which are not served. Gives their locks.
    fn release_unserved(
        &self,
        prepared: &BTreeSet<VolumeId>,
    ) -> BTreeMap<VolumeId, VolumeLocks<Waiter>> {
        let locks = self.engine.release_unserved(prepared);
        if !locks.is_empty()
            && let Some(nlm) = &self.engine.nlm
        {
            nlm.note_released();
        }
        locks
    }

    /// Has the locks of `volumes` here, or a grace period for them begun, before they are served.
    fn prepare(
        &self,
        group: GroupId,
        addresses: &BTreeSet<IpAddr>,
        volumes: &[Arc<Volume>],
        arrival: Arrival,
    ) -> Result<(), GroupError> {
        let departure = lock(&self.departures).remove(&group);
        let between = match arrival {
            Arrival::New => return Ok(()),
            Arrival::Taken => None,
            Arrival::Handed { from, to } => Some((from, to)),
            Arrival::Back => departure.and_then(|departure| departure.between),
        };
        let images = self
            .taken_before(group, arrival)
            .or_else(|| between.and_then(|between| self.take_images(volumes, between)));
        let Some(nlm) = &self.engine.nlm else { return Ok(()) };
        if let Some(images) = images {
            let count = images.len();
            match nlm.take_up(&self.catalog, addresses, &images, self.grace) {
                Ok(()) => {
                    tracing::info!(%group, volumes = count, "locks moved with a group of volumes");
                    return Ok(());
                }
                Err(NotTaken::Catalog(error)) => {
                    // Their files are removed: the next call uses them.
                    lock(&self.taken).insert(group, (arrival, images));
                    return Err(error.into());
                }
                Err(error @ (NotTaken::Refused(_) | NotTaken::Hosts(_))) => {
                    tracing::warn!(%group, %error, "locks did not move: a grace period begins");
                }
            }
        }
        let ids = volumes.iter().map(|config| config.id);
        Ok(nlm.inherit(&self.catalog, addresses, ids, self.grace)?)
    }

    /// The images that an earlier call took for the same arrival of `group`.
    fn taken_before(&self, group: GroupId, arrival: Arrival) -> Option<Images> {
        let (of, images) = lock(&self.taken).remove(&group)?;
        (of == arrival).then_some(images)
    }

    /// Takes the images with which `volumes` came, and the cached replies in them. None if one of
    /// the volumes has none that may be used: a host reclaims all its locks or none.
    fn take_images(&self, volumes: &[Arc<Volume>], (from, to): (Life, Life)) -> Option<Images> {
        let ceph = self.engine.ceph.as_ref()?;
        let snapshot = self.catalog.snapshot();
        let take = |config: &Arc<Volume>| {
            let settled = ceph.settle(&snapshot, config);
            let taken = settled.and_then(|()| ceph.take_image(config)).map_err(Unusable::Unread)?;
            let of = Move { volume: config.id, from, to };
            Image::decode(&taken.ok_or(Unusable::Missing)?, of)
        };
        let taken = volumes.iter().zip(at_once(volumes, take));
        let images = taken.map(|(config, taken)| {
            let unread = || Err(Unusable::Unread("reading it failed".to_owned()));
            match taken.unwrap_or_else(unread) {
                Ok(mut image) => {
                    let replies = std::mem::take(&mut image.replies);
                    self.engine.clients.take_up(config.id, &replies, self.engine.clock.now());
                    Some((config.id, image))
                }
                Err(reason) => {
                    tracing::warn!(volume = %config.name, %reason, "the image of a volume that moved is not used: a grace period begins");
                    None
                }
            }
        });
        // All of them, also behind the first that is not used.
        images.collect::<Vec<_>>().into_iter().collect()
    }

    /// Tells the hosts of the group that are owed a notice of a restart. Its addresses are here.
    pub fn notify(&self, addresses: BTreeSet<IpAddr>) {
        if let Some(nlm) = &self.engine.nlm {
            nlm.notify(addresses);
        }
    }

    /// Ends to serve `group`, whose `addresses` are gone from this machine: when it returns `Ok`,
    /// no reply is under way and no file open, all data and the credits are stored; and if the
    /// group goes `between` this life and another one, what its clients hold is written for that
    /// one, as far as it can be. To be called again after a failure. A server that stops meanwhile
    /// closes what was released.
    ///
    /// # Errors
    /// [`GroupError::Busy`], [`GroupError::Left`].
    pub fn stop(
        &self,
        group: GroupId,
        addresses: &BTreeSet<IpAddr>,
        between: Option<(Life, Life)>,
    ) -> Result<(), GroupError> {
        let mut departure = lock(&self.departures).remove(&group).unwrap_or_default();
        let prepared = lock(&self.arriving).remove(&group).unwrap_or_default();
        lock(&self.taken).remove(&group);
        self.leave_hosts(&mut departure, addresses);
        credits::save_all(&self.engine);
        departure.locks.extend(self.engine.release_group(group));
        // Nothing was opened of these, so what came for them can go on.
        departure.locks.extend(self.release_unserved(&prepared));
        self.leave_hosts(&mut departure, addresses);
        let done = match self.engine.close_released(group, self.patience) {
            0 => self.hand_over(group, &mut departure, between),
            held => Err(GroupError::Busy(held)),
        };
        if done.is_ok() {
            departure = Departure { between, ..Departure::default() };
        }
        lock(&self.departures).insert(group, departure);
        done
    }

    fn leave_hosts(&self, departure: &mut Departure, addresses: &BTreeSet<IpAddr>) {
        let left = self.engine.nlm.as_ref().map(|nlm| nlm.leave(addresses.clone()));
        // Without an answer the server stops, and nothing moves.
        if let Some(Ok(left)) = left.map(|left| left.blocking_recv()) {
            departure.hosts.add(left);
        }
    }

    /// Writes the images of the group's volumes, which are closed. What an earlier move has left is
    /// removed in any case; a volume without an image has a grace period at its next home.
    fn hand_over(
        &self,
        group: GroupId,
        departure: &mut Departure,
        between: Option<(Life, Life)>,
    ) -> Result<(), GroupError> {
        let (Some((from, to)), Some(ceph)) = (between, &self.engine.ceph) else { return Ok(()) };
        let images = &*self.images(departure);
        let write = |config: &Arc<Volume>| {
            ceph.clear_image(config).map_err(GroupError::Left)?;
            let Some(image) = images.get(&config.id) else { return Ok(()) };
            let of = Move { volume: config.id, from, to };
            let bytes = image.encode(of).map_err(|error| error.to_string());
            if let Err(reason) = bytes.and_then(|bytes| ceph.put_image(config, &bytes)) {
                tracing::warn!(volume = %config.name, %reason, "no image of a volume that moves was written: its next home begins a grace period");
            }
            Ok(())
        };
        let lost = || Err(GroupError::Left("writing failed with an internal error".to_owned()));
        let done = at_once(&self.engine.volumes_of(group), write);
        done.into_iter().try_for_each(|done| done.unwrap_or_else(lost))
    }

    /// The images of the volumes that leave, made once.
    fn images<'a>(&self, departure: &'a mut Departure) -> &'a mut BTreeMap<VolumeId, Image> {
        let Departure { hosts, locks, images, .. } = departure;
        images.get_or_insert_with(|| {
            let nlm = self.engine.nlm.as_ref();
            let image =
                |(id, locks)| (id, nlm.map(|nlm| nlm.image(locks, hosts)).unwrap_or_default());
            let mut images: BTreeMap<_, _> = std::mem::take(locks).into_iter().map(image).collect();
            let volumes: BTreeSet<VolumeId> = images.keys().copied().collect();
            let now = self.engine.clock.now();
            for (volume, answered) in self.engine.clients.hand_over(&volumes, now) {
                images.entry(volume).or_default().replies.push(answered);
            }
            images
        })
    }
}
