//! Less data.

use super::load::largest;
use super::{Changes, Scale};
use crate::scenario::Step;
use std::collections::{BTreeMap, BTreeSet};
use weir_core::units::Bytes;
use weir_load::workload::{Length, Location, MixOp, Operation, Pattern, Starts, Workload};

/// Files become no smaller than this, or sixteen requests, before there are fewer of them.
const FILE_BYTES_MIN: u64 = 4 << 20;
const FILE_REQUESTS_MIN: u64 = 16;
/// A second's worth of sequential requests.
const SEQUENTIAL_BYTES_MIN: u64 = 256 << 20;
/// Blocks that random order needs.
const RANDOM_BLOCKS_MIN: u64 = 1000;
/// Small files that metadata needs, and what counts as small.
const METADATA_FILES_MIN: u64 = 1000;
const SMALL_FILE_BYTES: u64 = 1 << 20;
/// Operations that a run by count keeps at least.
const OPERATIONS_MIN: u64 = 1000;
/// A proportion of one, in the fixed-point numbers used here.
const ONE: u64 = 1 << 40;

/// Files of one directory of one target that have the same size: they are scaled alike, whichever
/// loads and steps use them.
type Key = (Location, u64);

/// The use that the loads together make of a set of files, and its fate.
#[derive(Clone, Debug, Default)]
struct Set {
    /// Files with the usual names.
    plain: u32,
    names: BTreeSet<String>,
    /// The size of files is a multiple of this.
    granule: u64,
    /// No file shrinks below this.
    file_min: u64,
    /// Bytes below which the test says little.
    meaningful: u64,
    /// Bytes below which the load is refused.
    needed: u64,
    /// Files and size after scaling.
    scaled: (u64, u64),
}

impl Set {
    fn files(&self) -> u64 {
        u64::from(self.plain) + self.names.len() as u64
    }
}

/// Scales all data of `steps`.
pub(super) fn less(steps: &mut [Step], scale: &Scale, changes: &mut Changes) {
    let mut sets = sets(steps);
    let total = bytes(steps);
    let factor = scale.factor.filter(|factor| *factor > 0.0 && *factor <= 1.0);
    let factor = factor.map_or(ONE, fixed);
    let cap = (scale.max_data_bytes.unwrap_or(u64::MAX).min(total), total);
    if factor == ONE && cap.0 == cap.1 {
        return;
    }
    scale.too_little_room.iter().for_each(|sentence| changes.say(sentence.clone()));
    let several = sets.len() > 1;
    let caps = caps(steps, &sets, cap);
    for (key, set) in &mut sets {
        let whole = key.1.saturating_mul(set.files());
        let own = caps.kept.get(key).map(|kept| (*kept, whole));
        set.scaled = fit(set, key.1, factor, own.unwrap_or(caps.others));
        say(key, set, several, changes);
    }
    for load in steps.iter_mut().flat_map(|step| &mut step.loads) {
        if let Some(set) = load.needs_files().then(|| sets.get(&key(load))).flatten() {
            apply(load, set, changes);
        } else if let Length::Operations(count) = &mut load.length {
            *count = fewer(*count, factor.min(ratio(cap.0, cap.1)), changes);
        }
    }
}

/// The bound's part for each set of files.
struct Caps {
    /// Bytes of each set that a bound in proportion would make too small to say anything, and that
    /// keeps what it needs: the others have room for it.
    kept: BTreeMap<Key, u64>,
    /// The part that all others keep, as a fraction.
    others: (u64, u64),
}

