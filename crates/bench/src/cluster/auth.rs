//! The secret that a listening worker and its coordinators share, and how each proves to the other
//! that it has it: by HMAC-SHA-256 over numbers that both have drawn for this one connection. The
//! secret never crosses the wire. What is said afterwards is neither encrypted nor signed.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use weir_load::error::BenchError;

/// Least and most bytes of a secret.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;

/// A shared secret.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The party that proves: neither's proof can be given for the other's.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// The party that asks for load.
    Coordinator,
    /// The party that applies the load.
    Worker,
}

/// A number drawn once, for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; 32]);

/// A proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag([u8; 32]);

impl Nonce {
    /// From the kernel.
    ///
    /// # Errors
    /// [`BenchError::Local`] if it gives none.
    pub fn fresh() -> Result<Self, BenchError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| BenchError::Local {
            what: "drawing a random number",
            source: error.into(),
        })?;
        Ok(Self(bytes))
    }
}

impl Token {
    /// The secret in `bytes`, blanks around it left out.
    ///
    /// # Errors
    /// [`BenchError::Peer`] if it is too short to be one, or too long.
    pub fn new(bytes: &[u8]) -> Result<Self, BenchError> {
        let secret = bytes.trim_ascii();
        if TOKEN_BYTES.contains(&secret.len()) {
            return Ok(Self(secret.to_vec()));
        }
        Err(BenchError::Peer(format!(
            "the token has {} bytes; it must have from {} to {}, as from `head -c 32 /dev/urandom \
             | base64`",
            secret.len(),
            TOKEN_BYTES.start(),
            TOKEN_BYTES.end()
        )))
    }

    /// The secret in the file at `path`, which nobody but its owner may read.
    ///
    /// # Errors
    /// [`BenchError::Path`] or [`BenchError::Peer`] says what to do.
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let refused = |source| BenchError::Path {
            path: path.to_owned(),
            source,
            hint: ": --secret-file requires a file with the workers' secret",
        };
        let file = File::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.permissions().mode() & 0o077 != 0 {
            let path = path.display();
            return Err(BenchError::Peer(format!(
                "others may read the token in {path}: chmod 600 {path}"
            )));
        }
        let mut bytes = Vec::new();
        // A little more than the bound, so that what is over it is seen to be.
        let most = u64::try_from(TOKEN_BYTES.end() + 1024).unwrap_or(u64::MAX);
        file.take(most).read_to_end(&mut bytes).map_err(refused)?;
        Self::new(&bytes)
    }

    /// The proof of `role` about the numbers of both.
    #[must_use]
    pub fn prove(&self, role: Role, coordinator: Nonce, worker: Nonce) -> Tag {
        Tag(self.mac(role, coordinator, worker).finalize().into_bytes().into())
    }

    /// Is `tag` that proof? Takes as long for any wrong one.
    #[must_use]
    pub fn accepts(&self, tag: Tag, role: Role, coordinator: Nonce, worker: Nonce) -> bool {
        self.mac(role, coordinator, worker).verify_slice(&tag.0).is_ok()
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn mac(&self, role: Role, coordinator: Nonce, worker: Nonce) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length");
        mac.update(b"weir bench workers 1");
        mac.update(&[role as u8]);
        mac.update(&coordinator.0);
        mac.update(&worker.0);
        mac
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

macro_rules! as_hex {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&hex(&self.0))
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let refused = || serde::de::Error::custom("not 64 hexadecimal digits");
                unhex(&text).map($type).ok_or_else(refused)
            }
        }
    };
}

as_hex!(Nonce);
as_hex!(Tag);

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_proof_holds_for_its_secret_role_and_connection_alone() {
        let (own, other) = (token("0123456789abcdef"), token("0123456789abcdeg"));
        let (a, b) = (Nonce([1; 32]), Nonce([2; 32]));
        let tag = own.prove(Role::Coordinator, a, b);
        assert!(own.accepts(tag, Role::Coordinator, a, b));
        assert!(!own.accepts(tag, Role::Worker, a, b));
        assert!(!own.accepts(tag, Role::Coordinator, b, a));
        assert!(!own.accepts(tag, Role::Coordinator, a, Nonce([3; 32])));
        assert!(!other.accepts(tag, Role::Coordinator, a, b));
        assert_ne!(Nonce::fresh().unwrap(), Nonce::fresh().unwrap());
    }

    #[test]
    fn secrets_are_long_enough_and_never_shown() {
        assert_eq!(format!("{:?}", token(" 0123456789abcdef\n")), "Token(…)");
        assert_eq!(token(" 0123456789abcdef\n").0, b"0123456789abcdef");
        let error = Token::new(b"too short").unwrap_err().to_string();
        assert!(error.contains("9 bytes") && !error.contains("too short"), "{error}");
        Token::new(&[b'x'; 5000]).unwrap_err();
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789abcdef\n").unwrap();
        let mode = |mode| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(0o640);
        let error = Token::read(file.path()).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        mode(0o600);
        assert_eq!(Token::read(file.path()).unwrap().0.len(), 16);
        assert!(Token::read(Path::new("/absent/token")).is_err());
    }

    #[test]
    fn tags_cross_as_hexadecimal_digits_only() {
        let tag = Tag([0xa5; 32]);
        let json = serde_json::to_string(&tag).unwrap();
        assert_eq!(serde_json::from_str::<Tag>(&json).unwrap(), tag);
        for wrong in ["\"a5\"", "5", &format!("\"{}\"", "+1".repeat(32))] {
            assert!(serde_json::from_str::<Tag>(wrong).is_err(), "{wrong}");
        }
    }
}
