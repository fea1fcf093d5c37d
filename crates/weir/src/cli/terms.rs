//! The options for the terms of a volume, common to `weir volume create` and `weir volume set`.

use super::values::{self, Ceiling, Own, OwnSwitch};
use clap::Args;
use weir_api::TermsChange;

/// The terms of a volume to create or to change.
#[derive(Args)]
#[group(id = "terms")]
pub(crate) struct TermsArgs {
    /// Throughput limit, such as 48MiB/s (manual, flexible and custom pools). In a shared pool:
    /// guaranteed minimum; 0MiB/s for none, the default. In a provisioned-v2 pool: 100MiB/s to
    /// 10340MiB/s; by default 100MiB/s plus 0.1MiB/s per GiB
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// IOPS limit for READs and WRITEs (custom and provisioned-v2 pools), or auto, the default. In
    /// a custom pool, auto is the share of the pool's IOPS in proportion to throughput. In a
    /// provisioned-v2 pool: 3000 to 102400; auto is 3000 plus 1 per GiB
    #[arg(long, value_name = "COUNT", value_parser = values::own_iops)]
    iops: Option<Own>,
    /// Throughput ceiling of the volume, independent of its contract, such as 100MiB/s, or none
    #[arg(long, value_name = "RATE", value_parser = values::ceiling_rate)]
    max_throughput: Option<Ceiling>,
    /// IOPS ceiling of the volume for READs and WRITEs, or none
    #[arg(long, value_name = "COUNT", value_parser = values::ceiling_iops)]
    max_iops: Option<Ceiling>,
    /// Throughput ceiling of each file, such as 60MiB/s; at least 1MiB/s, or none
    #[arg(long, value_name = "RATE", value_parser = values::ceiling_rate)]
    max_file_throughput: Option<Ceiling>,
    /// IOPS ceiling of each file for READs and WRITEs; at least 10, or none
    #[arg(long, value_name = "COUNT", value_parser = values::ceiling_iops)]
    max_file_iops: Option<Ceiling>,
    /// Cache names and attributes of the volume in the server's memory: on, off, or auto, the
    /// default, for the configuration of the server. Takes effect for the next operation
    #[arg(long, value_name = "on|off|auto", value_parser = values::own_switch)]
    metadata_cache: Option<OwnSwitch>,
    /// Weight relative to the other volumes of a shared pool, 1 to 1000; by default 100
    #[arg(long)]
    weight: Option<u32>,
}

impl TermsArgs {
    /// The terms for a request.
    pub(crate) fn change(&self) -> TermsChange {
        let ceiling = |ceiling: Option<Ceiling>| ceiling.map(|Ceiling(most)| most);
        TermsChange {
            throughput_bytes_per_second: self.throughput,
            iops: self.iops.map(|Own(iops)| iops),
            max_throughput_bytes_per_second: ceiling(self.max_throughput),
            max_iops: ceiling(self.max_iops),
            max_file_throughput_bytes_per_second: ceiling(self.max_file_throughput),
            max_file_iops: ceiling(self.max_file_iops),
            metadata_cache: self.metadata_cache.map(|OwnSwitch(on)| on),
            weight: self.weight,
        }
    }
}
