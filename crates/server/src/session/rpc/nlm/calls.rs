//! Calls to the lock manager (NLM) and its status monitor (NSM): who may lock which file, and the
//! way to the locks. The handle is proved, the export rules and the file's permissions decide, and
//! the store is asked whether the file is there.

use super::super::{managed, rights, rights_on, set_groups};
use super::{Asked, Message, Nlm, Proof};
use crate::engine::{Engine, ServedSet};
use crate::session::Waiter;
use crate::sync::{Arc, oneshot};
use std::future::{Future, ready};
use std::pin::Pin;
use weir_core::access::asks_acl;
use weir_core::{AclKind, ObjectKey, Rights, Store};
use weir_locks::LockCall;
use weir_nfs::PROGRAM_NLM;
use weir_nfs::nlm::{Need, Peer, Request, Status, Target};
use weir_nfs::rpc::{AcceptError, Call, reply};
use weir_state::File;
use weir_store::VolumeStore;

/// The reply record to a call, ready at once unless something has to be waited for.
pub(crate) type LockReply = Pin<Box<dyn Future<Output = Vec<u8>>>>;

/// A decision that may have to wait for the disk or for a look-up of groups.
type Proving = Pin<Box<dyn Future<Output = Proof>>>;

/// Takes up `call`, which is to NLM or NSM and came from `peer`.
pub(crate) fn lock_call(
    engine: &Engine,
    nlm: &Arc<Nlm>,
    served: &ServedSet,
    call: Call,
    peer: Peer,
) -> LockReply {
    let xid = call.xid;
    let fail = |error| Box::pin(ready(reply::error(Vec::new(), xid, error)));
    let target = match target(&call) {
        Ok(target) => target,
        Err(error) => return fail(error),
    };
    let (file, proving) = match target.map(|target| prove(engine, served, &call, &peer, target)) {
        Some(Ok((file, proving))) => (Some(file), proving),
        Some(Err(status)) => (None, refused(status)),
        None => (None, refused(Status::FAILED)),
    };
    let Some(place) = nlm.locks.begin(peer.address, file) else {
        return fail(AcceptError::SystemError);
    };
    let nlm = Arc::clone(nlm);
    Box::pin(async move {
        let proof = proving.await;
        carry_out(&nlm, &place, call, peer, proof).await
    })
}

/// Carries out `call` when the turn of its `place` comes, here or on the lock thread, and gives the
/// reply record.
pub(super) async fn carry_out(
    nlm: &Nlm,
    place: &LockCall<Waiter>,
    call: Call,
    peer: Peer,
    proof: Proof,
) -> Vec<u8> {
    place.turn().await;
    if let Some(reply) = nlm.try_now(&call, &peer, proof) {
        return reply;
    }
    let (xid, (sender, receiver)) = (call.xid, oneshot::channel());
    let asked = Asked { call, peer, proof, reply: sender };
    nlm.inbox.post(Message::Call(Box::new(asked)));
    receiver.await.unwrap_or_else(|_| reply::error(Vec::new(), xid, AcceptError::SystemError))
}

fn target(call: &Call) -> Result<Option<Target<'_>>, AcceptError> {
    match call.program {
        PROGRAM_NLM => Ok(Request::parse(call)?.target()),
        _ => Ok(None),
    }
}

fn refused(status: Status) -> Proving {
    Box::pin(ready(Err(status)))
}

/// The file that `target` of `call` names, and the decision whether the caller may lock it.
fn prove(
    engine: &Engine,
    served: &ServedSet,
    call: &Call,
    peer: &Peer,
    target: Target<'_>,
) -> Result<(File, Proving), Status> {
    let handle = engine.keys.open(target.handle).map_err(|_| Status::STALE_FH)?;
    let served = served.by_id(handle.volume).ok_or(Status::STALE_FH)?;
    let file = File { volume: handle.volume, object: handle.key };
    if target.need == Need::Handle {
        return Ok((file, Box::pin(ready(Ok(file)))));
    }
    let (peer, mut credential) = (peer.address, call.credential.clone());
    let mut allowed = rights_on(&served.config, peer, &credential).ok_or(Status::FAILED)?;
    let lookup = engine.groups.as_ref().and_then(|groups| {
        let (uid, rule) = managed(&served.config, peer, &credential)?;
        Some((groups.look_up(uid), rule.clone()))
    });
    let (volume, need) = (Arc::clone(&served.volume), target.need);
    let proving = async move {
        if let Some((lookup, rule)) = lookup {
            set_groups(&mut credential, lookup.await?);
            allowed = rights(&rule, &credential).ok_or(Status::FAILED)?;
        }
        check(&volume.store, &handle.key, need, &allowed).await?;
        Ok(file)
    };
    Ok((file, Box::pin(proving)))
}

async fn check(
    store: &VolumeStore,
    key: &ObjectKey,
    need: Need,
    rights: &Rights,
) -> Result<(), Status> {
    let object = store.resolve(key).await?;
    let attr = store.attr(&object).await?;
    if !asks_acl(&attr, &rights.cred) {
        return need.check(&attr, None, rights);
    }
    let (attr, acl) = store.acl(&object, AclKind::Access).await?;
    need.check(&attr, acl.as_ref(), rights)
}
