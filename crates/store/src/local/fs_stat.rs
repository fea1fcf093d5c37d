//! FSSTAT: the volume's space in the terms of its quota.

use super::LocalStore;
use crate::error::fs_error;
use rustix::fs::fstatvfs;
use weir_core::FsResult;
use weir_core::store::FsStat;

impl LocalStore {
    pub(super) async fn fs_stat(&self) -> FsResult<FsStat> {
        self.pooled(|volume| {
            let disk = fstatvfs(&volume.root.fd).map_err(fs_error)?;
            let disk_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            let total = volume.usage.quota();
            let free = volume.usage.free();
            Ok(FsStat {
                total_bytes: total,
                free_bytes: free,
                available_bytes: free.min(disk_bytes),
                total_files: disk.f_files,
                free_files: disk.f_ffree,
            })
        })
        .await
    }
}
