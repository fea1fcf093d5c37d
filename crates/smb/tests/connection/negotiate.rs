//! The rules of MS-SMB2 §3.3.5.4 for dialect 3.1.1, each broken on its own.

use super::{Provider, request};
use weir_smb::conn::{Greeting, Negotiated, upgrade};
use weir_smb::crypto::{Cipher, Preauth, SigningAlgorithm};
use weir_smb::wire::samples::{self, hex};
use weir_smb::wire::{
    Capabilities, Command, CompressionFlags, ContextType, Dialect, HEADER_BYTES, NegotiateContext,
    NegotiateContexts, NegotiateRequest, NegotiateResponse, Numbers, SecurityMode, Status,
};

const NOW: u64 = 0x01D0_AECB_ADF5_A1A1;
/// SHA-512, as a list of hashes.
const SHA_512: &[u8] = &[1, 0];
/// The five dialects from 2.0.2 on.
const DIALECTS: &[u8] = &[0x02, 2, 0x10, 2, 0x00, 3, 0x02, 3, 0x11, 3];

fn greeting() -> Greeting {
    Greeting {
        guid: *b"a server in Weir",
        signing_required: false,
        io_bytes_max: 1 << 20,
        token: b"the mechanisms".to_vec(),
    }
}

/// The answer to `message`, with the body of the response behind a header of zeros.
fn answer_of(greeting: &Greeting, message: &[u8]) -> Result<(Negotiated, Vec<u8>), Status> {
    let mut response = vec![0; HEADER_BYTES];
    let negotiated = Negotiated::of(&Provider, greeting, message, NOW, &mut response);
    match negotiated {
        Ok(negotiated) => Ok((negotiated, response)),
        Err(status) => {
            assert_eq!(response.len(), HEADER_BYTES, "nothing is appended with {status}");
            Err(status)
        }
    }
}

/// A request with these dialects and contexts.
fn message(dialects: &[u8], contexts: &[NegotiateContext<'_>]) -> Vec<u8> {
    let mut buffer = Vec::new();
    let body = NegotiateRequest {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::LARGE_MTU,
        client_guid: [7; 16],
        dialects: Numbers::new(dialects),
        contexts: NegotiateContexts::build(&mut buffer, contexts.iter().copied()),
    };
    let mut message = request(Command::Negotiate, 0).to_bytes().to_vec();
    body.encode(&mut message);
    message
}

fn hashes(list: &[u8]) -> NegotiateContext<'_> {
    NegotiateContext::PreauthIntegrity { hashes: Numbers::new(list), salt: b"salt of a client" }
}

fn ciphers(list: &[u8]) -> NegotiateContext<'_> {
    NegotiateContext::Encryption(Numbers::new(list))
}

fn signing(list: &[u8]) -> NegotiateContext<'_> {
    NegotiateContext::Signing(Numbers::new(list))
}

