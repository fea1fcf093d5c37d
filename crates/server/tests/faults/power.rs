//! The power is cut under the whole data plane, syncs fail now and then before, and clients go on
//! by the rules they have: what was answered as stable is there, and what was not is sent again as
//! the write verifier tells them.
//!
//! Everything follows from the seed. `WEIR_SEED=n` plays one game alone.

use crate::world::{Client, Failure, World, at};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_control::ServerConfig;
use weir_control::config::NamespaceDurability;
use weir_core::rng::step;
use weir_nfs::v3::wire::{RenameArgs, StableHow, Status};
use weir_store::testing::{Fault, Kind, PowerCut, Rule, When};

const GAMES: u64 = 40;
const LIVES: u64 = 4;
/// Most syncs before the power goes.
const SYNCS: usize = 40;
const NAMES: usize = 4;
/// A write fills whole pages with one byte.
const PAGE: usize = 4096;
const PAGES: usize = 6;
const BYTES: u32 = 6 * 4096;

/// A sequence of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(step(&mut self.0) >> 33).unwrap() % bound
    }
}

/// A client's knowledge of a page of a file.
#[derive(Clone, Default)]
struct Page {
    /// The last content that was answered as stable.
    stable: u8,
    /// Later contents that the page may have too, oldest first, with the verifier of those that
    /// were answered.
    uncommitted: Vec<(u8, Option<[u8; 8]>)>,
}

#[derive(Clone)]
struct Known {
    handle: Vec<u8>,
    pages: Vec<Page>,
}

impl Known {
    fn new(handle: Vec<u8>) -> Self {
        Self { handle, pages: vec![Page::default(); PAGES] }
    }
}

/// A client, and what it was promised.
struct Player {
    random: Random,
    power: Arc<PowerCut>,
    files: BTreeMap<String, Known>,
    /// Names of which it is not known what they lead to.
    doubt: Vec<String>,
    fill: u8,
}

impl Player {
    fn name(&mut self) -> String {
        format!("file-{}", self.random.below(NAMES))
    }

    fn step(&mut self, client: &mut Client, root: &[u8]) {
        let name = self.name();
        match self.random.below(10) {
            0..4 => self.write(client, &name),
            4..7 => self.commit(client, &name),
            7 => self.remove(client, root, &name),
            8 => self.rename(client, root, &name),
            _ => self.create(client, root, &name),
        }
    }

    /// The promise of a reply: none if the power went before it came.
    fn promised<T>(&self, result: Result<T, Failure>) -> Option<T> {
        result.ok().filter(|_| !self.power.is_cut())
    }

    fn create(&mut self, client: &mut Client, root: &[u8], name: &str) {
        if self.files.contains_key(name) {
            return;
        }
        let made = client.create(root, name);
        match self.promised(made) {
            Some(handle) => drop(self.files.insert(name.to_owned(), Known::new(handle))),
            None => self.clear(client, root, &[name]),
        }
    }

    fn write(&mut self, client: &mut Client, name: &str) {
        let (first, count) = (self.random.below(PAGES), 1 + self.random.below(2));
        let stable = [StableHow::Unstable, StableHow::DataSync, StableHow::FileSync];
        let stable = stable[self.random.below(6).saturating_sub(3)];
        self.fill = self.fill % 250 + 1;
        let fill = self.fill;
        let Some(known) = self.files.get(name) else { return };
        let pages = first..(first + count).min(PAGES);
        let data = vec![fill; pages.len() * PAGE];
        let done = client.write(&known.handle, (first * PAGE) as u64, &data, stable);
        let done = self.promised(done);
        let Some(known) = self.files.get_mut(name) else { return };
        for page in &mut known.pages[pages] {
            match &done {
                Some(done) if done.committed != StableHow::Unstable => {
                    *page = Page { stable: fill, ..Page::default() };
                }
                done => page.uncommitted.push((fill, done.map(|done| done.verifier))),
            }
        }
    }

    fn commit(&mut self, client: &mut Client, name: &str) {
        let Some(known) = self.files.get(name) else { return };
        let verifier = client.commit(&known.handle);
        if let (Some(verifier), Some(known)) = (self.promised(verifier), self.files.get_mut(name)) {
            committed(known, verifier);
        }
    }

    fn remove(&mut self, client: &mut Client, root: &[u8], name: &str) {
        if self.files.remove(name).is_some() {
            let removed = client.remove(root, name);
            if self.promised(removed).is_none() {
                self.clear(client, root, &[name]);
            }
        }
    }

    fn rename(&mut self, client: &mut Client, root: &[u8], from: &str) {
        let to = self.name();
        if from == to {
            return;
        }
        let Some(known) = self.files.remove(from) else { return };
        let args = RenameArgs { from: at(root, from), to: at(root, &to) };
        let status = client.ask(&args, |result| result.status());
        let renamed = if status == Status::OK { Ok(()) } else { Err((status, None)) };
        match self.promised(renamed) {
            Some(()) => drop(self.files.insert(to, known)),
            None => self.clear(client, root, &[from, &to]),
        }
    }

    /// Begins anew with names of which it is not known what they lead to. Whether that is stable is
    /// not known either, if syncs fail.
    fn clear(&mut self, client: &mut Client, root: &[u8], names: &[&str]) {
        for name in names {
            self.files.remove(*name);
            let gone = |error: Failure| error.0 == Status::NOENT;
            assert!((0..3).any(|_| client.remove(root, name).is_err_and(gone)), "{name}");
            self.doubt.push((*name).to_owned());
        }
    }

