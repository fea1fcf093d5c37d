//! Which load of a step lays out which file: loads that name the same file in the same directory
//! share it, and its ledger.

use crate::error::BenchError;
use crate::verify::{BLOCKS_MAX, Base, FileLedger, Ledger};
use crate::workload::{Layout, Location, Stability, Workload};
use std::collections::HashMap;
use std::sync::Arc;
use weir_core::rng::mix;

/// The provider of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// This load makes it and lays it out.
    Make,
    /// The file was there before.
    Existing,
    /// Another load of the step makes it, or another process.
    Find,
}

/// One file of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileSpec {
    pub name: String,
    /// Bytes it is laid out with, or has to hold already.
    pub size: u64,
    pub role: Role,
    /// The file stays when the step is over.
    pub keep: bool,
    /// The file's number in stamps, and the size of stamped blocks, if it is laid out in such.
    pub stamp: Option<(u64, u32)>,
}

/// The files of one load, by number.
pub(super) struct Files {
    pub specs: Vec<FileSpec>,
    pub ledger: Option<Arc<Ledger>>,
    /// The directory stays when the step is over.
    pub keep_directory: bool,
}

/// The demands of all loads together on one file.
#[derive(Default)]
struct Wanted {
    size: u64,
    keep: bool,
    /// The load that lays it out, by its place in the step.
    maker: Option<usize>,
    layout: Option<Layout>,
    /// The load that verifies it, and the size of its blocks.
    verified: Option<(String, u32)>,
    /// A load writes it so that the server may lose the data until a COMMIT.
    is_unstable: bool,
    /// A load that writes it without stamps.
    plain: Option<String>,
    /// This process works on it.
    used: bool,
}

type Key = (Location, String);

/// Checks that the loads can share their files.
///
/// # Errors
/// The errors of [`share`].
pub(super) fn check(loads: &[Workload]) -> Result<(), BenchError> {
    wanted(loads).map(drop)
}

/// Deals the files of `loads` out.
///
/// # Errors
/// [`BenchError::Workload`] if loads that share files can't be verified together, or there are too
/// many blocks to keep track of.
pub(super) fn share(loads: &[Workload]) -> Result<Vec<Files>, BenchError> {
    let wanted = wanted(loads)?;
    let ledgers = ledgers(&wanted);
    let deal = |(place, load): (usize, &Workload)| {
        let spec = |number| spec(&wanted, place, load, number);
        let own = numbers(load).filter_map(|number| ledgers.get(&key(load, number)).cloned());
        let ledger = || Arc::new(Ledger::new(own.collect(), load.block_bytes));
        Files {
            specs: numbers(load).map(spec).collect(),
            ledger: load.verifies().then(ledger),
            keep_directory: loads
                .iter()
                .any(|other| other.location() == load.location() && other.keep),
        }
    };
    Ok(loads.iter().enumerate().map(deal).collect())
}

fn numbers(load: &Workload) -> std::ops::Range<u32> {
    0..if load.needs_files() { load.files } else { 0 }
}

fn key(load: &Workload, number: u32) -> Key {
    (load.location(), load.file_name(number))
}

fn want(file: &mut Wanted, place: usize, load: &Workload, number: u32) -> Result<(), BenchError> {
    file.size = file.size.max(load.size_needed());
    file.keep |= load.keep;
    file.used |= load.uses(number);
    file.is_unstable |= load.writes() && load.stability == Stability::Unstable;
    if load.layout != Layout::Existing && file.maker.is_none() {
        (file.maker, file.layout) = (Some(place), Some(load.layout));
    }
    if load.verifies() {
        match &file.verified {
            Some((other, block)) if *block != load.block_bytes => {
                return Err(BenchError::Workload(format!(
                    "loads {:?} and {other:?} share files and verify them in blocks of {} and \
                     {block} bytes: use one size, or other files",
                    load.name, load.block_bytes
                )));
            }
            _ => file.verified = Some((load.name.clone(), load.block_bytes)),
        }
    } else if load.writes() {
        file.plain = Some(load.name.clone());
    }
    if let (Some((verified, _)), Some(plain)) = (&file.verified, &file.plain) {
        return Err(BenchError::Workload(format!(
            "load {verified:?} verifies files that load {plain:?} writes without: verify both, or \
             none, or use other files"
        )));
    }
    Ok(())
}

/// The demands on each file.
fn wanted(loads: &[Workload]) -> Result<HashMap<Key, Wanted>, BenchError> {
    let mut wanted: HashMap<Key, Wanted> = HashMap::new();
    for (place, load) in loads.iter().enumerate() {
        for number in numbers(load) {
            want(wanted.entry(key(load, number)).or_default(), place, load, number)?;
        }
    }
    let cells = wanted.values().fold(0_u64, |sum, file| sum.saturating_add(file.cells()));
    if cells > BLOCKS_MAX {
        return Err(BenchError::Workload(format!(
            "verification supports at most {BLOCKS_MAX} blocks, half as many where they are \
             written unstable, but these files have more: use fewer or smaller files, or larger \
             blocks"
        )));
    }
    Ok(wanted)
}

impl Wanted {
    /// Blocks that a ledger keeps.
    fn blocks(&self) -> u64 {
        match self.verified {
            Some((_, block)) if self.used => self.size / u64::from(block.max(1)),
            _ => 0,
        }
    }

    /// Numbers that a ledger keeps.
    fn cells(&self) -> u64 {
        self.blocks().saturating_mul(if self.is_unstable { 2 } else { 1 })
    }
}

