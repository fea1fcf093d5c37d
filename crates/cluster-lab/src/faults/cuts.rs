//! Gateways that are cut from others: the network drops their frames, and tells nobody.

use super::fault::Fault;
use super::plan::BACK;
use super::scene::Scene;
use crate::bed::{Cut, Side};
use anyhow::Result;
use std::time::Duration;

/// Time for which a gateway is cut, if nothing moves.
const CUT: Duration = Duration::from_secs(10);

pub(super) const FAULTS: [Fault; 4] = [
    Fault::quiet(
        "cut-from-etcd",
        "A gateway is cut from etcd for 10 s. The other gateways promise to take nothing over, and it serves on.",
        from_etcd,
    ),
    Fault::quiet(
        "cut-from-peers",
        "A gateway is cut from the machines of all other gateways for 10 s. Neither side has the answers of the other in its view. Nothing else happens.",
        from_peers,
    ),
    Fault::quiet(
        "cut-from-ceph",
        "A gateway is cut from Ceph for 10 s. Requests wait, and are answered.",
        from_ceph,
    ),
    Fault::moving(
        "cut-from-all",
        "A gateway is cut from everything. The others take over; when it is reached again, it ends and starts anew.",
        from_all,
    ),
];

fn from_etcd(scene: &mut Scene<'_>) -> Result<()> {
    hold(scene, Side::Etcd, true)
}

fn from_peers(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let cut = Cut::make(victim, Side::Peers)?;
    // While etcd answers, gateways need no word of each other, and might send none.
    scene.are_apart(victim)?;
    scene.serves_for(CUT)?;
    mend(scene, cut)?;
    scene.until_joined(victim)?;
    scene.ask_again(victim);
    Ok(())
}

fn from_ceph(scene: &mut Scene<'_>) -> Result<()> {
    hold(scene, Side::Ceph, false)
}

/// Cuts the gateway for a while.
fn hold(scene: &mut Scene<'_>, side: Side, serves: bool) -> Result<()> {
    let victim = scene.choose()?;
    let cut = Cut::make(victim, side)?;
    if serves {
        scene.serves_for(CUT)?;
    } else {
        scene.hold(CUT)?;
    }
    mend(scene, cut)?;
    scene.ask_again(victim);
    Ok(())
}

/// Mends a cut, which has to have dropped frames of both directions: it had no effect otherwise.
fn mend(scene: &mut Scene<'_>, cut: Cut) -> Result<()> {
    let dropped = cut.mend()?;
    if dropped.sent == 0 || dropped.received == 0 {
        scene.miss(format!("the cut had no effect: {dropped:?}"));
    }
    Ok(())
}

fn from_all(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let cut = Cut::make(victim, Side::All)?;
    scene.until_moved(victim)?;
    scene.allow_end(victim);
    mend(scene, cut)?;
    scene
        .until("the gateway that was cut ends by itself", BACK, |scene| scene.has_ended(victim))?;
    scene.ask_again(victim);
    Ok(())
}
