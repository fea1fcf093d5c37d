//! The steps of the campaign. Each moves the addresses of one gateway, or none, and leaves a whole
//! cluster with two addresses at each gateway.

use super::course::row_of;
use crate::bed::Machine;
use crate::faults::fault::Fault;
use crate::faults::plan::BACK;
use crate::faults::scene::Scene;
use anyhow::{Context, Result};
use std::net::Ipv4Addr;

/// The places of programs in the list of the stage: the version before, this one, the one after.
const OLD: usize = 0;
const THIS: usize = 1;
const LATER: usize = 2;

/// Longest pause of a client whose address moves in order, and when a gateway is killed, in
/// seconds.
const DRAIN_S: f64 = 1.0;
const DEATH_S: f64 = 2.0;

/// The treatment of the helper when the server is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Helper {
    /// It goes on, with the program that it has.
    Stays,
    /// It is replaced while the server is stopped.
    Replaced,
}

/// From the version before to this one and back.
pub(super) static THERE_AND_BACK: [Fault; 9] = [
    Fault::moving(
        "first-forward",
        "The first gateway gets this version; its helper stays.",
        |scene| replace(scene, 1, THIS, Helper::Stays),
    )
    .within(DRAIN_S),
    Fault::moving(
        "old-killed",
        "A gateway of the version before is killed. One of this version takes over from it, among others.",
        |scene| killed(scene, 2),
    )
    .within(DEATH_S),
    Fault::moving(
        "new-killed",
        "The gateway of this version is killed. Those of the version before take over from it.",
        |scene| killed(scene, 1),
    )
    .within(DEATH_S),
    Fault::quiet(
        "commands",
        "At each gateway, the commands of both versions create a volume, change its quota and delete it. All gateways follow.",
        |scene| commands(scene, [OLD, THIS]),
    ),
    Fault::moving(
        "second-forward",
        "The second gateway gets this version, with its helper. Two versions serve on.",
        |scene| replace(scene, 2, THIS, Helper::Replaced),
    )
    .within(DRAIN_S),
    Fault::moving(
        "second-back",
        "The second gateway gets the version before again; its helper stays.",
        |scene| replace(scene, 2, OLD, Helper::Stays),
    )
    .within(DRAIN_S),
    Fault::moving(
        "old-killed-beside-a-new-helper",
        "It is killed. Its helper, of this version, tells the others.",
        |scene| killed(scene, 2),
    )
    .within(DEATH_S),
    Fault::moving(
        "first-back",
        "The first gateway gets the version before again, with its helper.",
        |scene| replace(scene, 1, OLD, Helper::Replaced),
    )
    .within(DRAIN_S),
    Fault::quiet(
        "commands-after-it",
        "The same commands, of both versions, at gateways of the version before.",
        |scene| commands(scene, [OLD, THIS]),
    ),
];

/// From the version before to this one.
pub(super) static FORWARD: [Fault; 3] = [
    Fault::moving("forward-1", "The first gateway gets this version.", |scene| {
        replace(scene, 1, THIS, Helper::Replaced)
    })
    .within(DRAIN_S),
    Fault::moving("forward-2", "The second gateway gets this version.", |scene| {
        replace(scene, 2, THIS, Helper::Replaced)
    })
    .within(DRAIN_S),
    Fault::moving("forward-3", "The third gateway gets this version.", |scene| {
        replace(scene, 3, THIS, Helper::Replaced)
    })
    .within(DRAIN_S),
];

/// From this version to the next.
pub(super) static NEXT: [Fault; 4] = [
    Fault::moving("next-1", "The first gateway gets the next version.", |scene| {
        replace(scene, 1, LATER, Helper::Replaced)
    })
    .within(DRAIN_S),
    Fault::quiet(
        "commands-beside-the-next",
        "The same commands, of this version and the next, at gateways of both.",
        |scene| commands(scene, [THIS, LATER]),
    ),
    Fault::moving("next-2", "The second gateway gets the next version.", |scene| {
        replace(scene, 2, LATER, Helper::Replaced)
    })
    .within(DRAIN_S),
    Fault::moving("next-3", "The third gateway gets the next version.", |scene| {
        replace(scene, 3, LATER, Helper::Replaced)
    })
    .within(DRAIN_S),
];

/// A gateway of the version before comes to a cluster whose records are in this one.
pub(super) static OLD_REFUSED: Fault = Fault::moving(
    "old-refused",
    "A gateway is started with the version before. It is refused with words that say what to do, and changes nothing.",
    |scene| refused(scene, 3, OLD),
)
.within(DRAIN_S);

/// A gateway of this version comes to a cluster whose records are in the next.
pub(super) static REFUSED: Fault = Fault::moving(
    "this-refused",
    "A gateway is started with this version again. It is refused with words that say what to do, and changes nothing.",
    |scene| refused(scene, 3, THIS),
)
.within(DRAIN_S);

/// Words of the log of a gateway that is too old.
const WHAT_TO_DO: &str = "install ";

