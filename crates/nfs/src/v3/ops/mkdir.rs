//! MKDIR (RFC 1813 §3.3.9).

use super::made::{answer_made, sizeless};
use super::{Context, Outcome, fail, name};
use crate::v3::wire::{MkdirArgs, Status, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::store::{Made, MakeKind};

pub(in crate::v3) async fn mkdir<S: Store>(
    cx: &Context<'_, S>,
    args: MkdirArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let dir = match cx.resolve().await {
        Ok(dir) => dir,
        Err(error) => return fail(out, error, WccData::NONE),
    };
    let status = match make(cx, &dir, &args).await {
        Ok(made) => return answer_made(cx, &made, out),
        Err(status) => status,
    };
    let after = cx.wcc_after(&dir).await;
    fail(out, status, after)
}

async fn make<S: Store>(
    cx: &Context<'_, S>,
    dir: &S::Object,
    args: &MkdirArgs<'_>,
) -> Result<Made<S::Object>, Status> {
    cx.may_change()?;
    let name = name::new(args.location.name)?;
    let cred = &cx.rights.cred;
    let set = sizeless(&args.attributes, cred)?;
    Ok(cx.volume.store.make(dir, name, &MakeKind::Directory, &set, cred).await?)
}
