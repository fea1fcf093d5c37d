//! One client of a volume: random operations below a directory of its own, and a model that says
//! to the unit what its files hold.

use crate::common::{Object, ROOT, Random, block_on};
use std::collections::{BTreeMap, BTreeSet};
use weir_core::store::{CreateHow, MakeKind, Stability};
use weir_core::{FsError, FsResult, Name, SetAttr, Shared, Store};
use weir_store::LocalStore;

const UNIT: u64 = 4096;
const DIRECTORIES: usize = 4;
const NAMES: usize = 24;
const LENGTH_MAX: usize = 48 << 10;

/// A directory and a name in it, by their numbers.
type Place = (usize, usize);

/// The expected content of a file.
#[derive(Clone, Debug)]
struct Model {
    size: u64,
    /// The blocks of the file system that hold data, and how many bytes one has.
    blocks: BTreeSet<u64>,
    block_bytes: u64,
    names: usize,
}

impl Model {
    fn write(&mut self, offset: u64, length: u64) {
        if length > 0 {
            let end = (offset + length).div_ceil(self.block_bytes);
            self.blocks.extend(offset / self.block_bytes..end);
            self.size = self.size.max(offset + length);
        }
    }

    fn resize(&mut self, size: u64) {
        self.blocks.split_off(&size.div_ceil(self.block_bytes));
        self.size = size;
    }

    fn zero(&mut self, from: u64, to: u64) {
        let first = from.div_ceil(self.block_bytes);
        let end = if to >= self.size { u64::MAX } else { to / self.block_bytes };
        self.blocks.retain(|block| !(first..end).contains(block));
    }

    /// Units of which at least one block holds data.
    fn units(&self) -> u64 {
        let (mut units, mut last) = (0, None);
        for block in &self.blocks {
            let unit = Some(block * self.block_bytes / UNIT);
            units += u64::from(unit != last);
            last = unit;
        }
        units
    }
}

/// A client.
pub(super) struct Player {
    store: LocalStore,
    random: Random,
    /// Names of its directories, which change: they are renamed. The first is its own root.
    directories: Vec<String>,
    renames: usize,
    names: BTreeMap<Place, u64>,
    files: BTreeMap<u64, Model>,
    next_file: u64,
    used_units: u64,
    block_bytes: u64,
    pub(super) refused: u64,
}

impl Player {
    /// A client whose files are below the directory `name`, which must not exist, on a file system
    /// with blocks of so many bytes.
    pub(super) fn new(store: &LocalStore, name: &str, seed: u64, block_bytes: u64) -> Self {
        let mut player = Self {
            store: store.clone(),
            random: Random(seed),
            directories: vec![name.to_owned()],
            renames: 0,
            names: BTreeMap::new(),
            files: BTreeMap::new(),
            next_file: 0,
            used_units: 0,
            block_bytes,
            refused: 0,
        };
        player.make_directory(&store.root(), name);
        let own = player.directory(0).unwrap();
        for number in 1..DIRECTORIES {
            player.make_directory(&own, &format!("d{number}"));
            player.directories.push(format!("d{number}"));
        }
        player
    }

    /// Goes on with another life of the volume.
    pub(super) fn reconnect(&mut self, store: &LocalStore) {
        self.store = store.clone();
    }

