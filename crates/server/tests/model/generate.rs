//! Steps by seed: a pure function of it, so that a seed replays.

use crate::answer::CLIENT_TIMES_END;
use crate::random::Random;
use crate::step::{
    Again, At, Bytes, DIRECTORIES, FILES, Guard, How, Kind, Op, SLOTS, Stable, Step, With, callers,
    lists,
};
use weir_core::attr::SetTime;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::{SetAttr, Timestamp};

/// The settings and steps of one seed's run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) quota_bytes: u64,
    pub(crate) cached_objects_max: usize,
    pub(crate) metadata_cache: bool,
    pub(crate) steps: Vec<Step>,
}

/// The plan of a seed.
pub(crate) fn plan(seed: u64, steps: usize) -> Plan {
    let mut random = Random(seed);
    let quota_bytes = random.pick(&[1 << 20, 1 << 20, 4 << 20, 1 << 28]);
    let cached_objects_max = random.pick(&[16, 64, 65_536]);
    let metadata_cache = !random.one_in(4);
    let names = random.pick(&[5, 10, 40]);
    let mut generator = Generator { random, names };
    let steps = (0..steps).map(|_| generator.step()).collect();
    Plan { quota_bytes, cached_objects_max, metadata_cache, steps }
}

struct Generator {
    random: Random,
    /// Ordinary names in use.
    names: u64,
}

const MODES: [u32; 12] =
    [0o777, 0o777, 0o777, 0o755, 0o755, 0o700, 0o1777, 0o2775, 0o644, 0o4755, 0o060, 0o007];
const IDS: [u32; 6] = [0, 1001, 1002, 2001, 2002, 2003];

impl Generator {
    fn step(&mut self) -> Step {
        let op = self.op();
        let by = match self.random.below(9) {
            0..3 => 0,
            _ => 1 + self.random.index(callers().len() - 1),
        };
        // Replies that the server gives from memory when the call is sent again.
        let remembered = matches!(
            op,
            Op::Setattr { .. }
                | Op::Create { .. }
                | Op::Make { .. }
                | Op::Remove { .. }
                | Op::Rmdir { .. }
                | Op::Rename { .. }
                | Op::Link { .. }
                | Op::Setacl { .. }
        );
        let again = match self.random.below(24) {
            0 if remembered => Again::SameConnection,
            1 if remembered => Again::OtherConnection,
            _ => Again::No,
        };
        Step { by, again, op }
    }

    fn op(&mut self) -> Op {
        let (object, file) = (self.object(), self.file());
        match self.random.below(1000) {
            0..40 => Op::Getattr { object },
            40..100 => self.setattr(object),
            100..150 => self.setattr(file),
            150..270 => Op::Lookup { at: self.at(), into: self.into() },
            270..300 => Op::Access { object },
            300..320 => Op::Readlink { object },
            320..430 => Op::Read { object: file, offset: self.offset(), count: self.count() },
            430..600 => self.write(file),
            600..690 => Op::Create { at: self.at(), how: self.how(), into: self.into() },
            690..770 => self.make(),
            770..820 => Op::Remove { at: self.at() },
            820..860 => Op::Rmdir { at: At { dir: self.dir(), name: self.dir_name() } },
            860..920 => self.rename(),
            920..950 => Op::Link { object: file, at: self.at() },
            950..965 => self.list(),
            965..968 => Op::Page { begin: Some(self.random.index(DIRECTORIES)) },
            968..975 => Op::Page { begin: None },
            975..980 => Op::Fsstat { object },
            980..984 => Op::Commit { object: file },
            984..991 => Op::Getacl { object },
            991..999 => self.setacl(object),
            _ if self.random.one_in(4) => Op::Restart,
            _ => Op::Getattr { object },
        }
    }

    /// A slot that mostly holds a directory.
    fn dir(&mut self) -> usize {
        if self.random.one_in(25) { self.object() } else { self.random.index(DIRECTORIES) }
    }

