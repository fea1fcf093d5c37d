//! From files to lines: comments, blanks, variables, and the files that are included.

use crate::lang::{LangError, Options, read_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest depth of files that include each other.
const DEPTH_MAX: usize = 8;
/// Most lines of all files together.
const LINES_MAX: usize = 100_000;

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

impl TextPosition {
    /// An error about `option` here.
    pub(super) fn error(&self, option: &str, message: impl Into<String>) -> LangError {
        LangError { line: Some(self.line), ..LangError::whole(&self.file, message) }.option(option)
    }
}

/// A line that says something.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) place: TextPosition,
    pub(super) text: String,
}

/// Collects the lines of several texts.
pub(super) struct Lines<'a> {
    options: &'a Options,
    /// Variables that were asked for.
    pub(super) used: BTreeSet<String>,
    pub(super) lines: Vec<Line>,
}

impl<'a> Lines<'a> {
    pub(super) const fn new(options: &'a Options) -> Self {
        Self { options, used: BTreeSet::new(), lines: Vec::new() }
    }

    /// Takes in `text`, which is the file `name`.
    pub(super) fn add(&mut self, name: &str, text: &str) -> Result<(), LangError> {
        self.add_file(name, text, &mut Vec::new())
    }

    fn add_file(
        &mut self,
        name: &str,
        text: &str,
        above: &mut Vec<PathBuf>,
    ) -> Result<(), LangError> {
        let file: Arc<str> = Arc::from(name);
        above.push(std::fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name)));
        for (at, raw) in text.lines().enumerate() {
            let place = TextPosition { file: Arc::clone(&file), line: at + 1 };
            let raw = raw.trim();
            if raw.is_empty() || raw.starts_with(['/', '#', '*']) {
                continue;
            }
            if raw.to_ascii_lowercase().starts_with("eof") {
                break;
            }
            let text = self.substitute(&place, said(&place, raw)?)?;
            if self.lines.len() >= LINES_MAX {
                return Err(place.error("", format!("there are more than {LINES_MAX} lines")));
            }
            match text.get(..8).filter(|key| key.eq_ignore_ascii_case("include=")) {
                Some(_) => self.include(&place, text.get(8..).unwrap_or(""), above)?,
                None => self.lines.push(Line { place, text }),
            }
        }
        above.pop();
        Ok(())
    }

    fn include(
        &mut self,
        place: &TextPosition,
        name: &str,
        above: &mut Vec<PathBuf>,
    ) -> Result<(), LangError> {
        let refused = |why: String| Err(place.error("include", why));
        let name = name.trim_matches('"');
        if name.is_empty() {
            return refused("a file's name is missing".to_owned());
        }
        let path = Path::new(&*place.file).parent().unwrap_or(Path::new("")).join(name);
        let own = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if above.contains(&own) {
            return refused(format!("{name} includes itself; take one of the two out"));
        }
        if above.len() >= DEPTH_MAX {
            return refused(format!("files include each other {DEPTH_MAX} deep; join some"));
        }
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(error) => return refused(error.to_string()),
        };
        self.add_file(&path.display().to_string(), &text, above)
    }

    /// Puts values in place of `$name`, and of `!name` where there is a value.
    fn substitute(&mut self, place: &TextPosition, text: &str) -> Result<String, LangError> {
        let mut done = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['$', '!']) {
            let (before, from) = rest.split_at(at);
            let needed = from.starts_with('$');
            let after = from.get(1..).unwrap_or("");
            let end =
                after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let (name, behind) = after.split_at(end);
            done.push_str(before);
            rest = behind;
            let value = if needed {
                self.options.variable(name)
            } else {
                self.options.variables.get(name).cloned()
            };
            match value {
                Some(value) => {
                    done.push_str(&value);
                    self.used.insert(name.to_owned());
                }
                None if needed && !name.is_empty() => {
                    let why = format!("it has no value; give one with {name}=VALUE");
                    return Err(place.error(&format!("${name}"), why));
                }
                None => {
                    done.push(if needed { '$' } else { '!' });
                    done.push_str(name);
                }
            }
        }
        done.push_str(rest);
        Ok(done)
    }
}

/// A line without the comment that begins at the first blank. What looks like a parameter there
/// was meant to count, and does not in Vdbench either.
fn said<'t>(place: &TextPosition, line: &'t str) -> Result<&'t str, LangError> {
    let mut quoted = false;
    let blank = line.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        !quoted && c.is_whitespace()
    });
    let Some((at, _)) = blank else { return Ok(line) };
    let (text, comment) = line.split_at(at);
    let comment = comment.trim();
    if comment.contains('=') && !comment.starts_with(['/', '#', '*']) {
        let why = "what follows a blank is a comment; take the blank out, or begin it with *";
        return Err(place.error(comment, why));
    }
    Ok(text)
}
