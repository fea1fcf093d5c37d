//! RENAME (RFC 1813 §3.3.14).

use super::{Context, Outcome, answer, fail, name};
use crate::v3::wire::{RenameArgs, RenameRes, RenameWcc, Res, Status, WccData};
use crate::xdr::Writer;
use weir_core::attr::Change;
use weir_core::{Name, Store};

pub(in crate::v3) async fn rename<S: Store>(
    cx: &Context<'_, S>,
    args: RenameArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let from_dir = match cx.resolve().await {
        Ok(dir) => dir,
        Err(error) => {
            let nothing = RenameWcc { from_dir_wcc: WccData::NONE, to_dir_wcc: WccData::NONE };
            return fail(out, error, nothing);
        }
    };
    let to_dir = match cx.second(args.to.dir).await {
        Ok(dir) => dir,
        Err(status) => {
            let from_dir_wcc = cx.wcc_after(&from_dir).await;
            return fail(out, status, RenameWcc { from_dir_wcc, to_dir_wcc: WccData::NONE });
        }
    };
    let status = match change(cx, (&from_dir, args.from.name), (&to_dir, args.to.name)).await {
        Ok((from, to)) => {
            let wcc = RenameWcc { from_dir_wcc: cx.wcc(&from), to_dir_wcc: cx.wcc(&to) };
            let result: RenameRes = Res::Ok(wcc);
            return answer(out, &result);
        }
        Err(status) => status,
    };
    let from_dir_wcc = cx.wcc_after(&from_dir).await;
    let to_dir_wcc = cx.wcc_after(&to_dir).await;
    fail(out, status, RenameWcc { from_dir_wcc, to_dir_wcc })
}

async fn change<S: Store>(
    cx: &Context<'_, S>,
    from: (&S::Object, &[u8]),
    to: (&S::Object, &[u8]),
) -> Result<(Change, Change), Status> {
    cx.may_change()?;
    let (old, new) = (movable(from.1)?, movable(to.1)?);
    Ok(cx.volume.store.rename(from.0, old, to.0, new, &cx.rights.cred).await?)
}

fn movable(wire: &[u8]) -> Result<Name<'_>, Status> {
    let name = name::existing(wire)?;
    if name.is_special() { Err(Status::INVAL) } else { Ok(name) }
}
