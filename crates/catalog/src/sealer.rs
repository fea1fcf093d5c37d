//! Sealing of password hashes: an NT hash is as good as the password, so the catalogue holds it
//! only encrypted, by a key outside the catalogue. Whoever has the database or a backup without the
//! key has no hash.
//!
//! The key is the file `smb.key` of the data directory, made when the first password is set.
//! AES-256-GCM binds each hash to the data directory and to the user's RID, so that a row that is
//! moved to another user opens nothing.

use crate::directory;
use crate::error::{CatalogError, IdentityError, Result};
use crate::identity::{SealedHash, User};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The file's name.
const FILE: &str = "smb.key";
/// The file's first line: its kind, and the version of its format. The key follows, in hexadecimal
/// digits.
const HEADER: &str = "weir-smb-key 1";
/// The version of a sealed hash, its first byte: nonce, encrypted hash and tag follow.
const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
/// Length of an NT hash, in bytes.
pub const NT_HASH_BYTES: usize = 16;

/// The sealer of one data directory.
pub struct Sealer {
    directory: PathBuf,
    /// The random name of the data directory.
    instance: String,
    /// The key, once there is one.
    key: OnceLock<LessSafeKey>,
    /// The reason why the file, which was there at the start, gave no key.
    fault: Option<KeyFault>,
    /// Held while the key is made.
    making: Mutex<()>,
}

/// Why a file gives no key.
enum KeyFault {
    /// It has another content than a key.
    Damaged,
    /// It cannot be read.
    Unreadable(Arc<io::Error>),
}

/// Why a sealed hash can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// There is no key.
    #[error(
        "smb.key is missing: restore it from a copy and restart the server, or set the passwords of all users again"
    )]
    NoKey,
    /// The file holds no key.
    #[error(
        "smb.key is damaged: restore it from a copy and restart the server, or remove it, restart the server, and set the passwords of all users again"
    )]
    Damaged,
    /// The file of the key could not be read at the start.
    #[error("smb.key cannot be read: check the file and its disk, and restart the server")]
    Unreadable,
    /// The hash was sealed by another key or for another user, or it is damaged.
    #[error(
        "the password was encrypted by another smb.key, or is damaged: restore that key and restart the server, or set the password again"
    )]
    OtherKey,
}

