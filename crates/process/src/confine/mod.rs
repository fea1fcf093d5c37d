//! Least privilege: what the process gives up for good once everything that needs more is open.
//!
//! Done once, before the first thread is started, because capabilities are each thread's own and
//! are inherited. Not here: who acts under which caller's identity, which is the store's.
//! Why each part is as it is: `docs/decisions/0015-least-privilege.md`.

mod capabilities;
mod filter;
mod syscalls;

#[cfg(test)]
mod tests;

pub(crate) use filter::FilterError;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, geteuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::set_no_new_privs;
use weir_control::config::{RpcbindMode, ServerConfig};

/// Why the process can't be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel refused to take something away.
    #[error("can't give up privileges: failed to {what}: {source}")]
    Kernel {
        /// The attempted step.
        what: &'static str,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The system call filter.
    #[error("can't install the filter of system calls: {0}; --seccomp off starts without it")]
    Filter(#[from] FilterError),
}

/// Gives up what serving doesn't need, in this thread and all that it starts from now on.
///
/// # Errors
/// [`ConfineError`]; the process is not to serve then.
pub fn confine(config: &ServerConfig) -> Result<(), ConfineError> {
    confine_around(config, || ())
}

/// As [`confine`], and runs `open` when privileges are given up and before the system calls are
/// filtered: for libraries that start threads of their own, which then have no more privileges than
/// serving needs, and are filtered with all others. Gives what it gave.
///
/// # Errors
/// [`ConfineError`]; the process is not to serve then.
pub fn confine_around<T>(
    config: &ServerConfig,
    open: impl FnOnce() -> T,
) -> Result<T, ConfineError> {
    let kernel = |what| move |source: std::io::Error| ConfineError::Kernel { what, source };
    // The machine's rpcbind takes and gives up registrations from reserved ports only.
    let reserved_ports = config.rpcbind == RpcbindMode::Register;
    let kept = capabilities::reduce(reserved_ports).map_err(kernel("drop capabilities"))?;
    set_no_new_privs(true).map_err(|error| kernel("set no_new_privs")(error.into()))?;
    // Memory holds the key of the handles, the token, and what clients read and write.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| kernel("forbid core dumps")(error.into()))?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
        .map_err(|error| kernel("limit core dumps")(error.into()))?;
    let opened = open();
    filter::install(config.seccomp)?;
    capabilities::warn_of_missing(kept);
    if !geteuid().is_root() {
        tracing::warn!(
            uid = geteuid().as_raw(),
            "running without root: all files belong to this user, only it and root may change \
             names and attributes, and file handles are not persistent"
        );
    }
    tracing::info!(
        capabilities = %capabilities::names(kept),
        seccomp = config.seccomp.word(),
        "privileges that are not needed were given up"
    );
    Ok(opened)
}
