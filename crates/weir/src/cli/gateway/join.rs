//! `weir gateway join`.

use super::member::{Candidate, MemberArgs, make_directory, print_made};
use crate::cli::Global;
use crate::cluster;
use anyhow::{Context, Result};
use clap::Args;
use weir_catalog::{CatalogError, ClusterError};

/// Add this machine to a cluster as a gateway
///
/// Adds the gateway to the catalogue of the cluster, which gives it a number, and writes the file
/// gateway.toml to the data directory (--data), with which `weir serve` is a gateway. The key file
/// is a copy of that of the other gateways; only its owner may be able to read it (chmod 600).
///
/// The options are checked first; if one of them is wrong, nothing is changed. If the command is
/// interrupted, run it again with the same options: it completes what is missing. The data
/// directory must be new, or hold nothing but the key file. No other gateway has to run.
///
/// To replace a machine that is lost, remove its gateway (`weir gateway remove`) and join the new
/// machine under another name or the same one.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  install -d -m 700 /var/lib/weir
  scp -p root@g1:/var/lib/weir/cluster.key /var/lib/weir/
  weir gateway join --data /var/lib/weir --cluster nas --gateway g2 \\
    --links 10.0.1.2:7450 --helper-links 10.0.1.2:7451 --interface eth0 \\
    --etcd http://10.0.1.11:2379,http://10.0.1.12:2379,http://10.0.1.13:2379 \\
    --ceph-conf /etc/ceph/ceph.conf --ceph-user weir
  weir gateway join --data /var/lib/weir --key /etc/weir/cluster.key --cluster nas \\
    --gateway g2 --links 10.0.1.2:7450 --helper-links 10.0.1.2:7451 --interface eth0 \\
    --etcd https://etcd.example:2379 --etcd-ca /etc/weir/etcd-ca.pem \\
    --ceph-conf /etc/ceph/ceph.conf")]
pub(crate) struct JoinArgs {
    #[command(flatten)]
    member: MemberArgs,
}

/// Adds this machine to the cluster.
///
/// # Errors
/// The errors of [`Candidate::checked`]; the key file cannot be read, or is not the cluster's; the
/// cluster does not exist; another gateway has the name or an address; etcd does not answer.
pub(crate) fn run(global: &Global, args: &JoinArgs) -> Result<()> {
    let candidate = Candidate::checked(global, &args.member)?;
    let copied = "copy the key file from another gateway of the cluster";
    let key = cluster::key_file(&candidate.config).context(copied)?;
    let config = candidate.with_etcd(|runtime| {
        let name = &candidate.config.cluster;
        if !candidate.has_cluster(runtime.clone())? {
            let missing = ClusterError::Missing { cluster: name.clone() };
            let created = "`weir gateway init` creates a cluster, with its first gateway";
            return Err(anyhow::Error::new(CatalogError::from(missing)).context(created));
        }
        make_directory(&candidate.directory)?;
        let catalog = candidate.catalog(&candidate.place(runtime, &key))?;
        candidate.add(&catalog)
    })?;
    print_made(global.output, &candidate.directory, &config, &[])
}
