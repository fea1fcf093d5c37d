//! Renames of files whose opens other sessions are about to close.

use super::super::testing::{Ask, Client, Fixture};
use super::super::tree;
use super::super::user_session::UserSession;
use super::paths;
use crate::sync::Arc;
use weir_core::testing::block_on;
use weir_core::{Name, Store};
use weir_smb::wire::{CreateOptions, FileId, Status};

/// Opens a file of the volume `open` that is to be deleted when the open is closed.
fn delete_on_close(client: &mut Client, name: &str) -> FileId {
    let options = CreateOptions::NON_DIRECTORY_FILE | CreateOptions::DELETE_ON_CLOSE;
    client.ask(Ask::open_as(name, options)).file()
}

fn is_there(fixture: &Fixture, name: &str) -> bool {
    let volume = fixture.volume("open");
    let name = Name::new(name.as_bytes()).unwrap();
    block_on(volume.store.lookup(&volume.store.root(), name)).is_ok()
}

fn only_session(fixture: &Fixture) -> Arc<UserSession> {
    let mut sessions = fixture.server.engine().smb.sessions(0, 2);
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

#[test]
fn a_rename_reaches_the_opens_of_a_session_that_ends() {
    let fixture = Fixture::start();
    let mut one = fixture.log_in("open");
    delete_on_close(&mut one, "file");
    let session = only_session(&fixture);
    let mut other = fixture.log_in("open");
    let renaming = other.open("file");
    // The session is over, and its opens are not closed yet.
    let opens = session.end();
    assert_eq!(opens.len(), 1);
    let smb = &fixture.server.engine().smb;
    assert!(smb.session(session.id).is_none() && smb.sessions(0, 3).len() == 1);
    assert_eq!(other.ask(Ask::rename(renaming, "new")).status(), Status::SUCCESS);
    assert_eq!(paths(&fixture), ["new", "new"]);
    assert_eq!(other.ask(Ask::close(renaming)).status(), Status::SUCCESS);
    assert!(smb.holder(session.id).is_some());
    block_on(tree::close_all(smb, &session, opens));
    assert!(!is_there(&fixture, "new") && !is_there(&fixture, "file"));
    assert!(smb.holder(session.id).is_none(), "it goes with its last open");
}

#[test]
fn a_rename_reaches_an_open_that_is_being_closed_and_the_name_that_it_leaves() {
    for last in [true, false] {
        let fixture = Fixture::start();
        let mut one = fixture.log_in("open");
        let file = delete_on_close(&mut one, "file");
        let session = only_session(&fixture);
        let mut other = fixture.log_in("open");
        let renaming = other.open("file");
        let taken = session.take(file).unwrap();
        assert!(session.take(file).is_none());
        assert_eq!(one.ask(Ask::query(file)).status(), Status::FILE_CLOSED);
        assert_eq!(other.ask(Ask::rename(renaming, "new")).status(), Status::SUCCESS);
        if last {
            assert_eq!(other.ask(Ask::close(renaming)).status(), Status::SUCCESS);
        }
        block_on(tree::close_all(&fixture.server.engine().smb, &session, vec![taken]));
        if !last {
            assert!(is_there(&fixture, "new"), "it is open still");
            assert_eq!(other.ask(Ask::close(renaming)).status(), Status::SUCCESS);
        }
        assert!(!is_there(&fixture, "new") && !is_there(&fixture, "file"));
    }
}
