//! `weir gateway init`.

use super::member::{Candidate, MemberArgs, make_directory, print_made};
use crate::cli::Global;
use anyhow::Result;
use clap::Args;
use tokio::runtime::Handle;
use weir_catalog::{CatalogError, ClusterError, create_cluster};
use weir_control::config::GatewayConfig;
use weir_links::KeyFile;

/// Create a cluster, with this machine as its first gateway
///
/// Makes the key file of the cluster, its catalogue in etcd, and the file gateway.toml in the data
/// directory (--data), with which `weir serve` is a gateway. The catalogue is empty: pools and
/// volumes are created once the gateway runs. Further machines join with a copy of the key file.
///
/// The options are checked first; if one of them is wrong, nothing is made. If the command is
/// interrupted, run it again with the same options: it completes what is missing. A key file that
/// exists already is used. The data directory must be new or empty.
///
/// Whoever has the key file is trusted as a gateway and can read the secrets of the cluster.
/// Without it the secrets in etcd are lost: keep a copy in a safe place.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir gateway init --data /var/lib/weir --cluster nas --gateway g1 \\
    --links 10.0.1.1:7450 --helper-links 10.0.1.1:7451 --interface eth0 \\
    --etcd http://10.0.1.11:2379,http://10.0.1.12:2379,http://10.0.1.13:2379 \\
    --ceph-conf /etc/ceph/ceph.conf --ceph-user weir
  weir gateway init --data /var/lib/weir --cluster nas --gateway g1 \\
    --links 10.0.1.1:7450 --helper-links 10.0.1.1:7451 --interface eth0 \\
    --etcd https://etcd.example:2379 --etcd-ca /etc/weir/etcd-ca.pem \\
    --etcd-cert /etc/weir/etcd.pem --etcd-cert-key /etc/weir/etcd.key \\
    --ceph-conf /etc/ceph/ceph.conf")]
pub(crate) struct InitArgs {
    #[command(flatten)]
    member: MemberArgs,
}

/// Creates the cluster.
///
/// # Errors
/// The errors of [`Candidate::checked`]; the cluster exists and has other gateways; etcd does not
/// answer.
pub(crate) fn run(global: &Global, args: &InitArgs) -> Result<()> {
    let candidate = Candidate::checked(global, &args.member)?;
    let config = candidate.with_etcd(|runtime| create(&candidate, runtime))?;
    let data = candidate.directory.display();
    let further = [
        String::new(),
        "Then add an address for clients, and a pool:".to_owned(),
        format!("  weir gateway address add ADDRESS/PREFIX --data {data}"),
        format!(
            "  weir pool create POOL --level LEVEL --size SIZE --ceph {} --path DIR --data {data}",
            config.ceph.conf.display()
        ),
        String::new(),
        "Further machines join with a copy of the key file, which must stay secret:".to_owned(),
        format!("  weir gateway join --cluster {} --gateway NAME --key FILE ...", config.cluster),
    ];
    print_made(global.output, &candidate.directory, &config, &further)
}

fn create(candidate: &Candidate, runtime: Handle) -> Result<GatewayConfig> {
    let path = &candidate.config.key;
    let exists = candidate.has_cluster(runtime.clone())?;
    // An earlier run that was interrupted has left the file.
    let key = match path.symlink_metadata() {
        Ok(_) => KeyFile::read(path)?,
        Err(_) if exists => return Err(taken(candidate)),
        Err(_) => {
            make_directory(&candidate.directory)?;
            KeyFile::create(path)?
        }
    };
    let place = candidate.place(runtime, &key);
    if !exists {
        create_cluster(&place)?;
    }
    let catalog = candidate.catalog(&place).map_err(|error| match error.downcast_ref() {
        Some(CatalogError::Cluster(ClusterError::WrongKey { .. })) => taken(candidate),
        _ => error,
    })?;
    if catalog.snapshot().gateways().any(|row| !candidate.is_own(row)) {
        return Err(taken(candidate));
    }
    candidate.add(&catalog)
}

/// The refusal of a cluster that is not this command's.
fn taken(candidate: &Candidate) -> anyhow::Error {
    let exists = ClusterError::Exists { cluster: candidate.config.cluster.clone() };
    anyhow::Error::new(CatalogError::from(exists)).context(
        "the cluster is not created: to add this machine to it, use `weir gateway join` with a copy of its key file",
    )
}
