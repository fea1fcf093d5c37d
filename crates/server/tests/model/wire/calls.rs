//! The procedures that are one call.

use super::{Wire, answer, location, seen, size_before};
use crate::answer::{Answer, Body};
use crate::step::{At, Bytes, Guard, How, Kind, Op, Stable, Step, data};
use weir_core::{SetAttr, SetTime};
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, CommitArgs, CreateArgs, CreateHow3, DeviceData3, FileHandle3,
    FsStatArgs, GetattrArgs, LinkArgs, LookupArgs, MkdirArgs, MknodArgs, MknodData3, NfsTime3,
    ReadArgs, ReadlinkArgs, RemoveArgs, RenameArgs, Res, RmdirArgs, Sattr3, SetTime3, SetattrArgs,
    SpecData3, StableHow, SymlinkArgs, WccData, WriteArgs,
};

/// `sattr3` of what is to be set.
fn sattr(set: &SetAttr) -> Sattr3 {
    let time = |time: SetTime| match time {
        SetTime::Keep => SetTime3::DontChange,
        SetTime::ServerNow => SetTime3::ToServerTime,
        SetTime::To(time) => {
            let seconds = u32::try_from(time.secs).unwrap();
            SetTime3::ToClientTime(NfsTime3 { seconds, nseconds: time.nanos })
        }
    };
    Sattr3 {
        mode: set.mode,
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: time(set.atime),
        mtime: time(set.mtime),
    }
}

impl Wire {
    pub(super) fn play_call(&mut self, step: &Step) -> Answer {
        match &step.op {
            Op::Getattr { object } => self.getattr(*object),
            Op::Setattr { object, set, guard } => self.setattr(*object, set, *guard),
            Op::Lookup { at, into } => self.lookup(at, *into),
            Op::Access { object } => self.access(*object),
            Op::Readlink { object } => self.readlink(*object),
            Op::Read { object, offset, count } => self.read(*object, *offset, *count),
            Op::Write { .. } => self.write(&step.op),
            Op::Create { at, how, into } => self.create(at, how, *into),
            Op::Make { at, kind, set, into } => self.make(at, kind, set, *into),
            Op::Remove { at } => {
                let dir = self.handle(at.dir);
                let record = self.call(&RemoveArgs { object: location(&dir, at) });
                let result = self.results::<RemoveArgs<'_>>(&record);
                self.changed(result)
            }
            Op::Rmdir { at } => {
                let dir = self.handle(at.dir);
                let record = self.call(&RmdirArgs { object: location(&dir, at) });
                let result = self.results::<RmdirArgs<'_>>(&record);
                self.changed(result)
            }
            Op::Rename { from, to } => self.rename(from, to),
            Op::Link { object, at } => self.link(*object, at),
            Op::Fsstat { object } => self.fsstat(*object),
            Op::Commit { object } => self.commit(*object),
            other => unreachable!("{other:?}"),
        }
    }