/// The answer to a request for all dialects with these contexts.
fn answer(contexts: &[NegotiateContext<'_>]) -> Result<(Negotiated, Vec<u8>), Status> {
    answer_of(&greeting(), &message(DIALECTS, contexts))
}

fn refusal(contexts: &[NegotiateContext<'_>]) -> Option<Status> {
    answer(contexts).err()
}

/// The ciphers and the algorithms of signatures in a response, each list only if it is there.
fn lists(response: &[u8]) -> (Option<Vec<u16>>, Option<Vec<u16>>) {
    let (mut cipher, mut algorithm) = (None, None);
    for context in NegotiateResponse::decode(response).unwrap().contexts.iter() {
        match context {
            NegotiateContext::Encryption(list) => cipher = Some(list.iter().collect()),
            NegotiateContext::Signing(list) => algorithm = Some(list.iter().collect()),
            _ => {}
        }
    }
    (cipher, algorithm)
}

/// The request of the trace in "SMB 2 and SMB 3 security in Windows 10", and the published hash of
/// it. The client prefers AES-128-GCM and names no algorithm of signatures.
#[test]
fn a_published_request_is_negotiated() {
    let message = hex("FE534D4240000100000000000000800000000000000000000100000000000000FFFE0000
        0000000000000000000000000000000000000000000000000000000024000500000000003F000000ECD86F32
        6276024F9F7752B89BB33F3A70000000020000000202100200030203110300000100260000000000
        010020000100FA49E6578F1F3A9F4CD3E9CC14A67AA884B3D05844E0E5A118225C15887F32FF0000
        0200060000000000020002000100");
    let published =
        "DD94EFC5321BB618A2E208BA8920D2F422992526947A409B5037DE1E0FE8C7362B8C47122594CDE0
        CE26AA9DFC8BCDBDE0621957672623351A7540F1E54A0426";
    let (negotiated, response) = answer_of(&greeting(), &message).unwrap();
    assert_eq!(negotiated.preauth.value()[..], hex(published));
    assert_eq!(negotiated.cipher, Some(Cipher::Aes128Gcm));
    assert_eq!(negotiated.signing, SigningAlgorithm::AesCmac);
    assert!(!negotiated.client_requires_signing);
    assert_eq!(lists(&response), (Some(vec![2]), None));
}

/// The captured request offers all ciphers and all algorithms of signatures.
#[test]
fn the_response_has_the_values_of_the_server() {
    for signing_required in [false, true] {
        let greeting = Greeting { signing_required, ..greeting() };
        let message = hex(samples::NEGOTIATE_REQUEST);
        let (negotiated, bytes) = answer_of(&greeting, &message).unwrap();
        let response = NegotiateResponse::decode(&bytes).unwrap();
        let mut mode = SecurityMode::SIGNING_ENABLED;
        mode.set(SecurityMode::SIGNING_REQUIRED, signing_required);
        assert_eq!(response.security_mode, mode);
        assert_eq!(response.dialect, Dialect::SMB_3_1_1);
        assert_eq!(response.server_guid, greeting.guid);
        assert_eq!(response.capabilities, Capabilities::LARGE_MTU);
        let sizes = [response.max_transact_size, response.max_read_size, response.max_write_size];
        assert_eq!(sizes, [1 << 20; 3]);
        assert_eq!((response.system_time, response.start_time), (NOW, 0));
        assert_eq!(response.token, b"the mechanisms");
        let kinds: Vec<_> = response.contexts.iter().map(|context| context.kind()).collect();
        let expected =
            [ContextType::PREAUTH_INTEGRITY, ContextType::ENCRYPTION, ContextType::SIGNING];
        assert_eq!(kinds, expected);
        let mut preauth = Preauth::new();
        preauth.update(&Provider, &message);
        assert_eq!(negotiated.preauth, preauth);
    }
}

#[test]
fn every_response_has_one_hash_and_a_fresh_salt() {
    let salt = || {
        let (_, bytes) = answer(&[hashes(SHA_512)]).unwrap();
        let response = NegotiateResponse::decode(&bytes).unwrap();
        let Some(NegotiateContext::PreauthIntegrity { hashes, salt }) =
            response.contexts.iter().next()
        else {
            return Vec::new();
        };
        assert_eq!(hashes.iter().collect::<Vec<_>>(), [1]);
        salt.to_vec()
    };
    let (one, other) = (salt(), salt());
    assert_eq!(one.len(), 32);
    assert_ne!(one, other);
}

#[test]
fn the_client_may_require_signatures() {
    let mut message = message(DIALECTS, &[hashes(SHA_512)]);
    message[HEADER_BYTES + 4] |= 2;
    assert!(answer_of(&greeting(), &message).unwrap().0.client_requires_signing);
}

#[test]
fn a_request_offers_a_dialect_that_is_served() {
    let status = |dialects: &[u8]| {
        answer_of(&greeting(), &message(dialects, &[hashes(SHA_512)])).map(|_| ()).err()
    };
    assert_eq!(status(&[]), Some(Status::INVALID_PARAMETER));
    assert_eq!(status(&[0x02, 2]), Some(Status::NOT_SUPPORTED));
    assert_eq!(status(&DIALECTS[..8]), Some(Status::NOT_SUPPORTED), "all but 3.1.1");
    assert_eq!(status(&[0xff, 2]), Some(Status::NOT_SUPPORTED), "no dialect, but any");
    assert_eq!(status(&[0x11, 3]), None);
    assert_eq!(status(&[0x11, 3, 0x12, 3, 0x02, 2]), None, "3.1.1 among unknown ones");
}

#[test]
fn a_list_of_hashes_is_there_once_and_has_sha_512() {
    assert_eq!(refusal(&[]), Some(Status::INVALID_PARAMETER));
    assert_eq!(refusal(&[ciphers(&[2, 0])]), Some(Status::INVALID_PARAMETER));
    let overlap = Some(Status::SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP);
    assert_eq!(refusal(&[hashes(&[2, 0])]), overlap);
    assert_eq!(refusal(&[ciphers(&[2, 0]), hashes(&[0, 1])]), overlap);
    assert_eq!(refusal(&[hashes(&[2, 0, 1, 0])]), None, "the second is SHA-512");
}

#[test]
fn contexts_of_a_known_type_are_there_once() {
    let compression = NegotiateContext::Compression {
        flags: CompressionFlags::empty(),
        algorithms: Numbers::new(&[1, 0]),
    };
    let hash = hashes(SHA_512);
    for twice in [hash, ciphers(&[2, 0]), signing(&[2, 0]), compression] {
        assert_eq!(refusal(&[hash, twice, twice]), Some(Status::INVALID_PARAMETER), "{twice:?}");
    }
    let kind = ContextType(0x7777);
    let unknown = NegotiateContext::Other { kind, data: b"of another version" };
    assert_eq!(refusal(&[unknown, hash, unknown]), None);
    assert_eq!(refusal(&[compression, hash]), None);
}

#[test]
fn the_best_cipher_of_both_sides_is_chosen() {
    let chosen = |list: &[u8]| {
        let (negotiated, response) = answer(&[hashes(SHA_512), ciphers(list)]).unwrap();
        (negotiated.cipher, lists(&response).0)
    };
    let all = [4, 0, 3, 0, 2, 0, 1, 0];
    assert_eq!(chosen(&all), (Some(Cipher::Aes128Gcm), Some(vec![2])));
    assert_eq!(chosen(&[1, 0, 3, 0, 4, 0]), (Some(Cipher::Aes256Gcm), Some(vec![4])));
    assert_eq!(chosen(&[3, 0, 1, 0]), (Some(Cipher::Aes128Ccm), Some(vec![1])));
    assert_eq!(chosen(&[9, 0, 3, 0]), (Some(Cipher::Aes256Ccm), Some(vec![3])));
    assert_eq!(chosen(&[9, 0, 5, 0, 0, 2]), (None, Some(vec![0])), "no common cipher");
    let (negotiated, response) = answer(&[hashes(SHA_512)]).unwrap();
    assert_eq!((negotiated.cipher, lists(&response).0), (None, None), "none is offered");
}

#[test]
fn the_best_algorithm_of_signatures_of_both_sides_is_chosen() {
    let chosen = |list: &[u8]| {
        let (negotiated, response) = answer(&[hashes(SHA_512), signing(list)]).unwrap();
        (negotiated.signing, lists(&response).1)
    };
    assert_eq!(chosen(&[0, 0, 1, 0, 2, 0]), (SigningAlgorithm::AesGmac, Some(vec![2])));
    assert_eq!(chosen(&[0, 0, 1, 0]), (SigningAlgorithm::AesCmac, Some(vec![1])));
    assert_eq!(chosen(&[7, 0, 0, 0]), (SigningAlgorithm::HmacSha256, Some(vec![0])));
    // Without a common algorithm, and without an offer, AES-128-CMAC applies.
    assert_eq!(chosen(&[7, 0, 8, 0]), (SigningAlgorithm::AesCmac, None));
    let (negotiated, response) = answer(&[hashes(SHA_512)]).unwrap();
    assert_eq!((negotiated.signing, lists(&response).1), (SigningAlgorithm::AesCmac, None));
}

#[test]
fn malformed_requests_are_refused() {
    let whole = message(DIALECTS, &[hashes(SHA_512), ciphers(&[2, 0])]);
    for len in HEADER_BYTES..whole.len() {
        let status = answer_of(&greeting(), &whole[..len]).map(|_| ()).err();
        assert_eq!(status, Some(Status::INVALID_PARAMETER), "{len} bytes");
    }
    for empty in [hashes(&[]), ciphers(&[]), signing(&[])] {
        assert_eq!(refusal(&[hashes(SHA_512), empty]), Some(Status::INVALID_PARAMETER));
    }
    let mut before = whole;
    // The offset of the contexts leads into the fixed part.
    before[HEADER_BYTES + 28] = 0x40;
    assert_eq!(answer_of(&greeting(), &before).err(), Some(Status::INVALID_PARAMETER));
}

#[test]
fn a_client_of_smb1_is_sent_the_dialect_of_all_versions_of_smb2() {
    let mut bytes = vec![0; HEADER_BYTES];
    upgrade(&greeting(), NOW, &mut bytes);
    let response = NegotiateResponse::decode(&bytes).unwrap();
    assert_eq!(response.dialect.0, 0x02FF);
    assert_eq!(response.security_mode, SecurityMode::SIGNING_ENABLED);
    assert_eq!((response.server_guid, response.token), (greeting().guid, &b"the mechanisms"[..]));
    assert_eq!(response.contexts.iter().count(), 0);
}
