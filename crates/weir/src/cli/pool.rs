//! `weir pool`.

use super::{Global, Output, calibration, connect, print, values};
use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use std::path::{Path, PathBuf};
use weir_api::{CephFs, Client, Dry, NewPool, Pool, PoolChange, Qos};
use weir_core::units::{Bytes, Rate};

/// Create, show, change and delete capacity pools.
#[derive(Subcommand)]
pub(crate) enum PoolCommand {
    /// Create a capacity pool
    ///
    /// A pool has a size and a service level. The sum of its volumes' quotas is at most the pool
    /// size, and the sum of their throughput limits is at most size × level rate (standard 16,
    /// premium 64, ultra and extreme 128 MiB/s per TiB, or a custom level: `weir level`). The size
    /// is a logical limit: it does not reserve disk space, and the disk may be smaller.
    Create(Create),
    /// List all pools
    List,
    /// Show one pool
    Show {
        /// Name of the pool
        pool: String,
    },
    /// Change the service level, contract model, size, throughput or IOPS of a pool
    ///
    /// When a pool changes to a contract model with an individual throughput per volume, each
    /// volume keeps its current throughput, which can then be changed. When a pool changes to auto,
    /// the limit of each volume follows from its quota. Clients stay connected.
    Set(Set),
    /// Change the size of a pool
    Resize(Resize),
    /// Delete an empty pool
    Delete {
        /// Name of the pool
        pool: String,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir pool create fast --level premium --size 4TiB
  weir pool create shared --level standard --size 10TiB --qos manual --path /srv/shared
  weir pool create apps --qos flexible --size 2TiB --throughput 640MiB/s
  weir pool create home --qos shared --level standard --size 8TiB
  weir pool create db --qos custom --size 1TiB --throughput 200MiB/s --iops 8000
  weir pool create big --level premium --size 40TiB --ceph /etc/ceph/ceph.conf --path /weir/big")]
pub(crate) struct Create {
    /// Name of the pool: 1 to 64 characters of A-Z a-z 0-9 . _ -
    pool: String,
    /// Service level: standard, premium, ultra, extreme, or a custom level. Required for auto,
    /// manual and shared pools; ignored for the others
    #[arg(long)]
    level: Option<String>,
    /// Size of the pool, such as 4TiB
    #[arg(long, value_parser = values::size)]
    size: u64,
    /// Contract model. auto: limits follow from quotas. manual: throughput set per volume.
    /// flexible: as manual, with throughput purchased separately from the size. custom: as
    /// flexible, with IOPS too. shared: all volumes share size × level rate. provisioned-v1: limits
    /// follow from quotas, with burst credits. provisioned-v2: throughput and IOPS provisioned per
    /// volume, with burst credits
    #[arg(long, default_value = "auto")]
    qos: Qos,
    /// Throughput purchased separately from the size, such as 640MiB/s. Flexible pools: 128MiB/s to
    /// 640MiB/s per TiB [default: 128MiB/s]. Custom pools: 64MiB/s to 5GiB/s [default: 64MiB/s]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// IOPS purchased for READs and WRITEs (custom pools), 1024 to 160000 [default: 16 per MiB/s]
    #[arg(long, value_name = "COUNT", value_parser = values::iops)]
    iops: Option<u64>,
    /// Directory for the volumes of the pool, on the server or with --ceph in CephFS [default: a
    /// directory in the data directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Configuration file of Ceph, on all gateways of a cluster: the pool is in a directory of
    /// CephFS. Pools of a cluster require it, and other servers do not have such pools
    #[arg(long, value_name = "CONF", requires = "path")]
    ceph: Option<PathBuf>,
    /// User of Ceph with access to that directory, without the prefix `client.` [default: admin]
    #[arg(long, value_name = "NAME", requires = "ceph")]
    ceph_user: Option<String>,
    /// Allow the pool even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir pool set fast --qos manual --dry-run
  weir pool set fast --level ultra")]
#[command(group(ArgGroup::new("change").required(true).multiple(true)
    .args(["level", "qos", "size", "throughput", "iops"])))]
