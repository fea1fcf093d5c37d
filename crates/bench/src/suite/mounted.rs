//! The connections of mounted paths. They are chosen when a file system is mounted, so that a load
//! of one connection may have several.

use std::path::PathBuf;
use weir_load::engine::mounted_connections;
use weir_load::error::BenchError;
use weir_load::target::{PathTarget, Target, Targets};
use weir_load::workload::Workload;
use weir_scenario::scenario::{Language, Step};

/// The mount points of a path with their connections.
type Connections = fn(&PathTarget) -> Vec<(PathBuf, u32)>;

/// Refuses published tests of one connection on mounts that have several. Other loads of one
/// connection may be ones that set none.
pub(super) fn check(targets: &Targets, language: Language, step: &Step) -> Result<(), BenchError> {
    check_by(mounted_connections, targets, language, step)
}

/// A sentence for each mount with several connections under a load of one.
pub(super) fn notes(targets: &Targets, loads: &[Workload]) -> Vec<String> {
    notes_by(mounted_connections, targets, loads)
}

fn check_by(
    connections: Connections,
    targets: &Targets,
    language: Language,
    step: &Step,
) -> Result<(), BenchError> {
    if language != Language::Catalogue {
        return Ok(());
    }
    match step.loads.iter().flat_map(|load| several(connections, targets, load)).next() {
        None => Ok(()),
        Some((point, there)) => Err(BenchError::Workload(format!(
            "the test has one connection per client, but the mount at {} has {there}: mount it \
             with one (nconnect=1 of NFS, no multichannel of SMB), measure an \
             nfs:// or smb:// target, or run another test than the published one with \
             --connections {there}",
            point.display()
        ))),
    }
}

fn notes_by(connections: Connections, targets: &Targets, loads: &[Workload]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for (point, there) in loads.iter().flat_map(|load| several(connections, targets, load)) {
        let note = format!(
            "the mount at {} has {there} connections, which its load uses, although the load names \
             one",
            point.display()
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// The mounts of several connections under `load`, if it has one connection.
fn several(connections: Connections, targets: &Targets, load: &Workload) -> Vec<(PathBuf, u32)> {
    match targets.of(load) {
        Ok(Target::Path(path)) if load.connections == 1 => {
            let mut mounts = connections(path);
            mounts.retain(|(_, there)| *there > 1);
            mounts
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::step;
    use super::*;
    use weir_load::target::NfsTarget;

    /// The path `/N` has N connections.
    fn by_name(path: &PathTarget) -> Vec<(PathBuf, u32)> {
        let number = |path: &std::path::Path| path.to_str()?.trim_start_matches('/').parse().ok();
        path.all().filter_map(|path| Some((path.to_owned(), number(path)?))).collect()
    }

    fn path(text: &str) -> Targets {
        Target::Path(text.into()).into()
    }

    #[test]
    fn a_published_test_of_one_connection_is_refused_on_a_mount_of_eight() {
        let refused = |targets: &Targets, language, step: &Step| {
            check_by(by_name, targets, language, step).err().map(|error| error.to_string())
        };
        let (published, one) = (Language::Catalogue, step("a"));
        let why = refused(&path("/8"), published, &one).unwrap();
        assert!(why.contains("mount at /8 has 8") && why.contains("--connections 8"), "{why}");
        assert_eq!(refused(&path("/1"), published, &one), None);
        assert_eq!(refused(&path("/local"), published, &one), None);
        let mut eight = step("a");
        eight.loads[0].connections = 8;
        assert_eq!(refused(&path("/8"), published, &eight), None, "the number was chosen");
        let nfs = NfsTarget::new("192.0.2.1:2049".parse().unwrap(), "/vol");
        assert_eq!(refused(&Target::Nfs(nfs).into(), published, &one), None);
        assert_eq!(refused(&path("/8"), Language::Fio, &one), None, "it may set none");
    }

    #[test]
    fn the_results_of_other_loads_name_the_connections_of_the_mount() {
        let loads = vec![Workload::default(); 2];
        let notes = notes_by(by_name, &path("/8"), &loads);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("mount at /8 has 8 connections"), "{notes:?}");
        assert_eq!(notes_by(by_name, &path("/1"), &loads), Vec::<String>::new());
    }
}
