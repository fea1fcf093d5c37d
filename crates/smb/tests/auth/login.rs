//! Logins that succeed, and their tokens.

use super::forge::{FLAGS, Forge, Mic};
use super::{
    NOW, PASSWORD, Provider, USER, acceptor, account, bytes, done, goes_on, hex, lookup, reason,
    refused, step, utf16,
};
use weir_smb::auth::ntlm::{Exchange, ServerNames};
use weir_smb::auth::{Initiator, InitiatorError, Next, Reason, nt_hash};

fn log_in(user: &str, password: &str, is_raw: bool) -> Result<[u8; 16], Reason> {
    let client = Initiator::new(account(user), nt_hash(&Provider, password), is_raw);
    let mut server = acceptor();
    let challenge = goes_on(step(&mut server, &client.first()));
    let proven = client.prove(&Provider, &challenge).unwrap();
    match step(&mut server, proven.token()) {
        Next::Done(login) => {
            assert_eq!(login.account, account(user));
            assert_eq!(login.session_key, proven.session_key());
            proven.finish(&Provider, &login.token).unwrap();
            assert_eq!(reason(step(&mut server, proven.token())), Reason::OutOfOrder);
            Ok(login.session_key)
        }
        other => {
            let refused = refused(other);
            assert_eq!(refused.account, Some(account(user)));
            assert_eq!(reason(step(&mut server, proven.token())), Reason::OutOfOrder);
            Err(refused.reason)
        }
    }
}

#[test]
fn a_user_logs_in_with_and_without_spnego() {
    for is_raw in [false, true] {
        let first = log_in(USER, PASSWORD, is_raw).unwrap();
        assert_ne!(first, log_in(USER, PASSWORD, is_raw).unwrap(), "keys are fresh");
        log_in(&USER.to_uppercase(), PASSWORD, is_raw).unwrap();
        assert_eq!(log_in(USER, "correct hors", is_raw), Err(Reason::WrongProof));
        assert_eq!(log_in("Bob", PASSWORD, is_raw), Err(Reason::UnknownUser));
        assert_eq!(log_in("Guest", "", is_raw), Err(Reason::UnknownUser));
    }
}

/// A client made by hand agrees with the client of the crate, with all that may differ.
#[test]
fn clients_that_follow_the_rules_are_let_in() {
    let old_kernel = Forge { mic: Mic::None, ..Forge::default() };
    let own_key = Forge { flags: FLAGS & !0x4000_0000, ..Forge::default() };
    let in_domain = Forge { domain: "Elsewhere".into(), ..Forge::default() };
    let without = Forge { key_domain: Some(String::new()), ..in_domain.clone() };
    for client in [Forge::default(), old_kernel, own_key, in_domain, without] {
        let mut server = acceptor();
        let negotiate = client.negotiate();
        let challenge = goes_on(step(&mut server, &negotiate));
        let (authenticate, session_key) = client.authenticate(&negotiate, &challenge);
        let login = done(step(&mut server, &authenticate));
        assert_eq!(login.session_key, session_key);
        assert_eq!(login.account.domain, client.domain);
        assert!(login.token.is_empty());
    }
}

#[test]
fn the_key_of_a_response_is_of_the_domain_named_or_of_none() {
    let other = Forge {
        domain: "Elsewhere".into(),
        key_domain: Some("Nowhere".into()),
        ..Forge::default()
    };
    let mut server = acceptor();
    let negotiate = other.negotiate();
    let challenge = goes_on(step(&mut server, &negotiate));
    let (authenticate, _) = other.authenticate(&negotiate, &challenge);
    assert_eq!(reason(step(&mut server, &authenticate)), Reason::WrongProof);
}

