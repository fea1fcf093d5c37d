//! One component of a path, as bytes. Not a path, and not necessarily UTF-8.

use crate::error::{FsError, FsResult};
use crate::limits::NAME_BYTES_MAX;
use core::fmt;

/// A directory entry's name: 1 to 255 bytes without `/` and NUL. `.` and `..` are valid names
/// to look up and are told apart by [`Name::is_dot`] and [`Name::is_dot_dot`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Checks `bytes` and wraps them.
    ///
    /// # Errors
    /// [`FsError::NameTooLong`] above 255 bytes; [`FsError::Invalid`] for an empty name or one
    /// that holds `/` or NUL.
    pub fn new(bytes: &'a [u8]) -> FsResult<Self> {
        if bytes.len() > NAME_BYTES_MAX {
            return Err(FsError::NameTooLong);
        }
        if bytes.is_empty() || bytes.iter().any(|b| matches!(b, b'/' | 0)) {
            return Err(FsError::Invalid);
        }
        Ok(Self(bytes))
    }

    /// The bytes of the name.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Is this `.`, the directory itself?
    #[must_use]
    pub fn is_dot(self) -> bool {
        self.0 == b"."
    }

    /// Is this `..`, the parent?
    #[must_use]
    pub fn is_dot_dot(self) -> bool {
        self.0 == b".."
    }

    /// Is this `.` or `..`, which no operation may create, remove or rename?
    #[must_use]
    pub fn is_special(self) -> bool {
        self.is_dot() || self.is_dot_dot()
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_any_bytes_but_slash_and_nul() {
        for byte in 1..=255u8 {
            let name = [byte];
            assert_eq!(Name::new(&name).is_ok(), byte != b'/', "{byte}");
        }
        assert_eq!(Name::new(b"a\0"), Err(FsError::Invalid));
        assert_eq!(Name::new(b""), Err(FsError::Invalid));
    }

    #[test]
    fn bounds_the_length() {
        assert!(Name::new(&[b'x'; 255]).is_ok());
        assert_eq!(Name::new(&[b'x'; 256]), Err(FsError::NameTooLong));
    }
}
