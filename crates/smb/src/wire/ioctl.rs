//! IOCTL (MS-SMB2 §2.2.31, §2.2.32). Not here: what the control codes carry.

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, Payload, bits, named, zeros};
use super::header::HEADER_BYTES;
use super::{FileId, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
use crate::le::patch;
use alloc::vec::Vec;

named! {
    /// A control code (MS-SMB2 §2.2.31, MS-FSCC §2.3).
    pub struct ControlCode: u32 {
        /// Asks for the targets of a DFS path.
        DFS_GET_REFERRALS = 0x0006_0194,
        /// Asks for the targets of a DFS path, with more parameters.
        DFS_GET_REFERRALS_EX = 0x0006_01b0,
        /// Gets how a file is compressed.
        GET_COMPRESSION = 0x0009_003c,
        /// Sets the target of a reparse point.
        SET_REPARSE_POINT = 0x0009_00a4,
        /// Gets the target of a reparse point.
        GET_REPARSE_POINT = 0x0009_00a8,
        /// Makes a reparse point an ordinary file.
        DELETE_REPARSE_POINT = 0x0009_00ac,
        /// Gets the object id of a file, or gives it one.
        CREATE_OR_GET_OBJECT_ID = 0x0009_00c0,
        /// Sets whether a file may have holes.
        SET_SPARSE = 0x0009_00c4,
        /// Gets how the data of a file is checked.
        GET_INTEGRITY_INFORMATION = 0x0009_027c,
        /// Gets which ranges of a file have been written.
        QUERY_FILE_REGIONS = 0x0009_0284,
        /// Gets which ranges of a file have storage.
        QUERY_ALLOCATED_RANGES = 0x0009_40cf,
        /// Makes a range of a file read as zeros.
        SET_ZERO_DATA = 0x0009_80c8,
        /// Tells that ranges are not needed.
        FILE_LEVEL_TRIM = 0x0009_8208,
        /// Shares storage between files.
        DUPLICATE_EXTENTS_TO_FILE = 0x0009_8344,
        /// Sets how a file is compressed.
        SET_COMPRESSION = 0x0009_c040,
        /// Waits for an instance of a pipe.
        PIPE_WAIT = 0x0011_0018,
        /// Looks at the data of a pipe.
        PIPE_PEEK = 0x0011_400c,
        /// Writes to a pipe and reads the answer.
        PIPE_TRANSCEIVE = 0x0011_c017,
        /// Lists the snapshots of a file.
        SRV_ENUMERATE_SNAPSHOTS = 0x0014_4064,
        /// Gets a key by which a copy names its source.
        SRV_REQUEST_RESUME_KEY = 0x0014_0078,
        /// Copies ranges; the target must be open for reading too.
        SRV_COPYCHUNK = 0x0014_40f2,
        /// Copies ranges.
        SRV_COPYCHUNK_WRITE = 0x0014_80f2,
        /// Gets hashes of data.
        SRV_READ_HASH = 0x0014_41bb,
        /// Makes an open survive disconnection.
        LMR_REQUEST_RESILIENCY = 0x0014_01d4,
        /// Lists the server's network interfaces.
        QUERY_NETWORK_INTERFACE_INFO = 0x0014_01fc,
        /// Repeats the negotiation, in dialects before 3.1.1.
        VALIDATE_NEGOTIATE_INFO = 0x0014_0204,
    }
}

bits! {
    /// The flags of IOCTL.
    pub struct IoctlFlags: u32 {
        /// The code is one of file systems; without it nothing is served.
        const IS_FSCTL = 1;
    }
}

/// IOCTL request. An output buffer in a request has no meaning; its size counts for the charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlRequest<'a> {
    /// The control code.
    pub code: ControlCode,
    /// The open, or [`FileId::PREVIOUS`] where there is none.
    pub file: FileId,
    /// The input.
    pub input: Payload<'a>,
    /// The most bytes of input to come back.
    pub max_input: u32,
    /// Bytes of output sent.
    pub output_count: u32,
    /// The most bytes of output to come back.
    pub max_output: u32,
    /// The flags.
    pub flags: IoctlFlags,
}

