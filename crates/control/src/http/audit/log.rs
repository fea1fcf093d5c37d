//! The file `audit.log` of the data directory: a line of JSON for each record. Not who is written
//! about, or when.
//!
//! The file is opened for each record, so a log rotator can rename it without telling the server.
//! Room for a record is taken before the change that it is of, and a record of a change is synced.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use weir_api::AuditRecord;

/// Room for one record: its parts that others choose have bounds (see [`super`]), and JSON writes a
/// character as six at most.
const RECORD_BYTES_MAX: u64 = 256 << 10;
/// Bytes at the end of the file that are read for the newest records.
const TAIL_BYTES_MAX: u64 = 4 << 20;
/// Bytes of the file that are read for one answer.
const READ_BYTES_MAX: u64 = 32 << 20;

/// The log of one data directory.
#[derive(Debug)]
pub(super) struct Log(PathBuf);

/// Records that were read, and where the next one begins.
pub(super) struct Part {
    pub(super) items: Vec<AuditRecord>,
    pub(super) next: Place,
    pub(super) more: bool,
}

/// A place in a file that may have been rotated away since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    inode: u64,
    offset: u64,
}

impl Place {
    /// The text of a place, for a client that comes back with it.
    pub(super) fn text(self) -> String {
        format!("{:x}-{:x}", self.inode, self.offset)
    }

    /// The place that a text is of.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (inode, offset) = text.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { inode: number(inode)?, offset: number(offset)? })
    }
}

impl Log {
    pub(super) fn new(directory: &Path) -> Self {
        Self(directory.join("audit.log"))
    }

    /// Takes room for a record on the disk, so that it won't fail for want of it.
    ///
    /// # Errors
    /// There is no log, or the file can't be written.
    pub(super) fn reserve(&self) -> io::Result<()> {
        let file = self.open()?;
        let end = file.metadata()?.len();
        match fallocate(&file, FallocateFlags::KEEP_SIZE, end, RECORD_BYTES_MAX) {
            // A file system that can't: a full disk shows only afterwards.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// Appends a record, safe on disk when this returns if it is to be.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) fn append(&self, record: &AuditRecord, safe: bool) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = self.open()?;
        let end = file.metadata()?.len();
        if end > 0 {
            let mut last = [0];
            file.read_exact_at(&mut last, end - 1)?;
            if last != *b"\n" {
                // A crash cut the last record short.
                line.insert(0, b'\n');
            }
        }
        file.write_all(&line)?;
        if safe {
            file.sync_data()?;
            if end == 0 {
                self.sync_name()?;
            }
        }
        Ok(())
    }

    /// The newest `limit` records.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) fn newest(&self, limit: usize) -> io::Result<Part> {
        let Some((mut file, inode, length)) = self.look()? else { return Ok(Part::empty()) };
        let start = length.saturating_sub(TAIL_BYTES_MAX);
        file.seek(SeekFrom::Start(start))?;
        let mut reader = BufReader::new(file.take(length - start));
        let mut offset = start;
        if start > 0 {
            // The middle of some record.
            offset += reader.skip_until(b'\n')? as u64;
        }
        let mut items = VecDeque::new();
        while let Some((record, bytes)) = next(&mut reader)? {
            offset += bytes;
            items.extend(record);
            if items.len() > limit {
                items.pop_front();
            }
        }
        Ok(Part { items: items.into(), next: Place { inode, offset }, more: false })
    }

