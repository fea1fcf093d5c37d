//! Signatures, against OpenSSL's under the signing key of the trace.

use super::{Provider, bytes, hex};
use proptest::prelude::*;
use weir_smb::crypto::{CryptoError, Role, SigningAlgorithm, SigningKey};

const KEY: &str = "73FE7A9A77BEF0BDE49C650D8CCB5F76";
const ALGORITHMS: [SigningAlgorithm; 3] =
    [SigningAlgorithm::HmacSha256, SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac];

/// A WRITE of message id 5 and 41 bytes of body, with the padding to the next header.
fn message() -> Vec<u8> {
    let mut message = hex("fe534d42400001000000000009000100 00000000000000000500000000000000
         fffe0000010000002500000000100000 00000000000000000000000000000000");
    message.extend([b'x'; 41]);
    message.extend([0; 7]);
    assert_eq!(message.len(), 112);
    message
}

fn key(algorithm: SigningAlgorithm, role: Role) -> SigningKey<Provider> {
    SigningKey::new(&Provider, algorithm, &bytes(KEY), role)
}

fn signature(algorithm: SigningAlgorithm, role: Role, mut message: Vec<u8>) -> Vec<u8> {
    key(algorithm, role).sign(&mut message).unwrap();
    assert_eq!(message[16] & 8, 8, "the flag of signed messages");
    key(algorithm, role.peer()).verify(&Provider, &message).unwrap();
    message[48..64].to_vec()
}

#[test]
fn signatures() {
    for role in [Role::Client, Role::Server] {
        let hmac = signature(SigningAlgorithm::HmacSha256, role, message());
        assert_eq!(hmac, hex("2cfa662dcd66c1421b23c36efef660de"));
        let cmac = signature(SigningAlgorithm::AesCmac, role, message());
        assert_eq!(cmac, hex("05609c943f49ec9848acf8aa328393ee"));
    }
}

#[test]
fn the_nonce_of_gmac_tells_the_sender_and_a_cancel() {
    let gmac = |role, message| signature(SigningAlgorithm::AesGmac, role, message);
    assert_eq!(gmac(Role::Client, message()), hex("bf209e7a62e51ba2edb916f8c191e8b3"));
    assert_eq!(gmac(Role::Server, message()), hex("6251d39ac8f1c2ddc5e4910968067ffe"));
    let mut cancel = message();
    cancel[12] = 0x0C;
    assert_eq!(gmac(Role::Client, cancel), hex("470d7f209ac4d68567402af827b21dff"));
}

#[test]
fn a_message_of_the_same_side_is_no_message_of_the_other_under_gmac() {
    let mut message = message();
    let server = key(SigningAlgorithm::AesGmac, Role::Server);
    server.sign(&mut message).unwrap();
    assert_eq!(server.verify(&Provider, &message), Err(CryptoError::Forged));
}

#[test]
fn an_interim_response_and_a_notification_are_not_signed() {
    for algorithm in ALGORITHMS {
        let server = key(algorithm, Role::Server);
        let mut interim = message();
        interim[8..12].copy_from_slice(&0x103u32.to_le_bytes());
        // STATUS_PENDING without an asynchronous id is not interim, and neither is the reverse.
        server.sign(&mut interim.clone()).unwrap();
        interim[16] |= 2;
        assert_eq!(server.sign(&mut interim), Err(CryptoError::NeverSigned));
        interim[8..12].fill(0);
        server.sign(&mut interim).unwrap();
        let mut notification = message();
        notification[24..32].fill(0xFF);
        assert_eq!(server.sign(&mut notification), Err(CryptoError::NeverSigned));
    }
}

#[test]
fn a_message_without_a_header_is_refused() {
    for algorithm in ALGORITHMS {
        let key = key(algorithm, Role::Server);
        for len in 0..64 {
            assert_eq!(key.sign(&mut message()[..len]), Err(CryptoError::TooShort));
            let verified = key.verify(&Provider, &message()[..len]);
            assert_eq!(verified, Err(CryptoError::TooShort));
        }
        key.sign(&mut message()[..64]).unwrap();
    }
}

proptest! {
    #[test]
    fn any_change_is_noticed_and_nothing_is_left_behind(
        algorithm in prop::sample::select(&ALGORITHMS[..]),
        body in prop::collection::vec(any::<u8>(), 0..2000),
        at in any::<prop::sample::Index>(),
        bit in 0..8,
    ) {
        let mut message = message();
        message.extend(body);
        let original = message.clone();
        key(algorithm, Role::Client).sign(&mut message).unwrap();
        prop_assert_eq!(&message[64..], &original[64..]);
        let server = key(algorithm, Role::Server);
        server.verify(&Provider, &message).unwrap();
        let at = at.index(message.len());
        message[at] ^= 1u8 << bit;
        prop_assert_eq!(server.verify(&Provider, &message), Err(CryptoError::Forged));
    }
}
