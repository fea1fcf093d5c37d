//! The filter of system calls: built from the lists beside it and handed to the kernel.

use super::syscalls::{ALLOWED, DEADLY, allowed_if};
use weir_control::config::Seccomp;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads,
};

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// The lists make no program, or none for this processor.
    #[error(transparent)]
    Build(#[from] BackendError),
    /// The kernel did not take it.
    #[error(transparent)]
    Install(#[from] seccompiler::Error),
}

/// Puts the filter in force for all threads, now and later. It can't be taken back.
///
/// Of two filters the kernel obeys the stricter answer: one fails what is on no list, the other
/// ends the process at what nothing in a file server ever asks for.
///
/// # Errors
/// [`FilterError`].
pub(super) fn install(mode: Seccomp) -> Result<(), FilterError> {
    // An unknown call is new to the kernel as far as libraries can tell: they fall back to an
    // older one, which `EPERM` would not make them do.
    let (unknown, deadly) = match mode {
        Seccomp::Off => return Ok(()),
        Seccomp::Log => (SeccompAction::Log, SeccompAction::Log),
        Seccomp::On => {
            (SeccompAction::Errno(libc::ENOSYS.unsigned_abs()), SeccompAction::KillProcess)
        }
    };
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let mut rules = allowed_if(std::process::id())?;
    rules.extend(ALLOWED.iter().map(|number| (*number, Vec::new())));
    let allow: BpfProgram =
        SeccompFilter::new(rules, unknown, SeccompAction::Allow, arch)?.try_into()?;
    let rules = DEADLY.iter().map(|number| (*number, Vec::new())).collect();
    let kill: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, deadly, arch)?.try_into()?;
    apply_filter_all_threads(&kill)?;
    // The last: it refuses the call that installs filters.
    Ok(apply_filter_all_threads(&allow)?)
}
