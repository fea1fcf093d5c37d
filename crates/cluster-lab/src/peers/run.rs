//! The course of the comparison: all sides started, then workload by workload, turn by turn.

use super::client::{Order, Through};
use super::judge::{Figures, Row, Sides};
use super::measure::{self, Daemons, Sample};
use super::plan::{self, IN_FLIGHT, LIBRARY, PLAN, STABLE_NAMES, Times, WORKS, Work};
use super::sides::{Client, Settings, start_ganesha};
use super::{Scale, present};
use crate::bed::Machine;
use crate::stage::Stage;
use anyhow::{Context, Result};
use std::path::Path;
use weir_lab::comparison::Peer;
use weir_lab::stop::Stop;
use weir_load::{NfsTarget, Target};

/// The directories of the loads below the exports of the servers. Each export of Ganesha is a
/// client of CephFS of its own, and has its own files, although both show all of them: two clients
/// with one file open wait for each other.
const GATEWAYS_FILES: &str = "files";
const ASKING_FILES: &str = "ganesha";
const KEEPING_FILES: &str = "keeping-ganesha";

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Library,
    Store,
    CachingLibrary,
    Gateway,
    Ganesha,
    KeepingGanesha,
}

impl Side {
    /// All of them, in the order of the fields of [`Sides`].
    const ALL: [Self; 6] = [
        Self::Library,
        Self::Store,
        Self::CachingLibrary,
        Self::Gateway,
        Self::Ganesha,
        Self::KeepingGanesha,
    ];
}

/// A cluster with all sides, and the durations.
pub(super) struct Run<'a> {
    // Whatever uses Ceph ends before it.
    library: Client,
    store: Client,
    caching_library: Client,
    ganesha: Peer,
    /// Ganesha's two exports: with attributes that are asked for each time, and that it keeps.
    exports: [Target; 2],
    gateway: Target,
    daemons: Daemons,
    times: Times,
    stop: &'a Stop,
    stage: Stage,
}

impl<'a> Run<'a> {
    /// Starts everything, and lays out the files. The directories: those of the server program, for
    /// what goes away, and for logs.
    ///
    /// # Errors
    /// If a part does not come up.
    pub(super) fn begin(
        (weir, work, out): (&Path, &Path, &Path),
        times: Times,
        stop: &'a Stop,
    ) -> Result<Self> {
        let stage = Stage::set((weir, work, out), PLAN, stop)?;
        let (conf, logs) = (stage.engines.ceph_conf(), out.join("logs"));
        weir_report::errln!("Starting clients of Ceph, and Ganesha.");
        let client = |name, through, object_cache, number| {
            let settings = Settings { name, through, object_cache };
            Client::start(settings, (&conf, &logs), Machine::Gateway(LIBRARY + number))
        };
        let library = client("library", Through::Library, false, 0)?;
        let store = client("store", Through::Store, false, 1)?;
        let caching_library = client("caching-library", Through::Library, true, 2)?;
        stop.check()?;
        let (ganesha, asks, keeps) = start_ganesha(&conf, &logs)?;
        let volume = stage.targets.first().context("there is no volume")?;
        let export = format!("/{}", volume.name);
        let gateway = Target::Nfs(NfsTarget::new(volume.address, export));
        measure::lay_out(&gateway, GATEWAYS_FILES, &times).context("on the gateway")?;
        measure::lay_out(&asks, ASKING_FILES, &times).context("on Ganesha")?;
        measure::lay_out(&keeps, KEEPING_FILES, &times).context("on Ganesha's second export")?;
        let daemons = Daemons::of(&stage.engines)?;
        let exports = [asks, keeps];
        Ok(Self {
            library,
            store,
            caching_library,
            ganesha,
            exports,
            gateway,
            daemons,
            times,
            stop,
            stage,
        })
    }

