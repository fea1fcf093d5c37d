//! GETATTR (RFC 1813 §3.3.1): attributes, which everybody with a handle may see.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{GetattrArgs, GetattrOk, GetattrRes, Res};
use crate::xdr::Writer;
use weir_core::Store;

#[inline]
pub(in crate::v3) async fn getattr<S: Store>(
    cx: &Context<'_, S>,
    _: &GetattrArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let object = match cx.resolve().await {
        Ok(object) => object,
        Err(error) => return fail(out, error, ()),
    };
    match cx.volume.store.attr(&object).await {
        Ok(attr) => {
            let result: GetattrRes = Res::Ok(GetattrOk { attributes: cx.fattr(&attr) });
            answer(out, &result)
        }
        Err(error) => fail(out, error, ()),
    }
}
