//! Commands of operators, and why one is refused. A command is done when it stands in the records;
//! the rest follows from there.

use crate::change::Change;
use crate::id::{GatewayId, GroupId, Life};
use crate::records::{Home, View};
use crate::timing::GROUPS_MAX;

/// A command of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Create a group, or change its weight.
    Place {
        /// The group.
        group: GroupId,
        /// The weight.
        weight: u64,
    },
    /// Delete a group.
    Withdraw {
        /// The group.
        group: GroupId,
    },
    /// Move a group to a gateway.
    Move {
        /// The group.
        group: GroupId,
        /// The gateway.
        to: GatewayId,
    },
    /// Move all groups away from a gateway, and give it no new ones; or allow it groups again.
    Drain {
        /// The gateway.
        gateway: GatewayId,
        /// Whether to drain it.
        draining: bool,
    },
    /// The operator knows that no process of a gateway runs, for example because its machine is
    /// off.
    DeclareGone {
        /// The gateway.
        gateway: GatewayId,
    },
    /// Remove a gateway that is out and gone.
    Remove {
        /// The gateway.
        gateway: GatewayId,
    },
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another command is being carried out here.
    #[error("this gateway carries out another command; try again")]
    Busy,
    /// There is no answer from etcd.
    #[error("etcd can't be reached from this gateway, so nothing can be changed")]
    Unreachable,
    /// etcd did not answer in time.
    #[error("etcd did not answer in time; look whether the change was made before trying again")]
    Unknown,
    /// There is no such gateway.
    #[error("there is no gateway {0}")]
    NoGateway(GatewayId),
    /// There is no such group.
    #[error("there is no group {0}")]
    NoGroup(GroupId),
    /// The gateway does not serve at present.
    #[error("gateway {0} does not serve at present")]
    NotLive(GatewayId),
    /// The gateway drains.
    #[error("gateway {0} is being drained; end that first")]
    Draining(GatewayId),
    /// The gateway's lease is there.
    #[error("gateway {0} is alive; stop it first")]
    StillLive(GatewayId),
    /// The end of the gateway is not known, or its work is not over.
    #[error(
        "gateway {0} may still run, or its volumes have no new home yet; stop it, or declare it gone"
    )]
    NotGone(GatewayId),
    /// The group moves already, or its home has ended.
    #[error("group {0} is on the move; try again when it has a home")]
    Moving(GroupId),
    /// There are too many groups.
    #[error("the cluster has as many groups as it can")]
    TooManyGroups,
}

/// The effect of a command on the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it is so already.
    None,
    Change(Change),
    /// A change that holds only while this gateway has no lease.
    IfAbsent(GatewayId, Change),
}

/// The effect of `command` upon `view`.
pub(crate) fn effect(view: &View, command: Command) -> Result<Effect, Refusal> {
    let groups = &view.records.groups;
    let change = match command {
        Command::Place { group, weight } => {
            if groups.len() >= GROUPS_MAX && !groups.contains_key(&group) {
                return Err(Refusal::TooManyGroups);
            }
            Change::Place { group, weight }
        }
        Command::Withdraw { group } if groups.contains_key(&group) => Change::Withdraw { group },
        Command::Withdraw { group } => return Err(Refusal::NoGroup(group)),
        Command::Move { group, to } => return moved(view, group, to),
        Command::Drain { gateway, draining } => {
            let row = view.records.gateways.get(&gateway).ok_or(Refusal::NoGateway(gateway))?;
            if row.draining == draining {
                return Ok(Effect::None);
            }
            Change::Drain { gateway, draining }
        }
        Command::DeclareGone { gateway } => return declared_gone(view, gateway),
        Command::Remove { gateway } => {
            let row = view.records.gateways.get(&gateway).ok_or(Refusal::NoGateway(gateway))?;
            if row.member().is_some() || !row.fences.is_empty() {
                return Err(Refusal::NotGone(gateway));
            }
            Change::Remove { gateway }
        }
    };
    Ok(Effect::Change(change))
}

