//! FREE_ALL (XNFS, NLM_FREE_ALL): a host restarted, and holds nothing any more.

use super::{Answer, Context};
use crate::nlm::host::Host;
use crate::nlm::manager::clients_of;
use crate::nlm::wire::FreeAllArgs;

/// Only a host's own address is believed.
pub(super) fn free_all<W>(cx: &mut Context<'_, W>, args: &FreeAllArgs<'_>) -> Answer {
    for client in clients_of(cx.tables, &Host::new(cx.peer.address, args.name.0)) {
        cx.tables.release_client(&client, &mut cx.grants);
    }
    Answer::Nothing
}
