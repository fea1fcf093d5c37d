//! Gateways that end, stop, or are drained, one whose clock jumps, and all of them on an
//! overloaded machine.

use super::fault::Fault;
use super::plan::BACK;
use super::scene::Scene;
use crate::bed::{Machine, cable};
use anyhow::Result;
use rustix::process::Signal;
use std::num::NonZero;
use std::process::Command;
use std::time::{Duration, Instant};
use weir_lab::process::Process;

/// Words of a gateway that has clients reclaim the locks of a group that came to it.
const GRACE_BEGINS: &str = "a grace period begins";
/// Time after which etcd has the clients on record: a gateway writes its row each second.
const ON_RECORD: Duration = Duration::from_secs(2);
/// Time for which a gateway is stopped.
const STOPPED: Duration = Duration::from_secs(10);
/// The time of day of a gateway ahead of the right one after the jump, in seconds.
const AHEAD_S: i64 = 3600;
/// Longest time until libcephfs has renewed its capabilities, which it does every 20 s, and every
/// client has got answers.
const RENEWED: Duration = Duration::from_secs(60);
/// Programs for each processor that compute all the time on an overloaded machine, and their time.
const COMPUTING: usize = 4;
const OVERLOADED_MINUTES: u32 = 60;

pub(super) const FAULTS: [Fault; 8] = [
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
        "moved-and-back",
        "Each volume of a gateway moves to another, and back as soon as it is there. Clients that have just connected connect anew.",
        moved_and_back,
    )
    .within(1.0),
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
        "The time of day of a gateway's server jumps an hour ahead, and back. Reads and writes wait until libcephfs has renewed its capabilities, which expire by the time of day, and are answered.",
        clock_jumps,
    ),
    Fault::quiet(
        "machine-overloaded",
        "Four programs for each processor compute for an hour, with the priority of the gateways. Volumes are served in every minute, and nothing is taken over.",
        overloaded,
    )
    .once(),
];

fn killed(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    scene.hold(ON_RECORD)?;
    scene.death = Some(Instant::now());
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

fn moved_and_back(scene: &mut Scene<'_>) -> Result<()> {
    let victim = scene.choose()?;
    let other = scene.asked()?;
    for address in scene.addresses(victim) {
        scene.bring(&[address], other)?;
        scene.owners.entry(address).or_default().is_briefly_at(other);
        scene.bring(&[address], victim)?;
    }
    scene.ask_again(victim);
    scene.until_answered()
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
    let begun = Instant::now();
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
    let before = scene.change_at(victim)?;
    scene.gateway(victim)?.set_clock(AHEAD_S)?;
    let ahead = time_when_answered(scene, victim);
    scene.gateway(victim)?.set_clock(0)?;
    let (ahead, after) = (ahead?, time_when_answered(scene, victim)?);
    scene.ask_again(victim);
    // Texts of RFC 3339 in UTC sort as their times do.
    if !(before < after && after < ahead) {
        scene.miss(format!("the clock did not jump: {before}, {ahead}, {after}"));
    }
    Ok(())
}

/// Waits until every client has got answers. Returns the time of day at a gateway.
fn time_when_answered(scene: &mut Scene<'_>, machine: Machine) -> Result<String> {
    scene.until_answered_within(RENEWED)?;
    scene.change_at(machine)
}

fn overloaded(scene: &mut Scene<'_>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let start = |_| Process::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let mut programs = (0..COMPUTING * processors).map(start).collect::<Result<Vec<Process>>>()?;
    for _ in 0..OVERLOADED_MINUTES {
        scene.serves_for(Duration::from_secs(60))?;
    }
    for program in &mut programs {
        if let Some(status) = program.ended()? {
            scene.miss(format!("a program that computes ended before its time ({status})"));
        }
    }
    Ok(())
}
