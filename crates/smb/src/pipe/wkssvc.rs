//! The workstation service (MS-WKST §3.2.4): the name of the machine and of its group.

use super::Host;
use super::ndr::{Input, Output, PLATFORM, VERSION, status};
use super::rpc::Fault;
use alloc::vec::Vec;

/// Answers one call.
pub(super) fn call(operation: u16, input: &[u8], host: &Host<'_>) -> Result<Vec<u8>, Fault> {
    let mut input = Input::new(input);
    let mut out = Output::default();
    match operation {
        0 => workstation(&mut input, host, &mut out)?,
        _ => return Err(Fault::UNKNOWN_OPERATION),
    }
    Ok(out.into_bytes())
}

/// NetrWkstaGetInfo (§3.2.4.1), level 100.
fn workstation(input: &mut Input<'_>, host: &Host<'_>, out: &mut Output) -> Result<(), Fault> {
    input.server_name()?;
    let level = input.u32()?;
    out.u32(level);
    if level != 100 {
        out.null();
        out.u32(status::INVALID_LEVEL);
        return Ok(());
    }
    out.pointer();
    out.u32(PLATFORM);
    out.pointer();
    out.pointer();
    VERSION.into_iter().for_each(|part| out.u32(part));
    out.string(host.name);
    out.string(host.group);
    out.u32(status::SUCCESS);
    Ok(())
}
