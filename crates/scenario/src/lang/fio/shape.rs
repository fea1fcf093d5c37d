//! Single options of a job: order, sizes, extent, time. Each function reads the options that belong
//! together.

use super::bag::Bag;
use super::value::{self, TimeUnit};
use crate::lang::LangError;
use weir_load::workload::{Length, Operation, Pattern, Region, SizeShare, Stability, Think};

/// Reads, writes or both, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) random: bool,
    pub(super) read_percent: u8,
}

impl Direction {
    pub(super) const fn reads(self) -> bool {
        self.read_percent > 0
    }

    pub(super) const fn writes(self) -> bool {
        self.read_percent < 100
    }

    pub(super) const fn mixed(self) -> bool {
        self.reads() && self.writes()
    }
}

/// `rw`, `rwmixread`, `rwmixwrite`.
pub(super) fn direction(bag: &Bag) -> Result<Direction, LangError> {
    let text = bag.text("rw").unwrap_or("read");
    let text = text.split_once(':').map_or(text, |(text, _)| text);
    let mix = reads_of_mix(bag)?;
    let of = |random, read_percent| Ok(Direction { random, read_percent });
    match text {
        "read" => of(false, 100),
        "write" => of(false, 0),
        "randread" => of(true, 100),
        "randwrite" => of(true, 0),
        "rw" | "readwrite" => of(false, mix),
        "randrw" => of(true, mix),
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
            Err(bag.error("rw", "TRIM is a matter of devices, and Weir measures files"))
        }
        other => {
            let why =
                format!("is {other:?}; it must be read, write, randread, randwrite, rw or randrw");
            Err(bag.error("rw", why))
        }
    }
}

fn reads_of_mix(bag: &Bag) -> Result<u8, LangError> {
    let reads = bag.percent("rwmixread")?;
    let writes = bag.percent("rwmixwrite")?;
    match bag.later(["rwmixread", "rwmixwrite"]).map(|set| set.known.name) {
        Some("rwmixread") => Ok(reads.unwrap_or(50)),
        Some(_) => Ok(100 - writes.unwrap_or(50)),
        None => Ok(50),
    }
}

/// Sizes of reads and of writes.
pub(super) struct Sizes {
    pub(super) reads: Vec<SizeShare>,
    pub(super) writes: Vec<SizeShare>,
}

impl Sizes {
    /// The one size of everything that `direction` does, if it is one.
    pub(super) fn single(&self, direction: Direction) -> Option<u32> {
        let mut used = self.used(direction);
        let first = used.next()?.bytes;
        used.all(|share| share.bytes == first).then_some(first)
    }

    /// The smallest size of those used.
    pub(super) fn smallest(&self, direction: Direction) -> u32 {
        self.used(direction).map(|share| share.bytes).min().unwrap_or(4096)
    }

    /// The largest size of writes.
    pub(super) fn largest_write(&self) -> u32 {
        self.writes.iter().map(|share| share.bytes).max().unwrap_or(4096)
    }

    fn used(&self, direction: Direction) -> impl Iterator<Item = &SizeShare> {
        let reads = self.reads.iter().filter(move |_| direction.reads());
        reads.chain(self.writes.iter().filter(move |_| direction.writes()))
    }
}

/// `bs`, `bsrange`, `bssplit`.
pub(super) fn sizes(bag: &Bag) -> Result<Sizes, LangError> {
    let whole = |bytes| vec![SizeShare { bytes, percent: 100 }];
    let [mut reads, mut writes] = [whole(4096), whole(4096)];
    if let Some(set) = bag.later(["bs", "bsrange"]) {
        let name = set.known.name;
        let parts = value::parts(set.value.as_deref().unwrap_or(""));
        for (sizes, part) in [&mut reads, &mut writes].into_iter().zip(parts) {
            if let Some(part) = part {
                *sizes = whole(one_size(bag, name, part)?);
            }
        }
    }
    if let Some(text) = bag.text("bssplit") {
        for (sizes, part) in [&mut reads, &mut writes].into_iter().zip(value::parts(text)) {
            if let Some(part) = part {
                *sizes = split(bag, part)?;
            }
        }
    }
    Ok(Sizes { reads, writes })
}

