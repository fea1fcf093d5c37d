//! COMMIT (RFC 1813 §3.3.21): makes what was written before safe.
//!
//! The whole file is made safe, whatever range was asked for. Everybody with the handle may ask,
//! on a read-only export too: a client that wrote while it was allowed must not lose its data.

use super::{Context, Outcome, answer, fail, regular};
use crate::v3::wire::{CommitArgs, CommitOk, CommitRes, Res, WccData};
use crate::xdr::Writer;
use weir_core::Store;

pub(in crate::v3) async fn commit<S: Store>(
    cx: &Context<'_, S>,
    _: CommitArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (file, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, WccData::NONE),
    };
    if let Err(status) = regular(&attr) {
        return fail(out, status, WccData { before: None, after: Some(cx.fattr(&attr)) });
    }
    let error = match cx.volume.store.commit(&file).await {
        Ok(change) => {
            let file_wcc = cx.wcc(&change);
            let verifier = cx.volume.write_verifier();
            let result: CommitRes = Res::Ok(CommitOk { file_wcc, verifier });
            return answer(out, &result);
        }
        Err(error) => error,
    };
    let after = cx.wcc_after(&file).await;
    fail(out, error, after)
}
