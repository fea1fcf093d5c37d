//! The message that a change commits a file system beyond its capacity.

use std::fmt;
use std::path::PathBuf;
use weir_core::units::{Bytes, Rate};
use weir_qos::admission::{Admission, Beyond, Excess};
use weir_qos::rate::{BytesPerSecond, Iops};

/// A file system that a change commits to more than it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overcommitment {
    /// The directory of the calibration.
    pub directory: PathBuf,
    /// The overcommitted resource.
    pub excess: Excess,
    /// The plan for the capacity, and the part that may be committed.
    pub admission: Admission,
}

impl fmt::Display for Overcommitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, excess, admission: Admission { plan, .. } } = self;
        write!(f, "the file system of {} would be committed to ", directory.display())?;
        let rate = excess.rate.map(|Beyond { before, after, holds, allowed }| {
            let text = |BytesPerSecond(rate): BytesPerSecond| format!("{:.2}", Rate(rate));
            let block = Bytes(plan.block_bytes.into()).to_string();
            self.told([before, after, holds, allowed].map(text), &block)
        });
        let iops = excess.iops.map(|Beyond { before, after, holds, allowed }| {
            let text = |iops: Iops| iops.to_string();
            let block = Bytes(plan.iops_block_bytes.into()).to_string();
            self.told([before, after, holds, allowed].map(text), &block)
        });
        let parts: Vec<_> = rate.into_iter().chain(iops).collect();
        f.write_str(&parts.join(", and to "))
    }
}

impl Overcommitment {
    fn told(&self, [before, after, holds, allowed]: [String; 4], block: &str) -> String {
        let Admission { plan, overcommit_percent: percent, .. } = &self.admission;
        let part = match percent {
            100 => String::new(),
            _ => format!(", and {allowed} ({percent} %) may be committed"),
        };
        let mix = match plan.mix {
            weir_qos::admission::Mix::Worst => "the worst mix".to_owned(),
            weir_qos::admission::Mix::Reads(mix) => format!("{mix} % reads"),
        };
        format!(
            "{after} (now {before}); its measured capacity is {holds} with blocks of {block} at {mix}{part}"
        )
    }
}
