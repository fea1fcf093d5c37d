//! The mapping between names of the store and names of the wire, both ways without loss.
//!
//! | store | wire |
//! |---|---|
//! | 0x01–0x1F | U+F001–U+F01F |
//! | `"` `*` `:` `<` `>` `?` `\` `\|` | U+F020–U+F027 |
//! | a space, a dot at the end | U+F028, U+F029 |
//! | a byte that is not UTF-8 | U+EF80–U+EFFF |
//! | UTF-8 of a character of this column | each byte as if it were not UTF-8 |
//! | any other character | the same |
//!
//! The first three rows are those of Services for Macintosh, which the clients of Linux and macOS
//! know; the last but one keeps names of the store apart. On the wire there are more names: a
//! client that sends a character of the right column out of its place gets the name of the store
//! that the rows give, and sees it listed in its canonical form.

use super::NameError;
use super::limits::NAME_UNITS_MAX;
use alloc::vec::Vec;
use weir_core::limits::NAME_BYTES_MAX;

/// The characters that stand for a character of ASCII begin here.
const ASCII_BASE: u32 = 0xF000;
/// The characters that stand for a byte begin here, 0x80 below the first in use.
const BYTE_BASE: u32 = 0xEF00;
/// The characters that stand for U+F020 and up, and the last two for the end of a name.
const FORBIDDEN: [char; 10] = ['"', '*', ':', '<', '>', '?', '\\', '|', ' ', '.'];
const SPACE_AT_END: char = '\u{F028}';
const DOT_AT_END: char = '\u{F029}';

/// The characters of a store's name as they are on the wire. `.` and `..`, which only a listing
/// shows, stay.
pub fn wire_letters(store: &[u8]) -> impl Iterator<Item = char> + '_ {
    let special = matches!(store, b"." | b"..");
    let mut rest = store.utf8_chunks().flat_map(|chunk| {
        let letters = chunk.valid().chars().map(Ok);
        letters.chain(chunk.invalid().iter().copied().map(Err))
    });
    let mut next = rest.next();
    let mut pending = Escaped::default();
    core::iter::from_fn(move || {
        if let Some(letter) = pending.next() {
            return Some(letter);
        }
        let unit = next?;
        next = rest.next();
        match unit {
            Ok(letter) if stands_for(letter).is_some() => {
                pending = Escaped::of(letter);
                pending.next()
            }
            Ok(letter) if special => Some(letter),
            Ok(letter) => Some(canonical(letter, next.is_none())),
            Err(byte) => Some(byte_letter(byte)),
        }
    })
}

/// Appends a store's name to `out` as UTF-16, little-endian. No more units than `store` has bytes.
pub fn to_wire(store: &[u8], out: &mut Vec<u8>) {
    for letter in wire_letters(store) {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(&unit.to_le_bytes());
        }
    }
}

/// Appends to `out` the store's name of one component of a path, `wire`, after checking it
/// (MS-FSCC §2.1.5.2). Spaces and dots at the end are as good as others: the client's system takes
/// them off where its users expect it, file systems don't.
///
/// # Errors
/// [`NameError`], but never [`NameError::LeadingSeparator`]; `out` has then some bytes more.
pub fn to_store(wire: &[u8], out: &mut Vec<u8>) -> Result<(), NameError> {
    let start = out.len();
    if wire.is_empty() {
        return Err(NameError::Empty);
    }
    if wire.len() / 2 > NAME_UNITS_MAX {
        return Err(NameError::TooLong);
    }
    let mut dots = true;
    for letter in letters(wire) {
        let letter = letter?;
        match letter {
            ':' => return Err(NameError::Stream),
            '\0'..='\x1f' | '"' | '*' | '<' | '>' | '?' | '\\' | '|' | '/' => {
                return Err(NameError::Forbidden);
            }
            _ => append(letter, out),
        }
        dots &= matches!(letter, '.' | DOT_AT_END);
    }
    let bytes = out.len().saturating_sub(start);
    if dots && bytes <= 2 {
        return Err(NameError::Dots);
    }
    if bytes > NAME_BYTES_MAX { Err(NameError::TooLong) } else { Ok(()) }
}

