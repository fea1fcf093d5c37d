//! Encoding calls.

use crate::rpc::auth::{AUTH_NONE, AUTH_SYS, AuthSys};
use crate::rpc::{LAST_FRAGMENT, MSG_CALL, RPC_VERSION};
use crate::v3::wire::{Procedure, WriteHead};
use crate::xdr::{self, Decode, Encode, Writer};
use crate::{PROGRAM_NFS, v3};
use alloc::vec::Vec;
use weir_core::Credentials;

/// The arguments of a procedure: they say which procedure it is and what it answers.
pub trait RemoteCall: Encode {
    /// Program number.
    const PROGRAM: u32;
    /// Program version.
    const VERSION: u32;
    /// Procedure number.
    const PROCEDURE: u32;
    /// The results in the reply.
    type Results<'r>: Decode<'r>;
}

/// Bytes that are XDR already.
struct AsIs<'a>(&'a [u8]);

impl Encode for AsIs<'_> {
    fn encode(&self, out: &mut Writer) {
        out.bytes(self.0);
    }
}

/// Makes calls under one identity. The credential is encoded once.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Credential and verifier, as they stand in every call.
    authentication: Vec<u8>,
}

/// Record mark, xid, message type, RPC version, program, version, procedure.
const HEAD_BYTES: usize = 28;
const MARK_BYTES: usize = 4;

impl Caller {
    /// A caller without identity (AUTH_NONE).
    #[must_use]
    pub fn none() -> Self {
        Self::new(AUTH_NONE, &[])
    }

    /// A caller with numeric ids (AUTH_SYS) on a machine of this name (at most 255 bytes).
    #[must_use]
    pub fn sys(credentials: &Credentials, machine: &[u8]) -> Self {
        let mut body = Writer::default();
        AuthSys { stamp: 0, credentials: credentials.clone() }.encode(machine, &mut body);
        Self::new(AUTH_SYS, body.as_bytes())
    }

    fn new(flavor: u32, body: &[u8]) -> Self {
        let mut out = Writer::default();
        out.u32(flavor);
        out.opaque(body);
        out.u32(AUTH_NONE);
        out.opaque(&[]);
        Self { authentication: out.into_vec() }
    }

    /// Appends a whole call record to `out`.
    #[inline]
    pub fn call<A: RemoteCall>(&self, out: &mut Vec<u8>, xid: u32, args: &A) {
        self.append(out, xid, [A::PROGRAM, A::VERSION, A::PROCEDURE], args, 0);
    }

    /// Appends a call whose arguments are encoded already, such as those of a
    /// [`Callback`](crate::nlm::Callback).
    pub fn encoded(
        &self,
        out: &mut Vec<u8>,
        xid: u32,
        [program, version, procedure]: [u32; 3],
        args: &[u8],
    ) {
        self.append(out, xid, [program, version, procedure], &AsIs(args), 0);
    }

    /// Appends a WRITE call without its data to `out`. The caller sends the data right after it,
    /// and after that the data's [`padding`]; the record mark counts both already.
    #[inline]
    pub fn write_head(&self, out: &mut Vec<u8>, xid: u32, head: &WriteHead<'_>) {
        let data = head.data_len as usize;
        let follows = data.saturating_add(xdr::padding(data));
        let procedure = [PROGRAM_NFS, v3::VERSION, Procedure::Write as u32];
        self.append(out, xid, procedure, head, follows);
    }

    /// Appends a record of which `follows` bytes are sent from elsewhere.
    #[inline]
    fn append<A: Encode>(
        &self,
        out: &mut Vec<u8>,
        xid: u32,
        [program, version, procedure]: [u32; 3],
        args: &A,
        follows: usize,
    ) {
        let start = out.len();
        let mut head = [0; HEAD_BYTES];
        head[4..8].copy_from_slice(&xid.to_be_bytes());
        head[8..12].copy_from_slice(&MSG_CALL.to_be_bytes());
        head[12..16].copy_from_slice(&RPC_VERSION.to_be_bytes());
        head[16..20].copy_from_slice(&program.to_be_bytes());
        head[20..24].copy_from_slice(&version.to_be_bytes());
        head[24..28].copy_from_slice(&procedure.to_be_bytes());
        let mut writer = Writer::new(core::mem::take(out));
        writer.bytes(&head);
        writer.bytes(&self.authentication);
        args.encode(&mut writer);
        let len = writer.position().saturating_sub(start).saturating_sub(MARK_BYTES);
        let len = u32::try_from(len.saturating_add(follows)).unwrap_or(u32::MAX);
        writer.patch(start, &(len | LAST_FRAGMENT).to_be_bytes());
        *out = writer.into_vec();
    }
}

/// The pad bytes that belong after `data_len` bytes of data.
#[inline]
#[must_use]
pub fn padding(data_len: u32) -> &'static [u8] {
    const ZEROS: &[u8] = &[0; 3];
    ZEROS.get(..xdr::padding(data_len as usize)).unwrap_or(ZEROS)
}
