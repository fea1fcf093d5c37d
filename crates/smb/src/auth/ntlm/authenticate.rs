//! The AUTHENTICATE message (MS-NLMP §2.2.1.3) and the NTLMv2 response in it (§2.2.2.7, §2.2.2.8).

use super::{AUTHENTICATE, Flags, av, is_message, payload};
use crate::auth::text::bounded_text;
use crate::auth::{Account, Reason};
use crate::le::u32_at;
use crate::limits::LOGIN_NAME_UNITS_MAX;

/// Offsets of the fields.
pub(super) const LM_RESPONSE_AT: usize = 12;
pub(super) const NT_RESPONSE_AT: usize = 20;
pub(super) const DOMAIN_AT: usize = 28;
pub(super) const USER_AT: usize = 36;
pub(super) const WORKSTATION_AT: usize = 44;
pub(super) const SESSION_KEY_AT: usize = 52;
pub(super) const FLAGS_AT: usize = 60;
/// The end of the fields that every client sends; a version of 8 bytes may follow.
const FIELDS_END: usize = 64;
pub(super) const MIC_AT: usize = 72;
pub(super) const MIC_END: usize = 88;

/// Offset of the pairs in a response behind its proof: version, version, reserved, time, the
/// client's challenge, reserved.
pub(super) const PAIRS_AT: usize = 28;
/// Length of an NTLMv1 response, which no NTLMv2 response has.
const OLD_RESPONSE_BYTES: usize = 24;

const MALFORMED: Reason = Reason::Malformed("NTLM AUTHENTICATE message");

/// A parsed message.
pub(super) struct Authenticate<'a> {
    pub(super) account: Account,
    pub(super) flags: Flags,
    pub(super) response: Response<'a>,
    /// The session key under the base key; it is looked at only if the flags say so.
    pub(super) session_key: &'a [u8],
    /// The MIC and the message around it, where the response announces one.
    pub(super) mic: Option<Mic<'a>>,
}

/// An NTLMv2 response.
pub(super) struct Response<'a> {
    pub(super) proof: &'a [u8; 16],
    /// All that the proof covers.
    pub(super) rest: &'a [u8],
}

/// The MIC and the message around it.
pub(super) struct Mic<'a> {
    pub(super) mic: &'a [u8; 16],
    pub(super) head: &'a [u8],
    pub(super) payload: &'a [u8],
}

impl<'a> Authenticate<'a> {
    /// Parses the names first, so that even a refusal can name the account.
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, (Reason, Option<Account>)> {
        let account = account(message).ok_or((MALFORMED, None))?;
        match fields(message, &account) {
            Ok((flags, response, session_key, mic)) => {
                Ok(Self { account, flags, response, session_key, mic })
            }
            Err(reason) => Err((reason, Some(account))),
        }
    }
}

fn account(message: &[u8]) -> Option<Account> {
    if !is_message(message, AUTHENTICATE) {
        return None;
    }
    let name = |at| bounded_text(payload(message, at, FIELDS_END)?, LOGIN_NAME_UNITS_MAX);
    Some(Account {
        user: name(USER_AT)?,
        domain: name(DOMAIN_AT)?,
        workstation: name(WORKSTATION_AT)?,
    })
}

type Fields<'a> = (Flags, Response<'a>, &'a [u8], Option<Mic<'a>>);

fn fields<'a>(message: &'a [u8], account: &Account) -> Result<Fields<'a>, Reason> {
    let flags = Flags::from_bits_retain(u32_at(message, FLAGS_AT).ok_or(MALFORMED)?);
    if !flags.contains(Flags::REQUIRED) {
        return Err(Reason::Weak);
    }
    let field = |at| payload(message, at, FIELDS_END).ok_or(MALFORMED);
    let lm_response = field(LM_RESPONSE_AT)?;
    let nt_response = field(NT_RESPONSE_AT)?;
    let session_key = field(SESSION_KEY_AT)?;
    // An anonymous client sends at most one byte of LM response (MS-NLMP §3.2.5.1.2).
    if account.user.is_empty() || nt_response.is_empty() && lm_response.len() <= 1 {
        return Err(Reason::Anonymous);
    }
    if nt_response.len() <= OLD_RESPONSE_BYTES {
        return Err(Reason::OldResponse);
    }
    let (proof, rest) = nt_response.split_first_chunk().ok_or(MALFORMED)?;
    if !rest.starts_with(&[1, 1]) {
        return Err(Reason::Malformed("NTLMv2 response"));
    }
    let pairs = rest.get(PAIRS_AT..).ok_or(Reason::Malformed("NTLMv2 response"))?;
    let mic = if av::has_mic(pairs)? { Some(mic(message).ok_or(MALFORMED)?) } else { None };
    Ok((flags, Response { proof, rest }, session_key, mic))
}

/// The MIC, which no field may reach into.
fn mic(message: &[u8]) -> Option<Mic<'_>> {
    let (head, rest) = message.split_at_checked(MIC_AT)?;
    let (mic, after) = rest.split_first_chunk()?;
    let fields =
        [LM_RESPONSE_AT, NT_RESPONSE_AT, DOMAIN_AT, USER_AT, WORKSTATION_AT, SESSION_KEY_AT];
    for at in fields {
        payload(message, at, MIC_END)?;
    }
    Some(Mic { mic, head, payload: after })
}
