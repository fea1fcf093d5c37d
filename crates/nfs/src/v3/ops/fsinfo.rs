//! FSINFO (RFC 1813 §3.3.19): the sizes the server takes, the same for every volume.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{FsInfoArgs, FsInfoOk, FsInfoRes, FsProperties, NfsTime3, Res};
use crate::xdr::Writer;
use weir_core::Store;
use weir_core::limits::{FILE_BYTES_MAX, IO_BYTES_MAX};

/// Largest READDIR or READDIRPLUS result that is given, in bytes, and the one preferred; a client
/// that allows more gets this much.
pub(super) const DIR_BYTES_PREFERRED: u32 = 64 << 10;

/// READs and WRITEs of whole pages are the cheapest.
const IO_MULTIPLE: u32 = 4096;

pub(in crate::v3) async fn fsinfo<S: Store>(
    cx: &Context<'_, S>,
    _: FsInfoArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let attributes = match cx.subject().await {
        Ok((_, attr)) => Some(cx.fattr(&attr)),
        Err(error) => return fail(out, error, false),
    };
    let result: FsInfoRes = Res::Ok(FsInfoOk {
        attributes,
        rtmax: IO_BYTES_MAX,
        rtpref: IO_BYTES_MAX,
        rtmult: IO_MULTIPLE,
        wtmax: IO_BYTES_MAX,
        wtpref: IO_BYTES_MAX,
        wtmult: IO_MULTIPLE,
        dtpref: DIR_BYTES_PREFERRED,
        maxfilesize: FILE_BYTES_MAX,
        time_delta: NfsTime3 { seconds: 0, nseconds: 1 },
        properties: FsProperties::LINK
            | FsProperties::SYMLINK
            | FsProperties::HOMOGENEOUS
            | FsProperties::CANSETTIME,
    });
    answer(out, &result)
}
