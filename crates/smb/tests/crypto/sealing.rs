//! Sealed messages: of the articles, and of OpenSSL under the keys of the trace.

use super::{Provider, SESSION_KEY, bytes, hex};
use proptest::prelude::*;
use weir_smb::crypto::{
    AesKey, Cipher, CryptoError, Derivation, Role, SealKeys, TRANSFORM_BYTES, Transform,
};
use weir_smb::wire::samples;

const CIPHERS: [Cipher; 4] =
    [Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm];
const SESSION: u64 = 0x1000_0000_0019;

const WRITE: &str = "fe534d4240000100000000000900010008000000000000000500000000000000fffe00000100
    000025000000001000000000000000000000000000000000000031007000170000000000000000000000060606060606
    0606060606060606060606060606060606060606060606060606536d623320656e6372797074696f6e2074657374696e
    67";

/// `WRITE` as a client seals it, by cipher: OpenSSL under keys of OpenSSL's KDF.
const SEALED: [&str; 4] = [
    "fd534d4278ee2aad316579a77a3792d20c6cdf36a0a1a2a3a4a5a6a7a8a9aa00000000008700000000000100190000
     0000100000fdc0b138054f5400b524444d9d96453e388823932bcd2b31a3243e3f8b8e868b2a965f9eb65481dc33c6
     e2a865f55ae4d0f1fc02d86c88c2960511d11b92d1571240043294a178ccaa8ae99408ccacaaa0e805e0e965132ab5
     12e5f60a40b30ddcb8ac0e6df9552cb2a8182932fb8c15ec723212d3b36d0a7312cb5e56fa84faa0fd9b53fdd0ab",
    "fd534d420f53d5441bd359c164b4b71de9109f20a0a1a2a3a4a5a6a7a8a9aaab000000008700000000000100190000
     0000100000918400638697b61b73baecf6537529a6df99e9742978c182a1ee6548b58df43c1e569851450364c25482
     f82ce63dd8a63d67f77c6fd5a38cec31c16fb4c71ea492edb7ad1e1d23dd2fd20c274c3ba744b053b591eab33fa634
     a1eed33b03208f783aeb8ad8e6d3ffb9b636e70e67400ea9496f46edc4f5765ba02874b5b59b8b6a85cb2296de0d",
    "fd534d422b0b115b8b71b22dc582d336d73d7f81a0a1a2a3a4a5a6a7a8a9aa00000000008700000000000100190000
     00001000004e59e19263bb1f5080c5101eecedffea35c77b87fef03bc730cc24df5f666ef61a1e5ab1d397c4cf4890
     7f95b810dcc7a339bcbf6b998c03df513b0cdd2767bd15b3bfe8337d6685021a450e30fdb5429e24a0e0abb1c8d4ed
     81e4830c98a9f22d5d799d2bb07569ca79b587b674ae9f3f3c4658dc71c72c75e499d5628f2e22b155a7e2cf664e",
    "fd534d42352f18f25317c5ef58571dc3e4393051a0a1a2a3a4a5a6a7a8a9aaab000000008700000000000100190000
     00001000000944f46071c0fd6289e858f423c70591e76063a26dba6e479b4d6f5103cbdf1b43917d2f946b2258a3a3
     01590bd3c85dbe0881e8dd96b75adec3293c37bfb116b141b4e46953468a66798ff6e6a22035de43b9d5c3987cf68f
     d8c06b49e3754373db88583342a953c418f78620298cf4647684dc601ac92e15484c92c12e28a3d1810c3a702079",
];

fn keys(cipher: Cipher, role: Role) -> SealKeys<Provider> {
    let (session_key, preauth) = (hex(SESSION_KEY), super::keys::hash());
    Derivation::new(&Provider, &session_key, &preauth).sealing(cipher, role).unwrap()
}

#[test]
fn a_server_opens_the_frames_of_openssl() {
    for (cipher, sealed) in CIPHERS.into_iter().zip(SEALED) {
        let mut frame = hex(sealed);
        let transform = Transform { session_id: SESSION, message_bytes: 135 };
        assert_eq!(Transform::parse(&frame), Ok(transform));
        let server = keys(cipher, Role::Server);
        assert_eq!(server.open(&mut frame).unwrap(), hex(WRITE), "{cipher:?}");
        let client = keys(cipher, Role::Client);
        assert_eq!(client.open(&mut hex(sealed)), Err(CryptoError::Forged), "{cipher:?}");
    }
}

