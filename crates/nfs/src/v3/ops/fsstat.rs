//! FSSTAT (RFC 1813 §3.3.18): the volume's quota and what is used of it.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{FsStatArgs, FsStatOk, FsStatRes, Res};
use crate::xdr::Writer;
use weir_core::Store;

pub(in crate::v3) async fn fsstat<S: Store>(
    cx: &Context<'_, S>,
    _: FsStatArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let attributes = match cx.subject().await {
        Ok((_, attr)) => Some(cx.fattr(&attr)),
        Err(error) => return fail(out, error, false),
    };
    match cx.volume.store.fs_stat().await {
        Ok(stat) => {
            let result: FsStatRes = Res::Ok(FsStatOk {
                attributes,
                total_bytes: stat.total_bytes,
                free_bytes: stat.free_bytes,
                available_bytes: stat.available_bytes,
                total_files: stat.total_files,
                free_files: stat.free_files,
                available_files: stat.free_files,
                invarsec: 0,
            });
            answer(out, &result)
        }
        Err(error) => fail(out, error, attributes),
    }
}
