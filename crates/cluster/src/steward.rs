//! The common work that any live gateway may do: it leads from an ended life to new homes, and from
//! a draining gateway to an empty one.
//!
//! The first live gateway does it; if the records stay as they are, the next joins in. Two that do
//! the same work do no harm: only one of two changes upon the same generation happens.

use crate::change::Change;
use crate::fencing::Fencing;
use crate::id::{GatewayId, GroupId, Life, Version};
use crate::placement::place;
use crate::records::{Came, Home, View};
use crate::timing::{HOMES_PER_CHANGE, MOVES_MAX};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The next change that `view` calls for, by a gateway that knows which blocklists are in force and
/// which lives have `ended`.
pub(crate) fn next(
    view: &View,
    fencing: &Fencing,
    ended: &BTreeMap<GatewayId, u32>,
) -> Option<Change> {
    in_force(view, fencing)
        .or_else(|| gone(view, ended))
        .or_else(|| homes(view))
        .or_else(|| cancelled(view))
        .or_else(|| drained(view))
        .or_else(|| forgotten(view))
        .or_else(|| format(view))
}

fn in_force(view: &View, fencing: &Fencing) -> Option<Change> {
    let mut open = view.fences().filter(|(_, fence)| fence.in_force.is_none());
    open.find_map(|(life, _)| Some(Change::InForce { life, barrier: fencing.barrier(life)? }))
}

fn gone(view: &View, ended: &BTreeMap<GatewayId, u32>) -> Option<Change> {
    let has_ended = |life: Life| ended.get(&life.gateway).is_some_and(|last| *last >= life.number);
    let mut open = view.fences().filter(|(_, fence)| !fence.gone);
    open.find(|(life, _)| has_ended(*life)).map(|(life, _)| Change::Gone { life })
}

/// Homes for groups that have none, or whose home is an ended life with its blocklist in force.
fn homes(view: &View) -> Option<Change> {
    let homeless = view.records.groups.iter().filter_map(|(&group, row)| match row.home {
        Home::Nowhere => Some((group, Came::New)),
        Home::At { life: from, .. } => {
            let barrier = view.fence(from)?.in_force?;
            Some((group, Came::Taken { from, barrier }))
        }
    });
    let homeless: BTreeMap<GroupId, Came> = homeless.take(HOMES_PER_CHANGE).collect();
    let groups: Vec<GroupId> = homeless.keys().copied().collect();
    let placed = place(view, &groups, true).into_iter();
    let homes = placed.filter_map(|(group, life)| {
        let came = *homeless.get(&group)?;
        Some((group, Home::At { life, came, to: None }))
    });
    changed(homes.collect())
}

/// Moves to lives that are members no more are off.
fn cancelled(view: &View) -> Option<Change> {
    let stuck = view.records.groups.iter().filter_map(|(&group, row)| match row.home {
        Home::At { life, came, to: Some(to) } if !view.is_member(to) => {
            Some((group, Home::At { life, came, to: None }))
        }
        _ => None,
    });
    changed(stuck.take(HOMES_PER_CHANGE).collect())
}

/// Moves away from gateways that drain.
fn drained(view: &View) -> Option<Change> {
    let homes = || {
        view.records
            .groups
            .iter()
            .filter_map(|(&group, row)| row.home.at().map(|(life, to)| (group, row.home, life, to)))
    };
    let moving = homes().filter(|(_, _, _, to)| to.is_some()).count();
    let drains = |life: Life| {
        let row = view.records.gateways.get(&life.gateway);
        row.is_some_and(|row| row.draining) && view.is_member(life)
    };
    let leaving = homes().filter(|(_, _, life, to)| to.is_none() && drains(*life));
    let leaving: BTreeMap<GroupId, Home> = leaving
        .map(|(group, home, _, _)| (group, home))
        .take(MOVES_MAX.saturating_sub(moving))
        .collect();
    let groups: Vec<GroupId> = leaving.keys().copied().collect();
    let placed = place(view, &groups, false).into_iter();
    let moves = placed.filter_map(|(group, to)| match leaving.get(&group)? {
        Home::At { life, came, .. } => {
            Some((group, Home::At { life: *life, came: *came, to: Some(to) }))
        }
        Home::Nowhere => None,
    });
    changed(moves.collect())
}

