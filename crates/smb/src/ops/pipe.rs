//! The commands on the named pipes of `IPC$` (MS-SMB2 §3.3.5.9 to §3.3.5.20): from a request to the
//! body of its response. A write is answered before it returns, so nothing here waits.
//!
//! Not here: what goes through a pipe ([`crate::pipe`]), and the tables of opens.

use super::ioctl::without_file;
use super::{Context, Done, Failure, Outcome};
use crate::fscc::{FileClass, FileInfo, OpenInfo};
use crate::le::{length, put};
use crate::pipe::{self, Interface, Pipe};
use crate::wire::{
    self, CloseFlags, CloseRequest, CloseResponse, Command, ControlCode, CreateAction,
    CreateOptions, CreateRequest, CreateResponse, CreateResponseFlags, FileAttributes, FileId,
    InfoType, IoctlFlags, IoctlReply, IoctlRequest, OplockLevel, OutputReply, QueryInfoRequest,
    ReadReply, ReadRequest, Status, WriteRequest, WriteResponse,
};
use alloc::vec::Vec;

/// The pipes that a session has open, and the server that their calls describe.
pub trait Pipes {
    /// Keeps a pipe that has just been opened under a new id. `None` if the session, or the server,
    /// has as many opens as it may.
    fn keep(&self, interface: Interface) -> Option<FileId>;

    /// Takes a pipe out of the session; false if it has no such pipe.
    fn take(&self, id: FileId) -> bool;

    /// Uses a pipe. `None` if the session has no such pipe. Must not be nested.
    fn with<R>(&self, id: FileId, act: impl FnOnce(&mut Pipe) -> R) -> Option<R>;

    /// Is there room for what a pipe holds, which is bounded for each session and for all?
    fn has_room(&self) -> bool;

    /// Gives `act` the description of the server, in the view of the session's user.
    fn describe<R>(&self, act: impl FnOnce(&pipe::Host<'_>) -> R) -> R;
}

/// Room for data that a pipe has, as it is shown.
const SHOWN_BYTES: u64 = 4096;

/// Carries out a request on `IPC$`.
///
/// # Errors
/// The status and data of the response.
pub fn serve<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    match cx.header.command {
        Ok(Command::Create) => create(cx, out),
        Ok(Command::Close) => close(cx, out),
        Ok(Command::Read) => read(cx, out),
        Ok(Command::Write) => write(cx, out),
        Ok(Command::Ioctl) => ioctl(cx, out),
        Ok(Command::QueryInfo) => query_info(cx, out),
        _ => Err(Status::NOT_SUPPORTED.into()),
    }
}

fn with<P: Pipes, R>(
    cx: &Context<'_, P>,
    id: FileId,
    act: impl FnOnce(&mut Pipe) -> R,
) -> Result<R, Failure> {
    Ok(cx.host.with(id, act).ok_or(Status::FILE_CLOSED)?)
}

/// Gives a pipe what the client sends. A pipe that breaks by it is of no use from then on.
fn give<P: Pipes>(cx: &Context<'_, P>, id: FileId, bytes: &[u8]) -> Result<(), Failure> {
    if !cx.host.has_room() {
        return Err(Status::INSUFFICIENT_RESOURCES.into());
    }
    let given = cx.host.describe(|host| with(cx, id, |pipe| pipe.write(bytes, host)))?;
    Ok(given.map_err(|_| Status::PIPE_DISCONNECTED)?)
}

/// Appends at most `max` bytes of what a pipe has to say.
fn take<P: Pipes>(
    cx: &Context<'_, P>,
    id: FileId,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    let (bytes, more) = with(cx, id, |pipe| pipe.read(max))?.ok_or(Status::PIPE_EMPTY)?;
    out.extend_from_slice(&bytes);
    Ok(if more { Status::BUFFER_OVERFLOW } else { Status::SUCCESS })
}

fn create<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = CreateRequest::decode(cx.message)?;
    let interface = interface(request.name).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    if request.options.contains(CreateOptions::DIRECTORY_FILE) {
        return Err(Status::NOT_A_DIRECTORY.into());
    }
    let file = cx.host.keep(interface).ok_or(Status::INSUFFICIENT_RESOURCES)?;
    let response = CreateResponse {
        oplock: OplockLevel::NONE,
        flags: CreateResponseFlags::empty(),
        action: CreateAction::OPENED,
        info: wire::NetworkOpenInfo {
            allocation_size: SHOWN_BYTES,
            attributes: FileAttributes::NORMAL,
            ..wire::NetworkOpenInfo::default()
        },
        file,
    };
    response.encode([], out);
    Ok(Done::on(file))
}

