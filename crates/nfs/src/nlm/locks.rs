//! The table of locks as NLM uses it: carries out calls, and follows up on what it granted.

use super::callback::{ATTEMPTS_MAX, Callback, Delivery, Next};
use super::host::{Host, same_name};
use super::ops::{self, Context};
use super::request::Request;
use super::states::States;
use super::wire::{Procedure, Res, Status};
use crate::rpc::reply;
use crate::xdr::{Writer, decode};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::net::IpAddr;
use weir_core::{Mono, Origin, VolumeId};
use weir_state::{Client, File, Grant, GrantId, Limits, Protocol, Table, Use};

/// The two ends of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The client's address.
    pub address: IpAddr,
    /// The address of ours that it called. It knows us by that one, so callbacks come from it.
    pub local: IpAddr,
}

/// The data for telling a client that its lock was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub(super) local: IpAddr,
    /// The handle as the client sent it: clients compare.
    pub(super) handle: Box<[u8]>,
    /// Did it ask by LOCK_MSG, and so wants to be told by GRANTED_MSG?
    pub(super) by_message: bool,
}

/// A call that was carried out.
#[derive(Debug)]
pub struct Served {
    /// The complete reply record, with its mark.
    pub reply: Vec<u8>,
    /// The outcome, also where the reply does not tell.
    pub status: Status,
    /// Calls to make of clients, the reply first.
    pub callbacks: Vec<Callback>,
}

/// All locks and shares, and what is known of the hosts that asked for them.
#[derive(Debug)]
pub struct Locks {
    pub(super) table: Table<Waiting>,
    pub(super) states: States,
}

