//! From the results of a frame's requests to the frame that answers it.

use super::pending::Pending;
use super::user_session::UserSession;
use super::window::Window;
use crate::sync::Arc;
use std::net::IpAddr;
use weir_crypto::Provider;
use weir_smb::crypto::{CryptoError, SealKeys};
use weir_smb::frame::{self, Response};
use weir_smb::wire::{ErrorResponse, Header, HeaderFlags, Status, TreeOrAsync};

/// The answer to one request.
pub(super) struct Answer {
    pub(super) header: Header,
    /// A buffer from [`frame::begin`], with the body.
    pub(super) bytes: Vec<u8>,
    /// The session whose key signs it, if it is to be signed.
    pub(super) signed: Option<Arc<UserSession>>,
}

impl Answer {
    /// The answer to `request`, whose header says how many credits it asks for, with `status` and
    /// the body in `bytes`. It is signed by `session` if the request was signed or the session asks
    /// for it. Clients take no unsigned answer to a signed request: where the session is gone whose
    /// key would sign the answer, it carries the flag with a blank signature.
    pub(super) fn new(
        request: &Header,
        status: Status,
        bytes: Vec<u8>,
        session: Option<&Arc<UserSession>>,
    ) -> Self {
        let mut header = frame::answer(request, status, request.credits);
        let asked = request.flags.contains(HeaderFlags::SIGNED);
        header.flags.set(HeaderFlags::SIGNED, asked && session.is_none());
        let signed = session.filter(|session| asked || session.must_sign).cloned();
        Self { header, bytes, signed }
    }

    /// The answer to `request` that failed with `status`.
    pub(super) fn error(
        request: &Header,
        status: Status,
        sealed: bool,
        session: Option<&Arc<UserSession>>,
    ) -> Self {
        let mut bytes = frame::begin(Vec::with_capacity(128), sealed);
        ErrorResponse::Plain.encode(&mut bytes);
        Self::new(request, status, bytes, session)
    }

    /// The same in the asynchronous form, if an interim response was sent.
    pub(super) fn after(self, pending: &Pending) -> Self {
        if pending.is_async() { self.in_async_form() } else { self }
    }

    /// The same in the asynchronous form, after an interim response: the credits came with that.
    pub(super) fn in_async_form(mut self) -> Self {
        make_async(&mut self.header);
        self.header.credits = 0;
        self
    }
}

/// Gives a response the asynchronous form, with the message id as its id.
fn make_async(header: &mut Header) {
    header.tree = TreeOrAsync::Async(header.message_id);
    header.flags |= HeaderFlags::ASYNC;
}

/// The frame of these answers, sealed by a session as a whole or not. It grants message ids: up to
/// as many for each answer as the header of its request asked for.
///
/// # Errors
/// [`CryptoError`]: nothing may be sent, and the connection must end.
pub(super) fn frame_of(
    window: &Window,
    answers: Vec<Answer>,
    sealed: Option<&Arc<UserSession>>,
) -> Result<Vec<u8>, CryptoError> {
    let split = |Answer { mut header, bytes, signed }: Answer| {
        header.credits = window.grant(header.credits);
        ((header, bytes), signed)
    };
    let (parts, signers): (Vec<_>, Vec<_>) = answers.into_iter().map(split).unzip();
    let responses = parts.into_iter().zip(&signers).map(|((header, bytes), signer)| Response {
        header,
        bytes,
        key: signer.as_ref().map(|session| &session.signing),
    });
    frame::finish(responses.collect(), seal(sealed))
}

/// The frame of these answers to `peer`. `None`, with a log line: nothing may be sent, and the
/// connection must end.
pub(super) fn sendable(
    window: &Window,
    answers: Vec<Answer>,
    sealed: Option<&Arc<UserSession>>,
    peer: IpAddr,
) -> Option<Vec<u8>> {
    let frame = frame_of(window, answers, sealed);
    let log = |error: &CryptoError| {
        tracing::warn!(%peer, %error, "connection closed: a response of SMB cannot be protected");
    };
    frame.inspect_err(log).ok()
}

/// The interim response to a request that waits (MS-SMB2 §3.3.4.2). It is never signed.
pub(super) fn interim(
    window: &Window,
    request: &Header,
    sealed: Option<&Arc<UserSession>>,
) -> Result<Vec<u8>, CryptoError> {
    let mut answer = Answer::error(request, Status::PENDING, sealed.is_some(), None);
    answer.header.flags.remove(HeaderFlags::SIGNED);
    make_async(&mut answer.header);
    frame_of(window, vec![answer], sealed)
}

fn seal(sealed: Option<&Arc<UserSession>>) -> Option<(&SealKeys<Provider>, u64)> {
    sealed.and_then(|session| Some((session.sealing.as_ref()?, session.id)))
}
