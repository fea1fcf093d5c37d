//! UNLOCK (XNFS, NLM_UNLOCK): gives up what the owner holds of a range.

use super::{Answer, Context};
use crate::nlm::wire::{Status, UnlockArgs};

/// UNLOCK works in the grace period too: nobody loses by it, and the owner need not wait.
pub(super) fn unlock<W>(cx: &mut Context<'_, W>, args: &UnlockArgs<'_>) -> Answer {
    let ask = match cx.ask(&args.lock, false) {
        Ok(ask) => ask,
        Err(status) => return status.into(),
    };
    match cx.tables.unlock(&ask.file, &ask.owner, ask.range, &mut cx.grants) {
        Ok(()) => Status::GRANTED.into(),
        Err(_) => Status::DENIED_NOLOCKS.into(),
    }
}
