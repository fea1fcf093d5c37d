//! Orders of chance over numbers too many to keep a list of: a permutation that is computed, and
//! the distributions of Zipf and Pareto, and one close to the normal one.

use weir_core::rng::{Rng, mix};

const ROUNDS: u64 = 4;

/// A permutation of the numbers below a bound, in an order that follows from a key: a Feistel
/// network over the next power of four, walked until the number is in range (cycle walking; Black
/// and Rogaway 2002). It takes no memory and on average less than four steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// Of the numbers below `count`, which is not zero.
    pub(super) const fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let half_bits = if bits < 2 { 1 } else { bits.div_ceil(2) };
        Self { count, half_bits, key }
    }

    /// The number at `index`, which is below the bound.
    pub(super) fn at(&self, index: u64) -> u64 {
        let mut number = index % self.count.max(1);
        loop {
            number = self.scramble(number);
            if number < self.count.max(1) {
                return number;
            }
        }
    }

    const fn scramble(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        let mut round = 0;
        while round < ROUNDS {
            let changed = left ^ (mix(right ^ mix(self.key.wrapping_add(round))) & mask);
            (left, right) = (right, changed);
            round += 1;
        }
        (left << self.half_bits) | right
    }
}

/// Ranks below a bound, the k-th (from 1) with a weight of k^-theta: rejection-inversion sampling
/// (Hörmann and Derflinger 1996), whose cost does not depend on the bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: f64,
    theta: f64,
    /// The integral up to half before the first rank, and up to half behind the last.
    from: f64,
    to: f64,
    /// Ranks this near to the number drawn are always taken.
    near: f64,
}

impl Zipf {
    /// Of `count` ranks; `theta` is over 0 and not 1.
    #[expect(clippy::cast_precision_loss, reason = "the weight of ranks over 2^52 is nothing")]
    pub(super) fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self { count: count.max(1) as f64, theta, from: 0.0, to: 0.0, near: 0.0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(zipf.count + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// The next rank, from 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the bound, which came from such a number"
    )]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let drawn = self.to + rng.unit() * (self.from - self.to);
            let place = self.inverse(drawn);
            let rank = place.round().clamp(1.0, self.count);
            if rank - place <= self.near || drawn >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, rank: f64) -> f64 {
        rank.powf(-self.theta)
    }

    fn integral(&self, rank: f64) -> f64 {
        (rank.powf(1.0 - self.theta) - 1.0) / (1.0 - self.theta)
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding may take it below zero at the very end of the range.
        (1.0 + (1.0 - self.theta) * area).max(0.0).powf(1.0 / (1.0 - self.theta))
    }
}

/// Ranks below a bound by Pareto's law: the first `x` of them, as a part of all, come up in a part
/// of `x` to the power of ln(1 - h) / ln(h) of all draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pareto {
    last: f64,
    power: f64,
}

impl Pareto {
    /// Of `count` ranks; `h` is over 0 and below 1.
    #[expect(clippy::cast_precision_loss, reason = "ranks over 2^52 are never told apart")]
    pub(super) fn new(count: u64, h: f64) -> Self {
        Self { last: count.saturating_sub(1) as f64, power: h.ln() / (1.0 - h).ln() }
    }

    /// The next rank, from 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the bound, which came from such a number"
    )]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        (self.last * rng.unit().powf(self.power)) as u64
    }
}

/// Numbers below a bound of which those in the middle are the most frequent: the mean of twelve
/// even numbers (the standard deviation is a twelfth of the bound), moved by an even number of at
/// most half the deviation. It is fio's `normal`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Normal {
    count: f64,
    /// Part of the bound.
    deviation: f64,
}

impl Normal {
    const TERMS: u32 = 12;

    /// Of `count` numbers, with a deviation in percent of them.
    #[expect(clippy::cast_precision_loss, reason = "numbers over 2^52 are never told apart")]
    pub(super) fn new(count: u64, deviation_percent: f64) -> Self {
        // fio moves no number by more than a quarter of all.
        let deviation = (deviation_percent / 100.0).min(0.5);
        Self { count: count.max(1) as f64, deviation }
    }

