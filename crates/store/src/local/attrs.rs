//! The attribute cache of one object.
//!
//! Coherent because every change goes through Weir: a change *begins* (the cached attributes
//! become invalid), does its system calls, and *ends* with one `fstat`. What that gives is kept
//! only if no other change began, ended or was under way meanwhile; otherwise the next reader asks
//! the kernel. An `fstat` of an open descriptor reads the inode in memory and waits for nothing on
//! ext4, XFS and btrfs (0.3 µs), so it runs wherever it is needed, on the worker too. A write whose
//! caller asks for no attributes ends without one: it needs the mode alone, which writes leave as
//! it is.
//!
//! The access list is cached beside them, and read from the kernel when an object is first held
//! open and after what may have changed it: setting it, and a chmod of an object that has one.

use super::acl::Lists;
use super::switch::{CacheSwitch, Epoch};
use crate::error::fs_error;
use crate::sync::{Arc, Guard, Mutex};
use rustix::fd::AsFd;
use rustix::fs::{FileType, Stat, Statx, StatxTimestamp, fstat, major, minor};
use weir_core::attr::Change;
use weir_core::{Acl, AclKind, Attr, DeviceNumber, FileKind, FsError, FsResult, Timestamp};

/// The attribute cache of one object.
#[derive(Debug)]
pub(super) struct Attrs {
    state: Mutex<State>,
    lists: Lists,
    /// The metadata cache switch: without it nothing is kept.
    switch: Arc<CacheSwitch>,
}

#[derive(Debug)]
struct State {
    /// The epoch of the cache that the rest belongs to.
    epoch: Epoch,
    attr: Attr,
    valid: bool,
    /// The mode in `attr` is the file's, whether or not the rest is.
    mode_valid: bool,
    /// The access list. Only what changes lists makes it invalid, so that most changes end without
    /// a look at it.
    acl: Option<Acl>,
    acl_valid: bool,
    in_flight: u32,
    /// Moves up whenever a change begins or ends: the count of changes that is told too. It begins
    /// with the time of the last change, in nanoseconds, and follows it.
    generation: u64,
}

/// A change that has begun. Dropped without [`Mutation::end`], it leaves the cache invalid.
pub(super) struct Mutation<'a> {
    attrs: &'a Attrs,
    generation: u64,
    alone: bool,
    known: Option<Attr>,
    /// The mode that a write found, where it needed not look.
    mode: Option<u32>,
    ended: bool,
}

impl Attrs {
    /// Starts with attributes and an access list that were read in `epoch`. They may be out of date
    /// already, unless [`Attrs::validate`] follows.
    pub(super) fn new(
        (first, acl): (Attr, Option<Acl>),
        lists: Lists,
        switch: &Arc<CacheSwitch>,
        epoch: Epoch,
    ) -> Self {
        let attr = Attr { has_acl: acl.is_some(), ..first };
        let generation = nanos(attr.ctime);
        let state = State {
            epoch,
            attr,
            valid: false,
            mode_valid: false,
            acl,
            acl_valid: false,
            in_flight: 0,
            generation,
        };
        Self { state: Mutex::new(state), lists, switch: Arc::clone(switch) }
    }

