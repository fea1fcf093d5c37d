//! Tokens of the API: who has one, with which role, until when. They are kept in the file
//! `api.tokens` of the data directory, as hashes. Not what a role may do, which is the API's.
//!
//! Tokens are no part of the catalogue, so no backup of a server has them and no restore brings
//! back one that was revoked. That of a cluster has them for the case that etcd loses its own. A
//! token is 256 random bits, so its plain SHA-256 can't be guessed back: a slow hash would add
//! nothing.
//!
//! In a cluster the store that the gateways share has them, as a sealed secret; only `api.token` is
//! of each gateway.

use crate::cluster::{Secret, Vault};
use crate::directory;
use crate::error::{CatalogError, ClusterError, Result, Thing};
use crate::limits::TOKENS_MAX;
use crate::names;
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// How often tokens are changed again because another gateway was faster.
const ATTEMPTS: usize = 16;
/// The file's name.
const FILE: &str = "api.tokens";
/// The file's first line: its kind, and the version of its format.
const HEADER: &str = "weir-tokens 1";
/// The prefix of a token, by which people and scanners know one when they see it.
const PREFIX: &str = "weir-";
/// The name of the token in the file `api.token`, which is not among these.
const FIRST: &str = "api.token";

/// The rights of a token; each role has all those of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Viewer,
    /// Change levels, pools, volumes and export rules.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The word for it in the file.
    const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// A token without its secret, which the server does not store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token's name.
    pub name: String,
    /// The token's role.
    pub role: Role,
    /// Time at which the token was made, in seconds since 1970.
    pub created: u64,
    /// Time from which the token is invalid, in seconds since 1970, if it expires.
    pub expires: Option<u64>,
}

/// Why a secret opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// No token has the secret.
    Unknown,
    /// The token has expired.
    Expired(Token),
}

type Hash = [u8; 32];

#[derive(Clone)]
struct Kept {
    token: Token,
    hash: Hash,
}

/// The tokens of one data directory. One server at a time has them, by the lock of the catalogue.
pub struct Tokens {
    directory: PathBuf,
    /// The secrets of the cluster, where they are in it.
    vault: Option<Vault>,
    /// Held while they are changed.
    changing: Mutex<()>,
    /// The hash of what is in `api.token`: an administrator's, without an end.
    first: Hash,
    /// The tokens by name.
    kept: RwLock<Arc<Vec<Kept>>>,
    /// The revision in the store of the cluster at which they were written.
    revision: AtomicU64,
}

