//! `weir catalog`: backup, restore and consistency check of the catalogue. That of a gateway is in
//! etcd ([`super::gateway`]).

#[cfg(feature = "cluster")]
use super::gateway::catalogue;
use super::{Global, Output, connect, print};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use weir_catalog::{BackupInfo, CatalogError, Finding, Replace, Report, Restored, Severity};

/// Maximum size of a backup, in bytes.
const BACKUP_BYTES_MAX: u64 = 1 << 30;

/// Back up, restore and check the catalogue: pools, volumes, contracts and export rules.
#[derive(Subcommand)]
pub(crate) enum CatalogCommand {
    /// Back up the catalogue to a file
    ///
    /// The server may be running or stopped. The backup is one SQLite database: a consistent
    /// snapshot of pools, volumes, contracts, export rules and the hosts that hold locks. It also
    /// contains the key of the file handles, so that clients continue to work after a restore.
    /// Protect it like the data: anyone who has it can forge file handles. It contains neither the
    /// files of the volumes nor the API token.
    ///
    /// With the data directory of a gateway, the backup is that of the cluster's catalogue in etcd,
    /// on any gateway, running or stopped. It also contains gateways, addresses, the key of
    /// passwords and the API tokens. These secrets are sealed by the key file of the cluster, which
    /// is not in the backup: keep a copy of it in another place.
    #[command(after_long_help = "\
Examples:
  weir --data /var/lib/weir catalog backup /backup/weir.backup
  weir --data /var/lib/weir catalog backup --overwrite /backup/weir.backup")]
    Backup {
        /// Backup file to write; only its owner can read it
        file: PathBuf,
        /// Overwrite an existing file; it is replaced only after the new backup is complete
        #[arg(long)]
        overwrite: bool,
    },
    /// Restore the catalogue from a backup (the server must be stopped)
    ///
    /// The backup may come from this version or from an older one. With --replace, the existing
    /// catalogue is kept in a directory replaced-N. Volumes created after the backup are unknown
    /// after the restore; their files remain on disk, and no new volume reuses their directories.
    /// The restored catalogue is checked, and problems are reported.
    ///
    /// With the data directory of a gateway, the backup of a cluster is restored to etcd, also
    /// where etcd's data was lost; stop the servers of all gateways first. The key file has to be
    /// the one that the cluster had at the time of the backup. With --replace, the existing
    /// catalogue is kept in a backup replaced-N.backup, and the cluster keeps its gateways,
    /// addresses and API tokens; where there is none, those of the backup come back. Clients
    /// continue with the same mounts.
    #[command(after_long_help = "\
Examples:
  weir --data /var/lib/weir catalog restore /backup/weir.backup
  weir --data /var/lib/weir catalog restore --replace /backup/weir.backup")]
    Restore {
        /// Backup file to restore
        file: PathBuf,
        /// Replace an existing catalogue; the old one is kept in a directory replaced-N
        #[arg(long)]
        replace: bool,
    },
    /// Check the catalogue of a data directory, or a backup
    ///
    /// Checks the integrity and the format version of the database, the permissions of secret
    /// files, and that the directory of every pool and volume exists and has a supported format.
    /// The check changes nothing, and the server may be running. The exit status is 1 if data is
    /// missing or cannot be served. With --backup, the content is compared with the checksum of the
    /// backup; backups made by earlier versions have no checksum.
    #[command(after_long_help = "\
Examples:
  weir --data /var/lib/weir catalog check
  weir catalog check --backup /backup/weir.backup")]
    Check {
        /// Check this backup instead of the data directory
        #[arg(long, value_name = "FILE")]
        backup: Option<PathBuf>,
    },
}

/// Runs `command`.
pub(crate) fn run(global: &Global, command: &CatalogCommand) -> Result<()> {
    match command {
        CatalogCommand::Backup { file, overwrite } => backup(global, file, *overwrite),
        CatalogCommand::Restore { file, replace } => {
            restore(global, file, if *replace { Replace::Kept } else { Replace::Never })
        }
        CatalogCommand::Check { backup: Some(file) } => check_backup(global.output, file),
        CatalogCommand::Check { backup: None } => check(global),
    }
}

