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

const WINDOWS: &str = "it concerns the Windows machine of diskspd";
const DATA: &str = "every block contains unique, non-zero data that cannot be compressed";
const EVENTS: &str =
    "Windows events are not supported; use workers to start several machines together";
const MAPPED: &str = "files cannot be mapped into memory; omit it";

/// The table.
pub(super) const WORDS: &[Word] = &[
    word("-b", Drives, "bytes of a request; 64K by default"),
    word("-B", Drives, "start of the used part of each file"),
    word(
        "-c",
        Drives,
        "files of this size are created and written; without it they must exist, and -f gives their size",
    ),
    word("-C", Drives, "seconds of load after the measured part"),
    word("-d", Drives, "measured seconds; 10 by default"),
    word(
        "-f",
        Drives,
        "size of the used part of each file; letters (r, s, t) are hints for Windows without effect",
    ),
    word(
        "-F",
        Drives,
        "total threads, instead of -t: each thread keeps -o requests in flight on each file",
    ),
    word(
        "-g",
        Drives,
        "limit in bytes per millisecond, or with i in requests per second (-g500i), of each thread on each file",
    ),
    word("-h", Drives, "old name of -Sh"),
    word("-i", Drives, "requests between two pauses of a thread, with -j"),
    word("-j", Drives, "duration of a pause in milliseconds, with -i"),
    word("-o", Drives, "requests in flight of each thread on each file; 2 by default"),
    word("-O", Drives, "requests in flight of each of the -F threads; with one file"),
    word("-r", Drives, "random offsets, aligned to the block size or to the given value"),
    word(
        "-rs",
        Drives,
        "percentage of requests at a random offset; the others follow the previous one",
    ),
    word(
        "-s",
        Drives,
        "sequential requests (the default); a stride other than the block size is refused",
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
        "offset in bytes between the start positions of the threads of a file; in sequential runs",
    ),
    word("-w", Drives, "percentage of writes; 0 by default"),
    word("-W", Drives, "seconds of load before the measured part; 5 by default"),
    word("-z", Drives, "the seed; 0 by default, and also for -z alone"),
    word("-D", Reports, "figures of every second are always recorded"),
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
    word("-p", Refused, "requests to a single offset are not meaningful; omit it"),
    word("-rd", Refused, "non-uniform distributions are not supported; use -r"),
    word("-Rp", Refused, "profiles are not supported; use --dry-run"),
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
