//! The ways to the other gateways: how many questions to each are under way, and what earlier
//! attempts to reach it have shown.
//!
//! Each gateway has turns of its own, so that one that is silent delays no question to another.

use super::NoAnswer;
use crate::cluster::NotAsked;
use crate::limits::{ASK_FAILED_KEPT, ASK_TURN_WAIT, ASKS_GATEWAY_MAX};
use crate::sync::{Arc, Mutex, OwnedSemaphorePermit, Semaphore, lock};
use std::collections::BTreeMap;
use tokio::time::{Instant, timeout};
use weir_catalog::GatewayId;

/// The ways to all gateways that were asked: as many as the cluster had at most.
#[derive(Default)]
pub(super) struct Ways(Mutex<BTreeMap<GatewayId, Way>>);

/// The way to one gateway.
struct Way {
    /// One for each question under way.
    turns: Arc<Semaphore>,
    /// The failure of the latest attempt to reach it, if it still counts.
    failed: Option<Failed>,
}

impl Default for Way {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(ASKS_GATEWAY_MAX)), failed: None }
    }
}

/// An attempt to reach a life of a gateway that failed.
struct Failed {
    life: u32,
    error: NotAsked,
    at: Instant,
}

impl Failed {
    /// Does it tell what another attempt would show? A life that takes no questions logs each of
    /// them, and takes none later.
    fn counts(&self, life: u32) -> bool {
        let is_older = self.error == NotAsked::Older;
        self.life == life && (is_older || self.at.elapsed() < ASK_FAILED_KEPT)
    }
}

impl Ways {
    /// Waits for a turn to ask a life of a gateway. It is over when the permit is dropped.
    ///
    /// # Errors
    /// The reason for which the life could not be reached just now, and [`NoAnswer::TooMany`].
    pub(super) async fn turn(
        &self,
        to: GatewayId,
        life: u32,
    ) -> Result<OwnedSemaphorePermit, NoAnswer> {
        let turns = self.turns(to, life)?;
        let turn = timeout(ASK_TURN_WAIT, turns.acquire_owned()).await;
        // It is never closed.
        let Ok(Ok(turn)) = turn else { return Err(NoAnswer::TooMany) };
        // The questions before it may have failed.
        self.turns(to, life)?;
        Ok(turn)
    }

    /// Remembers that a life of a gateway could not be reached.
    pub(super) fn failed(&self, to: GatewayId, life: u32, error: &NotAsked) {
        let failed = Failed { life, error: error.clone(), at: Instant::now() };
        lock(&self.0).entry(to).or_default().failed = Some(failed);
    }

    fn turns(&self, to: GatewayId, life: u32) -> Result<Arc<Semaphore>, NotAsked> {
        let mut ways = lock(&self.0);
        let way = ways.entry(to).or_default();
        match &way.failed {
            Some(failed) if failed.counts(life) => Err(failed.error.clone()),
            _ => Ok(Arc::clone(&way.turns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{advance, sleep};

    const A: GatewayId = GatewayId(1);
    const B: GatewayId = GatewayId(2);

    fn unplugged() -> NotAsked {
        NotAsked::Failed("unplugged".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn questions_to_one_gateway_do_not_use_up_the_turns_of_another() {
        let ways = Ways::default();
        let mut turns = Vec::new();
        for _ in 0..ASKS_GATEWAY_MAX {
            turns.push(ways.turn(A, 1).await.unwrap());
        }
        let begun = Instant::now();
        assert_eq!(ways.turn(A, 1).await.unwrap_err(), NoAnswer::TooMany);
        assert_eq!(begun.elapsed(), ASK_TURN_WAIT);
        assert_eq!(ways.turn(A, 2).await.unwrap_err(), NoAnswer::TooMany, "nor does its next life");
        let begun = Instant::now();
        drop(ways.turn(B, 1).await.unwrap());
        assert!(begun.elapsed().is_zero());
        turns.pop();
        drop(ways.turn(A, 1).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_for_a_while_and_for_that_life_alone() {
        let ways = Ways::default();
        ways.failed(A, 1, &unplugged());
        advance(ASK_FAILED_KEPT / 2).await;
        assert_eq!(ways.turn(A, 1).await.unwrap_err(), unplugged().into());
        drop(ways.turn(A, 2).await.unwrap());
        drop(ways.turn(B, 1).await.unwrap());
        advance(ASK_FAILED_KEPT / 2).await;
        drop(ways.turn(A, 1).await.unwrap());
        ways.failed(A, 1, &NotAsked::Older);
        advance(100 * ASK_FAILED_KEPT).await;
        assert_eq!(ways.turn(A, 1).await.unwrap_err(), NotAsked::Older.into());
        drop(ways.turn(A, 2).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_waits_learns_what_those_before_it_found() {
        let ways = Ways::default();
        let mut turns = Vec::new();
        for _ in 0..ASKS_GATEWAY_MAX {
            turns.push(ways.turn(A, 1).await.unwrap());
        }
        let found = async {
            sleep(ASK_TURN_WAIT / 2).await;
            ways.failed(A, 1, &unplugged());
            drop(turns);
        };
        let (waited, ()) = tokio::join!(ways.turn(A, 1), found);
        assert_eq!(waited.unwrap_err(), unplugged().into());
    }
}