    /// Measures everything: the workloads, libcephfs by threads and mounts, and names that are on
    /// disk.
    ///
    /// # Errors
    /// If an operation fails, or a process ends.
    pub(super) fn all(&mut self) -> Result<(Vec<Row>, Vec<Scale>, Figures)> {
        let mut rows = Vec::new();
        for work in WORKS {
            let row = Row::new(&work, self.turns(&work)?);
            weir_report::errln!("{}", present::line(&row));
            rows.push(row);
        }
        let scales = self.scales()?;
        let stable_names = self.stable_names()?;
        Ok((rows, scales, stable_names))
    }

    /// Measures all sides of one workload. Each turn begins with another side, because one that
    /// comes after a certain other may have it easier.
    fn turns(&mut self, work: &Work) -> Result<Sides<Figures>> {
        let mut samples: [Vec<Sample>; 6] = Default::default();
        for turn in 0..self.times.turns {
            let first = turn as usize % Side::ALL.len();
            for at in (0..Side::ALL.len()).cycle().skip(first).take(Side::ALL.len()) {
                self.stop.check()?;
                let (side, seed) = (Side::ALL[at], u64::from(turn) + 1);
                let sample = self.measure(side, work, seed);
                samples[at].push(sample.with_context(|| format!("{} on {side:?}", work.name))?);
            }
        }
        Ok(samples.map(Figures::new).into())
    }

    fn measure(&mut self, side: Side, work: &Work, seed: u64) -> Result<Sample> {
        let order = self.order(*work, (IN_FLIGHT, 1), seed);
        let (times, daemons) = (&self.times, &self.daemons);
        let [asks, keeps] = &self.exports;
        let pid = self.ganesha.pid;
        match side {
            Side::Library => self.library.measure(&order, times, daemons),
            Side::Store => self.store.measure(&order, times, daemons),
            Side::CachingLibrary => self.caching_library.measure(&order, times, daemons),
            Side::Gateway => {
                let pid = self.stage.gateways.first().context("there is no gateway")?.pid()?;
                measure::server((&self.gateway, GATEWAYS_FILES, pid), work, (times, seed), daemons)
            }
            Side::Ganesha => {
                measure::server((asks, ASKING_FILES, pid), work, (times, seed), daemons)
            }
            Side::KeepingGanesha => {
                measure::server((keeps, KEEPING_FILES, pid), work, (times, seed), daemons)
            }
        }
    }

    fn order(&self, work: Work, (threads, mounts): (u32, u32), seed: u64) -> Order {
        let Times { warmup_s, measured_s, .. } = self.times;
        Order { work, threads, mounts, warmup_s, measured_s, seed }
    }

    /// libcephfs by threads and mounts.
    fn scales(&mut self) -> Result<Vec<Scale>> {
        let mut scales = Vec::new();
        for work in plan::SCALED {
            let mut samples = [const { Vec::new() }; plan::SCALES.len()];
            for turn in 0..self.times.turns {
                for (scale, samples) in plan::SCALES.into_iter().zip(&mut samples) {
                    self.stop.check()?;
                    let order = self.order(work, scale, u64::from(turn) + 1);
                    samples.push(self.library.measure(&order, &self.times, &self.daemons)?);
                }
            }
            let with = plan::SCALES.into_iter().zip(samples);
            scales.extend(with.map(|((threads, mounts), samples)| {
                let median = Figures::new(samples).median;
                Scale { workload: work.name, threads, mounts, median }
            }));
        }
        Ok(scales)
    }

    /// CREATE + REMOVE of the gateway, started anew with names that are on disk before it answers.
    fn stable_names(&mut self) -> Result<Figures> {
        let gateway = self.stage.gateways.first_mut().context("there is no gateway")?;
        gateway.stop(false)?;
        gateway.serve_with(STABLE_NAMES);
        let operator = gateway.start()?;
        let is_served = |homes: &crate::stage::Homes| homes.values().all(Option::is_some);
        self.stage.until(&operator, "the gateway to serve again", is_served)?;
        let turns = (1..=u64::from(self.times.turns)).map(|seed| {
            self.stop.check()?;
            self.measure(Side::Gateway, &plan::CREATE_REMOVE, seed)
        });
        Ok(Figures::new(turns.collect::<Result<_>>()?))
    }
}
