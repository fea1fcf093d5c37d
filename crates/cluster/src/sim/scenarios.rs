//! Single situations in a calm world, one test each: the pauses that they cause, and the takeovers
//! that they must not cause.

use super::checks::unserved;
use super::faults::Fault;
use super::world::{MILLISECOND, Misbehaviour, SECOND, What, World};
use crate::command::{Command, Refusal};
use crate::event::Reason;
use crate::id::{GatewayId, GroupId, Life, MachineId};

/// A world of gateways that have served two groups each for some seconds.
fn serving(machines: u16) -> World {
    serving_from(7, machines)
}

fn serving_from(seed: u64, machines: u16) -> World {
    let mut world = World::new(seed, machines, Misbehaviour::None);
    (0..usize::from(machines)).for_each(|machine| world.after(0, What::Start { machine }));
    pass(&mut world, 2 * SECOND);
    world.create_groups(&vec![5; 2 * usize::from(machines)]);
    pass(&mut world, 8 * SECOND);
    assert_eq!(unserved(&world), []);
    world
}

/// Lets time pass, in which every invariant holds.
fn pass(world: &mut World, time: u64) {
    world.run_until(world.now + time);
    assert_eq!(world.checks.violation, None);
}

/// The time until every group is served, once one is not.
fn pause(world: &mut World) -> u64 {
    let mut first = None;
    for _ in 0..3_000 {
        let is_served = unserved(world).is_empty();
        match first {
            None if !is_served => first = Some(world.now),
            Some(first) if is_served => return world.now - first,
            _ => {}
        }
        pass(world, 10 * MILLISECOND);
    }
    panic!("{first:?}: the groups {:?} are not served: {:?}", unserved(world), world.etcd.view);
}

/// Lets time pass in which every group is served without a pause.
fn pass_served(world: &mut World, time: u64) {
    let end = world.now + time;
    while world.now < end {
        pass(world, 20 * MILLISECOND);
        assert_eq!(unserved(world), [], "at {} ms", world.now / MILLISECOND);
    }
}

fn homes_of(world: &World, life: Life) -> usize {
    let homes = world.etcd.view.records.groups.values().filter_map(|row| row.home.at());
    homes.filter(|(home, _)| *home == life).count()
}

fn life(gateway: u16, number: u32) -> Life {
    Life { gateway: GatewayId(gateway), number }
}

#[test]
fn groups_are_spread_and_nobody_is_condemned_while_nothing_happens() {
    let mut world = serving(4);
    assert!((1..=4).all(|gateway| homes_of(&world, life(gateway, 1)) == 2));
    pass_served(&mut world, 60 * SECOND);
    assert_eq!((world.checks.condemned, world.checks.condemned_by_word), (0, 0));
}

#[test]
fn a_killed_gateway_is_replaced_within_two_seconds() {
    let mut world = serving(3);
    world.strike(Fault::Kill { machine: 1, after: 60 * SECOND });
    let pause = pause(&mut world);
    assert!(pause < 2 * SECOND, "{} ms", pause / MILLISECOND);
    assert_eq!(world.checks.condemned_by_word, 1);
    assert_eq!(world.checks.taken, 2);
    pass(&mut world, SECOND);
    assert_eq!(world.checks.notified, 2);
    assert_eq!(world.etcd.view.fences().count(), 0, "its life is forgotten");
}

#[test]
fn a_machine_without_power_is_replaced_within_five_seconds() {
    let mut world = serving(3);
    world.strike(Fault::Lose { machine: 1 });
    let pause = pause(&mut world);
    assert!(pause < 5 * SECOND, "{} ms", pause / MILLISECOND);
    assert_eq!((world.checks.condemned, world.checks.condemned_by_word), (1, 0));
    pass(&mut world, 20 * SECOND);
    let fence = world.etcd.view.fence(life(2, 1)).unwrap();
    assert!(fence.in_force.is_some() && !fence.gone, "its blocklist is kept up");
}

#[test]
fn a_stopped_process_finds_itself_condemned_and_the_gateway_starts_anew() {
    let mut world = serving(2);
    world.strike(Fault::Stop { machine: 0, after: 10 * SECOND });
    pass(&mut world, 9 * SECOND);
    assert_eq!(homes_of(&world, life(2, 1)), 4);
    pass(&mut world, 6 * SECOND);
    assert!(
        world
            .checks
            .ends
            .iter()
            .all(|reason| { matches!(reason, Reason::Condemned | Reason::Blocklisted) })
    );
    assert_eq!((world.checks.ends.len(), world.machines[0].life()), (1, Some(life(1, 2))));
}

