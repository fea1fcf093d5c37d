//! REMOVE (RFC 1813 §3.3.12): takes away a name that is no directory.

use super::{Context, Outcome, answer, fail, name};
use crate::v3::wire::{RemoveArgs, RemoveRes, Res, Status, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::attr::Change;

pub(in crate::v3) async fn remove<S: Store>(
    cx: &Context<'_, S>,
    args: RemoveArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let dir = match cx.resolve().await {
        Ok(dir) => dir,
        Err(error) => return fail(out, error, WccData::NONE),
    };
    let status = match take_out(cx, &dir, args.object.name).await {
        Ok(change) => {
            let result: RemoveRes = Res::Ok(cx.wcc(&change));
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
    if name.is_special() {
        return Err(Status::ISDIR);
    }
    Ok(cx.volume.store.remove(dir, name, &cx.rights.cred).await?)
}
