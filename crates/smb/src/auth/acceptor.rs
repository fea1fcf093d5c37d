//! The server's side of a login: SPNEGO around NTLM, or NTLM alone.

use super::ntlm::{Exchange, ServerNames, Signatures, Verdict};
use super::spnego::{self, Init, NTLMSSP, Resp, State};
use super::{Account, NtHash, Reason, Refused};
use crate::crypto::{Crypto, Role};
use crate::limits::AUTH_TOKEN_BYTES_MAX;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A login that goes on, one for each sequence of SESSION_SETUP requests. It keeps at most the
/// NEGOTIATE and the list of mechanisms, within the bounds of [`limits`](crate::limits), and the
/// CHALLENGE.
pub struct Acceptor {
    names: Arc<ServerNames>,
    progress: Progress,
}

/// The token that a login expects next.
enum Progress {
    /// The first.
    First,
    /// The NEGOTIATE message, after a foreign mechanism was preferred.
    Negotiate(Framing),
    /// The AUTHENTICATE message.
    Authenticate(Framing, Exchange),
    /// None: it is over.
    Over,
}

/// The framing of NTLM's messages.
enum Framing {
    /// None, as the kernel client of Linux sends them.
    Raw,
    /// SPNEGO.
    Spnego {
        /// The first reply has gone out, the only one to name the mechanism (RFC 4178 §4.2.2).
        is_named: bool,
        /// The list of mechanisms, encoded.
        list: Vec<u8>,
        /// Whether the client must send a code over the list, because it preferred a foreign
        /// mechanism (RFC 4178 §5).
        is_mic_required: bool,
    },
}

/// The outcome of a token.
pub enum Next {
    /// The login goes on: the token is for the client, with STATUS_MORE_PROCESSING_REQUIRED.
    Continue(Vec<u8>),
    /// The client has proven that it is the user.
    Done(Login),
    /// The login has failed, with STATUS_LOGON_FAILURE for every reason.
    Refused(Refused),
}

/// A proven login.
pub struct Login {
    /// The names that the client gave.
    pub account: Account,
    /// The key of authentication, for [`Derivation`](crate::crypto::Derivation).
    pub session_key: [u8; 16],
    /// The last token for the client; empty if there is none.
    pub token: Vec<u8>,
}

impl Acceptor {
    /// Begins a login.
    #[must_use]
    pub const fn new(names: Arc<ServerNames>) -> Self {
        Self { names, progress: Progress::First }
    }

    /// Takes the next token of the client. `now` is the time as a FILETIME; `lookup` gives the NT
    /// hash of a user by the name and the domain that the client sent, and is called for an
    /// AUTHENTICATE message alone. After [`Next::Done`] and [`Next::Refused`] every token is
    /// refused.
    pub fn step<C: Crypto>(
        &mut self,
        crypto: &C,
        token: &[u8],
        now: u64,
        lookup: impl FnOnce(&str, &str) -> Option<NtHash>,
    ) -> Next {
        let progress = core::mem::replace(&mut self.progress, Progress::Over);
        let next = if token.len() > AUTH_TOKEN_BYTES_MAX {
            Err(Reason::Malformed("token").into())
        } else {
            match progress {
                Progress::First => self.first(crypto, token, now).map_err(Refused::from),
                Progress::Negotiate(framing) => {
                    self.negotiate(crypto, framing, token, now).map_err(Refused::from)
                }
                Progress::Authenticate(framing, exchange) => {
                    finish(crypto, &framing, &exchange, token, lookup).map(Next::Done)
                }
                Progress::Over => Err(Reason::OutOfOrder.into()),
            }
        };
        next.unwrap_or_else(Next::Refused)
    }

    fn first<C: Crypto>(&mut self, crypto: &C, token: &[u8], now: u64) -> Result<Next, Reason> {
        if !Init::is_at(token) {
            return self.challenge(crypto, Framing::Raw, token, now);
        }
        let init = Init::parse(token)?;
        if !init.has_ntlmssp {
            return Err(Reason::NoMechanism);
        }
        let list = init.list.to_vec();
        let is_mic_required = !init.is_ntlmssp_first;
        let framing = |is_named| Framing::Spnego { is_named, list, is_mic_required };
        match init.token {
            Some(negotiate) if init.is_ntlmssp_first => {
                self.challenge(crypto, framing(false), negotiate, now)
            }
            // A token of the preferred mechanism is of no use (RFC 4178 §4.2.2).
            _ => {
                let state =
                    if init.is_ntlmssp_first { State::Incomplete } else { State::RequestMic };
                self.progress = Progress::Negotiate(framing(true));
                Ok(Next::Continue(spnego::resp(Some(state), Some(NTLMSSP), None, None)))
            }
        }
    }

    fn negotiate<C: Crypto>(
        &mut self,
        crypto: &C,
        framing: Framing,
        token: &[u8],
        now: u64,
    ) -> Result<Next, Reason> {
        let negotiate = Resp::parse(token)?.token.ok_or(Reason::OutOfOrder)?;
        self.challenge(crypto, framing, negotiate, now)
    }

    fn challenge<C: Crypto>(
        &mut self,
        crypto: &C,
        framing: Framing,
        negotiate: &[u8],
        now: u64,
    ) -> Result<Next, Reason> {
        let exchange = Exchange::begin(crypto, &self.names, negotiate, now)?;
        let challenge = &exchange.challenge;
        let token = match framing {
            Framing::Raw => challenge.clone(),
            Framing::Spnego { is_named, .. } => {
                let mechanism = (!is_named).then_some(NTLMSSP);
                spnego::resp(Some(State::Incomplete), mechanism, Some(challenge), None)
            }
        };
        self.progress = Progress::Authenticate(framing, exchange);
        Ok(Next::Continue(token))
    }
}

/// The last token of the client, and the decision.
fn finish<C: Crypto>(
    crypto: &C,
    framing: &Framing,
    exchange: &Exchange,
    token: &[u8],
    lookup: impl FnOnce(&str, &str) -> Option<NtHash>,
) -> Result<Login, Refused> {
    let (list, is_mic_required) = match framing {
        Framing::Raw => {
            let Verdict { account, session_key, .. } = exchange.judge(crypto, token, lookup)?;
            return Ok(Login { account, session_key, token: Vec::new() });
        }
        Framing::Spnego { list, is_mic_required, .. } => (list, *is_mic_required),
    };
    let resp = Resp::parse(token)?;
    let verdict = exchange.judge(crypto, resp.token.ok_or(Reason::OutOfOrder)?, lookup)?;
    let Verdict { account, session_key, flags } = verdict;
    let signatures = Signatures::new(crypto, &session_key, flags);
    let checked = match resp.list_mic.map(<[u8; 16]>::try_from) {
        None if is_mic_required => Err(Reason::NoListMic),
        None => Ok(None),
        Some(Ok(mic)) if crypto.equal(&mic, &signatures.first(Role::Client, list)) => {
            Ok(Some(signatures.first(Role::Server, list)))
        }
        Some(_) => Err(Reason::WrongListMic),
    };
    match checked {
        Ok(mic) => {
            let mic = mic.as_ref().map(|mic| &mic[..]);
            let token = spnego::resp(Some(State::Completed), None, None, mic);
            Ok(Login { account, session_key, token })
        }
        Err(reason) => Err(Refused { reason, account: Some(account) }),
    }
}
