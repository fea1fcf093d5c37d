//! CANCEL (XNFS, NLM_CANCEL): a lock is not waited for any more.

use super::{Answer, Context};
use crate::nlm::wire::{CancelArgs, Status};

/// Nothing to cancel is as good as cancelled: the call may be a repetition. If the lock was granted
/// and the client's call crossed the news, the lock is given back.
pub(super) fn cancel<W>(cx: &mut Context<'_, W>, args: &CancelArgs<'_>) -> Answer {
    match cx.ask(&args.lock, args.exclusive) {
        Ok(ask) => {
            cx.tables.cancel(&ask, &mut cx.grants);
            Status::GRANTED.into()
        }
        Err(status) => status.into(),
    }
}
