//! READ (RFC 1813 §3.3.6): the store appends the data to the reply itself.

use super::{Context, Outcome, Refused, fail, regular};
use crate::access::may_read;
use crate::rpc::reply;
use crate::v3::wire::{ReadArgs, ReadReply, Status};
use crate::xdr::Writer;
use alloc::vec::Vec;
use weir_core::limits::{FILE_BYTES_MAX, IO_BYTES_MAX};
use weir_core::{Acl, Attr, Store};

#[inline]
pub(in crate::v3) async fn read<S: Store>(
    cx: &Context<'_, S>,
    args: &ReadArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let file = match cx.permitted(|attr, acl| readable(cx, attr, acl)).await {
        Ok(file) => file,
        Err(Refused { status, attributes }) => return fail(out, status, attributes),
    };
    let (offset, count) = within_bounds(args);
    let head = ReadReply::begin(out);
    let buffer = core::mem::take(out).into_vec();
    let error = match cx.volume.store.read(&file, offset, count, buffer).await {
        Ok(done) => {
            *out = Writer::new(done.out);
            let moved = head.finish(out, &cx.fattr(&done.attr), done.eof);
            return Outcome { status: Status::OK, moved: u64::from(moved) };
        }
        Err(error) => error,
    };
    // The buffer went with the error.
    *out = reply::begin(Vec::new(), cx.xid);
    let after = cx.fattr_after(&file).await;
    fail(out, error, after)
}

#[inline]
fn readable<S>(cx: &Context<'_, S>, attr: &Attr, acl: Option<&Acl>) -> Result<(), Status> {
    regular(attr)?;
    if may_read(attr, acl, &cx.rights.cred) { Ok(()) } else { Err(Status::ACCES) }
}

/// No file reaches beyond [`FILE_BYTES_MAX`], so asking further gives what asking there gives:
/// nothing, and the end of the file.
#[inline]
fn within_bounds(args: &ReadArgs<'_>) -> (u64, u32) {
    let offset = args.offset.min(FILE_BYTES_MAX);
    let left = FILE_BYTES_MAX.saturating_sub(offset);
    (offset, args.count.min(IO_BYTES_MAX).min(u32::try_from(left).unwrap_or(u32::MAX)))
}