/// The interface of a name, in UTF-16.
fn interface(name: &[u8]) -> Option<Interface> {
    let (units, odd) = name.as_chunks::<2>();
    let ascii = |unit: &[u8; 2]| u8::try_from(u16::from_le_bytes(*unit)).ok();
    let name: Vec<u8> = units.iter().map(ascii).collect::<Option<_>>()?;
    Interface::of_name(&name).filter(|_| odd.is_empty())
}

fn close<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = CloseRequest::decode(cx.message)?;
    let id = cx.resolve(request.file);
    if !cx.host.take(id) {
        return Err(Status::FILE_CLOSED.into());
    }
    let response =
        CloseResponse { flags: CloseFlags::empty(), info: wire::NetworkOpenInfo::default() };
    response.encode(out);
    Ok(Done::on(id))
}

fn read<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = ReadRequest::decode(cx.message)?;
    let id = cx.resolve(request.file);
    let max = (request.length as usize).min(cx.response_max.saturating_sub(ReadReply::HEAD_BYTES));
    let reply = ReadReply::begin(out);
    let status = take(cx, id, max, out)?;
    reply.finish(out);
    Ok(Done::on(id).with(status))
}

fn write<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = WriteRequest::decode(cx.message)?;
    let id = cx.resolve(request.file);
    give(cx, id, request.data.bytes)?;
    WriteResponse { count: length::<u32>(request.data.bytes.len()) }.encode(out);
    Ok(Done::on(id))
}

fn ioctl<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = IoctlRequest::decode(cx.message)?;
    if !request.flags.contains(IoctlFlags::IS_FSCTL) {
        return Err(Status::NOT_SUPPORTED.into());
    }
    without_file(&request)?;
    let max =
        (request.max_output as usize).min(cx.response_max.saturating_sub(IoctlReply::HEAD_BYTES));
    let reply = IoctlReply::begin(out);
    let (id, status) = match request.code {
        ControlCode::PIPE_WAIT if request.file != FileId::PREVIOUS => {
            return Err(Status::INVALID_PARAMETER.into());
        }
        ControlCode::PIPE_WAIT => (request.file, wait(request.input.bytes)?),
        ControlCode::PIPE_TRANSCEIVE => {
            let id = cx.resolve(request.file);
            if with(cx, id, |pipe| pipe.waiting())? > 0 {
                return Err(Status::PIPE_BUSY.into());
            }
            give(cx, id, request.input.bytes)?;
            (id, take(cx, id, max, out)?)
        }
        ControlCode::PIPE_PEEK => {
            let id = cx.resolve(request.file);
            let waiting = with(cx, id, |pipe| pipe.waiting())?;
            (id, peek(waiting, max, out)?)
        }
        _ => {
            with(cx, cx.resolve(request.file), |_| ())?;
            return Err(Status::INVALID_DEVICE_REQUEST.into());
        }
    };
    reply.finish(out, request.code, id);
    Ok(Done { status, moved: 0, file: cx.named() })
}

/// FSCTL_PIPE_WAIT (MS-FSCC §2.3): there is always another instance of a pipe there is.
fn wait(input: &[u8]) -> Result<Status, Failure> {
    let mut input = crate::le::Reader::new(input);
    let short = |_| Status::INVALID_PARAMETER;
    let (_timeout, length) = (input.u64().map_err(short)?, input.u32().map_err(short)?);
    let [_specified, _padding] = input.array().map_err(short)?;
    let name = input.bytes_u32(length).map_err(short)?;
    interface(name).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    Ok(Status::SUCCESS)
}

/// FSCTL_PIPE_PEEK (MS-FSCC §2.3): how much can be read, without the data itself.
fn peek(waiting: usize, max: usize, out: &mut Vec<u8>) -> Result<Status, Failure> {
    /// FILE_PIPE_CONNECTED_STATE.
    const CONNECTED: u32 = 3;
    const PEEK_BYTES: usize = 16;
    if max < PEEK_BYTES {
        return Err(Status::INFO_LENGTH_MISMATCH.into());
    }
    let bytes = length::<u32>(waiting);
    put!(out; CONNECTED, bytes, u32::from(waiting > 0), bytes);
    Ok(if waiting > 0 { Status::BUFFER_OVERFLOW } else { Status::SUCCESS })
}

