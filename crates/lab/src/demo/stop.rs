//! Giving up in order.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Time between two looks of [`Stop::then`].
const LOOK: Duration = Duration::from_millis(50);

/// Asks a running demo or comparison to give up: it cleans up and ends with an error. Clones
/// share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// A stop that an interrupt from the terminal, a hang-up or a request to terminate asks for.
    ///
    /// # Errors
    /// If signals can't be watched.
    pub(crate) fn on_signals() -> Result<Self> {
        let stop = Self::default();
        let asked = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let [mut interrupt, mut terminate, mut hangup] = {
            let _inside = runtime.enter();
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
                .map(signal)
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .context("can't watch signals")?
                .try_into()
                .map_err(|_| anyhow::anyhow!("three signals are watched"))?
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
            });
            asked.ask();
        })?;
        Ok(stop)
    }

    /// Asks.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Has `act` done once somebody asks: for what has a hand of its own to be stopped by. The
    /// thread that waits for it ends with the program.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(crate) fn then(&self, act: impl FnOnce() + Send + 'static) -> Result<()> {
        let stop = self.clone();
        std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
            while !stop.asked() {
                std::thread::sleep(LOOK);
            }
            act();
        })?;
        Ok(())
    }

    /// Was it asked?
    #[must_use]
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_done_once_it_is_asked_and_not_before() {
        let stop = Stop::default();
        let (done, told) = std::sync::mpsc::channel();
        stop.then(move || done.send(()).unwrap()).unwrap();
        assert!(told.try_recv().is_err());
        stop.ask();
        told.recv().unwrap();
    }

    #[test]
    fn every_clone_is_asked() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(!other.asked());
        stop.ask();
        assert!(other.asked());
    }
}
