//! `/v1/gateways`, `/v1/addresses`, and the homes of volumes. Names, addresses and volumes are the
//! catalogue's; the records of the cluster say who is alive and serves them.

use super::change::{ChangeResult, Options};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
use super::{Control, ControlState, blocking, convert};
use crate::cluster::Cluster;
use crate::sync::lock;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use std::net::IpAddr;
use tokio::runtime::Handle;
use weir_api::{Address, Gateway, HomeChange, NewAddress, Page, VolumeHome};
use weir_catalog::{
    Asked, Catalog, CatalogError, GatewayId, GroupId, InterfaceAddress, Mode, Outcome, Snapshot,
    Thing,
};
use weir_cluster::{Command, Refusal};

/// Longest text of an address that an error repeats.
const TEXT_CHARS_MAX: usize = 64;

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Gateway>>, Failure> {
    let (snapshot, view) = (state.0.catalog.snapshot(), state.0.cluster()?.view());
    let weights = snapshot.weights();
    let all = snapshot.gateways().map(|gateway| (format!("{:05}", gateway.id.0), gateway));
    page(query, "gateway", all, |gateway| convert::gateway(&snapshot, &weights, &view, gateway))
}

pub(super) async fn drain(
    state: State<ControlState>,
    name: Path<String>,
) -> Result<Json<Gateway>, Failure> {
    carry_out(state, name, |gateway| Command::Drain { gateway, draining: true }).await
}

pub(super) async fn undrain(
    state: State<ControlState>,
    name: Path<String>,
) -> Result<Json<Gateway>, Failure> {
    carry_out(state, name, |gateway| Command::Drain { gateway, draining: false }).await
}

pub(super) async fn declare_gone(
    state: State<ControlState>,
    name: Path<String>,
) -> Result<Json<Gateway>, Failure> {
    carry_out(state, name, |gateway| Command::DeclareGone { gateway }).await
}

