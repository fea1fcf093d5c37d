//! Gateways that end, stop, or are drained, one whose clock jumps, and all of them on an
//! overloaded machine.

use super::fault::Fault;
use super::plan::BACK;
use super::scene::Scene;
use crate::bed::cable;
use anyhow::Result;
use rustix::process::Signal;
use std::num::NonZero;
use std::process::Command;
use std::time::Duration;
use weir_lab::process::Process;

/// Words of a gateway that has clients reclaim the locks of a group that came to it.
const GRACE_BEGINS: &str = "a grace period begins";
/// Time for which a gateway is stopped.
const STOPPED: Duration = Duration::from_secs(10);
/// The time of day of a gateway ahead of the right one, in seconds: first one, then the other.
const JUMPS_S: [i64; 2] = [3600, 0];
/// Programs for each processor that compute all the time on an overloaded machine, and their time.
const COMPUTING: usize = 4;
const OVERLOADED: Duration = Duration::from_secs(3600);

pub(super) const FAULTS: [Fault; 7] = [
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
        "A gateway is drained. The others get its addresses, with the locks and cached replies.",
        drained,
    )
    .within(1.0)
    .like_a_death(),
    Fault::moving(
        "gateway-ended",
        "The server of a gateway is asked to end (SIGTERM), which it does with success. The others take over.",
        ended,
    ),
    Fault::moving(
        "gateway-stopped",
        "The server of a gateway is stopped for 10 s (SIGSTOP) and continued. The others take over; it ends and starts anew.",
        stopped,
    ),
    Fault::quiet(
        "clock-jumps",
        "The time of day of a gateway's server jumps an hour ahead, and back. Requests wait until libcephfs has renewed its capabilities, which expire by the time of day, and are answered.",
        clock_jumps,
    ),
    Fault::quiet(
        "machine-overloaded",
        "Four programs for each processor compute for an hour, with the priority of the gateways. Nothing is taken over.",
        overloaded,
    )
    .once(),
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
    scene.hold_locks(victim)?;
    let logs = scene.logs();
    scene.observer()?.drain(&name)?;
    scene.until_moved(victim)?;
    scene.look_at_locks()?;
    if scene.any_says(&logs, GRACE_BEGINS) {
        scene.miss("a grace period began");
    }
    scene.observer()?.undrain(&name)?;
    scene.ask_again(victim);
    Ok(())
}

fn ended(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let status = scene.gateway(victim)?.end()?;
    if !status.success() {
        scene.miss(format!("the server that was asked to end ended with {status}"));
    }
    scene.until_moved(victim)?;
    scene.start(victim)
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
    let mut times = vec![scene.change_at(victim)?];
    for ahead_s in JUMPS_S {
        scene.gateway(victim)?.set_clock(ahead_s)?;
        scene.until_answered()?;
        times.push(scene.change_at(victim)?);
    }
    scene.ask_again(victim);
    // Texts of RFC 3339 in UTC sort as their times do.
    if !matches!(times.as_slice(), [before, ahead, after] if before < after && after < ahead) {
        scene.miss(format!("the clock did not jump: {}", times.join(", ")));
    }
    Ok(())
}

fn overloaded(scene: &mut Scene<'_>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let start = |_| Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let programs: Vec<Process> = (0..COMPUTING * processors).map(start).collect::<Result<_>>()?;
    scene.serves_for(OVERLOADED)?;
    drop(programs);
    Ok(())
}
