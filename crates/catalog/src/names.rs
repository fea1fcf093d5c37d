//! Names of pools and volumes: what may be one. Not the names of files, which are any bytes.

use crate::error::{CatalogError, Result, Thing};
use crate::limits::NAME_CHARS_MAX;

/// Checks the name of a new object.
///
/// A volume's name is also its export path (`/NAME`), so it can't hold what a path, a shell or
/// `/etc/fstab` reads as anything else.
pub(crate) fn check(thing: Thing, name: &str) -> Result<()> {
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if begins_well && name.len() <= NAME_CHARS_MAX && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(CatalogError::BadName { thing, name: printable(name) })
}

/// The beginning of a name from a request, safe for a message.
pub(crate) fn printable(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "7", "data.2026-11_x", &"v".repeat(64)] {
            assert!(check(Thing::Volume, good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "-a", "_a", "a/b", "a b", "ä", "a\n", &"v".repeat(65)] {
            assert!(check(Thing::Volume, bad).is_err(), "{bad}");
        }
    }
}
