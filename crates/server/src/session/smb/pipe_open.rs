//! An open of a named pipe in `IPC$`, and the memory of all of them.

use crate::limits::{PIPE_BYTES_MAX, PIPE_BYTES_SESSION_MAX};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};
use weir_smb::pipe::{Interface, Pipe};
use weir_smb::wire::FileId;

/// Bytes that pipes hold: those of a session, or of all.
pub(super) type PipeBytes = Arc<AtomicUsize>;

/// The sums that a pipe counts for.
#[derive(Clone, Default)]
pub(super) struct PipeSums {
    pub(super) session: PipeBytes,
    pub(super) server: PipeBytes,
}

impl PipeSums {
    /// Is there room in both?
    pub(super) fn have_room(&self) -> bool {
        self.session.load(Ordering::Relaxed) < PIPE_BYTES_SESSION_MAX
            && self.server.load(Ordering::Relaxed) < PIPE_BYTES_MAX
    }

    fn change(&self, from: usize, to: usize) {
        for sum in [&self.session, &self.server] {
            sum.fetch_add(to, Ordering::Relaxed);
            sum.fetch_sub(from, Ordering::Relaxed);
        }
    }
}

/// The open.
pub(crate) struct PipeOpen {
    pub(super) id: FileId,
    pub(super) tree: u32,
    pipe: Mutex<Counted>,
}

/// A pipe, and the bytes that it counts with.
struct Counted {
    pipe: Pipe,
    bytes: usize,
    sums: PipeSums,
}

impl PipeOpen {
    /// An open of a pipe that has just been opened.
    pub(super) fn new(id: FileId, tree: u32, interface: Interface, sums: PipeSums) -> Self {
        let pipe = Mutex::new(Counted { pipe: Pipe::new(interface), bytes: 0, sums });
        Self { id, tree, pipe }
    }

    /// Uses the pipe.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Pipe) -> R) -> R {
        let mut counted = lock(&self.pipe);
        let done = act(&mut counted.pipe);
        let bytes = counted.pipe.held_bytes();
        counted.sums.change(counted.bytes, bytes);
        counted.bytes = bytes;
        done
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.sums.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_smb::pipe::{Host, Share, ShareKind};

    /// The first byte of a fragment.
    const BEGINNING: [u8; 1] = [5];

    #[test]
    fn the_bytes_of_pipes_count_until_they_are_read_or_their_pipe_is_gone() {
        let shares = || vec![Share { name: "vol", comment: "", kind: ShareKind::Disk }];
        let host = Host { name: "WEIR", group: "W", comment: "", shares: &shares };
        let sums = PipeSums::default();
        let open = || PipeOpen::new(FileId::default(), 1, Interface::Srvsvc, sums.clone());
        let (one, two) = (open(), open());
        for pipe in [&one, &two] {
            pipe.with(|pipe| pipe.write(&BEGINNING, &host)).unwrap();
        }
        let counted = || [&sums.session, &sums.server].map(|sum| sum.load(Ordering::Relaxed));
        assert_eq!(counted(), [2, 2]);
        drop(one);
        assert_eq!(counted(), [1, 1]);
        sums.session.fetch_add(PIPE_BYTES_SESSION_MAX, Ordering::Relaxed);
        assert!(!sums.have_room());
        let other = PipeSums { server: Arc::clone(&sums.server), ..PipeSums::default() };
        assert!(other.have_room(), "another session has room");
        sums.server.fetch_add(PIPE_BYTES_MAX, Ordering::Relaxed);
        assert!(!other.have_room());
        drop(two);
    }
}