/// The text leaves the hashes out, so that no log can have them.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens of `directory`, where `api.token` is made if there is none.
    ///
    /// # Errors
    /// `BadToken`, `DamagedTokens`, `Io`.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        Self::with(directory, None)
    }

    /// The tokens of a cluster, and the `api.token` of `directory`.
    ///
    /// # Errors
    /// `BadToken`, `DamagedTokens`, `Io`, `WrongKey`, `Unreachable`.
    pub(crate) fn open_in_cluster(directory: &Path, vault: Vault) -> Result<Self> {
        Self::with(directory, Some(vault))
    }

    fn with(directory: &Path, vault: Option<Vault>) -> Result<Self> {
        let first = hash(directory::token(directory)?.as_bytes());
        let (directory, changing) = (directory.to_owned(), Mutex::new(()));
        let (kept, revision) = (RwLock::default(), AtomicU64::new(0));
        let tokens = Self { directory, vault, changing, first, kept, revision };
        tokens.publish(tokens.latest()?);
        Ok(tokens)
    }

    /// Takes over what other gateways of the cluster changed.
    ///
    /// # Errors
    /// `DamagedTokens`, `WrongKey`, `Unreachable`.
    pub fn follow(&self) -> Result<()> {
        if self.vault.is_some() {
            let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            self.publish(self.latest()?);
        }
        Ok(())
    }

    /// The revision in the store of the cluster at which the tokens that are in force were written;
    /// 0 if it has none, and without a cluster.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Creates a token and returns its secret, which cannot be read again.
    ///
    /// # Errors
    /// `BadName`, `NameTaken`, `TooMany`, `Io`; those of a change of the cluster.
    pub fn create(&self, token: Token) -> Result<String> {
        names::check(Thing::Token, &token.name)?;
        let secret = format!("{PREFIX}{}", directory::random_digits()?);
        let new = Kept { token, hash: hash(secret.as_bytes()) };
        self.change(|kept| {
            let name = &new.token.name;
            if name == FIRST || kept.iter().any(|kept| kept.token.name == *name) {
                let name = name.clone();
                return Err(CatalogError::NameTaken { thing: Thing::Token, name });
            }
            if kept.len() >= TOKENS_MAX {
                return Err(CatalogError::TooMany { thing: Thing::Token, max: TOKENS_MAX });
            }
            kept.push(new.clone());
            kept.sort_by(|left, right| left.token.name.cmp(&right.token.name));
            Ok(())
        })?;
        Ok(secret)
    }

    /// Makes a token good for nothing, from the next request on; in a cluster as soon as each
    /// gateway follows.
    ///
    /// # Errors
    /// `NoSuch`, `Io`; those of a change of the cluster.
    pub fn revoke(&self, name: &str) -> Result<Token> {
        self.change(|kept| {
            let Some(place) = kept.iter().position(|kept| kept.token.name == name) else {
                let name = names::printable(name);
                return Err(CatalogError::NoSuch { thing: Thing::Token, name });
            };
            Ok(kept.remove(place).token)
        })
    }

    /// Stores the tokens after `change`, and publishes them.
    fn change<T>(&self, change: impl Fn(&mut Vec<Kept>) -> Result<T>) -> Result<T> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS {
            let (mut next, at) = match &self.vault {
                None => (self.now().to_vec(), 0),
                Some(_) => self.latest()?,
            };
            let done = change(&mut next)?;
            let text = written(&next);
            let stored = match &self.vault {
                None => {
                    directory::write_whole(&self.directory, FILE, text.as_bytes())?;
                    Some(at)
                }
                Some(vault) => vault.replace(Secret::Tokens, text.as_bytes(), at)?,
            };
            if let Some(revision) = stored {
                self.publish((next, revision));
                return Ok(done);
            }
        }
        Err(ClusterError::Overtaken.into())
    }

    /// The tokens where they are kept, with their revision in the store of the cluster.
    fn latest(&self) -> Result<(Vec<Kept>, u64)> {
        let Some(vault) = &self.vault else { return Ok((read(&self.directory)?, 0)) };
        let Some((bytes, at)) = vault.read(Secret::Tokens)? else { return Ok((Vec::new(), 0)) };
        let path = PathBuf::from(Secret::Tokens.path());
        let text = String::from_utf8(bytes).unwrap_or_default();
        Ok((all_parsed(&text).ok_or(CatalogError::DamagedTokens { path })?, at))
    }

    fn publish(&self, (kept, revision): (Vec<Kept>, u64)) {
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(kept);
        self.revision.store(revision, Ordering::Release);
    }

    /// All tokens by name, also those that have expired, but for the one in `api.token`.
    #[must_use]
    pub fn list(&self) -> Vec<Token> {
        self.now().iter().map(|kept| kept.token.clone()).collect()
    }

    /// The token with `secret`, at `now` (seconds since 1970). Compares all tokens, and all of each
    /// hash, wherever they differ: the time that it takes tells nothing.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub fn admit(&self, secret: &[u8], now: u64) -> std::result::Result<Token, NotAdmitted> {
        let given = hash(secret);
        let kept = self.now();
        let mut found = None;
        for one in kept.iter() {
            if same(&one.hash, &given) {
                found = Some(&one.token);
            }
        }
        if same(&self.first, &given) {
            let (name, role) = (FIRST.to_owned(), Role::Admin);
            return Ok(Token { name, role, created: 0, expires: None });
        }
        let token = found.ok_or(NotAdmitted::Unknown)?;
        match token.expires {
            Some(end) if now >= end => Err(NotAdmitted::Expired(token.clone())),
            _ => Ok(token.clone()),
        }
    }

    fn now(&self) -> Arc<Vec<Kept>> {
        Arc::clone(&self.kept.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn hash(secret: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, secret).as_ref());
    hash
}

