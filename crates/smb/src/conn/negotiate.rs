//! NEGOTIATE (MS-SMB2 §3.3.5.4): the dialect 3.1.1 and its algorithms, or none.

use crate::crypto::{Cipher, Crypto, Preauth, SigningAlgorithm};
use crate::wire::{
    Capabilities, Dialect, HashAlgorithm, NegotiateContext, NegotiateContexts, NegotiateRequest,
    NegotiateResponse, Numbers, SecurityMode, Status,
};
use alloc::vec::Vec;

/// Bytes of the salt of a pre-authentication hash, as Windows sends.
const SALT_BYTES: usize = 32;

/// The ciphers that are served, best first.
const CIPHERS: [Cipher; 4] =
    [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aes128Ccm, Cipher::Aes256Ccm];

/// The algorithms of signatures that are served, best first.
const SIGNING: [SigningAlgorithm; 3] =
    [SigningAlgorithm::AesGmac, SigningAlgorithm::AesCmac, SigningAlgorithm::HmacSha256];

/// The values of the server in a NEGOTIATE response, the same for every client (MS-SMB2 §2.2.4).
#[derive(Clone, Debug)]
pub struct Greeting {
    /// The identifier of the server (ServerGuid).
    pub guid: [u8; 16],
    /// Whether clients must sign.
    pub signing_required: bool,
    /// Largest READ, WRITE and transaction, in bytes.
    pub io_bytes_max: u32,
    /// The token that announces the mechanisms of authentication.
    pub token: Vec<u8>,
}

/// The result of negotiation, in force for the connection (MS-SMB2 §3.3.1.7).
#[derive(Clone, Debug)]
pub struct Negotiated {
    /// Whether the client asks for signatures.
    pub client_requires_signing: bool,
    /// The cipher, unless the client has none of those served.
    pub cipher: Option<Cipher>,
    /// The algorithm of signatures.
    pub signing: SigningAlgorithm,
    /// The hash of the messages until now.
    pub preauth: Preauth,
}

/// The choice of algorithms for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    /// The cipher; the outer `None` if the client did not ask for encryption.
    cipher: Option<Option<Cipher>>,
    /// The algorithm of signatures, if the client named any.
    signing: Option<SigningAlgorithm>,
}

impl Negotiated {
    /// Answers the NEGOTIATE `message`, of which the body of the response goes to `out`. The caller
    /// adds the response to the hash once its header is there.
    ///
    /// `now` is the server's time in units of 100 ns since 1601.
    ///
    /// # Errors
    /// A [`Status`] to answer.
    pub fn of<C: Crypto>(
        crypto: &C,
        greeting: &Greeting,
        message: &[u8],
        now: u64,
        out: &mut Vec<u8>,
    ) -> Result<Self, Status> {
        let request = NegotiateRequest::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        if request.dialects.is_empty() {
            return Err(Status::INVALID_PARAMETER);
        }
        if !request.dialects.contains(Dialect::SMB_3_1_1.0) {
            return Err(Status::NOT_SUPPORTED);
        }
        let choice = choose(&request.contexts)?;
        let mut salt = [0; SALT_BYTES];
        crypto.random(&mut salt).map_err(|_| Status::INSUFFICIENT_RESOURCES)?;
        respond(greeting, &choice, &salt, now, out);
        let mut preauth = Preauth::new();
        preauth.update(crypto, message);
        Ok(Self {
            client_requires_signing: request.security_mode.contains(SecurityMode::SIGNING_REQUIRED),
            cipher: choice.cipher.flatten(),
            signing: choice.signing.unwrap_or(SigningAlgorithm::AesCmac),
            preauth,
        })
    }
}

/// Appends the body of the response with the chosen algorithms.
fn respond(greeting: &Greeting, choice: &Choice, salt: &[u8], now: u64, out: &mut Vec<u8>) {
    let hash = HashAlgorithm::SHA_512.0.to_le_bytes();
    // An offer of ciphers of which none is served is answered by the cipher 0.
    let cipher = choice.cipher.map(|chosen| chosen.map_or(0, |one| one as u16).to_le_bytes());
    let signing = choice.signing.map(|one| (one as u16).to_le_bytes());
    let contexts = [
        Some(NegotiateContext::PreauthIntegrity { hashes: Numbers::new(&hash), salt }),
        cipher.as_ref().map(|one| NegotiateContext::Encryption(Numbers::new(one))),
        signing.as_ref().map(|one| NegotiateContext::Signing(Numbers::new(one))),
    ];
    let mut buffer = Vec::new();
    let contexts = NegotiateContexts::build(&mut buffer, contexts.into_iter().flatten());
    response(greeting, Dialect::SMB_3_1_1, contexts, now).encode(out);
}

fn response<'a>(
    greeting: &'a Greeting,
    dialect: Dialect,
    contexts: NegotiateContexts<'a>,
    now: u64,
) -> NegotiateResponse<'a> {
    let mut security_mode = SecurityMode::SIGNING_ENABLED;
    security_mode.set(SecurityMode::SIGNING_REQUIRED, greeting.signing_required);
    NegotiateResponse {
        security_mode,
        dialect,
        server_guid: greeting.guid,
        capabilities: Capabilities::LARGE_MTU,
        max_transact_size: greeting.io_bytes_max,
        max_read_size: greeting.io_bytes_max,
        max_write_size: greeting.io_bytes_max,
        system_time: now,
        // The start time is not shown before a login; the specification allows zero (§2.2.4).
        start_time: 0,
        token: &greeting.token,
        contexts,
    }
}

/// Appends the body of the response after which an SMB1 client negotiates again over SMB2
/// (MS-SMB2 §3.3.5.3.1).
pub fn upgrade(greeting: &Greeting, now: u64, out: &mut Vec<u8>) {
    response(greeting, Dialect::SMB_2_ANY, NegotiateContexts::default(), now).encode(out);
}

/// The algorithms for a client that sends these contexts (MS-SMB2 §3.3.5.4).
fn choose(contexts: &NegotiateContexts<'_>) -> Result<Choice, Status> {
    if contexts.repeated().is_some() {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut hashes = None;
    let mut choice = Choice { cipher: None, signing: None };
    for context in contexts.iter() {
        match context {
            NegotiateContext::PreauthIntegrity { hashes: offered, .. } => hashes = Some(offered),
            NegotiateContext::Encryption(ciphers) => {
                let served = |cipher: &&Cipher| ciphers.contains(**cipher as u16);
                choice.cipher = Some(CIPHERS.iter().find(served).copied());
            }
            NegotiateContext::Signing(algorithms) => {
                let served = |one: &&SigningAlgorithm| algorithms.contains(**one as u16);
                choice.signing = SIGNING.iter().find(served).copied();
            }
            _ => {}
        }
    }
    match hashes {
        None => Err(Status::INVALID_PARAMETER),
        Some(hashes) if hashes.contains(HashAlgorithm::SHA_512.0) => Ok(choice),
        Some(_) => Err(Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP),
    }
}
