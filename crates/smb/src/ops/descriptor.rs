//! Setting a security descriptor: the change of owner, mode and lists that it asks for.

use super::error::status;
use crate::host::{Host, ObjectOf};
use crate::security::{Current, Descriptor, SetDefault, posix_from};
use crate::wire::Status;
use weir_core::{AclKind, Credentials, FileKind, FsResult, SetAttr, Store};

/// Makes the object what `wanted` says, as `cred`. Parts that `wanted` does not have stay. If it
/// fails half-way, what was set stays set.
///
/// # Errors
/// [`Status::ACCESS_DENIED`] also if POSIX has no way to say it.
pub(super) async fn set<H: Host>(
    host: &H,
    object: &ObjectOf<H>,
    wanted: &Descriptor,
    cred: &Credentials,
) -> Result<(), Status> {
    let store = host.store();
    let (attr, acl) = store.acl(object, AclKind::Access).await.map_err(status)?;
    let default = match attr.kind {
        FileKind::Directory => store.acl(object, AclKind::Default).await.map_err(status)?.1,
        _ => None,
    };
    let current = Current { attr: &attr, acl: acl.as_ref(), default: default.as_ref() };
    let change = posix_from(wanted, &current, host.identities());
    let change = change.map_err(|_| Status::ACCESS_DENIED)?;
    let attributes =
        SetAttr { mode: change.mode, uid: change.uid, gid: change.gid, ..SetAttr::default() };
    let changed = async {
        if attributes != SetAttr::default() {
            store.set_attr(object, &attributes, None, cred).await?;
        }
        if let Some(acl) = &change.acl {
            store.set_acl(object, AclKind::Access, Some(acl), cred).await?;
        }
        let default = match &change.default {
            SetDefault::Keep => return Ok(()),
            SetDefault::Remove => None,
            SetDefault::To(acl) => Some(acl),
        };
        store.set_acl(object, AclKind::Default, default, cred).await?;
        FsResult::Ok(())
    };
    changed.await.map_err(status)
}
