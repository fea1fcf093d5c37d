//! SYMLINK (RFC 1813 §3.3.10).

use super::made::{answer_made, sizeless};
use super::{Context, Outcome, fail, name};
use crate::v3::wire::{Status, SymlinkArgs, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::limits::SYMLINK_BYTES_MAX;
use weir_core::store::{Made, MakeKind};

pub(in crate::v3) async fn symlink<S: Store>(
    cx: &Context<'_, S>,
    args: SymlinkArgs<'_>,
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
    args: &SymlinkArgs<'_>,
) -> Result<Made<S::Object>, Status> {
    cx.may_change()?;
    let name = name::new(args.location.name)?;
    let cred = &cx.rights.cred;
    let target = match args.data {
        [] => return Err(Status::INVAL),
        long if long.len() > SYMLINK_BYTES_MAX => return Err(Status::NAMETOOLONG),
        with_nul if with_nul.contains(&0) => return Err(Status::INVAL),
        target => MakeKind::Symlink(target.to_vec()),
    };
    let set = sizeless(&args.attributes, cred)?;
    Ok(cx.volume.store.make(dir, name, &target, &set, cred).await?)
}
