//! Tests of damaged histories, which are set aside, and of histories on full or failing disks,
//! which are kept as they are.

use super::super::record::Recorder;
use super::aside::SETS_MAX;
use super::tests::{START, add, minute, opened};
use super::{History, HistoryError, MINUTE, NAME};
use rusqlite::{Connection, ffi};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_core::VolumeId;

/// A small file system of its own in memory.
struct Small(tempfile::TempDir);

impl Small {
    /// `None` where `WEIR_SKIP` names `loopfs`, as for other tests that mount.
    fn new() -> Option<Self> {
        if std::env::var("WEIR_SKIP").is_ok_and(|skip| skip.contains("loopfs")) {
            return None;
        }
        let small = Self(tempfile::tempdir().unwrap());
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(small.path()));
        Some(small)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn fill(&self) {
        let mut filler = File::create(self.path().join("filler")).unwrap();
        for length in [64 << 10, 4096, 1] {
            while filler.write(&vec![1; length]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path().join("filler")).unwrap();
    }

    fn remount(&self, how: &str) {
        let how = format!("remount,{how}");
        run(Command::new("mount").args(["-o", &how]).arg(self.path()));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.path()));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

/// Everything in `directory` that is no part of the history in use, by name.
fn set_aside(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains("broken")).collect();
    names.sort();
    names
}

/// A history of `minutes` in `to`, as a kill left it: the last of them are in the log alone.
fn killed(to: &Path, minutes: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut history = opened(dir.path());
    for number in 0..minutes {
        add(&mut history, 1, START + 60 * number, 3);
    }
    for name in [NAME, "history.db-wal"] {
        std::fs::copy(dir.path().join(name), to.join(name)).unwrap();
    }
}

/// The number of minutes known of volume 1.
fn minutes(recorder: &Recorder) -> usize {
    recorder.periods(VolumeId(1), MINUTE, 0, 10_000).periods.len()
}

#[test]
fn a_start_on_a_full_disk_keeps_the_history_and_reads_it() {
    let Some(small) = Small::new() else { return };
    killed(small.path(), 300);
    small.fill();
    let recorder = Recorder::open(small.path());
    assert_eq!(set_aside(small.path()), [""; 0]);
    assert_eq!(minutes(&recorder), 300);
    let at = START + 60 * 300;
    let rows: Vec<_> = (0..40).map(|volume| (VolumeId(volume), minute(at, 3))).collect();
    let mut pending = recorder.write(rows, at + 60);
    for _ in 0..3 {
        pending = recorder.write(pending, at + 60);
        assert_eq!((pending.len(), minutes(&recorder)), (40, 300));
    }
    drop(recorder);
    let recorder = Recorder::open(small.path());
    assert_eq!((minutes(&recorder), set_aside(small.path()).len()), (300, 0));
    small.make_room();
    assert!(recorder.write(pending, at + 120).is_empty());
    assert_eq!((minutes(&recorder), set_aside(small.path()).len()), (301, 0));
}

#[test]
fn a_disk_that_fills_up_while_it_is_written_takes_nothing_of_the_history() {
    let Some(small) = Small::new() else { return };
    let recorder = Recorder::open(small.path());
    let row = |number| vec![(VolumeId(1), minute(START + 60 * number, 3))];
    let mut number = 0;
    while number < 50 {
        assert!(recorder.write(row(number), START + 60 * number).is_empty());
        number += 1;
    }
    small.fill();
    let mut pending = Vec::new();
    for _ in 0..500 {
        let now = START + 60 * number;
        pending.extend(row(number));
        pending = recorder.write(pending, now);
        number += 1;
    }
    assert!(!pending.is_empty(), "the disk took everything");
    assert_eq!(minutes(&recorder) + pending.len(), 550);
    small.make_room();
    assert!(recorder.write(pending, START + 60 * number).is_empty());
    assert_eq!((minutes(&recorder), set_aside(small.path()).len()), (550, 0));
}

#[test]
fn a_history_that_could_not_be_made_on_a_full_disk_is_made_later() {
    let Some(small) = Small::new() else { return };
    small.fill();
    let recorder = Recorder::open(small.path());
    let rows = recorder.write(vec![(VolumeId(1), minute(START, 3))], START + 60);
    assert_eq!((rows.len(), set_aside(small.path()).len()), (1, 0));
    small.make_room();
    assert!(recorder.write(rows, START + 120).is_empty());
    assert_eq!((minutes(&recorder), set_aside(small.path()).len()), (1, 0));
}

#[test]
fn a_file_system_that_is_read_only_for_a_while_costs_nothing() {
    let Some(small) = Small::new() else { return };
    killed(small.path(), 20);
    small.remount("ro");
    let recorder = Recorder::open(small.path());
    let rows = recorder.write(vec![(VolumeId(1), minute(START + 6000, 3))], START + 6060);
    assert_eq!(rows.len(), 1);
    small.remount("rw");
    assert!(recorder.write(rows, START + 6120).is_empty());
    assert_eq!((minutes(&recorder), set_aside(small.path()).len()), (21, 0));
}

#[test]
fn a_history_that_another_process_has_open_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), 20);
    let mut other = opened(dir.path());
    add(&mut other, 1, START + 1200, 3);
    let recorder = Recorder::open(dir.path());
    let rows = recorder.write(vec![(VolumeId(1), minute(START + 6000, 3))], START + 6060);
    assert_eq!((rows.len(), set_aside(dir.path()).len()), (1, 0));
    drop(other);
    assert!(recorder.write(rows, START + 6120).is_empty());
    assert_eq!((minutes(&recorder), set_aside(dir.path()).len()), (22, 0));
}