fn ledgers(wanted: &HashMap<Key, Wanted>) -> HashMap<Key, Arc<FileLedger>> {
    let mut ledgers = HashMap::new();
    for (key, file) in wanted.iter().filter(|(_, file)| file.verified.is_some()) {
        let base = match file.layout {
            None | Some(Layout::Existing) => Base::Unknown,
            Some(Layout::Sparse) => Base::Hole,
            Some(Layout::Written { .. }) => Base::Stamped,
        };
        let ledger = FileLedger::new(key.1.clone(), file_id(key), base, file.blocks());
        let ledger = if file.is_unstable { ledger.unstable() } else { ledger };
        ledgers.insert(key.clone(), Arc::new(ledger));
    }
    ledgers
}

fn spec(wanted: &HashMap<Key, Wanted>, place: usize, load: &Workload, number: u32) -> FileSpec {
    let key = key(load, number);
    let file = wanted.get(&key);
    let maker = file.and_then(|file| file.maker);
    let role = match maker {
        Some(maker) if maker == place && load.lays_out(number) => Role::Make,
        Some(_) => Role::Find,
        None => Role::Existing,
    };
    // A load that only writes may begin with a file that is too short.
    let needed = if load.reads() { load.size_needed() } else { 0 };
    let greatest = file.map_or(0, |file| file.size);
    let stamped = file.and_then(|file| file.verified.as_ref()).map(|(_, block)| *block);
    FileSpec {
        size: if role == Role::Make { greatest } else { needed },
        role,
        keep: file.is_some_and(|file| file.keep),
        stamp: stamped.map(|block| (file_id(&key), block)),
        name: key.1,
    }
}

/// A file's number in stamps: the same in every run and every process.
fn file_id((Location { target, directory }, name): &Key) -> u64 {
    let of_target = target.bytes().chain(if target.is_empty() { None } else { Some(b'/') });
    let bytes = of_target.chain(directory.bytes()).chain([b'/']).chain(name.bytes());
    bytes.fold(0, |sum, byte| mix(sum ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Operation, Part, Pattern};

    fn load(name: &str, read_percent: u8) -> Workload {
        Workload {
            name: name.to_owned(),
            operation: Operation::Data { pattern: Pattern::Random, read_percent },
            file_bytes: 1 << 20,
            layout: Layout::Sparse,
            ..Workload::default()
        }
    }

    fn roles(files: &Files) -> Vec<(Role, u64)> {
        files.specs.iter().map(|spec| (spec.role, spec.size)).collect()
    }

    #[test]
    fn a_shared_file_is_made_once_with_the_greatest_size() {
        let small = Workload { files: 2, ..load("small", 100) };
        let large = Workload { file_bytes: 4 << 20, keep: true, ..load("large", 0) };
        let other = Workload { directory: "other".into(), ..load("other", 100) };
        let elsewhere = Workload { target: "b".into(), ..load("elsewhere", 100) };
        let files = share(&[small, large, other, elsewhere]).unwrap();
        assert_eq!(roles(&files[0]), [(Role::Make, 4 << 20), (Role::Make, 1 << 20)]);
        assert_eq!(roles(&files[1]), [(Role::Find, 0)]);
        assert_eq!(roles(&files[2]), [(Role::Make, 1 << 20)]);
        assert!(files[0].specs[0].keep && !files[0].specs[1].keep && files[0].keep_directory);
        assert!(!files[2].keep_directory && !files[3].keep_directory);
        assert_eq!(roles(&files[3]), [(Role::Make, 1 << 20)], "another target, another file");
    }

    #[test]
    fn what_is_there_already_is_made_by_nobody_unless_another_load_makes_it() {
        let existing = Workload { layout: Layout::Existing, ..load("reads", 100) };
        let writes = Workload { layout: Layout::Existing, ..load("writes", 0) };
        let files = share(&[existing.clone(), writes]).unwrap();
        assert_eq!(roles(&files[0]), [(Role::Existing, 1 << 20)]);
        assert_eq!(roles(&files[1]), [(Role::Existing, 0)]);
        let files = share(&[existing, load("makes", 0)]).unwrap();
        assert_eq!(roles(&files[0]), [(Role::Find, 1 << 20)]);
        assert_eq!(roles(&files[1]), [(Role::Make, 1 << 20)]);
    }

    #[test]
    fn loads_that_share_files_share_the_ledger() {
        let writes = Workload { verify: Some(crate::VerifyScope::All), ..load("writes", 0) };
        let reads = Workload { verify_reads: true, ..load("reads", 100) };
        let files = share(&[writes.clone(), reads.clone()]).unwrap();
        let [one, other] = [0, 1].map(|place: usize| files[place].ledger.clone().unwrap());
        assert_eq!(one.begin_this(0, 3), Some(1));
        assert_eq!(other.begin_this(0, 3), None);
        let larger = Workload { block_bytes: 8192, ..reads.clone() };
        let error = share(&[writes, larger]).err().unwrap().to_string();
        assert!(error.contains("8192 and 4096"), "{error}");
        let error = share(&[load("plain", 50), reads]).err().unwrap().to_string();
        assert!(error.contains("\"plain\" writes without"), "{error}");
    }

    #[test]
    fn each_part_makes_its_files_and_finds_the_others() {
        let part = |index| {
            let part = Some(Part { index, of: 2 });
            share(&[Workload { files: 3, jobs: 3, part, ..load("run", 100) }]).unwrap()
        };
        let made = |files: Vec<Files>| {
            files[0].specs.iter().map(|spec| spec.role == Role::Make).collect::<Vec<_>>()
        };
        assert_eq!(made(part(0)), [true, false, true]);
        assert_eq!(made(part(1)), [false, true, false]);
    }
}
