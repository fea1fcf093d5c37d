//! Clients that break a rule.

use super::forge::{FLAGS, Forge, Mic, pairs};
use super::{acceptor, done, goes_on, reason, refused, step};
use proptest::prelude::*;
use weir_smb::auth::{Acceptor, Next, Reason};

/// Sends NEGOTIATE, and gives the server, NEGOTIATE and CHALLENGE.
fn begun(client: &Forge) -> (Acceptor, Vec<u8>, Vec<u8>) {
    let mut server = acceptor();
    let negotiate = client.negotiate();
    let challenge = goes_on(step(&mut server, &negotiate));
    (server, negotiate, challenge)
}

fn outcome(client: &Forge) -> Next {
    let (mut server, negotiate, challenge) = begun(client);
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    step(&mut server, &authenticate)
}

fn reason_of(client: &Forge) -> Reason {
    reason(outcome(client))
}

/// The login that an acceptor let in elsewhere: no password, a proof of zeros, no MIC.
#[test]
fn the_forged_login() {
    for user in [super::USER, "Guest", "Administrator", "nobody"] {
        for mic in [Mic::None, Mic::Zeros, Mic::Right] {
            let forged = Forge {
                user: user.into(),
                password: String::new(),
                proof: Some([0; 16]),
                mic,
                ..Forge::default()
            };
            let expected =
                if user == super::USER { Reason::WrongProof } else { Reason::UnknownUser };
            assert_eq!(reason_of(&forged), expected);
        }
    }
}

#[test]
fn a_user_without_a_password_is_no_user_with_an_empty_one() {
    for password in ["", "\0", super::PASSWORD] {
        let client = Forge { user: "Bob".into(), password: password.into(), ..Forge::default() };
        let refused = refused(outcome(&client));
        assert_eq!(refused.reason, Reason::UnknownUser);
        assert_eq!(refused.account.unwrap().user, "Bob");
    }
}

#[test]
fn anonymous_is_refused() {
    let nobody = Forge { user: String::new(), ..Forge::default() };
    assert_eq!(reason_of(&nobody), Reason::Anonymous);
    for lm in [vec![], vec![0]] {
        for user in ["", super::USER] {
            let response = Some(Vec::new());
            let client = Forge {
                user: user.into(),
                lm: lm.clone(),
                response,
                mic: Mic::None,
                ..Forge::default()
            };
            assert_eq!(reason_of(&client), Reason::Anonymous);
        }
    }
}

#[test]
fn old_responses_are_refused() {
    // LM alone, NTLMv1, NTLMv1 with session security, and LMv2 alone.
    for (lm, response) in [(24, 0), (24, 24), (0, 24), (24, 16), (2, 0)] {
        let client = Forge {
            lm: vec![1; lm],
            response: Some(vec![1; response]),
            mic: Mic::None,
            ..Forge::default()
        };
        assert_eq!(reason_of(&client), Reason::OldResponse, "{lm} {response}");
    }
}

#[test]
fn a_stripped_mic_is_refused() {
    assert_eq!(reason_of(&Forge { mic: Mic::Zeros, ..Forge::default() }), Reason::WrongMic);
    // The announcement cannot be taken away, because the proof covers it.
    let (mut server, negotiate, challenge) = begun(&Forge::default());
    let client = Forge { pairs_after_proof: Some(pairs(&challenge, false)), ..Forge::default() };
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    assert_eq!(reason(step(&mut server, &authenticate)), Reason::WrongProof);
    // And it cannot be cut off: the fields point beyond it.
    let (mut server, negotiate, challenge) = begun(&Forge::default());
    let (mut authenticate, _) = Forge::default().authenticate(&negotiate, &challenge);
    authenticate.drain(72..88);
    let reason = reason(step(&mut server, &authenticate));
    assert!(matches!(reason, Reason::Malformed(_)), "{reason:?}");
}

#[test]
fn a_changed_negotiate_is_refused() {
    let client = Forge::default();
    let mut server = acceptor();
    let negotiate = client.negotiate();
    // Somebody between takes the flag of sealing out, or puts it in.
    let mut changed = negotiate.clone();
    changed[12] ^= 0x20;
    let challenge = goes_on(step(&mut server, &changed));
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    assert_eq!(reason(step(&mut server, &authenticate)), Reason::WrongMic);
}

#[test]
fn the_flags_that_matter_are_required() {
    for missing in [1, 1 << 19, 1 << 29] {
        let client = Forge { flags: FLAGS & !missing, ..Forge::default() };
        assert_eq!(reason(step(&mut acceptor(), &client.negotiate())), Reason::Weak);
        let (mut server, negotiate, challenge) = begun(&Forge::default());
        let (authenticate, _) = client.authenticate(&negotiate, &challenge);
        assert_eq!(reason(step(&mut server, &authenticate)), Reason::Weak);
    }
}

#[test]
fn a_session_key_of_another_length_is_refused() {
    for length in [0u16, 1, 15] {
        let client = Forge { mic: Mic::None, ..Forge::default() };
        let (mut server, negotiate, challenge) = begun(&client);
        let (mut authenticate, _) = client.authenticate(&negotiate, &challenge);
        authenticate[52..54].copy_from_slice(&length.to_le_bytes());
        assert_eq!(reason(step(&mut server, &authenticate)), Reason::Malformed("session key"));
    }
}

