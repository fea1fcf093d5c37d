//! The server under observation, and what its API reports about volumes.

use crate::operator::Operator;
use crate::server::{Settings, TestServer};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;
use weir_api::{Verdict, Window};

/// A server with a temporary data directory, and a client of its API.
pub(super) struct LiveServer {
    server: TestServer,
    operator: Operator,
}

/// The credits of a volume as the API showed them at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    /// In seconds since a beginning that the reader of the sample chose.
    pub(super) at_s: f64,
    pub(super) credits: f64,
}

/// Time for which the server keeps a verdict of each second, in seconds.
pub(super) const BY_SECONDS: u64 = 60;

/// Seconds since 1970 in which a contract was broken, and the server's explanation of each.
pub(super) type Broken = BTreeMap<u64, String>;

impl LiveServer {
    /// A server that serves, without volumes.
    ///
    /// # Errors
    /// If it does not begin.
    pub(super) fn start(weir: &Path, work: &Path) -> Result<Self> {
        let settings = Settings::temporary(weir, work.join("data"), work.join("server.log"))?;
        let (server, operator) = TestServer::start_new(settings)?;
        Ok(Self { server, operator })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(super) const fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Stops the server in order and starts it again.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.server.stop();
        self.server.start()?;
        self.operator = self.server.operator()?;
        Ok(())
    }

    /// The credits of a volume, at the middle of the time that asking took.
    #[expect(clippy::cast_precision_loss, reason = "credits are at most some hundred millions")]
    pub(super) fn credits(&self, volume: &str, beginning: Instant) -> Result<Sample> {
        let before = beginning.elapsed().as_secs_f64();
        let live = self.operator.volume(volume)?.live.context("the volume is not served")?;
        let after = beginning.elapsed().as_secs_f64();
        let credits = live.credits.with_context(|| format!("{volume} has no credits"))? as f64;
        Ok(Sample { at_s: f64::midpoint(before, after), credits })
    }

    /// The seconds of the last minute in which the server itself found the contract of a volume
    /// broken, since 1970, and where requests spent their time in them.
    pub(super) fn broken(&self, volume: &str) -> Result<Broken> {
        let report = self.operator.report(volume, BY_SECONDS)?;
        let broken = report.periods.iter().filter(|one| one.verdict == Verdict::Broken);
        let explained = |one: &Window| {
            let split = one.split;
            let part = |nanos| split.part(nanos) * 100.0;
            let cause =
                one.cause.map_or_else(|| "nothing known".to_owned(), |cause| cause.to_string());
            format!(
                "by {cause}: contract {:.0} %, store {:.0} %, network {:.0} %, processing {:.0} % of the time of requests",
                part(split.wait_nanos),
                part(split.store_nanos),
                part(split.network_nanos),
                part(split.processing_nanos)
            )
        };
        Ok(broken.map(|one| (one.start, explained(one))).collect())
    }

    /// The credits as the metrics have them.
    pub(super) fn scraped_credits(&self, volume: &str) -> Result<f64> {
        let text = self.operator.metrics()?;
        let head = format!("weir_volume_credits{{volume=\"{volume}\",");
        let line = text.lines().find(|line| line.starts_with(&head));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.with_context(|| format!("no weir_volume_credits of {volume} in the metrics"))
    }
}
