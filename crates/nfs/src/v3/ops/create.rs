//! CREATE (RFC 1813 §3.3.8).

use super::made::{answer_made, attributes};
use super::{Context, Outcome, fail, name};
use crate::v3::wire::{CreateArgs, CreateHow3, Status, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::store::{CreateHow, Made};

pub(in crate::v3) async fn create<S: Store>(
    cx: &Context<'_, S>,
    args: CreateArgs<'_>,
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
    args: &CreateArgs<'_>,
) -> Result<Made<S::Object>, Status> {
    cx.may_change()?;
    let name = name::new(args.location.name)?;
    let cred = &cx.rights.cred;
    let how = match &args.how {
        CreateHow3::Unchecked(set) => CreateHow::Unchecked(attributes(set, cred)?),
        CreateHow3::Guarded(set) => CreateHow::Guarded(attributes(set, cred)?),
        CreateHow3::Exclusive(verifier) => CreateHow::Exclusive(*verifier),
    };
    Ok(cx.volume.store.create(dir, name, &how, cred).await?)
}
