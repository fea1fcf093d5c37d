//! Published vectors: MS-NLMP §4.2.4, and the first session of the trace in "SMB 2 and SMB 3
//! security in Windows 10".

use super::{Provider, bytes, hex};
use weir_smb::auth::ntlm::{Exchange, Flags, Signatures};
use weir_smb::auth::{Reason, nt_hash};
use weir_smb::crypto::{Crypto as _, Role};

#[test]
fn hashes() {
    let check = |password, hash| assert_eq!(nt_hash(&Provider, password).0, bytes(hash));
    check("Password", "a4f49c406510bdcab6824ee7c30fd852");
    check("Password01!", "7c4fe5eada682714a036e39378362bab");
    check("", "31d6cfe0d16ae931b73c59d7e0c089c0");
}

/// MS-NLMP §4.2.4.3. The client is old: it has no MIC, and an LM response beside the other.
#[test]
fn the_messages_of_the_specification() {
    let exchange = Exchange {
        negotiate: Vec::new(),
        challenge: hex(
            "4e544c4d53535000 02000000 0c000c0038000000 33828ae2 0123456789abcdef 0000000000000000
             2400240044000000 060070170000000f 530065007200760065007200
             02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000",
        ),
    };
    let authenticate =
        hex("4e544c4d53535000 03000000 180018006c000000 5400540084000000 0c000c0048000000
         0800080054000000 100010005c000000 10001000d8000000 358288e2 0501280a0000000f
         44006f006d00610069006e00 5500730065007200 43004f004d0050005500540045005200
         86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa
         68cd0ab851e51c96aabc927bebef6a1c
         0101000000000000 0000000000000000 aaaaaaaaaaaaaaaa 00000000
         02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000 00000000
         c5dad2544fc9799094ce1ce90bc9d03e");
    let verdict = exchange.judge(&Provider, &authenticate, |user, domain| {
        assert_eq!((user, domain), ("User", "Domain"));
        Some(nt_hash(&Provider, "Password"))
    });
    let verdict = verdict.map_err(|refused| refused.reason).unwrap();
    assert_eq!(verdict.session_key, [0x55; 16]);
    assert_eq!(verdict.account.workstation, "COMPUTER");
    assert!(verdict.flags.contains(Flags::KEY_EXCHANGE | Flags::SIGN | Flags::SEAL));
    let wrong = exchange.judge(&Provider, &authenticate, |_, _| Some(nt_hash(&Provider, "word")));
    assert_eq!(wrong.err().unwrap().reason, Reason::WrongProof);
}

/// MS-NLMP §4.2.4.4, without the sealed message in front: its checksum is the one under a keystream
/// that begins with it.
#[test]
fn the_signature_of_the_specification() {
    let text: Vec<u8> = "Plaintext".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let plain = Signatures::new(&Provider, &[0x55; 16], Flags::SIGN).first(Role::Client, &text);
    assert_eq!(plain, bytes("01000000 70352851f2564309 00000000"));
    let mut sealed = [text, plain[4..12].to_vec()].concat();
    Provider.rc4(&bytes("59f600973cc4960a25480a7c196e4c58"), &mut sealed);
    assert_eq!(sealed[..18], hex("54e50165bf1936dc996020c1811b0f06fb5f"));
    assert_eq!(sealed[18..], hex("7fb38ec5c55d4976"));
}

/// The NTLM messages of a Windows client and server.
fn trace() -> (Exchange, Vec<u8>) {
    let exchange = Exchange {
        negotiate: hex(
            "4E544C4D5353500001000000978208E200000000000000000000000000000000060380250000000F",
        ),
        challenge: hex(
            "4E544C4D53535000020000000C000C003800000015828AE20D1D8BA31179D0080000000000000000
             50005000440000000A0092270000000F53005500540033003100310002000C005300550054003300
             3100310001000C0053005500540033003100310004000C0053005500540033003100310003000C00
             53005500540033003100310007000800A1A1F5ADCBAED00100000000",
        ),
    };
    let authenticate =
        hex("4E544C4D53535000030000001800180090000000EE00EE00A80000000C000C00580000001A001A00
         64000000120012007E0000001000100096010000158288E2060380250000000FECAC77A5F385A8BF
         9C38C706EEEDDCD353005500540033003100310061006400
         6D0069006E006900730074007200610074006F0072004400520049005600450052003300310031
         00000000000000000000000000000000000000000000000000
         63078EB639FE03E20A231C3AE3BF23080101000000000000A1A1F5ADCBAED001BC4AD05F223CC90F
         0000000002000C0053005500540033003100310001000C0053005500540033003100310004000C00
         53005500540033003100310003000C0053005500540033003100310007000800A1A1F5ADCBAED001
         06000400020000000800300030000000000000000000000000300000B61FEFCAA857EA57BF1EDCEB
         F8974B8E0EBA5A6DFD9D07A31D11B548F8C9D0CC0A00100000000000000000000000000000000000
         09001600630069006600730 02F00530055005400330031003100 000000000000000000000000
         3B9BDFF38F5EE8F9663F11A0F4C03A78");
    (exchange, authenticate)
}

#[test]
fn a_windows_client_is_let_in() {
    let (exchange, authenticate) = trace();
    let lookup = |_: &str, _: &str| Some(nt_hash(&Provider, "Password01!"));
    let verdict = exchange.judge(&Provider, &authenticate, lookup);
    let verdict = verdict.map_err(|refused| refused.reason).unwrap();
    assert_eq!(verdict.session_key, bytes("270E1BA896585EEB7AF3472D3B4C75A7"));
    let account = verdict.account;
    assert_eq!((&account.user[..], &account.domain[..]), ("administrator", "SUT311"));
    assert_eq!(account.workstation, "DRIVER311");

    // The codes over the list of mechanisms, of which there is one.
    let list = hex("300c060a2b06010401823702020a");
    let signatures = Signatures::new(&Provider, &verdict.session_key, verdict.flags);
    let client = signatures.first(Role::Client, &list);
    assert_eq!(client, bytes("0100000063775A9A5FD97F0600000000"));
    let server = signatures.first(Role::Server, &list);
    assert_eq!(server, bytes("010000003B453CDC3524164200000000"));
}

/// The MIC covers every bit of the three messages.
#[test]
fn no_bit_of_the_three_messages_can_change() {
    let (exchange, authenticate) = trace();
    let lookup = |_: &str, _: &str| Some(nt_hash(&Provider, "Password01!"));
    let is_refused = |exchange: &Exchange, authenticate: &[u8]| {
        exchange.judge(&Provider, authenticate, lookup).is_err()
    };
    assert!(!is_refused(&exchange, &authenticate));
    for at in 0..authenticate.len() {
        let mut changed = authenticate.clone();
        changed[at] ^= 0x10;
        assert!(is_refused(&exchange, &changed), "AUTHENTICATE, {at}");
    }
    for at in 0..exchange.negotiate.len() {
        let mut changed = exchange.clone();
        changed.negotiate[at] ^= 0x10;
        assert!(is_refused(&changed, &authenticate), "NEGOTIATE, {at}");
    }
    for at in 0..exchange.challenge.len() {
        let mut changed = exchange.clone();
        changed.challenge[at] ^= 0x10;
        assert!(is_refused(&changed, &authenticate), "CHALLENGE, {at}");
    }
}