    /// The state in the present epoch of the cache. Questions and changes under way since another
    /// epoch count as disturbed.
    #[inline]
    fn state(&self) -> Guard<'_, State> {
        let mut state = self.state.lock();
        let epoch = self.switch.epoch();
        if state.epoch != epoch {
            state.epoch = epoch;
            state.generation += 1;
            (state.valid, state.mode_valid, state.acl_valid) = (false, false, false);
        }
        state
    }

    /// Declares the first attributes to be still true.
    pub(super) fn validate(&self) {
        let mut state = self.state.lock();
        if state.epoch == self.switch.epoch() {
            state.keep();
        }
    }

    /// The attributes, from the cache or else from the kernel.
    #[inline]
    pub(super) fn get(&self, fd: impl AsFd) -> FsResult<Attr> {
        {
            let state = self.state();
            if state.valid {
                return Ok(state.attr);
            }
        }
        self.ask(fd).map(|(attr, _)| attr)
    }

    /// The attributes and the count of changes, which is no later than they are.
    pub(super) fn counted(&self, fd: impl AsFd) -> FsResult<(Attr, u64)> {
        let count = {
            let state = self.state();
            if state.valid {
                return Ok((state.attr, state.generation));
            }
            state.generation
        };
        self.ask(fd).map(|(attr, _)| (attr, count))
    }

    /// Counts on from `lead` more than the time of the last change. Before anybody has looked.
    pub(super) fn count_from(&self, lead: u64) {
        let mut state = self.state();
        state.generation = state.generation.saturating_add(lead);
    }

    /// The most by which the count is ahead of the time of the last change.
    pub(super) fn lead(&self) -> u64 {
        let state = self.state();
        state.generation.saturating_sub(nanos(state.attr.ctime))
    }

    /// The attributes and the access list that goes with them, from the cache or else from the
    /// kernel.
    pub(super) fn with_acl(&self, fd: impl AsFd) -> FsResult<(Attr, Option<Acl>)> {
        {
            let state = self.state();
            if state.valid {
                return Ok((state.attr, state.acl.clone()));
            }
        }
        self.ask(fd)
    }

    fn ask(&self, fd: impl AsFd) -> FsResult<(Attr, Option<Acl>)> {
        let (generation, idle, acl) = {
            let state = self.state();
            (state.generation, state.in_flight == 0, state.known_acl())
        };
        let (attr, acl) = self.load(fd, acl)?;
        let mut state = self.state();
        if idle && state.in_flight == 0 && state.generation == generation {
            self.store(&mut state, attr, &acl);
        }
        Ok((attr, acl))
    }

    /// Asks the kernel for the attributes, and for the access list unless that is known.
    fn load(&self, fd: impl AsFd, acl: Option<Option<Acl>>) -> FsResult<(Attr, Option<Acl>)> {
        let attr = stat(&fd)?;
        let acl = match acl {
            Some(known) => known,
            None => self.lists.read(fd, AclKind::Access)?,
        };
        Ok((Attr { has_acl: acl.is_some(), ..attr }, acl))
    }

    /// The cached attributes and a mark of their generation, if they are valid.
    pub(super) fn peek(&self) -> Option<(Attr, u64)> {
        let state = self.state();
        state.valid.then_some((state.attr, state.generation))
    }

    /// Forgets the cached attributes: the kernel has changed them by itself.
    pub(super) fn invalidate(&self) {
        let mut state = self.state();
        state.generation += 1;
        (state.valid, state.mode_valid) = (false, false);
    }

    /// Begins a change.
    pub(super) fn begin(&self) -> Mutation<'_> {
        let mut state = self.state();
        state.mode_valid = false;
        self.begin_in(&mut state)
    }

    /// Begins a write of data, which leaves the mode as it is unless it says otherwise.
    #[inline]
    pub(super) fn begin_write(&self) -> Mutation<'_> {
        let mut state = self.state();
        let mode = state.mode_valid.then_some(state.attr.mode);
        let mut write = self.begin_in(&mut state);
        write.mode = mode;
        write
    }

    #[inline]
    fn begin_in(&self, state: &mut State) -> Mutation<'_> {
        let alone = state.in_flight == 0;
        let known = (state.valid && alone).then_some(state.attr);
        state.in_flight += 1;
        state.generation += 1;
        state.valid = false;
        let generation = state.generation;
        Mutation { attrs: self, generation, alone, known, mode: None, ended: false }
    }

    fn store(&self, state: &mut State, attr: Attr, acl: &Option<Acl>) {
        state.attr = attr;
        state.acl.clone_from(acl);
        state.keep();
    }
}

impl State {
    /// Believes what is here, if the cache is on.
    fn keep(&mut self) {
        let on = self.epoch.is_on();
        (self.valid, self.mode_valid, self.acl_valid) = (on, on, on);
    }

    fn known_acl(&self) -> Option<Option<Acl>> {
        self.acl_valid.then(|| self.acl.clone())
    }
}

