//! Volumes to test on: in a temporary directory, and on ext4 and XFS made for the test.
//!
//! The file systems need root and loop devices. Where those are missing the tests fail, unless
//! `WEIR_SKIP` names `loopfs`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use weir_core::rng::step;
use weir_core::store::{CreateHow, MakeKind, Stability};
pub(crate) use weir_core::testing::block_on;
use weir_core::{Attr, Credentials, FsResult, Name, SetAttr, Shared, Store, Timestamp};
use weir_store::testing::Kernel;
use weir_store::{
    Descriptors, Durability, Inode, LocalStore, Options, Pool, prepare_process, reset_identity,
};

pub(crate) type Object = Arc<Inode>;

pub(crate) const ROOT: Credentials = Credentials::ROOT;

/// A time long ago that the store keeps.
pub(crate) const OLD_TIME: Timestamp = Timestamp { secs: -5, nanos: 250_000_000 };
/// Has a directory a link for each directory in it?
pub(crate) const COUNTS_SUBDIRECTORIES: bool = true;
/// Does the store know where a file has holes?
pub(crate) const KNOWS_HOLES: bool = true;

/// A small generator of repeatable random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        step(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.word() >> 33).unwrap() % bound
    }
}

/// A volume and where it is.
pub(crate) struct Bed {
    pub(crate) store: LocalStore,
    pub(crate) directory: PathBuf,
    pub(crate) options: Options,
    pub(crate) file_system: &'static str,
}

/// Runs `case` on a volume of each file system.
pub(crate) fn everywhere(case: impl Fn(&Bed)) {
    everywhere_with(&options(), case);
}

/// Runs `case` everywhere with options of the test's own.
pub(crate) fn everywhere_with(options: &Options, case: impl Fn(&Bed)) {
    for place in places() {
        let bed = Bed::open(place.path().join("volume"), options.clone(), place.name);
        eprintln!("on {}", bed.file_system);
        case(&bed);
    }
}

/// The directories to test in.
pub(crate) fn places() -> Vec<Place> {
    let mut places = vec![Place::temporary()];
    if Place::may_mount() {
        places.push(Place::loop_device("ext4", &["-q", "-F", "-b", "4096"], 64));
        places.push(Place::loop_device("xfs", &["-q", "-f"], 320));
    }
    places
}

/// A directory to test in; unmounted and removed when dropped.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    directory: tempfile::TempDir,
    mounted: Option<PathBuf>,
}

impl Place {
    fn temporary() -> Self {
        Self { name: "temp", directory: tempfile::tempdir().unwrap(), mounted: None }
    }

    /// One whose blocks are smaller than the unit of usage.
    pub(crate) fn with_small_blocks() -> Option<Self> {
        let make = || Self::loop_device("ext4", &["-q", "-F", "-b", "1024"], 64);
        let mut place = Self::may_mount().then(make)?;
        place.name = "blocks of 1 KiB";
        Some(place)
    }

    fn may_mount() -> bool {
        !std::env::var("WEIR_SKIP").is_ok_and(|skip| skip.contains("loopfs"))
    }

    /// On a file system of this kind, made with these flags of `mkfs` on so many MiB.
    pub(crate) fn loop_device(name: &'static str, flags: &[&str], mebibytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("image");
        File::create(&image).unwrap().set_len(mebibytes << 20).unwrap();
        run(Command::new(format!("mkfs.{name}")).args(flags).arg(&image));
        let mounted = directory.path().join("mounted");
        std::fs::create_dir(&mounted).unwrap();
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mounted));
        Self { name, directory, mounted: Some(mounted) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.mounted.as_deref().unwrap_or(self.directory.path())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The test may have ended as some user, who may not clear up.
        reset_identity().unwrap();
        if let Some(mounted) = &self.mounted {
            // Lazily: a thread of the pool may still be closing files.
            run(Command::new("umount").arg("-l").arg(mounted));
        }
    }
}

fn run(command: &mut Command) {
    let hint = "these tests need root, loop devices, e2fsprogs and xfsprogs; without them set \
                WEIR_SKIP=loopfs";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}; {hint}");
}

