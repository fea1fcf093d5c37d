//! RMDIR (RFC 1813 §3.3.13): takes away an empty directory.

use super::{Context, Outcome, answer, fail, name};
use crate::v3::wire::{Res, RmdirArgs, RmdirRes, Status, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::attr::Change;

pub(in crate::v3) async fn rmdir<S: Store>(
    cx: &Context<'_, S>,
    args: RmdirArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let dir = match cx.resolve().await {
        Ok(dir) => dir,
        Err(error) => return fail(out, error, WccData::NONE),
    };
    let status = match take_out(cx, &dir, args.object.name).await {
        Ok(change) => {
            let result: RmdirRes = Res::Ok(cx.wcc(&change));
            return answer(out, &result);
        }
        Err(status) => status,
    };
    let after = cx.wcc_after(&dir).await;
    fail(out, status, after)
}

async fn take_out<S: Store>(
    cx: &Context<'_, S>,
    dir: &S::Object,
    wire: &[u8],
) -> Result<Change, Status> {
    cx.may_change()?;
    let name = name::existing(wire)?;
    if name.is_dot() {
        return Err(Status::INVAL);
    }
    if name.is_dot_dot() {
        return Err(Status::EXIST);
    }
    Ok(cx.volume.store.remove_dir(dir, name, &cx.rights.cred).await?)
}
