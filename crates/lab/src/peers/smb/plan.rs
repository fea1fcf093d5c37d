//! The SMB rows, and the bars that Weir has to meet beside smbd.

use super::super::plan::{InFlight, Work, data};
use weir_load::SmbSecurity;
use weir_load::workload::{Operation, Pattern};

/// The other way to meet the bar of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Or {
    /// There is none.
    Nothing,
    /// At most so many times the bare loop.
    Bare(f64),
    /// At most the cost of the row `of` without protection and 1.25 times that of the cipher
    /// alone.
    Cipher {
        /// The name of the unprotected row.
        of: &'static str,
        /// The cipher's name for `openssl speed`.
        cipher: &'static str,
    },
}

/// One workload, its bars, and the known costs of smbd and the bare loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// Shown in tables, and what `--only` selects by.
    pub(crate) name: &'static str,
    /// The operation of each request.
    pub(crate) operation: Operation,
    /// Bytes of a READ or WRITE.
    pub(crate) block_bytes: u32,
    /// The protection of messages.
    pub(crate) security: SmbSecurity,
    /// The bar against smbd's processor time.
    pub(crate) cpu_ratio: f64,
    /// The other way to meet it.
    pub(crate) or: Or,
    /// The bar against smbd's operations per second.
    pub(crate) rate_ratio: f64,
    /// Known costs in µs of a tuned smbd and of the bare loop, on one machine at the same time.
    /// Dearer against the bare loop of the same rounds than 1.15 times that, and smbd was not
    /// itself: the row is void. Absent where that is not known.
    pub(crate) known_us: Option<(f64, f64)>,
}

impl Trial {
    /// Its load.
    pub(super) const fn work(&self) -> Work {
        let Self { name, operation, block_bytes, .. } = *self;
        Work { name, operation, block_bytes, in_flight: InFlight::Many }
    }

    /// The most that smbd may cost for the row to count, where the bare loop takes `bare_us`.
    pub(super) fn smbd_bound_us(&self, bare_us: f64) -> Option<f64> {
        const TOLERANCE: f64 = 1.15;
        let (smbd, bare) = self.known_us?;
        Some(TOLERANCE * smbd / bare * bare_us)
    }
}

const fn random(name: &'static str, block_bytes: u32, read_percent: u8, cpu_ratio: f64) -> Trial {
    Trial {
        name,
        operation: data(Pattern::Random, read_percent),
        block_bytes,
        security: SmbSecurity::None,
        cpu_ratio,
        or: Or::Nothing,
        rate_ratio: 1.6,
        known_us: None,
    }
}

const fn sequential_read(name: &'static str, block_bytes: u32, known_us: (f64, f64)) -> Trial {
    Trial {
        operation: data(Pattern::Sequential, 100),
        or: Or::Bare(1.15),
        rate_ratio: 1.1,
        known_us: Some(known_us),
        ..random(name, block_bytes, 100, 0.80)
    }
}

const fn sequential_write(name: &'static str, block_bytes: u32, known_us: (f64, f64)) -> Trial {
    Trial {
        operation: data(Pattern::Sequential, 0),
        cpu_ratio: 1.0,
        rate_ratio: 1.0,
        ..sequential_read(name, block_bytes, known_us)
    }
}

const fn metadata(name: &'static str, operation: Operation, cpu_ratio: f64) -> Trial {
    Trial { operation, rate_ratio: 2.5, ..random(name, 4096, 0, cpu_ratio) }
}

const fn protected(name: &'static str, security: SmbSecurity, cipher: &'static str) -> Trial {
    Trial {
        security,
        operation: data(Pattern::Sequential, 100),
        or: Or::Cipher { of: READ_64K, cipher },
        rate_ratio: 1.0,
        ..random(name, 65_536, 100, 0.85)
    }
}

const READ_64K: &str = "SMB 64 KiB sequential read";

/// Every SMB workload, in the order of the published bars. The known costs are those of Samba 4.17,
/// tuned, and of the system calls alone, measured on the same machine; ratios are taken from them.
pub(crate) const TRIALS: [Trial; 14] = [
    Trial { known_us: Some((9.2, 1.85)), ..random("SMB 4 KiB random read", 4096, 100, 0.50) },
    random("SMB 8 KiB random read", 8192, 100, 0.60),
    Trial { known_us: Some((18.0, 2.5)), ..random("SMB 4 KiB random write", 4096, 0, 0.50) },
    random("SMB 8 KiB random write", 8192, 0, 0.50),
    sequential_read(READ_64K, 65_536, (22.6, 11.6)),
    sequential_write("SMB 64 KiB sequential write", 65_536, (17.5, 19.5)),
    sequential_read("SMB 256 KiB sequential read", 262_144, (66.6, 41.0)),
    sequential_write("SMB 256 KiB sequential write", 262_144, (71.6, 113.0)),
    Trial { known_us: Some((9.7, 0.5)), ..metadata("SMB ECHO", Operation::Null, 0.15) },
    metadata("SMB QUERY_INFO", Operation::Getattr, 0.25),
    metadata("SMB open + close", Operation::Lookup, 0.25),
    metadata("SMB create + delete", Operation::CreateRemove, 0.25),
    protected("SMB 64 KiB read, signed", SmbSecurity::Sign, "ghash"),
    protected("SMB 64 KiB read, sealed", SmbSecurity::Seal, "aes-128-gcm"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_told_from_those_of_nfs() {
        let names: std::collections::BTreeSet<_> = TRIALS.iter().map(|trial| trial.name).collect();
        assert_eq!(names.len(), TRIALS.len());
        assert!(names.iter().all(|name| name.starts_with("SMB ")));
    }

    #[test]
    fn a_protected_row_follows_the_row_that_it_is_judged_by() {
        for (place, trial) in TRIALS.iter().enumerate() {
            let Or::Cipher { of, .. } = trial.or else { continue };
            let plain = TRIALS.iter().position(|one| one.name == of).unwrap();
            assert!(plain < place && TRIALS[plain].block_bytes == trial.block_bytes);
        }
    }

    #[test]
    fn smbd_counts_up_to_fifteen_percent_above_its_known_ratio_to_the_bare_loop() {
        let bound = TRIALS[0].smbd_bound_us(3.0).unwrap();
        assert!((bound - 1.15 * 9.2 / 1.85 * 3.0).abs() < 1e-9, "{bound}");
        assert_eq!(TRIALS[1].smbd_bound_us(3.0), None);
    }
}
