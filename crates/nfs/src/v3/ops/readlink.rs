//! READLINK (RFC 1813 §3.3.5): the target as it was given, never followed.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{ReadlinkArgs, ReadlinkOk, ReadlinkRes, Res};
use crate::xdr::Writer;
use weir_core::Store;

pub(in crate::v3) async fn readlink<S: Store>(
    cx: &Context<'_, S>,
    _: ReadlinkArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (link, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    let attributes = Some(cx.fattr(&attr));
    match cx.volume.store.read_link(&link).await {
        Ok(target) => {
            let result: ReadlinkRes<'_> = Res::Ok(ReadlinkOk { attributes, data: &target });
            answer(out, &result)
        }
        Err(error) => fail(out, error, attributes),
    }
}
