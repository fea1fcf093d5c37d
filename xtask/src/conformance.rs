//! pjdfstest over the kernel's client: runs it on Weir, on NFS-Ganesha and on the file systems
//! alone, and decides. What is known to fail is listed with an id that `docs/conformance.md`
//! explains; a failure that is not listed counts, a listed test that passes counts, and so does a
//! test that Ganesha passes and Weir does not, listed or not. Over volumes on CephFS it is run on
//! Weir alone.

use crate::{preflight, process, suites};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const OUT: &str = "target/conformance";
const KNOWN: &str = "tests/conformance/pjdfstest-known.txt";
const FILE_SYSTEMS: [&str; 2] = ["ext4", "xfs"];
const CEPHFS_OUT: &str = "target/conformance-cephfs";
const CEPHFS: &str = "cephfs";
/// Tests that are skipped on CephFS, for the reason in `docs/conformance.md`. With another, a
/// feature or the second file system was not found.
const CEPHFS_SKIPPED: [&str; 1] = ["link::link_count_max"];
const COLUMNS: [(&str, &str); 6] = [
    ("local", "ext4"),
    ("ganesha", "ext4"),
    ("weir", "ext4"),
    ("local", "xfs"),
    ("ganesha", "xfs"),
    ("weir", "xfs"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

/// The result of one run for each test.
type Run = BTreeMap<String, Verdict>;

/// A test known to fail on Weir, on one file system or on `*`, which is ext4 and XFS, and the id of
/// the reason.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    id: String,
    file_system: String,
    test: String,
}

/// Runs everything and prints the tables; `true` if nothing was unexpected.
pub(crate) fn run() -> Result<bool> {
    preflight::conformance()?;
    let mut script = Command::new("tests/conformance/pjdfstest.sh");
    script.arg(OUT).env("WEIR", suites::build()?.weir);
    if !process::succeeds(script.env("PJDFSTEST", preflight::PJDFSTEST))? {
        bail!("not all of pjdfstest was run; what it left is in {OUT}");
    }
    judge(Path::new(OUT))
}

/// Reads the results in `folder`, prints them, and decides.
fn judge(folder: &Path) -> Result<bool> {
    let known = listed()?;
    let mut runs = BTreeMap::new();
    for (server, file_system) in COLUMNS {
        let path = folder.join(format!("{server}-{file_system}"));
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        runs.insert((server, file_system), parse(&String::from_utf8_lossy(&text)));
    }
    print!("\n{}", table(&runs));
    let surprises = surprises(&runs, &known);
    for surprise in &surprises {
        println!("unexpected: {surprise}");
    }
    let weir: Vec<&Run> = FILE_SYSTEMS.iter().map(|fs| &runs[&("weir", *fs)]).collect();
    let total = |verdict| weir.iter().map(|run| count(run, verdict)).sum::<usize>();
    println!(
        "\nWeir on both file systems; {} unexpected, the failures that are known are in docs/conformance.md\n\
         {} passed, {} failed, {} skipped",
        surprises.len(),
        total(Verdict::Passed),
        total(Verdict::Failed),
        total(Verdict::Skipped)
    );
    Ok(surprises.is_empty())
}

/// Runs pjdfstest on volumes on CephFS that `weir` serves, and gives the verdict of each test: one
/// that is known to fail counts as skipped, and a surprise as failed.
pub(crate) fn on_cephfs(weir: &Path, mark: &str) -> Result<Vec<Verdict>> {
    let mut script = Command::new("tests/conformance/pjdfstest-cephfs.sh");
    script.arg(CEPHFS_OUT).env("WEIR", weir).env("PJDFSTEST", preflight::PJDFSTEST);
    if !process::succeeds(&mut script)? {
        bail!("not all of pjdfstest was run; the rest of it is in {CEPHFS_OUT}");
    }
    let path = Path::new(CEPHFS_OUT).join("weir-cephfs");
    let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let run = parse(&String::from_utf8_lossy(&text));
    let known = listed()?;
    let mut verdicts = Vec::new();
    for (test, verdict) in &run {
        let found = surprise(test, Some(*verdict), CEPHFS, &known).or_else(|| {
            let is_new = *verdict == Verdict::Skipped && !CEPHFS_SKIPPED.contains(&test.as_str());
            is_new.then(|| format!("{test} was skipped"))
        });
        let (verdict, words) = match (&found, verdict) {
            (Some(words), _) => (Verdict::Failed, format!("not ok - {test} # {words}")),
            (None, Verdict::Passed) => (Verdict::Passed, format!("ok - {test}")),
            (None, _) => (Verdict::Skipped, format!("ok - {test} # SKIP")),
        };
        println!("{mark}{words}");
        verdicts.push(verdict);
    }
    let absent = known.iter().filter(|known| known.file_system == CEPHFS);
    for Known { test, .. } in absent.filter(|known| !run.contains_key(&known.test)) {
        println!("{mark}not ok - {test} # it is listed and not a test");
        verdicts.push(Verdict::Failed);
    }
    Ok(verdicts)
}

/// The list of known failures.
fn listed() -> Result<Vec<Known>> {
    known(&fs::read_to_string(KNOWN).with_context(|| format!("reading {KNOWN}"))?)
}

/// Lines of `test   ok`, `test   FAILED` or `test   skipped`; what is said of one is indented.
fn parse(text: &str) -> Run {
    let verdict = |word| match word {
        "ok" => Some(Verdict::Passed),
        "FAILED" => Some(Verdict::Failed),
        "skipped" => Some(Verdict::Skipped),
        _ => None,
    };
    text.lines()
        .filter_map(|line| {
            let (test, word) = line.split_once(' ').filter(|(test, _)| test.contains("::"))?;
            Some((test.to_owned(), verdict(word.trim())?))
        })
        .collect()
}

/// Lines of `ID FILE-SYSTEM TEST`.
fn known(text: &str) -> Result<Vec<Known>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            [id, file_system, test]
                if ["*", CEPHFS].contains(file_system) || FILE_SYSTEMS.contains(file_system) =>
            {
                Ok(Known {
                    id: (*id).to_owned(),
                    file_system: (*file_system).to_owned(),
                    test: (*test).to_owned(),
                })
            }
            _ => bail!("{KNOWN}: not `ID FILE-SYSTEM TEST`: {line}"),
        })
        .collect()
}

