//! Refusals of logins, for the audit log. The response says only that the logon
//! failed.

use alloc::string::String;

/// The names in an AUTHENTICATE message, as the client sent them: anything may be in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The user; the directory compares it without case.
    pub user: String,
    /// The domain; clients of a server without a domain send the server's name, their own, or an
    /// empty one.
    pub domain: String,
    /// The name that the client gives itself.
    pub workstation: String,
}

/// A refused login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The rule that refused it.
    pub reason: Reason,
    /// The names, if the message was parsed as far as they are.
    pub account: Option<Account>,
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self { reason, account: None }
    }
}

/// The rule that refused a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A token is not of the form that its protocol gives it.
    #[error("the {0} is malformed")]
    Malformed(&'static str),
    /// A well-formed token came at the wrong time.
    #[error("the token is out of order")]
    OutOfOrder,
    /// The client offers no NTLM.
    #[error("the client offers no mechanism but foreign ones")]
    NoMechanism,
    /// The client does without Unicode, extended session security or 128-bit keys.
    #[error("the client does not negotiate Unicode, extended session security and 128-bit keys")]
    Weak,
    /// The client asks for an anonymous login.
    #[error("anonymous logins are refused")]
    Anonymous,
    /// The client sent an LM or NTLMv1 response.
    #[error("LM and NTLMv1 responses are refused")]
    OldResponse,
    /// The directory has no such user with a password.
    #[error("no such user, or a user without a password")]
    UnknownUser,
    /// The client does not know the password.
    #[error("the proof of the password is wrong")]
    WrongProof,
    /// The three messages are not those that the client saw.
    #[error("the message integrity code is wrong")]
    WrongMic,
    /// The list of mechanisms is not the one that the client sent.
    #[error("the code over the list of mechanisms is wrong")]
    WrongListMic,
    /// The client preferred another mechanism and sends no code over its list.
    #[error("the code over the list of mechanisms is missing")]
    NoListMic,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom,
}

impl Reason {
    /// The word for the reason, for programs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::OutOfOrder => "out_of_order",
            Self::NoMechanism => "no_mechanism",
            Self::Weak => "weak",
            Self::Anonymous => "anonymous",
            Self::OldResponse => "old_response",
            Self::UnknownUser => "unknown_user",
            Self::WrongProof => "wrong_password",
            Self::WrongMic | Self::WrongListMic | Self::NoListMic => "tampered",
            Self::NoRandom => "no_random",
        }
    }
}
