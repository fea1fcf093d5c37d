//! The computations of NTLMv2 (MS-NLMP §3.3.2).

use crate::auth::NtHash;
use crate::auth::text::to_upper_utf16;
use crate::crypto::Crypto;
use crate::utf16::to_utf16;

/// `NTOWFv2`: the key of a user's responses. The user is taken in upper case, the domain as sent.
pub(super) fn response_key<C: Crypto>(
    crypto: &C,
    hash: &NtHash,
    user: &str,
    domain: &str,
) -> [u8; 16] {
    crypto.hmac_md5(&hash.0, &[&to_upper_utf16(user), &to_utf16(domain)])
}

/// `NTProofStr`: the proof over the server's challenge and the rest of the response.
pub(super) fn proof<C: Crypto>(
    crypto: &C,
    response_key: &[u8; 16],
    challenge: &[u8; 8],
    rest: &[u8],
) -> [u8; 16] {
    crypto.hmac_md5(response_key, &[challenge, rest])
}

/// `SessionBaseKey`, which with NTLMv2 is also the key of the key exchange.
pub(super) fn base_key<C: Crypto>(
    crypto: &C,
    response_key: &[u8; 16],
    proof: &[u8; 16],
) -> [u8; 16] {
    crypto.hmac_md5(response_key, &[proof])
}

/// The MIC over the three messages, of which `authenticate` comes in two parts, around the field
/// of the MIC. The field itself counts as zeros.
pub(super) fn mic<C: Crypto>(
    crypto: &C,
    session_key: &[u8; 16],
    negotiate: &[u8],
    challenge: &[u8],
    authenticate: [&[u8]; 2],
) -> [u8; 16] {
    let [head, payload] = authenticate;
    crypto.hmac_md5(session_key, &[negotiate, challenge, head, &[0; 16], payload])
}
