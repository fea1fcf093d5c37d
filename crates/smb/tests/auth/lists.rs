//! SPNEGO: its lists of mechanisms and the codes over them.

use super::forge::Forge;
use super::{Provider, USER, acceptor, account, done, goes_on, hex, reason, step};
use proptest::prelude::*;
use weir_smb::auth::ntlm::{Flags, Signatures};
use weir_smb::auth::{Acceptor, Account, Login, Next, Reason, hint};
use weir_smb::crypto::Role;

/// Object identifiers as elements.
const NTLMSSP: &str = "060a2b06010401823702020a";
const KERBEROS: &str = "06092a864886f712010202";
const MS_KERBEROS: &str = "06092a864882f712010202";

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

/// The content of a list of mechanisms, and a list.
fn list(mechanisms: &[&str]) -> Vec<u8> {
    element(0x30, &hex(&mechanisms.concat()))
}

fn init(list: &[u8], token: Option<&[u8]>) -> Vec<u8> {
    let token = token.map(|token| element(0xA2, &element(4, token))).unwrap_or_default();
    let fields = element(0x30, &[element(0xA0, list), token].concat());
    element(0x60, &[hex("06062b0601050502"), element(0xA0, &fields)].concat())
}

fn resp(token: Option<&[u8]>, mic: Option<&[u8]>) -> Vec<u8> {
    let field = |tag, content: Option<&[u8]>| {
        content.map(|content| element(tag, &element(4, content))).unwrap_or_default()
    };
    element(0xA1, &element(0x30, &[field(0xA2, token), field(0xA3, mic)].concat()))
}

/// The NTLM message in a token of the server.
fn inner(token: &[u8]) -> Vec<u8> {
    let at = token.windows(8).position(|bytes| bytes == b"NTLMSSP\0").unwrap();
    token[at..].to_vec()
}

fn mic(session_key: &[u8; 16], sender: Role, list: &[u8]) -> [u8; 16] {
    let flags = Flags::SIGN | Flags::KEY_EXCHANGE;
    Signatures::new(&Provider, session_key, flags).first(sender, list)
}

#[test]
fn the_hint_is_that_of_other_servers() {
    let expected = "604806062b0601050502a03e303ca00e300c060a2b06010401823702020aa32a3028a0261b24
        6e6f745f646566696e65645f696e5f5246433431373840706c656173655f69676e6f7265";
    assert_eq!(hint(), hex(expected));
}

/// The tokens of a Windows client (lengths in one byte), and the form of the answers.
#[test]
fn ntlm_alone() {
    let client = Forge::default();
    let negotiate = client.negotiate();
    let first = hex("603e06062b0601050502a0343032a00e300c060a2b06010401823702020aa220041e");
    // The lengths of this NEGOTIATE: it has 32 bytes.
    let mut first = first;
    first[1] += 2;
    first[11] += 2;
    first[13] += 2;
    first[31] += 2;
    first[33] += 2;
    let mut server = acceptor();
    let token = goes_on(step(&mut server, &[&first[..], &negotiate].concat()));
    let (head, challenge) = token.split_at(token.len() - inner(&token).len());
    let (inner_len, len) = (challenge.len(), token.len());
    let expected = [
        &[0xA1, 0x81, u8::try_from(len - 3).unwrap(), 0x30, 0x81, u8::try_from(len - 6).unwrap()],
        &hex("a0030a0101a10c060a2b06010401823702020a")[..],
        &[0xA2, 0x81, u8::try_from(inner_len + 3).unwrap()],
        &[0x04, 0x81, u8::try_from(inner_len).unwrap()],
    ];
    assert_eq!(head, expected.concat());
    let (authenticate, session_key) = client.authenticate(&negotiate, challenge);
    let list = hex("300c060a2b06010401823702020a");
    let client_mic = mic(&session_key, Role::Client, &list);
    let login = done(step(&mut server, &resp(Some(&authenticate), Some(&client_mic))));
    assert_eq!(login.session_key, session_key);
    let server_mic = mic(&session_key, Role::Server, &list);
    assert_eq!(login.token, [hex("a11b3019a0030a0100a3120410"), server_mic.to_vec()].concat());
}

#[test]
fn a_client_that_vouches_for_nothing_is_answered_so() {
    let list = list(&[NTLMSSP, KERBEROS]);
    let (mut server, authenticate, _) = until_proof(&list, None);
    let login = done(step(&mut server, &resp(Some(&authenticate), None)));
    assert_eq!(login.token, hex("a1073005a0030a0100"));
}

