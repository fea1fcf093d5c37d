//! UNSHARE (XNFS, NLM_UNSHARE): ends a share reservation. That there is none is no failure.

use super::{Answer, Context};
use crate::nlm::host::Host;
use crate::nlm::wire::{ShareArgs, Status};

pub(super) fn unshare<W>(cx: &mut Context<'_, W>, args: &ShareArgs<'_>) -> Answer {
    let file = match cx.file {
        Ok(file) => file,
        Err(status) => return status.into(),
    };
    let owner = Host::new(cx.peer.address, args.share.caller_name.0).sharer(args.share.oh.0);
    cx.tables.unshare(&file, &owner);
    Status::GRANTED.into()
}
