//! Jobs that are carried out one after the other, in the order in which their turns were taken.

use std::collections::BTreeSet;
use tokio::sync::watch;

/// The order of some jobs.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The numbers of the turns that are not over.
    open: watch::Sender<BTreeSet<u64>>,
    last: u64,
}

/// The turn of one job. It is over when this is dropped, also if it was never reached.
#[derive(Debug)]
pub(crate) struct Turn {
    open: watch::Sender<BTreeSet<u64>>,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.open.send_modify(|open| {
            open.remove(&self.number);
        });
    }
}

impl Order {
    /// The turn behind all that were taken before.
    pub(crate) fn turn(&mut self) -> Turn {
        self.last += 1;
        let number = self.last;
        self.open.send_modify(|open| {
            open.insert(number);
        });
        Turn { open: self.open.clone(), number }
    }
}

impl Turn {
    /// Waits until all turns before are over.
    pub(crate) async fn begin(&self) {
        let mut open = self.open.subscribe();
        // This turn has a sender, so the news do not end.
        let _ = open.wait_for(|open| open.first() == Some(&self.number)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn jobs_run_in_the_order_of_their_turns_also_after_one_that_was_given_up() {
        let (mut order, mut jobs) = (Order::default(), JoinSet::new());
        let done = Arc::new(Mutex::new(Vec::new()));
        let mut turns: Vec<_> = (0..5).map(|job| (job, order.turn())).collect();
        turns.remove(2);
        turns.reverse();
        for (job, turn) in turns {
            let done = Arc::clone(&done);
            jobs.spawn(async move {
                turn.begin().await;
                tokio::task::yield_now().await;
                done.lock().unwrap().push(job);
                drop(turn);
            });
        }
        jobs.join_all().await;
        assert_eq!(*done.lock().unwrap(), [0, 1, 3, 4]);
    }
}