    fn getattr(&mut self, slot: usize) -> Answer {
        let object = self.handle(slot);
        let record = self.call(&GetattrArgs { object: FileHandle3(&object) });
        match self.results::<GetattrArgs<'_>>(&record) {
            Res::Ok(got) => Answer::ok(vec![seen(Some(got.attributes))], Body::Nothing),
            Res::Fail(status, ()) => Answer::failed(status, vec![]),
        }
    }

    fn setattr(&mut self, slot: usize, set: &SetAttr, guard: Guard) -> Answer {
        let object = self.handle(slot);
        let object = FileHandle3(&object);
        let guard = match guard {
            Guard::None => None,
            Guard::Right | Guard::Wrong => {
                let record = self.call(&GetattrArgs { object });
                match self.results::<GetattrArgs<'_>>(&record) {
                    Res::Ok(got) => Some(got.attributes.ctime),
                    // Gone: any guard will do.
                    Res::Fail(..) => Some(NfsTime3 { seconds: 1, nseconds: 1 }),
                }
                .map(|ctime| match guard {
                    Guard::Wrong => NfsTime3 { nseconds: ctime.nseconds ^ 1, ..ctime },
                    _ => ctime,
                })
            }
        };
        let record = self.call(&SetattrArgs { object, new_attributes: sattr(set), guard });
        match self.results::<SetattrArgs<'_>>(&record) {
            Res::Ok(wcc) => {
                let before = size_before(&wcc);
                Answer::ok(vec![self.after(&wcc)], Body::Changed { before })
            }
            Res::Fail(status, wcc) => Answer::failed(status, vec![self.after(&wcc)]),
        }
    }

    fn lookup(&mut self, at: &At, into: usize) -> Answer {
        let dir = self.handle(at.dir);
        let record = self.call(&LookupArgs { what: location(&dir, at) });
        let result = self.results::<LookupArgs<'_>>(&record);
        answer(result, |found| {
            let body = self.keep(into, Some(found.object), found.attributes.as_ref());
            (vec![seen(found.attributes), seen(found.dir_attributes)], body)
        })
    }

    fn access(&mut self, slot: usize) -> Answer {
        let object = self.handle(slot);
        let args = AccessArgs { object: FileHandle3(&object), access: AccessBits::all() };
        let record = self.call(&args);
        answer(self.results::<AccessArgs<'_>>(&record), |done| {
            (vec![seen(done.attributes)], Body::Access(done.access.bits()))
        })
    }

    fn readlink(&mut self, slot: usize) -> Answer {
        let link = self.handle(slot);
        let record = self.call(&ReadlinkArgs { symlink: FileHandle3(&link) });
        answer(self.results::<ReadlinkArgs<'_>>(&record), |read| {
            (vec![seen(read.attributes)], Body::Target(Bytes(read.data.to_vec())))
        })
    }

    fn read(&mut self, slot: usize, offset: u64, count: u32) -> Answer {
        let file = self.handle(slot);
        let record = self.call(&ReadArgs { file: FileHandle3(&file), offset, count });
        let result = self.results::<ReadArgs<'_>>(&record);
        answer(result, |read| {
            if read.count as usize != read.data.len() {
                self.complain(format!("{} bytes as {}", read.data.len(), read.count));
            }
            (vec![seen(read.attributes)], Body::Data(read.data.to_vec(), read.eof))
        })
    }

    fn write(&mut self, op: &Op) -> Answer {
        let &Op::Write { object, offset, length, fill, how } = op else { unreachable!() };
        let (file, data) = (self.handle(object), data(fill, offset, length));
        let stable = match how {
            Stable::Unstable => StableHow::Unstable,
            Stable::DataSync => StableHow::DataSync,
            Stable::FileSync => StableHow::FileSync,
        };
        let count = u32::try_from(length).unwrap();
        let args = WriteArgs { file: FileHandle3(&file), offset, count, stable, data: &data };
        let record = self.call(&args);
        match self.results::<WriteArgs<'_>>(&record) {
            Res::Ok(done) => {
                self.verify(done.verifier);
                if (done.committed as u32) < stable as u32 {
                    self.complain(format!("committed only {:?}", done.committed));
                }
                let before = size_before(&done.file_wcc);
                let told = vec![self.after(&done.file_wcc)];
                Answer::ok(told, Body::Written { count: done.count, before })
            }
            Res::Fail(status, wcc) => Answer::failed(status, vec![self.after(&wcc)]),
        }
    }

    fn create(&mut self, at: &At, how: &How, into: usize) -> Answer {
        let dir = self.handle(at.dir);
        let how = match how {
            How::Unchecked(set) => CreateHow3::Unchecked(sattr(set)),
            How::Guarded(set) => CreateHow3::Guarded(sattr(set)),
            How::Exclusive(verifier) => CreateHow3::Exclusive(*verifier),
        };
        let record = self.call(&CreateArgs { location: location(&dir, at), how });
        let result = self.results::<CreateArgs<'_>>(&record);
        self.made(into, result)
    }

    fn make(&mut self, at: &At, kind: &Kind, set: &SetAttr, into: usize) -> Answer {
        let (dir, attributes) = (self.handle(at.dir), sattr(set));
        let location = location(&dir, at);
        let what = match kind {
            Kind::Directory => {
                let record = self.call(&MkdirArgs { location, attributes });
                let result = self.results::<MkdirArgs<'_>>(&record);
                return self.made(into, result);
            }
            Kind::Symlink(target) => {
                let record = self.call(&SymlinkArgs { location, attributes, data: &target.0 });
                let result = self.results::<SymlinkArgs<'_>>(&record);
                return self.made(into, result);
            }
            Kind::Fifo => MknodData3::Fifo(attributes),
            Kind::Socket => MknodData3::Socket(attributes),
            &Kind::CharDevice(specdata1, specdata2) => {
                let spec = SpecData3 { specdata1, specdata2 };
                MknodData3::CharDevice(DeviceData3 { attributes, spec })
            }
        };
        let record = self.call(&MknodArgs { location, what });
        let result = self.results::<MknodArgs<'_>>(&record);
        self.made(into, result)
    }

    fn changed(&mut self, result: Res<WccData, WccData>) -> Answer {
        match result {
            Res::Ok(wcc) => Answer::ok(vec![self.after(&wcc)], Body::Nothing),
            Res::Fail(status, wcc) => Answer::failed(status, vec![self.after(&wcc)]),
        }
    }

    fn rename(&mut self, from: &At, to: &At) -> Answer {
        let (source, target) = (self.handle(from.dir), self.handle(to.dir));
        let args = RenameArgs { from: location(&source, from), to: location(&target, to) };
        let record = self.call(&args);
        let result = self.results::<RenameArgs<'_>>(&record);
        let status = result.status();
        let (Res::Ok(wcc) | Res::Fail(_, wcc)) = result;
        let told = vec![self.after(&wcc.from_dir_wcc), self.after(&wcc.to_dir_wcc)];
        Answer { status, ..Answer::ok(told, Body::Nothing) }.of_rename()
    }

    fn link(&mut self, slot: usize, at: &At) -> Answer {
        let (file, dir) = (self.handle(slot), self.handle(at.dir));
        let args = LinkArgs { file: FileHandle3(&file), link: location(&dir, at) };
        let record = self.call(&args);
        let result = self.results::<LinkArgs<'_>>(&record);
        let status = result.status();
        let (Res::Ok(told) | Res::Fail(_, told)) = result;
        let told = vec![seen(told.file_attributes), self.after(&told.link_dir_wcc)];
        Answer { status, ..Answer::ok(told, Body::Nothing) }
    }

    fn fsstat(&mut self, slot: usize) -> Answer {
        let root = self.handle(slot);
        let record = self.call(&FsStatArgs { root: FileHandle3(&root) });
        answer(self.results::<FsStatArgs<'_>>(&record), |space| {
            let (total, free) = (space.total_bytes, space.free_bytes);
            let body = Body::Space { total, free, available: space.available_bytes };
            (vec![seen(space.attributes)], body)
        })
    }

    fn commit(&mut self, slot: usize) -> Answer {
        let file = self.handle(slot);
        let record = self.call(&CommitArgs { file: FileHandle3(&file), offset: 0, count: 0 });
        match self.results::<CommitArgs<'_>>(&record) {
            Res::Ok(done) => {
                self.verify(done.verifier);
                Answer::ok(vec![self.after(&done.file_wcc)], Body::Nothing)
            }
            Res::Fail(status, wcc) => Answer::failed(status, vec![self.after(&wcc)]),
        }
    }
}
