//! Daemons of Ceph that end, and a Ceph that is full.

use super::fault::Fault;
use super::plan::BACK;
use super::scene::Scene;
use anyhow::Result;
use std::time::Duration;

/// Time for which a monitor, or all OSDs, are away.
const AWAY: Duration = Duration::from_secs(10);
/// Age of the monitors from which on they replace a metadata server. They did not within about the
/// first minute of their life (54 and 57 s; see decision 0077). In the whole list they are older; a
/// fault that is the only one has to wait.
const MONITORS_REPLACE: Duration = Duration::from_secs(60);
/// The OSDs.
const OSDS: [&str; 3] = ["osd.0", "osd.1", "osd.2"];
/// Parts of its room from which an OSD counts as nearly full, as too full for copies, and as full:
/// those of every Ceph, and one that is always reached.
const USUAL: [(&str, &str); 3] = [("nearfull", "0.85"), ("backfillfull", "0.90"), ("full", "0.95")];
const REACHED: &str = "0.0001";

pub(super) const FAULTS: [Fault; 6] = [
    Fault::quiet(
        "osd-killed",
        "An OSD is killed and started again after 2 s. Requests wait, and are answered.",
        |scene| without(scene, &OSDS[..1], Scene::hold, Duration::from_secs(2)),
    )
    .within(2.0),
    Fault::quiet(
        "osd-disk-lost",
        "An OSD is killed and started again with an empty disk. Requests wait, and are answered, and Ceph copies the data back.",
        disk_lost,
    )
    .within(2.0),
    Fault::quiet(
        "mds-killed",
        "The metadata server that serves is killed. The other one serves in its place; then the one that was killed is started again.",
        mds_killed,
    )
    .within(4.0),
    Fault::quiet(
        "monitor-killed",
        "One of three monitors is killed, and started again after 10 s. Requests go on.",
        |scene| without(scene, &["mon.a"], Scene::serves_for, AWAY),
    )
    .within(2.0),
    Fault::quiet(
        "osds-away",
        "All OSDs are killed and started again after 10 s. Requests wait, and are answered.",
        |scene| without(scene, &OSDS, Scene::hold, AWAY),
    ),
    Fault {
        refusals: &[
            "WRITE: NFS3ERR_NOSPC",
            "CREATE: the server answered NFS3ERR_NOSPC",
            "RENAME: the server answered NFS3ERR_NOSPC",
        ],
        ..Fault::quiet(
            "ceph-full",
            "Ceph counts as full, until every client has been refused. Writes are refused with NFS3ERR_NOSPC, and go on afterwards.",
            full,
        )
    },
];

/// Kills daemons, lets time pass, and starts them again.
fn without<'a>(
    scene: &mut Scene<'a>,
    daemons: &[&str],
    pass: fn(&mut Scene<'a>, Duration) -> Result<()>,
    away: Duration,
) -> Result<()> {
    for daemon in daemons {
        scene.engines().ceph("kill", &[daemon])?;
    }
    let held = pass(scene, away);
    for daemon in daemons {
        scene.engines().ceph("start", &[daemon])?;
    }
    held?;
    scene.engines().ceph("whole", &[])
}

fn disk_lost(scene: &mut Scene<'_>) -> Result<()> {
    scene.engines().ceph("kill", &["osd.1"])?;
    let held = scene.hold(Duration::from_secs(2));
    scene.engines().ceph("replace", &["osd.1"])?;
    held?;
    scene.engines().ceph("whole", &[])
}

fn mds_killed(scene: &mut Scene<'_>) -> Result<()> {
    let age = scene.engines().age_of_monitors()?;
    scene.hold(MONITORS_REPLACE.saturating_sub(age))?;
    let killed = scene.engines().active_metadata_server()?;
    scene.engines().ceph("kill", &[&killed])?;
    let followed = until_followed(scene, &killed);
    scene.engines().ceph("start", &[&killed])?;
    followed?;
    scene.engines().ceph("whole", &[])
}

/// Waits until another metadata server serves, and the clients get answers. The one that was killed
/// does not run: the monitors may still take it for the one that serves.
fn until_followed(scene: &mut Scene<'_>, killed: &str) -> Result<()> {
    scene.until("the other metadata server serves", BACK, |scene| {
        scene.engines().active_metadata_server().is_ok_and(|active| active != killed)
    })?;
    scene.until_answered()
}

fn full(scene: &mut Scene<'_>) -> Result<()> {
    let set = |scene: &Scene<'_>, (kind, part): (&str, &str)| {
        let (prefix, ratio) = (format!("osd set-{kind}-ratio"), format!("ratio={part}"));
        scene.engines().ceph("tell", &[&prefix, &ratio])
    };
    for (kind, _) in USUAL {
        set(scene, (kind, REACHED))?;
    }
    let refused = scene.until("every client is refused", BACK, Scene::all_refused);
    for usual in USUAL {
        set(scene, usual)?;
    }
    refused?;
    scene.engines().ceph("whole", &[])
}
