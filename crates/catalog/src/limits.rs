//! Bounds of what the catalogue accepts, whatever the operator's own minimums are.

use weir_qos::contract::Floors;
use weir_qos::rate::{BytesPerSecond, Iops};

/// Longest name of a level, pool or volume, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Most service levels of the operator's own.
pub const LEVELS_MAX: usize = 256;
/// The highest rate of a level, 1 TiB/s per TiB: budgets of the largest pool stay exact.
pub const LEVEL_RATE_MAX: BytesPerSecond = BytesPerSecond(1 << 40);
/// The highest rate that can be assigned or set as a ceiling, 1 EiB/s.
pub const RATE_MAX: BytesPerSecond = BytesPerSecond(1 << 60);
/// The most operations a second that can be assigned or set as a ceiling.
pub const IOPS_MAX: Iops = Iops(1_000_000_000);
/// The lowest ceiling of files: under lower ones many files would have to be remembered for long,
/// as each owes what a large request takes.
pub const FILE_RATE_MIN: BytesPerSecond = BytesPerSecond::from_mib(1);
/// The least operations a second that a file may be limited to.
pub const FILE_IOPS_MIN: Iops = Iops(10);
/// Most capacity pools.
pub const POOLS_MAX: usize = 4096;
/// Most volumes, all pools together.
pub const VOLUMES_MAX: usize = 65_536;
/// Most tokens of the API; each request over TCP looks at all of them.
pub const TOKENS_MAX: usize = 256;
/// Most export rules of one volume; each request of a new client walks them.
pub const EXPORT_RULES_MAX: usize = 256;
/// Most share rules of one volume; each connection to the share walks them.
pub const SHARE_RULES_MAX: usize = 256;
/// Most users; each change of one reads all of them.
pub const USERS_MAX: usize = 16_384;
/// Most groups of users.
pub const GROUPS_MAX: usize = 4096;
/// Most groups that one user is in: tokens of Windows have no more.
pub const GROUPS_OF_USER_MAX: usize = 1024;
/// Largest pool, in bytes (1 EiB): sums of a pool's volumes stay exact in 64 bits.
pub const SIZE_BYTES_MAX: u64 = 1 << 60;
/// Most requests that are remembered so as not to carry them out twice.
pub const REQUESTS_MAX: usize = 1024;
/// Time for which these requests are remembered, in seconds.
pub const REQUEST_SECS: u64 = 24 * 60 * 60;
/// Longest answer that is remembered with one, in bytes.
pub const REQUEST_ANSWER_BYTES_MAX: usize = 64 << 10;
/// Most calibrations, one for each file system.
pub const CALIBRATIONS_MAX: usize = 1024;
/// Most measurements of one.
pub const CELLS_MAX: usize = 256;
/// Longest text of one of its conditions, in characters; what is longer is cut.
pub const CONDITION_CHARS_MAX: usize = 256;
/// Longest path of a pool's directory, in bytes.
pub const PATH_BYTES_MAX: usize = 2048;

/// The smallest sizes the operator allows. The services' own (1 TiB pools, 50 GiB volumes) would
/// keep Weir off a laptop, so these are configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minimums {
    /// Smallest pool, bytes.
    pub pool_bytes: u64,
    /// Smallest volume, bytes.
    pub volume_bytes: u64,
    /// The minimums that a custom pool must purchase.
    pub custom: Floors,
}

impl Default for Minimums {
    fn default() -> Self {
        Self { pool_bytes: 1 << 20, volume_bytes: 1 << 20, custom: Floors::default() }
    }
}
