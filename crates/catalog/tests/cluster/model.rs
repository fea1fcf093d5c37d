//! Histories of several gateways, drawn from a seed: changes, lost and late answers, gateways that
//! end and start anew, compactions. Whatever happens, all gateways come to the same rows; no
//! change that was acknowledged is lost, none is made twice, and a refused one leaves nothing.

use crate::world::{Cluster, GIB, ceph, pool, volume};
use std::collections::BTreeMap;
use std::path::Path;
use weir_catalog::{
    BytesPerSecond, Catalog, CatalogError, ExportRule, IdempotencyKey, Import, Known, Mode,
    NewUser, Outcome, PoolChange, Qos, Replace, UserChange, VolumeChange, import_into_cluster,
};
use weir_core::rng::Rng;

const GATEWAYS: usize = 3;

/// A change: its kind, and the objects that it is about.
#[derive(Clone, Copy, Debug)]
struct Ask {
    kind: u64,
    one: u64,
    two: u64,
}

impl Ask {
    fn draw(rng: &mut Rng, kinds: u64) -> Self {
        Self { kind: rng.below(kinds), one: rng.below(4), two: rng.below(3) }
    }

    fn carry_out(self, catalog: &Catalog, mode: Mode) -> Result<Outcome, CatalogError> {
        let name = |what: &str, number: u64| format!("{what}{number}");
        let (level, user, group) =
            (name("level", self.one), name("user", self.one), name("group", self.two));
        let (a_volume, a_pool) = (name("volume", self.one), name("pool", self.two));
        match self.kind {
            0 => catalog.create_level(&level, BytesPerSecond::from_mib(self.two + 1), mode),
            1 => catalog.change_level(&level, BytesPerSecond::from_mib(self.two + 5), mode),
            2 => catalog.delete_level(&level, mode),
            3 => catalog.create_pool(&pool(&a_pool), mode),
            4 => catalog.delete_pool(&a_pool, mode),
            5 | 6 => catalog.create_volume(&volume(&a_volume, &a_pool), mode),
            7 => {
                let quota_bytes = Some((self.two + 1) * GIB);
                let change = VolumeChange { quota_bytes, ..VolumeChange::default() };
                catalog.change_volume(&a_volume, &change, Some(0), mode)
            }
            8 => {
                let change = VolumeChange { pool: Some(a_pool), ..VolumeChange::default() };
                catalog.change_volume(&a_volume, &change, Some(0), mode)
            }
            9 => catalog.delete_volume(&a_volume, mode),
            10 => {
                let network = format!("10.{}.0.0/16", self.two).parse().unwrap();
                catalog.add_export(&a_volume, &ExportRule::open(network), mode)
            }
            11 => {
                let uid = u32::try_from(self.one).unwrap() + 10;
                let new = NewUser { name: user, uid, gid: None, groups: vec![], enabled: true };
                catalog.create_user(&new, mode)
            }
            12 => catalog.delete_user(&user, mode),
            13 => catalog.create_group(&group, 100 + u32::try_from(self.two).unwrap(), mode),
            14 => catalog.add_member(&group, &user, mode),
            15 => {
                let change = UserChange { enabled: Some(self.two > 0), ..UserChange::default() };
                catalog.change_user(&user, &change, mode)
            }
            _ => {
                let qos = Some(if self.two > 0 { Qos::Manual } else { Qos::Auto });
                let change = PoolChange { qos, ..PoolChange::default() };
                catalog.change_pool("many", &change, mode)
            }
        }
    }
}

/// The outcome of an attempt, as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Made, with this generation.
    Made(u64),
    Doubtful,
    Refused,
}

fn request(step: usize) -> IdempotencyKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(step as u64).to_be_bytes());
    IdempotencyKey { key, request: [1; 32], at: 1000 + step as u64 }
}

/// A failure that a fault of the store explains.
fn explained(error: &CatalogError) -> bool {
    ["cluster_unreachable", "cluster_busy", "cluster_in_doubt"].contains(&error.code())
}

struct World {
    seed: u64,
    cluster: Cluster,
    gateways: Vec<Option<Catalog>>,
    told: Vec<(Ask, Told)>,
}

impl World {
    fn run(seed: u64, kinds: u64, steps: usize, import: Option<&Import>) {
        let cluster = Cluster::new();
        if let Some(import) = import {
            import_into_cluster(&cluster.place("first"), import, Replace::Never).unwrap();
        }
        let first = cluster.gateway("fresh").snapshot().generation;
        let gateways = (0..GATEWAYS).map(|_| None).collect();
        let mut world = Self { seed, cluster, gateways, told: Vec::new() };
        let mut rng = Rng::new(seed);
        world.cluster.store.draw(Some(rng.next()));
        for _ in 0..steps {
            let ask = Ask::draw(&mut rng, kinds);
            world.step(&mut rng, ask);
        }
        world.cluster.store.draw(None);
        world.judge(first, import);
    }

    fn step(&mut self, rng: &mut Rng, ask: Ask) {
        let number = usize::try_from(rng.below(GATEWAYS as u64)).unwrap();
        match rng.below(20) {
            // It ends, however it is at that moment.
            0 => self.gateways[number] = None,
            1 => self.cluster.store.compact(),
            2..5 => {
                if let Some(gateway) = &self.gateways[number]
                    && let Err(error) = gateway.follow()
                {
                    assert!(explained(&error), "{}: {error}", self.seed);
                }
            }
            _ => self.change(number, ask),
        }
    }