#[test]
fn only_what_the_file_holds_is_damage() {
    for code in 1..=ffi::SQLITE_WARNING {
        for extended in [0, 1, 2, 3, 10, 21] {
            let error = ffi::Error::new(code | extended << 8);
            let error = HistoryError::from(rusqlite::Error::SqliteFailure(error, None));
            let damage = matches!(code, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB);
            assert_eq!(error.is_damage(), damage, "{code} {extended}");
        }
    }
    for kind in [ErrorKind::StorageFull, ErrorKind::PermissionDenied, ErrorKind::Other] {
        assert!(!HistoryError::from(std::io::Error::from(kind)).is_damage());
    }
    let full = ffi::Error::new(ffi::SQLITE_FULL);
    let full = HistoryError::from(rusqlite::Error::SqliteFailure(full, None));
    assert!(full.advice().contains("free space"));
}

#[test]
fn what_cant_be_used_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let garbage = vec![b'x'; 10_000];
    std::fs::write(&path, &garbage).unwrap();
    let mut history = opened(dir.path());
    add(&mut history, 1, START, 3);
    assert_eq!(std::fs::read(dir.path().join("history.db.broken")).unwrap(), garbage);
    drop(history);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let mut history = opened(dir.path());
    assert!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().is_empty());
    let aside = Connection::open(dir.path().join("history.db.broken-1")).unwrap();
    let format: i64 = aside.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 99, "a later version can have it back");
    assert_eq!(std::fs::read(dir.path().join("history.db.broken")).unwrap(), garbage);
}

#[test]
fn tables_of_another_kind_are_set_aside() {
    for tables in
        ["CREATE TABLE periods (volume)", "CREATE TABLE other (a); PRAGMA user_version = 1"]
    {
        let dir = tempfile::tempdir().unwrap();
        Connection::open(dir.path().join(NAME)).unwrap().execute_batch(tables).unwrap();
        add(&mut opened(dir.path()), 1, START, 3);
        assert_eq!(set_aside(dir.path())[0], "history.db.broken", "{tables}");
    }
}

#[test]
fn damage_that_shows_later_is_set_aside_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = opened(dir.path());
    for round in 0..200 {
        add(&mut history, round, START, 3);
    }
    drop(history);
    let path = dir.path().join(NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0xee);
    std::fs::write(&path, &bytes).unwrap();
    let mut history = opened(dir.path());
    add(&mut history, 1, START + 60, 3);
    assert_eq!(std::fs::read(dir.path().join("history.db.broken")).unwrap(), bytes);
    assert_eq!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().len(), 1);
    add(&mut history, 1, START + 120, 3);
    assert_eq!(history.periods(VolumeId(1), MINUTE, 0, 100).unwrap().len(), 2);
}

#[test]
fn a_log_goes_with_its_history() {
    let dir = tempfile::tempdir().unwrap();
    killed(dir.path(), 50);
    let log = dir.path().join("history.db-wal");
    let mut bytes = std::fs::read(&log).unwrap();
    // The content of a log with a damaged head is not used, and is not thrown away.
    bytes[..32].fill(0xee);
    std::fs::write(&log, &bytes).unwrap();
    let damaged = vec![b'x'; 8192];
    std::fs::write(dir.path().join(NAME), &damaged).unwrap();
    add(&mut opened(dir.path()), 2, START, 3);
    let read = |name| std::fs::read(dir.path().join(name)).unwrap();
    assert_eq!(set_aside(dir.path()), ["history.db.broken", "history.db.broken-wal"]);
    assert_eq!((read("history.db.broken"), read("history.db.broken-wal")), (damaged, bytes));
}

#[test]
fn nothing_that_was_set_aside_is_overwritten_and_their_number_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let garbage = |number: usize| vec![b'a' + u8::try_from(number).unwrap(); 5000];
    let name = |number: usize| match number {
        0 => PathBuf::from("history.db.broken"),
        number => PathBuf::from(format!("history.db.broken-{number}")),
    };
    // A name that only a log has is taken too.
    std::fs::write(dir.path().join("history.db.broken-2-wal"), "kept").unwrap();
    let numbers: Vec<_> = (0..SETS_MAX).filter(|number| *number != 2).collect();
    for number in &numbers {
        std::fs::write(dir.path().join(NAME), garbage(*number)).unwrap();
        opened(dir.path());
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
    }
    let whole = |numbers: &[usize]| {
        for number in numbers {
            let found = std::fs::read(dir.path().join(name(*number))).unwrap();
            assert_eq!(found, garbage(*number), "{number}");
        }
    };
    whole(&numbers);
    std::fs::write(dir.path().join(NAME), garbage(20)).unwrap();
    let error = History::of(dir.path()).open().unwrap_err();
    assert!(matches!(error, HistoryError::TooManyAside), "{error}");
    let recorder = Recorder::open(dir.path());
    let rows = recorder.write(vec![(VolumeId(1), minute(START, 3))], START + 60);
    assert_eq!(rows.len(), 1);
    whole(&numbers);
    assert_eq!(std::fs::read(dir.path().join(NAME)).unwrap(), garbage(20));
    assert_eq!(std::fs::read(dir.path().join("history.db.broken-2-wal")).unwrap(), b"kept");
    // The operator takes one away, and the server goes on by itself.
    std::fs::remove_file(dir.path().join(name(5))).unwrap();
    assert!(recorder.write(rows, START + 120).is_empty());
    assert_eq!(std::fs::read(dir.path().join(name(5))).unwrap(), garbage(20));
}

#[test]
fn a_history_that_cant_be_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(History::of(&dir.path().join("missing")).open().is_err());
}
