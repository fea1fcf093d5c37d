//! Key derivation, signing and sealing with the provider, against traces that Microsoft published
//! (the articles "SMB 2 and SMB 3 security in Windows 10", "Encryption in SMB 3.0" and "SMB 3.1.1
//! Encryption in Windows 10") and against OpenSSL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod keys;
mod sealing;
mod signing;

use weir_crypto::Provider;

/// The key that authentication left in the trace of [`keys`], and the hash before authentication.
const SESSION_KEY: &str = "270E1BA896585EEB7AF3472D3B4C75A7";
const PREAUTH: &str = "0DD13628CC3ED218EF9DF9772D436D0887AB9814BFAE63A80AA845F36909DB79
    28622DDDAD522D9751640A459762C5A9D6BB084CBB3CE6BDADEF5D5BCE3C6C01";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    hex(text).try_into().unwrap()
}