fn backup(global: &Global, file: &Path, overwrite: bool) -> Result<()> {
    if !overwrite && file.symlink_metadata().is_ok() {
        bail!("{} already exists: use another name, or --overwrite", file.display());
    }
    let bytes = match global.server {
        Some(_) => from_server(global)?,
        None => from_here(global)?,
    };
    // Before it takes the place of another, which may be good.
    let info = weir_catalog::inspect_backup(file, &bytes).map_err(|error| match error {
        CatalogError::DamagedBackup { what, .. } => CatalogError::Damaged(what),
        other => other,
    })?;
    write_whole(file, &bytes).with_context(|| format!("can't write {}", file.display()))?;
    if global.output == Output::Json {
        return print::json(&json!({ "file": file, "bytes": bytes.len(), "backup": shown(&info) }));
    }
    print::line(format_args!("{}: {}", file.display(), told(&info)))
}

/// The backup of this machine's catalogue, whether its server runs or not.
fn from_here(global: &Global) -> Result<Vec<u8>> {
    let directory = data(global)?;
    #[cfg(feature = "cluster")]
    if let Some(bytes) = catalogue::backup(directory)? {
        return Ok(bytes);
    }
    match weir_catalog::backup_stopped(directory) {
        Err(CatalogError::Locked { .. }) => from_server(global),
        made => Ok(made?),
    }
}

#[cfg(feature = "cluster")]
fn print_restored(output: Output, restored: &catalogue::Restored) -> Result<()> {
    let catalogue::Restored { info, kept, gateways, stranger } = restored;
    if output == Output::Json {
        return print::json(&json!({
            "backup": shown(info),
            "kept": kept,
            "gateways": gateways,
            "findings": stranger.iter().map(|told| {
                finding(&Finding::warning("gateway_unknown", told.clone()))
            }).collect::<Vec<_>>(),
        }));
    }
    print::line(format_args!("restored {}", told(info)))?;
    if let Some(kept) = kept {
        print::line(format_args!("the previous catalogue is in {}", kept.display()))?;
    }
    match gateways.is_empty() {
        true => print::line("gateways: none")?,
        false => print::line(format_args!("gateways: {}", gateways.join(", ")))?,
    }
    stranger.iter().try_for_each(|told| print::line(format_args!("warning: {told}")))
}

