//! Bounds on what a peer may send in information classes and controls.

/// Longest name in a rename or link, in bytes of UTF-16. Beyond: STATUS_INVALID_PARAMETER.
pub const TARGET_BYTES_MAX: usize = crate::names::PATH_UNITS_MAX * 2;

/// Most chunks of one server-side copy (MS-SMB2 §3.3.3, ServerSideCopyMaxNumberofChunks). Beyond
/// this and the next two: STATUS_INVALID_PARAMETER, with the three bounds as the reply.
pub const COPY_CHUNKS_MAX: u32 = 256;

/// Largest chunk of a server-side copy, in bytes (ServerSideCopyMaxChunkSize): as one WRITE.
pub const COPY_CHUNK_BYTES_MAX: u32 = crate::limits::IO_BYTES_MAX;

/// Most bytes of one server-side copy (ServerSideCopyMaxDataSize).
pub const COPY_BYTES_MAX: u32 = 16 << 20;