/// Everything that should not be so.
fn surprises(runs: &BTreeMap<(&str, &str), Run>, known: &[Known]) -> Vec<String> {
    let mut found = Vec::new();
    let all: BTreeSet<&String> = runs.values().flat_map(Run::keys).collect();
    if all.is_empty() {
        found.push("no test was run at all".to_owned());
    }
    for ((server, file_system), run) in runs {
        let absent = all.len() - run.len();
        if absent > 0 {
            found.push(format!("{absent} tests were not run: {server} on {file_system}"));
        }
    }
    for file_system in FILE_SYSTEMS {
        for test in &all {
            let of = |server| runs[&(server, file_system)].get(*test).copied();
            found.extend(surprise(test, of("weir"), file_system, known));
            if of("ganesha") == Some(Verdict::Passed) && of("weir") != Some(Verdict::Passed) {
                found.push(format!("{test} passes with Ganesha alone on {file_system}"));
            }
        }
    }
    let here = known.iter().filter(|known| known.file_system != CEPHFS);
    let unknown = here.filter(|known| !all.contains(&known.test));
    found.extend(unknown.map(|known| format!("{} is listed and not a test", known.test)));
    found
}

/// The verdict of a test on Weir, if it is not the one that the list lets expect.
fn surprise(
    test: &str,
    verdict: Option<Verdict>,
    file_system: &str,
    known: &[Known],
) -> Option<String> {
    let covers = |known: &&Known| match known.file_system.as_str() {
        "*" => FILE_SYSTEMS.contains(&file_system),
        one => one == file_system,
    };
    let entry = known.iter().filter(|known| known.test == test).find(covers);
    match (verdict, entry) {
        (Some(Verdict::Failed), None) => Some(format!("{test} fails on {file_system}")),
        (Some(Verdict::Passed | Verdict::Skipped), Some(Known { id, .. })) => {
            Some(format!("{test} does not fail on {file_system}, known as {id}"))
        }
        _ => None,
    }
}

fn count(run: &Run, verdict: Verdict) -> usize {
    run.values().filter(|other| **other == verdict).count()
}

