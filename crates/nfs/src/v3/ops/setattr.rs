//! SETATTR (RFC 1813 §3.3.2).

use super::{Context, Outcome, answer, fail, regular};
use crate::access::may_write;
use crate::v3::wire::{NfsTime3, Res, SetattrArgs, SetattrRes, Status, WccData};
use crate::xdr::Writer;
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::{Attr, Store};

pub(in crate::v3) async fn setattr<S: Store>(
    cx: &Context<'_, S>,
    args: SetattrArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (object, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, WccData::NONE),
    };
    let status = match set(cx, &object, &attr, &args).await {
        Ok(change) => {
            let result: SetattrRes = Res::Ok(cx.wcc(&change));
            return answer(out, &result);
        }
        Err(status) => status,
    };
    let after = cx.wcc_after(&object).await;
    fail(out, status, after)
}

async fn set<S: Store>(
    cx: &Context<'_, S>,
    object: &S::Object,
    attr: &Attr,
    args: &SetattrArgs<'_>,
) -> Result<Change, Status> {
    cx.may_change()?;
    let set = args.new_attributes.to_set_attr()?;
    let guard = args.guard.map(NfsTime3::to_timestamp).transpose()?;
    if let Some(size) = set.size {
        // A size is data, so the rule is that of WRITE; all else the store decides.
        regular(attr)?;
        cx.decide(object, attr, |attr, acl| {
            if may_write(attr, acl, &cx.rights.cred) { Ok(()) } else { Err(Status::ACCES) }
        })
        .await?;
        if size > FILE_BYTES_MAX {
            return Err(Status::FBIG);
        }
    }
    Ok(cx.volume.store.set_attr(object, &set, guard, &cx.rights.cred).await?)
}