/// Drains a gateway, replaces its program, and lets it come back.
fn replace(scene: &mut Scene<'_>, number: u8, program: usize, helper: Helper) -> Result<()> {
    let (machine, addresses) = leave(scene, number)?;
    let weir = scene.stage.program(program)?.to_owned();
    let gateway = scene.gateway(machine)?;
    gateway.stop(helper == Helper::Stays)?;
    gateway.install(&weir);
    come_back(scene, machine, &addresses)
}

/// Drains a gateway. Returns the addresses that it had.
fn leave(scene: &mut Scene<'_>, number: u8) -> Result<(Machine, Vec<Ipv4Addr>)> {
    let machine = Machine::Gateway(number);
    let addresses = scene.addresses(machine);
    scene.take(machine);
    scene.observer()?.drain(&machine.name())?;
    scene.until_moved(machine)?;
    Ok((machine, addresses))
}

/// Starts a gateway that was drained, and has its addresses come back.
fn come_back(scene: &mut Scene<'_>, machine: Machine, addresses: &[Ipv4Addr]) -> Result<()> {
    scene.start(machine)?;
    scene.observer()?.undrain(&machine.name())?;
    scene.bring(addresses, machine)?;
    scene.until_answered()
}

/// Kills a gateway while there are gateways of two versions, and starts it again.
fn killed(scene: &mut Scene<'_>, number: u8) -> Result<()> {
    let machine = Machine::Gateway(number);
    let addresses = scene.addresses(machine);
    scene.take(machine);
    scene.gateway(machine)?.kill()?;
    scene.until_moved(machine)?;
    let homes = addresses.iter().filter_map(|address| scene.owners.get(address)?.last());
    let homes: Vec<Machine> = homes.collect();
    let own = scene.gateway(machine)?.program().to_owned();
    let mut is_across = false;
    for home in homes {
        is_across |= scene.gateway(home)?.program() != own;
    }
    if !is_across {
        scene.miss("no gateway of another version has taken over");
    }
    scene.start(machine)?;
    scene.bring(&addresses, machine)?;
    scene.until_answered()
}

/// Has the commands of two programs make, change and delete a volume at each gateway.
fn commands(scene: &mut Scene<'_>, programs: [usize; 2]) -> Result<()> {
    for place in 0..scene.stage.gateways.len() {
        for program in programs {
            let name = format!("made-{place}-{program}");
            let made = ["volume", "create", &name, "--pool", "pool", "--quota", "1GiB"];
            operate(scene, place, program, &[&made[..], &["--throughput", "1MiB/s"]].concat())?;
            operate(scene, place, program, &["volume", "resize", &name, "2GiB"])?;
            all_have(scene, &name, Some(2 << 30))?;
            operate(scene, place, program, &["volume", "delete", &name, "--yes"])?;
            all_have(scene, &name, None)?;
        }
    }
    Ok(())
}

fn operate(scene: &Scene<'_>, place: usize, program: usize, words: &[&str]) -> Result<()> {
    let gateway = scene.stage.gateways.get(place).context("there is no such gateway")?;
    gateway.operate(scene.stage.program(program)?, words).map(drop)
}

/// Waits until a volume has this quota at all gateways, or is at none.
fn all_have(scene: &mut Scene<'_>, volume: &str, quota_bytes: Option<u64>) -> Result<()> {
    let what = format!("all gateways have {volume} with a quota of {quota_bytes:?}");
    scene.until(&what, BACK, |scene| {
        scene.stage.operators.iter().all(|operator| {
            let Ok(all) = operator.quotas() else { return false };
            let found = all.into_iter().find(|(name, _)| name == volume);
            found.map(|(_, quota)| quota) == quota_bytes
        })
    })
}

/// Drains and stops a gateway, and starts it with an older program, which the cluster refuses; then
/// with its own again.
fn refused(scene: &mut Scene<'_>, number: u8, older: usize) -> Result<()> {
    let (machine, addresses) = leave(scene, number)?;
    scene.gateway(machine)?.stop(true)?;
    let value = |scene: &Scene<'_>| scene.stage.engines.etcd_value(&row_of(number));
    scene.until("the gateway that was stopped is known to be gone", BACK, |scene| {
        let is_gone =
            |row: &String| row.contains("\"member\":null") && row.contains("\"fences\":[]");
        value(scene).as_ref().is_ok_and(is_gone)
    })?;
    let before = value(scene)?;
    let weir = scene.stage.program(older)?.to_owned();
    let said = scene.gateway(machine)?.refused(&weir, WHAT_TO_DO)?;
    if !said.contains(WHAT_TO_DO) {
        scene.miss(format!("the refusal does not say what to do: {}", said.trim()));
    }
    let after = value(scene)?;
    if before != after {
        scene.miss(format!("the refused gateway has changed its row: {before} to {after}"));
    }
    come_back(scene, machine, &addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_names_of_their_own_and_say_what_they_do() {
        let all: Vec<&Fault> = THERE_AND_BACK
            .iter()
            .chain(&FORWARD)
            .chain(&NEXT)
            .chain([&OLD_REFUSED, &REFUSED])
            .collect();
        for (place, step) in all.iter().enumerate() {
            assert!(!all.iter().take(place).any(|other| other.name == step.name), "{}", step.name);
            assert!(step.what.ends_with('.'), "{}", step.name);
        }
    }
}
