//! The whole terminal, while a program draws on it.

use super::{Text, put};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fmt::Write as _;
use std::io;

/// The screen while the program owns it; dropping it restores the terminal.
pub struct Screen {
    before: Option<Termios>,
}

impl Screen {
    /// Takes the screen, and makes keys arrive at once and unechoed; Ctrl-C stays a signal.
    ///
    /// # Errors
    /// The error of the write or of the terminal.
    pub fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &keys)?;
        }
        let screen = Self { before };
        put("\x1b[?1049h\x1b[?25l")?;
        Ok(screen)
    }

    /// Draws `text` over the screen's content, cut to the terminal's size.
    ///
    /// # Errors
    /// The error of the write.
    pub fn draw(&self, text: &Text) -> io::Result<()> {
        put(&drawn(text, size()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _gone = put("\x1b[?25h\x1b[?1049l");
        if let Some(before) = &self.before {
            let _gone = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// `text` on a screen with this number of lines and columns.
fn drawn(text: &Text, (lines, columns): (usize, usize)) -> String {
    let mut screen = String::from("\x1b[H");
    for line in text.as_str().lines().take(lines) {
        let line: String = line.chars().take(columns).collect();
        let _ = write!(screen, "{line}\x1b[K\r\n");
    }
    // The last end of line would push the first line out.
    screen.trim_end_matches("\r\n").to_owned() + "\x1b[J"
}

/// Lines and columns of the terminal.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0);
    size.map_or((24, 80), |size| (size.ws_row.into(), size.ws_col.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_the_lines_that_fit_and_nothing_commands_it_but_the_drawing() {
        let text = Text::from_iter(["a\n\x1b[2J", "long line", "third"]);
        assert_eq!(drawn(&text, (2, 7)), "\x1b[Ha\\n\\u{1\x1b[K\r\nlong li\x1b[K\x1b[J");
    }
}
