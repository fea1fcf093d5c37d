//! The calls of the portmapper (RFC 1833 §3.2) and of rpcbind version 4 (RFC 1833 §2.2.1).

use super::call::RemoteCall;
use crate::PROGRAM_RPCBIND;
use crate::rpcbind::wire::{
    Mapping, Mappings, PortmapProcedure, Procedure, Registrations, Rpcb, Text,
};
use crate::rpcbind::{PORTMAP, RPCBIND_4};
use crate::xdr::{Encode, Writer};

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $(($args:ty))? => $version:ident, $procedure:expr, $results:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name $((pub $args))?;

            impl Encode for $name {
                fn encode(&self, out: &mut Writer) {
                    calls!(@encode self, out $(, $args)?);
                }
            }

            impl RemoteCall for $name {
                const PROGRAM: u32 = PROGRAM_RPCBIND;
                const VERSION: u32 = $version;
                const PROCEDURE: u32 = $procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
    (@encode $self:ident, $out:ident, $args:ty) => { $self.0.encode($out) };
    (@encode $self:ident, $out:ident) => { let _ = $out; };
}

calls! {
    /// SET of version 2: registers a port.
    PortmapSet(Mapping) => PORTMAP, PortmapProcedure::Set, bool;
    /// UNSET of version 2: forgets a program's version.
    PortmapUnset(Mapping) => PORTMAP, PortmapProcedure::Unset, bool;
    /// GETPORT: the port of a program, 0 for none.
    Getport(Mapping) => PORTMAP, PortmapProcedure::Getport, u32;
    /// DUMP of version 2: lists what is registered for IPv4.
    PortmapDump => PORTMAP, PortmapProcedure::Dump, Mappings<'r>;
    /// NULL of version 4: does nothing.
    RpcbindNull => RPCBIND_4, Procedure::Null, ();
    /// DUMP of version 4: lists everything that is registered.
    RpcbindDump => RPCBIND_4, Procedure::Dump, Registrations<'r>;
    /// GETTIME: seconds since 1970.
    Gettime => RPCBIND_4, Procedure::Gettime, u32;
}

macro_rules! calls_of_rpcb {
    ($($(#[$doc:meta])* $name:ident => $procedure:ident, $results:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name<'a>(pub Rpcb<'a>);

            impl Encode for $name<'_> {
                fn encode(&self, out: &mut Writer) {
                    self.0.encode(out);
                }
            }

            impl RemoteCall for $name<'_> {
                const PROGRAM: u32 = PROGRAM_RPCBIND;
                const VERSION: u32 = RPCBIND_4;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

calls_of_rpcb! {
    /// SET of version 4: registers a universal address.
    RpcbindSet => Set, bool;
    /// UNSET of version 4: forgets a program's version, on all transports if none is named.
    RpcbindUnset => Unset, bool;
    /// GETADDR: the universal address of a program, empty for none.
    Getaddr => Getaddr, Text<'r>;
    /// GETVERSADDR: the universal address of a program's exact version, empty for none.
    Getversaddr => Getversaddr, Text<'r>;
}
