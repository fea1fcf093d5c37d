//! May this caller ask for locks on this file? The handle is proved, the export rules and the
//! file's permissions decide, and the store is asked whether the file is there.

use super::Asked;
use crate::engine::{Engine, ServedSet};
use crate::session::{managed, rights, rights_on, set_groups};
use crate::sync::Arc;
use std::future::Future;
use std::pin::Pin;
use weir_core::access::asks_acl;
use weir_core::{AclKind, ObjectKey, Rights, Store};
use weir_nfs::nlm::{Need, Status, Target};
use weir_state::File;
use weir_store::VolumeStore;

/// Ends in the file, or why there is none.
pub(super) type Proof = Result<File, Status>;

/// A decision that may have to wait for the disk.
pub(super) type Proving = Pin<Box<dyn Future<Output = Proof>>>;

/// Decides for `target` of the call `asked`.
pub(super) fn prove(
    engine: &Engine,
    served: &ServedSet,
    asked: &Asked,
    target: Target<'_>,
) -> Result<Proving, Status> {
    let handle = engine.keys.open(target.handle).map_err(|_| Status::STALE_FH)?;
    let served = served.by_id(handle.volume).ok_or(Status::STALE_FH)?;
    let file = File { volume: handle.volume, object: handle.key };
    if target.need == Need::Handle {
        return Ok(Box::pin(std::future::ready(Ok(file))));
    }
    let (peer, mut credential) = (asked.peer.address, asked.call.credential.clone());
    let mut allowed = rights_on(&served.config, peer, &credential).ok_or(Status::FAILED)?;
    let lookup = engine.groups.as_ref().and_then(|groups| {
        let (uid, rule) = managed(&served.config, peer, &credential)?;
        Some((groups.look_up(uid), rule.clone()))
    });
    let (volume, need) = (Arc::clone(&served.volume), target.need);
    Ok(Box::pin(async move {
        if let Some((lookup, rule)) = lookup {
            set_groups(&mut credential, lookup.await?);
            allowed = rights(&rule, &credential).ok_or(Status::FAILED)?;
        }
        check(&volume.store, &handle.key, need, &allowed).await?;
        Ok(file)
    }))
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
