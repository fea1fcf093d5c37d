//! The invariants, checked after everything that happens in the world, from outside: from what each
//! process would do, the state of etcd and that of Ceph.

use super::etcd::Ceph;
use super::machine::Process;
use super::world::World;
use crate::change::Change;
use crate::command::Refusal;
use crate::event::Reason;
use crate::id::{GatewayId, GroupId, Life, SessionId, Version};
use crate::records::{Came, View};
use alloc::collections::{BTreeMap, BTreeSet};

/// The memory of the checks, and counts for the figures.
#[derive(Default)]
pub(super) struct Checks {
    /// The first invariant that did not hold.
    pub(super) violation: Option<String>,
    /// The life that used the volumes of a group last, with its sessions.
    last: BTreeMap<GroupId, (Life, Vec<SessionId>)>,
    /// Groups whose service a life has ended in order.
    released: BTreeSet<(GroupId, Life)>,
    /// Replies that leave until a time although the service has ended.
    lingering: Vec<(u64, GroupId, Life)>,
    /// The highest format that the records have had.
    format: Version,
    pub(super) condemned: u64,
    pub(super) condemned_by_word: u64,
    pub(super) taken: u64,
    pub(super) handed: u64,
    pub(super) notified: u64,
    pub(super) served_by_words: u64,
    /// How often the format of the records has risen.
    pub(super) raised: u64,
    /// Lives that have ended because the records were newer.
    pub(super) too_old: u64,
    pub(super) ends: Vec<Reason>,
    pub(super) answers: Vec<Result<(), Refusal>>,
}

impl Checks {
    pub(super) fn applied(&mut self, change: &Change) {
        match change {
            Change::Condemn { gone: true, .. } => self.condemned_by_word += 1,
            Change::Condemn { .. } => self.condemned += 1,
            Change::Format(_) => self.raised += 1,
            _ => {}
        }
    }

    pub(super) fn released(&mut self, group: GroupId, life: Life) {
        self.released.insert((group, life));
    }

    /// Has `life` ended its service of `group`, and nobody begun it since?
    pub(super) fn is_released(&self, group: GroupId, life: Life) -> bool {
        self.released.contains(&(group, life))
    }

    pub(super) fn resumed(&mut self, group: GroupId) {
        self.released.retain(|(released, _)| *released != group);
    }

    pub(super) fn lingering(&mut self, until: u64, group: GroupId, life: Option<Life>) {
        self.lingering.extend(life.map(|life| (until, group, life)));
    }

    /// A life begins to use the volumes of a group: the one before has released it, or its sessions
    /// are all blocklisted.
    pub(super) fn adopts(
        &mut self,
        ceph: &Ceph,
        group: GroupId,
        life: Life,
        sessions: Vec<SessionId>,
        came: Came,
    ) {
        match came {
            Came::Taken { .. } => self.taken += 1,
            Came::Handed { .. } => self.handed += 1,
            Came::New => {}
        }
        if let Some((before, used)) = self.last.get(&group)
            && *before != life
            && !self.released.contains(&(group, *before))
            && !ceph.refuses(used)
        {
            let what =
                format!("{life} adopts group {group} without fencing of {before} ({came:?})");
            self.violation.get_or_insert(what);
        }
        self.released.remove(&(group, life));
        self.last.insert(group, (life, sessions));
    }
}

/// Checks everything that has to hold at any time.
pub(super) fn check(world: &mut World) {
    let violation = violation(world).or_else(|| misread(world));
    if let Some(what) = violation {
        world.checks.violation.get_or_insert(what);
    }
}

