//! Reading a new password: twice from the terminal without echo, or the first line of standard
//! input. Never an argument, which other users of the machine can see.

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read, Stdin};
use weir_api::limits::PASSWORD_CHARS_MAX;
use weir_report::{errln, terminal};

/// The number of characters below which the command warns.
const CHARS_ADVISED: usize = 12;
/// Longest line that is read, in bytes: characters of four bytes, and the end of the line.
const LINE_BYTES_MAX: u64 = 4 * PASSWORD_CHARS_MAX as u64 + 2;

/// The characters of a terminal that is read byte by byte.
const INTERRUPT: u8 = 0x03;
const END_OF_FILE: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CLEAR: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Reads the new password of `user`.
///
/// # Errors
/// For a password that is empty or too long, or that was typed differently the second time.
pub(crate) fn read(user: &str) -> Result<String> {
    let stdin = io::stdin();
    let password = match stdin.is_terminal() {
        true => {
            let first = ask(&stdin, &format!("New password for {user}:"))?;
            if ask(&stdin, "The same password again:")? != first {
                bail!("the passwords differ; nothing was changed");
            }
            first
        }
        false => first_line(stdin.lock())?,
    };
    let length = password.chars().count();
    if !(1..=PASSWORD_CHARS_MAX).contains(&length) {
        bail!("a password must have 1 to {PASSWORD_CHARS_MAX} characters; nothing was changed");
    }
    if length < CHARS_ADVISED {
        errln!(
            "weir: warning: the password has fewer than {CHARS_ADVISED} characters: anyone who records a login can try all short passwords"
        );
    }
    Ok(password)
}

/// The first line of a file or pipe, without its end.
fn first_line(from: impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("reading the password")?;
    let text = String::from_utf8(line).ok().context("the password is not valid UTF-8")?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// Asks at the terminal.
fn ask(stdin: &Stdin, question: &str) -> Result<String> {
    let typed = {
        // Before the question, as the answer may come at once.
        let _silent = Silent::new(stdin)?;
        terminal::ask(question)?;
        typed(stdin.lock().bytes())
    };
    errln!("");
    typed
}

/// The terminal without echo, and with its control characters as input, so that no signal ends the
/// program before the echo is on again.
struct Silent<'a> {
    stdin: &'a Stdin,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(stdin: &'a Stdin) -> Result<Self> {
        let before = tcgetattr(stdin).context("reading the state of the terminal")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(stdin, OptionalActions::Flush, &silent).context("turning the echo off")?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // Of a terminal that has gone away nothing is to be restored.
        let _gone = tcsetattr(self.stdin, OptionalActions::Now, &self.before);
    }
}

/// The line that the keys make.
fn typed(keys: impl Iterator<Item = io::Result<u8>>) -> Result<String> {
    let mut line = Vec::new();
    for key in keys {
        match key.context("reading the password")? {
            b'\r' | b'\n' => {
                return String::from_utf8(line).ok().context("the password is not valid UTF-8");
            }
            INTERRUPT | END_OF_FILE => break,
            // All bytes of one character.
            BACKSPACE | DELETE => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            CLEAR => line.clear(),
            byte if (line.len() as u64) < LINE_BYTES_MAX => line.push(byte),
            _ => {}
        }
    }
    bail!("no password was given; nothing was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_make_a_line_that_can_be_corrected() {
        let typed = |keys: &[u8]| typed(keys.iter().copied().map(Ok)).ok();
        assert_eq!(typed(b"secret\r").as_deref(), Some("secret"));
        assert_eq!(typed("sü\u{7f}ecx\u{8}ret\n".as_bytes()).as_deref(), Some("secret"));
        assert_eq!(typed(b"wrong\x15right\n").as_deref(), Some("right"));
        assert_eq!(typed(b"\x7f\x7fa\n").as_deref(), Some("a"));
        for ended in [&b"secret"[..], b"sec\x03ret\n", b"\x04", b"\xff\n"] {
            assert_eq!(typed(ended), None, "{ended:?}");
        }
        let long = [vec![b'x'; 5000], b"\n".to_vec()].concat();
        assert_eq!(typed(&long).unwrap().len() as u64, LINE_BYTES_MAX);
    }

    #[test]
    fn the_first_line_of_a_pipe_is_the_password() {
        let read = |text: &[u8]| first_line(text).ok();
        assert_eq!(read(b"se cret \nmore\n").as_deref(), Some("se cret "));
        assert_eq!(read(b"secret\r\n").as_deref(), Some("secret"));
        assert_eq!(read(b"secret").as_deref(), Some("secret"));
        assert_eq!(read(b"").as_deref(), Some(""));
        assert_eq!(read(b"\xff\n"), None);
    }
}
