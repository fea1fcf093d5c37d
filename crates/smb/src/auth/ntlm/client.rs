//! The client's side of the three messages (MS-NLMP §3.1.5.1).

use super::authenticate::{MIC_AT, MIC_END, PAIRS_AT};
use super::exchange::{FLAGS_AT, SERVER_CHALLENGE_AT, field};
use super::{
    AUTHENTICATE, CHALLENGE, Flags, NEGOTIATE, SIGNATURE, Signatures, av, is_message, keys, payload,
};
use crate::auth::{Account, NtHash, Reason};
use crate::crypto::Crypto;
use crate::le::u32_at;
use crate::utf16::to_utf16;
use alloc::vec::Vec;

/// Offsets in CHALLENGE.
const INFO_AT: usize = 40;
const PAYLOAD_AT: usize = 48;

const MALFORMED: Reason = Reason::Malformed("NTLM CHALLENGE message");

/// NEGOTIATE: no names, no version.
pub(in crate::auth) fn negotiate() -> Vec<u8> {
    let flags = Flags::REQUIRED
        | Flags::REQUEST_TARGET
        | Flags::SIGN
        | Flags::SEAL
        | Flags::NTLM
        | Flags::ALWAYS_SIGN
        | Flags::KEY_EXCHANGE;
    [&SIGNATURE[..], &NEGOTIATE.to_le_bytes(), &flags.bits().to_le_bytes(), &[0; 24]].concat()
}

/// An AUTHENTICATE message and the keys that follow.
pub(in crate::auth) struct Authenticated {
    pub(in crate::auth) message: Vec<u8>,
    pub(in crate::auth) session_key: [u8; 16],
    pub(in crate::auth) flags: Flags,
}

impl Authenticated {
    pub(in crate::auth) const fn signatures<'a, C: Crypto>(
        &'a self,
        crypto: &'a C,
    ) -> Signatures<'a, C> {
        Signatures::new(crypto, &self.session_key, self.flags)
    }
}

/// Answers CHALLENGE: NTLMv2, a session key of the client, a MIC.
pub(in crate::auth) fn authenticate<C: Crypto>(
    crypto: &C,
    negotiate: &[u8],
    challenge: &[u8],
    account: &Account,
    hash: &NtHash,
) -> Result<Authenticated, Reason> {
    let offer = Offer::parse(challenge)?;
    let mut random = [0; 24];
    crypto.random(&mut random).map_err(|_| Reason::NoRandom)?;
    let (client_challenge, session_key) = random.split_first_chunk::<8>().ok_or(MALFORMED)?;
    let session_key = *session_key.first_chunk().ok_or(MALFORMED)?;

    let key = keys::response_key(crypto, hash, &account.user, &account.domain);
    let rest = rest(offer.time, client_challenge, offer.pairs)?;
    let proof = keys::proof(crypto, &key, offer.server_challenge, &rest);
    let base_key = keys::base_key(crypto, &key, &proof);
    let mut encrypted = session_key;
    crypto.rc4(&base_key, &mut encrypted);

    let response = [&proof[..], &rest].concat();
    let mut message = message(account, &response, &encrypted, offer.flags);
    let (head, after) = message.split_at_checked(MIC_AT).ok_or(MALFORMED)?;
    let (_, after) = after.split_first_chunk::<16>().ok_or(MALFORMED)?;
    let mic = keys::mic(crypto, &session_key, negotiate, challenge, [head, after]);
    message.get_mut(MIC_AT..MIC_END).ok_or(MALFORMED)?.copy_from_slice(&mic);
    Ok(Authenticated { message, session_key, flags: offer.flags })
}

/// The parts of a CHALLENGE that a client uses.
struct Offer<'a> {
    flags: Flags,
    server_challenge: &'a [u8; 8],
    pairs: &'a [u8],
    time: &'a [u8],
}

impl<'a> Offer<'a> {
    fn parse(challenge: &'a [u8]) -> Result<Self, Reason> {
        if !is_message(challenge, CHALLENGE) {
            return Err(MALFORMED);
        }
        let flags = Flags::from_bits_retain(u32_at(challenge, FLAGS_AT).ok_or(MALFORMED)?);
        if !flags.contains(Flags::REQUIRED | Flags::KEY_EXCHANGE | Flags::SIGN) {
            return Err(Reason::Weak);
        }
        let server_challenge = challenge.get(SERVER_CHALLENGE_AT..).ok_or(MALFORMED)?;
        let server_challenge = server_challenge.first_chunk().ok_or(MALFORMED)?;
        let pairs = payload(challenge, INFO_AT, PAYLOAD_AT).ok_or(MALFORMED)?;
        let mut time = None;
        let mut list = av::Pairs::new(pairs);
        while let Some((id, value)) = list.next()? {
            if id == av::TIMESTAMP && value.len() == 8 {
                time = Some(value);
            }
        }
        // A server that sends no time does not know the MIC (MS-NLMP §3.1.5.1.2), and is refused.
        let time = time.ok_or(Reason::Weak)?;
        Ok(Self { flags, server_challenge, pairs, time })
    }
}

/// The response behind its proof: the server's pairs, and the announcement of a MIC.
fn rest(time: &[u8], client_challenge: &[u8; 8], pairs: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut rest = [&[1, 1, 0, 0, 0, 0, 0, 0][..], time, client_challenge, &[0; 4]].concat();
    debug_assert_eq!(rest.len(), PAIRS_AT);
    let mut list = av::Pairs::new(pairs);
    while let Some((id, value)) = list.next()? {
        if id != av::FLAGS {
            av::put(&mut rest, id, value);
        }
    }
    av::put(&mut rest, av::FLAGS, &av::HAS_MIC.to_le_bytes());
    av::put(&mut rest, av::END, &[]);
    rest.extend_from_slice(&[0; 4]);
    Ok(rest)
}

/// The message with zeros for the MIC.
fn message(account: &Account, response: &[u8], session_key: &[u8], flags: Flags) -> Vec<u8> {
    let (domain, user) = (to_utf16(&account.domain), to_utf16(&account.user));
    let workstation = to_utf16(&account.workstation);
    // The LM response is zeros where the server has a time (MS-NLMP §3.1.5.1.2).
    let values: [&[u8]; 6] = [&[0; 24], response, &domain, &user, &workstation, session_key];
    let mut fields = Vec::new();
    let mut payload = Vec::new();
    for value in values {
        fields.extend_from_slice(&field(value, MIC_END.saturating_add(payload.len())));
        payload.extend_from_slice(value);
    }
    [
        &SIGNATURE[..],
        &AUTHENTICATE.to_le_bytes(),
        &fields,
        &flags.bits().to_le_bytes(),
        &[0; 8],
        &[0; 16],
        &payload,
    ]
    .concat()
}
