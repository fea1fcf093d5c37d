//! The search pattern of a listing (MS-FSA §2.1.4.4), matched in time bounded by the product of the
//! lengths of pattern and name, without regard to case.
//!
//! | wildcard | matches |
//! |---|---|
//! | `*` | any characters, none too |
//! | `?` | one character |
//! | `<` (DOS_STAR) | any characters up to the name's last dot, with it or without |
//! | `>` (DOS_QM) | one character that is not a dot; nothing before a dot or the end |
//! | `"` (DOS_DOT) | a dot; nothing at the end |
//!
//! `*.*` alone matches every name, as `*` does.

use super::NameError;
use super::limits::PATTERN_UNITS_MAX;
use super::mapping::{append, letters, wire_letters};
use alloc::vec::Vec;
use weir_core::fold::fold_char;

/// A search pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// `*` or `*.*`.
    All,
    /// No wildcard: the name of the store, and the pattern's letters.
    Name(Vec<u8>, Vec<Element>),
    /// Anything else.
    Elements(Vec<Element>),
}

/// One place of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// This letter, folded.
    Letter(char),
    Star,
    Question,
    DosStar,
    DosQuestion,
    DosDot,
}

impl Pattern {
    /// Checks a pattern from the wire: UTF-16, little-endian.
    ///
    /// # Errors
    /// [`NameError`]: for the empty pattern `Empty`, for a separator, a colon, a control character
    /// or what is not UTF-16 as in names.
    pub fn parse(wire: &[u8]) -> Result<Self, NameError> {
        if wire.is_empty() {
            return Err(NameError::Empty);
        }
        if wire.len() / 2 > PATTERN_UNITS_MAX {
            return Err(NameError::TooLong);
        }
        let mut elements = Vec::with_capacity(wire.len() / 2);
        let mut name = Vec::new();
        for letter in letters(wire) {
            let element = match letter? {
                '*' if elements.last() == Some(&Element::Star) => continue,
                '*' => Element::Star,
                '?' => Element::Question,
                '<' => Element::DosStar,
                '>' => Element::DosQuestion,
                '"' => Element::DosDot,
                ':' => return Err(NameError::Stream),
                '\0'..='\x1f' | '\\' | '|' | '/' => return Err(NameError::Forbidden),
                letter => {
                    append(letter, &mut name);
                    Element::Letter(fold_char(letter))
                }
            };
            elements.push(element);
        }
        let plain = elements.iter().all(|element| matches!(element, Element::Letter(_)));
        Ok(Self(match &elements[..] {
            [Element::Star] | [Element::Star, Element::Letter('.'), Element::Star] => Kind::All,
            _ if plain => Kind::Name(name, elements),
            _ => Kind::Elements(elements),
        }))
    }

    /// Does the pattern match every name?
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0 == Kind::All
    }

    /// The one name of the store, up to case, that the pattern matches, if it has no wildcard. It
    /// may be one that no entry can have, as it is not checked.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Name(name, _) => Some(name),
            Kind::All | Kind::Elements(_) => None,
        }
    }

    /// Does the pattern match this name of the store, in the form that it has on the wire?
    #[must_use]
    pub fn matches(&self, store: &[u8]) -> bool {
        match &self.0 {
            Kind::All => true,
            Kind::Name(_, elements) | Kind::Elements(elements) => matches(elements, store),
        }
    }
}

/// Advances all places of the pattern that the name read so far leads to, letter by letter.
fn matches(elements: &[Element], store: &[u8]) -> bool {
    let mut dots = wire_letters(store).filter(|letter| *letter == '.').count();
    let mut places = Places::NONE;
    places.reach(elements, 0);
    for letter in wire_letters(store) {
        let dot = letter == '.';
        if dot {
            dots = dots.saturating_sub(1);
        }
        let last_dot = dot && dots == 0;
        let folded = fold_char(letter);
        let mut after = Places::NONE;
        // In ascending order, so that the place behind one that takes nothing is seen to next.
        for (at, element) in elements.iter().enumerate() {
            if !places.has(at) {
                continue;
            }
            let behind = at.saturating_add(1);
            match element {
                Element::Star => after.reach(elements, at),
                Element::DosStar if last_dot => after.reach(elements, behind),
                Element::DosStar => after.reach(elements, at),
                Element::DosQuestion if dot => places.reach(elements, behind),
                Element::Question | Element::DosQuestion => after.reach(elements, behind),
                Element::DosDot if dot => after.reach(elements, behind),
                Element::Letter(own) if *own == folded => after.reach(elements, behind),
                Element::DosDot | Element::Letter(_) => {}
            }
        }
        if after.is_empty() {
            return false;
        }
        places = after;
    }
    for (at, element) in elements.iter().enumerate() {
        if places.has(at) && matches!(element, Element::DosQuestion | Element::DosDot) {
            places.reach(elements, at.saturating_add(1));
        }
    }
    places.has(elements.len())
}

