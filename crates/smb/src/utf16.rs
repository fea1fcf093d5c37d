//! Text in UTF-16, little-endian, as tokens, calls and information classes carry it. Not here:
//! names of files, which [`names`](crate::names) maps.

use crate::le::put;
use alloc::string::String;
use alloc::vec::Vec;

/// Appends `text` in UTF-16.
pub fn put_utf16(out: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16() {
        put!(out; unit);
    }
}

/// `text` in UTF-16.
#[must_use]
pub fn to_utf16(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len().saturating_mul(2));
    put_utf16(&mut out, text);
    out
}

/// The text of UTF-16 bytes. `None`: an odd length, or a surrogate without its other half.
#[must_use]
pub fn from_utf16(bytes: &[u8]) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    char::decode_utf16(units.iter().copied().map(u16::from_le_bytes)).collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_little_endian_units_and_comes_back() {
        assert_eq!(to_utf16("aß\u{10428}"), [0x61, 0, 0xDF, 0, 0x01, 0xD8, 0x28, 0xDC]);
        assert_eq!(from_utf16(&to_utf16("aß\u{10428}")).as_deref(), Some("aß\u{10428}"));
        assert_eq!(from_utf16(&[]).as_deref(), Some(""));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(from_utf16(b"a\0b"), None);
        assert_eq!(from_utf16(&[0x00, 0xD8, b'a', 0]), None);
        assert_eq!(from_utf16(&[b'a', 0, 0x00, 0xDC]), None);
    }
}
