//! Telling in which language a text is written: by the file's ending, by what it holds, by the
//! program that a command line begins with.

use super::words;
use crate::scenario::Language;
use std::path::Path;

/// The language of a file of this name that holds this text; `None` if it can't be told.
#[must_use]
pub fn detect(name: &str, text: &str) -> Option<Language> {
    let ending = Path::new(name).extension().map(std::ffi::OsStr::to_ascii_lowercase);
    let by_ending = match ending.as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("toml") => Some(Language::Native),
        Some("fio" | "job") => Some(Language::Fio),
        Some("vdb" | "vdbench" | "parm" | "parmfile") => Some(Language::Vdbench),
        Some("diskspd") => Some(Language::Diskspd),
        _ => None,
    };
    by_ending.or_else(|| by_content(text))
}

/// The language of the program that a command line begins with, with or without directory and
/// `.exe`.
#[must_use]
pub fn program(word: &str) -> Option<Language> {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    let name = ["", ".exe", ".bat", ".bash"].iter().find_map(|ending| {
        let bare = name.strip_suffix(ending)?;
        ["fio", "diskspd", "vdbench"].contains(&bare).then_some(bare)
    })?;
    match name {
        "fio" => Some(Language::Fio),
        "diskspd" => Some(Language::Diskspd),
        _ => Some(Language::Vdbench),
    }
}

/// The first line that is typical of one language decides.
fn by_content(text: &str) -> Option<Language> {
    if let Some(words) = words::command_of(text) {
        return program(words.first()?);
    }
    text.lines().find_map(|line| {
        let line = line.trim();
        if line.starts_with("[[") {
            return Some(Language::Native);
        }
        let key = line.split(['=', ',']).next().unwrap_or("").trim();
        match key {
            "title" | "about" | "[defaults]" => Some(Language::Native),
            "hd" | "sd" | "wd" | "rd" | "fsd" | "fwd" | "rg" | "data_errors" | "messagescan"
            | "startcmd" | "endcmd" | "create_anchors" => Some(Language::Vdbench),
            _ if line.starts_with('[') => Some(Language::Fio),
            _ => None,
        }
    })
}
