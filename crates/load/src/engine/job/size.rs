//! The sizes of requests.

use crate::workload::SizeShare;
use weir_core::rng::Rng;

/// The sizes of one kind of request.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Always(u32),
    /// The bytes for all numbers below a bound that are not below the one before.
    Drawn(Vec<(u64, u32)>),
}

impl Sizes {
    /// The sizes in these `shares`; always `block_bytes` if there are none.
    pub(super) fn new(shares: &[SizeShare], block_bytes: u32) -> Self {
        match shares {
            [] => Self::Always(block_bytes),
            [only] => Self::Always(only.bytes),
            several => {
                let mut bound = 0;
                let add = |share: &SizeShare| {
                    bound += u64::from(share.percent);
                    (bound, share.bytes)
                };
                Self::Drawn(several.iter().map(add).collect())
            }
        }
    }

    /// The size of the next request.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u32 {
        match self {
            Self::Always(bytes) => *bytes,
            Self::Drawn(bounds) => {
                let number = rng.below(100);
                let drawn = bounds.iter().find(|(bound, _)| number < *bound).or(bounds.last());
                drawn.map_or(1, |(_, bytes)| *bytes)
            }
        }
    }

    /// The smallest of them.
    pub(super) fn least(&self) -> u32 {
        match self {
            Self::Always(bytes) => *bytes,
            Self::Drawn(bounds) => bounds.iter().map(|(_, bytes)| *bytes).min().unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_up_in_their_parts() {
        let shares = [(4096, 60), (8192, 30), (65_536, 10)];
        let shares = shares.map(|(bytes, percent)| SizeShare { bytes, percent });
        let sizes = Sizes::new(&shares, 512);
        let mut rng = Rng::new(1);
        let all: Vec<_> = (0..10_000).map(|_| sizes.draw(&mut rng)).collect();
        for share in shares {
            let found = all.iter().filter(|bytes| **bytes == share.bytes).count();
            assert!(found.abs_diff(usize::from(share.percent) * 100) < 300, "{share:?}: {found}");
        }
        assert_eq!(sizes.least(), 4096);
    }

    #[test]
    fn without_a_list_all_are_blocks() {
        assert_eq!(Sizes::new(&[], 512).draw(&mut Rng::new(1)), 512);
    }
}