/// The characters of UTF-16, little-endian.
pub(super) fn letters(wire: &[u8]) -> impl Iterator<Item = Result<char, NameError>> + '_ {
    let (pairs, odd) = wire.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
    let whole = char::decode_utf16(units).map(|letter| letter.map_err(|_| NameError::NotUtf16));
    whole.chain((!odd.is_empty()).then_some(Err(NameError::NotUtf16)))
}

/// Appends the store's bytes for a character of the wire.
pub(super) fn append(letter: char, out: &mut Vec<u8>) {
    match stands_for(letter) {
        Some(byte) => out.push(byte),
        None => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// The byte of the store that a character of the right column stands for.
fn stands_for(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    match code {
        0xEF80..=0xEFFF => u8::try_from(code.saturating_sub(BYTE_BASE)).ok(),
        0xF001..=0xF01F => u8::try_from(code.saturating_sub(ASCII_BASE)).ok(),
        0xF020..=0xF029 => {
            let at = usize::try_from(code.saturating_sub(0xF020)).ok()?;
            FORBIDDEN.get(at).and_then(|letter| u8::try_from(*letter).ok())
        }
        _ => None,
    }
}

/// The character of the wire for a character of the store that is not in the right column.
fn canonical(letter: char, last: bool) -> char {
    let code = match letter {
        ' ' if last => return SPACE_AT_END,
        '.' if last => return DOT_AT_END,
        ' ' | '.' => return letter,
        '\x01'..='\x1f' => u32::from(letter),
        _ => match FORBIDDEN.iter().zip(0x20..).find(|(forbidden, _)| **forbidden == letter) {
            Some((_, code)) => code,
            None => return letter,
        },
    };
    char::from_u32(ASCII_BASE | code).unwrap_or(letter)
}

/// The character for a byte that is not UTF-8; such bytes are above 0x7F.
fn byte_letter(byte: u8) -> char {
    char::from_u32(BYTE_BASE | u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The bytes of a character of the right column, each as a character. All such characters have
/// three bytes.
#[derive(Default)]
struct Escaped {
    bytes: [u8; 4],
    at: usize,
}

impl Escaped {
    fn of(letter: char) -> Self {
        let mut bytes = [0; 4];
        letter.encode_utf8(&mut bytes);
        Self { bytes, at: 0 }
    }
}

impl Iterator for Escaped {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let byte = self.bytes.get(self.at).copied().filter(|byte| *byte != 0)?;
        self.at = self.at.saturating_add(1);
        Some(byte_letter(byte))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::String;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn wire(store: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        to_wire(store, &mut out);
        out
    }

    fn store(wire: &[u8]) -> Result<Vec<u8>, NameError> {
        let mut out = Vec::new();
        to_store(wire, &mut out).map(|()| out)
    }

    #[test]
    fn names_map_as_services_for_macintosh_have_it() {
        for (from, to) in [
            (&b"plain.txt"[..], "plain.txt"),
            ("größe 😀".as_bytes(), "größe 😀"),
            (b"a:b", "a\u{F022}b"),
            (b"\"*:<>?\\|", "\u{F020}\u{F021}\u{F022}\u{F023}\u{F024}\u{F025}\u{F026}\u{F027}"),
            (b"\x01\x1f\x7f", "\u{F001}\u{F01F}\x7f"),
            (b" a b ", " a b\u{F028}"),
            (b".a.b..", ".a.b.\u{F029}"),
            (b"\xFFa\xC3", "\u{EFFF}a\u{EFC3}"),
            ("\u{F022}".as_bytes(), "\u{EFEF}\u{EF80}\u{EFA2}"),
            ("\u{EF80}".as_bytes(), "\u{EFEE}\u{EFBE}\u{EF80}"),
            ("\u{F02A}\u{F000}\u{EF7F}".as_bytes(), "\u{F02A}\u{F000}\u{EF7F}"),
        ] {
            assert_eq!(wire(from), utf16(to), "{to:?}");
            assert_eq!(store(&utf16(to)).as_deref(), Ok(from), "{to:?}");
        }
        assert_eq!((wire(b"."), wire(b"..")), (utf16("."), utf16("..")));
    }

    #[test]
    fn a_component_is_checked() {
        for (name, error) in [
            ("", NameError::Empty),
            (".", NameError::Dots),
            ("..", NameError::Dots),
            ("\u{F029}", NameError::Dots),
            (".\u{F029}", NameError::Dots),
            ("a:b", NameError::Stream),
            (":", NameError::Stream),
            ("a\0", NameError::Forbidden),
            ("a\x1f", NameError::Forbidden),
            ("a/b", NameError::Forbidden),
            ("a\\b", NameError::Forbidden),
            ("a*", NameError::Forbidden),
            ("a?", NameError::Forbidden),
            ("<", NameError::Forbidden),
            (">", NameError::Forbidden),
            ("\"", NameError::Forbidden),
            ("|", NameError::Forbidden),
        ] {
            assert_eq!(store(&utf16(name)), Err(error), "{name:?}");
        }
        for name in ["...", "..a", "a.", "a ", " ", "a\x7f"] {
            assert_eq!(store(&utf16(name)).as_deref(), Ok(name.as_bytes()));
        }
        assert_eq!(store(&[0x61]), Err(NameError::NotUtf16));
        assert_eq!(store(&[0x61, 0, 0x61]), Err(NameError::NotUtf16));
        assert_eq!(store(&[0x00, 0xD8]), Err(NameError::NotUtf16));
        assert_eq!(store(&[0x00, 0xDC, 0x61, 0]), Err(NameError::NotUtf16));
    }

    #[test]
    fn the_length_is_bounded_in_units_and_in_bytes() {
        let name = |letter: &str, count| utf16(&letter.repeat(count));
        assert!(store(&name("a", 255)).is_ok());
        assert_eq!(store(&name("a", 256)), Err(NameError::TooLong));
        assert_eq!(store(&name("ä", 127)).map(|name| name.len()), Ok(254));
        assert_eq!(store(&name("ä", 128)), Err(NameError::TooLong));
        assert_eq!(store(&name("a", 32_768)), Err(NameError::TooLong));
    }

    /// Any name of a store, with many characters that the mapping is about.
    pub(crate) fn store_name() -> impl Strategy<Value = Vec<u8>> {
        let letters = "[\u{EF7E}-\u{EF82}\u{F000}-\u{F002}\u{F01E}-\u{F02A}.: a\\\\\u{1}é😀]{1,20}";
        let bytes = prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..40),
            proptest::collection::vec(
                prop::sample::select(&[0xEF, 0xEE, 0x80, 0xBE, 0xA9, b'.'][..]),
                1..12
            ),
            letters.prop_map(String::into_bytes),
        ];
        bytes
            .prop_map(|name| -> Vec<u8> {
                name.into_iter().filter(|byte| !matches!(byte, 0 | b'/')).collect()
            })
            .prop_filter("names of entries", |name| !matches!(&name[..], b"" | b"." | b".."))
    }

    proptest! {
        #[test]
        fn every_name_of_a_store_survives_the_wire(name in store_name()) {
            let there = wire(&name);
            prop_assert!(there.len() / 2 <= name.len());
            prop_assert_eq!(store(&there), Ok(name));
        }

        // This follows from the one above, but says plainly what must hold.
        #[test]
        fn different_names_are_different_on_the_wire(a in store_name(), b in store_name()) {
            prop_assert_eq!(a == b, wire(&a) == wire(&b));
        }

        #[test]
        fn whatever_is_sent_gives_a_name_or_an_error(sent in any::<Vec<u8>>()) {
            if let Ok(name) = store(&sent) {
                prop_assert!(weir_core::Name::new(&name).is_ok_and(|name| !name.is_special()));
            }
        }

        #[test]
        fn whatever_text_is_sent_has_a_canonical_form(sent in ".{1,30}") {
            if let Ok(name) = store(&utf16(&sent)) {
                prop_assert_eq!(store(&wire(&name)), Ok(name));
            }
        }
    }
}
