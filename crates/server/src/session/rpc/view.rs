//! The NFS view of a served volume: its handles, file system id and write verifier over its store.

use weir_core::{HandleKey, Mono, Remembered, VolumeId};
use weir_drc::Clients;
use weir_nfs::{VolumeView, v3};
use weir_store::{StoreControl, VolumeStore};

/// Volumes of one server differ in the low half of their fsid; this is the high half.
const FSID_PREFIX: u64 = 0x5745_4952 << 32;

/// A served volume as NFS shows it. Its store is a clone of the served volume's.
pub(crate) type NfsView = VolumeView<VolumeStore>;

/// The view of the volume `id`, with handles sealed by `keys` and write verifiers from `verifier`
/// on.
pub(crate) fn nfs_view(
    id: VolumeId,
    store: VolumeStore,
    keys: &HandleKey,
    verifier: [u8; 8],
) -> NfsView {
    let fsid = FSID_PREFIX | u64::from(id.0);
    NfsView { id, fsid, store, keys: keys.clone(), verifier }
}

/// Enters in the duplicate request cache the replies to the calls that earlier processes have
/// carried out on a volume.
pub(crate) fn remember_calls(view: &NfsView, clients: &Clients, now: Mono) {
    for Remembered { call, made } in view.store.remembered() {
        let made = made.map(|key| view.seal(key));
        let reply = v3::again(call.procedure, call.xid, made.as_ref(), Vec::new());
        if let Some(reply) = reply {
            clients.remember(&call, view.id, &reply, now);
        }
    }
}