impl Mutation<'_> {
    /// Says that this change may change the access list. To be said before it does.
    pub(super) fn changes_acl(&mut self) {
        self.attrs.state().acl_valid = false;
    }

    /// The attributes as this change found them: cached where no other change can have come
    /// between, or else the kernel's of this moment.
    pub(super) fn found(&mut self, fd: impl AsFd) -> FsResult<Attr> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        let acl = self.attrs.state().known_acl();
        let (attr, _) = self.attrs.load(fd, acl)?;
        if self.alone {
            let state = self.attrs.state();
            if state.generation == self.generation {
                self.known = Some(attr);
            }
        }
        Ok(attr)
    }

    /// The mode as this write found it.
    #[inline]
    pub(super) fn found_mode(&mut self, fd: impl AsFd) -> FsResult<u32> {
        match self.mode {
            Some(mode) => Ok(mode),
            None => self.found(fd).map(|attr| attr.mode),
        }
    }

    /// Ends a write that left the mode as it was, without a look at the attributes.
    #[inline]
    pub(super) fn end_blind(mut self) {
        let mut state = self.attrs.state();
        self.ended = true;
        if let Some(known) =
            self.known.filter(|_| self.alone && state.generation == self.generation)
        {
            (state.attr, state.mode_valid) = (known, state.epoch.is_on());
        }
        state.in_flight -= 1;
        state.generation += 1;
    }

    /// Ends the change: reads the attributes and keeps them if this change was alone.
    pub(super) fn end(mut self, fd: impl AsFd) -> FsResult<Change> {
        let acl = self.attrs.state().known_acl();
        let (attr, acl) = self.attrs.load(fd, acl)?;
        let mut state = self.attrs.state();
        self.ended = true;
        let undisturbed = self.alone && state.generation == self.generation;
        state.in_flight -= 1;
        state.generation += 1;
        if undisturbed {
            self.attrs.store(&mut state, attr, &acl);
            state.generation = state.generation.max(nanos(attr.ctime));
        }
        let before = self.known.filter(|_| undisturbed);
        Ok(Change { before, after: Some(attr) })
    }
}

impl Drop for Mutation<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.attrs.state();
            state.in_flight -= 1;
            state.generation += 1;
        }
    }
}

/// The kernel's attributes of an open object.
pub(super) fn stat(fd: impl AsFd) -> FsResult<Attr> {
    attr_of(&fstat(fd).map_err(fs_error)?)
}

