//! The contexts of CREATE (MS-SMB2 §3.3.5.9.1 to §3.3.5.9.13): those that change what happens, and
//! the answers to those that ask for something. Others are passed over: leases and durable opens
//! are never granted.

use crate::host::Host;
use crate::ops::Failure;
use crate::ops::space::check_allocation;
use crate::security::Descriptor;
use crate::wire::{
    AccessMask, CreateContexts, RequestContext, ResponseContext, Status, context_name,
};
use weir_core::{Attr, FileKind};

/// The contexts of a request.
#[derive(Default)]
pub(super) struct Contexts {
    /// The most access is asked for, if the file has changed since this time (0: at any rate).
    maximal_access: Option<u64>,
    /// The numbers of file and volume are asked for.
    disk_id: bool,
    /// The security descriptor of a new file.
    pub(super) descriptor: Option<Descriptor>,
    /// The bytes to set aside for a new file, or one that is emptied.
    allocation: Option<u64>,
}

impl Contexts {
    /// Reads the contexts of a request.
    pub(super) fn of(contexts: &CreateContexts<'_>) -> Result<Self, Failure> {
        let mut found = Self::default();
        for context in contexts.iter() {
            match context {
                RequestContext::MaximalAccess(since) => {
                    found.maximal_access = Some(since.unwrap_or(0));
                }
                RequestContext::DiskId => found.disk_id = true,
                RequestContext::SecurityDescriptor(bytes) => {
                    let descriptor = Descriptor::decode(bytes);
                    let malformed = |_| Status::INVALID_SECURITY_DESCR;
                    found.descriptor = Some(descriptor.map_err(malformed)?);
                }
                RequestContext::ExtendedAttributes(_) => {
                    return Err(Status::EAS_NOT_SUPPORTED.into());
                }
                // There are no snapshots and no durable opens that could be meant.
                RequestContext::TimeWarp(_)
                | RequestContext::Other {
                    name: context_name::DURABLE_RECONNECT | context_name::DURABLE_RECONNECT_V2,
                    ..
                } => return Err(Status::OBJECT_NAME_NOT_FOUND.into()),
                RequestContext::AllocationSize(bytes) => found.allocation = Some(bytes),
                RequestContext::Lease(_) | RequestContext::Other { .. } => {}
            }
        }
        Ok(found)
    }

    /// Fails if a file is to hold more than its volume can (MS-SMB2 §3.3.5.9.3).
    pub(super) async fn check_allocation<H: Host>(&self, host: &H) -> Result<(), Status> {
        match self.allocation {
            Some(bytes) => check_allocation(host, bytes).await,
            None => Ok(()),
        }
    }

    /// Is the most access of the user asked for?
    pub(super) const fn asks_maximal(&self) -> bool {
        self.maximal_access.is_some()
    }

    /// The answers for an object with these attributes, whose user may do `maximal` at most.
    pub(super) fn answers<H: Host>(
        &self,
        host: &H,
        attr: &Attr,
        maximal: Option<AccessMask>,
    ) -> impl Iterator<Item = ResponseContext> {
        let written = crate::fscc::NtTime::from(attr.mtime).0.unsigned_abs();
        let access = self.maximal_access.zip(maximal).map(|(since, access)| {
            // A client that knows this state gets no access mask (MS-SMB2 §3.3.5.9.5).
            if since == written {
                let (status, access) = (Status::NONE_MAPPED, AccessMask::empty());
                ResponseContext::MaximalAccess { status, access }
            } else {
                ResponseContext::MaximalAccess { status: Status::SUCCESS, access }
            }
        });
        let id = self.disk_id.then(|| ResponseContext::DiskId {
            file: attr.fileid,
            volume: host.share().volume.0.into(),
        });
        access.into_iter().chain(id)
    }
}

/// The rights to a directory that making an object of this kind in it takes.
pub(super) const fn adds(kind: FileKind) -> AccessMask {
    match kind {
        FileKind::Directory => AccessMask::ADD_SUBDIRECTORY,
        _ => AccessMask::ADD_FILE,
    }
}
