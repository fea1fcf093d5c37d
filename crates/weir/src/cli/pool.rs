//! `weir pool`.

use super::{Global, Output, calibration, connect, print, values};
use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;
use weir_api::{Client, Dry, NewPool, Pool, PoolChange, Qos};
use weir_core::units::{Bytes, Rate};

/// Make, show, change and delete capacity pools.
#[derive(Subcommand)]
pub(crate) enum PoolCommand {
    /// Make a pool
    ///
    /// A pool is a size at a service level: its volumes' quotas together are at most its size, and
    /// their limits together at most size × level rate (standard 16, premium 64, ultra and extreme
    /// 128 MiB/s for each TiB, or a level of your own: `weir level`). The size is provisioned, not
    /// taken: no such disk is needed.
    Create(Create),
    /// List all pools
    List,
    /// Show one pool
    Show {
        /// Its name
        pool: String,
    },
    /// Change a pool's level, contract model, size or what it buys
    ///
    /// Going to a model that gives each volume its own throughput, each keeps the one it has, and
    /// can then be given another. Going auto, each volume gets what its quota buys. Nobody is
    /// disconnected.
    Set(Set),
    /// Change a pool's size
    Resize(Resize),
    /// Delete a pool that has no volumes
    Delete {
        /// Its name
        pool: String,
        /// Only show what would be done
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
  weir pool create db --qos custom --size 1TiB --throughput 200MiB/s --iops 8000")]
pub(crate) struct Create {
    /// Its name: 1 to 64 of A-Z a-z 0-9 . _ -
    pool: String,
    /// Service level: standard, premium, ultra, extreme, or one of your own; only auto, manual and
    /// shared pools take notice of it and need one
    #[arg(long)]
    level: Option<String>,
    /// Its size, such as 4TiB
    #[arg(long, value_parser = values::size)]
    size: u64,
    /// auto: limits follow quotas; manual: each volume is given its own; flexible: the same, out of
    /// a throughput bought apart from the size; custom: the same with IOPS too; shared: all volumes
    /// share size × level; provisioned-v1: limits follow quotas, with credits for bursts;
    /// provisioned-v2: each volume provisions its own, with credits for bursts
    #[arg(long, default_value = "auto")]
    qos: Qos,
    /// Throughput that it buys apart from its size, such as 640MiB/s. Flexible: from 128MiB/s,
    /// which is the default, to 640MiB/s for each TiB. Custom: from 64MiB/s, which is the default,
    /// to 5GiB/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// READs and WRITEs a second that it buys, custom only: 1024 to 160000 [default: 16 for each
    /// MiB/s]
    #[arg(long, value_name = "COUNT", value_parser = values::iops)]
    iops: Option<u64>,
    /// Directory on the server for its volumes [default: one in the data directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Also where it commits disks to more than they were measured to hold (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Only show what would be done
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
    /// Its name
    pool: String,
    /// Service level: standard, premium, ultra, extreme, or one of your own
    #[arg(long)]
    level: Option<String>,
    /// auto, manual, flexible, custom, shared, provisioned-v1 or provisioned-v2
    #[arg(long)]
    qos: Option<Qos>,
    /// Throughput that it buys apart from its size, such as 640MiB/s; flexible and custom only.
    /// IOPS that were 16 for each MiB/s of it follow
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    throughput: Option<u64>,
    /// READs and WRITEs a second that it buys; custom only
    #[arg(long, value_name = "COUNT", value_parser = values::iops)]
    iops: Option<u64>,
    /// Its size, such as 4TiB
    #[arg(long, value_parser = values::size)]
    size: Option<u64>,
    /// Also where it commits disks to more than they were measured to hold (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Only show what would change, for each volume
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
#[command(group(ArgGroup::new("to").required(true).multiple(false).args(["size", "size_option"])))]
pub(crate) struct Resize {
    /// Its name
    pool: String,
    /// The new size, such as 8TiB
    #[arg(value_parser = values::size)]
    size: Option<u64>,
    /// The same as an option
    #[arg(long = "size", value_name = "SIZE", value_parser = values::size)]
    size_option: Option<u64>,
    /// Also where it commits disks to more than they were measured to hold (`weir capacity`)
    #[arg(long)]
    overcommit: bool,
    /// Only show what would change, for each volume
    #[arg(long)]
    dry_run: bool,
}

/// Does as `command` says.
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

/// The API's value for `--dry-run`.
pub(crate) const fn dry(dry_run: bool) -> Dry {
    if dry_run { Dry::Run } else { Dry::No }
}

/// The client for `--overcommit`.
pub(crate) fn allowing(client: &Client, overcommit: bool) -> Client {
    if overcommit { client.overcommitting() } else { client.clone() }
}

async fn create(client: &Client, output: Output, args: &Create) -> Result<()> {
    let level = match (&args.level, args.qos) {
        (Some(level), _) => level.clone(),
        (None, Qos::Auto | Qos::Manual | Qos::Shared) => {
            let needed =
                "an auto, manual or shared pool needs a --level: `weir level list` shows them";
            return Err(print::usage(needed));
        }
        (None, _) => "standard".to_owned(),
    };
    let directory = match &args.path {
        Some(path) => Some(std::path::absolute(path)?.to_string_lossy().into_owned()),
        None => None,
    };
    let new = NewPool {
        name: args.pool.clone(),
        level,
        size_bytes: args.size,
        qos: args.qos,
        throughput_bytes_per_second: args.throughput,
        iops: args.iops,
        directory,
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
    format!("pool {name}: {size} {level}, {qos}, {} in all", budget(pool))
}

fn budget(pool: &Pool) -> String {
    print::limit(pool.budget_bytes_per_second, pool.iops, None)
}
