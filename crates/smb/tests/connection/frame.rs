//! Outgoing frames: lengths, padding, links, signatures and seals (MS-SMB2 §3.3.4.1).

use super::{Provider, request};
use proptest::prelude::*;
use weir_smb::crypto::{
    AesKey, Cipher, CryptoError, Role, SealKeys, SigningAlgorithm, SigningKey, TRANSFORM_BYTES,
    Transform,
};
use weir_smb::frame::{Response, answer, begin, finish};
use weir_smb::wire::netbios::{self, PREFIX_BYTES, Step};
use weir_smb::wire::{Chain, Command, HEADER_BYTES, Header, HeaderFlags, Status, TreeOrAsync};

const SESSION: u64 = 0x1000_0000_0019;
const KEY: [u8; 16] = *b"a key to sign by";

fn signing(role: Role) -> SigningKey<Provider> {
    SigningKey::new(&Provider, SigningAlgorithm::AesCmac, &KEY, role)
}

/// The keys of the server's side and of the client's side.
fn sealing() -> (SealKeys<Provider>, SealKeys<Provider>) {
    let (one, other) = (AesKey::Aes128([1; 16]), AesKey::Aes128([2; 16]));
    let keys = |own, peers| SealKeys::new(&Provider, Cipher::Aes128Gcm, own, peers).unwrap();
    (keys(&one, &other), keys(&other, &one))
}

/// A response of which the body has `bytes` bytes.
fn response<'a>(
    message_id: u64,
    bytes: usize,
    sealed: bool,
    key: Option<&'a SigningKey<Provider>>,
) -> Response<'a, Provider> {
    // The content of a buffer that is used again does not show.
    let mut buffer = begin(vec![0xEE; 200], sealed);
    buffer.resize(buffer.len() + bytes, 0xB0);
    let header = answer(&request(Command::Echo, message_id), Status::SUCCESS, 3);
    Response { header, bytes: buffer, key }
}

/// The messages of a frame, which the prefix describes to its end.
fn messages(frame: &[u8]) -> &[u8] {
    assert_eq!(netbios::next(frame), Ok(Step::Frame { at: PREFIX_BYTES..frame.len() }));
    &frame[PREFIX_BYTES..]
}

/// The headers of a chain, each with its bytes.
fn elements(messages: &[u8]) -> Vec<(Header, &[u8])> {
    let chain = Chain::decode(messages).unwrap();
    chain.iter().map(|element| (element.header, &messages[element.at])).collect()
}

#[test]
fn one_response_is_a_prefix_a_header_and_its_body() {
    let frame = finish::<Provider>(vec![response(7, 5, false, None)], None).unwrap();
    assert_eq!(frame[..4], [0, 0, 0, 69], "a zero and a length in network order");
    let messages = messages(&frame);
    let header = answer(&request(Command::Echo, 7), Status::SUCCESS, 3);
    assert_eq!(messages[..HEADER_BYTES], header.to_bytes());
    assert_eq!(messages[HEADER_BYTES..], [0xB0; 5], "a single response is not padded");
}

#[test]
fn a_length_has_three_bytes() {
    let frame = finish::<Provider>(vec![response(7, 0x12_3456, false, None)], None).unwrap();
    assert_eq!(frame[..4], [0, 0x12, 0x34, 0x96]);
    assert_eq!(messages(&frame).len(), 0x12_3496);
}

#[test]
fn every_response_of_a_chain_is_padded_and_linked() {
    let responses = [4, 16, 5].into_iter().zip(1..);
    let responses = responses.map(|(bytes, id)| response(id, bytes, false, None)).collect();
    let frame = finish::<Provider>(responses, None).unwrap();
    let messages = messages(&frame);
    let found: Vec<_> = elements(messages)
        .into_iter()
        .map(|(header, bytes)| (header.message_id, header.next_command, bytes.len()))
        .collect();
    assert_eq!(found, [(1, 72, 72), (2, 80, 80), (3, 0, 72)], "the last is padded too");
    assert_eq!(messages[68..72], [0; 4], "padding is zeros");
    assert_eq!(messages[221..], [0; 3]);
}

