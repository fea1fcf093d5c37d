//! The choice of homes: each group goes to the gateway that has the least weight.

use crate::id::{GroupId, Life};
use crate::records::View;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The live gateways that may get groups: none that drain, unless `any` and there are no others.
fn candidates(view: &View, any: bool) -> Vec<Life> {
    let is_staying = |life: &Life| {
        view.records.gateways.get(&life.gateway).is_some_and(|gateway| !gateway.draining)
    };
    let staying: Vec<Life> = view.live().filter(is_staying).collect();
    if staying.is_empty() && any { view.live().collect() } else { staying }
}

/// Chooses a gateway for each of `groups`, the heaviest first. A moving group counts where it goes.
/// Where there is no choice, the result is empty.
pub(crate) fn place(view: &View, groups: &[GroupId], any: bool) -> Vec<(GroupId, Life)> {
    if groups.is_empty() {
        return Vec::new();
    }
    let mut loads: BTreeMap<Life, u64> =
        candidates(view, any).into_iter().map(|life| (life, 0)).collect();
    for group in view.records.groups.values() {
        if let Some((life, to)) = group.home.at()
            && let Some(load) = loads.get_mut(&to.unwrap_or(life))
        {
            *load = load.saturating_add(group.weight);
        }
    }
    let weight = |group: &GroupId| view.records.groups.get(group).map_or(0, |row| row.weight);
    let mut groups = groups.to_vec();
    groups.sort_by_key(|group| (Reverse(weight(group)), *group));
    let mut placed = Vec::new();
    for group in groups {
        // A group without weight still counts, so that such groups are spread too.
        let least = loads.iter_mut().min_by_key(|(life, load)| (**load, **life));
        if let Some((life, load)) = least {
            *load = load.saturating_add(weight(&group).max(1));
            placed.push((group, *life));
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::id::GatewayId;
    use crate::records::{Came, Home, Records};

    fn life(gateway: u16) -> Life {
        Life { gateway: GatewayId(gateway), number: 1 }
    }

    /// Gateways 1 to `gateways`, and a group of each of `weights`, numbered from 0.
    fn view(gateways: u16, weights: &[u64]) -> View {
        let mut view = View::default();
        let mut records = Records::default();
        for gateway in 1..=gateways {
            records = records.with(&Change::registers(life(gateway)));
            view.attached.insert(GatewayId(gateway), 1);
        }
        for (group, &weight) in (0..).zip(weights) {
            records = records.with(&Change::Place { group: GroupId(group), weight });
        }
        view.records = records.into();
        view
    }

    fn groups(count: u32) -> Vec<GroupId> {
        (0..count).map(GroupId).collect()
    }

    #[test]
    fn weights_are_spread() {
        let view = view(3, &[1, 9, 4, 5, 4, 3]);
        let mut loads = BTreeMap::<Life, u64>::new();
        for (group, life) in place(&view, &groups(6), false) {
            *loads.entry(life).or_default() += view.records.groups[&group].weight;
        }
        assert_eq!(loads.into_values().collect::<Vec<_>>(), [9, 9, 8]);
    }

    #[test]
    fn a_group_that_moves_counts_where_it_goes() {
        let mut view = view(2, &[5, 1]);
        let home = Home::At { life: life(1), came: Came::New, to: Some(life(2)) };
        view.records = view.records.with(&Change::Homes([(GroupId(0), home)].into())).into();
        assert_eq!(place(&view, &[GroupId(1)], false), [(GroupId(1), life(1))]);
    }

    #[test]
    fn gateways_that_drain_get_groups_only_where_there_are_no_others() {
        let mut view = view(2, &[1, 1]);
        let drain = |gateway| Change::Drain { gateway: GatewayId(gateway), draining: true };
        view.records = view.records.with(&drain(1)).into();
        let placed = place(&view, &groups(2), true);
        assert!(placed.iter().all(|(_, to)| *to == life(2)) && placed.len() == 2);
        view.records = view.records.with(&drain(2)).into();
        assert_eq!(place(&view, &groups(2), false), []);
        assert_eq!(place(&view, &groups(2), true).len(), 2);
        view.attached.clear();
        assert_eq!(place(&view, &groups(2), true), []);
    }
}
