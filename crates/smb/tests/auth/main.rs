//! Logins with the provider: against published vectors, against our own client, and against clients
//! made by hand that break one rule each.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod forge;
mod hostile;
mod lists;
mod login;
mod vectors;

use std::sync::Arc;
use weir_crypto::Provider;
use weir_smb::auth::ntlm::ServerNames;
use weir_smb::auth::{Acceptor, Account, Login, Next, NtHash, Reason, Refused, nt_hash};

/// The time of every login, as a FILETIME.
const NOW: u64 = 0x01D0_AECB_ADF5_A1A1;
const USER: &str = "Ada";
const PASSWORD: &str = "correct horse";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn acceptor() -> Acceptor {
    Acceptor::new(Arc::new(ServerNames::new("WEIR", "weir.example").unwrap()))
}

/// A directory of one user with a password and one without.
fn lookup(user: &str, _domain: &str) -> Option<NtHash> {
    user.eq_ignore_ascii_case(USER).then(|| nt_hash(&Provider, PASSWORD))
}

fn step(acceptor: &mut Acceptor, token: &[u8]) -> Next {
    acceptor.step(&Provider, token, NOW, lookup)
}

fn goes_on(next: Next) -> Vec<u8> {
    match next {
        Next::Continue(token) => token,
        Next::Done(_) => panic!("done"),
        Next::Refused(refused) => panic!("{refused:?}"),
    }
}

fn done(next: Next) -> Login {
    match next {
        Next::Done(login) => login,
        Next::Continue(_) => panic!("not done"),
        Next::Refused(refused) => panic!("{refused:?}"),
    }
}

fn refused(next: Next) -> Refused {
    match next {
        Next::Refused(refused) => refused,
        Next::Continue(_) => panic!("goes on"),
        Next::Done(login) => panic!("let in: {:?}", login.account),
    }
}

fn reason(next: Next) -> Reason {
    refused(next).reason
}

fn account(user: &str) -> Account {
    Account { user: user.into(), domain: "WEIR".into(), workstation: "DESK".into() }
}
