//! A request as the contract of its volume sees it, and the credits that it must have paid, before
//! it is carried out.

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
                let response_bytes = request.max_output;
                let waits = matches!(
                    request.code,
                    ControlCode::SRV_COPYCHUNK | ControlCode::SRV_COPYCHUNK_WRITE
                );
                Self { response_bytes, waits, payload: request.payload_bytes(), ..METADATA }
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