/// Goes on until the proof, by the way of a preferred foreign mechanism if there is one: the
/// server, AUTHENTICATE and the session key.
fn until_proof(list: &[u8], foreign: Option<&[u8]>) -> (Acceptor, Vec<u8>, [u8; 16]) {
    let client = Forge::default();
    let negotiate = client.negotiate();
    let mut server = acceptor();
    let challenge = match foreign {
        None => goes_on(step(&mut server, &init(list, Some(&negotiate)))),
        Some(foreign) => {
            let token = goes_on(step(&mut server, &init(list, Some(foreign))));
            assert_eq!(token, hex("a1153013a0030a0103a10c060a2b06010401823702020a"));
            goes_on(step(&mut server, &resp(Some(&negotiate), None)))
        }
    };
    let (authenticate, session_key) = client.authenticate(&negotiate, &inner(&challenge));
    (server, authenticate, session_key)
}

#[test]
fn kerberos_first_and_ntlm_second() {
    let list = list(&[MS_KERBEROS, KERBEROS, NTLMSSP]);
    let (mut server, authenticate, session_key) = until_proof(&list, Some(b"a ticket"));
    let client_mic = mic(&session_key, Role::Client, &list);
    let login = done(step(&mut server, &resp(Some(&authenticate), Some(&client_mic))));
    let server_mic = mic(&session_key, Role::Server, &list);
    assert_eq!(login.token, [hex("a11b3019a0030a0100a3120410"), server_mic.to_vec()].concat());

    let (mut server, authenticate, _) = until_proof(&list, Some(b"a ticket"));
    let next = step(&mut server, &resp(Some(&authenticate), None));
    assert_eq!(reason(next), Reason::NoListMic);

    let (mut server, authenticate, session_key) = until_proof(&list, Some(b"a ticket"));
    let of_server = mic(&session_key, Role::Server, &list);
    let next = step(&mut server, &resp(Some(&authenticate), Some(&of_server)));
    assert_eq!(reason(next), Reason::WrongListMic);
}

/// Somebody between takes Kerberos out of the list.
#[test]
fn a_shortened_list_is_noticed() {
    let (long, short) = (list(&[KERBEROS, NTLMSSP]), list(&[NTLMSSP]));
    for (sent, received) in [(&long, &short), (&short, &list(&[NTLMSSP, KERBEROS]))] {
        let (mut server, authenticate, session_key) = until_proof(received, None);
        let client_mic = mic(&session_key, Role::Client, sent);
        let next = step(&mut server, &resp(Some(&authenticate), Some(&client_mic)));
        assert_eq!(reason(next), Reason::WrongListMic);
    }
    // A code of another length, of the server, or of zeros is none.
    let (_, _, session_key) = until_proof(&short, None);
    let of_server = mic(&session_key, Role::Server, &short);
    for wrong in [&[][..], &[0; 16], &of_server, &[1; 17]] {
        let (mut server, authenticate, _) = until_proof(&short, None);
        let next = step(&mut server, &resp(Some(&authenticate), Some(wrong)));
        assert_eq!(reason(next), Reason::WrongListMic);
    }
}

#[test]
fn a_first_token_without_one_of_ntlm_asks_for_it() {
    let negotiate = Forge::default().negotiate();
    let mut server = acceptor();
    let token = goes_on(step(&mut server, &init(&list(&[NTLMSSP]), None)));
    assert_eq!(token, hex("a1153013a0030a0101a10c060a2b06010401823702020a"));
    let second = goes_on(step(&mut server, &resp(Some(&negotiate), None)));
    let mechanism = hex("2b06010401823702020a");
    let named = |token: &[u8]| token.windows(mechanism.len()).any(|bytes| bytes == mechanism);
    assert!(named(&token) && !named(&second), "the first reply alone names the mechanism");
}

#[test]
fn lists_without_ntlm_are_refused() {
    let negotiate = Forge::default().negotiate();
    for mechanisms in [&[KERBEROS][..], &[MS_KERBEROS, KERBEROS]] {
        let token = init(&list(mechanisms), Some(&negotiate));
        assert_eq!(reason(step(&mut acceptor(), &token)), Reason::NoMechanism);
    }
    let token = init(&list(&[]), Some(&negotiate));
    assert!(matches!(reason(step(&mut acceptor(), &token)), Reason::Malformed(_)));
    // A long list is refused before it is kept.
    let token = init(&list(&[NTLMSSP; 43]), Some(&negotiate));
    assert!(matches!(reason(step(&mut acceptor(), &token)), Reason::Malformed(_)));
    goes_on(step(&mut acceptor(), &init(&list(&[NTLMSSP; 42]), Some(&negotiate))));
}

/// SESSION_SETUP has 16 bits for the length of a token (MS-SMB2 §2.2.5).
#[test]
fn a_token_has_a_bound() {
    let padded = |len| {
        let (mut server, authenticate, _) = until_proof(&list(&[NTLMSSP]), None);
        let mut token = resp(Some(&authenticate), None);
        token.resize(len, 0);
        step(&mut server, &token)
    };
    done(padded(0xFFFF));
    assert_eq!(reason(padded(0x1_0000)), Reason::Malformed("token"));
}

