//! The security descriptor of a file (MS-SMB2 §3.3.5.20.3, MS-FSA §2.1.5.14): a view of its mode
//! and access control list.

use crate::host::Host;
use crate::le::length;
use crate::ops::Failure;
use crate::ops::info::granted;
use crate::security::{Current, view};
use crate::wire::{AccessMask, SecurityInformation, Status};
use alloc::vec::Vec;
use weir_core::{Acl, AclKind, Attr, FileKind, FsResult, Store};

/// Appends the parts of the descriptor that are asked for.
///
/// # Errors
/// [`Status::BUFFER_TOO_SMALL`] with the size needed, if that is more than `max` bytes.
pub(super) async fn query<H: Host>(
    host: &H,
    open: &H::Open,
    asked: SecurityInformation,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let audit = SecurityInformation::SACL | SecurityInformation::BACKUP;
    if asked.intersects(audit) {
        granted(open, AccessMask::ACCESS_SYSTEM_SECURITY)?;
    }
    if asked != SecurityInformation::SACL {
        granted(open, AccessMask::READ_CONTROL)?;
    }
    let (attr, acl, default) = lists(host.store(), &open.object).await?;
    let current = Current { attr: &attr, acl: acl.as_ref(), default: default.as_ref() };
    let parts = if asked.contains(SecurityInformation::BACKUP) {
        SecurityInformation::all()
    } else {
        asked
    };
    let start = out.len();
    let descriptor = view(&current, host.identities()).restricted(parts);
    descriptor.encode(out).map_err(|_| Status::INVALID_SECURITY_DESCR)?;
    let needed = out.len().saturating_sub(start);
    if needed > max {
        let data = length::<u32>(needed).to_le_bytes().to_vec();
        return Err(Failure { data, ..Status::BUFFER_TOO_SMALL.into() });
    }
    Ok(())
}

/// The attributes of an object, and its access control lists: the one that decides, and the default
/// one of a directory.
pub(in crate::ops) async fn lists<S: Store>(
    store: &S,
    object: &S::Object,
) -> FsResult<(Attr, Option<Acl>, Option<Acl>)> {
    let (attr, acl) = store.acl(object, AclKind::Access).await?;
    let default = if attr.kind == FileKind::Directory {
        store.acl(object, AclKind::Default).await?.1
    } else {
        None
    };
    Ok((attr, acl, default))
}
