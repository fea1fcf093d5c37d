//! Every word of Vdbench's parameter files that is known, and what becomes of it.

use super::treatment::Treatment::{self, Drives, Nothing, Refused, Reports};
use crate::lang::nearest;

/// The section of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// Before the definitions.
    General,
    /// In `hd=`.
    Host,
    /// In `sd=`.
    Storage,
    /// In `wd=`.
    Workload,
    /// In `rd=`.
    Run,
    /// On the command line.
    Command,
}

/// A word.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) section: Section,
    pub(super) name: &'static str,
    pub(super) treatment: Treatment,
    /// The setting that it drives, the reason why it has no effect, or the reason for refusing it
    /// with the remedy.
    pub(super) says: &'static str,
}

const fn word(
    section: Section,
    name: &'static str,
    treatment: Treatment,
    says: &'static str,
) -> Word {
    Word { section, name, treatment, says }
}

use Section::{Command, General, Host, Run, Storage, Workload};

const NO_COMMANDS: &str = "Weir runs no commands of a text; run them before and after";
const NO_REPLAY: &str = "traces cannot be replayed; describe the load with wd= and rd=";
const NO_HITS: &str = "only 0: blocks cannot be chosen so that a part of them hits a cache";
const NO_DEDUP: &str = "data here has no duplicates; omit it";
const ONLY_ONE: &str = "only 1: data here cannot be compressed and has no duplicates";
const FILE_SYSTEMS: &str = "file system workloads (fsd=, fwd=) are not read; use sd= and wd=";
const WORKERS: &str = "hosts are workers of weir bench, which are started by its own options";
const FOR: &str = "a run for each value";

