//! `nfstime3`.

use crate::xdr::xdr_struct;
use weir_core::{FsError, FsResult, Timestamp};

xdr_struct! {
    /// A time since 1970-01-01 UTC (RFC 1813 §2.6, `nfstime3`).
    pub struct NfsTime3 {
        /// Whole seconds.
        pub seconds: u32,
        /// Nanoseconds below one second; a peer may send more.
        pub nseconds: u32,
    }
}

const NANOS_PER_SECOND: u32 = 1_000_000_000;

impl NfsTime3 {
    /// The time as the store takes it.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if the nanoseconds make a second or more.
    pub fn to_timestamp(self) -> FsResult<Timestamp> {
        if self.nseconds >= NANOS_PER_SECOND {
            return Err(FsError::Invalid);
        }
        Ok(Timestamp { secs: i64::from(self.seconds), nanos: self.nseconds })
    }
}

/// Times the protocol can't express become the nearest it can: the start of 1970, or 2106.
impl From<Timestamp> for NfsTime3 {
    #[inline]
    fn from(time: Timestamp) -> Self {
        match u32::try_from(time.secs) {
            Ok(seconds) => Self { seconds, nseconds: time.nanos },
            Err(_) if time.secs < 0 => Self { seconds: 0, nseconds: 0 },
            Err(_) => Self { seconds: u32::MAX, nseconds: NANOS_PER_SECOND - 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_where_both_sides_have_them() {
        for (seconds, nseconds) in [(0, 0), (1_700_000_000, 999_999_999), (u32::MAX, 5)] {
            let time = NfsTime3 { seconds, nseconds };
            assert_eq!(NfsTime3::from(time.to_timestamp().unwrap()), time);
        }
    }

    #[test]
    fn times_out_of_range_become_the_nearest() {
        let at = |secs| NfsTime3::from(Timestamp { secs, nanos: 7 });
        assert_eq!(at(-1), NfsTime3 { seconds: 0, nseconds: 0 });
        assert_eq!(at(1 << 32), NfsTime3 { seconds: u32::MAX, nseconds: 999_999_999 });
    }

    #[test]
    fn a_second_of_nanoseconds_is_invalid() {
        let time = NfsTime3 { seconds: 1, nseconds: 1_000_000_000 };
        assert_eq!(time.to_timestamp(), Err(FsError::Invalid));
    }
}