/// Divides a bound among the sets: in proportion, but a small set beside large ones keeps what it
/// needs to say something, if what all need is within the bound.
fn caps(steps: &[Step], sets: &BTreeMap<Key, Set>, cap: (u64, u64)) -> Caps {
    let whole = |key: &Key, set: &Set| key.1.saturating_mul(set.files());
    let (mut kept, mut others) = (BTreeMap::<Key, u64>::new(), cap);
    if sets.values().map(|set| set.meaningful).fold(0, u64::saturating_add) > cap.0 {
        return Caps { kept, others };
    }
    // Each turn keeps one more, so that this ends.
    while let Some((key, set)) = sets.iter().find(|(key, set)| {
        !kept.contains_key(*key) && part(whole(key, set), others.0, others.1) < set.meaningful
    }) {
        kept.insert(key.clone(), set.meaningful);
        let left = cap.0 - kept.values().sum::<u64>();
        let rest: Vec<Step> = steps.iter().map(|step| without(step, &kept)).collect();
        let total = bytes(&rest);
        // A part of nothing: no set is left.
        let fraction = (left.min(total), total.max(1));
        if ratio(fraction.0, fraction.1) < ratio(others.0, others.1) {
            others = fraction;
        }
    }
    Caps { kept, others }
}

/// `step` without the loads on these sets.
fn without(step: &Step, kept: &BTreeMap<Key, u64>) -> Step {
    let mut rest = step.clone();
    rest.loads.retain(|load| !kept.contains_key(&key(load)));
    rest
}

/// Bytes of files that are there at the same time: those of the whole scenario if steps leave their
/// files to others, otherwise those of the largest step.
pub(super) fn bytes(steps: &[Step]) -> u64 {
    let of = |steps: &[Step]| -> u64 {
        let all = sets(steps);
        all.iter()
            .map(|((_, size), set)| size.saturating_mul(set.files()))
            .fold(0, u64::saturating_add)
    };
    if steps.iter().any(|step| step.shares_files) {
        return of(steps);
    }
    steps.iter().map(|step| of(std::slice::from_ref(step))).max().unwrap_or(0)
}

fn key(load: &Workload) -> Key {
    (load.location(), load.file_bytes)
}

/// The sets of files of `steps`.
fn sets(steps: &[Step]) -> BTreeMap<Key, Set> {
    let mut sets: BTreeMap<Key, Set> = BTreeMap::new();
    for load in steps.iter().flat_map(|step| &step.loads).filter(|load| load.needs_files()) {
        let set = sets.entry(key(load)).or_default();
        if load.names.is_empty() {
            set.plain = set.plain.max(load.files);
        } else {
            set.names.extend(load.names.iter().cloned());
        }
        set.granule = common_multiple(set.granule.max(1), load);
    }
    for load in steps.iter().flat_map(|step| &step.loads).filter(|load| load.needs_files()) {
        if let Some(set) = sets.get_mut(&key(load)) {
            let files = set.files();
            let whole = load.file_bytes.saturating_mul(files);
            // The demand of one load on its files, as a part of all files of the set.
            let of_all = |bytes: u64| {
                part(bytes, files, u64::from(load.files.max(1))).saturating_add(1).min(whole)
            };
            let least = FILE_BYTES_MIN.max(FILE_REQUESTS_MIN.saturating_mul(reach(load)));
            set.file_min = set.file_min.max(least.min(load.file_bytes));
            set.meaningful = set.meaningful.max(meaningful(load).min(whole));
            set.needed = set.needed.max(of_all(needed(load)));
        }
    }
    sets
}

/// The least size of a file: the largest request, and a place to put it; the bytes left out behind
/// it.
fn reach(load: &Workload) -> u64 {
    let skipped = load.skip_bytes.unsigned_abs();
    largest(load).max(u64::from(load.align_bytes.unwrap_or(1))).saturating_add(skipped)
}

/// The least common multiple of request sizes and alignment, or the largest where that becomes
/// large.
fn common_multiple(so_far: u64, load: &Workload) -> u64 {
    const LARGE: u64 = 64 << 20;
    let sizes = load.read_sizes.iter().chain(&load.write_sizes).map(|share| share.bytes);
    let all = sizes.chain([load.block_bytes, load.align_bytes.unwrap_or(1)]);
    all.filter(|size| *size > 0).map(u64::from).fold(so_far, |so_far, size| {
        let multiple = so_far / divisor(so_far, size) * size;
        if multiple <= LARGE { multiple } else { so_far.max(size) }
    })
}

const fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Bytes below which a load says little.
fn meaningful(load: &Workload) -> u64 {
    let random = RANDOM_BLOCKS_MIN.saturating_mul(largest(load));
    let in_order = |op| matches!(op, MixOp::ReadSequential | MixOp::WriteSequential);
    match load.operation {
        Operation::Data { pattern: Pattern::Sequential, .. } => SEQUENTIAL_BYTES_MIN,
        Operation::Mix if load.mix.iter().all(|share| in_order(share.op)) => SEQUENTIAL_BYTES_MIN,
        Operation::Data { .. } => random,
        _ if load.file_bytes <= SMALL_FILE_BYTES => METADATA_FILES_MIN * load.file_bytes,
        _ => random,
    }
}

/// Bytes below which a load is refused: with verification two blocks for each request in flight in
/// the part of the files that every job visits, and as much again, since that part is rounded.
fn needed(load: &Workload) -> u64 {
    let block = u64::from(load.block_bytes);
    if !load.verifies() {
        return block;
    }
    let blocks = 4 * u64::from(load.jobs) * u64::from(load.depth);
    part(block.saturating_mul(blocks), load.file_bytes, load.least_room())
}

/// Bytes of a file below which no job's part of it may shrink: room for the largest request, and
/// with verification for each file's share of two blocks for each request in flight.
fn room_needed(load: &Workload) -> u64 {
    if !load.verifies() {
        return reach(load);
    }
    let blocks = 2 * u64::from(load.jobs) * u64::from(load.depth);
    let share = blocks.div_ceil(u64::from(load.files.max(1)));
    share.saturating_mul(u64::from(load.block_bytes)).max(reach(load))
}

/// Files and size that keep the proportion `factor`, but no less than is meaningful, unless `cap`
/// says so.
fn fit(set: &Set, size: u64, factor: u64, cap: (u64, u64)) -> (u64, u64) {
    let files = set.files();
    let total = size.saturating_mul(files);
    let wanted = part(total, factor, ONE).max(set.meaningful);
    let most = part(total, cap.0, cap.1);
    let target = wanted.min(most).max(set.needed).min(total);
    // Files are of whole granules.
    let least = set.file_min.max(1).next_multiple_of(set.granule.max(1)).min(size);
    let fits = target / files.max(1) >= least;
    let (kept, each) = if fits || least == 0 {
        (files, target / files.max(1))
    } else {
        (target.div_ceil(least).clamp(1, files.max(1)), least)
    };
    let each = rounded(each, set, size, kept);
    // Rounding alone is no reason to say that it is too little.
    let granule = set.granule.max(1);
    let enough = set.meaningful.div_ceil(kept.max(1)).div_ceil(granule) * granule;
    let lacks = each < enough && target >= set.meaningful && enough <= size;
    if lacks && enough.saturating_mul(kept) <= most { (kept, enough) } else { (kept, each) }
}

/// A size of `kept` files that is a multiple of what it should be.
fn rounded(bytes: u64, set: &Set, most: u64, kept: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    if bytes >= most {
        return most;
    }
    let coarse = bytes >= 16 * MIB && MIB.is_multiple_of(set.granule);
    let unit = if coarse { MIB } else { set.granule.max(1) };
    let less = (bytes / unit).max(1) * unit;
    let enough = less.saturating_mul(kept) >= set.needed;
    if enough { less.min(most) } else { (bytes.div_ceil(unit) * unit).min(most) }
}

fn say((at, size): &Key, set: &Set, several: bool, changes: &mut Changes) {
    let (size, (files, each)) = (*size, set.scaled);
    if (files, each) == (set.files(), size) {
        return;
    }
    let (before, after) = (size.saturating_mul(set.files()), files.saturating_mul(each));
    let place = match (several, at.target.as_str()) {
        (false, _) => String::new(),
        (true, "") => format!(" in {}", at.directory),
        (true, target) => format!(" in {} of {target}", at.directory),
    };
    changes.say(format!(
        "data set{place} {:.2} → {:.2} ({}): {} of {:.2} → {files} of {:.2}",
        Bytes(before),
        Bytes(after),
        proportion(before, after),
        plural(set.files()),
        Bytes(size),
        Bytes(each)
    ));
    if after < set.meaningful {
        changes.say(format!(
            "{:.2} of data is not meaningful: {:.2} or more would be",
            Bytes(after),
            Bytes(set.meaningful)
        ));
    }
}

