//! Gateways that end, stop, or are drained.

use super::fault::Fault;
use super::plan::{BACK, NO_PAUSE_S};
use super::scene::Scene;
use crate::bed::cable;
use anyhow::Result;
use rustix::process::Signal;
use std::time::Duration;

/// Time for which a gateway is stopped.
const STOPPED: Duration = Duration::from_secs(10);
/// Jumps of a clock, in seconds from the right time, and the time after each.
const JUMPS_S: [i64; 3] = [3600, -3600, 0];
const AFTER_JUMP: Duration = Duration::from_secs(4);

pub(super) const FAULTS: [Fault; 5] = [
    Fault::moving(
        "gateway-killed",
        "The server of a gateway is killed (SIGKILL); its helper stays. The others take over.",
        killed,
    )
    .within(2.0)
    .like_a_death(),
    Fault::moving(
        "machine-gone",
        "The cable of a machine is taken out, and its server and helper are killed. The others take over.",
        machine_gone,
    )
    .within(5.0)
    .like_a_death(),
    Fault::moving(
        "gateway-drained",
        "A gateway is drained. The others get its addresses.",
        drained,
    )
    .within(1.0)
    .like_a_death(),
    Fault::moving(
        "gateway-stopped",
        "The server of a gateway is stopped for 10 s (SIGSTOP) and continued. The others take over; it ends and starts anew.",
        stopped,
    ),
    Fault::quiet(
        "clock-jumps",
        "The time of day of a gateway's server jumps an hour ahead, two hours back, and back again. Nothing happens.",
        clock_jumps,
    )
    .within(NO_PAUSE_S),
];

fn killed(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    scene.gateway(victim)?.kill()?;
    scene.until_moved(victim)?;
    scene.start(victim)
}

fn machine_gone(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    cable(victim, false)?;
    scene.gateway(victim)?.kill_all()?;
    scene.until_moved(victim)?;
    cable(victim, true)?;
    scene.start(victim)
}

fn drained(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let name = victim.name();
    scene.observer()?.drain(&name)?;
    scene.until_moved(victim)?;
    scene.observer()?.undrain(&name)?;
    scene.ask_again(victim);
    Ok(())
}

fn stopped(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    scene.gateway(victim)?.signal(Signal::STOP)?;
    let begun = std::time::Instant::now();
    scene.until_moved(victim)?;
    scene.hold(STOPPED.saturating_sub(begun.elapsed()))?;
    scene.allow_end(victim);
    scene.gateway(victim)?.signal(Signal::CONT)?;
    scene.until("the gateway that was stopped ends by itself", BACK, |scene| {
        scene.has_ended(victim)
    })?;
    scene.ask_again(victim);
    Ok(())
}

fn clock_jumps(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let mut times = Vec::new();
    for ahead_s in JUMPS_S {
        scene.gateway(victim)?.set_clock(ahead_s)?;
        scene.serves_for(AFTER_JUMP)?;
        times.push(scene.change_at(victim)?);
    }
    scene.ask_again(victim);
    // Texts of RFC 3339 sort as their times do.
    if !matches!(times.as_slice(), [ahead, behind, right] if behind < right && right < ahead) {
        scene.miss(format!("the clock did not jump: {}", times.join(", ")));
    }
    Ok(())
}
