//! PATHCONF (RFC 1813 §3.3.20).

use super::{Fattr3, FileHandle3, Res};
use crate::xdr::xdr_struct;

xdr_struct! {
    /// `PATHCONF3args`.
    pub struct PathconfArgs<'a> {
        /// An object in the file system.
        pub object: FileHandle3<'a>,
    }
}

xdr_struct! {
    /// `PATHCONF3resok`.
    pub struct PathconfOk {
        /// The object's attributes.
        pub attributes: Option<Fattr3>,
        /// Most hard links of an object.
        pub linkmax: u32,
        /// Longest name, in bytes.
        pub name_max: u32,
        /// Are names that are too long refused, not cut?
        pub no_trunc: bool,
        /// May only the superuser change an owner?
        pub chown_restricted: bool,
        /// Are names compared without regard to case?
        pub case_insensitive: bool,
        /// Is the case of names kept?
        pub case_preserving: bool,
    }
}

/// `PATHCONF3res`; a failure gives the object's attributes.
pub type PathconfRes = Res<PathconfOk, Option<Fattr3>>;