/// The rest, as a part: `1/341`, or `41 %` where a whole divisor would be far off.
fn proportion(before: u64, after: u64) -> String {
    let after = after.max(1);
    let times = before / after;
    if times >= 10 || before.is_multiple_of(after) {
        format!("1/{}", times.max(1))
    } else {
        format!("{} %", part(100, after, before))
    }
}

fn plural(files: u64) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// Gives a load what its set became.
fn apply(load: &mut Workload, set: &Set, changes: &mut Changes) {
    let (kept, size) = set.scaled;
    let (files_before, size_before) = (u64::from(load.files), load.file_bytes);
    let files = if load.names.is_empty() {
        files_before.min(kept)
    } else {
        files_before.saturating_mul(kept).div_ceil(set.files().max(1)).max(1)
    };
    load.files = u32::try_from(files).unwrap_or(load.files);
    load.names.truncate(usize::try_from(files).unwrap_or(usize::MAX));
    load.file_bytes = size;
    let (before, after) = (files_before.saturating_mul(size_before), files.saturating_mul(size));
    let block = u64::from(load.block_bytes.max(1));
    match &mut load.length {
        Length::Seconds(_) => {}
        Length::Operations(count) => *count = fewer(*count, ratio(after, before), changes),
        Length::Bytes { per_job, .. } if after < before => {
            let less = part(*per_job, after, before) / block * block;
            *per_job = less.max(block).min(*per_job);
        }
        Length::Bytes { .. } => {}
    }
    if size < size_before {
        places(load, size_before, changes);
    }
    if load.operation == Operation::Remove {
        removable(load);
    }
}

/// Files that are removed are there once, and each job has at least one.
fn removable(load: &mut Workload) {
    load.jobs = load.jobs.min(load.files);
    load.clients = load.clients.min(load.jobs);
    if let Length::Operations(count) = &mut load.length {
        *count = (*count).min(u64::from(load.files));
    }
}

/// Moves what is told in places of a file that had `before` bytes.
fn places(load: &mut Workload, before: u64, changes: &mut Changes) {
    let (size, least) = (load.file_bytes, room_needed(load).min(load.file_bytes));
    let unit = load.align_bytes.map_or_else(|| u64::from(load.block_bytes), u64::from).max(1);
    let less = |bytes: u64| part(bytes, size, before) / unit * unit;
    let old = load.region;
    let region = &mut load.region;
    region.offset = less(old.offset).min((size - least) / unit * unit);
    let room = size - region.offset;
    region.bytes = old.bytes.map(|bytes| less(bytes).max(least).min(room).min(bytes.max(least)));
    if old.job_increment > 0 {
        let steps = u64::from(load.jobs.saturating_sub(1)).max(1);
        let most = (room - least.min(room)) / steps / unit * unit;
        region.job_increment = less(old.job_increment).max(unit).min(most);
    }
    if let Starts::Stride { bytes } = &mut load.starts {
        *bytes = less(*bytes).max(unit).min(*bytes);
    }
    if load.region != old {
        changes.say("the parts of files that are visited are scaled with them".to_owned());
    }
}

/// Fewer operations of a run by count.
fn fewer(count: u64, proportion: u64, changes: &mut Changes) -> u64 {
    let less = part(count, proportion, ONE).max(OPERATIONS_MIN).min(count);
    if less < count {
        changes.say(format!("{count} operations → {less}"));
    }
    less
}

/// `bytes` × `part` ÷ `of`, at most the greatest number.
fn part(bytes: u64, part: u64, of: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// `part` of `of` in fixed point, at most one.
fn ratio(bytes: u64, of: u64) -> u64 {
    part(bytes, ONE, of.max(1)).min(ONE)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a proportion over 0 and at most 1"
)]
fn fixed(factor: f64) -> u64 {
    ((factor * ONE as f64) as u64).clamp(1, ONE)
}
