//! Messages of SMB2 in dialect 3.1.1 (MS-SMB2 §2.2): bytes to types and back.
//!
//! A file per command, named as the standard names it; headers, framing and types that several
//! commands share in files of their own. Nothing here decides anything.
//!
//! Offsets in messages count from the first byte of the header, so decoders take the whole message.
//! Names, tokens and data borrow from it; names stay UTF-16. Encoders append a body right after its
//! header, which stands in the last [`HEADER_BYTES`] of the vector. Decoding allocates nothing.

mod codec;

mod access;
mod attributes;
mod chain;
mod command;
mod credit;
mod error;
mod error_response;
mod file_id;
mod header;
pub mod netbios;
mod output;
mod smb1;
mod status;

mod change_notify;
mod close;
mod create;
mod create_context;
mod empty;
mod flush;
mod ioctl;
mod lock;
mod negotiate;
mod negotiate_context;
mod oplock_break;
mod query_directory;
mod query_info;
mod read;
mod session_setup;
mod set_info;
mod tree_connect;
mod write;

#[cfg(test)]
mod captures;
#[cfg(test)]
mod properties;
#[cfg(any(test, feature = "client"))]
pub mod samples;

pub use access::{AccessMask, ShareAccess};
pub use attributes::{FileAttributes, NetworkOpenInfo};
pub use chain::{Chain, ChainWriter, Element};
pub use change_notify::{ChangeNotifyFlags, ChangeNotifyRequest, CompletionFilter};
pub use close::{CloseFlags, CloseRequest, CloseResponse};
pub use codec::Payload;
pub use command::{Command, UnknownCommand};
pub use create::{
    CreateAction, CreateDisposition, CreateOptions, CreateRequest, CreateResponse,
    CreateResponseFlags, ImpersonationLevel, OplockLevel,
};
pub use create_context::{
    CreateContexts, Lease, LeaseFlags, LeaseState, LeaseVersion2, RequestContext, ResponseContext,
    context_name,
};
pub use credit::charge_for;
pub use empty::{
    CancelRequest, EchoRequest, EchoResponse, Empty, FlushResponse, LockResponse, LogoffRequest,
    LogoffResponse, TreeDisconnectRequest, TreeDisconnectResponse,
};
pub use error::WireError;
pub use error_response::{ErrorResponse, REPARSE_TAG_SYMLINK, SymlinkError};
pub use file_id::FileId;
pub use flush::FlushRequest;
pub use header::{HEADER_BYTES, Header, HeaderFlags, Protocol, SIGNATURE_AT, TreeOrAsync};
pub(crate) use header::{NEXT_COMMAND_AT, SEALED};
#[cfg(any(test, feature = "client"))]
pub use ioctl::IoctlResponse;
pub use ioctl::{ControlCode, IoctlFlags, IoctlReply, IoctlRequest};
pub use lock::{LockFlags, LockRange, LockRanges, LockRequest};
pub use negotiate::{Capabilities, Dialect, NegotiateRequest, NegotiateResponse, SecurityMode};
pub use negotiate_context::{
    CompressionFlags, ContextType, HashAlgorithm, NegotiateContext, NegotiateContexts, Numbers,
    TransportFlags,
};
pub use oplock_break::{LeaseBreakAck, OplockBreak, OplockBreakRequest};
pub use output::OutputReply;
#[cfg(any(test, feature = "client"))]
pub use output::output;
pub use query_directory::{QueryDirectoryFlags, QueryDirectoryRequest};
pub use query_info::{InfoType, QueryInfoFlags, QueryInfoRequest, SecurityInformation};
#[cfg(any(test, feature = "client"))]
pub use read::ReadResponse;
pub use read::{Channel, ReadFlags, ReadReply, ReadRequest};
pub use session_setup::{
    SessionFlags, SessionSetupFlags, SessionSetupRequest, SessionSetupResponse,
};
pub use set_info::{SetInfoRequest, SetInfoResponse};
pub use smb1::Smb1Negotiate;
pub use status::Status;
pub use tree_connect::{
    ShareCapabilities, ShareFlags, ShareType, TreeConnectFlags, TreeConnectRequest,
    TreeConnectResponse,
};
pub use write::{WriteFlags, WriteRequest, WriteResponse};
