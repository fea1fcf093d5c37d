//! Giving up in order.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Asks a running demo or comparison to give up: it cleans up and ends with an error. Clones
/// share one state.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// One that is asked by an interrupt from the terminal, a hang-up or a request to terminate.
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

    /// Asks.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Was it asked?
    #[must_use]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_is_asked() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(!other.asked());
        stop.ask();
        assert!(other.asked());
    }
}