    /// Looks whether everything that was promised is there.
    fn audit(&mut self, client: &mut Client, root: &[u8]) {
        for name in (0..NAMES).map(|number| format!("file-{number}")) {
            if self.doubt.contains(&name) {
                continue;
            }
            let found = client.lookup(root, &name);
            let Some(known) = self.files.get_mut(&name) else {
                assert_eq!(found, Err(Status::NOENT), "{name} was removed");
                continue;
            };
            assert_eq!(found.as_ref(), Ok(&known.handle), "{name}");
            let (data, _) = client.read(&known.handle, 0, BYTES).unwrap();
            for (number, page) in known.pages.iter_mut().enumerate() {
                let byte = |at: usize| data.get(at).copied().unwrap_or(0);
                let is = byte(number * PAGE);
                let may = [page.stable].into_iter().chain(page.uncommitted.iter().map(|(f, _)| *f));
                assert!(
                    may.clone().any(|fill| fill == is),
                    "{name}, page {number}: {is}, and not one of {:?}",
                    may.collect::<Vec<_>>()
                );
                assert!((number * PAGE..(number + 1) * PAGE).all(|at| byte(at) == is), "torn");
            }
        }
    }

    /// Sends again what was not committed, until it is.
    fn send_again(&mut self, client: &mut Client) {
        for known in self.files.values_mut() {
            while known.pages.iter().any(|page| !page.uncommitted.is_empty()) {
                for (number, page) in known.pages.iter_mut().enumerate() {
                    let Some((fill, _)) = page.uncommitted.last().copied() else { continue };
                    let offset = (number * PAGE) as u64;
                    let unstable = StableHow::Unstable;
                    let done = client.write(&known.handle, offset, &[fill; PAGE], unstable);
                    page.uncommitted.push((fill, Some(done.unwrap().verifier)));
                }
                if let Ok(verifier) = client.commit(&known.handle) {
                    committed(known, verifier);
                }
            }
        }
    }
}

/// A COMMIT was answered: pages whose last write has this verifier are stable.
fn committed(known: &mut Known, verifier: [u8; 8]) {
    for page in &mut known.pages {
        if let Some((fill, Some(of))) = page.uncommitted.last()
            && *of == verifier
        {
            *page = Page { stable: *fill, ..Page::default() };
        }
    }
}

/// The world with a power that can be cut. Data that a clean stop leaves counts as stable.
fn with_power(world: World) -> (World, Arc<PowerCut>) {
    let (root, power) = (world.root("one"), OnceCell::new());
    let watch = || Arc::new(PowerCut::new(root.parent().unwrap()).unwrap());
    let world = world.restart(|| Arc::clone(power.get_or_init(watch)));
    (world, power.into_inner().unwrap())
}

/// The world after a power cut.
fn restored(world: World, power: &Arc<PowerCut>) -> World {
    world.restart(|| {
        power.restore().unwrap();
        Arc::clone(power)
    })
}

fn play(seed: u64) {
    eprintln!("WEIR_SEED={seed}");
    let config = ServerConfig { workers: 1, ..ServerConfig::default() };
    let (mut world, power) = with_power(World::start_in_memory(config));
    let (random, files) = (Random(seed), BTreeMap::new());
    let mut player =
        Player { random, power: Arc::clone(&power), files, doubt: Vec::new(), fill: 0 };
    for life in 0..LIVES {
        let mut client = world.connect();
        let root = client.mount("/one");
        player.audit(&mut client, &root);
        for name in std::mem::take(&mut player.doubt) {
            player.clear(&mut client, &root, &[&name]);
        }
        player.doubt.clear();
        player.send_again(&mut client);
        let rule = Rule::new(&[Kind::Sync], world.root("one"), Fault::Fail(Errno::IO));
        let rule = world.kernel.add(rule.when(When::OneIn(5, seed * LIVES + life)));
        power.cut_after(player.random.below(SYNCS) as u64);
        while !power.is_cut() {
            player.step(&mut client, &root);
        }
        world.kernel.lift(rule);
        drop(client);
        world = restored(world, &power);
    }
    let mut client = world.connect();
    let root = client.mount("/one");
    player.audit(&mut client, &root);
    drop(client);
    world.stop();
}

#[test]
fn after_power_cuts_and_failed_syncs_everything_promised_is_there() {
    if let Some(seed) = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return play(seed);
    }
    (0..GAMES).for_each(play);
}

#[test]
fn names_that_were_not_promised_may_go_and_the_volume_is_whole() {
    let namespace_durability = NamespaceDurability::Process;
    let world =
        World::start_in_memory(ServerConfig { namespace_durability, ..ServerConfig::default() });
    let mut client = world.connect();
    let root = client.mount("/one");
    client.create(&root, "kept").unwrap();
    drop(client);
    let (world, power) = with_power(world);
    let mut client = world.connect();
    let kept = client.lookup(&root, "kept").unwrap();
    let new = client.create(&root, "new").unwrap();
    for file in [&kept, &new] {
        client.write(file, 0, &[1; 5000], StableHow::FileSync).unwrap();
        client.write(file, 5000, &[2; 5000], StableHow::Unstable).unwrap();
    }
    let before = client.write(&kept, 5000, &[3; 5000], StableHow::Unstable).unwrap().verifier;
    power.cut();
    drop(client);
    let world = restored(world, &power);
    let mut client = world.connect();
    assert_eq!(client.lookup(&root, "new"), Err(Status::NOENT));
    assert_eq!(client.commit(&new).unwrap_err().0, Status::STALE);
    assert_ne!(client.commit(&kept).unwrap(), before, "what is lost is to be sent again");
    assert_eq!(client.read(&kept, 0, 20_000).unwrap(), (vec![1; 5000], true));
    // Counted anew, and right.
    while !world.live("one").used_exact {
        std::thread::yield_now();
    }
    assert_eq!(client.used(&root), 8192);
    drop(client);
    world.stop();
}