impl Locks {
    /// No locks, and no hosts.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { table: Table::new(limits), states: States::default() }
    }

    /// Begins the grace period that follows a restart, in which only these hosts may take locks,
    /// and only those they held before. It ends at `until`, or when all of them have restarted too.
    pub fn begin_grace(&mut self, until: Mono, hosts: impl IntoIterator<Item = Host>) {
        self.table.begin_grace(until, hosts.into_iter().map(|host| host.client()));
    }

    /// Latest end of the grace period; `None` if there is none at `now`.
    #[must_use]
    pub fn grace_until(&self, now: Mono) -> Option<Mono> {
        self.table.grace_until(now)
    }

    /// The use of all clients together.
    #[must_use]
    pub fn used(&self) -> Use {
        self.table.used()
    }

    /// The hosts that hold anything or wait.
    pub fn hosts(&self) -> impl Iterator<Item = Host> {
        self.table.clients().filter_map(Host::of)
    }

    /// Does `host` hold anything, or wait?
    #[must_use]
    pub fn has(&self, host: &Host) -> bool {
        self.table.has(&host.client())
    }

    /// The hosts whose last lock or waiter went away since the last call. A returned host may hold
    /// something again.
    pub fn take_left(&mut self) -> Vec<Host> {
        self.table.take_left().iter().filter_map(Host::of).collect()
    }

    /// Would the grace period refuse `request` of `host` at `now`, whatever locks are held?
    #[must_use]
    pub fn is_too_early(&self, now: Mono, host: &Host, request: &Request<'_>) -> bool {
        self.table.admits(now, &host.client(), request.reclaims()).is_err()
    }

    /// Carries out a call that came from `peer`. `file` is the file that [`Request::target`] led
    /// to, or why there is none; without a target it does not matter. `reply` is a pooled buffer:
    /// its content is dropped, its capacity is used.
    ///
    /// A call that is repeated, because its answer got lost, gets the same answer again.
    #[must_use]
    pub fn serve(
        &mut self,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        file: Result<File, Status>,
        xid: u32,
        reply: Vec<u8>,
    ) -> Served {
        let mut cx = Context { locks: self, now, peer, file, grants: Vec::new() };
        let answer = ops::carry_out(&mut cx, request);
        let mut callbacks: Vec<Callback> = cx.grants.iter().filter_map(Callback::granted).collect();
        let status = answer.status();
        let mut out = reply::begin(reply, xid);
        match request.answered_by() {
            None => answer.encode(request, &mut out),
            Some(procedure) => {
                let mut args = Writer::default();
                answer.encode(request, &mut args);
                callbacks.insert(0, Callback::answer(*peer, procedure, args.into_vec()));
            }
        }
        Served { reply: reply::finish(out), status, callbacks }
    }

    /// The host at `address` says that it is called `name` and has begun the life `state`: whatever
    /// it held before is over (NSM's SM_NOTIFY). Only its own address is believed.
    pub fn rebooted(&mut self, address: IpAddr, name: &[u8], state: u32) -> Vec<Callback> {
        let mut grants = Vec::new();
        for client in self.clients_of(&Host::new(address, name)) {
            let table = &self.table;
            if self.states.notified(&client, state, |client| table.has(client)) {
                self.table.release_client(&client, &mut grants);
            }
        }
        callbacks(&grants)
    }

    /// Ends all locks, shares and waits on files of `volume`, because the volume is gone. Nobody is
    /// told: those who wait ask again by themselves.
    pub fn release_volume(&mut self, volume: VolumeId) {
        self.table.release_volume(volume);
    }

    /// Says what came of an attempt to make `callback`. Gives what is to be done about it, and the
    /// calls to make because others get now what this client did not want.
    ///
    /// A lock that a client may believe to hold is never taken from it here: only a client that
    /// says itself that it does not wait, or that can't have heard, is passed over. One that did
    /// not hear asks again by itself.
    pub fn delivered(
        &mut self,
        callback: Callback,
        delivery: Delivery<'_>,
    ) -> (Next, Vec<Callback>) {
        let Some(grant) = callback.grant else { return (Next::Done, Vec::new()) };
        if self.table.grantee(grant).is_none() {
            return (Next::Done, Vec::new());
        }
        let status = match delivery {
            // The client's own result comes by GRANTED_RES.
            Delivery::Answered(_) if callback.procedure == Procedure::GrantedMsg => {
                return (Next::Done, Vec::new());
            }
            Delivery::Answered(results) => decode::<Res<'_>>(results).ok().map(|res| res.status),
            Delivery::NotHeard => Some(Status::FAILED),
            Delivery::Unknown => None,
        };
        match status {
            Some(Status::DENIED_GRACE_PERIOD) => (callback.again(false), Vec::new()),
            Some(Status::GRANTED) => {
                self.table.taken(grant);
                (Next::Done, Vec::new())
            }
            Some(_) if !callback.may_be_heard => (Next::Done, self.refused(grant)),
            None if callback.attempts < ATTEMPTS_MAX => (callback.again(true), Vec::new()),
            Some(_) | None => {
                self.table.taken(grant);
                (Next::Done, Vec::new())
            }
        }
    }

    /// GRANTED_RES: the client at `peer` says what it makes of a grant.
    pub(super) fn refused(&mut self, grant: GrantId) -> Vec<Callback> {
        let mut grants = Vec::new();
        self.table.refused(grant, &mut grants);
        callbacks(&grants)
    }

    /// The clients that `host` can mean, itself and those with its address and the same name.
    pub(super) fn clients_of(&self, host: &Host) -> BTreeSet<Client> {
        let is_meant = |client: &&Client| {
            Host::of(client).is_some_and(|other| {
                other.address == host.address && same_name(&other.name, &host.name)
            })
        };
        let origin = Origin::of(host.address);
        let known = self.table.clients_at(Protocol::Nlm, origin);
        let known = known.chain(self.table.awaited_at(Protocol::Nlm, origin)).filter(is_meant);
        known.cloned().chain([host.client()]).collect()
    }
}

fn callbacks(grants: &[Grant<Waiting>]) -> Vec<Callback> {
    grants.iter().filter_map(Callback::granted).collect()
}