fn one_size(bag: &Bag, name: &str, part: &str) -> Result<u32, LangError> {
    let base = bag.kb_base()?;
    let read = |text| value::count(text, base).map_err(|why| bag.error(name, why));
    if name == "bs" {
        return positive(bag, name, read(part)?);
    }
    let (from, to) = part.split_once(['-', ':']).unwrap_or((part, part));
    let (from, to) = (read(from)?, read(to)?);
    if from != to {
        let why = "is a range; fio does not draw its sizes equally often, so say sizes and shares \
                   with bssplit, as in bssplit=4k/50:8k/50";
        return Err(bag.error(name, why));
    }
    positive(bag, name, from)
}

fn positive(bag: &Bag, name: &str, bytes: u32) -> Result<u32, LangError> {
    if bytes == 0 {
        return Err(bag.error(name, "is 0; a request needs at least a byte"));
    }
    Ok(bytes)
}

/// One direction's part of `bssplit`: `4k/50:8k/50`; shares left out divide what is left.
fn split(bag: &Bag, part: &str) -> Result<Vec<SizeShare>, LangError> {
    let base = bag.kb_base()?;
    let refused = |why: String| bag.error("bssplit", why);
    let mut given: Vec<(u32, Option<u8>)> = Vec::new();
    for piece in part.split(':') {
        let (size, share) = piece.split_once('/').unwrap_or((piece, ""));
        let bytes = value::count(size, base).map_err(refused)?;
        let share = match share.trim() {
            "" => None,
            text => {
                Some(text.parse().map_err(|_| refused(format!("{text:?} is not a percentage")))?)
            }
        };
        given.push((positive(bag, "bssplit", bytes)?, share));
    }
    let sum: u32 = given.iter().filter_map(|(_, share)| share.map(u32::from)).sum();
    let open =
        u32::try_from(given.iter().filter(|(_, share)| share.is_none()).count()).unwrap_or(0);
    if sum > 100 || (sum < 100 && open == 0) {
        return Err(refused(format!("its shares add up to {sum}, not to 100")));
    }
    let each = (100 - sum).checked_div(open).unwrap_or(0);
    let mut rest = (100 - sum).saturating_sub(each * open);
    let mut shares = Vec::with_capacity(given.len());
    for (bytes, share) in given.into_iter().rev() {
        let percent = share.map_or_else(|| each + std::mem::take(&mut rest), u32::from);
        let percent = u8::try_from(percent).unwrap_or(100);
        if percent > 0 {
            shares.push(SizeShare { bytes, percent });
        }
    }
    shares.reverse();
    Ok(shares)
}

/// The size of files, the part of them that is visited, and the amount that a job moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) file_bytes: u64,
    pub(super) region: Region,
    pub(super) per_job: u64,
}