pub(super) async fn remove(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Gateway>, Failure> {
    let handle = Handle::current();
    let work = move |control: &Control| {
        let (cluster, snapshot) = (control.cluster()?, control.catalog.snapshot());
        let gateway = find(&snapshot, &name)?;
        let shown = convert::gateway(&snapshot, &snapshot.weights(), &cluster.view(), gateway);
        match handle.block_on(cluster.command(Command::Remove { gateway: gateway.id })) {
            // The latter was never started, or an earlier removal was cut short.
            Ok(()) | Err(Refusal::NoGateway(_)) => {}
            Err(refusal) => return Err(refused(&snapshot, refusal)),
        }
        let _turn = lock(&control.turn);
        let outcome = control.catalog.remove_gateway(&name, Mode::Commit)?;
        control.follow(&outcome.snapshot);
        Ok(shown)
    };
    Ok(Json(blocking(&state, work).await?))
}

pub(super) async fn addresses(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Address>>, Failure> {
    let (snapshot, view) = (state.0.catalog.snapshot(), state.0.cluster()?.view());
    let weights = snapshot.weights();
    let all = snapshot.addresses().map(|one| (format!("{:010}", one.group.0), one));
    page(query, "address", all, |one| convert::address(&snapshot, &weights, &view, one))
}

pub(super) async fn add_address(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<NewAddress>, JsonRejection>,
) -> ChangeResult<Address> {
    let Json(new) = new?;
    let at: InterfaceAddress = new.address.parse()?;
    let apply = move |catalog: &Catalog, asked: Asked| catalog.add_address(at, asked.mode);
    let view = move |control: &Control, outcome: &Outcome| {
        control.address(&outcome.snapshot, &at.ip.to_string())
    };
    state.change(options, Target::New, apply, view).await
}

pub(super) async fn remove_address(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<Address> {
    let ip: IpAddr = name.parse().map_err(|_| {
        let name = name.chars().take(TEXT_CHARS_MAX).collect();
        CatalogError::NoSuch { thing: Thing::Address, name }
    })?;
    let target = Target::Address(ip.to_string());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.remove_address(ip, asked.mode);
    // After a preview the catalogue still has it.
    let view = move |control: &Control, _: &Outcome| {
        control.address(&control.catalog.snapshot(), &ip.to_string())
    };
    state.change(options, target, apply, view).await
}

pub(super) async fn home(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<VolumeHome>, Failure> {
    let snapshot = state.0.catalog.snapshot();
    let view = state.0.cluster()?.view();
    let (volume, group) = volume_of(&snapshot, &name)?;
    Ok(Json(convert::volume_home(&snapshot, &view, volume, group)))
}

pub(super) async fn move_home(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    change: Result<Json<HomeChange>, JsonRejection>,
) -> Result<Json<VolumeHome>, Failure> {
    let Json(change) = change?;
    let handle = Handle::current();
    let work = move |control: &Control| {
        let (cluster, snapshot) = (control.cluster()?, control.catalog.snapshot());
        let (volume, group) = volume_of(&snapshot, &name)?;
        let to = find(&snapshot, &change.gateway)?.id;
        let done = handle.block_on(cluster.command(Command::Move { group, to }));
        done.map_err(|refusal| refused(&snapshot, refusal))?;
        Ok(convert::volume_home(&snapshot, &cluster.view(), volume, group))
    };
    Ok(Json(blocking(&state, work).await?))
}

/// An address of a volume from a request.
pub(super) fn address_asked(text: Option<&str>) -> Result<Option<IpAddr>, Failure> {
    let parsed = |text: &str| {
        text.parse().map_err(|_| {
            let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
            let message = format!("{text:?} is not a valid address: use one such as 10.0.0.5");
            Failure::new(StatusCode::BAD_REQUEST, "bad_address", message)
        })
    };
    text.map(parsed).transpose()
}

impl Control {
    /// The cluster that the server belongs to.
    fn cluster(&self) -> Result<&dyn Cluster, Failure> {
        let alone = || {
            let message = "this server is not a gateway of a cluster";
            Failure::new(StatusCode::CONFLICT, "not_a_gateway", message)
        };
        self.cluster.get().map(AsRef::as_ref).ok_or_else(alone)
    }

    /// The address `ip` of the cluster in `snapshot`.
    pub(super) fn address(
        &self,
        snapshot: &Snapshot,
        ip: &str,
    ) -> Result<Option<Address>, Failure> {
        let view = self.cluster()?.view();
        let found = ip.parse().ok().and_then(|ip| snapshot.address_at(ip));
        Ok(found.map(|one| convert::address(snapshot, &snapshot.weights(), &view, one)))
    }
}

/// Carries out the command that `make` is for the gateway called `name`.
async fn carry_out(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    make: fn(GatewayId) -> Command,
) -> Result<Json<Gateway>, Failure> {
    let handle = Handle::current();
    let work = move |control: &Control| {
        let (cluster, snapshot) = (control.cluster()?, control.catalog.snapshot());
        let gateway = find(&snapshot, &name)?;
        let done = handle.block_on(cluster.command(make(gateway.id)));
        done.map_err(|refusal| refused(&snapshot, refusal))?;
        Ok(convert::gateway(&snapshot, &snapshot.weights(), &cluster.view(), gateway))
    };
    Ok(Json(blocking(&state, work).await?))
}

fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Result<&'a weir_catalog::Gateway, CatalogError> {
    let no_such = || CatalogError::NoSuch {
        thing: Thing::Gateway,
        name: name.chars().take(TEXT_CHARS_MAX).collect(),
    };
    snapshot.gateway_named(name).ok_or_else(no_such)
}

/// The volume called `name`, with the group that it moves with.
fn volume_of<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Result<(&'a weir_catalog::Volume, GroupId), Failure> {
    let Some(volume) = snapshot.volume_named(name) else {
        let name = name.chars().take(TEXT_CHARS_MAX).collect();
        return Err(CatalogError::NoSuch { thing: Thing::Volume, name }.into());
    };
    let no_address = || {
        let message = format!(
            "volume {name:?} has no address: give it one with `weir volume set {name} --address`"
        );
        Failure::new(StatusCode::CONFLICT, "no_address", message)
    };
    Ok((volume, volume.address.ok_or_else(no_address)?))
}

/// The failure of a command, with the names of the catalogue.
fn refused(snapshot: &Snapshot, refusal: Refusal) -> Failure {
    let gateway = |id| convert::gateway_name(snapshot, id);
    let address = |group| match snapshot.address(group) {
        Some(address) => address.at.ip.to_string(),
        None => format!("of group {group}"),
    };
    let (status, code, message) = match refusal {
        Refusal::Busy => (StatusCode::CONFLICT, "gateway_busy", refusal.to_string()),
        Refusal::Unreachable => {
            (StatusCode::INTERNAL_SERVER_ERROR, "cluster_unreachable", refusal.to_string())
        }
        Refusal::Unknown => {
            (StatusCode::INTERNAL_SERVER_ERROR, "cluster_in_doubt", refusal.to_string())
        }
        Refusal::NoGateway(id) => (
            StatusCode::CONFLICT,
            "gateway_not_live",
            format!("gateway {} was not started yet", gateway(id)),
        ),
        Refusal::NoGroup(group) | Refusal::Moving(group) => (
            StatusCode::CONFLICT,
            "address_moving",
            format!(
                "address {} has no gateway at present, or is moving; try again",
                address(group)
            ),
        ),
        Refusal::NotLive(id) => (
            StatusCode::CONFLICT,
            "gateway_not_live",
            format!("gateway {} does not serve at present", gateway(id)),
        ),
        Refusal::Draining(id) => (
            StatusCode::CONFLICT,
            "gateway_draining",
            format!("gateway {0} is drained: `weir gateway undrain {0}` ends that", gateway(id)),
        ),
        Refusal::StillLive(id) => (
            StatusCode::CONFLICT,
            "gateway_live",
            format!("gateway {} is alive; stop it first", gateway(id)),
        ),
        Refusal::NotGone(id) => (
            StatusCode::CONFLICT,
            "gateway_not_gone",
            format!(
                "gateway {0} may still run, or its addresses have not moved yet: stop it, or if its machine is off, `weir gateway declare-gone {0}`",
                gateway(id)
            ),
        ),
        Refusal::TooManyGroups => (StatusCode::CONFLICT, "too_many", refusal.to_string()),
    };
    Failure::new(status, code, message)
}