/// "SMB 3.1.1 Encryption in Windows 10" with GCM, and "Encryption in SMB 3.0" with CCM; dialect
/// 3.0 derives other keys and has the same header.
#[test]
fn the_published_frames_open() {
    let gcm = SealKeys::new(
        &Provider,
        Cipher::Aes128Gcm,
        &AesKey::Aes128(bytes("748C50868C90F302962A5C35F5F9A8BF")),
        &AesKey::Aes128(bytes("A2F5E80E5D59103034F32E52F698E5EC")),
    );
    let mut frame =
        hex("FD534D42BD73D97D2BC9001BCAFAC0FDFF5FEEBCC7D6822D269CAF48904C664C0000000087000000
         0000010025000000001000006ECDD2A7AFC7B47763057A041B8FD4DAFFE990B70C9E09D36C084E02
         D14EF247F8BDE38ACF6256F8B1D3B56F77FBDEB312FEA5E92CBCC1ED8FB2EBBFAA75E49A4A394BB4
         4576545567C24D4C014D47C9FBDFDAFD2C4F9B72F8D256452620A299F48E29E53D6B61D1C13A19E9
         1AF013F00D17E3ABC2FC3D36C8C1B6B93973253852DBD442E46EE8");
    assert!(gcm.unwrap().open(&mut frame).unwrap().ends_with(b"Smb3 encryption testing"));

    let ccm = SealKeys::new(
        &Provider,
        Cipher::Aes128Ccm,
        &AesKey::Aes128(bytes("8FE2B57EC34D2DB5B1A9727F526BBDB5")),
        &AesKey::Aes128(bytes("261B72350558F2E9DCF613070383EDBF")),
    );
    let mut frame =
        hex("FD534D4281A286535415445DAE393921E44FA42E66E69A111892584FB5ED524A744DA3EE87000000
         000001001100001400E4080025C8FEE16605A437832D1CD52DA9F4645333482A175FE5384563F45F
         CDAFAEF38BC62BA4D5C62897996625A44C29BE5658DE2E6117585779E7B59FFD971278D08580D7FA
         899E410E910EABF5AA1DB43050B33B49182637759AC15D84BFCDF5B6B238993C0F4CF4D6012023F6
         C627297075D84B7803912D0A9639634453595EF3E33FFE4E7AC2AB");
    assert!(ccm.unwrap().open(&mut frame).unwrap().ends_with(b"Smb3 encryption testing"));
}

/// The response of the same article, from the server.
#[test]
fn the_published_response_opens() {
    let own = AesKey::Aes128(bytes("A2F5E80E5D59103034F32E52F698E5EC"));
    let peers = AesKey::Aes128(bytes("748C50868C90F302962A5C35F5F9A8BF"));
    let client = SealKeys::new(&Provider, Cipher::Aes128Gcm, &own, &peers).unwrap();
    let mut frame =
        hex("FD534D42ACBE1CB7ED343ADF1725EF144D90D4B0E06831DD2E8EB7B4000000000000000050000000
         00000100250000000010000026BBBF949983A6C1C796559D0F2C510CB651D1F7B6AC8DED32A2A0B8
         F2D793A815C6F6B848D69767A215841A42D400AE6DDB5F0B44173A014973321FDD7950DA6179159B
         82E03C9E18A050FF0EA1C967");
    let response = "FE534D4240000100000000000900010001000000000000000500000000000000FFFE0000
        010000002500000000100000000000000000000000000000000000001100000017000000000000000000
        0000";
    assert_eq!(client.open(&mut frame).unwrap(), hex(response));
}

/// A frame of Samba (`wire::samples`): its length is that of its header and its message.
#[test]
fn the_header_of_a_captured_frame_is_read() {
    let frame = hex(samples::SEALED_FRAME);
    let message_bytes = Transform::parse(&frame).unwrap().message_bytes;
    assert_eq!((message_bytes, frame.len()), (104, TRANSFORM_BYTES + 104));
}

fn sealed(keys: &SealKeys<Provider>, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xEE; TRANSFORM_BYTES];
    frame.extend(message);
    keys.seal(SESSION, &mut frame).unwrap();
    frame
}

#[test]
fn nonces_and_frames_of_one_message_differ() {
    for cipher in CIPHERS {
        let server = keys(cipher, Role::Server);
        let frames: Vec<_> = (0..3).map(|_| sealed(&server, b"one message")).collect();
        assert!(frames[0] != frames[1] && frames[1] != frames[2] && frames[0] != frames[2]);
        let unused = if matches!(cipher, Cipher::Aes128Ccm | Cipher::Aes256Ccm) { 31 } else { 32 };
        assert!(frames.iter().all(|frame| frame[unused..36].iter().all(|byte| *byte == 0)));
        // Sets of keys have different salts, but for one chance in 2^72.
        let salt = |frame: &[u8]| frame[28..31].to_vec();
        let others = [(); 3].map(|()| sealed(&keys(cipher, Role::Server), b"one message"));
        assert!(others.iter().any(|other| salt(other) != salt(&frames[0])));
        assert!(frames.iter().all(|frame| salt(frame) == salt(&frames[0])));
    }
}

#[test]
fn the_header_says_session_and_length_and_nothing_else() {
    for cipher in CIPHERS {
        let frame = sealed(&keys(cipher, Role::Server), &[3; 0x0201]);
        assert_eq!(frame[..4], *b"\xFDSMB");
        // The size, two reserved bytes, the flag of sealed messages, the session.
        assert_eq!(frame[36..44], [1, 2, 0, 0, 0, 0, 1, 0]);
        assert_eq!(frame[44..TRANSFORM_BYTES], SESSION.to_le_bytes());
        let transform = Transform { session_id: SESSION, message_bytes: 0x0201 };
        assert_eq!(Transform::parse(&frame), Ok(transform));
    }
}

#[test]
fn a_frame_without_a_message_is_not_sealed() {
    let server = keys(Cipher::Aes128Gcm, Role::Server);
    for len in [0, 1, TRANSFORM_BYTES - 1, TRANSFORM_BYTES] {
        assert_eq!(server.seal(SESSION, &mut vec![0; len]), Err(CryptoError::TooShort));
    }
    server.seal(SESSION, &mut [0; TRANSFORM_BYTES + 1]).unwrap();
}

#[test]
fn a_malformed_header_is_told_from_a_forgery() {
    let server = keys(Cipher::Aes128Gcm, Role::Server);
    let frame = hex(SEALED[1]);
    let refused = |frame: &[u8]| {
        assert_eq!(Transform::parse(frame), Err(CryptoError::BadTransform));
        assert_eq!(server.open(&mut frame.to_vec()), Err(CryptoError::BadTransform));
    };
    for len in 0..frame.len() {
        refused(&frame[..len]);
    }
    refused(&[&frame[..], &[0]].concat());
    // The protocol id, the size and the flags; the reserved bytes are free, but authenticated.
    for at in [0, 1, 2, 3, 36, 37, 38, 39, 42, 43] {
        let mut frame = frame.clone();
        frame[at] ^= 0x80;
        refused(&frame);
    }
    let mut empty = frame[..TRANSFORM_BYTES].to_vec();
    empty[36..40].fill(0);
    refused(&empty);
    for at in (4..36).chain([40, 41]).chain(44..frame.len()) {
        let mut frame = frame.clone();
        frame[at] ^= 0x80;
        assert!(Transform::parse(&frame).is_ok());
        assert_eq!(server.open(&mut frame), Err(CryptoError::Forged), "{at}");
    }
}

proptest! {
    #[test]
    fn round_trip(
        cipher in prop::sample::select(&CIPHERS[..]),
        message in prop::collection::vec(any::<u8>(), 1..3000),
        at in any::<prop::sample::Index>(),
        bit in 0..8,
    ) {
        let (client, server) = (keys(cipher, Role::Client), keys(cipher, Role::Server));
        let frame = sealed(&server, &message);
        let mut opened = frame.clone();
        prop_assert_eq!(client.open(&mut opened).unwrap(), &message[..]);
        prop_assert!(server.open(&mut frame.clone()) == Err(CryptoError::Forged));
        let transform = Transform { session_id: SESSION, message_bytes: message.len() };
        prop_assert_eq!(Transform::parse(&frame), Ok(transform));
        let mut changed = frame;
        let at = at.index(changed.len());
        changed[at] ^= 1u8 << bit;
        prop_assert!(client.open(&mut changed).is_err());
    }

    /// Frames whose header is well-formed, so that the tag decides.
    #[test]
    fn arbitrary_frames_are_refused(
        cipher in prop::sample::select(&CIPHERS[..]),
        tag_and_nonce in any::<[u8; 32]>(),
        message in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let size = u32::try_from(message.len()).unwrap().to_le_bytes();
        let session = SESSION.to_le_bytes();
        let mut frame =
            [b"\xFDSMB", &tag_and_nonce[..], &size, &[0, 0, 1, 0], &session, &message].concat();
        prop_assert!(Transform::parse(&frame).is_ok());
        let server = keys(cipher, Role::Server);
        prop_assert_eq!(server.open(&mut frame), Err(CryptoError::Forged));
    }

    #[test]
    fn arbitrary_bytes_are_no_sealed_frame(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assume!(!bytes.starts_with(b"\xFDSMB"));
        prop_assert_eq!(Transform::parse(&bytes), Err(CryptoError::BadTransform));
    }
}
