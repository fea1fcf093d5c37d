//! The number of repeats of a load, and the handling of caches and files.

use super::place::Reach;
use super::values::time;
use super::{CliError, Served};
use crate::cluster::this_machine;
use crate::suite::{CacheOptions, Options, chance_seed};
use clap::Args;
use std::time::Duration;
use weir_core::units::parse_bytes;
use weir_load::stats::cpu;
use weir_load::target::Targets;

/// Options of the measurement.
#[derive(Args, Clone, Debug)]
pub struct MethodArgs {
    /// Number of repeats per step; results show the median, the minimum and the maximum.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Method",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Run each step once more at the beginning, and discard that run.
    #[arg(long, help_heading = "Method")]
    pub discard_first: bool,
    /// Extend the warm-up until the rate is steady (drift at most 10 %, no second deviating by 20
    /// %), up to this time [default if given without a value: 5m].
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "5m", value_parser = time, help_heading = "Method")]
    pub steady: Option<Duration>,
    /// Measure the CPU time of this server process on this machine.
    #[arg(long, value_name = "PID", help_heading = "Method")]
    pub server_pid: Option<u32>,
    /// A setting of the server, for the record (metadata-cache=off); pairs of the catalogue that
    /// are about a setting compare results by it.
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::values::setting,
          help_heading = "Method")]
    pub setting: Vec<(String, String)>,
    /// Memory size of the server, for comparison with the data size [default: memory of this
    /// machine, if the server runs here; that told by the API of a Weir server named by --server or
    /// --data].
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Caches")]
    pub server_memory: Option<u64>,
    /// Drop the kernel caches of this machine before steps that require empty caches (as root).
    #[arg(long, help_heading = "Caches")]
    pub drop_caches: bool,
    /// Shell command to run before steps that require empty caches, such as `ssh server 'echo 3 >
    /// /proc/sys/vm/drop_caches'`.
    #[arg(long, value_name = "COMMAND", help_heading = "Caches")]
    pub invalidate_command: Option<String>,
    /// Amount of other data to read before steps that require empty caches.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Caches")]
    pub flush_read: Option<u64>,
}

/// Handling of the files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Files {
    pub(super) keep: bool,
    pub(super) reuse: bool,
}

impl MethodArgs {
    /// The options for targets; `served` is the Weir server that the user named, if any.
    pub(super) fn options(
        &self,
        (text, targets): (&str, &Targets),
        served: Option<&Served>,
        files: Files,
        label: Option<&str>,
    ) -> Result<Options, CliError> {
        if let Some(pid) = self.server_pid {
            cpu::process(pid).map_err(|source| CliError::Server { pid, source })?;
        }
        let reach = Reach::of_all(targets);
        let here = this_machine().memory_bytes;
        Ok(Options {
            label: label.unwrap_or_default().to_owned(),
            target: text.to_owned(),
            command: std::env::args().collect(),
            transport: reach.transport,
            settings: self.setting.iter().cloned().collect(),
            contracts: served.map(|it| it.contracts_of(targets)).unwrap_or_default(),
            seed: chance_seed(),
            clients: Vec::new(),
            machine: None,
            repeats: self.repeats,
            discard_first: self.discard_first,
            steady_within: self.steady,
            reuse: files.reuse,
            keep: files.keep,
            server_pid: self.server_pid,
            cache: CacheOptions {
                client_memory: here,
                server_memory: self
                    .server_memory
                    .or(reach.server_is_here.then_some(here))
                    .or(served.filter(|it| it.has_all(targets)).and_then(|it| it.memory_bytes)),
                drop: self.drop_caches,
                server_is_here: reach.server_is_here,
                on_path: reach.on_path,
                command: self.invalidate_command.clone(),
                read_bytes: self.flush_read,
            },
        })
    }
}