    /// At most `limit` records from `after` on, of those not before the time `since`.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) fn from(&self, after: Place, since: &str, limit: usize) -> io::Result<Part> {
        let Some((mut file, inode, length)) = self.look()? else { return Ok(Part::empty()) };
        // A file that was rotated away makes the reader begin with its follower.
        let same = after.inode == inode && after.offset <= length;
        let start = if same { after.offset } else { 0 };
        file.seek(SeekFrom::Start(start))?;
        let end = length.min(start + READ_BYTES_MAX);
        let mut reader = BufReader::new(file.take(length - start));
        let (mut offset, mut items) = (start, Vec::new());
        while items.len() < limit && offset < end {
            let Some((record, bytes)) = next(&mut reader)? else { break };
            offset += bytes;
            items.extend(record.filter(|record| record.time.as_str() >= since));
        }
        let more = items.len() >= limit || offset >= end;
        Ok(Part { items, next: Place { inode, offset }, more: more && offset < length })
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.0)
    }

    fn look(&self) -> io::Result<Option<(File, u64, u64)>> {
        match File::open(&self.0) {
            Ok(file) => {
                let meta = file.metadata()?;
                Ok(Some((file, meta.ino(), meta.len())))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync_name(&self) -> io::Result<()> {
        self.0.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    }
}

impl Part {
    fn empty() -> Self {
        Self { items: Vec::new(), next: Place::default(), more: false }
    }
}

/// The next line and its length. One that is no record, cut short by a crash say, is passed over;
/// one that is not yet whole is not there yet.
fn next(reader: &mut impl BufRead) -> io::Result<Option<(Option<AuditRecord>, u64)>> {
    let mut line = Vec::new();
    let bytes = reader.take(RECORD_BYTES_MAX + 2).read_until(b'\n', &mut line)? as u64;
    if bytes == 0 || line.last() != Some(&b'\n') && bytes < RECORD_BYTES_MAX + 2 {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&line).ok(), bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::AuditEvent;

    fn record(number: u64) -> AuditRecord {
        AuditRecord {
            version: 1,
            time: format!("2026-11-22T10:00:{number:02}.000Z"),
            event: AuditEvent::Change,
            who: Some("socket".into()),
            role: None,
            uid: None,
            from: None,
            method: None,
            path: None,
            route: None,
            request: None,
            status: Some(200),
            code: None,
            generation: number,
            suppressed: None,
            note: None,
        }
    }

    fn filled(count: u64) -> (tempfile::TempDir, Log) {
        let base = tempfile::tempdir().unwrap();
        let log = Log::new(base.path());
        (0..count).for_each(|number| log.append(&record(number), number % 2 == 0).unwrap());
        (base, log)
    }

    fn numbers(part: &Part) -> Vec<u64> {
        part.items.iter().map(|record| record.generation).collect()
    }

    #[test]
    fn records_are_read_in_pages_and_followed() {
        let (_base, log) = filled(10);
        let part = log.newest(3).unwrap();
        assert_eq!((numbers(&part), part.more), (vec![7, 8, 9], false));
        let since = "2026-11-22T10:00:04.000Z";
        let first = log.from(Place::default(), since, 4).unwrap();
        assert_eq!((numbers(&first), first.more), (vec![4, 5, 6, 7], true));
        let second = log.from(Place::parse(&first.next.text()).unwrap(), since, 4).unwrap();
        assert_eq!((numbers(&second), second.more), (vec![8, 9], false));
        assert_eq!(numbers(&log.from(second.next, "", 4).unwrap()), [] as [u64; 0]);
        log.append(&record(10), true).unwrap();
        assert_eq!(numbers(&log.from(second.next, "", 4).unwrap()), [10]);
        assert_eq!(numbers(&log.from(part.next, "", 4).unwrap()), [10]);
    }

    #[test]
    fn a_log_that_was_renamed_is_begun_anew() {
        let (base, log) = filled(3);
        let end = log.newest(1).unwrap().next;
        std::fs::rename(base.path().join("audit.log"), base.path().join("audit.log.1")).unwrap();
        assert_eq!(numbers(&log.newest(9).unwrap()), [] as [u64; 0]);
        log.reserve().unwrap();
        log.append(&record(7), true).unwrap();
        assert_eq!(numbers(&log.from(end, "", 9).unwrap()), [7]);
        let mode = std::fs::metadata(base.path().join("audit.log")).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn a_record_that_was_cut_short_spoils_no_other() {
        let (base, log) = filled(2);
        let path = base.path().join("audit.log");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let seen = log.newest(9).unwrap();
        assert_eq!(numbers(&seen), [0]);
        log.append(&record(2), true).unwrap();
        assert_eq!(numbers(&log.newest(9).unwrap()), [0, 2]);
        assert_eq!(numbers(&log.from(seen.next, "", 9).unwrap()), [2]);
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place { inode: 77, offset: 1 << 40 };
        assert_eq!(Place::parse(&place.text()), Some(place));
        for wrong in ["", "-", "1", "x-1", "1-1-1"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }
}
