//! READ (RFC 1813 §3.3.6): the store appends the data to the reply itself.

use super::{Context, Outcome, fail, regular};
use crate::rpc::reply;
use crate::v3::wire::{ReadArgs, ReadReply, Status};
use crate::xdr::Writer;
use alloc::vec::Vec;
use weir_core::limits::{FILE_BYTES_MAX, IO_BYTES_MAX};
use weir_core::{Attr, Store, access};

#[inline]
pub(in crate::v3) async fn read<S: Store>(
    cx: &Context<'_, S>,
    args: ReadArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (file, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    if let Err(status) = readable(cx, &attr) {
        return fail(out, status, Some(cx.fattr(&attr)));
    }
    let head = ReadReply::begin(out);
    if args.offset >= FILE_BYTES_MAX {
        // No file reaches there, and not every store can be asked.
        return finished(head, out, cx, &attr, true);
    }
    // A file ends at FILE_BYTES_MAX, so what is left up to there is all that can be asked for.
    let left = FILE_BYTES_MAX.saturating_sub(args.offset);
    let count = args.count.min(IO_BYTES_MAX).min(u32::try_from(left).unwrap_or(u32::MAX));
    let buffer = core::mem::take(out).into_vec();
    match cx.volume.store.read(&file, args.offset, count, buffer).await {
        Ok(done) => {
            *out = Writer::new(done.out);
            finished(head, out, cx, &done.attr, done.eof)
        }
        Err(error) => {
            // The buffer went with the error.
            *out = reply::begin(Vec::new(), cx.xid);
            let after = cx.fattr_after(&file).await;
            fail(out, error, after)
        }
    }
}

#[inline]
fn readable<S>(cx: &Context<'_, S>, attr: &Attr) -> Result<(), Status> {
    regular(attr)?;
    if access::may_read(attr, &cx.rights.cred) { Ok(()) } else { Err(Status::ACCES) }
}

#[inline]
fn finished<S: Store>(
    head: ReadReply,
    out: &mut Writer,
    cx: &Context<'_, S>,
    attr: &Attr,
    eof: bool,
) -> Outcome {
    let moved = head.finish(out, &cx.fattr(attr), eof);
    Outcome { status: Status::OK, moved: u64::from(moved) }
}
