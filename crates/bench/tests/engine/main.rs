//! The engines against small targets: what is sent arrives, what comes back is counted, and
//! damage is found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod loads;
mod paths;
mod responder;
mod verification;

use weir_bench::{Layout, Length, Operation, Pattern, Workload};

const READ: u32 = 6;
const WRITE: u32 = 7;
const MKDIR: u32 = 9;
const REMOVE: u32 = 12;

/// A small workload that ends by a count.
fn workload(pattern: Pattern, read_percent: u8, operations: u64) -> Workload {
    Workload {
        operation: Operation::Data { pattern, read_percent },
        length: Length::Operations(operations),
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..Workload::default()
    }
}