fn same(left: &Hash, right: &Hash) -> bool {
    let differing = left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right));
    std::hint::black_box(differing) == 0
}

/// Does the file of tokens in `directory`, if there is one, make sense?
pub(crate) fn look(directory: &Path) -> Result<()> {
    read(directory).map(drop)
}

fn read(directory: &Path) -> Result<Vec<Kept>> {
    let path = directory.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(directory::at(&path)(error)),
    };
    all_parsed(&text).ok_or(CatalogError::DamagedTokens { path })
}

/// The tokens in the content of a file.
fn all_parsed(text: &str) -> Option<Vec<Kept>> {
    let (_, lines) = text.split_once('\n').filter(|(header, _)| *header == HEADER)?;
    lines.lines().map(parsed).collect()
}

/// A line for each token: name, role, when made, when it ends or `-`, hash.
fn written(tokens: &[Kept]) -> String {
    let mut text = format!("{HEADER}\n");
    for Kept { token: Token { name, role, created, expires }, hash } in tokens {
        let end = expires.map_or_else(|| "-".to_owned(), |end| end.to_string());
        text += &format!("{name} {} {created} {end} ", role.word());
        // Writing to a text never fails.
        let _never = hash.iter().try_for_each(|byte| write!(text, "{byte:02x}"));
        text.push('\n');
    }
    text
}

fn parsed(line: &str) -> Option<Kept> {
    let [name, role, created, end, digits] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    names::check(Thing::Token, name).ok()?;
    let role = Role::ALL.into_iter().find(|one| one.word() == role)?;
    let expires = if end == "-" { None } else { Some(end.parse().ok()?) };
    let token = Token { name: name.to_owned(), role, created: created.parse().ok()?, expires };
    Some(Kept { token, hash: unhex(digits)? })
}