/// `size`, `filesize`, `io_size`, `offset`, `offset_increment`, `number_ios`, `loops` of a job
/// that has `files` files and `clones` clones, whose requests have `block` bytes if all the same.
pub(super) fn extent(
    bag: &Bag,
    files: u64,
    clones: u64,
    block: Option<u32>,
) -> Result<Extent, LangError> {
    for (name, why) in [
        ("size", "is a part of files that exist; give bytes, Weir lays the files out"),
        ("offset", "is a part of the file; give bytes"),
        ("offset_increment", "is a part of the file; give bytes"),
    ] {
        if bag.text(name).is_some_and(|text| text.ends_with('%') || text.ends_with('z')) {
            return Err(bag.error(name, why));
        }
    }
    let offset = bag.bytes("offset")?.unwrap_or(0);
    let step = bag.bytes("offset_increment")?.unwrap_or(0);
    let size = bag.bytes("size")?;
    let too_large = || bag.error("size", "is too large with its offsets");
    let (file_bytes, part) = match (fixed_filesize(bag)?, size) {
        (Some(file), _) => match file.checked_sub(offset) {
            Some(part) if part > 0 => (file, part),
            _ => return Err(bag.error("offset", "is behind the end of the file")),
        },
        (None, Some(size)) => {
            let part = size / files;
            let end = step.checked_mul(clones - 1).and_then(|far| far.checked_add(offset));
            (end.and_then(|end| end.checked_add(part)).ok_or_else(too_large)?, part)
        }
        (None, None) => {
            let why = "is missing; Weir lays files out, so say how large: in the job, or before \
                       the file of a command line, as in fio --size=1g FILE";
            return Err(bag.error("size", why));
        }
    };
    let total = part.checked_mul(files).ok_or_else(too_large)?;
    let whole = size.filter(|size| *size > 0).map_or(total, |size| size.min(total));
    let per_job = moved(bag, whole, block)?;
    let bytes = (file_bytes != offset + part || step > 0).then_some(part);
    let plain = offset == 0 && bytes.is_none();
    let region =
        if plain { Region::default() } else { Region { offset, bytes, job_increment: step } };
    Ok(Extent { file_bytes, region, per_job })
}

fn fixed_filesize(bag: &Bag) -> Result<Option<u64>, LangError> {
    if bag.text("filesize").is_some_and(|text| text.contains(['-', ':'])) {
        return Err(bag.error("filesize", "is a range; files of one job have one size here"));
    }
    bag.bytes("filesize")
}

/// The amount that a job moves in all, its files being `whole` bytes.
fn moved(bag: &Bag, whole: u64, block: Option<u32>) -> Result<u64, LangError> {
    let mut bytes = match bag.text("io_size").and_then(|text| text.strip_suffix('%')) {
        Some(percent) => {
            let refused = || bag.error("io_size", "is not a percentage from 1 to 100");
            let percent = percent.parse::<u64>().ok().filter(|p| (1..=100).contains(p));
            whole / 100 * percent.ok_or_else(refused)?
        }
        None => bag.bytes("io_size")?.filter(|bytes| *bytes > 0).unwrap_or(whole),
    };
    if let Some(requests) = bag.bytes("number_ios")?.filter(|requests| *requests > 0) {
        let Some(block) = block else {
            return Err(bag.error("number_ios", "needs requests of one size; use io_size"));
        };
        bytes = bytes.min(requests.saturating_mul(u64::from(block)));
    }
    let loops = bag.count("loops", 1)?.unwrap_or(1);
    Ok(bytes.saturating_mul(u64::from(loops)))
}

/// `runtime`, `time_based`, `ramp_time`: when it ends, and seconds of warm-up.
pub(super) fn length(bag: &Bag, per_job: u64) -> Result<(Length, f64), LangError> {
    let runtime = bag.seconds("runtime")?.filter(|seconds| *seconds > 0.0);
    let ramp = bag.seconds("ramp_time")?.unwrap_or(0.0);
    if bag.truth("time_based")? == Some(true) {
        let Some(seconds) = runtime else {
            return Err(bag.error("time_based", "needs runtime"));
        };
        return Ok((Length::Seconds(seconds), ramp));
    }
    if ramp > 0.0 {
        let why = "needs time_based: a load that ends by a number of bytes has no warm-up here";
        return Err(bag.error("ramp_time", why));
    }
    Ok((Length::Bytes { per_job, at_most_s: runtime }, 0.0))
}