/// The kernel's answer in our terms. Of lists it says nothing, so there may be one.
pub(super) fn attr_of(stat: &Stat) -> FsResult<Attr> {
    let kind = kind_of(stat.st_mode)?;
    Ok(Attr {
        kind,
        mode: stat.st_mode & 0o7777,
        has_acl: kind != FileKind::Symlink,
        nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        used: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
        rdev: device_of(kind, (major(stat.st_rdev), minor(stat.st_rdev))),
        fileid: stat.st_ino,
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// The same, from the system call that gives the birth too.
pub(super) fn attr_of_status(status: &Statx) -> FsResult<Attr> {
    let kind = kind_of(status.stx_mode.into())?;
    let time = |stamp: StatxTimestamp| time(stamp.tv_sec, stamp.tv_nsec.into());
    Ok(Attr {
        kind,
        mode: u32::from(status.stx_mode) & 0o7777,
        has_acl: kind != FileKind::Symlink,
        nlink: status.stx_nlink,
        uid: status.stx_uid,
        gid: status.stx_gid,
        size: status.stx_size,
        used: status.stx_blocks.saturating_mul(512),
        rdev: device_of(kind, (status.stx_rdev_major, status.stx_rdev_minor)),
        fileid: status.stx_ino,
        atime: time(status.stx_atime),
        mtime: time(status.stx_mtime),
        ctime: time(status.stx_ctime),
    })
}

fn kind_of(mode: u32) -> FsResult<FileKind> {
    Ok(match FileType::from_raw_mode(mode) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::BlockDevice => FileKind::BlockDevice,
        FileType::CharacterDevice => FileKind::CharDevice,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::Unknown => return Err(FsError::Io),
    })
}

/// The device that a special file stands for.
fn device_of(kind: FileKind, (major, minor): (u32, u32)) -> DeviceNumber {
    match kind {
        FileKind::BlockDevice | FileKind::CharDevice => DeviceNumber { major, minor },
        _ => DeviceNumber::default(),
    }
}

/// A time in nanoseconds since 1970.
pub(super) fn nanos(time: Timestamp) -> u64 {
    let secs = u64::try_from(time.secs).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(time.nanos.into())
}

fn time(secs: i64, nanos: u64) -> Timestamp {
    Timestamp { secs, nanos: u32::try_from(nanos).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::status;
    use rustix::fs::{CWD, Mode, OFlags, mknodat, open, symlinkat};
    use std::os::unix::net::UnixListener;

    fn of_an_open_file() -> (std::fs::File, Attrs) {
        let (file, attrs) = read_in(|_| ());
        attrs.validate();
        (file, attrs)
    }

    /// The attributes of a file, read before `turn` turns the switch of the cache.
    fn read_in(turn: impl Fn(&CacheSwitch)) -> (std::fs::File, Attrs) {
        let (file, switch) = (tempfile::tempfile().unwrap(), CacheSwitch::new(true));
        let (epoch, first) = (switch.epoch(), stat(&file).unwrap());
        turn(&switch);
        let attrs = Attrs::new((first, None), Lists::None, &switch, epoch);
        (file, attrs)
    }

    fn off_and_on(switch: &CacheSwitch) {
        assert!(switch.set(false) && switch.set(true));
    }

    #[test]
    fn nothing_from_before_a_turn_of_the_switch_is_kept() {
        let (file, attrs) = read_in(off_and_on);
        attrs.validate();
        assert!(attrs.peek().is_none(), "it was read before the turn");
        attrs.get(&file).unwrap();
        assert!(attrs.peek().is_some());
        let (change, mut write) = (attrs.begin(), attrs.begin_write());
        off_and_on(&attrs.switch);
        change.end(&file).unwrap();
        write.found(&file).unwrap();
        write.end_blind();
        assert!(attrs.peek().is_none() && attrs.begin_write().mode.is_none());
        let mut alone = attrs.begin();
        alone.found(&file).unwrap();
        off_and_on(&attrs.switch);
        let change = alone.end(&file).unwrap();
        assert!(change.before.is_none() && attrs.peek().is_none());
    }

    #[test]
    fn a_write_knows_the_mode_unless_another_change_began_since() {
        let (file, attrs) = of_an_open_file();
        let knows = |write: Mutation<'_>| write.mode.is_some();
        let write = attrs.begin_write();
        assert!(write.mode.is_some());
        write.end_blind();
        assert!(attrs.peek().is_none() && knows(attrs.begin_write()));
        let change = attrs.begin();
        let mut beside = attrs.begin_write();
        assert!(beside.mode.is_none() && beside.found_mode(&file).is_ok());
        beside.end_blind();
        change.end(&file).unwrap();
        assert!(!knows(attrs.begin_write()), "neither of the two was alone");
        let mut write = attrs.begin_write();
        write.found_mode(&file).unwrap();
        write.end_blind();
        assert!(knows(attrs.begin_write()));
        attrs.invalidate();
        assert!(!knows(attrs.begin_write()));
    }

    #[test]
    fn both_calls_of_the_kernel_tell_the_same_attributes() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), vec![7; 70_000]).unwrap();
        std::fs::hard_link(path("file"), path("link")).unwrap();
        symlinkat("nowhere", CWD, path("symlink")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let names = ["file", "symlink", "socket", "pipe", "."].map(path);
        for path in names.into_iter().chain(["/dev/null".into(), "/dev/zero".into()]) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            let fd = open(&path, flags, Mode::empty()).unwrap();
            let told = attr_of_status(&status(&fd).unwrap()).unwrap();
            assert_eq!(stat(&fd).unwrap(), told, "{}", path.display());
        }
    }
}
