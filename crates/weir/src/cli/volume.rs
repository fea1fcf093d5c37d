//! `weir volume`.

use super::export::{self, ExportCommand};
use super::ownership::{self, OwnershipArgs};
use super::pool::{allowing, dry};
use super::report::{self, ReportArgs};
use super::share::{self, SharingArgs};
use super::terms::TermsArgs;
use super::values::Own;
use super::{Global, Output, confirm, connect, print, reach, values};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_api::{
    Changed, Client, Counting, NewVolume, OperationCount, Protocol, Sharing, Terms, TermsChange,
    TopChange, Volume, VolumeChange, VolumeHome, VolumeLive,
};
use weir_core::units::{Bytes, Rate};
use weir_report::terminal::Status;

/// Create, show, change and delete volumes.
#[derive(Subcommand)]
pub(crate) enum VolumeCommand {
    /// Create a volume, which this machine can mount immediately
    ///
    /// Clients mount the volume as HOST:/VOLUME. Until an export rule is added (`weir export`),
    /// only this machine has access. If the server runs without --rpcbind, clients must mount with
    /// nolock: locks are then local to each client.
    ///
    /// The top directory of the volume belongs to root and has mode 0755, unless --owner, --group
    /// or --mode is given. No SMB user is root, so nobody can write over SMB without them.
    Create(Create),
    /// List all volumes
    ///
    /// In a cluster, any gateway lists all volumes with the gateways that serve them, which are
    /// asked for the used space.
    List,
    /// Show one volume with its live counters
    ///
    /// In a cluster, any gateway answers; the one that serves the volume is asked for the counters.
    Show {
        /// Name of the volume
        volume: String,
    },
    /// Change the limits, the ceilings, the top directory, the protocols or the share of a volume
    ///
    /// The change applies from the next request on; clients stay connected. A ceiling (--max-*) can
    /// only lower the limit of the contract. If several limits apply, the lowest one is enforced.
    /// --owner, --group and --mode change the top directory of the volume as chown and chmod do on
    /// a client; the files in it stay as they are.
    Set(Set),
    /// Change the quota of a volume
    Resize(Resize),
    /// Move a volume with its files to another pool, without interrupting clients
    ///
    /// After the move, the contract of the new pool applies. In an auto pool, the limit follows
    /// from the quota. In a pool with an individual throughput per volume, the volume keeps its
    /// throughput unless --throughput is given. Between custom pools it also keeps its IOPS unless
    /// --iops is given. The name, the ID and the clients' mounts are unchanged. No data is copied:
    /// if the new pool's directory is on another file system, the move is refused.
    Move(Move),
    /// Report whether the contract of a volume was kept, with the history
    ///
    /// Each 10-second interval is classified as kept, not demanded, or broken with a cause. Minutes
    /// are retained for one day, 15-minute intervals for 14 days. The report states the exact
    /// conditions. In a cluster, it joins what all gateways recorded, and names those that do not
    /// answer; the last 10 s, minute and hour are those of the gateway that serves the volume.
    Report(ReportArgs),
    /// Explain the current performance of a volume
    ///
    /// Shows where requests spend their time, whether the contract throttles them, and possible
    /// remedies. In a cluster, any gateway answers with what the one that serves the volume knows.
    Why {
        /// Name of the volume
        volume: String,
    },
    /// Show the gateway of a cluster that serves a volume, or move the volume to another
    ///
    /// All volumes of its address move with it. Clients stay connected to the address and keep
    /// their locks.
    Home(Home),
    /// Recount the used space of a volume while it is being served
    ///
    /// Use this after files were changed outside the server. The command shows the progress until
    /// the recount is complete; if the command is interrupted, the recount continues in the server.
    /// In a cluster, give the command on the gateway that serves the volume.
    #[command(after_long_help = "\
Examples:
  weir volume rescan home
  weir volume show home          # shows the progress")]
    Rescan {
        /// Name of the volume
        volume: String,
    },
    /// Delete a volume AND ALL ITS FILES
    Delete {
        /// Name of the volume
        volume: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Manage export rules; same as `weir export`
    #[command(subcommand, hide = true)]
    Export(ExportCommand),
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir volume create home --pool fast --quota 1TiB
  weir volume create team --pool fast --quota 1TiB --protocols nfs,smb --owner anna --mode 0770
  weir volume create scratch --pool shared --quota 100GiB --throughput 48MiB/s")]
pub(crate) struct Create {
    /// Name of the volume: 1 to 64 characters of A-Z a-z 0-9 . _ -
    volume: String,
    /// Capacity pool that provides the volume's quota
    #[arg(long)]
    pool: String,
    /// Quota, such as 1TiB
    #[arg(long, value_parser = values::size)]
    quota: u64,
    /// Address at which clients reach the volume, in a cluster [default: the address with the least
    /// load by contract]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    #[command(flatten)]
    terms: TermsArgs,
    #[command(flatten)]
    ownership: OwnershipArgs,
    #[command(flatten)]
    sharing: SharingArgs,
    /// Allow the volume even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir volume set home --throughput 48MiB/s
  weir volume set home --throughput 64MiB/s --dry-run
  weir volume set home --max-iops 500 --max-throughput none
  weir volume set home --owner anna --group staff --mode 2770
  weir volume set home --protocols nfs,smb --smb-encrypt on")]
#[command(override_usage = "weir volume set [OPTIONS] <VOLUME>")]
#[command(mut_group("terms", |terms| terms.required(true)))]
pub(crate) struct Set {
    /// Name of the volume
    volume: String,
    /// Quota, such as 1TiB; `weir volume resize` changes it
    #[arg(long, hide = true, group = "terms", value_parser = values::size)]
    quota: Option<u64>,
    /// Address at which clients reach the volume, in a cluster, if it was imported and has none
    #[arg(long, group = "terms", value_name = "ADDRESS")]
    address: Option<String>,
    #[command(flatten)]
    terms: TermsArgs,
    #[command(flatten)]
    ownership: OwnershipArgs,
    #[command(flatten)]
    sharing: SharingArgs,
    /// Allow the change even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect, without making the change
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir volume home projects
  weir volume home projects --gateway g2")]
pub(crate) struct Home {
    /// Name of the volume
    volume: String,
    /// Gateway to move the volume to, with all volumes of its address
    #[arg(long)]
    gateway: Option<String>,
}

#[derive(Args)]
pub(crate) struct Resize {
    /// Name of the volume
    volume: String,
    /// New quota, such as 2TiB
    #[arg(required = true, value_parser = values::size)]
    quota: Option<u64>,
    /// New quota, given as an option
    #[arg(long = "quota", hide = true, value_name = "QUOTA", conflicts_with = "quota", value_parser = values::size)]
    quota_option: Option<u64>,
    /// Allow the change even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect, without making the change
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir volume move home --to archive --dry-run
  weir volume move scratch --to shared --throughput 48MiB/s")]
pub(crate) struct Move {
    /// Name of the volume
    volume: String,
    /// Pool to move the volume to
    #[arg(long = "to", value_name = "POOL")]
    pool: String,
    /// Throughput limit in the new pool, such as 48MiB/s (manual, flexible and custom pools). In a
    /// shared pool: guaranteed minimum
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// IOPS limit for READs and WRITEs in the new pool (custom pools), or auto for the share in
    /// proportion to throughput [default: the IOPS set in the old custom pool]
    #[arg(long, value_name = "COUNT", value_parser = values::own_iops)]
    iops: Option<Own>,
    /// Allow the move even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect, without making the change
    #[arg(long)]
    dry_run: bool,
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &VolumeCommand) -> Result<()> {
    let output = global.output;
    let client = match command {
        VolumeCommand::Report(args) if args.only_checks() => {
            return report::check(global, args).await;
        }
        _ => connect::client(global)?,
    };
    match command {
        VolumeCommand::Report(args) => report::run(&client, output, args).await,
        VolumeCommand::Why { volume } => report::why(&client, output, volume).await,
        VolumeCommand::Create(args) => create(&client, output, args).await,
        VolumeCommand::List => list(&client, output).await,
        VolumeCommand::Show { volume } => show(&client, output, volume).await,
        VolumeCommand::Set(set) => {
            let change = VolumeChange {
                pool: None,
                quota_bytes: set.quota,
                address: set.address.clone(),
                top: set.ownership.change(),
                terms: set.terms.change(),
                sharing: set.sharing.change(),
            };
            let client = allowing(&client, set.overcommit);
            self::change(&client, output, &set.volume, change, set.dry_run).await
        }
        VolumeCommand::Resize(Resize { volume, quota, quota_option, overcommit, dry_run }) => {
            let quota_bytes = quota.or(*quota_option);
            let change = VolumeChange { quota_bytes, ..VolumeChange::default() };
            let client = allowing(&client, *overcommit);
            self::change(&client, output, volume, change, *dry_run).await
        }
        VolumeCommand::Move(Move { volume, pool, throughput, iops, overcommit, dry_run }) => {
            let terms = TermsChange {
                throughput_bytes_per_second: *throughput,
                iops: iops.map(|Own(iops)| iops),
                ..TermsChange::default()
            };
            let pool = Some(pool.clone());
            let change = VolumeChange { pool, terms, ..VolumeChange::default() };
            let client = allowing(&client, *overcommit);
            self::change(&client, output, volume, change, *dry_run).await
        }
        VolumeCommand::Home(args) => home(&client, output, args).await,
        VolumeCommand::Rescan { volume } => rescan(&client, output, volume).await,
        VolumeCommand::Delete { volume, yes, dry_run } => {
            let client = match yes | dry_run {
                true => client,
                false => confirmed(global, client, volume).await?,
            };
            let changed = client.delete_volume(volume, dry(*dry_run)).await?;
            let live = changed.item.as_ref().and_then(|volume| volume.live.as_ref());
            let done = match (dry_run, live) {
                (false, _) => {
                    format!("volume {volume} deleted; its files are removed in the background")
                }
                (true, None) => format!("volume {volume} would be deleted with all its files"),
                (true, Some(live)) => {
                    let used = counted(live.used_bytes);
                    format!("volume {volume} would be deleted with all its files, {used}")
                }
            };
            print::changed(output, &changed, &done)
        }
        VolumeCommand::Export(command) => export::run(global, command).await,
    }
}

/// Asks the user to confirm the deletion of a volume. The returned client deletes only the volume
/// that was shown, and refuses one that was changed or recreated in the meantime.
async fn confirmed(global: &Global, client: Client, name: &str) -> Result<Client> {
    confirm::possible()?;
    let shown = client.volume(name).await?;
    let held = shown
        .live
        .as_ref()
        .map_or_else(|| "all its files".to_owned(), |live| counted(live.used_bytes));
    confirm::deletion(name, &held)?;
    Ok(if global.if_match.is_some() { client } else { client.if_match(&shown.etag) })
}

async fn create(client: &Client, output: Output, args: &Create) -> Result<()> {
    let new = NewVolume {
        name: args.volume.clone(),
        pool: args.pool.clone(),
        quota_bytes: args.quota,
        address: args.address.clone(),
        top: args.ownership.change(),
        terms: args.terms.change(),
        sharing: args.sharing.change(),
    };
    let client = allowing(client, args.overcommit);
    let changed = client.create_volume(&new, dry(args.dry_run)).await?;
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    print::changed(output, &changed, &(done + &top_directory(&changed, new.top.as_ref())))?;
    if output == Output::Json || args.dry_run {
        return Ok(());
    }
    let Some(made) = changed.item else { return Ok(()) };
    let server = client.server().await?;
    let lines =
        [reach::over_nfs(&made, &server), reach::over_smb(&made, &server), reach::read_only(&made)];
    print::lines(lines.concat())
}

async fn home(client: &Client, output: Output, args: &Home) -> Result<()> {
    let home = match &args.gateway {
        Some(gateway) => client.move_home(&args.volume, gateway).await?,
        None => client.volume_home(&args.volume).await?,
    };
    if output == Output::Json {
        return print::json(&home);
    }
    let VolumeHome { volume, address, gateway, moving_to, moves_with } = home;
    let mut fields = vec![("volume", volume), ("address", address)];
    fields.push(("gateway", gateway.unwrap_or_else(|| "none at present".to_owned())));
    fields.extend(moving_to.map(|to| ("moving to", to)));
    if !moves_with.is_empty() {
        fields.push(("moves with", moves_with.join(", ")));
    }
    print::fields(&fields)
}

/// The top directory of a volume, if it was to be changed.
fn top_directory(changed: &Changed<Volume>, asked: Option<&TopChange>) -> String {
    let top = changed.item.as_ref().and_then(|volume| volume.top.as_ref());
    match asked.and(top) {
        Some(top) => format!("; top directory: {}", ownership::described(top)),
        None => String::new(),
    }
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let volumes = client.volumes().await?;
    if output == Output::Json {
        return print::json(&volumes);
    }
    // Each volume of a cluster has an address.
    let is_of_cluster = volumes.iter().any(|volume| volume.address.is_some());
    let row = |volume: Volume| {
        let used = match (&volume.live, &volume.no_answer) {
            (Some(live), _) => counted(live.used_bytes),
            (None, Some(_)) => "unknown".to_owned(),
            (None, None) => "not served".to_owned(),
        };
        let limit = limit(&volume);
        let quota = Bytes(volume.quota_bytes).to_string();
        let mut row = vec![volume.name, volume.pool, quota, used, limit];
        if is_of_cluster {
            row.push(volume.gateway.unwrap_or_else(|| "none at present".to_owned()));
        }
        row
    };
    let mut header = vec!["name", "pool", "quota", "used", "limit"];
    if is_of_cluster {
        header.push("gateway");
    }
    let silent = silent(&volumes);
    print::table(&header, volumes.into_iter().map(row))?;
    if silent.is_empty() {
        return Ok(());
    }
    print::line("")?;
    print::lines(silent)
}

/// A sentence for each gateway that did not answer for its volumes.
fn silent(volumes: &[Volume]) -> Vec<String> {
    let reasons: BTreeMap<_, _> = volumes
        .iter()
        .filter_map(|one| Some((one.gateway.as_ref()?, one.no_answer.as_ref()?)))
        .collect();
    let sentence = |(gateway, reason)| format!("gateway {gateway} does not answer: {reason}");
    reasons.into_iter().map(sentence).collect()
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let volume = client.volume(name).await?;
    if output == Output::Json {
        return print::json(&volume);
    }
    let limit = limit(&volume);
    let [over_nfs, over_smb] =
        [Protocol::Nfs, Protocol::Smb].map(|one| volume.sharing.protocols.contains(&one));
    let mut fields = vec![("name", volume.name), ("pool", volume.pool)];
    fields.extend(over_nfs.then_some(("export", volume.export_path)));
    fields.extend(volume.address.map(|address| ("address", address)));
    fields.extend(volume.gateway.map(|gateway| ("gateway", gateway)));
    fields.extend([("quota", Bytes(volume.quota_bytes).to_string()), ("limit", limit)]);
    let ceiling = volume.level_ceiling_bytes_per_second;
    fields.extend(ceiling.map(|most| ("volume ceiling", Rate(most).to_string())));
    fields.extend(terms(&volume.terms));
    fields.extend(shared(&volume.sharing));
    fields.extend(volume.top.as_ref().map(|top| ("top directory", ownership::described(top))));
    match &volume.live {
        None => {
            let reason = volume.no_answer.as_ref();
            let unknown = reason.map(|why| format!("unknown; its gateway does not answer: {why}"));
            let no = || "no; the server's log contains the reason".to_owned();
            fields.push(("served", unknown.unwrap_or_else(no)));
        }
        Some(live) => fields.extend([
            ("used", used(live)),
            ("reads", format!("{}, {}", live.read_ops, counted(live.read_bytes))),
            ("writes", format!("{}, {}", live.write_ops, counted(live.write_bytes))),
            ("other operations", live.other_ops.to_string()),
            ("failed operations", live.failed_ops.to_string()),
            ("throttled by the limit", live.delayed_ops.to_string()),
            ("waiting now", format!("{}, {}", live.waiting, counted(live.parked_bytes))),
        ]),
    }
    if let (Some(left), Some(most)) =
        (volume.live.as_ref().and_then(|live| live.credits), volume.credits_max)
    {
        fields.push(("burst credits", format!("{left} of {most}")));
    }
    print::fields(&fields)?;
    if over_nfs {
        print::line("")?;
        export::print_rules(&volume.exports)?;
    }
    if over_smb {
        print::line("")?;
        share::print_rules(&volume.share_rules)?;
    }
    let operations = volume.live.as_ref().map_or(&[][..], |live| &live.operations);
    if operations.is_empty() { Ok(()) } else { print_operations(operations) }
}

/// Prints a table of operations, the most frequent first.
fn print_operations(operations: &[OperationCount]) -> Result<()> {
    let mut operations: Vec<_> = operations.iter().collect();
    operations.sort_by_key(|one| Reverse(one.answered));
    let row = |one: &OperationCount| {
        let (answered, failed) = (one.answered.to_string(), one.failed.to_string());
        vec![one.operation.clone(), one.protocol.clone(), answered, failed]
    };
    print::line("")?;
    print::table(&["operation", "protocol", "answered", "failed"], operations.into_iter().map(row))
}

/// The terms of a volume beside its limit.
fn terms(terms: &Terms) -> Vec<(&'static str, String)> {
    let rate = |most: Option<u64>| most.map(|most| Rate(most).to_string());
    let iops = |most: Option<u64>| most.map(|most| format!("{most} IOPS"));
    let share = terms.weight.map(|weight| {
        let least = Rate(terms.throughput_bytes_per_second.unwrap_or(0));
        format!("weight {weight}, {least} guaranteed")
    });
    let file = [rate(terms.max_file_throughput_bytes_per_second), iops(terms.max_file_iops)];
    let file: Vec<_> = file.into_iter().flatten().collect();
    let fields = [
        ("share", share),
        ("most throughput", rate(terms.max_throughput_bytes_per_second)),
        ("most operations", iops(terms.max_iops)),
        ("ceiling per file", (!file.is_empty()).then(|| file.join(", "))),
        ("metadata cache", terms.metadata_cache.map(|on| if on { "on" } else { "off" }.to_owned())),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The protocols of a volume, and the settings of its share that are on.
fn shared(sharing: &Sharing) -> Vec<(&'static str, String)> {
    let protocols: Vec<_> = sharing.protocols.iter().map(|protocol| protocol.word()).collect();
    let settings = [
        (sharing.smb_encrypt, "encryption required"),
        (sharing.smb_hidden, "hidden"),
        (sharing.smb_abe, "access-based enumeration"),
    ];
    let on: Vec<_> = settings.into_iter().filter_map(|(on, name)| on.then_some(name)).collect();
    let mut fields = vec![("protocols", protocols.join(", "))];
    if !on.is_empty() {
        fields.push(("share", on.join(", ")));
    }
    fields
}

/// The used bytes of a volume, and their certainty.
fn used(live: &VolumeLive) -> String {
    let used = counted(live.used_bytes);
    let Some(Counting { files, bytes }) = live.counting else {
        return match live.used_exact {
            true => used,
            false => format!("{used}, not exact: run weir volume rescan"),
        };
    };
    let known = if live.used_exact { "" } else { " when last known" };
    format!("{used}{known}; recount running: {files} files, {} so far", counted(bytes))
}

/// Pause between two requests for a recount's progress.
const RESCAN_POLL: Duration = Duration::from_millis(200);

async fn rescan(client: &Client, output: Output, name: &str) -> Result<()> {
    let number = |volume: &Volume| {
        volume.live.as_ref().and_then(|live| live.counted).map(|counted| counted.number)
    };
    let before = number(&client.volume(name).await?);
    client.rescan(name).await?;
    let status = Status::new(output == Output::Table);
    let found = loop {
        let volume = client.volume(name).await?;
        let live = volume
            .live
            .as_ref()
            .context("the volume is no longer served; the server's log contains the reason")?;
        match live.counting {
            Some(Counting { files, bytes }) => {
                status.show(format_args!("{files} files, {} so far", counted(bytes)));
            }
            None if number(&volume) == before => {
                bail!("the recount failed; the server's log contains the reason")
            }
            None => break live.counted,
        }
        tokio::time::sleep(RESCAN_POLL).await;
    };
    status.clear();
    let found = found.context("the server's response lacks the result of the recount")?;
    if output == Output::Json {
        return print::json(&found);
    }
    let (from, to) = (counted(found.before_bytes), counted(found.after_bytes));
    let change = match found.before_bytes == found.after_bytes {
        true => format!("{to}, unchanged"),
        false => format!("{from} → {to}"),
    };
    let left_out = match found.left_out {
        0 => String::new(),
        number => format!("; {number} could not be read; see the server's log"),
    };
    print::line(format_args!("volume {name}: {change}, files with data: {}{left_out}", found.files))
}

async fn change(
    client: &Client,
    output: Output,
    name: &str,
    change: VolumeChange,
    dry_run: bool,
) -> Result<()> {
    let changed = client.change_volume(name, &change, dry(dry_run)).await?;
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    let place = change.pool.map(|pool| format!(", in pool {pool}")).unwrap_or_default();
    let top = top_directory(&changed, change.top.as_ref());
    print::changed(output, &changed, &(done + &place + &top))?;
    let Some(volume) = changed.item.filter(|_| output == Output::Table && !dry_run) else {
        return Ok(());
    };
    if change.sharing.protocols.is_some() {
        print::lines(reach::over_smb(&volume, &client.server().await?))?;
    }
    if change.sharing.protocols.is_some() || change.top.is_some() {
        print::lines(reach::read_only(&volume))?;
    }
    Ok(())
}

/// A measured number of bytes, with two decimals.
fn counted(bytes: u64) -> String {
    format!("{:.2}", Bytes(bytes))
}

fn limit(volume: &Volume) -> String {
    print::limit(volume.limit_bytes_per_second, volume.limit_iops, volume.base_iops)
}

fn described(volume: &Volume) -> String {
    let quota = Bytes(volume.quota_bytes);
    let limit = limit(volume);
    let Terms { weight, throughput_bytes_per_second, .. } = volume.terms;
    let share = weight.map(|weight| match throughput_bytes_per_second {
        Some(least) => format!(", shared: weight {weight}, {} guaranteed", Rate(least)),
        None => format!(", shared: weight {weight}"),
    });
    format!("volume {}: quota {quota}, limit {limit}{}", volume.name, share.unwrap_or_default())
}
