//! Which procedure each NFSACL argument belongs to, and what it answers.

use super::call::RemoteCall;
use crate::acl::wire::{GetaclArgs, GetaclRes, Procedure, SetaclArgs, SetaclRes};
use crate::xdr::{Encode, Writer};
use crate::{PROGRAM_NFSACL, acl};

/// NULL of NFSACL: does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclNull;

impl Encode for AclNull {
    fn encode(&self, _: &mut Writer) {}
}

macro_rules! procedures {
    ($($args:ty => $procedure:ident, $results:ty;)*) => {
        $(
            impl RemoteCall for $args {
                const PROGRAM: u32 = PROGRAM_NFSACL;
                const VERSION: u32 = acl::VERSION;
                const PROCEDURE: u32 = Procedure::$procedure as u32;
                type Results<'r> = $results;
            }
        )*
    };
}

procedures! {
    AclNull => Null, ();
    GetaclArgs<'_> => Getacl, GetaclRes<'r>;
    SetaclArgs<'_> => Setacl, SetaclRes;
}