/// QUERY_INFO: FileStandardInformation alone, which clients ask for after they open a pipe.
fn query_info<P: Pipes>(cx: &Context<'_, P>, out: &mut Vec<u8>) -> Outcome {
    let request = QueryInfoRequest::decode(cx.message)?;
    let id = cx.resolve(request.file);
    let waiting = with(cx, id, |pipe| pipe.waiting())?;
    if request.info_type != InfoType::FILE {
        return Err(Status::NOT_SUPPORTED.into());
    }
    let class = FileClass::from_wire(request.class);
    let class = class.filter(|class| *class == FileClass::Standard);
    let class = class.ok_or(Status::INVALID_INFO_CLASS)?;
    let max =
        (request.max_output as usize).min(cx.response_max.saturating_sub(OutputReply::HEAD_BYTES));
    if max < class.fixed_bytes() {
        return Err(Status::INFO_LENGTH_MISMATCH.into());
    }
    let info = FileInfo {
        allocated: SHOWN_BYTES,
        size: u64::try_from(waiting).unwrap_or(u64::MAX),
        links: 1,
        // A pipe goes when it is closed.
        delete_pending: true,
        ..FileInfo::default()
    };
    let reply = OutputReply::begin(out);
    class.encode(&info, &OpenInfo::default(), out);
    reply.finish(out);
    Ok(Done::on(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{header, utf16};
    use crate::pipe::{Share, ShareKind};
    use crate::wire::{
        AccessMask, CreateContexts, CreateDisposition, HEADER_BYTES, ImpersonationLevel,
        IoctlResponse, Payload, QueryInfoFlags, ReadResponse, SecurityInformation, ShareAccess,
    };
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct TestPipes {
        pipes: RefCell<BTreeMap<u64, Pipe>>,
        full: bool,
        crowded: Cell<bool>,
    }

    impl Pipes for TestPipes {
        fn keep(&self, interface: Interface) -> Option<FileId> {
            let volatile = self.pipes.borrow().len() as u64 + 1;
            self.pipes.borrow_mut().insert(volatile, Pipe::new(interface));
            (!self.full).then_some(FileId { persistent: 5, volatile })
        }

        fn take(&self, id: FileId) -> bool {
            self.pipes.borrow_mut().remove(&id.volatile).is_some()
        }

        fn with<R>(&self, id: FileId, act: impl FnOnce(&mut Pipe) -> R) -> Option<R> {
            self.pipes.borrow_mut().get_mut(&id.volatile).map(act)
        }

        fn has_room(&self) -> bool {
            !self.crowded.get()
        }

        fn describe<R>(&self, act: impl FnOnce(&pipe::Host<'_>) -> R) -> R {
            let shares = [Share { name: "vol", comment: "", kind: ShareKind::Disk }];
            act(&pipe::Host { name: "WEIR", group: "W", comment: "", shares: &|| shares.to_vec() })
        }
    }

    impl TestPipes {
        fn call(
            &self,
            command: Command,
            encode: impl FnOnce(&mut Vec<u8>),
            related: Option<FileId>,
        ) -> (Outcome, Vec<u8>) {
            let mut message = Vec::new();
            let header = header(command, Status::SUCCESS);
            header.encode(&mut message);
            encode(&mut message);
            let message = weir_core::Shared::from(message);
            let (header, message) = (&header, &message);
            let cx = Context::new(self, header, message, related, 1 << 16);
            let mut out = vec![0; HEADER_BYTES];
            let outcome = serve(&cx, &mut out);
            (outcome, out)
        }

        fn open(&self, name: &str) -> Result<FileId, Status> {
            let request = CreateRequest {
                oplock: OplockLevel::NONE,
                impersonation: ImpersonationLevel::IMPERSONATION,
                desired_access: AccessMask::READ_DATA | AccessMask::WRITE_DATA,
                attributes: FileAttributes::empty(),
                share_access: ShareAccess::all(),
                disposition: CreateDisposition::Open,
                options: CreateOptions::empty(),
                name: &utf16(name),
                contexts: CreateContexts::default(),
            };
            let (outcome, out) = self.call(Command::Create, |out| request.encode(out), None);
            let file = outcome.map_err(|failure| failure.status)?.file.unwrap();
            let mut message = header(Command::Create, Status::SUCCESS).to_bytes().to_vec();
            message.extend_from_slice(&out[HEADER_BYTES..]);
            assert_eq!(CreateResponse::decode(&message).unwrap().0.file, file);
            Ok(file)
        }

        fn write(&self, file: FileId, data: &[u8]) -> Result<Done, Status> {
            let request = WriteRequest {
                offset: 0,
                file,
                channel: wire::Channel::NONE,
                remaining_bytes: 0,
                flags: wire::WriteFlags::empty(),
                data: Payload { bytes: data, at: 0 },
            };
            let (outcome, _) = self.call(Command::Write, |out| request.encode(out), None);
            outcome.map_err(|failure| failure.status)
        }

        fn read(&self, file: FileId, length: u32) -> Result<(Status, Vec<u8>), Status> {
            let request = ReadRequest {
                flags: wire::ReadFlags::empty(),
                length,
                offset: 0,
                file,
                minimum_count: 0,
                channel: wire::Channel::NONE,
                remaining_bytes: 0,
            };
            let (outcome, out) = self.call(Command::Read, |out| request.encode(out), None);
            let done = outcome.map_err(|failure| failure.status)?;
            Ok((done.status, ReadResponse::decode(&out).unwrap().data.to_vec()))
        }

        fn ioctl(
            &self,
            code: ControlCode,
            file: FileId,
            input: &[u8],
            max_output: u32,
        ) -> Result<(Status, Vec<u8>), Status> {
            let request = IoctlRequest {
                code,
                file,
                input: Payload { bytes: input, at: 0 },
                max_input: 0,
                output_count: 0,
                max_output,
                flags: IoctlFlags::IS_FSCTL,
            };
            let (outcome, out) = self.call(Command::Ioctl, |out| request.encode(out), None);
            let done = outcome.map_err(|failure| failure.status)?;
            Ok((done.status, IoctlResponse::decode(&out).unwrap().output.to_vec()))
        }

        fn info(&self, file: FileId, info_type: InfoType, class: u8, max_output: u32) -> Status {
            let request = QueryInfoRequest {
                info_type,
                class,
                max_output,
                input: Payload { bytes: &[], at: 0 },
                security: SecurityInformation::empty(),
                flags: QueryInfoFlags::empty(),
                file,
            };
            match self.call(Command::QueryInfo, |out| request.encode(out), None).0 {
                Ok(done) => done.status,
                Err(failure) => failure.status,
            }
        }
    }

    /// A bind to srvsvc in NDR (C706 §12.6.4.3).
    fn bind() -> Vec<u8> {
        let mut out = vec![5, 0, 11, 3, 0x10, 0, 0, 0, 72, 0, 0, 0, 1, 0, 0, 0];
        out.extend_from_slice(&[0xB8, 0x10, 0xB8, 0x10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]);
        out.extend_from_slice(&[
            0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E,
            0xE1, 0x88, 3, 0, 0, 0, 0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8,
            0x08, 0x00, 0x2B, 0x10, 0x48, 0x60, 2, 0, 0, 0,
        ]);
        out
    }

    #[test]
    fn a_pipe_is_opened_by_its_name_and_closed_once() {
        let pipes = TestPipes::default();
        let file = pipes.open("SrvSvc").unwrap();
        assert_eq!(pipes.open("lsarpc"), Err(Status::OBJECT_NAME_NOT_FOUND));
        assert_eq!(pipes.open("größe"), Err(Status::OBJECT_NAME_NOT_FOUND));
        let full = TestPipes { full: true, ..TestPipes::default() };
        assert_eq!(full.open("wkssvc"), Err(Status::INSUFFICIENT_RESOURCES));
        let close = |file| {
            let request = CloseRequest { flags: CloseFlags::POSTQUERY_ATTRIB, file };
            pipes.call(Command::Close, |out| request.encode(out), Some(FileId::default())).0
        };
        assert_eq!(close(FileId::PREVIOUS), Err(Status::FILE_CLOSED.into()), "the related one");
        assert_eq!(close(file), Ok(Done::on(file)));
        assert_eq!(close(file), Err(Status::FILE_CLOSED.into()));
    }

    #[test]
    fn answers_are_read_in_parts() {
        let pipes = TestPipes::default();
        let file = pipes.open("srvsvc").unwrap();
        assert_eq!(pipes.read(file, 100), Err(Status::PIPE_EMPTY));
        pipes.write(file, &bind()).unwrap();
        let (status, first) = pipes.read(file, 10).unwrap();
        assert_eq!((status, first.len(), first[2]), (Status::BUFFER_OVERFLOW, 10, 12));
        let (status, rest) = pipes.read(file, 1000).unwrap();
        assert_eq!((status, rest.len() + 10), (Status::SUCCESS, usize::from(first[8])));
        assert_eq!(pipes.write(file, &[0; 16]), Err(Status::PIPE_DISCONNECTED));
        assert_eq!(pipes.write(FileId::default(), &[]), Err(Status::FILE_CLOSED));
    }

    #[test]
    fn a_transaction_writes_and_reads() {
        let pipes = TestPipes::default();
        let file = pipes.open("srvsvc").unwrap();
        let call = |max| pipes.ioctl(ControlCode::PIPE_TRANSCEIVE, file, &bind(), max);
        let (status, part) = call(30).unwrap();
        assert_eq!((status, part.len()), (Status::BUFFER_OVERFLOW, 30));
        assert_eq!(call(4000), Err(Status::PIPE_BUSY));
        let peek = |max| pipes.ioctl(ControlCode::PIPE_PEEK, file, &[], max);
        let (status, state) = peek(16).unwrap();
        let waiting = state[4];
        assert_eq!(
            (status, &state[..4], state[8]),
            (Status::BUFFER_OVERFLOW, &[3, 0, 0, 0][..], 1)
        );
        assert_eq!(peek(15), Err(Status::INFO_LENGTH_MISMATCH));
        assert_eq!(pipes.read(file, 4000).unwrap().1.len(), usize::from(waiting));
        let mut idle = vec![0; 16];
        idle[0] = 3;
        assert_eq!(peek(16), Ok((Status::SUCCESS, idle)));
        let half = pipes.ioctl(ControlCode::PIPE_TRANSCEIVE, file, &bind()[..20], 4000);
        assert_eq!(half, Err(Status::PIPE_EMPTY));
    }

    #[test]
    fn other_controls_are_refused() {
        let pipes = TestPipes::default();
        let file = pipes.open("srvsvc").unwrap();
        let none = FileId::PREVIOUS;
        let ask = |code, file, input: &[u8]| pipes.ioctl(code, file, input, 100).unwrap_err();
        assert_eq!(ask(ControlCode::SET_SPARSE, file, &[]), Status::INVALID_DEVICE_REQUEST);
        assert_eq!(ask(ControlCode::SET_SPARSE, none, &[]), Status::FILE_CLOSED);
        assert_eq!(ask(ControlCode::DFS_GET_REFERRALS, none, &[]), Status::FS_DRIVER_REQUIRED);
        let interfaces = ControlCode::QUERY_NETWORK_INTERFACE_INFO;
        assert_eq!(ask(interfaces, none, &[]), Status::NOT_SUPPORTED);
        assert_eq!(ask(ControlCode::PIPE_WAIT, file, &[]), Status::INVALID_PARAMETER);
        assert_eq!(ask(ControlCode::PIPE_WAIT, none, &[0; 13]), Status::INVALID_PARAMETER);
        let wait = |name: &str| {
            let name = utf16(name);
            let mut input = vec![0; 8];
            put!(input; length::<u32>(name.len()), 0u16);
            input.extend_from_slice(&name);
            pipes.ioctl(ControlCode::PIPE_WAIT, none, &input, 0)
        };
        assert_eq!(wait("wkssvc"), Ok((Status::SUCCESS, vec![])));
        assert_eq!(wait("spoolss"), Err(Status::OBJECT_NAME_NOT_FOUND));
    }

    #[test]
    fn only_the_standard_information_is_told_and_nothing_else_served() {
        let pipes = TestPipes::default();
        let file = pipes.open("srvsvc").unwrap();
        assert_eq!(pipes.info(file, InfoType::FILE, 5, 24), Status::SUCCESS);
        assert_eq!(pipes.info(file, InfoType::FILE, 5, 23), Status::INFO_LENGTH_MISMATCH);
        assert_eq!(pipes.info(file, InfoType::FILE, 4, 99), Status::INVALID_INFO_CLASS);
        assert_eq!(pipes.info(file, InfoType::FILESYSTEM, 1, 99), Status::NOT_SUPPORTED);
        assert_eq!(pipes.info(FileId::default(), InfoType::FILE, 5, 24), Status::FILE_CLOSED);
        let (outcome, _) = pipes.call(Command::Lock, |_| {}, None);
        assert_eq!(outcome, Err(Status::NOT_SUPPORTED.into()));
        let (outcome, _) = pipes.call(Command::Read, |out| out.push(1), None);
        assert_eq!(outcome, Err(Status::INVALID_PARAMETER.into()));
    }
}