    fn object(&mut self) -> usize {
        self.random.index(SLOTS)
    }

    /// A slot that mostly holds a file.
    fn file(&mut self) -> usize {
        if self.random.one_in(8) { self.object() } else { DIRECTORIES + self.random.index(FILES) }
    }

    fn into(&mut self) -> usize {
        DIRECTORIES + self.random.index(SLOTS - DIRECTORIES)
    }

    fn at(&mut self) -> At {
        At { dir: self.dir(), name: self.name() }
    }

    fn name(&mut self) -> Bytes {
        Bytes(match self.random.below(100) {
            0 => b".".to_vec(),
            1 => b"..".to_vec(),
            2 => match self.random.below(8) {
                0 => vec![],
                1 => b"a/b".to_vec(),
                2 => b"a\0b".to_vec(),
                3 => vec![b'x'; 256],
                _ => vec![b'y'; 255],
            },
            3 => b"\xff\xfe not UTF-8".to_vec(),
            _ => format!("n{}", self.random.below(self.names)).into_bytes(),
        })
    }

    /// A name that is mostly a directory's.
    fn dir_name(&mut self) -> Bytes {
        if self.random.one_in(8) {
            return self.name();
        }
        Bytes(format!("d{}", self.random.below(5)).into_bytes())
    }

    fn rename(&mut self) -> Op {
        let (mut from, mut to) = (self.at(), self.at());
        if self.random.one_in(3) {
            (from.name, to.name) = (self.dir_name(), self.dir_name());
        }
        Op::Rename { from, to }
    }

    fn time(&mut self) -> SetTime {
        match self.random.below(6) {
            0..3 => SetTime::Keep,
            3 => SetTime::ServerNow,
            _ => {
                let secs = self.random.below(CLIENT_TIMES_END.cast_unsigned()).cast_signed();
                let nanos = u32::try_from(self.random.below(1_000_000_000)).unwrap();
                SetTime::To(Timestamp { secs, nanos })
            }
        }
    }

    fn mode(&mut self) -> u32 {
        if self.random.one_in(5) {
            u32::try_from(self.random.below(0o10_000)).unwrap()
        } else {
            self.random.pick(&MODES)
        }
    }

    /// Of directories one that lets people in, mostly, so that there goes on something.
    fn mode_for(&mut self, slot: usize) -> u32 {
        match self.random.below(4) {
            0 => self.mode(),
            1 if slot < DIRECTORIES => 0o1777,
            _ if slot < DIRECTORIES => 0o777,
            _ => self.mode(),
        }
    }

    fn size(&mut self) -> u64 {
        match self.random.below(12) {
            0..4 => 0,
            4..10 => self.random.below(64 << 10),
            10 => self.random.below(1 << 40),
            // Sizes just below the maximum are left out, because not every file system can hold
            // them.
            _ => FILE_BYTES_MAX + 1,
        }
    }

    fn setattr(&mut self, object: usize) -> Op {
        let mut set = SetAttr::default();
        match self.random.below(10) {
            0..3 => set.mode = Some(self.mode_for(object)),
            3..5 => set.size = Some(self.size()),
            5 => set.uid = Some(self.random.pick(&IDS)),
            6 => set.gid = Some(self.random.pick(&IDS)),
            7..9 => (set.atime, set.mtime) = (self.time(), self.time()),
            _ => set = self.attributes(),
        }
        let guard = match self.random.below(10) {
            0 => Guard::Right,
            1 => Guard::Wrong,
            _ => Guard::None,
        };
        Op::Setattr { object, set, guard }
    }

    /// Of something new, or many at once.
    fn attributes(&mut self) -> SetAttr {
        let mut set =
            SetAttr { mode: (!self.random.one_in(10)).then(|| self.mode()), ..SetAttr::default() };
        if self.random.one_in(10) {
            set.uid = Some(self.random.pick(&IDS));
        }
        if self.random.one_in(10) {
            set.gid = Some(self.random.pick(&IDS));
        }
        if self.random.one_in(6) {
            set.size = Some(self.size());
        }
        if self.random.one_in(10) {
            (set.atime, set.mtime) = (self.time(), self.time());
        }
        set
    }