#[test]
fn the_challenge_has_names_and_time() {
    let names = ServerNames::new("SUT311", "sut").unwrap();
    let negotiate = Forge::default().negotiate();
    let Exchange { challenge, .. } = Exchange::begin(&Provider, &names, &negotiate, NOW).unwrap();
    let expected = hex(&format!(
        "4E544C4D53535000 02000000 0C000C0038000000 15828A60 {} 0000000000000000
         4400440044000000 0000000000000000 530055005400330031003100
         02000C00530055005400330031003100 01000C00530055005400330031003100
         04000600730075007400 03000600730075007400 07000800A1A1F5ADCBAED001 00000000",
        challenge[24..32].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    ));
    assert_eq!(challenge, expected);
    let client = Forge { flags: FLAGS | 1 << 25, ..Forge::default() };
    let versioned = Exchange::begin(&Provider, &names, &client.negotiate(), NOW).unwrap().challenge;
    assert_eq!(versioned[20..24], hex("15828A62"));
    assert_eq!(versioned[48..56], hex("0A0000000000000F"));
    assert_eq!(versioned[56..], challenge[56..]);
    let again = Exchange::begin(&Provider, &names, &negotiate, NOW).unwrap().challenge;
    assert_ne!(again[24..32], challenge[24..32], "challenges are fresh");
}

#[test]
fn a_target_that_was_not_asked_for_is_not_given() {
    let client = Forge { flags: FLAGS & !4, ..Forge::default() };
    let mut server = acceptor();
    let negotiate = client.negotiate();
    let challenge = goes_on(step(&mut server, &negotiate));
    assert_eq!(challenge[12..20], bytes::<8>("0000000038000000"));
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    done(step(&mut server, &authenticate));
}

/// Upper case and the rest of Unicode.
#[test]
fn names_are_unicode() {
    let client = Forge { user: "jörg𐐨".into(), ..Forge::default() };
    let mut server = acceptor();
    let negotiate = client.negotiate();
    let challenge = goes_on(step(&mut server, &negotiate));
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    let next = server.step(&Provider, &authenticate, NOW, |user, _| {
        assert_eq!(user, "jörg𐐨");
        Some(nt_hash(&Provider, PASSWORD))
    });
    assert_eq!(utf16(&done(next).account.user), utf16("jörg𐐨"));
}

/// The client notices a server that does not know the password, and one that is not done.
#[test]
fn a_client_is_careful() {
    let client = || Initiator::new(account(USER), nt_hash(&Provider, PASSWORD), false);
    let mut server = acceptor();
    let first = client();
    let challenge = goes_on(step(&mut server, &first.first()));
    let proven = first.prove(&Provider, &challenge).unwrap();
    let token = done(step(&mut server, proven.token())).token;
    proven.finish(&Provider, &token).unwrap();
    let mut changed = token.clone();
    *changed.last_mut().unwrap() ^= 1;
    let wrong = Err(InitiatorError::Token(Reason::WrongListMic));
    assert_eq!(proven.finish(&Provider, &changed), wrong);
    let bare = hex("a1073005a0030a0100");
    let missing = Err(InitiatorError::Token(Reason::NoListMic));
    assert_eq!(proven.finish(&Provider, &bare), missing);
    let more = hex("a1073005a0030a0101");
    assert_eq!(proven.finish(&Provider, &more), Err(InitiatorError::OtherWay));
    for at in 0..challenge.len() {
        // Not all changes matter to the client, but none makes it panic.
        let mut changed = challenge.clone();
        changed[at] ^= 0xFF;
        let _ = client().prove(&Provider, &changed);
        let _ = client().prove(&Provider, &challenge[..at]);
    }
    // Without extended session security there is no answer.
    let at = challenge.windows(8).position(|bytes| bytes == b"NTLMSSP\0").unwrap() + 20;
    let mut weak = challenge;
    weak[at + 2] &= !8;
    let refused = client().prove(&Provider, &weak).err();
    assert_eq!(refused, Some(InitiatorError::Token(Reason::Weak)));
    assert!(lookup(USER, "").is_some());
}
