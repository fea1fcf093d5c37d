//! The server service (MS-SRVS §3.1.4): shares and the server itself.

use super::limits::SHARES_MAX;
use super::ndr::{Input, Output, PLATFORM, VERSION, status};
use super::rpc::Fault;
use super::{Host, Share, ShareKind};
use crate::le::length;
use alloc::vec::Vec;
use weir_core::fold::eq_folded;

/// Answers one call.
pub(super) fn call(operation: u16, input: &[u8], host: &Host<'_>) -> Result<Vec<u8>, Fault> {
    let mut input = Input::new(input);
    let mut out = Output::default();
    match operation {
        15 => enumerate(&mut input, host, &mut out)?,
        16 => share(&mut input, host, &mut out)?,
        21 => server(&mut input, host, &mut out)?,
        _ => return Err(Fault::UNKNOWN_OPERATION),
    }
    Ok(out.into_bytes())
}

/// NetrShareEnum (§3.1.4.8), levels 0 and 1, without hidden shares. The preferred length is no
/// bound, as for other servers.
fn enumerate(input: &mut Input<'_>, host: &Host<'_>, out: &mut Output) -> Result<(), Fault> {
    input.server_name()?;
    let (level, selected) = (input.u32()?, input.u32()?);
    // The list, which is empty as it comes.
    if input.pointer()? {
        let (_count, entries) = (input.u32()?, input.pointer()?);
        if entries && input.u32()? != 0 {
            return Err(Fault::BAD_INPUT);
        }
    }
    let _preferred_length = input.u32()?;
    let resume = if input.pointer()? { Some(input.u32()?) } else { None };
    if level != selected {
        return Err(Fault::BAD_INPUT);
    }
    let first = usize::try_from(resume.unwrap_or(0)).unwrap_or(usize::MAX);
    let mut shares = (host.shares)();
    shares.retain(|share| share.kind != ShareKind::HiddenDisk);
    let left = shares.get(first..).unwrap_or(&[]);
    let sent = left.get(..SHARES_MAX).unwrap_or(left);
    let known = matches!(level, 0 | 1);
    let (sent, left) = if known { (sent, left) } else { (&[][..], &[][..]) };
    out.u32(level);
    out.u32(level);
    if known {
        out.pointer();
        out.u32(length::<u32>(sent.len()));
        out.pointer();
        out.u32(length::<u32>(sent.len()));
        sent.iter().for_each(|share| fixed(level, share, out));
        sent.iter().for_each(|share| strings(level, share, out));
    } else {
        out.null();
    }
    out.u32(length::<u32>(left.len()));
    let more = sent.len() < left.len();
    match resume {
        Some(_) => {
            out.pointer();
            out.u32(if more { length::<u32>(first.saturating_add(sent.len())) } else { 0 });
        }
        None => out.null(),
    }
    out.u32(match (known, more) {
        (false, _) => status::INVALID_LEVEL,
        (true, true) => status::MORE_DATA,
        (true, false) => status::SUCCESS,
    });
    Ok(())
}

/// NetrShareGetInfo (§3.1.4.10), levels 0 and 1, of hidden shares too.
fn share(input: &mut Input<'_>, host: &Host<'_>, out: &mut Output) -> Result<(), Fault> {
    input.server_name()?;
    let name = input.string()?;
    let level = input.u32()?;
    let shares = (host.shares)();
    let found = shares.iter().find(|share| eq_folded(share.name.as_bytes(), name.as_bytes()));
    out.u32(level);
    match found {
        Some(share) if matches!(level, 0 | 1) => {
            out.pointer();
            fixed(level, share, out);
            strings(level, share, out);
            out.u32(status::SUCCESS);
        }
        _ => {
            out.null();
            let level_known = matches!(level, 0 | 1);
            out.u32(if level_known { status::SHARE_NOT_FOUND } else { status::INVALID_LEVEL });
        }
    }
    Ok(())
}

/// The part of SHARE_INFO_0 or SHARE_INFO_1 (§2.2.4.22, §2.2.4.23) before its strings.
fn fixed(level: u32, share: &Share<'_>, out: &mut Output) {
    out.pointer();
    if level == 1 {
        out.u32(match share.kind {
            ShareKind::Disk => 0,
            ShareKind::HiddenDisk => 0x8000_0000,
            ShareKind::Ipc => 0x8000_0003,
        });
        out.pointer();
    }
}

fn strings(level: u32, share: &Share<'_>, out: &mut Output) {
    out.string(share.name);
    if level == 1 {
        out.string(share.comment);
    }
}

/// A workstation, a server, and one of Windows NT (MS-SRVS §2.2.2.7).
const SERVER_TYPE: u32 = 0x0000_8003;

/// NetrServerGetInfo (§3.1.4.17), levels 100 and 101.
fn server(input: &mut Input<'_>, host: &Host<'_>, out: &mut Output) -> Result<(), Fault> {
    input.server_name()?;
    let level = input.u32()?;
    out.u32(level);
    if !matches!(level, 100 | 101) {
        out.null();
        out.u32(status::INVALID_LEVEL);
        return Ok(());
    }
    out.pointer();
    out.u32(PLATFORM);
    out.pointer();
    if level == 101 {
        VERSION.into_iter().for_each(|part| out.u32(part));
        out.u32(SERVER_TYPE);
        out.pointer();
    }
    out.string(host.name);
    if level == 101 {
        out.string(host.comment);
    }
    out.u32(status::SUCCESS);
    Ok(())
}
