//! The owners of NLM's locks, as an operator lists them.

use weir_control::plane::LockOwner;
use weir_nfs::nlm::{Host, process};
use weir_state::Owner;

/// The owner of a lock; `None` if it is of another protocol.
pub(crate) fn list_owner(owner: &Owner) -> Option<LockOwner> {
    let Host { address, name } = Host::of(owner.client())?;
    let process = process(owner).map(|(process, _)| process);
    Some(LockOwner::Nlm { address, host: name, process })
}