    fn offset(&mut self) -> u64 {
        match self.random.below(20) {
            0..6 => 0,
            6..12 => self.random.below(16 << 10),
            12..16 => self.random.below(16) << 12,
            16..18 => self.random.below(256 << 10),
            18 => self.random.below(1 << 40),
            _ => FILE_BYTES_MAX - self.random.below(1 << 17),
        }
    }

    fn count(&mut self) -> u32 {
        let count = match self.random.below(10) {
            0 => 0,
            1 => 2 << 20,
            _ => self.random.below(32 << 10),
        };
        u32::try_from(count).unwrap()
    }

    fn write(&mut self, object: usize) -> Op {
        let offset = match self.offset() {
            // Between what ext4 and what the protocol can hold, file systems differ: NFS3ERR_FBIG.
            far if far > 1 << 40 => FILE_BYTES_MAX,
            offset => offset,
        };
        let length = match self.random.below(6) {
            0 => self.random.below(3),
            1 => 4096,
            2 => self.random.below(48 << 10),
            _ => self.random.below(9000),
        };
        let how = match self.random.below(150) {
            0 => Stable::DataSync,
            1 => Stable::FileSync,
            _ => Stable::Unstable,
        };
        let (length, fill) =
            (usize::try_from(length).unwrap(), self.random.word().to_le_bytes()[0]);
        Op::Write { object, offset, length, fill, how }
    }

    fn how(&mut self) -> How {
        match self.random.below(8) {
            0..4 => How::Unchecked(self.attributes()),
            4..7 => How::Guarded(self.attributes()),
            // Few verifiers, so that some come again. As times, which a store may keep them in,
            // they are none that a client gave.
            _ => {
                let low = u8::try_from(self.random.below(3)).unwrap();
                How::Exclusive([0x7a, 0, 0, low, 0x7b, 0, low, 0])
            }
        }
    }

    fn make(&mut self) -> Op {
        let kind = match self.random.below(12) {
            0..7 => Kind::Directory,
            7..10 => Kind::Symlink(Bytes(match self.random.below(12) {
                0 => vec![],
                // XFS holds no more.
                1 => vec![b't'; 1023],
                2 => vec![b't'; 4096],
                _ => format!("../n{}", self.random.below(self.names)).into_bytes(),
            })),
            10 => Kind::Fifo,
            _ if self.random.one_in(3) => Kind::CharDevice(1, 3),
            _ => Kind::Socket,
        };
        let mut at = self.at();
        let mut set = self.attributes();
        if kind == Kind::Directory {
            at.name = self.dir_name();
            set.mode = set.mode.map(|_| self.mode_for(0));
        }
        Op::Make { at, kind, set, into: self.into() }
    }

    fn list(&mut self) -> Op {
        let dir = self.dir();
        let (with, bytes) = if self.random.one_in(2) {
            let bytes = match self.random.below(8) {
                0 => self.random.below(160),
                1..5 => 128 + self.random.below(512),
                _ => 4096,
            };
            (With::Names, bytes)
        } else {
            // From 600 bytes on every entry fits, whatever its name and handle.
            let bytes = match self.random.below(8) {
                0 => self.random.below(104),
                1..5 => 600 + self.random.below(2000),
                _ => 32 << 10,
            };
            let dir_count = u32::try_from(self.random.below(4096)).unwrap();
            (With::Objects { dir_count }, bytes)
        };
        Op::List { dir, with, bytes: u32::try_from(bytes).unwrap() }
    }

    fn setacl(&mut self, object: usize) -> Op {
        let mut list = || {
            let number = self.random.index(lists().len());
            (!self.random.one_in(3)).then_some(number)
        };
        Op::Setacl { object, access: list(), default: list() }
    }
}