fn unhex(digits: &str) -> Option<Hash> {
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, place) in hash.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(place..place + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, role: Role, expires: Option<u64>) -> Token {
        Token { name: name.to_owned(), role, created: 100, expires }
    }

    #[test]
    fn a_token_is_good_until_it_is_revoked_or_ends_also_after_a_restart() {
        let base = tempfile::tempdir().unwrap();
        let (long, short) = {
            let tokens = Tokens::open(base.path()).unwrap();
            let long = tokens.create(token("long", Role::Operator, None)).unwrap();
            let short = tokens.create(token("short", Role::Viewer, Some(200))).unwrap();
            assert!(long.starts_with("weir-") && long.len() == 69 && long != short);
            (long, short)
        };
        let tokens = Tokens::open(base.path()).unwrap();
        let names = |tokens: &Tokens| -> Vec<_> {
            tokens.list().into_iter().map(|token| token.name).collect()
        };
        assert_eq!(names(&tokens), ["long", "short"]);
        let role = |secret: &str, now| tokens.admit(secret.as_bytes(), now).map(|one| one.role);
        assert_eq!(role(&long, 10_000), Ok(Role::Operator));
        assert_eq!(role(&short, 199), Ok(Role::Viewer));
        let ended = token("short", Role::Viewer, Some(200));
        assert_eq!(role(&short, 200), Err(NotAdmitted::Expired(ended)));
        for wrong in ["", "weir-", &long[..68], &format!("{long}0"), &long.to_uppercase()] {
            assert_eq!(role(wrong, 0), Err(NotAdmitted::Unknown), "{wrong}");
        }
        tokens.revoke("long").unwrap();
        assert_eq!(role(&long, 0), Err(NotAdmitted::Unknown));
        assert_eq!(names(&Tokens::open(base.path()).unwrap()), ["short"]);
        assert!(matches!(tokens.revoke("long"), Err(CatalogError::NoSuch { .. })));
    }

    #[test]
    fn tokens_of_weir_0_1_0_are_valid() {
        let base = tempfile::tempdir().unwrap();
        let file = include_str!("../tests/fixtures/api.tokens");
        std::fs::write(base.path().join(FILE), file).unwrap();
        let tokens = Tokens::open(base.path()).unwrap();
        let role = |secret: &[u8]| tokens.admit(secret, 1_800_000_000).map(|token| token.role);
        let ci = b"weir-552d56aba8f4225654ad45024da797f1dcc9da203c62fd2c4532d345eea4099f";
        let view = b"weir-b41739220d0efbdd1d08764d8462a148f64a3eb4b4cb7c2912ba96ae6fd9222c";
        assert_eq!((role(ci), role(view)), (Ok(Role::Operator), Ok(Role::Viewer)));
        tokens.revoke("view").unwrap();
        let text = std::fs::read_to_string(base.path().join(FILE)).unwrap();
        assert!(file.starts_with(&text), "the other line is written as it was: {text}");
    }

    #[test]
    fn the_file_holds_no_secret_and_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(base.path()).unwrap();
        let secret = tokens.create(token("a", Role::Admin, None)).unwrap();
        let path = base.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("weir-tokens 1\na admin 100 - "), "{text}");
        assert!(!text.contains(secret.trim_start_matches(PREFIX)));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{tokens:?}").contains(text.split(' ').next_back().unwrap().trim()));
    }

    #[test]
    fn the_token_of_the_data_directory_is_an_administrators() {
        let base = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(base.path()).unwrap();
        let text = std::fs::read_to_string(base.path().join("api.token")).unwrap();
        let admitted = tokens.admit(text.trim().as_bytes(), 0).unwrap();
        assert_eq!((admitted.name.as_str(), admitted.role), ("api.token", Role::Admin));
        let taken = tokens.create(token("api.token", Role::Viewer, None));
        assert!(matches!(taken, Err(CatalogError::NameTaken { .. })));
    }

    #[test]
    fn names_are_checked_and_tokens_bounded() {
        let base = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(base.path()).unwrap();
        let bad = tokens.create(token("a b", Role::Viewer, None));
        assert!(matches!(bad, Err(CatalogError::BadName { .. })));
        for number in 0..TOKENS_MAX {
            tokens.create(token(&format!("t{number}"), Role::Viewer, None)).unwrap();
        }
        assert!(matches!(
            tokens.create(token("t0", Role::Viewer, None)),
            Err(CatalogError::NameTaken { .. })
        ));
        assert!(matches!(
            tokens.create(token("more", Role::Viewer, None)),
            Err(CatalogError::TooMany { .. })
        ));
    }

    #[test]
    fn a_damaged_file_is_refused_and_not_taken_for_an_empty_one() {
        let base = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(base.path()).unwrap();
        tokens.create(token("a", Role::Admin, Some(7))).unwrap();
        let path = base.path().join(FILE);
        let whole = std::fs::read_to_string(&path).unwrap();
        let cut = &whole[..whole.len() - 2];
        let later = whole.replace("weir-tokens 1", "weir-tokens 2");
        let role = whole.replace(" admin ", " king ");
        for text in ["", "x", cut, &later, &role, &whole.replace("100 7", "100")] {
            std::fs::write(&path, text).unwrap();
            let refused = Tokens::open(base.path());
            assert!(matches!(refused, Err(CatalogError::DamagedTokens { .. })), "{text:?}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(Tokens::open(base.path()).unwrap().list(), tokens.list());
    }
}
