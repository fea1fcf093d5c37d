//! FREE_ALL (XNFS, NLM_FREE_ALL): a host restarted, and holds nothing any more.

use super::{Answer, Context};
use crate::nlm::host::Host;
use crate::nlm::wire::FreeAllArgs;

/// Only a host's own address is believed.
pub(super) fn free_all(cx: &mut Context<'_>, args: &FreeAllArgs<'_>) -> Answer {
    for client in cx.locks.clients_of(&Host::new(cx.peer.address, args.name.0)) {
        cx.locks.table.release_client(&client, &mut cx.grants);
    }
    Answer::Nothing
}
