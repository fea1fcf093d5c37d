//! Bounds on what a peer may send, with what happens when they are reached.

/// Largest READ, WRITE and transaction, in bytes: one mebibyte, because the error of a contract is
/// one largest request.
pub const IO_BYTES_MAX: u32 = 1 << 20;

/// Everything in a frame beside one full payload, in bytes: headers, fixed parts, names, contexts
/// and the other elements of a compound. A name has at most 64 KiB, and so do the contexts that
/// clients send with it.
pub const FRAME_EXTRA_BYTES_MAX: usize = 256 << 10;

/// Largest frame a peer may send, in bytes and without its transport prefix: one full payload and
/// [`FRAME_EXTRA_BYTES_MAX`]. A longer one ends the connection as soon as its prefix is seen, so
/// nothing larger is ever buffered. Two full payloads in one compound do not fit; no client sends
/// them so, because each needs sixteen credits of its own.
pub const FRAME_BYTES_MAX: usize = IO_BYTES_MAX as usize + FRAME_EXTRA_BYTES_MAX;

/// Most elements of one compound. The protocol bounds them by credits alone; clients send up to
/// seven. A longer chain is refused as a whole, before its first element is run.
pub const COMPOUND_ELEMENTS_MAX: usize = 256;

/// Most dialects in a NEGOTIATE request; six have been published. Beyond: the request is refused.
pub const DIALECTS_MAX: usize = 64;

/// Most contexts in a NEGOTIATE request; seven types have been published. Beyond: the request is
/// refused.
pub const NEGOTIATE_CONTEXTS_MAX: usize = 32;

/// Most identifiers in one list of a negotiate context: ciphers, hashes, signing or compression
/// algorithms. Beyond: the request is refused.
pub const ALGORITHMS_MAX: usize = 64;

/// Longest SMB1 NEGOTIATE, in bytes: clients list about ten dialects of at most 30 bytes. Beyond:
/// it is refused.
pub const SMB1_NEGOTIATE_BYTES_MAX: usize = 4096;

/// Largest sum of create contexts in one CREATE, in bytes: extended attributes and a security
/// descriptor have at most 64 KiB each. Beyond: the request is refused.
pub const CREATE_CONTEXTS_BYTES_MAX: usize = 160 << 10;

/// Most contexts of one CREATE; fifteen types have been published. Beyond: the request is refused.
pub const CREATE_CONTEXTS_MAX: usize = 64;

/// Most ranges in one LOCK. The Linux client fills one page of its memory, which is 168 ranges for
/// pages of 4 KiB and 2,728 for pages of 64 KiB. Beyond: the request is refused.
pub const LOCK_RANGES_MAX: usize = 4096;

/// Most symbolic links that one path is followed through, as Linux has it. Beyond: the path leads
/// nowhere.
pub const LINKS_MAX: u32 = 40;

/// Most names that are looked up for one path, those in the targets of links included. Beyond: the
/// path leads nowhere.
pub const LOOKUPS_MAX: u32 = 1024;

/// Times that a CREATE begins anew because others made or removed the file meanwhile. Beyond: it
/// fails as if the file had not changed since.
pub const CREATE_TRIES_MAX: u32 = 8;

const _: () = assert!(FRAME_BYTES_MAX < 1 << 24, "a transport prefix has 24 bits of length");
const _: () = assert!(LOCK_RANGES_MAX * 24 < FRAME_EXTRA_BYTES_MAX);
const _: () = assert!(CREATE_CONTEXTS_BYTES_MAX + (64 << 10) < FRAME_EXTRA_BYTES_MAX);
/// Largest token of authentication, in bytes: SESSION_SETUP has 16 bits for its length. Longer ones
/// are refused.
pub const AUTH_TOKEN_BYTES_MAX: usize = 0xFFFF;

/// Largest NTLM NEGOTIATE message, in bytes; a login keeps it until it ends. It has 40 bytes and
/// two names; longer ones are refused.
pub const NTLM_NEGOTIATE_BYTES_MAX: usize = 1024;

/// Largest list of SPNEGO's mechanisms, in bytes; a login keeps it until it ends. A mechanism takes
/// some 12 bytes; longer lists are refused.
pub const MECHANISM_LIST_BYTES_MAX: usize = 512;

/// Largest user, domain or workstation name of a login, in UTF-16 units, as Windows has it; a login
/// with longer ones is refused.
pub const LOGIN_NAME_UNITS_MAX: usize = 256;

/// Largest NetBIOS name of the server, in UTF-16 units.
pub const NETBIOS_NAME_UNITS_MAX: usize = 15;

/// Largest DNS name of the server, in UTF-16 units.
pub const DNS_NAME_UNITS_MAX: usize = 255;
