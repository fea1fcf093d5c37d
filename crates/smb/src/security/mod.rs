//! Security descriptors (MS-DTYP §2.4), as views of mode and access control list.
//!
//! On the volumes served, mode and POSIX ACL decide. [`view()`] shows them as a descriptor,
//! [`posix_from`] finds the change of owner, mode and lists that a descriptor asks for, and refuses
//! what these can't say. Setting what was shown changes nothing.
//!
//! Not here: the access decision, which is [`weir_core::access`]; system access control lists
//! (auditing), which are neither kept nor shown.

mod descriptor;
mod express;
mod identity;
mod limits;
mod mask;
mod sid;
#[cfg(test)]
mod tests;
mod view;

pub use descriptor::{Ace, AceFlags, AceKind, Dacl, Descriptor, DescriptorError};
pub use express::{NotExpressible, SetDefault, SetPosix, posix_from};
pub use identity::{Identities, Principal};
pub use limits::{DESCRIPTOR_BYTES_MAX, SUB_AUTHORITIES_MAX};
pub use mask::{Grounds, maximal_access};
pub use sid::{NoSid, Sid};
pub use view::{Current, view};
