//! The server that is watched, and the hand on it.

use crate::crash::victim::{Setup, Victim};
use crate::demo::Operator;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;
use weir_api::{Verdict, Window};

/// A server with a data directory of its own, which goes when it ends.
pub(super) struct Site {
    victim: Victim,
    operator: Operator,
}

/// The credits of a volume as the API showed them at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    /// In seconds since a beginning that the reader of the sample chose.
    pub(super) at_s: f64,
    pub(super) credits: f64,
}

/// For how long the server tells of each second, in seconds.
pub(super) const BY_SECONDS: u64 = 60;

/// Seconds since 1970, and what the server said of each.
pub(super) type Broken = BTreeMap<u64, String>;

impl Site {
    /// A server that serves, with nothing on it.
    ///
    /// # Errors
    /// If it does not begin.
    pub(super) fn make(weir: &Path, work: &Path) -> Result<Self> {
        let data = work.join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        let log = work.join("server.log");
        let setup = Setup { weir: weir.to_owned(), data, log, durability: "power" };
        let mut victim = Victim::new(setup)?;
        victim.start()?;
        let operator = Operator::connect(victim.data())?;
        Ok(Self { victim, operator })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.victim.address()
    }

    pub(super) const fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Stops it in order and starts it again.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.victim.end();
        self.victim.start()?;
        self.operator = Operator::connect(self.victim.data())?;
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
        let told = |one: &Window| {
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
        Ok(broken.map(|one| (one.start, told(one))).collect())
    }

    /// The credits as the metrics have them.
    pub(super) fn scraped_credits(&self, volume: &str) -> Result<f64> {
        let text = self.operator.metrics()?;
        let head = format!("weir_volume_credits{{volume=\"{volume}\",");
        let line = text.lines().find(|line| line.starts_with(&head));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.with_context(|| format!("no weir_volume_credits of {volume} in the metrics"))
    }

    /// Ends it, and removes its data.
    pub(super) fn end(mut self) -> Result<()> {
        self.victim.end();
        Ok(std::fs::remove_dir_all(self.victim.data())?)
    }
}
