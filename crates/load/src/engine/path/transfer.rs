//! Reads and writes of blocks: where a system call moves less than was asked for, as pread(2) and
//! pwrite(2) may, the rest is asked for in turn.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// The outcome of a read or write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Bytes that were moved; of a read fewer than asked for only where the file ends.
    pub(super) bytes: usize,
    /// System calls that moved them.
    calls: u32,
}

impl Moved {
    /// Did the first system call leave a rest that a further one moved?
    pub(super) const fn is_continued(self) -> bool {
        self.calls > 1
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> Result<Moved> {
    all(buffer.len(), |from| {
        let rest = buffer.get_mut(from..).unwrap_or(&mut []);
        file.read_at(rest, offset + from as u64)
    })
}

/// Writes all of the buffer.
pub(super) fn write(file: &File, buffer: &[u8], offset: u64) -> Result<Moved> {
    let moved = all(buffer.len(), |from| {
        let rest = buffer.get(from..).unwrap_or(&[]);
        file.write_at(rest, offset + from as u64)
    })?;
    if moved.bytes < buffer.len() { Err(Error::from(ErrorKind::WriteZero)) } else { Ok(moved) }
}

/// Repeats `call`, which moves bytes after as many as it is told and says how many, until `len` are
/// moved or it moves none.
fn all(len: usize, mut call: impl FnMut(usize) -> Result<usize>) -> Result<Moved> {
    let mut moved = Moved::default();
    while moved.bytes < len {
        match call(moved.bytes) {
            Ok(0) => break,
            Ok(count) => {
                moved.bytes += count;
                moved.calls += 1;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_leaves_is_asked_for_in_turn() {
        let mut answers = [Ok(3), Err(Error::from(ErrorKind::Interrupted)), Ok(4)].into_iter();
        let mut asked = Vec::new();
        let moved = all(7, |from| {
            asked.push(from);
            answers.next().unwrap()
        });
        let moved = moved.unwrap();
        assert_eq!((moved.bytes, moved.is_continued()), (7, true));
        assert_eq!(asked, [0, 3, 3]);
        assert!(!all(7, |_| Ok(7)).unwrap().is_continued());
    }

    #[test]
    fn a_file_that_ends_and_a_failure_end_it() {
        let mut left = [5, 0].into_iter();
        let moved = all(7, |_| Ok(left.next().unwrap())).unwrap();
        assert_eq!((moved.bytes, moved.is_continued()), (5, false));
        let full = || Error::from(ErrorKind::StorageFull);
        let mut answers = [Ok(5), Err(full())].into_iter();
        assert_eq!(all(7, |_| answers.next().unwrap()).unwrap_err().kind(), full().kind());
    }

    #[test]
    fn a_block_is_moved_to_its_place_and_back() {
        let file = tempfile::tempfile().unwrap();
        let one = |bytes| Moved { bytes, calls: 1 };
        assert_eq!(write(&file, b"block", 3).unwrap(), one(5));
        let mut buffer = [9; 6];
        assert_eq!(read(&file, &mut buffer, 3).unwrap(), one(5));
        assert_eq!(&buffer, b"block\x09");
    }
}
