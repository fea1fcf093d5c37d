//! PATHCONF (RFC 1813 §3.3.20): POSIX limits, the same for every object.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{PathconfArgs, PathconfOk, PathconfRes, Res};
use crate::xdr::Writer;
use weir_core::Store;

/// The limit of ext4; XFS allows more.
const LINKS_MAX: u32 = 65_000;

/// [`weir_core::limits::NAME_BYTES_MAX`] as the wire has it.
const NAME_MAX: u32 = 255;
const _: () = assert!(NAME_MAX as usize == weir_core::limits::NAME_BYTES_MAX);

pub(in crate::v3) async fn pathconf<S: Store>(
    cx: &Context<'_, S>,
    _: PathconfArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let attributes = match cx.subject().await {
        Ok((_, attr)) => Some(cx.fattr(&attr)),
        Err(error) => return fail(out, error, false),
    };
    let result: PathconfRes = Res::Ok(PathconfOk {
        attributes,
        linkmax: LINKS_MAX,
        name_max: NAME_MAX,
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    });
    answer(out, &result)
}
