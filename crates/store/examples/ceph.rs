//! The store on CephFS beside libcephfs used directly with as many threads, in turns: operations
//! per second, and processor time of this process per operation.
//!
//!     WEIR_CEPH_CONF=… cargo run --release -p weir-store --features ceph --example ceph -- \
//!         [THREADS [SECONDS [TURNS [cache]]]]
//!
//! Each turn is one of the store and one of the library; the median of the ratios counts. Without
//! the word `cache` the library's object cache is off, so that every read goes to an OSD. The
//! direct side calls the paths' interface of the library (`ceph_read`, `ceph_write`, `ceph_statx`).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_transmute_annotations,
    unsafe_code,
    reason = "a measuring tool may stop at any error, and calls the library directly"
)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_core::rng::step;
use weir_core::store::{CreateHow, Stability, WriteHow};
use weir_core::testing::block_on;
use weir_core::{Credentials, Name, SetAttr, Shared, Store};
use weir_store::{
    Ceph, CephObject, CephOptions, CephStore, Descriptors, Durability, Options, Pool,
    prepare_process,
};

const FILE_BYTES: u64 = 64 << 20;
const UNIT: u64 = 4096;

/// The kinds of load.
const LOADS: [Load; 4] = [Load::Read, Load::Write, Load::WriteSync, Load::Attr];

#[derive(Clone, Copy, Debug)]
enum Load {
    Read,
    Write,
    WriteSync,
    Attr,
}

/// The rate of one side in one turn, and its processor time per operation in µs.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: f64,
    processor: f64,
}

fn main() {
    let conf = std::env::var_os("WEIR_CEPH_CONF").map(PathBuf::from);
    let conf = conf.unwrap_or_else(|| panic!("WEIR_CEPH_CONF must name a configuration file"));
    let number = |at: usize, default: u64| {
        std::env::args().nth(at).map_or(default, |word| word.parse().unwrap())
    };
    let (threads, seconds, turns) = (number(1, 8), number(2, 3), number(3, 3));
    let object_cache = std::env::args().any(|word| word == "cache");
    prepare_process().unwrap();
    let ceph = Ceph::connect(&CephOptions {
        conf: conf.clone(),
        user: "admin".to_owned(),
        file_system: None,
        top: "/".to_owned(),
        mounts: 2,
        object_cache,
        session_seconds: 60,
        mount_seconds: 30,
    })
    .unwrap();
    let path = format!("/bench-{}", std::process::id());
    let options = Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 1024,
        descriptors: Descriptors::new(1024),
        pool: Pool::new(64).unwrap(),
    };
    let store = CephStore::open(&ceph, &path, &options).unwrap();
    let ours = files(&store, threads);
    // The library's side has files of its own: two clients of one file wait for each other.
    let direct = Direct::new(&conf, &path, threads, object_cache);
    println!("{threads} threads, {seconds} s a side, {turns} turns, object cache {object_cache}");
    println!("{:10}{:>12}{:>12}{:>8}{:>20}", "load", "store/s", "library/s", "ratio", "CPU µs/op");
    for load in LOADS {
        let pairs: Vec<(Rate, Rate)> = (0..turns)
            .map(|_| {
                let time = Duration::from_secs(seconds);
                let store_side = measure(threads, time, |thread, random| {
                    with_store(&store, &ours[thread], load, random);
                });
                let side = measure(threads, time, |thread, random| {
                    direct.run(thread, load, random);
                });
                (store_side, side)
            })
            .collect();
        report(load, &pairs);
    }
    drop((direct, ours, store));
    ceph.disconnect();
}

