//! Names in tokens, in UTF-16.

use crate::utf16::{from_utf16, to_utf16};
use alloc::string::String;
use alloc::vec::Vec;
use weir_core::fold::fold_char;

/// The text in UTF-16 and in upper case, as NTLM has it (MS-NLMP §3.3.2).
pub(super) fn to_upper_utf16(text: &str) -> Vec<u8> {
    let upper: String = text.chars().map(fold_char).collect();
    to_utf16(&upper)
}

/// The text of UTF-16 bytes. `None`: not UTF-16, or more than `units_max` code units.
pub(super) fn bounded_text(bytes: &[u8], units_max: usize) -> Option<String> {
    if bytes.len() > units_max.saturating_mul(2) { None } else { from_utf16(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_case_is_simple() {
        assert_eq!(to_upper_utf16("aZ1-äß"), to_utf16("AZ1-Äß"));
        assert_eq!(to_upper_utf16("σς𐐨"), to_utf16("ΣΣ𐐀"));
    }

    #[test]
    fn a_name_has_a_bound_in_code_units() {
        assert_eq!(bounded_text(&to_utf16("ab𐐨"), 4).as_deref(), Some("ab𐐨"));
        assert_eq!(bounded_text(&to_utf16("ab𐐨"), 3), None);
        assert_eq!(bounded_text(&[], 0).as_deref(), Some(""));
        assert_eq!(bounded_text(b"a\0b", 9), None);
    }
}
