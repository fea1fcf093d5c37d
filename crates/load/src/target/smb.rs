//! An SMB share as a target.

use super::{Addresses, resolve_all};
use crate::error::BenchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The port of SMB over TCP (MS-SMB2 §2.1).
const SMB_PORT: u16 = 445;

/// The protection of a session's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmbSecurity {
    /// None, beyond the login.
    None,
    /// Signatures.
    #[default]
    Sign,
    /// Encryption.
    Seal,
}

impl SmbSecurity {
    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "unsigned",
            Self::Sign => "signed",
            Self::Seal => "encrypted",
        }
    }
}

/// A password. It is neither shown nor written to any file, nor sent to another process.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(Option<String>);

impl Password {
    /// This one.
    #[must_use]
    pub const fn new(password: String) -> Self {
        Self(Some(password))
    }

    /// The one that this process was given in its environment, as `WEIR_SMB_PASSWORD`.
    #[must_use]
    pub fn from_environment() -> Self {
        Self(std::env::var("WEIR_SMB_PASSWORD").ok())
    }

    /// The text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Password(…)" } else { "Password(none)" })
    }
}

/// An SMB share and its user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbTarget {
    /// The server's address.
    pub address: SocketAddr,
    /// More addresses of the same server. Clients are dealt to all of them in turn, this first
    /// one first; files are laid out through the first.
    pub more: Vec<SocketAddr>,
    /// The share.
    pub share: String,
    /// The directory below the share, with `/` between its parts; empty for the top.
    pub directory: String,
    /// The user.
    pub user: String,
    /// The user's password; each process of a load needs it, and has it from its own environment.
    #[serde(skip)]
    pub password: Password,
    /// The protection of messages.
    pub security: SmbSecurity,
    /// Source addresses for the simulated clients, which take them in turn. Empty: chosen from
    /// 127.0.1.0/16 for several clients of a loopback IPv4 target, left to the system otherwise.
    pub sources: Vec<IpAddr>,
}

impl SmbTarget {
    /// A share on one address, with signatures.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        share: impl Into<String>,
        user: impl Into<String>,
        password: Password,
    ) -> Self {
        Self {
            address,
            more: Vec::new(),
            share: share.into(),
            directory: String::new(),
            user: user.into(),
            password,
            security: SmbSecurity::default(),
            sources: Vec::new(),
        }
    }

    /// Reads `smb://[USER@]HOST[,HOST...][:PORT]/SHARE[/DIRECTORY]`. A port behind the last host is
    /// that of all hosts that have none of their own. Without a user the name is empty. Host names
    /// are resolved now; the first address of each is taken.
    ///
    /// # Errors
    /// [`BenchError::Target`] says what is wrong with the text.
    pub fn parse(url: &str) -> Result<Self, BenchError> {
        let shown = redacted(url);
        let refuse =
            |why: &str| BenchError::Target(format!("{shown:?} is not an SMB target: {why}"));
        let rest = url
            .strip_prefix("smb://")
            .ok_or_else(|| refuse("it must start with smb://, as in smb://alice@127.0.0.1/vol"))?;
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = place.rsplit_once('@').unwrap_or(("", place));
        if user.contains(':') {
            return Err(refuse(
                "a password may not be part of it, because others can see it: set \
                 WEIR_SMB_PASSWORD or use --smb-password-file",
            ));
        }
        let (share, directory) = path.split_once('/').unwrap_or((path, ""));
        if share.is_empty() {
            return Err(refuse("the share is missing, as in smb://alice@127.0.0.1/vol"));
        }
        let directory = directory.trim_matches('/');
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if path.contains('\\') || !(directory.is_empty() || directory.split('/').all(is_plain)) {
            return Err(refuse("the directory must be a plain path with / between its parts"));
        }
        let mut addresses = resolve_all(hosts, SMB_PORT, refuse)?.into_iter();
        let first = addresses.next().ok_or_else(|| refuse("the host is missing"))?;
        let mut target = Self::new(first, share, user, Password::default());
        directory.clone_into(&mut target.directory);
        target.more = addresses.collect();
        Ok(target)
    }

    /// The addresses of server and clients.
    #[must_use]
    pub(crate) fn addresses(&self) -> Addresses<'_> {
        Addresses { first: self.address, more: &self.more, sources: &self.sources }
    }
}

/// `url` without what may be a password.
fn redacted(url: &str) -> String {
    let Some((front, back)) = url.rsplit_once('@') else { return url.to_owned() };
    let begin = front.find("://").map_or(0, |at| at + 3);
    match front.get(begin..).and_then(|user| user.find(':')) {
        Some(colon) => format!("{}:…@{back}", front.get(..begin + colon).unwrap_or_default()),
        None => url.to_owned(),
    }
}

impl fmt::Display for SmbTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("smb://")?;
        if !self.user.is_empty() {
            write!(f, "{}@", self.user)?;
        }
        write!(f, "{}", self.address)?;
        for address in &self.more {
            write!(f, ",{address}")?;
        }
        write!(f, "/{}", self.share)?;
        if !self.directory.is_empty() {
            write!(f, "/{}", self.directory)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn urls_are_read_in_full_and_shown_again() {
        let target = SmbTarget::parse("smb://alice@127.0.0.1,127.0.0.2:4450/vol/a/b").unwrap();
        assert_eq!(target.address, "127.0.0.1:4450".parse().unwrap());
        assert_eq!(target.more, ["127.0.0.2:4450".parse().unwrap()]);
        assert_eq!((target.user.as_str(), target.share.as_str()), ("alice", "vol"));
        assert_eq!(target.directory, "a/b");
        let text = Target::Smb(target.clone()).to_string();
        assert_eq!(SmbTarget::parse(&text).unwrap(), target);
        let short = SmbTarget::parse("smb://[::1]/v/").unwrap();
        assert_eq!((short.address.port(), short.user.as_str()), (445, ""));
        assert_eq!(short.directory, "");
    }

    #[test]
    fn a_password_is_neither_taken_from_a_url_nor_shown() {
        let error = SmbTarget::parse("smb://alice:se@cret@127.0.0.1/vol").unwrap_err().to_string();
        assert!(error.contains("WEIR_SMB_PASSWORD") && !error.contains("cret"), "{error}");
        let mut target = SmbTarget::parse("smb://alice@127.0.0.1/vol").unwrap();
        target.password = Password::new("secret".to_owned());
        let written = serde_json::to_string(&target).unwrap();
        let shown = format!("{target:?} {target}");
        assert!(!written.contains("secret") && !shown.contains("secret"), "{written} {shown}");
        let read: SmbTarget = serde_json::from_str(&written).unwrap();
        assert_eq!(read.password.text(), None);
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        let message = |url| SmbTarget::parse(url).unwrap_err().to_string();
        assert!(message("127.0.0.1/vol").contains("must start with smb://"));
        assert!(message("smb://alice@127.0.0.1").contains("share is missing"));
        assert!(message("smb://127.0.0.1/v/../w").contains("plain path"));
        assert!(message("smb://127.0.0.1/v/a\\b").contains("plain path"));
        assert!(message("smb://127.0.0.1,127.0.0.1/v").contains("there twice"));
    }
}
