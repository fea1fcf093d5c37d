//! Volumes and requests for tests of the code around them.

use super::stats::Stats;
use super::{ServedVolume, Workers};
use crate::clock::SystemClock;
use crate::op_name::OpName;
use crate::session::{Job, RpcJob, nfs_view};
use crate::sync::{Arc, OnceLock};
use crate::worker::{Request, VolumeGate};
use std::path::Path;
use weir_core::{
    Credentials, FileHandle, HandleKey, Mono, ObjectKey, OpClass, Rights, Shared, SnapshotId,
};
use weir_drc::Fingerprints;
use weir_gate::ConnId;
use weir_locks::LockDoor;
use weir_nfs::rpc::{Call, Credential};
use weir_qos::{ClientKey, Cost};
use weir_store::{Descriptors, Durability, Options, Pool, VolumeStore};

/// The threads of all volumes that tests serve.
static POOL: OnceLock<Arc<Pool>> = OnceLock::new();

/// A volume in `directory`, which does not exist yet.
pub(crate) fn served(directory: &Path, gate: VolumeGate) -> ServedVolume {
    let workers = Arc::new(Workers::new(&[], SystemClock::start()));
    served_by(&workers, store(directory), gate)
}

/// A volume over `store` that `workers` serve.
pub(crate) fn served_by(
    workers: &Arc<Workers>,
    store: VolumeStore,
    gate: VolumeGate,
) -> ServedVolume {
    let stats = Stats::new(workers.count().max(1), false);
    let locks = Arc::new(LockDoor::new(weir_state::Limits::SERVER));
    ServedVolume::new(gate.id(), store, gate, stats, Arc::clone(workers), locks)
}

/// The store of a volume in `directory`, which does not exist yet.
pub(crate) fn store(directory: &Path) -> VolumeStore {
    let options = Options {
        quota_bytes: 1 << 30,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 100,
        descriptors: Descriptors::new(1024),
        pool: Arc::clone(POOL.get_or_init(|| Pool::new(16).unwrap())),
    };
    VolumeStore::open_local(directory, &options).unwrap()
}

/// A READ or WRITE of `bytes`, of the client 1 on the connection 1.
pub(crate) fn request(
    volume: &Arc<ServedVolume>,
    class: OpClass,
    key: ObjectKey,
    bytes: u64,
) -> Request {
    let args = if class == OpClass::Write { usize::try_from(bytes).unwrap() } else { 128 };
    Request {
        connection: ConnId { worker: 0, token: 1 },
        client: ClientKey(1),
        volume: Arc::clone(volume),
        op: OpName::nfs3(if class == OpClass::Write { 7 } else { 6 }).unwrap(),
        class,
        cost: Cost::of(bytes),
        arrived: Mono::from_secs(1),
        job: Job::Rpc(Box::new(RpcJob {
            nfs: Arc::new(nfs_view(
                volume.id,
                volume.store.clone(),
                &HandleKey::new(&[0; 16]),
                [0; 8],
            )),
            rights: Rights { cred: Credentials::ROOT, read_only: false },
            handle: FileHandle { volume: volume.id, snapshot: SnapshotId::LIVE, key },
            call: Call {
                xid: 1,
                program: weir_nfs::PROGRAM_NFS,
                version: 3,
                procedure: if class == OpClass::Write { 7 } else { 6 },
                credential: Credential::None,
                args: Shared::from(vec![0; args]),
            },
            entry: None,
            fingerprints: Fingerprints::new(0),
        })),
    }
}
