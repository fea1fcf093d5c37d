//! The client's side of a login, for load generators and tests.

use super::ntlm::client::{Authenticated, authenticate, negotiate};
use super::spnego::{self, NTLMSSP, Resp, State};
use super::{Account, NtHash, Reason};
use crate::crypto::{Crypto, Role};
use alloc::vec::Vec;

/// Why a client gives a login up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InitiatorError {
    /// A token of the server breaks a rule.
    #[error(transparent)]
    Token(#[from] Reason),
    /// The server selects another mechanism, or its last token does not complete the login.
    #[error("the server does not go on with NTLM")]
    OtherWay,
}

/// A login that goes on.
pub struct Initiator {
    account: Account,
    hash: NtHash,
    /// The encoded list of mechanisms; `None` without SPNEGO.
    list: Option<Vec<u8>>,
    negotiate: Vec<u8>,
}

/// A login whose proof is ready for the server.
pub struct Proven {
    authenticated: Authenticated,
    list: Option<Vec<u8>>,
    token: Vec<u8>,
}

impl Initiator {
    /// Begins a login in SPNEGO, or with `is_raw` without it.
    #[must_use]
    pub fn new(account: Account, hash: NtHash, is_raw: bool) -> Self {
        let list = (!is_raw).then(|| spnego::list(&[NTLMSSP]));
        Self { account, hash, list, negotiate: negotiate() }
    }

    /// The first token.
    #[must_use]
    pub fn first(&self) -> Vec<u8> {
        match &self.list {
            None => self.negotiate.clone(),
            Some(list) => spnego::client_init(list, &self.negotiate),
        }
    }

    /// Takes the server's challenge and proves the password.
    ///
    /// # Errors
    /// [`InitiatorError`] if the token has no challenge with the flags and the time that NTLMv2
    /// with a MIC needs.
    pub fn prove<C: Crypto>(self, crypto: &C, token: &[u8]) -> Result<Proven, InitiatorError> {
        let challenge = match &self.list {
            None => token,
            Some(_) => {
                let resp = Resp::parse(token)?;
                if resp.mechanism == Some(false) {
                    return Err(InitiatorError::OtherWay);
                }
                resp.token.ok_or(InitiatorError::OtherWay)?
            }
        };
        let authenticated =
            authenticate(crypto, &self.negotiate, challenge, &self.account, &self.hash)?;
        let token = match &self.list {
            None => authenticated.message.clone(),
            Some(list) => {
                let mic = authenticated.signatures(crypto).first(Role::Client, list);
                spnego::resp(None, None, Some(&authenticated.message), Some(&mic))
            }
        };
        Ok(Proven { authenticated, list: self.list, token })
    }
}

impl Proven {
    /// The second token.
    #[must_use]
    pub fn token(&self) -> &[u8] {
        &self.token
    }

    /// The key of authentication.
    #[must_use]
    pub const fn session_key(&self) -> [u8; 16] {
        self.authenticated.session_key
    }

    /// Checks the server's last token: it must complete the login and have the right code over the
    /// list of mechanisms (RFC 4178 §5).
    ///
    /// # Errors
    /// [`InitiatorError`] if the token does not.
    pub fn finish<C: Crypto>(&self, crypto: &C, token: &[u8]) -> Result<(), InitiatorError> {
        let Some(list) = &self.list else {
            return if token.is_empty() { Ok(()) } else { Err(InitiatorError::OtherWay) };
        };
        let resp = Resp::parse(token)?;
        if resp.state != Some(State::Completed as u8) {
            return Err(InitiatorError::OtherWay);
        }
        let ours = self.authenticated.signatures(crypto).first(Role::Server, list);
        match resp.list_mic.map(<[u8; 16]>::try_from) {
            Some(Ok(mic)) if crypto.equal(&mic, &ours) => Ok(()),
            Some(_) => Err(Reason::WrongListMic.into()),
            None => Err(Reason::NoListMic.into()),
        }
    }
}
