//! The server with many volumes, created, started and stopped, and the one with a single volume.

use crate::operator::Operator;
use crate::process::resident_mib;
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::Result;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_api::Qos;
use weir_core::Credentials;
use weir_nfs::client::Caller;

/// The pool of the many; 1 GiB of it buys 16 KiB/s.
const POOL: &str = "many";
const LEVEL: &str = "standard";
const GIBIBYTES: u64 = 1;
/// The pool of the one that is measured alone, and its share: 2 GiB/s.
const WIDE: &str = "wide";
const WIDE_LEVEL: &str = "ultra";
const WIDE_TEBIBYTES: u64 = 16;
/// Pause between the start of a server and the reading of its memory.
const SETTLING: Duration = Duration::from_secs(2);
/// Number of volumes after which a line of progress is printed.
const STEP: u32 = 1000;

/// The volume that is measured alone, and then among all.
pub(super) const ALONE: &str = "alone";

/// The figures of the server, measured from outside.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Figures {
    /// Memory of a server without volumes, in MiB.
    pub(super) empty_mib: f64,
    /// Time in which all volumes were created one after the other, in seconds.
    pub(super) making_s: f64,
    /// Time from the start until it answers NFS for the last volume, in milliseconds.
    pub(super) start_ms: f64,
    /// Memory with all volumes idle, in MiB.
    pub(super) idle_mib: f64,
    /// Descriptors with all volumes idle.
    pub(super) descriptors: usize,
    /// Time from the request to stop, after the load, until the process has ended, in milliseconds.
    pub(super) stop_ms: f64,
}

/// A server with many volumes, and one to be measured alone.
pub(super) struct ManyVolumes {
    server: TestServer,
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

impl ManyVolumes {
    /// Creates the volumes, and stops the server.
    ///
    /// # Errors
    /// If the server does not start, or refuses.
    pub(super) fn create(weir: &Path, work: &Path, volumes: u32, stop: &Stop) -> Result<Self> {
        let (mut server, operator) = TestServer::start_new(settings(weir, work, "many")?)?;
        let empty_mib = settled_mib(&server)?;
        let tebibytes = (u64::from(volumes) * GIBIBYTES).div_ceil(1024);
        operator.create_pool(POOL, LEVEL, Qos::Auto, tebibytes, None)?;
        create_wide(&operator)?;
        let begun = Instant::now();
        for number in 0..volumes {
            stop.check()?;
            operator.make_volume(&name(number), POOL, GIBIBYTES)?;
            if (number + 1).is_multiple_of(STEP) {
                let seconds = begun.elapsed().as_secs_f64();
                weir_report::outln!("# {} volumes after {seconds:.0} s", number + 1);
            }
        }
        let making_s = begun.elapsed().as_secs_f64();
        server.stop();
        Ok(Self { server, empty_mib, making_s, volumes })
    }

    /// Starts the server again, and measures it before the first load.
    pub(super) fn start(&mut self) -> Result<Figures> {
        let last = format!("/{}", name(self.volumes - 1));
        self.server.start()?;
        self.server.mount(&last, &Caller::sys(&Credentials::ROOT, b"weir-lab"))?;
        let start_ms = self.server.uptime().as_secs_f64() * 1e3;
        let idle_mib = settled_mib(&self.server)?;
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.pid()?))?.count();
        let (empty_mib, making_s) = (self.empty_mib, self.making_s);
        Ok(Figures { empty_mib, making_s, start_ms, idle_mib, descriptors, stop_ms: 0.0 })
    }

    /// Stops the server, and adds the time that this took.
    pub(super) fn stop(mut self, figures: Figures) -> Figures {
        let begun = Instant::now();
        self.server.stop();
        Figures { stop_ms: begun.elapsed().as_secs_f64() * 1e3, ..figures }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(super) fn pid(&self) -> Result<u32> {
        self.server.pid()
    }
}

/// A server with the one volume that is measured alone.
pub(super) fn baseline(weir: &Path, work: &Path) -> Result<TestServer> {
    let (server, operator) = TestServer::start_new(settings(weir, work, "one")?)?;
    create_wide(&operator)?;
    Ok(server)
}

fn settings(weir: &Path, work: &Path, name: &str) -> Result<Settings> {
    Settings::temporary(weir, work.join(name), work.join(format!("{name}.log")))
}

fn create_wide(operator: &Operator) -> Result<()> {
    operator.create_pool(WIDE, WIDE_LEVEL, Qos::Auto, WIDE_TEBIBYTES, None)?;
    operator.make_volume(ALONE, WIDE, WIDE_TEBIBYTES << 10)
}

fn settled_mib(server: &TestServer) -> Result<f64> {
    std::thread::sleep(SETTLING);
    resident_mib(server.pid()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_is_what_the_level_says() {
        assert_eq!(CONTRACT, 16 << 10, "1 GiB at 16 MiB/s per TiB");
    }
}
