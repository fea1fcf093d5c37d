//! A login from NEGOTIATE to the decision (MS-NLMP §3.2.5.1).

use super::authenticate::Authenticate;
use super::{CHALLENGE, Flags, NEGOTIATE, SIGNATURE, ServerNames, av, is_message, keys};
use crate::auth::{Account, NtHash, Reason, Refused};
use crate::crypto::Crypto;
use crate::le::{array_at, u32_at};
use crate::limits::NTLM_NEGOTIATE_BYTES_MAX;
use alloc::vec::Vec;

/// Offset of the flags in NEGOTIATE (MS-NLMP §2.2.1.1).
const NEGOTIATE_FLAGS_AT: usize = 12;
/// Offsets in CHALLENGE (MS-NLMP §2.2.1.2), and its length without payload.
pub(super) const FLAGS_AT: usize = 20;
pub(super) const SERVER_CHALLENGE_AT: usize = 24;
const CHALLENGE_BYTES: usize = 56;
/// Windows 10.0 and revision 15 of NTLM (MS-NLMP §2.2.2.10), as clients expect of a server.
const VERSION: [u8; 8] = [10, 0, 0, 0, 0, 0, 0, 15];

/// The first two messages of a login, both as they went over the wire: the MIC covers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// NEGOTIATE, from the client.
    pub negotiate: Vec<u8>,
    /// CHALLENGE, from the server.
    pub challenge: Vec<u8>,
}

/// A proven login.
pub struct Verdict {
    /// The names that the client gave; the proof covers user and domain.
    pub account: Account,
    /// `ExportedSessionKey`.
    pub session_key: [u8; 16],
    /// The flags of both sides.
    pub flags: Flags,
}

impl Exchange {
    /// Answers NEGOTIATE with the CHALLENGE of a server. `now` is the time as a FILETIME.
    ///
    /// The names that a NEGOTIATE may carry are not looked at.
    ///
    /// # Errors
    /// [`Reason::Malformed`], [`Reason::Weak`], [`Reason::NoRandom`].
    pub fn begin<C: Crypto>(
        crypto: &C,
        names: &ServerNames,
        negotiate: &[u8],
        now: u64,
    ) -> Result<Self, Reason> {
        const MALFORMED: Reason = Reason::Malformed("NTLM NEGOTIATE message");
        if !is_message(negotiate, NEGOTIATE) || negotiate.len() > NTLM_NEGOTIATE_BYTES_MAX {
            return Err(MALFORMED);
        }
        let flags = u32_at(negotiate, NEGOTIATE_FLAGS_AT).ok_or(MALFORMED)?;
        let flags = Flags::from_bits_retain(flags);
        if !flags.contains(Flags::REQUIRED) {
            return Err(Reason::Weak);
        }
        let mut server_challenge = [0; 8];
        crypto.random(&mut server_challenge).map_err(|_| Reason::NoRandom)?;
        let challenge = challenge(names, flags.answered(), server_challenge, now);
        Ok(Self { negotiate: negotiate.to_vec(), challenge })
    }

