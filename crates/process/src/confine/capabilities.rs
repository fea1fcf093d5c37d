//! Which of root's powers serving needs. All others are given up.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use std::io;

/// A capability that serving needs, and what does not work without it.
pub(super) struct Need {
    pub(super) capability: CapabilitySet,
    pub(super) name: &'static str,
    without: &'static str,
}

/// The capabilities that serving needs, and nothing more. Capabilities that concern files are in
/// effect only while a thread acts as root; the kernel takes them away with the file system user.
pub(super) const NEEDS: &[Need] = &[
    Need {
        capability: CapabilitySet::DAC_READ_SEARCH,
        name: "CAP_DAC_READ_SEARCH",
        without: "file handles are not persistent; clients must remount after a restart of the server",
    },
    Need {
        capability: CapabilitySet::DAC_OVERRIDE,
        name: "CAP_DAC_OVERRIDE",
        without: "files and directories that the server's user cannot access by mode cannot be served",
    },
    Need {
        capability: CapabilitySet::SETUID,
        name: "CAP_SETUID",
        without: "only root can change names and attributes",
    },
    Need {
        capability: CapabilitySet::SETGID,
        name: "CAP_SETGID",
        without: "only root can change names and attributes",
    },
    Need {
        capability: CapabilitySet::CHOWN,
        name: "CAP_CHOWN",
        without: "root on a client cannot change the owner of files, nor can `weir volume set --owner`",
    },
    Need {
        capability: CapabilitySet::FOWNER,
        name: "CAP_FOWNER",
        without: "root on a client cannot change files of other users, and reads update access times",
    },
    Need {
        capability: CapabilitySet::FSETID,
        name: "CAP_FSETID",
        without: "set-group-ID bits set by root on a client, or inherited from a directory's group, are lost",
    },
    Need {
        capability: CapabilitySet::MKNOD,
        name: "CAP_MKNOD",
        without: "root on a client cannot create device nodes",
    },
];

/// For who binds ports below 1024 while it serves.
const RESERVED_PORTS: Need =
    Need { capability: CapabilitySet::NET_BIND_SERVICE, name: "CAP_NET_BIND_SERVICE", without: "" };

/// Drops everything else from all five sets of the calling thread. Gives what is left.
///
/// The bounding set can only be emptied with `CAP_SETPCAP`; without it, it stays, and
/// `no_new_privs` sees to it that nothing is ever gained from there.
///
/// # Errors
/// The kernel refuses a call that it always allows.
pub(super) fn reduce(reserved_ports: bool) -> io::Result<CapabilitySet> {
    let mut wanted = NEEDS.iter().fold(CapabilitySet::empty(), |set, need| set | need.capability);
    if reserved_ports {
        wanted |= RESERVED_PORTS.capability;
    }
    let held = capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        empty_bounding_set()?;
    }
    clear_ambient_capability_set()?;
    let kept = held.permitted & wanted;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    Ok(kept)
}

fn empty_bounding_set() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Says what will not work because root has not all that it needs, as in many containers.
pub(super) fn warn_of_missing(kept: CapabilitySet) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for need in NEEDS.iter().filter(|need| !kept.contains(need.capability)) {
        tracing::warn!(capability = need.name, "missing capability: {}", need.without);
    }
}

/// The names of those in `set` that serving knows.
pub(super) fn names(set: CapabilitySet) -> String {
    let all = NEEDS.iter().chain([&RESERVED_PORTS]);
    let held = all.filter(|need| set.contains(need.capability)).map(|need| need.name);
    let names: Vec<&str> = held.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}
