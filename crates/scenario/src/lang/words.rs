//! Command lines as one text: cut into words as a shell does, quotes and backslashes at ends of
//! lines understood. Nothing is substituted.

use super::program;

/// Cuts a command line into words; `None` if a quote is left open.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // A line that goes on. Other backslashes stay: they are part of Windows paths.
            (None, '\\') if matches!(chars.peek(), Some('\n')) => {
                chars.next();
                words.extend(word.take());
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The words of `text` if it is one command line of a known program, with comments (`#`) before.
pub(super) fn command_of(text: &str) -> Option<Vec<String>> {
    let text = text.replace("\r\n", "\n");
    let comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let command: Vec<&str> = text.lines().skip_while(comment).collect();
    let words = split(command.join("\n").trim())?;
    program(words.first()?)?;
    // Text that follows on lines of its own is a second command.
    let goes_on = |line: &str| line.trim_end().ends_with('\\');
    let lines = command.iter().filter(|line| !comment(line)).count();
    let continued = command.iter().filter(|line| goes_on(line)).count();
    (lines == continued + 1).then_some(words)
}
