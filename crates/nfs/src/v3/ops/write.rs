//! WRITE (RFC 1813 §3.3.7): the store takes the data where it was received.

use super::{Context, Outcome, Refused, answer, fail, regular};
use crate::access::may_write;
use crate::v3::wire::{Res, Status, WccData, WriteArgs, WriteOk, WriteRes};
use crate::xdr::Writer;
use weir_core::limits::{FILE_BYTES_MAX, IO_BYTES_MAX};
use weir_core::store::Stability;
use weir_core::{Acl, Attr, Shared, Store};

/// Everything in front of the data but the bytes of the handle: its length, then offset, count,
/// stability and the length of the data.
const HEAD_BYTES: usize = 4 + 8 + 4 + 4 + 4;

#[inline]
pub(in crate::v3) async fn write<S: Store>(
    cx: &Context<'_, S>,
    args: &WriteArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let file = match cx.permitted(|attr, acl| writable(cx, args, attr, acl)).await {
        Ok(file) => file,
        Err(Refused { status, attributes: after }) => {
            return fail(out, status, WccData { before: None, after });
        }
    };
    let data = payload(cx.args, args);
    // Before the write: if a sync fails meanwhile and takes this data with it, the client must see
    // the verifier move, and sending again what was not lost does no harm.
    let verifier = cx.volume.write_verifier();
    let stability = Stability::from(args.stable);
    let error = match cx.volume.store.write(&file, args.offset, data, stability).await {
        Ok(done) => {
            let result: WriteRes = Res::Ok(WriteOk {
                file_wcc: cx.wcc(&done.change),
                count: done.count,
                committed: done.committed.into(),
                verifier,
            });
            return Outcome { moved: u64::from(done.count), ..answer(out, &result) };
        }
        Err(error) => error,
    };
    let after = cx.wcc_after(&file).await;
    fail(out, error, after)
}

#[inline]
fn writable<S: Store>(
    cx: &Context<'_, S>,
    args: &WriteArgs<'_>,
    attr: &Attr,
    acl: Option<&Acl>,
) -> Result<(), Status> {
    cx.may_change()?;
    regular(attr)?;
    if !may_write(attr, acl, &cx.rights.cred) {
        return Err(Status::ACCES);
    }
    if args.count as usize != args.data.len() {
        return Err(Status::INVAL);
    }
    match args.offset.checked_add(u64::from(args.count)) {
        Some(end) if end <= FILE_BYTES_MAX => Ok(()),
        _ => Err(Status::FBIG),
    }
}

/// The data as part of the buffer it came in; what is over the largest WRITE is left for the
/// client to send again, as a short count tells it.
#[inline]
fn payload(record: &Shared, args: &WriteArgs<'_>) -> Shared {
    let handle = args.file.0.len().next_multiple_of(4);
    let start = HEAD_BYTES.saturating_add(handle);
    let len = args.data.len().min(IO_BYTES_MAX as usize);
    let data = record.slice(start..start.saturating_add(len));
    debug_assert!(args.data.starts_with(&data) && data.len() == len, "data is not where it was");
    data
}
