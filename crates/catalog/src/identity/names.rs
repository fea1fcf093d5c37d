//! Names of users and groups: the bounds, which are those of account names in Windows, and the
//! comparison regardless of case.

use crate::error::{IdentityError, Result};
use crate::limits::NAME_CHARS_MAX;
use weir_core::fold::fold_char;

/// The characters that no account name of Windows may have.
const FORBIDDEN: &str = "\"/\\[]:;|=,+*?<>@";

/// Checks the name of a new user or group.
pub(crate) fn check(name: &str) -> Result<()> {
    let length = name.chars().count();
    let allowed = |c: char| !c.is_control() && !FORBIDDEN.contains(c);
    let ends_well = name.trim() == name && !name.ends_with('.');
    if (1..=NAME_CHARS_MAX).contains(&length) && name.chars().all(allowed) && ends_well {
        return Ok(());
    }
    let name = name.chars().take(NAME_CHARS_MAX).collect();
    Err(IdentityError::BadAccountName { name }.into())
}

/// `name` in the form in which names are compared.
#[must_use]
pub fn folded(name: &str) -> String {
    name.chars().map(fold_char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_windows_accounts() {
        for good in ["a", "Jörg Müller", "svc-backup_1", "o'neil", "x$", "ÿ", &"ü".repeat(64)] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in ["", " ", ".", "..", "a.", " a", "a ", "a\u{7f}", "a\n", &"u".repeat(65)] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        for forbidden in FORBIDDEN.chars() {
            assert!(check(&format!("a{forbidden}b")).is_err(), "{forbidden}");
        }
    }

    #[test]
    fn case_is_folded_one_character_at_a_time() {
        assert_eq!(folded("Jörg"), "JÖRG");
        assert_eq!(folded("straße"), "STRAßE");
        assert_eq!(folded("ÿ"), "Ÿ");
        assert_ne!(folded("ss"), folded("ß"));
    }
}
