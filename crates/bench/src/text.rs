//! Text from elsewhere (other processes, files), made safe to show: what would move a terminal's
//! cursor, ring its bell or turn the direction of writing becomes U+FFFD. Escaping for HTML and
//! quoting for CSV are the business of those who write them.

/// Most characters of a text that another process tells.
const BRIEF: usize = 2000;

/// `text` without what commands a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(|letter| if commands(letter) { '\u{fffd}' } else { letter }).collect()
}

/// As [`plain`], and no longer than people read.
#[must_use]
pub(crate) fn brief(text: &str) -> String {
    let mut letters = text.chars();
    let kept: String = letters.by_ref().take(BRIEF).collect();
    let more = if letters.next().is_some() { "…" } else { "" };
    plain(&kept) + more
}

/// Control characters, and those that turn the direction of writing (UAX #9 §2).
pub(crate) fn commands(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_a_terminal() {
        let evil = "a\u{1b}[2J\u{7}\r\n\t\u{9b}31m\u{202e}b – 4 µs";
        assert_eq!(
            plain(evil),
            "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}31m\u{fffd}b – 4 µs"
        );
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(brief("é"), "é");
        let cut = brief(&"é".repeat(5000));
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (BRIEF + 1, true));
    }
}