fn moved(view: &View, group: GroupId, gateway: GatewayId) -> Result<Effect, Refusal> {
    let row = view.records.groups.get(&group).ok_or(Refusal::NoGroup(group))?;
    let Home::At { life, came, to: None } = row.home else { return Err(Refusal::Moving(group)) };
    if !view.is_member(life) {
        return Err(Refusal::Moving(group));
    }
    if life.gateway == gateway {
        return Ok(Effect::None);
    }
    let target = view.records.gateways.get(&gateway).ok_or(Refusal::NoGateway(gateway))?;
    if target.draining {
        return Err(Refusal::Draining(gateway));
    }
    let to = Life { gateway, number: target.number() };
    if !view.is_member(to) || !view.is_attached(to) {
        return Err(Refusal::NotLive(gateway));
    }
    let home = Home::At { life, came, to: Some(to) };
    Ok(Effect::Change(Change::Homes([(group, home)].into())))
}

fn declared_gone(view: &View, gateway: GatewayId) -> Result<Effect, Refusal> {
    let row = view.records.gateways.get(&gateway).ok_or(Refusal::NoGateway(gateway))?;
    let life = Life { gateway, number: row.number() };
    if view.attached.contains_key(&gateway) {
        return Err(Refusal::StillLive(gateway));
    }
    if row.member().is_some() {
        return Ok(Effect::IfAbsent(gateway, Change::Condemn { life, gone: true }));
    }
    if row.fences.iter().all(|fence| fence.gone) {
        return Ok(Effect::None);
    }
    Ok(Effect::IfAbsent(gateway, Change::Gone { life }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Came, Records};

    const HOME: Life = Life { gateway: GatewayId(1), number: 1 };
    const OTHER: Life = Life { gateway: GatewayId(2), number: 1 };
    const GROUP: GroupId = GroupId(1);

    fn view() -> View {
        let home = Home::At { life: HOME, came: Came::New, to: None };
        let records = Records::default()
            .with(&Change::registers(HOME))
            .with(&Change::registers(OTHER))
            .with(&Change::Place { group: GROUP, weight: 1 })
            .with(&Change::Homes([(GROUP, home)].into()));
        let attached = [(HOME.gateway, 1), (OTHER.gateway, 1)].into();
        View { records: records.into(), attached, ..View::default() }
    }

    #[test]
    fn a_group_moves_to_a_live_gateway_that_does_not_drain_one_move_at_a_time() {
        let to = |gateway: u16| Command::Move { group: GROUP, to: GatewayId(gateway) };
        let mut view = view();
        assert_eq!(effect(&view, to(1)), Ok(Effect::None));
        assert_eq!(effect(&view, to(3)), Err(Refusal::NoGateway(GatewayId(3))));
        let Ok(Effect::Change(change)) = effect(&view, to(2)) else { panic!("it may move") };
        let moving = View { records: view.records.with(&change).into(), ..view.clone() };
        assert_eq!(effect(&moving, to(2)), Err(Refusal::Moving(GROUP)));
        let drain = Command::Drain { gateway: OTHER.gateway, draining: true };
        let Ok(Effect::Change(drain)) = effect(&view, drain) else { panic!("it may drain") };
        let draining = View { records: view.records.with(&drain).into(), ..view.clone() };
        assert_eq!(effect(&draining, to(2)), Err(Refusal::Draining(OTHER.gateway)));
        view.attached.remove(&OTHER.gateway);
        assert_eq!(effect(&view, to(2)), Err(Refusal::NotLive(OTHER.gateway)));
    }

    #[test]
    fn too_many_groups_are_refused_and_deleting_one_needs_it_to_be_there() {
        let mut view = view();
        for group in 2..=u32::try_from(GROUPS_MAX).unwrap() {
            let records = alloc::sync::Arc::make_mut(&mut view.records);
            let row = records.groups[&GROUP];
            records.groups.insert(GroupId(group), row);
        }
        let place = |group| Command::Place { group, weight: 2 };
        assert!(effect(&view, place(GROUP)).is_ok());
        assert_eq!(effect(&view, place(GroupId(u32::MAX))), Err(Refusal::TooManyGroups));
        let withdraw = Command::Withdraw { group: GroupId(u32::MAX) };
        assert_eq!(effect(&view, withdraw), Err(Refusal::NoGroup(GroupId(u32::MAX))));
    }
}