/// Totals of each run, then the tests that fail somewhere, as Markdown.
fn table(runs: &BTreeMap<(&str, &str), Run>) -> String {
    let mut text = String::from(
        "| file system | server | passed | failed | skipped |\n|---|---|---|---|---|\n",
    );
    for (server, file_system) in COLUMNS {
        let run = &runs[&(server, file_system)];
        let [passed, failed, skipped] =
            [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|verdict| count(run, verdict));
        let name = match server {
            "local" => "none, local",
            "ganesha" => "NFS-Ganesha",
            _ => "Weir",
        };
        let _ = writeln!(text, "| {file_system} | {name} | {passed} | {failed} | {skipped} |");
    }
    let fails = |test: &str| runs.values().any(|run| run.get(test) == Some(&Verdict::Failed));
    let all: BTreeSet<&String> = runs.values().flat_map(Run::keys).collect();
    text.push_str("\n| fails | ext4: local | Ganesha | Weir | XFS: local | Ganesha | Weir |\n|---|---|---|---|---|---|---|\n");
    for test in all.into_iter().filter(|test| fails(test)) {
        let _ = write!(text, "| `{test}` |");
        for column in COLUMNS {
            let word = match runs[&column].get(test) {
                Some(Verdict::Passed) => "ok",
                Some(Verdict::Failed) => "fails",
                Some(Verdict::Skipped) => "skipped",
                None => "absent",
            };
            let _ = write!(text, " {word} |");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six runs, in which Ganesha and Weir on ext4 say this of one test, and all others pass it.
    fn runs(ganesha: &str, weir: &str) -> BTreeMap<(&'static str, &'static str), Run> {
        COLUMNS
            .into_iter()
            .map(|column| {
                let word = match column {
                    ("ganesha", "ext4") => ganesha,
                    ("weir", "ext4") => weir,
                    _ => "ok",
                };
                (column, parse(&format!("chmod::basic   {word}\n\ta reason   ok\n")))
            })
            .collect()
    }

    #[test]
    fn every_kind_of_line_is_read() {
        let text = "chmod::a  ok\nlink::b  FAILED\n\tassertion `left == right`\nleft: ok\n\
                    open::c  skipped\n\trequires features: x\n\nSummary: 1 failed, 1 skipped\n";
        let expected = [
            ("chmod::a", Verdict::Passed),
            ("link::b", Verdict::Failed),
            ("open::c", Verdict::Skipped),
        ];
        assert_eq!(parse(text), expected.map(|(test, verdict)| (test.to_owned(), verdict)).into());
    }

    #[test]
    fn only_what_is_known_may_fail_and_only_if_ganesha_fails_too() {
        let listed = known("# why\n\nC1 ext4 chmod::basic\n").unwrap();
        assert_eq!(surprises(&runs("ok", "ok"), &[]), Vec::<String>::new());
        assert_eq!(surprises(&runs("FAILED", "FAILED"), &listed), Vec::<String>::new());
        assert_eq!(surprises(&runs("FAILED", "FAILED"), &[]).len(), 1);
        assert_eq!(surprises(&runs("ok", "ok"), &listed).len(), 1);
        assert_eq!(surprises(&runs("ok", "FAILED"), &listed).len(), 1);
        assert_eq!(surprises(&runs("ok", "skipped"), &[]).len(), 1);
        assert!(known("C1 btrfs chmod::basic").is_err());
    }

    #[test]
    fn a_list_for_cephfs_says_nothing_of_other_file_systems() {
        let both = known("P1 * chmod::basic\n").unwrap();
        let ceph = known("C1 cephfs chmod::basic\n").unwrap();
        let failed = Some(Verdict::Failed);
        assert!(surprise("chmod::basic", failed, CEPHFS, &both).is_some());
        assert!(surprise("chmod::basic", failed, "xfs", &ceph).is_some());
        assert_eq!(surprise("chmod::basic", failed, CEPHFS, &ceph), None);
        assert!(surprise("chmod::basic", Some(Verdict::Passed), CEPHFS, &ceph).is_some());
        assert_eq!(surprises(&runs("ok", "ok"), &ceph), Vec::<String>::new());
    }

    #[test]
    fn a_run_that_is_short_of_tests_is_no_success() {
        let mut short = runs("ok", "ok");
        short.insert(("local", "xfs"), Run::new());
        assert_eq!(surprises(&short, &[]).len(), 1);
        let none = COLUMNS.into_iter().map(|column| (column, Run::new())).collect();
        assert_eq!(surprises(&none, &[]).len(), 1);
        let absent = known("C1 * chmod::gone").unwrap();
        assert_eq!(surprises(&runs("ok", "ok"), &absent).len(), 1);
    }

    #[test]
    fn every_known_failure_is_explained() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = fs::read_to_string(root.join("docs/conformance.md")).unwrap();
        for Known { id, test, .. } in known(&fs::read_to_string(root.join(KNOWN)).unwrap()).unwrap()
        {
            let mut rows = page.lines().filter(|line| line.starts_with(&format!("| {id} |")));
            assert!(rows.any(|row| row.contains(&format!("`{test}`"))), "{id} {test}");
        }
    }
}
