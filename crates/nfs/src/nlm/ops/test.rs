//! TEST (XNFS, NLM_TEST): could this lock be had, and who holds a conflicting one?

use super::{Answer, Context};
use crate::nlm::wire::{Status, TestArgs};
use weir_state::Refused;

pub(super) fn test<W>(cx: &Context<'_, W>, args: &TestArgs<'_>) -> Answer {
    let ask = match cx.ask(&args.lock, args.exclusive) {
        Ok(ask) => ask,
        Err(status) => return status.into(),
    };
    match cx.tables.test(cx.now, &ask) {
        Ok(()) => Status::GRANTED.into(),
        Err(Refused::Held(holder)) => Answer::Held(holder),
        Err(refused) => Status::from(&refused).into(),
    }
}
