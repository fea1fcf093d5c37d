//! The time of LOOKUPs with the metadata cache on and off, in µs per call: on the directory as it
//! is, and on a store that takes a millisecond for each name and keeps none in memory (as a file
//! system in user space or on another machine may): `cargo run --release -p
//! weir-store --example lookups -- DIRECTORY`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measuring tool may stop at any error")]

use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use weir_core::store::CreateHow;
use weir_core::testing::block_on;
use weir_core::{Credentials, Name, SetAttr, Store};
use weir_store::testing::{Fault, Kernel, Kind, Rule};
use weir_store::{Descriptors, Durability, LocalStore, Options, Pool, StoreControl};

/// Names, all of them held open once they were found.
const NAMES: u32 = 2_000;
/// The time of each look at a name.
const SLOW: Duration = Duration::from_millis(1);
/// Passes over all names.
const PASSES: [&str; 3] = ["first", "second", "third"];

/// A measurement, on a thread whose kernel obeys rules.
type Job = Box<dyn FnOnce() + Send>;

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| panic!("name a directory"));
    let directory = PathBuf::from(directory).join("lookups");
    fill(&directory);
    for slow in [false, true] {
        // A kernel with rules costs time, so the directory as it is has none.
        let jobs = if slow { slowed(&directory) } else { thread() };
        for cached in [true, false] {
            let (done, times) = channel();
            let place = directory.clone();
            jobs.send(Box::new(move || done.send(passes(&place, cached)).unwrap())).unwrap();
            for (pass, micros) in PASSES.iter().zip(times.recv().unwrap()) {
                let store = if slow { "1 ms per name" } else { "as it is" };
                let cache = if cached { "on" } else { "off" };
                println!("{store:14} cache {cache:4} {pass:7} pass {micros:10.2} µs");
            }
        }
    }
}

/// Starts the thread of the measurements over a kernel that takes its time for each open. The first
/// look at a name opens the object too.
fn slowed(directory: &Path) -> Sender<Job> {
    let (kernel, jobs) = Kernel::under(thread).unwrap();
    let root = directory.join("root");
    let forgotten = Fault::Fail(Errno::AGAIN);
    for (kind, fault) in [(Kind::OpenCached, forgotten), (Kind::Open, Fault::Slow(SLOW))] {
        let _in_force = kernel.add(Rule::new(&[kind], &root, fault));
    }
    jobs
}

/// Starts the thread of the measurements.
fn thread() -> Sender<Job> {
    let (jobs, coming) = channel::<Job>();
    std::thread::spawn(move || coming.into_iter().for_each(|job| job()));
    jobs
}

fn open(directory: &Path, metadata_cache: bool) -> LocalStore {
    let options = Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache,
        cached_objects_max: 2 * NAMES as usize,
        descriptors: Descriptors::new(4 * NAMES as usize),
        pool: Pool::new(16).unwrap(),
    };
    LocalStore::open(directory, &options).unwrap()
}

fn name(number: u32) -> Vec<u8> {
    format!("a-name-of-the-usual-length-{number:06}").into_bytes()
}

fn fill(directory: &Path) {
    let store = open(directory, true);
    let how = CreateHow::Unchecked(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    for number in 0..NAMES {
        let name = name(number);
        let name = Name::new(&name).unwrap();
        drop(block_on(store.create(&store.root(), name, &how, &Credentials::ROOT)).unwrap());
    }
    store.close().unwrap();
}

/// The mean time of a LOOKUP in each pass, in µs. The volume is opened for it, and nothing is known
/// before the first pass.
fn passes(directory: &Path, cached: bool) -> Vec<f64> {
    let store = open(directory, cached);
    let root = store.root();
    let pass = |_: &&str| {
        let begun = Instant::now();
        for number in 0..NAMES {
            let name = name(number);
            drop(block_on(store.lookup(&root, Name::new(&name).unwrap())).unwrap());
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(NAMES)
    };
    let times = PASSES.iter().map(pass).collect();
    store.close().unwrap();
    times
}