/// A proof is good for one challenge.
#[test]
fn a_replayed_proof_is_refused() {
    let client = Forge { mic: Mic::None, ..Forge::default() };
    let (mut server, negotiate, challenge) = begun(&client);
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    done(step(&mut server, &authenticate));
    let (mut server, _, _) = begun(&client);
    assert_eq!(reason(step(&mut server, &authenticate)), Reason::WrongProof);
}

/// The tokens of a client's fields, each in turn moved or made longer.
#[test]
fn fields_that_leave_the_message_are_refused() {
    let client = Forge::default();
    let (_, negotiate, challenge) = begun(&client);
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    let len = u32::try_from(authenticate.len()).unwrap();
    for field in (12..60).step_by(8) {
        for (length, at) in [
            (0xFFFF, 88),
            (1, u32::MAX),
            (0xFFFF, u32::MAX),
            (1, len),
            (2, len - 1),
            // In the header, in the MIC, and over its end.
            (2, 0),
            (2, 60),
            (2, 63),
            (2, 72),
            (2, 87),
        ] {
            let (mut server, _, _) = begun(&client);
            let mut moved = authenticate.clone();
            moved[field..field + 2].copy_from_slice(&u16::to_le_bytes(length));
            moved[field + 4..field + 8].copy_from_slice(&u32::to_le_bytes(at));
            let reason = reason(step(&mut server, &moved));
            // A response cut to two bytes is an old one before it is anything else.
            let is_right = matches!(reason, Reason::Malformed(_) | Reason::OldResponse);
            assert!(is_right, "{field} {length} {at}: {reason:?}");
        }
    }
}

/// Fields may overlap, which harms nobody: they are only read. The MIC still covers them.
#[test]
fn fields_over_each_other_are_judged_as_any() {
    let client = Forge::default();
    let (mut server, negotiate, challenge) = begun(&client);
    let (mut authenticate, _) = client.authenticate(&negotiate, &challenge);
    // The workstation is where the user is.
    authenticate.copy_within(36..44, 44);
    assert_eq!(reason(step(&mut server, &authenticate)), Reason::WrongMic);
    let client = Forge { mic: Mic::None, ..client };
    let (mut server, negotiate, challenge) = begun(&client);
    let (mut authenticate, _) = client.authenticate(&negotiate, &challenge);
    authenticate.copy_within(36..44, 44);
    assert_eq!(done(step(&mut server, &authenticate)).account.workstation, super::USER);
}

#[test]
fn names_have_bounds() {
    let user = |len| Forge { user: "u".repeat(len), ..Forge::default() };
    assert_eq!(reason_of(&user(256)), Reason::UnknownUser);
    assert!(matches!(reason_of(&user(257)), Reason::Malformed(_)));
    let domain = Forge { domain: "d".repeat(257), ..Forge::default() };
    assert!(matches!(reason_of(&domain), Reason::Malformed(_)));
}

#[test]
fn a_long_negotiate_is_refused() {
    let mut negotiate = Forge::default().negotiate();
    negotiate.resize(1024, 0);
    goes_on(step(&mut acceptor(), &negotiate));
    negotiate.push(0);
    assert!(matches!(reason(step(&mut acceptor(), &negotiate)), Reason::Malformed(_)));
}

#[test]
fn messages_out_of_order_are_refused() {
    let client = Forge::default();
    let (mut server, negotiate, challenge) = begun(&client);
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    assert!(matches!(reason(step(&mut server, &negotiate)), Reason::Malformed(_)));
    assert!(matches!(reason(step(&mut acceptor(), &authenticate)), Reason::Malformed(_)));
    assert!(matches!(reason(step(&mut acceptor(), &challenge)), Reason::Malformed(_)));
    assert!(matches!(reason(step(&mut acceptor(), &[])), Reason::Malformed(_)));
}

#[test]
fn truncated_messages_are_refused() {
    for mic in [Mic::Right, Mic::None] {
        let client = Forge { mic, ..Forge::default() };
        let (_, negotiate, challenge) = begun(&client);
        for len in 0..16 {
            let reason = reason(step(&mut acceptor(), &negotiate[..len]));
            assert!(matches!(reason, Reason::Malformed(_)), "{len}");
        }
        let (authenticate, _) = client.authenticate(&negotiate, &challenge);
        for len in 0..authenticate.len() {
            let (mut server, _, _) = begun(&client);
            let reason = reason(step(&mut server, &authenticate[..len]));
            assert!(matches!(reason, Reason::Malformed(_)), "{len}: {reason:?}");
        }
    }
}

proptest! {
    #[test]
    fn changed_messages_are_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let client = Forge::default();
        let (mut server, negotiate, challenge) = begun(&client);
        let (right, _) = client.authenticate(&negotiate, &challenge);
        let mut authenticate = right.clone();
        for (at, byte) in changes {
            let at = at.index(authenticate.len());
            authenticate[at] = byte;
        }
        prop_assume!(authenticate != right);
        prop_assert!(matches!(step(&mut server, &authenticate), Next::Refused(_)));
    }

    #[test]
    fn arbitrary_tokens_do_not_panic(
        head in prop::sample::select(vec![
            &b""[..], b"NTLMSSP\0\x01\0\0\0", b"NTLMSSP\0\x03\0\0\0", b"\x60\x40\x06\x06\x2B",
        ]),
        tail in prop::collection::vec(any::<u8>(), 0..120),
    ) {
        let token = [head, &tail].concat();
        let (mut server, _, _) = begun(&Forge::default());
        prop_assert!(matches!(step(&mut server, &token), Next::Refused(_)));
        let _ = step(&mut acceptor(), &token);
    }
}
