//! OPLOCK_BREAK (MS-SMB2 §3.3.5.22): the acknowledgement that an oplock or a lease is broken. None
//! is granted, so nothing can be acknowledged.

use super::{Context, Outcome};
use crate::host::Host;
use crate::wire::{OplockBreakRequest, Status};

pub(super) fn oplock_break<H: Host>(cx: &Context<'_, H>) -> Outcome {
    match OplockBreakRequest::decode(cx.message)? {
        OplockBreakRequest::Oplock(broken) => {
            cx.open(broken.file)?;
            // No oplock is breaking (MS-SMB2 §3.3.5.22.1).
            Err(Status::INVALID_DEVICE_STATE.into())
        }
        // No client has a table of leases (MS-SMB2 §3.3.5.22.2).
        OplockBreakRequest::Lease(_) => Err(Status::OBJECT_NAME_NOT_FOUND.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{TestHost, TestServer};
    use crate::wire::{
        AccessMask, Command, FileId, LeaseBreakAck, LeaseState, OplockBreak, OplockLevel,
    };
    use alloc::vec::Vec;

    fn answer(host: &TestHost, encode: impl Fn(&mut Vec<u8>)) -> Status {
        let operation = async |cx: &Context<'_, _>, _: &mut Vec<u8>| oplock_break(cx);
        host.start(Command::OplockBreak, encode, operation).poll().unwrap().status()
    }

    #[test]
    fn nothing_can_be_acknowledged() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        let ann = server.session(7);
        let level = OplockLevel::NONE;
        let file = ann.open("f", AccessMask::READ_DATA);
        let none = FileId { persistent: 99, volatile: 99 };
        for (file, status) in [(file, Status::INVALID_DEVICE_STATE), (none, Status::FILE_CLOSED)] {
            assert_eq!(answer(&ann, |out| OplockBreak { level, file }.encode(out)), status);
        }
        let lease = LeaseBreakAck { key: [7; 16], state: LeaseState::empty() };
        assert_eq!(answer(&ann, |out| lease.encode(out)), Status::OBJECT_NAME_NOT_FOUND);
        assert_eq!(answer(&ann, |out| out.extend_from_slice(&[9, 0])), Status::INVALID_PARAMETER);
    }
}
