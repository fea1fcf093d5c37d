//! An open of a named pipe in `IPC$`.

use crate::sync::Mutex;
use weir_smb::pipe::Pipe;
use weir_smb::wire::FileId;

/// The open.
pub(crate) struct PipeOpen {
    pub(super) id: FileId,
    pub(super) tree: u32,
    pub(super) pipe: Mutex<Pipe>,
}
