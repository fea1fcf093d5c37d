//! The calls of MOUNT version 3 (RFC 1813 §5.2).

use super::call::RemoteCall;
use crate::mount::wire::{DumpRes, ExportRes, MntRes, MountPath, Procedure};
use crate::xdr::{Encode, Writer};
use crate::{PROGRAM_MOUNT, mount};

/// MNT: asks for the handle of the export at this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mnt<'a>(pub &'a [u8]);

/// UMNT: the mount of the export at this path is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umnt<'a>(pub &'a [u8]);

/// NULL of MOUNT: does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountNull;

/// DUMP: lists the mounts the server believes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump;

/// UMNTALL: all mounts of the caller are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umntall;

/// EXPORT: lists everything that is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportList;

macro_rules! procedures {
    ($($args:ty => $procedure:ident, $results:ty, |$self:ident, $out:ident| $encode:expr;)*) => {
        $(
            impl Encode for $args {
                fn encode(&$self, $out: &mut Writer) {
                    $encode
                }
            }

            impl RemoteCall for $args {
                const PROGRAM: u32 = PROGRAM_MOUNT;
                const VERSION: u32 = mount::VERSION;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

procedures! {
    MountNull => Null, (), |self, _out| {};
    Mnt<'_> => Mnt, MntRes<'r>, |self, out| MountPath(self.0).encode(out);
    Dump => Dump, DumpRes<'r>, |self, _out| {};
    Umnt<'_> => Umnt, (), |self, out| MountPath(self.0).encode(out);
    Umntall => Umntall, (), |self, _out| {};
    ExportList => Export, ExportRes<'r>, |self, _out| {};
}
