//! The cost of the store's operations beside the bare system calls, in µs per call: `cargo run
//! --release -p weir-store --example costs -- DIRECTORY`. With `--features ceph` the store is one
//! of two kinds; that must cost nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measuring tool may stop at any error")]

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_core::store::{CreateHow, Stability};
use weir_core::testing::block_on;
use weir_core::{Credentials, Name, SetAttr, Shared, Store};
use weir_store::{Descriptors, Durability, Options, Pool, VolumeStore, prepare_process};

const ROUNDS: u32 = 200_000;
const NAMES: u32 = 20_000;
const FILE_BYTES: u64 = 64 << 20;

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| panic!("name a directory"));
    let directory = Path::new(&directory);
    prepare_process().unwrap();
    let options = Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 20_000,
        descriptors: Descriptors::new(32_768),
        pool: Pool::new(16).unwrap(),
    };
    let store = VolumeStore::open_local(&directory.join("volume"), &options).unwrap();
    data(&store, directory);
    names(&store, directory);
}

fn data(store: &VolumeStore, directory: &Path) {
    let name = Name::new(b"data").unwrap();
    let how = CreateHow::Unchecked(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    let made = block_on(store.create(&store.root(), name, &how, &Credentials::ROOT)).unwrap();
    let file = made.object;
    let unit = Shared::from(vec![7u8; 4096]);
    for at in 0..FILE_BYTES / 4096 {
        block_on(store.write(&file, at * 4096, unit.clone(), Stability::Unstable)).unwrap();
    }
    let path = directory.join("volume/root/data");
    let bare = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let offset =
        |round: u32, unit: u64| u64::from(round).wrapping_mul(40_503) % (FILE_BYTES / unit) * unit;

    let fd = std::os::fd::AsRawFd::as_raw_fd(&bare);
    let mut buffer = vec![0u8; 4096];
    let read_bare = measure(ROUNDS, |round| {
        assert_eq!(nowait(fd, &mut buffer, offset(round, 4096)), 4096);
    });
    let mut out = Vec::with_capacity(8192);
    let read_ours = measure(ROUNDS, |round| {
        out.clear();
        let done = ready(store.read(&file, offset(round, 4096), 4096, std::mem::take(&mut out)));
        out = done.unwrap().out;
    });
    report("READ 4 KiB, cached", read_bare, read_ours);

    let block = vec![8u8; 8192];
    let write_bare = measure(ROUNDS, |round| {
        bare.write_all_at(&block, offset(round, 8192)).unwrap();
    });
    let block = Shared::from(block);
    let mut pooled = 0;
    let write_ours = measure(ROUNDS, |round| {
        let at = offset(round, 8192);
        let write = pin!(store.write(&file, at, block.clone(), Stability::Unstable));
        pooled += u32::from(finish(write));
    });
    report("WRITE 8 KiB, UNSTABLE", write_bare, write_ours);
    println!("{:28}{pooled} of {ROUNDS} writes went to the pool", "");

    let attr_bare = measure(ROUNDS, |_| assert!(bare.metadata().unwrap().size() > 0));
    let attr_ours = measure(ROUNDS, |_| assert!(ready(store.attr(&file)).unwrap().size > 0));
    report("GETATTR", attr_bare, attr_ours);
    let key = store.key(&file);
    let resolve = measure(ROUNDS, |_| drop(ready(store.resolve(&key)).unwrap()));
    report("resolve a key", 0.0, resolve);
    let root = store.root();
    let lookup = measure(ROUNDS, |_| drop(ready(store.lookup(&root, name)).unwrap()));
    report("LOOKUP", 0.0, lookup);
}

fn names(store: &VolumeStore, directory: &Path) {
    let bare_directory = directory.join("volume/root");
    let path = |round: u32| bare_directory.join(format!("n{round:06}"));
    let create_bare = measure(NAMES, |round| {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path(round));
        drop(file.unwrap());
    });
    let remove_bare = measure(NAMES, |round| std::fs::remove_file(path(round)).unwrap());
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    let root = store.root();
    let name = |round: u32| format!("n{round:06}").into_bytes();
    let mut pooled = 0;
    let create = measure(NAMES, |round| {
        let bytes = name(round);
        let name = Name::new(&bytes).unwrap();
        pooled += u32::from(finish(pin!(store.create(&root, name, &how, &Credentials::ROOT))));
    });
    report("CREATE as root", create_bare, create);
    let remove = measure(NAMES, |round| {
        let bytes = name(round);
        let name = Name::new(&bytes).unwrap();
        pooled += u32::from(finish(pin!(store.remove(&root, name, &Credentials::ROOT))));
    });
    report("REMOVE as root", remove_bare, remove);
    println!("{:28}{pooled} of {} went to the pool", "", 2 * NAMES);
}

/// Runs `work` so many times, thrice; the least processor time of all threads per call, in µs.
fn measure(rounds: u32, mut work: impl FnMut(u32)) -> f64 {
    let turns = if rounds == NAMES { 1 } else { 3 };
    let turn = |work: &mut dyn FnMut(u32)| {
        let start = processor_time();
        (0..rounds).for_each(work);
        (processor_time() - start) * 1e6 / f64::from(rounds)
    };
    (0..turns).map(|_| turn(&mut work)).fold(f64::INFINITY, f64::min)
}

fn processor_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap()).as_secs_f64()
}

fn report(what: &str, bare: f64, ours: f64) {
    println!("{what:28}bare {bare:7.3}   store {ours:7.3}   more {:7.3}", ours - bare);
}

/// The value of a future that must be ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("an operation that should be answered at once waits"),
    }
}

/// Finishes a future; true if it had to wait.
fn finish<T>(mut future: std::pin::Pin<&mut impl Future<Output = weir_core::FsResult<T>>>) -> bool {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => drop(done.unwrap_or_else(|error| panic!("{error}"))),
        Poll::Pending => {
            drop(block_on(future).unwrap_or_else(|error| panic!("{error}")));
            return true;
        }
    }
    false
}

#[expect(unsafe_code, reason = "the bare system call is what is measured")]
fn nowait(fd: i32, buffer: &mut [u8], offset: u64) -> isize {
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: `part` covers `buffer`, which outlives the call.
    unsafe { libc::preadv2(fd, &raw const part, 1, offset.cast_signed(), libc::RWF_NOWAIT) }
}
