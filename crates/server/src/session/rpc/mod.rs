//! The session of ONC RPC (RFC 5531): NFSv3, NFSACL, MOUNT, NLM, NSM and rpcbind on one connection.
//!
//! Records are cut by their marks; a call is parsed, proved against the duplicate request cache and
//! made a request of its volume ([`begin`]). Not here: the programs themselves, which are
//! `weir-nfs`'s.

mod begin;
mod job;
mod mandatory;
mod mount;
pub(crate) mod nlm;
mod rights;
pub(crate) mod udp;
mod view;

pub(crate) use job::{RpcJob, RpcUnanswered, reply_room};
pub(crate) use mount::PeerExports;
pub(crate) use nlm::{NlmWaiter, lock_call};
pub(crate) use rights::{managed, rights, rights_on};
pub(crate) use view::{NfsView, nfs_view, remember_calls};
pub(crate) use weir_nfs::rpc::{FrameError, RecentCredentials};
pub(crate) use weir_nfs::v3::Served;

use super::{Frame, ProtocolError};
use crate::engine::{Engine, View};
use crate::limits::RECORD_BYTES_MAX;
use crate::sync::Arc;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_core::{CallId, Clock, Groups, Mono, OpClass, VolumeId};
use weir_drc::{Clients, DrcClient, client_at};
use weir_gate::ConnId;
use weir_nfs::rpc::{Credential, Deframer, Step};
use weir_qos::ClientKey;
use weir_store::StoreControl;

const _: () = assert!(weir_nfs::limits::RECORD_BYTES_MAX <= RECORD_BYTES_MAX);

/// The RPC state of one connection.
pub(crate) struct RpcSession {
    deframer: Deframer,
    /// The state of the client's calls, on this connection and others.
    drc: Arc<DrcClient>,
    /// The client among which gates share fairly: its address.
    client: ClientKey,
}

impl RpcSession {
    /// The session of a new connection from `peer`.
    pub(super) fn new(engine: &Engine, peer: IpAddr) -> Self {
        Self::among(&engine.clients, peer, engine.clock.now())
    }

    fn among(clients: &Clients, peer: IpAddr, now: Mono) -> Self {
        let client = client_at(peer);
        Self { deframer: Deframer::default(), drc: clients.enter(client, now), client }
    }

    /// The session of a connection from `peer` without a server.
    #[cfg(test)]
    pub(super) fn for_test(peer: IpAddr) -> Self {
        Self::among(&Clients::new(0), peer, Mono::ZERO)
    }

    /// See [`super::Session::next`].
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Frame, ProtocolError> {
        Ok(match self.deframer.next(bytes)? {
            Step::NeedMore { total } => Frame::NeedMore { total },
            Step::Fragment { consumed } => Frame::Part { consumed },
            Step::Record { at, consumed } => Frame::Whole { at, consumed },
            Step::Assembled { record, consumed } => Frame::Assembled { record, consumed },
        })
    }

    /// See [`super::Session::held`].
    pub(super) fn held(&self) -> usize {
        self.deframer.held()
    }

    /// Gives the call of `job`, which is of `class` and waits at the gate, its place among the
    /// client's calls. False if the same call is under way.
    pub(super) fn waits(&self, job: &mut RpcJob, class: OpClass, connection: ConnId) -> bool {
        if job.entry.is_some() {
            return true;
        }
        let key = self.drc.fingerprints().of_waiting(&job.call, class);
        let entry = self.drc.wait(key, connection);
        entry.is_some_and(|entry| {
            job.entry = entry;
            true
        })
    }

    /// Gives a WRITE that waits for the disk its place among the client's calls.
    pub(super) fn under_way(&self, rest: &mut RpcUnanswered, connection: ConnId) {
        if let Some(key) = rest.write_without_entry.take() {
            rest.entry = self.drc.begun(key, connection);
        }
    }

    /// See [`super::Session::close`]. Has the replies forgotten that a client which took them all
    /// won't ask for again.
    pub(super) fn close(
        self,
        engine: &Engine,
        view: &mut View,
        connection: ConnId,
        took_all: bool,
    ) {
        let Self { drc, client, .. } = self;
        let calls = if took_all { drc.forget_connection(connection.token) } else { Vec::new() };
        for (volume, calls) in by_volume(calls) {
            if let Some(served) = view.load().by_id(volume) {
                served.volume.store.forget_calls(&calls);
            }
        }
        drop(drc);
        engine.clients.leave(client, engine.clock.now());
    }
}

fn by_volume(calls: Vec<(VolumeId, CallId)>) -> BTreeMap<VolumeId, Vec<CallId>> {
    let mut sorted: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (volume, call) in calls {
        sorted.entry(volume).or_default().push(call);
    }
    sorted
}

/// Replaces the groups that a client sent.
fn set_groups(credential: &mut Credential, groups: Groups) {
    if let Credential::Sys(auth) = credential {
        auth.credentials = auth.credentials.clone().with(groups);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ServedVolume;
    use crate::engine::testing::{request, served};
    use crate::session::Job;
    use crate::worker::VolumeGate;
    use weir_core::{ObjectKey, Shared};
    use weir_gate::ParkedTotal;
    use weir_qos::{BytesPerSecond, Limits};

    fn lookup(volume: &Arc<ServedVolume>, last: u8) -> Box<RpcJob> {
        let key = ObjectKey::new(&[1]).unwrap();
        let Job::Rpc(mut job) = request(volume, OpClass::Metadata, key, 0).job else {
            panic!("requests of tests are of RPC")
        };
        let mut args = vec![5; 200];
        args[199] = last;
        (job.call.procedure, job.call.args) = (3, Shared::from(args));
        job
    }

    /// The connections that get the reply to a LOOKUP, while another one with the same xid waits
    /// at the gate too, from the same address on the connection 2.
    fn others(volume: &Arc<ServedVolume>, last: u8) -> Vec<ConnId> {
        let session = RpcSession::for_test([10, 0, 0, 1].into());
        let on = |token| ConnId { worker: 0, token };
        let (mut one, mut other) = (lookup(volume, 1), lookup(volume, last));
        assert!(session.waits(&mut one, OpClass::Metadata, on(1)));
        assert!(session.waits(&mut other, OpClass::Metadata, on(2)));
        assert!(one.begin());
        one.refused().answered(volume.id, on(1), b"reply", Mono::ZERO)
    }

    #[test]
    fn calls_that_wait_share_a_reply_only_if_all_their_arguments_are_alike() {
        let directory = tempfile::tempdir().unwrap();
        let limits = Limits::of(BytesPerSecond(1 << 30));
        let gate = VolumeGate::new(VolumeId(1), limits, Arc::new(ParkedTotal::new(0)));
        let volume = Arc::new(served(&directory.path().join("volume"), gate));
        assert_eq!(others(&volume, 1), [ConnId { worker: 0, token: 2 }]);
        assert_eq!(others(&volume, 2), []);
    }
}
