//! [`VolumeView`]: a volume as the programs of NFS show it to clients.

use weir_core::handle::Sealed;
use weir_core::{FileHandle, HandleKey, ObjectKey, SnapshotId, Store, VolumeId};

/// The store of a volume, and what NFS adds to it: file handles, the file system id and the write
/// verifier.
#[derive(Debug)]
pub struct VolumeView<S> {
    /// The volume's number, which its handles carry.
    pub id: VolumeId,
    /// The file system id its attributes carry (RFC 1813 §2.6, `fattr3.fsid`).
    pub fsid: u64,
    /// The store of its objects.
    pub store: S,
    /// Seals and proves handles.
    pub keys: HandleKey,
    /// The start of the write verifier: another one after every restart of the server.
    pub verifier: [u8; 8],
}

impl<S: Store> VolumeView<S> {
    /// The write verifier as it is now: another one after every restart, and after every failed
    /// sync, so that clients send uncommitted data again (RFC 1813 §3.3.7, §4.8).
    #[must_use]
    pub fn write_verifier(&self) -> [u8; 8] {
        u64::from_be_bytes(self.verifier).wrapping_add(self.store.lost_writes()).to_be_bytes()
    }
}

impl<S> VolumeView<S> {
    /// The same view over `store`, which must be of the same volume.
    #[must_use]
    pub fn with_store(&self, store: S) -> Self {
        let Self { id, fsid, ref keys, verifier, .. } = *self;
        Self { id, fsid, store, keys: keys.clone(), verifier }
    }

    /// The handle of an object of the live volume, ready for the wire.
    #[must_use]
    pub fn seal(&self, key: ObjectKey) -> Sealed {
        self.keys.seal(&FileHandle { volume: self.id, snapshot: SnapshotId::LIVE, key })
    }
}
