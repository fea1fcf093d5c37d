//! MKNOD (RFC 1813 §3.3.11).

use super::made::{answer_made, sizeless};
use super::{Context, Outcome, fail, name};
use crate::v3::wire::{MknodArgs, MknodData3, Status, WccData};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::store::{Made, MakeKind};

pub(in crate::v3) async fn mknod<S: Store>(
    cx: &Context<'_, S>,
    args: MknodArgs<'_>,
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
    args: &MknodArgs<'_>,
) -> Result<Made<S::Object>, Status> {
    cx.may_change()?;
    let name = name::new(args.location.name)?;
    let cred = &cx.rights.cred;
    let (kind, set) = match &args.what {
        MknodData3::CharDevice(node) => (MakeKind::CharDevice(node.spec.into()), &node.attributes),
        MknodData3::BlockDevice(node) => {
            (MakeKind::BlockDevice(node.spec.into()), &node.attributes)
        }
        MknodData3::Socket(set) => (MakeKind::Socket, set),
        MknodData3::Fifo(set) => (MakeKind::Fifo, set),
        MknodData3::Other(_) => return Err(Status::BADTYPE),
    };
    let set = sizeless(set, cred)?;
    Ok(cx.volume.store.make(dir, name, &kind, &set, cred).await?)
}