/// The table.
pub(super) const WORDS: &[Word] = &[
    word(General, "include", Drives, "the file's lines, looked for beside the file that names it"),
    word(
        General,
        "validate",
        Drives,
        "yes, time, no_preread: what is read is compared with what was written, and what a workload only writes is read back after the run; read_after_write: what mixed workloads write too; no: neither",
    ),
    word(
        General,
        "formatsds",
        Drives,
        "yes: files are written once before their first use; no: they begin as holes",
    ),
    word(
        General,
        "formatxfersize",
        Drives,
        "bytes in one write when files are written before their first use",
    ),
    word(General, "messagescan", Nothing, "messages of the clients' systems are not watched"),
    word(General, "data_errors", Nothing, "errors are counted and shown, and end no run"),
    word(General, "dataerrors", Nothing, "as data_errors"),
    word(General, "compratio", Nothing, ONLY_ONE),
    word(General, "compression", Refused, "data here cannot be compressed; omit it"),
    word(General, "compressionseed", Nothing, "data here cannot be compressed"),
    word(General, "dedupratio", Nothing, ONLY_ONE),
    word(General, "dedupunit", Nothing, "data here has no duplicates"),
    word(General, "dedupsets", Refused, NO_DEDUP),
    word(General, "deduphotsets", Refused, NO_DEDUP),
    word(General, "dedupflipflop", Refused, NO_DEDUP),
    word(
        General,
        "pattern",
        Nothing,
        "every block carries data of its own that cannot be compressed",
    ),
    word(General, "pattern_buffer", Nothing, "every block carries data of its own"),
    word(
        General,
        "create_anchors",
        Nothing,
        "the directory of the files is made where it is missing",
    ),
    word(General, "concatenatesds", Nothing, "only no: files cannot be used as one"),
    word(General, "histogram", Reports, "latencies are always recorded in fine steps"),
    word(General, "report", Reports, "see Weir's own reports"),
    word(General, "report_run_totals", Reports, "see Weir's own reports"),
    word(
        General,
        "ios_per_jvm",
        Nothing,
        "there are no Java processes; a saturated generator is reported",
    ),
    word(General, "abort_failed_skew", Nothing, "each load's own figures show its part"),
    word(General, "fwd_thread_adjust", Nothing, "it is about file system workloads"),
    word(General, "port", Nothing, WORKERS),
    word(General, "psrset", Nothing, "it is about Solaris"),
    word(General, "journal", Refused, "there are no journals; validate=yes checks within one call"),
    word(
        General,
        "loop",
        Refused,
        "omit it and repeat with Weir's own option, which also gives medians",
    ),
    word(
        General,
        "monitor",
        Refused,
        "omit it and end a run with Ctrl-C; what was measured is kept",
    ),
    word(General, "timeout", Refused, "omit it; the suite reports what was lost"),
    word(General, "showlba", Refused, "there are no traces of requests; omit it"),
    word(General, "startcmd", Refused, NO_COMMANDS),
    word(General, "start_cmd", Refused, NO_COMMANDS),
    word(General, "endcmd", Refused, NO_COMMANDS),
    word(General, "end_cmd", Refused, NO_COMMANDS),
    word(General, "heartbeat_error", Refused, NO_COMMANDS),
    word(General, "unix2windows", Refused, "omit it and say with --map where paths lie"),
    word(General, "auxreport", Refused, "foreign reports cannot be joined; omit it"),
    word(General, "misc", Refused, "it is for Vdbench's own extensions; omit it"),
    word(General, "debug", Refused, "it is for Vdbench's own developers; omit it"),
    word(Host, "hd", Drives, "the host's name; loads name the hosts that take part"),
    word(Host, "clients", Drives, "clients in each load, each with connections of its own"),
    word(Host, "system", Drives, "the machine of the host: a worker is started there over ssh"),
    word(Host, "vdbench", Nothing, WORKERS),
    word(Host, "user", Drives, "the user with whom ssh logs in"),
    word(Host, "shell", Drives, "workers are started over ssh; any other value is only noted"),
    word(Host, "master", Nothing, WORKERS),
    word(Host, "jvms", Nothing, "there are no Java processes; a saturated generator is reported"),
    word(
        Host,
        "mount",
        Refused,
        "nothing is mounted; mount before, or name the export itself as the target",
    ),
    word(Storage, "sd", Drives, "the storage's name; default: for those that follow"),
    word(Storage, "lun", Drives, "the file; its name on the target is its last part"),
    word(Storage, "size", Drives, "the file's size; needed"),
    word(Storage, "threads", Drives, "requests in flight on the file; 8 by default"),
    word(
        Storage,
        "openflags",
        Drives,
        "o_direct, directio: O_DIRECT, over NFS file-sync writes; o_sync: file-sync writes; o_dsync, o_rsync: data-sync writes; fsync: a COMMIT at the end",
    ),
    word(Storage, "host", Drives, "hosts that use it; on all of them the same file"),
    word(Storage, "hd", Drives, "as host"),
    word(
        Storage,
        "count",
        Drives,
        "(first,number): so many of them; the number takes the place of %d, %04d or * in lun=",
    ),
    word(Storage, "range", Drives, "the part that is used, in percent, or in bytes over 200"),
    word(Storage, "offset", Drives, "bytes left free at the beginning"),
    word(Storage, "align", Drives, "random offsets are multiples of it"),
    word(Storage, "hitarea", Nothing, NO_HITS),
    word(Storage, "kstat", Nothing, "it is about Solaris"),
    word(Storage, "instance", Nothing, "it is about Solaris"),
    word(Storage, "dedupratio", Nothing, ONLY_ONE),
    word(Storage, "journal", Refused, "there are no journals; omit it"),
    word(Storage, "replay", Refused, NO_REPLAY),
    word(Storage, "resetlun", Refused, "Weir measures files, not disks; omit it"),
    word(Storage, "resetbus", Refused, "Weir measures files, not disks; omit it"),
    word(Storage, "streams", Refused, "it belongs to wd="),
    word(Workload, "wd", Drives, "the workload's name; default: for those that follow"),
    word(Workload, "sd", Drives, "the files, by name, wildcard (sd*) or range (sd1-sd8)"),
    word(Workload, "host", Drives, "hosts that take part, by name or wildcard"),
    word(Workload, "hd", Drives, "as host"),
    word(Workload, "rdpct", Drives, "reads among a hundred requests; 100 by default"),
    word(Workload, "readpct", Drives, "as rdpct"),
    word(Workload, "writepct", Drives, "writes among a hundred requests"),
    word(Workload, "wrpct", Drives, "as writepct"),
    word(
        Workload,
        "xfersize",
        Drives,
        "bytes of a request: one size, (size,percent,…) or (min,max,align); 4k by default",
    ),
    word(
        Workload,
        "seekpct",
        Drives,
        "100 or random, 0 or sequential, 1 to 99 mixed, eof or -1: once to the end; random by default",
    ),
    word(Workload, "skew", Drives, "the part of the run's rate, or of its threads at iorate=max"),
    word(
        Workload,
        "range",
        Drives,
        "the part of each file that is used, in percent, or in bytes over 200",
    ),
    word(Workload, "iorate", Drives, "a rate of its own, whatever the run's"),
    word(Workload, "streams", Drives, "sequences in each file; as many as threads"),
    word(Workload, "openflags", Drives, "as in sd="),
    word(Workload, "priority", Nothing, "each load keeps its own rate"),
    word(Workload, "rhpct", Nothing, NO_HITS),
    word(Workload, "whpct", Nothing, NO_HITS),
    word(Workload, "hotband", Refused, "its distribution cannot be applied; use range="),
    word(
        Workload,
        "stride",
        Refused,
        "sequences that leave blocks out cannot be applied; use seekpct=",
    ),
    word(
        Workload,
        "threads",
        Refused,
        "Vdbench takes it with concatenated files only; set threads= in sd= or forthreads= in rd=",
    ),
    word(Workload, "user", Refused, "it is for Vdbench's own extensions; omit it"),
    word(Run, "rd", Drives, "the run's name; default: for those that follow"),
    word(Run, "wd", Drives, "the workloads, by name, wildcard or range"),
    word(
        Run,
        "sd",
        Drives,
        "files in place of the workloads' own; alone: with the default workload",
    ),
    word(Run, "iorate", Drives, "max, curve, a number, or a run for each of a list"),
    word(
        Run,
        "curve",
        Drives,
        "percents of the highest rate that are run after it; 10,50,70,80,90,100 by default",
    ),
    word(
        Run,
        "stopcurve",
        Drives,
        "milliseconds of mean latency over which the rest of a curve is left out",
    ),
    word(
        Run,
        "distribution",
        Drives,
        "exponential (by default) or deterministic distances between requests",
    ),
    word(Run, "elapsed", Drives, "measured seconds; 30 by default"),
    word(Run, "warmup", Drives, "seconds of load before them"),
    word(Run, "interval", Reports, "figures of every second are always kept"),
    word(Run, "pause", Drives, "seconds to wait before the next run"),
    word(
        Run,
        "maxdata",
        Drives,
        "the run ends after so many bytes, or so many times the size of the files below 100",
    ),
    word(Run, "openflags", Drives, "in place of those of sd= and wd="),
    word(Run, "threads", Drives, "as forthreads"),
    word(Run, "forthreads", Drives, FOR),
    word(Run, "xfersize", Drives, "as forxfersize"),
    word(Run, "forxfersize", Drives, FOR),
    word(Run, "rdpct", Drives, "as forrdpct"),
    word(Run, "forrdpct", Drives, FOR),
    word(Run, "seekpct", Drives, "as forseekpct"),
    word(Run, "forseekpct", Drives, FOR),
    word(Run, "hitarea", Nothing, NO_HITS),
    word(Run, "forhitarea", Nothing, NO_HITS),
    word(Run, "rhpct", Nothing, NO_HITS),
    word(Run, "forrhpct", Nothing, NO_HITS),
    word(Run, "whpct", Nothing, NO_HITS),
    word(Run, "forwhpct", Nothing, NO_HITS),
    word(Run, "compratio", Nothing, ONLY_ONE),
    word(Run, "forcompratio", Nothing, ONLY_ONE),
    word(Run, "maxdataread", Refused, "ends by reads alone cannot be applied; use maxdata="),
    word(Run, "maxdatawritten", Refused, "ends by writes alone cannot be applied; use maxdata="),
    word(Run, "replay", Refused, NO_REPLAY),
    word(Run, "mount", Refused, "nothing is mounted; omit it"),
    word(Run, "startcmd", Refused, NO_COMMANDS),
    word(Run, "start_cmd", Refused, NO_COMMANDS),
    word(Run, "endcmd", Refused, NO_COMMANDS),
    word(Run, "end_cmd", Refused, NO_COMMANDS),
    word(Run, "format", Refused, FILE_SYSTEMS),
    word(Run, "fsd", Refused, FILE_SYSTEMS),
    word(Run, "fwd", Refused, FILE_SYSTEMS),
    word(Run, "fwdrate", Refused, FILE_SYSTEMS),
    word(Run, "operations", Refused, FILE_SYSTEMS),
    word(Command, "-f", Drives, "the parameter files, one after the other"),
    word(Command, "-e", Drives, "elapsed= of all runs"),
    word(Command, "-w", Drives, "warmup= of all runs"),
    word(Command, "-i", Reports, "interval= of all runs"),
    word(Command, "-o", Reports, "results are written where Weir's own options say"),
    word(Command, "-r", Drives, "the run to begin with"),
    word(Command, "-v", Drives, "validate=yes; -vr: read_after_write, -vw: no_preread, -vt: time"),
    word(Command, "-m", Nothing, "there are no Java processes"),
    word(Command, "-p", Nothing, WORKERS),
    word(Command, "-s", Refused, "use --dry-run"),
    word(Command, "-l", Refused, "repeat with Weir's own option, which also gives medians"),
    word(Command, "-j", Refused, "there are no journals; -v checks within one call"),
    word(Command, "-c", Refused, "it is about file system workloads"),
    word(Command, "-k", Refused, "it is about Solaris"),
    word(Command, "-t", Refused, "it is Vdbench's own test; name a parameter file with -f"),
];

