//! The session layer of SMB 3.1.1 on one connection (MS-SMB2 §3.3.1.7): frames, seals and
//! signatures, credits, logins, and the way from requests to operations.
//!
//! A frame of one request on a volume becomes a request of that volume, charged as a whole
//! ([`job`]). Every other frame (a compound, or a request on no volume) is carried out one element
//! after another, each of which has a permit of its own ([`chain`]).
//!
//! Not here: messages, keys, and the operations themselves, which are `weir-smb`'s.

mod accounts;
mod aim;
mod answer;
mod begin;
mod chain;
mod connected;
mod ending;
mod host;
mod job;
mod listing;
mod login;
mod names;
mod pending;
mod pipe_open;
mod pipes;
mod renames;
mod server;
mod sums;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod tree;
mod user_session;
mod waiter;
mod window;

pub(crate) use job::{SmbJob, SmbUnanswered};
pub(crate) use listing::Moment;
pub(crate) use names::NameLocks;
pub(crate) use server::SmbServer;
pub(crate) use waiter::SmbWaiter;

use super::{Frame, ProtocolError};
use crate::limits::RECORD_BYTES_MAX;
use crate::sync::{Arc, oneshot};
use connected::Connected;
use login::HalfLogin;
use pending::{Interim, PendingList, Waiting};
use std::future::Future;
use std::pin::Pin;
use weir_core::Mono;
use weir_smb::conn::{Negotiated, NotGranted};
use weir_smb::crypto::CryptoError;
use weir_smb::wire::{WireError, netbios};
use window::Window;

const _: () = assert!(weir_smb::limits::FRAME_BYTES_MAX <= RECORD_BYTES_MAX);

/// Why a connection of SMB is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SmbError {
    #[error(transparent)]
    Frame(#[from] netbios::FrameError),
    #[error("a message is malformed: {0}")]
    Wire(#[from] WireError),
    #[error(transparent)]
    Credits(#[from] NotGranted),
    #[error("a frame cannot be opened or answered: {0}")]
    Crypto(#[from] CryptoError),
    #[error("the frame is sealed for no session of the connection")]
    NoSession,
    #[error("a TREE_CONNECT is neither signed nor sealed")]
    Unprotected,
    #[error("a message is a response")]
    Response,
    #[error("a message is not allowed before or after NEGOTIATE")]
    OutOfOrder,
    #[error("the client offers no dialect that is served")]
    NoDialect,
    #[error("compression was not negotiated")]
    Compressed,
    #[error("the client asked for validation of a negotiation that is protected already")]
    Validation,
}

/// The progress of the negotiation of a connection.
enum Stage {
    /// Nothing was received.
    Fresh,
    /// A client of SMB1 was told to begin again with SMB2.
    Upgraded,
    /// Dialect and algorithms are agreed.
    Negotiated(Box<Negotiated>),
}

/// A login whose end is held back until its time.
struct Delayed {
    at: Mono,
    due: oneshot::Sender<()>,
}

/// The state of one connection.
pub(crate) struct SmbSession {
    smb: Arc<SmbServer>,
    stage: Stage,
    window: Arc<Window>,
    logins: Vec<HalfLogin>,
    sessions: Arc<Connected>,
    /// The requests that wait; the frames that are carried out add their elements.
    pending: Arc<PendingList>,
    delayed: Vec<Delayed>,
}

impl SmbSession {
    /// The session of a new connection.
    pub(super) fn new(smb: &Arc<SmbServer>) -> Self {
        Self {
            smb: Arc::clone(smb),
            stage: Stage::Fresh,
            window: Arc::default(),
            logins: Vec::new(),
            sessions: Arc::default(),
            pending: Arc::default(),
            delayed: Vec::new(),
        }
    }

    /// See [`super::Session::next`].
    pub(super) fn next(bytes: &[u8]) -> Result<Frame, ProtocolError> {
        Ok(match netbios::next(bytes).map_err(SmbError::from)? {
            netbios::Step::NeedMore { total } => Frame::NeedMore { total },
            netbios::Step::Frame { at } => {
                let consumed = at.end;
                Frame::Whole { at, consumed }
            }
        })
    }

    /// See [`super::Session::waits`].
    pub(super) fn waits(&mut self, job: &SmbJob, now: Mono) {
        let (header, sealed, pending) = (&job.element.header, job.sealed.as_ref(), &job.pending);
        self.pending.add_parked(Waiting { header, sealed, pending }, now);
    }

    /// See [`super::Session::under_way`].
    pub(super) fn under_way(&mut self, rest: &SmbUnanswered, now: Mono) {
        let (header, sealed, pending) = (&rest.header, rest.sealed.as_ref(), &rest.pending);
        self.pending.add_begun(Waiting { header, sealed, pending }, now);
    }

    /// See [`super::Session::ended`].
    pub(super) fn ended(&mut self, rest: &SmbUnanswered) {
        self.pending.remove(rest.header.message_id);
    }

    /// See [`super::Session::holds_state`].
    pub(super) fn holds_state(&self) -> bool {
        self.sessions.hold_opens()
    }

    /// See [`super::Session::drain`].
    pub(super) fn drain(&mut self) {
        self.pending.drain();
    }

    /// See [`super::Session::alarm`].
    pub(super) fn alarm(&self) -> Option<Mono> {
        let delayed = self.delayed.iter().map(|delayed| delayed.at).min();
        delayed.into_iter().chain(self.pending.next()).min()
    }

    /// See [`super::Session::ring`].
    pub(super) fn ring(&mut self, now: Mono) -> Option<Vec<Vec<u8>>> {
        for Delayed { due, .. } in self.delayed.extract_if(.., |delayed| delayed.at <= now) {
            // Nobody hears it if the request is given up.
            due.send(()).ok();
        }
        let mut records = Vec::new();
        for Interim { header, sealed } in self.pending.due(now) {
            records.push(answer::interim(&self.window, &header, sealed.as_ref()).ok()?);
        }
        Some(records)
    }

    /// See [`super::Session::close`]: ends the sessions of the connection. Gives what is left to be
    /// done: their opens are closed, and files deleted that are to be.
    pub(super) fn close(self) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
        let sessions = self.sessions.take_all();
        if sessions.is_empty() {
            return None;
        }
        let smb = self.smb;
        Some(Box::pin(async move {
            for session in sessions {
                tree::end_session(&smb, &session).await;
            }
        }))
    }
}
