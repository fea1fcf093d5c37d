//! SETACL: sets the lists of an object, which its owner and the superuser may.

use crate::acl::wire::{AclMask, SetaclArgs, SetaclRes};
use crate::v3::ops::{Context, Outcome, answer, fail};
use crate::v3::wire::{Res, Status};
use crate::xdr::Writer;
use weir_core::{Acl, AclKind, Attr, FileKind, Store};

pub(in crate::acl) async fn setacl<S: Store>(
    cx: &Context<'_, S>,
    args: SetaclArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (object, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    let status = match set(cx, &object, attr, &args).await {
        Ok(attr) => {
            let result: SetaclRes = Res::Ok(Some(cx.fattr(&attr)));
            return answer(out, &result);
        }
        Err(status) => status,
    };
    let after = cx.fattr_after(&object).await;
    fail(out, status, after)
}

/// Sets those lists that the mask names. What can be refused is refused before anything is set.
async fn set<S: Store>(
    cx: &Context<'_, S>,
    object: &S::Object,
    mut attr: Attr,
    args: &SetaclArgs<'_>,
) -> Result<Attr, Status> {
    cx.may_change()?;
    if !AclMask::all().contains(args.mask) {
        return Err(Status::INVAL);
    }
    let access = args.mask.contains(AclMask::ACL).then(|| args.access.to_acl()).transpose()?;
    let default = args.mask.contains(AclMask::DFACL).then(|| args.default.to_acl()).transpose()?;
    if matches!(default, Some(Some(_))) && attr.kind != FileKind::Directory {
        return Err(Status::ACCES);
    }
    for (kind, list) in [(AclKind::Access, access), (AclKind::Default, default)] {
        let Some(list) = list else { continue };
        let list: Option<&Acl> = list.as_ref();
        attr = cx.volume.store.set_acl(object, kind, list, &cx.rights.cred).await?;
    }
    Ok(attr)
}
