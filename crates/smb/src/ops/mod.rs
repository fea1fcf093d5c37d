//! The commands on files, one in each file (MS-SMB2 §3.3.5.9 to §3.3.5.21): from a request to the
//! body of its response, over a [`Host`].
//!
//! Not here: sessions, tree connects, message ids, signatures, and the frame around the response.

mod access;
mod close;
mod create;
mod descriptor;
mod error;
mod flush;
mod info;
mod ioctl;
mod lock;
mod oplock_break;
pub mod pipe;
mod query_directory;
mod query_info;
mod read;
mod set_info;
mod space;
mod stable;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod walk;
mod write;

use crate::host::Host;
use crate::wire::{Command, FileId, Header, Status};
use alloc::boxed::Box;
use alloc::vec::Vec;
pub use close::end;
use core::cell::Cell;
pub use error::{Failure, refusal};
pub use ioctl::ends_connection;
use weir_core::Shared;

/// A request with its surroundings.
pub struct Context<'a, H> {
    /// The server around the operation.
    pub host: &'a H,
    /// The header of the request.
    pub header: &'a Header,
    /// The request, from its header on.
    pub message: &'a Shared,
    /// The most bytes that a body may add to a response, as the transport allows.
    pub response_max: usize,
    /// The open of the request before it in a related compound (MS-SMB2 §3.3.5.2.7.2), for which
    /// [`FileId::PREVIOUS`] stands.
    related: Option<FileId>,
    /// The open that the request names, once that is known.
    named: Cell<Option<FileId>>,
}

/// The end of an operation that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The status: success, or another one that comes with a body, which is a warning or the end
    /// of a copy half-way.
    pub status: Status,
    /// Payload that a READ or WRITE moved, in bytes.
    pub moved: u64,
    /// The open that the operation used or made, for the next request of a related compound.
    pub file: Option<FileId>,
}

impl Done {
    /// Success, with the open `file`.
    #[must_use]
    pub const fn on(file: FileId) -> Self {
        Self { status: Status::SUCCESS, moved: 0, file: Some(file) }
    }

    /// The same with payload moved.
    #[must_use]
    pub const fn moved(self, moved: u64) -> Self {
        Self { moved, ..self }
    }

    /// The same with a warning.
    #[must_use]
    pub const fn with(self, status: Status) -> Self {
        Self { status, ..self }
    }
}

/// The result of an operation. Where it fails, what it appended to the response is dropped.
pub type Outcome = Result<Done, Failure>;

/// Carries out the request, which is of this `command`, and appends the body of its response to
/// `out`. On failure `out` has no defined content, and the caller drops it.
///
/// The futures of rare commands are boxed, so that the state of a request that waits is as small as
/// the common ones need.
///
/// # Errors
/// [`Failure`]; [`Status::NOT_SUPPORTED`] for commands that are not on files.
#[inline]
pub async fn serve<H: Host>(cx: &Context<'_, H>, command: Command, out: &mut Vec<u8>) -> Outcome {
    match command {
        Command::Read => read::read(cx, out).await,
        Command::Write => write::write(cx, out).await,
        Command::Create => Box::pin(create::create(cx, out)).await,
        Command::Close => Box::pin(close::close(cx, out)).await,
        Command::Flush => Box::pin(flush::flush(cx, out)).await,
        Command::Lock => Box::pin(lock::lock(cx, out)).await,
        Command::QueryInfo => query_info::query_info(cx, out).await,
        Command::QueryDirectory => Box::pin(query_directory::query_directory(cx, out)).await,
        Command::SetInfo => Box::pin(set_info::set_info(cx, out)).await,
        Command::Ioctl => Box::pin(ioctl::ioctl(cx, out)).await,
        Command::OplockBreak => oplock_break::oplock_break(cx),
        _ => Err(Status::NOT_SUPPORTED.into()),
    }
}

