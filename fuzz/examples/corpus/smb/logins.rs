//! Logins: whole ones by our own client, and ones made by hand whose proof the target puts in.

use crate::save;
use std::io::Result;
use weir_fuzz::smb::append_step;
use weir_fuzz::smb::crypto::Fixed;
use weir_fuzz::smb::login::{CLIENT, PASSWORD, PROVE, SIGN, Talk, USER, VOUCH, account};
use weir_fuzz::smb::utf16;
use weir_smb::auth::{Initiator, nt_hash};

/// Unicode, target, sign, NTLM, always sign, extended session security, target info, 128 bits, key
/// exchange.
const FLAGS: u32 = 0x6088_8215;

fn initiator(is_raw: bool) -> Initiator {
    Initiator::new(account(), nt_hash(&Fixed, PASSWORD), is_raw)
}

/// A whole login of our own client, and the challenge that the server gave.
fn own(is_raw: bool) -> (Vec<u8>, Vec<u8>) {
    let (client, mut talk, mut script) = (initiator(is_raw), Talk::new(is_raw), Vec::new());
    let first = client.first();
    append_step(&mut script, 0, &first);
    let challenge = talk.step(0, &first).expect("the login goes on");
    let proven = client.prove(&Fixed, &challenge).expect("the challenge is right");
    append_step(&mut script, 0, proven.token());
    let last = talk.step(0, proven.token()).expect("the client gets in");
    proven.finish(&Fixed, &last).expect("the server is done");
    append_step(&mut script, 0, proven.token());
    (script, challenge)
}

fn negotiate() -> Vec<u8> {
    [b"NTLMSSP\0\x01\0\0\0", &FLAGS.to_le_bytes()[..], &[0; 16]].concat()
}

/// AUTHENTICATE with room for a proof, and for a message integrity code that it announces or not.
fn authenticate(user: &str, has_mic: bool) -> Vec<u8> {
    let payload_at = if has_mic { 88 } else { 64 };
    let announced: &[u8] = if has_mic { &[6, 0, 4, 0, 2, 0, 0, 0] } else { &[] };
    let rest = [&[1, 1, 0, 0, 0, 0, 0, 0][..], &[9; 8], &[7; 8], &[0; 4], announced, &[0; 8]];
    let response = [&[0; 16][..], &rest.concat()].concat();
    let names = [utf16("DOMAIN"), utf16(user), utf16("DESK")];
    let values = [&[0; 24][..], &response, &names[0], &names[1], &names[2], &[0x55; 16]];
    let (mut message, mut at) = (b"NTLMSSP\0\x03\0\0\0".to_vec(), payload_at);
    for value in values {
        let length = u16::try_from(value.len()).expect("a short one").to_le_bytes();
        message.extend([length, length].concat());
        message.extend(u32::try_from(at).expect("a short message").to_le_bytes());
        at += value.len();
    }
    message.extend(FLAGS.to_le_bytes());
    message.resize(payload_at, 0);
    message.extend(values.concat());
    message
}

/// Saves a script of which the last step lets the client in, or not.
fn save_login(target: &str, name: &str, steps: &[(u8, Vec<u8>)], gets_in: bool) -> Result<()> {
    let (mut talk, mut script, mut answer) = (Talk::new(target == "smb_ntlm"), Vec::new(), None);
    for (selector, token) in steps {
        append_step(&mut script, *selector, token);
        answer = talk.step(*selector, token);
    }
    assert_eq!(answer.is_some(), gets_in, "{name}");
    save(target, name, &script)
}

pub(super) fn ntlm() -> Result<()> {
    let (script, challenge) = own(true);
    save("smb_ntlm", "own", &script)?;
    save_login("smb_ntlm", "client", &[(CLIENT, challenge)], false)?;
    let begun = |step| [(0, negotiate()), step];
    let target = "smb_ntlm";
    save_login(target, "without-mic", &begun((PROVE, authenticate(USER, false))), true)?;
    save_login(target, "with-mic", &begun((PROVE | SIGN, authenticate("ADA", true))), true)?;
    save_login(target, "wrong-mic", &begun((PROVE, authenticate(USER, true))), false)?;
    save_login(target, "wrong-proof", &begun((0, authenticate(USER, false))), false)?;
    save_login(target, "unknown", &begun((PROVE, authenticate("bob", false))), false)
}

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short one").to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

const NTLMSSP: [u8; 12] = [6, 10, 0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
const KERBEROS: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];

fn init(mechanisms: &[&[u8]], token: &[u8]) -> Vec<u8> {
    let list = element(0xa0, &element(0x30, &mechanisms.concat()));
    let fields = element(0x30, &[list, element(0xa2, &element(4, token))].concat());
    let spnego = [6, 6, 0x2b, 6, 1, 5, 5, 2];
    element(0x60, &[&spnego[..], &element(0xa0, &fields)].concat())
}

fn resp(token: &[u8], mic: Option<&[u8]>) -> Vec<u8> {
    let mic = mic.map(|mic| element(0xa3, &element(4, mic))).unwrap_or_default();
    element(0xa1, &element(0x30, &[element(0xa2, &element(4, token)), mic].concat()))
}

pub(super) fn spnego() -> Result<()> {
    let (script, challenge) = own(false);
    save("smb_spnego", "own", &script)?;
    save_login("smb_spnego", "client", &[(CLIENT, challenge)], false)?;
    let target = "smb_spnego";
    let alone = init(&[&NTLMSSP], &negotiate());
    let proof = resp(&authenticate(USER, true), None);
    let steps = [(0, alone.clone()), (PROVE | SIGN, proof)];
    save_login(target, "alone", &steps, true)?;
    let vouched = resp(&authenticate(USER, false), Some(&[0; 16]));
    let steps = [(0, alone.clone()), (PROVE | VOUCH, vouched.clone())];
    save_login(target, "vouched", &steps, true)?;
    save_login(target, "wrong-code", &[(0, alone), (PROVE, vouched.clone())], false)?;
    let foreign = init(&[&KERBEROS, &NTLMSSP], b"a ticket");
    let second = resp(&negotiate(), None);
    let steps = [(0, foreign.clone()), (0, second.clone()), (PROVE | VOUCH, vouched)];
    save_login(target, "foreign", &steps, true)?;
    let silent = resp(&authenticate(USER, false), None);
    save_login(
        target,
        "foreign-not-vouched",
        &[(0, foreign), (0, second), (PROVE, silent)],
        false,
    )?;
    save_login(target, "kerberos-alone", &[(0, init(&[&KERBEROS], b"a ticket"))], false)
}
