//! UTF-16 of names in tokens, little-endian.

use alloc::string::String;
use alloc::vec::Vec;
use weir_core::fold::fold_char;

/// The text in UTF-16.
pub(super) fn to_utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The text in UTF-16 and in upper case, as NTLM has it (MS-NLMP §3.3.2).
pub(super) fn to_upper_utf16(text: &str) -> Vec<u8> {
    let upper: String = text.chars().map(fold_char).collect();
    to_utf16(&upper)
}

/// The text of UTF-16 bytes. `None`: an odd length, a half of a pair alone, or over `units_max`.
pub(super) fn from_utf16(bytes: &[u8], units_max: usize) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    if units.len() > units_max {
        return None;
    }
    char::decode_utf16(units.iter().copied().map(u16::from_le_bytes)).collect::<Result<_, _>>().ok()
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
    fn text_comes_back() {
        assert_eq!(from_utf16(&to_utf16("ab𐐨"), 4).as_deref(), Some("ab𐐨"));
        assert_eq!(from_utf16(&[], 0).as_deref(), Some(""));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(from_utf16(&to_utf16("ab𐐨"), 3), None);
        assert_eq!(from_utf16(b"a\0b", 9), None);
        assert_eq!(from_utf16(&[0x00, 0xD8, b'a', 0], 9), None);
    }
}
