//! The seat: the helper serves one process at a time, and the next one only when that has ended and
//! its addresses are gone. Not here: the link to the process, and how its end is known.

use crate::wire::Why;
use weir_cluster::{Life, MachineId};

/// The process that is served, if there is one. `P` is the descriptor of a process.
#[derive(Debug)]
pub(crate) struct Seat<P>(Option<Occupant<P>>);

#[derive(Debug)]
struct Occupant<P> {
    pid: i32,
    process: P,
    life: (MachineId, Life),
    /// It has a link, or the addresses of its link are not all gone.
    serving: bool,
}

/// The way in which a process got the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was free.
    First,
    /// The process had it before, and has a new link.
    Again,
}

impl<P> Seat<P> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// The process that has the seat.
    pub(crate) fn process(&self) -> Option<&P> {
        self.0.as_ref().map(|present| &present.process)
    }

    /// Gives the seat to a process that says it is `life`. `has_ended`: whether the process that
    /// has it now has ended, so that a later one may have its number.
    ///
    /// # Errors
    /// The reason, for the process, and in words.
    pub(crate) fn take(
        &mut self,
        (pid, process): (i32, P),
        life: (MachineId, Life),
        has_ended: bool,
    ) -> Result<Taken, (Why, String)> {
        let Some(present) = &mut self.0 else {
            self.0 = Some(Occupant { pid, process, life, serving: true });
            return Ok(Taken::First);
        };
        if present.pid != pid || has_ended {
            let words = format!("the process before ({}) has not ended completely", present.pid);
            return Err((Why::Busy, words));
        }
        if present.life != life {
            let words = format!("this process said before that it is {}", present.life.1);
            return Err((Why::Other, words));
        }
        if present.serving {
            let words = "the link before has not ended completely".to_owned();
            return Err((Why::Busy, words));
        }
        present.serving = true;
        Ok(Taken::Again)
    }

    /// The link of the process has ended, and its addresses are gone.
    pub(crate) fn leave(&mut self) {
        if let Some(present) = &mut self.0 {
            present.serving = false;
        }
    }

    /// Frees the seat, once the process has ended and has left it. Returns whether it is free.
    pub(crate) fn free(&mut self) -> bool {
        if self.0.as_ref().is_some_and(|present| !present.serving) {
            self.0 = None;
        }
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cluster::GatewayId;

    fn life(number: u32) -> (MachineId, Life) {
        (MachineId(1), Life { gateway: GatewayId(1), number })
    }

    fn refused(seat: &mut Seat<()>, pid: i32, of: u32, has_ended: bool) -> Why {
        seat.take((pid, ()), life(of), has_ended).unwrap_err().0
    }

    #[test]
    fn one_process_is_served_until_it_has_ended_and_its_addresses_are_gone() {
        let mut seat = Seat::new();
        assert_eq!(seat.take((10, ()), life(1), false), Ok(Taken::First));
        assert_eq!(refused(&mut seat, 11, 2, false), Why::Busy);
        assert_eq!(refused(&mut seat, 10, 1, false), Why::Busy, "two links of one process");
        assert!(!seat.free(), "its addresses are not gone");
        seat.leave();
        assert_eq!(refused(&mut seat, 11, 2, false), Why::Busy, "it has not ended");
        assert!(seat.free());
        assert_eq!(seat.take((11, ()), life(2), false), Ok(Taken::First));
    }

    #[test]
    fn a_process_may_come_back_as_the_life_that_it_was() {
        let mut seat = Seat::new();
        seat.take((10, ()), life(1), false).unwrap();
        seat.leave();
        assert_eq!(refused(&mut seat, 10, 2, false), Why::Other);
        assert_eq!(refused(&mut seat, 10, 1, true), Why::Busy, "another process of its number");
        assert_eq!(seat.take((10, ()), life(1), false), Ok(Taken::Again));
        assert_eq!(refused(&mut seat, 10, 1, false), Why::Busy);
    }
}
