//! Text from elsewhere (other processes, files, names that others chose), made safe to show: what
//! would move a terminal's cursor, ring its bell, turn the direction of writing or be invisible is
//! replaced or escaped. Escaping for HTML and quoting for CSV are the business of those who write
//! them; what goes to a terminal goes through the module `terminal` of `weir-report`,
//! which escapes by itself.

use alloc::string::String;
use core::fmt::{self, Write};

/// Most characters of a text that another process tells.
const BRIEF: usize = 2000;

/// `text` with U+FFFD in place of each character that is not fit to be shown.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if commands(letter) { '\u{fffd}' } else { letter }).collect()
}

/// The text of [`plain`], and no longer than people read.
#[must_use]
pub fn brief(text: &str) -> String {
    let mut letters = text.chars();
    let kept: String = letters.by_ref().take(BRIEF).collect();
    let more = if letters.next().is_some() { "…" } else { "" };
    plain(&kept) + more
}

/// Is `letter` not fit to be shown unescaped? Such are control characters (general category Cc)
/// with the ends of lines (Zl, Zp); characters of format (Cf), among them those that turn the
/// direction of writing (UAX #9 §2); and others that show as nothing
/// (Default_Ignorable_Code_Point). The lists are those of Unicode 16.0.
#[must_use]
pub const fn commands(letter: char) -> bool {
    matches!(letter,
        // Cc, Zl, Zp.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}'
        // Cf.
        | '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Default_Ignorable_Code_Point, as far as it is not in the others. U+E0000 to U+E0FFF has
        // the tags of Cf too.
        | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

/// Shows a value on one line, with the characters that are not fit to be shown as escapes: `\n`,
/// `\u{1b}`.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<T>(pub T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes the text it passes on.
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| commands(*letter)) {
            let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
            self.0.write_str(before)?;
            match letter {
                '\n' | '\r' | '\t' => write!(self.0, "{}", letter.escape_default())?,
                other => write!(self.0, "{}", other.escape_unicode())?,
            }
            rest = from.get(letter.len_utf8()..).unwrap_or_default();
        }
        self.0.write_str(rest)
    }
}

/// The JSON `document` with such characters as JSON escapes (`\u202e`), which are the same to
/// whoever parses it (RFC 8259 §7). Ends of lines, which a document has only between its values,
/// stay.
#[must_use]
pub fn escaped_json(document: &str) -> String {
    let mut safe = String::with_capacity(document.len());
    for letter in document.chars() {
        if letter == '\n' || !commands(letter) {
            safe.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a string can't fail.
            let _never = write!(safe, "\\u{unit:04x}");
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_commands_a_terminal() {
        let evil = "a\u{1b}[2J\u{7}\r\n\t\u{9b}31m\u{202e}b – 4 µs";
        assert_eq!(
            plain(evil),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}31m\u{fffd}b – 4 µs"
        );
        assert_eq!(
            Escaped(evil).to_string(),
            "a\\u{1b}[2J\\u{7}\\r\\n\\t\\u{9b}31m\\u{202e}b – 4 µs"
        );
    }

    #[test]
    fn what_shows_as_nothing_or_turns_text_is_found_and_letters_are_not() {
        let found = "\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200e}\u{2028}\u{2029}\u{2066}\u{2069}\
                     \u{206a}\u{feff}\u{fff9}\u{e0001}\u{e007f}\u{1d173}\u{34f}\u{3164}\u{fe0f}\u{7f}\u{85}";
        assert!(found.chars().all(commands), "{}", Escaped(found));
        let letters = "aZ ~é–µ×→…│━╸ 日本語 العربية עברית ไทย हिन्दी 😀\u{a0}\u{2009}\u{fffd}";
        assert_eq!(Escaped(letters).to_string(), letters);
        assert_eq!(plain(letters), letters);
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(brief("é"), "é");
        let cut = brief(&"é".repeat(5000));
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (BRIEF + 1, true));
    }

    proptest! {
        #[test]
        fn no_text_keeps_what_commands(text in any::<String>()) {
            prop_assert!(!Escaped(&text).to_string().chars().any(commands));
            prop_assert!(!plain(&text).chars().any(commands));
        }

        #[test]
        fn json_stays_the_same_to_whoever_reads_it(text in any::<String>(), key in any::<String>()) {
            let value = serde_json::json!({ key: [text] });
            let safe = escaped_json(&serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(!safe.chars().any(|letter| letter != '\n' && commands(letter)));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }
}
