//! `weir gateway import` and `weir gateway export`: catalogues between a server that is alone and a
//! cluster. Backups of the cluster are those of `weir catalog`.

use super::catalogue;
use super::machine::Machine;
use super::member::data;
use crate::cli::{Global, Output, catalog, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use std::path::{PathBuf, absolute};
use weir_catalog::{
    Ceph, Import, InterfaceAddress, Replace, Snapshot, Volume, check_import, export_cluster,
    import_into_cluster, preview_import,
};
use weir_control::config::CephConfig;

/// Bring the catalogue of a server that is alone into the cluster
///
/// Replaces the catalogue of the cluster by that in SOURCE, the data directory of a stopped server
/// or a backup of its catalogue. Run the command on the machine of a gateway, with its data
/// directory (--data), while no gateway of the cluster runs.
///
/// Volumes keep their names, quotas, contracts and rules; users and groups, passwords, custom
/// levels, credits for bursts, and from a data directory the API tokens come along. The cluster
/// keeps its gateways and addresses. Everything is replaced at once: if the command fails or is
/// interrupted, the cluster has the catalogue that it had, and the command can be repeated.
///
/// Files are not copied. Gateways serve CephFS alone, so each pool gets a directory in CephFS
/// (--pools-in), in which its volumes are empty at first. Start the gateways and copy the files of
/// each volume through mounts. Clients mount the volumes at their new addresses. What was measured
/// of the disks of the old machine, its audit log and the history of its contracts stay there.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir gateway import --data /var/lib/weir --pools-in /weir --dry-run \\
    --address 10.0.0.5/24,10.0.0.6/24 /backup/nas.backup --smb-key /backup/smb.key
  weir gateway import --data /var/lib/weir --pools-in /weir \\
    --address 10.0.0.5/24,10.0.0.6/24 /mnt/old/var/lib/weir")]
pub(crate) struct ImportArgs {
    /// Data directory of a stopped server, or a backup made with `weir catalog backup`
    source: PathBuf,
    /// Directory of CephFS for the pools: the pool NAME gets DIR/NAME
    #[arg(long, value_name = "DIR")]
    pools_in: Option<PathBuf>,
    /// Address to add to the cluster, such as 10.0.0.5/24; repeatable. The volumes are spread over
    /// all addresses of the cluster by their contracts
    #[arg(long, value_name = "ADDRESS/PREFIX", value_delimiter = ',')]
    address: Vec<InterfaceAddress>,
    /// Copy of the file smb.key of the server that SOURCE comes from; a backup does not have it,
    /// and the passwords of users cannot be opened without it
    #[arg(long, value_name = "FILE", conflicts_with = "without_passwords")]
    smb_key: Option<PathBuf>,
    /// Import the users without their passwords, which have to be set again
    #[arg(long)]
    without_passwords: bool,
    /// Replace a catalogue that has pools, users or custom levels; it is kept in a backup
    /// replaced-N.backup in the data directory
    #[arg(long)]
    replace: bool,
    /// Check the import and show its effect; nothing is stored
    #[arg(long)]
    dry_run: bool,
}

/// Write the catalogue of the cluster to the data directory of a server that is alone
///
/// Run the command on the machine of a gateway, with its data directory (--data). OUT is new or
/// empty, and becomes a data directory that `weir serve` serves. Gateways may run meanwhile;
/// changes that come later are not in it.
///
/// Volumes keep their names, quotas, contracts and rules; users and groups, passwords, custom
/// levels and API tokens come along. The cluster is not changed. Files are not copied: volumes are
/// empty at first. Start the server, and copy the files of each volume through mounts.
///
/// If the command is interrupted, run it again.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir gateway export --data /var/lib/weir /srv/weir
  weir gateway export --data /var/lib/weir --pools-in /srv/pools /srv/weir")]
pub(crate) struct ExportArgs {
    /// Data directory to write
    out: PathBuf,
    /// Directory for the pools: the pool NAME gets DIR/NAME [default: directories in OUT]
    #[arg(long, value_name = "DIR")]
    pools_in: Option<PathBuf>,
}

/// Imports a catalogue.
///
/// # Errors
/// SOURCE cannot be read or not be taken over; gateways run; those of the catalogue.
pub(crate) fn import(global: &Global, args: &ImportArgs) -> Result<()> {
    let machine = Machine::needed(&data(global)?)?;
    let import = args.read(&machine.config.ceph)?;
    let replace = if args.replace { Replace::Kept } else { Replace::Never };
    let (snapshot, kept) = machine.with_shared(|shared| {
        if args.dry_run {
            return Ok((preview_import(&shared.place, &import, replace)?, None));
        }
        let _held = shared.hold(std::iter::empty())?;
        // Refusals come before a file is written.
        check_import(&shared.place, &import, replace)?;
        let kept = catalogue::keep(&machine, &shared.place, replace)?;
        Ok((import_into_cluster(&shared.place, &import, replace)?, kept))
    })?;
    if global.output == Output::Json {
        return print::json(&json!({
            "dry_run": args.dry_run,
            "pools": snapshot.pools().count(),
            "users": snapshot.users().len(),
            "groups": snapshot.groups().len(),
            "volumes": snapshot.volumes().map(|one| volume(&snapshot, one)).collect::<Vec<_>>(),
            "kept": kept,
        }));
    }
    print_volumes(&snapshot)?;
    let done = if args.dry_run { "would be imported" } else { "imported" };
    print::line(format_args!(
        "{} pool(s), {} volume(s), {} user(s) {done}",
        snapshot.pools().count(),
        snapshot.volumes().len(),
        snapshot.users().len()
    ))?;
    if let Some(kept) = kept {
        print::line(format_args!("the previous catalogue is in {}", kept.display()))?;
    }
    match args.dry_run {
        true => Ok(()),
        false => print::line(
            "The volumes are empty: start the gateways, and copy the files of each volume through mounts.",
        ),
    }
}

impl ImportArgs {
    /// The catalogue in SOURCE, as the other options have it.
    fn read(&self, CephConfig { conf, user }: &CephConfig) -> Result<Import> {
        let mut import = if self.source.is_dir() {
            Import::of_directory(&self.source)?
        } else {
            Import::of_backup(&self.source, &catalog::read(&self.source)?)?
        };
        if let Some(path) = &self.smb_key {
            import = import.with_password_key(catalog::read(path)?);
        }
        if self.without_passwords {
            import = import.without_passwords()?;
        }
        if let Some(parent) = &self.pools_in {
            let ceph = Ceph { conf: conf.clone(), user: user.clone() };
            import = import.on_ceph(&ceph, parent).context("--pools-in")?;
        }
        Ok(import.at_addresses(&self.address)?)
    }
}

/// Exports the catalogue of the cluster.
///
/// # Errors
/// OUT is the directory of a server; those of the catalogue.
pub(crate) fn export(global: &Global, args: &ExportArgs) -> Result<()> {
    let machine = Machine::needed(&data(global)?)?;
    let out = absolute(&args.out).context("OUT")?;
    if out.join("gateway.toml").exists() {
        bail!("{} is the data directory of a gateway: use a new or empty directory", out.display());
    }
    let pools_in = args.pools_in.as_ref().map(absolute).transpose().context("--pools-in")?;
    let snapshot = machine
        .with_shared(|shared| Ok(export_cluster(&shared.place, &out, pools_in.as_deref())?))?;
    if global.output == Output::Json {
        return print::json(&json!({
            "data": out,
            "pools": snapshot.pools().count(),
            "users": snapshot.users().len(),
            "groups": snapshot.groups().len(),
            "volumes": snapshot.volumes().map(|one| volume(&snapshot, one)).collect::<Vec<_>>(),
        }));
    }
    print_volumes(&snapshot)?;
    let (data, pools, volumes) =
        (out.display(), snapshot.pools().count(), snapshot.volumes().len());
    print::lines([
        format!("{pools} pool(s), {volumes} volume(s) exported to {data}"),
        "The volumes are empty: start the server, and copy the files of each volume through mounts:"
            .to_owned(),
        format!("  weir serve --data {data}"),
    ])
}

fn volume(snapshot: &Snapshot, volume: &Volume) -> serde_json::Value {
    json!({
        "name": volume.name,
        "pool": pool_of(snapshot, volume),
        "address": address_of(snapshot, volume),
        "directory": volume.directory,
    })
}

fn pool_of(snapshot: &Snapshot, volume: &Volume) -> String {
    snapshot.pool(volume.pool).map(|pool| pool.name.clone()).unwrap_or_default()
}

fn address_of(snapshot: &Snapshot, volume: &Volume) -> Option<String> {
    Some(snapshot.address(volume.address?)?.at.ip.to_string())
}

/// Prints the volumes with the places that they have now.
fn print_volumes(snapshot: &Snapshot) -> Result<()> {
    let row = |volume: &Volume| {
        vec![
            volume.name.clone(),
            pool_of(snapshot, volume),
            address_of(snapshot, volume).unwrap_or_else(|| "none".to_owned()),
            volume.directory.display().to_string(),
        ]
    };
    let header = ["volume", "pool", "address", "directory"];
    print::table(&header, snapshot.volumes().map(|one| row(one)))
}
