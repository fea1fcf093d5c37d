//! The system calls that come to us, in the words of a test.

use super::notify::Notice;
use rustix::io::{Errno, pread, pwrite};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The effect of a system call on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads data, waiting for the disk if it must.
    Read,
    /// Reads data that is in the page cache, and nothing else.
    ReadCached,
    /// Writes data.
    Write,
    /// Cuts or grows a file.
    Resize,
    /// Makes a file or directory, or a file system, stable.
    Sync,
    /// Opens what exists.
    Open,
    /// Opens a name that is in memory, and nothing else.
    OpenCached,
    /// Makes an object, with a name or without one.
    Make,
    /// Gives an object a name.
    Link,
    /// Renames.
    Rename,
    /// Removes a name.
    Remove,
    /// Changes mode, owner, times or lists.
    Change,
    /// Reads the attributes of an open object (`fstat`).
    Status,
}

/// All that the filter sends here.
pub(super) const FILTERED: [libc::c_long; 26] = [
    libc::SYS_pread64,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_syncfs,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_symlinkat,
    libc::SYS_linkat,
    libc::SYS_renameat2,
    libc::SYS_renameat,
    libc::SYS_unlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_fsetxattr,
    libc::SYS_fremovexattr,
    libc::SYS_fstat,
];

/// One call.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: u64,
    pub(super) kind: Kind,
    /// The object of the call, as far as a path tells: an object, or the name in a directory.
    pub(super) path: PathBuf,
    /// The first byte and the length of a read or write.
    pub(super) range: Option<(u64, usize)>,
    notice: Notice,
}

/// The memory of this process, in which the arguments are.
#[derive(Debug)]
pub(super) struct Memory(File);

impl Memory {
    pub(super) fn open() -> std::io::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).write(true).open("/proc/self/mem")?))
    }

    fn word(&self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    fn text(&self, at: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut byte = [0];
        while text.len() < 4096 {
            self.0.read_exact_at(&mut byte, at + text.len() as u64).ok()?;
            if byte == [0] {
                return Some(text);
            }
            text.extend_from_slice(&byte);
        }
        None
    }
}

impl Seen {
    /// Understands a call; nothing if its path can't be had, which then concerns no rule.
    pub(super) fn of(notice: Notice, memory: &Memory) -> Option<Self> {
        let Notice { id, number, args } = notice;
        // The third field of `open_how` (openat2(2)).
        let cached = |resolve: u64| resolve & libc::RESOLVE_CACHED != 0;
        let is_cached = || memory.word(args[2] + 16).is_some_and(cached);
        let kind = match number {
            libc::SYS_openat2 if is_cached() => Kind::OpenCached,
            _ => kind(number, &args),
        };
        let own = |at: usize| path_of(*args.get(at)?);
        let named = |dir: usize, name: usize| {
            let name = memory.text(*args.get(name)?)?;
            let name = OsStr::from_bytes(&name);
            let dir = *args.get(dir)?;
            if low(dir) == libc::AT_FDCWD {
                return Some(PathBuf::from(name));
            }
            let path = path_of(dir)?.join(name);
            // An object by the number of its descriptor: see `own_descriptors`.
            let descriptor = path.starts_with("/proc") && name.to_str()?.parse::<u32>().is_ok();
            Some(if descriptor { std::fs::read_link(path).ok()? } else { path })
        };
        let path = match number {
            libc::SYS_openat
            | libc::SYS_openat2
            | libc::SYS_mkdirat
            | libc::SYS_mknodat
            | libc::SYS_unlinkat
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_fchmodat
            | libc::SYS_fchownat
            | libc::SYS_utimensat => named(0, 1)?,
            libc::SYS_symlinkat => named(1, 2)?,
            libc::SYS_linkat => named(2, 3)?,
            libc::SYS_setxattr => PathBuf::from(OsStr::from_bytes(&memory.text(args[0])?)),
            _ => own(0)?,
        };
        let range = match number {
            libc::SYS_pread64 | libc::SYS_pwrite64 => Some((args[3], count(args[2]))),
            libc::SYS_preadv2 => Some((args[3], count(memory.word(args[1] + 8)?))),
            _ => None,
        };
        Some(Self { id, kind, path, range, notice })
    }

    /// The path at which the open object of the call can be opened again, as long as its caller
    /// waits.
    pub(super) fn open(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", low(self.notice.args[0])))
    }

    /// Is it a sync of the whole file system?
    pub(super) fn is_of_everything(&self) -> bool {
        self.notice.number == libc::SYS_syncfs
    }

    /// Is it a sync that leaves attributes out?
    pub(super) fn is_of_data_alone(&self) -> bool {
        self.notice.number == libc::SYS_fdatasync
    }

    /// Carries out the first `most` bytes of a read or write.
    pub(super) fn shortened(&self, most: usize, memory: &Memory) -> Result<usize, Errno> {
        let Some((offset, asked)) = self.range else { return Err(Errno::INVAL) };
        let args = self.notice.args;
        let mut data = vec![0; asked.min(most)];
        let failed = |_| Errno::FAULT;
        let writing = self.kind == Kind::Write;
        let file =
            OpenOptions::new().read(!writing).write(writing).open(self.open()).map_err(failed)?;
        if writing {
            memory.0.read_exact_at(&mut data, args[1]).map_err(failed)?;
            return pwrite(&file, &data, offset);
        }
        let vector = self.notice.number == libc::SYS_preadv2;
        let to = if vector { memory.word(args[1]).ok_or(Errno::FAULT)? } else { args[1] };
        let got = pread(&file, &mut data, offset)?;
        memory.0.write_all_at(data.get(..got).unwrap_or(&[]), to).map_err(failed)?;
        Ok(got)
    }
}

fn kind(number: i64, args: &[u64; 6]) -> Kind {
    match number {
        libc::SYS_pread64 => Kind::Read,
        libc::SYS_preadv2 => Kind::ReadCached,
        libc::SYS_pwrite64 => Kind::Write,
        libc::SYS_ftruncate | libc::SYS_fallocate => Kind::Resize,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs => Kind::Sync,
        libc::SYS_openat if low(args[2]) & libc::O_CREAT != 0 => Kind::Make,
        libc::SYS_openat if low(args[2]) & libc::O_TMPFILE == libc::O_TMPFILE => Kind::Make,
        libc::SYS_mkdirat | libc::SYS_mknodat | libc::SYS_symlinkat => Kind::Make,
        libc::SYS_linkat => Kind::Link,
        libc::SYS_renameat | libc::SYS_renameat2 => Kind::Rename,
        libc::SYS_unlinkat => Kind::Remove,
        libc::SYS_fstat => Kind::Status,
        libc::SYS_openat | libc::SYS_openat2 | libc::SYS_open_by_handle_at => Kind::Open,
        _ => Kind::Change,
    }
}

fn path_of(descriptor: u64) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", low(descriptor))).ok()
}

#[expect(clippy::cast_possible_truncation, reason = "an int in a register")]
fn low(word: u64) -> i32 {
    word as i32
}

fn count(word: u64) -> usize {
    usize::try_from(word).unwrap_or(usize::MAX)
}
