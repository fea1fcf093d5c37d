//! The engines against small targets: what is sent arrives, what comes back is counted, and
//! damage is found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod failures;
mod injected;
mod loads;
mod metadata;
mod pacing;
mod parts;
mod passing;
mod paths;
mod patience;
mod places;
mod responder;
mod restarts;
mod sharing;
mod shorts;
mod verification;

use responder::Responder;
use weir_load::{
    Control, Layout, Length, Operation, Pattern, RunResult, Target, Workload, prepare,
};

const SETATTR: u32 = 2;
const READ: u32 = 6;
const WRITE: u32 = 7;
const MKDIR: u32 = 9;
const REMOVE: u32 = 12;
const COMMIT: u32 = 21;

/// A target of either engine, empty at first.
enum Site {
    Server(Responder),
    Directory(tempfile::TempDir),
}

impl Site {
    /// A target of each engine.
    fn both() -> [Self; 2] {
        [Self::Server(Responder::start()), Self::Directory(tempfile::tempdir().unwrap())]
    }

    fn target(&self) -> Target {
        match self {
            Self::Server(server) => server.target(),
            Self::Directory(directory) => Target::Path(directory.path().into()),
        }
    }

    /// Names in it.
    fn names(&self) -> Vec<String> {
        self.names_in(&[])
    }

    /// Names in the directory at this path below it.
    fn names_in(&self, path: &[&str]) -> Vec<String> {
        match self {
            Self::Server(server) => server.names_in(path),
            Self::Directory(directory) => {
                let place = path.iter().fold(directory.path().to_owned(), |at, name| at.join(name));
                let entries = std::fs::read_dir(place).unwrap();
                let name = |entry: std::io::Result<std::fs::DirEntry>| {
                    entry.unwrap().file_name().into_string().unwrap()
                };
                let mut names: Vec<_> = entries.map(name).collect();
                names.sort();
                names
            }
        }
    }

    /// `load` with the clients and connections that the target can have.
    fn fit(&self, load: &Workload) -> Workload {
        match self {
            Self::Server(_) => load.clone(),
            Self::Directory(_) => Workload { clients: 1, connections: 1, ..load.clone() },
        }
    }

    /// Applies `load`, which has to go well.
    fn run(&self, load: &Workload) -> RunResult {
        let prepared = prepare(&self.target(), &self.fit(load)).unwrap();
        let result = prepared.run(&Control::new(), |_| {}).unwrap();
        assert!(result.is_clean(), "{:?} {:?}", result.errors, result.verify);
        result
    }
}

/// A small workload that ends by a count.
fn workload(pattern: Pattern, read_percent: u8, operations: u64) -> Workload {
    Workload {
        operation: Operation::Data { pattern, read_percent },
        length: Length::Operations(operations),
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..Workload::default()
    }
}