/// The text omits the key, so that no log contains it.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Sealer {
    /// The sealer of `directory`, whose random name is `instance`. A key that is damaged or cannot
    /// be read is found here, and refused when it is needed: it must not keep a server from
    /// starting.
    pub(crate) fn open_in(directory: &Path, instance: &str) -> Self {
        let key = match directory::read_if_there(directory, FILE) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => parsed(&text).map(Some).ok_or(KeyFault::Damaged),
            Err(CatalogError::Io { source, .. }) => Err(KeyFault::Unreadable(Arc::new(source))),
            Err(error) => Err(KeyFault::Unreadable(Arc::new(io::Error::other(error)))),
        };
        let (key, fault) = match key {
            Ok(key) => (key, None),
            Err(fault) => (None, Some(fault)),
        };
        Self {
            directory: directory.to_owned(),
            instance: instance.to_owned(),
            key: key.map_or_else(OnceLock::new, OnceLock::from),
            fault,
            making: Mutex::new(()),
        }
    }

    /// The sealer with the key in `text`, the content of such a file, which the cluster of this
    /// gateway has. Makes none if that is damaged.
    pub(crate) fn with_key(directory: &Path, instance: &str, text: &[u8]) -> Self {
        let (key, fault) = match parsed(text) {
            Some(key) => (OnceLock::from(key), None),
            None => (OnceLock::new(), Some(KeyFault::Damaged)),
        };
        let (directory, instance) = (directory.to_owned(), instance.to_owned());
        Self { directory, instance, key, fault, making: Mutex::new(()) }
    }

    /// The content of a file with a new key.
    ///
    /// # Errors
    /// `Io` if the kernel has no random numbers.
    pub(crate) fn new_key() -> Result<Vec<u8>> {
        Ok(written(&directory::random::<KEY_BYTES>()?).into_bytes())
    }

    /// The number of `users` whose passwords cannot be opened, and the reason for the first of
    /// them.
    pub(crate) fn shut<'a>(
        &self,
        users: impl IntoIterator<Item = &'a Arc<User>>,
    ) -> Option<(usize, Unsealed)> {
        let refused = |user: &Arc<User>| self.open(user.rid, user.password.as_ref()?).err();
        let mut refusals = users.into_iter().filter_map(refused);
        let first = refusals.next()?;
        Some((1 + refusals.count(), first))
    }

    /// Seals the NT hash of the user with this RID. Makes the key if there is none.
    ///
    /// # Errors
    /// `BadSmbKey`, `SmbKeyUnreadable`, `Io`.
    pub fn seal(&self, rid: u32, nt_hash: &[u8; NT_HASH_BYTES]) -> Result<SealedHash> {
        let key = self.key_or_new()?;
        let random = directory::random::<NONCE_LEN>()?;
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&random);
        let mut text = nt_hash.to_vec();
        let failed = |error| directory::at(&self.directory)(io::Error::other(error));
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(self.bound_to(rid)),
            &mut text,
        )
        .map_err(failed)?;
        Ok(SealedHash([&[VERSION][..], &nonce, &text].concat().into()))
    }

    /// The NT hash of the user with this RID. Reads no file.
    ///
    /// # Errors
    /// [`Unsealed`].
    pub fn open(
        &self,
        rid: u32,
        sealed: &SealedHash,
    ) -> std::result::Result<[u8; NT_HASH_BYTES], Unsealed> {
        let missing = || match self.fault {
            None => Unsealed::NoKey,
            Some(KeyFault::Damaged) => Unsealed::Damaged,
            Some(KeyFault::Unreadable(_)) => Unsealed::Unreadable,
        };
        let key = self.key.get().ok_or_else(missing)?;
        let (&version, rest) = sealed.0.split_first().ok_or(Unsealed::OtherKey)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(Unsealed::OtherKey)?;
        if version != VERSION {
            return Err(Unsealed::OtherKey);
        }
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut text = text.to_vec();
        let opened = key.open_in_place(nonce, Aad::from(self.bound_to(rid)), &mut text);
        let hash = opened.map_err(|_| Unsealed::OtherKey)?;
        <[u8; NT_HASH_BYTES]>::try_from(&*hash).map_err(|_| Unsealed::OtherKey)
    }

    /// The circumstances that a sealed hash belongs to: version, data directory and user.
    fn bound_to(&self, rid: u32) -> Vec<u8> {
        [&[VERSION][..], b"weir nt hash\0", self.instance.as_bytes(), b"\0", &rid.to_le_bytes()]
            .concat()
    }

    fn key_or_new(&self) -> Result<&LessSafeKey> {
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        if let Some(fault) = self.fault() {
            return Err(fault.into());
        }
        let text = directory::read_or_make(&self.directory, FILE, Self::new_key)?;
        let bad = || IdentityError::BadSmbKey { path: self.path() };
        let key = parsed(&text).ok_or_else(bad)?;
        Ok(self.key.get_or_init(|| key))
    }

    /// The fault that the file had at the start.
    pub(crate) fn fault(&self) -> Option<IdentityError> {
        let path = self.path();
        Some(match self.fault.as_ref()? {
            KeyFault::Damaged => IdentityError::BadSmbKey { path },
            KeyFault::Unreadable(source) => {
                IdentityError::SmbKeyUnreadable { path, source: Arc::clone(source) }
            }
        })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }
}

fn written(key: &[u8]) -> String {
    let mut text = format!("{HEADER}\n");
    // Writing to a text never fails.
    let _never = key.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
    text.push('\n');
    text
}

