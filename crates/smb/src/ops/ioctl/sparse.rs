//! FSCTL_SET_SPARSE, FSCTL_SET_ZERO_DATA and FSCTL_QUERY_ALLOCATED_RANGES (MS-FSA §2.1.5.10).
//!
//! Files of a store have holes whether or not a client has declared them sparse; what it declares
//! is kept and shown, and the ranges of a file that is not sparse are shown as allocated
//! throughout.

use crate::fscc::{self, RANGE_BYTES, encode_ranges, query_ranges, set_sparse, zero_data};
use crate::host::Host;
use crate::limits::IO_BYTES_MAX;
use crate::ops::Failure;
use crate::ops::access::WRITES;
use crate::ops::info::granted;
use crate::ops::stable::write_through;
use crate::wire::{AccessMask, Status};
use alloc::vec::Vec;
use weir_core::{Credentials, DosAttributes, FileKind, SetDetails, Store};
use weir_state::{Mode, Range};

/// Most ranges in one answer: those that the largest one holds.
const RANGES_MAX: usize = IO_BYTES_MAX as usize / RANGE_BYTES;

/// Declares a file sparse, or no longer so.
pub(super) async fn set<H: Host>(
    host: &H,
    open: &H::Open,
    input: &[u8],
) -> Result<Status, Failure> {
    if !open.granted.intersects(WRITES | AccessMask::WRITE_ATTRIBUTES) {
        return Err(Status::ACCESS_DENIED.into());
    }
    regular::<H>(open)?;
    let (_, now) = host.store().details(&open.object).await?;
    let mut dos = now.dos;
    dos.set(DosAttributes::SPARSE, set_sparse(input));
    if dos != now.dos {
        let set = SetDetails { dos: Some(dos), ..SetDetails::default() };
        host.store().set_details(&open.object, &set, &Credentials::ROOT).await?;
    }
    Ok(Status::SUCCESS)
}

/// Makes a range read as zeros, as far as the file reaches.
pub(super) async fn zero<H: Host>(
    host: &H,
    open: &H::Open,
    input: &[u8],
) -> Result<Status, Failure> {
    granted(open, AccessMask::WRITE_DATA)?;
    regular::<H>(open)?;
    let range = zero_data(input).map_err(|_| Status::INVALID_PARAMETER)?;
    if range.length > 0 {
        let span = Range::new(range.offset, range.length);
        let io = host.begin_io(open, span, Mode::Exclusive).await?;
        let end = range.offset.saturating_add(range.length);
        let done = host.store().zero_range(&open.object, range.offset, end).await;
        drop(io);
        done?;
    }
    write_through(host, open).await?;
    Ok(Status::SUCCESS)
}

/// Appends the parts of a range that hold data, as many as fit `max` bytes.
pub(super) async fn allocated<H: Host>(
    host: &H,
    open: &H::Open,
    input: &[u8],
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    granted(open, AccessMask::READ_DATA)?;
    regular::<H>(open)?;
    let asked = query_ranges(input).map_err(|_| Status::INVALID_PARAMETER)?;
    let (attr, details) = host.store().details(&open.object).await?;
    let end = asked.offset.saturating_add(asked.length).min(attr.size);
    let Some(length) = end.checked_sub(asked.offset).filter(|length| *length > 0) else {
        return Ok(Status::SUCCESS);
    };
    let fit = (max / RANGE_BYTES).min(RANGES_MAX);
    let whole = if details.dos.contains(DosAttributes::SPARSE) {
        // One more than fits, to know of it.
        let most = fit.saturating_add(1);
        let store = host.store();
        let found = store.allocated_ranges(&open.object, asked.offset, end, most).await?;
        let ranges = found.ranges.iter().map(|range| fscc::Range {
            offset: range.start,
            length: range.end.saturating_sub(range.start),
        });
        encode_ranges(ranges, max, out)
    } else {
        encode_ranges([fscc::Range { offset: asked.offset, length }], max, out)
    };
    match whole {
        true => Ok(Status::SUCCESS),
        false if fit == 0 => Err(Status::BUFFER_TOO_SMALL.into()),
        false => Ok(Status::BUFFER_OVERFLOW),
    }
}

fn regular<H: Host>(open: &H::Open) -> Result<(), Failure> {
    if open.kind == FileKind::Regular { Ok(()) } else { Err(Status::INVALID_PARAMETER.into()) }
}
