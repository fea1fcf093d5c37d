//! NFSACL as types: arguments and results of its procedures, both directions, and lists to and
//! from `core`'s. Handles, attributes and statuses are those of NFSv3.

mod getacl;
mod list;
mod setacl;

pub use getacl::{GetaclArgs, GetaclOk, GetaclRes};
pub use list::{AclEntry, AclMask, ListBytes, SecAcl};
pub use setacl::{SetaclArgs, SetaclRes};

/// The procedures of NFSACL version 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Procedure {
    /// Does nothing; by it clients find out that the protocol is spoken.
    Null = 0,
    /// Reads an object's lists.
    Getacl = 1,
    /// Sets them.
    Setacl = 2,
}

impl Procedure {
    /// The procedure with this number, if there is one.
    #[must_use]
    pub const fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Null),
            1 => Some(Self::Getacl),
            2 => Some(Self::Setacl),
            _ => None,
        }
    }
}
