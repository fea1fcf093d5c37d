//! An open of a named pipe in `IPC$`. The memory of the pipe counts for its client.

use super::sums::{Charge, SumAccount};
use crate::sync::{Arc, Mutex, lock};
use weir_smb::pipe::{Interface, Pipe};
use weir_smb::wire::FileId;

/// The open.
pub(crate) struct PipeOpen {
    pub(super) id: FileId,
    pub(super) tree: u32,
    pipe: Mutex<Counted>,
}

/// A pipe, and the bytes that it counts with.
struct Counted {
    pipe: Pipe,
    charge: Charge,
}

impl PipeOpen {
    /// An open of a pipe that has just been opened.
    pub(super) fn new(
        id: FileId,
        tree: u32,
        interface: Interface,
        account: &Arc<SumAccount>,
    ) -> Self {
        let pipe = Mutex::new(Counted { pipe: Pipe::new(interface), charge: Charge::new(account) });
        Self { id, tree, pipe }
    }

    /// Uses the pipe.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Pipe) -> R) -> R {
        let mut counted = lock(&self.pipe);
        let done = act(&mut counted.pipe);
        let bytes = counted.pipe.held_bytes();
        counted.charge.set(bytes);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::super::sums::{Holder, Sum};
    use super::*;
    use crate::limits::SumBounds;
    use weir_smb::pipe::{Host, Share, ShareKind};

    /// The first byte of a fragment.
    const BEGINNING: [u8; 1] = [5];

    #[test]
    fn the_bytes_of_pipes_count_until_their_pipe_is_gone() {
        let shares = || vec![Share { name: "vol", comment: "", kind: ShareKind::Disk }];
        let host = Host { name: "WEIR", group: "W", comment: "", shares: &shares };
        let sum = Arc::new(Sum::new(SumBounds { most: 2, one_in: 1, least: 0 }));
        let account = SumAccount::new(Holder::Renames, &sum);
        let open = || PipeOpen::new(FileId::default(), 1, Interface::Srvsvc, &account);
        let (one, two) = (open(), open());
        one.with(|pipe| pipe.write(&BEGINNING, &host)).unwrap();
        assert!(account.has_room());
        two.with(|pipe| pipe.write(&BEGINNING, &host)).unwrap();
        assert!(!account.has_room());
        drop(one);
        assert!(account.has_room());
    }
}
