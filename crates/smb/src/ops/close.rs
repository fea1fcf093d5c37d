//! CLOSE (MS-SMB2 §3.3.5.10), and the end of opens that nobody closes.

use super::info::file_info;
use super::{Context, Done, Outcome};
use crate::host::{Host, ObjectOf, Volume};
use crate::open::{Ending, Place};
use crate::wire::{CloseFlags, CloseRequest, CloseResponse, NetworkOpenInfo, Status};
use alloc::vec::Vec;
use weir_core::{Credentials, Name, Store};
use weir_state::OpenId;

pub(super) async fn close<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = CloseRequest::decode(cx.message)?;
    let id = cx.open(request.file)?.id;
    let open = cx.host.take(id).ok_or(Status::FILE_CLOSED)?;
    let mut response =
        CloseResponse { flags: CloseFlags::empty(), info: NetworkOpenInfo::default() };
    if request.flags.contains(CloseFlags::POSTQUERY_ATTRIB)
        && let Ok((attr, details)) = cx.host.store().details(&open.object).await
    {
        response.flags = CloseFlags::POSTQUERY_ATTRIB;
        response.info = (&file_info(&attr, &details, false)).into();
    }
    finish(cx.host, &open).await;
    response.encode(out);
    Ok(Done::on(id))
}

/// Ends an open that was taken out of its session by CLOSE: as [`end`].
pub(super) async fn finish<H: Host>(host: &H, open: &H::Open) {
    let place = || host.with(open, |state| state.place.clone());
    end(host, open.shared, &open.object, place).await;
}