pub(crate) struct Set {
    /// Name of the pool
    pool: String,
    /// Service level: standard, premium, ultra, extreme, or a custom level
    #[arg(long)]
    level: Option<String>,
    /// Contract model: auto, manual, flexible, custom, shared, provisioned-v1 or provisioned-v2
    #[arg(long)]
    qos: Option<Qos>,
    /// Throughput purchased separately from the size, such as 640MiB/s (flexible and custom pools).
    /// If the pool's IOPS were 16 per MiB/s, they are adjusted with the throughput
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// IOPS purchased for READs and WRITEs (custom pools)
    #[arg(long, value_name = "COUNT", value_parser = values::iops)]
    iops: Option<u64>,
    /// Size of the pool, such as 4TiB, in one step with the other changes; `weir pool resize`
    /// changes the size alone
    #[arg(long, value_parser = values::size)]
    size: Option<u64>,
    /// Allow the change even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect on each volume, without making the change
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Resize {
    /// Name of the pool
    pool: String,
    /// New size, such as 8TiB
    #[arg(required = true, value_parser = values::size)]
    size: Option<u64>,
    /// New size, given as an option
    #[arg(long = "size", hide = true, value_name = "SIZE", conflicts_with = "size", value_parser = values::size)]
    size_option: Option<u64>,
    /// Allow the change even if it commits more than the measured capacity (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Show the effect on each volume, without making the change
    #[arg(long)]
    dry_run: bool,
}

/// Runs `command`.
pub(crate) async fn run(global: &Global, command: &PoolCommand) -> Result<()> {
    let client = connect::client(global)?;
    let output = global.output;
    match command {
        PoolCommand::Create(args) => create(&client, output, args).await,
        PoolCommand::List => list(&client, output).await,
        PoolCommand::Show { pool } => show(&client, output, pool).await,
        PoolCommand::Set(set) => {
            let change = PoolChange {
                level: set.level.clone(),
                qos: set.qos,
                size_bytes: set.size,
                throughput_bytes_per_second: set.throughput,
                iops: set.iops,
            };
            let client = allowing(&client, set.overcommit);
            self::change(&client, output, &set.pool, change, set.dry_run).await
        }
        PoolCommand::Resize(Resize { pool, size, size_option, overcommit, dry_run }) => {
            let change = PoolChange { size_bytes: size.or(*size_option), ..PoolChange::default() };
            let client = allowing(&client, *overcommit);
            self::change(&client, output, pool, change, *dry_run).await
        }
        PoolCommand::Delete { pool, dry_run } => {
            let changed = client.delete_pool(pool, dry(*dry_run)).await?;
            print::changed(output, &changed, &format!("pool {pool} deleted"))
        }
    }
}

/// The API value that corresponds to `--dry-run`.
pub(crate) const fn dry(dry_run: bool) -> Dry {
    if dry_run { Dry::Run } else { Dry::No }
}

/// A client with the setting of `--overcommit`.
pub(crate) fn allowing(client: &Client, overcommit: bool) -> Client {
    if overcommit { client.overcommitting() } else { client.clone() }
}

async fn create(client: &Client, output: Output, args: &Create) -> Result<()> {
    let level = match (&args.level, args.qos) {
        (Some(level), _) => level.clone(),
        (None, Qos::Auto | Qos::Manual | Qos::Shared) => {
            let needed = "an auto, manual or shared pool requires --level: `weir level list` lists the levels";
            return Err(print::usage(needed));
        }
        (None, _) => "standard".to_owned(),
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (directory, ceph) = match (&args.path, &args.ceph) {
        (None, _) => (None, None),
        (Some(path), None) => (Some(text(&std::path::absolute(path)?)), None),
        // A path in CephFS has nothing to do with the directory that this command runs in.
        (Some(path), Some(conf)) => {
            let user = args.ceph_user.as_deref().unwrap_or("admin").to_owned();
            (Some(text(path)), Some(CephFs { conf: text(&std::path::absolute(conf)?), user }))
        }
    };
    let new = NewPool {
        name: args.pool.clone(),
        level,
        size_bytes: args.size,
        qos: args.qos,
        throughput_bytes_per_second: args.throughput,
        iops: args.iops,
        directory,
        ceph,
    };
    let client = allowing(client, args.overcommit);
    let changed = client.create_pool(&new, dry(args.dry_run)).await?;
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    print::changed(output, &changed, &done)
}

async fn list(client: &Client, output: Output) -> Result<()> {
    let pools = client.pools().await?;
    if output == Output::Json {
        return print::json(&pools);
    }
    let header = ["name", "level", "qos", "size", "allocated", "budget", "given", "volumes"];
    let row = |pool: Pool| {
        vec![
            pool.name.clone(),
            pool.level.to_string(),
            pool.qos.to_string(),
            Bytes(pool.size_bytes).to_string(),
            Bytes(pool.allocated_bytes).to_string(),
            budget(&pool),
            Rate(pool.given_bytes_per_second).to_string(),
            pool.volumes.to_string(),
        ]
    };
    print::table(&header, pools.into_iter().map(row))
}

async fn show(client: &Client, output: Output, name: &str) -> Result<()> {
    let pool = client.pool(name).await?;
    if output == Output::Json {
        return print::json(&pool);
    }
    let disks = calibration::of_pool(&client.capacity().await?, name);
    let mut fields = vec![
        ("name", pool.name.clone()),
        ("level", pool.level.clone()),
        ("qos", pool.qos.to_string()),
        ("size", Bytes(pool.size_bytes).to_string()),
        ("allocated", Bytes(pool.allocated_bytes).to_string()),
        ("budget", budget(&pool)),
        ("given", Rate(pool.given_bytes_per_second).to_string()),
        ("volumes", pool.volumes.to_string()),
        ("directory", pool.directory),
    ];
    fields.extend(pool.ceph.map(|ceph| ("CephFS", format!("{}, user {}", ceph.conf, ceph.user))));
    fields.extend(disks.map(|disks| ("file system", disks)));
    print::fields(&fields)
}

async fn change(
    client: &Client,
    output: Output,
    name: &str,
    change: PoolChange,
    dry_run: bool,
) -> Result<()> {
    let changed = client.change_pool(name, &change, dry(dry_run)).await?;
    let done = changed.item.as_ref().map(described).unwrap_or_default();
    print::changed(output, &changed, &done)
}

fn described(pool: &Pool) -> String {
    let (name, size, level, qos) = (&pool.name, Bytes(pool.size_bytes), &pool.level, pool.qos);
    if matches!(qos, Qos::ProvisionedV1 | Qos::ProvisionedV2) {
        return format!("pool {name}: {size}, {qos}");
    }
    format!("pool {name}: {size} {level}, {qos}, {} in total", budget(pool))
}

fn budget(pool: &Pool) -> String {
    print::limit(pool.budget_bytes_per_second, pool.iops, None)
}
