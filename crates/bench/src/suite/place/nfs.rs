//! Directories of an NFSv3 export.

use weir_core::Credentials;
use weir_load::control::Control;
use weir_load::engine::{FollowUp, Limits, Session, Waits, mount, nfs_limits, room, status_name};
use weir_load::error::BenchError;
use weir_load::target::NfsTarget;
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{
    DirOpArgs3, FileHandle3, GetattrArgs, LookupArgs, MkdirArgs, ReaddirArgs, RemoveArgs, Res,
    RmdirArgs, Sattr3, Status,
};

/// Bytes of one READDIR.
const LIST_BYTES: u32 = 32 << 10;
/// Directories within directories that are removed: no load makes more than a few.
const NESTED_MAX: u32 = 32;

type Handle = Box<[u8]>;

/// The top directory of the export.
pub(super) struct NfsTop {
    session: Session,
    root: Handle,
}

impl NfsTop {
    /// Mounts the export; answers are waited for as `waits` says.
    pub(super) fn open(target: &NfsTarget, waits: &Waits) -> Result<Self, BenchError> {
        let caller = Caller::sys(&Credentials::new(target.uid, target.gid), b"weir-bench");
        let root = mount(target, &caller, waits)?;
        let session = Session::of(target, caller, waits)?.patient();
        Ok(Self { session, root })
    }

    /// Bytes that the caller may have; `None` if the server does not tell.
    pub(super) fn room(&mut self) -> Result<Option<u64>, BenchError> {
        room(&mut self.session, &self.root)
    }

    /// The number of the export's file system on its server (RFC 1813 §2.6, `fsid`).
    pub(super) fn file_system(&mut self) -> Result<u64, BenchError> {
        let args = GetattrArgs { object: FileHandle3(&self.root) };
        self.session.call(&args, |result| match result {
            Res::Ok(ok) => Ok(ok.attributes.fsid),
            Res::Fail(status, _) => {
                Err(refused("asking for the attributes of", b"the export", status))
            }
        })?
    }

    /// The limits of the export.
    pub(super) fn limits(&mut self) -> Result<Limits, BenchError> {
        nfs_limits(&mut self.session, &self.root)
    }

    /// The handle of the directory to which these names lead; `None` if it is not there.
    fn walk(&mut self, path: &[&str]) -> Result<Option<Handle>, BenchError> {
        let mut at = self.root.clone();
        for name in path {
            let Some(next) = self.lookup(&at, name.as_bytes())? else { return Ok(None) };
            at = next;
        }
        Ok(Some(at))
    }

    /// Removes what is in the directory `name`, but for the entry `except`.
    fn drain(
        &mut self,
        (directory, name): (&[u8], &[u8]),
        except: &[u8],
        nested: u32,
    ) -> Result<(), BenchError> {
        if nested > NESTED_MAX {
            return Err(refused("emptying the directory", name, Status::NAMETOOLONG));
        }
        let mut before = Vec::new();
        loop {
            let names = self.list((directory, name), except)?;
            if names.is_empty() {
                return Ok(());
            }
            // A server that removes nothing and says it did would be asked forever.
            if names == before {
                return Err(refused("emptying the directory", name, Status::NOTEMPTY));
            }
            before.clone_from(&names);
            for inside in self.remove_files(directory, names)? {
                let Some(handle) = self.lookup(directory, &inside)? else { continue };
                self.drain((&handle, &inside), b"", nested + 1)?;
                if !self.remove_directory(directory, &inside)? {
                    return Err(refused("removing the directory", &inside, Status::NOTEMPTY));
                }
            }
        }
    }

    /// Removes files; gives the names that are directories.
    fn remove_files(
        &mut self,
        directory: &[u8],
        names: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, BenchError> {
        let mut directories = Vec::new();
        self.session.ahead(
            &Control::new(),
            names.into_iter(),
            |session, name| {
                let args = RemoveArgs { object: entry(directory, name) };
                session.queue(|caller, out, xid| caller.call(out, xid, &args))
            },
            |name, answer| {
                match answer.results::<RemoveArgs<'_>>()?.status() {
                    Status::OK | Status::NOENT => {}
                    // Servers answer so to REMOVE on a directory (RFC 1813 §3.3.12 leaves it open).
                    Status::ISDIR
                    | Status::PERM
                    | Status::ACCES
                    | Status::INVAL
                    | Status::NOTEMPTY => directories.push(name),
                    status => return Err(refused("removing", &name, status)),
                }
                Ok(FollowUp::Done)
            },
        )?;
        Ok(directories)
    }

