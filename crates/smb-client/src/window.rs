//! Message ids and credits, as the client keeps them (MS-SMB2 §3.2.4.1.2 to §3.2.4.1.6,
//! §3.2.5.1.4), and the requests in flight.

use crate::ClientError;
use alloc::collections::VecDeque;
use weir_smb::wire::Command;

/// Most requests between the oldest in flight and the newest. Beyond: no further one is sent until
/// the oldest is answered.
const SPAN_MAX: usize = 65_536;

/// The owner of a request, as its answer finds him.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The caller's own number.
    pub(crate) token: u32,
    /// The place in its compound.
    pub(crate) element: usize,
    /// The command.
    pub(crate) command: Command,
}

/// A request, by its message id.
#[derive(Debug)]
struct Sent {
    id: u64,
    /// `None` once it is answered.
    ticket: Option<Ticket>,
}

/// The ids, the credits and the requests of one connection.
#[derive(Debug)]
pub(crate) struct Window {
    next: u64,
    credits: u64,
    /// Credits to have.
    wanted: u64,
    /// By ascending id; the first is not answered.
    sent: VecDeque<Sent>,
}

impl Window {
    /// Of a new connection, which has one credit, and asks until it has `wanted`.
    pub(crate) fn new(wanted: u16) -> Self {
        Self { next: 0, credits: 1, wanted: wanted.max(1).into(), sent: VecDeque::new() }
    }

    /// May `requests` be sent that cost so many credits together?
    #[inline]
    pub(crate) fn admits(&self, requests: usize, charge: u64) -> bool {
        charge <= self.credits && self.sent.len().saturating_add(requests) <= SPAN_MAX
    }

    /// Uses `charge` credits for a request and gives its message id.
    #[inline]
    pub(crate) fn claim(&mut self, ticket: Ticket, charge: u16) -> u64 {
        let (id, charge) = (self.next, u64::from(charge.max(1)));
        self.next = id.saturating_add(charge);
        self.credits = self.credits.saturating_sub(charge);
        self.sent.push_back(Sent { id, ticket: Some(ticket) });
        id
    }

    /// The credits to ask for in a request that costs `charge`, which are not taken off yet.
    #[inline]
    pub(crate) fn to_request(&self, charge: u16) -> u16 {
        let missing = self.wanted.saturating_sub(self.credits);
        let charge = u64::from(charge.max(1));
        u16::try_from(missing.saturating_add(charge)).unwrap_or(u16::MAX)
    }

    /// Takes the credits of a response to the request `id` to `command`, and gives its owner. One
    /// that is not `last` leaves the request in flight.
    #[inline]
    pub(crate) fn answered(
        &mut self,
        (id, command): (u64, Option<Command>),
        granted: u16,
        last: bool,
    ) -> Result<Ticket, ClientError> {
        let at = self.sent.partition_point(|sent| sent.id < id);
        let sent = self.sent.get_mut(at).filter(|sent| sent.id == id);
        let sent = sent.ok_or(ClientError::Unasked(id))?;
        let ticket = sent.ticket.filter(|ticket| Some(ticket.command) == command);
        let ticket = ticket.ok_or(ClientError::Unasked(id))?;
        self.credits = self.credits.saturating_add(granted.into());
        if last {
            sent.ticket = None;
            while self.sent.pop_front_if(|sent| sent.ticket.is_none()).is_some() {}
        }
        Ok(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(token: u32) -> Ticket {
        Ticket { token, element: 0, command: Command::Echo }
    }

    fn answer(window: &mut Window, id: u64, granted: u16, last: bool) -> Option<u32> {
        let answered = window.answered((id, Some(Command::Echo)), granted, last);
        answered.ok().map(|ticket| ticket.token)
    }

    #[test]
    fn ids_follow_the_charges_and_credits_come_with_answers() {
        let mut window = Window::new(20);
        assert!(window.admits(1, 1) && !window.admits(1, 2));
        assert_eq!(window.to_request(1), 20);
        assert_eq!(window.claim(ticket(7), 1), 0);
        assert!(!window.admits(1, 1));
        assert_eq!(answer(&mut window, 0, 20, true), Some(7));
        assert!(window.admits(1, 20) && !window.admits(1, 21));
        assert_eq!(window.to_request(4), 4, "what is used is asked for again");
        assert_eq!((window.claim(ticket(8), 4), window.claim(ticket(9), 1)), (1, 5));
        assert_eq!(window.to_request(1), 6);
    }

    #[test]
    fn a_request_is_answered_once_and_in_any_order() {
        let mut window = Window::new(20);
        window.claim(ticket(0), 1);
        answer(&mut window, 0, 9, true).unwrap();
        let ids = [1, 2, 3].map(|token| window.claim(ticket(token), 1));
        assert_eq!(answer(&mut window, ids[2], 1, true), Some(3));
        assert_eq!(answer(&mut window, ids[2], 1, true), None);
        assert_eq!(answer(&mut window, ids[0], 0, false), Some(1), "an interim answer");
        assert_eq!(answer(&mut window, ids[0], 1, true), Some(1));
        assert_eq!(answer(&mut window, 99, 1, true), None);
        let wrong = window.answered((ids[1], Some(Command::Read)), 1, true);
        assert_eq!(wrong, Err(ClientError::Unasked(ids[1])));
        assert_eq!(answer(&mut window, ids[1], 1, true), Some(2));
        assert!(window.sent.is_empty());
    }

    #[test]
    fn a_request_that_is_never_answered_bounds_the_memory() {
        let mut window = Window::new(10);
        window.claim(ticket(0), 1);
        answer(&mut window, 0, 10, true).unwrap();
        window.claim(ticket(1), 1);
        let mut sent = 1;
        while window.admits(1, 1) {
            let id = window.claim(ticket(2), 1);
            answer(&mut window, id, 1, true).unwrap();
            sent += 1;
        }
        assert_eq!(sent, SPAN_MAX);
        assert_eq!(answer(&mut window, 1, 1, true), Some(1));
        assert!(window.admits(1, 1) && window.sent.is_empty());
    }
}