pub(crate) fn options() -> Options {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        prepare_process().unwrap();
        Pool::new(16).unwrap()
    });
    Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 1024,
        descriptors: Descriptors::new(32_768),
        pool: Arc::clone(pool),
    }
}

impl Bed {
    pub(crate) fn open(directory: PathBuf, options: Options, file_system: &'static str) -> Self {
        let store = LocalStore::open(&directory, &options).unwrap();
        Self { store, directory, options, file_system }
    }

    /// A second life of the same volume.
    pub(crate) fn reopen(&self) -> LocalStore {
        LocalStore::open(&self.directory, &self.options).unwrap()
    }

    pub(crate) fn root(&self) -> Object {
        self.store.root()
    }

    /// The volume's root as the kernel sees it.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("root")
    }

    /// Is there something of this name in the root, as the kernel sees it?
    pub(crate) fn is_there(&self, name: &str) -> bool {
        std::fs::exists(self.path().join(name)).unwrap()
    }

    pub(crate) fn create(
        &self,
        dir: &Object,
        name: &[u8],
        mode: u32,
        cred: &Credentials,
    ) -> FsResult<Object> {
        let how = CreateHow::Guarded(SetAttr { mode: Some(mode), ..SetAttr::default() });
        Ok(block_on(self.store.create(dir, Name::new(name)?, &how, cred))?.object)
    }

    pub(crate) fn make(&self, dir: &Object, name: &[u8], kind: &MakeKind) -> FsResult<Object> {
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        Ok(block_on(self.store.make(dir, Name::new(name)?, kind, &set, &ROOT))?.object)
    }

    pub(crate) fn lookup(&self, dir: &Object, name: &[u8]) -> FsResult<Object> {
        Ok(block_on(self.store.lookup(dir, Name::new(name)?))?.0)
    }

    pub(crate) fn remove(&self, dir: &Object, name: &[u8]) -> FsResult<()> {
        block_on(self.store.remove(dir, Name::new(name)?, &ROOT)).map(drop)
    }

    pub(crate) fn attr(&self, object: &Object) -> Attr {
        block_on(self.store.attr(object)).unwrap()
    }

    pub(crate) fn write(&self, file: &Object, offset: u64, data: &[u8]) -> FsResult<u32> {
        let data = Shared::from(data.to_vec());
        Ok(block_on(self.store.write(file, offset, data, Stability::Unstable))?.count)
    }

    pub(crate) fn read(&self, file: &Object, offset: u64, count: u32) -> FsResult<(Vec<u8>, bool)> {
        let done = block_on(self.store.read(file, offset, count, Vec::new()))?;
        assert_eq!(done.out.len(), done.count as usize);
        Ok((done.out, done.eof))
    }

    pub(crate) fn set(&self, object: &Object, set: &SetAttr, cred: &Credentials) -> FsResult<()> {
        block_on(self.store.set_attr(object, set, None, cred)).map(drop)
    }

    /// Lets everybody work in `dir`.
    pub(crate) fn open_to_all(&self, dir: &Object) {
        let set = SetAttr { mode: Some(0o777), ..SetAttr::default() };
        self.set(dir, &set, &ROOT).unwrap();
    }
}

type Job = Box<dyn FnOnce(&Bed) + Send>;

/// A volume whose kernel fails on demand.
pub(crate) struct Faulty {
    pub(crate) kernel: Kernel,
    pub(crate) directory: PathBuf,
    jobs: Sender<Job>,
    _place: tempfile::TempDir,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("volume");
        let (kernel, jobs) = Kernel::under(|| {
            let options = Options { pool: Pool::new(16).unwrap(), ..options() };
            let bed = Bed::open(directory.clone(), options, "temp");
            let (jobs, coming) = channel::<Job>();
            std::thread::spawn(move || coming.into_iter().for_each(|job| job(&bed)));
            jobs
        })
        .unwrap();
        Self { kernel, directory, jobs, _place: place }
    }

    /// Does `what` with that kernel.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Bed) -> T + Send + 'static,
    ) -> T {
        let (done, outcome) = channel();
        self.jobs.send(Box::new(move |bed| done.send(what(bed)).unwrap())).unwrap();
        outcome.recv().unwrap()
    }
}