/// Makes a file for each thread.
fn files(store: &CephStore, threads: u64) -> Vec<Arc<CephObject>> {
    let unit = Shared::from(vec![7u8; 1 << 20]);
    let make = |thread| {
        let name = format!("f{thread}");
        let how = CreateHow::Unchecked(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        let name = Name::new(name.as_bytes()).unwrap();
        let made = block_on(store.create(&store.root(), name, &how, &Credentials::ROOT)).unwrap();
        for at in (0..FILE_BYTES).step_by(1 << 20) {
            block_on(store.write(&made.object, at, unit.clone(), Stability::Unstable)).unwrap();
        }
        block_on(store.commit(&made.object)).unwrap();
        made.object
    };
    (0..threads).map(make).collect()
}

fn offset(random: &mut u64) -> u64 {
    step(random) % (FILE_BYTES / UNIT) * UNIT
}

fn with_store(store: &CephStore, file: &Arc<CephObject>, load: Load, random: &mut u64) {
    let write = |at, stability| {
        let how = WriteHow { stability, gives_change: true };
        let data = Shared::from(vec![8u8; 4096]);
        assert_eq!(block_on(store.write(file, at, data, how)).unwrap().count, 4096);
    };
    match load {
        Load::Read => {
            let done = block_on(store.read(file, offset(random), 4096, Vec::with_capacity(4096)));
            assert_eq!(done.unwrap().count, 4096);
        }
        Load::Write => write(offset(random), Stability::Unstable),
        Load::WriteSync => write(offset(random), Stability::FileSync),
        Load::Attr => assert_eq!(block_on(store.attr(file)).unwrap().size, FILE_BYTES),
    }
}

/// Runs `work` in so many threads for `time`.
fn measure(threads: u64, time: Duration, work: impl Fn(usize, &mut u64) + Sync) -> Rate {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let (began, before) = (Instant::now(), processor_time());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (stop, done, work) = (&stop, &done, &work);
            scope.spawn(move || {
                let mut random = thread + 1;
                while !stop.load(Relaxed) {
                    work(usize::try_from(thread).unwrap(), &mut random);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        std::thread::sleep(time);
        stop.store(true, Relaxed);
    });
    #[expect(clippy::cast_precision_loss, reason = "a count of operations")]
    let count = done.load(Relaxed) as f64;
    Rate {
        per_second: count / began.elapsed().as_secs_f64(),
        processor: (processor_time() - before) * 1e6 / count,
    }
}

fn report(load: Load, pairs: &[(Rate, Rate)]) {
    let median = |of: &dyn Fn(&(Rate, Rate)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (ours, theirs) = (median(&|p| p.0.per_second), median(&|p| p.1.per_second));
    let ratio = median(&|p| p.0.per_second / p.1.per_second);
    let cost = (median(&|p| p.0.processor), median(&|p| p.1.processor));
    let load = format!("{load:?}");
    println!("{load:10}{ours:12.0}{theirs:12.0}{ratio:8.2}{:12.1}{:8.1}", cost.0, cost.1);
}

fn processor_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap()).as_secs_f64()
}

/// The library, called directly.
struct Direct {
    mount: *mut c_void,
    files: Vec<c_int>,
    read: unsafe extern "C" fn(*mut c_void, c_int, *mut c_char, i64, i64) -> c_int,
    write: unsafe extern "C" fn(*mut c_void, c_int, *const c_char, i64, i64) -> c_int,
    sync: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    stat: unsafe extern "C" fn(*mut c_void, c_int, *mut u64, c_uint, c_uint) -> c_int,
    unmount: Plain,
    release: Plain,
}

type Plain = unsafe extern "C" fn(*mut c_void) -> c_int;

impl Drop for Direct {
    fn drop(&mut self) {
        // SAFETY: the mount is mounted and not used again.
        unsafe {
            (self.unmount)(self.mount);
            (self.release)(self.mount);
        }
    }
}

// SAFETY: the library may be called from any thread.
unsafe impl Sync for Direct {}

macro_rules! function {
    ($library:expr, $name:literal, $type:ty) => {{
        // SAFETY: the library is loaded, and the name is a C string.
        let address = unsafe { libc::dlsym($library, $name.as_ptr()) };
        assert!(!address.is_null(), "{:?}", $name);
        // SAFETY: the type is that of the function's declaration in Ceph 16.2.
        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
    }};
}

impl Direct {
    fn new(conf: &Path, path: &str, threads: u64, object_cache: bool) -> Self {
        type Strings = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> c_int;
        type String1 = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
        let text = |text: &str| CString::new(text).unwrap();
        // SAFETY: the name is a C string.
        let library = unsafe { libc::dlopen(c"libcephfs.so.2".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null());
        let create = function!(
            library,
            c"ceph_create",
            unsafe extern "C" fn(*mut *mut c_void, *const c_char) -> c_int
        );
        let read_conf = function!(library, c"ceph_conf_read_file", String1);
        let set = function!(library, c"ceph_conf_set", Strings);
        let mount_it = function!(library, c"ceph_mount", String1);
        let init = function!(library, c"ceph_init", Plain);
        let open = function!(
            library,
            c"ceph_open",
            unsafe extern "C" fn(*mut c_void, *const c_char, c_int, u32) -> c_int
        );
        let mut mount = null_mut();
        let cache = if object_cache { c"true" } else { c"false" };
        let (conf, top) = (text(conf.to_str().unwrap()), text("/"));
        // SAFETY: as the library wants it: strings are C strings, and the mount is made first.
        unsafe {
            assert_eq!(create(&raw mut mount, c"admin".as_ptr()), 0);
            assert_eq!(read_conf(mount, conf.as_ptr()), 0);
            assert_eq!(set(mount, c"client_oc".as_ptr(), cache.as_ptr()), 0);
            assert_eq!(init(mount), 0);
            assert_eq!(mount_it(mount, top.as_ptr()), 0);
        }
        let files = (0..threads).map(|thread| {
            let file = text(&format!("{path}-direct-{thread}"));
            // SAFETY: the mount is mounted, and the path is a C string.
            unsafe { open(mount, file.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o644) }
        });
        let direct = Self {
            mount,
            files: files.collect(),
            read: function!(library, c"ceph_read", _),
            write: function!(library, c"ceph_write", _),
            sync: function!(library, c"ceph_fsync", _),
            stat: function!(library, c"ceph_fstatx", _),
            unmount: function!(library, c"ceph_unmount", _),
            release: function!(library, c"ceph_release", _),
        };
        let data = vec![7u8; 1 << 20];
        for &file in &direct.files {
            assert!(file >= 0);
            for at in (0..FILE_BYTES.cast_signed()).step_by(1 << 20) {
                // SAFETY: the file is open, and the data has 1 MiB.
                let put = unsafe { (direct.write)(mount, file, data.as_ptr().cast(), 1 << 20, at) };
                assert_eq!(put, 1 << 20);
            }
            // SAFETY: the file is open.
            assert_eq!(unsafe { (direct.sync)(mount, file, 0) }, 0);
        }
        direct
    }

    fn run(&self, thread: usize, load: Load, random: &mut u64) {
        let (file, at) = (self.files[thread], offset(random).cast_signed());
        let mut buffer = [8u8; 4096];
        let room = buffer.as_mut_ptr();
        // SAFETY: the file is open, the buffer has 4 KiB, and the room for attributes is larger
        // than the structure.
        unsafe {
            match load {
                Load::Read => {
                    assert_eq!((self.read)(self.mount, file, room.cast(), 4096, at), 4096);
                }
                Load::Write | Load::WriteSync => {
                    assert_eq!((self.write)(self.mount, file, room.cast(), 4096, at), 4096);
                    if matches!(load, Load::WriteSync) {
                        assert_eq!((self.sync)(self.mount, file, 0), 0);
                    }
                }
                Load::Attr => {
                    let mut attributes = [0u64; 64];
                    let all = 0x1fff;
                    assert_eq!((self.stat)(self.mount, file, attributes.as_mut_ptr(), all, 0), 0);
                }
            }
        }
    }
}
