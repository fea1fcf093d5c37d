//! FLUSH (MS-SMB2 §3.3.5.11): makes the data of a file, or the entries of a directory, and its own
//! name safe from a power cut.

use super::access::WRITES;
use super::stable::stabilize;
use super::{Context, Done, Outcome};
use crate::host::Host;
use crate::wire::{FlushRequest, FlushResponse, Status};
use alloc::vec::Vec;

pub(super) async fn flush<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = FlushRequest::decode(cx.message)?;
    let open = cx.open(request.file)?;
    // The same bits allow to add files to a directory.
    if !open.granted.intersects(WRITES) {
        return Err(Status::ACCESS_DENIED.into());
    }
    stabilize(cx.host, &open).await?;
    FlushResponse {}.encode(out);
    Ok(Done::on(open.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Reply, TestHost, TestServer};
    use crate::wire::{AccessMask, Command, FileId};
    use std::vec;
    use weir_core::FsError;

    fn request(host: &TestHost, file: FileId) -> Reply {
        host.call(Command::Flush, |out| FlushRequest { file }.encode(out), flush)
    }

    #[test]
    fn who_may_write_may_flush() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        server.dir("d", 0o755, 7);
        let ann = server.session(7);
        for path in ["f", "d"] {
            for access in [AccessMask::WRITE_DATA, AccessMask::APPEND_DATA] {
                let id = ann.open(path, access);
                let reply = request(&ann, id);
                assert_eq!(FlushResponse::decode(reply.ok()), Ok(FlushResponse {}));
                assert_eq!(reply.outcome, Ok(Done::on(id)));
            }
            let id = ann.open(path, AccessMask::READ_DATA | AccessMask::WRITE_ATTRIBUTES);
            assert_eq!(request(&ann, id).status(), Status::ACCESS_DENIED);
        }
        assert_eq!(request(&ann, FileId::default()).status(), Status::FILE_CLOSED);
    }

    #[test]
    fn data_and_name_are_made_stable() {
        let server = TestServer::new();
        server.dir("d", 0o755, 7);
        server.file("d/f", b"", 0o644, 7);
        let ann = server.session(7);
        let [top, dir, file] = ["", "d", "d/f"].map(|path| server.object(path).0);
        for (path, wanted) in [("d/f", vec![file, dir]), ("d", vec![dir, top]), ("", vec![top])] {
            request(&ann, ann.open(path, AccessMask::WRITE_DATA)).ok();
            assert_eq!(server.store.take_stabilized(), wanted, "{path}");
        }
    }

    #[test]
    fn a_failure_to_make_data_safe_is_told() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::WRITE_DATA);
        server.store.fail_after(0, FsError::Io);
        assert_eq!(request(&ann, id).status(), Status::UNEXPECTED_IO_ERROR);
        server.remove("f");
        assert_eq!(request(&ann, id).status(), Status::FILE_DELETED);
    }
}