#[test]
fn each_signature_covers_a_response_with_its_link_and_padding() {
    let (server, client) = (signing(Role::Server), signing(Role::Client));
    let responses = vec![
        response(1, 4, false, Some(&server)),
        response(2, 9, false, None),
        response(3, 5, false, Some(&server)),
    ];
    let frame = finish(responses, None).unwrap();
    let signed: Vec<_> = elements(messages(&frame))
        .into_iter()
        .map(|(header, bytes)| {
            let is_signed = header.flags.contains(HeaderFlags::SIGNED);
            assert_eq!(client.verify(&Provider, bytes).is_ok(), is_signed);
            assert_eq!(header.signature != [0; 16], is_signed);
            is_signed
        })
        .collect();
    assert_eq!(signed, [true, false, true]);
    // The link to the next response, and the last byte of the padding.
    for at in [20, 71] {
        let mut changed = messages(&frame)[..72].to_vec();
        changed[at] ^= 1;
        assert_eq!(client.verify(&Provider, &changed), Err(CryptoError::Forged), "byte {at}");
    }
}

/// A sealed message has no signature of its own (MS-SMB2 §3.3.4.1.1), whatever key it came with.
#[test]
fn a_sealed_frame_is_sealed_as_a_whole_and_not_signed() {
    let (server, client) = sealing();
    let key = signing(Role::Server);
    let responses = vec![response(1, 4, true, Some(&key)), response(2, 9, true, Some(&key))];
    let frame = finish(responses, Some((&server, SESSION))).unwrap();
    let mut sealed = messages(&frame).to_vec();
    let message_bytes = 72 + 80;
    assert_eq!(Transform::parse(&sealed), Ok(Transform { session_id: SESSION, message_bytes }));
    assert_eq!(sealed.len(), TRANSFORM_BYTES + message_bytes);
    let opened = client.open(&mut sealed).unwrap();
    let ids = elements(opened).into_iter().map(|(header, _)| {
        assert!(!header.flags.contains(HeaderFlags::SIGNED));
        assert_eq!(header.signature, [0; 16]);
        header.message_id
    });
    assert_eq!(ids.collect::<Vec<_>>(), [1, 2]);
    assert!(server.open(&mut messages(&frame).to_vec()).is_err(), "it is not the client's seal");
}

#[test]
fn an_interim_response_is_never_signed() {
    let key = signing(Role::Server);
    let mut interim = response(1, 9, false, Some(&key));
    interim.header.status = Status::PENDING;
    interim.header.tree = TreeOrAsync::Async(8);
    assert_eq!(finish(vec![interim], None), Err(CryptoError::NeverSigned));
}

#[test]
fn an_answer_has_the_identifiers_of_its_request() {
    let mut asked = request(Command::Read, 9);
    asked.credit_charge = 4;
    asked.next_command = 88;
    asked.signature = [5; 16];
    asked.flags = HeaderFlags::RELATED | HeaderFlags::SIGNED | HeaderFlags::REPLAY;
    let header = answer(&asked, Status::END_OF_FILE, 12);
    assert_eq!(header.flags, HeaderFlags::RESPONSE | HeaderFlags::RELATED);
    assert_eq!((header.credit_charge, header.credits), (4, 12));
    assert_eq!((header.command, header.status), (Ok(Command::Read), Status::END_OF_FILE));
    assert_eq!((header.message_id, header.session_id), (9, SESSION));
    assert_eq!(header.tree, TreeOrAsync::Tree(5));
    assert_eq!((header.next_command, header.signature), (0, [0; 16]));
}

proptest! {
    #[test]
    fn every_frame_can_be_read(
        bodies in prop::collection::vec(0..200usize, 1..20),
        is_sealed in any::<bool>(),
        is_signed in any::<bool>(),
    ) {
        let (server, client) = sealing();
        let (key, verifier) = (signing(Role::Server), signing(Role::Client));
        let key = is_signed.then_some(&key);
        let responses = bodies.iter().zip(0..);
        let responses = responses.map(|(bytes, id)| response(id, *bytes, is_sealed, key)).collect();
        let frame = finish(responses, is_sealed.then_some((&server, SESSION))).unwrap();
        let mut bytes = messages(&frame).to_vec();
        let bytes = if is_sealed { client.open(&mut bytes).unwrap() } else { &mut bytes[..] };
        let found = elements(bytes);
        prop_assert_eq!(found.len(), bodies.len());
        for ((header, element), (body, id)) in found.iter().zip(bodies.iter().zip(0..)) {
            prop_assert_eq!(header.message_id, id);
            let (content, padding) = element[HEADER_BYTES..].split_at(*body);
            prop_assert!(content.iter().all(|byte| *byte == 0xB0));
            prop_assert!(padding.len() < 8 && padding.iter().all(|byte| *byte == 0));
            prop_assert!(bodies.len() == 1 || element.len().is_multiple_of(8));
            prop_assert!(!is_signed || is_sealed || verifier.verify(&Provider, element).is_ok());
        }
    }
}
