//! Bounds on security descriptors.

/// Most sub-authorities of a SID (MS-DTYP §2.4.2). Beyond: it is none.
pub const SUB_AUTHORITIES_MAX: usize = 15;

/// Largest security descriptor that is read or written, in bytes. A longer one is refused; a view
/// that would be longer is not shown. A list of access control has at most 65,535 bytes
/// (MS-DTYP §2.4.5), and here at most one goes into a descriptor.
pub const DESCRIPTOR_BYTES_MAX: usize = 65_536;