fn parsed(text: &[u8]) -> Option<LessSafeKey> {
    let (header, rest) = std::str::from_utf8(text).ok()?.split_once('\n')?;
    let digits = rest.strip_suffix('\n')?;
    if header != HEADER || digits.len() != 2 * KEY_BYTES || !digits.is_ascii() {
        return None;
    }
    let mut key = [0; KEY_BYTES];
    for (byte, place) in key.iter_mut().zip((0..digits.len()).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(place..place + 2)?, 16).ok()?;
    }
    UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CatalogError;
    use std::os::unix::fs::PermissionsExt;

    const HASH: [u8; NT_HASH_BYTES] = *b"0123456789abcdef";

    fn sealer(directory: &Path) -> Sealer {
        Sealer::open_in(directory, "aaaa")
    }

    #[test]
    fn a_hash_is_opened_for_its_user_also_after_a_restart() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(FILE);
        let first = sealer(base.path());
        assert!(!path.exists(), "it is made when it is needed");
        let sealed = first.seal(1000, &HASH).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(first.open(1000, &sealed), Ok(HASH));
        assert_eq!(sealer(base.path()).open(1000, &sealed), Ok(HASH));
        assert_ne!(first.seal(1000, &HASH).unwrap(), sealed, "the nonce is another");
        assert!(!sealed.0.windows(4).any(|part| HASH.windows(4).any(|clear| clear == part)));
    }

    #[test]
    fn a_moved_or_changed_hash_or_another_key_opens_nothing() {
        let (base, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ours = sealer(base.path());
        let sealed = ours.seal(1000, &HASH).unwrap();
        assert_eq!(ours.open(1001, &sealed), Err(Unsealed::OtherKey));
        let elsewhere = Sealer::open_in(base.path(), "bbbb");
        assert_eq!(elsewhere.open(1000, &sealed), Err(Unsealed::OtherKey));
        for place in 0..sealed.0.len() {
            let mut changed = sealed.clone();
            changed.0[place] ^= 1;
            assert_eq!(ours.open(1000, &changed), Err(Unsealed::OtherKey), "{place}");
            let cut = SealedHash(sealed.0[..place].into());
            assert_eq!(ours.open(1000, &cut), Err(Unsealed::OtherKey), "{place}");
        }
        let theirs = sealer(other.path());
        assert_eq!(theirs.open(1000, &sealed), Err(Unsealed::NoKey));
        theirs.seal(1000, &HASH).unwrap();
        assert_eq!(theirs.open(1000, &sealed), Err(Unsealed::OtherKey));
    }

    #[test]
    fn a_damaged_key_is_refused_and_not_replaced() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(FILE);
        let sealed = sealer(base.path()).seal(1000, &HASH).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let cut = &whole[..whole.len() - 2];
        for text in ["", "x", cut, &whole.replace("key 1", "key 2"), &whole.replace('\n', " ")] {
            std::fs::write(&path, text).unwrap();
            let damaged = sealer(base.path());
            assert_eq!(damaged.open(1000, &sealed), Err(Unsealed::Damaged));
            let refused = damaged.seal(1000, &HASH);
            assert!(matches!(
                refused,
                Err(CatalogError::Identity(IdentityError::BadSmbKey { .. }))
            ));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(sealer(base.path()).open(1000, &sealed), Ok(HASH));
    }

    #[test]
    fn a_key_that_was_put_back_meanwhile_is_taken() {
        let (base, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sealed = sealer(base.path()).seal(1000, &HASH).unwrap();
        let later = sealer(other.path());
        std::fs::copy(base.path().join(FILE), other.path().join(FILE)).unwrap();
        later.seal(1001, &HASH).unwrap();
        assert_eq!(later.open(1000, &sealed), Ok(HASH));
    }

    #[test]
    fn no_debug_text_has_a_secret() {
        let base = tempfile::tempdir().unwrap();
        let sealer = sealer(base.path());
        let sealed = sealer.seal(1000, &HASH).unwrap();
        let key = std::fs::read_to_string(base.path().join(FILE)).unwrap();
        let text = format!("{sealer:?} {sealed:?}");
        assert!(!text.contains(key.lines().nth(1).unwrap()), "{text}");
        assert!(text.ends_with(" SealedHash"), "{text}");
    }
}