/// A set of places in a pattern, its end among them.
#[derive(Clone, Copy)]
struct Places([u64; WORDS]);

const WORDS: usize = PATTERN_UNITS_MAX / 64 + 1;
const _: () = assert!(PATTERN_UNITS_MAX < WORDS * 64);

impl Places {
    const NONE: Self = Self([0; WORDS]);

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Adds the place `at`, and the ones behind it as far as stars, which may take nothing, lead.
    fn reach(&mut self, elements: &[Element], at: usize) {
        let mut at = at;
        while !self.has(at) {
            if let Some(word) = self.0.get_mut(at / 64) {
                *word |= 1 << (at % 64);
            }
            if !matches!(elements.get(at), Some(Element::Star | Element::DosStar)) {
                return;
            }
            at = at.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapping::to_wire;
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Result<Pattern, NameError> {
        Pattern::parse(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
    }

    fn check(text: &str, yes: &[&str], no: &[&str]) {
        let pattern = pattern(text).unwrap();
        for name in yes {
            assert!(pattern.matches(name.as_bytes()), "{text} matches {name}");
        }
        for name in no {
            assert!(!pattern.matches(name.as_bytes()), "{text} does not match {name}");
        }
    }

    #[test]
    fn plain_wildcards() {
        check("*", &["a", ".", "..", "a.b", "x:y"], &[]);
        check("*.*", &["a", "ab", "a.b", ".a"], &[]);
        check("*.?*", &["a.b", ".a", "..", "a.b.c"], &["a", "ab"]);
        check("a*", &["a", "A", "abc", "a.b"], &["b", "ba"]);
        check("*.txt", &["a.txt", "a.b.TXT", ".txt"], &["a.txtx", "txt"]);
        check("?", &["a", "ä", "😀", "."], &["ab", ".."]);
        check("a??", &["abc", "a.b"], &["ab", "abcd"]);
        check("*a*b*", &["ab", "xaxbx", "bab"], &["ba", "a"]);
        check("**a**", &["a", "bab"], &["b"]);
        check("größe", &["GRÖßE", "größe"], &["grösse"]);
        check("straße*", &["STRAßE.txt"], &["strasse"]);
    }

    #[test]
    fn wildcards_of_dos() {
        // `dir *.` is sent as `<`, `*.x` as `<.x`, `?` as `>`, a dot before a wildcard as `"`.
        check("<", &["a", "abc", ""], &["a.b", ".a"]);
        check("<.txt", &["a.txt", "a.b.txt", ".txt"], &["txt", "a.txt.b"]);
        check("<\"*", &["a", "a.b", "a.b.c", ".a"], &[]);
        check("a<", &["a", "abc"], &["a.b", "b"]);
        check("<b", &["b", "ab", "a.b", "a.c.b"], &["a.bb", "a.bc.c"]);
        check(">", &["a", ""], &["ab", "."]);
        check(">>>", &["a", "ab", "abc"], &["abcd", "a.b"]);
        check(">>>.c", &["a.c", "ab.c", "abc.c", ".c"], &["abcd.c", "a.b"]);
        check("a>>", &["a", "ab", "abc"], &["b", "a.b"]);
        check(">>>>>>>>\">>>", &["README", "readme.txt", "a.b", "a"], &["a.html", "longername"]);
        check("a\"", &["a"], &["a.b", "ab"]);
        check("a\"b", &["a.b"], &["ab", "a"]);
        check("a\"\"", &["a"], &["b"]);
    }

    #[test]
    fn a_name_is_matched_in_the_form_of_the_wire() {
        check("*\u{F022}*", &["a:b"], &["ab"]);
        check("a.", &[], &["a."]);
        check("a\u{F029}", &["a."], &["a"]);
        check("..", &[".."], &["."]);
        let raw = pattern("?").unwrap();
        assert!(raw.matches(b"\xFF") && !raw.matches(b"\xFF\xFE"));
    }

    #[test]
    fn a_pattern_without_wildcards_is_a_name() {
        assert_eq!(pattern("aB\u{F022}").unwrap().name(), Some(&b"aB:"[..]));
        assert!(pattern("aB").unwrap().matches(b"Ab"));
        assert_eq!(pattern("a*").unwrap().name(), None);
        assert!(pattern("*").unwrap().is_all() && pattern("***").unwrap().is_all());
        assert!(pattern("*.*").unwrap().is_all() && !pattern("*.").unwrap().is_all());
    }

    #[test]
    fn patterns_that_are_none_are_refused() {
        for (text, error) in [
            ("", NameError::Empty),
            ("a\\*", NameError::Forbidden),
            ("/", NameError::Forbidden),
            ("*\0", NameError::Forbidden),
            ("*:*", NameError::Stream),
        ] {
            assert_eq!(pattern(text), Err(error), "{text:?}");
        }
        assert!(pattern(&"?".repeat(PATTERN_UNITS_MAX)).is_ok());
        assert_eq!(pattern(&"*".repeat(PATTERN_UNITS_MAX + 1)), Err(NameError::TooLong));
        assert_eq!(Pattern::parse(&[0x2A]), Err(NameError::NotUtf16));
    }

    #[test]
    fn exploding_patterns_do_bounded_work() {
        // By trying every division of the name these take longer than there is time.
        let name = "a".repeat(255);
        for unit in ["*a", "*?", "<a", "<>", "a*<", "*<"] {
            let exploding = unit.repeat(80) + "b";
            check(&exploding, &[], &[&name]);
        }
        check(&"*a".repeat(127), &[&name], &[]);
        let dots = ".".repeat(255);
        check(&(">".repeat(254) + "b"), &[], &[&dots, &name]);
        check(&"\"".repeat(255), &["", "."], &[&name]);
    }

    /// The rules of the module's table, by recursion.
    fn slow(elements: &[Element], name: &[char]) -> bool {
        let Some((first, behind)) = elements.split_first() else { return name.is_empty() };
        let (letter, rest) = match name.split_first() {
            Some((letter, rest)) => (Some(*letter), rest),
            None => (None, name),
        };
        let dot = letter == Some('.');
        let last_dot = dot && !rest.contains(&'.');
        match first {
            Element::Star => slow(behind, name) || (letter.is_some() && slow(elements, rest)),
            Element::DosStar if last_dot => slow(behind, name) || slow(behind, rest),
            Element::DosStar => slow(behind, name) || (letter.is_some() && slow(elements, rest)),
            Element::Question => letter.is_some() && slow(behind, rest),
            Element::DosQuestion if dot || letter.is_none() => slow(behind, name),
            Element::DosQuestion => slow(behind, rest),
            Element::DosDot => {
                (dot && slow(behind, rest)) || (letter.is_none() && slow(behind, name))
            }
            Element::Letter(own) => letter.map(fold_char) == Some(*own) && slow(behind, rest),
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_the_plain_recursion_does(
            text in "[ab.*?<>\"]{1,7}",
            name in "[aAb.]{0,7}",
        ) {
            let pattern = pattern(&text).unwrap();
            let elements = match &pattern.0 {
                Kind::All => &[Element::Star][..],
                Kind::Name(_, elements) | Kind::Elements(elements) => elements,
            };
            let letters: Vec<char> = wire_letters(name.as_bytes()).collect();
            prop_assert_eq!(pattern.matches(name.as_bytes()), slow(elements, &letters));
        }

        #[test]
        fn each_name_matches_itself(name in super::super::mapping::tests::store_name()) {
            let mut wire = Vec::new();
            to_wire(&name, &mut wire);
            let own = Pattern::parse(&wire).unwrap();
            prop_assert!(own.matches(&name));
            prop_assert_eq!(own.name(), Some(&name[..]));
        }

        #[test]
        fn no_bytes_make_it_panic(sent in any::<Vec<u8>>(), name in any::<Vec<u8>>()) {
            if let Ok(pattern) = Pattern::parse(&sent) {
                let _ = pattern.matches(&name);
            }
        }
    }
}