    /// The next number.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "kept between 0 and the bound, which came from such a number"
    )]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let sum: f64 = (0..Self::TERMS).map(|_| rng.unit()).sum();
        let middle = sum / f64::from(Self::TERMS);
        let mut moved = (rng.unit() - 0.5) * self.deviation;
        while !(0.0..1.0).contains(&(middle + moved)) {
            moved /= 2.0;
        }
        (((middle + moved) * self.count) as u64).min(self.count as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The part of 100,000 draws below `count` that its most frequent hundredth, tenth and fifth
    /// have, in percent.
    fn concentration(count: usize, mut draw: impl FnMut(&mut Rng) -> u64) -> [f64; 3] {
        let mut rng = Rng::new(11);
        let mut seen = vec![0_u32; count];
        for _ in 0..100_000 {
            seen[usize::try_from(draw(&mut rng)).unwrap()] += 1;
        }
        seen.sort_unstable_by(|one, other| other.cmp(one));
        [100, 10, 5].map(|part| f64::from(seen[..count / part].iter().sum::<u32>()) / 1000.0)
    }

    // The figures beside these are those of fio 3.33, of 20,480 requests over 1,024 blocks.
    #[test]
    fn distributions_are_as_concentrated_as_those_of_fio() {
        let (zipf, pareto) = (Zipf::new(1024, 1.2), Pareto::new(1024, 0.2));
        let (narrow, wide) = (Normal::new(1024, 10.0), Normal::new(1024, 40.0));
        for (found, fio) in [
            (concentration(1024, |rng| zipf.draw(rng)), [58.5, 84.3, 90.2]),
            (concentration(1024, |rng| pareto.draw(rng)), [52.7, 72.5, 80.3]),
            (concentration(1024, |rng| narrow.draw(rng)), [5.1, 42.9, 74.3]),
            (concentration(1024, |rng| wide.draw(rng)), [3.0, 26.5, 49.2]),
        ] {
            for (found, fio) in found.iter().zip(fio) {
                assert!((found - fio).abs() < 3.0, "{found} and {fio}");
            }
        }
    }

    #[test]
    fn pareto_s_law_holds_again_within_the_part() {
        let pareto = Pareto::new(1 << 20, 0.2);
        let mut rng = Rng::new(3);
        let ranks: Vec<u64> = (0..100_000).map(|_| pareto.draw(&mut rng)).collect();
        for (part, wanted) in [(0.2, 0.8), (0.04, 0.64), (0.008, 0.512)] {
            let below = ranks.iter().filter(|rank| (**rank as f64) < part * 1_048_576.0).count();
            assert!((below as f64 / 1e5 - wanted).abs() < 0.01, "{part}: {below}");
        }
    }

    #[test]
    fn no_number_is_beyond_the_bound() {
        let mut rng = Rng::new(5);
        for count in [1, 2, 3, 1000] {
            for deviation in [0.0, 1.0, 50.0, 100.0] {
                let normal = Normal::new(count, deviation);
                assert!((0..2000).all(|_| normal.draw(&mut rng) < count), "{count} {deviation}");
            }
            let pareto = Pareto::new(count, 0.9);
            assert!((0..2000).all(|_| pareto.draw(&mut rng) < count), "{count}");
        }
    }

    #[test]
    fn every_number_comes_up_once_whatever_the_bound() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
            let order = Permutation::new(count, 7);
            let all: BTreeSet<_> = (0..count).map(|index| order.at(index)).collect();
            assert_eq!(all.len() as u64, count);
            assert_eq!(all.last(), Some(&(count - 1)));
        }
    }

    #[test]
    fn another_key_gives_another_order_and_neither_goes_up() {
        let list = |key| (0..1000).map(|i| Permutation::new(1000, key).at(i)).collect::<Vec<_>>();
        assert_ne!(list(1), list(2));
        let rising = list(1).windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(rising < 20, "{rising}");
    }

    #[test]
    fn a_bound_far_beyond_memory_costs_nothing() {
        let order = Permutation::new(u64::MAX / 3, 5);
        assert!((0..100).all(|index| order.at(index) < u64::MAX / 3));
    }

    #[test]
    fn ranks_come_up_by_their_weight() {
        for theta in [0.5, 0.99, 1.2, 3.0] {
            let zipf = Zipf::new(1000, theta);
            let mut rng = Rng::new(3);
            let mut seen = vec![0_u32; 1000];
            for _ in 0..200_000 {
                seen[usize::try_from(zipf.draw(&mut rng)).unwrap()] += 1;
            }
            let sum: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-theta)).sum();
            for rank in [1_u32, 2, 3, 10] {
                let wanted = 200_000.0 * f64::from(rank).powf(-theta) / sum;
                let found = f64::from(seen[usize::try_from(rank).unwrap() - 1]);
                let allowed = 5.0 * wanted.sqrt() + 1.0;
                assert!((found - wanted).abs() < allowed, "{theta} {rank}: {found} {wanted}");
            }
        }
    }
}
