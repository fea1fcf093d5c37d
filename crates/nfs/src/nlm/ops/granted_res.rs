//! GRANTED_RES (XNFS, NLM_GRANTED_RES): what a client makes of GRANTED_MSG.

use super::{Answer, Context};
use crate::nlm::host::Host;
use crate::nlm::wire::{Res, Status};
use weir_state::GrantId;

/// Only the client that the grant went to is believed.
pub(super) fn granted_res<W>(cx: &mut Context<'_, W>, args: &Res<'_>) -> Answer {
    let Ok(cookie) = args.cookie.0.try_into() else { return Answer::Nothing };
    let grant = GrantId(u64::from_be_bytes(cookie));
    let host = cx.tables.grantee(grant).and_then(|owner| Host::of(owner.client()));
    if host.is_some_and(|host| host.address == cx.peer.address.to_canonical()) {
        match args.status {
            Status::GRANTED => cx.tables.taken(grant),
            // The client can't tell yet, and will ask for the lock again by itself.
            Status::DENIED_GRACE_PERIOD => {}
            _ => cx.tables.refused(grant, &mut cx.grants),
        }
    }
    Answer::Nothing
}