#[test]
fn framings_are_not_mixed() {
    let (mut server, authenticate, _) = until_proof(&list(&[NTLMSSP]), None);
    assert!(matches!(reason(step(&mut server, &authenticate)), Reason::Malformed(_)));
    let client = Forge::default();
    let negotiate = client.negotiate();
    let mut server = acceptor();
    let challenge = goes_on(step(&mut server, &negotiate));
    let (authenticate, _) = client.authenticate(&negotiate, &challenge);
    let token = resp(Some(&authenticate), None);
    assert!(matches!(reason(step(&mut server, &token)), Reason::Malformed(_)));
    // A token of SPNEGO without one of NTLM in it.
    let (mut server, _, _) = until_proof(&list(&[NTLMSSP]), None);
    assert_eq!(reason(step(&mut server, &resp(None, None))), Reason::OutOfOrder);
}

/// The login of an honest client whose first token an attacker has replaced by `first`: the client
/// sends the code over its own `list`. `None`: it is refused.
fn after(first: &[u8], list: &[u8]) -> Option<(Login, [u8; 16])> {
    let client = Forge::default();
    let negotiate = client.negotiate();
    let mut server = acceptor();
    let mut reply = going_on(step(&mut server, first))?;
    if !reply.windows(8).any(|bytes| bytes == b"NTLMSSP\0") {
        reply = going_on(step(&mut server, &resp(Some(&negotiate), None)))?;
    }
    let (authenticate, session_key) = client.authenticate(&negotiate, &inner(&reply));
    let client_mic = mic(&session_key, Role::Client, list);
    match step(&mut server, &resp(Some(&authenticate), Some(&client_mic))) {
        Next::Done(login) => Some((login, session_key)),
        Next::Refused(_) => None,
        Next::Continue(_) => panic!("nothing comes after the proof"),
    }
}

/// The reply to a token that is not the last one; `None`: the login is refused.
fn going_on(next: Next) -> Option<Vec<u8>> {
    match next {
        Next::Continue(token) => Some(token),
        Next::Refused(_) => None,
        Next::Done(_) => panic!("let in without a proof"),
    }
}

/// The login is that of the client, and the server's last token vouches for the client's list.
fn is_right(login: &Login, session_key: &[u8; 16], list: &[u8]) -> bool {
    let vouched = mic(session_key, Role::Server, list).to_vec();
    let token = [hex("a11b3019a0030a0100a3120410"), vouched].concat();
    let account = Account { domain: String::new(), ..account(USER) };
    (&login.account, &login.session_key, &login.token) == (&account, session_key, &token)
}

#[test]
fn a_login_that_nobody_changes_is_right() {
    let list = list(&[KERBEROS, NTLMSSP]);
    let (login, session_key) = after(&init(&list, Some(b"a ticket")), &list).unwrap();
    assert!(is_right(&login, &session_key, &list));
}

proptest! {
    /// A client whose first token was changed on the way is let in only if its list has arrived.
    #[test]
    fn a_changed_list_is_noticed(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let list = list(&[KERBEROS, NTLMSSP]);
        let mut token = init(&list, Some(b"a ticket"));
        for (at, byte) in &changes {
            let at = at.index(token.len());
            token[at] = *byte;
        }
        if let Some((login, session_key)) = after(&token, &list) {
            prop_assert!(is_right(&login, &session_key, &list));
        }
    }

    /// A last token that was changed on the way is refused, or says the same: lengths that say less
    /// than the bytes can leave all that counts as it was.
    #[test]
    fn a_changed_proof_lets_nobody_else_in(
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let list = list(&[KERBEROS, NTLMSSP]);
        let (mut server, authenticate, session_key) = until_proof(&list, Some(b"a ticket"));
        let client_mic = mic(&session_key, Role::Client, &list);
        let mut token = resp(Some(&authenticate), Some(&client_mic));
        for (at, byte) in &changes {
            let at = at.index(token.len());
            token[at] = *byte;
        }
        if changes.is_empty() {
            token.truncate(cut.index(token.len()));
        }
        match step(&mut server, &token) {
            Next::Done(login) => {
                prop_assert!(!changes.is_empty(), "a shorter token is not whole");
                prop_assert!(is_right(&login, &session_key, &list));
            }
            Next::Refused(_) => prop_assert_eq!(
                reason(step(&mut server, &resp(Some(&authenticate), Some(&client_mic)))),
                Reason::OutOfOrder,
                "a refused login is over",
            ),
            Next::Continue(_) => prop_assert!(false, "nothing comes after the proof"),
        }
    }
}
