//! A request as the contract of its volume sees it, and the credits that it must have paid, before
//! it is carried out.

use crate::fscc::CopyChunks;
use crate::limits::IO_BYTES_MAX;
use crate::wire::{
    ChangeNotifyRequest, Command, ControlCode, FileId, FlushRequest, Header, IoctlRequest,
    QueryDirectoryRequest, QueryInfoRequest, ReadRequest, SetInfoRequest, Status, WireError,
    WriteRequest, charge_for,
};
use weir_core::OpClass;

/// A request on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its kind.
    pub class: OpClass,
    /// Bytes that a READ or WRITE can move.
    pub bytes: u32,
    /// The open that a READ or WRITE is for.
    pub file: Option<FileId>,
    /// Bytes that the response can add to its fixed part.
    pub response_bytes: u32,
    /// Bytes that the operation may hold beside its request and its response: the largest chunk of
    /// a copy, which is read before it is written.
    pub held_bytes: u32,
    /// Whether the operation may wait for other clients, or for permits of its own: a LOCK, a
    /// CHANGE_NOTIFY, a copy. Its time is not the store's then.
    pub waits: bool,
    /// The larger payload of request and response, for which credits are paid.
    payload: u32,
}

const METADATA: Route = Route {
    class: OpClass::Metadata,
    bytes: 0,
    file: None,
    response_bytes: 0,
    held_bytes: 0,
    waits: false,
    payload: 0,
};

impl Route {
    /// The route of a request for `command`, and whether its credits suffice (MS-SMB2 §3.3.5.2.5).
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`]: it is malformed, too large, or has paid too little.
    #[inline]
    pub fn of(command: Command, header: &Header, message: &[u8]) -> Result<Self, Status> {
        let route = Self::decode(command, message).map_err(|_| Status::INVALID_PARAMETER)?;
        let paid = header.credit_charge.max(1);
        if route.payload > IO_BYTES_MAX || charge_for(route.payload) > paid {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(route)
    }

    #[inline]
    fn decode(command: Command, message: &[u8]) -> Result<Self, WireError> {
        Ok(match command {
            Command::Read => {
                let request = ReadRequest::decode(message)?;
                let (bytes, file) = (request.length, Some(request.file));
                let (class, payload) = (OpClass::Read, bytes);
                Self { class, bytes, file, response_bytes: bytes, payload, ..METADATA }
            }
            Command::Write => {
                let request = WriteRequest::decode(message)?;
                let (bytes, file) = (request.payload_bytes(), Some(request.file));
                Self { class: OpClass::Write, bytes, file, payload: bytes, ..METADATA }
            }
            Command::Flush => {
                FlushRequest::decode(message)?;
                Self { class: OpClass::Commit, ..METADATA }
            }
            Command::Ioctl => {
                let request = IoctlRequest::decode(message)?;
                let copies = matches!(
                    request.code,
                    ControlCode::SRV_COPYCHUNK | ControlCode::SRV_COPYCHUNK_WRITE
                );
                Self {
                    response_bytes: request.max_output,
                    held_bytes: if copies { largest_chunk(request.input.bytes) } else { 0 },
                    waits: copies,
                    payload: request.payload_bytes(),
                    ..METADATA
                }
            }
            Command::Lock => Self { waits: true, ..METADATA },
            Command::QueryDirectory => {
                let request = QueryDirectoryRequest::decode(message)?;
                let response_bytes = request.max_output;
                Self { response_bytes, payload: request.payload_bytes(), ..METADATA }
            }
            Command::QueryInfo => {
                let request = QueryInfoRequest::decode(message)?;
                let response_bytes = request.max_output;
                Self { response_bytes, payload: request.payload_bytes(), ..METADATA }
            }
            Command::SetInfo => {
                let request = SetInfoRequest::decode(message)?;
                Self { payload: request.payload_bytes(), ..METADATA }
            }
            Command::ChangeNotify => {
                let request = ChangeNotifyRequest::decode(message)?;
                Self { waits: true, payload: request.payload_bytes(), ..METADATA }
            }
            _ => METADATA,
        })
    }
}

/// Bytes of the largest chunk of a copy; none if it is refused.
fn largest_chunk(input: &[u8]) -> u32 {
    let copy = CopyChunks::decode(input);
    copy.map_or(0, |copy| copy.chunks().map(|chunk| chunk.length).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{HEADER_BYTES, IoctlFlags, Payload};
    use alloc::vec::Vec;

    /// A copy of chunks of these lengths.
    fn copy(lengths: &[u32]) -> Vec<u8> {
        let mut input = [0; 24].to_vec();
        input.extend_from_slice(&u32::try_from(lengths.len()).unwrap().to_le_bytes());
        input.extend_from_slice(&[0; 4]);
        for length in lengths {
            input.extend_from_slice(&[0; 16]);
            input.extend_from_slice(&length.to_le_bytes());
            input.extend_from_slice(&[0; 4]);
        }
        input
    }

    fn ioctl(code: ControlCode, input: &[u8]) -> Route {
        let request = IoctlRequest {
            code,
            file: FileId::default(),
            input: Payload { bytes: input, at: 0 },
            max_input: 0,
            output_count: 0,
            max_output: 12,
            flags: IoctlFlags::IS_FSCTL,
        };
        let mut message = [0; HEADER_BYTES].to_vec();
        request.encode(&mut message);
        Route::decode(Command::Ioctl, &message).unwrap()
    }

    #[test]
    fn a_copy_holds_its_largest_chunk() {
        let input = copy(&[1 << 16, 1 << 20, 7]);
        for code in [ControlCode::SRV_COPYCHUNK, ControlCode::SRV_COPYCHUNK_WRITE] {
            let route = ioctl(code, &input);
            assert_eq!((route.held_bytes, route.response_bytes, route.waits), (1 << 20, 12, true));
        }
        let other = ioctl(ControlCode::SET_ZERO_DATA, &input);
        assert_eq!((other.held_bytes, other.waits), (0, false));
        let refused = ioctl(ControlCode::SRV_COPYCHUNK, &copy(&[1 << 30]));
        assert_eq!(refused.held_bytes, 0, "it is refused and reads nothing");
    }
}
