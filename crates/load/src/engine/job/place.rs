//! The places of requests: the files of a job, the region of each, and the order of visits.

use super::draw::{Drawer, Drawn};
use super::size::Sizes;
use crate::workload::{FileOrder, Length, Pattern, Starts, Visit, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_core::rng::{Rng, mix};

/// A stretch of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// The cursors that jobs of one file share, by file; none if each has its own.
#[derive(Clone, Default)]
pub(crate) struct Cursors(Arc<[AtomicU64]>);

impl Cursors {
    /// The places that `workload` needs.
    pub(crate) fn new(workload: &Workload) -> Self {
        let shared = workload.starts == Starts::Interlocked && workload.jobs > workload.files;
        let count = if shared { workload.files } else { 0 };
        Self((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    fn of(&self, file: u32) -> Option<&AtomicU64> {
        self.0.get(usize::try_from(file).ok()?)
    }
}

/// The files in turn, and the position of each.
struct InTurn {
    /// Files visited until now.
    turn: u64,
    /// Positions within the regions of the files.
    cursors: Vec<u64>,
}

/// The requests left of a visit of a random place.
#[derive(Clone, Copy)]
struct Visiting {
    visit: Visit,
    left: u32,
    /// Position of the next of them.
    at: u64,
}

/// The places of one job. The files of the job, or rather their regions, are taken as if they
/// were one behind the other; a position counts bytes in that row.
pub(super) struct JobOffsets {
    first_file: u32,
    file_stride: u32,
    file_count: u32,
    begin: u64,
    len: u64,
    align: Option<u64>,
    unit: u64,
    drawer: Drawer,
    cursor: u64,
    in_turn: Option<InTurn>,
    /// Bytes between two requests in order.
    skip: i64,
    visiting: Option<Visiting>,
    shared: Cursors,
    /// Shared cursors stop at the end.
    once: bool,
}

impl JobOffsets {
    /// Of job `index` of `workload`.
    pub(super) fn new(
        workload: &Workload,
        index: u32,
        shared: Cursors,
        sizes: [&Sizes; 2],
    ) -> Self {
        let (jobs, files) = (workload.jobs, workload.files);
        let region = &workload.region;
        let begin = region.offset + u64::from(index) * region.job_increment;
        let held = workload.file_bytes.saturating_sub(begin);
        let mut len = held.min(region.bytes.unwrap_or(u64::MAX));
        let block = u64::from(workload.block_bytes);
        if workload.verifies() {
            len -= len % block;
        }
        let file_count = if files > index { (files - index).div_ceil(jobs) } else { 1 };
        let least = sizes.iter().map(|sizes| sizes.least()).min().unwrap_or(1);
        let align = workload.align_bytes.map(u64::from);
        let unit = align.unwrap_or(u64::from(least)).max(1);
        // Units of one file's region at which the smallest request fits.
        let per_file = len.saturating_sub(u64::from(least)) / unit + 1;
        let key = mix(workload.seed ^ mix(u64::from(index)));
        let units = (u64::from(file_count), per_file);
        let drawer = Drawer::new(&workload.draw, units, key, workload.seed);
        let rank = if files >= jobs { 0 } else { u64::from(index / files) };
        let cursor = match workload.starts {
            Starts::Apart => {
                let sharers = u64::from(if files >= jobs { 1 } else { jobs.div_ceil(files) });
                rank * (len / block.max(1)) / sharers * block
            }
            Starts::Together | Starts::Interlocked => 0,
            Starts::Stride { bytes } => rank.wrapping_mul(bytes) % len.max(1),
        };
        let len = len.max(1);
        let cursor = if cursor == 0 { pass_begins(len, workload.skip_bytes) } else { cursor };
        let in_turn = (workload.file_order == FileOrder::InTurn).then(|| InTurn {
            turn: 0,
            cursors: vec![cursor; usize::try_from(file_count).unwrap_or(1)],
        });
        let visiting = workload.visit.map(|visit| Visiting { visit, left: 0, at: 0 });
        Self {
            first_file: index % files,
            file_stride: jobs,
            file_count,
            begin,
            len,
            align,
            unit,
            drawer,
            cursor,
            in_turn,
            skip: workload.skip_bytes,
            visiting,
            shared,
            once: matches!(workload.length, Length::Bytes { per_job: 0, .. }),
        }
    }

    /// Bytes in the regions of all files together.
    pub(super) fn total(&self) -> u64 {
        self.len.saturating_mul(u64::from(self.file_count))
    }

    /// Do jobs of other numbers move the same cursor?
    pub(super) fn is_shared(&self) -> bool {
        self.shared.of(self.first_file).is_some()
    }

    /// The first block of the region and the number of its blocks of `block_bytes` bytes.
    pub(super) const fn blocks(&self, block_bytes: u32) -> (u64, u64) {
        let block = if block_bytes == 0 { 1 } else { block_bytes as u64 };
        (self.begin / block, self.len / block)
    }

    /// The place of the next request, which is to be `bytes` long: less at the end of a region.
    /// `None` if a shared cursor has reached the end of its only pass.
    #[inline]
    pub(super) fn next(&mut self, pattern: Pattern, bytes: u32, rng: &mut Rng) -> Option<Spot> {
        match pattern {
            Pattern::Random => Some(self.visit(bytes, rng)),
            Pattern::Sequential => self.sequential(bytes),
            Pattern::Mixed { random_percent } => {
                if rng.below(100) >= u64::from(random_percent) {
                    return self.sequential(bytes);
                }
                let position = self.random_position(u64::from(bytes), rng);
                self.cursor = (position + u64::from(bytes)) % self.total();
                Some(self.spot(position, bytes))
            }
        }
    }

    /// A random place.
    pub(super) fn random(&mut self, bytes: u32, rng: &mut Rng) -> Spot {
        let position = self.random_position(u64::from(bytes), rng);
        self.spot(position, bytes)
    }

    /// The next place in order.
    pub(super) fn sequential(&mut self, bytes: u32) -> Option<Spot> {
        if let Some(shared) = self.shared.of(self.first_file) {
            let (len, once) = (self.len, self.once);
            let step = |at: u64| {
                let left = len - at % len;
                (!once || at < len).then(|| at + u64::from(bytes).min(left))
            };
            let at = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).ok()?;
            return Some(self.spot(at % len, bytes));
        }
        if let Some(file) = self.turn() {
            return Some(self.sequential_of(file, bytes));
        }
        if self.skip != 0 {
            return Some(self.stride(bytes));
        }
        let mut cursor = self.cursor;
        let spot = self.advance(&mut cursor, bytes);
        self.cursor = cursor;
        Some(spot)
    }

    /// The next place in order of the file at `file` in the row.
    fn sequential_of(&mut self, file: u64, bytes: u32) -> Spot {
        let (len, skip) = (self.len, self.skip);
        let index = usize::try_from(file).unwrap_or(0);
        let cursor = self.in_turn.as_ref().and_then(|files| files.cursors.get(index));
        let within = cursor.copied().unwrap_or(0);
        let spot = self.spot(file * len + within, bytes);
        let next = within_pass(within, spot.bytes, len, skip);
        if let Some(cursor) = self.in_turn.as_mut().and_then(|files| files.cursors.get_mut(index)) {
            *cursor = next.unwrap_or_else(|| pass_begins(len, skip));
        }
        spot
    }

    /// The next place in order where bytes lie between two.
    fn stride(&mut self, bytes: u32) -> Spot {
        let (len, skip) = (self.len, self.skip);
        let spot = self.spot(self.cursor, bytes);
        let (file, within) = (self.cursor / len, self.cursor % len);
        self.cursor = match within_pass(within, spot.bytes, len, skip) {
            Some(next) => file * len + next,
            None => (file + 1) % u64::from(self.file_count) * len + pass_begins(len, skip),
        };
        spot
    }

    /// The number of the file whose turn it is, where files are visited in turn.
    #[inline]
    fn turn(&mut self) -> Option<u64> {
        let files = self.in_turn.as_mut()?;
        let file = files.turn % u64::from(self.file_count.max(1));
        files.turn += 1;
        Some(file)
    }

    /// The next place in order, with a cursor of the caller's.
    pub(super) fn advance(&self, cursor: &mut u64, bytes: u32) -> Spot {
        let spot = self.spot(*cursor, bytes);
        *cursor = (*cursor + u64::from(spot.bytes)) % self.total();
        spot
    }

    /// The file whose turn it is, or a random one, each equally likely.
    #[inline]
    pub(super) fn any_file(&mut self, rng: &mut Rng) -> u32 {
        if self.file_count == 1 {
            return self.first_file;
        }
        if let Some(file) = self.turn() {
            return self.file_at(file);
        }
        self.file_at(rng.below(u64::from(self.file_count)))
    }

    /// A random place, or the next of the visit of one.
    fn visit(&mut self, bytes: u32, rng: &mut Rng) -> Spot {
        let Some(Visiting { visit, left, at }) = self.visiting else {
            return self.random(bytes, rng);
        };
        let fits = at % self.len + u64::from(bytes) <= self.len;
        let (position, left) = if left > 0 && fits {
            (at, left - 1)
        } else {
            (self.random_position(u64::from(bytes), rng), visit.requests.saturating_sub(1))
        };
        // Behind the last block of a file another visit begins.
        let next = if visit.again { position } else { position + u64::from(bytes) };
        let is_over = next / self.len != position / self.len;
        let left = if is_over { 0 } else { left };
        self.visiting = Some(Visiting { visit, left, at: next });
        self.spot(position, bytes)
    }

    fn random_position(&mut self, bytes: u64, rng: &mut Rng) -> u64 {
        let file = self.turn();
        let (file, unit) = match self.drawer.next(file, rng) {
            Drawn::Unit(file, unit) => (file, unit),
            Drawn::Any => {
                let align = self.align.unwrap_or(bytes).max(1);
                let places = self.len.saturating_sub(bytes) / align + 1;
                let file = match (file, self.file_count) {
                    (Some(file), _) => file,
                    (None, 1) => 0,
                    (None, count) => rng.below(u64::from(count)),
                };
                return file * self.len + rng.below(places) * align;
            }
        };
        // The last units of a region have no room for the longest requests: these move forward.
        let last = self.len.saturating_sub(bytes) / self.unit;
        file * self.len + unit.min(last) * self.unit
    }

    fn spot(&self, position: u64, bytes: u32) -> Spot {
        let within = position % self.len;
        let left = u32::try_from(self.len - within).unwrap_or(u32::MAX);
        Spot {
            file: self.file_at(position / self.len),
            offset: self.begin + within,
            bytes: bytes.min(left),
        }
    }

    /// The files of the job, each once, from `file` on.
    pub(super) fn files_from(&self, file: u32) -> impl Iterator<Item = u32> + use<> {
        let (first, stride, count) = (self.first_file, self.file_stride.max(1), self.file_count);
        let begin = file.saturating_sub(first) / stride;
        (0..count).map(move |step| first + (begin + step) % count.max(1) * stride)
    }

    /// The job's file of this number, from 0.
    pub(super) const fn nth_file(&self, number: u32) -> Option<u32> {
        if number < self.file_count {
            Some(self.first_file + number * self.file_stride)
        } else {
            None
        }
    }

    fn file_at(&self, position: u64) -> u32 {
        let position = u32::try_from(position).unwrap_or(0) % self.file_count.max(1);
        self.first_file + position * self.file_stride
    }
}

/// The position, in a region of `len` bytes, at which a pass in order begins.
fn pass_begins(len: u64, skip: i64) -> u64 {
    if skip < 0 { len.saturating_sub(skip.unsigned_abs()) } else { 0 }
}

/// The position after a request of `bytes` at `within`; `None` if the pass is over.
fn within_pass(within: u64, bytes: u32, len: u64, skip: i64) -> Option<u64> {
    let next = within.checked_add(u64::from(bytes))?.checked_add_signed(skip)?;
    (next < len).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Draw, Region};
    use std::collections::{BTreeMap, BTreeSet};

    const BLOCK: u64 = 4096;

    fn workload() -> Workload {
        Workload { file_bytes: 8 * BLOCK, ..Workload::default() }
    }

    fn place(workload: &Workload, index: u32) -> JobOffsets {
        let sizes = Sizes::new(&workload.read_sizes, workload.block_bytes);
        JobOffsets::new(workload, index, Cursors::new(workload), [&sizes, &sizes])
    }

    /// Files and blocks of `count` requests of a block.
    fn visits(place: &mut JobOffsets, pattern: Pattern, count: usize) -> Vec<(u32, u64)> {
        let mut rng = Rng::new(1);
        let visit = |spot: Spot| (spot.file, spot.offset / BLOCK);
        (0..count).map_while(|_| place.next(pattern, 4096, &mut rng).map(visit)).collect()
    }

    #[test]
    fn a_sequential_job_visits_all_its_files_in_order_and_starts_over() {
        let workload = Workload { files: 4, jobs: 2, ..workload() };
        let seen = visits(&mut place(&workload, 1), Pattern::Sequential, 17);
        assert_eq!((seen[0], seen[7], seen[8], seen[16]), ((1, 0), (1, 7), (3, 0), (1, 0)));
    }

    #[test]
    fn sequential_jobs_start_where_they_are_told() {
        let starts = |starts| {
            let workload = Workload { jobs: 4, starts, ..workload() };
            let first = |index| visits(&mut place(&workload, index), Pattern::Sequential, 1)[0].1;
            [0, 1, 2, 3].map(first)
        };
        assert_eq!(starts(Starts::Apart), [0, 2, 4, 6]);
        assert_eq!(starts(Starts::Together), [0; 4]);
        assert_eq!(starts(Starts::Stride { bytes: 3 * BLOCK }), [0, 3, 6, 1]);
    }

    #[test]
    fn interlocked_jobs_visit_each_block_once_a_pass() {
        let workload = Workload { jobs: 4, files: 2, starts: Starts::Interlocked, ..workload() };
        let cursors = Cursors::new(&workload);
        let sizes = Sizes::new(&[], 4096);
        let mut jobs: Vec<_> = (0..4)
            .map(|index| JobOffsets::new(&workload, index, cursors.clone(), [&sizes, &sizes]))
            .collect();
        let mut seen = BTreeMap::new();
        for turn in 0..16 {
            for spot in visits(&mut jobs[turn % 4], Pattern::Sequential, 1) {
                *seen.entry(spot).or_insert(0) += 1;
            }
        }
        assert_eq!(seen.len(), 16);
        assert!(seen.values().all(|count| *count == 1));
    }

    #[test]
    fn a_shared_cursor_stops_at_the_end_of_its_only_pass() {
        let length = Length::Bytes { per_job: 0, at_most_s: None };
        let workload = Workload { jobs: 2, starts: Starts::Interlocked, length, ..workload() };
        let mut first = place(&workload, 0);
        assert_eq!(visits(&mut first, Pattern::Sequential, 20).len(), 8);
    }

    #[test]
    fn the_last_request_of_a_region_is_as_long_as_what_is_left() {
        let region = Region { offset: 1000, bytes: Some(10_000), job_increment: 500 };
        let mut place = place(&Workload { region, jobs: 2, ..workload() }, 1);
        let mut rng = Rng::new(1);
        let mut next = || place.next(Pattern::Sequential, 4096, &mut rng).unwrap();
        let spots = [next(), next(), next(), next()].map(|spot| (spot.offset, spot.bytes));
        assert_eq!(spots, [(5596, 4096), (9692, 1808), (1500, 4096), (5596, 4096)]);
    }

    #[test]
    fn random_jobs_stay_in_their_files_and_reach_every_block() {
        let workload = Workload { files: 5, jobs: 2, ..workload() };
        let seen = visits(&mut place(&workload, 0), Pattern::Random, 1000);
        let seen: BTreeSet<_> = seen.into_iter().collect();
        assert_eq!(seen.len(), 24);
        assert!(seen.iter().all(|(file, block)| [0, 2, 4].contains(file) && *block < 8));
    }

    #[test]
    fn permuted_jobs_visit_every_block_once_in_each_pass_and_not_in_the_same_order() {
        let workload = Workload { files: 4, jobs: 2, draw: Draw::Permuted, ..workload() };
        let seen = visits(&mut place(&workload, 0), Pattern::Random, 32);
        let (first, second) = seen.split_at(16);
        for pass in [first, second] {
            assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 16, "{pass:?}");
        }
        assert_ne!(first, second);
    }

    // The offsets are those of fio 3.33 with bs=4k on files of 16 blocks, where fio's first request
    // backwards, at the beginning of the file, is left out.
    #[test]
    fn bytes_are_skipped_forwards_and_backwards_as_by_fio() {
        let of = |skip_bytes, files| {
            let workload = Workload { file_bytes: 16 * BLOCK, skip_bytes, files, ..workload() };
            visits(&mut place(&workload, 0), Pattern::Sequential, 16)
        };
        let forwards: Vec<_> = of(8192, 1).into_iter().map(|(_, block)| block).collect();
        assert_eq!(forwards, [0, 3, 6, 9, 12, 15, 0, 3, 6, 9, 12, 15, 0, 3, 6, 9]);
        let backwards: Vec<_> = of(-8192, 1).into_iter().map(|(_, block)| block).collect();
        assert_eq!(backwards, [14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 14]);
        let two = of(5 * 4096, 2);
        assert_eq!(two[..7], [(0, 0), (0, 6), (0, 12), (1, 0), (1, 6), (1, 12), (0, 0)]);
    }

    #[test]
    fn a_random_place_is_visited_as_often_as_wanted() {
        let of = |requests, again| {
            let visit = Some(Visit { requests, again });
            let workload = Workload { file_bytes: 64 * BLOCK, visit, ..workload() };
            visits(&mut place(&workload, 0), Pattern::Random, 300)
        };
        for three in of(3, true).chunks(3) {
            assert!(three.iter().all(|visit| *visit == three[0]), "{three:?}");
        }
        let onward = of(4, false);
        let follows = onward.windows(2).filter(|pair| pair[1].1 == pair[0].1 + 1).count();
        assert!((200..=240).contains(&follows), "{follows}");
        assert!(onward.iter().all(|(_, block)| *block < 64));
    }

    #[test]
    fn files_in_turn_have_positions_of_their_own() {
        let file_order = FileOrder::InTurn;
        let workload = Workload { files: 3, file_order, ..workload() };
        let seen = visits(&mut place(&workload, 0), Pattern::Sequential, 27);
        let wanted: Vec<_> = (0..27).map(|n| (n % 3, u64::from(n / 3) % 8)).collect();
        assert_eq!(seen, wanted);
        let back = Workload { skip_bytes: -8192, ..workload.clone() };
        let seen = visits(&mut place(&back, 0), Pattern::Sequential, 6);
        assert_eq!(seen, [(0, 6), (1, 6), (2, 6), (0, 5), (1, 5), (2, 5)]);
        for draw in [Draw::Independent, Draw::Permuted, Draw::Zipf { theta: 0.9 }] {
            let workload = Workload { draw, ..workload.clone() };
            let seen = visits(&mut place(&workload, 0), Pattern::Random, 30);
            let files: Vec<_> = seen.iter().map(|(file, _)| *file).collect();
            assert_eq!(files, (0..30).map(|n| n % 3).collect::<Vec<_>>());
        }
        let mut place = place(&workload, 0);
        let mut rng = Rng::new(1);
        let files: Vec<_> = (0..4).map(|_| place.any_file(&mut rng)).collect();
        assert_eq!(files, [0, 1, 2, 0]);
    }

    #[test]
    fn the_wanted_blocks_are_the_same_for_every_job() {
        let draw = Draw::Zipf { theta: 1.5 };
        let workload = Workload { jobs: 2, file_bytes: 1 << 22, draw, ..workload() };
        let hottest = |index| {
            let mut counts = BTreeMap::new();
            for visit in visits(&mut place(&workload, index), Pattern::Random, 5000) {
                *counts.entry(visit).or_insert(0) += 1;
            }
            counts.into_iter().max_by_key(|(_, count)| *count).unwrap()
        };
        let (one, other) = (hottest(0), hottest(1));
        assert_eq!(one.0, other.0);
        assert!(one.1 > 1500, "{}", one.1);
    }

    #[test]
    fn a_mixed_job_goes_on_where_it_jumped_to() {
        let workload = Workload { file_bytes: 1 << 30, ..workload() };
        let pattern = Pattern::Mixed { random_percent: 25 };
        let seen = visits(&mut place(&workload, 0), pattern, 10_000);
        let on = seen.windows(2).filter(|pair| pair[1].1 == pair[0].1 + 1).count();
        assert!((7300..7700).contains(&on), "{on}");
    }

    #[test]
    fn a_pass_begins_at_every_aligned_place_once_whatever_the_region() {
        for (align, bytes) in [(512, 100_000), (4096, 100_000), (5000, 100_000), (8192, 65_536)] {
            let region = Region { offset: 1000, bytes: Some(bytes), job_increment: 0 };
            let workload = Workload {
                file_bytes: 1 << 20,
                region,
                align_bytes: Some(align),
                draw: Draw::Permuted,
                ..workload()
            };
            let mut place = place(&workload, 0);
            let places = (bytes - 4096) / u64::from(align) + 1;
            let mut rng = Rng::new(1);
            for _ in 0..2 {
                let pass: BTreeSet<_> = (0..places)
                    .filter_map(|_| place.next(Pattern::Random, 4096, &mut rng))
                    .map(|spot| spot.offset)
                    .collect();
                assert_eq!(pass.len() as u64, places, "aligned to {align}");
            }
        }
    }

    #[test]
    fn alignment_and_sizes_never_lead_past_the_region() {
        for draw in [Draw::Independent, Draw::Permuted, Draw::Zipf { theta: 0.8 }] {
            for align_bytes in [None, Some(512), Some(8192)] {
                let region = Region { offset: 4096, bytes: Some(100_000), job_increment: 0 };
                let workload = Workload {
                    file_bytes: 1 << 20,
                    region,
                    draw: draw.clone(),
                    align_bytes,
                    read_sizes: vec![
                        crate::workload::SizeShare { bytes: 4096, percent: 50 },
                        crate::workload::SizeShare { bytes: 65_536, percent: 50 },
                    ],
                    ..workload()
                };
                let mut place = place(&workload, 0);
                let mut rng = Rng::new(5);
                for turn in 0..2000 {
                    let bytes = if turn % 2 == 0 { 4096 } else { 65_536 };
                    let spot = place.next(Pattern::Random, bytes, &mut rng).unwrap();
                    assert_eq!(spot.bytes, bytes);
                    assert!(spot.offset >= 4096);
                    assert!(spot.offset + u64::from(bytes) <= 104_096, "{spot:?}");
                    let unit = u64::from(align_bytes.unwrap_or(4096));
                    assert_eq!((spot.offset - 4096) % unit, 0, "{spot:?}");
                }
            }
        }
    }
}
