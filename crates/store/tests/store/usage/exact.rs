//! Random operations of several clients at once.

use super::player::Player;
use super::walk::data_below;
use crate::common::{Bed, Place, ROOT, Random, block_on, options, places};
use std::time::Instant;
use weir_core::store::{CreateHow, Stability};
use weir_core::{Name, SetAttr, Shared, Store};
use weir_store::{Options, StoreControl};

const OPERATIONS: u64 = 24_000;
const CLIENTS: usize = 4;
/// More clients, which all use the same few files.
const DISTURBERS: usize = 2;
/// The least number of comparisons of the usage, with all clients stopped, and the operations
/// between two.
const COMPARISONS_MIN: u64 = 20;
const COMPARE_EVERY: u64 = 100_000;
/// Small enough that it is reached now and then.
const QUOTA: u64 = 6 << 20;
/// Fewer than there are, so that files are closed and opened again all the time.
const OBJECTS: usize = 256;
/// Names that all clients use.
const COMMON: usize = 12;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn the_usage_is_exact_to_the_unit_after_random_operations() {
    let operations = number("WEIR_USAGE_OPERATIONS", OPERATIONS);
    let seed = number("WEIR_USAGE_SEED", 1);
    for place in places().into_iter().chain(Place::with_small_blocks()) {
        // A long run is for file systems that are known.
        if operations <= OPERATIONS || place.name != "temp" {
            play(&place, operations, seed);
        }
    }
}

/// A volume beside the one under test, on the same file system.
fn neighbour(place: &Place) -> Bed {
    let bed = Bed::open(place.path().join("neighbour"), options(), place.name);
    let file = bed.create(&bed.root(), b"f", 0o644, &ROOT).unwrap();
    bed.write(&file, 0, &[7; 20_000]).unwrap();
    bed
}

fn play(place: &Place, operations: u64, seed: u64) {
    let options = Options { quota_bytes: QUOTA, cached_objects_max: OBJECTS, ..options() };
    let mut bed = Bed::open(place.path().join("volume"), options, place.name);
    let neighbour = neighbour(place);
    let name = |number: usize| format!("client{number}");
    let block_bytes = rustix::fs::statvfs(place.path()).unwrap().f_frsize;
    let mut players: Vec<_> = (0..CLIENTS)
        .map(|number| {
            Player::new(&bed.store, &name(number), seed * 1000 + number as u64, block_bytes)
        })
        .collect();
    let (began, mut random) = (Instant::now(), Random(seed));
    let mut restarts = 0;
    let rounds = COMPARISONS_MIN.max(operations / COMPARE_EVERY);
    let each = operations / rounds / (CLIENTS + DISTURBERS) as u64;
    for round in 0..rounds {
        let rescan = random.below(3) == 0;
        std::thread::scope(|scope| {
            for player in &mut players {
                scope.spawn(move || (0..each).for_each(|_| player.step()));
            }
            for _ in 0..DISTURBERS {
                let (bed, mut random) = (&bed, Random(random.word()));
                scope.spawn(move || {
                    for step in 0..each {
                        if rescan && step % (each / 8 + 1) == 0 {
                            let _one_may_be_under_way = bed.store.rescan();
                        }
                        disturb(bed, &mut random);
                    }
                });
            }
        });
        compare(&bed, &players, &format!("on {}, seed {seed}, round {round}", place.name));
        if round % 10 == 9 {
            eprintln!("{}: {} of {rounds} rounds", place.name, round + 1);
        }
        match random.below(4) {
            0 => bed.store.close().unwrap(),
            1 => {}
            _ => continue,
        }
        restarts += 1;
        bed.store = bed.reopen();
        players.iter_mut().for_each(|player| player.reconnect(&bed.store));
    }
    assert_eq!(neighbour.store.usage().bytes, 20_480);
    let file = neighbour.lookup(&neighbour.root(), b"f").unwrap();
    assert_eq!(neighbour.read(&file, 0, 30_000).unwrap(), (vec![7; 20_000], true));
    let refused: u64 = players.iter().map(|player| player.refused).sum();
    assert!(refused > 0, "the quota was never reached");
    let seconds = began.elapsed().as_secs();
    eprintln!(
        "{}: {operations} operations in {seconds} s, compared {rounds} times with {restarts} \
         restarts, {refused} refused, {} bytes used at the end",
        place.name,
        bed.store.usage().bytes
    );
}

/// Nothing happens now.
fn compare(bed: &Bed, players: &[Player], when: &str) {
    while bed.store.usage().counting.is_some() {
        std::thread::yield_now();
    }
    assert!(bed.store.usage().exact);
    for player in players {
        let found = data_below(&bed.path().join(player.name()));
        assert_eq!(found, player.used_bytes(), "what {} holds, {when}", player.name());
    }
    assert_eq!(bed.store.usage().bytes, data_below(&bed.path()), "{when}");
    let space = block_on(bed.store.fs_stat()).unwrap();
    assert_eq!(space.free_bytes, QUOTA.saturating_sub(bed.store.usage().bytes), "{when}");
}

/// The operations of all clients on the same few files at once. Their order is open, so only the
/// kernel knows what is right.
fn disturb(bed: &Bed, random: &mut Random) {
    let (store, root) = (&bed.store, bed.root());
    let mut name = || format!("common{}", random.below(COMMON));
    let (first, second) = (name(), name());
    let (first, second) =
        (Name::new(first.as_bytes()).unwrap(), Name::new(second.as_bytes()).unwrap());
    let file = || block_on(store.lookup(&root, first)).map(|found| found.0);
    let size = random.word() % (1 << 18);
    let _any_outcome = match random.below(12) {
        0 => {
            let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
            block_on(store.create(&root, first, &CreateHow::Unchecked(set), &ROOT)).map(drop)
        }
        1 => block_on(store.remove(&root, first, &ROOT)).map(drop),
        2 => block_on(store.rename(&root, first, &root, second, &ROOT)).map(drop),
        3 => file().and_then(|f| block_on(store.link(&f, &root, second, &ROOT)).map(drop)),
        4..6 => file().and_then(|f| {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            block_on(store.set_attr(&f, &set, None, &ROOT)).map(drop)
        }),
        _ => file().and_then(|f| {
            let data = Shared::from(vec![5; random.below(30_000)]);
            block_on(store.write(&f, size, data, Stability::Unstable)).map(drop)
        }),
    };
}