/// Ends an open that is in no session any more: by CLOSE, LOGOFF or TREE_DISCONNECT, or because its
/// connection is lost. `place` gives the name by which it was made, or to which it was renamed. If
/// it is the last one of a file that is to be deleted, the file is deleted before the open ends, so
/// that no client opens the file in between. A rename of the file that is under way is applied
/// first. The right to delete was decided when the file was opened and is not checked again.
///
/// A directory that has entries by now stays, and so does an object whose name now leads to another
/// object: the response of CLOSE has no status for either.
pub async fn end<V: Volume>(
    volume: &V,
    shared: OpenId,
    object: &ObjectOf<V>,
    place: impl Fn() -> Option<Place<ObjectOf<V>>>,
) {
    let store = volume.store();
    let key = store.key(object);
    let mut names = None;
    let Place { dir, name } = loop {
        match volume.begin_close(shared, &key, &place, names.is_some()).await {
            Ending::Due => names = Some(volume.lock_names(&key).await),
            Ending::Deletes(place) => break place,
            Ending::Closed => return,
        }
    };
    if let Ok(name) = Name::new(&name) {
        let _ = store.remove_this(&dir, name, object, &Credentials::ROOT).await;
    }
    volume.close(shared).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Reply, TestHost, TestServer};
    use crate::wire::{AccessMask, Command, FileAttributes, FileId};
    use core::cell::Cell;
    use std::rc::Rc;
    use weir_core::testing::{block_on, interrupt_after};
    use weir_state::{OpenMode, Refused, Sharing};

    fn request(host: &TestHost, file: FileId, flags: CloseFlags) -> Reply {
        let encode = |out: &mut Vec<u8>| CloseRequest { flags, file }.encode(out);
        host.call(Command::Close, encode, close)
    }

    fn close_it(host: &TestHost, file: FileId) -> Reply {
        request(host, file, CloseFlags::empty())
    }

    fn delete_pending(host: &TestHost, file: FileId) {
        block_on(host.set_delete_pending(host.opened(file).shared, true)).unwrap();
    }

    fn delete_on_close(host: &TestHost, file: FileId) {
        block_on(host.set_delete_on_close(host.opened(file).shared, true)).unwrap();
    }

    #[test]
    fn an_open_is_closed_once_and_by_its_session_alone() {
        let server = TestServer::new();
        server.file("f", b"hello", 0o644, 7);
        let (ann, bob) = (server.session(7), server.session(7));
        let id = ann.open("f", AccessMask::READ_DATA);
        assert_eq!(close_it(&bob, id).status(), Status::FILE_CLOSED);
        let reply = close_it(&ann, id);
        let response = CloseResponse::decode(reply.ok()).unwrap();
        assert_eq!(
            (response.flags, response.info),
            (CloseFlags::empty(), NetworkOpenInfo::default())
        );
        assert_eq!(reply.outcome, Ok(Done::on(id)));
        assert_eq!((server.opens(), close_it(&ann, id).status()), (0, Status::FILE_CLOSED));
        assert!(server.find("f").is_some());
    }

    #[test]
    fn the_attributes_come_where_they_are_wanted_and_there() {
        let server = TestServer::new();
        server.file("f", b"hello", 0o644, 7);
        let ann = server.session(7);
        let post = |id| {
            let reply = request(&ann, id, CloseFlags::POSTQUERY_ATTRIB);
            CloseResponse::decode(reply.ok()).unwrap()
        };
        let response = post(ann.open("f", AccessMask::READ_DATA));
        assert_eq!(response.flags, CloseFlags::POSTQUERY_ATTRIB);
        assert_eq!(response.info.end_of_file, 5);
        assert_eq!(response.info.attributes, FileAttributes::ARCHIVE);
        let id = ann.open("f", AccessMask::READ_DATA);
        server.remove("f");
        assert_eq!(post(id).flags, CloseFlags::empty());
    }

    #[test]
    fn the_last_close_deletes_whoever_wanted_it() {
        let server = TestServer::new();
        server.dir("d", 0o555, 9);
        server.file("d/f", b"", 0o400, 9);
        let (ann, bob) = (server.session(7), server.session(8));
        let (one, other) =
            (ann.open("d/f", AccessMask::DELETE), bob.open("d/f", AccessMask::DELETE));
        delete_on_close(&ann, one);
        close_it(&ann, one).ok();
        assert!(server.find("d/f").is_some(), "it is open still");
        close_it(&bob, other).ok();
        assert!(server.find("d/f").is_none(), "the right to was decided before");
    }

    #[test]
    fn nobody_opens_a_file_while_its_last_close_deletes_it() {
        let server = TestServer::new();
        server.file("f", b"", 0o666, 7);
        let (ann, bob) = (server.session(7), server.session(8));
        let id = ann.open("f", AccessMask::DELETE);
        delete_on_close(&ann, id);
        let (key, found) = (ann.opened(id).key, Rc::new(Cell::new(None)));
        let tell = Rc::clone(&found);
        interrupt_after(0, move || {
            let mode = OpenMode { access: Sharing::WRITE, share: Sharing::all() };
            tell.set(Some(block_on(bob.reserve(&key, mode))));
        });
        close_it(&ann, id).ok();
        assert_eq!(found.take(), Some(Err(Refused::DeletePending)));
        assert!(server.find("f").is_none() && server.opens() == 0);
    }

    #[test]
    fn the_name_goes_by_which_the_deletion_was_asked_for() {
        let server = TestServer::new();
        server.dir("a", 0o755, 7);
        server.dir("b", 0o755, 8);
        let file = server.file("b/f", b"data", 0o644, 8);
        let to = server.object("a").0;
        let link = Name::new(b"l").unwrap();
        block_on(server.store.link(&file, &to, link, &Credentials::ROOT)).unwrap();
        let (ann, bob) = (server.session(7), server.session(8));
        let id = ann.open("a/l", AccessMask::DELETE);
        let other = bob.open("b/f", AccessMask::READ_DATA);
        delete_pending(&ann, id);
        close_it(&ann, id).ok();
        assert!(server.find("a/l").is_some(), "it is open still");
        close_it(&bob, other).ok();
        assert!(server.find("a/l").is_none());
        assert_eq!(server.content("b/f"), b"data");
        // A deletion that is withdrawn leaves nothing behind for later ones.
        block_on(server.store.link(&file, &to, link, &Credentials::ROOT)).unwrap();
        let (id, other) =
            (ann.open("a/l", AccessMask::DELETE), bob.open("b/f", AccessMask::DELETE));
        delete_pending(&ann, id);
        close_it(&ann, id).ok();
        block_on(bob.set_delete_pending(bob.opened(other).shared, false)).unwrap();
        delete_pending(&bob, other);
        close_it(&bob, other).ok();
        assert!(server.find("a/l").is_some() && server.find("b/f").is_none());
    }

    #[test]
    fn a_namesake_and_a_full_directory_are_not_deleted() {
        let server = TestServer::new();
        server.file("f", b"old", 0o644, 7);
        server.dir("d", 0o755, 7);
        let ann = server.session(7);
        let file = ann.open("f", AccessMask::DELETE);
        delete_pending(&ann, file);
        server.rename("f", "elsewhere");
        server.file("f", b"new", 0o644, 7);
        close_it(&ann, file).ok();
        assert_eq!(
            (server.content("f"), server.content("elsewhere")),
            (b"new".to_vec(), b"old".to_vec())
        );
        let dir = ann.open("d", AccessMask::DELETE);
        delete_pending(&ann, dir);
        server.file("d/in", b"", 0o644, 7);
        assert_eq!(close_it(&ann, dir).status(), Status::SUCCESS);
        assert!(server.find("d/in").is_some());
        server.remove("d/in");
        let dir = ann.open("d", AccessMask::DELETE);
        delete_on_close(&ann, dir);
        close_it(&ann, dir).ok();
        assert!(server.find("d").is_none());
    }

    #[test]
    fn the_end_of_a_session_is_the_end_of_its_opens() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::DELETE);
        delete_on_close(&ann, id);
        let open = ann.take(id).unwrap();
        block_on(finish(&ann, &open));
        assert!(server.find("f").is_none() && server.opens() == 0);
    }

    #[test]
    fn a_request_that_is_none_is_refused() {
        let ann = TestServer::new().session(7);
        let reply = ann.call(Command::Close, |out| out.extend_from_slice(&[24, 0]), close);
        assert_eq!(reply.status(), Status::INVALID_PARAMETER);
    }
}
