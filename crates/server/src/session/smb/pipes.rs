//! The named pipes of `IPC$` that a session has open, and the description of the server that they
//! send. Not here: the requests on pipes, and the protocol of their calls (`weir-smb`).

use super::begin::Element;
use super::job::{Carried, error_body};
use super::pipe_open::PipeOpen;
use super::server::SmbServer;
use super::tree;
use super::user_session::UserSession;
use crate::engine::ServedSet;
use crate::sync::Arc;
use weir_catalog::Volume;
use weir_smb::limits::IO_BYTES_MAX;
use weir_smb::ops::{Context, pipe};
use weir_smb::pipe::{Host, Interface, Pipe, Share, ShareKind};
use weir_smb::wire::FileId;

/// The comment of `IPC$`, as other servers have it.
const PIPES_COMMENT: &str = "IPC Service (Weir)";

/// The comment of the server.
const COMMENT: &str = "Weir";

/// The work group of a server without a domain.
const GROUP: &str = "WORKGROUP";

/// The pipes of one tree connect.
pub(super) struct Pipes<'a> {
    pub(super) smb: &'a SmbServer,
    pub(super) session: &'a Arc<UserSession>,
    pub(super) served: &'a ServedSet,
    pub(super) tree_id: u32,
}

impl Pipes<'_> {
    /// Carries out a request on a pipe; the body goes to `bytes`.
    pub(super) fn carry_out(
        &self,
        element: &Element,
        related: Option<FileId>,
        mut bytes: Vec<u8>,
        sealed: bool,
    ) -> Carried {
        let Element { header, message } = element;
        let response_max = IO_BYTES_MAX as usize;
        let cx = Context::new(self, header, message, related, response_max);
        match pipe::serve(&cx, &mut bytes) {
            Ok(done) => Carried { status: done.status, bytes, moved: 0, file: done.file },
            Err(failure) => {
                let bytes = error_body(bytes, sealed, failure.status, &failure.data);
                Carried { status: failure.status, bytes, moved: 0, file: cx.named() }
            }
        }
    }

    /// The volumes whose shares the user may connect to.
    fn admitting(&self) -> impl Iterator<Item = &Volume> {
        let snapshot = self.served.snapshot();
        let user = tree::user_of(self.served, self.session);
        let peer = self.session.peer;
        let shares = snapshot.shares().map(|volume| &**volume);
        shares.filter(move |volume| {
            user.is_some_and(|user| volume.share_access(peer, user).is_some())
        })
    }
}

impl pipe::Pipes for Pipes<'_> {
    fn keep(&self, interface: Interface) -> Option<FileId> {
        let (id, account) = (self.smb.next_pipe(), &self.session.pipe_bytes);
        let pipe = PipeOpen::new(id, self.tree_id, interface, account);
        self.session.keep_pipe(pipe).map(|open| open.id)
    }

    fn take(&self, id: FileId) -> bool {
        self.session.pipe(id, self.tree_id).is_some() && self.session.take_pipe(id).is_some()
    }

    fn with<R>(&self, id: FileId, act: impl FnOnce(&mut Pipe) -> R) -> Option<R> {
        let open = self.session.pipe(id, self.tree_id)?;
        Some(open.with(act))
    }

    fn has_room(&self) -> bool {
        self.session.pipe_bytes.has_room()
    }

    fn describe<R>(&self, act: impl FnOnce(&Host<'_>) -> R) -> R {
        let shares = || {
            let disks = self.admitting().map(disk);
            let pipes = Share { name: "IPC$", kind: ShareKind::Ipc, comment: PIPES_COMMENT };
            disks.chain([pipes]).collect()
        };
        let name = self.smb.name.as_str();
        act(&Host { name, group: GROUP, comment: COMMENT, shares: &shares })
    }
}

fn disk(volume: &Volume) -> Share<'_> {
    let kind = if volume.smb.hidden { ShareKind::HiddenDisk } else { ShareKind::Disk };
    Share { name: volume.name.as_str(), kind, comment: "" }
}
