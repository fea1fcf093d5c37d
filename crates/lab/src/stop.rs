//! The request to stop a campaign: it cleans up and ends with an error.

use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Polling interval of [`Stop::then`].
const LOOK: Duration = Duration::from_millis(50);

/// Whether the campaign was asked to stop. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Asked by SIGINT, SIGHUP and SIGTERM.
    ///
    /// # Errors
    /// If signals can't be watched.
    pub fn on_signals() -> Result<Self> {
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

    /// Asks the campaign to stop.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Runs `act` once the campaign is asked to stop. The thread that waits for it ends with the
    /// program.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn then(&self, act: impl FnOnce() + Send + 'static) -> Result<()> {
        let stop = self.clone();
        std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
            while !stop.asked() {
                std::thread::sleep(LOOK);
            }
            act();
        })?;
        Ok(())
    }

    /// The error of a campaign that was asked to stop.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.asked(), "interrupted");
        Ok(())
    }

    /// Whether the campaign was asked to stop.
    #[must_use]
    pub fn asked(&self) -> bool {
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
        assert!(!other.asked() && other.check().is_ok());
        stop.ask();
        assert!(other.asked() && other.check().is_err());
    }
}
