//! `ceph-client`: a process that uses CephFS without any protocol, through libcephfs itself or
//! through Weir's store on it. `peers` runs it as a side of its own, so that its processor time is
//! that of its side alone, as a server's is.
//!
//! It lays out its files, prints `ready`, and then carries out one order a line from its standard
//! input until that ends. Not here: what is compared with what.

#[cfg(feature = "peers")]
mod library;
#[cfg(feature = "peers")]
mod run;
#[cfg(feature = "peers")]
mod serve;
#[cfg(feature = "peers")]
mod store;

use super::plan::Work;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
#[cfg(feature = "peers")]
pub(crate) use serve::CephClient;
use std::fmt;
use std::str::FromStr;

/// Word that the files are laid out.
pub(super) const READY: &str = "ready";
/// Word that the warm-up is over.
pub(super) const MEASURING: &str = "measuring";

/// The way to CephFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Through {
    /// libcephfs itself.
    Library,
    /// Weir's store.
    Store,
}

impl Through {
    /// Its word on the command line.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Store => "store",
        }
    }
}

/// A load to apply and measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// The workload.
    pub(super) work: Work,
    /// Threads.
    pub(super) threads: u32,
    /// Mounts that the threads share.
    pub(super) mounts: u32,
    /// Seconds before the measurement.
    pub(super) warmup_s: f64,
    /// Seconds of the measurement.
    pub(super) measured_s: f64,
    /// Start of the pseudo-random sequences.
    pub(super) seed: u64,
}

/// The answer to an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    /// Operations of the measurement.
    pub(super) operations: u64,
    /// Its seconds.
    pub(super) seconds: f64,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, threads, mounts, warmup_s, measured_s, seed } = self;
        write!(f, "{} {threads} {mounts} {warmup_s} {measured_s} {seed}", work.key)
    }
}

impl FromStr for Order {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [key, threads, mounts, warmup_s, measured_s, seed] = words.as_slice() else {
            anyhow::bail!("{line:?} is no order");
        };
        Ok(Self {
            work: Work::of(key).with_context(|| format!("there is no workload {key:?}"))?,
            threads: threads.parse()?,
            mounts: mounts.parse()?,
            warmup_s: warmup_s.parse()?,
            measured_s: measured_s.parse()?,
            seed: seed.parse()?,
        })
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operations, self.seconds)
    }
}

impl FromStr for Counted {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> Result<Self> {
        let (operations, seconds) =
            line.trim().split_once(' ').with_context(|| format!("{line:?} is no count"))?;
        let counted = Self { operations: operations.parse()?, seconds: seconds.parse()? };
        ensure!(counted.operations > 0 && counted.seconds > 0.0, "nothing completed");
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_are_read_as_they_are_written() {
        let order = Order {
            work: super::super::plan::WORKS[3],
            threads: 16,
            mounts: 2,
            warmup_s: 0.5,
            measured_s: 3.0,
            seed: 7,
        };
        let line = order.to_string();
        assert_eq!(line, "read-64k 16 2 0.5 3 7");
        assert_eq!(line.parse::<Order>().unwrap().to_string(), line);
        assert!("read-64k 16 2 0.5 3".parse::<Order>().is_err());
        assert!("nothing 16 2 0.5 3 7".parse::<Order>().is_err());
        let counted = Counted { operations: 12, seconds: 3.25 };
        assert_eq!(counted.to_string().parse::<Counted>().unwrap(), counted);
        assert!("0 3.25".parse::<Counted>().is_err() && "x".parse::<Counted>().is_err());
    }
}
