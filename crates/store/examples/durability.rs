//! The cost of stable answers: operations and syncs a second, in both modes of namespace
//! durability, with 1 to 64 clients at once: `cargo run --release -p weir-store --example
//! durability -- DIRECTORY [SECONDS]`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measuring tool may stop at any error")]

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::testing::block_on;
use weir_core::{CallId, Credentials, Name, SetAttr, Shared, Store};
use weir_store::{
    Descriptors, Durability, LocalStore, Options, Pool, StoreControl, prepare_process,
};

const CLIENTS: [usize; 4] = [1, 4, 16, 64];
const WRITE_BYTES: usize = 4096;
const FILE_BYTES: u64 = 1 << 20;
const ROOT: Credentials = Credentials::ROOT;

/// The operation that each client repeats.
#[derive(Clone, Copy)]
enum Load {
    /// CREATE and REMOVE in a directory of its own, or in one for all: two operations; put on
    /// record as calls, as a server does, or not.
    Names { shared: bool, on_record: bool },
    /// A `FILE_SYNC` WRITE of 4 KiB to a file of its own, or to one for all.
    Writes { shared: bool },
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| panic!("name a directory"));
    let seconds = arguments.next().map_or(3, |text| text.parse().unwrap());
    prepare_process().unwrap();
    println!("{:8} {:30} {:>7} {:>9} {:>14}", "mode", "load", "clients", "op/s", "syncs per op");
    for (mode, durability) in [("power", Durability::Power), ("process", Durability::Process)] {
        let options = Options {
            quota_bytes: 1 << 40,
            namespace_durability: durability,
            metadata_cache: true,
            cached_objects_max: 20_000,
            descriptors: Descriptors::new(32_768),
            pool: Pool::new(16).unwrap(),
        };
        let store = LocalStore::open(&Path::new(&directory).join(mode), &options).unwrap();
        for (what, load) in [
            ("CREATE+REMOVE, own directory", Load::Names { shared: false, on_record: true }),
            ("the same, not on record", Load::Names { shared: false, on_record: false }),
            ("CREATE+REMOVE, one directory", Load::Names { shared: true, on_record: true }),
            ("the same, not on record", Load::Names { shared: true, on_record: false }),
            ("WRITE FILE_SYNC, own file", Load::Writes { shared: false }),
            ("WRITE FILE_SYNC, one file", Load::Writes { shared: true }),
        ] {
            for clients in CLIENTS {
                let (rate, syncs) = run(&store, load, clients, Duration::from_secs(seconds));
                println!("{mode:8} {what:30} {clients:>7} {rate:>9.0} {syncs:>14.2}");
            }
        }
    }
}

/// Operations a second, and syncs for each.
fn run(store: &LocalStore, load: Load, clients: usize, span: Duration) -> (f64, f64) {
    let barrier = Barrier::new(clients);
    let (began, syncs_before) = (Instant::now(), store.syncs());
    let mut operations = 0u32;
    std::thread::scope(|scope| {
        let client = |number| {
            let (store, barrier) = (store.clone(), &barrier);
            scope.spawn(move || {
                let client = Client::new(store, load, number);
                barrier.wait();
                let until = Instant::now() + span;
                let mut done = 0;
                while Instant::now() < until {
                    done += client.step(u64::from(done));
                }
                done
            })
        };
        let threads: Vec<_> = (0..clients).map(client).collect();
        operations = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    });
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let syncs = (store.syncs() - syncs_before) as f64;
    (f64::from(operations) / began.elapsed().as_secs_f64(), syncs / f64::from(operations))
}

struct Client {
    store: LocalStore,
    load: Load,
    number: usize,
    object: <LocalStore as Store>::Object,
}

impl Client {
    fn new(store: LocalStore, load: Load, number: usize) -> Self {
        let (Load::Names { shared, .. } | Load::Writes { shared }) = load;
        let name = if shared { "shared".to_owned() } else { format!("own{number}") };
        let root = store.root();
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        let object = if matches!(load, Load::Names { .. }) {
            let name = format!("dir-{name}");
            let name = Name::new(name.as_bytes()).unwrap();
            // There already, if another client or another run has made it.
            let _made = block_on(store.make(&root, name, &MakeKind::Directory, &set, &ROOT));
            block_on(store.lookup(&root, name)).unwrap().0
        } else {
            let name = Name::new(name.as_bytes()).unwrap();
            let how = CreateHow::Unchecked(set);
            block_on(store.create(&root, name, &how, &ROOT)).unwrap().object
        };
        Self { store, load, number, object }
    }

    /// One turn; says how many operations that was.
    fn step(&self, turn: u64) -> u32 {
        if matches!(self.load, Load::Writes { .. }) {
            let data = Shared::from(vec![7; WRITE_BYTES]);
            let offset = turn * WRITE_BYTES as u64 % FILE_BYTES;
            block_on(self.store.write(&self.object, offset, data, Stability::FileSync)).unwrap();
            return 1;
        }
        let name = format!("{}-{turn}", self.number);
        let name = Name::new(name.as_bytes()).unwrap();
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        block_on(self.store(turn, 8).create(&self.object, name, &how, &ROOT)).unwrap();
        block_on(self.store(turn, 12).remove(&self.object, name, &ROOT)).unwrap();
        2
    }

    /// The store for the call of a turn.
    fn store(&self, turn: u64, procedure: u32) -> LocalStore {
        if !matches!(self.load, Load::Names { on_record: true, .. }) {
            return self.store.clone();
        }
        let xid = u32::try_from(turn & u64::from(u32::MAX)).unwrap();
        // Addresses of 10.0.0.0/8.
        let client = 0xffff_0a00_0000 + self.number as u128;
        self.store.for_call(CallId { client, xid, procedure, print: turn })
    }
}