#[test]
fn without_etcd_all_serve_on_and_changes_are_refused() {
    let mut world = serving(4);
    world.strike(Fault::EtcdDown { after: 600 * SECOND });
    pass_served(&mut world, 595 * SECOND);
    let command = Command::Move { group: GroupId(1), to: GatewayId(2) };
    world.strike(Fault::Command { machine: 0, command });
    pass_served(&mut world, 30 * SECOND);
    assert_eq!(world.checks.answers, [Err(Refusal::Unreachable)]);
    assert_eq!((world.checks.condemned, world.checks.condemned_by_word), (0, 0));
}

#[test]
fn without_etcd_the_end_of_a_process_stops_nobody_else() {
    let mut world = serving(3);
    world.strike(Fault::EtcdDown { after: 60 * SECOND });
    pass_served(&mut world, 5 * SECOND);
    world.strike(Fault::Kill { machine: 2, after: 2 * SECOND });
    for _ in 0..400 {
        pass(&mut world, 100 * MILLISECOND);
        let allowed = |machine: usize| {
            let process = world.machines[machine].process.as_ref();
            process.is_some_and(|own| {
                own.cluster.right().allows(world.machines[machine].local(world.now))
            })
        };
        assert!(allowed(0) && allowed(1), "the helper speaks for the third");
    }
}

/// Without etcd nobody can take over, so questions that were in vain are answered again.
#[test]
fn without_etcd_one_that_is_stopped_pauses_all_until_it_goes_on() {
    let mut world = serving(3);
    world.strike(Fault::EtcdDown { after: 60 * SECOND });
    pass_served(&mut world, 5 * SECOND);
    world.strike(Fault::Stop { machine: 1, after: 15 * SECOND });
    pass(&mut world, 10 * SECOND);
    assert_eq!(unserved(&world).len(), 6, "nobody knows whether it could take over");
    pass(&mut world, 7 * SECOND);
    pass_served(&mut world, 60 * SECOND);
    assert_eq!((world.checks.condemned, world.checks.condemned_by_word), (0, 0));
}

#[test]
fn one_that_is_cut_from_etcd_alone_serves_on() {
    let mut world = serving(3);
    world.strike(Fault::NoEtcd { machine: 1, after: 60 * SECOND });
    pass_served(&mut world, 70 * SECOND);
    assert_eq!(world.checks.condemned, 0);
}

#[test]
fn one_that_is_cut_from_etcd_and_from_one_other_is_replaced() {
    let mut world = serving(3);
    world.strike(Fault::NoLink { a: 0, b: 1, after: 60 * SECOND });
    pass_served(&mut world, 10 * SECOND);
    world.strike(Fault::NoEtcd { machine: 1, after: 60 * SECOND });
    let pause = pause(&mut world);
    assert!(pause < 6 * SECOND, "{} ms", pause / MILLISECOND);
    assert_eq!(world.checks.condemned, 1);
}

/// The second gets no word of the third, which nobody can reach. The first would promise for ever.
#[test]
fn one_that_asks_in_vain_is_replaced_by_one_that_it_can_reach() {
    let mut world = serving(3);
    world.strike(Fault::NoEtcd { machine: 1, after: 60 * SECOND });
    pass_served(&mut world, 10 * SECOND);
    world.strike(Fault::Alone { machine: 2, after: 40 * SECOND });
    let pause = pause(&mut world);
    assert!(pause < 12 * SECOND, "{} ms", pause / MILLISECOND);
    assert_eq!((world.checks.condemned, homes_of(&world, life(1, 1))), (2, 6));
}

/// The change that condemns the first gateway is under way to a stopped etcd when its author, the
/// second, ends. Neither the helper beside it nor its next life may give a word to the first.
#[test]
fn a_condemnation_under_way_outlives_its_author() {
    let mut condemned = 0;
    for seed in 1..=40 {
        let mut world = serving_from(seed, 2);
        world.strike(Fault::NoEtcd { machine: 0, after: 60 * SECOND });
        world.strike(Fault::NoLink { a: 0, b: 1, after: 60 * SECOND });
        while !world.machines[1].helper.has_notes() {
            pass(&mut world, MILLISECOND);
        }
        world.strike(Fault::EtcdDown { after: 1_500 * MILLISECOND });
        world.links_cut_until.clear();
        world.strike(Fault::Kill { machine: 1, after: 100 * MILLISECOND });
        pass(&mut world, 10 * SECOND);
        condemned += world.checks.condemned;
    }
    assert!(condemned > 20, "{condemned} of 40");
}

#[test]
fn one_that_is_cut_from_everything_is_replaced_and_starts_anew() {
    let mut world = serving(3);
    world.strike(Fault::Alone { machine: 1, after: 20 * SECOND });
    let pause = pause(&mut world);
    assert!(pause < 5 * SECOND, "{} ms", pause / MILLISECOND);
    pass(&mut world, 30 * SECOND);
    assert_eq!(world.machines[1].life(), Some(life(2, 2)));
}