    /// The expected bytes of its files.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_units * UNIT
    }

    /// The name of its own root.
    pub(super) fn name(&self) -> &str {
        &self.directories[0]
    }

    /// Carries out one operation, on the volume and on the model. What the volume refuses leaves
    /// the model as it is.
    pub(super) fn step(&mut self) {
        let result = match self.random.below(100) {
            0..40 => self.write(),
            40..44 => self.resize(),
            44..46 => self.zero(),
            46..60 => self.create(),
            60..68 => self.remove(),
            68..74 => self.rename(),
            74..78 => self.link(),
            78..80 => self.rename_directory(),
            // Rarely: for a while after a sync all writes take the way of the pool.
            80 if self.random.below(50) == 0 => self.commit(),
            _ => self.read(),
        };
        match result {
            Ok(()) | Err(FsError::NotFound | FsError::Exists) => {}
            Err(FsError::QuotaExceeded | FsError::NoSpace) => self.refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }

    fn make_directory(&self, parent: &Object, name: &str) {
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        let name = Name::new(name.as_bytes()).unwrap();
        block_on(self.store.make(parent, name, &MakeKind::Directory, &set, &ROOT)).unwrap();
    }

    fn directory(&self, number: usize) -> FsResult<Object> {
        let lookup = |parent: &Object, name: &str| {
            let found = block_on(self.store.lookup(parent, Name::new(name.as_bytes())?))?;
            Ok(found.0)
        };
        let own = lookup(&self.store.root(), &self.directories[0])?;
        if number == 0 { Ok(own) } else { lookup(&own, &self.directories[number]) }
    }

    fn place(&mut self) -> Place {
        (self.random.below(DIRECTORIES), self.random.below(NAMES))
    }

    /// A name that exists, mostly, and its file.
    fn existing(&mut self) -> FsResult<(Place, u64)> {
        let place = self.place();
        let found = self.names.range(place..).next().or_else(|| self.names.iter().next());
        found.map(|(place, file)| (*place, *file)).ok_or(FsError::NotFound)
    }

    fn open(&self, (directory, number): Place) -> FsResult<Object> {
        let name = format!("f{number}");
        let name = Name::new(name.as_bytes())?;
        Ok(block_on(self.store.lookup(&self.directory(directory)?, name))?.0)
    }

    /// Changes the model of a file and with it the sum.
    fn change(&mut self, file: u64, change: impl FnOnce(&mut Model)) {
        let model = self.files.get_mut(&file).unwrap();
        let before = model.units();
        change(model);
        let units = model.units();
        self.used_units = self.used_units + units - before;
        if model.names == 0 {
            self.used_units -= units;
            self.files.remove(&file);
        }
    }

    fn offset(&mut self, size: u64) -> u64 {
        let near = |random: &mut Random, at: u64| at.saturating_add(random.word() % 3) - at.min(1);
        let units = size.div_ceil(UNIT) + 1;
        match self.random.below(10) {
            0..3 => size,
            3..6 => self.random.word() % (size + 1),
            6 => {
                let edge = self.random.word() % (units * 4) * (UNIT / 4);
                near(&mut self.random, edge)
            }
            7 => size + self.random.word() % (16 * UNIT),
            8 => self.random.word() % (1 << 20),
            _ if self.random.below(20) == 0 => self.random.word() % (1 << 38),
            _ => 0,
        }
    }

    fn write(&mut self) -> FsResult<()> {
        let (place, file) = self.existing()?;
        let offset = self.offset(self.files[&file].size);
        let length = match self.random.below(4) {
            0 => self.random.below(100),
            1 => 4096,
            2 => self.random.below(9000),
            _ => self.random.below(LENGTH_MAX),
        };
        let stability = match self.random.below(4000) {
            0 => Stability::FileSync,
            _ => Stability::Unstable,
        };
        let data = Shared::from(vec![self.random.word().to_le_bytes()[0] | 1; length]);
        let done = block_on(self.store.write(&self.open(place)?, offset, data, stability))?;
        self.change(file, |model| model.write(offset, u64::from(done.count)));
        Ok(())
    }

    fn resize(&mut self) -> FsResult<()> {
        let (place, file) = self.existing()?;
        let size = self.offset(self.files[&file].size);
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        block_on(self.store.set_attr(&self.open(place)?, &set, None, &ROOT))?;
        self.change(file, |model| model.resize(size));
        Ok(())
    }

    fn zero(&mut self) -> FsResult<()> {
        let (place, file) = self.existing()?;
        let from = self.offset(self.files[&file].size);
        let to = from + self.random.word() % (8 * UNIT);
        block_on(self.store.zero_range(&self.open(place)?, from, to))?;
        self.change(file, |model| model.zero(from, to));
        Ok(())
    }

    fn create(&mut self) -> FsResult<()> {
        let place = self.place();
        let size = [None, None, None, Some(0), Some(10_000)][self.random.below(5)];
        let set = SetAttr { mode: Some(0o644), size, ..SetAttr::default() };
        let how = CreateHow::Unchecked(set);
        let name = format!("f{}", place.1);
        let name = Name::new(name.as_bytes())?;
        block_on(self.store.create(&self.directory(place.0)?, name, &how, &ROOT))?;
        match self.names.get(&place).copied() {
            Some(file) if size == Some(0) => self.change(file, |model| model.resize(0)),
            Some(_) => {}
            None => {
                let file = self.next_file;
                self.next_file += 1;
                self.names.insert(place, file);
                let size = size.unwrap_or(0);
                let block_bytes = self.block_bytes;
                let blocks = BTreeSet::new();
                self.files.insert(file, Model { size, blocks, block_bytes, names: 1 });
            }
        }
        Ok(())
    }

    fn remove(&mut self) -> FsResult<()> {
        let (place, file) = self.existing()?;
        let name = format!("f{}", place.1);
        let directory = self.directory(place.0)?;
        block_on(self.store.remove(&directory, Name::new(name.as_bytes())?, &ROOT))?;
        self.names.remove(&place);
        self.change(file, |model| model.names -= 1);
        Ok(())
    }

    fn rename(&mut self) -> FsResult<()> {
        let ((from, file), to) = (self.existing()?, self.place());
        let (old, new) = (format!("f{}", from.1), format!("f{}", to.1));
        block_on(self.store.rename(
            &self.directory(from.0)?,
            Name::new(old.as_bytes())?,
            &self.directory(to.0)?,
            Name::new(new.as_bytes())?,
            &ROOT,
        ))?;
        let over = self.names.get(&to).copied();
        // Two names of one file: both stay.
        if over == Some(file) {
            return Ok(());
        }
        self.names.remove(&from);
        self.names.insert(to, file);
        if let Some(over) = over {
            self.change(over, |model| model.names -= 1);
        }
        Ok(())
    }

    fn link(&mut self) -> FsResult<()> {
        let ((from, file), to) = (self.existing()?, self.place());
        let name = format!("f{}", to.1);
        let (object, directory) = (self.open(from)?, self.directory(to.0)?);
        block_on(self.store.link(&object, &directory, Name::new(name.as_bytes())?, &ROOT))?;
        self.names.insert(to, file);
        self.change(file, |model| model.names += 1);
        Ok(())
    }

    fn rename_directory(&mut self) -> FsResult<()> {
        let number = self.random.below(DIRECTORIES);
        self.renames += 1;
        let old = self.directories[number].clone();
        let base = old.split('.').next().unwrap_or_default();
        let new = format!("{base}.{}", self.renames);
        let parent = if number == 0 { self.store.root() } else { self.directory(0)? };
        let (from, to) = (Name::new(old.as_bytes())?, Name::new(new.as_bytes())?);
        block_on(self.store.rename(&parent, from, &parent, to, &ROOT))?;
        self.directories[number] = new;
        Ok(())
    }

    fn commit(&mut self) -> FsResult<()> {
        let (place, _) = self.existing()?;
        block_on(self.store.commit(&self.open(place)?)).map(drop)
    }

    /// Reading through a hole must not make it data.
    fn read(&mut self) -> FsResult<()> {
        let (place, file) = self.existing()?;
        let offset = self.random.word() % (self.files[&file].size + 1);
        block_on(self.store.read(&self.open(place)?, offset, 128 << 10, Vec::new())).map(drop)
    }
}
