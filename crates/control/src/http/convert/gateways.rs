//! Gateways, addresses and homes of volumes, from the catalogue and the records of the cluster.

use super::etag;
use std::collections::BTreeMap;
use weir_api::GatewayState;
use weir_catalog::{Address, Gateway, GatewayId, GroupId, Snapshot, Volume};
use weir_cluster::{Life, View};

/// The name of a gateway, or its number if the catalogue does not have it any more.
pub(in super::super) fn gateway_name(snapshot: &Snapshot, id: GatewayId) -> String {
    snapshot.gateway(id).map_or_else(|| format!("number {id}"), |gateway| gateway.name.clone())
}

/// The gateway that is the home of a group; none while it has none.
pub(in super::super) fn home(view: &View, group: GroupId) -> Option<GatewayId> {
    at(view, group).map(|(life, _)| life.gateway)
}

/// The state of a gateway.
pub(in super::super) fn gateway_state(
    snapshot: &Snapshot,
    view: &View,
    id: GatewayId,
) -> GatewayState {
    let is_at = |address: &Address| home(view, address.group) == Some(id);
    state(view, id, !snapshot.addresses().any(is_at))
}

/// A gateway for a response.
pub(in super::super) fn gateway(
    snapshot: &Snapshot,
    weights: &BTreeMap<GroupId, u64>,
    view: &View,
    gateway: &Gateway,
) -> weir_api::Gateway {
    let serves = |address: &&Address| home(view, address.group) == Some(gateway.id);
    let served: Vec<_> = snapshot.addresses().filter(serves).collect();
    let of = |group| snapshot.volumes_at(group).count();
    weir_api::Gateway {
        name: gateway.name.clone(),
        number: gateway.id.0,
        links: gateway.links.to_string(),
        helper: gateway.helper.to_string(),
        state: state(view, gateway.id, served.is_empty()),
        life: view.records.gateways.get(&gateway.id).map(weir_cluster::Gateway::number),
        version: view.member(gateway.id).map(|member| member.speaks.0),
        addresses: served.iter().map(|address| address.at.ip.to_string()).collect(),
        volumes: served.iter().map(|address| of(address.group)).sum(),
        weight: served.iter().filter_map(|address| weights.get(&address.group)).sum(),
    }
}

/// The state of a gateway, which serves something or not.
fn state(view: &View, id: GatewayId, is_idle: bool) -> GatewayState {
    let Some(row) = view.records.gateways.get(&id) else { return GatewayState::New };
    let Some(member) = row.member() else {
        let is_over = row.fences.is_empty();
        return if is_over { GatewayState::Ended } else { GatewayState::Ending };
    };
    let is_live = view.is_attached(Life { gateway: id, number: member.number });
    match (is_live, row.draining) {
        (false, _) => GatewayState::Silent,
        (true, false) => GatewayState::Live,
        (true, true) if is_idle => GatewayState::Drained,
        (true, true) => GatewayState::Draining,
    }
}

/// The life that serves a group, and the one that it is moving to. A life that is no member any
/// more serves nothing.
fn at(view: &View, group: GroupId) -> Option<(Life, Option<Life>)> {
    let home = view.records.groups.get(&group)?.home.at();
    home.filter(|(life, _)| view.is_member(*life))
}

/// The gateway that serves a group, and the one that it is moving to, by name.
fn named(snapshot: &Snapshot, view: &View, group: GroupId) -> (Option<String>, Option<String>) {
    let name = |life: Life| gateway_name(snapshot, life.gateway);
    match at(view, group) {
        None => (None, None),
        Some((life, to)) => (Some(name(life)), to.map(name)),
    }
}

/// An address for a response.
pub(in super::super) fn address(
    snapshot: &Snapshot,
    weights: &BTreeMap<GroupId, u64>,
    view: &View,
    address: &Address,
) -> weir_api::Address {
    let mut shown = weir_api::Address {
        address: address.at.ip.to_string(),
        prefix: address.at.prefix,
        group: address.group.0,
        gateway: None,
        moving_to: None,
        volumes: snapshot.volumes_at(address.group).map(|volume| volume.name.clone()).collect(),
        weight: weights.get(&address.group).copied().unwrap_or(0),
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    (shown.gateway, shown.moving_to) = named(snapshot, view, address.group);
    shown
}

/// The home of a volume, which is in this group, for a response.
pub(in super::super) fn volume_home(
    snapshot: &Snapshot,
    view: &View,
    volume: &Volume,
    group: GroupId,
) -> weir_api::VolumeHome {
    let (gateway, moving_to) = named(snapshot, view, group);
    let others = snapshot.volumes_at(group).filter(|other| other.id != volume.id);
    weir_api::VolumeHome {
        volume: volume.name.clone(),
        address: snapshot.address(group).map(|one| one.at.ip.to_string()).unwrap_or_default(),
        gateway,
        moving_to,
        moves_with: others.map(|other| other.name.clone()).collect(),
    }
}