/// `percentage_random` and the order of `rw`.
pub(super) fn operation(bag: &Bag, direction: Direction) -> Result<Operation, LangError> {
    let mut random = 100;
    if let Some(text) = bag.text("percentage_random") {
        let percent = |part: Option<&str>| match part.map(str::parse::<u8>) {
            None => Ok(100),
            Some(Ok(percent)) if percent <= 100 => Ok(percent),
            Some(_) => Err(bag.error("percentage_random", "must be from 0 to 100")),
        };
        let [reads, writes] = value::parts(text);
        let (reads, writes) = (percent(reads)?, percent(writes)?);
        if direction.mixed() && reads != writes {
            return Err(bag.error("percentage_random", "must be the same for reads and writes"));
        }
        random = if direction.reads() { reads } else { writes };
    }
    if !direction.random {
        random = 0;
    }
    let pattern = match random {
        0 => Pattern::Sequential,
        100 => Pattern::Random,
        random_percent => Pattern::Mixed { random_percent },
    };
    Ok(Operation::Data { pattern, read_percent: direction.read_percent })
}

/// `sync`.
pub(super) fn stability(bag: &Bag) -> Result<Stability, LangError> {
    match bag.text("sync") {
        None | Some("0" | "none") => Ok(Stability::Unstable),
        Some("1" | "sync") => Ok(Stability::FileSync),
        Some("dsync") => Ok(Stability::DataSync),
        Some(other) => {
            Err(bag.error("sync", format!("is {other:?}; it must be none, sync or dsync")))
        }
    }
}

/// `direct`, `buffered`.
pub(super) fn direct(bag: &Bag) -> Result<bool, LangError> {
    let (direct, buffered) = (bag.truth("direct")?, bag.truth("buffered")?);
    Ok(match bag.later(["direct", "buffered"]).map(|set| set.known.name) {
        Some("direct") => direct == Some(true),
        Some(_) => buffered == Some(false),
        None => false,
    })
}

/// `fsync`, `fdatasync`: writes between two.
pub(super) fn commit_every(bag: &Bag) -> Result<Option<u32>, LangError> {
    let all = [bag.count("fsync", 0)?, bag.count("fdatasync", 0)?];
    match all.map(|every| every.filter(|every| *every > 0)) {
        [Some(_), Some(_)] => {
            Err(bag.error("fdatasync", "and fsync are both given; omit one of them"))
        }
        [fsync, fdatasync] => Ok(fsync.or(fdatasync)),
    }
}

/// `thinktime`, `thinktime_blocks`.
pub(super) fn think(bag: &Bag) -> Result<Option<Think>, LangError> {
    let us = bag.time_us("thinktime", TimeUnit::Microseconds)?.unwrap_or(0);
    let every = bag.count("thinktime_blocks", 1)?.unwrap_or(1);
    Ok((us > 0).then_some(Think { us, every }))
}

/// `randrepeat`, `allrandrepeat`, `randseed`: the seed, `None` for another each time.
pub(super) fn seed(bag: &Bag) -> Result<Option<u64>, LangError> {
    if let Some(seed) = bag.bytes("randseed")? {
        return Ok(Some(seed));
    }
    let all = bag.truth("allrandrepeat")? == Some(true);
    let repeats = bag.truth("randrepeat")?.unwrap_or(true);
    Ok((all || repeats).then_some(1))
}

/// Is what is written to be read back, or what is read to be compared?
pub(super) fn verifies(bag: &Bag) -> Result<bool, LangError> {
    let known = [
        "md5",
        "crc64",
        "crc32c",
        "crc32c-intel",
        "crc32",
        "crc16",
        "crc7",
        "xxhash",
        "sha512",
        "sha256",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "meta",
    ];
    match bag.text("verify") {
        None | Some("0" | "none") => Ok(false),
        Some(method) if known.contains(&method) => Ok(bag.truth("do_verify")? != Some(false)),
        Some(other) => {
            let why = format!(
                "is {other:?}; any checksum of fio's is accepted (Weir checks in its own way), \
                 patterns are not"
            );
            Err(bag.error("verify", why))
        }
    }
}
