//! LOCK and NM_LOCK (XNFS, NLM_LOCK, NLM_NM_LOCK): takes a lock, or waits for it. The two differ
//! only in whether the host is monitored, which is seen to before.

use super::{Answer, Context};
use crate::nlm::locks::Waiting;
use crate::nlm::wire::{LockArgs, Status};
use weir_state::Locked;

pub(super) fn lock(cx: &mut Context<'_>, args: &LockArgs<'_>, by_message: bool) -> Answer {
    let ask = match cx.ask(&args.lock, args.exclusive) {
        Ok(ask) => ask,
        Err(status) => return status.into(),
    };
    let (locks, client) = (&mut *cx.locks, ask.owner.client());
    if locks.states.is_new(client, args.state) {
        locks.table.release_client(client, &mut cx.grants);
    }
    let waiting = || Waiting { local: cx.peer.local, handle: args.lock.fh.0.into(), by_message };
    let wait = args.block.then(waiting);
    let done = locks.table.lock(cx.now, &ask, args.reclaim, wait, &mut cx.grants);
    // The state of a host that got no lock ends nothing, because anybody can invent hosts.
    let table = &locks.table;
    if table.has(client) {
        locks.states.locked(client, args.state, |client| table.has(client));
    }
    match done {
        Ok(Locked::Granted) => Status::GRANTED.into(),
        Ok(Locked::Waits) => Status::BLOCKED.into(),
        Err(refused) => Status::from(&refused).into(),
    }
}
