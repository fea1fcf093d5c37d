//! MOUNT's view of the server: the volumes that a caller's address may mount, as `/NAME`.

use crate::engine::{Engine, Served, ServedSet};
use crate::sync::Arc;
use std::net::IpAddr;
use weir_core::Store;
use weir_nfs::mount::wire::Flavors;
use weir_nfs::mount::{Export, Exports, Mount, MountGrant, MountStatus};
use weir_nfs::rpc::auth::AUTH_SYS;

/// The exports as one peer sees them.
pub(crate) struct PeerExports<'a> {
    engine: &'a Engine,
    served: Arc<ServedSet>,
    peer: IpAddr,
}

impl<'a> PeerExports<'a> {
    /// The exports in `served` for the caller at `peer`.
    pub(crate) fn new(engine: &'a Engine, served: &Arc<ServedSet>, peer: IpAddr) -> Self {
        Self { engine, served: Arc::clone(served), peer }
    }

    fn named(&self, path: &[u8]) -> Option<(&Served, String)> {
        let path = std::str::from_utf8(path).ok()?;
        let name = path.trim_matches('/');
        Some((self.served.by_name(name)?, format!("/{name}")))
    }
}

impl Exports for PeerExports<'_> {
    fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus> {
        let (served, path) = self.named(path).ok_or(MountStatus::NOENT)?;
        if served.config.rule_for(self.peer).is_none() {
            tracing::info!(peer = %self.peer, %path, "mount refused: no export rule names this address");
            return Err(MountStatus::ACCES);
        }
        let nfs = &served.nfs;
        let handle = nfs.seal(nfs.store.key(&nfs.store.root()));
        self.engine.mounts.add(self.peer, &path);
        tracing::info!(peer = %self.peer, %path, "mounted");
        Ok(MountGrant { handle, flavors: Flavors::new(&[AUTH_SYS]) })
    }

    fn exports(&self) -> Vec<Export> {
        let mut exports: Vec<Export> = self
            .served
            .all()
            // An export without groups is one for everybody (RFC 1813 §5.2.5); a volume without
            // rules, or without NFS, is for nobody.
            .filter(|served| served.config.protocols.nfs() && !served.config.exports.is_empty())
            .map(|served| Export {
                path: format!("/{}", served.config.name).into_bytes(),
                groups: served
                    .config
                    .exports
                    .iter()
                    .map(|rule| rule.network.to_string().into_bytes())
                    .collect(),
            })
            .collect();
        exports.sort_by(|a, b| a.path.cmp(&b.path));
        exports
    }

    fn mounts(&self) -> Vec<Mount> {
        let entry = |(host, path): (IpAddr, String)| Mount {
            host: host.to_string().into_bytes(),
            path: path.into_bytes(),
        };
        let mounts = self.engine.mounts.list().into_iter();
        // Mounts of volumes that were deleted since are nothing a client could unmount.
        mounts.filter(|(_, path)| self.named(path.as_bytes()).is_some()).map(entry).collect()
    }

    fn unmount(&self, path: &[u8]) {
        let path = String::from_utf8_lossy(path);
        let path = format!("/{}", path.trim_matches('/'));
        self.engine.mounts.remove(self.peer, Some(&path));
    }

    fn unmount_all(&self) {
        self.engine.mounts.remove(self.peer, None);
    }
}
