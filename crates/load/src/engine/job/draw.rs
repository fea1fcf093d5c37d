//! Which block comes next in random order. A unit is the distance between two places at which
//! requests can begin; units are numbered over all files of a job, or over each file where the job
//! visits its files in turn.

use super::order::{Normal, Pareto, Permutation, Zipf};
use crate::workload::{Draw, Zone};
use weir_core::rng::{Rng, mix};

/// Ranks by how often they come up.
#[derive(Clone, Copy)]
enum Ranks {
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
}

impl Ranks {
    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Zipf(ranks) => ranks.draw(rng),
            Self::Pareto(ranks) => ranks.draw(rng),
            Self::Normal(ranks) => ranks.draw(rng),
        }
    }
}

/// The way to draw units.
enum Kind {
    Independent,
    Permuted {
        /// Units drawn until now.
        index: u64,
        key: u64,
    },
    Ranked {
        ranks: Ranks,
        order: Permutation,
    },
    /// For each zone a bound, as with sizes, and the units of a file that are in it.
    Zoned(Vec<(u64, u64, u64)>),
}

/// The units of a job, and the next of them.
pub(super) struct Drawer {
    kind: Kind,
    /// Units of one file.
    per_file: u64,
    files: u64,
}

/// A unit that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// A file and a unit of it, each counted from 0.
    Unit(u64, u64),
    /// Any place of any file.
    Any,
}

impl Drawer {
    /// Of `files` files of `per_file` units each; orders follow from `key`, except those that all
    /// jobs share, which follow from `seed`.
    pub(super) fn new(draw: &Draw, (files, per_file): (u64, u64), key: u64, seed: u64) -> Self {
        let (files, per_file) = (files.max(1), per_file.max(1));
        let units = files.saturating_mul(per_file);
        let ranked = |ranks| Kind::Ranked { ranks, order: Permutation::new(units, mix(seed)) };
        let kind = match draw {
            Draw::Independent => Kind::Independent,
            Draw::Permuted => Kind::Permuted { index: 0, key },
            Draw::Zipf { theta } => ranked(Ranks::Zipf(Zipf::new(units, *theta))),
            Draw::Pareto { h } => ranked(Ranks::Pareto(Pareto::new(units, *h))),
            Draw::Normal { deviation_percent } => {
                ranked(Ranks::Normal(Normal::new(units, *deviation_percent)))
            }
            Draw::Zoned { zones } => Kind::Zoned(zone_units(zones, per_file)),
        };
        Self { kind, per_file, files }
    }

    /// The next unit; in `file` if that is given.
    pub(super) fn next(&mut self, file: Option<u64>, rng: &mut Rng) -> Drawn {
        let (files, per_file) = (self.files, self.per_file);
        match &mut self.kind {
            Kind::Independent => Drawn::Any,
            Kind::Permuted { index, key } => {
                let number = *index;
                *index += 1;
                match file {
                    None => {
                        let units = files * per_file;
                        let pass = number - number % units;
                        let key = if pass == 0 { *key } else { mix(*key ^ mix(pass)) };
                        let unit = Permutation::new(units, key).at(number % units);
                        Drawn::Unit(unit / per_file, unit % per_file)
                    }
                    // Each file has passes of its own; all files are visited equally often.
                    Some(file) => {
                        let visit = number / files;
                        let key = mix(*key ^ mix(file + 1) ^ mix(visit / per_file));
                        Drawn::Unit(file, Permutation::new(per_file, key).at(visit % per_file))
                    }
                }
            }
            Kind::Ranked { ranks, order } => {
                let unit = order.at(ranks.draw(rng));
                Drawn::Unit(file.unwrap_or(unit / per_file), unit % per_file)
            }
            Kind::Zoned(zones) => {
                let number = rng.below(100);
                let zone = zones.iter().find(|(bound, ..)| number < *bound).or(zones.last());
                let (from, count) = zone.map_or((0, per_file), |(_, from, count)| (*from, *count));
                let file = file.unwrap_or_else(|| rng.below(files));
                Drawn::Unit(file, from + rng.below(count))
            }
        }
    }
}

/// The bounds of `zones` and their units, of which a file has `per_file`. A zone has at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of a number of units, and within them"
)]
fn zone_units(zones: &[Zone], per_file: u64) -> Vec<(u64, u64, u64)> {
    let (mut bound, mut percent) = (0, 0.0);
    let at = |percent: f64| ((per_file as f64 * percent / 100.0).round() as u64).min(per_file);
    let unit = |zone: &Zone| {
        bound += u64::from(zone.requests_percent);
        let from = at(percent).min(per_file - 1);
        percent += zone.size_percent;
        (bound, from, at(percent).saturating_sub(from).max(1))
    };
    zones.iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn zone(requests_percent: u8, size_percent: f64) -> Zone {
        Zone { requests_percent, size_percent }
    }

    fn unit(drawn: Drawn) -> (u64, u64) {
        match drawn {
            Drawn::Unit(file, unit) => (file, unit),
            Drawn::Any => panic!("any place"),
        }
    }

    #[test]
    fn zones_have_their_part_of_the_requests_and_of_each_file() {
        let zones = vec![zone(50, 5.0), zone(30, 15.0), zone(20, 80.0)];
        let mut drawer = Drawer::new(&Draw::Zoned { zones }, (2, 1000), 1, 1);
        let mut rng = Rng::new(1);
        let all: Vec<_> = (0..20_000).map(|_| unit(drawer.next(None, &mut rng))).collect();
        for (zone, wanted) in [(0..50, 10_000), (50..200, 6000), (200..1000, 4000)] {
            let found = all.iter().filter(|(_, unit)| zone.contains(unit)).count();
            assert!(found.abs_diff(wanted) < 300, "{zone:?}: {found}");
        }
        let first = all.iter().filter(|(file, _)| *file == 0).count();
        assert!(first.abs_diff(10_000) < 400, "{first}");
        let units: BTreeSet<_> = all.iter().filter(|(_, unit)| *unit < 50).collect();
        assert_eq!(units.len(), 100, "every unit of the first zone of both files");
    }

    #[test]
    fn zones_that_leave_room_are_all_that_is_visited_and_no_zone_is_empty() {
        let zones = vec![zone(99, 10.0), zone(1, 0.001)];
        let mut drawer = Drawer::new(&Draw::Zoned { zones }, (1, 100), 1, 1);
        let mut rng = Rng::new(1);
        let all: BTreeSet<_> = (0..5000).map(|_| unit(drawer.next(None, &mut rng)).1).collect();
        assert_eq!(all, (0..11).collect());
    }

    #[test]
    fn files_in_turn_have_passes_of_their_own() {
        let mut drawer = Drawer::new(&Draw::Permuted, (3, 8), 7, 1);
        let mut rng = Rng::new(1);
        let mut turn = || {
            let all: Vec<_> =
                (0..24).map(|visit| unit(drawer.next(Some(visit % 3), &mut rng))).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 24, "{all:?}");
            all
        };
        let passes = [turn(), turn()];
        assert_ne!(passes[0], passes[1]);
        let of = |file| passes[0].iter().filter(move |(f, _)| *f == file).map(|(_, unit)| unit);
        assert!(!of(0).eq(of(1)), "each file has an order of its own");
    }
}
