//! LOCK and NM_LOCK (XNFS, NLM_LOCK, NLM_NM_LOCK): takes a lock, or waits for it. The two differ
//! only in whether the host is monitored, which is seen to before.

use super::{Answer, Context};
use crate::nlm::wire::{LockArgs, Status};
use weir_state::Locked;

pub(super) fn lock<W>(cx: &mut Context<'_, W>, args: &LockArgs<'_>, waiter: Option<W>) -> Answer {
    let ask = match cx.ask(&args.lock, args.exclusive) {
        Ok(ask) => ask,
        Err(status) => return status.into(),
    };
    let client = ask.owner.client();
    if cx.states.is_new(client, args.state) {
        cx.tables.release_client(client, &mut cx.grants);
    }
    let done = cx.tables.lock(cx.now, &ask, args.reclaim, waiter, &mut cx.grants);
    // The state of a host that got no lock ends nothing, because anybody can invent hosts.
    let tables = &*cx.tables;
    if tables.has(client) {
        cx.states.locked(client, args.state, |client| tables.has(client));
    }
    match done {
        Ok(Locked::Granted) => Status::GRANTED.into(),
        Ok(Locked::Waits) => Status::BLOCKED.into(),
        Err(refused) => Status::from(&refused).into(),
    }
}
