//! The folding by which names are compared without regard to case: each character becomes its
//! upper case, where that is one character. Never locale, never normalization, and never another
//! number of characters, so that a name and its folded form match the same wildcards.
//!
//! Names are bytes. Of bytes that are UTF-8 the characters are folded; all others stay. The number
//! of bytes may change: `ɐ` has two and `Ɐ` three.

use alloc::vec::Vec;
use core::hash::Hasher;
use core::str::{Chars, Utf8Chunks};

/// The upper case of one character. Without a single one (`ß`) the character stays, and so does the
/// dotless `ı`, whose upper case is that of another letter.
#[inline]
#[must_use]
pub fn fold_char(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_uppercase();
    }
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) if letter != 'ı' => one,
        _ => letter,
    }
}

/// Appends the folded form of `name` to `out`. Two names have the same one exactly if
/// [`eq_folded`].
pub fn fold(name: &[u8], out: &mut Vec<u8>) {
    if name.is_ascii() {
        out.extend(name.iter().map(u8::to_ascii_uppercase));
        return;
    }
    out.reserve(name.len());
    for unit in Units::new(name) {
        out.extend_from_slice(unit.encode(&mut [0; 4]));
    }
}

/// Are the names the same without regard to case?
#[must_use]
pub fn eq_folded(a: &[u8], b: &[u8]) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a == b || Units::new(a).eq(Units::new(b))
}

/// Feeds the folded form of `name` to `hasher`, without allocating: the same writes for all names
/// that are [`eq_folded`].
pub fn hash_folded(name: &[u8], hasher: &mut impl Hasher) {
    let mut block = Block { bytes: [0; BLOCK_BYTES], used: 0 };
    if name.is_ascii() {
        for byte in name {
            block.push(&[byte.to_ascii_uppercase()], hasher);
        }
    } else {
        for unit in Units::new(name) {
            block.push(unit.encode(&mut [0; 4]), hasher);
        }
    }
    block.flush(hasher);
    // No name holds this byte, so none is another's beginning.
    hasher.write_u8(0);
}

/// Bytes that go to the hasher in one write.
const BLOCK_BYTES: usize = 64;

/// Gathers bytes for a hasher, so that the writes depend on the bytes alone, and are few.
struct Block {
    bytes: [u8; BLOCK_BYTES],
    used: usize,
}

impl Block {
    #[inline]
    fn push(&mut self, bytes: &[u8], hasher: &mut impl Hasher) {
        for byte in bytes {
            if self.used == BLOCK_BYTES {
                self.flush(hasher);
            }
            if let Some(slot) = self.bytes.get_mut(self.used) {
                *slot = *byte;
                self.used += 1;
            }
        }
    }

    fn flush(&mut self, hasher: &mut impl Hasher) {
        hasher.write(self.bytes.get(..self.used).unwrap_or(&self.bytes));
        self.used = 0;
    }
}

/// A folded character, or a byte that is part of none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Letter(char),
    Byte(u8),
}

impl Unit {
    #[inline]
    fn encode(self, room: &mut [u8; 4]) -> &[u8] {
        match self {
            Self::Letter(letter) => letter.encode_utf8(room).as_bytes(),
            Self::Byte(byte) => {
                let [first, ..] = room;
                *first = byte;
                core::slice::from_ref(first)
            }
        }
    }
}

/// The folded characters and other bytes of a name.
struct Units<'a> {
    letters: Chars<'a>,
    bytes: core::slice::Iter<'a, u8>,
    chunks: Utf8Chunks<'a>,
}

impl<'a> Units<'a> {
    fn new(name: &'a [u8]) -> Self {
        Self { letters: "".chars(), bytes: [].iter(), chunks: name.utf8_chunks() }
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        loop {
            if let Some(letter) = self.letters.next() {
                return Some(Unit::Letter(fold_char(letter)));
            }
            if let Some(byte) = self.bytes.next() {
                return Some(Unit::Byte(*byte));
            }
            let chunk = self.chunks.next()?;
            self.letters = chunk.valid().chars();
            self.bytes = chunk.invalid().iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded(name: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        fold(name, &mut out);
        out
    }

    /// Notes each write, so that names that are equal must lead to the same writes.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Hasher for Writes {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.push(bytes.to_vec());
        }
    }

    fn writes(name: &[u8]) -> Vec<Vec<u8>> {
        let mut hasher = Writes::default();
        hash_folded(name, &mut hasher);
        hasher.0
    }

    #[test]
    fn letters_become_their_single_upper_case() {
        for (from, to) in [
            ("readme.TXT", "README.TXT"),
            ("äöü", "ÄÖÜ"),
            ("straße", "STRAßE"),
            ("ı İ i", "ı İ I"),
            ("ﬁ ŉ", "ﬁ ŉ"),
            ("ɐ", "Ɐ"),
            ("привет", "ПРИВЕТ"),
            ("𐐨", "𐐀"),
            ("日本", "日本"),
        ] {
            assert_eq!(folded(from.as_bytes()), to.as_bytes(), "{from}");
            assert!(eq_folded(from.as_bytes(), to.as_bytes()), "{from}");
        }
        assert!(!eq_folded("straße".as_bytes(), "STRASSE".as_bytes()));
    }

    #[test]
    fn bytes_that_are_no_characters_stay_and_differ() {
        assert_eq!(folded(b"a\xFF\xC3b\xE4"), b"A\xFF\xC3B\xE4");
        assert!(!eq_folded(b"\xE4", b"\xC4"), "not Latin-1");
        assert!(!eq_folded("ä".as_bytes(), b"\xC3"));
    }

    #[test]
    fn folding_is_done_after_one_time_and_keeps_the_number_of_characters() {
        for letter in '\0'..=char::MAX {
            assert_eq!(fold_char(fold_char(letter)), fold_char(letter), "{letter:?}");
        }
    }

    #[test]
    fn the_writes_to_a_hasher_follow_from_the_folded_bytes_alone() {
        // The first has 2 bytes where the second has 3, so blocks end elsewhere in the name.
        let (low, high) = ("ɐa".repeat(50), "Ɐa".repeat(50));
        assert_eq!(writes(low.as_bytes()), writes(high.as_bytes()));
        assert_eq!(writes(&[b'a'; 64]), writes(&[b'A'; 64]));
        assert_ne!(writes(b"a"), writes(b"ab"));
        assert_eq!(writes(b"long s").concat(), b"LONG S\0");
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<Vec<u8>>(),
            "[aAäÄßıiIſsSɐⱯ]{0,6}".prop_map(String::into_bytes),
            proptest::collection::vec(
                prop_oneof![Just(b'a'), Just(0xC3), Just(0xA4), Just(0x84)],
                0..6
            ),
        ]
    }

    proptest! {
        #[test]
        fn equality_folding_and_hashing_agree(a in name(), b in name()) {
            let equal = eq_folded(&a, &b);
            prop_assert_eq!(equal, folded(&a) == folded(&b));
            prop_assert_eq!(equal, writes(&a) == writes(&b));
            prop_assert!(eq_folded(&a, &folded(&a)));
            prop_assert_eq!(Units::new(&a).count(), Units::new(&folded(&a)).count());
        }
    }
}
