//! One request on a volume: from its admission to its response.

use super::super::{Operation, Outcome, Start};
use super::accounts::Accounts;
use super::answer::{Answer, sendable};
use super::begin::Element;
use super::host::SmbHost;
use super::pending::Pending;
use super::server::SmbServer;
use super::user_session::UserSession;
use super::window::Window;
use crate::sync::Arc;
use crate::worker::Cancellable;
use weir_core::{ObjectKey, Shared};
use weir_smb::frame;
use weir_smb::host::{Share, User};
use weir_smb::limits::IO_BYTES_MAX;
use weir_smb::ops::{self, Context};
use weir_smb::route::Route;
use weir_smb::wire::{Command, ErrorResponse, FileId, Header, Status};

/// Bytes of a response beside its payload.
const RESPONSE_BYTES: usize = 512;

/// A request on a volume that is not carried out yet.
pub(crate) struct SmbJob {
    pub(super) smb: Arc<SmbServer>,
    pub(super) window: Arc<Window>,
    pub(super) session: Arc<UserSession>,
    pub(super) share: Arc<Share>,
    pub(super) user: Arc<User>,
    pub(super) accounts: Accounts,
    pub(super) element: Element,
    pub(super) command: Command,
    /// The file that it reads or writes.
    pub(super) file: Option<ObjectKey>,
    pub(super) route: Route,
    /// The session that sealed the request.
    pub(super) sealed: Option<Arc<UserSession>>,
    pub(super) pending: Arc<Pending>,
}

/// The part of a request that is left while it is carried out.
pub(crate) struct SmbUnanswered {
    pub(super) header: Header,
    pub(super) sealed: Option<Arc<UserSession>>,
    pub(super) pending: Arc<Pending>,
}

/// The result of a request on a tree connect.
pub(super) struct Carried {
    pub(super) status: Status,
    /// A buffer from [`frame::begin`], with the body.
    pub(super) bytes: Vec<u8>,
    pub(super) moved: u64,
    /// The open that it used, made or only named.
    pub(super) file: Option<FileId>,
}

impl Carried {
    /// The result of a request that is refused.
    pub(super) fn refused(sealed: bool, status: Status) -> Self {
        let bytes = error_body(Vec::with_capacity(128), sealed, status, &[]);
        Self { status, bytes, moved: 0, file: None }
    }
}

/// Carries out a request on a volume; the body goes to `bytes`, from [`frame::begin`].
pub(super) async fn carry_out(
    host: &SmbHost,
    command: Command,
    element: &Element,
    related: Option<FileId>,
    mut bytes: Vec<u8>,
    sealed: bool,
) -> Carried {
    let response_max = IO_BYTES_MAX as usize;
    let Element { header, message } = element;
    let cx = Context::new(host, header, message, related, response_max);
    match ops::serve(&cx, command, &mut bytes).await {
        Ok(done) => Carried { status: done.status, bytes, moved: done.moved, file: done.file },
        Err(failure) => {
            let bytes = error_body(bytes, sealed, failure.status, &failure.data);
            Carried { status: failure.status, bytes, moved: failure.moved, file: cx.named() }
        }
    }
}

/// The body of the response to a request that failed, in place of what was in `bytes`.
pub(super) fn error_body(bytes: Vec<u8>, sealed: bool, status: Status, data: &[u8]) -> Vec<u8> {
    let mut bytes = frame::begin(bytes, sealed);
    let body = match (status, data.first_chunk()) {
        (Status::BUFFER_TOO_SMALL, Some(needed)) => {
            ErrorResponse::BufferTooSmall { needed: u32::from_le_bytes(*needed) }
        }
        _ => ErrorResponse::Plain,
    };
    body.encode(&mut bytes);
    bytes
}

impl SmbJob {
    /// False if the client has cancelled the request just after its gate released it, and has its
    /// answer.
    pub(in super::super) fn begin(&self) -> bool {
        !self.pending.is_cancelled()
    }

    pub(in super::super) fn cancellable(&self) -> Arc<dyn Cancellable> {
        Arc::clone(&self.pending) as Arc<dyn Cancellable>
    }

    pub(in super::super) fn file(&self) -> Option<&ObjectKey> {
        self.file.as_ref()
    }

    pub(in super::super) fn waits_for_others(&self) -> bool {
        self.route.waits
    }

    pub(in super::super) fn detach(&mut self) {
        let message = std::mem::replace(&mut self.element.message, Shared::from(Vec::new()));
        self.element.message = message.detach();
    }

    pub(in super::super) fn pinned(&self) -> usize {
        self.element.message.pinned()
    }

    pub(in super::super) fn reply_room(&self) -> usize {
        RESPONSE_BYTES + usize::try_from(self.route.response_bytes).unwrap_or(0)
    }

    pub(in super::super) fn held_bytes(&self) -> usize {
        let beside = usize::try_from(self.route.held_bytes).unwrap_or(0);
        self.reply_room() + beside + self.element.message.len()
    }

    pub(in super::super) fn start(self: Box<Self>, start: Start<'_>) -> (Operation, SmbUnanswered) {
        let Self {
            smb,
            window,
            session,
            share,
            user,
            accounts,
            element,
            command,
            sealed,
            pending,
            ..
        } = *self;
        let tree = element.header.tree_id();
        let rest = SmbUnanswered {
            header: element.header,
            sealed: sealed.clone(),
            pending: Arc::clone(&pending),
        };
        let volume = Arc::clone(start.volume);
        let (io, permits) = (start.io.clone(), (start.permits)());
        let host =
            SmbHost { smb, session, tree, share, user, volume, accounts, io, permits, pending };
        let is_sealed = sealed.is_some();
        let bytes = frame::begin(start.reply, is_sealed);
        let operation = Operation::Smb(Box::pin(async move {
            let carried = carry_out(&host, command, &element, None, bytes, is_sealed).await;
            let Carried { status, bytes, moved, .. } = carried;
            let answer = Answer::new(&element.header, status, bytes, Some(&host.session));
            let answer = answer.after(&host.pending);
            let reply = sendable(&window, vec![answer], sealed.as_ref(), host.session.peer);
            Outcome { reply, moved, ok: !status.is_error() }
        }));
        (operation, rest)
    }

    /// The answer to a request for which there is no room.
    pub(in super::super) fn busy(&self) -> Option<Vec<u8>> {
        let (sealed, status) = (self.sealed.as_ref(), Status::INSUFFICIENT_RESOURCES);
        let header = &self.element.header;
        let answer = Answer::error(header, status, sealed.is_some(), Some(&self.session));
        sendable(&self.window, vec![answer.after(&self.pending)], sealed, self.session.peer)
    }

    pub(in super::super) fn refused(self) -> SmbUnanswered {
        let Self { element, sealed, pending, .. } = self;
        SmbUnanswered { header: element.header, sealed, pending }
    }
}
