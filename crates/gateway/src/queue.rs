//! Jobs that are carried out one after the other, in the order in which their turns were taken.

use tokio::sync::oneshot;

/// The order of some jobs.
#[derive(Debug, Default)]
pub(crate) struct Order(Option<oneshot::Receiver<Over>>);

/// The turn of one job.
#[derive(Debug)]
pub(crate) struct Turn {
    before: Option<oneshot::Receiver<Over>>,
    held: Held,
}

/// The job is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "its drop tells")] oneshot::Sender<Over>);

/// Never sent: a job tells that it is over by dropping its sender.
#[derive(Debug)]
pub(crate) enum Over {}

impl Order {
    /// The turn behind all that were taken before.
    pub(crate) fn turn(&mut self) -> Turn {
        let (held, over) = oneshot::channel();
        Turn { before: self.0.replace(over), held: Held(held) }
    }
}

impl Turn {
    /// Waits until the jobs before are over.
    pub(crate) async fn begin(self) -> Held {
        if let Some(before) = self.before {
            // The end of the sender is the news.
            let _ = before.await;
        }
        self.held
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
                let held = turn.begin().await;
                tokio::task::yield_now().await;
                done.lock().unwrap().push(job);
                drop(held);
            });
        }
        jobs.join_all().await;
        assert_eq!(*done.lock().unwrap(), [0, 1, 3, 4]);
    }
}
