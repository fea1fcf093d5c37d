//! The search for the number up to which more of something helps: 1, 2, 4, 8 and so on, until a
//! doubling gains less than 5 %.

/// Gain of a doubling, as a part, below which it is not worth it.
const GAIN: f64 = 0.05;

/// Decides which number to try.
#[derive(Clone, Debug)]
pub struct ScaleSearch {
    most: u32,
    /// Doublings without a gain after which it ends.
    patience: usize,
    points: Vec<(u32, f64)>,
}

/// The answer of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    /// The number beyond which doubling gains less than 5 %.
    pub number: u32,
    /// Operations a second with it.
    pub iops: f64,
    /// The last gain that was still worth it led here, so more might help: the bound was reached.
    pub bounded: bool,
}

impl ScaleSearch {
    /// A search from 1 to `most`, which goes on for `patience` doublings that gain nothing.
    #[must_use]
    pub const fn new(most: u32, patience: usize) -> Self {
        Self { most, patience, points: Vec::new() }
    }

    /// The next number to try; `None` if enough is known.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        let Some((last, _)) = self.points.last() else { return Some(1) };
        let next = last.saturating_mul(2);
        (next <= self.most && self.idle() < self.patience.max(1)).then_some(next)
    }

    /// Takes the operations a second that `number` gave.
    pub fn tell(&mut self, number: u32, iops: f64) {
        self.points.push((number, iops));
    }

    /// Doublings since the last that was worth it.
    fn idle(&self) -> usize {
        self.points.len().saturating_sub(1).saturating_sub(self.worth())
    }

    /// Position of the last point that gained over all before it.
    fn worth(&self) -> usize {
        let (mut best, mut at) = (0.0, 0);
        for (index, (_, iops)) in self.points.iter().enumerate() {
            if index == 0 || *iops > best * (1.0 + GAIN) {
                (best, at) = (*iops, index);
            }
        }
        at
    }

    /// The answer; `None` before the first figure.
    #[must_use]
    pub fn enough(&self) -> Option<Enough> {
        let (number, iops) = *self.points.get(self.worth())?;
        let bounded = self.idle() == 0 && number.saturating_mul(2) > self.most;
        Some(Enough { number, iops, bounded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(most: u32, patience: usize, server: impl Fn(u32) -> f64) -> (Enough, Vec<u32>) {
        let mut search = ScaleSearch::new(most, patience);
        let mut tried = Vec::new();
        while let Some(number) = search.next() {
            search.tell(number, server(number));
            tried.push(number);
        }
        (search.enough().unwrap(), tried)
    }

    #[test]
    fn it_ends_where_a_doubling_gains_nothing() {
        // Each connection brings 1000 a second, and the server does 6000.
        let server = |number: u32| f64::from(number * 1000).min(6000.0);
        let (enough, tried) = search(64, 1, server);
        assert_eq!((enough.number, enough.iops, enough.bounded), (8, 6000.0, false));
        assert_eq!(tried, [1, 2, 4, 8, 16]);
    }

    #[test]
    fn a_server_that_always_gains_ends_at_the_bound_and_that_is_said() {
        let (enough, tried) = search(16, 1, |number| f64::from(number) * 1000.0);
        assert_eq!((enough.number, enough.bounded), (16, true));
        assert_eq!(tried.len(), 5);
    }

    #[test]
    fn one_that_gets_worse_is_best_with_one() {
        let (enough, tried) = search(16, 1, |number| 1000.0 / f64::from(number));
        assert_eq!((enough.number, enough.bounded), (1, false));
        assert_eq!(tried, [1, 2]);
    }

    #[test]
    fn patience_passes_over_a_doubling_that_gained_nothing() {
        let server = |number: u32| if number < 8 { 1000.0 } else { 2000.0 };
        assert_eq!(search(64, 1, server).0.number, 1);
        assert_eq!(search(64, 3, server).0.number, 8);
    }

    #[test]
    fn nothing_tried_is_nothing_learnt() {
        assert_eq!(ScaleSearch::new(4, 1).enough(), None);
    }
}