    /// Judges AUTHENTICATE. `lookup` gives the NT hash of a user, of which it gets the name and
    /// the domain as the client sent them; `None` for a user that is not there or has no password.
    /// For such a user all is computed with a random hash, so that a refusal takes the same time.
    ///
    /// A MIC is verified where the response announces one. The proof covers the announcement, so a
    /// third party can remove neither. A client that announces none is accepted: MS-NLMP
    /// §3.1.5.1.2 says that it should send one after a CHALLENGE with a time, and the kernel client
    /// of Linux never does (`struct _AUTHENTICATE_MESSAGE` in its `ntlmssp.h` has no room for it).
    /// Its messages are protected all the same: SMB 3.1.1 derives all keys from a hash over
    /// NEGOTIATE to the last SESSION_SETUP request, and flags that matter are required here.
    ///
    /// # Errors
    /// [`Refused`] with the rule, and with the names once they are known.
    pub fn judge<C: Crypto>(
        &self,
        crypto: &C,
        authenticate: &[u8],
        lookup: impl FnOnce(&str, &str) -> Option<NtHash>,
    ) -> Result<Verdict, Refused> {
        let message = Authenticate::parse(authenticate)
            .map_err(|(reason, account)| Refused { reason, account })?;
        let refused = |reason, account: Account| Err(Refused { reason, account: Some(account) });
        let mut random = [0; 16];
        if crypto.random(&mut random).is_err() {
            return refused(Reason::NoRandom, message.account);
        }
        let account = &message.account;
        let known = lookup(&account.user, &account.domain);
        let hash = known.unwrap_or(NtHash(random));
        let response = &message.response;
        // Clients may compute the key without the domain that they name (MS-NLMP §3.2.5.1.2). Both
        // proofs are always made, so that the time of the answer does not depend on which is right.
        let proofs = [account.domain.as_str(), ""].map(|domain| {
            let key = keys::response_key(crypto, &hash, &account.user, domain);
            let proof = keys::proof(crypto, &key, &self.server_challenge(), response.rest);
            (crypto.equal(&proof, response.proof), key, proof)
        });
        if known.is_none() {
            return refused(Reason::UnknownUser, message.account);
        }
        let proven = proofs.into_iter().find(|(is_proven, ..)| *is_proven);
        let Some((_, key, proof)) = proven else {
            return refused(Reason::WrongProof, message.account);
        };
        let mut session_key = keys::base_key(crypto, &key, &proof);
        let flags = self.flags().intersection(message.flags);
        if flags.exchanges_key() {
            let Some(mut chosen) = message.session_key.first_chunk().copied() else {
                return refused(Reason::Malformed("session key"), message.account);
            };
            crypto.rc4(&session_key, &mut chosen);
            session_key = chosen;
        }
        if let Some(mic) = &message.mic {
            let parts = [mic.head, mic.payload];
            let ours = keys::mic(crypto, &session_key, &self.negotiate, &self.challenge, parts);
            if !crypto.equal(&ours, mic.mic) {
                return refused(Reason::WrongMic, message.account);
            }
        }
        Ok(Verdict { account: message.account, session_key, flags })
    }

    fn flags(&self) -> Flags {
        Flags::from_bits_retain(u32_at(&self.challenge, FLAGS_AT).unwrap_or_default())
    }

    fn server_challenge(&self) -> [u8; 8] {
        array_at(&self.challenge, SERVER_CHALLENGE_AT).unwrap_or_default()
    }
}

fn challenge(names: &ServerNames, flags: Flags, server_challenge: [u8; 8], now: u64) -> Vec<u8> {
    let target = if flags.contains(Flags::REQUEST_TARGET) { &names.target[..] } else { &[] };
    let mut info = names.pairs.clone();
    av::put(&mut info, av::TIMESTAMP, &now.to_le_bytes());
    av::put(&mut info, av::END, &[]);

    let mut out =
        Vec::with_capacity(CHALLENGE_BYTES.saturating_add(target.len()).saturating_add(info.len()));
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&CHALLENGE.to_le_bytes());
    out.extend_from_slice(&field(target, CHALLENGE_BYTES));
    out.extend_from_slice(&flags.bits().to_le_bytes());
    out.extend_from_slice(&server_challenge);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&field(&info, CHALLENGE_BYTES.saturating_add(target.len())));
    let version = if flags.contains(Flags::VERSION) { VERSION } else { [0; 8] };
    out.extend_from_slice(&version);
    out.extend_from_slice(target);
    out.extend_from_slice(&info);
    out
}

/// The field that points to `value` at `at`. Both fit: the bounds on names are far below.
pub(super) fn field(value: &[u8], at: usize) -> [u8; 8] {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes();
    let at = u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    let ([a, b], [c, d, e, f]) = (length, at);
    [a, b, a, b, c, d, e, f]
}