/// A single member needs no words, so a newcomer that it does not know must not replace it.
#[test]
fn a_newcomer_takes_nothing_from_one_that_does_not_know_it() {
    let mut world = World::new(7, 2, Misbehaviour::None);
    world.create_groups(&[1, 1]);
    world.after(0, What::Start { machine: 0 });
    pass(&mut world, 10 * SECOND);
    world.strike(Fault::NoEtcd { machine: 0, after: 600 * SECOND });
    pass(&mut world, 2 * SECOND);
    world.after(0, What::Start { machine: 1 });
    pass_served(&mut world, 60 * SECOND);
    assert_eq!((world.checks.condemned, world.checks.taken), (0, 0));
    world.strike(Fault::Kill { machine: 0, after: 600 * SECOND });
    let pause = pause(&mut world);
    assert!(pause < 2 * SECOND, "the helper knows: {} ms", pause / MILLISECOND);
    assert_eq!(homes_of(&world, life(2, 1)), 2);
}

/// A gateway keeps its membership through a restart, so one that comes back alone may act.
#[test]
fn after_a_loss_of_power_of_all_one_machine_that_comes_back_takes_over() {
    let mut world = serving(2);
    world.strike(Fault::Power { machine: 0, after: 5 * SECOND });
    world.strike(Fault::Lose { machine: 1 });
    pass(&mut world, 20 * SECOND);
    assert_eq!(unserved(&world), []);
    assert_eq!(homes_of(&world, life(1, 2)), 4);
}

/// The first live gateway is to do the common work, and can't.
#[test]
fn one_that_is_cut_from_ceph_does_not_hold_up_a_takeover() {
    let mut world = serving(3);
    world.strike(Fault::NoCeph { machine: 0, after: 60 * SECOND });
    world.strike(Fault::Kill { machine: 1, after: 60 * SECOND });
    pass(&mut world, 4 * SECOND);
    assert_eq!(homes_of(&world, life(2, 1)), 0);
}

#[test]
fn a_drained_gateway_gives_its_groups_away_without_takeovers() {
    let mut world = serving(3);
    let command = Command::Drain { gateway: GatewayId(1), draining: true };
    world.strike(Fault::Command { machine: 2, command });
    let pause = pause(&mut world);
    assert!(pause < SECOND, "{} ms", pause / MILLISECOND);
    pass(&mut world, 5 * SECOND);
    assert_eq!(homes_of(&world, life(1, 1)), 0);
    assert_eq!((world.checks.handed, world.checks.taken), (2, 0));
    assert_eq!(world.checks.answers, [Ok(())]);
}

#[test]
fn two_machines_with_one_name_are_refused() {
    let mut world = serving(2);
    world.machines[1].gateway = GatewayId(1);
    world.machines[1].id = MachineId(99);
    world.machines[1].counter = 5;
    world.strike(Fault::Kill { machine: 1, after: 100 * MILLISECOND });
    pass(&mut world, 3 * SECOND);
    assert!(world.checks.ends.iter().all(|reason| *reason == Reason::NameTaken));
    assert!(!world.checks.ends.is_empty());
    assert!(world.etcd.view.is_attached(life(1, 1)), "the first one is left alone");
}

#[test]
fn an_operator_can_declare_a_lost_gateway_gone_and_remove_it() {
    let mut world = serving(2);
    world.strike(Fault::Lose { machine: 1 });
    pass(&mut world, 10 * SECOND);
    let gateway = GatewayId(2);
    for command in [
        Command::Remove { gateway },
        Command::DeclareGone { gateway },
        Command::Remove { gateway },
        Command::DeclareGone { gateway: GatewayId(1) },
    ] {
        world.strike(Fault::Command { machine: 0, command });
        pass(&mut world, 5 * SECOND);
    }
    let expected =
        [Err(Refusal::NotGone(gateway)), Ok(()), Ok(()), Err(Refusal::StillLive(GatewayId(1)))];
    assert_eq!(world.checks.answers, expected);
    assert!(!world.etcd.view.records.gateways.contains_key(&gateway));
}

/// A world that has begun to move the first group from the first gateway to the second.
fn moving(seed: u64) -> (World, GroupId) {
    let mut world = serving_from(seed, 3);
    let groups = &world.etcd.view.records.groups;
    let is_first = |row: &crate::records::Group| row.home.at() == Some((life(1, 1), None));
    let group = *groups.iter().find(|(_, row)| is_first(row)).unwrap().0;
    let command = Command::Move { group, to: GatewayId(2) };
    world.strike(Fault::Command { machine: 2, command });
    (world, group)
}

fn home(world: &World, group: GroupId) -> (Life, Option<Life>) {
    world.etcd.view.records.groups[&group].home.at().unwrap()
}

