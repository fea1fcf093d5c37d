//! Following the catalogue of a cluster: the thread that applies what other gateways changed, and
//! the wait of a command until the gateways follow it.
//!
//! Not here: which gateways live, and how a snapshot reaches the data plane.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits for a store and for other gateways, and decides nothing"
)]

use crate::catalog::Catalog;
use crate::cluster::Followed;
use crate::error::Result;
use crate::tokens::Tokens;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time in which the gateways that live follow a change. A command waits no longer.
pub const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);
/// A gateway looks for changes this often, also if it was told of none: a member of the store may
/// be silent.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time after a failure before the next attempt.
const AGAIN: Duration = Duration::from_millis(500);
/// Times between two looks at the rows of the gateways: the first, and the longest.
const POLL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(80));

impl Catalog {
    /// How far this gateway follows the catalogue and the tokens of its cluster.
    #[must_use]
    pub fn followed(&self, tokens: &Tokens) -> Followed {
        Followed { generation: self.snapshot().generation, tokens: tokens.revision() }
    }

    /// Waits until all gateways of `live` follow up to `change`, but for this one, for at most
    /// `within`. Names those that do not. Blocks.
    ///
    /// # Errors
    /// `Unreachable`: it is not known who follows.
    pub fn lagging(
        &self,
        live: &[String],
        change: Followed,
        within: Duration,
    ) -> Result<Vec<String>> {
        let Some(cluster) = self.cluster() else { return Ok(Vec::new()) };
        let (until, mut pause) = (Instant::now() + within, POLL.0);
        loop {
            let told = cluster.told()?;
            let follows = |name: &String| told.get(name).is_some_and(|told| told.covers(&change));
            let others = live.iter().filter(|name| **name != cluster.place().gateway);
            let lagging: Vec<_> = others.filter(|name| !follows(name)).cloned().collect();
            if lagging.is_empty() || Instant::now() >= until {
                return Ok(lagging);
            }
            thread::sleep(pause);
            pause = (2 * pause).min(POLL.1);
        }
    }
}

/// A gateway's following of its cluster, until it is dropped.
#[derive(Debug)]
pub struct Follower {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts to follow, if the catalogue is that of a cluster. `apply` passes the catalogue's
    /// newest snapshot on; it also runs for changes of this gateway. When it returns, the other
    /// gateways are told that the snapshot is in force.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(
        catalog: Arc<Catalog>,
        tokens: Arc<Tokens>,
        apply: impl FnMut(&Catalog) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut following = Following::new(catalog, tokens, apply);
        let stopped = Arc::clone(&stop);
        let body = move || {
            while following.is_in_cluster() && !stopped.load(Ordering::Acquire) {
                following.turn();
            }
        };
        let thread = thread::Builder::new().name("weir-follow".to_owned()).spawn(body)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has panicked, which was reported.
            let _reported = thread.join();
        }
    }
}

struct Following<F> {
    catalog: Arc<Catalog>,
    tokens: Arc<Tokens>,
    apply: F,
    /// The generation of the newest snapshot that was passed on.
    applied: Option<u64>,
    /// The place that the other gateways were told.
    told: Option<Followed>,
    /// The code of the last failure that was reported and has not gone.
    fault: Option<&'static str>,
}

impl<F: FnMut(&Catalog)> Following<F> {
    const fn new(catalog: Arc<Catalog>, tokens: Arc<Tokens>, apply: F) -> Self {
        Self { catalog, tokens, apply, applied: None, told: None, fault: None }
    }

    fn is_in_cluster(&self) -> bool {
        self.catalog.cluster().is_some()
    }

    /// Follows up to now, and waits for more.
    fn turn(&mut self) {
        match self.follow() {
            Ok(()) => {
                if self.fault.take().is_some() {
                    tracing::info!("the catalogue follows the cluster again");
                }
                if let Some(cluster) = self.catalog.cluster() {
                    cluster.wait(LOOK_EVERY);
                }
            }
            Err(error) => {
                if self.fault.replace(error.code()) != Some(error.code()) {
                    tracing::warn!(%error, "the catalogue does not follow the cluster");
                }
                thread::sleep(AGAIN);
            }
        }
    }

    fn follow(&mut self) -> Result<()> {
        let catalog = self.catalog.follow().map(drop);
        // Tokens are revoked also while a row of the catalogue is damaged.
        let tokens = self.tokens.follow();
        let followed = self.catalog.followed(&self.tokens);
        // A command may have applied the changes of others before its own.
        if self.applied != Some(followed.generation) {
            (self.apply)(&self.catalog);
            self.applied = Some(followed.generation);
        }
        catalog.and(tokens)?;
        if self.told != Some(followed)
            && let Some(cluster) = self.catalog.cluster()
        {
            cluster.tell(followed)?;
            self.told = Some(followed);
        }
        Ok(())
    }
}