/// Why no word was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// None begins so.
    None,
    /// These do.
    Several(Vec<&'static str>),
}

/// The word written as `written`, which may be cut to as little as two letters where that is
/// enough to tell it.
pub(super) fn find(section: Section, written: &str) -> Result<&'static Word, Unknown> {
    let written = written.to_ascii_lowercase();
    let here = || WORDS.iter().filter(move |word| word.section == section);
    if let Some(word) = here().find(|word| word.name == written) {
        return Ok(word);
    }
    let begun: Vec<&'static Word> = here()
        .filter(|word| written.chars().count() >= 2 && word.name.starts_with(written.as_str()))
        .collect();
    match begun.as_slice() {
        [] => Err(Unknown::None),
        [word] => Ok(word),
        // A driving word is meant before those that are refused, as in Vdbench itself.
        several => {
            let drives: Vec<&'static Word> =
                several.iter().copied().filter(|word| word.treatment != Refused).collect();
            match drives.as_slice() {
                [word] => Ok(word),
                _ => Err(Unknown::Several(several.iter().map(|word| word.name).collect())),
            }
        }
    }
}

/// The message about an unknown word.
pub(super) fn unknown(section: Section, written: &str) -> String {
    let written = written.to_ascii_lowercase();
    let here = WORDS.iter().filter(|word| word.section == section).map(|word| word.name);
    let meant = nearest(&written, here).filter(|_| section != Command);
    let meant = meant.map_or_else(String::new, |name| format!("; is {name} meant?"));
    format!("it is not known here{meant} (see docs/bench-vdbench.md)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn words_are_found_whole_and_cut_short() {
        let name = |section, written| find(section, written).map(|word| word.name);
        assert_eq!(name(Run, "elapsed"), Ok("elapsed"));
        assert_eq!(name(Run, "EL"), Ok("elapsed"));
        assert_eq!(name(Workload, "xf"), Ok("xfersize"));
        assert_eq!(name(Storage, "th"), Ok("threads"));
        assert_eq!(name(General, "report"), Ok("report"));
        assert_eq!(name(Run, "e"), Err(Unknown::None));
        assert_eq!(name(Run, "nonsense"), Err(Unknown::None));
        assert_eq!(name(Workload, "s"), Err(Unknown::None));
        let Err(Unknown::Several(names)) = name(Run, "forr") else { panic!("two begin so") };
        assert_eq!(names, ["forrdpct", "forrhpct"]);
    }

    #[test]
    fn no_word_stands_twice_and_each_says_something() {
        for (at, word) in WORDS.iter().enumerate() {
            assert!(!word.says.is_empty(), "{}", word.name);
            let again = WORDS.iter().skip(at + 1);
            let same = |other: &&Word| other.section == word.section && other.name == word.name;
            assert_eq!(again.filter(same).count(), 0, "{:?} {}", word.section, word.name);
        }
    }

    #[test]
    fn the_page_for_users_has_the_table() {
        let mut table = String::new();
        for (section, title) in [
            (General, "General parameters"),
            (Host, "Hosts, `hd=`"),
            (Storage, "Files, `sd=`"),
            (Workload, "Workloads, `wd=`"),
            (Run, "Runs, `rd=`"),
            (Command, "The command line"),
        ] {
            write!(table, "\n### {title}\n\n| word | treatment | |\n|---|---|---|\n").unwrap();
            for word in WORDS.iter().filter(|word| word.section == section) {
                let Word { name, treatment, says, .. } = word;
                writeln!(table, "| `{name}` | {} | {says} |", treatment.name()).unwrap();
            }
        }
        super::super::treatment::check_page("bench-vdbench.md", &format!("{table}\n"));
    }
}