    /// Removes an empty directory; `false` if it is not empty.
    fn remove_directory(&mut self, directory: &[u8], name: &[u8]) -> Result<bool, BenchError> {
        let args = RmdirArgs { object: entry(directory, name) };
        match self.session.call(&args, |result| result.status())? {
            Status::OK | Status::NOENT => Ok(true),
            Status::NOTEMPTY | Status::EXIST => Ok(false),
            status => Err(refused("removing the directory", name, status)),
        }
    }

    /// The handle of `name`; `None` if it is not there.
    fn lookup(&mut self, directory: &[u8], name: &[u8]) -> Result<Option<Handle>, BenchError> {
        let args = LookupArgs { what: entry(directory, name) };
        let found: Result<Handle, Status> = self.session.call(&args, |result| match result {
            Res::Ok(ok) => Ok(ok.object.0.into()),
            Res::Fail(status, _) => Err(status),
        })?;
        match found {
            Ok(handle) => Ok(Some(handle)),
            Err(Status::NOENT) => Ok(None),
            Err(status) => Err(refused("looking up", name, status)),
        }
    }

    /// The first names in the directory `name`, `.`, `..` and `except` left out; none if there are
    /// no others.
    fn list(
        &mut self,
        (directory, name): (&[u8], &[u8]),
        except: &[u8],
    ) -> Result<Vec<Vec<u8>>, BenchError> {
        let (mut cookie, mut cookie_verifier) = (0, [0; 8]);
        loop {
            let args = ReaddirArgs {
                dir: FileHandle3(directory),
                cookie,
                cookie_verifier,
                count: LIST_BYTES,
            };
            let page = self.session.call(&args, |result| match result {
                Res::Ok(ok) => {
                    let mut names = Vec::new();
                    let mut last = cookie;
                    for entry in ok.entries.iter() {
                        last = entry.cookie;
                        if ![b".".as_slice(), b"..", except].contains(&entry.name) {
                            names.push(entry.name.to_vec());
                        }
                    }
                    Ok((names, last, ok.cookie_verifier, ok.eof))
                }
                Res::Fail(status, _) => Err(refused("listing the directory", name, status)),
            })??;
            let (names, last, verifier, eof) = page;
            // A page without progress would be asked for forever.
            if !names.is_empty() || eof || last == cookie {
                return Ok(names);
            }
            (cookie, cookie_verifier) = (last, verifier);
        }
    }
}

impl super::Top for NfsTop {
    fn make(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        let Some((name, above)) = path.split_last() else { return Ok(false) };
        let name = name.as_bytes();
        let Some(parent) = self.walk(above)? else {
            return Err(refused("finding the directory above", name, Status::NOENT));
        };
        let attributes = Sattr3 { mode: Some(0o755), ..Sattr3::NONE };
        let args = MkdirArgs { location: entry(&parent, name), attributes };
        match self.session.call(&args, |result| result.status())? {
            Status::OK => Ok(true),
            Status::EXIST => Ok(false),
            status => Err(refused("making the directory", name, status)),
        }
    }

    fn names(&mut self, path: &[&str]) -> Result<Vec<String>, BenchError> {
        let Some(handle) = self.walk(path)? else { return Ok(Vec::new()) };
        let last = path.last().copied().unwrap_or_default();
        let names = self.list((&handle, last.as_bytes()), b"")?;
        Ok(names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    fn empty(&mut self, path: &[&str], except: &str) -> Result<(), BenchError> {
        let Some(handle) = self.walk(path)? else { return Ok(()) };
        let last = path.last().copied().unwrap_or_default();
        self.drain((&handle, last.as_bytes()), except.as_bytes(), 0)
    }

    fn remove(&mut self, path: &[&str]) -> Result<bool, BenchError> {
        let Some((name, above)) = path.split_last() else { return Ok(false) };
        let Some(parent) = self.walk(above)? else { return Ok(true) };
        self.remove_directory(&parent, name.as_bytes())
    }
}

fn entry<'a>(dir: &'a [u8], name: &'a [u8]) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name }
}

fn refused(what: &str, name: &[u8], status: Status) -> BenchError {
    let hint = match status {
        Status::ACCES | Status::PERM => {
            "; ask as a user that may write there with --uid and --gid, or check the export's \
             squash rule"
        }
        Status::ROFS => "; the export is read-only: change its rule",
        Status::NOSPC | Status::DQUOT => "; the volume is full",
        _ => "",
    };
    let action = format!("{what} {}", String::from_utf8_lossy(name));
    BenchError::Refused { action, status: status_name(status), hint }
}