/// Every group has a home that is a live member, goes nowhere, and is served.
fn assert_settled(world: &World) {
    let view = &world.etcd.view;
    for (group, row) in &view.records.groups {
        let (home, to) = row.home.at().unwrap();
        assert!(view.is_member(home) && view.is_attached(home), "{group}: {home}");
        assert_eq!(to, None, "{group}");
    }
    assert_eq!(unserved(world), []);
}

#[test]
fn a_move_whose_old_home_ends_before_it_has_written_the_new_one_is_a_takeover() {
    for seed in 1..=20 {
        let (mut world, group) = moving(seed);
        while !world.checks.is_released(group, life(1, 1)) {
            pass(&mut world, MILLISECOND / 10);
        }
        assert_eq!(home(&world, group), (life(1, 1), Some(life(2, 1))));
        world.strike(Fault::Kill { machine: 0, after: 60 * SECOND });
        pass(&mut world, 6 * SECOND);
        assert_settled(&world);
        let (home, _) = home(&world, group);
        // The change with the new home may have been on its way to etcd.
        assert!(home.gateway != GatewayId(1), "{home}");
        pass_served(&mut world, 5 * SECOND);
    }
}

#[test]
fn a_move_whose_new_home_ends_before_it_serves_is_a_takeover() {
    for seed in 1..=20 {
        let (mut world, group) = moving(seed);
        while home(&world, group).0 == life(1, 1) {
            pass(&mut world, MILLISECOND / 10);
        }
        assert_eq!(home(&world, group), (life(2, 1), None));
        assert!(unserved(&world).contains(&group), "it is not served yet");
        world.strike(Fault::Kill { machine: 1, after: 60 * SECOND });
        pass(&mut world, 6 * SECOND);
        assert_settled(&world);
        pass_served(&mut world, 5 * SECOND);
    }
}

#[test]
fn a_move_whose_new_home_ends_before_it_was_written_is_off() {
    for seed in 1..=20 {
        let (mut world, group) = moving(seed);
        while home(&world, group).1.is_none() {
            pass(&mut world, MILLISECOND / 10);
        }
        world.strike(Fault::Kill { machine: 1, after: 60 * SECOND });
        pass(&mut world, 6 * SECOND);
        assert_settled(&world);
        pass_served(&mut world, 5 * SECOND);
    }
}

#[test]
fn a_move_whose_both_homes_end_is_a_takeover() {
    for seed in 1..=20 {
        let (mut world, group) = moving(seed);
        while !world.checks.is_released(group, life(1, 1)) {
            pass(&mut world, MILLISECOND / 10);
        }
        world.strike(Fault::Kill { machine: 0, after: 60 * SECOND });
        world.strike(Fault::Kill { machine: 1, after: 60 * SECOND });
        pass(&mut world, 6 * SECOND);
        assert_settled(&world);
        assert_eq!(homes_of(&world, life(3, 1)), 6);
    }
}

#[test]
fn a_gateway_that_ends_in_order_is_replaced_when_it_has_no_lease_or_its_process_has_exited() {
    for seed in 1..=20 {
        let mut world = serving_from(seed, 3);
        world.strike(Fault::End { machine: 1, after: 60 * SECOND });
        while world.etcd.view.is_attached(life(2, 1)) {
            assert_eq!(homes_of(&world, life(2, 1)), 2);
            pass(&mut world, MILLISECOND);
        }
        let pause = pause(&mut world);
        assert!(pause < 4 * SECOND, "{} ms", pause / MILLISECOND);
        assert_settled(&world);
        assert_eq!(world.checks.condemned + world.checks.condemned_by_word, 1);
    }
}

#[test]
fn a_gateway_that_was_drained_leaves_without_a_pause_and_is_removed() {
    let mut world = serving(3);
    let gateway = GatewayId(2);
    let drain = Command::Drain { gateway, draining: true };
    world.strike(Fault::Command { machine: 0, command: drain });
    pass(&mut world, 5 * SECOND);
    assert_eq!(homes_of(&world, life(2, 1)), 0);
    world.strike(Fault::End { machine: 1, after: 60 * SECOND });
    pass_served(&mut world, 5 * SECOND);
    let remove = Command::Remove { gateway };
    world.strike(Fault::Command { machine: 0, command: remove });
    pass_served(&mut world, 2 * SECOND);
    assert_eq!(world.checks.answers, [Ok(()), Ok(())]);
    assert!(!world.etcd.view.records.gateways.contains_key(&gateway));
    pass_served(&mut world, 60 * SECOND);
    assert!(world.etcd.view.is_member(life(2, 2)), "it comes back as a new gateway");
    assert_eq!(world.checks.taken, 0);
}
