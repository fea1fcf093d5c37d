//! The client's side of the wire: encoding calls and decoding replies, for load generators, tests
//! and calls of a server to its clients ([`Outgoing`]).
//!
//! Calls are appended to the caller's buffer, so that many leave in one send; results borrow from
//! the received record. Neither allocates per call. There is no connection, and but for
//! [`Outgoing`] no retransmission and no matching of replies to calls here; replies are cut out of
//! the stream by [`Deframer`](crate::rpc::Deframer).
//!
//! ```
//! use weir_nfs::client::{Caller, Reply};
//! use weir_nfs::v3::wire::{FileHandle3, GetattrArgs};
//!
//! let caller = Caller::sys(&weir_core::Credentials::ROOT, b"client-1");
//! let mut out = Vec::new();
//! for xid in 0..4 {
//!     caller.call(&mut out, xid, &GetattrArgs { object: FileHandle3(b"handle") });
//! }
//! // Send `out`; a record that came back is read like this:
//! fn size(record: &[u8]) -> Option<u64> {
//!     match Reply::parse(record).ok()?.results::<GetattrArgs<'_>>().ok()? {
//!         weir_nfs::v3::wire::Res::Ok(ok) => Some(ok.attributes.size),
//!         weir_nfs::v3::wire::Res::Fail(..) => None,
//!     }
//! }
//! ```

mod acl;
mod call;
mod mount;
mod nfs3;
mod nlm;
mod nsm;
mod outgoing;
mod reply;
mod rpcbind;
#[cfg(test)]
mod tests;

pub use acl::AclNull;
pub use call::{Caller, RemoteCall, padding};
pub use mount::{Dump, ExportList, Mnt, MountNull, Umnt, Umntall};
pub use nfs3::Null;
pub use nlm::{
    NlmCancel, NlmCancelMsg, NlmCancelRes, NlmFreeAll, NlmGranted, NlmGrantedMsg, NlmGrantedRes,
    NlmLock, NlmLockMsg, NlmLockRes, NlmNmLock, NlmNull, NlmShare, NlmTest, NlmTestMsg, NlmTestRes,
    NlmUnlock, NlmUnlockMsg, NlmUnlockRes, NlmUnshare,
};
pub use outgoing::{Datagram, Ended, Outgoing, Target, What};
pub use reply::{CallError, Refused, Reply};
pub use rpcbind::{
    Getaddr, Getport, Gettime, Getversaddr, PortmapDump, PortmapSet, PortmapUnset, RpcbindDump,
    RpcbindNull, RpcbindSet, RpcbindUnset,
};
