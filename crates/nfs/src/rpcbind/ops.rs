//! The procedures of the portmapper (RFC 1833 §3.2) and of rpcbind (RFC 1833 §2.2.1).

use super::wire::{Mapping, PortmapProcedure, Procedure, Rpcb, Text};
use super::{Entry, Netid, PORTMAP, RPCBIND_3, RPCBIND_4, Registry, Universal, universal};
use crate::rpc::{AcceptError, Call, reply};
use crate::xdr::{Encode, Writer, XdrError, decode};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The caller's properties beside the bytes of its call.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The address of ours that it came to; given out where a program listens on all of them.
    pub local: IpAddr,
    /// The transport it came by.
    pub netid: Netid,
    /// May it register and forget? Else SET and UNSET answer `false`.
    pub trusted: bool,
    /// Seconds since 1970 now, for GETTIME.
    pub unix_seconds: u32,
}

/// The owner told of every registration: who asked is not kept.
const OWNER: Text<'static> = Text(b"superuser");

/// Carries out `call` to the portmapper program and gives the whole reply, made in the buffer
/// `reply`.
///
/// Another version is PROG_MISMATCH, a procedure that is unknown or not spoken PROC_UNAVAIL, and
/// arguments that can't be decoded GARBAGE_ARGS.
#[must_use]
pub fn serve(call: &Call, registry: &mut Registry, caller: &Caller, reply: Vec<u8>) -> Vec<u8> {
    let error = match call.version {
        PORTMAP | RPCBIND_3 | RPCBIND_4 => {
            let mut out = reply::begin(reply, call.xid);
            let done = if call.version == PORTMAP {
                portmap(call, registry, caller, &mut out)
            } else {
                rpcbind(call, registry, caller, &mut out)
            };
            match done {
                Ok(()) => return reply::finish(out),
                Err(error) => return reply::error(out.into_vec(), call.xid, error),
            }
        }
        _ => AcceptError::ProgramMismatch { low: PORTMAP, high: RPCBIND_4 },
    };
    reply::error(reply, call.xid, error)
}

impl From<XdrError> for AcceptError {
    fn from(_: XdrError) -> Self {
        Self::GarbageArgs
    }
}

fn portmap(
    call: &Call,
    registry: &mut Registry,
    caller: &Caller,
    out: &mut Writer,
) -> Result<(), AcceptError> {
    use PortmapProcedure::{Callit, Dump, Getport, Null, Set, Unset};
    match PortmapProcedure::of(call.procedure) {
        Some(Null) => {}
        Some(Set) => {
            let entry = of_mapping(&decode(&call.args)?);
            out.bool(caller.trusted && entry.is_some_and(|entry| registry.set(entry)));
        }
        Some(Unset) => {
            // The protocol and the port don't count (RFC 1833 §3.2).
            let Mapping { program, version, .. } = decode(&call.args)?;
            let mut unset = |netid| registry.unset(program, version, Some(netid));
            out.bool(caller.trusted && (unset(Netid::Tcp) | unset(Netid::Udp)));
        }
        Some(Getport) => {
            let Mapping { program, version, protocol, .. } = decode(&call.args)?;
            let netid = Netid::of_protocol(protocol);
            let found = netid.and_then(|netid| registry.find(program, version, netid));
            out.u32(found.map_or(0, |entry| entry.address.port().into()));
        }
        Some(Dump) => {
            for entry in registry.iter().filter(|entry| entry.netid.is_ipv4()) {
                Some(Mapping {
                    program: entry.program,
                    version: entry.version,
                    protocol: entry.netid.protocol(),
                    port: entry.address.port().into(),
                })
                .encode(out);
            }
            out.bool(false);
        }
        Some(Callit) | None => return Err(AcceptError::ProcedureUnavailable),
    }
    Ok(())
}

/// A registration of version 2: of a port on all IPv4 addresses.
fn of_mapping(mapping: &Mapping) -> Option<Entry> {
    let port = u16::try_from(mapping.port).ok().filter(|port| *port != 0)?;
    Some(Entry {
        program: mapping.program,
        version: mapping.version,
        netid: Netid::of_protocol(mapping.protocol)?,
        address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
    })
}

fn rpcbind(
    call: &Call,
    registry: &mut Registry,
    caller: &Caller,
    out: &mut Writer,
) -> Result<(), AcceptError> {
    match Procedure::of(call.version, call.procedure) {
        Some(Procedure::Null) => {}
        Some(Procedure::Set) => {
            let entry = of_rpcb(&decode(&call.args)?);
            out.bool(caller.trusted && entry.is_some_and(|entry| registry.set(entry)));
        }
        Some(Procedure::Unset) => {
            let Rpcb { program, version, netid, .. } = decode(&call.args)?;
            out.bool(caller.trusted && unset(registry, program, version, netid));
        }
        // The transport is that of the call, whatever `netid` says (RFC 1833 §2.2.1).
        Some(Procedure::Getaddr) => {
            let Rpcb { program, version, .. } = decode(&call.args)?;
            address(registry.find(program, version, caller.netid), caller, out);
        }
        Some(Procedure::Getversaddr) => {
            let Rpcb { program, version, .. } = decode(&call.args)?;
            address(registry.exactly(program, version, caller.netid), caller, out);
        }
        Some(Procedure::Dump) => {
            for entry in registry.iter() {
                Some(Rpcb {
                    program: entry.program,
                    version: entry.version,
                    netid: Text(entry.netid.name().as_bytes()),
                    address: Text(universal(&entry.address).as_bytes()),
                    owner: OWNER,
                })
                .encode(out);
            }
            out.bool(false);
        }
        Some(Procedure::Gettime) => out.u32(caller.unix_seconds),
        Some(
            Procedure::Bcast
            | Procedure::Uaddr2taddr
            | Procedure::Taddr2uaddr
            | Procedure::Indirect
            | Procedure::Getaddrlist
            | Procedure::Getstat,
        )
        | None => return Err(AcceptError::ProcedureUnavailable),
    }
    Ok(())
}

/// Forgets on one transport, or on all if none is named (RFC 1833 §2.2.1, UNSET).
fn unset(registry: &mut Registry, program: u32, version: u32, netid: Text<'_>) -> bool {
    match (netid.0, Netid::named(netid.0)) {
        (b"", _) => registry.unset(program, version, None),
        (_, Some(netid)) => registry.unset(program, version, Some(netid)),
        (_, None) => false,
    }
}

/// A registration of versions 3 and 4, if its transport is known and its address fits it.
fn of_rpcb(rpcb: &Rpcb<'_>) -> Option<Entry> {
    let netid = Netid::named(rpcb.netid.0)?;
    let Universal(address) = Universal::parse(rpcb.address.0)?;
    (address.is_ipv4() == netid.is_ipv4() && address.port() != 0).then_some(Entry {
        program: rpcb.program,
        version: rpcb.version,
        netid,
        address,
    })
}

/// The universal address of `entry` as the caller reaches it; an empty text for nothing.
fn address(entry: Option<&Entry>, caller: &Caller, out: &mut Writer) {
    let Some(entry) = entry else { return Text(b"").encode(out) };
    let mut address = entry.address;
    if address.ip().is_unspecified() {
        address.set_ip(caller.local);
    }
    Text(universal(&address).as_bytes()).encode(out);
}

#[cfg(test)]
mod tests;
