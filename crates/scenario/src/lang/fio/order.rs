//! The order of the blocks of a job: the modifiers of `rw`, and the distributions of random order.

use super::bag::Bag;
use super::shape::{Direction, Extent};
use super::value;
use crate::lang::LangError;
use weir_load::workload::{Draw, Visit, Zone};

/// Bytes skipped between two sequential requests, or several requests from each random place: the
/// number behind `rw=…:`, and `rw_sequencer`.
pub(super) fn modifier(bag: &Bag, direction: Direction) -> Result<(i64, Option<Visit>), LangError> {
    let again = match bag.text("rw_sequencer") {
        None | Some("sequential") => false,
        Some("identical") => true,
        Some(other) => {
            let why = format!("is {other:?}; it must be sequential or identical");
            return Err(bag.error("rw_sequencer", why));
        }
    };
    let Some((_, number)) = bag.text("rw").unwrap_or("read").split_once(':') else {
        return Ok((0, None));
    };
    let base = bag.kb_base()?;
    if direction.random {
        let requests = value::count(number, base).map_err(|why| bag.error("rw", why))?;
        return Ok((0, (requests > 1).then_some(Visit { requests, again })));
    }
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number),
    };
    let bytes = value::number(digits, base).map_err(|why| bag.error("rw", why))?;
    let bytes = i64::try_from(bytes).map_err(|_| bag.error("rw", "skips more than 2^63 bytes"))?;
    Ok((sign * bytes, None))
}

/// Bytes that a job of a file with `extent` moves in one pass of it that leaves `skip` bytes out
/// after each request of `block` bytes.
pub(super) fn one_pass(extent: &Extent, skip: u64, block: u32) -> u64 {
    let len = region_bytes(extent);
    let block = u64::from(block);
    let step = block.saturating_add(skip).max(1);
    let before = len.saturating_sub(1) / step;
    before * block + block.min(len - before * step)
}

/// `random_distribution`, `random_generator`, `norandommap`, `ba`.
pub(super) fn draw(bag: &Bag, direction: Direction, extent: &Extent) -> Result<Draw, LangError> {
    if let Some(draw) = distribution(bag, direction, extent)? {
        return Ok(draw);
    }
    let lfsr = match bag.text("random_generator") {
        None | Some("tausworthe" | "tausworthe64") => false,
        Some("lfsr") => true,
        Some(other) => {
            let why = format!("is {other:?}; it must be tausworthe, tausworthe64 or lfsr");
            return Err(bag.error("random_generator", why));
        }
    };
    let no_map = bag.truth("norandommap")? == Some(true) || bag.set("ba").is_some();
    Ok(if no_map && !lfsr { Draw::Independent } else { Draw::Permuted })
}

const DISTRIBUTIONS: &str = "it must be random, zipf:THETA, pareto:H, normal:DEVIATION, \
                             zoned:REQUESTS/SIZE:… in percent, or zoned_abs:REQUESTS/BYTES:…";

/// `random_distribution`; `None` if all blocks are equally wanted.
fn distribution(
    bag: &Bag,
    direction: Direction,
    extent: &Extent,
) -> Result<Option<Draw>, LangError> {
    let text = bag.text("random_distribution").unwrap_or("random");
    let refused = |why: String| bag.error("random_distribution", why);
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let number = |least: f64, most: f64, how: &str| {
        let (number, center) = rest.split_once(':').unwrap_or((rest, ""));
        let center = if center.is_empty() { Some(0.0) } else { center.parse::<f64>().ok() };
        let is_center = center.is_some_and(|center| (0.0..=1.0).contains(&center));
        let number = number.parse::<f64>().ok().filter(|n| (least..=most).contains(n));
        match number {
            Some(number) if is_center => Ok(number),
            _ => Err(refused(format!("is {text:?}; {how}"))),
        }
    };
    Ok(match name {
        "random" if rest.is_empty() => None,
        "zipf" => {
            let how = "zipf needs a theta over 0, not 1, at most 5, as in zipf:1.2";
            let theta = number(f64::MIN_POSITIVE, 5.0, how)?;
            if (theta - 1.0).abs() < 1e-6 {
                return Err(refused(format!("is {text:?}; {how}")));
            }
            Some(Draw::Zipf { theta })
        }
        "pareto" => {
            let how = "pareto needs a number over 0 and below 1, as in pareto:0.2";
            let h = number(f64::MIN_POSITIVE, 1.0 - f64::EPSILON, how)?;
            Some(Draw::Pareto { h })
        }
        "normal" => {
            let how = "normal needs a deviation from 0 to 100 percent, as in normal:20";
            Some(Draw::Normal { deviation_percent: number(0.0, 100.0, how)? })
        }
        "zoned" | "zoned_abs" => {
            let [reads, writes] = value::parts(rest);
            if direction.mixed() && reads != writes {
                return Err(refused("must be the same for reads and writes".to_owned()));
            }
            let part = if direction.reads() { reads } else { writes };
            let whole = (name == "zoned_abs").then(|| region_bytes(extent));
            Some(Draw::Zoned { zones: zones(bag, part.unwrap_or(""), whole)? })
        }
        _ => return Err(refused(format!("is {text:?}; {DISTRIBUTIONS}"))),
    })
}

const fn region_bytes(extent: &Extent) -> u64 {
    match extent.region.bytes {
        Some(bytes) => bytes,
        None => extent.file_bytes.saturating_sub(extent.region.offset),
    }
}

/// Zones as `50/5:30/15:20/`: percent of the requests, and of the region, or bytes of it if it has
/// `whole` bytes. Sizes left out divide what is left.
#[expect(clippy::cast_precision_loss, reason = "parts of a file need no more than 52 bits")]
fn zones(bag: &Bag, text: &str, whole: Option<u64>) -> Result<Vec<Zone>, LangError> {
    let refused = |why: String| bag.error("random_distribution", why);
    let base = bag.kb_base()?;
    let mut found: Vec<(u8, Option<f64>)> = Vec::new();
    for piece in text.split(':') {
        let (requests, size) = piece.split_once('/').unwrap_or((piece, ""));
        let requests = requests.trim().parse::<u8>().ok().filter(|percent| *percent <= 100);
        let requests = requests.ok_or_else(|| {
            refused(format!("{piece:?} is no zone; write REQUESTS/SIZE, as in 60/10"))
        })?;
        let size =
            match (size.trim(), whole) {
                ("", _) => None,
                (size, Some(whole)) => {
                    let bytes = value::number(size, base).map_err(refused)?;
                    Some(bytes as f64 * 100.0 / whole.max(1) as f64)
                }
                (size, None) => {
                    let percent = size.parse::<u8>().ok().filter(|percent| *percent <= 100);
                    Some(f64::from(percent.ok_or_else(|| {
                        refused(format!("{size:?} is no percentage from 0 to 100"))
                    })?))
                }
            };
        found.push((requests, size));
    }
    let given: f64 = found.iter().filter_map(|(_, size)| *size).sum();
    let open = found.iter().filter(|(_, size)| size.is_none()).count();
    let each = (100.0 - given).max(0.0) / open.max(1) as f64;
    let zone = |(requests_percent, size): (u8, Option<f64>)| Zone {
        requests_percent,
        size_percent: size.unwrap_or(each),
    };
    Ok(found.into_iter().map(zone).collect())
}
