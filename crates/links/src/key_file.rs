//! The key file of a cluster: a secret that all its gateways have, and nobody else.

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The word that such a file begins with, and the version of its format.
const HEAD: &str = "weir-cluster-key 1 ";
/// Bytes of the secret.
const KEY_BYTES: usize = 32;
/// A key file is read to this length: more than any has.
const FILE_BYTES_MAX: u64 = 1024;
/// The use of the key that seals the secrets of the catalogue.
const SECRETS: &[u8] = b"secrets of the catalogue";
/// Permissions of others, which a key file must not have.
const OTHERS: u32 = 0o077;

/// The secret of a cluster, of which each use has a key of its own.
#[derive(Clone)]
pub struct KeyFile([u8; KEY_BYTES]);

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be created, read or written.
    #[error("the key file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Others than its owner may read or write it.
    #[error(
        "the key file {0} may be used by others than its owner (mode {mode:03o}): chmod 600 {0}",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is no key file, or one of a format that this version does not know.
    #[error("{} is no key file of a cluster in a format that this program knows", .0.display())]
    Malformed(PathBuf),
    /// The kernel gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl KeyFile {
    /// Makes a new secret and writes it to `path`, which must not exist. Only its owner may read
    /// it.
    ///
    /// # Errors
    /// The file exists or cannot be written, or there are no random numbers.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let mut key = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut key).map_err(|_| KeyFileError::NoRandomness)?;
        let made = Self(key);
        made.write(path).map_err(|source| KeyFileError::Io { path: path.into(), source })?;
        Ok(made)
    }

    /// Reads the secret from `path`.
    ///
    /// # Errors
    /// The file cannot be read, may be read by others, or is no key file.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let fault = |source| KeyFileError::Io { path: path.into(), source };
        let file = File::open(path).map_err(fault)?;
        let mode = file.metadata().map_err(fault)?.mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(KeyFileError::Open { path: path.into(), mode });
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(fault)?;
        Self::parse(&bytes).ok_or_else(|| KeyFileError::Malformed(path.into()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let digits = text.strip_prefix(HEAD)?.strip_suffix('\n')?;
        if digits.len() != 2 * KEY_BYTES {
            return None;
        }
        let mut key = [0; KEY_BYTES];
        for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let digit = |at: usize| pair.get(at).and_then(|digit| char::from(*digit).to_digit(16));
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(key))
    }

    /// Writes the file, and replaces none. A process that ends meanwhile leaves one that
    /// [`KeyFile::read`] refuses.
    fn write(&self, path: &Path) -> io::Result<()> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        let written = writeln!(file, "{HEAD}{digits}")
            .and_then(|()| file.sync_all())
            .and_then(|()| File::open(parent.unwrap_or(Path::new(".")))?.sync_all());
        if written.is_err() {
            std::fs::remove_file(path)?;
        }
        written
    }

    /// The key that seals the secrets which the gateways share through a store.
    #[must_use]
    pub fn for_secrets(&self) -> [u8; KEY_BYTES] {
        self.derive(SECRETS)
    }

    /// The key for `purpose`. It tells nothing of the secret nor of the keys for other purposes: it
    /// is the first block of the expansion of HKDF with SHA-256 (RFC 5869, section 2.3).
    pub(crate) fn derive(&self, purpose: &[u8]) -> [u8; KEY_BYTES] {
        let mut block = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        block.update(purpose);
        block.update(&[1]);
        let mut key = [0; KEY_BYTES];
        key.copy_from_slice(block.sign().as_ref());
        key
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFile(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_read_back_and_belongs_to_its_owner_alone() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("cluster.key");
        let made = KeyFile::create(&path).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap().0, made.0);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1, "nothing else is left");
        let other = KeyFile::create(&base.path().join("other.key")).unwrap();
        assert_ne!(other.0, made.0);
    }

    #[test]
    fn a_secret_is_never_replaced() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("cluster.key");
        let made = KeyFile::create(&path).unwrap();
        let error = KeyFile::create(&path).unwrap_err().to_string();
        assert!(error.contains("cluster.key") && error.contains("exists"), "{error}");
        assert_eq!(KeyFile::read(&path).unwrap().0, made.0);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("cluster.key");
        KeyFile::create(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = KeyFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("chmod 600"), "{error}");
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let digits = "0a".repeat(KEY_BYTES);
        assert!(KeyFile::parse(format!("{HEAD}{digits}\n").as_bytes()).is_some());
        let wrong = [
            String::new(),
            format!("{HEAD}{digits}"),
            format!("{HEAD}{digits}0\n"),
            format!("{HEAD}{}\n", "0a".repeat(KEY_BYTES - 1)),
            format!("{HEAD}{}\n", "+a".repeat(KEY_BYTES)),
            format!("weir-cluster-key 2 {digits}\n"),
            format!("{HEAD}{}\n", "ä".repeat(KEY_BYTES)),
        ];
        for text in wrong {
            assert!(KeyFile::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(KeyFile::parse(&[0xff; 90]).is_none());
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own() {
        let (one, other) = (KeyFile([1; KEY_BYTES]), KeyFile([2; KEY_BYTES]));
        assert_eq!(one.derive(b"a"), one.derive(b"a"));
        assert_ne!(one.derive(b"a"), one.derive(b"b"));
        assert_ne!(one.derive(b"a"), other.derive(b"a"));
        assert_ne!(one.for_secrets(), other.for_secrets());
        assert_eq!(format!("{one:?}"), "KeyFile(..)");
    }
}
