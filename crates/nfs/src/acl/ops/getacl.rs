//! GETACL: the lists of an object, which everybody with a handle may see, as its mode.

use crate::acl::wire::{AclMask, GetaclArgs, GetaclOk, GetaclRes, ListBytes};
use crate::v3::ops::{Context, Outcome, answer, fail};
use crate::v3::wire::{Res, Status};
use crate::xdr::Writer;
use weir_core::{Acl, AclKind, Attr, FsResult, Store};

pub(in crate::acl) async fn getacl<S: Store>(
    cx: &Context<'_, S>,
    args: GetaclArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (object, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    match lists(cx, &object, args.mask).await {
        Ok((attr, access, default)) => {
            let result: GetaclRes<'_> = Res::Ok(GetaclOk {
                attributes: Some(cx.fattr(&attr)),
                mask: args.mask,
                access: access.list(args.mask.contains(AclMask::ACL)),
                default: default.list(args.mask.contains(AclMask::DFACL)),
            });
            answer(out, &result)
        }
        Err(status) => fail(out, status, Some(cx.fattr(&attr))),
    }
}

/// The attributes, the access list (made of the mode where there is none, as Linux does) and the
/// default list; those that were not asked for are empty.
async fn lists<S: Store>(
    cx: &Context<'_, S>,
    object: &S::Object,
    mask: AclMask,
) -> Result<(Attr, ListBytes, ListBytes), Status> {
    if !AclMask::all().contains(mask) {
        return Err(Status::INVAL);
    }
    let store = &cx.volume.store;
    let (attr, access) = store.acl(object, AclKind::Access).await?;
    let mut lists = (ListBytes::default(), ListBytes::default());
    if mask.intersects(AclMask::ACL | AclMask::ACLCNT) {
        let access = access.unwrap_or_else(|| Acl::from_mode(attr.mode));
        lists.0 = bytes(&access, AclKind::Access, &attr)?;
    }
    if mask.intersects(AclMask::DFACL | AclMask::DFACLCNT)
        && let (_, Some(default)) = store.acl(object, AclKind::Default).await?
    {
        lists.1 = bytes(&default, AclKind::Default, &attr)?;
    }
    Ok((attr, lists.0, lists.1))
}

/// The list for the wire. A longer one than that takes was set on the server itself.
fn bytes(acl: &Acl, kind: AclKind, attr: &Attr) -> Result<ListBytes, Status> {
    let bytes: FsResult<ListBytes> = ListBytes::new(acl, kind, attr);
    bytes.map_err(|_| Status::SERVERFAULT)
}
