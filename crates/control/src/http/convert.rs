//! Conversions between the types of the catalogue and those of the API. No decisions.

mod clients;
mod gateways;
mod identity;

pub(super) use clients::{file_lock, smb_open, smb_session};
pub(super) use gateways::{address, gateway, gateway_name, gateway_state, home, volume_home};
pub(super) use identity::{clients_asked, group, share_rule_asked, sharing_asked, user};

use super::failure::Failure;
use super::{preconditions, time_of_day};
use crate::plane::{OperationCount, Plane, Top, VolumeLive};
use weir_api::mibps;
use weir_catalog::{
    Access, BytesPerSecond, Calibration, Cell, ExportRule, Filesystem, Iops, Level, Load, Measured,
    Pool, Qos, Role, Snapshot, Squash, Terms, TermsChange, Token, Volume,
};

/// A service level for a response.
pub(super) fn level(snapshot: &Snapshot, level: &Level) -> weir_api::Level {
    let rate = level.contract.rate_per_tib().0;
    let mut shown = weir_api::Level {
        name: level.name.clone(),
        bytes_per_second_per_tib: rate,
        mibps_per_tib: mibps(rate),
        volume_ceiling_bytes_per_second: level.contract.ceiling().rate.map(|most| most.0),
        published: level.published,
        pools: snapshot.pools_of(level).count(),
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    shown
}

/// A pool for a response.
pub(super) fn pool(snapshot: &Snapshot, pool: &Pool) -> weir_api::Pool {
    let volumes = || snapshot.volumes_of(pool.id);
    let gives = || volumes().map(|volume| pool.gives(volume));
    let given = gives().map(|limits| limits.rate.0).sum();
    let bought = pool.model.bought();
    let budget = pool.contract().budget().map_or(given, |budget| budget.rate.0);
    let mut shown = weir_api::Pool {
        id: pool.id.0,
        name: pool.name.clone(),
        level: pool.level.name.clone(),
        qos: qos(pool.model.qos()),
        size_bytes: pool.size_bytes,
        allocated_bytes: volumes().map(|volume| volume.quota_bytes).sum(),
        throughput_bytes_per_second: bought.rate.map(|rate| rate.0),
        iops: bought.iops.map(|iops| iops.0),
        budget_bytes_per_second: budget,
        budget_mibps: mibps(budget),
        given_bytes_per_second: given,
        given_mibps: mibps(given),
        given_iops: gives().filter_map(|limits| limits.iops).map(|iops| iops.0).sum(),
        volumes: volumes().count(),
        directory: pool.directory.display().to_string(),
        ceph: pool.ceph.as_ref().map(|ceph| weir_api::CephFs {
            conf: ceph.conf.display().to_string(),
            user: ceph.user.clone(),
        }),
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    shown
}

/// A volume for a response.
pub(super) fn volume(snapshot: &Snapshot, plane: &dyn Plane, volume: &Volume) -> weir_api::Volume {
    let rules = volume.smb.rules.iter();
    let model = snapshot.pool(volume.pool).map(|pool| pool.model);
    let level_ceiling = model.and_then(|model| model.volume_ceiling().rate);
    let mut shown = weir_api::Volume {
        id: volume.id.0,
        name: volume.name.clone(),
        pool: snapshot.pool(volume.pool).map(|pool| pool.name.clone()).unwrap_or_default(),
        export_path: format!("/{}", volume.name),
        address: volume
            .address
            .and_then(|group| snapshot.address(group))
            .map(|address| address.at.ip.to_string()),
        quota_bytes: volume.quota_bytes,
        terms: terms(volume),
        limit_bytes_per_second: volume.limits.rate.0,
        limit_mibps: mibps(volume.limits.rate.0),
        level_ceiling_bytes_per_second: level_ceiling.map(|most| most.0),
        limit_iops: volume.limits.iops.map(|iops| iops.0),
        base_iops: volume.limits.burst.map(|burst| burst.base.0),
        credits_max: volume.limits.burst.map(|burst| burst.credits),
        exports: volume.exports.iter().map(rule).collect(),
        sharing: identity::sharing(volume),
        share_rules: rules.map(|rule| identity::share_rule(snapshot, rule)).collect(),
        top: plane.top(volume.id).map(|found| top(snapshot, found)),
        etag: String::new(),
        live: None,
        gateway: None,
        no_answer: None,
    };
    shown.etag = etag(&shown);
    shown.live = plane.volume_live(volume.id).as_ref().map(live);
    shown
}

/// The terms of a volume.
fn terms(volume: &Volume) -> weir_api::Terms {
    let Terms { throughput, iops, ceiling, file_ceiling, metadata_cache, .. } = volume.terms;
    weir_api::Terms {
        throughput_bytes_per_second: throughput.map(|rate| rate.0),
        weight: volume.share.map(|share| share.weight),
        iops: iops.map(|iops| iops.0),
        max_throughput_bytes_per_second: ceiling.rate.map(|rate| rate.0),
        max_iops: ceiling.iops.map(|iops| iops.0),
        max_file_throughput_bytes_per_second: file_ceiling.rate.map(|rate| rate.0),
        max_file_iops: file_ceiling.iops.map(|iops| iops.0),
        metadata_cache,
    }
}

/// The top directory of a volume for a response.
pub(super) fn top(snapshot: &Snapshot, Top { uid, gid, mode }: Top) -> weir_api::Top {
    weir_api::Top {
        uid,
        owner: snapshot.user_by_uid(uid).map(|user| user.name.clone()),
        gid,
        group: snapshot.group_by_gid(gid).map(|group| group.name.clone()),
        mode: weir_api::UnixMode::of(mode),
    }
}

/// The terms of a volume to create or change, from a request.
pub(super) fn terms_asked(asked: &weir_api::TermsChange) -> TermsChange {
    let rate = |rate: Option<u64>| rate.map(BytesPerSecond);
    let iops = |iops: Option<u64>| iops.map(Iops);
    TermsChange {
        throughput: rate(asked.throughput_bytes_per_second),
        iops: asked.iops.map(iops),
        weight: asked.weight,
        ceiling_rate: asked.max_throughput_bytes_per_second.map(rate),
        ceiling_iops: asked.max_iops.map(iops),
        file_rate: asked.max_file_throughput_bytes_per_second.map(rate),
        file_iops: asked.max_file_iops.map(iops),
        metadata_cache: asked.metadata_cache,
    }
}

/// The measurement of a file system, for a response.
pub(super) fn calibration(kept: &Calibration) -> weir_api::Calibration {
    let Calibration { cells, load, machine, .. } = kept;
    let mut shown = weir_api::Calibration {
        directory: kept.directory.display().to_string(),
        at: time_of_day::text_of(kept.at),
        cells: cells.iter().map(cell).collect(),
        load: weir_api::CalibrationLoad {
            jobs: load.jobs,
            depth: load.depth,
            millis: load.millis,
            data_bytes: load.data_bytes,
            others_bytes_per_second: load.others_rate.0,
            others_iops: load.others_iops.0,
        },
        machine: weir_api::Machine {
            version: machine.version.clone(),
            host: machine.host.clone(),
            kernel: machine.kernel.clone(),
            processor: machine.processor.clone(),
            processors: machine.processors,
            memory_bytes: machine.memory_bytes,
            file_system: machine.file_system.clone(),
            durability: machine.durability.clone(),
        },
        in_memory: load.data_bytes < machine.memory_bytes,
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    shown
}

fn cell(measured: &Measured) -> weir_api::CalibrationCell {
    weir_api::CalibrationCell {
        read_percent: measured.cell.read_percent,
        block_bytes: measured.cell.block_bytes,
        bytes_per_second: measured.cell.rate.0,
        iops: measured.cell.iops.0,
        mean_nanos: measured.mean_nanos,
        p99_nanos: measured.p99_nanos,
        server_cpu_nanos: measured.server_cpu_nanos,
        saturated: measured.saturated,
    }
}

/// A measurement from a request.
pub(super) const fn cell_asked(cell: &weir_api::CalibrationCell) -> Measured {
    Measured {
        cell: Cell {
            read_percent: cell.read_percent,
            block_bytes: cell.block_bytes,
            rate: BytesPerSecond(cell.bytes_per_second),
            iops: Iops(cell.iops),
        },
        mean_nanos: cell.mean_nanos,
        p99_nanos: cell.p99_nanos,
        server_cpu_nanos: cell.server_cpu_nanos,
        saturated: cell.saturated,
    }
}

/// The load of a measurement, from a request.
pub(super) const fn load_asked(load: &weir_api::CalibrationLoad) -> Load {
    Load {
        jobs: load.jobs,
        depth: load.depth,
        millis: load.millis,
        data_bytes: load.data_bytes,
        others_rate: BytesPerSecond(load.others_bytes_per_second),
        others_iops: Iops(load.others_iops),
    }
}

/// A file system for a response.
pub(super) fn filesystem(snapshot: &Snapshot, there: &Filesystem) -> weir_api::Filesystem {
    let pools = there.pools.iter().filter_map(|id| snapshot.pool(*id));
    weir_api::Filesystem {
        directory: there.directory.display().to_string(),
        pools: pools.map(|pool| pool.name.clone()).collect(),
        committed_bytes_per_second: there.committed.rate().0,
        committed_iops: there.committed.iops().0,
        holds_bytes_per_second: there.holds.rate.map(|rate| rate.0),
        holds_iops: there.holds.iops.map(|iops| iops.0),
        allowed_bytes_per_second: there.allowed.rate.map(|rate| rate.0),
        allowed_iops: there.allowed.iops.map(|iops| iops.0),
        overcommitted: there.is_overcommitted(),
        calibrated: there.calibration.as_ref().map(|kept| time_of_day::text_of(kept.at)),
    }
}

/// The etag of something that is shown, without its etag and what is live.
fn etag(shown: &impl serde::Serialize) -> String {
    // A value that is shown to everybody can be serialized here too.
    preconditions::etag(&serde_json::to_vec(shown).unwrap_or_default())
}

/// The live figures of a volume for a response.
pub(super) fn live(live: &VolumeLive) -> weir_api::VolumeLive {
    weir_api::VolumeLive {
        used_bytes: live.used_bytes,
        used_exact: live.used_exact,
        counting: live.counting.map(counting),
        counted: live.counted.map(counted),
        limit_bytes_per_second: live.limit_bytes_per_second,
        limit_iops: live.limit_iops,
        credits: live.credits,
        read_ops: live.read_ops,
        read_bytes: live.read_bytes,
        write_ops: live.write_ops,
        write_bytes: live.write_bytes,
        other_ops: live.other_ops,
        operations: live.operations.iter().map(operation_count).collect(),
        failed_ops: live.failed_ops,
        delayed_ops: live.delayed_ops,
        wait_nanos: live.wait_nanos,
        latency_nanos: live.latency_nanos,
        store_nanos: live.store_nanos,
        network_nanos: live.network_nanos,
        processing_nanos: live.processing_nanos,
        offered_bytes: live.offered_bytes,
        waiting: live.waiting,
        parked_bytes: live.parked_bytes,
    }
}

fn operation_count(count: &OperationCount) -> weir_api::OperationCount {
    weir_api::OperationCount {
        protocol: count.protocol.to_owned(),
        operation: count.operation.to_owned(),
        answered: count.answered,
        failed: count.failed,
    }
}

fn counting(so_far: weir_store::Counting) -> weir_api::Counting {
    weir_api::Counting { files: so_far.files, bytes: so_far.bytes }
}

fn counted(found: weir_store::Counted) -> weir_api::Counted {
    weir_api::Counted {
        before_bytes: found.before_bytes,
        after_bytes: found.after_bytes,
        files: found.files,
        left_out: found.left_out,
        number: found.number,
    }
}

/// An export rule for a response.
pub(super) fn rule(rule: &ExportRule) -> weir_api::ExportRule {
    weir_api::ExportRule {
        network: rule.network.to_string(),
        access: match rule.access {
            Access::ReadOnly => weir_api::Access::ReadOnly,
            Access::ReadWrite => weir_api::Access::ReadWrite,
        },
        squash: match rule.squash {
            Squash::None => weir_api::Squash::None,
            Squash::Root => weir_api::Squash::Root,
            Squash::All => weir_api::Squash::All,
        },
        anon_uid: rule.anon_uid,
        anon_gid: rule.anon_gid,
    }
}

/// An export rule from a request.
pub(super) fn rule_asked(rule: &weir_api::ExportRule) -> Result<ExportRule, Failure> {
    Ok(ExportRule {
        network: rule
            .network
            .parse()
            .map_err(|error: weir_catalog::NetworkError| Failure::bad_request(error.to_string()))?,
        access: match rule.access {
            weir_api::Access::ReadOnly => Access::ReadOnly,
            weir_api::Access::ReadWrite => Access::ReadWrite,
        },
        squash: match rule.squash {
            weir_api::Squash::None => Squash::None,
            weir_api::Squash::Root => Squash::Root,
            weir_api::Squash::All => Squash::All,
        },
        anon_uid: rule.anon_uid,
        anon_gid: rule.anon_gid,
    })
}

/// A contract model for a response.
pub(super) const fn qos(qos: Qos) -> weir_api::Qos {
    match qos {
        Qos::Auto => weir_api::Qos::Auto,
        Qos::Manual => weir_api::Qos::Manual,
        Qos::Flexible => weir_api::Qos::Flexible,
        Qos::Custom => weir_api::Qos::Custom,
        Qos::Shared => weir_api::Qos::Shared,
        Qos::ProvisionedV1 => weir_api::Qos::ProvisionedV1,
        Qos::ProvisionedV2 => weir_api::Qos::ProvisionedV2,
    }
}

/// A contract model from a request.
pub(super) const fn qos_asked(qos: weir_api::Qos) -> Qos {
    match qos {
        weir_api::Qos::Auto => Qos::Auto,
        weir_api::Qos::Manual => Qos::Manual,
        weir_api::Qos::Flexible => Qos::Flexible,
        weir_api::Qos::Custom => Qos::Custom,
        weir_api::Qos::Shared => Qos::Shared,
        weir_api::Qos::ProvisionedV1 => Qos::ProvisionedV1,
        weir_api::Qos::ProvisionedV2 => Qos::ProvisionedV2,
    }
}

/// A role for a response.
pub(super) const fn role(role: Role) -> weir_api::Role {
    match role {
        Role::Viewer => weir_api::Role::Viewer,
        Role::Operator => weir_api::Role::Operator,
        Role::Admin => weir_api::Role::Admin,
    }
}

/// A role from a request.
pub(super) const fn role_asked(role: weir_api::Role) -> Role {
    match role {
        weir_api::Role::Viewer => Role::Viewer,
        weir_api::Role::Operator => Role::Operator,
        weir_api::Role::Admin => Role::Admin,
    }
}

/// A token for a response.
pub(super) fn token(token: &Token) -> weir_api::Token {
    weir_api::Token {
        name: token.name.clone(),
        role: role(token.role),
        created: time_of_day::text_of(token.created),
        expires: token.expires.map(time_of_day::text_of),
    }
}
