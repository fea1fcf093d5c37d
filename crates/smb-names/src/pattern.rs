//! The search pattern of a listing (MS-FSA §2.1.4.4), without regard to case. Each letter of a name
//! takes a few operations on whole words, however long the pattern is.
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
use super::places::Places;
use alloc::sync::Arc;
use alloc::vec::Vec;
use weir_core::fold::fold_char;

/// A search pattern. A clone shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// `*` or `*.*`.
    All,
    /// No wildcard: the name of the store, and the pattern.
    Name(Vec<u8>, Arc<Matcher>),
    /// Anything else.
    Wild(Arc<Matcher>),
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
        let elements = elements(wire)?;
        let plain = elements.iter().all(|element| matches!(element, Element::Letter(_)));
        let matcher = || Arc::new(Matcher::new(&elements));
        Ok(Self(match &elements[..] {
            [Element::Star] | [Element::Star, Element::Letter('.'), Element::Star] => Kind::All,
            _ if plain => {
                let mut name = Vec::new();
                for letter in letters(wire) {
                    append(letter?, &mut name);
                }
                Kind::Name(name, matcher())
            }
            _ => Kind::Wild(matcher()),
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
            Kind::All | Kind::Wild(_) => None,
        }
    }

    /// Does the pattern match this name of the store, in the form that it has on the wire?
    #[must_use]
    pub fn matches(&self, store: &[u8]) -> bool {
        match &self.0 {
            Kind::All => true,
            Kind::Name(_, matcher) | Kind::Wild(matcher) => matcher.matches(store),
        }
    }
}

/// The elements of a pattern from the wire, of stars in a row only the first.
fn elements(wire: &[u8]) -> Result<Vec<Element>, NameError> {
    let mut elements = Vec::with_capacity(wire.len() / 2);
    for letter in letters(wire) {
        elements.push(match letter? {
            '*' if elements.last() == Some(&Element::Star) => continue,
            '*' => Element::Star,
            '?' => Element::Question,
            '<' => Element::DosStar,
            '>' => Element::DosQuestion,
            '"' => Element::DosDot,
            ':' => return Err(NameError::Stream),
            '\0'..='\x1f' | '\\' | '|' | '/' => return Err(NameError::Forbidden),
            letter => Element::Letter(fold_char(letter)),
        });
    }
    Ok(elements)
}

/// A pattern as the places at which it has each of its elements.
#[derive(Debug, PartialEq, Eq)]
struct Matcher {
    /// The places of each letter, in the order of the letters.
    letters: Vec<(char, Places)>,
    stars: Places,
    questions: Places,
    dos_stars: Places,
    dos_questions: Places,
    dos_dots: Places,
    end: Places,
}

/// A letter of a pattern with its place.
fn letter((element, at): (&Element, usize)) -> Option<(char, usize)> {
    match element {
        Element::Letter(letter) => Some((*letter, at)),
        _ => None,
    }
}

impl Matcher {
    fn new(elements: &[Element]) -> Self {
        let of = |wanted: Element| {
            let places = elements.iter().enumerate().filter(|(_, element)| **element == wanted);
            places.fold(Places::default(), |all, (at, _)| all | Places::only(at))
        };
        let mut letters: Vec<(char, Places)> = Vec::new();
        let mut found: Vec<(char, usize)> = elements.iter().zip(0..).filter_map(letter).collect();
        found.sort_unstable();
        for (letter, at) in found {
            match letters.last_mut().filter(|(last, _)| *last == letter) {
                Some((_, places)) => *places |= Places::only(at),
                None => letters.push((letter, Places::only(at))),
            }
        }
        Self {
            letters,
            stars: of(Element::Star),
            questions: of(Element::Question),
            dos_stars: of(Element::DosStar),
            dos_questions: of(Element::DosQuestion),
            dos_dots: of(Element::DosDot),
            end: Places::only(elements.len()),
        }
    }

    /// Advances all places of the pattern that the name read so far leads to, letter by letter.
    fn matches(&self, store: &[u8]) -> bool {
        let mut dots = wire_letters(store).filter(|letter| *letter == '.').count();
        // Stars may take nothing.
        let open = self.stars | self.dos_stars;
        let mut places = Places::only(0).through(open);
        for letter in wire_letters(store) {
            let dot = letter == '.';
            if dot {
                dots = dots.saturating_sub(1);
            }
            places = self.after(places, letter, dot && dots == 0).through(open);
            if places.is_empty() {
                return false;
            }
        }
        let at_end = open | self.dos_questions | self.dos_dots;
        !(places.through(at_end) & self.end).is_empty()
    }

    /// The places behind a letter, by way of those before it.
    fn after(&self, mut places: Places, letter: char, last_dot: bool) -> Places {
        let letters = self.letters.binary_search_by_key(&fold_char(letter), |(letter, _)| *letter);
        let mut takes = self.questions;
        if let Some((_, own)) = letters.ok().and_then(|at| self.letters.get(at)) {
            takes |= *own;
        }
        if letter == '.' {
            // It takes no dot, and the place behind it is one before the dot too.
            places = places.through(self.stars | self.dos_stars | self.dos_questions);
            takes |= self.dos_dots;
        } else {
            takes |= self.dos_questions;
        }
        let mut stays = self.stars;
        if last_dot {
            takes |= self.dos_stars;
        } else {
            stays |= self.dos_stars;
        }
        (places & takes).behind() | (places & stays)
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
            let wire: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let elements = if pattern.is_all() { vec![Element::Star] } else { elements(&wire).unwrap() };
            let letters: Vec<char> = wire_letters(name.as_bytes()).collect();
            prop_assert_eq!(pattern.matches(name.as_bytes()), slow(&elements, &letters));
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