/// A life that has ended, is blocklisted and has no groups needs no record.
fn forgotten(view: &View) -> Option<Change> {
    let has_groups = |life: Life| {
        let mut homes = view.records.groups.values().filter_map(|row| row.home.at());
        homes.any(|(home, _)| home == life)
    };
    let mut done = view.fences().filter(|(_, fence)| fence.gone && fence.in_force.is_some());
    done.find(|(life, _)| !has_groups(*life)).map(|(life, _)| Change::Forget { life })
}

/// The newest format that all gateways understand. A gateway that is down may come back as another
/// program, and no format is ever lowered; so until it is back, or removed, the format stays. One
/// that has just ended is a member until it is condemned, so each needs its lease.
fn format(view: &View) -> Option<Change> {
    if view.live().count() < view.records.gateways.len() {
        return None;
    }
    let common: Version = view.members().map(|(_, member)| member.speaks).min()?;
    (common > view.records.format).then_some(Change::Format(common))
}

fn changed(homes: Vec<(GroupId, Home)>) -> Option<Change> {
    (!homes.is_empty()).then_some(Change::Homes(homes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Registration;
    use crate::id::MachineId;
    use crate::records::Records;

    /// The state of gateways 1, 2 and so on, which know these versions. All members have leases.
    fn view(speaks: &[u16], more: &[Change]) -> View {
        let mut records = Records::default();
        for (gateway, speaks) in (1..).zip(speaks) {
            let life = Life { gateway: GatewayId(gateway), number: 1 };
            let machine = MachineId(gateway.into());
            let (speaks, sessions) = (Version(*speaks), Vec::new());
            let new = Registration { life, machine, speaks, sessions };
            records = records.with(&Change::Register(new));
        }
        for change in more {
            records = records.with(change);
        }
        let mut view = View { records: records.into(), ..View::default() };
        view.attached = view.members().map(|(life, _)| (life.gateway, life.number)).collect();
        view
    }

    #[test]
    fn the_format_is_the_newest_that_all_know_and_is_never_lowered() {
        let raised =
            |speaks: &[u16], now: u16| format(&view(speaks, &[Change::Format(Version(now))]));
        assert_eq!(raised(&[1, 1, 1], 0), Some(Change::Format(Version(1))));
        assert_eq!(raised(&[2, 1, 2], 1), None, "one of them is old");
        assert_eq!(raised(&[2, 3, 2], 1), Some(Change::Format(Version(2))));
        assert_eq!(raised(&[2, 2, 2], 2), None);
        assert_eq!(raised(&[1, 2, 2], 2), None, "an old one came too late");
        assert_eq!(raised(&[], 0), None);
    }

    #[test]
    fn the_format_stays_while_a_gateway_is_down() {
        let life = Life { gateway: GatewayId(3), number: 1 };
        let down = Change::Condemn { life, gone: true };
        let removed = [down, Change::Remove { gateway: GatewayId(3) }];
        assert_eq!(format(&view(&[2, 2, 1], &removed[..1])), None, "it may come back as it was");
        assert_eq!(format(&view(&[2, 2, 1], &removed)), Some(Change::Format(Version(2))));
    }

    #[test]
    fn the_format_stays_while_a_member_has_no_lease() {
        let mut last = view(&[2, 2, 2], &[Change::Format(Version(1))]);
        assert_eq!(format(&last), Some(Change::Format(Version(2))));
        last.attached.insert(GatewayId(3), 0);
        assert_eq!(format(&last), None, "the lease of an earlier life");
        last.attached.remove(&GatewayId(3));
        assert_eq!(format(&last), None, "it may be down, and come back as an older program");
    }
}
