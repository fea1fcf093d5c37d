//! The options of running scenarios, whatever they are.

use super::needs::Machine as ThisMachine;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_core::units::Bytes;
use weir_results::{Contract, Machine};

/// The options of running scenarios.
#[derive(Clone, Debug)]
pub struct Options {
    /// A word of the user's for the compared server; the target if empty.
    pub label: String,
    /// The target as the user wrote it.
    pub target: String,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// The way to the target, for the report.
    pub transport: String,
    /// Settings of the server, as the user named them, with their values.
    pub settings: BTreeMap<String, String>,
    /// Contracts of the volumes, by the name of the target.
    pub contracts: BTreeMap<String, Contract>,
    /// Seed of the orders in which steps that exclude caches visit their blocks.
    pub seed: u64,
    /// Machines of the workers; this one alone applies the loads if there are none.
    pub clients: Vec<Machine>,
    /// The capacity of this machine, if it alone applies the loads.
    pub machine: Option<ThisMachine>,
    /// Applications of each step that count; at least 1.
    pub repeats: u32,
    /// Apply each step once more before, and don't count that.
    pub discard_first: bool,
    /// Warm up until the rate is steady, for at most so long.
    pub steady_within: Option<Duration>,
    /// Files that are there already are used, and nothing is laid out nor removed.
    pub reuse: bool,
    /// Leave the files.
    pub keep: bool,
    /// The server's process on this machine.
    pub server_pid: Option<u32>,
    /// The treatment of caches.
    pub cache: CacheOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            label: String::new(),
            target: String::new(),
            command: Vec::new(),
            transport: String::new(),
            settings: BTreeMap::new(),
            contracts: BTreeMap::new(),
            seed: 1,
            clients: Vec::new(),
            machine: None,
            repeats: 1,
            discard_first: false,
            steady_within: None,
            reuse: false,
            keep: false,
            server_pid: None,
            cache: CacheOptions::default(),
        }
    }
}

/// The treatment of caches, and the known facts about them.
#[derive(Clone, Debug, Default)]
pub struct CacheOptions {
    /// Bytes of memory of the client machines together.
    pub client_memory: u64,
    /// Bytes of memory of the server, where it is known.
    pub server_memory: Option<u64>,
    /// Have this machine's kernel drop its caches (`/proc/sys/vm/drop_caches`).
    pub drop: bool,
    /// Is the server on this machine?
    pub server_is_here: bool,
    /// Is the target a path, so that this machine's kernel caches too?
    pub on_path: bool,
    /// A command for the shell that empties the server's caches.
    pub command: Option<String>,
    /// Read so many bytes of other files before.
    pub read_bytes: Option<u64>,
}

impl CacheOptions {
    /// The ways in which the server's caches are emptied between laying out and the load, in words;
    /// none if nothing empties them. Other data pushes all data of the step out only if it is as
    /// large as the server's memory.
    #[must_use]
    pub fn emptied_by(&self) -> Vec<String> {
        let dropped = (self.drop && self.server_is_here)
            .then(|| "dropping the kernel caches of this machine".to_owned());
        let command = self.command.as_ref().map(|command| format!("`{command}`"));
        let enough = |bytes: &u64| self.server_memory.is_some_and(|memory| *bytes >= memory);
        let read = self.read_bytes.filter(enough);
        let read = read.map(|bytes| format!("reading {} of other data", Bytes(bytes)));
        [dropped, command, read].into_iter().flatten().collect()
    }

    /// Sentences about the options that are to empty the server's caches, and do not, or may not.
    #[must_use]
    pub fn ineffective(&self) -> Vec<String> {
        // Of a mount it empties the client's caches, and the command the server's.
        let lacks = !(self.server_is_here || self.on_path && self.command.is_some());
        let dropped = (self.drop && lacks).then(|| {
            let caches = if self.on_path { "the client's caches alone" } else { "no caches" };
            let advice = if self.command.is_none() { ": use --invalidate-command" } else { "" };
            format!(
                "--drop-caches empties {caches}, because the server is not on this machine{advice}"
            )
        });
        let read = self.read_bytes.and_then(|bytes| match self.server_memory {
            Some(memory) if bytes < memory => Some(format!(
                "--flush-read {} does not empty the server's caches, because it is less than the \
                 server's memory ({})",
                Bytes(bytes),
                Bytes(memory)
            )),
            Some(_) => None,
            None => Some(format!(
                "it is unknown whether --flush-read {} empties the server's caches: set the \
                 server's memory with --server-memory",
                Bytes(bytes)
            )),
        });
        dropped.into_iter().chain(read).collect()
    }

    /// Is there a cache that this machine's kernel can drop: the server's or that of a mount?
    pub(super) const fn drops(&self) -> bool {
        self.drop && (self.server_is_here || self.on_path)
    }
}