fn restore(global: &Global, file: &Path, replace: Replace) -> Result<()> {
    let directory = data(global)?;
    #[cfg(feature = "cluster")]
    if let Some(restored) = catalogue::restore(directory, (file, &read(file)?), replace)? {
        return print_restored(global.output, &restored);
    }
    let Restored { info, kept } = weir_catalog::restore(directory, file, &read(file)?, replace)?;
    let report = weir_server::check(directory, None)?;
    if global.output == Output::Json {
        return print::json(&json!({
            "backup": shown(&info),
            "kept": kept,
            "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        }));
    }
    print::line(format_args!("restored {}", told(&info)))?;
    if let Some(kept) = kept {
        print::line(format_args!("the previous catalogue is in {}", kept.display()))?;
    }
    print_findings(&report)
}

fn check(global: &Global) -> Result<()> {
    if global.server.is_some() {
        bail!(print::usage(
            "check reads files of the server: run it on the server's machine, with --data"
        ));
    }
    let directory = data(global)?;
    if directory.join("gateway.toml").exists() {
        bail!(print::usage(
            "the catalogue of a gateway is in etcd, and gateways check what they read: see `weir health`; to check a backup of it, use --backup FILE"
        ));
    }
    let report = match weir_server::check(directory, None) {
        Err(CatalogError::Locked { .. }) => {
            weir_server::check(directory, Some(&from_server(global)?))?
        }
        report => report?,
    };
    let (pools, volumes) = (report.snapshot.pools().count(), report.snapshot.volumes().count());
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let errors = report.findings.iter().filter(is_error).count();
    if global.output == Output::Json {
        print::json(&json!({
            "ok": errors == 0,
            "format": report.format,
            "pools": pools,
            "volumes": volumes,
            "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        }))?;
    } else {
        print_findings(&report)?;
        let format = report.format;
        let outcome =
            if report.findings.is_empty() { "no problems found" } else { "see the problems above" };
        print::line(format_args!("format {format}, {pools} pools, {volumes} volumes: {outcome}"))?;
    }
    match errors {
        0 => Ok(()),
        1 => bail!("the catalogue has an error"),
        _ => bail!("the catalogue has {errors} errors"),
    }
}

fn check_backup(output: Output, file: &Path) -> Result<()> {
    let info = weir_catalog::inspect_backup(file, &read(file)?)?;
    match output {
        Output::Json => print::json(&shown(&info)),
        Output::Table => print::line(format_args!("{}: {}", file.display(), told(&info))),
    }
}

/// Fetches a backup from the running server.
fn from_server(global: &Global) -> Result<Vec<u8>> {
    let client = connect::client(global)?;
    connect::with_client(global, async move { Ok(client.catalog_backup().await?) })
}

fn data(global: &Global) -> Result<&Path> {
    let data = global.data.as_deref();
    data.ok_or_else(|| print::usage("no data directory given: use --data DIR, or set WEIR_DATA"))
}

/// The content of `file`, which is at most as long as a backup can be.
///
/// # Errors
/// It cannot be read, or is longer.
pub(super) fn read(file: &Path) -> Result<Vec<u8>> {
    let unreadable = || format!("can't read {}", file.display());
    let opened = File::open(file).with_context(unreadable)?;
    let mut bytes = Vec::new();
    opened.take(BACKUP_BYTES_MAX + 1).read_to_end(&mut bytes).with_context(unreadable)?;
    if bytes.len() as u64 > BACKUP_BYTES_MAX {
        bail!("{} is too large for a backup", file.display());
    }
    Ok(bytes)
}

/// Writes a file readable by its owner only. The file is replaced atomically and survives a power
/// failure.
///
/// # Errors
/// The error of the file system; nothing is left of the new content.
pub(super) fn write_whole(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = file.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        // Gone, or left by a backup that was cut short.
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut made = options.write(true).create_new(true).mode(0o600).open(&new)?;
    let written = made.write_all(bytes).and_then(|()| made.sync_all());
    let named = written.and_then(|()| std::fs::rename(&new, file));
    if named.is_err() {
        // The first error is the one to tell.
        let _removed = std::fs::remove_file(&new);
    }
    named?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn told(info: &BackupInfo) -> String {
    let BackupInfo { weir, format, pools, volumes, sha256, cluster, .. } = info;
    let of = cluster.as_ref().map(|cluster| format!(" of cluster {cluster}")).unwrap_or_default();
    let checked = match sha256 {
        Some(_) => "checksum correct",
        None => "made by an earlier version without a checksum, so damage cannot be excluded",
    };
    format!(
        "catalogue{of} of format {format}, {pools} pools, {volumes} volumes, made by weir {weir}; {checked}"
    )
}

fn shown(info: &BackupInfo) -> serde_json::Value {
    let BackupInfo { taken, weir, format, pools, volumes, sha256, cluster } = info;
    json!({
        "taken": taken,
        "weir": weir,
        "format": format,
        "pools": pools,
        "volumes": volumes,
        "sha256": sha256,
        "cluster": cluster,
    })
}

fn finding(finding: &Finding) -> serde_json::Value {
    let Finding { severity, code, message } = finding;
    json!({ "severity": severity_word(*severity), "code": code, "message": message })
}

fn print_findings(report: &Report) -> Result<()> {
    for finding in &report.findings {
        print::line(format_args!("{}: {}", severity_word(finding.severity), finding.message))?;
    }
    Ok(())
}

const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
