//! The client's offer and the server's choice in NEGOTIATE (MS-SMB2 §3.2.4.2.2.2, §3.2.5.2).

use crate::channel::Sizes;
use crate::{Security, SetupError};
use alloc::vec::Vec;
use weir_smb::crypto::{Cipher, Crypto, NoRandom, SigningAlgorithm};
use weir_smb::wire::{
    Capabilities, Dialect, HashAlgorithm, NegotiateContext, NegotiateContexts, NegotiateRequest,
    NegotiateResponse, Numbers, SecurityMode,
};

/// The offered algorithms, best first.
const DIALECTS: [u16; 1] = [Dialect::SMB_3_1_1.0];
const HASHES: [u16; 1] = [HashAlgorithm::SHA_512.0];
const SIGNING: [SigningAlgorithm; 3] =
    [SigningAlgorithm::AesGmac, SigningAlgorithm::AesCmac, SigningAlgorithm::HmacSha256];
const CIPHERS: [Cipher; 4] =
    [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aes128Ccm, Cipher::Aes256Ccm];

/// Bytes of the salt.
const SALT_BYTES: usize = 32;

/// Payloads where the server takes no request of more than one credit (MS-SMB2 §3.2.4.1.5).
const SMALL_BYTES: u32 = 64 << 10;

/// The choice of both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) signing: SigningAlgorithm,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) sizes: Sizes,
}

/// The client's side of signing.
pub(crate) const fn security_mode(security: Security) -> SecurityMode {
    match security {
        Security::None => SecurityMode::SIGNING_ENABLED,
        Security::Sign | Security::Seal => SecurityMode::SIGNING_REQUIRED,
    }
}

/// Appends the body of the request.
pub(crate) fn offer<C: Crypto>(
    crypto: &C,
    security: Security,
    out: &mut Vec<u8>,
) -> Result<(), NoRandom> {
    let mut client_guid = [0; 16];
    let mut salt = [0; SALT_BYTES];
    crypto.random(&mut client_guid)?;
    crypto.random(&mut salt)?;
    let (dialects, hashes) = (numbers(DIALECTS), numbers(HASHES));
    let signing = numbers(SIGNING.map(|algorithm| algorithm as u16));
    let ciphers = numbers(CIPHERS.map(|cipher| cipher as u16));
    let mut buffer = Vec::new();
    let contexts = [
        NegotiateContext::PreauthIntegrity { hashes: Numbers::new(&hashes), salt: &salt },
        NegotiateContext::Encryption(Numbers::new(&ciphers)),
        NegotiateContext::Signing(Numbers::new(&signing)),
    ];
    let request = NegotiateRequest {
        security_mode: security_mode(security),
        // The dialect has a context for encryption, but Samba looks for the older flag too.
        capabilities: Capabilities::LARGE_MTU | Capabilities::ENCRYPTION,
        client_guid,
        dialects: Numbers::new(&dialects),
        contexts: NegotiateContexts::build(&mut buffer, contexts),
    };
    request.encode(out);
    Ok(())
}

fn numbers<const N: usize>(numbers: [u16; N]) -> Vec<u8> {
    numbers.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// Reads the server's choice from its response.
pub(crate) fn agree(message: &[u8], security: Security) -> Result<Agreed, SetupError> {
    let response = NegotiateResponse::decode(message)?;
    if response.dialect != Dialect::SMB_3_1_1 {
        return Err(SetupError::Dialect);
    }
    // Without a choice the signatures are CMACs (MS-SMB2 §3.2.5.2).
    let (mut signing, mut cipher, mut hashed) = (SigningAlgorithm::AesCmac, None, false);
    for context in response.contexts.iter() {
        match context {
            NegotiateContext::PreauthIntegrity { hashes, .. } => {
                hashed = hashes.iter().eq(HASHES);
            }
            NegotiateContext::Signing(chosen) => {
                signing = one("the signing algorithm", chosen, SigningAlgorithm::from_wire)?;
            }
            NegotiateContext::Encryption(chosen) if !chosen.contains(0) => {
                cipher = Some(one("the cipher", chosen, Cipher::from_wire)?);
            }
            _ => {}
        }
    }
    if !hashed {
        return Err(SetupError::Dialect);
    }
    let requires = response.security_mode.contains(SecurityMode::SIGNING_REQUIRED);
    if requires && security == Security::None {
        return Err(SetupError::SigningRequired);
    }
    if cipher.is_none() && security == Security::Seal {
        return Err(SetupError::NoCipher);
    }
    let large = response.capabilities.contains(Capabilities::LARGE_MTU);
    let most = |size: u32| if large { size } else { size.min(SMALL_BYTES) };
    let sizes = Sizes {
        read: most(response.max_read_size),
        write: most(response.max_write_size),
        transact: most(response.max_transact_size),
    };
    Ok(Agreed { signing, cipher, sizes })
}

/// The one choice in a list.
fn one<T>(
    what: &'static str,
    chosen: Numbers<'_>,
    known: impl Fn(u16) -> Option<T>,
) -> Result<T, SetupError> {
    let number = chosen.iter().next().unwrap_or(u16::MAX);
    let only = (chosen.len() == 1).then(|| known(number)).flatten();
    only.ok_or(SetupError::Algorithm { what, number })
}
