//! Messages without fields: the requests LOGOFF (MS-SMB2 §2.2.7), TREE_DISCONNECT (§2.2.11),
//! ECHO (§2.2.28) and CANCEL (§2.2.30), and the responses to LOGOFF (§2.2.8), TREE_DISCONNECT
//! (§2.2.12), FLUSH (§2.2.18), LOCK (§2.2.27) and ECHO (§2.2.29).

use super::codec::layout;

/// A message without fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Empty;

layout!(both Empty = 4: ; 2);

/// LOGOFF request.
pub type LogoffRequest = Empty;
/// LOGOFF response.
pub type LogoffResponse = Empty;
/// TREE_DISCONNECT request.
pub type TreeDisconnectRequest = Empty;
/// TREE_DISCONNECT response.
pub type TreeDisconnectResponse = Empty;
/// ECHO request.
pub type EchoRequest = Empty;
/// ECHO response.
pub type EchoResponse = Empty;
/// CANCEL request. It has no response.
pub type CancelRequest = Empty;
/// FLUSH response.
pub type FlushResponse = Empty;
/// LOCK response.
pub type LockResponse = Empty;