fn violation(world: &mut World) -> Option<String> {
    let now = world.now;
    world.checks.lingering.retain(|(until, ..)| now < *until);
    let lingering = world.checks.lingering.iter().map(|(_, group, life)| (*group, *life));
    let mut serving: Vec<(GroupId, Life)> = lingering.collect();
    let mut by_words = 0;
    for machine in &world.machines {
        let Some(process) = &machine.process else { continue };
        let cluster = &process.cluster;
        if !cluster.right().allows(machine.local(now)) {
            continue;
        }
        let life = cluster.life();
        if world.etcd.view.is_over(life) {
            return Some(format!("{life} may reply although it is condemned"));
        }
        if !world.etcd.view.is_attached(life) {
            by_words += u64::from(cluster.view().members().nth(1).is_some());
            if let Some(free) = unbound(world, process) {
                let free = world.machines[free].gateway;
                return Some(format!(
                    "{life} may reply without a lease, or a word of gateway {free}"
                ));
            }
        }
        for group in cluster.replying() {
            let is_other = |(served, other): &&(GroupId, Life)| *served == group && *other != life;
            if let Some((_, other)) = serving.iter().find(is_other) {
                return Some(format!("both {other} and {life} may reply for group {group}"));
            }
            serving.push((group, life));
        }
    }
    world.checks.served_by_words += by_words;
    None
}

/// The records are in a version that a member does not know, or in an older one than before.
fn misread(world: &mut World) -> Option<String> {
    let view = &world.etcd.view;
    let (format, before) = (view.records.format, world.checks.format);
    if format < before {
        return Some(format!("the format was lowered from {before} to {format}"));
    }
    world.checks.format = format;
    let (life, member) = view.members().find(|(_, member)| member.speaks < format)?;
    Some(format!("{life} is a member, knows versions up to {} and not {format}", member.speaks))
}

/// Is there a version that all gateways know, all being members with leases, and the records are
/// not in it?
pub(super) fn is_behind(world: &World) -> bool {
    let view = &world.etcd.view;
    let is_whole = view.live().count() == view.records.gateways.len();
    let least = view.members().map(|(_, member)| member.speaks).min();
    is_whole && least.is_some_and(|least| least != view.records.format)
}

/// A member, as the process sees it, that is able to vouch for the process's end.
fn unbound(world: &World, process: &Process) -> Option<usize> {
    let life = process.cluster.life();
    let members = process.cluster.view().members().map(|(other, _)| World::index(other.gateway));
    members.filter(|other| world.machines[*other].gateway != life.gateway).find(|other| {
        let machine = &world.machines[*other];
        let needs = needs(&world.etcd.view, life, machine.gateway);
        let voucher = machine.process.as_ref().filter(|_| needs);
        voucher.is_some_and(|other| !other.cluster.is_bound_to(machine.local(world.now), life))
    })
}

/// Has `life` acknowledged that `gateway` is a member?
fn needs(view: &View, life: Life, gateway: GatewayId) -> bool {
    let known = view.acknowledged.get(&life.gateway);
    let member = view.member(gateway);
    known.zip(member).is_some_and(|(known, member)| *known >= member.since)
}

/// The groups that nobody can be reached for, although somebody should: those whose home can be
/// decided by the gateways that are there.
pub(super) fn unserved(world: &World) -> Vec<GroupId> {
    let is_served = |group: &GroupId| {
        world.machines.iter().any(|machine| {
            let process = machine.process.as_ref().filter(|process| !process.is_stopped());
            process.is_some_and(|process| {
                process.cluster.right().allows(machine.local(world.now))
                    && process.cluster.replying().any(|replying| replying == *group)
            })
        })
    };
    let groups = world.etcd.view.records.groups.keys();
    groups.filter(|group| !is_served(group)).copied().collect()
}

/// Is the home of `group` a member on a lost machine for whose end nobody can vouch? Such a member
/// has acknowledged none of the gateways that are left: only an operator knows that it has ended.
pub(super) fn is_undecidable(world: &World, group: GroupId) -> bool {
    let view = &world.etcd.view;
    let home = view.records.groups.get(&group).and_then(|row| row.home.at());
    home.is_some_and(|(life, _)| {
        let is_lost = world.machines[World::index(life.gateway)].is_lost;
        let mut vouchers = view.live().filter(|other| needs(view, life, other.gateway));
        view.is_member(life) && is_lost && vouchers.next().is_none()
    })
}
