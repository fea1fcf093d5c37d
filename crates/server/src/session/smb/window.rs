//! The message ids of one connection: requests use them when they arrive, and answers grant new
//! ones when they are made (MS-SMB2 §3.3.4.1.2).
//!
//! A client that does not wait for its answers has no ids to send more than its window.

use crate::limits::CREDITS_UNDER_PRESSURE;
use crate::sync::{Mutex, lock};
use weir_smb::conn::{CREDITS_MAX, Credits, NotGranted};
use weir_smb::wire::Header;

/// Bytes of a connection's waiting requests at which it is granted no more credits than it needs to
/// go on.
const PARKED_BYTES_HIGH: u64 = 8 << 20;

/// The window.
pub(super) struct Window(Mutex<State>);

struct State {
    credits: Credits,
    /// The most unused message ids that the client is left with.
    most: u64,
}

impl Default for Window {
    /// The window of a new connection.
    fn default() -> Self {
        Self(Mutex::new(State { credits: Credits::default(), most: CREDITS_MAX }))
    }
}

impl Window {
    /// Uses the message ids of a request, while the requests of the connection hold `parked` bytes
    /// at gates.
    ///
    /// # Errors
    /// [`NotGranted`]: the connection is to be closed.
    pub(super) fn take(&self, request: &Header, parked: u64) -> Result<(), NotGranted> {
        let mut state = lock(&self.0);
        state.most = credits_most(parked);
        state.credits.take(request.message_id, request.credit_charge)
    }

    /// Grants up to `requested` message ids. Gives the number for the answer.
    pub(super) fn grant(&self, requested: u16) -> u16 {
        let State { credits, most } = &mut *lock(&self.0);
        credits.grant(requested, *most)
    }
}

/// The most unused message ids that a client is left with while its requests hold `parked` bytes
/// at gates: fewer the more they hold.
fn credits_most(parked: u64) -> u64 {
    let free = PARKED_BYTES_HIGH.saturating_sub(parked);
    (CREDITS_MAX * free / PARKED_BYTES_HIGH).max(CREDITS_UNDER_PRESSURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_waits_the_fewer_credits_there_are_but_never_too_few_for_one_request() {
        assert_eq!(credits_most(0), CREDITS_MAX);
        assert_eq!(credits_most(PARKED_BYTES_HIGH / 2), CREDITS_MAX / 2);
        assert_eq!(credits_most(u64::MAX), CREDITS_UNDER_PRESSURE);
        let largest = u64::from(weir_smb::limits::IO_BYTES_MAX) / (64 << 10);
        assert!(CREDITS_UNDER_PRESSURE >= largest);
    }
}
