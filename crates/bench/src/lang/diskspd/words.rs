//! Every option of diskspd that is known, and what becomes of it.

use crate::lang::vdbench::treatment::Treatment::{self, Drives, Nothing, Refused, Reports};

/// An option.
#[derive(Debug)]
pub(super) struct Word {
    /// The word as it is written, without its value. The longest that fits counts.
    pub(super) name: &'static str,
    pub(super) treatment: Treatment,
    /// The setting that it drives, the reason why it has no effect, or the reason for refusing it
    /// with the remedy.
    pub(super) says: &'static str,
}

const fn word(name: &'static str, treatment: Treatment, says: &'static str) -> Word {
    Word { name, treatment, says }
}

const WINDOWS: &str = "it is about the Windows machine that diskspd runs on";
const DATA: &str = "every block carries data of its own, never zeros, that cannot be compressed";
const EVENTS: &str =
    "there are no Windows events; several machines are started together as workers";
const MAPPED: &str = "files cannot be mapped into memory; omit it";

/// The table.
pub(super) const WORDS: &[Word] = &[
    word("-b", Drives, "bytes of a request; 64K by default"),
    word("-B", Drives, "where the used part of each file begins"),
    word(
        "-c",
        Drives,
        "files of this size are made and written; without it they exist already, and -f says how large they are",
    ),
    word("-C", Drives, "seconds of load after the measured ones"),
    word("-d", Drives, "measured seconds; 10 by default"),
    word(
        "-f",
        Drives,
        "only so much of each file is used; letters (r, s, t) are hints to Windows and have no effect",
    ),
    word(
        "-F",
        Drives,
        "threads for each file, in place of -t: every thread of diskspd keeps -o requests in flight on each file",
    ),
    word(
        "-g",
        Drives,
        "bytes a millisecond, or requests a second with i (-g500i), of each thread on each file",
    ),
    word("-h", Drives, "old name of -Sh"),
    word("-i", Drives, "requests between two pauses of a thread, with -j"),
    word("-j", Drives, "milliseconds of a pause, with -i"),
    word("-o", Drives, "requests in flight of each thread on each file; 2 by default"),
    word("-O", Drives, "requests in flight of each of the -F threads; with one file"),
    word("-r", Drives, "random places, on multiples of the block size or of what is said"),
    word(
        "-rs",
        Drives,
        "so many of a hundred requests at a random place, the others after the one before",
    ),
    word(
        "-s",
        Drives,
        "one request after the other (also by default); a distance other than the block size is refused",
    ),
    word("-si", Drives, "as -s, with one sequence for all threads of a file"),
    word(
        "-S",
        Drives,
        "as -Su; letters: u: O_DIRECT, w: file-sync writes, h: both, r: O_DIRECT, b: neither",
    ),
    word("-t", Drives, "threads on each file; 1 by default"),
    word(
        "-T",
        Drives,
        "each thread of a file begins so many bytes behind the one before; in sequential runs",
    ),
    word("-w", Drives, "writes among a hundred requests; 0 by default"),
    word("-W", Drives, "seconds of load before the measured ones; 5 by default"),
    word("-z", Drives, "the seed; 0 by default, and also for -z alone"),
    word("-D", Reports, "figures of every second are always kept"),
    word("-e", Reports, "event tracing of Windows; leave it to Windows"),
    word("-L", Reports, "latencies are always recorded"),
    word("-P", Reports, "progress is shown by the suite"),
    word("-R", Reports, "see Weir's own reports"),
    word("-v", Reports, "results are always complete"),
    word("-a", Nothing, WINDOWS),
    word("-I", Nothing, WINDOWS),
    word("-l", Nothing, WINDOWS),
    word("-n", Nothing, WINDOWS),
    word("-x", Nothing, WINDOWS),
    word("-Z", Nothing, DATA),
    word("-?", Refused, "see docs/bench-diskspd.md"),
    word("-N", Refused, MAPPED),
    word("-p", Refused, "requests that all go to the same place tell nothing; omit it"),
    word("-rd", Refused, "uneven distributions cannot be applied; use -r"),
    word("-Rp", Refused, "profiles cannot be written; use --dry-run"),
    word("-Sm", Refused, MAPPED),
    word("-X", Refused, "XML profiles are not read; write the options on the command line"),
    word("-y", Refused, EVENTS),
];

/// The option that `written` begins with, and what follows it.
pub(super) fn find(written: &str) -> Option<(&'static Word, &str)> {
    let fits = |word: &&Word| written.starts_with(word.name);
    let word = WORDS.iter().filter(fits).max_by_key(|word| word.name.len())?;
    Some((word, written.get(word.name.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn the_longest_option_counts() {
        let name = |written| find(written).map(|(word, rest)| (word.name, rest));
        assert_eq!(name("-rs50"), Some(("-rs", "50")));
        assert_eq!(name("-r4k"), Some(("-r", "4k")));
        assert_eq!(name("-si64K"), Some(("-si", "64K")));
        assert_eq!(name("-Sh"), Some(("-S", "h")));
        assert_eq!(name("-q"), None);
        assert_eq!(name("-é"), None);
    }

    #[test]
    fn the_page_for_users_has_the_table() {
        let mut table = "\n| option | treatment | |\n|---|---|---|\n".to_owned();
        for Word { name, treatment, says } in WORDS {
            writeln!(table, "| `{name}` | {} | {says} |", treatment.name()).unwrap();
        }
        let table = format!("{table}\n");
        crate::lang::vdbench::treatment::check_page("bench-diskspd.md", &table);
    }
}
