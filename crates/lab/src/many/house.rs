//! A server with many volumes: made, stopped and started again, and looked at from outside.

use super::Options;
use crate::crash::victim::{Setup, Victim};
use crate::demo::{Operator, Stop};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_api::Qos;

/// The pool of the many; 1 GiB of it buys 16 KiB/s.
const POOL: &str = "many";
const LEVEL: &str = "standard";
const GIBIBYTES: u64 = 1;
/// The pool of the one that is measured alone, and its share: 2 GiB/s.
const WIDE: &str = "wide";
const WIDE_LEVEL: &str = "ultra";
const WIDE_TEBIBYTES: u64 = 16;
/// Time for which a server that has just begun is left alone before its memory is read.
const SETTLING: Duration = Duration::from_secs(2);
/// A line is printed for each so many volumes that were made.
const STEP: u32 = 1000;

/// The one volume that is measured alone, and then among all.
pub(super) const ALONE: &str = "alone";

/// The figures of the server, measured from outside.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figures {
    /// Memory of a server without volumes, in MiB.
    pub(super) empty_mib: f64,
    /// Making all volumes, one after the other, in seconds.
    pub(super) making_s: f64,
    /// From its start until it answers NFS for the last volume, in milliseconds.
    pub(super) start_ms: f64,
    /// Memory with all volumes idle, in MiB.
    pub(super) idle_mib: f64,
    /// Descriptors with all volumes idle.
    pub(super) descriptors: usize,
    /// From the request to stop until the process has gone, after the load, in milliseconds.
    pub(super) stop_ms: f64,
}

/// A server with a pool, and how to reach it.
pub(super) struct House {
    victim: Victim,
    empty_mib: f64,
    making_s: f64,
    volumes: u32,
}

/// The volume with this number.
pub(super) fn name(number: u32) -> String {
    format!("v{number:05}")
}

/// The rate promised to each of the many, in bytes per second.
pub(super) const CONTRACT: u64 = GIBIBYTES << 14;

impl House {
    /// A server with so many volumes, and one to be measured alone.
    ///
    /// # Errors
    /// If it does not begin, or refuses.
    pub(super) fn make(options: &Options, work: &Path, stop: &Stop) -> Result<Self> {
        let mut victim = begin(options, work, "many")?;
        let empty_mib = settled_mib(&victim)?;
        let operator = Operator::connect(victim.data())?;
        let tebibytes = (u64::from(options.volumes) * GIBIBYTES).div_ceil(1024);
        operator.create_pool(POOL, LEVEL, Qos::Auto, tebibytes, None)?;
        make_wide(&operator)?;
        let begun = Instant::now();
        for number in 0..options.volumes {
            if stop.asked() {
                bail!("interrupted");
            }
            operator.make_volume(&name(number), POOL, GIBIBYTES)?;
            if (number + 1).is_multiple_of(STEP) {
                weir_report::outln!(
                    "# {} volumes after {:.0} s",
                    number + 1,
                    begun.elapsed().as_secs_f64()
                );
            }
        }
        let making_s = begun.elapsed().as_secs_f64();
        victim.end();
        Ok(Self { victim, empty_mib, making_s, volumes: options.volumes })
    }

    /// Starts it again, and looks at it before anything is asked of it.
    pub(super) fn figures(&mut self) -> Result<Figures> {
        let last = format!("/{}", name(self.volumes - 1));
        self.victim.start()?;
        let begun = Instant::now();
        self.victim.mount(&last)?;
        let start_ms = begun.elapsed().as_secs_f64() * 1e3;
        let idle_mib = settled_mib(&self.victim)?;
        let pid = self.victim.pid().context("the server is not running")?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        let (empty_mib, making_s) = (self.empty_mib, self.making_s);
        Ok(Figures { empty_mib, making_s, start_ms, idle_mib, descriptors, stop_ms: 0.0 })
    }

    /// Ends it, and adds how long that took.
    pub(super) fn ended(mut self, figures: Figures) -> Result<Figures> {
        let begun = Instant::now();
        self.victim.end();
        let stop_ms = begun.elapsed().as_secs_f64() * 1e3;
        std::fs::remove_dir_all(self.victim.data())?;
        Ok(Figures { stop_ms, ..figures })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.victim.address()
    }

    pub(super) fn pid(&self) -> Result<u32> {
        self.victim.pid().context("the server is not running")
    }
}

/// A server with the one volume and no others.
pub(super) struct Hut(Victim);

impl Hut {
    pub(super) fn make(options: &Options, work: &Path) -> Result<Self> {
        let victim = begin(options, work, "one")?;
        make_wide(&Operator::connect(victim.data())?)?;
        Ok(Self(victim))
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.0.address()
    }

    pub(super) fn pid(&self) -> Result<u32> {
        self.0.pid().context("the server is not running")
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.0.end();
        Ok(std::fs::remove_dir_all(self.0.data())?)
    }
}

fn make_wide(operator: &Operator) -> Result<()> {
    operator.create_pool(WIDE, WIDE_LEVEL, Qos::Auto, WIDE_TEBIBYTES, None)?;
    operator.make_volume(ALONE, WIDE, WIDE_TEBIBYTES << 10)
}

fn begin(options: &Options, work: &Path, name: &str) -> Result<Victim> {
    let data = work.join(name);
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    let log = work.join(format!("{name}.log"));
    let mut victim =
        Victim::new(Setup { weir: options.weir.clone(), data, log, durability: "power" })?;
    victim.start()?;
    Operator::connect(victim.data())?;
    Ok(victim)
}

fn settled_mib(victim: &Victim) -> Result<f64> {
    std::thread::sleep(SETTLING);
    resident_mib(victim.pid().context("the server is not running")?)
}

/// Memory that process `pid` holds now, in MiB (`VmRSS` of proc(5)).
#[expect(clippy::cast_precision_loss, reason = "memory stays far below 2^52 KiB")]
pub(super) fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.context("the system does not tell how much memory a process holds")? as f64
        / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_what_the_level_says() {
        assert_eq!(CONTRACT, 16 << 10, "1 GiB at 16 MiB/s per TiB");
    }

    #[test]
    fn memory_of_this_process_is_seen() {
        assert!(resident_mib(std::process::id()).unwrap() > 0.5);
        assert!(resident_mib(u32::MAX).is_err());
    }
}
