//! LOOKUP (RFC 1813 §3.3.3).

use super::{Context, Outcome, answer, directory, fail, name};
use crate::v3::wire::{LookupArgs, LookupOk, LookupRes, Res, Status};
use crate::xdr::Writer;
use weir_core::{Access, Acl, Attr, Name, Store, access};

#[inline]
pub(in crate::v3) async fn lookup<S: Store>(
    cx: &Context<'_, S>,
    args: &LookupArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let dir = match cx.resolve().await {
        Ok(dir) => dir,
        Err(error) => return fail(out, error, false),
    };
    let dir_attr = match cx.volume.store.attr(&dir).await {
        Ok(attr) => attr,
        Err(error) => return fail(out, error, false),
    };
    let by = |attr: &Attr, acl: Option<&Acl>| searchable(cx, attr, acl, args.what.name);
    let name = match cx.decide(&dir, &dir_attr, by).await {
        Ok(name) => name,
        Err(status) => return fail(out, status, Some(cx.fattr(&dir_attr))),
    };
    match cx.volume.store.lookup(&dir, name).await {
        Ok((object, attr)) => {
            let sealed = cx.volume.seal(cx.volume.store.key(&object));
            let result: LookupRes<'_> = Res::Ok(LookupOk {
                object: (&sealed).into(),
                attributes: Some(cx.fattr(&attr)),
                dir_attributes: Some(cx.fattr(&dir_attr)),
            });
            answer(out, &result)
        }
        Err(error) => fail(out, error, Some(cx.fattr(&dir_attr))),
    }
}

#[inline]
fn searchable<'a, S>(
    cx: &Context<'_, S>,
    dir: &Attr,
    acl: Option<&Acl>,
    wire: &'a [u8],
) -> Result<Name<'a>, Status> {
    directory(dir)?;
    if !access::allows(dir, acl, &cx.rights.cred, Access::EXECUTE) {
        return Err(Status::ACCES);
    }
    name::existing(wire)
}
