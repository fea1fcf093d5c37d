//! NSM version 1, the status monitor (X/Open XNFS, C702, chapter 11): hosts tell each other that
//! they restarted, so that locks from before are taken again, or given up.
//!
//! We send and obey such notices for our own lock manager alone, and monitor nothing on behalf of
//! other programs: who asks for that is told no. What is *not* here: which hosts there are.

mod ops;
pub mod wire;

pub use ops::{Notice, Served, serve};
pub use wire::Procedure;

/// The version number of the protocol (XNFS chapter 11, `SM_VERS`).
pub const VERSION: u32 = 1;
