//! Lookups without regard to case in a large directory: the time to build the index, its memory,
//! how long a name in the wrong case takes, and whether names get dearer to make.
//!
//! `cargo run --release -p weir-store --example folded -- DIRECTORY [NAMES]`

use std::path::Path;
use std::time::Instant;
use weir_core::rng::step;
use weir_core::store::{CreateHow, MakeKind};
use weir_core::testing::block_on;
use weir_core::{Credentials, Name, SetAttr, Store};
use weir_store::{Descriptors, Durability, LocalStore, Options, Pool, prepare_process};

/// Names made beside the index, and parts in which they are timed.
const MADE: u32 = 100_000;
const PARTS: u32 = 10;
const LOOKUPS: u32 = 100_000;

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

fn text(number: u64) -> String {
    format!("A file, no. {number:08}")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    prepare_process()?;
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("which directory?")?;
    let names: u64 = args.next().map_or(Ok(1_000_000), |number| number.parse())?;
    let options = Options {
        quota_bytes: 1 << 40,
        namespace_durability: Durability::Process,
        metadata_cache: true,
        cached_objects_max: 4096,
        descriptors: Descriptors::new(32_768),
        pool: Pool::new(16)?,
    };
    let volume = Path::new(&directory).join("folded-volume");
    let store = LocalStore::open(&volume, &options)?;
    let (root, cred, set) = (store.root(), Credentials::ROOT, SetAttr::default());
    let made = block_on(store.make(&root, Name::new(b"d")?, &MakeKind::Directory, &set, &cred))?;
    let dir = made.object;
    let path = volume.join("root/d");
    for number in 0..names {
        std::fs::File::create(path.join(text(number)))?;
    }
    let find = |number: u64| {
        let wanted = text(number).to_uppercase();
        block_on(store.lookup_folded(&dir, Name::new(wanted.as_bytes())?))
    };
    let (before, began) = (resident_mib(), Instant::now());
    find(0)?;
    let built = began.elapsed();
    println!("{names} names: built in {built:?}, {:.1} MiB", resident_mib() - before);

    let mut random = 1;
    let mut times: Vec<_> = (0..LOOKUPS)
        .map(|_| {
            let number = step(&mut random) % names;
            let began = Instant::now();
            find(number).map(|_| began.elapsed())
        })
        .collect::<Result<_, _>>()?;
    times.sort_unstable();
    let at = |thousandths: usize| times[times.len() * thousandths / 1000];
    println!("wrong case: median {:?}, p99 {:?}, p99.9 {:?}", at(500), at(990), at(999));
    let began = Instant::now();
    for number in 0..LOOKUPS {
        let missing = find(names + u64::from(number));
        assert!(missing.is_err());
    }
    println!("missing: {:?} each", began.elapsed() / LOOKUPS);

    for part in 0..PARTS {
        let began = Instant::now();
        for number in 0..MADE / PARTS {
            let name = format!("Made {}", part * MADE + number);
            let how = CreateHow::Guarded(set);
            block_on(store.create(&dir, Name::new(name.as_bytes())?, &how, &cred))?;
        }
        println!("part {part}: {:?} for each create", began.elapsed() / (MADE / PARTS));
    }
    std::fs::remove_dir_all(&volume)?;
    Ok(())
}
