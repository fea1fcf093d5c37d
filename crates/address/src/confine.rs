//! The privileges that the helper gives up: all but the two that it is for.

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// Addresses, rules of the kernel and the end of connections need the first, packets of one's own
/// the second.
const NEEDS: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);

/// Gives up all capabilities but `CAP_NET_ADMIN` and `CAP_NET_RAW`, in this thread and all that it
/// starts; a program that acts as the hook has no others either. To be called before other threads
/// are started.
///
/// # Errors
/// If one of the two is missing, or the kernel refuses to take something away.
pub fn confine() -> io::Result<()> {
    let held = capabilities(None)?;
    if !held.permitted.contains(NEEDS) {
        let words = "the helper for addresses needs CAP_NET_ADMIN and CAP_NET_RAW";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << number);
            if NEEDS.contains(one) {
                continue;
            }
            match remove_capability_from_bounding_set(one) {
                Ok(()) => {}
                // Beyond the last that this kernel knows.
                Err(Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: NEEDS, permitted: NEEDS, inheritable })?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