const REQUEST: u16 = 57;
const RESPONSE: u16 = 49;

impl<'a> IoctlRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        body.skip(2)?;
        let code = body.get()?;
        let file = body.get()?;
        let (input_at, input_len): (u32, u32) = (body.get()?, body.get()?);
        let max_input = body.get()?;
        body.skip(4)?;
        let output_count = body.get()?;
        let max_output = body.get()?;
        let flags = body.get()?;
        let input = body.part("input buffer", input_at as usize, input_len as usize)?;
        Ok(Self { code, file, input, max_input, output_count, max_output, flags })
    }

    /// Appends the body. The place in `input` is not used, and `output_count` bytes are not sent.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const INPUT_AT: u32 = 120;
        REQUEST.put(out);
        zeros(out, 2);
        self.code.put(out);
        self.file.put(out);
        INPUT_AT.put(out);
        length::<u32>(self.input.bytes.len()).put(out);
        self.max_input.put(out);
        INPUT_AT.put(out);
        self.output_count.put(out);
        self.max_output.put(out);
        self.flags.put(out);
        zeros(out, 4);
        out.extend_from_slice(self.input.bytes);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        let input = u32::try_from(self.input.bytes.len()).unwrap_or(u32::MAX);
        let sent = input.saturating_add(self.output_count);
        sent.max(self.max_input.saturating_add(self.max_output))
    }
}

/// Bytes of the fixed part of a response.
const HEAD_BYTES: usize = 48;

/// The offset of the output in a response, from its header on.
const OUTPUT_AT: u32 = 112;
const _: () = assert!(HEADER_BYTES + HEAD_BYTES == OUTPUT_AT as usize);

/// An IOCTL response whose output is appended to the reply in place: room for the fixed part is
/// made first and filled in when the output is there.
#[derive(Clone, Copy, Debug)]
#[must_use = "the fixed part is blank until `finish`"]
pub struct IoctlReply {
    body: usize,
}

impl IoctlReply {
    /// Bytes of the fixed part.
    pub const HEAD_BYTES: usize = HEAD_BYTES;

    /// Makes room for the fixed part. Output belongs right after it.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        let body = out.len();
        zeros(out, HEAD_BYTES);
        Self { body }
    }

    /// Fills the fixed part in for the output, which is everything that was appended since
    /// [`IoctlReply::begin`]. Gives the number of bytes of it.
    pub fn finish(self, out: &mut [u8], code: ControlCode, file: FileId) -> u32 {
        let len = out.len().saturating_sub(self.body).saturating_sub(HEAD_BYTES);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let mut head = [0; HEAD_BYTES];
        head[0..2].copy_from_slice(&RESPONSE.to_le_bytes());
        head[4..8].copy_from_slice(&code.0.to_le_bytes());
        head[8..16].copy_from_slice(&file.persistent.to_le_bytes());
        head[16..24].copy_from_slice(&file.volatile.to_le_bytes());
        head[24..28].copy_from_slice(&OUTPUT_AT.to_le_bytes());
        head[32..36].copy_from_slice(&OUTPUT_AT.to_le_bytes());
        head[36..40].copy_from_slice(&len.to_le_bytes());
        patch(out, self.body, &head);
        len
    }
}

/// IOCTL response.
#[cfg(any(test, feature = "client"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlResponse<'a> {
    /// The control code.
    pub code: ControlCode,
    /// The open.
    pub file: FileId,
    /// The output.
    pub output: &'a [u8],
}

#[cfg(any(test, feature = "client"))]
impl<'a> IoctlResponse<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, RESPONSE)?;
        body.skip(2)?;
        let code = body.get()?;
        let file = body.get()?;
        body.skip(8)?;
        let (at, len): (u32, u32) = (body.get()?, body.get()?);
        let output = body.part("output buffer", at as usize, len as usize)?.bytes;
        Ok(Self { code, file, output })
    }
}