    fn change(&mut self, number: usize, ask: Ask) {
        if self.gateways[number].is_none() {
            match self.cluster.open(&format!("g{number}")) {
                Ok(gateway) => self.gateways[number] = Some(gateway),
                Err(error) => return assert!(explained(&error), "{}: {error}", self.seed),
            }
        }
        let Some(gateway) = &self.gateways[number] else { return };
        let before = gateway.snapshot();
        let key = request(self.told.len());
        let told = match ask.carry_out(gateway, Mode::Once(key)) {
            Ok(outcome) => {
                // It may be lost: the response is not part of the change.
                let _kept = gateway.keep_response(&key, b"made");
                Told::Made(outcome.snapshot.generation)
            }
            Err(error) if error.code() == "cluster_in_doubt" => Told::Doubtful,
            Err(error) => {
                assert_ne!(error.code(), "cluster_row_damaged", "{}: {error}", self.seed);
                assert_ne!(error.code(), "database", "{}: {error}", self.seed);
                Told::Refused
            }
        };
        assert!(gateway.snapshot().generation >= before.generation);
        self.told.push((ask, told));
    }

    fn judge(mut self, first: u64, import: Option<&Import>) {
        let seed = self.seed;
        for number in 0..GATEWAYS {
            let name = format!("g{number}");
            let gateway =
                self.gateways[number].take().unwrap_or_else(|| self.cluster.gateway(&name));
            gateway.follow().unwrap();
            self.gateways[number] = Some(gateway);
        }
        let fresh = self.cluster.gateway("fresh");
        for gateway in self.gateways.iter().flatten() {
            gateway.follow().unwrap();
            assert_eq!(gateway.snapshot(), fresh.snapshot(), "seed {seed}");
            assert_eq!(gateway.condemned().unwrap(), fresh.condemned().unwrap(), "seed {seed}");
        }
        let done = |step| match fresh.recall(&request(step)).unwrap() {
            Known::Done(_) => true,
            Known::Nothing => false,
            Known::Other => panic!("seed {seed}: another request has the key of {step}"),
        };
        let mut made = BTreeMap::new();
        let mut doubtful = Vec::new();
        for (step, (ask, told)) in self.told.iter().enumerate() {
            match told {
                Told::Made(generation) => {
                    assert!(done(step), "seed {seed}: {ask:?} was lost");
                    assert!(made.insert(*generation, *ask).is_none(), "seed {seed}");
                }
                Told::Refused => assert!(!done(step), "seed {seed}: {ask:?} was made"),
                Told::Doubtful if done(step) => doubtful.push(*ask),
                Told::Doubtful => {}
            }
        }
        // Of two doubtful changes that were made, the earlier one was made first.
        let last = fresh.snapshot().generation;
        let mut doubtful = doubtful.into_iter();
        for generation in first + 1..=last {
            made.entry(generation).or_insert_with(|| doubtful.next().expect("made twice"));
        }
        assert_eq!((doubtful.count(), made.len() as u64), (0, last - first), "seed {seed}");
        self.compare(&made, import);
    }

    /// The same changes one after another, without faults, make the same rows.
    fn compare(&self, made: &BTreeMap<u64, Ask>, import: Option<&Import>) {
        let plain = Cluster::new();
        if let Some(import) = import {
            import_into_cluster(&plain.place("first"), import, Replace::Never).unwrap();
        }
        let gateway = plain.gateway("g");
        for ask in made.values() {
            ask.carry_out(&gateway, Mode::Commit).unwrap();
        }
        gateway.follow().unwrap();
        let rows = |cluster: &Cluster| {
            let mut rows = cluster.rows();
            rows.retain(|key, _| !key.starts_with("rows/requests/"));
            rows
        };
        assert_eq!(rows(&self.cluster), rows(&plain), "seed {}", self.seed);
        let intent = self.cluster.key("intent");
        assert!(!self.cluster.dump().contains_key(&intent), "seed {}", self.seed);
    }
}

/// The seeds of a campaign, from the environment, or the usual number of them.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("WEIR_MODEL_FIRST").unwrap_or(0);
    first..first + number("WEIR_MODEL_SEEDS").unwrap_or(usual)
}

#[test]
fn gateways_agree_whatever_the_store_does() {
    for seed in seeds(30) {
        World::run(seed, 16, 80, None);
    }
}

#[test]
fn large_changes_are_whole_whatever_the_store_does() {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("alone");
    {
        let alone = Catalog::open(&directory).unwrap();
        alone.create_pool(&pool_of_many(base.path()), Mode::Commit).unwrap();
        for number in 0..130 {
            let name = format!("many{number}");
            alone.create_volume(&volume(&name, "many"), Mode::Commit).unwrap();
        }
    }
    let import = Import::of_directory(&directory).unwrap();
    let import = import.on_ceph(&ceph(), Path::new("/imported")).unwrap();
    for seed in seeds(6) {
        World::run(seed, 24, 40, Some(&import));
    }
}

fn pool_of_many(base: &Path) -> weir_catalog::NewPool {
    weir_catalog::NewPool { directory: Some(base.join("many")), ceph: None, ..pool("many") }
}
