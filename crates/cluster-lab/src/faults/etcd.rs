//! Members of etcd that end.

use super::fault::Fault;
use super::plan::{BACK, NO_PAUSE_S};
use super::scene::Scene;
use anyhow::Result;
use std::time::Duration;

/// Members of etcd.
const MEMBERS: u8 = 3;
/// Time without one member.
const ONE: Duration = Duration::from_secs(5);
/// Time without any, before and after a change is asked for.
const ALL: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];
/// The same of a long time.
const ALL_LONG: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(570)];

pub(super) const FAULTS: [Fault; 4] = [
    Fault::quiet(
        "etcd-member-killed",
        "A member of etcd that does not lead is killed, and started again after 5 s. Nothing happens.",
        member,
    )
    .within(NO_PAUSE_S),
    Fault::quiet(
        "etcd-leader-killed",
        "The leader of etcd is killed, and started again after 5 s. Nothing happens.",
        leader,
    )
    .within(NO_PAUSE_S),
    Fault::quiet(
        "etcd-away",
        "All members of etcd are killed, and started again after 20 s. Volumes are served on, and changes are refused by name.",
        |scene| away(scene, ALL),
    )
    .within(NO_PAUSE_S),
    Fault::quiet(
        "etcd-away-long",
        "All members of etcd are killed, and started again after ten minutes. Volumes are served on, and changes are refused by name.",
        |scene| away(scene, ALL_LONG),
    )
    .within(NO_PAUSE_S)
    .once(),
];

fn member(scene: &mut Scene<'_>) -> Result<()> {
    let leader = scene.engines().etcd_leader()?;
    without(scene, (leader + 1) % MEMBERS)
}

fn leader(scene: &mut Scene<'_>) -> Result<()> {
    let leader = scene.engines().etcd_leader()?;
    without(scene, leader)
}

fn without(scene: &mut Scene<'_>, member: u8) -> Result<()> {
    scene.engines().kill_member(member)?;
    let held = scene.serves_for(ONE);
    scene.engines().start_member(member)?;
    held
}

fn away(scene: &mut Scene<'_>, times: [Duration; 2]) -> Result<()> {
    scene.engines().kill_etcd()?;
    let held = without_any(scene, times);
    scene.engines().start_etcd()?;
    held?;
    scene.until("changes are accepted when etcd is back", BACK, |scene| scene.change().is_ok())
}

fn without_any(scene: &mut Scene<'_>, [before, after]: [Duration; 2]) -> Result<()> {
    scene.hold(before)?;
    scene.refused_as("cluster_unreachable");
    scene.serves_for(after)
}
