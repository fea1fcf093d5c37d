//! The lock manager: carries out calls on the tables of locks, and follows up on what it granted.

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
use weir_core::{Mono, Origin};
use weir_state::{Client, File, Grant, Protocol, Tables};

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

impl Waiting {
    /// The data for telling a client that knows us by `local`, and the file by `handle`.
    #[must_use]
    pub fn new(local: IpAddr, handle: &[u8], by_message: bool) -> Self {
        Self { local, handle: handle.into(), by_message }
    }

    /// The handle as the client sent it, and whether it is told by GRANTED_MSG.
    #[must_use]
    pub fn parts(&self) -> (&[u8], bool) {
        (&self.handle, self.by_message)
    }
}

/// A call that was carried out.
#[derive(Debug)]
pub struct Served<W> {
    /// The complete reply record, with its mark.
    pub reply: Vec<u8>,
    /// The outcome, also where the reply does not tell.
    pub status: Status,
    /// The call that carries the results, where the client wants them in a call of their own.
    pub answer: Option<Callback>,
    /// The locks that others got, of any protocol.
    pub grants: Vec<Grant<W>>,
}

/// The lock manager's knowledge of its hosts, beside their locks. The tables are those of all
/// protocols, whose waiters are values of `W`.
#[derive(Debug, Default)]
pub struct LockManager {
    pub(super) states: States,
}

impl LockManager {
    /// Carries out a call that came from `peer`. `file` is the file that [`Request::target`] led
    /// to, or why there is none; without a target it does not matter.
    ///
    /// A lock that [`Request::waiting`] says may be waited for is waited for by `waiter`.
    ///
    /// A call that is repeated, because its answer got lost, gets the same answer again.
    #[must_use]
    pub fn serve<W>(
        &mut self,
        tables: &mut Tables<W>,
        now: Mono,
        peer: &Peer,
        request: &Request<'_>,
        file: Result<File, Status>,
        waiter: Option<W>,
    ) -> Served<W> {
        let states = &mut self.states;
        let mut cx = Context { tables, states, now, peer, file, grants: Vec::new() };
        let results = ops::carry_out(&mut cx, request, waiter);
        let grants = cx.grants;
        let status = results.status();
        let mut out = reply::begin(Vec::new(), request.xid);
        let answer = match request.answered_by() {
            None => {
                results.encode(request, &mut out);
                None
            }
            Some(procedure) => {
                let mut args = Writer::default();
                results.encode(request, &mut args);
                Some(Callback::answer(*peer, procedure, args.into_vec()))
            }
        };
        Served { reply: reply::finish(out), status, answer, grants }
    }

    /// Does it take only a short time to carry out `request` on `file`, whatever others hold and
    /// ask, and is the reply all that it leads to besides grants?
    #[must_use]
    pub fn is_quick<W>(
        &self,
        tables: &Tables<W>,
        peer: &Peer,
        request: &Request<'_>,
        file: Result<File, Status>,
    ) -> bool {
        let quick = |file| ops::is_quick(request, &self.states, tables, peer, &file);
        let refused = request.target().is_some();
        request.answered_by().is_none() && file.map_or(refused, quick)
    }

    /// Would the grace period of the volume refuse `request` of `host` for `file` at `now`,
    /// whatever locks are held?
    #[must_use]
    pub fn is_too_early<W>(
        tables: &Tables<W>,
        now: Mono,
        host: &Host,
        request: &Request<'_>,
        file: &File,
    ) -> bool {
        tables.admits(now, file.volume, &host.client(), request.reclaims()).is_err()
    }

    /// The host at `address` says that it is called `name` and has begun the life `state`: whatever
    /// it held before is over (NSM's SM_NOTIFY). Only its own address is believed. Gives the locks
    /// that others got.
    pub fn rebooted<W>(
        &mut self,
        tables: &mut Tables<W>,
        address: IpAddr,
        name: &[u8],
        state: u32,
    ) -> Vec<Grant<W>> {
        let mut grants = Vec::new();
        for client in clients_of(tables, &Host::new(address, name)) {
            if self.states.notified(&client, state, |client| tables.has(client)) {
                tables.release_client(&client, &mut grants);
            }
        }
        grants
    }

    /// The state number that was last heard of `host`; 0 if none is known.
    #[must_use]
    pub fn state_of(&self, host: &Host) -> u32 {
        self.states.heard(&host.client()).unwrap_or(0)
    }

    /// Takes note of the state number that another server has heard of `host`, whose locks are in
    /// `tables` by now. 0 says that it has heard none.
    pub fn heard<W>(&mut self, tables: &Tables<W>, host: &Host, state: u32) {
        self.states.locked(&host.client(), state, |client| tables.has(client));
    }

    /// Is `callback` still to be made? Not if it tells of a grant that its client knows by now.
    #[must_use]
    pub fn is_due<W>(tables: &Tables<W>, callback: &Callback) -> bool {
        callback.grant.is_none_or(|grant| tables.grantee(grant).is_some())
    }

    /// Says what came of an attempt to make `callback`. Gives what is to be done about it, and the
    /// locks that others get now because this client did not want its own.
    ///
    /// A lock that a client may believe to hold is never taken from it here: only a client that
    /// says itself that it does not wait, or that can't have heard, is passed over. One that did
    /// not hear asks again by itself.
    pub fn delivered<W>(
        tables: &mut Tables<W>,
        callback: Callback,
        delivery: Delivery<'_>,
    ) -> (Next, Vec<Grant<W>>) {
        let Some(grant) = callback.grant else { return (Next::Done, Vec::new()) };
        if tables.grantee(grant).is_none() {
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
        let mut grants = Vec::new();
        let next = match status {
            Some(Status::DENIED_GRACE_PERIOD) => callback.again(false),
            None if callback.attempts < ATTEMPTS_MAX => callback.again(true),
            Some(status) if status != Status::GRANTED && !callback.may_be_heard => {
                tables.refused(grant, &mut grants);
                Next::Done
            }
            Some(_) | None => {
                tables.taken(grant);
                Next::Done
            }
        };
        (next, grants)
    }
}

/// The clients that `host` can mean, itself and those with its address and the same name.
pub(super) fn clients_of<W>(tables: &Tables<W>, host: &Host) -> BTreeSet<Client> {
    let is_meant = |client: &&Client| {
        Host::of(client).is_some_and(|other| {
            other.address == host.address && same_name(&other.name, &host.name)
        })
    };
    let origin = Origin::of(host.address);
    let known = tables.clients_at(Protocol::Nlm, origin);
    let known = known.chain(tables.awaited_at(Protocol::Nlm, origin)).filter(is_meant);
    known.cloned().chain([host.client()]).collect()
}
