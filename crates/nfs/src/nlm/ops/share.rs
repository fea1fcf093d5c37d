//! SHARE (XNFS, NLM_SHARE): reserves a file, as DOS programs do when they open it.

use super::{Answer, Context};
use crate::nlm::host::Host;
use crate::nlm::wire::{ShareArgs, ShareBits, Status};
use weir_core::Access;
use weir_state::Share;

/// A share of the same owner takes the place of the one it has.
pub(super) fn share<W>(cx: &mut Context<'_, W>, args: &ShareArgs<'_>) -> Answer {
    let file = match cx.file {
        Ok(file) => file,
        Err(status) => return status.into(),
    };
    let owner = Host::new(cx.peer.address, args.share.caller_name.0).sharer(args.share.oh.0);
    let share = Share { access: access(args.share.access), deny: access(args.share.deny) };
    match cx.tables.share(cx.now, &file, &owner, share, args.reclaim) {
        Ok(()) => Status::GRANTED.into(),
        Err(refused) => Status::from(&refused).into(),
    }
}

fn access(bits: ShareBits) -> Access {
    let bit = |bit: ShareBits, access| if bits.0 & bit.0 != 0 { access } else { Access::empty() };
    bit(ShareBits::READ, Access::READ) | bit(ShareBits::WRITE, Access::WRITE)
}
