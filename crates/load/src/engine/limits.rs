//! The most that a target takes: sizes of requests and of files.

use crate::error::BenchError;
use crate::workload::Workload;
use weir_core::units::Bytes;

/// A limit of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name in the protocol.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
}

/// The limits of a target, as far as it has and tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The longest read.
    pub read: Option<Limit>,
    /// The longest write.
    pub write: Option<Limit>,
    /// The largest file.
    pub file: Option<Limit>,
}

impl Limit {
    /// The limit `name` of so many bytes. Zero is no limit: a server that knows none says so.
    #[must_use]
    pub fn new(name: &'static str, bytes: u64) -> Option<Self> {
        (bytes > 0).then_some(Self { name, bytes })
    }
}

impl Limits {
    /// The longest write of at most `wanted` bytes that the target takes whole.
    pub(super) fn longest_write(&self, wanted: u32) -> u32 {
        let most = self.write.map_or(u64::MAX, |limit| limit.bytes);
        u32::try_from(most).unwrap_or(u32::MAX).min(wanted)
    }

    /// Refuses a load that needs more. A server would cut longer requests short, and every one
    /// would be several.
    ///
    /// # Errors
    /// [`BenchError::Workload`] names the limit.
    pub fn check(&self, load: &Workload) -> Result<(), BenchError> {
        let longest = |sizes: &[crate::workload::SizeShare]| {
            let largest = sizes.iter().map(|share| share.bytes).max();
            u64::from(largest.unwrap_or(load.block_bytes))
        };
        let checks = [
            ("reads", load.reads(), longest(&load.read_sizes), self.read),
            ("writes", load.writes(), longest(&load.write_sizes), self.write),
            ("files", load.needs_files(), load.size_needed(), self.file),
        ];
        for (what, does, wanted, limit) in checks {
            if let Some(Limit { name, bytes }) = limit.filter(|limit| does && wanted > limit.bytes)
            {
                return Err(BenchError::Workload(format!(
                    "the server supports {what} of at most {} ({name}), but the load needs {}: use \
                     a smaller {}",
                    Bytes(bytes),
                    Bytes(wanted),
                    if what == "files" { "file size" } else { "block size" }
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{MixOp, OpShare, Operation, Pattern, SizeShare};

    fn limits() -> Limits {
        Limits {
            read: Limit::new("rtmax", 64 << 10),
            write: Limit::new("wtmax", 32 << 10),
            file: Limit::new("maxfilesize", 1 << 30),
        }
    }

    fn data(read_percent: u8, block_bytes: u32, file_bytes: u64) -> Workload {
        let operation = Operation::Data { pattern: Pattern::Random, read_percent };
        Workload { operation, block_bytes, file_bytes, ..Workload::default() }
    }

    fn refused(load: &Workload) -> Option<String> {
        limits().check(load).err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_too_large_is_refused_with_the_name_of_the_limit_and_what_fits_is_not() {
        let file = 1 << 30;
        for load in [data(100, 64 << 10, file), data(0, 32 << 10, file), data(50, 4096, file)] {
            assert_eq!(refused(&load), None);
        }
        let told = refused(&data(100, 128 << 10, file)).unwrap();
        assert_eq!(
            told,
            "the server supports reads of at most 64 KiB (rtmax), but the load needs 128 KiB: use \
             a smaller block size"
        );
        let told = refused(&data(50, 64 << 10, file)).unwrap();
        assert!(told.contains("writes of at most 32 KiB (wtmax)"), "{told}");
        let told = refused(&data(100, 4096, file + 1)).unwrap();
        assert!(told.contains("(maxfilesize)") && told.contains("smaller file size"), "{told}");
    }

    #[test]
    fn each_size_of_a_list_counts_and_only_what_is_done() {
        let sizes =
            vec![SizeShare { bytes: 4096, percent: 90 }, SizeShare { bytes: 1 << 20, percent: 10 }];
        let reads = Workload { read_sizes: sizes.clone(), ..data(100, 4096, 1 << 30) };
        assert!(refused(&reads).unwrap().contains("1 MiB"));
        let elsewhere = Workload { write_sizes: sizes, ..data(100, 4096, 1 << 30) };
        assert_eq!(refused(&elsewhere), None, "it writes nothing");
        let large = Workload { file_bytes: 1 << 40, block_bytes: 1 << 20, ..Workload::default() };
        for operation in [Operation::Null, Operation::CreateRemove, Operation::Getattr] {
            assert_eq!(refused(&Workload { operation, ..large.clone() }), None, "{operation:?}");
        }
        let mix = vec![OpShare { op: MixOp::WriteFile, percent: 100 }];
        let mixed = Workload { operation: Operation::Mix, mix, ..large };
        assert!(refused(&mixed).unwrap().contains("wtmax"));
    }

    #[test]
    fn a_limit_that_is_not_told_is_none() {
        assert_eq!(Limit::new("rtmax", 0), None);
        Limits::default().check(&data(50, 1 << 20, u64::MAX)).unwrap();
        assert_eq!(Limits::default().longest_write(1 << 20), 1 << 20);
        assert_eq!(limits().longest_write(1 << 20), 32 << 10);
        assert_eq!(limits().longest_write(4096), 4096);
    }
}