impl<'a, H> Context<'a, H> {
    /// A request of `header` and `message` for `host`. `related` is the open of the request before
    /// it in a related compound; `response_max` is in bytes.
    pub const fn new(
        host: &'a H,
        header: &'a Header,
        message: &'a Shared,
        related: Option<FileId>,
        response_max: usize,
    ) -> Self {
        Self { host, header, message, response_max, related, named: Cell::new(None) }
    }

    /// The open that the request named, also if it failed: the next request of a related compound
    /// may close it (MS-SMB2 §3.3.5.2.7.2). `None` for requests that name no open.
    pub fn named(&self) -> Option<FileId> {
        self.named.get()
    }

    /// The identifier that stands for `id` in this request.
    pub(crate) fn resolve(&self, id: FileId) -> FileId {
        let id = self.related.filter(|_| id == FileId::PREVIOUS).unwrap_or(id);
        self.named.set(Some(id));
        id
    }
}

impl<H: Host> Context<'_, H> {
    /// The open that the request names as `id`.
    ///
    /// # Errors
    /// [`Status::FILE_CLOSED`].
    pub(crate) fn open(&self, id: FileId) -> Result<H::Open, Failure> {
        Ok(self.host.find(self.resolve(id)).ok_or(Status::FILE_CLOSED)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        AccessMask, Channel, CloseFlags, CloseRequest, CreateContexts, CreateDisposition,
        CreateOptions, CreateRequest, FileAttributes, FlushRequest, HEADER_BYTES,
        ImpersonationLevel, LockFlags, LockRange, LockRequest, OplockLevel, Payload, ReadFlags,
        ReadRequest, RequestContext, ShareAccess, WriteFlags, WriteRequest,
    };
    use proptest::prelude::*;
    use testing::{TestServer, header};

    const ON_FILES: [Command; 11] = [
        Command::Create,
        Command::Close,
        Command::Flush,
        Command::Read,
        Command::Write,
        Command::Lock,
        Command::QueryInfo,
        Command::QueryDirectory,
        Command::SetInfo,
        Command::Ioctl,
        Command::OplockBreak,
    ];

    #[test]
    fn commands_find_their_operations_and_compounds_their_file() {
        let server = TestServer::new();
        server.file("f", b"data", 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::READ_DATA);
        for command in Command::ALL {
            let on_files = ON_FILES.contains(&command);
            // None of them is a body of two bytes.
            let reply = ann.call(
                command,
                |out| out.extend_from_slice(&[0; 2]),
                async move |cx, out| serve(cx, command, out).await,
            );
            let expected = if on_files { Status::INVALID_PARAMETER } else { Status::NOT_SUPPORTED };
            assert_eq!(reply.status(), expected, "{command:?}");
        }
        let mut message = header(Command::Close, Status::SUCCESS).to_bytes().to_vec();
        let request = CloseRequest { flags: CloseFlags::empty(), file: FileId::PREVIOUS };
        request.encode(&mut message);
        let send = |related| {
            let operation =
                async |cx: &Context<'_, _>, out: &mut Vec<u8>| serve(cx, Command::Close, out).await;
            ann.send(message.clone(), related, operation).unwrap().poll().unwrap()
        };
        assert_eq!(send(None).status(), Status::FILE_CLOSED);
        let reply = send(Some(id));
        assert_eq!(reply.outcome, Ok(Done::on(id)));
        assert!(reply.message.len() > HEADER_BYTES && server.opens() == 0);
    }

    #[test]
    fn a_request_that_fails_names_its_open_all_the_same() {
        let server = TestServer::new();
        server.file("f", b"data", 0o644, 7);
        let ann = server.session(7);
        let id = ann.open("f", AccessMask::READ_DATA);
        let named = |command, body: &dyn Fn(&mut Vec<u8>)| {
            let mut message = header(command, Status::SUCCESS).to_bytes().to_vec();
            body(&mut message);
            let seen = std::rc::Rc::new(Cell::new(None));
            let tell = std::rc::Rc::clone(&seen);
            let operation = async move |cx: &Context<'_, _>, out: &mut Vec<u8>| {
                let outcome = serve(cx, command, out).await;
                tell.set(cx.named());
                outcome
            };
            let reply = ann.send(message, Some(id), operation).unwrap().poll().unwrap();
            (reply.status(), seen.get())
        };
        let flush = |file| move |out: &mut Vec<u8>| FlushRequest { file }.encode(out);
        assert_eq!(
            named(Command::Flush, &flush(FileId::PREVIOUS)),
            (Status::ACCESS_DENIED, Some(id)),
            "the open may not write"
        );
        let other = FileId { persistent: 9, volatile: 9 };
        assert_eq!(named(Command::Flush, &flush(other)), (Status::FILE_CLOSED, Some(other)));
        let nothing = |_: &mut Vec<u8>| ();
        assert_eq!(named(Command::Flush, &nothing), (Status::INVALID_PARAMETER, None));
    }

    /// A valid body of each of the first commands [`ON_FILES`].
    fn bodies() -> [Vec<u8>; 6] {
        let name = testing::utf16("d\\f");
        let mut bodies = [const { Vec::new() }; 6];
        let (file, mut buffer) = (FileId { persistent: 1, volatile: 1 }, Vec::new());
        let contexts =
            [RequestContext::MaximalAccess(None), RequestContext::SecurityDescriptor(&[1; 20])];
        CreateRequest {
            oplock: OplockLevel::NONE,
            impersonation: ImpersonationLevel::IMPERSONATION,
            desired_access: AccessMask::MAXIMUM_ALLOWED,
            attributes: FileAttributes::empty(),
            share_access: ShareAccess::all(),
            disposition: CreateDisposition::OverwriteIf,
            options: CreateOptions::empty(),
            name: &name,
            contexts: CreateContexts::build(&mut buffer, contexts),
        }
        .encode(&mut bodies[0]);
        CloseRequest { flags: CloseFlags::all(), file }.encode(&mut bodies[1]);
        FlushRequest { file }.encode(&mut bodies[2]);
        let (channel, remaining_bytes) = (Channel::NONE, 0);
        let (flags, minimum_count) = (ReadFlags::empty(), 0);
        ReadRequest { flags, length: 4, offset: 0, file, minimum_count, channel, remaining_bytes }
            .encode(&mut bodies[3]);
        let (flags, data) = (WriteFlags::empty(), Payload { bytes: b"data", at: 0 });
        WriteRequest { offset: 0, file, channel, remaining_bytes, flags, data }
            .encode(&mut bodies[4]);
        let range = LockRange { offset: 0, length: 1, flags: LockFlags::EXCLUSIVE };
        LockRequest::encode(0, file, &[range, range], &mut bodies[5]);
        bodies
    }

    proptest! {
        /// No bytes make an operation panic, leave data operations under way, or lose an open.
        #[test]
        fn requests_that_are_nearly_right_do_no_harm(
            which in 0..6_usize,
            cut in 0..200_usize,
            changes in proptest::collection::vec((0..200_usize, any::<u8>()), 0..4),
        ) {
            let server = TestServer::new();
            server.dir("d", 0o777, 7);
            server.file("d/f", b"data", 0o644, 7);
            let ann = server.session(7);
            ann.open("d/f", AccessMask::READ_DATA | AccessMask::WRITE_DATA);
            let mut body = bodies()[which].clone();
            for (at, value) in changes {
                if let Some(byte) = body.get_mut(at) {
                    *byte = value;
                }
            }
            body.truncate(if cut < 100 { cut } else { body.len() });
            let command = ON_FILES[which];
            let operation = async move |cx: &Context<'_, _>, out: &mut Vec<u8>| {
                serve(cx, command, out).await
            };
            let reply = ann.start(command, |out| out.extend_from_slice(&body), operation).poll();
            prop_assert_eq!(server.io.get(), 0);
            let ok = reply.is_some_and(|reply| reply.outcome.is_ok());
            let opens = match command {
                Command::Create if ok => 2,
                Command::Close if ok => 0,
                _ => 1,
            };
            prop_assert_eq!(server.opens(), opens);
        }
    }
}
